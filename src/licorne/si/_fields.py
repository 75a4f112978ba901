"""What each field of the messages means, and in which unit it is: once for each name, however many messages have it.

`document` completes the docstrings of the messages from it, so that `help`, pydoc and the reference show every field.
Source: docs/spec/scheduler-interface.md, sections 2 to 5.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from licorne.si._schema import Message

_AMOUNTS: Final = (
    "amounts by resource type: `vcore` in thousandths of a core, `memory` in bytes, others as they are counted"
)

MEANINGS: Final[dict[str, str]] = {
    "accepted": "the applications or nodes that were accepted",
    "accepted_applications": "the applications that were accepted",
    "accepted_nodes": "the nodes that were accepted",
    "action": "what is to happen to the node",
    "UpdateResponse.action": "RESYNC: stop, and register again",
    "allocate": "whether an allocation follows at once; false for a reservation or for a placeholder's replacement",
    "allocation_asks_to_release": "the asks that end",
    "allocation_key": "the key of the ask, unique in its application; an allocation keeps the key of its ask",
    "AllocationRelease.allocation_key": "the key of the ask or allocation; empty: all of the application",
    "AllocationAskRelease.allocation_key": "the key of the ask; empty: all of the application",
    "allocation_tags": "names and values, such as `creationTime` (seconds since 1970) or a required node",
    "allocations": "asks (without `node_id`), and allocations that exist (with it)",
    "allocations_to_release": "the allocations that end; in the 1.9 interface the asks, too",
    "allow_preempt_other": "whether the ask may evict others",
    "allow_preempt_self": "whether it may be evicted; if not, it is evicted only where no other victims would do",
    "application_id": "the id of the application, unique in its partition",
    "asks": "new asks, and changes of known ones",
    "assumed_allocations": "the allocations to take as placed",
    "attributes": "labels (`label/NAME`) and properties of the node, by name",
    "build_info": "names and values that REST shows as the build of the resource manager",
    "config": "the queue configuration, as the text of a queues.yaml; empty: the built-in one",
    "configs": "the queue configuration to save, as the text of a queues.yaml",
    "event_change_detail": "what has changed exactly",
    "event_change_type": "whether something was set, added or removed",
    "execution_timeout_milli_seconds": "how long it may run, in milliseconds; 0 or less: without end",
    "AddApplicationRequest.execution_timeout_milli_seconds": (
        "in milliseconds, how long the application may run (first interface), or how long placeholders wait (1.9); "
        "0: without end, or 15 minutes"
    ),
    "existing_allocations": "the allocations that run on the node already",
    "extra_config": "settings by key",
    "forget_allocations": "the allocations to take as not placed",
    "gang_scheduling_style": "`Soft`: when the time of placeholders is over, go on without a gang; `Hard`: fail",
    "group_id": "the application of a request, the queue of an application",
    "groups": "the groups of the user; empty: the scheduler finds them",
    "index": "the victim, counted from 0, after whose end the ask fits; those before it have ended, too",
    "max_allocations": "how many allocations are wanted; each has these amounts",
    "message": "a text for people",
    "new": "what is new: applications, or allocations that were decided",
    "new_allocations": "the allocations that were decided",
    "new_applications": "the applications that are new",
    "new_schedulable_nodes": "the nodes that are new",
    "node_id": "the id of the node, unique in its partition",
    "Allocation.node_id": "the id of the node; in the 1.9 interface empty: an ask",
    "nodes": "nodes that are new, have changed or go",
    "object_id": "the id of what the event is about",
    "occupied_resource": f"what others than this scheduler use on the node: {_AMOUNTS}",
    "old_config": "the queue configuration until now",
    "originator": "whether it began its application; it is evicted only where no other victims would do",
    "partition_name": "the name of the partition; empty: `default`",
    "placeholder": "whether it only keeps room for a member of its task group",
    "placeholder_ask": f"the sum of all placeholders of the gang: {_AMOUNTS}",
    "policy_group": "which of the scheduler's queue configurations counts",
    "preempt_allocation_keys": "the keys of the victims, in the order of eviction",
    "preemption_policy": "whether it may be evicted and may evict; absent: neither",
    "priority": "a number; the higher, the more important",
    "Allocation.priority": "a number (1.9), or a number or the name of a class; the higher, the more important",
    "AllocationAsk.priority": "a number, or the name of a class; absent: 0",
    "priority_class_name": "the name of a class, which stands for a number",
    "priority_value": "the number; the higher, the more important",
    "queue_name": "the path of the queue, such as `root.a`; of an application, what it asks for",
    "reason": "why, as a text for people",
    "reference_id": "the id of another object that has to do with it",
    "rejected": "the applications or nodes that were refused",
    "rejected_allocations": "the asks and allocations that were refused",
    "rejected_applications": "the applications that were refused",
    "rejected_nodes": "the nodes, or changes of nodes, that were refused",
    "released": "the asks and allocations that end, or are to end",
    "released_allocation_asks": "the asks that end",
    "released_allocations": "the allocations that end, or are to end",
    "releases": "what ends",
    "remove": "the applications that end",
    "remove_applications": "the applications that end",
    "resource": f"what the event is about: {_AMOUNTS}",
    "resource_ask": f"what each allocation is to have: {_AMOUNTS}",
    "resource_per_alloc": f"what it takes: {_AMOUNTS}",
    "resources": "a quantity by resource type, as it is on the wire",
    "rm_id": "the id of the resource manager that sends the message",
    "schedulable_resource": f"what the node has for pods: {_AMOUNTS}; absent: no change",
    "start_index": "the first victim to try, counted from 0; those before it count as ended from the start",
    "state": "the new state, such as `Running`",
    "UpdateContainerSchedulingStateRequest.state": "what came of trying the ask",
    "state_transition_timestamp": "when, in nanoseconds since 1970",
    "success": "whether it worked; without it, the other fields mean nothing",
    "tags": "names and values, such as `creationTime` (seconds since 1970)",
    "task_group_name": "the name of the task group in its gang; empty: none",
    "termination_type": "why it ends",
    "timestamp_nano": "when, in nanoseconds since 1970",
    "type": "what kind of object the event is about",
    "ugi": "who owns the application, and in which groups he is",
    "updated": "the applications that have another state",
    "updated_applications": "the applications that have another state",
    "updated_nodes": "the nodes that have changed, or go",
    "user": "the name of the user",
    "uuid": "the id of the allocation, which the scheduler has given",
    "value": "the quantity, in the unit of its resource type",
    "version": "the version of the interface that the resource manager speaks",
}
"""By the name of the field, or by MESSAGE.FIELD where a message means something else by it."""


def document(names: Mapping[str, Any]) -> None:
    """Append the meaning of each field to the docstrings of the messages among these names, once."""
    for message in names.values():
        if not (isinstance(message, type) and issubclass(message, Message)) or not message.__struct_fields__:
            continue
        text = message.__doc__ or ""
        if "Attributes:" not in text:
            fields = (
                (name, MEANINGS.get(f"{message.__name__}.{name}", "") or MEANINGS[name])
                for name in message.__struct_fields__
            )
            lines = "\n".join(f"    {name}: {meaning}." for name, meaning in fields)
            # Without indentation: from Python 3.13 on the compiler takes that of the text away, before it leaves it.
            message.__doc__ = f"{inspect.cleandoc(text)}\n\nAttributes:\n{lines}\n"
