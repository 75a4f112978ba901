"""The blocked node index: finds the first node in order that has room (docs/spec/scheduling.md, sections 7.1 and 7.5).

Nodes stand in the order of (score, id), in blocks of up to 64, the blocks in groups of up to 64. Each block holds what a
search looks at as plain columns (C arrays when compiled): bits, and for each resource type what is free. For each block
its group holds upper bounds of this in columns of the same kind, and the index for each group. So a search is the same
at three levels (`licorne.core.nodes.columns`), and passes over thousands of nodes in a few steps. Bounds may be too high,
never too low: an allocation leaves them alone, a search without result makes them exact.

Rejected: a sorted list of nodes (a search must look at node after node), a tournament tree for each resource type
(fast while nodes are empty, slow on a full cluster), blocks that are not sorted inside (a search must then look at a
whole block to know its first).
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

import cython

from .check import validate_index

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.nodes.block import NodeBlock, NodeGroup, order_key
    from cython.cimports.licorne.core.nodes.columns import Columns, Grid
    from cython.cimports.licorne.core.nodes.node import Need, Node, ScorePolicy
    from cython.cimports.prefetch import prefetch
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec

    from .block import NodeBlock, NodeGroup, order_key
    from .columns import Columns, Grid
    from .node import Need, Node, ScorePolicy

ROWS = cython.declare(cython.Py_ssize_t, 64)  # of columns: nodes in a block, blocks in a group
FILLED = cython.declare(cython.Py_ssize_t, 32)  # rows that are filled at first
FEW = cython.declare(cython.Py_ssize_t, 16)  # with less a block, or group, is joined with its neighbour
JOINED = cython.declare(cython.Py_ssize_t, 48)  # if they have no more than this together
RANK_GAP = 1 << 32  # between the ranks of neighbours, so that a new id finds a rank between two others


@cython.cclass
class NodeIndex:
    """All nodes of a partition, in the order of (score, id)."""

    width: cython.Py_ssize_t  # resource types
    words: cython.Py_ssize_t  # of marks
    policy: ScorePolicy
    grid: Grid
    groups: list[NodeGroup]
    tops: list[Columns]  # Columns with the bounds of 64 groups each, and where they start
    by_id: list[Node]
    target: NodeBlock | None  # where the node that is being taken will stand
    spare: NodeBlock | None  # one that has become empty: the next to be filled
    visits: cython.longlong  # blocks searched: counted work
    moves: cython.longlong  # nodes that changed their place
    generation: cython.longlong  # of nodes: what is free there, and who may use them

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
        """Take in a node; `width` is the number of resource types now known."""
        at = bisect_left(self.by_id, node.id, key=attrgetter("id"))
        self.by_id.insert(at, node)
        self._give_rank(at)
        if width > self.width:
            self.rebuild(width)
            return
        node.score = self.policy.score(node)
        self._insert(node, order_key(node.score))

    def drop(self, node: Node) -> None:
        """Forget a node."""
        block: NodeBlock = cython.cast(NodeBlock, node.block)
        del self.by_id[bisect_left(self.by_id, node.id, key=attrgetter("id"))]
        self._take_out(block, block.row_of(node))
        node.block = None

    def set_policy(self, policy: ScorePolicy) -> None:
        """Another policy: all nodes are scored anew."""
        self.policy = policy
        self.rebuild(self.width)

    def widen(self, words: int) -> None:
        """Make room for so many words of marks."""
        if words > self.words:
            self.words = words
            self.rebuild(self.width)

    @cython.ccall
    def set_constraint_bit(self, node: Node) -> cython.void:
        """The node's marks have changed, and nothing else that counts here."""
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
        """All nodes in order."""
        group: NodeGroup
        block: NodeBlock
        found: list[Node] = []
        for each in self.groups:
            group = each
            for block in group.blocks:
                found += reversed(block.nodes)
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
        """What is free on a node has changed: have the processor fetch where it stands and where it will, before `mend`."""
        if cython.compiled and len(self.groups) > 1:  # a single group stays in the cache
            if node.block is not None:
                cython.cast(NodeBlock, node.block).prefetch_fields()
            self.target = self._block_for(order_key(self.policy.score(node)), node.rank)
            prefetch(cython.cast(cython.p_void, self.target), 2)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_target(self) -> cython.void:
        """The same for its rows, after `aim`."""
        if self.target is not None:
            self.target.prefetch_fields()

    @cython.ccall
    def mend(self, node: Node) -> cython.void:
        """What is free on a node, or its bits, have changed: rewrite it, and move it where its score belongs."""
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
        """Does the node in this row of the block stay where it is, with another key?"""
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
        """The block in which nodes with this key and rank stand: the last one that starts by them."""
        t: cython.Py_ssize_t = len(self.tops) - 1
        at: cython.Py_ssize_t = 0
        group: NodeGroup
        if len(self.groups) > 1:
            while t > 0 and not cython.cast(Columns, self.tops[t]).starts_by(0, key, rank):
                t -= 1
            at = cython.cast(Columns, self.tops[t]).where(key, rank + 1)  # the first behind
            at = t * 64 + (at - 1 if at else 0)
        group = cython.cast(NodeGroup, self.groups[at])
        at = group.where(key, rank + 1)
        return cython.cast(NodeBlock, group.blocks[at - 1 if at else 0])

    @cython.cfunc
    @cython.exceptval(check=False)
    def _lift(self, block: NodeBlock, node: Node, cells: cython.ulonglong) -> cython.void:
        """Lift the bounds of a block and of its group to a node that was written into it."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        marks: Vec = node.search_bitmap()
        if group.lift_row(block.position, node.free, marks, cells):  # else the group's own bounds cover it as well
            cython.cast(Columns, self.tops[group.position >> 6]).lift_row(group.position & 63, node.free, marks, cells)

    @cython.cfunc
    def _take_out(self, block: NodeBlock, at: cython.Py_ssize_t) -> cython.void:
        """Take the node of this row out of its block, and join blocks and groups that have become small."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        neighbour: NodeBlock
        block.remove(at)
        if block.count >= FEW:
            return
        if block.count == 0 and group.count > 1:
            self._drop(block)
        elif group.count > 1:
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
        """An empty block leaves its group."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        group.drop(block.position)
        group.show_start(cython.cast(Columns, self.tops[group.position >> 6]), group.position & 63)
        self.spare = block

    @cython.cfunc
    def _join(self, group: NodeGroup) -> cython.void:
        """A group has become small: join it with a neighbour if that has room."""
        if group.position + 1 == len(self.groups):
            group = cython.cast(NodeGroup, self.groups[group.position - 1])
        neighbour: NodeGroup = cython.cast(NodeGroup, self.groups[group.position + 1])
        if group.count + neighbour.count <= JOINED:
            group.absorb(neighbour)
            del self.groups[neighbour.position]
            self._top()

    @cython.cfunc
    def _split(self, block: NodeBlock) -> cython.void:
        """Give the second half of a full block to a new one behind it."""
        group: NodeGroup = cython.cast(NodeGroup, block.group)
        new: NodeBlock = NodeBlock(self.width, self.words) if self.spare is None else self.spare
        self.spare = None
        if group.count == ROWS:
            self.groups.insert(group.position + 1, group.halve())
            self._top()
            group = cython.cast(NodeGroup, block.group)
        block.give(FILLED, new)
        group.add(new, block.position + 1)  # the bounds of the old one, and of the group, are high enough as they are

    @cython.cfunc
    def _lift_group(self, group: NodeGroup) -> cython.void:
        group.upper(cython.cast(Columns, self.tops[group.position >> 6]), group.position & 63)

    @cython.cfunc
    def _top(self) -> cython.void:
        """Groups have come or gone: number them, and collect their bounds."""
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
        """The first node in order, behind `after` if that is given, that is open, marked for the need, and has room."""
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
            if node.fits(ask, need):  # the common case
                self.visits += 1
                if cython.compiled:
                    block.prefetch_next()
                return node
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
                if group.position != first_group:
                    first_block = 0
                    first_row = 0
                i = group.first(ask, need.word, need.mask, cell, first_block)
                while i >= 0:
                    block = cython.cast(NodeBlock, group.blocks[i])
                    self.visits += 1
                    row = block.first(ask, need.word, need.mask, cell, first_row if i == first_block else 0)
                    first_row = 0
                    if row >= 0:
                        node = cython.cast(Node, block.nodes[block.count - 1 - row])
                        if cython.compiled:
                            node.prefetch_fields()
                        return node
                    if not block.exact:
                        group.tighten(i)
                    i = group.first(ask, need.word, need.mask, cell, i + 1)
                if not group.exact:
                    group.upper(top, g)
                g = top.first(ask, need.word, need.mask, cell, g + 1)
            first_group = 0
        return None

    @cython.cfunc
    def _divide_anew(self) -> cython.void:
        """The grid has other levels: find the cells of all nodes again."""
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
