"""What goes out by the hundred thousand as dialect objects: runs of `NewAllocation`, and of `Released` in 1.9's dialect.

What many have in common is one object for all of them: a preemption policy, a priority, the qualified name of a
partition. Their classes are frozen; a resource and tags are the core's own, as in `NewAllocation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cython

from licorne.si.seed import Allocation as AllocationSeed
from licorne.si.seed import Priority
from licorne.si.v19 import Allocation as AllocationV19
from licorne.si.v19 import AllocationRelease, PreemptionPolicy, TerminationType

if cython.compiled:
    from cython.cimports.licorne.si.allocations import NewAllocation
else:
    from licorne.si.allocations import NewAllocation

_POLICIES = [
    PreemptionPolicy(allow_preempt_self=own, allow_preempt_other=other)
    for own, other in ((False, False), (True, False), (False, True), (True, True))
]


_TERMINATIONS = sorted(TerminationType)
"""By their numbers, which are those of `licorne.si.messages.Termination`."""


def run_end(outputs: list[Any], start: int) -> int:
    """Where the run of outputs of one type ends that begins at `start`."""
    end: cython.Py_ssize_t = start + 1
    of: object = type(outputs[start])
    while end < len(outputs) and type(outputs[end]) is of:
        end += 1
    return end


def as_v19(outputs: list[Any], start: int, end: int) -> list[AllocationV19]:
    """Decisions in 1.9's dialect. They hold no partition, no tags and no priority (spec section 7.3)."""
    made: list[Any] = []
    policies: list[Any] = _POLICIES
    index: cython.Py_ssize_t
    output: NewAllocation
    of: Any = AllocationV19
    for index in range(start, end):
        output = outputs[index]
        made.append(
            of(
                allocation_key=output.key,
                resource_per_alloc=output.resource,
                node_id=output.node_id,
                application_id=output.application_id,
                task_group_name=output.task_group,
                placeholder=output.placeholder,
                originator=output.originator,
                preemption_policy=policies[output.allow_preempt_self + 2 * output.allow_preempt_other],
            )
        )
    return made


def released_v19(outputs: list[Any], qualified: Mapping[str, str]) -> list[AllocationRelease]:
    """Ends of allocations in 1.9's dialect; `qualified` knows, or finds out, the full names of partitions."""
    made: list[Any] = []
    terminations: list[Any] = _TERMINATIONS
    number: cython.Py_ssize_t
    of: Any = AllocationRelease
    for output in outputs:
        number = output.termination
        made.append(
            of(
                partition_name=qualified[output.partition],
                application_id=output.application_id,
                termination_type=terminations[number],
                message=output.message,
                allocation_key=output.key,
            )
        )
    return made


def as_seed(outputs: list[Any], start: int, end: int, qualified: Mapping[str, str]) -> list[AllocationSeed]:
    """Decisions in the seed's dialect; `qualified` knows, or finds out, the full names of partitions."""
    made: list[Any] = []
    priority: object = None
    number: cython.longlong = 0
    index: cython.Py_ssize_t
    output: NewAllocation
    of: Any = AllocationSeed
    name: object = None
    full: object = None
    for index in range(start, end):
        output = outputs[index]
        if priority is None or output.priority != number:
            number = output.priority
            priority = Priority(priority_value=number)
        if output.partition is not name:
            name = output.partition
            full = qualified[output.partition]
        made.append(
            of(
                allocation_key=output.key,
                allocation_tags=output.tags or {},
                uuid=output.uuid,
                resource_per_alloc=output.resource,
                priority=priority,
                queue_name=output.queue,
                node_id=output.node_id,
                application_id=output.application_id,
                partition_name=full,
                task_group_name=output.task_group,
                placeholder=output.placeholder,
            )
        )
    return made
