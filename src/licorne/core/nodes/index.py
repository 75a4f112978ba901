"""The blocked node index: finds the first node in order that has room (docs/spec/scheduling.md, sections 7.1 and 7.5).

The nodes are sorted by (score, id) and kept in blocks of up to 64, the blocks in groups of up to 64. Each block holds
what a search compares as plain columns (C arrays when compiled): constraint bitmaps, and for each resource type what is
free. A group holds upper bounds of this for each of its blocks, in columns of the same kind, and the index holds them
for each group. So a search is the same at three levels (`licorne.core.nodes.columns`), and passes over thousands of
nodes in a few steps. Bounds may be too high, never too low: an allocation leaves them as they are, a search that finds
nothing makes them exact.

Rejected: a sorted list of nodes (a search must look at node after node), a tournament tree for each resource type
(fast while nodes are empty, slow on a full cluster), blocks that are not sorted inside (a search must then look at a
whole block to know its first).
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec

from .block import NodeBlock, NodeGroup, order_key
from .check import validate_index
from .columns import Columns, Grid
from .node import Need, Node, ScorePolicy

if cython.compiled:
    from cython.cimports.prefetch import prefetch

ROWS = cython.declare(cython.Py_ssize_t, 64)  # the most nodes in a block, and blocks in a group
FILLED = cython.declare(cython.Py_ssize_t, 32)  # rows used after a fill or a split: half stays free
FEW = cython.declare(cython.Py_ssize_t, 16)  # a block or group with fewer rows is joined with a neighbour
JOINED = cython.declare(cython.Py_ssize_t, 48)  # if both together have at most this many
FEW_OF = cython.declare(
    cython.Py_ssize_t, 8
)  # where fewer nodes than the eighth part take an ask, they are compared alone
RANK_GAP = 1 << 32  # between the ranks of neighbours, so that a new id gets a rank between two others


@cython.cfunc
@cython.exceptval(check=False)
def _is_before(one: Node, other: Node) -> cython.bint:
    """Return whether a node comes before another one in order."""
    return one.score < other.score or (one.score == other.score and one.rank < other.rank)


@cython.cclass
class NodeIndex:
    """All nodes of a partition, in the order of (score, id)."""

    width: cython.Py_ssize_t  # number of columns of free amounts, one for each resource type
    words: cython.Py_ssize_t  # number of columns of constraint bitmaps
    policy: ScorePolicy
    grid: Grid
    groups: list[NodeGroup]
    tops: list[Columns]  # each the bounds of up to 64 groups, and the order at which these start
    by_id: list[Node]
    target: NodeBlock | None  # the block to which the node that is being used will move
    spare: NodeBlock | None  # a block that has become empty, to be reused
    visits: cython.longlong  # blocks searched: counted work
    moves: cython.longlong  # nodes that changed their place in the order
    generation: cython.longlong  # rises when what is free or may be evicted on a node, or who may use it, changes

    # Built anew of the nodes and the configuration. `visits` counts work, of which there is less once bounds are exact.
    TRANSIENT = ("visits", "policy", "grid", "groups", "tops", "target", "spare")

    def __init__(self, policy: ScorePolicy) -> None:
        self.width = 0
        self.words = 1
        self.policy = policy
        self.grid = Grid()
        self.by_id = []
        self.visits = 0
        self.moves = 0
        self.generation = 0
        self._load([])

    # -- membership ------------------------------------------------------------------------------------

    def add(self, node: Node, width: int) -> None:
        """Add a node; `width` is the number of resource types now known."""
        at = bisect_left(self.by_id, node.id, key=attrgetter("id"))
        self.by_id.insert(at, node)
        self._give_rank(at)
        if width > self.width:
            self.rebuild(width)
            return
        node.score = self.policy.score(node)
        self._insert(node, order_key(node.score))

    def drop(self, node: Node) -> None:
        """Remove a node."""
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        del self.by_id[bisect_left(self.by_id, node.id, key=attrgetter("id"))]
        self._take_out(block, block.row_of(node))
        node.block = None

    def set_policy(self, policy: ScorePolicy) -> None:
        """Change the policy, and score and sort all nodes anew."""
        self.policy = policy
        self.rebuild(self.width)

    def widen(self, words: int) -> None:
        """Make room for constraint bitmaps of this many words."""
        if words > self.words:
            self.words = words
            self.rebuild(self.width)

    @cython.ccall
    def set_constraint_bit(self, node: Node) -> cython.void:
        """Rewrite the row of a node of which nothing but the constraint bitmap has changed; it keeps its place."""
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        self._rewrite(block, block.row_of(node), order_key(node.score), node)

    def rebuild(self, width: int) -> None:
        """Score and sort all nodes anew, for `width` resource types."""
        node: Node
        self.width = width
        for node in self.by_id:
            node.score = self.policy.score(node)
        self._load(sorted(self.by_id, key=attrgetter("score", "rank")))

    def ordered(self) -> list[Node]:
        """Return all nodes in order."""
        group: NodeGroup
        block: NodeBlock
        found: list[Node] = []
        for each in self.groups:
            group = each
            for block in group.blocks:
                found += reversed(block.nodes)
        return found

    def _give_rank(self, at: int) -> None:
        """Rank the node at this position of `by_id` between its neighbours; renumber all if no number is left there."""
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
        """Fill the blocks anew, each half, with these nodes, which are in order."""
        block: NodeBlock
        node: Node
        i: cython.Py_ssize_t
        group: NodeGroup = NodeGroup(self.width, self.words)
        self.spare = None
        self.target = None
        self.groups = [group]
        for i in range(0, max(len(nodes), 1), FILLED):
            block = NodeBlock(self.width, self.words)
            for node in nodes[i : i + FILLED]:
                block.put(node, block.count, order_key(node.score), self.grid.cells(node.free))
            if group.count == FILLED:
                group = NodeGroup(self.width, self.words)
                self.groups.append(group)
            group.add(block, group.count)
        self._top()

    # -- keeping order ---------------------------------------------------------------------------------

    @cython.cfunc
    def aim(self, node: Node) -> cython.void:
        """Prefetch, before `mend`, the block of a node whose free amounts have changed, and the one it will move to."""
        if cython.compiled and len(self.groups) > 1:  # a single group stays in the cache
            if node.block is not None:
                cython.cast(NodeBlock, node.block).prefetch_fields()
            self.target = self._block_for(order_key(self.policy.score(node)), node.rank)
            prefetch(cython.cast(cython.p_void, self.target), 2)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_target(self) -> cython.void:
        """Prefetch the columns of the block that `aim` determined."""
        if self.target is not None:
            self.target.prefetch_fields()

    @cython.ccall
    def mend(self, node: Node) -> cython.void:
        """Rewrite a node whose free amounts or constraint bitmap have changed, and move it where its score belongs."""
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        at: cython.Py_ssize_t = block.row_of(node)
        self.generation += 1
        node.score = self.policy.score(node)
        key: cython.longlong = order_key(node.score)
        if self._stays(block, at, key, node.rank):
            self._rewrite(block, at, key, node)
        else:
            self.moves += 1
            self._take_out(block, at)
            self._insert(node, key)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _rewrite(self, block: NodeBlock, at: cython.Py_ssize_t, key: cython.longlong, node: Node) -> cython.void:
        """Write the node into its row as it is now."""
        cells: cython.ulonglong = self.grid.cells(node.free)
        block.write(node, at, key, cells)
        self._lift(block, node, cells)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _stays(
        self, block: NodeBlock, at: cython.Py_ssize_t, key: cython.longlong, rank: cython.longlong
    ) -> cython.bint:
        """Return whether the node in this row of the block keeps its place although its key has changed."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        if at > 0:
            if not block.starts_by(at - 1, key, rank):
                return False
        elif not group.starts_by(block.position, key, rank) and (block.position > 0 or group.position > 0):
            return False
        if at + 1 < block.count:
            return not block.starts_by(at + 1, key, rank)
        if block.position + 1 < group.count:
            return not group.starts_by(block.position + 1, key, rank)
        if group.position + 1 < len(self.groups):
            return not cython.cast(NodeGroup, self.groups[group.position + 1]).starts_by(0, key, rank)
        return True

    @cython.cfunc
    def _insert(self, node: Node, key: cython.longlong) -> cython.void:
        block: NodeBlock = self._block_for(key, node.rank)
        if block.count == ROWS:
            self._split(block)
            block = self._block_for(key, node.rank)
        cells: cython.ulonglong = self.grid.cells(node.free)
        block.put(node, block.where(key, node.rank), key, cells)
        self._lift(block, node, cells)

    @cython.cfunc
    def _block_for(self, key: cython.longlong, rank: cython.longlong) -> NodeBlock:
        """Return the block for nodes with this key and rank: the last one that starts at or before them."""
        t: cython.Py_ssize_t = len(self.tops) - 1
        at: cython.Py_ssize_t = 0
        group: NodeGroup
        if len(self.groups) > 1:
            while t > 0 and not cython.cast(Columns, self.tops[t]).starts_by(0, key, rank):
                t -= 1
            at = cython.cast(Columns, self.tops[t]).where(key, rank + 1)  # the first group that starts after them
            at = t * 64 + (at - 1 if at else 0)
        group = cython.cast(NodeGroup, self.groups[at])
        at = group.where(key, rank + 1)
        return cython.cast(NodeBlock, group.blocks[at - 1 if at else 0])

    @cython.cfunc
    @cython.exceptval(check=False)
    def _lift(self, block: NodeBlock, node: Node, cells: cython.ulonglong) -> cython.void:
        """Raise the bounds of a block and its group to cover a node that was written into the block."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        marks: Vec = node.search_bitmap()
        if group.lift_row(block.position, node.free, marks, cells):  # else the bounds of the group cover it too
            cython.cast(Columns, self.tops[group.position >> 6]).lift_row(group.position & 63, node.free, marks, cells)

    @cython.cfunc
    def _take_out(self, block: NodeBlock, at: cython.Py_ssize_t) -> cython.void:
        """Remove the node of this row from its block, and join blocks and groups that have become small."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        neighbour: NodeBlock
        block.remove(at)
        if block.count >= FEW:
            return
        if block.count == 0 and group.count > 1:
            self._drop(block)
        elif group.count > 1:
            # The last block is joined with the one before it, all others with the one after.
            if block.position + 1 == group.count:
                block = cython.cast(NodeBlock, group.blocks[block.position - 1])
            neighbour = cython.cast(NodeBlock, group.blocks[block.position + 1])
            if block.count + neighbour.count <= JOINED:
                neighbour.give(0, block)
                group.join_rows(block.position, neighbour.position)
                self._drop(neighbour)
        elif block.count == 0 and len(self.groups) > 1:
            del self.groups[group.position]
            self._top()
            return
        if group.count < FEW and len(self.groups) > 1:
            self._join(group)

    @cython.cfunc
    def _drop(self, block: NodeBlock) -> cython.void:
        """Remove an empty block from its group, and keep it for reuse."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        group.drop(block.position)
        group.show_start(cython.cast(Columns, self.tops[group.position >> 6]), group.position & 63)
        self.spare = block

    @cython.cfunc
    def _join(self, group: NodeGroup) -> cython.void:
        """Join a group that has become small with a neighbour, if both fit in one."""
        if group.position + 1 == len(self.groups):
            group = cython.cast(NodeGroup, self.groups[group.position - 1])
        neighbour: NodeGroup = cython.cast(NodeGroup, self.groups[group.position + 1])
        if group.count + neighbour.count <= JOINED:
            group.absorb(neighbour)
            del self.groups[neighbour.position]
            self._top()

    @cython.cfunc
    def _split(self, block: NodeBlock) -> cython.void:
        """Move the second half of a full block to a new one after it."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        new: NodeBlock = NodeBlock(self.width, self.words) if self.spare is None else self.spare
        self.spare = None
        if group.count == ROWS:
            self.groups.insert(group.position + 1, group.halve())
            self._top()
            group = cython.cast(NodeGroup, block.group)
        block.give(FILLED, new)
        group.add(new, block.position + 1)  # the bounds of the old block and of the group stay, and are high enough

    @cython.cfunc
    def _lift_group(self, group: NodeGroup) -> cython.void:
        group.upper(cython.cast(Columns, self.tops[group.position >> 6]), group.position & 63)

    @cython.cfunc
    def _top(self) -> cython.void:
        """Renumber the groups after some were added or removed, and rebuild the bounds above them."""
        i: cython.Py_ssize_t
        group: NodeGroup
        top: Columns
        self.tops = []
        for i in range(len(self.groups)):
            if i & 63 == 0:
                self.tops.append(Columns(self.width, self.words))
            top = cython.cast(Columns, self.tops[i >> 6])
            top.count += 1
            group = cython.cast(NodeGroup, self.groups[i])
            group.position = i
            group.upper(top, i & 63)
            group.show_start(top, i & 63)

    # -- search ----------------------------------------------------------------------------------------

    @cython.ccall
    def find(self, ask: Vec, need: Need, after: Node | None) -> Node | None:
        """Return the first open node in order, after `after` if given, that meets the need and has room."""
        t: cython.Py_ssize_t
        g: cython.Py_ssize_t
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t
        cell: cython.int
        top: Columns
        group: NodeGroup
        block: NodeBlock
        node: Node
        first_group: cython.Py_ssize_t = 0
        first_block: cython.Py_ssize_t = 0
        first_row: cython.Py_ssize_t = 0
        block = cython.cast(NodeBlock, cython.cast(NodeGroup, self.groups[0]).blocks[0])
        if after is None and block.count:
            node = cython.cast(Node, block.nodes[block.count - 1])  # the first in order
            if node.fits(ask, need):  # the common case: no search
                self.visits += 1
                if cython.compiled:
                    block.prefetch_next()
                return node
        if need.checks is not None:
            few = need.few_slots(len(self.by_id) // FEW_OF)
            if few is not None:
                return self._first_of(few, ask, need, after)
        if self.grid.take_in(ask):
            self._divide_anew()
        cell = self.grid.cell(ask)
        if after is not None:
            block = cython.cast(NodeBlock, after.block)
            first_group = cython.cast(NodeGroup, block.group).position
            first_block = block.position
            first_row = block.row_of(after) + 1
        for t in range(first_group >> 6, len(self.tops)):
            top = cython.cast(Columns, self.tops[t])
            g = top.first(ask, need.word, need.mask, cell, first_group & 63)
            while g >= 0:
                group = cython.cast(NodeGroup, self.groups[t * 64 + g])
                # Only in the group and block of `after` does the search begin in the middle.
                if group.position != first_group:
                    first_block = 0
                    first_row = 0
                i = group.first(ask, need.word, need.mask, cell, first_block)
                while i >= 0:
                    block = cython.cast(NodeBlock, group.blocks[i])
                    self.visits += 1
                    row = block.first(ask, need.word, need.mask, cell, first_row if i == first_block else 0)
                    first_row = 0
                    if need.pods is not None:
                        while row >= 0 and need.is_shut_out(cython.cast(Node, block.nodes[block.count - 1 - row])):
                            row = block.first(ask, need.word, need.mask, cell, row + 1)
                    if row >= 0:
                        node = cython.cast(Node, block.nodes[block.count - 1 - row])
                        if cython.compiled:
                            node.prefetch_fields()
                        return node
                    # The bounds promised a node in vain: make them exact, so that the next search skips the block.
                    if not block.exact:
                        group.tighten(i)
                    i = group.first(ask, need.word, need.mask, cell, i + 1)
                if not group.exact:
                    group.upper(top, g)
                g = top.first(ask, need.word, need.mask, cell, g + 1)
            first_group = 0
        return None

    @cython.ccall
    def first_fitting(self, ask: Vec, need: Need, most: cython.Py_ssize_t) -> list[Node]:
        """Return the first open nodes in order, at most so many, that meet the need and have room."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t
        group: NodeGroup
        block: NodeBlock
        node: Node
        found: list[Node] = []
        few = need.few_slots(len(self.by_id) // FEW_OF)
        if few is not None:
            self.visits += 1
            nodes = cython.cast(list, need.topology.nodes)  # type: ignore[union-attr]  # it has checks
            there = [nodes[slot] for slots in few for slot in slots]
            found = [one for one in there if one.fits(ask, need)]
            return sorted(found, key=attrgetter("score", "rank"))[:most]
        if self.grid.take_in(ask):
            self._divide_anew()
        cell: cython.int = self.grid.cell(ask)
        for each in self.groups:
            group = each
            i = group.first(ask, need.word, need.mask, cell, 0)
            while i >= 0:
                block = cython.cast(NodeBlock, group.blocks[i])
                self.visits += 1
                row = block.first(ask, need.word, need.mask, cell, 0)
                while row >= 0:
                    node = cython.cast(Node, block.nodes[block.count - 1 - row])
                    if node.fits(ask, need):
                        if len(found) == most:
                            return found
                        found.append(node)
                    row = block.first(ask, need.word, need.mask, cell, row + 1)
                i = group.first(ask, need.word, need.mask, cell, i + 1)
        return found

    @cython.cfunc
    def _first_of(self, few: list[Any], ask: Vec, need: Need, after: Node | None) -> Node | None:
        """Return what `find` does, where no node takes the ask but those of a few slots of the topology."""
        node: Node
        best: Node | None = None
        assert need.topology is not None, "a need with checks has a topology"
        nodes: list[Any] = need.topology.nodes
        self.visits += 1
        for slots in few:
            for slot in cython.cast(dict, slots):
                node = cython.cast(Node, nodes[slot])
                if best is not None and not _is_before(node, best):
                    continue
                if (after is None or _is_before(after, node)) and node.fits(ask, need):
                    best = node
        return best

    @cython.cfunc
    def _divide_anew(self) -> cython.void:
        """Recompute the cells of all nodes after the levels of the grid have changed."""
        group: NodeGroup
        block: NodeBlock
        for each in self.groups:
            group = each
            for block in group.blocks:
                block.divide(self.grid)
                group.tighten(block.position)
            self._lift_group(group)

    def validate(self) -> None:
        """Prove that the columns and bounds agree with the nodes (docs/spec/design.md, rule 1)."""
        validate_index(self)
