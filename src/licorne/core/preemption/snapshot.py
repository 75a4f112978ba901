"""A picture of all that may be evicted for asks of a kind, and what of it changes as some are.

Source: docs/spec/preemption.md, sections 2.4 to 2.7.

It is made once for all asks of a leaf with the same priority, the same root of the search and the same types, and kept
while nothing but preemption happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec, new_vec
    from cython.cimports.licorne.core.preemption.candidates import (
        Candidate,
        LeafCandidates,
        NodeCandidates,
        QueueBudget,
    )
    from cython.cimports.licorne.core.preemption.guarantees import PlannedUsage
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.queue import Queue
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec, new_vec
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .candidates import Candidate, LeafCandidates, NodeCandidates, QueueBudget
    from .guarantees import PlannedUsage

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node


@cython.cclass
class PreemptionSnapshot:
    """All eligible victims for asks like the first one. `budgets` are the queues looked at so far."""

    planned_usage: PlannedUsage
    leaf: Queue
    top: Queue  # the root of the search
    budgets: dict[Queue, QueueBudget]
    path: list[QueueBudget]  # the ask's leaf, and up to root
    ancestors: dict[Queue, None]
    has_guarantee: cython.bint  # the leaf has a guarantee of its own
    wanted: list[int]  # the places of the types that are wanted
    leaf_groups: list[LeafCandidates]
    node_groups: list[NodeCandidates]  # in node order
    by_node: dict[Node | None, NodeCandidates]
    by_rank: list[Candidate]  # candidates in the order of sets of one
    reachable_by_rank: list[Candidate]  # the same without many that are gone, or whose node is closed
    max_room: Vec  # no node has more room than this when one victim goes
    guarded_ancestors: list[QueueBudget]  # levels of `path` that must keep a guarantee
    slack_size: Vec | None  # the size that their slack is for

    def build(
        self, planned_usage: PlannedUsage, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Node]
    ) -> None:
        """Look at everything that matters to asks like this one; `nodes` in their order."""
        d: cython.Py_ssize_t
        budget: QueueBudget
        queue: Queue | None
        self.planned_usage = planned_usage
        self.leaf = ask.app.queue
        self.top = top
        self.budgets = {}
        self.wanted = [d for d in range(ask.shape.amounts.n) if ask.shape.amounts.v[d] > 0]
        self.has_guarantee = bool(planned_usage.own_remaining(self.leaf))
        self.leaf_groups = []
        self.by_rank = []
        self.max_room = new_vec(0, 0)
        self.slack_size = None
        self.reachable_by_rank = []
        self.path = []
        self.ancestors = {}
        queue = self.leaf
        while queue is not None:
            self.ancestors[queue] = None
            queue = queue.parent
        self.path = [self.budget(queue) for queue in self.ancestors]
        self.guarded_ancestors = [budget for budget in self.path if budget.guarded]
        self.node_groups = [NodeCandidates(node, place) for place, node in enumerate(nodes)]
        self.by_node = {}
        for node_group in self.node_groups:
            self._add_leaving(node_group)
            self.by_node[node_group.node] = node_group
        self._descend(self.top, seen, seen[self.top], False, 0, None)
        for leaf_group in self.leaf_groups:
            self.by_rank += leaf_group.members
        self.by_rank.sort(key=_order)
        self.reachable_by_rank = self.by_rank
        self.set_ask_size(ask.shape.amounts)
        self._compute_max_room()

    @staticmethod
    def _add_leaving(node_group: NodeCandidates) -> None:
        for alloc in node_group.node.allocations:
            if alloc.preempted:
                node_group.room.plus(alloc.shape.amounts)

    def budget(self, queue: Queue) -> QueueBudget:
        """The queue with what may be taken from it; those above it too."""
        found: QueueBudget | None = self.budgets.get(queue)
        if found is None:
            above = None if queue.parent is None else self.budget(queue.parent)
            found = QueueBudget(queue, above, self.planned_usage.planned(queue))
            found.on_path = queue in self.ancestors
            inside = queue is not self.top and (above is not None and (above.queue is self.top or above.inside))
            found.inside = inside
            # Who claims what is guaranteed to an ancestor must not take it from below that ancestor.
            found.guarded = inside or (found.on_path and not self.has_guarantee)
            found.recompute(new_vec(0, 0))
            self.budgets[queue] = found
        return found

    # -- who is eligible (section 2.4) -----------------------------------------------------------------

    def _descend(
        self, queue: Queue, seen: dict[Queue, int], priority: int, fenced: bool, carried: int, frozen: int | None
    ) -> None:
        """`priority`: the ask's, as this queue sees it; `carried`: the offsets between the root of the search and it.

        Inside a priority fence (`fenced`) it is compared with fences alone, and all count with the outer one's (`frozen`).
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
            elif child.offset <= priority:  # also a fence within a fence
                self._descend(child, seen, priority, True, below, kept)

    def _gather(self, leaf: Queue, highest: int | None, carried: int, frozen: int | None) -> None:
        """The candidates of a leaf; `highest`: no one of a higher priority than this."""
        budget: QueueBudget | None = self.budget(leaf)
        victim: Ask
        node_group: NodeCandidates | None
        found: Candidate
        budgets: list[Any] = []
        leaf_group: LeafCandidates = LeafCandidates(self.budget(leaf), budgets)
        while budget is not None:
            if budget.guarded:
                budgets.append(budget)
            budget = budget.parent
        for app in leaf.apps.values():
            for each in app.allocations.values():
                victim = each
                if not victim.may_go:
                    continue
                if highest is not None and victim.priority > highest:
                    continue
                node_group = self.by_node.get(victim.node)
                if node_group is None or not self._shares_a_type(victim.shape.amounts):
                    continue
                found = Candidate(
                    victim, leaf_group, node_group, victim.priority + carried if frozen is None else frozen
                )
                leaf_group.members.append(found)
                leaf_group.largest.raise_to(found.amounts)
                node_group.members.append(found)
        if leaf_group.members:
            leaf_group.eligible = not self.planned_usage.protected(leaf, self.ancestors, self.has_guarantee)
            self.leaf_groups.append(leaf_group)

    @cython.cfunc
    def _shares_a_type(self, amounts: Vec) -> cython.bint:
        for d in self.wanted:
            if amounts.at(d) > 0:
                return True
        return False

    # -- what changes ----------------------------------------------------------------------------------

    @cython.ccall
    def set_ask_size(self, amounts: Vec) -> cython.void:
        """The next ask has this size: queues that it shares with victims may lose more or less."""
        budget: QueueBudget
        if self.slack_size is not None and (not self.guarded_ancestors or self.slack_size.same(amounts)):
            return
        self.slack_size = amounts
        for each in self.guarded_ancestors:
            budget = each
            budget.recompute(amounts)
        self._recompute_leaf_groups(None)

    def apply_eviction(self, changed: dict[Queue, None], victims: list[Any], reserved_node: Node | None) -> None:
        """Somebody was evicted, and a node is kept; the ledger has been told, the plan of `changed` queues is another."""
        budget: QueueBudget
        node_group: NodeCandidates | None
        empty: Vec = new_vec(0, 0)
        for queue in changed:
            found = self.budgets.get(queue)
            if found is not None:
                budget = found
                budget.recompute(empty if self.slack_size is None else self.slack_size)
        node_group = self.by_node.get(reserved_node)
        if node_group is not None:
            node_group.reserved = True
        for victim in victims:
            node_group = self.by_node.get(victim.node)
            if node_group is not None:
                node_group.room.plus(victim.shape.amounts)
                node_group.stale = True
        self._recompute_leaf_groups(changed)

    def _recompute_leaf_groups(self, changed: dict[Queue, None] | None) -> None:
        """What each leaf may lose now; where that is another matter for anybody, bounds of nodes are taken anew."""
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
            could = leaf_group.eligible and leaf_group.max_loss.covers(leaf_group.largest)
            leaf_group.recompute()
            if changed is not None:
                leaf_group.eligible = not self.planned_usage.protected(
                    leaf_group.budget.queue, self.ancestors, self.has_guarantee
                )
            if not (could and leaf_group.eligible and leaf_group.max_loss.covers(leaf_group.largest)):
                for member in leaf_group.members:
                    member.node_group.stale = True

    def _compute_max_room(self) -> None:
        """`max_room`, as an upper bound of what a node can have when one victim has gone."""
        node_group: NodeCandidates
        best: Vec
        for each in self.node_groups:
            node_group = each
            best = new_vec(0, 0)
            for member in node_group.members:
                best.raise_to(cython.cast(Candidate, member).amounts)
            best.plus(node_group.room)
            self.max_room.raise_to(best)


def _order(c: Candidate) -> tuple[int, int, int, int]:
    return c.order
