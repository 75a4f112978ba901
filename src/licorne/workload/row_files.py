"""Files of rows: CSV, JSON lines or Parquet, by the ending of the name; written row by row.

Parquet is written by polars, from the JSON lines and in pieces, when all rows are there: it stores columns, and rows come one
by one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Generic, TypeVar

import msgspec

from licorne._extras import require
from licorne.workload.row_tables import polars_schema

from .finished import finished_file, opened

Row = TypeVar("Row", bound=msgspec.Struct)
ENDINGS = (".csv", ".jsonl", ".parquet")


class RowFileError(ValueError):
    """The name of a file does not say in which form it is to be written."""


class RowWriter(Generic[Row]):
    """Writes rows of one class to a stream."""

    def __init__(self, stream: IO[bytes], kind: type[Row], *, as_csv: bool) -> None:
        encode = msgspec.json.Encoder().encode
        self.write: Callable[[Row], object] = lambda row: stream.write(encode(row) + b"\n")
        if as_csv:
            names = kind.__struct_fields__
            rows = csv.writer(_Text(stream), lineterminator="\n")
            rows.writerow(names)
            self.write = lambda row: rows.writerow([getattr(row, name) for name in names])


class _Text:
    """A text stream over bytes, for the module csv: it is told whole lines."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.encode())


def check_row_file(path: Path) -> None:
    """Check that rows can be written in the form that the name of a file asks for.

    Raises:
        RowFileError: the name has another ending than those known.
        MissingExtraError: the packages for Parquet are not installed.
    """
    if path.suffix not in ENDINGS:
        raise RowFileError(f"{path}: the ending of the name says the form, and is one of {', '.join(ENDINGS)}")
    if path.suffix == ".parquet":
        require("data")


@contextmanager
def row_file(path: Path, kind: type[Row]) -> Iterator[RowWriter[Row]]:
    """Write rows of a class to a file, which gets its name if the `with` block ends without an error.

    Raises RowFileError and MissingExtraError as `check_row_file`, and OSError for a file that cannot be written.
    """
    check_row_file(path)
    with finished_file(path) as part, opened(part, path) as stream:
        yield RowWriter(stream, kind, as_csv=path.suffix == ".csv")
        if path.suffix == ".parquet":
            stream.close()
            _to_parquet(part, kind)


def _to_parquet(part: Path, kind: type[msgspec.Struct]) -> None:
    """Turn a file of JSON lines into one of Parquet."""
    import polars as pl  # noqa: PLC0415  # it is loaded only where it is wanted

    schema = polars_schema(kind)
    rows = part.with_name(part.name + ".jsonl")
    part.rename(rows)
    try:
        pl.scan_ndjson(rows, schema=schema).sink_parquet(part)
    finally:
        rows.unlink(missing_ok=True)
