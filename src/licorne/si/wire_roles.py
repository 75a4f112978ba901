"""The role of each field of an ask, a number by which the fast path for bytes (`licorne.si.wire_asks`) knows it.

The roles are numbered in `licorne.si.wire_constants`; the fields' tags on the wire follow from their declarations.
"""

from __future__ import annotations

from licorne.si import first, v19
from licorne.si import wire_constants as roles
from licorne.si._schema import Message
from licorne.si.wire_plan import plan_of

_ROLES = {
    v19.Allocation: {
        "priority": roles.PRIORITY,
        "placeholder": roles.PLACEHOLDER,
        "originator": roles.ORIGINATOR,
        "allocation_key": roles.KEY,
        "application_id": roles.APPLICATION,
        "partition_name": roles.PARTITION,
        "node_id": roles.NODE,
        "task_group_name": roles.TASK_GROUP,
        "resource_per_alloc": roles.RESOURCE,
        "allocation_tags": roles.TAGS,
        "preemption_policy": roles.WITHIN,
    },
    v19.PreemptionPolicy: {"allow_preempt_self": roles.POLICY_SELF, "allow_preempt_other": roles.POLICY_OTHER},
    first.AllocationAsk: {
        "placeholder": roles.PLACEHOLDER,
        "max_allocations": roles.REPEATS,
        "execution_timeout_milli_seconds": roles.TIMEOUT,
        "allocation_key": roles.KEY,
        "application_id": roles.APPLICATION,
        "partition_name": roles.PARTITION,
        "task_group_name": roles.TASK_GROUP,
        "resource_ask": roles.RESOURCE,
        "tags": roles.TAGS,
        "priority": roles.WITHIN,
    },
    first.Priority: {"priority_value": roles.PRIORITY, "priority_class_name": roles.PRIORITY_CLASS},
}


def _roles(message: type[Message]) -> bytes:
    """Return the role of the field by its tag, for each of the 256 values of a byte; 0 is `UNKNOWN`.

    The upper half stands for tags of more than one byte, which no field here has.
    """
    table = bytearray(128)
    for tag, slot in plan_of(message).slots.items():
        table[tag] = _ROLES[message][slot.attribute]
    return bytes(table) + bytes(128)


V19 = (_roles(v19.Allocation), _roles(v19.PreemptionPolicy))
FIRST = (_roles(first.AllocationAsk), _roles(first.Priority))
