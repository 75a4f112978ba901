"""What evictions cost: who lost pods to whom, how many, and the work that these pods had done.

Only what the scheduler tells is read: a release with PREEMPTED_BY_SCHEDULER, whose message names what it is for
(docs/spec/preemption.md, sections 2.11, 3 and 4.5). A pod's work is the time for which it ran until it was gone, its
grace included, times what it held; it is lost, because a pod that is created again begins anew. A placeholder does no
work.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

import msgspec

NANOSECONDS = 1_000_000_000
Kind = Literal["guaranteed", "required-node", "quota-change"]
"""Why: an ask's queue was below its guarantee, an ask required the node, a queue's max had been lowered."""

_CAUSES: tuple[tuple[str, Kind], ...] = (
    ("preempting allocations to free up resources to run ask: ", "guaranteed"),
    ("preempting allocations to free up resources to run daemon set ask: ", "required-node"),
    ("preempting allocations to enforce new max quota for queue : ", "quota-change"),
)


class Evictions(msgspec.Struct, frozen=True):
    """Evictions of one kind from one queue for another: pods, of which placeholders, and what was lost.

    `wanted_by` is the queue of the asks that wanted the room, or the one whose max had been lowered. `lost_pod_s` is in
    pods times seconds, `lost` by type in amounts (as in the workload) times seconds.
    """

    kind: str
    queue: str
    wanted_by: str
    pods: int
    placeholders: int
    lost_pod_s: float
    lost: dict[str, float]


class _Sum:
    """What a row adds up, in whole numbers."""

    __slots__ = ("lost", "lost_ns", "placeholders", "pods")

    def __init__(self) -> None:
        self.pods = 0
        self.placeholders = 0
        self.lost_ns = 0
        self.lost: defaultdict[str, int] = defaultdict(int)


class EvictionBook:
    """Takes down each eviction."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[str, str, str], _Sum] = defaultdict(_Sum)

    def evicted(self, kind: str, queue: str, wanted_by: str, *, held: dict[str, int], ran_ns: int, real: bool) -> None:
        """A pod that held so much for so long is evicted; `real`: it is no placeholder."""
        found = self._sums[kind, queue, wanted_by]
        found.pods += 1
        if not real:
            found.placeholders += 1
            return
        found.lost_ns += ran_ns
        for name, amount in held.items():
            found.lost[name] += amount * ran_ns

    def rows(self) -> list[Evictions]:
        """All kinds and queues, in order."""
        return [
            Evictions(
                kind,
                queue,
                wanted_by,
                found.pods,
                found.placeholders,
                found.lost_ns / NANOSECONDS,
                {name: amount / NANOSECONDS for name, amount in sorted(found.lost.items())},
            )
            for (kind, queue, wanted_by), found in sorted(self._sums.items())
        ]


def cause(message: str) -> tuple[str, str]:
    """Why a pod is evicted, by the release's message: the kind, and the key of the ask (quota-change: the queue)."""
    for text, kind in _CAUSES:
        if message.startswith(text):
            return kind, message.removeprefix(text)
    return "guaranteed", ""
