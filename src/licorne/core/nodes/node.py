"""A node, what an ask needs of it besides room, and its score.

What an ask needs of a node (labels, taints: `licorne.core.nodes.constraints`) is not evaluated ask by ask. Each
different set of constraints is a `Need`; it is evaluated once for each different set of node labels, and the answer is
one bit in the constraint bitmap that all nodes with these labels share (`licorne.core.nodes.needs`). A search then
compares bits. About a thousand needs have a bit of their own. Further ones share the last bit, which only says that one
of them is met, so the node that a search found is evaluated once more (`Need.matches`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.minima import Minima
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.constants import IS_NEAR

from .constraints import NO_CONSTRAINTS, HostPort, NodeConstraints, NodeLabels
from .devices import Demand, NodeDevices
from .domains import DomainCheck, PodClass

if TYPE_CHECKING:
    # for the type checker alone: the modules that define them import this one
    from licorne.core.queues.ask import Ask

    from .block import NodeBlock
    from .preferences import Ranking
    from .topology import Topology

if cython.compiled:
    from cython.cimports.libc.stdlib import calloc, free
    from cython.cimports.prefetch import prefetch, prefetch_entries

WORD = 62  # bits used of each 64-bit word of a constraint bitmap
WORDS_MAX = 16
SHARED = WORD * WORDS_MAX - 1
"""The number of the bit that needs share when all others are used."""

ANSWERS_MAX = 1 << 12
"""How many label sets a need with the shared bit caches its answers for."""

EMPTY_BITMAP = Vec()


@cython.cclass
class Need:
    """One set of node constraints, known to the nodes of a partition by one bit (`mask` in `word`) of their bitmaps.

    `failed` are the minima of the amounts for which no node with this need was found (`licorne.core.waiting.parking`).
    `counted`: allocations with it use up ports or devices. `empty`: for a need with a demand for devices the need of the same
    constraints that a node meets whatever is left of its devices; None otherwise. `pods`: for asks that say what they are as
    pods, the class of these; their need shares the bit of `base`, that of their node constraints alone, and `checks` say
    which nodes the terms of pods shut it out of (`licorne.core.nodes.topology`); None while no ask with it is pending. What is
    tried again when a check eases are its shapes that have failed (`waiters`) and the asks in `awaiting` (`begin_awaiting`).
    `prefers`: some preference may order nodes for it; those of its own pods are its `ranking`, None if there are none.
    """

    constraints: NodeConstraints
    number: cython.Py_ssize_t  # of its bit
    word: cython.Py_ssize_t
    mask: cython.longlong
    exact: cython.bint  # the bit is this need's own
    waiting: cython.longlong  # how many use it: shapes of pending asks, and asks in flight
    answers: dict[NodeLabels, bool]  # cached, where the bit is shared
    failed: Minima
    ports: tuple[HostPort, ...]  # of the constraints
    demand: Demand | None  # of the constraints
    counted: cython.bint
    empty: Need | None
    base: Need | None
    pods: PodClass | None
    checks: list[DomainCheck] | None
    topology: Topology | None
    waiters: dict[Any, None]
    awaiting: dict[Any, None]
    ranking: Ranking | None
    prefers: cython.bint

    # They follow from the constraints and the number; `answers` is a cache.
    TRANSIENT = (
        "word",
        "mask",
        "exact",
        "answers",
        "ports",
        "demand",
        "counted",
        "empty",
        "base",
        "checks",
        "topology",
        "waiters",
        "awaiting",
        "ranking",
        "prefers",
    )

    def __init__(self, constraints: NodeConstraints, number: int) -> None:
        self.constraints = constraints
        self.number = number
        self.word = number // WORD
        self.mask = 1 << number % WORD
        self.exact = number != SHARED
        self.waiting = 0
        self.answers = {}
        self.failed = Minima(True)
        self.ports = constraints.ports
        self.demand = constraints.demand
        self.counted = bool(constraints.ports) or constraints.demand is not None
        self.empty = None
        self.base = None
        self.pods = None
        self.checks = None
        self.topology = None
        self.waiters = {}
        self.awaiting = {}
        self.ranking = None
        self.prefers = False

    @cython.ccall
    def of_empty(self) -> Need:
        """Return the need that a node meets if devices in use are all that keeps it from this one, or nothing does."""
        return self if self.empty is None else self.empty

    def excludes(self, other: Need) -> bool:
        """Return whether an ask with a claim to a node, and with this need, closes it to one with the other need.

        Their host ports may conflict. Which devices the claim leaves is known only when its ask has got some.
        """
        if self.demand is not None and other.demand is not None:
            return True
        return bool(self.ports) and self.constraints.excludes(other.constraints)

    @property
    def judged(self) -> bool:
        """Whether what runs may keep an ask off a node by more than amounts: by devices, host ports, or terms of pods."""
        return self.demand is not None or bool(self.ports) or bool(self.checks)

    def may_match(self, node: Node) -> bool:
        """Return whether the node would match if anything else had ended that is in the way: what the ask wants near is there."""
        check: DomainCheck
        if not self.labels_may_match(node):
            return False
        for check in self.checks or ():
            domain = check.key.domain_of[node.slot]
            if check.shut[domain] and (check.kind == IS_NEAR or domain == 0):
                return False
        return True

    def labels_may_match(self, node: Node) -> bool:
        """Return whether the node's labels and taints satisfy the constraints, whatever is in use there."""
        need: Need = self.of_empty()
        if need.labels_match(node):
            return True
        return bool(need.ports) and need.constraints.matches(replace(node.labels, ports=()))

    def matches(self, node: Node) -> bool:
        """Return whether the node's labels and taints satisfy the constraints, and no term of pods shuts the ask out."""
        return self.labels_match(node) and (self.pods is None or not self.is_shut_out(node))

    def mismatch(self, node: Node) -> str:
        """Return why the node does not match; empty if it does. The reasons are as in kube-scheduler's order of filters."""
        return self.constraints.mismatch(node.labels) or self.mismatch_of_pods(node)

    def mismatch_of_pods(self, node: Node) -> str:
        """Return which demand of pods among each other keeps the ask off the node; empty if none does."""
        return "" if self.topology is None or node.slot < 0 else self.topology.mismatch(self, node.slot)

    def mismatch_when_new(self, labels: NodeLabels) -> str:
        """Return why a new node with these labels, on which nothing runs, would not match; empty if it would."""
        among = "" if self.topology is None else self.topology.mismatch_when_new(self, labels)
        return self.constraints.mismatch(labels) or among

    @cython.cfunc
    @cython.exceptval(-1)
    def is_shut_out(self, node: Node) -> cython.bint:
        """Return whether a term of pods shuts the ask out of the node."""
        check: DomainCheck
        if node.slot < 0:  # it has been removed
            return False
        if self.checks is None:
            assert self.topology is not None, "a need with a class of pods has a topology"
            return self.topology.shuts(self, node.slot)
        for check in self.checks:
            if check.shuts_node(node.slot):
                return True
        return False

    @cython.cfunc
    def few_slots(self, most: cython.Py_ssize_t) -> list[Any] | None:
        """Return the slots of at most so many nodes, by domain, that alone some check does not shut; else None."""
        check: DomainCheck
        for check in self.checks or ():
            few = check.few_slots(most)
            if few is not None:
                return few
        return None

    def labels_match(self, node: Node) -> bool:
        """Return whether the node's labels and taints satisfy the constraints."""
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
    other schedulers use: `foreign` maps the key of each of their allocations to its amounts, `base_occupied` is what a
    node message reported as occupied besides. `allocations` and `reservations` are the allocations on the node and the
    asks that reserve it (as keys, in order of arrival). `rank` orders the nodes of a partition as their ids do (byte
    order), `score` as the policy does; `block` is the node's block in the node index, None while it is in none. `slot` is its
    number in the topology, -1 while it is in none.
    """

    # The fields are laid out in memory in this order: those that decisions read come first.
    free: Vec
    constraint_bitmap: Vec  # one bit for each need that is met; shared by all nodes with the same labels
    open: cython.bint  # schedulable and not reserved: asks in general may use it
    schedulable: cython.bint
    block: NodeBlock | None
    slot: cython.Py_ssize_t
    score: cython.double
    rank: cython.longlong
    capacity: Vec
    allocated: Vec
    allocations: dict[Ask, None]
    id: str

    occupied: Vec
    attributes: dict[str, str]
    labels: NodeLabels
    ports: dict[HostPort, int]  # how many allocations take each host port; changed by `Needs` alone
    devices: NodeDevices | None  # None if it never had any; changed by `Needs` alone
    reservations: dict[Ask, None]
    foreign: dict[str, Vec]
    base_occupied: Vec

    TRANSIENT = ("block", "slot")  # its places in the index and the topology, which are built anew

    def __init__(self, id: str, attributes: dict[str, str], labels: NodeLabels, capacity: Vec) -> None:
        self.id = id
        self.rank = 0
        self.attributes = attributes
        self.labels = labels
        self.ports = {}
        self.devices = None
        self.capacity = capacity
        self.occupied = new_sum()
        self.base_occupied = Vec()
        self.allocated = new_sum()
        self.refree()
        self.schedulable = True
        self.open = False
        self.constraint_bitmap = EMPTY_BITMAP
        self.score = 0.0
        self.block = None
        self.slot = -1
        self.allocations = {}
        self.reservations = {}
        self.foreign = {}

    @cython.ccall
    @cython.exceptval(-1)
    def fits(self, amounts: Vec, need: Need) -> cython.bint:
        """Return whether the node is open, meets the need, and has room for the amounts."""
        return self.meets(need) and self.free.covers(amounts)

    @cython.cfunc
    @cython.exceptval(-1)
    def meets(self, need: Need) -> cython.bint:
        """Return whether the node is open and meets the need."""
        if (
            not self.open
            or need.word >= self.constraint_bitmap.n
            or self.constraint_bitmap.v[need.word] & need.mask == 0
        ):
            return False
        if need.pods is not None and need.is_shut_out(self):
            return False
        return need.exact or need.labels_match(self)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_fields(self) -> cython.void:
        """Prefetch the objects that an allocation on this node changes; no result depends on it."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.free), 2)
            prefetch(cython.cast(cython.p_void, self.allocated), 2)
            prefetch(cython.cast(cython.p_void, self.allocations), 1)
            prefetch(cython.cast(cython.p_void, self.id), 1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_allocations(self) -> cython.void:
        """Prefetch the entries of `allocations`; of use only once `prefetch_fields` has loaded the object."""
        if cython.compiled:
            prefetch_entries(cython.cast(cython.p_void, self.allocations), 3)

    @cython.cfunc
    def search_bitmap(self) -> Vec:
        """Return the constraint bitmap that a search may see: an empty one while the node is closed."""
        return self.constraint_bitmap if self.open else EMPTY_BITMAP

    def refree(self) -> None:
        """Recompute `free` after `capacity` or `occupied` has changed."""
        self.free = new_sum()
        self.free.plus(self.capacity)
        self.free.add_sum(self.occupied, -1)
        self.free.add_sum(self.allocated, -1)


@cython.cclass
class ScorePolicy:
    """The order of nodes: fair, least used first, or binpacking, most used first.

    Source: docs/spec/scheduling.md, section 7.5.

    `usage = sum(share * weight) / sum(weight)` over the weighted types that the node has, with
    `share = 1 - available / total`. The sum is taken in the order of the types' names, so that it is rounded the same
    everywhere. `places[i]` is the number of the i-th weighted type, `weights[i]` its weight.
    """

    binpacking: cython.bint
    count: cython.Py_ssize_t
    places: cython.p_Py_ssize_t
    weights: cython.p_double

    def __init__(self, policy: str, weights: list[tuple[int, float]]) -> None:
        """Take over `policy`, the name of the order (`licorne.config.model.NodePolicy`), and the weights.

        `weights` are (number of the type, weight), in the order of the types' names, without zero weights.
        """
        i: cython.Py_ssize_t
        self.binpacking = policy == "binpacking"
        self.count = len(weights)
        if cython.compiled:
            # One more than needed: for a size of 0 calloc may return NULL.
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
        """Return the node's score; smaller comes first."""
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
        """Python-callable wrapper of `score`."""
        return self.score(node)


def first_need() -> Need:
    """Return the need that every partition has from the start: no constraints, so that only taints exclude nodes."""
    return Need(NO_CONSTRAINTS, 0)


def best_to_reserve(nodes: list[Node], ask: Vec, need: Need, expired_node: Node | None) -> Node | None:
    """Return the node to reserve for an ask that fits nowhere now; None if none of these is large enough.

    Source: docs/spec/scheduling.md, section 7.1.3.

    `nodes` are in node order. `expired_node`, where the ask's last reservation grew too old, is skipped.

    The node with the smallest FitInScore is chosen, the first of equal ones. FitInScore sums over the types that are
    free on the node: 1 where the ask wants none, (free - wanted) / free where more is free than wanted, else 0.
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
