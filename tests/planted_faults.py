"""All planted faults of the tests in one table: each name, what catches it, and after how many examples.

`make faults` prints it, as Markdown. A planted fault is a function of the scheduler that a test replaces by a broken
one, to show that its comparison or its laws would notice. Each is planted in a process of its own, with the hot modules
as plain Python. Exit status: 0; 1 if a fault is not caught.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

import gangs.faults
import gangs_atomic.faults
import machine.faults
import parking.faults
import preemption.contests
import preemption.faults
import quotachange.faults
import reference.faults
from common.plain_python import printed_by


class Suite(NamedTuple):
    """Planted faults that one test looks for. `module`: run with a fault's name, it prints how it was caught."""

    module: str
    test: str
    names: Iterable[str]


SUITES = (
    Suite("reference.faults", "reference/test_reference.py", reference.faults.FAULTS),
    Suite("parking.faults", "parking/test_parking.py", parking.faults.FAULTS),
    Suite("machine.faults", "machine/test_faults.py", machine.faults.FAULTS),
    Suite("preemption.contests", "preemption/test_brute_force.py", preemption.contests.FAULTS),
    Suite("preemption.faults", "preemption/test_claims_law.py", preemption.faults.FAULTS),
    Suite("quotachange.faults", "quotachange/test_laws.py", quotachange.faults.FAULTS),
    Suite("gangs.faults", "gangs/test_laws.py", gangs.faults.FAULTS),
    Suite("gangs_atomic.faults", "gangs_atomic/test_laws.py", gangs_atomic.faults.FAULTS),
)


def table() -> int:
    """Plant all faults and print the table; return the exit status."""
    planted = [(suite, name) for suite in SUITES for name in suite.names]
    lost = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda each: printed_by(each[0].module, each[1]), planted)
        rows = list(
            track(zip(planted, found, strict=True), "planted faults", len(planted), console=Console(stderr=True))
        )
    sys.stdout.write("| test | fault | caught |\n|---|---|---|\n")
    for (suite, name), printed in rows:
        how = printed.strip().splitlines()[0].removeprefix(f"{name}: ")
        lost += not how.startswith("caught")
        sys.stdout.write(f"| `{suite.test}` | {name} | {how.removeprefix('caught ').replace('|', '/')[:90]} |\n")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(table())
