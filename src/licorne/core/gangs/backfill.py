"""Nodes that a waiting atomic gang holds, and backfill: asks that may run on them in front of the gang.

When nothing more can be placed, the first gang in the order of decisions that fits its quotas and waits for nodes
(`licorne.core.gangs.atomic`) may hold the nodes of its plan (`licorne.core.gangs.plans`): they are closed to other
asks, like a reserved node. Only one gang of a partition holds nodes at a time. It keeps them until it starts, cannot
use them any more (an ask is gone, a quota leaves too little), or has held them for too long; after that it may hold
none for as long again.

An ask that fits nowhere else may run on a held node if the gang's start is known and the ask cannot delay it: either
the ask ends by then, or there is room for it beside the members that are planned there. In both cases the quotas must
leave room for the gang.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec
from licorne.core.base.states import TIME_MAX_NS
from licorne.core.constants import LIVE, NO_NODE, REFUSED, UNLIMITED
from licorne.core.queues.application import in_order
from licorne.core.queues.ask import total_amounts
from licorne.core.queues.usage import Tracker

from .plans import StartPlan, make_plan, short_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from licorne.core.base.timers import Timer
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .atomic import AtomicGang

LOOKS_MAX = 10_000
"""Most asks that are tried on held nodes in one pass."""
ORDINARY = (LIVE, NO_NODE, REFUSED)
"""The parking states of asks that may run on a held node; the others wait for something else than a node's room."""


class Hold:
    """The nodes that a gang has held since `since_ns`, in the order of its plan. `timer` ends the hold."""

    def __init__(self, app: Application, plan: StartPlan, now: int) -> None:
        assert app.atomic is not None, "the application starts as a whole"
        self.app: Application = app
        self.gang: AtomicGang = app.atomic
        self.plan: StartPlan = plan
        self.nodes: dict[Node, None] = {}
        self.since_ns: int = now
        self.timer: Timer | None = None


class Backfill:
    """The hold of one partition, if a gang has one. `made`: allocations on held nodes that were not counted yet."""

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self.hold: Hold | None = None
        self.made: int = 0
        self._planned: bool = False  # a plan was made or checked in this call already
        self._planned_for: tuple[int, int, Vec] | None = None  # the values that `_changed` compares, of the last plan
        self._filled_for: tuple[StartPlan, int, int] | None = (
            None  # the state after the last pass: it need not be repeated
        )

    def begin(self) -> None:
        """Begin a call: a plan may be made once in it."""
        self._planned = False

    def take_made(self) -> int:
        """Return the number of allocations made on held nodes since the last time."""
        made, self.made = self.made, 0
        return made

    def holds(self, node: Node) -> bool:
        """Tell whether a gang holds the node."""
        return self.hold is not None and node in self.hold.nodes

    def hold_of(self, gang: AtomicGang) -> Hold | None:
        """Return the hold of this gang; None if it has none."""
        return self.hold if self.hold is not None and self.hold.gang is gang else None

    # -- holding ---------------------------------------------------------------------------------------

    def on_idle(self, limit: int) -> bool:
        """Update the hold and fill held nodes, when nothing else can be placed; return whether to decide again."""
        if self._follow():
            return True
        self._fill(limit)
        return self.made > 0

    def _follow(self) -> bool:
        """Bring hold and plan up to date; return whether a node has opened or a gang may start."""
        hold = self.hold
        members = None if hold is None else self._members(hold.app, hold.gang)
        if hold is not None and members is None:
            self.give_up(hold.gang)
            self._partition.parking.gangs.pop(hold.app, None)  # so node events no longer reach it
            self._partition.wakeups.gang_may_fit(hold.app)
            return True
        if self._planned:
            return False
        self._planned = True
        if hold is None or members is None:
            return self._next_hold()
        if not self._changed(hold) and hold.plan.still_fits(self._partition, members):
            return False
        return self._plan_again(hold, members)

    def _next_hold(self) -> bool:
        """Let the first waiting gang that can hold nodes do so; return True if one may start instead."""
        for app in self._waiting():
            gang = app.atomic
            assert gang is not None, "the application starts as a whole"
            members = self._members(app, gang)
            if members is None or gang.hopeless == gang.trials:
                continue
            plan = make_plan(self._partition, members, ())
            if plan is None:
                gang.hopeless = gang.trials
            elif plan.last[0] >= 0 and _to_hold(plan, {}):
                self._begin_hold(app, plan)
                return False
            elif self._partition.predicates is None:  # with predicates, which plans do not ask, it waits for a call
                return self._try_now(app, gang)
        return False

    def _try_now(self, app: Application, gang: AtomicGang) -> bool:
        """Wake a gang whose plan needs no allocation to end, so that it fits now; return True."""
        self._partition.wakeups.gang_may_fit(app)
        return True

    def _members(self, app: Application, gang: AtomicGang) -> list[Ask] | None:
        """Return the members of a gang that are to be placed; None if it may not hold nodes."""
        partition = self._partition
        if app.atomic is not gang or partition.applications.get(app.id) is not app or not app.asks_pending:
            partition.parking.gangs.pop(app, None)
            return None
        if gang.barred_ns > partition.now or partition.settings.gang_hold_ns == 0:
            return None
        if app.reservations:
            return None  # it has claimed its nodes
        members: list[Ask] | None = gang.members(app)
        if not members or not partition.lifecycle.may_be_tried(app):
            return None
        total = total_amounts(members)
        # A claim to its quotas ends no hold: the ask would run on a node that opens, and its victims would go in vain.
        short = partition.atomic.short_of(app, members, total) if self.hold_of(gang) is None else short_of(app, total)
        return None if short else members

    def _changed(self, hold: Hold) -> bool:
        """Tell whether a new plan may differ from the last one."""
        partition = self._partition
        known = self._planned_for
        if known is None or known[:2] != (hold.gang.trials, partition.accounting.asked_to_end):
            return True
        return not known[2].same(partition.tree.root.allocated)

    def _plan_again(self, hold: Hold, members: list[Ask]) -> bool:
        plan = make_plan(self._partition, members, hold.nodes)
        self._note(hold)
        old = hold.plan if hold.plan.still_fits(self._partition, members) else None
        if plan is None and old is None:
            hold.gang.hopeless = hold.gang.trials
            self.give_up(hold.gang)
            return True
        if plan is not None and plan.last[0] < 0 and self._partition.predicates is None:
            return self._try_now(hold.app, hold.gang)
        if plan is not None and (old is None or plan.last[0] < old.last[0]):
            hold.plan = plan
            return self._hold_nodes(hold)
        return False

    def _note(self, hold: Hold) -> None:
        partition = self._partition
        allocated = partition.tree.root.allocated.clone()
        self._planned_for = (hold.gang.trials, partition.accounting.asked_to_end, allocated)
        self._filled_for = None

    def _begin_hold(self, app: Application, plan: StartPlan) -> None:
        partition = self._partition
        hold = self.hold = Hold(app, plan, partition.now)
        due = min(partition.now + partition.settings.gang_hold_ns, TIME_MAX_NS)
        hold.timer = partition.timers.add(due, "hold", hold)
        self._note(hold)
        self._hold_nodes(hold)

    def _hold_nodes(self, hold: Hold) -> bool:
        """Hold the nodes of the plan and no others; return whether a node has opened."""
        old, hold.nodes = hold.nodes, _to_hold(hold.plan, hold.nodes)
        for node in hold.nodes:
            if node not in old:
                self._partition.reservations.mend_open(node)
        return self._open([node for node in old if node not in hold.nodes])

    def _open(self, nodes: list[Node]) -> bool:
        partition = self._partition
        opened = False
        for node in nodes:
            if partition.nodes.get(node.id) is node:
                partition.reservations.mend_open(node)
                if node.open:
                    partition.wakeups.node_opened(node)
                    opened = True
        return opened

    def give_up(self, gang: AtomicGang) -> None:
        """End the gang's hold, because it starts or cannot start; the next gang may hold nodes in the same call."""
        self._planned = False
        hold = self.hold_of(gang)
        if hold is not None:
            self.hold = None
            self._planned_for = None
            self._partition.timers.cancel(hold.timer)
            self._open(list(hold.nodes))

    def due(self, hold: Hold) -> None:
        """End a hold that has lasted too long.

        The timer that is set here only leads to a call of `schedule` when the gang may hold nodes again.
        """
        if self.hold is not hold:
            return
        partition = self._partition
        self.give_up(hold.gang)
        hold.gang.barred_ns = min(partition.now + partition.settings.gang_hold_ns, TIME_MAX_NS)
        partition.timers.add(hold.gang.barred_ns, "hold", hold)

    # -- orders ----------------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[Application]:
        """Yield the applications whose gangs wait for nodes, in the order of decisions."""
        waiting: dict[Queue, list[Application]] = {}
        for app in list(self._partition.parking.gangs):
            waiting.setdefault(app.queue, []).append(app)
        if waiting:
            for leaf in self._partition.tree.root.leaves_in_order():
                yield from in_order(waiting.get(leaf, []))

    # -- running in front of the gang ------------------------------------------------------------------

    def _fill(self, limit: int) -> None:
        """Place asks on held nodes, in the order of decisions, up to `limit` allocations."""
        hold = self.hold
        if hold is None or hold.plan.start_ns is None:
            return
        partition = self._partition
        # If none of these has changed since the last pass, another one would find nothing; predicates change unseen.
        known = (hold.plan, partition.accounting.asks_seen, partition.parking.wakeups)
        if self._filled_for == known and partition.predicates is None:
            return
        filling = Filling(partition, hold)
        if filling.nodes:
            for leaf in partition.tree.root.leaves_in_order():
                for app in in_order([app for app in leaf.apps.values() if app.asks_pending and app.atomic is None]):
                    if self.made_in(filling, app, limit):
                        return
        self._filled_for = known

    def made_in(self, filling: Filling, app: Application, limit: int) -> bool:
        """Try an application's asks on held nodes; return whether the pass must stop there."""
        partition = self._partition
        if not app.group_chosen:
            partition.limits.attach(app)
        if app.backoff_until > partition.now or not partition.lifecycle.may_be_tried(app):
            return False
        for ask in app.requests.in_order():
            filling.looks += 1
            if filling.looks > LOOKS_MAX:
                return True
            while ask.parked in ORDINARY and ask.is_pending and (node := filling.node_for(app, ask)) is not None:
                ask.attempted = True
                partition.descent.allocate(app, ask, node)
                self.made += 1
                filling.made += 1
                if filling.made >= limit:
                    return True
        return False


class Filling:
    """One pass over the held nodes, with the amounts that will be left on each beside the gang's planned members."""

    def __init__(self, partition: Partition, hold: Hold) -> None:
        self._partition = partition
        self._hold = hold
        self._rest: dict[Node, Vec] = {}
        self._total = total_amounts([ask for ask, _ in hold.plan.placing])
        self._levels = {id(level) for level in _levels(hold.app)}
        self.made = 0
        self.looks = 0
        usable = [n for n in hold.nodes if n.schedulable and not n.reservations]
        self.nodes = [n for n in usable if any(amount > 0 for amount in n.free.values())]

    def node_for(self, app: Application, ask: Ask) -> Node | None:
        """Return the first held node in order on which the ask cannot delay the gang; None if there is none."""
        amounts, need = ask.shape.amounts, ask.shape.need
        if ask.required or ask.placeholder or need.counted or (need.pods is not None and need.pods.counts):
            return None  # members may want these ports or devices, or have terms about such pods
        nodes = [node for node in self.nodes if node.free.covers(amounts) and need.matches(node)]
        if not nodes or not self._partition.descent.has_headroom(app, ask) or not self._leaves_quota(app, ask):
            return None
        start = self._hold.plan.last[0]
        timed = self._end_of(app, ask) <= start
        for node in sorted(nodes, key=lambda n: (n.score, n.rank)):
            rest = self._rest.get(node)
            if rest is None:
                rest = self._rest[node] = self._hold.plan.rest(node)
            if (timed or rest.covers(amounts)) and self._partition.predicate_allows(ask, node, True):
                if not timed:
                    rest.minus(amounts)
                return node
        return None

    def _end_of(self, app: Application, ask: Ask) -> int:
        """Return when (ns) the ask would end if it started now; UNLIMITED if no execution timeout says so."""
        now = self._partition.now
        end = now + ask.timeout_ns if ask.timeout_ns > 0 else UNLIMITED
        if app.running_timer is not None:
            return min(end, int(app.running_timer[0]))
        return min(end, now + app.running_timeout_ns) if app.running_timeout_ns > 0 else end

    def _leaves_quota(self, app: Application, ask: Ask) -> bool:
        """Tell whether the quotas and limits that ask and gang share leave room for both, also beside what others claim.

        What the ask itself claims counts already, as the gang fits beside it.
        """
        members = [member for member, _ in self._hold.plan.placing]
        both = self._total.clone()
        both.plus(ask.shape.amounts)
        shared = [level for level in _levels(app) if id(level) in self._levels]
        if any(limit is not None and limit.binds(used, both) for limit, used in map(_quota, shared)):
            return False
        claims = self._partition.claims
        return ask in claims.by_ask or not any(
            level in shared for level in claims.short_of(self._hold.app, members, both)
        )


def _to_hold(plan: StartPlan, held: dict[Node, None]) -> dict[Node, None]:
    """Return the nodes of a plan that the gang should hold.

    A closed node is left out, as only a member that requires it can use it; nodes in `held` are closed by the hold.
    """
    return dict.fromkeys(node for ask, node in plan.placing if not ask.required or node.open or node in held)


def _levels(app: Application) -> list[Queue | Tracker]:
    """Return the queues below root, and the trackers, in which an application's usage is counted."""
    return [*(queue for queue in app.queue.lineage() if queue.parent is not None), *app.trackers]


def _quota(level: Queue | Tracker) -> tuple[Vec | None, Vec]:
    return level.limit, level.used if isinstance(level, Tracker) else level.allocated
