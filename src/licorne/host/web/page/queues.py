"""The view *queues*: the tree with used, guaranteed, max and demand, one queue, and who uses whose guarantee."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from licorne.answers.shares import UNGUARANTEED, Borrower, loans
from licorne.host.web.rest.errors import refuse
from licorne.si import rest_objects as objects

from .bars import bar, ordered, walk, within_guarantees
from .source import ROWS
from .view import Query, Row, View, chosen, columns, is_within, needs, table

COLUMNS = (
    "queue=path, bar- Use, used$, guaranteed$, borrowed$ Above guarantee, max$, waiting$, "
    "applications#=queue.running_apps Applications in state Running"
)


def _context(query: Query, partition: objects.Partition, root: objects.Queue) -> dict[str, Any]:
    full = partition.capacity.capacity
    types, name = chosen(_types(root, full), query)
    promised = cache(lambda each: within_guarantees(root, each) is not None)
    path = query["queue"]
    one = next((queue for queue, _ in walk(root) if queue.queuename == path), None)
    if path and one is None:
        refuse(404, f"There is no queue {path}")
    scale = (one or root).max_resource.get(name) or full.get(name, 0)
    rows = [_row(queue, depth, name, full.get(name, 0), promised, scale) for queue, depth in walk(root)]
    above = [row.queue for row in rows if is_within(path, row.path)]
    own_types = () if one is None else _types(one, full)
    amounts = [
        (each, _row(above[-1], 0, each, full.get(each, 0), promised, 0), _left(above, each)) for each in own_types
    ]
    lent = [
        loan
        for loan in (loans(_as_borrower(root, name), name) if promised(name) else ())
        if is_within(loan.lender, path) or is_within(loan.borrower, path)
    ]
    return {
        "types": types,
        "resource": name,
        "table": table((row for row in rows if is_within(row.path, path)), columns(COLUMNS), query),
        "scale": scale,
        "flat": bool(query["sort"] or query["filter"]),
        "one": one,
        "amounts": amounts,
        "loans": sorted(lent, key=lambda loan: -loan.amount)[:ROWS],
        "loans_all": len(lent),
        "wanted": root.pending_resource.get(name, 0),
        "UNGUARANTEED": UNGUARANTEED,
    }


def _types(queue: objects.Queue, full: objects.Resources) -> list[str]:
    own = (queue.allocated_resource, queue.pending_resource, queue.guaranteed_resource, queue.max_resource)
    return ordered(name for amounts in (full, *own) for name in amounts)


def _row(queue: objects.Queue, depth: int, name: str, size: int, promised: Callable[[str], bool], scale: int) -> Row:
    """Return the row of a queue for one type of resource; `max` and `guaranteed` of the row are None if the queue sets none."""
    used, waiting = queue.allocated_resource.get(name, 0), queue.pending_resource.get(name, 0)
    guaranteed, most = queue.guaranteed_resource.get(name), queue.max_resource.get(name)
    # Without a guarantee of its own, a queue has those of the queues below it; what they do not cover is above them.
    covered = within_guarantees(queue, name)
    if covered is None and promised(name):
        covered = 0
    drawn = bar(name, used, guaranteed or covered, size if most is None else most, waiting, scale)
    return Row(
        path=queue.queuename,
        depth=depth,
        queue=queue,
        bar=drawn if guaranteed else drawn._replace(mark=None),
        used=used,
        guaranteed=guaranteed,
        max=most,
        waiting=waiting,
        lacking=min(max((guaranteed or 0) - used, 0), waiting),
        borrowed=0 if covered is None else max(used - covered, 0),
    )


def _left(above: list[objects.Queue], name: str) -> int | None:
    """Return what is left under each max of a queue and those above it; None where there is none."""
    bounds = [each for each in above if name in each.max_resource]
    return min((each.max_resource[name] - each.allocated_resource.get(name, 0) for each in bounds), default=None)


def _as_borrower(queue: objects.Queue, name: str) -> Borrower:
    return Borrower(
        queue.queuename,
        queue.allocated_resource.get(name, 0),
        queue.guaranteed_resource.get(name) if queue.parent else None,
        tuple(_as_borrower(child, name) for child in queue.children),
    )


VIEW = View("queues", "Queues", "/queues", needs("partition", "queues"), _context, compared=True)
