"""Planted faults of reports, and the comparison that must notice them: the same input gives the same report.

A report is written twice, by processes of different seeds of hashes, and its files are compared: the page, JSON and CSV byte for
byte, PNG by their pixels, Parquet by its rows, which are those of the CSV as well. Run as a program with the name of a fault,
this plants it in both processes and prints by what it is caught; with `--write FOLDER` and a fault it is such a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from common.plain_python import SEARCHED
from common.planting import Faults, replace
from licorne import simulate
from licorne.lab.report import Collector, collector, drawing, folder, sections, spreads, tables, write_report
from licorne.workload import row_files
from report.workloads import small

DATE = "2026-01-02 03:04 UTC"
MODULE = "report.faults"
DRAWN = ("utilisation", "waiting")
"""The sections whose first picture is drawn where a fault is planted."""
FAULTS = Faults()


@FAULTS.add
def a_set_is_not_sorted() -> None:
    real = spreads.Spreads.by_queue
    names = {f"root.{letter}" for letter in "abcdefghij"}
    ranks = {name: rank for rank, name in enumerate(names)}
    replace(spreads.Spreads, "by_queue", lambda self: sorted(real(self), key=lambda row: ranks.get(row.name, -1)))


@FAULTS.add
def figures_have_the_real_time() -> None:
    real = collector._steady
    replace(collector, "_steady", lambda result: {**real(result), "real_s": result.real_s})


@FAULTS.add
def a_clock_is_on_the_page() -> None:
    real = folder._lead
    replace(folder, "_lead", lambda runs: f"{real(runs)} {time.time_ns()}")


@FAULTS.add
def identifiers_of_a_picture_are_drawn_at_random() -> None:
    drawing._SETTINGS["svg.hashsalt"] = None


@FAULTS.add
def a_picture_has_a_clock_in_it() -> None:
    real = drawing.Canvas.legend

    def legend(self: drawing.Canvas, columns: int = 4) -> None:
        real(self, columns)
        if self.theme is drawing.LIGHT:
            self.figure.text(0.5, 0.5, str(time.time_ns()))

    replace(drawing.Canvas, "legend", legend)


@FAULTS.add
def a_colour_depends_on_the_seed_of_hashes() -> None:
    def line(self: drawing.Canvas, name: str) -> dict[str, Any]:
        return {"label": name, "color": self.theme.series[hash(f"{name} at random") % 6]}

    replace(drawing.Canvas, "line", line)


@FAULTS.add
def rows_come_in_the_order_of_hashes() -> None:
    columns, real = tables.FILES["queues"]
    tables.FILES["queues"] = columns, lambda figures: sorted(real(figures), key=hash_of)


def hash_of(row: object) -> int:
    return hash(repr(row))


@FAULTS.add
def parquet_lacks_a_column() -> None:
    real = row_files.row_file

    def row_file(path: Path, kind: Any) -> Any:
        if path.suffix == ".parquet":
            fields = [(field.name, field.type) for field in msgspec.structs.fields(kind)][:-1]
            kind = msgspec.defstruct(kind.__name__, fields)
        return real(path, kind)

    replace(folder, "row_file", row_file)


@FAULTS.add
def parquet_lacks_a_row() -> None:
    real = row_files.row_file

    @contextmanager
    def row_file(path: Path, kind: Any) -> Any:
        with real(path, kind) as file:
            if path.suffix == ".parquet":
                write, number = file.write, count()
                file.write = lambda row: next(number) and write(row)  # the first one is number 0
            yield file

    replace(folder, "row_file", row_file)


def write(where: Path, *, few_pictures: bool) -> None:
    """Write the report of a small workload, in this process, in which a fault may be planted."""
    observer = Collector()
    result = simulate(small(), observers=[observer])
    real = sections.sections

    def few(runs: Any) -> Any:
        return [part._replace(plots=part.plots[:1] if part.name in DRAWN else []) for part in real(runs)]

    if few_pictures:
        replace(sections, "sections", few)
    write_report(where, [observer.figures(result)], never_placed={"small": observer.never_placed()}, made=DATE)


def differences(one: Path, other: Path) -> list[str]:
    """Return how the files of two reports differ, and how Parquet differs from CSV."""
    import polars as pl  # noqa: PLC0415  # an optional package, of which faults are listed without it
    from PIL import Image  # noqa: PLC0415

    names = sorted({path.name for path in (*one.iterdir(), *other.iterdir())})
    found: list[str] = []
    for name in names:
        first, second = one / name, other / name
        if not (first.is_file() and second.is_file()):
            found.append(f"{name} is in one of them")
        elif name.endswith(".parquet"):
            table = pl.read_parquet(first)
            if not table.equals(pl.read_parquet(second)):
                found.append(f"{name} has other rows")
            lines = first.with_suffix(".csv").read_text(encoding="utf-8").splitlines()
            if table.columns != lines[0].split(","):
                found.append(f"{name} has other columns than the CSV")
            elif not table.equals(pl.read_csv(first.with_suffix(".csv"), schema=table.schema)):
                found.append(f"{name} has other rows than the CSV")
        elif name.endswith(".png"):
            with Image.open(first) as mine, Image.open(second) as yours:
                if (mine.size, mine.tobytes()) != (yours.size, yours.tobytes()):
                    found.append(f"{name} has other pixels")
        elif first.read_bytes() != second.read_bytes():
            found.append(f"{name} has other bytes")
    return found


def written_twice(where: Path, *planted: str) -> list[str]:
    """Write a report by two processes of different seeds of hashes; return how the two differ."""
    folders = [where / seed for seed in ("1", "2")]
    for each in folders:
        subprocess.run(
            [sys.executable, "-m", MODULE, "--write", str(each), *planted],
            env={**os.environ, "PYTHONHASHSEED": each.name, "PYTHONPATH": SEARCHED},
            check=True,
        )
    return differences(*folders)


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        for planted in sys.argv[3:]:
            FAULTS[planted]()
        write(Path(sys.argv[2]), few_pictures=len(sys.argv) > 3)
    else:
        with tempfile.TemporaryDirectory() as name:
            found = written_twice(Path(name), sys.argv[1])
        how = f"caught after 1 report: {'; '.join(found[:3])}" if found else "not caught"
        sys.stdout.write(f"{sys.argv[1]}: {how}\n")
