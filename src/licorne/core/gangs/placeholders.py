"""Gangs with placeholders: task groups, their counters, admission and clock (docs/spec/scheduling.md, section 9).

An application that wants several pods at once first asks for *placeholders*, which are asks like others and hold room
until real asks of the same task group take it over (`licorne.core.gangs.replacement`) or their time is over
(`licorne.core.gangs.timeout`). What is kept of that is a `PlaceholderGang`; an
application that never heard of placeholders has none, and its asks pay one look at their task group.

**Who waits.** A real ask whose task group has placeholders that live (pending, placed, or about to be released) waits for
them: it is parked (`AWAITS_PLACEHOLDER`), and nothing on nodes or quotas wakes it. It is tried like any other ask when
the last of them is gone (section 6.3).

**Counters.** created = live + replaced + released + timed out, for each task group, at any time (invariant 7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

from licorne.core.base.rejections import naming
from licorne.core.base.states import PLACEHOLDER_TIMEOUT_NS, ApplicationEvent, ApplicationState
from licorne.core.base.tags import seconds_tag, tag
from licorne.core.base.timers import Timer
from licorne.core.preemption.evictions import Outcome
from licorne.si.constants import TAG_APPLICATION_CREATION_TIME
from licorne.si.messages import AddApplication

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
    from cython.cimports.licorne.core.queues.application import Application
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.queue import Queue
    from cython.cimports.licorne.core.waiting.accounting import Accounting
    from cython.cimports.licorne.core.waiting.parking import Parking
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec
    from licorne.core.constants import AWAITS_PLACEHOLDER, UNLIMITED
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue
    from licorne.core.waiting.accounting import Accounting
    from licorne.core.waiting.parking import Parking

if TYPE_CHECKING:  # it is built upon this module, which knows it as an object
    from licorne.core.base.rejections import Fault
    from licorne.core.partition import Partition

ACCEPTED = ApplicationState.ACCEPTED
COMPLETING = ApplicationState.COMPLETING
RESUMING = ApplicationState.RESUMING
RUN = ApplicationEvent.RUN
COMPLETE = ApplicationEvent.COMPLETE
# Why an ask is parked, as in `asks`: C constants belong to their module.
MILLISECOND_NS = cython.declare(cython.longlong, 1_000_000)
GROUPS_KEPT = 100  # with more task groups of an application those are forgotten that have no placeholders any more


@cython.cclass
class TaskGroup:
    """The placeholders of one task group, and the real asks that wait for them.

    `held` are those that were placed, in that order, from `start` on; who is released, preempted or gone is passed over.
    `created` counts all that were asked for, `released` all that ended otherwise than by replacement or timeout.
    `resource` is what the first of them wants, shared with messages.
    """

    name: str
    resource: dict[str, int]
    created: cython.longlong
    replaced: cython.longlong
    released: cython.longlong
    timed_out: cython.longlong
    held: list[Ask]
    start: cython.Py_ssize_t
    gone: cython.Py_ssize_t  # so many have ended since `held` was looked through
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
        """Placeholders that are pending or placed, those that are being released among them."""
        return self.created - self.replaced - self.released - self.timed_out

    @cython.ccall
    def has_placeholder(self) -> cython.bint:
        """Is there one that a real ask might replace?"""
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
        """One that was placed has ended: leave out those that are passed over, once they may be half of `held`."""
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
    """What an application has to do with placeholders.

    `placed` counts its placeholder allocations, `gained` sums those that were replaced. `was_complete`: all that the application
    announced were there once. `placeholders_timed_out`: its placeholders have timed out. `replacing` maps a placeholder to the real ask
    that takes its place as soon as the resource manager confirms, `arriving` the id of that ask to the placeholder.
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

    `due` are applications with a real ask that waits and a placeholder that it may replace, not compared yet; `stuck` those
    where that was done in vain, until something happens to a node.
    """

    partition: Partition
    accounting: Accounting
    parking: Parking
    due: dict[Application, None]
    stuck: dict[Application, None]

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.accounting = partition.accounting
        self.parking = partition.parking
        self.due = {}
        self.stuck = {}

    # -- admission (section 9.1) -----------------------------------------------------------------------

    def fault(self, queue: Queue, message: AddApplication, wanted: Vec) -> Fault:
        """Why a leaf queue cannot take this gang; empty if it can, or if it is none."""
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
        """A new application: remember its style and timeout if it says anything about them."""
        if not app.placeholder_ask.zero() or (timeout_ns > 0 and not message.timeout_is_running_time):
            self._open(app, message.gang_style == "Hard", timeout_ns)

    def _open(self, app: Application, hard: bool, timeout_ns: int) -> PlaceholderGang:
        """The time that has passed since the tagged creation is taken off the timeout, down to a millisecond."""
        timeout: int = timeout_ns if timeout_ns > 0 else PLACEHOLDER_TIMEOUT_NS
        created = seconds_tag(tag(app.tags, TAG_APPLICATION_CREATION_TIME))
        if created is not None:
            timeout = max(timeout - max(0, self.partition.now - created), MILLISECOND_NS)
        gang: PlaceholderGang = PlaceholderGang(hard, timeout)
        app.gang = gang
        return gang

    # -- asks ------------------------------------------------------------------------------------------

    def arrived(self, app: Application, ask: Ask, units: int) -> None:
        """So many placeholders more were asked for (or, placed elsewhere, have been); may be negative."""
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
        """An ask with a task group is pending, new or again: if it is a real one it may have to wait."""
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
        """An ask that waited for a placeholder is not pending any longer."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, cython.cast(Application, ask.app).gang)
        group: TaskGroup = gang.groups[ask.task_group]
        group.waiting.pop(ask, None)

    def dropped(self, app: Application, ask: Ask, *, timed_out: bool = False) -> None:
        """A pending placeholder ask is gone, with all that was left of it."""
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
        """If the last placeholder of the group is gone, its real asks are asks like any others."""
        ask: Ask
        if not group.waiting or group.live() > 0:
            return
        waiting = list(group.waiting)
        group.waiting.clear()
        for ask in waiting:
            app.requests.unpark(ask)
        self.parking.wake(app)

    # -- placeholders ----------------------------------------------------------------------------------

    @cython.ccall
    def placed(self, app: Application, alloc: Ask) -> cython.void:
        """A placeholder was placed: the clock runs from the first one on, in any state; with the last one the application runs."""
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
        """It runs while a placeholder is pending or placed: a gang that is not whole must not wait for ever."""
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
        """A placeholder allocation is gone, and no real one took its place."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup = gang.groups[alloc.task_group]
        if not alloc.preempted:
            alloc.released = True  # it is found in `held`, and passed over
        if timed_out:
            group.timed_out += 1
        else:
            group.released += 1
        self.gone(app, group)

    @cython.ccall
    def gone(self, app: Application, group: TaskGroup) -> cython.void:
        """One placeholder less, replaced or not: what follows for the application.

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
        """No placeholder is placed any more."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        lifecycle = self.partition.lifecycle
        self._stop_clock(gang)
        if app.state is RESUMING and (app.asks_pending or app.allocations):
            lifecycle.fire(app, RUN)
        elif app.state is COMPLETING:
            lifecycle.fire(app, COMPLETE)
            return
        if gang.placeholders_timed_out and app.state is ACCEPTED and app.allocations:
            lifecycle.fire(app, RUN)  # members that took over before the others timed out run
        lifecycle.emptied(app)

    # -- what may be replaced --------------------------------------------------------------------------

    @cython.ccall
    def has_more(self, app: Application) -> cython.bint:
        """Are there a real ask and a placeholder of one task group?"""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        group: TaskGroup
        for group in gang.groups.values():
            if group.waiting and group.has_placeholder():
                return True
        return False

    def mark_dirty(self, app: Application) -> None:
        """A placeholder has another size: what did not fit may."""
        if self.has_more(app):
            self.stuck.pop(app, None)
            self.due[app] = None

    # -- the end --------------------------------------------------------------------------------------

    def forget(self, app: Application) -> None:
        """The application goes."""
        gang: PlaceholderGang = cython.cast(PlaceholderGang, app.gang)
        self.partition.timers.cancel(gang.timer)
        gang.timer = None
        self.due.pop(app, None)
        self.stuck.pop(app, None)


def _forget_one_that_ended(gang: PlaceholderGang) -> None:
    """Forget the oldest task group without placeholders; while all have some, all stay."""
    for name, group in gang.groups.items():
        if not group.live():
            del gang.groups[name]
            return


def _as_map(amounts: dict[str, int]) -> str:
    """Amounts as the original's texts have them (docs/spec/events.md, section 2)."""
    return "map[" + " ".join(f"{name}:{amounts[name]}" for name in sorted(amounts)) + "]"
