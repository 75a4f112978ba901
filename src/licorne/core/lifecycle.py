"""The life of an application: which event fires when, and what a change of state does (spec states.md, section 1).

The tables are in `licorne.core.states`. Here is what happens on the way: the resource manager is told, running
applications are counted in their queues (scheduling.md, section 10), timers are set and cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.si.messages import Termination, UpdatedApplication

from .states import (
    RUNNING_STATES,
    STATE_TIMERS,
    ApplicationEvent,
    ApplicationState,
    next_state,
)

if TYPE_CHECKING:
    from .application import Application
    from .asks import Ask
    from .partition import Partition
    from .queue import Queue

_ENDED = (ApplicationState.COMPLETED, ApplicationState.FAILED)
_STATE_LOG_LENGTH = 100


class Lifecycle:
    """Moves the applications of one partition from state to state."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def fire(self, app: Application, event: ApplicationEvent, message: str = "") -> bool:
        """Fire an event; False, and nothing changed, where the state has no transition for it."""
        old: ApplicationState = app.state
        new = next_state(app.table, old, event)
        if new is None:
            return False
        if new is not old:
            self._enter(app, old, new, message or event.value)
        return True

    def _enter(self, app: Application, old: ApplicationState, new: ApplicationState, message: str) -> None:
        partition = self._partition
        app.state = new
        app.state_log.append((partition.now, new.value))
        del app.state_log[:-_STATE_LOG_LENGTH]
        partition.timers.cancel(app.timer)
        timeout = STATE_TIMERS.get(new)
        app.timer = None if timeout is None else partition.timers.add(partition.now + timeout.length_ns, "state", app)
        if (new in RUNNING_STATES) != (old in RUNNING_STATES):
            self._count_running(app, 1 if new in RUNNING_STATES else -1)
            if new in RUNNING_STATES:
                self._started(app)
        if old is ApplicationState.ACCEPTED:
            self._leave_accepted(app)
            partition.parking.wake(app)  # no slot is asked for any more: it may have got here without one
        if new is not ApplicationState.REJECTED and not app.independent:  # its owner knows of no application
            partition.out.append(UpdatedApplication(app.id, new.value, partition.now, message))
        if app.queue.stateaware:
            partition.parking.wake_blocked(app.queue.blocked)
        if app.reservations:
            partition.parking.reserved_stale = True
        if new in _ENDED:
            app.finished_ns = partition.now
            app.message = message
            self.leave_limits(app, gone=True)
            partition.retire(app)

    def _started(self, app: Application) -> None:
        partition = self._partition
        app.started_ns = app.started_ns or partition.now
        if app.running_timeout_ns > 0 and app.running_timer is None:
            app.running_timer = partition.timers.add(partition.now + app.running_timeout_ns, "running", app)

    def _count_running(self, app: Application, change: int) -> None:
        """Count it in its queues: never up to more than their maximum, nor below 0 (scheduling.md, section 10)."""
        for queue in app.queue.lineage():
            running = max(0, queue.running + change)
            queue.running = min(running, queue.max_apps) if queue.max_apps and change > 0 else running
            if change < 0:
                self._partition.parking.wake_blocked(queue.blocked)

    def _leave_accepted(self, app: Application) -> None:
        """Its slot as an accepted application is free at all levels (scheduling.md, section 16.13)."""
        for queue in app.queue.lineage():
            if app in queue.accepted:
                del queue.accepted[app]
                self._partition.parking.wake_blocked(queue.blocked)

    # -- who may be tried ------------------------------------------------------------------------------

    def may_be_tried(self, app: Application) -> bool:
        """May the regular and the reserved pass look at it? If not, it waits for what refused it."""
        if app.state is ApplicationState.ACCEPTED:
            queue = self.refusing_queue(app)
            if queue is not None:
                queue.blocked[app] = None
                return False
            tracker = self._partition.limits.first_refusal(app)
            if tracker is not None:
                tracker.blocked[app] = None
                return False
        if app.queue.stateaware and not self.passes_state_filter(app):
            app.queue.blocked[app] = None
            return False
        return True

    @staticmethod
    def refusing_queue(app: Application) -> Queue | None:
        """The highest queue that has no slot for one more running application (scheduling.md, section 10)."""
        for queue in reversed(app.queue.lineage()):
            if queue.max_apps and app not in queue.accepted and queue.running + len(queue.accepted) >= queue.max_apps:
                return queue
        return None

    @staticmethod
    def passes_state_filter(app: Application) -> bool:
        """The first filter of stateaware order (seed 002): running, the one starting, or else the oldest accepted."""
        if app.state not in (ApplicationState.ACCEPTED, ApplicationState.STARTING):
            return True
        apps = app.queue.apps.values()
        chosen = [a for a in apps if a.state is ApplicationState.STARTING]
        chosen = chosen or [a for a in apps if a.state is ApplicationState.ACCEPTED]
        return app is min(chosen, key=lambda a: (a.submitted, a.seq))

    # -- triggers (states.md, section 1.5) -------------------------------------------------------------

    def ask_added(self, app: Application) -> None:
        """A new ask: a new or completing application becomes active."""
        if app.state in (ApplicationState.NEW, ApplicationState.COMPLETING):
            self.fire(app, ApplicationEvent.RUN)

    def allocated(self, app: Application, alloc: Ask) -> None:
        """A new allocation: a real one makes it run; placeholders do when all that were announced are there."""
        if not alloc.placeholder or (not app.placeholder_ask.zero() and app.placeholders.same(app.placeholder_ask)):
            self.fire(app, ApplicationEvent.RUN)

    def emptied(self, app: Application) -> None:
        """An ask or allocation is gone: if it was the last, the application completes, or has failed."""
        if app.asks_pending or app.allocations:
            return
        if app.state is ApplicationState.FAILING:
            self.fire(app, ApplicationEvent.FAIL)
        elif app.state is ApplicationState.RESUMING:
            self.fire(app, ApplicationEvent.RUN)
        elif app.state is not ApplicationState.COMPLETING:
            self.fire(app, ApplicationEvent.COMPLETE)
        gone = app.independent and app.id in self._partition.applications
        self.leave_limits(app, gone=gone)
        if gone:
            self._partition.remove_application(app)

    def leave_limits(self, app: Application, *, gone: bool = False) -> None:
        """Nothing of it is allocated or pending: its user's and group's slots are free for others."""
        parking = self._partition.parking
        for other in self._partition.limits.left(app, gone=gone):
            parking.wake(other)
            parking.reserved_stale = True

    def removed(self, app: Application) -> None:
        """The resource manager has removed it: nobody waits for its slot any longer."""
        if app.state in RUNNING_STATES:
            self._count_running(app, -1)
        self._leave_accepted(app)
        self.leave_limits(app, gone=True)
        if app.queue.stateaware:
            self._partition.parking.wake_blocked(app.queue.blocked)

    def fail(self, app: Application, message: str) -> None:
        """It is to end: drop its asks, ask the resource manager to end its allocations with TIMEOUT."""
        if not self.fire(app, ApplicationEvent.FAIL, message):
            return
        partition = self._partition
        for ask in list(app.asks.values()):
            partition.drop_ask(app, ask)
        for alloc in list(app.allocations.values()):
            self.time_out(alloc)
        self.emptied(app)

    def time_out(self, alloc: Ask) -> None:
        """Ask the resource manager to end the allocation, once; it is counted until that is confirmed."""
        if alloc.released or alloc.preempted:
            return
        alloc.released = True
        self._partition.say_released(alloc, Termination.TIMEOUT, "execution timeout reached")

    # -- timers ----------------------------------------------------------------------------------------

    def timer_due(self, app: Application) -> None:
        """Its state has lasted its time (states.md, section 1.6)."""
        app.timer = None
        if app.state is ApplicationState.COMPLETING:
            self.fire(app, ApplicationEvent.COMPLETE)
        elif app.state is ApplicationState.STARTING:
            self.fire(app, ApplicationEvent.RUN)
        else:
            self._partition.forget_terminated(app)

    def running_time_over(self, app: Application) -> None:
        """The seed's execution timeout of an application (scheduling.md, section 16.9)."""
        app.running_timer = None
        if app.state in RUNNING_STATES:
            self.fail(app, "ExecutionTimeout")
