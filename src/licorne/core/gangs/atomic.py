"""Gangs without placeholders: an application whose task groups start all together, or not at all.

An application is an atomic gang if it has task groups (`licorne.core.gangs.task_groups`) and `gang.scheduling`, a tag
of the application or a property of its queue, is `atomic`. Until the gang has started, all its asks are parked
(AWAITS_GANG). When every group has as many asks as it needs members, the members are tried together in the
application's turn: against every quota and limit, then on nodes, one member after the other, in a trial that is undone
if a member finds no node (`licorne.core.gangs.trial`). If all fit, they are allocated in one step, and the application
is like any other from then on.

A gang that found no room on nodes is tried again when room becomes free or a node opens, anywhere; when its asks or
the configuration change; and, if a predicate has refused a node, at the next call. It is not tried again because other asks were placed:
a packing that failed could then succeed by chance, and decisions would depend on how often the gang is tried.

A *lasting* gang is one again whenever fewer members run than it needs: what waits of it, and what comes, then starts
together with those that run, or not at all. How many it needs may change (`ChangeApplication`).

A gang whose queue is below its guarantee may preempt, as a whole (`licorne.core.preemption.guarantee_preemption`). It
starts when all that its members have claimed is free; if one of the claims ends before that, all of them do.

The nodes that a gang holds while it waits, and the asks that may run on them, are in `licorne.core.gangs.backfill`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from licorne.config.properties import parse_gang_scheduling
from licorne.core.amounts.faults import amounts_fault
from licorne.core.base.states import ApplicationState
from licorne.core.base.tags import tag
from licorne.core.constants import AWAITS_GANG
from licorne.core.preemption.evictions import Outcome
from licorne.core.queues.ask import request_order, total_amounts

from .backfill import Backfill
from .plans import short_of
from .task_groups import TaskGroupsError, TaskGroupSpec, parse_task_groups, sum_of
from .trial import Trial, wants_near

if TYPE_CHECKING:
    from collections.abc import Mapping

    from licorne.core.amounts.vectors import Vec
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue
    from licorne.si.messages import AddApplication

SCHEDULING_TAG = "gang.scheduling"
BY_QUEUE = "queue"
"""Value of the tag of an application that can do both: with the property of its queue it is a gang without placeholders,
and its placeholder ask does not count; otherwise it is one with placeholders."""
GROUPS_TAG = "yunikorn.apache.org/task-groups"
LASTING_TAG = "gang.lasting"
"""Tag of an atomic gang that is one again whenever fewer members run than it needs; the value "true"."""

Placing = list[tuple["Ask", "Node"]]


class AtomicGang:
    """The gang of one application, until it has started.

    `stale`: something has changed since it found no room on nodes, so that another trial may succeed; `trials` counts
    the trials. `refused`: in the last trial a predicate refused a node. `hopeless`: the number of the last trial after
    which the gang would not have fitted even if everything on the nodes ended. `barred_ns`: the time before which it
    may not hold nodes, because it has held some for too long.
    """

    TRANSIENT = ("_asks",)  # a cache

    def __init__(self, groups: tuple[TaskGroupSpec, ...]) -> None:
        self.groups: tuple[TaskGroupSpec, ...] = groups
        self.needs: dict[str, int] = {group.name: group.members for group in groups}
        self.stale: bool = True
        self.refused: bool = False
        self.trials: int = 0
        self.hopeless: int = -1
        self.barred_ns: int = 0
        self._asks: dict[str, list[Ask]] | None = None

    def changed(self) -> None:
        """Let the gang be tried again after an ask or allocation of the application was added, changed or removed."""
        self._asks = None
        self.stale = True

    def running(self, app: Application) -> dict[str, int]:
        """Return the number of members of each group that run: they were recovered, or are those that a lasting gang has left."""
        if app.lasting is not None:
            return {name: app.lasting.running.get(name, 0) for name in self.needs}
        found = dict.fromkeys(self.needs, 0)
        for alloc in app.allocations.values():
            if alloc.task_group in found:
                found[alloc.task_group] += 1
        return found

    def pending(self, app: Application) -> dict[str, list[Ask]]:
        """Return the pending asks of each group in request order; an ask that repeats is listed as often."""
        if self._asks is None:
            self._asks = {name: [] for name in self.needs}
            for ask in app.requests.in_order():
                wanted = self._asks.get(ask.task_group)
                if wanted is not None:
                    wanted += [ask] * min(ask.repeats, self.needs[ask.task_group])
        return self._asks

    def asks(self, app: Application) -> list[Ask]:
        """Return the pending asks of all groups, in request order."""
        return sorted((ask for asks in self.pending(app).values() for ask in asks), key=request_order)

    def may_start_with(self, app: Application, asks: list[Ask]) -> bool:
        """Return whether these are as many of each group as are lacking."""
        there = Counter(self.running(app)) + Counter(ask.task_group for ask in asks)
        return all(there[name] >= need for name, need in self.needs.items())

    def members(self, app: Application) -> list[Ask] | None:
        """Return the asks that must be placed for the gang to start, in request order; None while asks are missing."""
        pending = self.pending(app)
        running = self.running(app) if app.allocations else None
        found: list[Ask] = []
        for name, need in self.needs.items():
            lacking = need if running is None else max(0, need - running[name])
            if len(pending[name]) < lacking:
                return None
            found += pending[name][:lacking]
        if len(self.needs) > 1:
            found.sort(key=request_order)
        return found


# -- admission ---------------------------------------------------------------------------------------------


def own_fault(message: AddApplication) -> str:
    """Return why an application's own request for atomic scheduling is invalid in any queue; empty if it is valid."""
    if not message.tags or not parse_gang_scheduling(tag(message.tags, SCHEDULING_TAG)):
        return ""
    text = tag(message.tags, GROUPS_TAG)
    if not text:
        return f"{SCHEDULING_TAG}: 'atomic': the application must have the tag {GROUPS_TAG}"
    if any(message.placeholder_ask.values()):
        return f"{SCHEDULING_TAG}: 'atomic': an application with a placeholder ask cannot be placed as a whole"
    return _parsed(text)[1]


def gang_of(message: AddApplication, queue: Queue, *, forced: bool = False) -> tuple[AtomicGang | None, str]:
    """Return the atomic gang of a new application in this queue, if any, and why it is refused if it can never fit.

    A forced one is not refused for its size.

    Source: docs/spec/scheduling.md, section 9.1.

    The queue's property counts if the application has no tag of its own. It has no effect on an application without
    task groups, or with a placeholder ask, unless the tag leaves the choice to the queue (`BY_QUEUE`).
    """
    tags = message.tags
    text = tag(tags, GROUPS_TAG) if tags else ""
    said = tag(tags, SCHEDULING_TAG) if text else ""
    if not text or (said != BY_QUEUE and any(message.placeholder_ask.values())):
        return None, ""
    own = parse_gang_scheduling(said)
    if own is None:
        own = queue.settings.atomic_gangs
    if not own:
        return None, ""
    groups, fault = _parsed(text)
    if not fault:
        total = sum_of(groups)
        fault = amounts_fault(total)
        for level in queue.lineage():
            if fault or forced or level.parent is None:
                break
            limit = level.max_config or {}
            over = [name for name, amount in sorted(total.items()) if name in limit and amount > limit[name]]
            if over:
                what = f"{total[over[0]]} of {over[0]}, its max is {limit[over[0]]}"
                fault = f"task-groups: queue {level.path} cannot hold the gang: it wants {what}"
    return (None, fault) if fault else (AtomicGang(groups), "")


def is_lasting(tags: Mapping[str, str]) -> bool:
    """Tell whether these tags of an application make it a lasting gang, if its task groups are valid."""
    return tags.get(LASTING_TAG) == "true" and parse_gang_scheduling(tags.get(SCHEDULING_TAG, "")) is True


def lasting_fault(tags: Mapping[str, str]) -> str:
    """Return why an application cannot have these tags from now on; empty if it can: a lasting gang has task groups."""
    return _parsed(tags.get(GROUPS_TAG, ""))[1] if is_lasting(tags) else ""


class LastingGang:
    """What a lasting gang is by its `tags`, kept from one end of a member to the next: `groups`, and how many run of each.

    `running` counts the allocations of all task groups, also of those that the tags do not name.
    """

    def __init__(self, app: Application) -> None:
        self.tags = app.tags
        self.groups: tuple[TaskGroupSpec, ...] = _parsed(app.tags.get(GROUPS_TAG, ""))[0]
        self.running: dict[str, int] = {}
        for alloc in app.allocations.values():
            self.count(alloc, 1)

    def count(self, alloc: Ask, change: int) -> None:
        """Count an allocation that begins (1) or ends (-1)."""
        left = self.running.pop(alloc.task_group, 0) + change
        if left:
            self.running[alloc.task_group] = left

    def lacks_members(self) -> bool:
        """Tell whether fewer members of a group run than it needs."""
        return any(self.running.get(group.name, 0) < group.members for group in self.groups)


def _lacking(app: Application) -> AtomicGang | None:
    """Return the gang that an application is by its tags and allocations; None: it is none, has members enough, or fails."""
    if not is_lasting(app.tags) or app.gang is not None or app.state is ApplicationState.FAILING:
        return None
    known = app.lasting
    if known is None or known.tags is not app.tags:
        known = app.lasting = LastingGang(app)
    return AtomicGang(known.groups) if known.lacks_members() else None


def _parsed(text: str) -> tuple[tuple[TaskGroupSpec, ...], str]:
    try:
        return parse_task_groups(text), ""
    except TaskGroupsError as error:
        return (), str(error)


# -- decisions ---------------------------------------------------------------------------------------------


class AtomicGangs:
    """The gangs of one partition that have not started."""

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self.backfill: Backfill = Backfill(partition)
        self._refused: dict[Application, None] = {}

    def retry_refused(self) -> None:
        """Wake the gangs of which a predicate refused a node in an earlier call; it may answer otherwise now."""
        for app in self._refused:
            gang = app.atomic
            if gang is not None and gang.refused:
                gang.refused = False
                self._partition.wakeups.gang_may_fit(app)
        self._refused.clear()

    def forget(self, app: Application) -> None:
        """Forget an application with no asks and allocations left.

        One that holds nodes remains among those that wait, until `Backfill` ends the hold when the scheduler is idle.
        """
        self._refused.pop(app, None)
        if self.backfill.hold is None or self.backfill.hold.app is not app:
            self._partition.parking.gangs.pop(app, None)

    def on_idle(self, limit: int) -> int:
        """Update holds and place asks on held nodes, when nothing else can be placed; return the number of allocations.

        Either may make further decisions possible, so both alternate with ordinary decisions.
        """
        made = 0
        self.backfill.begin()
        while made < limit and self.backfill.on_idle(limit - made):
            made += self.backfill.take_made()
            made += self._partition.descent.decide(limit - made)
        return made

    def regroup(self, app: Application) -> None:
        """Let a lasting gang wait if it lacks members, as its tags are and its allocations; else let its asks go on."""
        gang, before = _lacking(app), app.atomic
        if gang is None:
            if before is not None:
                self._start(app, [])
        elif before is None:
            self._await_members(app, gang)
        elif before.groups != gang.groups:
            self.backfill.give_up(before)
            self._cancel_reservations(app)
            app.atomic = gang
            self._partition.wakeups.may_run(app)

    def _await_members(self, app: Application, gang: AtomicGang) -> None:
        """Make an application that runs a waiting gang: none of its asks is placed until all that the gang needs have room."""
        self._cancel_reservations(app)
        asks = list(app.asks.values())
        accounting = self._partition.accounting
        for ask in asks:
            accounting.unpend(app, ask)
        app.atomic = gang
        for ask in asks:
            accounting.pend(app, ask)

    def _cancel_reservations(self, app: Application) -> None:
        while app.reservations:  # with the claim of one member all others of its gang end
            self._partition.reservations.cancel(next(iter(app.reservations.values())), Outcome.GANG)

    def visit(self, app: Application) -> int:
        """Try a gang in its application's turn; return minus the number of allocations made, 0 for none.

        After that the application sleeps, or has started and is like any other.
        """
        gang = app.atomic
        assert gang is not None, "the application starts as a whole"
        parking = self._partition.parking
        members = gang.members(app)
        if members is not None and not members:
            self._start(app, [])
            return 0
        placing: Placing | None = None
        if members is None:
            self._waits_no_longer(app, gang)
        else:
            total = total_amounts(members)
            tried = gang.stale
            levels = self.short_of(app, members, total)
            if levels:
                parking.block_for_claims(app, levels)
                self._waits_no_longer(app, gang)
            else:
                parking.gangs[app] = None  # it fits its quotas, so it waits for nodes from now on
                if tried:
                    placing = self._try_all(app, gang, members) or self._try_nodes(gang, members, total)
            if placing is None and tried and is_lasting(app.tags):
                placing = self._try_others(app, gang)
        if placing is None:
            if gang.refused:
                self._refused[app] = None
            parking.sleep(app)
            if self._partition.descent.unplaced is not None:
                self._partition.descent.unplaced[app] = None
            return 0
        self._start(app, placing)
        return -len(placing)

    def may_preempt(self, app: Application) -> list[Ask]:
        """Return the asks of a gang that are to preempt together: all that it needs, if it waits for nodes alone."""
        assert app.atomic is not None, "the application starts as a whole"
        members = app.atomic.members(app) or []
        return [] if not members or self.short_of(app, members, total_amounts(members)) else members

    def short_of(self, app: Application, members: list[Ask], total: Vec) -> list[Any]:
        """Return the queues and trackers that leave too little to a gang beside the claims of others.

        A gang with claims of its own was checked against the others when it got them.
        """
        short = short_of(app, total)
        return short if short or app.reservations else self._partition.claims.short_of(app, members, total)

    def start_on_claims(self, app: Application) -> int:
        """Start a gang on the nodes that its members have claimed, if all take them; return how many were allocated.

        All claims end if those that claim are too few now, as a member that runs has ended, or the gang needs more.
        """
        gang = app.atomic
        assert gang is not None, "the application starts as a whole"
        placing = [(ask, ask.reserved) for ask in gang.asks(app) if ask.reserved is not None]
        members = [ask for ask, _ in placing]
        if not gang.may_start_with(app, members):
            self._cancel_reservations(app)
            return 0
        found: Placing | None = None
        if not self.short_of(app, members, total_amounts(members)):
            trial = Trial(self._partition, {}, ask_predicates=True)
            found = trial.place_as(members, placing)
            trial.close()
        if found is None:
            self._give_up_if_shut(members)
            return 0
        self._start(app, found)
        return len(found)

    def _give_up_if_shut(self, members: list[Ask]) -> None:
        """Let a gang whose victims have all ended give up if terms of pods shut a member out of the node that it claims."""
        claims = self._partition.claims
        if not any(claim.going() for ask in members if (claim := claims.by_ask.get(ask)) is not None):
            for number, ask in enumerate(members, 1):
                claims.give_up_if_shut(ask, members[number:])

    def _waits_no_longer(self, app: Application, gang: AtomicGang) -> None:
        """Take a gang off those that wait for nodes, so that nodes do not wake it.

        A gang that holds nodes stays there until `Backfill` ends the hold when the scheduler is idle.
        """
        gang.stale = True
        if self.backfill.hold_of(gang) is None:
            self._partition.parking.gangs.pop(app, None)

    def _try_nodes(self, gang: AtomicGang, members: list[Ask], total: Vec) -> Placing | None:
        """Find nodes for all members and take the room there; return None, with nothing changed, if they do not fit."""
        partition = self._partition
        gang.stale = False
        gang.refused = False
        gang.trials += 1
        for ask in members:
            ask.attempted = True
        root = partition.tree.root
        if root.limit.binds(root.allocated, total):
            return None  # the whole cluster has too little left, so no trial can succeed
        hold = self.backfill.hold_of(gang)
        trial = Trial(partition, hold.nodes if hold is not None else {}, ask_predicates=True)
        placing = trial.place(members)
        if placing is None and hold is not None:
            placing = trial.place_as(members, hold.plan.placing)
        gang.refused = trial.refused
        trial.close()
        return placing

    def _try_all(self, app: Application, gang: AtomicGang, members: list[Ask]) -> Placing | None:
        """Find nodes for all asks of a lasting gang whose members must be near each other: where they are, later ones must be."""
        asks = gang.asks(app)
        if len(asks) <= len(members) or not is_lasting(app.tags) or not any(map(wants_near, asks)):
            return None
        total = total_amounts(asks)
        return None if self.short_of(app, asks, total) else self._try_nodes(gang, asks, total)

    def _try_others(self, app: Application, gang: AtomicGang) -> Placing | None:
        """Find nodes for as many members as are lacking, where the first ones do not fit: of a lasting gang any will do."""
        running = gang.running(app)
        lacking = {name: max(0, need - running[name]) for name, need in gang.needs.items()}
        asks = gang.asks(app)
        if len(asks) == sum(lacking.values()):
            return None
        for ask in asks:
            ask.attempted = True
        hold = self.backfill.hold_of(gang)
        trial = Trial(self._partition, hold.nodes if hold is not None else {}, ask_predicates=True)
        placing = trial.place_any(asks, lacking, lambda chosen: not self.short_of(app, chosen, total_amounts(chosen)))
        gang.refused = gang.refused or trial.refused
        trial.close()
        return placing

    def _start(self, app: Application, placing: Placing) -> None:
        """Allocate all members on the nodes that the trial found; the other asks become ordinary ones."""
        partition = self._partition
        gang = app.atomic
        assert gang is not None, "the application starts as a whole"
        partition.parking.gangs.pop(app, None)
        self.backfill.give_up(gang)
        app.atomic = None
        counts = partition.needs.counts
        for ask, node in placing:  # all of them, so that counting them again wakes those that want to be near them
            if ask.shape.need.pods is not None:
                partition.needs.topology.attempt(node.slot, ask.shape.need.pods, -1)
        for ask, node in placing:
            node.free.plus(ask.shape.amounts)  # the trial has taken it, and `allocate` takes it again
            if counts and ask.shape.need.counted:
                partition.needs.undo_try(node, ask)
            partition.descent.allocate(app, ask, node)
        for ask in app.requests.in_order():
            if ask.parked == AWAITS_GANG:
                app.requests.unpark(ask)
        partition.wakeups.members_freed(app)
