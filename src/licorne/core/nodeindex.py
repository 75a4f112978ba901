"""The blocked node index: finds the first node in order that has room (spec scheduling.md, sections 7.1 and 7.5).

Nodes stand in blocks of up to 64 in the order of (score, id); inside a block they are not sorted. A block holds
what a search looks at as plain columns (C arrays when compiled): score, rank of the id, bits, and for each
resource type what is free. It knows an upper bound of what is free on any of its nodes and the union of their
bits; 16 blocks have these bounds together. A search skips whole blocks by their bounds and scans the rest straight
through, which the C compiler turns into SIMD code. Bounds may be too high, never too low: an allocation leaves
them alone, a scan without result makes them exact.

Rejected: a sorted tree of nodes (a search must look at node after node), a tournament tree for each resource type
(fast while nodes are empty, slow on a full cluster).
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.nodeblock import Bounds, NodeBlock, order_key, scan
    from cython.cimports.licorne.core.nodes import Need, Node, ScorePolicy
    from cython.cimports.licorne.core.vectors import Vec
else:
    from .nodeblock import Bounds, NodeBlock, order_key, scan
    from .nodes import Need, Node, ScorePolicy
    from .vectors import Vec

SLOTS = cython.declare(cython.int, 64)  # nodes in a block
GROUP = cython.declare(cython.int, 16)  # blocks that have common bounds
RANK_GAP = 1 << 32  # between the ranks of neighbours, so that a new id finds a rank between two others


@cython.cfunc
@cython.exceptval(check=False)
def _stands_before(a: Node, b: Node) -> cython.bint:
    return a.score < b.score or (a.score == b.score and a.rank < b.rank)


@cython.cclass
class NodeIndex:
    """All nodes of a partition, in the order of (score, id)."""

    width: cython.Py_ssize_t
    policy: ScorePolicy
    blocks: list[Any]  # NodeBlock
    groups: list[Any]  # Bounds
    by_id: list[Node]
    visits: cython.longlong  # blocks scanned: counted work

    def __init__(self, policy: ScorePolicy) -> None:
        self.width = 0
        self.policy = policy
        self.by_id = []
        self.visits = 0
        self._load([])

    # -- membership ------------------------------------------------------------------------------------

    def add(self, node: Node, width: int) -> None:
        """Take in a node; `width` is the number of resource types now known."""
        at = bisect_left(self.by_id, node.id, key=attrgetter("id"))
        self.by_id.insert(at, node)
        self._give_rank(at)
        if width > self.width:
            self.rebuild(width)
            return
        node.score = self.policy.score(node)
        self._insert(node)

    def drop(self, node: Node) -> None:
        """Forget a node."""
        at = bisect_left(self.by_id, node.id, key=attrgetter("id"))
        del self.by_id[at]
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        block.remove(node.slot)
        node.block = None
        node.slot = -1
        self._shrink(block.place)

    def set_policy(self, policy: ScorePolicy) -> None:
        """Another policy: all nodes are scored anew."""
        self.policy = policy
        self.rebuild(self.width)

    def rebuild(self, width: int) -> None:
        """Score and sort all nodes anew, for `width` resource types."""
        node: Node
        self.width = width
        for node in self.by_id:
            node.score = self.policy.score(node)
        self._load(sorted(self.by_id, key=attrgetter("score", "rank")))

    def ordered(self) -> list[Node]:
        """All nodes in order."""
        block: NodeBlock
        found: list[Node] = []
        for block in self.blocks:
            found += sorted(block.nodes[: block.count], key=attrgetter("score", "rank"))
        return found

    def _give_rank(self, at: int) -> None:
        node: Node = self.by_id[at]
        before = self.by_id[at - 1].rank if at else 0
        if at + 1 == len(self.by_id):
            node.rank = before + RANK_GAP
        else:
            node.rank = (before + self.by_id[at + 1].rank) // 2
        if node.rank == before or node.rank > 1 << 61:
            self._renumber_ranks()

    def _renumber_ranks(self) -> None:
        node: Node
        i: cython.Py_ssize_t
        for i in range(len(self.by_id)):
            node = self.by_id[i]
            node.rank = (i + 1) * RANK_GAP
        self._load(sorted((n for n in self.by_id if n.block is not None), key=attrgetter("score", "rank")))

    def _load(self, nodes: list[Node]) -> None:
        """Fill the blocks anew, half full, from nodes in order."""
        block: NodeBlock
        node: Node
        i: cython.Py_ssize_t
        self.blocks = []
        for i in range(0, max(len(nodes), 1), 32):
            block = NodeBlock(self.width)
            if nodes:
                node = nodes[i]
                block.low_key = order_key(node.score)
                block.low_rank = node.rank
            for node in nodes[i : i + 32]:
                block.put(node)
            self.blocks.append(block)
        self.groups = []
        self._place_from(0)

    # -- keeping order ---------------------------------------------------------------------------------

    @cython.ccall
    def mend(self, node: Node) -> cython.void:
        """What is free on a node, or its bits, have changed: rewrite it, and move it where its score belongs."""
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        place: cython.Py_ssize_t = block.place
        key: cython.longlong
        node.score = self.policy.score(node)
        key = order_key(node.score)
        if (place == 0 or block.starts_by(key, node.rank)) and (
            place + 1 == len(self.blocks)
            or not cython.cast(NodeBlock, self.blocks[place + 1]).starts_by(key, node.rank)
        ):
            block.write(node)
            self._lift(block, node)
            return
        block.remove(node.slot)
        if block.count < 16:
            self._shrink(place)
        self._insert(node)

    @cython.cfunc
    def _insert(self, node: Node) -> cython.void:
        lo: cython.Py_ssize_t = 0
        hi: cython.Py_ssize_t = len(self.blocks)
        mid: cython.Py_ssize_t
        key: cython.longlong = order_key(node.score)
        block: NodeBlock
        while hi - lo > 1:
            mid = (lo + hi) >> 1
            if cython.cast(NodeBlock, self.blocks[mid]).starts_by(key, node.rank):
                lo = mid
            else:
                hi = mid
        block = cython.cast(NodeBlock, self.blocks[lo])
        if block.count == SLOTS:
            self._split(lo)
            if cython.cast(NodeBlock, self.blocks[lo + 1]).starts_by(key, node.rank):
                lo += 1
            block = cython.cast(NodeBlock, self.blocks[lo])
        block.put(node)
        self._lift(block, node)

    @cython.cfunc
    def _shrink(self, place: cython.Py_ssize_t) -> cython.void:
        """A block has become small: join it with a neighbour if both fit well into one."""
        a: NodeBlock
        b: NodeBlock
        k: cython.Py_ssize_t
        if len(self.blocks) == 1:
            return
        if place + 1 == len(self.blocks):
            place -= 1
        a = cython.cast(NodeBlock, self.blocks[place])
        b = cython.cast(NodeBlock, self.blocks[place + 1])
        if a.count + b.count > 40:
            return
        for k in range(b.count):
            b.move(k, a, a.count + k)
        a.count += b.count
        a.bounds.top.raise_to(b.bounds.top)
        a.bounds.bits |= b.bounds.bits
        del self.blocks[place + 1]
        self._place_from(place)

    @cython.cfunc
    def _split(self, place: cython.Py_ssize_t) -> cython.void:
        block: NodeBlock = cython.cast(NodeBlock, self.blocks[place])
        new: NodeBlock = NodeBlock(self.width)
        middle: Node = sorted(block.nodes, key=attrgetter("score", "rank"))[32]
        j: cython.Py_ssize_t
        stay: cython.Py_ssize_t = 0
        new.low_key = order_key(middle.score)
        new.low_rank = middle.rank
        for j in range(64):
            if new.starts_by(block.key[j], block.rank[j]):
                block.move(j, new, new.count)
                new.count += 1
            else:
                if stay != j:
                    block.move(j, block, stay)
                stay += 1
        for j in range(stay, 64):
            block.wipe(j)
        block.count = stay
        block.tighten()
        new.tighten()
        self.blocks.insert(place + 1, new)
        self._place_from(place)

    @cython.cfunc
    def _place_from(self, start: cython.Py_ssize_t) -> cython.void:
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = len(self.blocks)
        groups: cython.Py_ssize_t = (count + GROUP - 1) // GROUP
        for i in range(start, count):
            cython.cast(NodeBlock, self.blocks[i]).place = i
        while len(self.groups) < groups:
            self.groups.append(Bounds())
        while len(self.groups) > groups:
            self.groups.pop()
        for i in range(start // GROUP, groups):
            self._gather(i)

    @cython.cfunc
    def _lift(self, block: NodeBlock, node: Node) -> cython.void:
        """Lift the bounds of a block's group to a node of it."""
        cython.cast(Bounds, self.groups[block.place // GROUP]).lift_to(node)

    @cython.cfunc
    def _gather(self, g: cython.Py_ssize_t) -> cython.void:
        """Make a group's bounds those of its blocks."""
        i: cython.Py_ssize_t
        group: Bounds = cython.cast(Bounds, self.groups[g])
        block: NodeBlock
        group.clear(self.width)
        for i in range(g * GROUP, min(g * GROUP + GROUP, len(self.blocks))):
            block = cython.cast(NodeBlock, self.blocks[i])
            group.top.raise_to(block.bounds.top)
            group.bits |= block.bounds.bits

    # -- search ----------------------------------------------------------------------------------------

    @cython.cfunc
    def find(self, ask: Vec, mask: cython.ulonglong, after: Node | None) -> Node | None:
        """The first node in order, behind `after` if that is given, with room for the ask and all bits of the mask."""
        g: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        start: cython.Py_ssize_t = 0
        count: cython.Py_ssize_t = len(self.blocks)
        after_key: cython.longlong = 0
        after_rank: cython.longlong = -1
        block: NodeBlock
        if after is not None:
            start = cython.cast(NodeBlock, after.block).place
            after_key = order_key(after.score)
            after_rank = after.rank
        for g in range(start // GROUP, len(self.groups)):
            if not cython.cast(Bounds, self.groups[g]).may_hold(ask, mask):
                continue
            for i in range(max(start, g * GROUP), min(g * GROUP + GROUP, count)):
                block = cython.cast(NodeBlock, self.blocks[i])
                if not block.bounds.may_hold(ask, mask):
                    continue
                self.visits += 1
                j = scan(block, ask, mask, after_key, after_rank)
                if j >= 0:
                    return cython.cast(Node, block.nodes[j])
                block.tighten()
            self._gather(g)
        return None

    def best_to_reserve(self, ask: Vec, need: Need, shunned: Node | None) -> Node | None:
        """The node to reserve for an ask that fits nowhere now (section 7.1.3), None if none is large enough.

        Smallest FitInScore, ties in node order. FitInScore sums over the types that are free on the node: 1 where
        the ask wants none, (free - wanted) / free where more is free than wanted, else 0.
        """
        block: NodeBlock
        node: Node
        best: Node | None = None
        d: cython.Py_ssize_t
        j: cython.Py_ssize_t
        bits: cython.ulonglong = need.mask
        score: cython.double
        least: cython.double = 0.0
        free_: cython.longlong
        for each in self.blocks:
            block = each
            for j in range(block.count):
                node = cython.cast(Node, block.nodes[j])
                if (node.bits & bits) != bits or node is shunned or not node.capacity.holds(ask):
                    continue
                if not need.exact and not need.matches(node):
                    continue
                score = 0.0
                for d in range(node.free.n):
                    free_ = node.free.v[d]
                    if free_ > 0 and ask.at(d) <= 0:
                        score += 1.0
                    elif free_ > 0 and free_ > ask.at(d):
                        score += cython.cast(cython.double, free_ - ask.at(d)) / cython.cast(cython.double, free_)
                if best is None or score < least or (score == least and _stands_before(node, best)):
                    best = node
                    least = score
        return best

    def validate(self) -> None:
        """Prove that the columns and bounds agree with the nodes (design, rule 1)."""
        block: NodeBlock
        node: Node
        j: cython.Py_ssize_t
        d: cython.Py_ssize_t
        end: tuple[float, int] = (float("-inf"), -1)
        seen = 0
        assert [n.id for n in self.by_id] == sorted(n.id for n in self.by_id), "nodes by id"
        for i, b in enumerate(self.blocks):
            block = b
            group: Bounds = self.groups[i // 16]
            assert block.place == i, "block place"
            ranks = []
            for j in range(block.count):
                node = block.nodes[j]
                assert node.block is block and node.slot == j, f"slot of node {node.id}"
                assert node.score == self.policy.score(node), f"score of node {node.id}"
                assert block.key[j] == order_key(node.score) and block.rank[j] == node.rank, f"key of node {node.id}"
                assert block.bits[j] == node.bits, f"bits of node {node.id}"
                assert (node.bits & ~block.bounds.bits) == 0 and (node.bits & ~group.bits) == 0, "bits of a block"
                for d in range(self.width):
                    assert block.free[d * 64 + j] == node.free.at(d), f"free on node {node.id}"
                    assert node.free.at(d) <= block.bounds.top.at(d) <= group.top.at(d) or node.free.at(d) < 0, "bound"
                ranks.append((node.score, node.rank))
            seen += block.count
            if ranks:
                assert end < min(ranks), "order of blocks"
                end = max(ranks)
        assert seen == len(self.by_id), "nodes in the index"
