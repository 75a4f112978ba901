"""`licorne reproduce`: makes the table of a paper again, and says for each cell whether it agrees.

A reproduction is a row of `REPRODUCTIONS`; what it must take and return is in `licorne.lab.papers.reproduction`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from licorne.cli.common import CommandError, UsageError, print_json
from licorne.cli.parameters import Flag, Jobs, Output
from licorne.cli.progress import progress_bar
from licorne.cli.statuses import Status
from licorne.lab.papers.reproduction import Reproduced, Reproduction
from licorne.lab.processes import CrashedError
from licorne.workload.workload import WorkloadError

REPRODUCTIONS = {"rlscheduler": "licorne.lab.papers.rlscheduler", "fgd": "licorne.lab.papers.fgd"}
"""The modules of the reproductions, each with a function `reproduce`, by the name that the command takes."""

SHOWN = 120
"""The most cells of a table that are printed; `--json` and `--output` have all."""


def reproduce(
    name: str,
    folder: Path | None = None,
    /,
    *,
    small: Flag = False,
    all_: Annotated[Flag, Parameter(name="--all")] = False,
    jobs: Jobs = None,
    output: Output = None,
    json: Flag = False,
) -> int:
    """Make the table of a paper again with the scheduler, and compare it cell by cell.

    Parameters
    ----------
    name
        rlscheduler: average bounded slowdown of five orders of jobs (SC '20). fgd: GPUs allocated and fragmented by six
        orders of nodes on the openb trace (ATC '23).
    folder
        The folder with the paper's data, which are not part of licorne; without it the command says who publishes them.
    small
        Only a small part of the runs, for a quick check: rlscheduler compares the first of its ten stretches,
        fgd one list of pods with one seed.
    all_
        All runs for which there are data: fgd makes ten of each list and policy, 300 of five lists; rlscheduler always makes all.
    jobs
        How many processes simulate at a time; without it, as many as there are processors.
    output
        Write a page in Markdown for a paper or report: the table, what to cite, and the digests of data and decisions.
    json
        Print the result as a JSON object.
    """
    if small and all_:
        raise UsageError("--small and --all: give one of them")
    module = REPRODUCTIONS.get(name)
    if module is None:
        raise UsageError(f"{name}: no such reproduction; there is: {', '.join(REPRODUCTIONS)}")
    source = import_module(module).DATA_SOURCE
    if folder is None:
        raise UsageError(f"{name}: give the folder with the paper's data, published at {source}")
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "no such folder"
        raise CommandError(f"{folder}: {what}; give the one with the paper's data, published at {source}", Status.FILE)
    run = cast("Reproduction", import_module(module).reproduce)
    try:
        with progress_bar(name, remaining=True) as progress:
            found = run(folder, "small" if small else "all" if all_ else "usual", jobs or os.cpu_count() or 1, progress)
    except WorkloadError as error:
        raise CommandError(str(error), Status.FILE) from None
    except CrashedError as error:
        raise CommandError(str(error)) from None
    if output is not None:
        _write(output, page(found))
    if json:
        print_json(found)
    else:
        _show(found)
    return Status.DONE if all(cell.agrees for cell in found.cells) else Status.NO


def page(found: Reproduced) -> str:
    """Return a result as a page in Markdown, for citing. The same run on the same data gives the same page."""
    from licorne import __version__  # noqa: PLC0415  # beside its only use

    rows = [
        f"| {cell.row} | {cell.column} | {_number(cell.expected, cell.decimals)} | {_number(cell.got, cell.decimals)} "
        f"| {_number(cell.tolerance, cell.decimals)} | {'yes' if cell.agrees else 'no'} |"
        for cell in found.cells
    ]
    lines = [
        f"# {found.name}: {found.title}",
        "",
        f"Made with licorne {__version__} (`licorne reproduce {found.name}`), {_verdict(found)}.",
        "",
        f"Table: {found.source}",
        "",
        f"Data: {found.data_source}",
        "",
        *(f"* {note}" for note in found.notes),
        *([""] if found.notes else []),
        "| row | column | expected | got | tolerance | agrees |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        "| file | SHA-256 |",
        "|---|---|",
        *(f"| {file.name} | {file.sha256} |" for file in found.data),
        "",
        f"Digest of the decisions of all {found.simulations:,} simulations: {found.digest}",
        "",
    ]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", Status.FILE) from None


def _show(found: Reproduced) -> None:
    from licorne.cli.sheets import Sheet, output  # noqa: PLC0415  # a program that reads JSON need not wait for tables

    console = output()
    sheet = Sheet(
        f"{found.name}: {found.title}",
        ("<row", "<column", "expected", "got", "tolerance", "agrees"),
        drop=("tolerance",),
    )
    # All of a small table in its order; of a large one those that disagree first.
    cells = found.cells if len(found.cells) <= SHOWN else sorted(found.cells, key=lambda cell: cell.agrees)
    for cell in sheet.first(cells, SHOWN, "cell"):
        numbers = (_number(value, cell.decimals) for value in (cell.expected, cell.got, cell.tolerance))
        sheet.add(cell.row, cell.column, *numbers, "yes" if cell.agrees else "NO")
    sheet.print(console)
    say: Callable[[str], None] = lambda text: console.print(text, markup=False, soft_wrap=True)  # noqa: E731  # said once
    for note in found.notes:
        say(f"note: {note}")
    say(f"table: {found.source}")
    say(f"data: {found.data_source}")
    say(f"{_verdict(found)}; {found.simulations:,} simulations, digest {found.digest}")


def _verdict(found: Reproduced) -> str:
    agreeing = sum(cell.agrees for cell in found.cells)
    return f"{agreeing:,} of {len(found.cells):,} cells agree"


def _number(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}"
