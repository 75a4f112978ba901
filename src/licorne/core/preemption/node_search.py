"""The node search: the best victim set over all nodes, for an ask whose queue is below its guarantee.

Source: docs/preemption.md, "The choice of victims"; docs/spec/preemption.md, section 2.

Most asks need one victim. So candidates are sorted by how good they are as the only victim, and the first one that
makes enough room is the best. For asks that need more, each node has bounds of what is possible there
(`NodeCandidates`), and a node is searched only if its bound is better than the best victim set so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython

from .victim_search import rank_of

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec, new_vec
    from cython.cimports.licorne.core.constants import UNLIMITED
    from cython.cimports.licorne.core.nodes.node import Need
    from cython.cimports.licorne.core.preemption.candidates import Bounds, Candidate, NodeCandidates, QueueBudget
    from cython.cimports.licorne.core.preemption.planned_usage import PlannedUsage
    from cython.cimports.licorne.core.preemption.snapshot import PreemptionSnapshot
    from cython.cimports.licorne.core.preemption.victim_search import VictimSearch
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.queue import Queue
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec, new_vec
    from licorne.core.constants import UNLIMITED
    from licorne.core.nodes.node import Need
    from licorne.core.queues.ask import Ask
    from licorne.core.queues.queue import Queue

    from .candidates import Bounds, Candidate, NodeCandidates, QueueBudget
    from .planned_usage import PlannedUsage
    from .snapshot import PreemptionSnapshot
    from .victim_search import VictimSearch

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node

EFFORT_MAX = cython.declare(cython.longlong, 200_000)
"""After this many steps for one ask no further node is searched, if a feasible victim set is known."""
GONE_MAX = cython.declare(cython.Py_ssize_t, 256)  # unusable candidates skipped in one scan before they are removed
FAR_MAX = cython.declare(cython.Py_ssize_t, 64)  # candidates on other nodes that the search of one node considers
OLD_NS = cython.declare(cython.longlong, 7_202_000_000_000)
"""120 minutes and 2 seconds: the reservation of an ask older than this does not exclude an ask of higher priority."""


def blocked_by_reservation(node: Node, ask: Ask, now: int) -> bool:
    """Do other asks' reservations of the node forbid that this ask preempts there (docs/spec/preemption.md, section 2.7)?"""
    other: Ask
    for each in node.reservations:
        other = each
        if other is not ask and (
            other.required or other.triggered or other.priority >= ask.priority or now - other.created <= OLD_NS
        ):
            return True
    return False


@cython.cclass
class NodeSearch(PreemptionSnapshot):
    """The search in a snapshot, for one ask after the other."""

    infeasible: list[Any]  # (need, amounts) for which no single victim on any node was enough
    search: VictimSearch
    now: cython.longlong
    # The rank of the victim set that is to be beaten:
    target_reluctant: cython.longlong
    target_count: cython.longlong
    target_sum: cython.longlong
    target_created: cython.longlong
    target_seq: cython.longlong
    # The bound of the node that `_may_be_better` has looked at last:
    bound_reluctant: cython.longlong
    bound_count: cython.longlong
    bound_sum: cython.longlong
    bound_created: cython.longlong
    bound_seq: cython.longlong
    searched: cython.longlong  # counted work: nodes searched

    def __init__(
        self, planned_usage: PlannedUsage, ask: Ask, top: Queue, seen: dict[Queue, int], nodes: list[Node]
    ) -> None:
        self.build(planned_usage, ask, top, seen, nodes)
        self.infeasible = []
        self.search = VictimSearch()
        self.now = 0
        self.searched = 0
        self._set_target(None)

    # -- the search ------------------------------------------------------------------------------------

    def find(self, ask: Ask, now: int, refused: dict[NodeCandidates, None]) -> tuple[NodeCandidates, list[Any]] | None:
        """The best victim set, and the node that it makes room on; None if no victim set is feasible.

        The set is empty if a node has room already, or will have when evicted allocations have ended. `refused` are
        nodes that the resource manager has refused for this ask.
        """
        amounts: Vec = ask.shape.amounts
        over_quota: Vec | None = self._over_quota(amounts)
        best: tuple[Any, ...] | None = None
        self.now = now
        if over_quota is None:
            return None
        self.set_ask_size(amounts)
        with_room = self._node_with_room(ask, refused)
        if over_quota.zero() and with_room is not None:
            return with_room, []
        single = self._best_single_victim(ask, over_quota, with_room, refused)
        if single is not None:
            best = single
            if not single[0][0]:  # one victim, and not a reluctant one: no set can be better
                return single[2], single[3]
        # On a node with room victims are needed for a quota only; `_search_nodes` leaves such nodes out.
        if with_room is not None:
            best = self._better(best, self._search_node(with_room, ask, over_quota, best))
        best = self._search_nodes(ask, over_quota, best, refused)
        return None if best is None else (best[2], best[3])

    def _over_quota(self, amounts: Vec) -> Vec | None:
        """What victims must give back, by type, so that the ask fits the quotas of its queues.

        None if no victims could help: a queue below the root of the search would be above its quota, or that root is
        the ask's own leaf, in which there are no candidates.
        """
        over_quota: Vec = new_vec(amounts.n, 0)
        budget: QueueBudget
        d: cython.Py_ssize_t
        x: cython.longlong
        below: cython.bint = True
        for each in self.path:
            budget = each
            if budget.queue is self.top:
                below = budget.queue is self.leaf
            for d in range(amounts.n):
                if amounts.v[d] > 0 and budget.queue.limit.at(d) != UNLIMITED:
                    x = budget.planned.at(d) + amounts.v[d] - budget.queue.limit.at(d)
                    if x > 0 and below:
                        return None
                    over_quota.v[d] = max(over_quota.v[d], x)
        return over_quota

    @cython.cfunc
    def _could_run(self, node_group: NodeCandidates, ask: Ask) -> cython.bint:
        """Could the ask run on the node if it were empty (section 2.7)?"""
        need: Need = ask.shape.need
        if not node_group.node.schedulable or not node_group.node.capacity.covers(ask.shape.amounts):
            return False
        if node_group.node.reservations:
            return not blocked_by_reservation(node_group.node, ask, self.now) and need.matches(node_group.node)
        return node_group.node.meets(need)

    def _node_with_room(self, ask: Ask, refused: dict[NodeCandidates, None]) -> NodeCandidates | None:
        """The first node that has room already, or will have when evicted allocations have ended."""
        node_group: NodeCandidates
        for each in self.node_groups:
            node_group = each
            if (
                node_group.room.covers(ask.shape.amounts)
                and self._could_run(node_group, ask)
                and node_group not in refused
            ):
                return node_group
        return None

    @cython.cfunc
    @cython.exceptval(check=False)
    def _enough(self, room: Vec, more: Vec, ask: Vec) -> cython.bint:
        """Does the ask fit into `room` when `more` is given back? Only types that it requests are compared."""
        d: cython.Py_ssize_t
        for d in range(ask.n):
            if ask.v[d] > 0 and room.at(d) + more.at(d) < ask.v[d]:
                return False
        return True

    def _best_single_victim(
        self, ask: Ask, over_quota: Vec, with_room: NodeCandidates | None, refused: dict[NodeCandidates, None]
    ) -> tuple[Any, ...] | None:
        """The best victim set of one: its rank, the node's position, the node, the set; None if there is none.

        If a node has room (`with_room`), the victim serves to keep a quota only, and may be on any node.
        """
        amounts: Vec = ask.shape.amounts
        c: Candidate
        gone: cython.Py_ssize_t = 0
        late: bool = False  # one was large enough, but for a budget, a quota or a refusal
        found: Candidate | None = None
        where: NodeCandidates | None = None
        if with_room is None:
            if not self.max_room.covers(amounts):
                return None
            for need, least in self.infeasible:
                if need is ask.shape.need and amounts.covers(least):
                    return None
        candidates: list[Any] = self.reachable_by_rank if with_room is None else self.by_rank
        for each in candidates:
            c = each
            if c.alloc.preempted or c.alloc.released or (c.node_group.reserved and with_room is None):
                gone += 1
                continue
            here = self._enough(c.node_group.room, c.amounts, amounts) and self._could_run(c.node_group, ask)
            if here and c.node_group in refused:
                here = False
                late = True
            if not here and with_room is None:
                continue
            if not c.usable() or not c.amounts.covers(over_quota):
                late = True
                continue
            found = c
            where = c.node_group if here else with_room
            if here and with_room is not None and with_room.order < c.node_group.order:
                where = with_room
            break
        # Unusable candidates are removed many at a time: each removal is a pass over the whole list.
        if gone > GONE_MAX and with_room is None:
            self.reachable_by_rank = [
                c for c in self.reachable_by_rank if not c.alloc.preempted and not c.node_group.reserved
            ]
        if found is None:
            # Remembered only if size and constraints were the reason: budgets, quotas and refusals may change.
            if with_room is None and not late:
                self.infeasible.append((ask.shape.need, amounts))
            return None
        assert where is not None
        return rank_of([found]), where.order, where, [found]

    @staticmethod
    def _better(best: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if best is None or (other is not None and other[:2] < best[:2]):
            return other
        return best

    def _search_nodes(
        self, ask: Ask, over_quota: Vec, best: tuple[Any, ...] | None, refused: dict[NodeCandidates, None]
    ) -> tuple[Any, ...] | None:
        """Search the nodes whose bound is better than the best victim set so far, the node with the best bound first.

        A good set early lets the bounds exclude most of the other nodes.
        """
        start: cython.longlong = self.search.steps
        node_group: NodeCandidates
        first: NodeCandidates | None = None
        self._set_target(best)
        for each in self.node_groups:
            node_group = each
            if self._may_be_better(node_group, ask) and self._could_run(node_group, ask) and node_group not in refused:
                self._target_bound()  # the last node that beats the bounds before it has the best one
                first = node_group
        self._set_target(best)
        if first is None:
            return best
        best = self._better(best, self._search_node(first, ask, over_quota, best))
        self._set_target(best)
        for each in self.node_groups:
            node_group = each
            if node_group is first or not self._may_be_better(node_group, ask):
                continue
            if best is not None and self.search.steps - start > EFFORT_MAX:
                break
            if self._could_run(node_group, ask) and node_group not in refused:
                best = self._better(best, self._search_node(node_group, ask, over_quota, best))
                self._set_target(best)
        return best

    def _set_target(self, best: tuple[Any, ...] | None) -> None:
        """From now on look only for victim sets better than this one; None: for any."""
        if best is None:
            self.target_reluctant = self.target_count = self.target_sum = self.target_created = self.target_seq = (
                UNLIMITED
            )
            self.target_created = self.target_seq = -UNLIMITED
            return
        rank = best[0]
        self.target_reluctant = rank[0]
        self.target_count = rank[1]
        self.target_sum = rank[2]
        self.target_created = -rank[3][0][0]
        self.target_seq = -rank[3][0][1]

    @cython.cfunc
    def _target_bound(self) -> cython.void:
        """From now on look only for bounds better than that of the node looked at last."""
        self.target_reluctant = self.bound_reluctant
        self.target_count = self.bound_count
        self.target_sum = self.bound_sum
        self.target_created = self.bound_created
        self.target_seq = self.bound_seq

    @cython.cfunc
    def _may_be_better(self, node_group: NodeCandidates, ask: Ask) -> cython.bint:
        """Could a victim set for this node beat the target? No for a node that has room without any victim.

        `_node_with_room` finds such nodes. The node's bound stays in the `bound_…` attributes.
        """
        bounds: Bounds
        amounts: Vec = ask.shape.amounts
        count: cython.Py_ssize_t
        if node_group.stale:
            node_group.recompute()
        bounds = node_group.willing
        self.bound_reluctant = 0
        count = bounds.fewest(amounts)
        if count < 0:
            self.bound_reluctant = 1
            bounds = node_group.all
            count = bounds.fewest(amounts)
        if count <= 0 or self.bound_reluctant > self.target_reluctant:
            return False
        self.bound_count = count
        self.bound_sum = bounds.min_priorities.v[count]
        self.bound_created = bounds.created.v[count]
        self.bound_seq = bounds.seq.v[count]
        if self.bound_reluctant != self.target_reluctant:
            return True
        if count != self.target_count:
            return count < self.target_count
        if self.bound_sum != self.target_sum:
            return self.bound_sum < self.target_sum
        if self.bound_created != self.target_created:
            return self.bound_created > self.target_created
        return self.bound_seq >= self.target_seq

    def _search_node(
        self, node_group: NodeCandidates, ask: Ask, over_quota: Vec, best: tuple[Any, ...] | None
    ) -> tuple[Any, ...] | None:
        """The best victim set for this node: its rank, the node's position, the node, the set; None if none will do."""
        d: cython.Py_ssize_t
        amounts: Vec = ask.shape.amounts
        here: Vec = new_vec(amounts.n, 0)
        elsewhere: bool = False
        self.searched += 1
        for d in range(amounts.n):
            if amounts.v[d] > 0:
                here.v[d] = max(amounts.v[d] - node_group.room.at(d), 0)
                elsewhere = elsewhere or over_quota.v[d] > here.v[d]
        far = self._helpful_elsewhere(node_group, over_quota) if elsewhere else []
        found = self.search.find(node_group.usable(), far, here, over_quota.clone(), None if best is None else best[0])
        return None if found is None else (rank_of(found), node_group.order, node_group, found)

    def _helpful_elsewhere(self, node_group: NodeCandidates, over_quota: Vec) -> list[Any]:
        """Candidates on other nodes that may help to keep a quota, at most `FAR_MAX`.

        Of candidates alike in leaf, reluctance, priority and amounts the newest are taken, no more than could help.
        """
        c: Candidate
        d: cython.Py_ssize_t
        helpful: cython.longlong
        taken: dict[object, int] = {}
        found: list[Any] = []
        for each in self.by_rank:  # among candidates that are alike, the newest come first
            c = each
            if c.node_group is node_group or not c.usable():
                continue
            helpful = 0
            for d in range(over_quota.n):
                if over_quota.v[d] > 0 and c.amounts.at(d) > 0:
                    helpful = max(helpful, (over_quota.v[d] + c.amounts.v[d] - 1) // c.amounts.v[d])
            key = (c.leaf_group, c.reluctant, c.priority, tuple(c.amounts.values()))
            if taken.get(key, 0) < helpful:
                taken[key] = taken.get(key, 0) + 1
                found.append(c)
                if len(found) >= FAR_MAX:
                    break
        return found
