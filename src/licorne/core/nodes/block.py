"""A block of the node index, up to 64 nodes in order, and a group of such blocks.

See `licorne.core.nodes.index` for why nodes stand in blocks, and `licorne.core.nodes.columns` for the search in them.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.nodes.columns import Columns
    from cython.cimports.licorne.core.nodes.node import Node
    from cython.cimports.prefetch import item, prefetch
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.vectors import Vec

    from .columns import Columns
    from .node import Node


@cython.cfunc
@cython.exceptval(check=False)
def order_key(score: cython.double) -> cython.longlong:
    """The score as an integer of the same order: integers compare faster."""
    score = score + 0.0  # -0.0 and 0.0 are one score
    if not cython.compiled:
        return score  # type: ignore[return-value]  # interpreted, a float serves as its own key
    bits: cython.longlong = cython.cast(cython.p_longlong, cython.address(score))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@cython.cclass
class NodeBlock(Columns):
    """Up to 64 nodes, each in a row of its own; `group` and `position` say where the block stands.

    In the list of nodes the last row comes first: mostly the first row leaves, and a list is cut at its end at once.
    """

    nodes: list[Node]
    group: NodeGroup | None
    position: cython.Py_ssize_t

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        Columns.__init__(self, width, words)
        self.nodes = []
        self.group = None
        self.position = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def row_of(self, node: Node) -> cython.Py_ssize_t:
        """The row of a node of this block; mostly it is the first, for those before it would be taken before it."""
        return 0 if self.nodes[self.count - 1] is node else self.where(order_key(node.score), node.rank)

    def where_of(self, node: Node) -> int:
        """The row in which a node is to be found."""
        return self.where(order_key(node.score), node.rank)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_next(self) -> cython.void:
        """Have the processor fetch what follows the first node, which mostly leaves its place when it is taken.

        As in `AskBlock.prefetch_after`: of one node the node, of the one before it what that names, of the next the entries.
        """
        if cython.compiled:
            at: cython.Py_ssize_t = self.count - 4
            if at >= 0:
                prefetch(item(self.nodes, at), 3)
                cython.cast(Node, item(self.nodes, at + 1)).prefetch_fields()
                cython.cast(Node, item(self.nodes, at + 2)).prefetch_allocations()

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_fields(self) -> cython.void:
        """Have the processor fetch what a new row changes."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.v + self.keys), 8)
            prefetch(cython.cast(cython.p_void, self.nodes), 1)

    @cython.cfunc
    def put(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Take in one more node, in this row."""
        self.nodes.insert(self.count - at, node)
        self.open_row(at)
        node.block = self
        self.write(node, at, key, cells)

    @cython.cfunc
    @cython.exceptval(check=False)
    def write(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Copy what the node says into its row."""
        v: cython.p_longlong = self.v
        room: Vec = node.free
        free_: cython.p_longlong = room.v
        marks: Vec = node.search_bitmap()
        d: cython.Py_ssize_t
        for d in range(self.width):
            v[d * 64 + at] = free_[d] if d < room.n else 0
        for d in range(self.words):
            v[(self.width + d) * 64 + at] = marks.v[d] if d < marks.n else 0
        v[self.cells + at] = cells
        v[self.keys + at] = key
        v[self.keys + 64 + at] = node.rank
        self.exact = False

    @cython.cfunc
    def remove(self, at: cython.Py_ssize_t) -> cython.void:
        """Take out the node of this row."""
        self.close_row(at)
        if at == 0:
            self.nodes.pop()
        else:
            del self.nodes[self.count - at]

    @cython.cfunc
    def give(self, start: cython.Py_ssize_t, to: NodeBlock) -> cython.void:
        """Move the nodes from row `start` on to the end of another block, which has room for them."""
        j: cython.Py_ssize_t
        number: cython.Py_ssize_t = self.count - start
        self.copy_rows(start, to, to.count)
        for j in range(number):
            if cython.compiled and j + 8 < number:
                prefetch(item(self.nodes, j + 8), 1)  # each is elsewhere in memory
            cython.cast(Node, self.nodes[j]).block = to
        to.nodes = self.nodes[:number] + to.nodes
        to.count += number
        del self.nodes[:number]
        self.count = start
        self.center(start)
        self.exact = False
        to.exact = False


@cython.cclass
class NodeGroup(Columns):
    """Up to 64 blocks in order; a row holds the bounds of one of them, and the (key, rank) from which on nodes belong to it.

    `position` is the group's among the groups.
    """

    blocks: list[NodeBlock]
    position: cython.Py_ssize_t

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        Columns.__init__(self, width, words)
        self.blocks = []
        self.position = 0

    @cython.cfunc
    def add(self, block: NodeBlock, at: cython.Py_ssize_t) -> cython.void:
        """Take in one more block, in this row; from its first node on nodes belong to it."""
        self.open_row(at)
        self.v[self.keys + at] = block.v[block.keys]
        self.v[self.keys + 64 + at] = block.v[block.keys + 64]
        self.blocks.insert(at, block)
        block.group = self
        self._renumber_from(at)
        self.tighten(at)

    @cython.cfunc
    def drop(self, at: cython.Py_ssize_t) -> cython.void:
        """Take out the block of this row."""
        self.close_row(at)
        cython.cast(NodeBlock, self.blocks[at]).group = None
        del self.blocks[at]
        self._renumber_from(at)

    @cython.cfunc
    def tighten(self, at: cython.Py_ssize_t) -> cython.void:
        """Make the bounds of a block exact."""
        cython.cast(NodeBlock, self.blocks[at]).upper(self, at)
        self.exact = False

    @cython.cfunc
    @cython.exceptval(check=False)
    def show_start(self, top: Columns, row: cython.Py_ssize_t) -> cython.void:
        """Write into a row of the columns above from which (key, rank) on nodes belong to this group."""
        top.v[top.keys + row] = self.v[self.keys]
        top.v[top.keys + 64 + row] = self.v[self.keys + 64]

    @cython.cfunc
    def halve(self) -> NodeGroup:
        """Give the second half of the blocks to a new group."""
        new: NodeGroup = NodeGroup(self.width, self.words)
        half: cython.Py_ssize_t = self.count // 2
        j: cython.Py_ssize_t
        self.copy_rows(half, new, 0)
        for j in range(half, self.count):
            cython.cast(NodeBlock, self.blocks[j]).group = new
        new.blocks = self.blocks[half:]
        del self.blocks[half:]
        new.count = self.count - half
        self.count = half
        self.exact = False
        new._renumber_from(0)
        return new

    @cython.cfunc
    def absorb(self, other: NodeGroup) -> cython.void:
        """Take over the blocks of the group behind this one; there must be room for them."""
        j: cython.Py_ssize_t
        start: cython.Py_ssize_t = self.count
        other.copy_rows(0, self, start)
        for j in range(other.count):
            cython.cast(NodeBlock, other.blocks[j]).group = self
        self.blocks += other.blocks
        self.count += other.count
        self.exact = False
        self._renumber_from(start)

    @cython.cfunc
    def _renumber_from(self, start: cython.Py_ssize_t) -> cython.void:
        j: cython.Py_ssize_t
        for j in range(start, self.count):
            cython.cast(NodeBlock, self.blocks[j]).position = j
