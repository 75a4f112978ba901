"""Plans of evictions for asks whose queue is below its guarantee: how they are found, and how they are carried out.

Source: docs/spec/preemption.md, section 2; docs/understand/preemption.md, "The choice of victims", "Within a queue" and
"Several at once".

An ask that its guarantee does not help may, where its queue has `preemption.within-queue: priority`, preempt within it.

Asks that preempt together are planned one after the other, each beside the plans of those before it. Only when all of them
have a plan is anything evicted. When an ask may try is decided in `licorne.core.preemption.guarantee_preemption`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from licorne.core.base.states import ApplicationState
from licorne.core.constants import PRIORITY_HIGHEST
from licorne.core.queues.ask import total_amounts

from .node_search import NodeSearch
from .planned_usage import PlannedUsage
from .required_node import evict
from .together import better, goes_together

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

REFUSALS_MAX = 100
"""How many nodes the resource manager may refuse an ask (10 batches of 10 in the original)."""
NODE_SEARCHES_MAX = 4
"""How many node searches, with their snapshots, are kept (by leaf, priority, root of the search and types)."""

NOT_ENTITLED = "the queue is not below its guarantee by what is asked for"
NO_VICTIMS = "no victims help"
NONE_LOWER = "nothing in the queue has a lower priority"
HAS_ROOM = "a node has room for it already"
NO_SEARCH = (NOT_ENTITLED, NONE_LOWER)
"""Answers that took no search."""


class EvictionPlan(NamedTuple):
    """What one ask needs: a node, the victims, of which there may be none, and what its queue lacks of its guarantee.

    Where it preempts `within` its queue, `missing` is what it asks for.
    """

    ask: Ask
    node: Node
    victims: list[Ask]
    missing: dict[int, int]
    within: bool


class EvictionPlans:
    """The plans of one partition, and the snapshots that searches for victims work on. `searches` counts the searches."""

    # A cache: computed again from the sums and allocations.
    TRANSIENT = ("_planned_usage", "_node_searches", "_priorities", "_snapshot_key")

    def __init__(self, partition: Partition) -> None:
        self._partition: Partition = partition
        self._planned_usage: PlannedUsage | None = None
        self._node_searches: dict[object, NodeSearch] = {}
        self._priorities: dict[Queue, Counter[int]] = {}  # of a leaf's allocations that may go
        self._snapshot_key: tuple[object, ...] = ()
        self.searches: int = 0

    def attempt(self, asks: list[Ask]) -> str:
        """Preempt for all of these asks, or for none. Return why they got no claims; an empty text if they did."""
        why = self._attempt(asks, within=False)
        if why and why != HAS_ROOM and asks[0].app.queue.settings.preempts_within:
            within = self._attempt(asks, within=True)
            return within if not within or why == NOT_ENTITLED else why
        return why

    def _attempt(self, asks: list[Ask], *, within: bool) -> str:
        planned_usage, leaf = self._current_usage(), asks[0].app.queue
        if within:
            if max(ask.priority for ask in asks) <= min(self._priorities_in(leaf), default=PRIORITY_HIGHEST):
                return NONE_LOWER
        elif planned_usage.shortfall(total_amounts(asks), leaf) is None:
            return NOT_ENTITLED
        plans: list[EvictionPlan] = []
        why = ""
        complete = False
        try:
            for ask in asks:
                plan = self._plan(planned_usage, ask, plans, within=within)
                if isinstance(plan, str):
                    why = plan
                    break
                plans.append(plan)
                self._enter(planned_usage, plan)
            if len(asks) == len(plans) == 1 and _has_room(plans[0]):
                why = HAS_ROOM  # something else keeps it off, such as a predicate, so it closes no node to others
            complete = not why
        finally:
            for plan in plans:
                self._take_back(plan)
            if plans and not complete:
                self.forget()
        for plan in plans if complete else ():
            self._execute(plan)
        gang = asks[0].app.atomic
        if complete and gang is not None:
            self._partition.atomic.backfill.give_up(gang)  # it needs only the nodes that it has claimed
        return why

    def _plan(
        self, planned_usage: PlannedUsage, ask: Ask, plans: list[EvictionPlan], *, within: bool
    ) -> EvictionPlan | str:
        """Return the node for one ask and its victims, beside `plans` for others; or the reason why there are none."""
        partition, amounts = self._partition, ask.shape.amounts
        if within:
            missing = {d: amount for d, amount in enumerate(amounts.values()) if amount > 0}
        elif (lacking := planned_usage.shortfall(amounts, ask.app.queue)) is None:
            return NOT_ENTITLED
        else:
            missing = lacking
        self.searches += 1
        node_search = self._node_search(planned_usage, ask, plans, within=within)
        refused = {
            node_search.by_node[plan.node]: None for plan in plans if plan.ask.shape.need.excludes(ask.shape.need)
        }
        leaving = [victim for plan in plans for victim in plan.victims]
        coming = [(plan.ask, plan.node) for plan in plans]
        while len(refused) < REFUSALS_MAX:
            with partition.claims.as_planned(
                ask.shape.need, leaving=leaving, more=coming, without=node_search.yielding
            ):
                found = node_search.find(ask, partition.now, refused)
                if found is not None and any(goes_together(c.alloc.app) for c in found[1]):
                    tried = found[0]
                    single = self._node_search(planned_usage, ask, plans, within=within, one_by_one=True)
                    also = {single.by_node[node_group.node]: None for node_group in refused}
                    found = better(node_search, ask, found, single.find(ask, partition.now, also))
                    if found is None:
                        refused[tried] = None
                        continue
                    found = node_search.by_node[found[0].node], found[1]
            if found is None:
                break
            node_group, chosen = found
            victims = [c.alloc for c in chosen]
            spared = partition.claims.spare_domains(
                ask, node_group.node, victims, leaving=leaving, more=coming, without=node_search.yielding
            )
            if spared and self._allowed(ask, node_group.node, victims):
                return EvictionPlan(ask, node_group.node, victims, missing, within)
            refused[node_group] = None
        return NO_VICTIMS

    def _enter(self, planned_usage: PlannedUsage, plan: EvictionPlan) -> None:
        """Enter a plan in the snapshots, which are updated, not thrown away: many asks of a leaf may preempt at one moment."""
        budgets = self._partition.disruption_budgets
        changed = planned_usage.record_eviction(plan.ask, plan.victims)
        for node_search in self._node_searches.values():
            node_search.apply_eviction(changed, plan.victims, plan.ask, plan.node)
        plan.ask.triggered = True  # so what it reserves closes no node to the others
        for victim in plan.victims:
            victim.preempted = True
            for budget in budgets.of(victim):
                budget.going[victim.id] = None
                self._node_searches.clear()  # others may be reluctant now

    def _take_back(self, plan: EvictionPlan) -> None:
        """Undo `_enter`, but in the snapshots."""
        plan.ask.triggered = False
        for victim in plan.victims:
            victim.preempted = False
            for budget in self._partition.disruption_budgets.of(victim):
                del budget.going[victim.id]

    def _current_usage(self) -> PlannedUsage:
        """The planned usage, computed anew if anything but preemption for guarantees has happened since."""
        key = self._current_key()
        if self._planned_usage is None or self._snapshot_key != key:
            self.forget()
            self._planned_usage = PlannedUsage(self._partition.claims)
            self._snapshot_key = key
        return self._planned_usage

    def _current_key(self) -> tuple[object, ...]:
        """A value that changes with whatever makes snapshots invalid.

        The other kinds of preemption change no generation, but the preempting amounts of the root queue.
        """
        partition = self._partition
        return (
            partition.index.generation,
            partition.claims.generation,
            partition.disruption_budgets.generation,
            tuple(partition.tree.root.preempting.values()),
        )

    def forget(self) -> None:
        """Drop the snapshots."""
        self._planned_usage = None
        self._node_searches.clear()
        self._priorities.clear()

    def _priorities_in(self, leaf: Queue) -> Counter[int]:
        """How many allocations of each priority may go for another ask of the same leaf."""
        found = self._priorities.get(leaf)
        if found is None:
            members = leaf.apps.values() if leaf.settings.preemption_policy != "disabled" else ()
            found = Counter(a.priority for app in members for a in app.allocations.values() if a.may_go)
            self._priorities[leaf] = found
        return found

    def _node_search(
        self,
        planned_usage: PlannedUsage,
        ask: Ask,
        plans: list[EvictionPlan],
        *,
        within: bool,
        one_by_one: bool = False,
    ) -> NodeSearch:
        """The search for asks like this one; of those that are kept, the least recently used is dropped.

        `plans` are entered in all that are kept.
        """
        hold = self._partition.atomic.backfill.hold
        held = hold.nodes if hold is not None and hold.app is ask.app else {}
        top, seen = (ask.app.queue, None) if within else planned_usage.fence_root(ask)
        types = tuple(amount > 0 for amount in ask.shape.amounts.values())
        yielding = tuple(self._partition.claims.yielding(ask.app, ask.priority)) if within else ()
        key = (ask.app.queue, ask.priority, top, within, types, tuple(held), yielding, one_by_one)
        node_search = self._node_searches.pop(key, None)
        if node_search is None:
            if len(self._node_searches) >= NODE_SEARCHES_MAX:
                del self._node_searches[next(iter(self._node_searches))]
            partition = self._partition
            nodes = partition.index.ordered()
            budgets, overdue = partition.disruption_budgets, partition.accounting.overdue
            node_search = NodeSearch(planned_usage, ask, top, seen, nodes, budgets, held, overdue, yielding, one_by_one)
            for plan in plans:
                node_search.apply_eviction({}, [], plan.ask, plan.node)
        self._node_searches[key] = node_search
        return node_search

    def _allowed(self, ask: Ask, node: Node, victims: list[Ask]) -> bool:
        """Does the resource manager allow the ask on the node when the victims have ended (section 2.9)?"""
        partition = self._partition
        on_node = [victim.key for victim in victims if victim.node is node]
        if on_node and partition.preemption_predicates is not None:
            return partition.preemption_predicates(ask.key, node.id, on_node)
        return partition.predicate_allows(ask, node, False)

    def _execute(self, plan: EvictionPlan) -> None:
        """Evict the victims, if any are needed, reserve the node for the ask, and give the ask its claim."""
        partition = self._partition
        ask, node, victims, missing, within = plan
        leaf = ask.app.queue
        names = partition.types.names
        rule = (
            f"queue {leaf.path} is below its guarantee, and others are above theirs"
            " (docs/spec/preemption.md, section 2)"
        )
        if within:
            rule = f"the ask has a higher priority, in queue {leaf.path} too (docs/understand/preemption.md, Within a queue)"
        records = evict(
            partition,
            ask,
            victims,
            "within-queue" if within else "guaranteed",
            dict(sorted((names[d], amount) for d, amount in missing.items())),
            f"preempting allocations {'of lower priority ' if within else ''}to free up resources to run ask: {ask.key}",
            rule,
        )
        for victim in victims:
            if (priorities := self._priorities.get(victim.app.queue)) is not None:
                priorities -= Counter([victim.priority])
        for other in [a for a in node.reservations if a is not ask and not a.triggered]:
            partition.reservations.cancel(other)  # the reservation of an old ask of lower priority
            partition.wakeups.reservation_lost(other)
        if ask.reserved is not node:
            partition.reservations.reserve(ask, node)
        partition.claims.add(ask, victims, records)
        generation = partition.claims.generation
        if within:
            partition.claims.placed(ask)  # it has counted on the room of those of lower order
        if partition.claims.generation != generation:
            self.forget()
        partition.wakeups.reservation_made()  # without victims its room may be free already, on a node that was reserved
        self._snapshot_key = self._current_key()
        # It has a result, and so holds a slot (docs/spec/scheduling.md, section 10).
        if ask.app.state is ApplicationState.ACCEPTED:
            partition.descent.accept(ask.app)


def _has_room(plan: EvictionPlan) -> bool:
    """Does the node take the ask now, so that nobody need go?"""
    return not plan.victims and plan.node.fits(plan.ask.shape.amounts, plan.ask.shape.need)
