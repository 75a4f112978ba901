"""The view *queues*: the tree with used, guaranteed, max and demand, one queue, and who uses whose guarantee."""

from __future__ import annotations

from typing import Any, NamedTuple

from licorne.answers.shares import UNGUARANTEED, Borrower, Loan, loans
from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects

from .bars import Bar, bar, ordered, walk, within_guarantees
from .source import ROWS
from .tables import Column, Query, is_within, table
from .view import View, chosen, needs


class Row(NamedTuple):
    """A queue in the table, for one type of resource. `max` and `guaranteed` are None where nothing is set."""

    path: str
    name: str
    depth: int
    queue: objects.Queue
    bar: Bar
    used: int
    guaranteed: int | None
    max: int | None
    waiting: int
    borrowed: int


def _context(found: tuple[objects.Partition, objects.Queue], query: Query) -> dict[str, Any]:
    partition, root = found
    full = partition.capacity.capacity
    types, name = chosen(_types(root, full), query)
    rows: list[Row] = []
    promised = within_guarantees(root, name) is not None
    walk(root, lambda queue, depth: rows.append(_row(queue, depth, name, full, promised=promised)))
    path = query["queue"]
    one = next((row.queue for row in rows if row.path == path), None)
    if path and one is None:
        refuse(404, f"There is no queue {path}")
    lent = loans(_as_borrower(root, name), name) if promised else []
    columns = (
        Column[Row]("queue", "Queue", lambda row: row.path),
        Column[Row]("", "Use"),
        Column[Row]("used", "Used", lambda row: row.used, number=True, unit="amount"),
        Column[Row]("guaranteed", "Guaranteed", lambda row: row.guaranteed or 0, number=True, unit="amount"),
        Column[Row]("borrowed", "Above guarantee", lambda row: row.borrowed, number=True, unit="amount"),
        Column[Row]("max", "Max", lambda row: -1 if row.max is None else row.max, number=True, unit="amount"),
        Column[Row]("waiting", "Waiting", lambda row: row.waiting, number=True, unit="amount"),
        Column[Row]("applications", "Running applications", lambda row: row.queue.running_apps, number=True),
    )
    shown = [row for row in rows if is_within(row.path, path)]
    return {
        "types": types,
        "resource": name,
        "table": table(shown, columns, query, names=lambda row: (row.path,)),
        "flat": bool(query["sort"] or query["filter"]),
        "one": one,
        "amounts": []
        if one is None
        else [
            _row(one, 0, each, full, promised=within_guarantees(root, each) is not None) for each in _types(one, full)
        ],
        "resources": [] if one is None else _types(one, full),
        "loans": _of(lent, path)[:ROWS],
        "loans_all": len(_of(lent, path)),
        "wanted": root.pending_resource.get(name, 0),
        "UNGUARANTEED": UNGUARANTEED,
    }


def _types(queue: objects.Queue, full: objects.Resources) -> list[str]:
    own = (queue.allocated_resource, queue.pending_resource, queue.guaranteed_resource, queue.max_resource)
    return ordered(name for amounts in (full, *own) for name in amounts)


def _row(queue: objects.Queue, depth: int, name: str, full: objects.Resources, *, promised: bool) -> Row:
    used, waiting = queue.allocated_resource.get(name, 0), queue.pending_resource.get(name, 0)
    guaranteed, most = queue.guaranteed_resource.get(name), queue.max_resource.get(name)
    # Without a guarantee of its own, a queue has those of the queues below it; what they do not cover is above them.
    covered = within_guarantees(queue, name)
    if covered is None and promised:
        covered = 0
    most_here = full.get(name, 0) if most is None else most
    drawn = bar(name, used, covered if guaranteed is None else guaranteed, most_here, waiting)
    return Row(
        path=queue.queuename,
        name=queue.queuename.rpartition(".")[2],
        depth=depth,
        queue=queue,
        bar=drawn if guaranteed else drawn._replace(mark=None),
        used=used,
        guaranteed=guaranteed,
        max=most,
        waiting=waiting,
        borrowed=0 if covered is None else max(used - covered, 0),
    )


def _as_borrower(queue: objects.Queue, name: str) -> Borrower:
    return Borrower(
        queue.queuename,
        queue.allocated_resource.get(name, 0),
        queue.guaranteed_resource.get(name) if queue.parent else None,
        tuple(_as_borrower(child, name) for child in queue.children),
    )


def _of(found: list[Loan], path: str) -> list[Loan]:
    """Return the loans that concern a queue or those below it, the largest first; all of them without a queue."""
    some = [loan for loan in found if any(is_within(name, path) for name in (loan.lender, loan.borrower))]
    return sorted(some, key=lambda loan: -loan.amount)


VIEW = View("queues", "Queues", "/queues", needs("partition", "queues"), _context, compared=True)

__all__ = ["VIEW"]
