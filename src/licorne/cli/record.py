"""`licorne record`: makes a workload from a running YuniKorn or licorne, which is only read."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

from cyclopts import Parameter, validators

from licorne._wording import counted
from licorne.answers.source import Server, SourceError, is_url
from licorne.capture import Captured, Options, capture
from licorne.capture.capturing import Progress
from licorne.cli.common import CommandError, UsageError, clean, print_json, say
from licorne.cli.durations import DURATION
from licorne.cli.sources import read_token
from licorne.cli.statuses import Status
from licorne.core.base import setting_kinds as kinds
from licorne.recording import Names
from licorne.recording.anonymous import AnonymityError
from licorne.sim.workload import ASKS_MAX

Flag = Annotated[bool, Parameter(negative="", show_default=False)]


def record(
    url: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=("--output", "-o"))],
    for_: Annotated[
        float | None, DURATION, Parameter(name="--for", validator=validators.Number(gt=0, lte=kinds.MOST))
    ] = None,
    every: Annotated[float, DURATION, Parameter(validator=validators.Number(gte=0.1, lte=3600))] = 10.0,
    max_asks: Annotated[int, Parameter(validator=validators.Number(gte=1))] = ASKS_MAX,
    anonymous: Flag = False,
    token_file: Path | None = None,
    tls_ca: Path | None = None,
    json: Flag = False,
) -> int:
    """Make a workload from what a running YuniKorn or licorne does, for `licorne simulate` and `licorne compare`.

    The scheduler is only read: its state every few seconds, and its stream of events. It goes on until --for is over, or until
    Ctrl-C, and then writes the file; what is not known of the workload is said, and stands in the file.

    Parameters
    ----------
    url
        Address of the scheduler's REST interface, http://HOST:PORT; 9080 is YuniKorn's port.
    output
        The workload file that is written at the end (JSON lines).
    for_
        End after this time, in seconds or like 1h, 90m or 168h.
    every
        Time between two looks at the whole state, in seconds or like 1m.
    max_asks
        End when there are so many asks.
    anonymous
        Write digests in place of names of users and groups.
    token_file
        File with the token of the REST interface.
    tls_ca
        Certificate to know the REST interface by, PEM; without it: the authorities of this system.
    json
        Print the outcome as a JSON object.
    """
    if not is_url(url):
        raise UsageError(f"{url}: give the address of a scheduler, http://HOST:PORT")
    token = read_token(token_file)
    options = Options(every_s=every, for_s=for_, asks_max=max_asks)
    try:
        with _asked_to_end() as ends, _told() as told:
            server = Server(url, token=token, tls_ca=tls_ca)
            names = Names() if anonymous else None
            captured = capture(server, output, options, names=names, stop=lambda: bool(ends), progress=told)
    except SourceError as error:
        raise CommandError(str(error), Status.FILE) from None
    except AnonymityError as error:
        raise CommandError(f"--anonymous: {error}") from None
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}", Status.FILE) from None
    if json:
        print_json(captured)
    else:
        say(*_lines(output, captured))
    return Status.DONE


def _lines(output: Path, captured: Captured) -> Iterator[str]:
    yield f"{output}: {counted(captured.asks, 'ask')} in {captured.seconds:,.0f} s, from {counted(captured.polls, 'poll')} and events"
    for note in captured.notes:
        yield f"note: {note}"


@contextmanager
def _asked_to_end() -> Iterator[list[int]]:
    """Collect the signals that ask the process to end, instead of ending at once; a second one ends it."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Line:
    """One line on a terminal that is written over and over; on anything else only troubles are told, once each."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._trouble = ""

    def __call__(self, progress: Progress) -> None:
        if progress.trouble and progress.trouble != self._trouble:
            self._write(f"{clean(progress.trouble)}; trying again\n")
        self._trouble = progress.trouble
        if self._terminal:
            self._write(f"{progress.seconds:,.0f} s: {progress.asks:,} asks, {progress.pods:,} pods now; Ctrl-C ends")

    def _write(self, text: str) -> None:
        sys.stderr.write(("\r\033[K" if self._terminal else "") + text)
        sys.stderr.flush()

    def end(self) -> None:
        if self._terminal:
            self._write("")


@contextmanager
def _told() -> Iterator[_Line]:
    line = _Line()
    try:
        yield line
    finally:
        line.end()


__all__ = ["record"]
