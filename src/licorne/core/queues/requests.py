"""The order in which an application's pending asks are tried (docs/spec/scheduling.md, section 5.2).

Higher priority first, then older create time, then arrival. `Requests` keeps this order in blocks of up to 128 asks. A
block knows how many of its asks are live (not parked) and a lower bound of what they ask for, so that a search under a
small quota, or among parked asks, skips whole blocks. Of the asks that wait for a node a block, and the whole, know the
minima, so that they need not be looked at when a node is freed that has room for none of them.
"""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.licorne.core.amounts.minima import Minima
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.licorne.core.constants import NO_NODE
    from cython.cimports.licorne.core.queues.ask import Ask
    from cython.cimports.licorne.core.queues.freed_nodes import FreedNodes
    from cython.cimports.prefetch import item, prefetch
else:
    from licorne._plain import cython  # type: ignore[no-redef]
    from licorne.core.amounts.minima import Minima
    from licorne.core.amounts.vectors import Vec
    from licorne.core.constants import NO_NODE

    from .ask import Ask
    from .freed_nodes import FreedNodes


@cython.cclass
class AskBlock:
    """Up to 128 pending asks in request order; no live ask in it asks for less than `low`.

    They are the `items` from `gone` on: mostly the first leaves, and only leaves its place empty, as those before it did.
    `waiting_minima` are the minima of those that wait for a node; it may also hold some that were.
    """

    items: list[Ask | None]  # None where one is gone
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
        """Have the processor fetch from memory what follows the ask at this place: a hint, of which nothing depends.

        An ask that came long ago is a chain of addresses, of which it cannot know the next before it has the last: so of
        one it fetches the ask, of the one before it what that names, and of the next one the amounts.
        """
        if cython.compiled:
            if i + 3 < len(self.items):
                prefetch(item(self.items, i + 3), 3)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 2)).shape), 1)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 2)).key), 1)
                prefetch(cython.cast(cython.p_void, cython.cast(Ask, item(self.items, i + 1)).shape.amounts), 1)

    @cython.cfunc
    def count_in(self, ask: Ask) -> cython.void:
        """The ask is in this block: if it is live, count it and lower the bound to it; if it waits, know that."""
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
        """Make the count, the bound and the minima exact."""
        i: cython.Py_ssize_t
        self.live = 0
        self.waiting_minima.clear()
        for i in range(self.gone, len(self.items)):
            self.count_in(cython.cast(Ask, self.items[i]))

    @cython.cfunc
    def put(self, ask: Ask) -> cython.void:
        """Take in an ask, where it belongs."""
        at: cython.Py_ssize_t = self.where(ask)
        if at == self.gone and self.gone:
            self.gone -= 1
            self.items[self.gone] = ask
        else:
            self.items.insert(at, ask)
        self.count_in(ask)

    @cython.cfunc
    def where(self, ask: Ask) -> cython.Py_ssize_t:
        """The place of an ask that is in this block, or that belongs there."""
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
    """The pending asks of one application in request order; `waiting_count` of them, with minima `waiting_minima`, wait for a node."""

    blocks: list[AskBlock]
    head: AskBlock | None  # the first of them
    tail: AskBlock | None  # the last
    priority: cython.longlong  # with the next two: no ask comes after one with these
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
        """Put in a pending ask; it must be in no block."""
        block: AskBlock | None = self.tail
        lo: cython.Py_ssize_t
        hi: cython.Py_ssize_t
        mid: cython.Py_ssize_t
        if block is None or ask.after(self.priority, self.created, self.seq):  # the common case: it is the last
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
        """Take out an ask: it is not pending any longer."""
        block: AskBlock = cython.cast(AskBlock, ask.block)
        if block.items[block.gone] is ask:  # mostly: those before it would be tried before it
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
        """Take the ask out of the search. To let it wait for a node is for `Parking.park` alone."""
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
    def next_fit(self, room: Vec, freed_nodes: FreedNodes) -> Ask | None:
        """The first ask that fits in the room and is live, or that waits for a node and one of the candidates holds it.

        None if there is none. One that waits is returned although it may not fit in the room: see `Parking`.
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
            if not ask.parked and room.covers(ask.shape.amounts):  # the common case: it is the very first
                if cython.compiled:
                    block.prefetch_after(block.gone)
                return ask
        held = (
            self.waiting_count > 0 and len(freed_nodes.nodes) > 0 and self.waiting_minima.any_within(freed_nodes.most)
        )
        for p in range(len(blocks)):
            block = cython.cast(AskBlock, blocks[p])
            live = block.live > 0 and room.covers(block.low)
            waiting = held and block.waiting_minima.any_within(freed_nodes.most)
            if not live and not waiting:
                continue
            for i in range(block.gone, len(block.items)):
                ask = cython.cast(Ask, block.items[i])
                if cython.compiled:
                    block.prefetch_after(i)
                if not ask.parked:
                    if live and room.covers(ask.shape.amounts):
                        return ask
                elif waiting and ask.parked == NO_NODE and freed_nodes.most.covers(ask.shape.amounts):
                    if freed_nodes.fit(ask.shape):
                        return ask
            block.recount()
        if held:
            self._gather()
        return None

    @cython.cfunc
    def least_live(self, least: Vec) -> cython.bint:
        """`least` := a lower bound of what each live ask wants. False: none is live."""
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
        """Make the minima of all that waits those of the blocks."""
        p: cython.Py_ssize_t
        self.waiting_minima.clear()
        for p in range(len(self.blocks)):
            self.waiting_minima.add_all(cython.cast(AskBlock, self.blocks[p]).waiting_minima)

    def in_order(self) -> list[Ask]:
        """All pending asks in request order."""
        block: AskBlock
        found: list[Ask] = []
        for block in self.blocks:
            found += cython.cast(list, block.items[block.gone :])  # none of these is gone
        return found

    @cython.cfunc
    def _shorten(self, block: AskBlock) -> cython.void:
        """A block is long: leave out what is gone from it, or give its second half to a new one."""
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
        """The blocks from here on are others now: tell them their places, and know the first and the last."""
        i: cython.Py_ssize_t
        for i in range(start, len(self.blocks)):
            cython.cast(AskBlock, self.blocks[i]).position = i
        self.head = cython.cast(AskBlock, self.blocks[0]) if self.blocks else None
        self.tail = cython.cast(AskBlock, self.blocks[len(self.blocks) - 1]) if self.blocks else None

    def validate(self) -> None:
        """Prove order, places, counts and bounds."""
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
