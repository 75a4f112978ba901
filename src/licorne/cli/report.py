"""`licorne report`: runs that have a report already, side by side on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from licorne.cli.common import CommandError, UsageError, say
from licorne.cli.parameters import OUTPUT
from licorne.cli.progress import progress_bar
from licorne.cli.reports import check_report
from licorne.cli.statuses import Status
from licorne.lab.report.folder import PAGE, ReportError, read_report, write_report


def report(*folder: Path, output: Annotated[Path, OUTPUT]) -> int:
    """Put runs side by side that have a report already; nothing is simulated again.

    The page is that of `licorne compare --output`, with the same colours and scales for all runs, each of which has the name
    of its folder.

    Parameters
    ----------
    folder
        The folders of two or more reports, as `licorne simulate --report` or `licorne compare --output` wrote them.
    output
        The folder for the new report.
    """
    if len(folder) < 2:
        raise UsageError("give the folders of two reports or more")
    if len({path.resolve() for path in (*folder, output)}) <= len(folder):
        raise UsageError("the folders have to be different ones, and so has --output")
    check_report(output)
    try:
        names = [path.name for path in folder]
        labels = names if len(set(names)) == len(names) else list(map(str, folder))
        runs = [run for path, label in zip(folder, labels, strict=True) for run in read_report(path, label)]
        missing = {figures.label: never_placed for figures, never_placed in runs}
        with progress_bar("drawing") as progress:
            write_report(output, [figures for figures, _ in runs], never_placed=missing, progress=progress)
    except ReportError as error:
        raise CommandError(str(error), Status.FILE) from None
    say(output / PAGE)
    return Status.DONE
