"""Tables in CSV, read row by row; errors name file, line and column. A name that ends in .gz is that of a compressed file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from licorne._wording import counted
from licorne.workload.traces.swf import LINE_MAX, opened_lines
from licorne.workload.workload import WorkloadError


class Row:
    """A row of a table: its values by column, without white space around them."""

    def __init__(self, file: str, line: int, values: dict[str, str]) -> None:
        self.file = file
        self.line = line
        self.values = values

    def text(self, column: str) -> str:
        """Return a text that must not be empty."""
        if not self.values[column]:
            raise self.fault(column, "is empty")
        return self.values[column]

    def count(self, column: str) -> int:
        """Return a whole number from 0 up."""
        text = self.values[column]
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            raise self.fault(column, f"{text!r} is not a whole number from 0 up")
        return int(text)

    def fault(self, column: str, what: str) -> WorkloadError:
        """Return the error that something is wrong with a column of the row."""
        return WorkloadError(f"{self.file}:{self.line}: {column}: {what}")


def rows(path: Path, columns: Iterable[str], advice: str, notes: list[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file that must have these columns, as `parsed_rows` does.

    Raises:
        WorkloadError: there is no such file, or it is no such table; `advice` is the end of what is said of the former.
        OSError: the file cannot be read.
    """
    try:
        with opened_lines(path) as stream:
            yield from parsed_rows(stream, str(path), dict.fromkeys(columns, advice), notes)
    except FileNotFoundError:
        raise WorkloadError(f"{path}: no such file; {advice}") from None


def parsed_rows(
    stream: Iterable[bytes], file: str, columns: dict[str, str], notes: list[str] | None = None
) -> Iterator[Row]:
    """Yield the rows of a table; `columns` are those that it must have, each with what to say where it is missing.

    `notes` is told if the last line has no line end: it may be cut off within a field, which nothing else shows.
    """
    found = _rows(stream, file, [] if notes is None else notes)
    line, header = next(found, (1, None))
    if header is None:
        raise WorkloadError(f"{file}:1: the file is empty, where a header with the names of columns belongs")
    names = [name.strip() for name in header]
    for column, about in columns.items():
        if names.count(column) != 1:
            what = "no column" if column not in names else "more than one column"
            raise WorkloadError(f"{file}:{line}: {what} {column!r}; there are {', '.join(names)[:400]}; {about}")
    for line, values in found:
        if len(values) != len(names):
            guess = "; is the line cut off?" if len(values) < len(names) else ""
            fields = counted(len(values), "field")
            raise WorkloadError(f"{file}:{line}: has {fields}, where the header has {len(names)}{guess}")
        yield Row(file, line, {name: value.strip() for name, value in zip(names, values, strict=True)})


def _rows(stream: Iterable[bytes], file: str, notes: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with the number of the line in which each begins; empty lines are none."""
    line, raw = 0, b"\n"

    def texts() -> Iterator[str]:
        nonlocal line, raw
        for line, raw in enumerate(stream, 1):
            if len(raw) > LINE_MAX:
                raise WorkloadError(f"{file}:{line}: a line of more than {LINE_MAX:,} bytes; is this a CSV file?")
            try:
                yield raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:  # with signs replaced, two users might become one
                what = f"is not UTF-8 text (byte {error.start} of the line); convert it, such as with iconv"
                raise WorkloadError(f"{file}:{line}: {what}") from None

    begins = 1
    try:
        for values in csv.reader(texts(), strict=True):
            if values:
                yield begins, values
            begins = line + 1
    except csv.Error as error:
        raise WorkloadError(f"{file}:{begins}: not a row of CSV: {error}") from None
    if not raw.endswith((b"\n", b"\r")):
        notes.append(f"the last line has no line end; it was taken as whole ({file}:{line})")
