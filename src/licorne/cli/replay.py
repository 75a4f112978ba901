"""`licorne replay`: repeats what was recorded, and says whether the same is decided."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import msgspec

from licorne.cli.common import CommandError, print_json, say
from licorne.cli.parameters import Flag, Output
from licorne.cli.progress import progress_bar
from licorne.cli.recordings import Moment, moment_ns
from licorne.cli.statuses import Status
from licorne.state.recording import DivergedError, Outcome, RecordingError, Replay, Run, choose_run, list_runs
from licorne.state.recording.folder import runs_in
from licorne.state.recording.moments import written

TRIMMED: Final = (
    "what came before was removed: the digest is of the messages since then, and the recording confirms how many there "
    "are, and the state at each checkpoint"
)
EMPTY: Final = "empty: it ended before anything of it was written, or has only just begun"


class Repeated(msgspec.Struct, frozen=True):
    """What `licorne replay --json` prints: the outcome, how many runs there are, and how long it took."""

    outcome: Outcome
    runs: int
    seconds: float


def replay(
    folder: Path,
    /,
    *,
    run: int | None = None,
    at: Moment | None = None,
    output: Output = None,
    runs: Flag = False,
    json: Flag = False,
) -> int:
    """Repeat what was recorded with --record, and compare the decisions with those of then.

    A recording that is damaged is repeated up to the damage, and the exit status says so.

    A recording consists of runs: one begins when a resource manager registers while no other one is registered, so with
    each start. The scheduler is given the same inputs at the same times, and must send the same messages.

    Parameters
    ----------
    folder
        The folder of the recording.
    run
        Number of the run; without it, the last one, or with --at the last that had begun then.
    at
        Stop at this time, like 2026-11-03T14:00 (UTC) or seconds since 1970.
    output
        Write the state in which the repetition ends: a state dump, as REST gives it, from which it can be restored
        exactly. Needs the extra `web`.
    runs
        List the runs, and repeat nothing.
    json
        Print the outcome as a JSON object.
    """
    try:
        if runs:
            return _list(folder, as_json=json)
        at_ns = moment_ns(at) if at else None
        if run is not None:
            _refuse_empty(folder, run)
        chosen = choose_run(folder, run, at_ns)
        began = time.perf_counter()
        with progress_bar("replaying") as told:
            repeated = Replay(chosen)
            size = repeated.bytes_all
            outcome = repeated.run(at_ns, lambda: told(repeated.bytes_read, size) if told is not None else None)
        answer = Repeated(outcome, len(runs_in(folder)), round(time.perf_counter() - began, 3))
    except DivergedError as error:
        raise CommandError(str(error), Status.NO) from None
    except RecordingError as error:
        raise CommandError(str(error), Status.FILE) from None
    if output is not None:
        _dump(repeated, outcome.now_ns, output)
    if json:
        print_json(answer)
    else:
        say(*_lines(folder, answer))
    return Status.FILE if answer.outcome.damaged else Status.DONE


def _refuse_empty(folder: Path, number: int) -> None:
    for each in list_runs(folder):
        if each.number == number and each.begins_ns is None:
            raise CommandError(f"{folder}: {_line(each)}", Status.FILE)


def _dump(repeated: Replay, now_ns: int, path: Path) -> None:
    from licorne.host.web.rest.state import full_state  # noqa: PLC0415  # it needs packages of the extra `web`

    if not repeated.managers:
        raise CommandError("--output: no resource manager is registered at this time, so there is no state")
    path.write_bytes(full_state(repeated.api, now_ns, exact=True))


def _list(folder: Path, *, as_json: bool) -> int:
    found = list_runs(folder)
    if as_json:
        print_json(
            [
                {"run": each.number, "begins_ns": each.begins_ns, "trimmed": each.trimmed, "damage": each.damage}
                for each in found
            ]
        )
        return Status.DONE
    say(*([_line(each) for each in found] or [f"{folder}: no resource manager has registered yet"]))
    return Status.DONE


def _line(run: Run) -> str:
    if run.damage:
        return f"run {run.number}: {run.damage}"
    if run.begins_ns is None:
        why = "its beginning was removed, and no checkpoint can be used" if run.trimmed else EMPTY
        return f"run {run.number}: {why}"
    return f"run {run.number}: from {written(run.begins_ns)}{', what came before was removed' if run.trimmed else ''}"


def _lines(folder: Path, answer: Repeated) -> list[str]:
    found = answer.outcome
    confirmed = found.checked == found.messages
    return [
        f"{folder}: run {found.run} of {answer.runs}, {written(found.begins_ns)} to {written(found.now_ns)}",
        f"calls {found.calls:,}, messages {found.messages:,}, allocations {found.allocations:,}",
        f"digest {found.digest}",
        "the decisions are those of the recording"
        if confirmed
        else f"of the messages the recording confirms the first {found.checked:,}; its next digest comes later",
        *([] if found.whole else [TRIMMED]),
        *([found.remark] if found.remark else []),
        f"repeated in {answer.seconds:.1f} s, {found.allocations / max(answer.seconds, 1e-3):,.0f} allocations/s",
    ]
