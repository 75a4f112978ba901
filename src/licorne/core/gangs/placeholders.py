"""Gangs with placeholders: task groups, their counters, admission and timeout clock.

Source: docs/spec/scheduling.md, section 9.

An application that needs several pods at once first asks for *placeholders*. These are asks like others; they keep
resources until real asks of the same task group take them over (`licorne.core.gangs.replacement`), or until they time
out (`licorne.core.gangs.timeout`). The state is a `PlaceholderGang`; an application without placeholders has none, and
its asks cost one check of their task group.

**Waiting.** A real ask whose task group has live placeholders (pending, placed, or being released) waits for them: it
is parked (`AWAITS_PLACEHOLDER`), and no event on nodes or quotas wakes it. When the last placeholder of the group is
gone, it is tried like any other ask (section 6.3).

**Counters.** created = live + replaced + released + timed out, for each task group, at any time (invariant 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec
from licorne.core.base.rejections import naming
from licorne.core.base.states import PLACEHOLDER_TIMEOUT_NS, ApplicationEvent, ApplicationState
from licorne.core.base.tags import seconds_tag, tag
from licorne.core.base.timers import Timer
from licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
from licorne.core.nodes.domains import begin_awaiting, end_awaiting
from licorne.core.preemption.evictions import Outcome
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.queue import Queue
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.constants import TAG_APPLICATION_CREATION_TIME, TAG_WHOLE_TIMEOUT
from licorne.si.messages import AddApplication

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.base.rejections import Fault
    from licorne.core.partition import Partition


ACCEPTED = ApplicationState.ACCEPTED
COMPLETING = ApplicationState.COMPLETING
RESUMING = ApplicationState.RESUMING
RUN = ApplicationEvent.RUN
COMPLETE = ApplicationEvent.COMPLETE
MILLISECOND_NS = cython.declare(cython.longlong, 1_000_000)
GROUPS_KEPT = 100  # with this many task groups, a new one displaces the oldest that has no placeholders any more


@cython.cclass
class TaskGroup:
    """The placeholders of one task group, and the real asks that wait for them.

    `held` lists the placed placeholders from index `start` on, in the order of placement; those that were released,
    preempted or ended since stay in it for a while, and are skipped. `created` counts all placeholders that were asked
    for, `released` all that ended otherwise than by replacement or timeout. `resource` is the amounts of the first
    placeholder, an object shared with messages.
    """

    name: str
    resource: dict[str, int]
    created: cython.longlong
    replaced: cython.longlong
    released: cython.longlong
    timed_out: cython.longlong
    held: list[Ask]
    start: cython.Py_ssize_t
    gone: cython.Py_ssize_t  # number of placeholders that have ended since `held` was last cleaned
    waiting: dict[Ask, None]

    def __init__(self, name: str, resource: dict[str, int]) -> None:
        self.name = name
        self.resource = resource
        self.created = 0
        self.replaced = 0
        self.released = 0
        self.timed_out = 0
        self.held = []
        self.start = 0
        self.gone = 0
        self.waiting = {}

    @cython.ccall
    def live(self) -> cython.longlong:
        """Return the number of placeholders that are pending or placed, including those being released."""
        return self.created - self.replaced - self.released - self.timed_out

    @cython.ccall
    def has_placeholder(self) -> cython.bint:
        """Tell whether there is a placeholder that a real ask might replace."""
        placeholder: Ask
        while self.start < len(self.held):
            placeholder = cython.cast(Ask, self.held[self.start])
            if not placeholder.released and not placeholder.preempted:
                return True
            self.start += 1
        self.held.clear()
        self.start = 0
        return False

    @cython.ccall
    def one_gone(self) -> cython.void:
        """Count the end of a placed placeholder; clean `held` once half of it may be out of date.

        So the cost of cleaning is constant for each placeholder.
        """
        placeholder: Ask
        kept: list[Any] = []
        self.gone += 1
        if 2 * self.gone < len(self.held):
            return
        for placeholder in self.held[self.start :]:
            if not placeholder.released and not placeholder.preempted:
                kept.append(placeholder)
        self.held = kept
        self.start = 0
        self.gone = 0


@cython.cclass
class PlaceholderGang:
    """The placeholders of one application, and the real asks that replace them.

    `hard`: the gang style is Hard, see `licorne.core.gangs.timeout`. `placed` counts its placeholder allocations,
    `gained` sums the amounts of those that were replaced. `was_complete`: all placeholders that the application
    announced were placed at some time. `placeholders_timed_out`: its placeholders have timed out. `replacing` maps a
    placeholder to the real ask in flight, which replaces it as soon as the resource manager confirms its end;
    `arriving` maps the id of that ask to the placeholder.
    """

    hard: cython.bint
    timeout_ns: cython.longlong
    timer: Timer | None
    groups: dict[str, TaskGroup]
    placed: cython.Py_ssize_t
    gained: Vec
    was_complete: cython.bint
    placeholders_timed_out: cython.bint
    replacing: dict[Ask, Ask]
    arriving: dict[str, Ask]

    def __init__(self, hard: bool, timeout_ns: int) -> None:
        self.hard = hard
        self.timeout_ns = timeout_ns
        self.timer = None
        self.groups = {}
        self.placed = 0
        self.gained = Vec()
        self.was_complete = False
        self.placeholders_timed_out = False
        self.replacing = {}
        self.arriving = {}


@cython.cclass
class Gangs:
    """The gangs of one partition.

    `due` are applications with a waiting real ask and a placeholder of its task group that the replacement pass has not
    tried yet; `stuck` are those in which it found no replacement (`note_stuck`).
    """

    partition: Partition
    accounting: Accounting
    wakeups: WakeUps
    due: dict[Application, None]
    stuck: dict[Application, None]

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.accounting = partition.accounting
        self.wakeups = partition.wakeups
        self.due = {}
        self.stuck = {}

    # -- admission (section 9.1) -----------------------------------------------------------------------

    def fault(self, queue: Queue, message: AddApplication, wanted: Vec) -> Fault:
        """Return why a leaf queue cannot take this gang; empty if it can, or if the application is no gang."""
        most: Vec
        level: Queue | None
        if wanted.zero():
            return ""
        if queue.fair:
            words = " with task group request: unsupported sort type"
            return naming(f"queue {queue.path} cannot run application ", message.application_id, words)
        most = Vec(0, UNLIMITED)
        level = queue
        while level is not None:
            if level.parent is not None:
                most.lower_to(level.limit)
            level = level.parent
        if most.covers(wanted):
            return ""
        names = self.accounting.types.names
        limits = {names[d]: amount for d, amount in enumerate(most.values()) if amount != UNLIMITED}
        return naming(
            f"queue {queue.path} cannot fit application ",
            message.application_id,
            f": task group request {_as_map(wanted.named(self.accounting.types))} larger than max queue allocation "
            f"{_as_map(limits)}",
        )

    def admitted(self, app: Application, message: AddApplication, timeout_ns: int) -> None:
        """Remember the gang style and timeout of a new application, if its message has any."""
        if not app.placeholder_ask.zero() or (timeout_ns > 0 and not message.timeout_is_running_time):
            self._open(app, message.gang_style == "Hard", timeout_ns)

    def _open(self, app: Application, hard: bool, timeout_ns: int) -> PlaceholderGang:
        """Make the application's gang.

        The time since its tagged creation shortens the timeout, to 1 ms at least, unless a tag says that it does not.
        """
        timeout: int = timeout_ns if timeout_ns > 0 else PLACEHOLDER_TIMEOUT_NS
        created = seconds_tag(tag(app.tags, TAG_APPLICATION_CREATION_TIME))
        if created is not None and tag(app.tags, TAG_WHOLE_TIMEOUT) != "true":
            timeout = max(timeout - max(0, self.partition.now - created), MILLISECOND_NS)
        gang: PlaceholderGang = PlaceholderGang(hard, timeout)
        app.gang = gang
        return gang

    # -- asks ------------------------------------------------------------------------------------------

    def arrived(self, app: Application, ask: Ask, units: int) -> None:
        """Count `units` placeholders that were asked for, or that the resource manager has placed; may be negative.

        If they are the first of their task group, its real asks wait from now on.
        """
        gang: PlaceholderGang | None = app.gang
        group: TaskGroup | None
        other: Ask
        if gang is None:
            gang = self._open(app, False, 0)
        group = gang.groups.get(ask.task_group)
        if group is None:
            if len(gang.groups) >= GROUPS_KEPT:
                _forget_one_that_ended(gang)
            group = gang.groups[ask.task_group] = TaskGroup(ask.task_group, ask.shape.resource)
        before: int = group.live()
        group.created += units
        if before > 0:
            return
        for each in app.requests.in_order():
            other = each
            if not other.placeholder and other.task_group == group.name:
                if other.reserved is not None:
                    self.partition.reservations.cancel(other, Outcome.PLACEHOLDERS)
                self._wait(app, group, other)

    @cython.ccall
    def joined(self, ask: Ask) -> cython.void:
        """Let a real ask that becomes pending wait if its task group has placeholders."""
        app: Application = cython.cast(Application, ask.app)
        gang: PlaceholderGang | None = app.gang
        group: TaskGroup | None
        if gang is None or ask.placeholder:
            return
        group = gang.groups.get(ask.task_group)
        if group is not None and group.live() > 0:
            self._wait(app, group, ask)

    @cython.cfunc
    def _wait(self, app: Application, group: TaskGroup, ask: Ask) -> cython.void:
        app.requests.park(ask, AWAITS_PLACEHOLDER)
        if ask.shape.failed:
            self.partition.parking.freed_nodes.partly_parked[ask.shape] = None
        group.waiting[ask] = None
        if group.has_placeholder():
            self.due[app] = None

    @cython.ccall
    def left(self, ask: Ask) -> cython.void:
        """Forget an ask that waited for a placeholder and is no longer pending."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, cython.cast(Application, ask.app).gang)
        group: TaskGroup = gang.groups[ask.task_group]
        group.waiting.pop(ask, None)
        end_awaiting(ask.shape.need, ask)

    def dropped(self, app: Application, ask: Ask, *, timed_out: bool = False) -> None:
        """Count a pending placeholder ask as ended, with all its remaining repeats."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup = gang.groups[ask.task_group]
        if timed_out:
            group.timed_out += ask.repeats
        else:
            group.released += ask.repeats
        self.settle(app, group)
        self._stop_clock(gang)

    @cython.ccall
    def settle(self, app: Application, group: TaskGroup) -> cython.void:
        """Unpark the real asks of a task group if its last placeholder is gone."""
        ask: Ask
        if not group.waiting or group.live() > 0:
            return
        waiting = list(group.waiting)
        group.waiting.clear()
        for ask in waiting:
            end_awaiting(ask.shape.need, ask)
            app.requests.unpark(ask)
        self.wakeups.members_freed(app)

    # -- placeholders ----------------------------------------------------------------------------------

    @cython.ccall
    def placed(self, app: Application, alloc: Ask) -> cython.void:
        """Count a placeholder that was placed.

        With the first one the timeout clock starts, in any state; with the last one that was announced the application
        runs.
        """
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup = gang.groups[alloc.task_group]
        total: Vec
        gang.placed += 1
        group.held.append(alloc)
        if group.waiting:
            self.due[app] = None
        self._start_clock(app, gang)
        if gang.was_complete or app.placeholder_ask.zero():
            return
        total = app.placeholders.clone()
        total.plus(gang.gained)
        if total.same(app.placeholder_ask):
            gang.was_complete = True
            if app.state is not RESUMING:
                self.partition.lifecycle.fire(app, RUN)

    @cython.cfunc
    def _start_clock(self, app: Application, gang: PlaceholderGang) -> cython.void:
        if gang.timer is None:
            gang.timer = self.partition.timers.add(self.partition.now + gang.timeout_ns, "placeholder", app)

    @cython.cfunc
    def _stop_clock(self, gang: PlaceholderGang) -> cython.void:
        """Stop the timeout clock if no placeholder is pending or placed any more.

        While there is one the clock runs on, because an incomplete gang must not wait for ever.
        """
        group: TaskGroup
        if gang.timer is None:
            return
        for group in gang.groups.values():
            if group.live() > 0:
                return
        self.partition.timers.cancel(gang.timer)
        gang.timer = None

    @cython.ccall
    def ended(self, app: Application, alloc: Ask, timed_out: cython.bint) -> cython.void:
        """Count a placeholder allocation that ended without being replaced."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup = gang.groups[alloc.task_group]
        if not alloc.preempted:
            alloc.released = True  # so that it is skipped while it remains in `held`
        if timed_out:
            group.timed_out += 1
        else:
            group.released += 1
        self.gone(app, group)

    @cython.ccall
    def gone(self, app: Application, group: TaskGroup) -> cython.void:
        """Update the task group and the application after a placeholder allocation has ended, replaced or not.

        Source: docs/spec/states.md, section 1.5.
        """
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        gang.placed -= 1
        group.one_gone()
        self.settle(app, group)
        if gang.placed == 0:
            self.none_placed(app)

    @cython.ccall
    def none_placed(self, app: Application) -> cython.void:
        """Stop the clock and update the state of an application that has no placeholder allocation any more."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        lifecycle = self.partition.lifecycle
        self._stop_clock(gang)
        if app.state is RESUMING and (app.asks_pending or app.allocations):
            lifecycle.fire(app, RUN)
        elif app.state is COMPLETING:
            lifecycle.fire(app, COMPLETE)
            return
        if gang.placeholders_timed_out and app.state is ACCEPTED and app.allocations:
            lifecycle.fire(app, RUN)  # real asks that replaced placeholders before the others timed out do run
        lifecycle.emptied(app)

    # -- what may be replaced --------------------------------------------------------------------------

    @cython.ccall
    def has_more(self, app: Application) -> cython.bint:
        """Tell whether a task group of the application has both a waiting real ask and a placeholder to replace."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup
        for group in gang.groups.values():
            if group.waiting and group.has_placeholder():
                return True
        return False

    @cython.ccall
    def note_stuck(self, app: Application) -> cython.void:
        """Note that no waiting real ask of the application could replace a placeholder: each is tried again when nodes or its checks change."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup
        ask: Ask
        self.stuck[app] = None
        for group in gang.groups.values():
            for ask in group.waiting:
                begin_awaiting(ask.shape.need, ask)

    # -- the end --------------------------------------------------------------------------------------

    def forget(self, app: Application) -> None:
        """Drop the clock and the waiting of an application that ends."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        self.partition.timers.cancel(gang.timer)
        gang.timer = None
        self.due.pop(app, None)
        self.stuck.pop(app, None)


def _forget_one_that_ended(gang: PlaceholderGang) -> None:
    """Forget the oldest task group without placeholders; if all groups have some, forget none."""
    for name, group in gang.groups.items():
        if not group.live():
            del gang.groups[name]
            return


def _as_map(amounts: dict[str, int]) -> str:
    """Format amounts as the original does in its texts (docs/spec/events.md, section 2)."""
    return "map[" + " ".join(f"{name}:{amounts[name]}" for name in sorted(amounts)) + "]"
