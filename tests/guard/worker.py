"""A process of plain Python that counts: `python -m guard.worker --plant NAME CASE ...` prints the counts as JSON.

It is a process of its own, since that of the tests may run the compiled modules. The seed of Python's hashes is fixed:
otherwise the order in which a set is walked would make even the number of lines random.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import licorne
from guard.cases import CASES, WARM_UP, Counts, prepare, run
from guard.lines import Lines
from guard.plants import PLANTS
from licorne import core

TESTS = Path(__file__).resolve().parent.parent
SOURCE = Path(licorne.__file__).resolve().parent.parent


def environment(*, interpreted: bool) -> dict[str, str]:
    """For a process that finds this package and these tests, and in which nothing is left to chance."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LICORNE_", "PYTHON", "COV"))}
    paths = os.pathsep.join([str(SOURCE), str(TESTS), str(TESTS.parent)])
    chosen = {"LICORNE_INTERPRETED": "1"} if interpreted else {}
    return clean | chosen | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def count(cases: Iterable[str] = CASES, plant: str | None = None) -> dict[str, tuple[Counts, Counts]]:
    """Let a new process run these cases: for each one, the scheduler's own counters, and those of plain Python."""
    command = [sys.executable, "-m", "guard.worker", *(("--plant", plant) if plant else ()), *cases]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(interpreted=True), cwd=TESTS
    )
    assert done.returncode == 0, done.stderr
    return {case: (work, lines) for case, (work, lines) in json.loads(done.stdout).items()}


def main() -> None:
    """Count in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plant", choices=sorted(PLANTS))
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    assert not core.compiled, "the compiled modules run no lines"
    gc.disable()
    run(WARM_UP, prepare(WARM_UP))
    settings = PLANTS[arguments.plant]() if arguments.plant else {}
    counts: dict[str, tuple[Counts, Counts]] = {}
    for name in arguments.cases or CASES:
        lines = Lines()
        counted = run(CASES[name], prepare(CASES[name], settings), lines, lines.read)
        seen = {key: number for key, number in counted.items() if key.endswith(tuple(lines.read()))}
        counts[name] = ({key: number for key, number in counted.items() if key not in seen}, seen)
    json.dump(counts, sys.stdout)


if __name__ == "__main__":
    main()
