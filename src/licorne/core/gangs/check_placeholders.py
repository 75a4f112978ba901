"""The invariants of gangs with placeholders (6, 7, 9, 10 and 12), checked from first principles.

A part of `licorne.core.inspection.validate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.base.states import ApplicationState
from licorne.core.constants import AWAITS_PLACEHOLDER

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

    from .placeholders import PlaceholderGang


def check(partition: Partition, app: Application) -> None:
    """Check one application: counters of placeholders, the asks that wait for them, and the asks in flight.

    Raises:
        AssertionError: something contradicts the application's asks and allocations.
    """
    gang: PlaceholderGang | None = app.gang
    placed = [a for a in app.allocations.values() if a.placeholder]
    pending = [a for a in app.asks.values() if a.placeholder]
    parked = {a for a in app.asks.values() if a.parked == AWAITS_PLACEHOLDER}
    if gang is None:
        _expect(not placed and not pending and not parked, 7, app, "has placeholders and no gang")
        return
    live: dict[str, int] = {}
    for ask in [*placed, *pending]:
        live[ask.task_group] = live.get(ask.task_group, 0) + (1 if ask.node is not None else ask.repeats)
    _expect(set(live) <= set(gang.groups), 7, app, "has a placeholder of an unknown task group")
    for name, group in gang.groups.items():
        ended = group.replaced + group.released + group.timed_out
        _expect(group.created == live.get(name, 0) + ended, 7, app, f"placeholders of task group {name}")
        numbers = (group.created, group.replaced, group.released, group.timed_out)
        _expect(min(numbers) >= 0, 7, app, f"counters of task group {name}")
        wait = {a for a in app.asks.values() if not a.placeholder and a.task_group == name} if live.get(name) else set()
        _expect(set(group.waiting) == wait, 7, app, f"real asks that wait in task group {name}")
        parked -= wait
        _expect(all(a.parked == AWAITS_PLACEHOLDER for a in wait), 7, app, f"an ask of task group {name} is not parked")
        _expect(all(a.reserved is None for a in wait), 9, app, f"an ask that waits in task group {name} is reserved")
        held = [a for a in group.held if not a.released and not a.preempted]
        mine = [a for a in placed if a.task_group == name and not a.released and not a.preempted]
        _expect(set(held) == set(mine), 7, app, f"placeholders that may be replaced in task group {name}")
        known = app in partition.gangs.due or app in partition.gangs.stuck
        _expect(known or not wait or not mine, 12, app, f"nobody looks at task group {name}")
    _expect(not parked, 7, app, "has asks that wait for placeholders that are not there")
    _expect(gang.placed == len(placed), 7, app, "number of placeholder allocations")
    _expect(gang.timer is None or bool(live), 10, app, "its clock runs without placeholders")
    if app.state is ApplicationState.ACCEPTED and gang.placed:
        _expect(gang.timer is not None or gang.placeholders_timed_out, 10, app, "its clock does not run")
    kept = any(not (a.released or a.preempted) for a in placed)
    _expect(
        gang.timer is not None or not kept, 10, app, f"is {app.state}, and the clock of its placeholders does not run"
    )
    if app.state is ApplicationState.RESUMING:
        _expect(bool(placed) and not pending, 10, app, "is Resuming without a reason")
        _expect(all(a.released or a.preempted for a in placed), 10, app, "is Resuming and keeps placeholders")
    if app.state is ApplicationState.FAILING:
        _expect(not gang.replacing, 10, app, "is failing, with members in flight")
    _in_flight(partition, app, gang)


def _in_flight(partition: Partition, app: Application, gang: PlaceholderGang) -> None:
    _expect(len(gang.replacing) == len(gang.arriving), 7, app, "in flight")
    for place, real in gang.replacing.items():
        _expect(gang.arriving.get(real.id) is place, 7, app, f"{real.key} in flight")
        _expect(app.allocations.get(place.id) is place and place.released, 7, app, f"the placeholder of {real.key}")
        _expect(real.id not in app.allocations and app.asks.get(real.key) is not real, 7, app, f"{real.key} is twice")
        node = real.node
        _expect(node is not None and partition.nodes.get(node.id) is node, 6, app, f"node of {real.key}")
        apart = node is not place.node
        _expect((node is not None and real in node.allocations) == apart, 6, app, f"{real.key} on its node")


def in_flight(alloc: Ask) -> bool:
    """Tell whether this is a real ask in flight, which waits for the confirmation of its placeholder's end."""
    gang: PlaceholderGang | None = alloc.app.gang
    place = None if gang is None else gang.arriving.get(alloc.id)
    return gang is not None and place is not None and gang.replacing.get(place) is alloc


def _expect(ok: bool, number: int, app: Application, what: str) -> None:
    if not ok:
        raise AssertionError(f"invariant {number}: application {app.id}: {what}")
