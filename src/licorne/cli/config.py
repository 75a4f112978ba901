"""`licorne config check`: lists the faults and warnings of a queue configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from licorne.cli.common import print_json, read_text
from licorne.config import check as check_text


def check(file: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Check a queue configuration.

    Prints a line for each fault and each warning: file:line:column: path: message [rule].
    Exit status: 0 if a scheduler would take the configuration, 1 if it would refuse it or the file cannot be read.

    Parameters
    ----------
    file
        Queue configuration (queues.yaml).
    json
        Print faults and warnings as a JSON object.
    """
    report = check_text(read_text(file, "a queue configuration"), file=str(file))
    if json:
        print_json(report)
        return 1 if report.faults else 0
    for fault in report.faults:
        print(fault)
    for warning in report.warnings:
        print(f"{warning} (warning)")
    if report.faults:
        count = f"{len(report.faults)} fault{'s' if len(report.faults) > 1 else ''}"
        print(f"{file}: {count}: a scheduler would refuse this configuration", file=sys.stderr)
        return 1
    print(f"{file}: valid{f', {len(report.warnings)} warning(s)' if report.warnings else ''}", file=sys.stderr)
    return 0
