"""Answers to a Python program, from where the state of a scheduler is: `licorne.explain` and `licorne.shares`.

The state is read, and restored as another scheduler in this process; the one that it is from is not touched.
"""

from __future__ import annotations

import time
from pathlib import Path

from licorne.answers.hours import hours
from licorne.answers.recorded import restore_moment, with_hours
from licorne.answers.shares import Shares
from licorne.answers.shares import shares as shares_of
from licorne.answers.trials import Home
from licorne.answers.why import Answer, why
from licorne.core.api import SchedulerAPI
from licorne.state.exact import restore_checkpoint
from licorne.state.recording import choose_run
from licorne.state.recording.folder import is_recording
from licorne.state.restore import restore
from licorne.state.restored import Restored
from licorne.state.source import fetch


def explain(
    source: SchedulerAPI | str | Path,
    name: str = "",
    *,
    partition: str = "",
    config: str | None = None,
    at_ns: int | None = None,
    prove: bool = True,
    limit_s: float = 60.0,
) -> Answer:
    """Return why something waits, and the smallest changes with which it would run.

    Args:
        source: a scheduler of this process, which is only read; or a file with a state dump, the address of a scheduler's
            REST interface, such as `http://127.0.0.1:9080`, or the folder of a recording.
        name: the key of an ask or allocation, the id of an application, or a pod's name, also as `namespace/name`; empty
            for all that waits.
        partition: only this partition is looked at; empty for all.
        config: a queue configuration in place of the one in force, as a text; the answer is about the time after the
            scheduler's next decisions under it.
        at_ns: the moment of a recording, in nanoseconds since 1970; None for its end, or where the scheduler had ended in
            good order, for just before that.
        prove: whether changes are looked for that would let an ask run, each tried on a copy of the process.
        limit_s: seconds after which no further change is tried, and for no further kind of asks the nodes are looked at.

    Returns:
        An `AskAnswer`, for an application an `ApplicationAnswer`, without a name an `Overview` (`licorne.answers`).

    Raises:
        UnknownNameError: nothing, or more than one thing, has this name.
        SourceError: there is no such file, or the server does not answer.
        DumpError: what was read is no state dump.
        CheckpointError: no resource manager is registered with the scheduler.
        RecordingError: the recording cannot be repeated.
        NothingRecordedError: no resource manager was registered at this moment of the recording.
        ConfigError: the configuration cannot be used.
        ValueError: `at_ns` is given, and the source is no recording.
        CopyError: a copy of the process could not be made.
    """
    home = Home(_restored(source, config, at_ns))
    if config is not None:
        home.decide()
    until = time.monotonic() + limit_s
    return why(home, name, partition=partition, prove=prove, more=lambda: time.monotonic() < until)


def shares(
    source: SchedulerAPI | str | Path,
    *,
    partition: str = "",
    config: str | None = None,
    at_ns: int | None = None,
    since_ns: int | None = None,
) -> Shares:
    """Return who has what of which guarantee and max, and who borrows from whom.

    `since_ns`: with a recording, what was used from this time on is in `hours`; nanoseconds since 1970. The other arguments,
    and the errors, are those of `explain`.
    """
    recording = None if isinstance(source, SchedulerAPI) or not is_recording(Path(source)) else Path(source)
    if since_ns is not None and recording is None:
        raise ValueError(f"since_ns: {_named(source)} is no recording, so nothing is known of the time before")
    found = shares_of(_restored(source, config, at_ns), partition)
    if since_ns is None or recording is None:
        return found
    used = hours(choose_run(recording, at_ns=at_ns), since_ns, at_ns, partition=partition)
    return with_hours(found, used, since_ns)


def _restored(source: SchedulerAPI | str | Path, config: str | None, at_ns: int | None) -> Restored:
    if not isinstance(source, SchedulerAPI) and is_recording(Path(source)):
        return restore_moment(choose_run(Path(source), at_ns=at_ns), at_ns, config)
    if at_ns is not None:
        raise ValueError(f"at_ns: {_named(source)} is no recording, and has no other moments")
    if isinstance(source, SchedulerAPI):
        return restore_checkpoint(source.checkpoint(), config, check=False)
    return restore(fetch(str(source)), config)


def _named(source: SchedulerAPI | str | Path) -> str:
    return "a scheduler" if isinstance(source, SchedulerAPI) else str(source)
