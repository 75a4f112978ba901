"""What notes the inputs of a scheduler for a recording: `SchedulerAPI.input_log` of a host that records.

The calls come from the thread of the scheduler, whose time they must not take: bytes and outputs are queued as they are,
and only messages that the caller may still change are encoded at once. Where the queue is full or an input cannot be
encoded, the run ends with a gap, since nothing after a lost input could be repeated. The next run begins when a resource
manager registers and no other one is registered, for then the scheduler begins anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from licorne.si.adapt import Part
from licorne.si.messages import Input, Output

from . import entries
from .bounds import Bounds
from .folder import claim
from .writer import DELIVERED, START, Counts, Writer

ENTRY_BYTES: Final = 100
"""What an entry or an output counts in the queue, besides texts and bytes in it."""


class Recorder:
    """Records a scheduler into a folder; see `licorne.core.input_log.InputLog` for the calls.

    Parameters:
        folder: a folder that is empty or a recording; it is made if it is not there.
        bounds: how large the recording and its queue may be.
        trouble: told the reason, from any thread, when a run has ended because inputs were lost.

    Raises:
        RecordingError: the folder cannot be used.
    """

    def __init__(
        self, folder: Path, bounds: Bounds | None = None, trouble: Callable[[str], object] = lambda _: None
    ) -> None:
        self._bounds = bounds or Bounds()
        self._lock = claim(folder)
        self._writer = Writer(folder, self._bounds, trouble)
        self._put_bytes = 0
        self._running = False
        self._now_ns = 0
        self._answers: list[str] = []
        self._requests: dict[str, bytes] = {}
        self.lost = 0
        """Entries that were not recorded, since no run was under way."""

    @property
    def counts(self) -> Counts:
        """What has been written so far."""
        return self._writer.counts

    def __enter__(self) -> Self:
        """Return itself; the end of the `with` block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the recording."""
        self.close()

    def close(self, timeout_s: float = 10.0) -> bool:
        """Write the rest and end the recording; returns whether that was done in time."""
        done = self._writer.close(timeout_s)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        return done

    def _put(self, *entry: object, size: int = ENTRY_BYTES) -> None:
        writer = self._writer
        if not self._running or writer.failed:
            self.lost += 1
            return
        if self._put_bytes - writer.taken_bytes > self._bounds.queue_bytes:
            self._end("the disk is too slow: inputs came faster than they could be written")
            return
        self._put_bytes += size
        writer.queue.append((size, entry))

    def _end(self, reason: str) -> None:
        self._writer.queue.append((0, (entries.GAP, reason)))
        self._running = False
        self.lost += 1

    def _put_messages(self, rm_id: str, inputs: Sequence[Input], refusals: Sequence[Output]) -> None:
        if not self._running:
            self.lost += 1
            return
        try:
            said, refused = entries.encode_messages(inputs), entries.encode_messages(refusals)
        except Exception as error:  # noqa: BLE001  whatever a program may put into a message
            self._end(f"a message could not be recorded: {error!r}")
            return
        self._put(entries.INPUTS, rm_id, said, refused, size=ENTRY_BYTES + len(said) + len(refused))

    # -- the calls of the scheduler ----------------------------------------------------------------------

    def advanced(self, now_ns: int) -> None:
        """Note the time of a call."""
        self._now_ns = now_ns
        self._put(entries.TIME, now_ns)

    def registered(
        self,
        rm_id: str,
        text: str,
        settings: Mapping[str, str],
        *,
        first_interface: bool,
        predicates: bool,
        preemption_predicates: bool,
        alone: bool,
    ) -> None:
        """Note a registration; one of the only resource manager begins a new run."""
        if alone:
            self._running = True
            self._requests.clear()
            self._answers.clear()
            self._put_bytes = self._writer.taken_bytes + sum(size for size, _ in list(self._writer.queue))
            self._writer.queue.append((0, (START,)))
            self._writer.failed = False
            self._put(entries.TIME, self._now_ns)
        flags = (first_interface, predicates, preemption_predicates)
        self._put(entries.REGISTER, rm_id, text, dict(settings), *flags, size=ENTRY_BYTES + len(text))

    def reloaded(self, rm_id: str, text: str, settings: Mapping[str, str]) -> None:
        """Note a new configuration."""
        self._put(entries.RELOAD, rm_id, text, dict(settings), size=ENTRY_BYTES + len(text))

    def removed(self, rm_id: str) -> None:
        """Note the end of a resource manager."""
        self._requests.pop(rm_id, None)
        self._put(entries.REMOVE, rm_id)

    def paused(self, rm_id: str, *, paused: bool) -> None:
        """Note that nothing is decided for a resource manager any more, or that it is again."""
        self._put(entries.PAUSE, rm_id, paused)

    def ages_restored(self, rm_id: str, ages: object) -> None:
        """Note the ages of applications and asks."""
        self._put(entries.AGES, rm_id, ages)

    def submitted(self, rm_id: str, inputs: Sequence[Input], refusals: Sequence[Output], part: Part | None) -> None:
        """Note messages: by the bytes in which they came, or else one by one."""
        if part is None:
            self._put_messages(rm_id, inputs, refusals)
            return
        if self._requests.get(rm_id) is not part.data:
            self._requests[rm_id] = part.data
            self._put(entries.REQUEST, rm_id, part.data, size=ENTRY_BYTES + len(part.data))
        self._put(entries.PART, rm_id, part.at, len(inputs))

    def answered(self, *, allowed: bool) -> None:
        """Note the answer of a predicate."""
        self._answers.append("+" if allowed else "-")

    def decided(self, limit: int, made: int) -> None:
        """Note a call that decided, behind the answers that it has asked for."""
        if self._answers:
            self._put(entries.ANSWERS, "".join(self._answers))
            self._answers.clear()
        self._put(entries.DECIDE, limit, made)

    def delivered(self, rm_id: str, outputs: Sequence[Output]) -> None:
        """Note messages of the scheduler, for the digest."""
        self._put(DELIVERED, rm_id, outputs, size=ENTRY_BYTES * len(outputs))


__all__ = ["Recorder"]
