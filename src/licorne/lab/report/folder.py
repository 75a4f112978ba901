"""The files of a report: a page, its pictures as PNG, the figures as JSON, and their rows as CSV and Parquet.

A report is read from its figures, and from the rows of what was never placed, of which the figures have the first ones.

The same figures give the same files, apart from the date on the page. Each file has its name only when it is complete, and
the page comes last, so a folder with a page has everything.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from licorne._bounded import DUMP_BYTES
from licorne._extras import require
from licorne._files import file_bytes
from licorne.lab.report import tables
from licorne.lab.report.figures import FILE, VERSION, Figures, NeverPlaced, decode_figures
from licorne.sim.collector import quiet_collector
from licorne.workload.finished import finished_file
from licorne.workload.row_files import row_file

PAGE = "report.html"
NEVER_PLACED = "never-placed"
Progress = Callable[[int, int], None]


class ReportError(Exception):
    """A folder holds no report that can be read; the text says why."""


class _Version(msgspec.Struct):
    version: int


def write_report(
    folder: Path,
    runs: Sequence[Figures],
    *,
    never_placed: Mapping[str, Sequence[NeverPlaced]] | None = None,
    made: str = "",
    progress: Progress | None = None,
) -> Path:
    """Write the report of one or several simulations into a folder, which is made if needed; return the path of the page.

    `never_placed`: by label, all asks that were never placed, of which the figures have the first ones. `made`: the date on
    the page; "": now. `progress` is called with the pictures of the page that are drawn, and their number.

    Raises:
        MissingExtraError: the packages of the extra `report` are not installed.
        ValueError: there are no simulations, or two with one label.
        OSError: a file cannot be written.
    """
    require("report")
    labels = [figures.label for figures in runs]
    if not runs or len(set(labels)) < len(labels):
        raise ValueError(f"a report is of simulations with different labels, not of {labels}")
    folder.mkdir(parents=True, exist_ok=True)
    data = runs[0] if len(runs) == 1 else list(runs)
    _write(folder / FILE, msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")
    with quiet_collector():  # drawing makes many objects, and those of a simulation may be there
        _rows(folder, runs, never_placed or {})
        text = _drawn(folder, runs, made, progress)
    _write(folder / PAGE, text.encode())
    return folder / PAGE


def _drawn(folder: Path, runs: Sequence[Figures], made: str, progress: Progress | None) -> str:
    """Write the pictures, and return the page."""
    from licorne.lab.report.page import page, write_pictures  # noqa: PLC0415  # matplotlib is loaded only where it is wanted
    from licorne.lab.report.sections import sections  # noqa: PLC0415

    parts = list(sections(runs))
    write_pictures(folder, parts, runs)
    number, done = sum(len(part.plots) for part in parts), 0

    def tell() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, number)

    return page(_title(runs), _lead(runs), _notes(runs), parts, runs, made=made, progress=tell)


def read_report(folder: Path, label: str) -> list[tuple[Figures, list[NeverPlaced]]]:
    """Return the runs of a report, each with all asks that were never placed.

    `label` names the run beside others; where the report has several, what each was called there follows.

    Raises:
        ReportError: the folder holds no report of this version.
    """
    try:
        data = file_bytes(folder / FILE, DUMP_BYTES)
        head = msgspec.json.decode(data, type=_Version | list[_Version])
        for each in [head] if isinstance(head, _Version) else head:
            if each.version != VERSION:
                raise ReportError(f"{folder}: a report of version {each.version}, and not of {VERSION}: make it anew")
        found = decode_figures(data)
        text = file_bytes(folder / f"{NEVER_PLACED}.csv", DUMP_BYTES).decode()
        read = csv.DictReader(io.StringIO(text, newline=""))
        rows = [(row.get("run"), msgspec.convert(row, NeverPlaced, strict=False)) for row in read]
    except OSError as error:
        raise ReportError(f"{folder}: no report: {error.strerror}; give a folder with a report") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, csv.Error) as error:
        raise ReportError(f"{folder}: no report that can be read: {error}") from None
    return [
        (
            msgspec.structs.replace(each, label=label if len(found) == 1 else f"{label}: {each.label}"),
            [row for run, row in rows if run == each.label],
        )
        for each in found
    ]


def _rows(folder: Path, runs: Sequence[Figures], never_placed: Mapping[str, Sequence[NeverPlaced]]) -> None:
    for name, (columns, rows) in tables.FILES.items():
        if name != "devices" or any(each.devices for each in runs):
            _row_files(folder, name, columns, ((each.label, rows(each)) for each in runs))
    missing = ((each.label, never_placed.get(each.label, each.never_placed)) for each in runs)
    cells = ((label, map(msgspec.structs.astuple, rows)) for label, rows in missing)
    _row_files(folder, NEVER_PLACED, tables.columns_of(NeverPlaced), cells)


def _row_files(folder: Path, name: str, columns: tables.Columns, runs: Iterable[tuple[str, tables.Cells]]) -> None:
    kind = msgspec.defstruct(name, [("run", str), *columns])
    with row_file(folder / f"{name}.csv", kind) as text, row_file(folder / f"{name}.parquet", kind) as parquet:
        for label, rows in runs:
            for cells in rows:
                row = kind(label, *cells)
                text.write(row)
                parquet.write(row)


def _write(path: Path, data: bytes) -> None:
    with finished_file(path) as part:
        part.write_bytes(data)


def _title(runs: Sequence[Figures]) -> str:
    return f"Report: {runs[0].workload}" if len(runs) == 1 else f"Compared: {', '.join(each.label for each in runs)}"


def _lead(runs: Sequence[Figures]) -> str:
    of = "a simulation of" if len(runs) == 1 else f"{len(runs)} simulations of"
    names = dict.fromkeys(each.workload for each in runs)
    samples = ", ".join(dict.fromkeys(f"{each.samples:,}" for each in runs))
    sampled = f" What is shown over time is of {samples} samples, one in each of equal spans." if runs[0].timed else ""
    return f"This is a report of {of} {', '.join(names)}, under a virtual clock.{sampled}"


def _notes(runs: Sequence[Figures]) -> list[str]:
    several = len(runs) > 1
    notes: list[str] = []
    for each in runs:
        begins = f"{each.label}: " if several else ""
        notes.append(f"{begins}configuration: {each.result['configuration']}")
        notes += (f"{begins}policy: {policy['name']}" for policy in each.result.get("policies", []))
        notes += (f"{begins}{note}" for note in (*each.result.get("notes", []), *each.notes))
    return list(dict.fromkeys(notes))
