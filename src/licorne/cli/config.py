"""`licorne config check`: lists the faults and warnings of queue configurations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from licorne.cli.common import CommandError, print_json
from licorne.cli.configurations import files, reports
from licorne.cli.statuses import Status
from licorne.config import Report
from licorne.config.problems import by_line

Flag = Annotated[bool, Parameter(negative="")]


def _are_files(_: type, names: list[str]) -> None:
    for name in names:
        if name.startswith("-") and name != "-":
            raise ValueError(f"there is no option {name}; see --help")


def check(
    files_: Annotated[list[str], Parameter(name="FILE", allow_leading_hyphen=True, validator=_are_files)],
    /,
    *,
    strict: Flag = False,
    json: Flag = False,
) -> int:
    """Check queue configurations.

    Prints a line for each fault and each warning: file:line:column: queue: message [rule].

    Parameters
    ----------
    files_
        Queue configuration (queues.yaml), or a ConfigMap that holds some; a folder: each *.yaml in it; -: standard input.
    strict
        Warnings fail too.
    json
        Print faults and warnings as a JSON object.
    """
    checked: list[Report] = []
    unread = False
    for path in map(Path, files_):
        try:
            for file in files([path]):
                for label, report in reports(file):
                    checked.append(report)
                    if not json:
                        _show(label, report, strict=strict)
        except CommandError as error:  # the other files are checked all the same
            print(f"licorne: {error}", file=sys.stderr)
            unread = True
    found = Report(
        tuple(fault for report in checked for fault in report.faults),
        tuple(warning for report in checked for warning in report.warnings),
    )
    if json:
        print_json(found)
    if unread:
        return Status.FILE
    if found.faults:
        return Status.NO
    return Status.STRICT if strict and found.warnings else Status.DONE


def _show(label: str, report: Report, *, strict: bool) -> None:
    for problem in by_line(report.faults + report.warnings):
        print(problem if problem in report.faults else f"{problem} (warning)")
    if report.faults:
        count = f"{len(report.faults)} fault{'s' if len(report.faults) > 1 else ''}"
        print(f"{label}: {count}: a scheduler would refuse this configuration", file=sys.stderr)
    else:
        warned = f", {len(report.warnings)} warning(s)" if report.warnings else ""
        print(f"{label}: valid{warned}{', which --strict refuses' if strict and warned else ''}", file=sys.stderr)
