"""Two moments side by side: what of a view has changed from one to the other (`against=` in its address).

What is compared are the rows of the view's table, column by column; of views without a table, what `facts` of their context returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .tables import Column, Query, Table, table

Facts = Mapping[str, Mapping[str, Any]]


class Change(NamedTuple):
    """A value that is another: of what, which, and before and after; None: it was not there. `difference`: of numbers."""

    name: str
    what: str
    before: Any
    after: Any
    unit: str

    @property
    def difference(self) -> int:
        """How much more it is."""
        return self.after - self.before if isinstance(self.before, int) and isinstance(self.after, int) else 0


def changes(before: Mapping[str, Any], after: Mapping[str, Any], query: Query) -> dict[str, Any]:
    """Return what the template shows of the contexts of one view at two moments."""
    units = {column.title: column.unit for column in after["table"].columns} if "table" in after else {}
    rows = list(_changes(_facts(before), _facts(after), units))
    columns = (
        Column[Change]("name", "Name", lambda row: row.name),
        Column[Change]("what", "What", lambda row: row.what),
        Column[Change]("before", "Before", lambda row: str(row.before), number=True),
        Column[Change]("after", "After", lambda row: str(row.after), number=True),
        Column[Change]("difference", "Difference", lambda row: row.difference, number=True),
    )
    return {
        "resource": after.get("resource", ""),
        "types": after.get("types", []),
        "table": table(rows, columns, query, names=lambda row: (row.name, row.what)),
    }


def _facts(context: Mapping[str, Any]) -> Facts:
    if "table" not in context:
        found: Facts = context["facts"]()
        return found
    shown: Table[Any] = context["table"]
    columns = [column for column in shown.columns if column.by is not None and column.compared]
    return {
        str(shown.name(row)): {column.title: column.by(row) for column in columns if column.by} for row in shown.given
    }


def _changes(before: Facts, after: Facts, units: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            yield Change(name, "", None if was is None else "there", None if now is None else "there", "")
            continue
        for what in dict.fromkeys((*was, *now)):
            if was.get(what) != now.get(what):
                yield Change(name, what, was.get(what), now.get(what), units.get(what, ""))


__all__ = ["changes"]
