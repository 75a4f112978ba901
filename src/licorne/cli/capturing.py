"""A running YuniKorn or licorne as `licorne convert` reads it, until a signal ends that: it is only read."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from licorne._wording import counted
from licorne.cli.common import CommandError, UsageError, say
from licorne.cli.progress import progress_bar
from licorne.cli.sources import read_token
from licorne.cli.statuses import Status
from licorne.state.recording import Names
from licorne.state.source import Server, SourceError
from licorne.workload.capture import Options, capture
from licorne.workload.capture.capturing import Progress
from licorne.workload.workload import ASKS_MAX
from licorne.workload.workload import Progress as Bar


def capture_workload(
    url: str,
    output: Path | None,
    names: Names | None,
    *,
    for_: float | None = None,
    every: float = 10.0,
    max_asks: int = ASKS_MAX,
    token_file: Path | None = None,
    tls_ca: Path | None = None,
) -> list[str]:
    """Capture the workload of a running scheduler into a file, and return the lines of a summary.

    Raises:
        UsageError: no file is given. CommandError: the scheduler cannot be read, or the file not be written.
        AnonymityError: names are to be replaced, and a configuration depends on them.
    """
    if output is None:
        raise UsageError(f"{url}: a running scheduler is captured into a file: give one with --output")
    token = read_token(token_file)
    options = Options(every_s=every, for_s=for_, asks_max=max_asks)
    try:
        with _asked_to_end() as ends, progress_bar("capturing; Ctrl-C ends") as bar:
            server = Server(url, token=token, tls_ca=tls_ca)
            captured = capture(
                server, output, options, names=names, stop=lambda: bool(ends), progress=_reporting(bar, for_)
            )
    except SourceError as error:
        raise CommandError(str(error), Status.FILE) from None
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}", Status.FILE) from None
    polls = counted(captured.polls, "poll")
    said = f"{output}: {counted(captured.asks, 'ask')} in {captured.seconds:,.0f} s, from {polls} and events"
    return [said, *(f"note: {note}" for note in captured.notes)]


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


def _reporting(bar: Bar | None, length_s: float | None) -> Callable[[Progress], None]:
    """Return the function that is called after each poll: it moves the progress bar, and prints each trouble once."""
    last = ""

    def report(progress: Progress) -> None:
        nonlocal last
        if progress.trouble and progress.trouble != last:
            say(f"{progress.trouble}; trying again", to=sys.stderr)
        last = progress.trouble
        if bar is not None:
            bar(int(progress.seconds), int(length_s or 0))

    return report
