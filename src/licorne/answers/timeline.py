"""What happened over a time: the shares of queues against their guarantees, and what the scheduler decided.

A service notes both while it runs (`licorne.host.web.monitor`); of a recording they are found by repeating it. Both are bounded:
the last `SAMPLES` samples of at most `SHARES` guarantees each, and the last `DECISIONS` messages.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from licorne.core.base.states import SECOND_NS
from licorne.core.partition import Partition
from licorne.si.messages import NewAllocation, Output, Released, Termination
from licorne.state.recording import Run
from licorne.state.recording.moments import written
from licorne.state.recording.replay import replay_from

SAMPLES: Final = 240
SHARES: Final = 500
DECISIONS: Final = 10_000
Key = tuple[str, str, str]
"""Partition, queue and type of resource that is guaranteed to it."""


class Share(NamedTuple):
    """What a queue used of a type at a time, what was guaranteed to it, and what of it waited."""

    used: int
    guaranteed: int
    waiting: int


class Sample(NamedTuple):
    """The shares at a time; `amounts`: the three of each key, one after the other."""

    time_ns: int
    keys: tuple[Key, ...]
    amounts: array[float]

    def shares(self) -> Iterator[tuple[Key, Share]]:
        """Yield each key with its share."""
        amounts = map(int, self.amounts)
        return zip(self.keys, (Share(*three) for three in zip(amounts, amounts, amounts, strict=True)), strict=True)


class Timeline:
    """The samples and decisions of a time, oldest first. `cut`: why it does not reach to where it was to; empty if it does."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque(maxlen=SAMPLES)
        self.decisions: deque[tuple[int, NewAllocation | Released]] = deque(maxlen=DECISIONS)
        self.cut = ""

    def decided(self, now_ns: int, outputs: Iterable[Output]) -> None:
        """Note what of some messages is a decision: a new allocation, or an eviction."""
        for output in outputs:
            match output:
                case (
                    NewAllocation()
                    | Released(ask=False, termination=Termination.PREEMPTED_BY_SCHEDULER | Termination.TIMEOUT)
                ):
                    self.decisions.append((now_ns, output))

    def sample(self, now_ns: int, found: Iterable[tuple[Key, Share]]) -> None:
        """Note shares, those of the largest guarantees if there are too many."""
        largest = sorted(sorted(found, key=lambda pair: -pair[1].guaranteed)[:SHARES])
        keys = tuple(key for key, _ in largest)
        before = self.samples[-1].keys if self.samples else keys
        amounts = array("d", (amount for _, share in largest for amount in share))
        self.samples.append(Sample(now_ns, before if before == keys else keys, amounts))


def shares_of(partitions: Iterable[Partition]) -> Iterator[tuple[Key, Share]]:
    """Yield what each queue has of what is guaranteed to it, queue by queue."""
    for partition in partitions:
        for queue in partition.tree.queues():
            guaranteed = queue.guaranteed_resource()
            if guaranteed and queue.parent is not None:
                used, waits = queue.allocated_resource(), queue.pending_resource()
                for name, owed in guaranteed.items():
                    yield (partition.name, queue.path, name), Share(used.get(name, 0), owed, waits.get(name, 0))


def recorded_timeline(
    run: Run, since_ns: int, until_ns: int, more: Callable[[], bool] = lambda: True, samples: int = 120
) -> Timeline:
    """Return the timeline of a part of a recording, with so many samples. `more`: asked before each whether to go on.

    Raises:
        RecordingError: the recording cannot be repeated.
    """
    found = Timeline()
    replay = replay_from(run, since_ns, lambda _, outputs: found.decided(replay.now_ns, outputs))
    replay.run(since_ns)
    found.decisions.clear()
    step_ns = max((until_ns - since_ns) // samples, SECOND_NS)
    for at_ns in range(since_ns, until_ns + 1, step_ns):
        replay.run(at_ns)
        found.sample(at_ns, shares_of(replay.api.cluster.partitions()))
        if replay.ended:
            break
        if not more():
            found.cut = f"repeating the recording took too long, so all after {written(at_ns)} is missing"
            break
    return found
