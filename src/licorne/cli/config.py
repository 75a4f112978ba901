"""`licorne config check`: lists the faults and warnings of queue configurations."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from licorne._wording import counted
from licorne.cli.common import CommandError, UsageError, print_json, say
from licorne.cli.configurations import files, reports
from licorne.cli.parameters import Flag, From
from licorne.cli.recordings import Moment
from licorne.cli.statuses import Status
from licorne.config import Report
from licorne.config.problems import by_line

WORKLOADS = (".jsonl", ".jsonl.gz")
"""How the names of workloads end."""


def check(
    files_: Annotated[list[Path], Parameter(name="FILE")],
    /,
    *,
    source: From = "",
    at: Moment | None = None,
    token_file: Path | None = None,
    tls_ca: Path | None = None,
    strict: Flag = False,
    json: Flag = False,
) -> int:
    """Check queue configurations.

    Prints a line for each fault and each warning: file:line:column: queue: message [rule]. With --from it also warns of
    what can only be seen beside a cluster: guarantees that exceed it, maximums and limits that bind nothing or that a pod
    exceeds, queues that use more than their max, queues that nothing leads to, and queues of applications that are not
    configured; with a workload or a recording, which say what applications asked for, also placement rules that place none
    of them.

    Parameters
    ----------
    files_
        Queue configuration (queues.yaml), or a ConfigMap that holds some; a folder: each *.yaml in it; -: standard input.
    source
        Check beside a cluster: a file with a state dump, the address of a scheduler's REST interface, http://HOST:PORT, the
        folder of a recording; or a workload (.jsonl), of which all nodes and pods count.
    at
        With a recording: check beside this time of it, like 2026-11-03T14:00 (UTC) or seconds since 1970; without it: beside
        its end.
    token_file
        File with the token of that REST interface.
    tls_ca
        Certificate to know it by, PEM; without it: the authorities of this system.
    strict
        Warnings fail too.
    json
        Print faults and warnings as a JSON object.
    """
    running = None
    if at and (not source or source.endswith(WORKLOADS)):
        raise UsageError(f"--at {at}: only a recording has other moments; give its folder: --from DIR")
    if source.endswith(WORKLOADS):
        from licorne.answers.partitions import partitions_of_workload  # noqa: PLC0415  # as below
        from licorne.cli.simulate import read_source  # noqa: PLC0415
        from licorne.workload.workload import ASKS_MAX  # noqa: PLC0415

        running = partitions_of_workload(read_source(Path(source), ASKS_MAX))
    elif source:
        from licorne.answers import running_partitions  # noqa: PLC0415  # loads the scheduler, which checking does not need
        from licorne.answers.partitions import partitions_of_recording  # noqa: PLC0415
        from licorne.cli.sources import read_state, read_submitted  # noqa: PLC0415
        from licorne.state.recording.folder import is_recording  # noqa: PLC0415

        restored = read_state(source, token_file, tls_ca, at=at or "")
        if is_recording(Path(source)):
            for note in restored.notes:
                say(f"{source}: {note}", to=sys.stderr)
            running = partitions_of_recording(restored, read_submitted(Path(source), at or ""))
        else:
            running = running_partitions(restored)
    checked: list[Report] = []
    unread = False
    for path in files_:
        try:
            for file in files([path]):
                for label, report in reports(file, running):
                    checked.append(report)
                    if not json:
                        _show(label, report, strict=strict)
        except CommandError as error:  # the other files are checked all the same
            say(*f"licorne: {error}".split("\n"), to=sys.stderr)
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
        told, style = (problem, "red") if problem in report.faults else (f"{problem} (warning)", "yellow")
        say(told, style=style)
    if report.faults:
        count = counted(len(report.faults), "fault")
        say(f"{label}: {count}: a scheduler would refuse this configuration", to=sys.stderr)
    else:
        warned = f", {counted(len(report.warnings), 'warning')}" if report.warnings else ""
        say(f"{label}: valid{warned}{', which --strict refuses' if strict and warned else ''}", to=sys.stderr)
