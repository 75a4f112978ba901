"""The life of an application: its states, their timers, and their ends (docs/spec/states.md, section 1)."""

from __future__ import annotations

from typing import Final

from licorne.si.messages import Released, Termination, UpdatedApplication
from reference import gangs
from reference.model import SECOND_NS, App, Ask, Partition, Queue

RUN, COMPLETE, FAIL = "runApplication", "completeApplication", "failApplication"
RESUME: Final = "resumeApplication"
RUNNING_STATES: Final = ("Starting", "Running")
LENGTH_S: Final = {"Starting": 300, "Completing": 30}
"""How long a state lasts at most; what then follows is the event below."""
FOLLOWS: Final = {"Starting": RUN, "Completing": COMPLETE}
CLEAN_INTERVAL_NS: Final = 10 * SECOND_NS


def next_state(state: str, event: str, *, starting: bool) -> str | None:
    """The tables of sections 1.3 and 1.4."""
    if event == RESUME:
        return {"New": "Resuming", "Accepted": "Resuming"}.get(state)
    if event == RUN and state == "Resuming":
        return "Accepted"
    if event == RUN:
        if state == "Accepted":
            return "Starting" if starting else "Running"
        return {"New": "Accepted", "Starting": "Running", "Running": "Running", "Completing": "Running"}.get(state)
    if event == COMPLETE:
        return {
            "Accepted": "Completing",
            "Starting": "Completing",
            "Running": "Completing",
            "Completing": "Completed",
        }.get(state)
    return {
        "New": "Failing",
        "Accepted": "Failing",
        "Starting": "Failing",
        "Running": "Failing",
        "Failing": "Failed",
    }.get(state)


def fire(partition: Partition, app: App, event: str, message: str = "") -> bool:
    """Fire an event; False, and nothing has changed, where the state has no transition for it."""
    old, new = app.state, next_state(app.state, event, starting=partition.starting)
    if new is None or (event == RESUME and partition.first_interface):
        return False
    if new == old:
        return True
    app.state = new
    app.state_entered = entered = partition.number("state")

    def over() -> None:
        if app.state_entered == entered and app in partition.apps.values():
            if new == "Completing" and gangs.release_places(partition, app):
                return
            fire(partition, app, FOLLOWS[new])

    if new in LENGTH_S:
        partition.at(partition.now_ns + LENGTH_S[new] * SECOND_NS, over)
    if new in RUNNING_STATES and old not in RUNNING_STATES:
        count_running(app, 1)
        _limit_running_time(partition, app)
    elif old in RUNNING_STATES and new not in RUNNING_STATES:
        count_running(app, -1)
    if new != "Accepted":
        app.holds_slot = False  # difference 32: at all levels
    partition.out.append(UpdatedApplication(app.id, new, partition.now_ns, message or event))
    if new in ("Completed", "Failed"):
        leave_sets(app)
        del partition.apps[app.id]
        watch_queues(partition)
    return True


def count_running(app: App, change: int) -> None:
    """+1 up the tree, at most the queue's maximum; −1, not below 0 (docs/spec/scheduling.md, section 10)."""
    for queue in app.queue.lineage():
        if change < 0:
            queue.running = max(0, queue.running - 1)
        elif queue.max_apps:
            queue.running = min(queue.running + 1, queue.max_apps)
        else:
            queue.running += 1


def _limit_running_time(partition: Partition, app: App) -> None:
    """The execution timeout of an application of the first interface.

    Source: docs/spec/scheduling.md, section 16.9, and difference 47.
    """
    if app.running_timeout_ns and not app.running_timer:
        app.running_timer = True
        app.running_due_ns = partition.now_ns + app.running_timeout_ns
        partition.at(partition.now_ns + app.running_timeout_ns, lambda: _running_time_over(partition, app))


def _running_time_over(partition: Partition, app: App) -> None:
    app.running_timer = False
    if app not in partition.apps.values() or app.state not in RUNNING_STATES:
        return
    fire(partition, app, FAIL, "ExecutionTimeout")
    app.gang.flying.clear()
    for ask in list(app.asks.values()):
        drop_ask(ask)
    for alloc in list(app.allocations.values()):
        time_out(partition, alloc)
    emptied(partition, app)


def time_out(partition: Partition, alloc: Ask) -> None:
    """The resource manager is to end the allocation, which counts until it has."""
    if not alloc.released and not alloc.preempted:
        alloc.released = True
        notify_released(partition, alloc, Termination.TIMEOUT)


def watch_timeout(partition: Partition, alloc: Ask) -> None:
    """Start the execution timeout of an allocation."""
    app = alloc.app

    def over() -> None:
        if app in partition.apps.values() and app.allocations.get(alloc.id) is alloc:
            time_out(partition, alloc)

    partition.at(partition.now_ns + alloc.timeout_ns, over)


def notify_released(partition: Partition, alloc: Ask, termination: Termination) -> None:
    uuid = "" if alloc.id == alloc.key else alloc.id
    partition.out.append(Released(alloc.key, alloc.app.id, termination, "", partition.name, uuid))


def drop_ask(ask: Ask) -> None:
    """Drop a pending ask, with its reservation."""
    unreserve(ask, gives_up=False)
    del ask.app.asks[ask.key]
    if ask.app.atomic is not None:
        ask.app.atomic.stale = True


def unreserve(ask: Ask, *, gives_up: bool = True) -> None:
    """Drop the reservation of an ask, with its claims; if it gives those up it may preempt again."""
    if ask.reservation is not None:
        ask.reservation.node.reserved_by.remove(ask)
        ask.reservation = None
    if ask.claim is not None and gives_up:
        ask.triggered = False
        ask.gave_up_ns = ask.claim.at_ns
    had, ask.claim = ask.claim, None
    if had is not None and ask.app.atomic is not None:  # a gang claims as a whole
        for other in ask.app.asks.values():
            if other.claim is not None:
                unreserve(other)


def emptied(partition: Partition, app: App) -> None:
    """An ask or allocation has ended: was it the last (docs/spec/states.md, section 1.5)?"""
    if app.asks or app.allocations:
        return
    if app.state == "Failing":
        fire(partition, app, FAIL)
    elif app.state == "Resuming":
        fire(partition, app, RUN)
    elif app.state != "Completing":
        fire(partition, app, COMPLETE)
    if app.in_sets:
        leave_sets(app)


def leave_sets(app: App) -> None:
    """Nothing is allocated or pending: it does not count for its user and group any more, and its group is chosen anew.

    Differences 30 and 31. One that never had an allocation is in no set, and keeps its group (docs/spec/scheduling.md,
    section 16.12).
    """
    app.in_sets = app.group_chosen = False
    app.group = None


def end(partition: Partition, app: App) -> None:
    """The application is gone, with all that it has."""
    app.gang.flying.clear()
    for ask in list(app.asks.values()):
        drop_ask(ask)
    ended = list(app.allocations.values())
    for alloc in ended:
        del app.allocations[alloc.id]
        notify_released(partition, alloc, Termination.STOPPED_BY_RM)
    if ended:
        fire(partition, app, COMPLETE)
    if app.state in RUNNING_STATES:
        count_running(app, -1)
    partition.apps.pop(app.id)
    watch_queues(partition)


# -- queues that nobody needs any more (docs/spec/scheduling.md, section 12) ------------------------------


def _removable(partition: Partition, queue: Queue) -> bool:
    unwanted = not queue.managed or queue.draining
    return queue.parent is not None and unwanted and not queue.children and not partition.apps_of(queue)


def watch_queues(partition: Partition) -> None:
    """The cleaner runs every 10 seconds; a run that would find nothing is not waited for."""
    if not partition.cleaner_due and any(_removable(partition, queue) for queue in partition.root.walk()):
        partition.cleaner_due = True
        passed = partition.now_ns - partition.started_ns
        due = partition.started_ns + (passed // CLEAN_INTERVAL_NS + 1) * CLEAN_INTERVAL_NS
        partition.at(due, lambda: clean(partition))


def clean(partition: Partition) -> None:
    """Remove what is empty, children first."""
    partition.cleaner_due = False
    for queue in partition.root.walk():
        if _removable(partition, queue) and queue.parent is not None:
            del queue.parent.children[queue.name]
    watch_queues(partition)


def advance(partition: Partition, now_ns: int) -> None:
    """Let time pass: every deadline takes effect at its own moment."""
    while due := [deadline for deadline in partition.deadlines if deadline.due_ns <= now_ns]:
        first = min(due, key=lambda deadline: (deadline.due_ns, deadline.number))
        partition.deadlines.remove(first)
        partition.now_ns = max(partition.now_ns, first.due_ns)
        first.act()
    partition.now_ns = now_ns
