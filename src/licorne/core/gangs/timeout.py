"""The placeholder timeout: what is released, and what fails, when placeholders have waited for too long.

Source: docs/spec/scheduling.md, section 9.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.base.states import ApplicationEvent, ApplicationState
from licorne.si.messages import Released, Termination

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

OVER = "ResourceReservationTimeout"
"""The message of the new state; this text and those below are the original's."""
PLACED_OVER = "releasing allocated placeholders on placeholder timeout"
PENDING_OVER = "releasing pending placeholders on placeholder timeout"
COMPLETE_OVER = "releasing placeholders on app complete"


def time_over(partition: Partition, app: Application) -> None:
    """Handle the end of the placeholder timeout of an application.

    A running application keeps its allocations and loses its placeholders. One that does not run yet fails with gang
    style Hard, and goes on without placeholders with Soft. With Hard an application also fails if it runs, but never
    had all of the placeholders that it announced (invariant 10).
    """
    gang = app.gang
    assert gang is not None, "the application has to do with placeholders"
    gang.timer = None
    whole = gang.was_complete or app.placeholder_ask.zero()
    state = ApplicationState(app.state)
    if state in (ApplicationState.FAILING, ApplicationState.RESUMING):
        return
    running = state is not ApplicationState.ACCEPTED
    if gang.hard and not (running and whole) and state is not ApplicationState.COMPLETING:
        _fail(partition, app)
        return
    if not running:
        gang.placeholders_timed_out = True
        partition.lifecycle.fire(app, ApplicationEvent.RESUME, OVER)  # no effect in the first interface
    _release_placed(partition, app, PLACED_OVER)
    _drop_pending(partition, app)
    if not running and gang.placed == 0:
        partition.gangs.none_placed(app)


def _fail(partition: Partition, app: Application) -> None:
    """Fail the application: all its allocations are released and all its asks dropped, replaced placeholders or not."""
    if not partition.lifecycle.fire(app, ApplicationEvent.FAIL, OVER):
        return
    keys = dict.fromkeys([ask.key for ask in partition.replacement.abandon(app)])
    for alloc in list(app.allocations.values()):
        _release(partition, alloc, PLACED_OVER)
    for ask in app.requests.in_order():
        keys.pop(ask.key, None)
        _drop(partition, app, ask)
    for key in keys:  # asks in flight of which no repeat was pending
        _notify_dropped(partition, app, key)
    partition.lifecycle.emptied(app)


def _release_placed(partition: Partition, app: Application, message: str) -> None:
    for alloc in list(app.allocations.values()):
        if alloc.placeholder:
            _release(partition, alloc, message)


def _release(partition: Partition, alloc: Ask, message: str) -> None:
    """Ask the resource manager, once, to end an allocation, which stays counted until the end is confirmed."""
    if not alloc.released and not alloc.preempted:
        alloc.released = True
        partition.accounting.asked_to_end += 1
        partition.notify_released(alloc, Termination.TIMEOUT, message)


def _drop_pending(partition: Partition, app: Application) -> None:
    """Drop the pending placeholders, which come too late; real asks stay."""
    for ask in app.requests.in_order():
        if ask.placeholder:
            _drop(partition, app, ask)


def _drop(partition: Partition, app: Application, ask: Ask) -> None:
    partition.drop_ask(app, ask, counted=False)
    if ask.placeholder:
        partition.gangs.dropped(app, ask, timed_out=True)
    _notify_dropped(partition, app, ask.key)


def _notify_dropped(partition: Partition, app: Application, key: str) -> None:
    partition.out.append(Released(key, app.id, Termination.TIMEOUT, PENDING_OVER, partition.name, ask=True))


def release_rest(partition: Partition, app: Application) -> bool:
    """Release the placeholders that are left when the state Completing is over; return whether there are any."""
    assert app.gang is not None, "the application has to do with placeholders"
    if app.gang.placed == 0:
        return False
    _release_placed(partition, app, COMPLETE_OVER)
    return True
