"""The story of an application, or of one of its asks: what has happened to it, as data.

Source: docs/spec/design.md, rule 4: `story(object)`.

Nothing is recorded for stories: they are derived from what the objects keep anyway, so a story costs nothing until it
is requested, and its length is bounded by that of the objects (the last hundred states). The price is that a story
ends with its object: that of an application when the application is dropped, that of an allocation when the allocation
ends. Why an ask waits is answered by `licorne.core.inspection.explain`.
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
    """The application was submitted, and placed in this queue.

    `at_ns` may be earlier than its arrival, if its tags, or those of an ask, give a creation time.
    """

    at_ns: int
    queue: str
    user: str
    groups: tuple[str, ...]


class EnteredState(msgspec.Struct, tag="entered-state", frozen=True):
    """The application entered a state (names as in docs/spec/states.md)."""

    at_ns: int
    state: str


class Ended(msgspec.Struct, tag="ended", frozen=True):
    """The application completed or failed; `message` says how."""

    at_ns: int
    message: str


class Holds(msgspec.Struct, tag="holds", frozen=True):
    """The application's present number of pending asks, and of allocations (placeholders included)."""

    at_ns: int
    asks: int
    allocations: int


class Placeholders(msgspec.Struct, tag="placeholders", frozen=True):
    """The placeholders of a task group, by what became of them until now; `live` are those that have not ended."""

    at_ns: int
    task_group: str
    created: int
    replaced: int
    timed_out: int
    released: int
    live: int


Chapter = Submitted | EnteredState | Ended | Holds | Placeholders


class AllocationStory(msgspec.Struct, frozen=True):
    """The story of one ask, from its arrival to now. Times are in nanoseconds; None: it has not happened.

    `id` is the id of the allocation: its key in the 1.9 interface, a UUID in the first. A reservation is given as long
    as it lasts. `release_asked`: the core has asked the resource manager to end the allocation, which is still counted.
    `preempted`: it was asked to end because it was evicted; `eviction` says for which ask, and by which rule.
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
    """Return the story of an application, oldest chapter first; empty if there is no application of this id.

    If several had the id, it is the story of the one that has not ended, or else of the one that ended last.
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
    """Return the story of an allocation (`key`: its key or UUID) or of a pending ask; None if there is neither."""
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
