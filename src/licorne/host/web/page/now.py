"""The view *now*: how much there is and is used, what waits, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from licorne._wording import counted
from licorne.si import rest_objects as objects
from licorne.workload.quantities import amount

from .applications import ENDED
from .bars import Bar, bar, ordered, walk, within_guarantees
from .source import ApplicationSummary, Figures, NodeSummary
from .tables import Query
from .view import View, needs

if TYPE_CHECKING:
    from licorne.host.web.health import Health

NAMED = 4
"""Things of one kind that need attention and are named; the others are counted."""
LONGEST = 8
"""Applications that wait, of which the view shows the first."""


_Objects = tuple[
    objects.Partition, objects.Queue, Sequence[ApplicationSummary], Sequence[NodeSummary], "Health | None", Figures
]


class Finding(NamedTuple):
    """Something that needs attention: how it is marked, what it is, and where it is seen."""

    kind: str
    text: str
    link: str


class _Case(NamedTuple):
    """A queue that waits for a type, what it uses of a bound, and what waits."""

    queue: objects.Queue
    resource: str
    used: int
    bound: int
    waits: int


class Resource(NamedTuple):
    """A type of resource of the cluster: how much there is, is used and waits."""

    name: str
    bar: Bar
    used: int
    full: int
    waiting: int


def _context(found: _Objects, query: Query) -> dict[str, Any]:
    partition, root, applications, nodes, _health, figures = found
    live = [each for each in applications if each.app.application_state not in ENDED]
    resources = list(_resources(partition, root))
    pods = {"running": sum(each.running for each in live), "waiting": sum(each.waiting for each in live)}
    waiting = sorted((each for each in live if each.waiting), key=lambda each: each.app.submission_time)
    return {
        "partition": partition,
        "resources": resources,
        **pods,
        "applications": len(live),
        "running_applications": sum(each.running > 0 for each in live),
        "nodes": len(nodes),
        "rate": figures.rate,
        "findings": list(_findings(found, query)),
        "first": waiting[:LONGEST],
        "waiting_applications": len(waiting),
        "history": _history(figures),
        "facts": lambda: {
            "Pods": pods,
            "Cluster": {"applications": len(live), "nodes": len(nodes)},
            **{
                each.name: {
                    "used": amount(each.name, each.used),
                    "of": amount(each.name, each.full),
                    "waiting": amount(each.name, each.waiting),
                }
                for each in resources
            },
        },
    }


def _resources(partition: objects.Partition, root: objects.Queue) -> Iterator[Resource]:
    full = partition.capacity.capacity
    for name in ordered((*full, *root.allocated_resource, *root.pending_resource)):
        used, waits = root.allocated_resource.get(name, 0), root.pending_resource.get(name, 0)
        if used or waits or full.get(name):
            drawn = bar(name, used, within_guarantees(root, name), full.get(name, 0), waits)
            yield Resource(name, drawn._replace(mark=None), used, full.get(name, 0), waits)


def _history(figures: Figures) -> dict[str, Any] | None:
    """Return the curve of containers as points of a line, 300 by 60."""
    values = [containers for _, _, containers in figures.minutes]
    if len(values) < 2:
        return None
    most = max(*values, 1)
    points = " ".join(
        f"{at * 300 / (len(values) - 1):.1f},{58 - 56 * value / most:.1f}" for at, value in enumerate(values)
    )
    return {"points": points, "most": max(values), "since_ns": figures.minutes[0][0], "last": values[-1]}


# -- what needs attention ------------------------------------------------------------------------------------


def _findings(found: _Objects, query: Query) -> Iterator[Finding]:
    _partition, root, applications, nodes, health, _figures = found
    for check in () if health is None else health.health_checks:
        if not check.succeeded:
            text = f"Health check failed: {check.name}. {check.diagnosis_message}"
            yield Finding("refused", text, query.link("/configuration"))
    yield from _of_queues(root, query)
    off = [each.node.node_id for each in nodes if not each.node.schedulable]
    if off:
        text = f"{counted(len(off), 'node')} without new pods, as cordoned or draining: {_named(off)}"
        yield Finding("waiting", text, query.link("/nodes", state="unschedulable"))
    rejected = sum(each.app.application_state == "Rejected" for each in applications)
    if rejected:
        link = query.link("/applications", state="Rejected")
        yield Finding("refused", f"{counted(rejected, 'application')} rejected, of those that are remembered", link)


def _of_queues(root: objects.Queue, query: Query) -> Iterator[Finding]:
    below: list[_Case] = []
    full: list[_Case] = []

    def look(queue: objects.Queue, _depth: int) -> None:
        for name in ordered(name for name, waits in queue.pending_resource.items() if waits):
            used, waits = queue.allocated_resource.get(name, 0), queue.pending_resource[name]
            owed, most = queue.guaranteed_resource.get(name, 0), queue.max_resource.get(name)
            if used < owed:
                below.append(_Case(queue, name, used, owed, waits))
            elif queue.parent and most is not None and used + waits > most and queue.is_leaf:
                full.append(_Case(queue, name, used, most, waits))

    walk(root, look)
    yield from _first(below, "guaranteed", "guaranteed", "below their guarantee with pods that wait", query)
    yield from _first(full, "waiting", "that its max permits", "at their max with pods that wait", query)


def _of(name: str, used: int, most: int) -> str:
    """Return two amounts of a type, the unit once: `3 of 16 cores`."""
    number = amount(name, used)
    unit = amount(name, most).rpartition(" ")[2]
    number = number.removesuffix(f" {unit}") if " " in amount(name, most) else number
    kind = "" if name in ("vcore", "memory") else f" {name}"
    return f"{number} of {amount(name, most)}{kind}"


def _first(found: list[_Case], kind: str, bound: str, what: str, query: Query) -> Iterator[Finding]:
    for queue, name, used, most, waits in found[:NAMED]:
        text = f"{queue.queuename} uses {_of(name, used, most)} {bound}, and {amount(name, waits)} wait"
        yield Finding(kind, text, query.link("/queues", queue=queue.queuename, resource=name))
    if len(found) > NAMED:
        text = f"{counted(len(found) - NAMED, 'more case')} of queues {what}"
        yield Finding(kind, text, query.link("/queues", sort="-waiting"))


def _named(names: Iterable[str]) -> str:
    """Return the first of some names, and how many there are besides."""
    listed = list(names)
    more = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
    return ", ".join(name[:60] for name in islice(listed, NAMED)) + more


NEEDS = ("partition", "queues", "applications", "nodes", "health", "figures")
VIEW = View("now", "Now", "/", needs(*NEEDS), _context, compared=True)

__all__ = ["VIEW"]
