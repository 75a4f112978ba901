"""A node, what an ask needs of it besides room, and its score.

What an ask needs of a node (labels, taints: `licorne.core.nodes.constraints`) is not evaluated ask by ask. Each
different set of constraints is a `Need`; it is evaluated once for each different set of labels, and the answer is a mark,
one bit, of all nodes that have these labels (`licorne.core.nodes.needs`). A search then compares bits. There are marks for
about a thousand needs; further ones share the last mark, which is then only an upper bound, and the node that was found
is asked again (`Need.matches`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cython

from .constraints import NO_CONSTRAINTS, NodeConstraints, NodeLabels

if cython.compiled:
    from cython.cimports.libc.stdlib import calloc, free
    from cython.cimports.licorne.core.amounts.minima import Minima
    from cython.cimports.licorne.core.amounts.sums import Sum
    from cython.cimports.licorne.core.amounts.vectors import Vec
    from cython.cimports.prefetch import prefetch, prefetch_entries
else:
    from licorne.core.amounts.minima import Minima
    from licorne.core.amounts.sums import Sum
    from licorne.core.amounts.vectors import Vec

if TYPE_CHECKING:  # a node knows them as objects: the modules that define them build upon this one
    from licorne.core.queues.ask import Ask

    from .block import NodeBlock

WORD = 62  # marks in a word of 64 bits
WORDS_MAX = 16
SHARED = WORD * WORDS_MAX - 1
"""The number of the mark that needs share when there are no others left."""

ANSWERS_MAX = 1 << 12
"""How many different sets of labels such a need remembers with its answer."""

EMPTY_BITMAP = Vec()


@cython.cclass
class Need:
    """One set of node constraints, known to the nodes of a partition by a mark: a bit of a word.

    `failed` are the minima of the amounts that found no node (`licorne.core.waiting.parking`).
    """

    constraints: NodeConstraints
    number: cython.Py_ssize_t  # of its mark
    word: cython.Py_ssize_t
    mask: cython.longlong
    exact: cython.bint  # the mark is this need's own
    waiting: cython.longlong  # shapes of pending asks with it, and asks in flight
    answers: dict[NodeLabels, bool]  # for a shared mark
    failed: Minima

    def __init__(self, constraints: NodeConstraints, number: int) -> None:
        self.constraints = constraints
        self.number = number
        self.word = number // WORD
        self.mask = 1 << number % WORD
        self.exact = number != SHARED
        self.waiting = 0
        self.answers = {}
        self.failed = Minima(True)

    def matches(self, node: Node) -> bool:
        """Do the node's labels and taints satisfy the constraints?"""
        if self.exact:
            return node.constraint_bitmap.at(self.word) & self.mask != 0
        known = self.answers.get(node.labels)
        if known is None:
            if len(self.answers) >= ANSWERS_MAX:
                self.answers.clear()
            known = self.answers[node.labels] = self.constraints.matches(node.labels)
        return known


@cython.cclass
class Node:
    """A node (docs/spec/scheduling.md, section 2).

    `free` is what is left for asks: capacity - occupied - allocated, which may be negative. `occupied` sums up what
    other schedulers use: `foreign` maps the key of such an allocation to its amounts, `base_occupied` is what a message
    said is occupied besides. `allocations` and `reservations` hold the allocations on it and the asks that reserve it
    (as keys, in order of arrival). `rank` orders the nodes of a partition as their ids do (byte order), `score` as the
    policy does; `block` is where it stands in the node index, None while it stands in none.
    """

    # The fields lie in memory as they stand here: what decisions look at comes first.
    free: Sum
    constraint_bitmap: Vec  # one bit for each need that it meets; shared by all nodes with the same labels
    open: cython.bint  # it is schedulable and not reserved: asks in general may use it
    schedulable: cython.bint
    block: NodeBlock | None
    score: cython.double
    rank: cython.longlong
    capacity: Vec
    allocated: Sum
    allocations: dict[Ask, None]
    id: str

    occupied: Sum
    attributes: dict[str, str]
    labels: NodeLabels
    reservations: dict[Ask, None]
    foreign: dict[str, Vec]
    base_occupied: Vec

    def __init__(self, id: str, attributes: dict[str, str], labels: NodeLabels, capacity: Vec) -> None:
        self.id = id
        self.rank = 0
        self.attributes = attributes
        self.labels = labels
        self.capacity = capacity
        self.occupied = Sum()
        self.base_occupied = Vec()
        self.allocated = Sum()
        self.refree()
        self.schedulable = True
        self.open = False
        self.constraint_bitmap = EMPTY_BITMAP
        self.score = 0.0
        self.block = None
        self.allocations = {}
        self.reservations = {}
        self.foreign = {}

    @cython.ccall
    @cython.exceptval(-1)
    def fits(self, amounts: Vec, need: Need) -> cython.bint:
        """Is it open, has it room, and does it meet the constraints?"""
        return self.meets(need) and self.free.covers(amounts)

    @cython.cfunc
    @cython.exceptval(-1)
    def meets(self, need: Need) -> cython.bint:
        """Is it open, and does it meet the constraints?"""
        if (
            not self.open
            or need.word >= self.constraint_bitmap.n
            or self.constraint_bitmap.v[need.word] & need.mask == 0
        ):
            return False
        return need.exact or need.matches(self)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_fields(self) -> cython.void:
        """Have the processor fetch from memory what an allocation changes: a hint, of which nothing depends."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.free), 2)
            prefetch(cython.cast(cython.p_void, self.allocated), 2)
            prefetch(cython.cast(cython.p_void, self.allocations), 1)
            prefetch(cython.cast(cython.p_void, self.id), 1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_allocations(self) -> cython.void:
        """The same for the entries of its allocations, after `prefetch_fields`."""
        if cython.compiled:
            prefetch_entries(cython.cast(cython.p_void, self.allocations), 3)

    @cython.cfunc
    def search_bitmap(self) -> Vec:
        """The marks that a search may see: none while the node is closed."""
        return self.constraint_bitmap if self.open else EMPTY_BITMAP

    def refree(self) -> None:
        """Compute `free` anew, after capacity or occupied changed."""
        self.free = Sum()
        self.free.plus(self.capacity)
        self.free.add_sum(self.occupied, -1)
        self.free.add_sum(self.allocated, -1)


@cython.cclass
class ScorePolicy:
    """The order of nodes: fair, least used first, or binpacking, most used first.

    Source: docs/spec/scheduling.md, section 7.5.

    `usage = sum(share * weight) / sum(weight)` over the weighted types that the node has, with
    `share = 1 - available / total`. The sum runs over the types by name, so that it is the same everywhere.
    """

    binpacking: cython.bint
    count: cython.Py_ssize_t
    places: cython.p_Py_ssize_t
    weights: cython.p_double

    def __init__(self, binpacking: bool, weights: list[tuple[int, float]]) -> None:
        """`weights`: (place of the type, weight), in the order of the types' names, zero weights left out."""
        i: cython.Py_ssize_t
        self.binpacking = binpacking
        self.count = len(weights)
        if cython.compiled:
            self.places = cython.cast(cython.p_Py_ssize_t, calloc(self.count + 1, 8))
            self.weights = cython.cast(cython.p_double, calloc(self.count + 1, 8))
            if cython.NULL in (self.places, self.weights):
                raise MemoryError
        else:
            self.places = [0] * self.count
            self.weights = [0.0] * self.count
        for i in range(self.count):
            self.places[i], self.weights[i] = weights[i]

    def __dealloc__(self) -> None:
        if cython.compiled:
            free(self.places)
            free(self.weights)

    @cython.cfunc
    @cython.exceptval(check=False)
    def score(self, node: Node) -> cython.double:
        """The node's score; smaller comes first."""
        capacity: Vec = node.capacity
        free_: Vec = node.free
        used: cython.double = 0.0
        total: cython.double = 0.0
        weight: cython.double
        part: cython.double
        i: cython.Py_ssize_t
        d: cython.Py_ssize_t
        for i in range(self.count):
            d = self.places[i]
            if d < capacity.n and capacity.v[d] > 0:
                weight = self.weights[i]
                part = float(free_.v[d]) / float(capacity.v[d]) if d < free_.n else 0.0
                used += (1.0 - part) * weight
                total += weight
        if total != 0.0:
            used = used / total
        else:
            used = 0.0
        return 1.0 - used if self.binpacking else used

    def score_of(self, node: Node) -> float:
        """The same, for who is not compiled."""
        return self.score(node)


def first_need() -> Need:
    """The need that every partition has from the start: no constraints, so only taints keep an ask away."""
    return Need(NO_CONSTRAINTS, 0)


def best_to_reserve(nodes: list[Node], ask: Vec, need: Need, expired_node: Node | None) -> Node | None:
    """The node to reserve for an ask that fits nowhere now, None if none of these is large enough.

    Source: docs/spec/scheduling.md, section 7.1.3.

    The nodes are given in their order.

    Smallest FitInScore, ties in node order. FitInScore sums over the types that are free on the node: 1 where
    the ask wants none, (free - wanted) / free where more is free than wanted, else 0.
    """
    node: Node
    best: Node | None = None
    d: cython.Py_ssize_t
    score: cython.double
    least: cython.double = 0.0
    free_: cython.longlong
    for node in nodes:
        if node is expired_node or not node.capacity.covers(ask) or not node.meets(need):
            continue
        score = 0.0
        for d in range(node.free.n):
            free_ = node.free.v[d]
            if free_ > 0 and ask.at(d) <= 0:
                score += 1.0
            elif free_ > 0 and free_ > ask.at(d):
                score += float(free_ - ask.at(d)) / float(free_)
        if best is None or score < least:
            best = node
            least = score
    return best
