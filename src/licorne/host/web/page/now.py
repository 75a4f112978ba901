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


_Case = tuple[objects.Queue, str, int, int]
"""A queue that waits for a type, what it uses of a bound, and the bound."""


def _context(
    query: Query, partition: objects.Partition, root: objects.Queue, apps: Applications, nodes: Nodes, figures: Figures
) -> dict[str, Any]:
    live = [each for each in apps if each.app.application_state not in ENDED]
    resources = list(_resources(partition, root))
    pods = {"running": sum(each.running for each in live), "waiting": sum(each.waiting for each in live)}
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
                each.name: {
                    what: amount(each.name, value)
                    for what, value in (("used", each.used), ("of", each.full), ("waiting", each.waiting))
                }
                for each in resources
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


# -- what needs attention ------------------------------------------------------------------------------------


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
        more = f" and {len(off) - NAMED:,} more" if len(off) > NAMED else ""
        text = f"{counted(len(off), 'node')} without new pods, as cordoned or draining: "
        text += ", ".join(name[:60] for name in off[:NAMED]) + more
        yield Row(kind="waiting", text=text, link=query.link("/nodes", state="unschedulable"))
    rejected = sum(each.app.application_state == "Rejected" for each in applications)
    if rejected:
        text = f"{counted(rejected, 'application')} rejected, of those that are remembered"
        yield Row(kind="refused", text=text, link=query.link("/applications", state="Rejected"))


def _of_queues(root: objects.Queue, query: Query) -> Iterator[Row]:
    below, full = list[_Case](), list[_Case]()
    for queue, _ in walk(root):
        for name in ordered(name for name, waits in queue.pending_resource.items() if waits):
            used, waits = queue.allocated_resource.get(name, 0), queue.pending_resource[name]
            owed, most = queue.guaranteed_resource.get(name, 0), queue.max_resource.get(name)
            if used < owed:
                below.append((queue, name, used, owed))
            elif queue.parent and most is not None and used + waits > most and queue.is_leaf:
                full.append((queue, name, used, most))
    for found, kind, bound, what in (
        (below, "guaranteed", "guaranteed", "below their guarantee"),
        (full, "waiting", "that its max permits", "at their max"),
    ):
        for queue, name, used, bounds in found[:NAMED]:
            waits_for = amount(name, queue.pending_resource[name])
            text = f"{queue.queuename} uses {_of(name, used, bounds)} {bound}, and {waits_for} wait"
            yield Row(kind=kind, text=text, link=query.link("/queues", queue=queue.queuename, resource=name))
        if len(found) > NAMED:
            text = f"{counted(len(found) - NAMED, 'more case')} of queues {what} with pods that wait"
            yield Row(kind=kind, text=text, link=query.link("/queues", sort="-waiting"))


def _of(name: str, used: int, most: int) -> str:
    """Return two amounts of a type, the unit once: `3 of 16 cores`."""
    number = amount(name, used)
    unit = amount(name, most).rpartition(" ")[2]
    number = number.removesuffix(f" {unit}") if " " in amount(name, most) else number
    kind = "" if name in ("vcore", "memory") else f" {name}"
    return f"{number} of {amount(name, most)}{kind}"


NEEDS = ("partition", "queues", "applications", "nodes", "figures")
VIEW = View("now", "Now", "/", needs(*NEEDS), _context, compared=True)
