"""The node search: the best victim set over all nodes, for an ask that preempts for a guarantee, or within its leaf.

Source: docs/understand/preemption.md, "The choice of victims"; docs/spec/preemption.md, section 2.

A search works on a *snapshot* of all candidates for eviction. Making it visits every allocation that may be evicted,
and every node. So it is made once for all asks of a leaf with the same priority, the same root of the search and the
same types, and is kept while nothing but preemption happens. Each eviction then updates only the queue budgets, leaf
groups and node groups that it touches.

Most asks need one victim. So candidates are sorted by how good they are as the only victim, and the first one that
makes enough room is the best. For asks that need more, each node has bounds of what is possible there
(`NodeCandidates`), and a node is searched only if its bound is better than the best victim set so far.

What terms of pods shut may be opened from elsewhere: by victims in a topology domain of the node. A node that has room
for the ask, and is shut, is therefore bounded by the best set of one that there could be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.constants import UNLIMITED
from licorne.core.nodes.node import Need
from licorne.core.queues.ask import Ask
from licorne.core.queues.queue import Queue

from .candidates import (
    Candidate,
    LeafCandidates,
    NodeCandidates,
    QueueBudget,
    blocked_by_reservation,
    candidate_order,
    enough,
)
from .planned_usage import PlannedUsage
from .ranking import VictimRank, lowest_rank, rank_of
from .together import broken_by_all, goes_together, may_be_evicted
from .verdicts import Verdicts
from .victim_search import VictimSearch

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node

    from .claims import Claim
    from .disruption_budgets import DisruptionBudgets


EFFORT_MAX = cython.declare(cython.longlong, 200_000)
"""After this many steps for one ask no further node is searched, if a feasible victim set is known or terms of pods count."""
GONE_MAX = cython.declare(cython.Py_ssize_t, 256)  # unusable candidates skipped in one scan before they are removed


@cython.cclass
class NodeSearch:
    """A snapshot of all candidates for asks like the first one, and the search in it, for one ask after the other.

    It is made with the root of the search (`top`), the ask's priority as each queue from its leaf to `top` sees it
    (`seen`), and all nodes, in their order. `budgets` has an entry for each queue that was needed so far. Where asks
    preempt `within` their leaf, that is the root of the search, and the candidates are its allocations of lower priority.
    Then claims of lower order do not count (`licorne.core.preemption.claims`), else all do: the ask would have their room
    without any victims. `yielding` are their asks.
    """

    planned_usage: PlannedUsage
    leaf: Queue
    top: Queue  # the root of the search
    within: cython.bint
    budgets: dict[Queue, QueueBudget]
    path: list[QueueBudget]  # from the ask's leaf up to the root queue
    ancestors: dict[Queue, None]
    has_guarantee: cython.bint  # the leaf has a guarantee of its own
    wanted: list[int]  # indices of the types that the ask requests
    leaf_groups: list[LeafCandidates]
    node_groups: list[NodeCandidates]  # in node order
    by_node: dict[Node | None, NodeCandidates]
    by_rank: list[Candidate]  # all candidates, the best victim set of one first
    reachable_by_rank: list[Candidate]  # `by_rank` without most of those that were evicted
    max_room: Vec  # no node has more room than this when one victim goes
    guarded_ancestors: list[QueueBudget]  # queues of `path` that must keep their guarantee
    slack_size: Vec | None  # the size of the ask for which their slack was computed
    infeasible: list[Any]  # (need, amounts) for which no single victim on any node was enough
    search: VictimSearch
    now: cython.longlong
    # The best victim set so far for the ask, its rank, and the node that it makes room on; None if none is known:
    best: VictimRank | None
    best_node: NodeCandidates | None
    best_victims: list[Candidate] | None
    searched: cython.longlong  # counted work: nodes searched
    held: dict[Node, None]  # nodes that are closed, but for the asks that are searched for
    hanging: dict[Node | None, None]  # nodes with victims that do not end: nobody else is evicted there
    disruption_budgets: Any
    has_budgets: cython.bint  # a candidate counts for a disruption budget
    lowest_priority: cython.longlong  # of a candidate
    yielding: dict[Ask, None]
    one_by_one: cython.bint  # applications whose allocations go together have no candidates
    verdicts: Any  # of nodes about the ask that is searched for (`Verdicts`)

    def __init__(
        self,
        planned_usage: PlannedUsage,
        ask: Ask,
        top: Queue,
        seen: dict[Queue, int] | None,
        nodes: list[Node],
        disruption_budgets: DisruptionBudgets,
        held: dict[Node, None],
        overdue: dict[Ask, None],
        yielding: tuple[Any, ...],
        one_by_one: bool,
    ) -> None:
        d: cython.Py_ssize_t
        budget: QueueBudget
        queue: Queue | None
        self.planned_usage = planned_usage
        self.disruption_budgets = disruption_budgets
        self.has_budgets = False
        self.held = held
        self.one_by_one = one_by_one
        self.hanging = {alloc.node: None for alloc in overdue}
        self.leaf = ask.app.queue
        self.top = top
        self.within = seen is None
        self.yielding = {}
        self.budgets = {}
        self.wanted = [d for d in range(ask.shape.amounts.n) if ask.shape.amounts.v[d] > 0]
        self.has_guarantee = bool(planned_usage.own_remaining(self.leaf))
        self.leaf_groups, self.by_rank, self.reachable_by_rank, self.path = [], [], [], []
        self.max_room = new_vec(0, 0)
        self.slack_size = None
        self.ancestors = {}
        queue = self.leaf
        while queue is not None:
            self.ancestors[queue] = None
            queue = queue.parent
        self.path = [self.budget(queue) for queue in self.ancestors]
        self._leave_out(yielding)
        self.guarded_ancestors = [budget for budget in self.path if budget.guarded]
        self.node_groups = [NodeCandidates(node, place) for place, node in enumerate(nodes)]
        self.by_node = {}
        for node_group in self.node_groups:
            self._count_room(node_group)
            self.by_node[node_group.node] = node_group
        if seen is not None:
            self._descend(self.top, seen, seen[self.top], False, 0, None)
        else:
            self._gather(self.leaf, ask.priority - 1, 0, None)
        for leaf_group in self.leaf_groups:
            self.by_rank += leaf_group.members
        self.by_rank.sort(key=candidate_order)
        self.reachable_by_rank = self.by_rank
        self.lowest_priority = min([c.priority for c in self.by_rank], default=0)
        self.set_ask_size(ask.shape.amounts)
        self._compute_max_room()
        self.infeasible = []
        self.search = VictimSearch()
        self.searched = 0
        self.verdicts = Verdicts(ask)
        self._begin(0)

    def _count_room(self, node_group: NodeCandidates) -> None:
        """Add to what is free on the node what evicted allocations give back, and subtract what asks claim."""
        for alloc in node_group.node.allocations:
            if alloc.preempted:
                node_group.room.plus(alloc.shape.amounts)
        for ask in node_group.node.reservations:
            if ask in self.planned_usage.claims.by_ask and ask not in self.yielding:
                node_group.room.minus(ask.shape.amounts)

    def _leave_out(self, claims: tuple[Claim, ...]) -> None:
        """Count these claims neither on nodes nor in the quotas of queues."""
        budget: QueueBudget
        for claim in claims:
            self.yielding[claim.ask] = None
            for each in self.path:
                budget = each
                if budget.queue in claim.levels:
                    budget.outranked.plus(claim.amounts)

    def budget(self, queue: Queue) -> QueueBudget:
        """The budget of the queue, made with those of its ancestors if it is new."""
        found: QueueBudget | None = self.budgets.get(queue)
        if found is None:
            above = None if queue.parent is None else self.budget(queue.parent)
            found = QueueBudget(queue, above, self.planned_usage.planned(queue))
            found.on_path = queue in self.ancestors
            inside = queue is not self.top and (above is not None and (above.queue is self.top or above.inside))
            found.inside = inside
            found.within = self.within
            # An ask that uses an ancestor's guarantee must not take the room for it from below that same ancestor.
            found.guarded = inside or (found.on_path and (self.within or not self.has_guarantee))
            found.recompute(new_vec(0, 0))
            self.budgets[queue] = found
        return found

    # -- candidates (section 2.4) ----------------------------------------------------------------------

    def _descend(
        self, queue: Queue, seen: dict[Queue, int], priority: int, fenced: bool, carried: int, frozen: int | None
    ) -> None:
        """Collect the candidates below this queue.

        `priority` is the ask's priority as this queue sees it; `carried` the sum of the priority offsets between the
        root of the search and this queue. Inside a priority fence (`fenced`) the ask's priority is compared with the
        offsets of further fences only, not with those of allocations, and every candidate has the priority of the
        outermost fence (`frozen`).
        """
        child: Queue
        if queue is self.leaf or queue.allocated.zero():
            return
        if queue.is_leaf:
            if queue.settings.preemption_policy != "disabled":
                self._gather(queue, None if fenced else priority, carried, frozen)
            return
        for name in sorted(queue.children):
            child = queue.children[name]
            below = carried + child.offset
            kept = below if child.fence and frozen is None else frozen
            if child in seen:
                self._descend(child, seen, seen[child], False, below, kept)
            elif not child.fence:
                self._descend(child, seen, priority - child.offset, fenced, below, kept)
            elif child.offset <= priority:  # a fence of higher priority hides everything below it, also within a fence
                self._descend(child, seen, priority, True, below, kept)

    def _gather(self, leaf: Queue, highest: int | None, carried: int, frozen: int | None) -> None:
        """Collect the candidates of a leaf; allocations of a priority above `highest` are none."""
        budget: QueueBudget | None = self.budget(leaf)
        victim: Ask
        node_group: NodeCandidates | None
        found: Candidate
        budgets: list[Any] = []
        leaf_group: LeafCandidates = LeafCandidates(self.budget(leaf), budgets, carried, frozen)
        while budget is not None:
            if budget.guarded:
                budgets.append(budget)
            budget = budget.parent
        for app in leaf.apps.values():
            if not may_be_evicted(app, highest) or (self.one_by_one and goes_together(app)):
                continue
            broken = broken_by_all(app, self.disruption_budgets)
            for each in app.allocations.values():
                victim = each
                if not victim.may_go or (highest is not None and victim.priority > highest):
                    continue
                node_group = self.by_node.get(victim.node)
                if node_group is None or not self._shares_a_type(victim.shape.amounts):
                    continue
                limits = self.disruption_budgets.of(victim) + broken
                found = Candidate(victim, leaf_group, node_group, leaf_group.priority_of(victim), limits)
                if limits:
                    self.has_budgets = True
                leaf_group.members.append(found)
                leaf_group.largest.raise_to(found.amounts)
                node_group.members.append(found)
        if leaf_group.members:
            leaf_group.eligible = self._eligible(leaf)
            self.leaf_groups.append(leaf_group)

    def _eligible(self, leaf: Queue) -> bool:
        """May allocations of the leaf be evicted? A guarantee protects it from others, and not from its own asks."""
        return self.within or not self.planned_usage.protected(leaf, self.ancestors, self.has_guarantee)

    @cython.cfunc
    def _shares_a_type(self, amounts: Vec) -> cython.bint:
        for d in self.wanted:
            if amounts.at(d) > 0:
                return True
        return False

    # -- updates ---------------------------------------------------------------------------------------

    @cython.ccall
    def set_ask_size(self, amounts: Vec) -> cython.void:
        """Prepare for an ask of this size.

        Its placement adds to the queues that it shares with candidates, so these queues may lose more or less.
        """
        budget: QueueBudget
        if self.slack_size is not None and (not self.guarded_ancestors or self.slack_size.same(amounts)):
            return
        self.slack_size = amounts
        for each in self.guarded_ancestors:
            budget = each
            budget.recompute(amounts)
        self._recompute_leaf_groups(None)

    def apply_eviction(self, changed: dict[Queue, None], victims: list[Any], ask: Ask, node: Node) -> None:
        """Update the snapshot after an eviction: the victims leave, and the ask has a claim to the node.

        `changed` are the queues whose planned usage has changed; `PlannedUsage` must have been updated before.
        """
        budget: QueueBudget
        node_group: NodeCandidates | None
        empty: Vec = new_vec(0, 0)
        for queue in changed:
            found = self.budgets.get(queue)
            if found is not None:
                budget = found
                budget.recompute(empty if self.slack_size is None else self.slack_size)
        node_group = self.by_node.get(node)
        if node_group is not None:
            node_group.room.minus(ask.shape.amounts)
            node_group.stale = True
        for victim in victims:
            node_group = self.by_node.get(victim.node)
            if node_group is not None:
                node_group.room.plus(victim.shape.amounts)
                node_group.stale = True
        self._recompute_leaf_groups(changed)

    def _recompute_leaf_groups(self, changed: dict[Queue, None] | None) -> None:
        """Recompute what each leaf may lose, and mark node bounds as stale where other candidates may count now.

        `changed` are the queues whose planned usage has changed; None: only the size of the ask has.
        """
        leaf_group: LeafCandidates
        budget: QueueBudget | None
        touched: bool
        could: bool
        for each in self.leaf_groups:
            leaf_group = each
            touched = changed is None or bool(self.guarded_ancestors) or not self.has_guarantee
            budget = leaf_group.budget
            while not touched and budget is not None and not budget.on_path:
                touched = changed is not None and budget.queue in changed
                budget = budget.parent
            if not touched:
                continue
            # If even the largest candidate could go before and can go now, no candidate changed: bounds stay valid.
            could = leaf_group.eligible and leaf_group.max_loss.covers(leaf_group.largest)
            leaf_group.recompute()
            if changed is not None:
                leaf_group.eligible = self._eligible(leaf_group.budget.queue)
            if not (could and leaf_group.eligible and leaf_group.max_loss.covers(leaf_group.largest)):
                for member in leaf_group.members:
                    member.node_group.stale = True

    def _compute_max_room(self) -> None:
        """Compute `max_room`: an upper bound, by type, of what can be free on any node when one victim has ended."""
        node_group: NodeCandidates
        best: Vec
        for each in self.node_groups:
            node_group = each
            best = new_vec(0, 0)
            for member in node_group.members:
                best.raise_to(cython.cast(Candidate, member).amounts)
            best.plus(node_group.room)
            self.max_room.raise_to(best)

    # -- the search ------------------------------------------------------------------------------------

    def find(self, ask: Ask, now: int, refused: dict[NodeCandidates, None]) -> tuple[NodeCandidates, list[Any]] | None:
        """The best victim set, and the node that it makes room on; None if no victim set is feasible.

        The set is empty if a node has room already, or will have when evicted allocations have ended. `refused` are
        nodes that the resource manager has refused for this ask. A set that breaks a disruption budget is searched only
        if no other is feasible, on any node.
        """
        self.search.keeps_budgets = True
        self.verdicts = Verdicts(ask)
        found = self._find(ask, now, refused)
        if found is None and self.has_budgets:
            self.search.keeps_budgets = False
            found = self._find(ask, now, refused)
        return found

    def _find(self, ask: Ask, now: int, refused: dict[NodeCandidates, None]) -> tuple[NodeCandidates, list[Any]] | None:
        amounts: Vec = ask.shape.amounts
        over_quota: Vec | None = self.over_quota(amounts)
        self._begin(now)
        if over_quota is None:
            return None
        self.set_ask_size(amounts)
        with_room = self._node_with_room(ask, refused)
        if over_quota.zero() and with_room is not None:
            return with_room, []
        self._find_single_victim(ask, over_quota, with_room, refused)
        # One victim that is not reluctant cannot be bettered by any set; but within the leaf by one of lower priorities, and by
        # one in the topology domain of another node.
        if (
            self.best is None
            or self.best.reluctant
            or (self.within and self.best.highest > self.lowest_priority)
            or ask.shape.need.checks
        ):
            # On a node with room victims are needed for a quota only; `_search_nodes` leaves such nodes out.
            if with_room is not None:
                self._search_node(with_room, ask, over_quota)
            self._search_nodes(ask, over_quota, refused)
        return None if self.best_node is None or self.best_victims is None else (self.best_node, self.best_victims)

    def _begin(self, now: int) -> None:
        self.now = now
        self.best = None
        self.best_node = None
        self.best_victims = None

    def _keep_if_better(self, node_group: NodeCandidates, victims: list[Any]) -> None:
        """Keep the victim set for this node if it is the best so far."""
        rank: VictimRank = rank_of(victims, node_group.order)
        if self.best is None or rank.precedes(self.best):
            self.best = rank
            self.best_node = node_group
            self.best_victims = victims

    def over_quota(self, amounts: Vec) -> Vec | None:
        """What victims must give back, by type, so that the ask fits the quotas of its queues.

        None if no victims could help: a queue below the root of the search would be above its quota, or that root is
        the ask's own leaf, in which there are no candidates. What goes within the leaf counts for all of its queues.
        """
        over_quota: Vec = new_vec(amounts.n, 0)
        budget: QueueBudget
        d: cython.Py_ssize_t
        x: cython.longlong
        below: cython.bint = not self.within
        for each in self.path:
            budget = each
            if budget.queue is self.top:
                below = below and budget.queue is self.leaf
            for d in range(amounts.n):
                if amounts.v[d] > 0 and budget.queue.limit.at(d) != UNLIMITED:
                    x = budget.planned.at(d) - budget.outranked.at(d) + amounts.v[d] - budget.queue.limit.at(d)
                    if x > 0 and below:
                        return None
                    over_quota.v[d] = max(over_quota.v[d], x)
        return over_quota

    @cython.cfunc
    def _could_run(self, node_group: NodeCandidates, ask: Ask) -> cython.bint:
        """Could the ask run on the node if it were empty (section 2.7)?"""
        need: Need = ask.shape.need
        if self.hanging and node_group.node in self.hanging:
            return False
        if not node_group.node.schedulable or not node_group.node.capacity.covers(ask.shape.amounts):
            return False
        if node_group.node.reservations or node_group.node in self.held:
            blocked = blocked_by_reservation(node_group.node, ask, self.now, self.within)
            return not blocked and need.may_match(node_group.node)
        if need.judged:
            return node_group.node.open and need.may_match(node_group.node)
        return node_group.node.meets(need)

    @cython.cfunc
    @cython.exceptval(-1)
    def _passes_without(self, node: Node, ask: Ask, victims: list[Any]) -> cython.bint:
        """Will amounts alone count for the ask on the node when these, and evicted allocations, have ended?"""
        if not ask.shape.need.judged:
            return True
        self.search.steps += 1
        verdict: Any = self.verdicts.of(node)
        return verdict is None or verdict.suffices_without(victims)

    def _node_with_room(self, ask: Ask, refused: dict[NodeCandidates, None]) -> NodeCandidates | None:
        """The first node that has room already, or will have when evicted allocations have ended."""
        node_group: NodeCandidates
        for each in self.node_groups:
            node_group = each
            if (
                node_group.room.covers(ask.shape.amounts)
                and self._could_run(node_group, ask)
                and node_group not in refused
                and self._passes_without(node_group.node, ask, [])
            ):
                return node_group
        return None

    def _find_single_victim(
        self, ask: Ask, over_quota: Vec, with_room: NodeCandidates | None, refused: dict[NodeCandidates, None]
    ) -> None:
        """Find the best victim set of one.

        If a node has room (`with_room`), the victim serves to keep a quota only, and may be on any node.
        """
        amounts: Vec = ask.shape.amounts
        c: Candidate
        gone: cython.Py_ssize_t = 0
        late: bool = False  # one was large enough, but for a budget, a quota or a refusal
        if with_room is None:
            if not self.max_room.covers(amounts):
                return
            for need, least in self.infeasible:
                if need is ask.shape.need and amounts.covers(least):
                    return
        candidates: list[Any] = self.reachable_by_rank if with_room is None else self.by_rank
        for each in candidates:
            c = each
            if c.alloc.preempted or c.alloc.released:
                gone += 1
                continue
            here = enough(c.node_group.room, c.amounts, amounts) and self._could_run(c.node_group, ask)
            here = here and self._passes_without(c.node_group.node, ask, [c.alloc])
            if here and c.node_group in refused:
                here = False
                late = True
            if not here and with_room is None:
                continue
            if not c.usable() or not c.amounts.covers(over_quota):
                late = True
                continue
            if self.search.keeps_budgets and not self.search.within_budgets(c):
                late = True
                continue
            if with_room is None or (here and c.node_group.order < with_room.order):
                self._keep_if_better(c.node_group, [c])
            elif not ask.shape.need.checks or self._passes_without(with_room.node, ask, [c.alloc]):
                self._keep_if_better(with_room, [c])
            else:
                continue  # the ask wants to be near it, or its end leaves fewer pods elsewhere
            break
        # Unusable candidates are removed many at a time: each removal is a pass over the whole list.
        if gone > GONE_MAX and with_room is None:
            self.reachable_by_rank = [c for c in self.reachable_by_rank if not c.alloc.preempted]
        # Remembered only if size and constraints were the reason: budgets, quotas and refusals may change.
        if self.best is None and with_room is None and not late:
            self.infeasible.append((ask.shape.need, amounts))

    def _search_nodes(self, ask: Ask, over_quota: Vec, refused: dict[NodeCandidates, None]) -> None:
        """Search the nodes whose bound is better than the best victim set so far, the node with the best bound first.

        A good set early lets the bounds exclude most of the other nodes.
        """
        start: cython.longlong = self.search.steps
        node_group: NodeCandidates
        first: NodeCandidates | None = None
        bound: VictimRank | None
        least: VictimRank | None = self.best
        for each in self.node_groups:
            node_group = each
            bound = self._bound(node_group, ask, over_quota, least)
            if bound is not None and node_group not in refused:
                least = bound
                first = node_group
        if first is None:
            return
        self._search_node(first, ask, over_quota)
        for each in self.node_groups:
            node_group = each
            if node_group is first or self._bound(node_group, ask, over_quota, self.best) is None:
                continue
            if (self.best is not None or ask.shape.need.checks) and self.search.steps - start > EFFORT_MAX:
                break
            if node_group not in refused:
                self._search_node(node_group, ask, over_quota)

    @cython.cfunc
    def _bound(
        self, node_group: NodeCandidates, ask: Ask, over_quota: Vec, best: VictimRank | None
    ) -> VictimRank | None:
        """A rank that no victim set for this node precedes; None if no such set can be better than `best`.

        It is None for a node that has room without any victim, too: `_node_with_room` finds such nodes.
        """
        bound: VictimRank | None
        amounts: Vec = ask.shape.amounts
        least: cython.Py_ssize_t = 0
        if node_group.stale:
            node_group.recompute()
        elsewhere: cython.bint = bool(ask.shape.need.checks)  # victims on other nodes may be enough
        bound = node_group.lowest_for(amounts, 0)
        if bound is None or (bound.count == 0 and not ask.shape.need.judged):
            return None
        if (best is not None and best.precedes(bound)) or not self._could_run(node_group, ask):
            return None
        if not self._passes_without(node_group.node, ask, []):
            least = 1  # something must go, even if the amounts suffice
            if not elsewhere:
                bound = node_group.lowest_for(amounts, least)
        if bound is not None and bound.count == 0 and elsewhere and (least or not over_quota.zero()):
            bound = lowest_rank(
                0, self.lowest_priority if self.within else 0, 1, self.lowest_priority, UNLIMITED, UNLIMITED
            )
        if bound is None or bound.count == 0 or (best is not None and best.precedes(bound)):
            return None
        return bound

    def _search_node(self, node_group: NodeCandidates, ask: Ask, over_quota: Vec) -> None:
        """Find the best victim set for this node."""
        d: cython.Py_ssize_t
        amounts: Vec = ask.shape.amounts
        here: Vec = new_vec(amounts.n, 0)
        elsewhere: bool = bool(ask.shape.need.checks)
        self.searched += 1
        self.search.verdict = self.verdicts.of(node_group.node)
        for d in range(amounts.n):
            if amounts.v[d] > 0:
                here.v[d] = max(amounts.v[d] - node_group.room.at(d), 0)
                elsewhere = elsewhere or over_quota.v[d] > here.v[d]
        far = self.search.helpful_elsewhere(node_group, over_quota, self.by_rank, self.by_node) if elsewhere else []
        found = self.search.find(node_group.usable(), far, here, over_quota.clone(), self.best)
        if found is not None:
            self._keep_if_better(node_group, found)
