"""What queues, users and groups have used over a time of a recording: amounts times hours, integrated exactly.

Usage changes in calls alone, and a recording has the time of each. So the recording is repeated, and at each change of time the
usage that was is added for as long as it lasted: whole numbers of base units (thousandths of a vcore, bytes of memory) times
nanoseconds. Queues and people are looked at only if their partition has changed since the last time. What was before the time
that is asked for is not repeated, as far as a checkpoint replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from licorne.answers.shares import Hours, HoursUsed
from licorne.core.partition import Partition
from licorne.state.recording import Replay, Run
from licorne.state.recording.checkpoints import Saved
from licorne.state.recording.entries import TIME
from licorne.state.recording.replay import replay_from_newest

HOUR_NS: Final = 3600 * 10**9
Owner = tuple[str, str, str, str]
"""Partition, kind (`queue`, `user`, `group`), name, and type of resource."""


def hours(
    run: Run,
    since_ns: int | None = None,
    until_ns: int | None = None,
    step: Callable[[int, int], object] = lambda *_: None,
    *,
    partition: str = "",
) -> Hours:
    """Return what was used in a part of a recording.

    Args:
        run: the run of the recording.
        since_ns: the beginning, in nanoseconds since 1970; None: that of the run.
        until_ns: the end; None: the time of the last call.
        partition: only this partition is told of; empty for all.
        step: told now and then how many bytes of how many were repeated.

    Raises:
        RecordingError: the recording cannot be repeated.
    """
    replay = replay_from_newest(run, since_ns or 0, lambda saved: _Integrating(run, since_ns, saved))
    size = replay.bytes_all
    outcome = replay.run(until_ns, lambda: step(replay.bytes_read, size))
    end_ns = outcome.now_ns if until_ns is None or replay.ended else until_ns
    return replay.finished(end_ns, partition)


class _Integrating(Replay):
    """A repetition that adds up what is used."""

    def __init__(self, run: Run, since_ns: int | None, saved: Saved | None) -> None:
        super().__init__(run, saved=saved)
        self._since_ns = self._last_ns = max(run.begins_ns or 0, since_ns or 0)
        self._levels: dict[Owner, int] = {}
        self._sums: dict[Owner, int] = {}
        self._generations: tuple[object, ...] = ()

    def repeat(self, entry: Any) -> None:  # noqa: ANN401  as in the base class
        """Repeat one entry."""
        if entry[0] == TIME:
            self._passes_to(entry[1])
        super().repeat(entry)

    def finished(self, end_ns: int, partition: str) -> Hours:
        """Return the sums up to a time, of one partition or of all."""
        self._passes_to(end_ns)
        order = {"queue": 0, "user": 1, "group": 2}
        found = sorted(self._sums, key=lambda owner: (owner[0], order[owner[1]], owner[2:]))
        return Hours(
            self._since_ns / 10**9,
            max(self._since_ns, end_ns) / 10**9,
            tuple(
                HoursUsed(*owner, self._sums[owner] / HOUR_NS)
                for owner in found
                if self._sums[owner] and partition in ("", owner[0])
            ),
        )

    def _passes_to(self, now_ns: int) -> None:
        """Add what has been used since the last time, before anything happens at this one."""
        length_ns = now_ns - self._last_ns
        if length_ns <= 0:
            return
        self._last_ns = now_ns
        partitions = list(self.api.cluster.partitions())
        generations = tuple((partition, partition.generation) for partition in partitions)
        if generations != self._generations:
            self._generations = generations
            self._levels = {owner: amount for partition in partitions for owner, amount in _used(partition)}
        for owner, amount in self._levels.items():
            self._sums[owner] = self._sums.get(owner, 0) + amount * length_ns


def _used(partition: Partition) -> list[tuple[Owner, int]]:
    found: list[tuple[Owner, int]] = []
    for queue in partition.tree.queues():
        found += (
            ((partition.name, "queue", queue.path, name), used) for name, used in queue.allocated_resource().items()
        )
    for kind, people in (("user", partition.limits.users()), ("group", partition.limits.groups())):
        for name, trackers in people.items():
            for tracker in trackers:
                if tracker.path == "root":
                    amounts = tracker.used.named(partition.types)
                    found += (((partition.name, kind, name, type_), used) for type_, used in amounts.items())
    return found
