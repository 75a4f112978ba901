"""The workloads whose work is counted: the benchmark's cases, so small that plain Python is done with each in half a second.

They come from the benchmark's generator, whose nodes have room for three pods or more. What makes a case slow there is here too: blocks and groups of blocks to search
(`room for all` has more nodes than one group holds), asks behind a quota, asks that fit nowhere, allocations that end one by one.

A case runs in phases, and each phase is counted on its own: a phase of hardly any work, such as an idle cycle, would
vanish beside the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import msgspec
from bench.measure.boundary import RM_ID, ObjectFeed, ObjectSession
from bench.measure.churn import release_of, urgent
from bench.workloads.generate import Options, Size, benchmark

from licorne.si import v19

Counts = dict[str, int]
"""Counts by name: the phase, and what is counted in it."""
Read = Callable[[], Mapping[str, int]]

IDLE_CYCLES = 20
STRIDE = 7919
"""A prime: steps of so many, round and round, meet each allocation once and in no order of its own."""


class Case(NamedTuple):
    """A workload of the generator in a small size; `ends` is the number of allocations that end, one by one."""

    kind: str
    size: Size
    options: Options
    ends: int = 0


UNIQUE = Options(shape="unique")
FLAT = Size(nodes=200, pods=800, applications=20, queues=5)
CASES: dict[str, Case] = {
    "binpacking": Case("b", FLAT, Options(shape="unique", nodesort="binpacking")),
    "blocked by a quota": Case("e2", Size(nodes=100, pods=1_800, applications=60, queues=2), UNIQUE),
    "churn": Case("churn", Size(nodes=120, pods=900, applications=20, queues=5), UNIQUE, ends=100),
    "constraints": Case("constraints", Size(nodes=150, pods=300, applications=20, queues=5), UNIQUE),
    "fair applications": Case("b", FLAT, Options(shape="unique", appsort="fair")),
    "full": Case("d", Size(nodes=160, pods=1_000, applications=20, queues=5), Options(shape="unique", demand=1.5)),
    "identical shapes": Case(
        "d", Size(nodes=80, pods=1_000, applications=20, queues=5), Options(shape="same", demand=1.5)
    ),
    "room for all": Case("b", Size(nodes=600, pods=500, applications=20, queues=5), UNIQUE),
    "too large for any node": Case("e3", Size(nodes=100, pods=660, applications=11, queues=2), UNIQUE),
    "tree": Case("tree", Size(nodes=100, pods=500, applications=125, queues=60), UNIQUE),
}
WARM_UP = Case("t", Size(nodes=4, pods=8, applications=2, queues=2), UNIQUE)
"""What is done once in a process, whichever case comes first, is done by this one."""


def prepare(case: Case, settings: Mapping[str, str] | None = None) -> ObjectFeed:
    """The case as a resource manager has it before it tells a scheduler of it; `settings` are the resource manager's."""
    workload = benchmark(case.kind, case.options, case.size)
    return ObjectFeed(msgspec.structs.replace(workload, extra={**workload.extra, **(settings or {})}))


def run(
    case: Case, feed: ObjectFeed, counting: AbstractContextManager[object] | None = None, read: Read | None = None
) -> Counts:
    """Run a case, and what it counted in each phase.

    The scheduler's own counters always; `counting` is active while the scheduler works, and `read` tells what it has
    counted so far.
    """
    counts: Counts = {}
    before: dict[str, int] = {}
    phases = _phases(case, feed)
    while True:
        with counting or nullcontext():
            reached = next(phases, None)
        if reached is None:
            return counts
        phase, session = reached
        now = dict(session.api.cluster.partition(RM_ID).work()) | dict(read() if read else {})
        counts |= {f"{phase}: {name}": number - before.get(name, 0) for name, number in now.items()}
        before = now


def _phases(case: Case, feed: ObjectFeed) -> Iterator[tuple[str, ObjectSession]]:
    """Do one phase after the other; each one's name when it is done."""
    session = feed.connect(keep=True, reservations=False)
    yield "1 nodes and applications", session
    for batch in feed.batches:
        session.hand_in(batch)
    session.check(feed.workload.name, "asks ")
    yield "2 asks", session
    while session.api.schedule():
        pass
    yield "3 decisions", session
    for _ in range(IDLE_CYCLES):
        session.api.schedule()
    yield "4 idle cycles", session
    if case.ends:
        for request in _ends(feed, session, case.ends):
            session.api.update_allocation(request)
            session.api.schedule()
        yield "5 ends", session


def _ends(feed: ObjectFeed, session: ObjectSession, number: int) -> list[v19.AllocationRequest]:
    """Requests that end some of the large allocations, whose asks have a priority above 0."""
    large = urgent(feed, session.allocations)
    assert len(large) >= number and len(large) % STRIDE
    return [release_of(large[i * STRIDE % len(large)]) for i in range(number)]
