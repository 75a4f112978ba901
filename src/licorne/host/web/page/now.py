"""The view *now*: how much there is and is used, what waits, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from licorne._wording import counted
from licorne.si import rest_objects as objects
from licorne.workload.quantities import amount

from .applications import ENDED
from .bars import bar, ordered, walk, within_guarantees
from .source import Applications, Figures, Nodes
from .view import Query, Row, View, needs

NAMED = 4
"""Things of one kind that need attention and are named; the others are counted."""
LONGEST = 8
"""Applications that wait, of which the view shows the first."""
_Case = tuple[str, int, int, int]
"""A type of resource, and amounts of it at a queue: what is used, the guarantee or max, and what pods wait for."""


def _context(
    query: Query, partition: objects.Partition, root: objects.Queue, apps: Applications, nodes: Nodes, figures: Figures
) -> dict[str, Any]:
    live = [each for each in apps if each.app.application_state not in ENDED]
    resources = list(_resources(partition, root))
    pods = {what: sum(getattr(each, what) for each in live) for what in ("running", "waiting")}
    waiting = sorted((each for each in live if each.waiting), key=lambda each: each.app.submission_time)
    return {
        "resources": resources,
        **pods,
        "applications": len(live),
        "running_applications": sum(each.running > 0 for each in live),
        "nodes": len(nodes),
        "rate": figures.rate,
        "findings": list(_findings(query, root, apps, nodes, figures)),
        "first": waiting[:LONGEST],
        "waiting_applications": len(waiting),
        "minutes": figures.minutes,
        "facts": lambda: {
            "Pods": pods,
            "Cluster": {"applications": len(live), "nodes": len(nodes)},
            **{
                row.name: {what: amount(row.name, getattr(row, what)) for what in ("used", "full", "waiting")}
                for row in resources
            },
        },
    }


def _resources(partition: objects.Partition, root: objects.Queue) -> Iterator[Row]:
    """Yield how much of each type of resource there is, is used and waits."""
    full = partition.capacity.capacity
    for name in ordered((*full, *root.allocated_resource, *root.pending_resource)):
        used, waits, most = (each.get(name, 0) for each in (root.allocated_resource, root.pending_resource, full))
        if used or waits or most:
            drawn = bar(name, used, within_guarantees(root, name), most, waits)._replace(mark=None)
            yield Row(name=name, bar=drawn, used=used, full=most, waiting=waits)


def _findings(
    query: Query, root: objects.Queue, applications: Applications, nodes: Nodes, figures: Figures
) -> Iterator[Row]:
    """Yield what needs attention: how it is marked, what it is, and where it is seen."""
    for check in figures.health.health_checks if figures.health else ():
        if not check.succeeded:
            text = f"Health check failed: {check.name}. {check.diagnosis_message}"
            yield Row(kind="refused", text=text, link=query.link("/configuration"))
    yield from _of_queues(root, query)
    off = [each.node.node_id for each in nodes if not each.node.schedulable]
    if off:
        names = [name[:60] for name in off[:NAMED]] + [f"{len(off) - NAMED:,} more"] * (len(off) > NAMED)
        text = f"{counted(len(off), 'node')} without new pods, as cordoned or draining: {', '.join(names)}"
        yield Row(kind="waiting", text=text, link=query.link("/nodes", state="unschedulable"))
    reserved = sum(each.node.is_reserved for each in nodes)
    if reserved:
        text = f"{reserved:,} of {counted(len(nodes), 'node')} reserved: kept for pods that wait, closed to others"
        yield Row(kind="waiting", text=text, link=query.link("/nodes", state="reserved"))
    rejected = sum(each.app.application_state == "Rejected" for each in applications)
    if rejected:
        text = f"{counted(rejected, 'application')} rejected, of those that are remembered"
        yield Row(kind="refused", text=text, link=query.link("/applications", state="Rejected"))


def _of_queues(root: objects.Queue, query: Query) -> Iterator[Row]:
    """Yield one line for each queue that waits below its guarantee or at its max, with all types of resources for which it does."""
    below, full = dict[str, list[_Case]](), dict[str, list[_Case]]()
    for queue, _ in walk(root):
        for name in ordered(name for name, waits in queue.pending_resource.items() if waits):
            used, waits = queue.allocated_resource.get(name, 0), queue.pending_resource[name]
            owed, most = queue.guaranteed_resource.get(name, 0), queue.max_resource.get(name)
            if used < owed:
                below.setdefault(queue.queuename, []).append((name, used, owed, waits))
            elif queue.parent and most is not None and used + waits > most and queue.is_leaf:
                full.setdefault(queue.queuename, []).append((name, used, most, waits))
    for found, kind, what in ((below, "guaranteed", "below its guarantee"), (full, "waiting", "at its max")):
        for path, cases in list(found.items())[:NAMED]:
            text = f"{path} is {what}: {'; '.join(_of(*case) for case in cases)}"
            yield Row(kind=kind, text=text, link=query.link("/queues", queue=path, resource=cases[0][0]))
        if len(found) > NAMED:
            text = f"{counted(len(found) - NAMED, 'more queue')} with pods that wait, each {what}"
            yield Row(kind=kind, text=text, link=query.link("/queues", sort="-waiting"))


def _of(name: str, used: int, most: int, waits: int) -> str:
    """Return three amounts of a type, the unit of the first two once: `3 of 16 cores used, 2 cores waiting`."""
    bound = amount(name, most)
    _, space, unit = bound.rpartition(" ")
    number = amount(name, used).removesuffix(f" {unit}") if space else amount(name, used)
    kind = "" if name in ("vcore", "memory") else f" {name}"
    return f"{number} of {bound}{kind} used, {amount(name, waits)} waiting"


VIEW = View(
    "now", "Now", "/", needs("partition", "queues", "applications", "nodes", "figures"), _context, compared=True
)
