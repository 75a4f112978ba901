"""What bounds the usage of an application, told for people: the quotas of its queues, the limits of its user and group.

Decisions compare vectors with these bounds one by one (`licorne.core.scheduling.descent`). Reasons, events and the hint
for autoscaling need all of them, and amounts by name; they take both from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from licorne.core.constants import UNLIMITED

if TYPE_CHECKING:
    from licorne.core.amounts.types import Types
    from licorne.core.amounts.vectors import Vec

    from .application import Application
    from .queue import Queue
    from .usage import Tracker


class Bound(NamedTuple):
    """A queue with its quota, or a user or group with its limit, and what is used of it."""

    level: Queue | Tracker
    limit: Vec
    used: Vec


def queue_bounds(app: Application, *, cluster: bool = True) -> Iterator[Bound]:
    """Yield the quota of each queue of the application, from its leaf to the root: that of root is the size of the cluster.

    Without `cluster` that one is left out: it does not count for an ask that requires its node.
    """
    for queue in app.queue.lineage():
        if cluster or queue.parent is not None:
            yield Bound(queue, queue.limit, queue.allocated)


def user_bounds(app: Application) -> Iterator[Bound]:
    """Yield each limit of resources that applies to the application's user and group."""
    for tracker in app.trackers:
        if tracker.limit is not None:
            yield Bound(tracker, tracker.limit, tracker.used)


def missing(types: Types, limit: Vec, used: Vec, wanted: Vec) -> dict[str, int]:
    """Return by how much `wanted` exceeds what the limit leaves, by the names of the types, in their order."""
    lacking = {}
    for d, amount in enumerate(wanted.values()):
        if amount > 0 and limit.at(d) != UNLIMITED:
            lack = amount - max(0, limit.at(d) - used.at(d))
            if lack > 0:
                lacking[types.names[d]] = lack
    return dict(sorted(lacking.items()))


def available(types: Types, bounds: Iterable[Bound]) -> dict[str, int]:
    """Return what all the bounds together leave, by the names of the types; a type that none of them limits is left out."""
    room: dict[str, int] = {}
    for _, limit, used in bounds:
        for d, most in enumerate(limit.values()):
            if most != UNLIMITED:
                left = max(0, most - used.at(d))
                name = types.names[d]
                room[name] = min(left, room.get(name, left))
    return room
