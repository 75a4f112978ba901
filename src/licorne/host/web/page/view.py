"""What a view is: which objects it asks a source for, and a pure function from these and the query to what its template shows.

Tables are sorted, filtered and paged here, so that they work without a script: `sort=NAME` sorts by a column, `sort=-NAME`
downwards; `filter=TEXT` keeps the rows that have the text in any of their texts; `page=2` shows the next `ROWS` of them. Each is
part of the address, so a table can be sent to somebody as it is seen. Of two moments side by side (`against=` in the address)
the rows of the view's table are compared, column by column, or what `facts` of its context returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from .bars import ordered
from .live import LiveSource
from .source import ROWS, DumpSource

Source = LiveSource | DumpSource
Fetch = Callable[[Source, str, "Query"], Coroutine[Any, Any, tuple[Any, ...]]]
Facts = Mapping[str, Mapping[str, Any]]
Row = SimpleNamespace
"""What a template shows of one thing, such as a row of a table."""
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


class Column(NamedTuple):
    """A column of a table: its name in addresses, its title, and `by`, which gives the value of a row (None: the column is a picture).

    `kind`: empty for a text, `#` for a number, `$` for an amount of the type of resource that is shown, `%` for a part of 1, which
    is not compared between two moments. All but texts are right-aligned, and sorted with the largest first.
    """

    name: str
    title: str
    by: Callable[[Any], Any] | None
    kind: str


def columns(wanted: str, resource: str = "", **by: Callable[[Any], Any]) -> list[Column]:
    """Return the columns that a text such as `queue, bar- Use, running# Pods running, used$=app.used_resource` names.

    Each has a name, its kind (`-`: a picture), an attribute of the row if that has another name, and a title if that is another word.
    `by`: functions in place of attributes, by the name of the column; `resource`: the type of which amounts are shown.
    """
    found = []
    for name, kind, path, title in re.findall(r"(\w+)([#$%-]?)(?:=([\w.]+))?(?: ([\w ]+))?(?:, |$)", wanted):
        value = by.get(name) or attrgetter(path or name)
        shown = None if kind == "-" else partial(_amount, value, resource) if kind == "$" else value
        found.append(Column(name, title or name.capitalize(), shown, kind.strip("-")))
    return found


def _amount(by: Callable[[Any], Any], resource: str, row: Any) -> int | None:
    found = by(row)
    return found.get(resource, 0) if isinstance(found, Mapping) else found  # type: ignore[no-any-return]


class Table(NamedTuple):
    """One page of a table. `all`: rows before filtering; `found`: after it; `given`: all these rows."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    all: int
    found: int
    page: int
    pages: int
    sort: str
    param: str = "page"
    given: Sequence[Any] = ()


def table(rows: Iterable[Any], shown: Sequence[Column], query: Query, sort: str = "") -> Table:
    """Return the page of a table that a query asks for. The texts of a row are searched; `sort`: the order by default."""
    given = list(rows)
    by = {column.name: column.by for column in shown if column.by is not None}
    texts = [by[column.name] for column in shown if column.name in by and not column.kind]
    wanted = query["filter"].casefold()
    found = [row for row in given if any(wanted in str(text(row)).casefold() for text in texts)] if wanted else given[:]
    order = query["sort"] if query["sort"].removeprefix("-") in by else sort
    key = by.get(order.removeprefix("-"))
    if key is not None:
        found.sort(key=lambda row: -1 if (value := key(row)) is None else value, reverse=order.startswith("-"))
    pages = max((len(found) - 1) // ROWS + 1, 1)
    page = min(query.number("page"), pages)
    return Table(shown, found[(page - 1) * ROWS : page * ROWS], len(given), len(found), page, pages, order, given=given)


def part(rows: Sequence[Any], total: int, query: Query, param: str) -> Table:
    """Return a page of a table that is known only in part: `rows` are those of the page that the parameter `param` names."""
    return Table((), rows, total, total, query.number(param), max((total - 1) // ROWS + 1, 1), "", param)


def needs(*names: str) -> Fetch:
    """Return a function that asks a source for objects about a partition, each by the method of this name."""

    async def fetch(source: Source, partition: str, _query: Query) -> tuple[Any, ...]:
        return tuple([await getattr(source, name)(partition) for name in names])

    return fetch


class View(NamedTuple):
    """A view: its name, which is that of its template, its title and its path.

    `fetch` asks the source for the objects about a partition; it runs in the loop of the scheduler, and only waits. `context` is
    given the query and these objects, and makes what the template shows; it runs in a thread. `nav`: it stands in the navigation;
    `parent`: the name of the view under which it is found there. `live`: it is cheap enough to be asked for again whenever
    something has changed; `compared`: two moments of it are.
    """

    name: str
    title: str
    path: str
    fetch: Fetch
    context: Callable[..., dict[str, Any]]
    nav: bool = True
    parent: str = ""
    live: bool = True
    compared: bool = False


def chosen(types: Iterable[str], query: Query) -> tuple[list[str], str]:
    """Return the types of resources in order, and the one that the address names, or the first."""
    found = ordered(types)
    wanted = query["resource"]
    return found, wanted if wanted in found else found[0] if found else ""


# -- two moments side by side --------------------------------------------------------------------------------


def changes(view: View, query: Query, *found: tuple[Any, ...]) -> dict[str, Any]:
    """Return what the template shows of a view at two moments, of which the objects are given."""
    before, after = (view.context(query, *each) for each in found)
    kinds = {column.title: column.kind for column in after["table"].columns} if "table" in after else {}
    shown = columns("name, what, before#=sorted_before, after#=sorted_after, difference#")
    rows = _changes(_facts(before), _facts(after), kinds)
    return {"types": after.get("types", []), "resource": after.get("resource", ""), "table": table(rows, shown, query)}


def _facts(context: Mapping[str, Any]) -> Facts:
    if "table" not in context:
        return context["facts"]()  # type: ignore[no-any-return]
    shown: Table = context["table"]
    first, *others = [column for column in shown.columns if column.by is not None and column.kind != "%"]
    return {str(first.by(row)): {each.title: each.by(row) for each in (first, *others)} for row in shown.given}  # type: ignore[misc]


def _changes(before: Facts, after: Facts, kinds: Mapping[str, str]) -> Iterator[Row]:
    """Yield the values that are others; an empty `what`: all of it was not there, or is no more."""
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        found: dict[str, tuple[Any, Any]] = {"": (was, now)}
        if was is not None and now is not None:
            found = {what: (was.get(what), now.get(what)) for what in dict.fromkeys((*was, *now))}
        for what, (one, other) in found.items():
            if one != other:
                more = other - one if isinstance(one, int) and isinstance(other, int) else 0
                row = {"before": one, "after": other, "sorted_before": str(one), "sorted_after": str(other)}
                yield Row(name=name, what=what, kind=kinds.get(what, ""), difference=more, **row)
