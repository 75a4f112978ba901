"""The query of a page, and tables: sorted, filtered and paged on the server, so that they work without a script.

`sort=NAME` sorts by a column, `sort=-NAME` downwards; `filter=TEXT` keeps the rows that have the text in any of their names;
`page=2` shows the next `ROWS` of them. Each is part of the address, so a table can be sent to somebody as it is seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from .source import ROWS

Row = TypeVar("Row")
KEPT: Final = ("partition", "t", "against", "every", "step")
"""Parameters that stay from one view to the next: what is looked at, at which time, and how often anew."""


class Query:
    """The parameters of a page's address."""

    def __init__(self, path: str, given: Mapping[str, str]) -> None:
        self.path = path
        self._given = {name: value for name, value in given.items() if value}

    def __getitem__(self, name: str) -> str:
        """Return a parameter; empty if it is not given."""
        return self._given.get(name, "")

    def number(self, name: str) -> int:
        """Return a parameter that counts from 1; 1 if it is not such a number."""
        text = self[name]
        return max(int(text), 1) if text.isascii() and text.isdigit() and len(text) < 10 else 1

    def link(self, path: str = "", /, **changes: object) -> str:
        """Return the address with these parameters instead; to another path only those go along that are about all views."""
        kept = {name: self[name] for name in KEPT} if path and path != self.path else self._given
        found = {name: str(value) for name, value in {**kept, **changes}.items() if value not in ("", None)}
        query = f"?{urlencode(found, errors='replace')}" if found else ""
        return (path or self.path) + query

    def seconds(self, name: str, most: float) -> float | None:
        """Return a parameter that is a number of seconds, not above `most`; None if it is no such number."""
        text = self[name]
        return min(max(float(text), 1.0), most) if re.fullmatch("[0-9]{1,9}([.][0-9]{1,9})?", text) else None

    def hidden(self, *without: str) -> list[tuple[str, str]]:
        """Return the parameters that a form keeps besides those that it asks for."""
        return [(name, value) for name, value in self._given.items() if name not in (*without, "page")]


def is_within(queue: str, path: str) -> bool:
    """Return whether a queue is the one at `path`, or below it; any is if the path is empty."""
    return not path or f"{queue}.".startswith(f"{path}.")


class Column(NamedTuple, Generic[Row]):
    """A column: its name in addresses, its title, and by what rows are sorted. `number`: right-aligned, largest first.

    `unit`: `amount` for those of the type of resource that is shown. `compared`: it is, between two moments.
    """

    name: str
    title: str
    by: Callable[[Row], Any] | None = None
    number: bool = False
    unit: str = ""
    compared: bool = True


class Table(NamedTuple, Generic[Row]):
    """One page of a table. `all`: rows before filtering; `found`: after it; `given`: these rows, `name` says which each is."""

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    all: int
    found: int
    page: int
    pages: int
    sort: str
    param: str = "page"
    given: Sequence[Row] = ()
    name: Callable[[Row], str] = str


def table(
    rows: Iterable[Row],
    columns: Sequence[Column[Row]],
    query: Query,
    *,
    names: Callable[[Row], Iterable[str]],
    sort: str = "",
) -> Table[Row]:
    """Return the page of a table that a query asks for. `names`: what of a row is searched; `sort`: the order by default."""
    given = list(rows)
    wanted = query["filter"].casefold()
    found = [row for row in given if any(wanted in name.casefold() for name in names(row))] if wanted else list(given)
    by = {column.name: column.by for column in columns if column.by is not None}
    order = query["sort"] if query["sort"].removeprefix("-") in by else sort
    key = by.get(order.removeprefix("-"))
    if key is not None:
        found.sort(key=key, reverse=order.startswith("-"))
    pages = max((len(found) - 1) // ROWS + 1, 1)
    page = min(query.number("page"), pages)
    shown = found[(page - 1) * ROWS : page * ROWS]
    return Table(
        columns, shown, len(given), len(found), page, pages, order, given=given, name=lambda row: next(iter(names(row)))
    )


def part(rows: Sequence[Row], total: int, query: Query, param: str) -> Table[Row]:
    """Return a page of a table that is known only in part: `rows` are those of the page that the parameter `param` names."""
    return Table((), rows, total, total, query.number(param), max((total - 1) // ROWS + 1, 1), "", param)


__all__ = ["KEPT", "Column", "Query", "Table", "is_within", "part", "table"]
