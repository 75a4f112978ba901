"""A partition: its queues, applications and nodes, and the one place where time and events reach them.

A partition is a scheduler of its own: nodes, queues and applications of different partitions never meet. It owns the
objects (*Cache Removal Design*: a partition holds queues, applications and nodes) and hands the work to where its rules
stand:

| what | where |
|---|---|
| applications: adding, removing | `admission` |
| asks and allocations | `intake`, `releases` |
| nodes, foreign allocations | `nodechanges` |
| decisions | `descent`, `parking`, `reservations` |
| gangs that start as a whole | `atomic`, `trial`, `plans`, `backfill` |
| gangs with placeholders | `gangs`, `replacement`, `gangtimeout` |
| preemption | `preemption`, `guaranteed` (`guarantees`, `picture`, `hunt`, `victims`, `leaf_groups`), `evictions`, `claims` |
| numbers of resource types | `numbering` |
| lowered quotas | `quotastart`, `quotacut`, `leafchoice` |
| sums; users and groups | `accounting`; `limits` |
| states and timers of applications | `lifecycle` |
| deadlines | `deadlines`, `timers` |
| why an ask waits | `explain` |

What it has to tell its resource manager is appended to `out`, in order; the cluster carries it away after each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import cython

from licorne.config.model import PartitionConfig
from licorne.core.amounts.sums import Sum
from licorne.core.amounts.vectors import Types, Vec
from licorne.core.base.rejections import REJECTED_MAX, Rejection
from licorne.core.base.settings import Settings
from licorne.core.base.states import TIME_MAX_NS, ObjectState
from licorne.core.base.timers import Timers
from licorne.core.events.partition_events import PartitionEvents
from licorne.core.gangs.atomic import AtomicGangs
from licorne.core.gangs.placeholders import Gangs
from licorne.core.gangs.replacement import Replacement
from licorne.core.inputs.admission import leave_queue
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.inputs.node_changes import Foreign
from licorne.core.inputs.numbering import Numbering
from licorne.core.nodes.index import NodeIndex
from licorne.core.nodes.needs import Needs
from licorne.core.nodes.node import Node, ScorePolicy
from licorne.core.placement.placer import PlacementConfigError, Placer
from licorne.core.preemption.claims import Claims
from licorne.core.preemption.evictions import EVICTIONS_MAX, Eviction, Outcome
from licorne.core.preemption.guaranteed import Guaranteed
from licorne.core.preemption.quota_start import QuotaChanges
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.cleaner import Cleaner
from licorne.core.queues.limits import Limits
from licorne.core.queues.tree import Tree
from licorne.core.scheduling.reservations import Reservations
from licorne.core.waiting.accounting import Accounting
from licorne.si.messages import Output, Termination, WaitingForResources

from .constants import UNLIMITED
from .inspection import explain
from .scheduling import deadlines, outstanding

if cython.compiled:
    from cython.cimports.licorne.core.inputs.intake import Intake
    from cython.cimports.licorne.core.inputs.releases import Releases
    from cython.cimports.licorne.core.scheduling.descent import Descent
    from cython.cimports.licorne.core.waiting.parking import Parking
else:
    from licorne.core.inputs.intake import Intake
    from licorne.core.inputs.releases import Releases
    from licorne.core.scheduling.descent import Descent
    from licorne.core.waiting.parking import Parking

STOPPED = ObjectState.STOPPED  # members of an enumeration are slow to get at where they are defined

Predicate = Callable[[str, str, bool], bool]
"""A resource manager's say: (ask's key, node's id, allocate or reserve) -> may it?"""

PreemptionPredicate = Callable[[str, str, list[str]], bool]
"""The same: (ask's key, node's id, keys of victims there) -> may it run there when they are gone?"""


@cython.cclass
class Partition:
    """One partition of one resource manager. `now` is the time of the input that is being handled (ns)."""

    name: str
    owner: str
    first_interface: cython.bint
    settings: Settings
    config: PartitionConfig
    starting: cython.bint
    types: Types
    numbering: Numbering
    state: ObjectState
    paused: Callable[[], bool]  # is nothing new to be decided? Its resource manager's to say
    now: int
    started_ns: int
    applications: dict[str, Application]
    terminated: dict[Application, None]
    on_end: Callable[[Application], None] | None  # of a host: told of each that is Completed or Failed
    rejected: deque[Rejection]
    nodes: dict[str, Node]
    foreign: dict[str, Foreign]
    total: Sum
    events: PartitionEvents | None  # None: nobody listens
    limits: Limits
    timers: Timers
    parking: Parking
    index: NodeIndex
    needs: Needs
    accounting: Accounting
    gangs: Gangs
    tree: Tree
    placer: Placer
    replacement: Replacement
    descent: Descent
    intake: Intake
    lifecycle: Lifecycle
    releases: Releases
    reservations: Reservations
    quotas: QuotaChanges
    guaranteed: Guaranteed
    claims: Claims
    evictions: deque[Eviction]
    preemption_predicates: PreemptionPredicate | None
    atomic: AtomicGangs
    cleaner: Cleaner
    dirty: cython.bint  # since pending asks were inspected
    generation: cython.longlong  # rises with all that happens here, but for applications that are visited in vain
    _applications_seen: int
    _last_moment: int
    _inspection_ns: cython.longlong  # when the asks that wait are looked at next, if anything has changed
    _resized: cython.bint
    __weakref__: object

    def __init__(
        self, config: PartitionConfig, settings: Settings, now: int, *, first_interface: bool, owner: str, name: str
    ) -> None:
        self.name = name
        self.owner = owner
        self.first_interface = first_interface
        self.settings = settings
        self.starting = first_interface if settings.starting is None else settings.starting
        self.types = Types()
        self.numbering = Numbering(self, self.types)
        self.state = ObjectState.ACTIVE
        self.paused = bool
        self.now = now
        self.started_ns = now
        self.applications = {}
        self.terminated = {}
        self.on_end = None
        self.rejected = deque(maxlen=REJECTED_MAX)
        self.nodes = {}
        self.foreign = {}
        self.total = Sum()
        self.events = None
        self.limits = Limits(self.types)
        self.timers = Timers()
        self.parking = Parking(self.timers, settings.reservation_delay_ns)
        self.parking.enabled = settings.parking
        self.parking.now = now
        self.index = NodeIndex(self._score_policy(config))
        self.needs = Needs(self.index)
        self.accounting = Accounting(self.parking, self.index, self.types)
        self.gangs = self.accounting.gangs = Gangs(self)
        self.tree = Tree(config.root, self.types, stateaware=self.starting)  # else it is fifo (docs/spec/states.md)
        self.placer = Placer.first(config.placement_rules)
        self.replacement = Replacement(self)
        self.descent = Descent(self.tree.root, self.accounting, self.nodes, self)
        self.intake = Intake(self, self.applications, self.accounting, self.tree.root, self.needs.plain)
        self.lifecycle = Lifecycle(self)
        self.releases = Releases(self, self.applications)
        self.reservations = Reservations(self)
        self.quotas = QuotaChanges(self)
        self.cleaner = Cleaner(self)
        self.guaranteed = Guaranteed(self)
        self.claims = Claims(self)
        self.evictions = deque(maxlen=EVICTIONS_MAX)
        self.preemption_predicates = None
        self.atomic = AtomicGangs(self)
        self._applications_seen = 0
        self._last_moment = now - 1
        self._inspection_ns = now + outstanding.INTERVAL_NS
        self.dirty = True
        self.generation = 0
        self._resized = True
        self.config = config
        self.numbering.configure(config)
        self.limits.configure(config.root, ())
        self.queues_changed()

    @property
    def predicates(self) -> Predicate | None:
        """What the resource manager has to say about asks and nodes; None: nothing."""
        return self.descent.predicates

    @predicates.setter
    def predicates(self, predicates: Predicate | None) -> None:
        self.descent.predicates = predicates

    @property
    def out(self) -> list[Output]:
        """What is to be told to the resource manager, in order."""
        return self.descent.out

    @cython.ccall
    def drain_outputs(self) -> list[Output]:
        """Take what is to be told."""
        if self.events is not None:
            self.events.catch_up()
            self.events.taken()
        out = self.descent.out
        self.descent.out = []
        return out

    def notify_released(self, alloc: Ask, termination: Termination, message: str) -> None:
        """Tell the resource manager that an allocation has ended, or that it must end it."""
        self.releases.notify_released(alloc, termination, message)

    # -- configuration ---------------------------------------------------------------------------------

    def _score_policy(self, config: PartitionConfig) -> ScorePolicy:
        weights = [
            (self.types.slot(name), weight) for name, weight in sorted(config.node_sort.weights.items()) if weight
        ]
        return ScorePolicy(config.node_sort.policy == "binpacking", weights)

    @staticmethod
    def check_reload(config: PartitionConfig) -> None:
        """Refuse what could not be applied, before anything is.

        Raises:
            PlacementConfigError: the placement rules cannot be used.
        """
        Placer(config.placement_rules)

    def reload(self, config: PartitionConfig) -> None:
        """Apply another configuration (docs/spec/config.md, section 6), which `check_reload` has accepted."""
        self.placer = Placer(config.placement_rules)
        self.numbering.configure(config)
        if config.node_sort != self.config.node_sort:
            self.index.set_policy(self._score_policy(config))
        self.config = config
        self.quotas.reload(config.root)  # the tree, and what follows from its new quotas
        self.limits.configure(config.root, self.applications.values())
        self.queues_changed()
        self.claims.configured()
        if self.events is not None:
            self.events.queues_changed()

    def queues_changed(self) -> None:
        """Quotas, the tree or the cluster's size have changed: shares follow, and everything may be tried again."""
        self.settle_size()
        self.parking.tree_changed(self.tree.root, self.applications.values())
        self.cleaner.watch()
        self.guaranteed.configure(enabled=self.config.preemption_enabled and self.tree.guarantees())
        self.dirty = True
        self.generation += 1

    def resize(self, capacity: Vec, times: int) -> None:
        """A node of this capacity has come (1) or gone (-1)."""
        if times > 0:
            self.total.plus(capacity)
        else:
            self.total.minus(capacity)
        self._resized = True
        self.dirty = True

    def settle_size(self) -> None:
        """Make root's max the size of the cluster, and shares those of the tree, if either has changed since."""
        if self._resized:
            self._resized = False
            self.tree.set_total(self.total)
            self.parking.wake_blocked(self.tree.root.blocked)
        if self.tree.stale:
            self.tree.reweigh()

    # -- time ------------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """The time is now: do what was due before, each at its own time."""
        while True:
            due = self.timers.next_ns()
            if due is None or due > now:
                break
            self.now = self.parking.now = max(self.now, due)
            found = self.timers.due(due)
            if found is not None:
                deadlines.due(self, *found)
                if self.events is not None:
                    self.events.catch_up()
        self.now = self.parking.now = now

    def next_deadline_ns(self) -> int | None:
        """When something may happen without an input; None: nothing ever will."""
        due = self.timers.next_ns()
        looks = self.settings.outstanding_inspection or self.events is not None
        if self.dirty and looks and self.tree.root.asks_pending:
            due = self._inspection_ns if due is None else min(due, self._inspection_ns)
        return due

    # -- decisions -------------------------------------------------------------------------------------

    @cython.ccall
    def schedule(self, limit: cython.longlong) -> cython.longlong:
        """Decide until nothing more is possible, or `limit` allocations are made; returns their number."""
        if self.state is STOPPED:
            return 0
        if self._resized or self.tree.stale:
            self.settle_size()
        if self.parking.refused:
            self.parking.retry_refused()
        if self.descent.predicates is not None:
            self.reservations.retry_refused()
        before: cython.Py_ssize_t = len(self.descent.out)
        made: cython.longlong = self.descent.decide(limit)
        if self.parking.gangs or self.descent.unplaced or self.guaranteed.has_retries:
            made += self.on_idle(limit - made)
        if made or len(self.descent.out) > before:
            self.dirty = True
            self.generation += 1
        # Only when all asks have had their turn: a call that ended at its limit leaves the inspection to a later one.
        if made < limit and self.dirty and self.now >= self._inspection_ns:
            self._inspection_ns = self.now + outstanding.INTERVAL_NS
            self.dirty = self.events is not None and not self.events.look()
            if self.settings.outstanding_inspection:
                for app, ask in outstanding.unreported(self):
                    ask.reported = True
                    self.out.append(WaitingForResources(ask.key, app.id))
        return made

    def on_idle(self, limit: int) -> int:
        """Nothing more can be placed: let work run in front of gangs, and then preempt; the number of allocations made."""
        made = self.atomic.on_idle(limit) if self.parking.gangs else 0
        while made < limit and self.guaranteed.on_idle():
            made += self.descent.decide(limit - made)
            if self.parking.gangs:
                made += self.atomic.on_idle(limit - made)
        return made

    def back_off(self, app: Application) -> None:
        """Too many of its asks fit no node: leave it alone for a while (docs/spec/scheduling.md, section 6.1)."""
        app.backoff_until = self.now + min(app.queue.settings.backoff_delay_ns, TIME_MAX_NS)
        app.backoff_timer = self.timers.add(app.backoff_until, "backoff", app)

    def predicate_allows(self, ask: Ask, node: Node, allocate: bool) -> bool:
        """Ask the resource manager."""
        return self.predicates is None or self.predicates(ask.key, node.id, allocate)

    def cancel_ordinary_reservations(self, node: Node) -> None:
        """Others make way for an ask that requires the node."""
        if node.reservations:
            self.reservations.cancel_ordinary(node)

    def allocated(self, app: Application, alloc: Ask) -> None:
        """An allocation was made: states and timeouts follow."""
        self.lifecycle.allocated(app, alloc)
        if alloc.timeout_ns > 0:
            alloc.deadline = self.timers.add(self.now + alloc.timeout_ns, "timeout", alloc)

    # -- applications ----------------------------------------------------------------------------------

    def next_application_number(self) -> int:
        """Applications are numbered in the order of their arrival."""
        self._applications_seen += 1
        return self._applications_seen

    def moment(self) -> int:
        """The time of an application's creation (ns): now, but no two applications are created at the same moment."""
        self._last_moment = max(self.now, self._last_moment + 1)
        return self._last_moment

    def drop_ask(self, app: Application, ask: Ask, *, counted: bool = True) -> None:
        """The ask is gone, and with it its reservation. `counted`: as released, if it is a placeholder."""
        if ask.reserved is not None:
            self.reservations.cancel(ask, Outcome.ENDED)
        self.accounting.unpend(app, ask)
        if counted and ask.placeholder:
            self.gangs.dropped(app, ask)
        if self.events is not None:
            self.events.dropped(ask)

    def remove_application(self, app: Application) -> None:
        """Take it out of its queue and the partition; it has nothing left."""
        self.applications.pop(app.id, None)
        leave_queue(self, app)
        self.timers.cancel(app.timer)
        if app.independent and self.events is not None:
            self.events.independent_left(app)

    # -- reading ---------------------------------------------------------------------------------------

    def work(self) -> dict[str, int]:
        """Work that was done until now, counted: the same on every machine, so that slower code shows (`tests/guard`)."""
        return {
            "applications visited": self.descent.visits,
            "applications woken": self.parking.wakeups,
            "asks attempted": self.descent.attempts,
            "blocks scanned": self.index.visits,
            "nodes moved": self.index.moves,
        }

    def waiting(self) -> Iterator[tuple[str, str, list[explain.Reason]]]:
        """For each pending ask: its key, its application's id, and why it waits (`licorne.core.inspection.explain`)."""
        return explain.waiting(self)


__all__ = ["UNLIMITED", "Partition", "PlacementConfigError", "Predicate"]
