"""The role of each field of an ask, a number by which the fast path for bytes (`licorne.si.wire_asks`) knows it.

The roles are numbered in `licorne.si.wire_constants`; the fields' tags on the wire follow from their declarations.
"""

from __future__ import annotations

from licorne.si import first, v19
from licorne.si._schema import Message
from licorne.si.wire_constants import (
    APPLICATION,
    KEY,
    NODE,
    ORIGINATOR,
    PARTITION,
    PLACEHOLDER,
    POLICY_OTHER,
    POLICY_SELF,
    PRIORITY,
    PRIORITY_CLASS,
    REPEATS,
    RESOURCE,
    TAGS,
    TASK_GROUP,
    TIMEOUT,
    WITHIN,
)
from licorne.si.wire_plan import plan_of

_ROLES = {
    v19.Allocation: {
        "priority": PRIORITY,
        "placeholder": PLACEHOLDER,
        "originator": ORIGINATOR,
        "allocation_key": KEY,
        "application_id": APPLICATION,
        "partition_name": PARTITION,
        "node_id": NODE,
        "task_group_name": TASK_GROUP,
        "resource_per_alloc": RESOURCE,
        "allocation_tags": TAGS,
        "preemption_policy": WITHIN,
    },
    v19.PreemptionPolicy: {"allow_preempt_self": POLICY_SELF, "allow_preempt_other": POLICY_OTHER},
    first.AllocationAsk: {
        "placeholder": PLACEHOLDER,
        "max_allocations": REPEATS,
        "execution_timeout_milli_seconds": TIMEOUT,
        "allocation_key": KEY,
        "application_id": APPLICATION,
        "partition_name": PARTITION,
        "task_group_name": TASK_GROUP,
        "resource_ask": RESOURCE,
        "tags": TAGS,
        "priority": WITHIN,
    },
    first.Priority: {"priority_value": PRIORITY, "priority_class_name": PRIORITY_CLASS},
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
