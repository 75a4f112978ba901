"""Repeating a recording: a scheduler that is given the inputs of a run once more, and decides the same.

The scheduler is driven by its public calls, so what is left at the end is an ordinary `SchedulerAPI` in the state of that
moment, from which one may go on. Predicates are answered as they were; where the recorded answers end, they say yes.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from licorne._version import __version__
from licorne._wording import counted
from licorne.core.api import SchedulerAPI
from licorne.core.checkpoint import CheckpointError
from licorne.core.checkpoint.restore import read as read_checkpoint
from licorne.core.checkpoint.restore import read_peers
from licorne.core.checkpoint.take import Peer
from licorne.si import adapt_v19, first, v19
from licorne.si.adapt import Translation
from licorne.si.callback import ResourceManagerCallback
from licorne.si.messages import Input, Output

from . import entries
from .blocks import Rest, block_bytes, read_blocks
from .checkpoints import Place, Saved, place_of, time_of
from .checkpoints import read as read_saved
from .checkpoints import write as write_saved
from .digest import Digest
from .entries import Entry
from .folder import UNREADABLE, RecordingError, checkpoints_in, read_manifest, segment_number, segments_in
from .runs import Run, first_usable

OnOutput = Callable[[str, Sequence[Output]], object]
OnInputs = Callable[[str, Sequence[Input]], object]
OnConfiguration = Callable[[str, str, Mapping[str, str]], object]


class DivergedError(RecordingError):
    """The repetition decides otherwise than the recorded scheduler: another version of it, or a bug."""


class Outcome(msgspec.Struct, frozen=True):
    """What a repetition has given so far.

    Times are those of the recorded scheduler, in nanoseconds. `messages`: how many messages went to resource managers,
    `digest` theirs. `checked`: how many of them the recording has confirmed, by the last of its digests. `remark`: why
    the recording ends where it does; empty if it goes on, or was closed in good order. `whole`: the repetition began with
    the run; else it began at a checkpoint, and only messages since then are in the digest, so the recording confirms
    their number alone. `damaged`: it ends there since the recording is damaged.
    """

    run: int
    begins_ns: int
    now_ns: int
    calls: int
    allocations: int
    messages: int
    checked: int
    digest: str
    remark: str
    whole: bool = True
    damaged: bool = False


class Replay:
    """Repeats a run of a recording.

    Parameters:
        run: which one, as `list_runs` or `choose_run` returns it.
        on_output: told of the messages for resource managers, as the handler `on_output` of `SchedulerAPI` is.
        on_inputs: told of the messages of a resource manager, by its id, before the scheduler takes them in.
        on_configuration: told of each configuration and its settings before they take effect, by the id.
        saved: a checkpoint of the run to begin from; else it begins at the beginning, or at the oldest checkpoint of a run
            that is trimmed. What came before a checkpoint has no part in the digest, so only numbers of messages and
            allocations are compared then.

    Raises:
        RecordingError: the run is trimmed, and no checkpoint of it can be used.

    `api` is the scheduler. `managers`: the callbacks of the resource managers that are registered, by id, in the order of
    their registration.
    """

    def __init__(
        self,
        run: Run,
        on_output: OnOutput = lambda *_: None,
        *,
        on_inputs: OnInputs = lambda *_: None,
        on_configuration: OnConfiguration = lambda *_: None,
        saved: Saved | None = None,
    ) -> None:
        self.api = SchedulerAPI(other_settings=True, on_output=self._take, on_incident=lambda _: None)
        self.managers: dict[str, Callback] = {}
        self.ended = False
        """The recording has no further call."""
        self.left_ns: int | None = None
        """When a resource manager last ended."""
        self.remark = ""
        self.damaged = False
        """The recording is damaged where it ends."""
        self.bytes_read = 0
        """Bytes of the recording that have been repeated."""
        self._run = run
        self._on_output = on_output
        self._on_inputs = on_inputs
        self._on_configuration = on_configuration
        self._digest = Digest()
        self._checked = 0
        self._calls = 0
        self._now_ns = run.begins_ns or 0
        self._next_ns: int | None = None
        """The time of the call that begins, until the call is made; None: that of the last call."""
        self._requests: dict[str, Translation] = {}
        self._said: dict[str, bytes] = {}
        """The bytes of which `_requests` were made."""
        self._answers: Iterator[str] = iter("")
        self._waiting: list[list[Any]] = []
        self.place = Place()
        """Where the first entry of `_waiting` stands, while there is one; before `run`, where the repetition begins."""
        self.settings: dict[str, dict[str, str]] = {}
        """The settings of each resource manager, as they were recorded."""
        self.position = 0
        """How many entries of the run come before the next one, digests not counted."""
        start = saved if saved is not None else _beginning(run)
        if start is not None:
            self._resume(start)
        self._whole = start is None
        found = {place_of(path): path for path in checkpoints_in(run.folder)} if saved is None else {}
        self._saved = {place: path for place, path in found.items() if place > self.place}
        """The checkpoints with which the state is compared on the way."""
        self._blocks = self._read(self.place)
        self._steps: dict[str, Callable[..., None]] = {
            entries.REGISTER: self._register,
            entries.RELOAD: self._reload,
            entries.REMOVE: self._remove,
            entries.PAUSE: self._pause,
            entries.AGES: self._restore_ages,
            entries.INPUTS: self._submit,
            entries.REQUEST: self._note_request,
            entries.PART: self._submit_part,
            entries.ANSWERS: self._note_answers,
            entries.DECIDE: self._decide,
            entries.CHECK: self._compare,
            entries.GAP: self._end,
            entries.ANONYMOUS: self._note_anonymous,
        }

    @property
    def now_ns(self) -> int:
        """The time of the call that is repeated, or was last."""
        return self._now_ns

    @property
    def bytes_all(self) -> int:
        """Bytes that the run has on the disk now."""
        return sum(segment.stat().st_size for segment in segments_in(self._run.folder))

    @property
    def outcome(self) -> Outcome:
        """What the repetition has given so far."""
        return Outcome(
            run=self._run.number,
            begins_ns=self._run.begins_ns or 0,
            now_ns=self._now_ns,
            calls=self._calls,
            allocations=self._digest.allocations,
            messages=self._digest.count,
            checked=self._checked,
            digest=self._digest.hex(),
            remark=self.remark,
            whole=self._whole,
            damaged=self.damaged,
        )

    def run(self, until_ns: int | None = None, step: Callable[[], object] = lambda: None) -> Outcome:
        """Repeat all calls up to a time, or to the end of the recording. `step` is called now and then.

        Raises:
            DivergedError: the decisions are not those of the recording.
            RecordingError: an entry cannot be understood.
        """
        while self._waiting or self._next_block():
            for position, entry in enumerate(self._waiting):
                if entry[0] == entries.TIME and until_ns is not None and entry[1] > until_ns:
                    self._waiting = self._waiting[position:]
                    self.place = msgspec.structs.replace(self.place, entries=self.place.entries + position)
                    return self.outcome
                if self._saved and entry[0] == entries.TIME:
                    self._compare_state(msgspec.structs.replace(self.place, entries=self.place.entries + position))
                self.repeat(entry)
            self._waiting = []
            step()
        self.ended = True
        return self.outcome

    def save(self) -> Saved | None:
        """Return the state after `run` has stopped at a time before the end; None if it cannot be continued from there."""
        if not self._waiting or self._next_ns is not None:
            return None
        counts = self._calls, self._digest.allocations, self._digest.count
        state, settings = self.api.checkpoint(), dict(self.settings)
        said = dict(self._said)
        return Saved(self.place, self._now_ns, *counts, self.left_ns, said, state, self.position, settings)

    def _resume(self, saved: Saved) -> None:
        """Begin the repetition at a checkpoint; raises RecordingError if this version of licorne cannot restore it."""
        try:
            self.managers = callbacks(read_peers(saved.state), self._answer)
            self.api.restore_checkpoint(saved.state, self.managers, check=False)
            for rm_id, data in saved.requests.items():
                self._note_request(rm_id, data)
        except (CheckpointError, *UNREADABLE) as error:
            raise RecordingError(f"{self._run.folder}: a checkpoint of it cannot be used: {error}") from error
        self.place, self._now_ns, self._calls = saved.place, saved.now_ns, saved.calls
        self._digest.allocations, self._digest.count = saved.allocations, saved.messages
        self._checked = saved.messages
        self.position, self.settings = saved.position, dict(saved.settings)
        self.left_ns = saved.left_ns

    def _compare_state(self, place: Place) -> None:
        """Compare the state with the checkpoint of this place, if there is one that this licorne has written."""
        path = self._saved.pop(place, None)
        if path is None:
            return
        try:
            saved = read_saved(path)
            comparable = read_checkpoint(saved.state).licorne == __version__
        except (CheckpointError, RecordingError):
            return  # it is passed over where it would be used, too
        if comparable and saved.state != self.api.checkpoint():
            raise self._diverged(f"the state is not that of {path.name}")

    def _next_block(self) -> bool:
        found = next(self._blocks, None)
        if found is None:
            return False
        self.place, self._waiting = found
        return True

    def _read(self, start: Place) -> Iterator[tuple[Place, list[list[Any]]]]:
        segments = [path for path in segments_in(self._run.folder) if segment_number(path) >= start.segment]
        for position, segment in enumerate(segments):
            number = start.segment + position
            if segment_number(segment) != number:
                raise RecordingError(f"{self._run.folder}: segment-{number:06d} is missing")
            at = start if position == 0 else Place(number)
            blocks = read_blocks(segment, at.blocks)
            before = self.bytes_read
            while True:
                try:
                    block = next(blocks)
                    yield at, block[at.entries :]
                    at = Place(number, at.blocks + 1)
                except StopIteration as end:
                    if end.value.bytes:
                        self._end_at(segment, end.value, len(segments) - position - 1)
                        return
                    break
                except FileNotFoundError:
                    raise RecordingError(
                        f"{segment}: was removed while the recording was read, to make room for what is recorded now; try again"
                    ) from None
                except OSError as error:
                    raise RecordingError(f"{segment}: cannot be read: {error.strerror}") from None
            self.bytes_read = before + segment.stat().st_size

    def _end_at(self, segment: Path, rest: Rest, after: int) -> None:
        """Say why the run ends within a segment, which so many others follow. A crash cuts off the last one, and nothing else."""
        self.damaged = bool(rest.damage or after)
        others = f", and {counted(after, 'file')} after it," if after else ""
        what = (
            f"damaged at byte {rest.at:,}: {rest.damage or 'it is cut off'}"
            if self.damaged
            else "cut off in its last block"
        )
        self.remark = f"{segment.name} is {what}; its last {rest.bytes:,} bytes{others} do not count"

    def repeat(self, entry: Entry | list[Any]) -> None:
        """Repeat one entry, from wherever it comes.

        Raises:
            DivergedError: the decisions are others than those that the entry tells of.
            RecordingError: the entry cannot be understood.
        """
        kind, *values = entry
        self.position += kind != entries.CHECK
        try:
            if kind == entries.TIME:
                self._begin(*values)
            elif kind in self._steps:
                self._steps[kind](*values)
            else:
                raise RecordingError(f"{self._run.folder}: an entry {kind[:80]!r} is unknown; use a newer licorne")
        except UNREADABLE as error:
            said = f"an entry {kind[:80]!r} cannot be repeated: {repr(error)[:500]}"
            raise RecordingError(f"{self._run.folder}: is damaged: {said}") from error

    # -- the entries -------------------------------------------------------------------------------------

    def _begin(self, now_ns: int) -> None:
        if self._next_ns is not None:
            self.api.cluster.advance(self._next_ns)  # a call that was refused: all it did was to tell the time
        self._next_ns = self._now_ns = now_ns

    def _time(self) -> int | None:
        self._calls += 1
        now_ns, self._next_ns = self._next_ns, None
        return now_ns

    def _register(
        self,
        rm_id: str,
        text: str,
        settings: dict[str, str],
        first_interface: bool,
        predicates: bool,
        preemption_predicates: bool,
    ) -> None:
        self.managers.pop(rm_id, None)
        callback = self.managers[rm_id] = Callback(
            self._answer, predicates=predicates, preemption_predicates=preemption_predicates
        )
        self._on_configuration(rm_id, text, settings)
        self.api.settings = self.settings[rm_id] = settings
        self.api.policy_groups = {rm_id: (text, {})}
        make = first.RegisterResourceManagerRequest if first_interface else v19.RegisterResourceManagerRequest
        self.api.register_resource_manager(make(rm_id=rm_id, policy_group=rm_id), callback, now_ns=self._time())

    def _reload(self, rm_id: str, text: str, settings: dict[str, str]) -> None:
        self._on_configuration(rm_id, text, settings)
        self.api.settings = self.settings[rm_id] = settings
        self.api.policy_groups = {}
        self.api.update_configuration(v19.UpdateConfigurationRequest(rm_id=rm_id, config=text), now_ns=self._time())

    def _remove(self, rm_id: str) -> None:
        self.left_ns = self._now_ns
        self.managers.pop(rm_id, None)
        self._requests.pop(rm_id, None)
        self._said.pop(rm_id, None)
        self.settings.pop(rm_id, None)
        self.api.stop(rm_id, now_ns=self._time())

    def _pause(self, rm_id: str, paused: bool) -> None:
        self.api.pause(rm_id, paused=paused)

    def _restore_ages(self, rm_id: str, ages: object) -> None:
        self.api.restore_ages(rm_id, ages, now_ns=self._time())

    def _submit(self, rm_id: str, inputs: bytes, refusals: bytes) -> None:
        said, refused = entries.decode_messages(inputs), entries.decode_messages(refusals)
        self._on_inputs(rm_id, said)
        self.api.take(rm_id, Translation(inputs=said, outputs=refused), now_ns=self._time())

    def _note_request(self, rm_id: str, data: bytes) -> None:
        self._said[rm_id] = data
        self._requests[rm_id] = adapt_v19.ALLOCATIONS.at_once(data)[1]

    def _submit_part(self, rm_id: str, at: int, count: int) -> None:
        whole = self._requests[rm_id]
        part = Translation(inputs=whole.inputs[at : at + count], outputs=[] if at else whole.outputs)
        self._on_inputs(rm_id, part.inputs)
        self.api.take(rm_id, part, now_ns=self._time())

    def _note_answers(self, answers: str) -> None:
        self._answers = iter(answers)

    def _answer(self) -> bool:
        return next(self._answers, "+") == "+"

    def _decide(self, limit: int, made: int) -> None:
        got = self.api.schedule(now_ns=self._time(), limit=limit)
        if got != made:
            raise self._diverged(f"a call made {counted(got, 'allocation')} where the recording has {made:,}")

    def _compare(self, count: int, digest: str) -> None:
        found = count, self._digest.hex() if self._whole else digest
        if found != (self._digest.count, digest):
            raise self._diverged(
                f"there are {self._digest.count:,} messages with the digest {self._digest.hex()} where the recording "
                f"has {count:,} with {digest}"
            )
        self._checked = count

    def _note_anonymous(self) -> None:
        self._digest.texts = False

    def _end(self, reason: str) -> None:
        self.remark = f"the recording ends here: {reason}"

    def _diverged(self, what: str) -> DivergedError:
        manifest = read_manifest(self._run.folder.parent)
        return DivergedError(
            f"{self._run.folder}: the decisions differ: {what}, after {self._checked:,} messages that agree. The recording "
            f"was begun by licorne {manifest.licorne}, this is {__version__}: use the same version"
        )

    def _take(self, rm_id: str, outputs: Sequence[Output]) -> None:
        self._digest.add(rm_id, outputs)
        self._on_output(rm_id, outputs)


R = TypeVar("R", bound=Replay)


def replay_from(run: Run, at_ns: int | None, on_output: OnOutput = lambda *_: None) -> Replay:
    """Return a repetition that begins at the newest checkpoint before a time that can be used, or at the beginning."""
    return replay_from_newest(run, at_ns, lambda saved: Replay(run, on_output, saved=saved))


def replay_from_newest(
    run: Run, at_ns: int | None, begin: Callable[[Saved | None], R], suits: Callable[[Saved], bool] = lambda _: True
) -> R:
    """Return a repetition that begins at the newest checkpoint up to a time that suits and can be used, or at the beginning.

    `begin` makes the repetition from a checkpoint; from None: from the beginning.
    """
    found = checkpoints_in(run.folder)
    for path in reversed(found if at_ns is None else found[: bisect_right(found, at_ns, key=time_of)]):
        with contextlib.suppress(RecordingError):  # the one before it serves as well, it only takes longer
            saved = read_saved(path)
            if (at_ns is None or saved.now_ns <= at_ns) and suits(saved):
                return begin(saved)
    return begin(None)


def _beginning(run: Run) -> Saved | None:
    """Return the checkpoint at which a run begins that is trimmed; None for one that has its beginning."""
    if not run.trimmed:
        return None
    saved = first_usable(run.folder)
    if saved is None:
        raise RecordingError(f"{run.folder}: its beginning was removed, and no checkpoint of it can be used")
    return saved


def add_checkpoint(run: Run, until_ns: int | None = None) -> Path | None:
    """Repeat a run up to a time or its last call, and write a checkpoint there; returns its file, None if nothing is new.

    Raises:
        RecordingError: the run cannot be repeated.
        OSError: the checkpoint cannot be written.
    """
    replay = replay_from(run, until_ns)
    end_ns = max((last_ns(segment) for segment in segments_in(run.folder)[-2:]), default=0)
    replay.run(end_ns - 1 if until_ns is None else min(until_ns, end_ns - 1))
    saved = replay.save()
    known = {place_of(path) for path in checkpoints_in(run.folder)}
    return None if saved is None or saved.place in known else write_saved(run.folder, saved)


def last_ns(segment: Path) -> int:
    """Return the time of the last call in a segment; 0 if it has none. Only the last blocks are read."""
    for position in reversed(range(len(block_bytes(segment)))):
        block = next(read_blocks(segment, position), [])  # nothing where the end is torn
        times = [entry[1] for entry in block if entry[0] == entries.TIME]
        if times:
            return int(times[-1])
    return 0


# -- predicates, as they were answered --------------------------------------------------------------------


class Callback(ResourceManagerCallback):
    """A resource manager whose only plugins are predicates, those that it is said to have. `answer` returns the next answer.

    `asked`: it has any.
    """

    def __init__(self, answer: Callable[[], bool], *, predicates: bool, preemption_predicates: bool) -> None:
        self.asked = predicates or preemption_predicates
        self._answer = answer
        # A method that is set on the object is offered, as one of its class is (`licorne.si.callback.overrides`).
        if predicates:
            self.predicates = self._allows  # type: ignore[method-assign]
        if preemption_predicates:
            self.preemption_predicates = self._fits_without  # type: ignore[method-assign]

    def _allows(self, args: v19.PredicatesArgs) -> str | None:
        return None if self._answer() else "so it was answered when this was recorded"

    def _fits_without(self, args: v19.PreemptionPredicatesArgs) -> v19.PreemptionPredicatesResponse:
        return v19.PreemptionPredicatesResponse(success=self._answer(), index=args.start_index)


def callbacks(peers: Iterable[Peer], answer: Callable[[], bool]) -> dict[str, Callback]:
    """Return the callbacks of the resource managers of a checkpoint, by id."""
    return {
        peer.rm_id: Callback(answer, predicates=peer.predicates, preemption_predicates=peer.preemption_predicates)
        for peer in peers
    }
