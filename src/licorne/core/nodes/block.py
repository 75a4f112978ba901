"""A block of the node index (up to 64 nodes in order), and a group of up to 64 such blocks.

A block holds, beside its nodes, a copy of what a search compares: free amounts, constraint bitmap, order. A group holds
upper bounds of the same for each of its blocks. Both are `Columns`, so one search serves for both
(`licorne.core.nodes.columns`); why nodes are kept in blocks at all is explained in `licorne.core.nodes.index`.
"""

from __future__ import annotations

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec

from .columns import Columns
from .node import Node

if cython.compiled:
    from cython.cimports.prefetch import item, prefetch


@cython.cfunc
@cython.exceptval(check=False)
def order_key(score: cython.double) -> cython.longlong:
    """Return the score as an integer that sorts like it: integers compare faster."""
    score = score + 0.0  # -0.0 and 0.0 are one score
    if not cython.compiled:
        return score  # type: ignore[return-value]  # interpreted, a float serves as its own key
    bits: cython.longlong = cython.cast(cython.p_longlong, cython.address(score))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@cython.cclass
class NodeBlock(Columns):
    """Up to 64 nodes in order, one in each row.

    `group` is the group that the block belongs to, None while it is in none, and `position` its row there. `nodes` is
    in reverse row order: it is mostly the first row that leaves, and the last item of a list is the cheapest to remove.
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
        """Return the row of a node of this block.

        The first row is tried before a binary search: decisions use nodes in order, so it is mostly the one.
        """
        return 0 if self.nodes[self.count - 1] is node else self.where(order_key(node.score), node.rank)

    def where_of(self, node: Node) -> int:
        """Return the row at which a search by score and rank finds the node; used by the check alone."""
        return self.where(order_key(node.score), node.rank)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_next(self) -> cython.void:
        """Prefetch what the next decisions need of the nodes after the first, which mostly leaves when it is used.

        The prefetches are staggered, since an address is known only once what holds it is in the cache: of the fourth
        node the object itself, of the third the objects that it names, of the second the entries of its allocations.
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
        """Prefetch what writing a new row changes."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.v + self.keys), 8)
            prefetch(cython.cast(cython.p_void, self.nodes), 1)

    @cython.cfunc
    def put(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Insert a node at this row; the block must not be full."""
        self.nodes.insert(self.count - at, node)
        self.open_row(at)
        node.block = self
        self.write(node, at, key, cells)

    @cython.cfunc
    @cython.exceptval(check=False)
    def write(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Copy the node's free amounts, constraint bitmap, cells, key and rank into its row."""
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
        """Remove the node of this row."""
        self.close_row(at)
        if at == 0:
            self.nodes.pop()
        else:
            del self.nodes[self.count - at]

    @cython.cfunc
    def give(self, start: cython.Py_ssize_t, to: NodeBlock) -> cython.void:
        """Move the nodes from row `start` on to the end of another block, which must have room for them."""
        j: cython.Py_ssize_t
        number: cython.Py_ssize_t = self.count - start
        self.copy_rows(start, to, to.count)
        for j in range(number):
            if cython.compiled and j + 8 < number:
                prefetch(item(self.nodes, j + 8), 1)  # the nodes are scattered in memory
            cython.cast(Node, self.nodes[j]).block = to
        # The lists are in reverse row order: the rows that move are the first of this one, and of the other one too.
        to.nodes = self.nodes[:number] + to.nodes
        to.count += number
        del self.nodes[:number]
        self.count = start
        self.center(start)
        self.exact = False
        to.exact = False


@cython.cclass
class NodeGroup(Columns):
    """Up to 64 blocks in order, one in each row.

    A row holds the bounds of its block, and the (key, rank) from which on nodes belong to that block. `position` is the
    index of the group among the groups.
    """

    blocks: list[NodeBlock]
    position: cython.Py_ssize_t

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        Columns.__init__(self, width, words)
        self.blocks = []
        self.position = 0

    @cython.cfunc
    def add(self, block: NodeBlock, at: cython.Py_ssize_t) -> cython.void:
        """Insert a block at this row; the order of its first node becomes the start of its range."""
        self.open_row(at)
        self.v[self.keys + at] = block.v[block.keys]
        self.v[self.keys + 64 + at] = block.v[block.keys + 64]
        self.blocks.insert(at, block)
        block.group = self
        self._renumber_from(at)
        self.tighten(at)

    @cython.cfunc
    def drop(self, at: cython.Py_ssize_t) -> cython.void:
        """Remove the block of this row."""
        self.close_row(at)
        cython.cast(NodeBlock, self.blocks[at]).group = None
        del self.blocks[at]
        self._renumber_from(at)

    @cython.cfunc
    def tighten(self, at: cython.Py_ssize_t) -> cython.void:
        """Recompute the bounds of a block exactly."""
        cython.cast(NodeBlock, self.blocks[at]).upper(self, at)
        self.exact = False

    @cython.cfunc
    @cython.exceptval(check=False)
    def show_start(self, top: Columns, row: cython.Py_ssize_t) -> cython.void:
        """Copy the (key, rank) from which on nodes belong to this group into a row of the level above."""
        top.v[top.keys + row] = self.v[self.keys]
        top.v[top.keys + 64 + row] = self.v[self.keys + 64]

    @cython.cfunc
    def halve(self) -> NodeGroup:
        """Move the second half of the blocks to a new group, and return that."""
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
        """Take over the blocks of the next group; both together must be at most 64."""
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
