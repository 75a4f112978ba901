"""Writing reports, for the commands that simulate."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from licorne._extras import require
from licorne.cli.common import ARGUMENTS, CommandError
from licorne.cli.progress import progress_bar
from licorne.cli.statuses import Status
from licorne.lab.report.collector import Collector
from licorne.lab.report.folder import write_report
from licorne.sim.report import Result


def check_report(folder: Path) -> None:
    """Check, before anything is simulated, that a report can be written into a folder.

    Raises:
        CommandError: there is a file of this name.
        MissingExtraError: the packages of the extra `report` are not installed.
    """
    require("report")
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: is a file, and a report is a folder", Status.FILE)


def write_reports(folder: Path, runs: Sequence[tuple[str, Collector, Result]]) -> None:
    """Write the report of simulations, each with its label; they are those of the command that runs."""
    command = shlex.join(("licorne", *ARGUMENTS.get()))
    with progress_bar("drawing") as progress:
        figures = [
            msgspec.structs.replace(collector.figures(result, label), command=command)
            for label, collector, result in runs
        ]
        missing = {label: collector.never_placed() for label, collector, _ in runs}
        write_report(folder, figures, never_placed=missing, progress=progress)
