"""What happened to an application, and to one ask of it (docs/spec/design.md, rule 4: `story(object)`), as data.

Nothing is recorded for this: a story is read off what the objects keep anyway, so it costs nothing until someone asks,
and its length is bounded by theirs (the last hundred states). The price is that what has ended is forgotten with its
object: an application's story lasts as long as the application is kept, an allocation's until it ends.
Why an ask waits is another question; `licorne.core.inspection.explain` answers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from licorne.core.preemption.evictions import Eviction, eviction_of

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask


class Submitted(msgspec.Struct, tag="submitted", frozen=True):
    """The application came, and was placed in this queue. `at_ns` is earlier than that if its tags, or an ask, say so."""

    at_ns: int
    queue: str
    user: str
    groups: tuple[str, ...]


class EnteredState(msgspec.Struct, tag="entered-state", frozen=True):
    """It entered a state (names as in docs/spec/states.md)."""

    at_ns: int
    state: str


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """It completed or failed; `message` says how."""

    at_ns: int
    message: str


class Holds(msgspec.Struct, tag="holds", frozen=True):
    """What it has now: pending asks, and allocations (with placeholders), by number."""

    at_ns: int
    asks: int
    allocations: int


class Placeholders(msgspec.Struct, tag="placeholders", frozen=True):
    """What became of the placeholders of a task group until now, by number; `live` is the rest."""

    at_ns: int
    task_group: str
    created: int
    replaced: int
    timed_out: int
    released: int
    live: int


Chapter = Submitted | EnteredState | Ended | Holds | Placeholders


class AllocationStory(msgspec.Struct, frozen=True):
    """An ask, from its arrival to now. Times in nanoseconds; None: that has not happened.

    `id` names the allocation, as its key in the 1.9 interface, as UUID in the first. A reservation is given while it
    lasts. `release_asked`: the core has asked the resource manager to end the allocation, which is still counted;
    `preempted`: so that others have room; `eviction` says for whom, and by which rule.
    """

    key: str
    application_id: str
    asked_ns: int
    id: str = ""
    bound_ns: int | None = None
    node: str = ""
    reserved_ns: int | None = None
    reserved_node: str = ""
    release_asked: bool = False
    preempted: bool = False
    eviction: Eviction | None = None


def application_story(partition: Partition, application_id: str) -> list[Chapter]:
    """The story of an application, oldest first; of equal ids the one that lives, else the last that ended.

    Empty if there is none of this id.
    """
    app: Application | None = partition.applications.get(application_id)
    if app is None:
        app = next((a for a in reversed(partition.terminated) if a.id == application_id), None)
    if app is None:
        return []
    story: list[Chapter] = [Submitted(app.submitted, app.queue.path, app.user, app.groups)]
    story += [EnteredState(at, name) for at, name in app.state_log]
    at = app.finished_ns or partition.now
    for group in () if app.gang is None else app.gang.groups.values():
        counts = (group.created, group.replaced, group.timed_out, group.released, group.live())
        story.append(Placeholders(at, group.name, *counts))
    if app.finished_ns:
        story.append(Ended(app.finished_ns, app.message))
    else:
        story.append(Holds(partition.now, len(app.asks), len(app.allocations)))
    return story


def allocation_story(partition: Partition, application_id: str, key: str) -> AllocationStory | None:
    """The story of an allocation (`key`: its key, or its UUID), or of a pending ask; None if it is not there."""
    app: Application | None = partition.applications.get(application_id)
    if app is None:
        return None
    found: Ask | None = app.allocations.get(key, app.asks.get(key))
    if found is None:
        return None
    node = found.node
    reserved = found.reserved
    return AllocationStory(
        key=found.key,
        application_id=app.id,
        asked_ns=found.created,
        id="" if node is None else found.id,
        bound_ns=None if node is None else found.bound_ns,
        node="" if node is None else node.id,
        reserved_ns=None if reserved is None else found.reserved_ns,
        reserved_node="" if reserved is None else reserved.id,
        release_asked=bool(found.released or found.preempted),
        preempted=bool(found.preempted),
        eviction=eviction_of(partition, found),
    )
