"""The states of applications: which event fires when, and the effects of a change of state.

Source: docs/spec/states.md, section 1.

The tables of states and transitions are in `licorne.core.base.states`. This module adds the effects of a transition:
the resource manager is informed, running applications are counted in their queues (docs/spec/scheduling.md, section
10), timers are set and cancelled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne._plain import cython
from licorne.core.base.states import RUNNING_STATES, STATE_TIMERS, ApplicationEvent, ApplicationState, next_state
from licorne.core.base.timers import Timers
from licorne.core.gangs.atomic import LASTING_TAG
from licorne.core.gangs.timeout import release_rest
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.limits import Limits
from licorne.core.queues.queue import Queue
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.messages import Termination, UpdatedApplication

from .admission import forget, retire

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.partition import Partition


# Globals, because looking up a member of an enumeration is slow.
NEW = ApplicationState.NEW
ACCEPTED = ApplicationState.ACCEPTED
STARTING = ApplicationState.STARTING
COMPLETING = ApplicationState.COMPLETING
COMPLETED = ApplicationState.COMPLETED
RESUMING = ApplicationState.RESUMING
FAILING = ApplicationState.FAILING
FAILED = ApplicationState.FAILED
REJECTED = ApplicationState.REJECTED
RUN = ApplicationEvent.RUN
COMPLETE = ApplicationEvent.COMPLETE
FAIL = ApplicationEvent.FAIL
PLAIN: dict[ApplicationState | ApplicationEvent, str] = {
    member: member.value for kind in (ApplicationState, ApplicationEvent) for member in kind
}
STATE_LOG_LENGTH = 100


@cython.cclass
class Lifecycle:
    """Moves the applications of one partition from state to state."""

    partition: Partition
    limits: Limits
    wakeups: WakeUps
    timers: Timers

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.limits = partition.limits
        self.wakeups = partition.wakeups
        self.timers = partition.timers

    def fire(self, app: Application, event: ApplicationEvent, message: str = "") -> bool:
        """Fire an event; return False, with nothing changed, if the current state has no transition for it."""
        return self._fire(app, event, message)

    @cython.cfunc
    def _fire(self, app: Application, event: ApplicationEvent, message: str) -> cython.bint:
        old: ApplicationState = app.state
        new: ApplicationState | None = next_state(app.table, old, event)
        if new is None:
            return False
        if new is not old:
            self._enter(app, old, new, message or PLAIN[event])
        return True

    @cython.cfunc
    def _enter(self, app: Application, old: ApplicationState, new: ApplicationState, message: str) -> cython.void:
        now = self.partition.now
        name: str = PLAIN[new]
        runs: cython.bint = new in RUNNING_STATES
        app.state = new
        app.state_log.append((now, name))
        if len(app.state_log) > STATE_LOG_LENGTH:
            del app.state_log[0]
        self._set_timer(app, new)
        if runs != (old in RUNNING_STATES):
            self._count_running(app, 1 if runs else -1)
            if runs:
                self._started(app)
        if old is ACCEPTED:
            self._leave_accepted(app)
            self.wakeups.may_run(app)  # it may have slept for want of a slot, and only Accepted applications need one
        if new is not REJECTED and not app.independent:  # the resource manager does not know an independent application
            self.partition.out.append(UpdatedApplication(app.id, name, now, message))
        if app.queue.stateaware:
            self.wakeups.slot_freed(app.queue)
        if app.reservations:
            self.wakeups.may_run(app)
        if new is COMPLETED or new is FAILED:
            app.finished_ns = self.partition.now
            app.message = message
            if self.partition.on_end is not None:
                self.partition.on_end(app)
            self._leave_limits(app, True)
            retire(self.partition, app)

    @cython.cfunc
    def _set_timer(self, app: Application, state: ApplicationState) -> cython.void:
        """Set the timer of a state that has a timeout, and cancel that of the state before."""
        if app.timer is not None:
            self.timers.cancel(app.timer)
            app.timer = None
        timeout = STATE_TIMERS.get(state)
        if timeout is not None:
            app.timer = self.timers.add(self.partition.now + timeout.length_ns, "state", app)

    @cython.cfunc
    def _started(self, app: Application) -> cython.void:
        if app.started_ns == 0:
            app.started_ns = self.partition.now
        if app.running_timeout_ns > 0 and app.running_timer is None:
            app.running_timer = self.timers.add(self.partition.now + app.running_timeout_ns, "running", app)

    @cython.cfunc
    def _count_running(self, app: Application, change: cython.longlong) -> cython.void:
        """Add `change` (1 or -1) to the running applications of its queues, between 0 and each queue's maximum.

        Source: docs/spec/scheduling.md, section 10.
        """
        queue: Queue | None = app.queue
        running: cython.longlong
        while queue is not None:
            running = queue.running + change
            if running < 0:
                running = 0
            if change > 0 and queue.max_apps and running > queue.max_apps:
                running = queue.max_apps
            queue.running = running
            if change < 0:
                self.wakeups.slot_freed(queue)
            queue = queue.parent

    @cython.cfunc
    def _leave_accepted(self, app: Application) -> cython.void:
        """Free its slots as an accepted application in all its queues (docs/spec/scheduling.md, section 16.13)."""
        queue: Queue | None = app.queue
        while queue is not None:
            if app in queue.accepted:
                del queue.accepted[app]
                self.wakeups.slot_freed(queue)
            queue = queue.parent

    # -- which applications may be tried ---------------------------------------------------------------

    @cython.ccall
    def may_be_tried(self, app: Application) -> cython.bint:
        """Tell whether decisions may try an application; if not, block it at the queue or tracker that refuses it."""
        if app.state is ACCEPTED:
            queue = self.refusing_queue(app)
            tracker = None
            if queue is None or self.partition.events is not None:
                tracker = self.limits.first_refusal(app)
            if self.partition.events is not None:
                self.partition.events.may_run(app, queue is None, tracker is None)
            if queue is not None:
                self.wakeups.parking.block_at(app, (queue,))
                return False
            if tracker is not None:
                self.wakeups.parking.block_at(app, (tracker,))
                return False
        if app.queue.stateaware and not self.passes_state_filter(app):
            self.wakeups.parking.block_at(app, (app.queue,))
            return False
        return True

    @cython.ccall
    def refusing_queue(self, app: Application) -> Queue | None:
        """Return the topmost queue that has no slot for it, or None (docs/spec/scheduling.md, section 10)."""
        found: Queue | None = None
        queue: Queue | None = app.queue
        taken: cython.longlong
        while queue is not None:
            taken = queue.running + len(queue.accepted)
            if queue.max_apps and taken >= queue.max_apps and app not in queue.accepted:
                found = queue
            queue = queue.parent
        return found

    @staticmethod
    def passes_state_filter(app: Application) -> bool:
        """Tell whether the stateaware filter lets an application be tried (*Sorting Policies*).

        It lets pass every application that is neither Accepted nor Starting, and one of those that are: the oldest
        Starting one, or else the oldest Accepted one.
        """
        if app.state not in (ACCEPTED, STARTING):
            return True
        apps = app.queue.apps.values()
        chosen = [a for a in apps if a.state is STARTING]
        chosen = chosen or [a for a in apps if a.state is ACCEPTED]
        return app is min(chosen, key=lambda a: (a.submitted, a.seq))

    # -- triggers (docs/spec/states.md, section 1.5) -------------------------------------------------------------

    def ask_added(self, app: Application) -> None:
        """Move a New or Completing application on after an ask was added."""
        if app.state in (NEW, COMPLETING):
            self._fire(app, RUN, "")

    def allocated(self, app: Application, alloc: Ask) -> None:
        """Update the state after an allocation: a real one makes it run, or the last of the announced placeholders."""
        if alloc.placeholder:
            self.partition.gangs.placed(app, alloc)
        elif app.state is not RESUMING:  # Resuming ends with the last placeholder, not with a real allocation
            self._fire(app, RUN, "")

    @cython.ccall
    def emptied(self, app: Application) -> cython.void:
        """Complete or fail an application, if the ask or allocation that has just ended was its last.

        Before that, a lasting gang that has too few members left waits for them to start together.
        """
        if app.atomic is None and LASTING_TAG in app.tags:
            self.partition.atomic.regroup(app)
        if app.asks_pending or app.allocations:
            return
        if app.state is FAILING:
            self._fire(app, FAIL, "")
        elif app.state is RESUMING:
            self._fire(app, RUN, "")
        elif app.state is not COMPLETING:
            self._fire(app, COMPLETE, "")
        gone = app.independent and app.id in self.partition.applications
        self._leave_limits(app, gone)
        if gone:
            self.partition.remove_application(app)

    @cython.cfunc
    def _leave_limits(self, app: Application, gone: cython.bint) -> cython.void:
        """Free the slots that an application without asks and allocations has in the limits of its user and group."""
        other: Application
        for other in self.limits.left(app, gone=gone):
            self.wakeups.may_run(other)

    def removed(self, app: Application) -> None:
        """Free all slots of an application that the resource manager has removed."""
        if app.state in RUNNING_STATES:
            self._count_running(app, -1)
        self._leave_accepted(app)
        self._leave_limits(app, True)
        if app.queue.stateaware:
            self.wakeups.slot_freed(app.queue)

    def fail(self, app: Application, message: str) -> None:
        """Fail an application: drop its asks, and ask the resource manager to end its allocations with TIMEOUT."""
        if not self._fire(app, FAIL, message):
            return
        if app.gang is not None:
            self.partition.replacement.abandon(app)
        for ask in list(app.asks.values()):
            self.partition.drop_ask(app, ask)
        for alloc in list(app.allocations.values()):
            self.time_out(alloc)
        self.emptied(app)

    def time_out(self, alloc: Ask) -> None:
        """Ask the resource manager, once, to end an allocation, which stays counted until the end is confirmed."""
        if alloc.released or alloc.preempted:
            return
        alloc.released = True
        self.partition.accounting.asked_to_end += 1
        self.partition.notify_released(alloc, Termination.TIMEOUT, "execution timeout reached")

    # -- timers ----------------------------------------------------------------------------------------

    def timer_due(self, app: Application) -> None:
        """Leave a state whose timeout is over (docs/spec/states.md, section 1.6)."""
        app.timer = None
        if app.state is COMPLETING:
            if app.gang is None or not release_rest(self.partition, app):
                self._fire(app, COMPLETE, "")
        elif app.state is STARTING:
            self._fire(app, RUN, "")
        else:
            forget(self.partition, app)

    def running_time_over(self, app: Application) -> None:
        """Fail an application whose execution timeout is over, in the first interface.

        Source: docs/spec/scheduling.md, section 16.9.
        """
        app.running_timer = None
        if app.state in RUNNING_STATES:
            self.fail(app, "ExecutionTimeout")
