"""What the fields of an ask are to `licorne.si.wire_asks`, which reads their bytes: a number for each that it knows.

The numbers are its own (PRIORITY and what follows there); where the fields stand on the wire follows from their declarations.
"""

from __future__ import annotations

from licorne.si import first, v19
from licorne.si._schema import Message
from licorne.si.wire_plan import plan_of

_ROLES = {
    v19.Allocation: {
        "priority": 1,
        "placeholder": 2,
        "originator": 3,
        "allocation_key": 9,
        "application_id": 10,
        "partition_name": 11,
        "node_id": 12,
        "task_group_name": 13,
        "resource_per_alloc": 14,
        "allocation_tags": 15,
        "preemption_policy": 16,
    },
    v19.PreemptionPolicy: {"allow_preempt_self": 6, "allow_preempt_other": 7},
    first.AllocationAsk: {
        "placeholder": 2,
        "max_allocations": 4,
        "execution_timeout_milli_seconds": 5,
        "allocation_key": 9,
        "application_id": 10,
        "partition_name": 11,
        "task_group_name": 13,
        "resource_ask": 14,
        "tags": 15,
        "priority": 16,
    },
    first.Priority: {"priority_value": 1, "priority_class_name": 8},
}


def _roles(message: type[Message]) -> bytes:
    """For each byte that may stand before a value what the field is; the numbers come from the declaration alone."""
    table = bytearray(128)
    for tag, slot in plan_of(message).slots.items():
        table[tag] = _ROLES[message][slot.attribute]
    return bytes(table) + bytes(128)


V19, V19_INNER = _roles(v19.Allocation), _roles(v19.PreemptionPolicy)
FIRST, FIRST_INNER = _roles(first.AllocationAsk), _roles(first.Priority)
