"""Faults to plant: each breaks one product function, so that one invariant must notice.

The functions are replaced in the interpreted core, where also what is a C function otherwise can be. Run as a program,
`faults.py NAME`, this plants one fault, lets the machine run, and prints what was caught.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.core.base.uuids import Uuids
from licorne.core.cluster import Cluster
from licorne.core.constants import UNLIMITED
from licorne.core.gangs import timeout
from licorne.core.gangs.placeholders import Gangs
from licorne.core.inputs import lifecycle, node_changes
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.partition import Partition
from licorne.core.preemption import eviction_plans
from licorne.core.preemption.candidates import QueueBudget
from licorne.core.queues.application import Application
from licorne.core.queues.tree import Tree
from licorne.core.scheduling import deadlines
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.reservations import Reservations
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps


class Fault(NamedTuple):
    """A fault to plant in a function: `broken` gets the sound function and returns the broken one.

    `caught` is a part of the failure's text. `alone`: without the second scheduler, whose comparison would be first to notice.
    """

    where: Any
    name: str
    broken: Callable[[Callable[..., Any]], Callable[..., Any]]
    caught: str
    alone: bool = True


def _node_keeps_what_ended(sound: Any) -> Any:
    def give_back(self: Any, app: Any, alloc: Any) -> None:
        node = alloc.node
        sound(self, app, alloc)
        node.allocated.plus(alloc.shape.amounts)

    return give_back


def _size_never_shrinks(sound: Any) -> Any:
    def resize(self: Any, capacity: Any, times: int) -> None:
        if times > 0:
            sound(self, capacity, times)

    return resize


def _parents_keep_what_ended(sound: Any) -> Any:
    def _use(self: Any, app: Any, amounts: Any, more: bool) -> None:
        sound(self, app, amounts, more)
        if not more:
            app.queue.parent.allocated.plus(amounts)

    return _use


def _no_quota(sound: Any) -> Any:
    def headroom(self: Any, app: Any) -> None:
        self.headroom_left.set_all(UNLIMITED)
        for tracker in app.trackers:
            if tracker.limit is not None:
                self.headroom_left.lower_to_rest(tracker.limit, tracker.used)

    return headroom


def _no_limits(sound: Any) -> Any:
    def headroom(self: Any, app: Any) -> None:
        trackers, app.trackers = app.trackers, []
        sound(self, app)
        app.trackers = trackers

    return headroom


def _users_keep_what_ended(sound: Any) -> Any:
    def _return_use(self: Any, app: Any, amounts: Any) -> None:
        sound(self, app, amounts)
        app.trackers[0].used.plus(amounts)

    return _return_use


def _one_is_forgotten_with_the_node(sound: Any) -> Any:
    def remove_node(partition: Any, node: Any) -> None:
        if node.allocations:
            node.allocations.popitem()
        sound(partition, node)

    return remove_node


def _the_wrong_ask_is_dropped(sound: Any) -> Any:
    return lambda self, app, _ask, **more: sound(self, app, next(iter(app.asks.values())), **more)


def _starts_without_being_accepted(sound: Any) -> Any:
    def next_state(table: Any, state: Any, event: Any) -> Any:
        if (state, event) == (ApplicationState.NEW, ApplicationEvent.RUN):
            return ApplicationState.RUNNING
        return sound(table, state, event)

    return next_state


def _runs_for_ever(sound: Any) -> Any:
    return lambda self, app, change: sound(self, app, change) if change > 0 else None


def _node_stays_reserved(sound: Any) -> Any:
    def cancel(self: Any, ask: Any, *outcome: Any) -> None:
        node = ask.reserved
        sound(self, ask, *outcome)
        node.reservations[ask] = None

    return cancel


def _reservation_outlives_its_ask(sound: Any) -> Any:
    return lambda self, app, ask, **_more: self.accounting.unpend(app, ask)


def _nobody_is_woken(sound: Any) -> Any:
    return lambda _self, blocked: blocked.clear()


def _nodes_wake_nobody(sound: Any) -> Any:
    def settle(self: Any) -> None:
        self.newly_freed.clear()
        self.newly_opened.clear()

    return settle


def _age_wakes_nobody(sound: Any) -> Any:
    return lambda _self, _ask: None


def _last_come_first_served(sound: Any) -> Any:
    return lambda self, other: sound(other, self)


def _placeholders_are_not_counted(sound: Any) -> Any:
    def arrived(self: Any, app: Any, ask: Any, units: int) -> None:
        sound(self, app, ask, units)
        app.gang.groups[ask.task_group].created -= units

    return arrived


def _soft_waits_for_ever(sound: Any) -> Any:
    def time_over(partition: Any, app: Any) -> None:
        if app.gang.hard:
            sound(partition, app)
        else:
            app.gang.timer = None

    return time_over


def _no_guarantee(sound: Any) -> Any:
    def settle(self: Any, ask: Any) -> None:
        sound(self, ask)
        self.slack.set_all(UNLIMITED)

    return settle


def _one_more_victim(sound: Any) -> Any:
    def evict(partition: Any, ask: Any, victims: list[Any], *more: Any) -> None:
        for alloc in victims[0].app.allocations.values():
            if alloc not in victims and not (alloc.required or alloc.preempted or alloc.released):
                victims.append(alloc)
                break
        sound(partition, ask, victims, *more)

    return evict


def _at_random(sound: Any) -> Any:
    return lambda _self: str(uuid.uuid4())


def _time_is_not_counted(sound: Any) -> Any:
    def due(partition: Any, kind: str, subject: Any) -> None:
        before = partition.generation
        sound(partition, kind, subject)
        partition.generation = before

    return due


def _messages_are_not_counted(sound: Any) -> Any:
    def submit(self: Any, rm_id: str, inputs: Any) -> None:
        before = [(partition, partition.generation) for partition in self.managers[rm_id].ordered]
        sound(self, rm_id, inputs)
        for partition, changes in before:
            partition.generation = changes

    return submit


FAULTS: dict[str, Fault] = {
    "1 node": Fault(Accounting, "remove_allocation", _node_keeps_what_ended, "invariant 1"),
    "2 total": Fault(Partition, "resize", _size_never_shrinks, "invariant 2"),
    "2 overuse": Fault(Tree, "bound_root", lambda _: lambda *_arguments: False, "invariant 2"),
    "3 queues": Fault(Accounting, "_use", _parents_keep_what_ended, "root.*: allocated"),
    "4 quota": Fault(Descent, "headroom", _no_quota, "invariant 4"),
    "5 limits": Fault(Descent, "headroom", _no_limits, "invariant 5"),
    "5 usage": Fault(Accounting, "_return_use", _users_keep_what_ended, "user .* (used|in use)"),
    "6 orphan": Fault(node_changes, "remove_node", _one_is_forgotten_with_the_node, "invariant [67]"),
    "7 asks": Fault(Partition, "drop_ask", _the_wrong_ask_is_dropped, "invariant 7"),
    "8 states": Fault(lifecycle, "next_state", _starts_without_being_accepted, "invariant 8"),
    "8 running": Fault(Lifecycle, "_count_running", _runs_for_ever, "invariant 8"),
    "9 node": Fault(Reservations, "cancel", _node_stays_reserved, "invariant 9"),
    "9 ask": Fault(Partition, "drop_ask", _reservation_outlives_its_ask, "invariant 9"),
    "7 placeholders": Fault(Gangs, "arrived", _placeholders_are_not_counted, "invariant 7"),
    "10 hard": Fault(timeout, "_fail", lambda _: lambda _partition, _app: None, "invariant 10"),
    "10 soft": Fault(timeout, "time_over", _soft_waits_for_ever, "invariant 10"),
    "11 victims": Fault(eviction_plans, "evict", _one_more_victim, "invariant 11: .* is a victim too many"),
    "11 guarantee": Fault(QueueBudget, "recompute", _no_guarantee, "invariant 11: .* is left with"),
    "12 quota": Fault(Parking, "wake_blocked", _nobody_is_woken, "(invariant 12|nothing wakes it)"),
    "12 nodes": Fault(WakeUps, "apply_node_events", _nodes_wake_nobody, "invariant 12"),
    "13 order": Fault(Application, "before", _last_come_first_served, "invariant 13"),
    "changes, time": Fault(deadlines, "due", _time_is_not_counted, "something has happened"),
    "changes, messages": Fault(Cluster, "submit", _messages_are_not_counted, "something has happened"),
    "14 parking": Fault(WakeUps, "apply_node_events", _nodes_wake_nobody, "invariant 1[24]", alone=False),
    "14 age": Fault(Parking, "aged", _age_wakes_nobody, "invariant 14", alone=False),
    "14 replay": Fault(Uuids, "next", _at_random, "invariant 14: the same inputs gave other answers"),
}


def plant(fault: Fault) -> None:
    """Replace the function."""
    setattr(fault.where, fault.name, fault.broken(getattr(fault.where, fault.name)))


if __name__ == "__main__":
    from machine.rules import Machine
    from machine.run import run

    chosen = FAULTS[sys.argv[1]]
    plant(chosen)
    try:
        run(3000, 1, shrink=False, alone=chosen.alone)
    except AssertionError as error:
        sys.stdout.write(f"caught after {Machine.situations.steps} steps: {error}")
    else:
        sys.stdout.write("not caught")
