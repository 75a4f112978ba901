"""Gangs with placeholders, as in docs/spec/scheduling.md, section 9, and in passing sections 6.3 and 14.

Nothing is counted: how many placeholders of a task group live is looked up among the application's asks and allocations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from licorne.si.messages import AddApplication, NewAllocation, Released, Termination
from reference import life
from reference.model import (
    SECOND_NS,
    Amounts,
    App,
    Ask,
    Gang,
    Node,
    Partition,
    Queue,
    fits,
    fits_limit,
    lowest,
    next_uuid,
    plus,
)
from reference.sums import Sums, meets

REPLACED, TIMEOUT = Termination.PLACEHOLDER_REPLACED, Termination.TIMEOUT
DEFAULT_NS: Final = 15 * 60 * SECOND_NS
CREATED: Final = "yunikorn.apache.org/creationTime"
OVER: Final = "ResourceReservationTimeout"


# -- admission (section 9.1) -----------------------------------------------------------------------------


def admissible(queue: Queue, message: AddApplication) -> bool:
    """May the gang come to this leaf? It must sort by age, and every maximum below root must hold all placeholders."""
    if not any(message.placeholder_ask.values()):
        return True
    if queue.settings.sort_policy == "fair":
        return False
    room: Amounts = {}
    for level in queue.lineage():
        if level.parent is not None:
            room = lowest(room, level.maximum)
    return fits_limit(room, message.placeholder_ask)


def admit(partition: Partition, app: App, message: AddApplication) -> None:
    """Note the placeholders that the application announces."""
    announced = {name: amount for name, amount in message.placeholder_ask.items() if amount}
    created = message.tags.get(CREATED)
    app.gang = Gang(announced=announced, created_ns=None if created is None else int(created) * SECOND_NS)
    if announced or (message.execution_timeout_ms > 0 and not message.timeout_is_running_time):
        app.gang.hard = message.gang_style == "Hard"
        _set_timeout(partition, app, message.execution_timeout_ms * 10**6)


def _set_timeout(partition: Partition, app: App, said_ns: int) -> None:
    """Set the timeout, less the time since the tagged creation, but at least a millisecond."""
    gang = app.gang
    gang.timeout_ns = said_ns if said_ns > 0 else DEFAULT_NS
    if gang.created_ns is not None:
        gang.timeout_ns = max(gang.timeout_ns - max(0, partition.now_ns - gang.created_ns), 10**6)


# -- who waits (section 6.3) -----------------------------------------------------------------------------


def live(app: App, group: str) -> bool:
    """Does a placeholder of the task group live: pending, placed, or about to end?"""
    mine = [*app.asks.values(), *app.allocations.values()]
    return any(ask.placeholder and ask.task_group == group for ask in mine)


def waits(ask: Ask) -> bool:
    """Is it a real ask that is to replace a placeholder, or to wait until there is none?"""
    return bool(ask.task_group) and not ask.placeholder and live(ask.app, ask.task_group)


def arrived(partition: Partition, app: App, placeholder: Ask) -> None:
    """Whoever has to wait from now on reserves no node."""
    if not app.gang.timeout_ns:
        _set_timeout(partition, app, 0)
    for ask in app.asks.values():
        if ask.task_group == placeholder.task_group and not ask.placeholder:
            life.unreserve(ask)


# -- the replacement pass (section 9.4) ------------------------------------------------------------------


def replace_one(partition: Partition, sums: Sums) -> bool:
    """The first real ask, by arrival of the applications, that can replace a placeholder; is there one?"""
    for app in partition.apps.values():
        if not app.queue.leaf or any(queue.leaf for queue in app.queue.lineage()[1:]):
            continue  # nobody comes to it (docs/spec/config.md, section 6.3)
        asks = [ask for ask in sums.asks_in_order(app) if waits(ask)]
        rest: list[Ask] = []
        for ask in asks:
            found = _own(partition, ask)
            if found is not None and found[1]:
                _link(partition, ask, found[0], found[0].node)
                return True
            if found is not None:
                rest.append(ask)
        for ask in rest:
            place = next((p for p in places(app, ask.task_group) if fits(p.amounts, ask.amounts)), None)
            node = None if place is None else _other_node(partition, sums, ask, place)
            if place is not None and node is not None:
                _link(partition, ask, place, node)
                return True
    return False


def places(app: App, group: str) -> list[Ask]:
    """The placeholders that may be replaced, in the order of placement."""
    mine = [a for a in app.allocations.values() if a.placeholder and a.task_group == group]
    return sorted((a for a in mine if not (a.released or a.preempted)), key=lambda a: a.since)


def _own(partition: Partition, ask: Ask) -> tuple[Ask, bool] | None:
    """The placeholder to replace, and whether on its own node; those that are too small are released on the way."""
    first: Ask | None = None
    for place in places(ask.app, ask.task_group):
        if not fits(place.amounts, ask.amounts):
            place.released = True
            life.notify_released(partition, place, TIMEOUT)
            continue
        first = first or place
        node = place.node
        assert node is not None
        refused = partition.predicate is not None and not partition.predicate(ask.key, node.id, False)
        if (not ask.required or ask.required == node.id) and meets(ask, node) and not refused:
            return place, True
    return None if first is None else (first, False)


def _other_node(partition: Partition, sums: Sums, ask: Ask, place: Ask) -> Node | None:
    for node in sums.nodes_in_order:
        held = partition.atomic.hold is not None and node in partition.atomic.hold.nodes
        if node is place.node or not node.schedulable or node.reserved_by or held:
            continue
        if ask.required and ask.required != node.id:
            continue
        refused = partition.predicate is not None and not partition.predicate(ask.key, node.id, True)
        if fits(sums.free(node), ask.amounts) and meets(ask, node) and not refused:
            return node
    return None


def _link(partition: Partition, ask: Ask, place: Ask, node: Node | None) -> None:
    app = ask.app
    real = ask
    if partition.first_interface:
        real = replace(ask, repeats=1, id=next_uuid(partition))
        ask.repeats -= 1
    if real is ask or not ask.repeats:
        del app.asks[ask.key]
    real.node, real.place, place.released = node, place, True
    real.bound_ns = partition.now_ns
    real.placed = partition.number("placed")
    app.gang.flying.append(real)
    life.notify_released(partition, place, REPLACED)


def flying_for(place: Ask) -> Ask | None:
    """The real ask that takes this placeholder's place when its end is confirmed."""
    return next((real for real in place.app.gang.flying if real.place is place), None)


# -- what becomes of it ----------------------------------------------------------------------------------


def ended(partition: Partition, alloc: Ask, termination: Termination, *, echo: bool) -> None:
    """An allocation has ended, by a message or with its node."""
    app = alloc.app
    real = flying_for(alloc)
    if real is not None and termination is REPLACED:
        confirm(partition, alloc, real)
        return
    del app.allocations[alloc.id]
    if echo:
        life.notify_released(partition, alloc, Termination.STOPPED_BY_RM)
    if real is not None:
        unlink(real)
    if alloc.placeholder:
        gone(partition, app)
        return
    rest = list(app.allocations.values())
    idle = rest and all(a.placeholder for a in rest) and not app.asks and not app.gang.flying
    if idle and app.state != "Completing":
        life.fire(partition, app, life.COMPLETE)
    life.emptied(partition, app)


def confirm(partition: Partition, place: Ask, real: Ask) -> None:
    """Place the real ask, whose placeholder has ended."""
    app, gang = real.app, real.app.gang
    first = all(a.placeholder for a in app.allocations.values())
    gang.flying.remove(real)
    real.place = None
    del app.allocations[place.id]
    real.placed = partition.number("placed")
    app.allocations[real.id] = real
    gang.gained = plus(gang.gained, place.amounts)
    if app.state == "Completing" or (not first and app.state != "Resuming"):
        life.fire(partition, app, life.RUN)
    if real.timeout_ns > 0:
        life.watch_timeout(partition, real)
    announce(partition, real)
    gone(partition, app)


def announce(partition: Partition, alloc: Ask) -> None:
    assert alloc.node is not None
    partition.out.append(
        NewAllocation(
            alloc.key,
            alloc.app.id,
            alloc.node.id,
            alloc.amounts,
            partition=partition.name,
            queue=alloc.app.queue.path,
            priority=alloc.priority,
            uuid="" if alloc.id == alloc.key else alloc.id,
        )
    )


def resize(partition: Partition, real: Ask, amounts: Amounts) -> None:
    """In flight it may change too; no limit is asked."""
    if amounts != real.amounts:
        real.amounts = amounts
        real.placed = partition.number("placed")


def unlink(real: Ask) -> None:
    """Make the real ask pending again."""
    app = real.app
    app.gang.flying.remove(real)
    known = app.asks.get(real.key)
    if known is not None:
        known.repeats += 1
    else:
        real.node = real.place = None
        real.id = real.key
        app.asks[real.key] = real


def node_lost(partition: Partition, node: Node) -> None:
    """End all allocations of a lost node, in the order in which they came (section 14)."""
    here = [a for a in partition.allocations() if a.node is node]
    flying = [real for app in partition.apps.values() for real in app.gang.flying if real.node is node]
    here += [real for real in flying if real.place is not None and real.place.node is not node]
    for alloc in sorted(here, key=lambda a: a.placed):
        if alloc in alloc.app.gang.flying:
            unlink(alloc)
            continue
        real = flying_for(alloc)
        if real is not None and real.node is not node:
            life.notify_released(partition, alloc, Termination.STOPPED_BY_RM)
            confirm(partition, alloc, real)
        else:
            ended(partition, alloc, Termination.UNKNOWN, echo=True)


# -- states and time (docs/spec/scheduling.md, sections 9.5 and 9.6; docs/spec/states.md, section 1.5) ---


def placed(partition: Partition, alloc: Ask) -> None:
    """Record that a placeholder was placed."""
    app, gang = alloc.app, alloc.app.gang
    alloc.since = partition.number("since")
    start_clock(partition, app)
    if gang.whole or not gang.announced:
        return
    total = gang.gained
    for each in app.allocations.values():
        total = plus(total, each.amounts) if each.placeholder else total
    if {k: v for k, v in total.items() if v} == gang.announced:
        gang.whole = True
        if app.state != "Resuming":
            life.fire(partition, app, life.RUN)


def start_clock(partition: Partition, app: App) -> None:
    gang = app.gang
    if gang.clock == 0:
        gang.clock = clock = partition.number("clock")

        def over() -> None:
            if gang.clock == clock and app in partition.apps.values():
                gang.clock = 0
                _time_over(partition, app)

        partition.at(partition.now_ns + gang.timeout_ns, over)


def stop_clock(app: App) -> None:
    """It runs while there is a placeholder."""
    if not any(a.placeholder for a in [*app.asks.values(), *app.allocations.values()]):
        app.gang.clock = 0


def gone(partition: Partition, app: App) -> None:
    """A placeholder allocation less."""
    if not any(a.placeholder for a in app.allocations.values()):
        _none_placed(partition, app)


def _none_placed(partition: Partition, app: App) -> None:
    stop_clock(app)
    if app.state == "Resuming" and (app.asks or app.allocations):
        life.fire(partition, app, life.RUN)
    elif app.state == "Completing":
        life.fire(partition, app, life.COMPLETE)
        return
    if app.gang.fallen and app.state == "Accepted" and app.allocations:
        life.fire(partition, app, life.RUN)
    life.emptied(partition, app)


def _time_over(partition: Partition, app: App) -> None:
    gang = app.gang
    if app.state in ("Failing", "Resuming"):
        return
    partly = gang.hard and gang.announced and not gang.whole
    if app.state == "Completing" or (app.state != "Accepted" and not partly):
        release_places(partition, app)
        _drop(partition, app, [ask for ask in app.asks.values() if ask.placeholder])
    elif gang.hard:
        _fail(partition, app)
    else:
        gang.fallen = True
        life.fire(partition, app, life.RESUME, OVER)
        release_places(partition, app)
        _drop(partition, app, [ask for ask in app.asks.values() if ask.placeholder])
        gone(partition, app)


def _fail(partition: Partition, app: App) -> None:
    if not life.fire(partition, app, life.FAIL, OVER):
        return
    flying = dict.fromkeys(real.key for real in app.gang.flying if real.key not in app.asks)
    app.gang.flying.clear()
    for alloc in list(app.allocations.values()):
        life.time_out(partition, alloc)
    _drop(partition, app, list(app.asks.values()))
    for key in flying:
        partition.out.append(Released(key, app.id, TIMEOUT, "", partition.name, ask=True))
    life.emptied(partition, app)


def release_places(partition: Partition, app: App) -> bool:
    """Release all placeholders that are left; tell whether there are any."""
    mine = [alloc for alloc in app.allocations.values() if alloc.placeholder]
    for alloc in mine:
        life.time_out(partition, alloc)
    return bool(mine)


def _drop(partition: Partition, app: App, asks: list[Ask]) -> None:
    """In request order."""
    for ask in Sums.asks_in_order(app):
        if ask not in asks:
            continue
        life.drop_ask(ask)
        partition.out.append(Released(ask.key, app.id, TIMEOUT, "", partition.name, ask=True))
