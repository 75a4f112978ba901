"""An application: its asks and allocations, what it uses, and its order among the applications of its leaf queue.

This file holds the data that decisions read, and the comparison of two applications. The life of an application (its
states and when they change) is in `licorne.core.inputs.lifecycle`, its sums are written by
`licorne.core.waiting.accounting` alone.

Source: docs/spec/scheduling.md, sections 2 and 5.1.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.order import Ranked
from licorne.core.base.states import ApplicationState, ApplicationTable
from licorne.core.base.timers import Timer

from .ask import Ask, Shape
from .priorities import PriorityBag
from .queue import Queue
from .requests import Requests
from .usage import Tracker

if TYPE_CHECKING:
    from licorne.core.gangs.atomic import AtomicGang, LastingGang
    from licorne.core.gangs.placeholders import PlaceholderGang
    from licorne.core.queues.usage_history import PastUsage

if cython.compiled:
    from cython.cimports.prefetch import prefetch, prefetch_entries


@cython.cclass
class Application(Ranked):
    """An application of a partition.

    `submitted` is the time of its creation, lowered to that of its oldest ask (nanoseconds). `high` is an upper bound
    of what any of its pending asks wants. `trackers` are those of its user and group, leaf first; `group` is the
    configured group that it counts for, None for none, once `group_chosen`. `usage` is what fair order compares: what
    it uses as shares of the leaf's guaranteed resources, largest first, zeros left out. `asks` are all that are
    pending, by key; `allocations` by allocation id; `reservations` by ask key.
    """

    # The fields are laid out in memory in this order: those that decisions read come first.
    queue: Queue
    state: ApplicationState
    backoff_until: cython.longlong
    atomic: AtomicGang | None  # if it is an atomic gang that has not started; else None
    requests: Requests
    trackers: list[Tracker]
    asks: dict[str, Ask]
    pending: Vec
    asks_pending: cython.longlong
    bag: PriorityBag
    allocations: dict[str, Ask]
    allocated: Vec
    id: str
    lasting: LastingGang | None  # what it is if it is a lasting gang; None: it is none, or that is not known yet
    group_chosen: cython.bint
    active: cython.bint  # awake, and woken by something other than a freed node

    seq: cython.longlong
    submitted: cython.longlong
    user: str
    groups: tuple[str, ...]
    tags: dict[str, str]
    state_log: list[tuple[int, str]]
    placeholders: Vec
    high: Vec
    usage: list[float]
    last_shape: Shape | None  # of the ask that was added last
    visited_seq: cython.longlong  # every ask that arrived up to this number has been tried
    ask_reentered: cython.bint  # an older ask was entered again, after younger ones, since preemption looked at `asks`
    reservations: dict[str, Ask]
    group: str | None
    starting: cython.bint  # its life includes the state Starting
    independent: cython.bint  # made for an ask of a resource manager without applications
    forced: cython.bint
    requires_nodes: cython.bint  # one of its asks, at some time, required its node
    running_timeout_ns: cython.longlong
    placeholder_ask: Vec
    placeholder_resource: dict[str, int]  # `placeholder_ask` as a map
    gang: PlaceholderGang | None  # its placeholders; None: it has none
    timer: Timer | None  # ends the present state
    backoff_timer: Timer | None
    running_timer: Timer | None
    table: ApplicationTable  # the state machine of its dialect
    started_ns: cython.longlong
    finished_ns: cython.longlong
    message: str
    past: PastUsage | None  # what it has used so far, if that is recorded

    TRANSIENT = ("table", "lasting")  # follow from the dialect and the settings, from its tags and allocations

    def __init__(self, id: str, seq: int, submitted: int, queue: Queue, user: str) -> None:
        self.heap_index = -1
        self.id = id
        self.seq = seq
        self.submitted = submitted
        self.queue = queue
        self.user = user
        self.groups = ()
        self.tags = {}
        self.state = ApplicationState.NEW
        self.state_log = []
        self.allocated = new_sum()
        self.placeholders = new_sum()
        self.pending = new_sum()
        self.high = Vec()
        self.usage = []
        self.requests = Requests()
        self.last_shape = None
        self.bag = PriorityBag()
        self.asks_pending = 0
        self.visited_seq = 0
        self.ask_reentered = False
        self.backoff_until = 0
        self.active = False
        self.asks = {}
        self.allocations = {}
        self.reservations = {}
        self.trackers = []
        self.group = None
        self.group_chosen = False
        self.starting = False
        self.independent = False
        self.forced = False
        self.requires_nodes = False
        self.running_timeout_ns = 0
        self.placeholder_ask = Vec()
        self.placeholder_resource = {}
        self.gang = None
        self.timer = None
        self.backoff_timer = None
        self.running_timer = None
        self.table = {}
        self.started_ns = 0
        self.finished_ns = 0
        self.message = ""
        self.atomic = None
        self.lasting = None
        self.past = None

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_fields(self) -> cython.void:
        """Prefetch the objects that a new ask changes; no result depends on it."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.requests), 2)
            prefetch(cython.cast(cython.p_void, self.last_shape), 1)
            prefetch(cython.cast(cython.p_void, self.asks), 1)
            prefetch(cython.cast(cython.p_void, self.allocations), 1)
            prefetch(cython.cast(cython.p_void, self.pending), 2)
            prefetch(cython.cast(cython.p_void, self.high), 2)
            prefetch(cython.cast(cython.p_void, self.bag), 1)

    @cython.cfunc
    @cython.exceptval(check=False)
    def prefetch_more(self) -> cython.void:
        """Prefetch what those objects refer to; of use only after `prefetch_fields`."""
        if cython.compiled:
            prefetch(cython.cast(cython.p_void, self.requests.tail), 2)  # where a new ask goes
            prefetch_entries(cython.cast(cython.p_void, self.asks), 1)
            if self.last_shape is not None:
                prefetch(cython.cast(cython.p_void, self.last_shape.amounts), 2)

    @cython.cfunc
    @cython.exceptval(check=False)
    def before(self, other: Ranked) -> cython.bint:
        """Compare by the leaf's policy; the last tie is broken by arrival (section 5.1)."""
        app: Application = cython.cast(Application, other)
        queue: Queue = self.queue
        if queue.stateaware:
            return self.submitted < app.submitted or (self.submitted == app.submitted and self.seq < app.seq)
        if queue.by_priority and self.bag.top != app.bag.top:
            return self.bag.top > app.bag.top
        if queue.fair:
            if self.usage != app.usage:
                return self.usage < app.usage
        elif self.submitted != app.submitted:
            return self.submitted < app.submitted
        if not queue.by_priority and self.bag.top != app.bag.top:
            return self.bag.top > app.bag.top
        return self.seq < app.seq

    @cython.ccall
    def recompute_usage(self) -> cython.void:
        """Recompute `usage` (CompareShares of section 1, with the leaf's own guaranteed resources as total)."""
        d: cython.Py_ssize_t
        shares: list[Any] = []
        total: cython.longlong
        for d in range(self.allocated.n):
            if self.allocated.v[d] != 0:
                total = self.queue.guaranteed.at(d)
                if total > 0:
                    shares.append(float(self.allocated.v[d]) / float(total))
                else:
                    shares.append(float(self.allocated.v[d]))
        shares.sort(reverse=True)
        self.usage = shares

    def allocated_resource(self) -> dict[str, int]:
        """Return what its allocations use, without placeholders; zeros left out."""
        return self.allocated.named(self.queue.types)

    def pending_resource(self) -> dict[str, int]:
        """Return what its pending asks want; zeros left out."""
        return self.pending.named(self.queue.types)

    def ask(self, key: str) -> Ask | None:
        """Return the pending ask with this key."""
        return self.asks.get(key)


def in_order(apps: list[Application]) -> list[Application]:
    """Return applications of one leaf, sorted by `Application.before`."""
    return sorted(apps, key=cmp_to_key(_compare))


def _compare(one: Application, other: Application) -> int:
    return -1 if one.before(other) else 1
