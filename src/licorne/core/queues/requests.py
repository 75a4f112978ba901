"""The order in which an application's pending asks are tried (docs/spec/scheduling.md, section 5.2).

Higher priority first, then older create time, then arrival. `Requests` keeps this order in blocks of up to 128 asks. A
block knows how many of its asks are live (not parked) and a lower bound of what they ask for, so that a search under a
small quota, or among parked asks, skips whole blocks. Of the asks that wait for a node, each block and the whole know
the minima: where a freed node has room for none of these, the asks need not be looked at.
"""

from __future__ import annotations

from typing import Any

from licorne._plain import cython
from licorne.core.amounts.minima import Minima
from licorne.core.amounts.vectors import Vec
from licorne.core.constants import NO_NODE

from .ask import Ask
from .freed_nodes import FreedNodes

if cython.compiled:
    from cython.cimports.prefetch import item, prefetch


@cython.cclass
class AskBlock:
    """Up to 128 pending asks in request order; no live ask in it asks for less than `low`.

    The asks are the `items` from `gone` on: mostly the first ask leaves, which only sets its item to None and moves
    `gone` on. `waiting_minima` are the minima of the asks that wait for a node; it may also hold some that no longer
    do.
    """

    items: list[Ask | None]  # None before `gone`
    gone: cython.Py_ssize_t
    low: Vec
    waiting_minima: Minima
    live: cython.Py_ssize_t
    position: cython.Py_ssize_t

    def __init__(self) -> None:
        self.items = []
        self.gone = 0
        self.low = Vec()
        self.waiting_minima = Minima(False)
        self.live = 0
        self.position = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_after(self, i: cython.Py_ssize_t) -> cython.void:
        """Prefetch what the next decisions need of the asks after the one at this index; no result depends on it.

        An ask that arrived long ago is in no cache, and the address of each part is known only once the part before it
        is loaded. So the prefetches are staggered: of the third ask the object itself, of the second its shape and key,
        of the next the amounts of its shape.
        """
        if cython.compiled:
            if i + 3 < len(self.items):
                prefetch(item(self.items, i + 3), 3)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 2)).shape), 1)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 2)).key), 1)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 1)).shape.amounts), 1)

    @cython.cfunc
    def count_in(self, ask: Ask) -> cython.void:
        """Add an ask to the counts of this block.

        A live ask counts in `live`, and the bound `low` is lowered to it; one that is parked with NO_NODE joins the
        minima; asks that are parked for another reason count nowhere.
        """
        d: cython.Py_ssize_t
        amounts: Vec = ask.shape.amounts
        ask.block = self
        if ask.parked:
            if ask.parked == NO_NODE:
                self.waiting_minima.add(amounts)
            return
        if self.live == 0:
            self.low.copy_from(amounts)
        else:
            for d in range(self.low.n):  # what the bound does not hold is 0
                if d >= amounts.n:
                    self.low.v[d] = min(self.low.v[d], 0)
                elif amounts.v[d] < self.low.v[d]:
                    self.low.v[d] = amounts.v[d]
        self.live += 1

    @cython.cfunc
    def recount(self) -> cython.void:
        """Recompute the number of live asks, the bound and the minima exactly."""
        i: cython.Py_ssize_t
        self.live = 0
        self.waiting_minima.clear()
        for i in range(self.gone, len(self.items)):
            self.count_in(cython.cast(Ask, self.items[i]))

    @cython.cfunc
    def put(self, ask: Ask) -> cython.void:
        """Insert an ask where it belongs."""
        at: cython.Py_ssize_t = self.where(ask)
        if at == self.gone and self.gone:
            self.gone -= 1
            self.items[self.gone] = ask
        else:
            self.items.insert(at, ask)
        self.count_in(ask)

    @cython.cfunc
    def where(self, ask: Ask) -> cython.Py_ssize_t:
        """Return the index of an ask that is in this block, or at which it belongs."""
        lo: cython.Py_ssize_t = self.gone
        hi: cython.Py_ssize_t = len(self.items)
        mid: cython.Py_ssize_t
        while lo < hi:
            mid = (lo + hi) >> 1
            if cython.cast(Ask, self.items[mid]).before(ask):
                lo = mid + 1
            else:
                hi = mid
        return lo


@cython.cclass
class Requests:
    """The pending asks of one application in request order.

    `waiting_count` of them, with minima `waiting_minima`, wait for a node.
    """

    blocks: list[AskBlock]
    head: AskBlock | None  # the first block
    tail: AskBlock | None  # the last block
    priority: cython.longlong  # with `created` and `seq`: no ask comes after one with these values
    created: cython.longlong
    seq: cython.longlong
    waiting_count: cython.Py_ssize_t
    waiting_minima: Minima

    def __init__(self) -> None:
        self.blocks = []
        self.head = None
        self.tail = None
        self.priority = 0
        self.created = 0
        self.seq = 0
        self.waiting_count = 0
        self.waiting_minima = Minima(False)

    @cython.cfunc
    def insert(self, ask: Ask) -> cython.void:
        """Insert a pending ask that is in no block."""
        block: AskBlock | None = self.tail
        lo: cython.Py_ssize_t
        hi: cython.Py_ssize_t
        mid: cython.Py_ssize_t
        if block is None or ask.after(self.priority, self.created, self.seq):  # the common case: it comes last
            if block is None or len(block.items) >= 64:
                block = AskBlock()
                block.position = len(self.blocks)
                self.blocks.append(block)
                if self.tail is None:
                    self.head = block
                self.tail = block
            block.items.append(ask)
            block.count_in(ask)
            self.priority = ask.priority
            self.created = ask.created
            self.seq = ask.seq
            return
        lo = 0
        hi = len(self.blocks)
        # The last block of which the first ask comes before it; the first block if there is none.
        while hi - lo > 1:
            mid = (lo + hi) >> 1
            block = cython.cast(AskBlock, self.blocks[mid])
            if cython.cast(Ask, block.items[block.gone]).before(ask):
                lo = mid
            else:
                hi = mid
        block = cython.cast(AskBlock, self.blocks[lo])
        block.put(ask)
        if len(block.items) >= 128:
            self._shorten(block)

    @cython.cfunc
    def remove(self, ask: Ask) -> cython.void:
        """Remove an ask that is no longer pending."""
        block: AskBlock = cython.cast(AskBlock, ask.block)
        if block.items[block.gone] is ask:  # the common case, because asks are tried in order
            block.items[block.gone] = None
            block.gone += 1
        else:
            del block.items[block.where(ask)]
        if block.gone == len(block.items):
            del self.blocks[block.position]
            self._renumber_from(block.position)
        if ask.parked == NO_NODE:
            self.waiting_count -= 1
        elif not ask.parked:
            block.live -= 1
        ask.block = None

    @cython.cfunc
    def park(self, ask: Ask, why: cython.int) -> cython.void:
        """Exclude the ask from the search, for the reason `why`; only `Parking.park` may make it wait for a node."""
        block: AskBlock = cython.cast(AskBlock, ask.block)
        if ask.parked == NO_NODE:
            self.waiting_count -= 1
        elif not ask.parked:
            block.live -= 1
        ask.parked = why
        if why == NO_NODE:
            self.waiting_count += 1
            block.waiting_minima.add(ask.shape.amounts)
            self.waiting_minima.add(ask.shape.amounts)

    @cython.ccall
    def unpark(self, ask: Ask) -> cython.void:
        """Let the search see the ask again."""
        if ask.parked:
            if ask.parked == NO_NODE:
                self.waiting_count -= 1
            ask.parked = 0
            cython.cast(AskBlock, ask.block).count_in(ask)

    @cython.cfunc
    def next_fit(self, room: Vec, room_of_required: Vec, freed_nodes: FreedNodes) -> Ask | None:
        """Return the first ask that is live and fits in `room`, or that waits for a node and fits a freed node.

        One that requires its node need only fit in `room_of_required`, which is `room`, or no less than that in any type.
        None if there is none. One that waits for a node is returned even if it does not fit in `room`: the caller must learn
        of it, because the freed node will be dropped before the headroom is back.
        """
        p: cython.Py_ssize_t
        i: cython.Py_ssize_t
        block: AskBlock
        ask: Ask
        live: cython.bint
        waiting: cython.bint
        blocks: list[Any] = self.blocks
        held: cython.bint
        if self.head is not None:
            block = self.head
            ask = cython.cast(Ask, block.items[block.gone])
            if not ask.parked and room.covers(ask.shape.amounts):  # the common case: the first ask fits
                if cython.compiled:
                    block.prefetch_after(block.gone)
                return ask
        held = (
            self.waiting_count > 0 and len(freed_nodes.nodes) > 0 and self.waiting_minima.any_within(freed_nodes.most)
        )
        for p in range(len(blocks)):
            block = cython.cast(AskBlock, blocks[p])
            live = block.live > 0 and room_of_required.covers(block.low)
            waiting = held and block.waiting_minima.any_within(freed_nodes.most)
            if not live and not waiting:
                continue
            for i in range(block.gone, len(block.items)):
                ask = cython.cast(Ask, block.items[i])
                if cython.compiled:
                    block.prefetch_after(i)
                if not ask.parked:
                    if live and (
                        room.covers(ask.shape.amounts)
                        or (
                            room is not room_of_required and ask.required and room_of_required.covers(ask.shape.amounts)
                        )
                    ):
                        return ask
                elif waiting and ask.parked == NO_NODE and freed_nodes.most.covers(ask.shape.amounts):
                    if freed_nodes.fit(ask.shape):
                        return ask
            # Nothing found although the bounds promised it: make them exact, so that the next search skips the block.
            block.recount()
        if held:
            self._gather()
        return None

    @cython.cfunc
    def least_live(self, least: Vec) -> cython.bint:
        """Set `least` to a lower bound of what each live ask wants; False if no ask is live."""
        p: cython.Py_ssize_t
        block: AskBlock
        found: cython.bint = False
        for p in range(len(self.blocks)):
            block = cython.cast(AskBlock, self.blocks[p])
            if block.live > 0:
                if found:
                    least.lower_to(block.low)
                else:
                    least.copy_from(block.low)
                found = True
        return found

    @cython.cfunc
    def _gather(self) -> cython.void:
        """Recompute the minima of all asks that wait for a node from those of the blocks."""
        p: cython.Py_ssize_t
        self.waiting_minima.clear()
        for p in range(len(self.blocks)):
            self.waiting_minima.add_all(cython.cast(AskBlock, self.blocks[p]).waiting_minima)

    def in_order(self) -> list[Ask]:
        """Return all pending asks in request order."""
        block: AskBlock
        found: list[Ask] = []
        for block in self.blocks:
            found += cython.cast(list, block.items[block.gone :])  # from `gone` on none is None
        return found

    @cython.cfunc
    def _shorten(self, block: AskBlock) -> cython.void:
        """Shorten a full block: drop the items before `gone`, or move its second half to a new block."""
        new: AskBlock
        if block.gone:
            del block.items[: block.gone]
            block.gone = 0
            return
        new = AskBlock()
        new.items = block.items[64:]
        del block.items[64:]
        block.recount()
        new.recount()
        self.blocks.insert(block.position + 1, new)
        self._renumber_from(block.position + 1)

    @cython.cfunc
    def _renumber_from(self, start: cython.Py_ssize_t) -> cython.void:
        """Correct the positions of the blocks from `start` on, and `head` and `tail`, after a change of `blocks`."""
        i: cython.Py_ssize_t
        for i in range(start, len(self.blocks)):
            cython.cast(AskBlock, self.blocks[i]).position = i
        self.head = cython.cast(AskBlock, self.blocks[0]) if self.blocks else None
        self.tail = cython.cast(AskBlock, self.blocks[len(self.blocks) - 1]) if self.blocks else None

    def validate(self) -> None:
        """Prove order, positions, counts and bounds; raises AssertionError."""
        block: AskBlock
        ask: Ask
        last: Ask | None = None
        waits = 0
        d: cython.Py_ssize_t
        for p, b in enumerate(self.blocks):
            block = b
            live = 0
            assert block.position == p and block.gone < len(block.items), "block of asks"
            for a in block.items[block.gone :]:
                assert a is not None, "asks that are gone stand in front"
                ask = a
                assert ask.block is block, f"block of ask {ask.key}"
                assert last is None or last.before(ask), f"request order at {ask.key}"
                last = ask
                if ask.parked == NO_NODE:
                    waits += 1
                    assert block.waiting_minima.any_within(ask.shape.amounts), f"minima of the block of {ask.key}"
                    assert self.waiting_minima.any_within(ask.shape.amounts), f"minima of the application of {ask.key}"
                elif not ask.parked:
                    live += 1
                    for d in range(block.low.n):
                        assert block.low.v[d] <= ask.shape.amounts.at(d), f"bound below ask {ask.key}"
            assert live == block.live, "live asks of a block"
        assert waits == self.waiting_count, "asks that wait for a node"
        assert self.head is (self.blocks[0] if self.blocks else None), "the first block of asks"
        assert self.tail is (self.blocks[len(self.blocks) - 1] if self.blocks else None), "the last block of asks"
        assert last is None or not last.after(self.priority, self.created, self.seq), f"{last.key}: after the last ask"
