"""A partition: its queues, applications and nodes, and the one place where time and events reach them.

A partition is a scheduler of its own: nodes, queues and applications of different partitions never meet. It owns the
objects (*Cache Removal Design*: a partition holds queues, applications and nodes) and delegates the work to the modules
that hold the rules:

| what | where |
|---|---|
| applications: adding, removing | `inputs/admission` |
| asks and allocations | `inputs/intake`, `inputs/releases` |
| nodes, foreign allocations | `inputs/node_changes` |
| decisions | `scheduling/descent`, `scheduling/reservations`, `waiting/parking` |
| orders of the host program, in place of the own ones | `scheduling/host_orders` |
| gangs that start as a whole | `gangs/atomic`, `gangs/trial`, `gangs/plans`, `gangs/backfill` |
| gangs with placeholders | `gangs/placeholders`, `gangs/replacement`, `gangs/timeout` |
| preemption below a guarantee | `preemption/guarantee_preemption`, `preemption/node_search`, `preemption/victim_search` |
| preemption on a required node | `preemption/required_node` |
| evictions, and what they are for | `preemption/evictions`, `preemption/claims` |
| disruption budgets | `preemption/disruption_budgets` |
| lowered quotas | `preemption/quota_start`, `preemption/quota_cut`, `preemption/leaf_victims` |
| numbers of resource types | `inputs/numbering` |
| sums; users and groups | `waiting/accounting`; `queues/limits` |
| states and timers of applications | `inputs/lifecycle` |
| deadlines | `scheduling/deadlines`, `base/timers` |
| why an ask waits | `inspection/explain` |

Messages for its resource manager are appended to `out`, in order; the cluster drains them after each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from licorne._plain import cython
from licorne.config.model import PartitionConfig
from licorne.core.base.settings import Settings
from licorne.core.base.states import TIME_MAX_NS, ObjectState
from licorne.core.contents import PartitionContents
from licorne.core.events.partition_events import PartitionEvents
from licorne.core.gangs.atomic import AtomicGangs
from licorne.core.gangs.placeholders import Gangs
from licorne.core.gangs.replacement import Replacement
from licorne.core.inputs.admission import leave_queue
from licorne.core.inputs.intake import Intake
from licorne.core.inputs.lifecycle import Lifecycle
from licorne.core.inputs.numbering import Numbering
from licorne.core.inputs.releases import Releases
from licorne.core.nodes.node import Node
from licorne.core.placement.placer import PlacementConfigError, Placer
from licorne.core.preemption.claims import Claims
from licorne.core.preemption.disruption_budgets import DisruptionBudgets
from licorne.core.preemption.evictions import EVICTIONS_MAX, Eviction, Outcome
from licorne.core.preemption.guarantee_preemption import GuaranteePreemption
from licorne.core.preemption.quota_start import QuotaChanges
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.core.queues.cleaner import Cleaner
from licorne.core.scheduling.descent import Descent
from licorne.core.scheduling.host_orders import GivenOrders, HostOrders
from licorne.core.scheduling.reservations import Reservations
from licorne.si.messages import Output, Termination, WaitingForResources

from .constants import UNLIMITED
from .inspection import explain
from .scheduling import deadlines, outstanding

STOPPED = ObjectState.STOPPED  # a global, because looking up a member of an enumeration is slow

Predicate = Callable[[str, str, bool], bool]
"""A question to the resource manager: (ask's key, node's id, True to allocate, False to reserve) -> is it allowed?"""

PreemptionPredicate = Callable[[str, str, list[str]], bool]
"""A question to the resource manager: (ask's key, node's id, keys of victims there) -> may the ask run without them?"""


@cython.cclass
class Partition(PartitionContents):
    """One partition of one resource manager. `now` is the time of the input that is being handled, in nanoseconds."""

    numbering: Numbering
    events: PartitionEvents | None  # None if there is no listener
    gangs: Gangs
    placer: Placer
    replacement: Replacement
    descent: Descent
    intake: Intake
    lifecycle: Lifecycle
    releases: Releases
    reservations: Reservations
    quotas: QuotaChanges
    disruption_budgets: DisruptionBudgets
    guarantee_preemption: GuaranteePreemption
    claims: Claims
    evictions: deque[Eviction]
    preemption_predicates: PreemptionPredicate | None
    atomic: AtomicGangs
    cleaner: Cleaner
    inspections: cython.longlong  # how often asks were looked for that wait for nodes and nothing else
    _inspection_ns: cython.longlong  # time of the next inspection of pending asks, if anything has changed

    # Records of events decide nothing; `placer` follows from the configuration; the host sets the predicates.
    TRANSIENT = ("events", "placer", "preemption_predicates")

    def __init__(
        self,
        config: PartitionConfig,
        settings: Settings,
        now: int,
        *,
        first_interface: bool,
        owner: str,
        name: str,
        orders: HostOrders | None = None,
    ) -> None:
        super().__init__(config, settings, now, first_interface=first_interface, owner=owner, name=name)
        self.events = None
        self.evictions = deque(maxlen=EVICTIONS_MAX)
        self.preemption_predicates = None
        self.numbering = Numbering(self, self.types)
        self.gangs = self.accounting.gangs = Gangs(self)
        self.placer = Placer.first(config.placement_rules)
        self.replacement = Replacement(self)
        self.descent = Descent(self.tree.root, self.accounting, self.nodes, self)
        self.use_orders(orders)
        self.intake = Intake(self, self.applications, self.accounting, self.tree.root, self.needs.plain)
        self.lifecycle = Lifecycle(self)
        self.releases = Releases(self, self.applications)
        self.reservations = Reservations(self)
        self.quotas = QuotaChanges(self)
        self.cleaner = Cleaner(self)
        self.disruption_budgets = DisruptionBudgets()
        self.guarantee_preemption = GuaranteePreemption(self)
        self.claims = Claims(self)
        self.atomic = AtomicGangs(self)
        self.inspections = 0
        self._inspection_ns = now + outstanding.INTERVAL_NS
        self.numbering.configure(config)
        self.limits.configure(config.root, ())
        self.queues_changed()

    def use_orders(self, orders: HostOrders | None) -> None:
        """Let orders of the host take the place of the own ones; None: the own ones count."""
        self.descent.orders = None if orders is None else GivenOrders(orders)

    @property
    def predicates(self) -> Predicate | None:
        """The resource manager's predicate for asks on nodes; None if it has none."""
        return self.descent.predicates

    @predicates.setter
    def predicates(self, predicates: Predicate | None) -> None:
        self.descent.predicates = predicates

    @property
    def out(self) -> list[Output]:
        """The messages for the resource manager that were not drained yet, in order."""
        return self.descent.out

    @cython.ccall
    def drain_outputs(self) -> list[Output]:
        """Take the messages for the resource manager; `out` is empty then."""
        if self.events is not None:
            self.events.drained()
        out = self.descent.out
        self.descent.out = []
        return out

    def notify_released(self, alloc: Ask, termination: Termination, message: str) -> None:
        """Append the message that an allocation has ended, or that the resource manager must end it."""
        self.releases.notify_released(alloc, termination, message)

    # -- configuration ---------------------------------------------------------------------------------

    @staticmethod
    def check_reload(config: PartitionConfig) -> None:
        """Check a configuration that `reload` is to apply, so that it is refused before anything has changed.

        Raises:
            PlacementConfigError: the placement rules cannot be used.
        """
        Placer(config.placement_rules)

    def reload(self, config: PartitionConfig) -> None:
        """Apply another configuration (docs/spec/config.md, section 6), which `check_reload` has accepted."""
        self.placer = Placer(config.placement_rules)
        self.numbering.configure(config)
        if config.node_sort != self.config.node_sort:
            self.index.set_policy(self.score_policy(config))
        self.config = config
        self.quotas.reload(config.root)  # reloads the tree, and does what follows from its new quotas
        self.limits.configure(config.root, self.applications.values())
        self.queues_changed()
        self.claims.configured()
        if self.events is not None:
            self.events.queues_changed()

    def queues_changed(self) -> None:
        """Recompute shares and wake everything that waits, after a change of quotas, the tree or the cluster's size."""
        self.settle_size()
        self.wakeups.configuration_changed(self.tree.root, self.applications.values())
        self.cleaner.watch()
        self.guarantee_preemption.configure(enabled=self.config.preemption_enabled and self.tree.can_preempt())
        self.changed()

    # -- time ------------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Set the time to `now` (ns), and handle the deadlines up to it, each at its own time."""
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
        """Return the time (ns) at which something may happen without an input; None if nothing ever will."""
        due = self.timers.next_ns()
        looks = self.settings.outstanding_inspection or self.events is not None
        if self.dirty and looks and self.tree.root.asks_pending:
            due = self._inspection_ns if due is None else min(due, self._inspection_ns)
        return due

    # -- decisions -------------------------------------------------------------------------------------

    @cython.ccall
    def schedule(self, limit: cython.longlong) -> cython.longlong:
        """Decide until nothing more is possible or `limit` allocations are made; return their number."""
        if self.state is STOPPED:
            return 0
        if self._resized or self.tree.stale or self.accounting.overused:
            self.settle_size()
        if self.descent.predicates is not None or self.parking.refused:
            self.reservations.retry_refused()
        before: cython.Py_ssize_t = len(self.descent.out)
        made: cython.longlong = self.descent.decide(limit)
        if self.parking.gangs or self.descent.unplaced or self.guarantee_preemption.has_retries:
            made += self.on_idle(limit - made)
        if made or len(self.descent.out) > before:
            self.changed()
        # Inspect only when all asks have been tried: a call that ended at its limit leaves this to a later one.
        if made < limit and self.dirty and self.now >= self._inspection_ns:
            self._inspection_ns = self.now + outstanding.INTERVAL_NS
            self.dirty = self.events is not None and not self.events.look()
            if self.settings.outstanding_inspection:
                self.inspections += 1
                for app, ask in outstanding.outstanding_asks(self):
                    if not ask.reported:
                        self.out.append(WaitingForResources(ask.key, app.id))
                    ask.outstanding = self.inspections
        return made

    def on_idle(self, limit: int) -> int:
        """Backfill in front of waiting gangs, then preempt, when nothing more can be placed; return the allocations."""
        made = self.atomic.on_idle(limit) if self.parking.gangs else 0
        while made < limit and self.guarantee_preemption.on_idle():
            made += self.descent.decide(limit - made)
            if self.parking.gangs:
                made += self.atomic.on_idle(limit - made)
        return made

    def back_off(self, app: Application, until: int = TIME_MAX_NS) -> None:
        """Leave alone for a while, and until no later than `until`, an application of which too many asks fit no node.

        Source: docs/spec/scheduling.md, section 6.1.
        """
        app.backoff_until = min(self.now + min(app.queue.settings.backoff_delay_ns, TIME_MAX_NS), until)
        app.backoff_timer = self.timers.add(app.backoff_until, "backoff", app)

    def predicate_allows(self, ask: Ask, node: Node, allocate: bool) -> bool:
        """Ask the resource manager whether it allows to allocate (or else reserve) the node for the ask."""
        return self.predicates is None or self.predicates(ask.key, node.id, allocate)

    def cancel_ordinary_reservations(self, node: Node) -> None:
        """Cancel the ordinary reservations of a node that an ask requires."""
        if node.reservations:
            self.reservations.cancel_ordinary(node)

    def allocated(self, app: Application, alloc: Ask) -> None:
        """Update the application's state after an allocation was made, and start the allocation's execution timeout."""
        self.lifecycle.allocated(app, alloc)
        if alloc.timeout_ns > 0:
            alloc.deadline = self.timers.add(self.now + alloc.timeout_ns, "timeout", alloc)

    # -- applications ----------------------------------------------------------------------------------

    def drop_ask(self, app: Application, ask: Ask, *, counted: bool = True) -> None:
        """Drop a pending ask and its reservation. `counted`: a placeholder counts as released in its task group."""
        if ask.reserved is not None:
            self.reservations.cancel(ask, Outcome.ENDED)
        self.accounting.unpend(app, ask)
        if counted and ask.placeholder:
            self.gangs.dropped(app, ask)
        if self.events is not None:
            self.events.dropped(ask)

    def remove_application(self, app: Application) -> None:
        """Take an application that has no asks and allocations left out of its queue and the partition."""
        self.applications.pop(app.id, None)
        leave_queue(self, app)
        self.timers.cancel(app.timer)
        if app.independent and self.events is not None:
            self.events.changes.left.append(app)

    # -- reading ---------------------------------------------------------------------------------------

    def work(self) -> dict[str, int]:
        """Return the counted work until now: the same on every machine, so that slower code shows (`tests/guard`)."""
        return {
            "applications visited": self.descent.visits,
            "applications woken": self.parking.wakeups,
            "asks attempted": self.descent.attempts,
            "blocks scanned": self.index.visits,
            "nodes moved": self.index.moves,
        }

    def waiting(self) -> Iterator[tuple[str, str, list[explain.Reason]]]:
        """Yield the key, application id and reasons to wait (`licorne.core.inspection.explain`) of each pending ask."""
        return explain.waiting(self)


__all__ = ["UNLIMITED", "Partition", "PlacementConfigError", "Predicate"]
