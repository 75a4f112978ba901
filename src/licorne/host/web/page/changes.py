"""Two moments side by side: what of a view has changed from one to the other (`against=` in its address).

What is compared are the rows of the view's table, column by column; of views without a table, what `facts` of their context returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .tables import Query, Table, columns, table

Facts = Mapping[str, Mapping[str, Any]]


class Change(NamedTuple):
    """A value that is another: of what, which, and before and after; an empty `what`: all of it was not there, or is no more. `difference`: of numbers."""

    name: str
    what: str
    before: Any
    after: Any
    kind: str

    @property
    def difference(self) -> int:
        """How much more it is."""
        return self.after - self.before if isinstance(self.before, int) and isinstance(self.after, int) else 0


def changes(before: Mapping[str, Any], after: Mapping[str, Any], query: Query) -> dict[str, Any]:
    """Return what the template shows of the contexts of one view at two moments."""
    kinds = {column.title: column.kind for column in after["table"].columns} if "table" in after else {}
    shown = columns(
        "name, what, before#, after#, difference#", before=lambda row: str(row.before), after=lambda row: str(row.after)
    )
    return {
        "resource": after.get("resource", ""),
        "types": after.get("types", []),
        "table": table(_changes(_facts(before), _facts(after), kinds), shown, query),
    }


def _facts(context: Mapping[str, Any]) -> Facts:
    if "table" not in context:
        return context["facts"]()  # type: ignore[no-any-return]
    shown: Table = context["table"]
    first, *others = [column for column in shown.columns if column.by is not None and column.kind != "%"]
    return {str(first.by(row)): {each.title: each.by(row) for each in (first, *others)} for row in shown.given}  # type: ignore[misc]


def _changes(before: Facts, after: Facts, kinds: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was is None or now is None:
            yield Change(name, "", was, now, "")
            continue
        for what in dict.fromkeys((*was, *now)):
            if was.get(what) != now.get(what):
                yield Change(name, what, was.get(what), now.get(what), kinds.get(what, ""))
