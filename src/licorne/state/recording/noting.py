"""What notes the inputs of a scheduler: `SchedulerAPI.input_log` of a host that records, or that another process follows.

The calls come from the thread of the scheduler, whose time they must not take: bytes are queued as they are. Messages that
the caller may still change are encoded at once, and of outputs the lines that their digest is made of. Where the queue is full or an input cannot be
encoded, the run ends with a gap, since nothing after a lost input could be repeated. The next run begins when a resource
manager registers and no other one is registered, for then the scheduler begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, cast

from licorne.core.input_log import InputLog
from licorne.si.adapt import Part
from licorne.si.messages import Input, Output
from licorne.si.output_lines import output_lines

from . import entries
from .anonymous import AnonymityError, Names

ENTRY_BYTES: Final = 100
"""What an entry or an output counts in the queue, besides texts and bytes in it."""
CALLS: Final = tuple(name for name in vars(InputLog) if not name.startswith("_"))
START: Final = "start"
DELIVERED: Final = "delivered"


class Sink(Protocol):
    """Takes the entries from `queue`, which holds pairs of a size in bytes and an entry, in a thread of its own.

    `taken_bytes`: the sizes of all entries that have left the queue. `failed`: no entry is taken before the next run.
    """

    queue: deque[tuple[int, entries.Entry]]
    taken_bytes: int
    failed: bool


class Noting:
    """Notes the inputs of a scheduler as entries; see `licorne.core.input_log.InputLog` for the calls.

    Parameters:
        sink: what takes the entries; `START` begins a run there, and `DELIVERED` has lines of messages of the scheduler.
        queue_bytes: what may wait there; more ends the run.
        too_slow: why the run then ends.
        names: replaces names of users and groups in all entries; None: they are noted.
    """

    def __init__(self, sink: Sink, queue_bytes: int, too_slow: str, names: Names | None = None) -> None:
        self._names = names
        self._sink = sink
        self._queue_bytes = queue_bytes
        self.too_slow = too_slow
        self._put_bytes = 0
        self._running = False
        self._now_ns = 0
        self._answers: list[str] = []
        self._requests: dict[str, bytes] = {}
        self.lost = 0
        """Entries that were not noted, since no run was under way."""
        self.noted = 0
        """Entries that were noted."""
        self._before = 0

    @property
    def position(self) -> int:
        """How many entries the scheduler has given since the last run began, noted or not."""
        return self.noted + self.lost - self._before

    def _put(self, *entry: object, size: int = ENTRY_BYTES) -> None:
        sink = self._sink
        if not self._running or sink.failed:
            self.lost += 1
            return
        if self._put_bytes - sink.taken_bytes > self._queue_bytes:
            self._end(self.too_slow)
            return
        self._put_bytes += size
        self.noted += 1
        sink.queue.append((size, entry))

    def _begin(self, *entry: object) -> None:
        """Begin, or go on, with this entry."""
        self._running = True
        self._put_bytes = self._sink.taken_bytes + sum(size for size, _ in list(self._sink.queue))
        self._sink.queue.append((0, entry))
        self._sink.failed = False

    def _end(self, reason: str) -> None:
        self._sink.queue.append((0, (entries.GAP, reason)))
        self._running = False
        self.lost += 1

    def _put_messages(self, rm_id: str, inputs: Sequence[Input], refusals: Sequence[Output]) -> None:
        if not self._running:
            self.lost += 1
            return
        change = self._names.message if self._names is not None else lambda *_: None
        try:
            said, refused = entries.encode_messages(inputs, change), entries.encode_messages(refusals, change)
        except Exception as error:  # noqa: BLE001  whatever a program may put into a message
            self._end(f"a message could not be recorded: {error!r}")
            return
        self._put(entries.INPUTS, rm_id, said, refused, size=ENTRY_BYTES + len(said) + len(refused))

    # -- the calls of the scheduler ----------------------------------------------------------------------

    def advanced(self, now_ns: int) -> None:
        """Record the time (ns) at which the scheduler was called; the entries that follow have this time."""
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
            self._requests.clear()
            self._answers.clear()
            self._before = self.noted + self.lost
            self._begin(START)
            if self._names is not None:
                self._put(entries.ANONYMOUS)
            self._put(entries.TIME, self._now_ns)
        flags = (first_interface, predicates, preemption_predicates)
        self._put_configuration(entries.REGISTER, rm_id, text, settings, *flags)

    def _put_configuration(self, kind: str, rm_id: str, text: str, settings: Mapping[str, str], *flags: bool) -> None:
        if self._names is not None and self._running:
            try:
                text, settings = self._names.configuration(text), self._names.settings(settings)
            except AnonymityError as error:
                self._end(str(error))
                return
        self._put(kind, rm_id, text, dict(settings), *flags, size=ENTRY_BYTES + len(text))

    def reloaded(self, rm_id: str, text: str, settings: Mapping[str, str]) -> None:
        """Note a new configuration."""
        self._put_configuration(entries.RELOAD, rm_id, text, settings)

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
        if part is None or self._names is not None:
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
        """Note messages of the scheduler, for the digest, by their lines.

        Messages that were kept for another thread would cost more: the next ones would be made in cold memory.
        """
        if not self._running:
            self.lost += 1
            return
        try:
            lines, allocations = output_lines(outputs, texts=self._names is None)
        except Exception as error:  # noqa: BLE001  as in `_put_messages`
            self._end(f"a message could not be recorded: {error!r}")
            return
        self._put(DELIVERED, rm_id, lines, len(outputs), allocations, size=ENTRY_BYTES + len(lines))


class Both:
    """Two listeners to the inputs of one scheduler, as one: a recording, and a process that follows."""

    def __init__(self, first: InputLog, second: InputLog) -> None:
        self.logs = (first, second)
        for name in CALLS:
            setattr(self, name, _both(getattr(first, name), getattr(second, name)))

    @staticmethod
    def of(first: InputLog | None, second: InputLog | None) -> InputLog | None:
        """Return what tells both, where both are there; else the one that is there, if any."""
        return first or second if first is None or second is None else cast("InputLog", Both(first, second))


def _both(first: Callable[..., None], second: Callable[..., None]) -> Callable[..., None]:
    def tell(*values: object, **more: object) -> None:
        first(*values, **more)
        second(*values, **more)

    return tell
