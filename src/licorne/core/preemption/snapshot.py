"""A snapshot of all candidates for eviction, and its update after evictions.

Source: docs/spec/preemption.md, sections 2.4 to 2.7.

Making a snapshot visits every allocation that may be evicted, and every node. So it is made once for all asks of a leaf
with the same priority, the same root of the search and the same types, and is kept while nothing but preemption
happens. Each eviction then updates only the queue budgets, leaf groups and node groups that it touches.
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
    from cython.cimports.licorne.core.preemption.planned_usage import PlannedUsage
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.queue import Queue
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec, new_vec
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .candidates import Candidate, LeafCandidates, NodeCandidates, QueueBudget
    from .planned_usage import PlannedUsage

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node


@cython.cclass
class PreemptionSnapshot:
    """All candidates for asks like the first one. `budgets` has an entry for each queue that was needed so far."""

    planned_usage: PlannedUsage
    leaf: Queue
    top: Queue  # the root of the search
    budgets: dict[Queue, QueueBudget]
    path: list[QueueBudget]  # from the ask's leaf up to the root queue
    ancestors: dict[Queue, None]
    has_guarantee: cython.bint  # the leaf has a guarantee of its own
    wanted: list[int]  # indices of the types that the ask requests
    leaf_groups: list[LeafCandidates]
    node_groups: dict[NodeCandidates, None]  # in node order, without those that are `reserved`
    by_node: dict[Node | None, NodeCandidates]
    by_rank: list[Candidate]  # all candidates, the best victim set of one first
    reachable_by_rank: list[Candidate]  # `by_rank` without most of those that were evicted, or whose node is reserved
    max_room: Vec  # no node has more room than this when one victim goes
    guarded_ancestors: list[QueueBudget]  # queues of `path` that must keep their guarantee
    slack_size: Vec | None  # the size of the ask for which their slack was computed

    def build(
        self, planned_usage: PlannedUsage, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Node]
    ) -> None:
        """Collect the candidates for asks like this one.

        `top` is the root of the search, `seen` the ask's priority as each queue from its leaf to `top` sees it; `nodes`
        are all nodes, in their order.
        """
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
        self.node_groups = {NodeCandidates(node, place): None for place, node in enumerate(nodes)}
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
        """The budget of the queue, made with those of its ancestors if it is new."""
        found: QueueBudget | None = self.budgets.get(queue)
        if found is None:
            above = None if queue.parent is None else self.budget(queue.parent)
            found = QueueBudget(queue, above, self.planned_usage.planned(queue))
            found.on_path = queue in self.ancestors
            inside = queue is not self.top and (above is not None and (above.queue is self.top or above.inside))
            found.inside = inside
            # An ask that uses an ancestor's guarantee must not take the room for it from below that same ancestor.
            found.guarded = inside or (found.on_path and not self.has_guarantee)
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

    def apply_eviction(self, changed: dict[Queue, None], victims: list[Any], reserved_node: Node | None) -> None:
        """Update the snapshot after an eviction: the victims leave, and a node is now reserved for the ask.

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
        node_group = self.by_node.get(reserved_node)
        if node_group is not None and not node_group.reserved:
            node_group.reserved = True
            del self.node_groups[node_group]
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
                leaf_group.eligible = not self.planned_usage.protected(
                    leaf_group.budget.queue, self.ancestors, self.has_guarantee
                )
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


def _order(c: Candidate) -> tuple[int, int, int, int]:
    return c.order
