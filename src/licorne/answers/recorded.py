"""A moment of a recording as a starting point for answers: the very scheduler, not what a dump says of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from licorne.answers.shares import Hours, Shares
from licorne.config import load
from licorne.core.base.states import SECOND_NS
from licorne.si import v19
from licorne.state.exact import starting_point
from licorne.state.recording import Replay, Run, replay_from
from licorne.state.recording.moments import written
from licorne.state.restored import Note, Outputs, Restored


class NothingRecordedError(LookupError):
    """At this moment of the recording no resource manager was registered; `left_ns` is when the last one had ended."""

    def __init__(self, left_ns: int | None) -> None:
        super().__init__("no resource manager was registered")
        self.left_ns = left_ns


def restore_moment(
    run: Run, at_ns: int | None = None, config: str | None = None, step: Callable[[int, int], object] = lambda *_: None
) -> Restored:
    """Return the recorded scheduler as it was at a time, or at the end of the recording.

    Where all resource managers had ended in good order before the end, that is the moment before the last of them did.
    A note says so, and another one that the run ends before the time.

    Args:
        run: the run of the recording.
        at_ns: the time in nanoseconds since 1970.
        config: a queue configuration in place of the one that was in force.
        step: told now and then how many bytes of how many were repeated.

    Raises:
        NothingRecordedError: no resource manager was registered at this time.
        RecordingError: the recording cannot be repeated.
        ConfigError: the configuration cannot be used.
    """
    if config is not None:
        load(config)
    try:
        return _at(run, at_ns, config, step)
    except NothingRecordedError as error:
        if at_ns is not None or error.left_ns is None:
            raise
        restored = _at(run, error.left_ns - 1, config, step)
        ended = f"the end of the last resource manager, at {written(error.left_ns)}; the answer is about just before it"
        return msgspec.structs.replace(restored, notes=(Note("left out", ended), *restored.notes))


def _at(run: Run, at_ns: int | None, config: str | None, step: Callable[[int, int], object]) -> Restored:
    outputs = Outputs()
    replay = replay_from(run, at_ns, outputs)
    size = replay.bytes_all
    outcome = replay.run(at_ns, lambda: step(replay.bytes_read, size))
    if not replay.managers:
        raise NothingRecordedError(replay.left_ns)
    now_ns = at_ns if at_ns is not None and not replay.ended else outcome.now_ns
    if config is not None:
        rm_id = next(iter(replay.managers))
        replay.api.update_configuration(v19.UpdateConfigurationRequest(rm_id=rm_id, config=config), now_ns=now_ns)
    restored = as_restored(replay, outputs, now_ns)
    if at_ns is None or at_ns <= now_ns:
        return restored
    short = f"run {run.number} of the recording ends at {written(now_ns)}; the answer is about then, not about {written(at_ns)}"
    return msgspec.structs.replace(restored, notes=(Note("left out", short), *restored.notes))


def with_hours(found: Shares, used: Hours, since_ns: int) -> Shares:
    """Return shares with `used`, the hours of resources used since `since_ns`; a note says if the recording ends before that time."""
    notes = found.notes
    if since_ns >= round(found.at_s * SECOND_NS):
        over = f"what was used from {written(since_ns)} on: what was recorded ends before"
        notes = (Note("left out", over), *notes)
    return msgspec.structs.replace(found, hours=used, notes=notes)


def as_restored(replay: Replay, outputs: Outputs, now_ns: int) -> Restored:
    """Return the scheduler of a repetition, whose outputs go to `outputs`, as a starting point for answers at a time.

    Raises:
        NothingRecordedError: no resource manager is registered.
    """
    if not replay.managers:
        raise NothingRecordedError(replay.left_ns)
    return starting_point(replay.api, replay.managers, now_ns, outputs, replay.remark)
