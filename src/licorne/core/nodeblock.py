"""A block of the node index: up to 64 nodes as columns, and the scan over them.

See `licorne.core.nodeindex` for why nodes stand in blocks. Here is what a search spends its time in: bounds that let it
skip a block, and a straight scan of the columns.
"""

from __future__ import annotations

from typing import Annotated, Any

import cython

if cython.compiled:
    from cython.cimports.libc.stdlib import free, malloc
    from cython.cimports.licorne.core.nodes import Node
    from cython.cimports.licorne.core.vectors import Vec
else:
    from .nodes import Node
    from .vectors import Vec

LAST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


@cython.cfunc
@cython.exceptval(check=False)
def order_key(score: cython.double) -> cython.longlong:
    """The score as an integer of the same order: integers compare faster in a vectorised loop."""
    score = score + 0.0  # -0.0 and 0.0 are one score
    if not cython.compiled:
        return score  # type: ignore[return-value]  # interpreted, a float serves as its own key
    bits: cython.longlong = cython.cast(cython.p_longlong, cython.address(score))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@cython.cclass
class Bounds:
    """Upper bounds of what is free, and the union of bits, over some nodes."""

    top: Vec
    bits: cython.ulonglong

    def __init__(self) -> None:
        self.top = Vec(0, -1)
        self.bits = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def may_hold(self, ask: Vec, mask: cython.ulonglong) -> cython.bint:
        """May one of these nodes have room for the ask and all bits of the mask?"""
        d: cython.Py_ssize_t
        if (self.bits & mask) != mask or self.top.n < ask.n:
            return False
        for d in range(ask.n):
            if self.top.v[d] < ask.v[d] and ask.v[d] > 0:
                return False
        return True

    @cython.cfunc
    def lift_to(self, node: Node) -> cython.void:
        """Lift the bounds to what is free on a node, and its bits."""
        d: cython.Py_ssize_t
        for d in range(min(self.top.n, node.free.n)):
            if node.free.v[d] > self.top.v[d]:
                self.top.v[d] = node.free.v[d]
        for d in range(node.free.n, self.top.n):
            if self.top.v[d] < 0:
                self.top.v[d] = 0
        self.bits |= node.bits

    @cython.cfunc
    def clear(self, width: cython.Py_ssize_t) -> cython.void:
        """The bounds of no node at all: nothing fits."""
        self.top.grow(width)
        self.top.set_all(-1)
        self.bits = 0


@cython.cclass
class NodeBlock:
    """Columns of up to 64 nodes; `low` is the (key, rank) from which on nodes belong here."""

    count: cython.Py_ssize_t
    place: cython.Py_ssize_t
    width: cython.Py_ssize_t
    low_key: cython.longlong
    low_rank: cython.longlong
    bounds: Bounds
    nodes: list[Any]  # Node, or None where a slot is empty
    key: Annotated[list[int], cython.longlong[64]]
    rank: Annotated[list[int], cython.longlong[64]]
    bits: Annotated[list[int], cython.ulonglong[64]]
    free: cython.p_longlong
    last: cython.longlong  # C arrays are not the last member, so that bounds checks work

    def __init__(self, width: int) -> None:
        j: cython.Py_ssize_t
        self.width = width
        self.count = 0
        self.place = 0
        self.low_key = 0
        self.low_rank = 0
        self.bounds = Bounds()
        self.bounds.clear(width)
        self.nodes = [None] * 64
        if cython.compiled:
            self.free = cython.cast(cython.p_longlong, malloc(max(self.width, 1) * 64 * 8))
            if self.free == cython.NULL:
                raise MemoryError
        else:
            self.free = [0] * (max(width, 1) * 64)
            self.key = [0] * 64
            self.rank = [0] * 64
            self.bits = [0] * 64
        for j in range(64):
            self.wipe(j)

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.free)

    @cython.cfunc
    def wipe(self, j: cython.Py_ssize_t) -> cython.void:
        """An empty slot: no search finds it."""
        d: cython.Py_ssize_t
        for d in range(self.width):
            self.free[d * 64 + j] = -1
        self.key[j] = LAST
        self.rank[j] = LAST
        self.bits[j] = 0
        self.nodes[j] = None

    @cython.cfunc
    def move(self, j: cython.Py_ssize_t, to: NodeBlock, k: cython.Py_ssize_t) -> cython.void:
        """Copy slot j to slot k of a block; what it leaves behind is the caller's to wipe or overwrite."""
        d: cython.Py_ssize_t
        node: Node = cython.cast(Node, self.nodes[j])
        for d in range(self.width):
            to.free[d * 64 + k] = self.free[d * 64 + j]
        to.key[k] = self.key[j]
        to.rank[k] = self.rank[j]
        to.bits[k] = self.bits[j]
        to.nodes[k] = node
        node.block = to
        node.slot = k

    @cython.cfunc
    def write(self, node: Node) -> cython.void:
        """Copy what the node says into the columns of its slot, and lift the bounds to it."""
        j: cython.Py_ssize_t = node.slot
        d: cython.Py_ssize_t
        self.key[j] = order_key(node.score)
        self.rank[j] = node.rank
        self.bits[j] = node.bits
        for d in range(self.width):
            self.free[d * 64 + j] = node.free.v[d] if d < node.free.n else 0
        self.bounds.lift_to(node)

    @cython.cfunc
    def put(self, node: Node) -> cython.void:
        """Take in one more node."""
        node.block = self
        node.slot = self.count
        self.nodes[self.count] = node
        self.count += 1
        self.write(node)

    @cython.cfunc
    def remove(self, j: cython.Py_ssize_t) -> cython.void:
        """Close the gap with the last slot."""
        last: cython.Py_ssize_t = self.count - 1
        if j != last:
            self.move(last, self, j)
        self.wipe(last)
        self.count = last

    @cython.cfunc
    @cython.exceptval(check=False)
    def starts_by(self, key: cython.longlong, rank: cython.longlong) -> cython.bint:
        """Does this block start at or before (key, rank)?"""
        return self.low_key < key or (self.low_key == key and self.low_rank <= rank)

    @cython.cfunc
    def tighten(self) -> cython.void:
        """Make the bounds exact."""
        d: cython.Py_ssize_t
        j: cython.Py_ssize_t
        x: cython.longlong
        bits: cython.ulonglong = 0
        for d in range(self.width):
            x = -1
            for j in range(d * 64, d * 64 + 64):
                x = max(x, self.free[j])
            self.bounds.top.v[d] = x
        for j in range(64):
            bits |= self.bits[j]
        self.bounds.bits = bits


@cython.cfunc
@cython.exceptval(check=False)
def scan(
    block: NodeBlock, ask: Vec, mask: cython.ulonglong, after_key: cython.longlong, after_rank: cython.longlong
) -> cython.Py_ssize_t:
    """Slot of the first node after (after_key, after_rank) that has room and all bits of the mask, or -1.

    The loops over the columns are straight and free of branches, and use no operation that the oldest vector units
    lack, so that a C compiler vectorises them for any machine.
    """
    if not cython.compiled:
        return _scan_interpreted(block, ask, mask, after_key, after_rank)
    unfit = cython.declare(cython.ulonglong[64])  # type: ignore[valid-type]  # a C array
    d: cython.Py_ssize_t
    j: cython.Py_ssize_t
    want: cython.longlong
    column: cython.p_longlong
    found: cython.Py_ssize_t = -1
    for j in range(64):
        unfit[j] = (block.bits[j] & mask) ^ mask
    for d in range(ask.n):
        want = ask.v[d]
        if want > 0:
            column = block.free + d * 64
            for j in range(64):  # the sign of what would be left: no sum comes near to overflow (vectors.SUM_MAX)
                unfit[j] |= cython.cast(cython.ulonglong, column[j] - want) >> 63
    for j in range(64):
        if unfit[j] == 0 and (
            found < 0
            or block.key[j] < block.key[found]
            or (block.key[j] == block.key[found] and block.rank[j] < block.rank[found])
        ):
            if after_rank < 0 or block.key[j] > after_key or (block.key[j] == after_key and block.rank[j] > after_rank):
                found = j
    return found


def _scan_interpreted(block: Any, ask: Any, mask: int, after_key: int, after_rank: int) -> int:
    """`scan` in the way that suits an interpreter: it looks at the few nodes that have the bits, and stops early."""
    wants = [(d * 64, want) for d, want in enumerate(ask.v) if want > 0]
    found = -1
    for j in range(block.count):
        if block.bits[j] & mask != mask:
            continue
        key, rank = block.key[j], block.rank[j]
        if after_rank >= 0 and (key, rank) <= (after_key, after_rank):
            continue
        if found >= 0 and (block.key[found], block.rank[found]) < (key, rank):
            continue
        for at, want in wants:
            if block.free[at + j] < want:
                break
        else:
            found = j
    return found
