"""The cost of evictions: which queue lost pods to which, how many, and how much work was lost.

Only the scheduler's outputs are read: a release with PREEMPTED_BY_SCHEDULER, whose message says what it is for
(docs/spec/preemption.md, sections 2.11, 3 and 4.5). The work of a pod is the time from its start until its end, including
the grace period, times its resources. It is lost, because a pod that is created again starts anew. A placeholder does no
work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Literal

import msgspec

from licorne.workload.measure import NANOSECONDS

Kind = Literal["guaranteed", "within-queue", "required-node", "quota-change"]
"""Cause of an eviction: an ask's queue is below its guarantee, an ask of the queue has a higher priority, an ask requires the node, or a queue's max was lowered."""

_CAUSES: tuple[tuple[str, Kind], ...] = (
    ("preempting allocations to free up resources to run ask: ", "guaranteed"),
    ("preempting allocations of lower priority to free up resources to run ask: ", "within-queue"),
    ("preempting allocations to free up resources to run daemon set ask: ", "required-node"),
    ("preempting allocations to enforce new max quota for queue : ", "quota-change"),
)


class Evictions(msgspec.Struct, frozen=True):
    """Evictions of one kind from one queue on behalf of another: numbers of pods and placeholders, and the work lost.

    `wanted_by` is the queue of the asks that needed the room, or the queue whose max was lowered. `lost_pod_s` is in pods
    times seconds; `lost` is, by type, in amounts (as in the workload) times seconds.
    """

    kind: str
    queue: str
    wanted_by: str
    pods: int
    placeholders: int
    lost_pod_s: float
    lost: dict[str, float]


class _Sum(msgspec.Struct):
    """The sums of one row, as integers."""

    pods: int = 0
    placeholders: int = 0
    lost_ns: int = 0
    lost: Counter[str] = msgspec.field(default_factory=Counter)


class EvictionCosts:
    """Sums up evictions by kind and queues."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[str, str, str], _Sum] = defaultdict(_Sum)

    def evicted(self, kind: str, queue: str, wanted_by: str, *, held: dict[str, int], ran_ns: int, real: bool) -> None:
        """Record the eviction of a pod with resources `held` that ran for `ran_ns`; `real`: it is not a placeholder."""
        found = self._sums[kind, queue, wanted_by]
        found.pods += 1
        if not real:
            found.placeholders += 1
            return
        found.lost_ns += ran_ns
        for name, amount in held.items():
            found.lost[name] += amount * ran_ns

    def rows(self) -> list[Evictions]:
        """Return the evictions, in the order of kind and queues."""
        return [
            Evictions(
                kind,
                queue,
                wanted_by,
                found.pods,
                found.placeholders,
                round(found.lost_ns / NANOSECONDS, 9),
                {name: round(amount / NANOSECONDS, 9) for name, amount in sorted(found.lost.items())},
            )
            for (kind, queue, wanted_by), found in sorted(self._sums.items())
        ]


def cause(message: str) -> tuple[str, str]:
    """Parse the message of a release: return the kind, and the key of the ask (for quota-change: the queue)."""
    for text, kind in _CAUSES:
        if message.startswith(text):
            return kind, message.removeprefix(text)
    return "guaranteed", ""
