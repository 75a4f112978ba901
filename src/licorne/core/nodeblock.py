"""A block of the node index, up to 64 nodes in order, and a group of such blocks.

See `licorne.core.nodeindex` for why nodes stand in blocks, and `licorne.core.nodecolumns` for the search in them.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.nodecolumns import Columns
    from cython.cimports.licorne.core.nodes import Node
else:
    from licorne._plain import cython  # type: ignore[no-redef]

    from .nodecolumns import Columns
    from .nodes import Node


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
    """Up to 64 nodes in the order of (key, rank); from (`low_key`, `low_rank`) on nodes belong here.

    `group` and `place` say where the block stands.
    """

    nodes: list[Any]  # Node
    group: NodeGroup | None
    place: cython.Py_ssize_t
    low_key: cython.longlong
    low_rank: cython.longlong
    keys: cython.Py_ssize_t  # where the column of the keys begins, and that of the ranks
    ranks: cython.Py_ssize_t

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        Columns.__init__(self, width, words, 2)
        self.nodes = []
        self.group = None
        self.place = 0
        self.low_key = 0
        self.low_rank = 0
        self.keys = self.cells + 64
        self.ranks = self.cells + 128

    @cython.cfunc
    @cython.exceptval(check=False)
    def starts_by(self, key: cython.longlong, rank: cython.longlong) -> cython.bint:
        """Does this block start at or before (key, rank)?"""
        return self.low_key < key or (self.low_key == key and self.low_rank <= rank)

    @cython.cfunc
    @cython.exceptval(check=False)
    def where(self, key: cython.longlong, rank: cython.longlong) -> cython.Py_ssize_t:
        """The row of the node with this key and rank, or where it belongs."""
        lo: cython.Py_ssize_t = 0
        hi: cython.Py_ssize_t = self.count
        mid: cython.Py_ssize_t
        here: cython.longlong
        while lo < hi:
            mid = (lo + hi) >> 1
            here = self.v[self.keys + mid]
            if here < key or (here == key and self.v[self.ranks + mid] < rank):
                lo = mid + 1
            else:
                hi = mid
        return lo

    def where_of(self, node: Node) -> int:
        """The row in which a node is to be found."""
        return self.where(order_key(node.score), node.rank)

    @cython.cfunc
    def put(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Take in one more node, in this row."""
        self.open_row(at)
        self.nodes.insert(at, node)
        node.block = self
        self.write(node, at, key, cells)

    @cython.cfunc
    def write(self, node: Node, at: cython.Py_ssize_t, key: cython.longlong, cells: cython.ulonglong) -> cython.void:
        """Copy what the node says into its row."""
        self.v[self.keys + at] = key
        self.v[self.ranks + at] = node.rank
        self.set_row(at, node.free, node.shown_marks(), cells)
        self.exact = False

    @cython.cfunc
    def remove(self, at: cython.Py_ssize_t) -> cython.void:
        """Take out the node of this row."""
        self.close_row(at)
        del self.nodes[at]

    @cython.cfunc
    def give(self, start: cython.Py_ssize_t, to: NodeBlock) -> cython.void:
        """Move the nodes from row `start` on to the end of another block, which has room for them."""
        j: cython.Py_ssize_t
        for j in range(start, self.count):
            self.copy_row(j, to, to.count)
            to.count += 1
            to.nodes.append(self.nodes[j])
            cython.cast(Node, self.nodes[j]).block = to
        del self.nodes[start:]
        self.count = start
        self.exact = False
        to.exact = False


@cython.cclass
class NodeGroup(Columns):
    """Up to 64 blocks in order; a row holds the bounds of one of them. `place` is the group's among the groups."""

    blocks: list[Any]  # NodeBlock
    place: cython.Py_ssize_t

    def __init__(self, width: cython.Py_ssize_t, words: cython.Py_ssize_t) -> None:
        Columns.__init__(self, width, words, 0)
        self.blocks = []
        self.place = 0

    @cython.cfunc
    def add(self, block: NodeBlock, at: cython.Py_ssize_t) -> cython.void:
        """Take in one more block, in this row."""
        self.open_row(at)
        self.blocks.insert(at, block)
        block.group = self
        self._places_from(at)
        self.tighten(at)

    @cython.cfunc
    def drop(self, at: cython.Py_ssize_t) -> cython.void:
        """Take out the block of this row."""
        self.close_row(at)
        cython.cast(NodeBlock, self.blocks[at]).group = None
        del self.blocks[at]
        self._places_from(at)

    @cython.cfunc
    def tighten(self, at: cython.Py_ssize_t) -> cython.void:
        """Make the bounds of a block exact."""
        cython.cast(NodeBlock, self.blocks[at]).upper(self, at)
        self.exact = False

    @cython.cfunc
    def halve(self) -> NodeGroup:
        """Give the second half of the blocks to a new group."""
        new: NodeGroup = NodeGroup(self.width, self.words)
        half: cython.Py_ssize_t = self.count // 2
        j: cython.Py_ssize_t
        for j in range(half, self.count):
            self.copy_row(j, new, j - half)
            cython.cast(NodeBlock, self.blocks[j]).group = new
        new.blocks = self.blocks[half:]
        del self.blocks[half:]
        new.count = self.count - half
        self.count = half
        self.exact = False
        new._places_from(0)
        return new

    @cython.cfunc
    def absorb(self, other: NodeGroup) -> cython.void:
        """Take over the blocks of the group behind this one; there must be room for them."""
        j: cython.Py_ssize_t
        start: cython.Py_ssize_t = self.count
        for j in range(other.count):
            other.copy_row(j, self, start + j)
            cython.cast(NodeBlock, other.blocks[j]).group = self
        self.blocks += other.blocks
        self.count += other.count
        self.exact = False
        self._places_from(start)

    @cython.cfunc
    def _places_from(self, start: cython.Py_ssize_t) -> cython.void:
        j: cython.Py_ssize_t
        for j in range(start, self.count):
            cython.cast(NodeBlock, self.blocks[j]).place = j
