"""Rows as a table, for programs that calculate with columns: polars, pandas, and whatever else reads Arrow.

A table keeps the rows, and makes columns of them when they are asked for, by polars (extra `data`). It has the Arrow PyCapsule
interface, so `polars.DataFrame(table)`, `pyarrow.table(table)` and others read it without a file in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from licorne._extras import require

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = TypeVar("Row", bound=msgspec.Struct)
SHOWN_ROWS = 10
"""Rows of a table that a notebook displays."""


def polars_schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of the columns for a class of rows, as polars names them."""
    import polars as pl  # noqa: PLC0415  # it is loaded only where it is wanted

    types: dict[type, Any] = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    return {name: types[_plain(hint)] for name, hint in get_type_hints(kind).items()}


def _plain(hint: object) -> type:
    """Return the type of a column: that of a field which may be None, or whose values are listed; text for what has parts."""
    if isinstance(hint, type) and not get_args(hint):
        return hint
    if hasattr(hint, "__origin__") and isinstance(hint.__origin__, type):  # dict[str, float], tuple[str, ...]: as JSON
        return str
    first = get_args(hint)[0]
    return first if isinstance(first, type) else type(first)


class Table(Generic[Row]):
    """Rows of one class, in order. What is displayed of it are the first rows; `len` and iteration are those of the rows.

    A field that has parts, such as a map, is a column of text: JSON.
    """

    def __init__(self, kind: type[Row], rows: Sequence[Row]) -> None:
        self.kind = kind
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<{len(self.rows):,} rows of {self.kind.__name__}: {', '.join(self.kind.__struct_fields__)}>"

    def columns(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        return {name: [_cell(getattr(row, name)) for row in self.rows] for name in self.kind.__struct_fields__}

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a data frame of polars.

        Raises:
            MissingExtraError: the extra `data` is not installed.
        """
        require("data")
        import polars as pl  # noqa: PLC0415  # it is loaded only where it is wanted

        return pl.DataFrame(self.columns(), schema=polars_schema(self.kind))

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame of pandas, which no extra installs; whole numbers that may be missing are `Int64`.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415  # it is loaded only where it is wanted

        types = {str: "object", int: "Int64", float: "float64", bool: "boolean"}
        hints = get_type_hints(self.kind)
        return pd.DataFrame(
            {name: pd.Series(values, dtype=types[_plain(hints[name])]) for name, values in self.columns().items()}
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow (PyCapsule interface).

        Raises:
            MissingExtraError: the extra `data` is not installed.
        """
        return self.to_polars().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for notebooks."""
        return html_table(
            self.kind.__struct_fields__, [msgspec.structs.astuple(row) for row in self.rows[:SHOWN_ROWS]]
        ) + (f"<p>{len(self.rows) - SHOWN_ROWS:,} more rows</p>" if len(self.rows) > SHOWN_ROWS else "")


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as HTML; numbers stand at the right, and None is a dash."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f'<td style="text-align: left">{"–" if value is None else escape(str(value))}</td>'
    return f'<td style="text-align: right">{value:,}</td>'


def _cell(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list | tuple) else value
