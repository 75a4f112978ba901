"""The fast path for decisions as objects of the 1.9 interface: runs of `NewAllocation` and of `Released`.

Messages share the values that many have in common: a preemption policy, the qualified name of a partition. The classes of
shared values are frozen; resources are shared with the core, as in `NewAllocation`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from licorne._plain import cython
from licorne.si.allocations import NewAllocation, Released
from licorne.si.partitions import QualifiedPartitions, names_for
from licorne.si.v19 import Allocation as AllocationV19
from licorne.si.v19 import AllocationRelease, AllocationResponse, PreemptionPolicy, TerminationType

_POLICIES = [
    PreemptionPolicy(allow_preempt_self=own, allow_preempt_other=other)
    for own, other in ((False, False), (True, False), (False, True), (True, True))
]


Others = Callable[[list[Any], int, str], tuple[int, list[Any]]]
"""Makes the responses for a run of outputs of other types.

Takes the outputs, the start of the run and the resource manager's id; returns the end of the run and the responses.
"""

_TERMINATIONS = sorted(TerminationType)
"""The terminations of the 1.9 interface; the index of each is its number, as in `licorne.si.messages.Termination`."""


@cython.ccall
def run_end(outputs: list[Any], start: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return where the run of outputs of the same type ends that begins at `start`."""
    end: cython.Py_ssize_t = start + 1
    of: object = type(outputs[start])
    while end < len(outputs) and type(outputs[end]) is of:
        end += 1
    return end


@cython.ccall
def as_v19(outputs: list[Any], start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> list[AllocationV19]:
    """Translate the decisions `outputs[start:end]` to the 1.9 interface, without partition, tags and priority.

    Source: docs/spec/scheduler-interface.md, section 7.3.
    """
    made: list[Any] = []
    policies: list[Any] = _POLICIES
    index: cython.Py_ssize_t
    output: NewAllocation
    of: Any = AllocationV19
    for index in range(start, end):
        output = outputs[index]
        made.append(
            of(  # positional, in the order of declaration: keyword arguments would cost as much as the rest
                output.key,
                {},
                output.resource,
                0,
                output.node_id,
                output.application_id,
                "",
                output.task_group,
                output.placeholder,
                output.originator,
                policies[output.allow_preempt_self + 2 * output.allow_preempt_other],
            )
        )
    return made


@cython.ccall
def released_v19(
    outputs: list[Any], start: cython.Py_ssize_t, end: cython.Py_ssize_t, rm_id: str
) -> list[AllocationRelease]:
    """Translate the releases `outputs[start:end]` to the 1.9 interface."""
    made: list[Any] = []
    terminations: list[Any] = _TERMINATIONS
    qualified: QualifiedPartitions = names_for(rm_id).qualified
    index: cython.Py_ssize_t
    output: Released
    number: cython.Py_ssize_t
    of: Any = AllocationRelease
    for index in range(start, end):
        output = outputs[index]
        number = output.termination
        made.append(
            of(  # positional, in the order of declaration: keyword arguments would cost as much as the rest
                qualified[output.partition],
                output.application_id,
                terminations[number],
                output.message,
                output.key,
            )
        )
    return made


@cython.ccall
def responses_v19(outputs: list[Any], rm_id: str, others: Others) -> list[Any]:
    """Translate outputs to responses of the 1.9 interface, each with its kind; `others` translates the other types."""
    made: list[Any] = []
    start: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t
    of: Any = AllocationResponse
    while start < len(outputs):
        if isinstance(outputs[start], NewAllocation):
            end = run_end(outputs, start)
            made.append(("allocation", of(as_v19(outputs, start, end))))
        elif isinstance(outputs[start], Released):
            end = run_end(outputs, start)
            made.append(("allocation", of([], released_v19(outputs, start, end, rm_id))))
        else:
            end, responses = others(outputs, start, rm_id)
            made += responses
        start = end
    return made
