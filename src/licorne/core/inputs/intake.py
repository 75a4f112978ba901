"""New and changed asks and allocations.

Source: docs/spec/scheduler-interface.md, section 7.3; docs/spec/scheduling.md, section 14.

A new ask takes the fast path through `Intake`, which is why this file is compiled; everything else is rare, and is done
by the functions below that class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from licorne._plain import cython
from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec, new_vec
from licorne.core.base.rejections import Reason, naming, refused_allocation
from licorne.core.base.states import ApplicationState, ObjectState
from licorne.core.base.tags import seconds_tag
from licorne.core.constants import (
    NEGATIVE,
    NEW_TYPES,
    NOTHING_IN_IT,
    PRIORITY_HIGHEST,
    PRIORITY_LOWEST,
    SUM_MAX,
    TOO_LARGE,
)
from licorne.core.nodes.domains import PodClass
from licorne.core.nodes.node import Need
from licorne.core.nodes.reading import ConstraintError
from licorne.core.preemption.evictions import Outcome, await_end
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask, Shape
from licorne.core.queues.queue import Queue
from licorne.core.scheduling.descent import Descent
from licorne.core.waiting.accounting import Accounting
from licorne.core.waiting.parking import Parking
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.allocations import Allocation
from licorne.si.constants import (
    TAG_ALLOCATION_CREATION_TIME,
    TAG_ENDING,
    TAG_FOREIGN,
    TAG_NODE_CONSTRAINTS,
    TAG_POD,
    TAG_POD_TERMS,
    TAG_REQUIRED_NODE,
)
from licorne.si.messages import AddApplication, RejectedApplication

from .admission import add_application, timeout_ns
from .node_changes import full_name, set_foreign

if TYPE_CHECKING:
    # partition imports this module; here, compiled, it is an untyped object
    from licorne.core.base.rejections import Fault
    from licorne.core.partition import Partition

if cython.compiled:
    from cython.cimports.prefetch import item, prefetch

ACTIVE = ObjectState.ACTIVE
NEW = ApplicationState.NEW
COMPLETING = ApplicationState.COMPLETING
RESUMING = ApplicationState.RESUMING
FAILING = ApplicationState.FAILING
NEED_TAGS = frozenset({TAG_NODE_CONSTRAINTS, TAG_POD, TAG_POD_TERMS})  # what they say, an ask needs of a node
REPEATS_MAX = cython.declare(cython.longlong, 0x7FFFFFFF)


@cython.cclass
class Intake:
    """The input of asks and allocations of one partition; cold operations are delegated to the partition."""

    partition: Partition
    applications: dict[str, Application]
    accounting: Accounting
    descent: Descent
    parking: Parking
    wakeups: WakeUps
    types: Types
    root: Queue
    plain: Need
    amounts: Vec  # the amounts of the current message
    asked: list[Any] | None  # where someone listens: the new asks, each with its amounts at that time
    ahead: list[Application | None]  # ring buffer: applications of the next eight messages, None if unknown
    active: cython.bint  # whether the partition is active, which cannot change within a run of messages
    first_interface: cython.bint

    # Of the messages that are being taken in; records of events decide nothing.
    TRANSIENT = ("amounts", "asked", "ahead", "active")

    def __init__(
        self,
        partition: Partition,
        applications: dict[str, Application],
        accounting: Accounting,
        root: Queue,
        plain: Need,
    ) -> None:
        self.partition = partition
        self.applications = applications
        self.accounting = accounting
        self.descent = partition.descent
        self.parking = accounting.parking
        self.wakeups = accounting.wakeups
        self.types = accounting.types
        self.root = root
        self.plain = plain
        self.amounts = Vec()
        self.asked = None
        self.ahead = [None] * 8
        self.active = True
        self.first_interface = partition.first_interface

    def take_run(self, messages: list[Any], start: int, name: str) -> int:
        """Take in messages from index `start` on, as long as they are `Allocation` messages whose partition is `name`.

        Each is an ask, an allocation that exists already, a foreign allocation, or a change of one of these. Returns the
        index of the first message that is none. Where someone listens, the run also ends after a message that has an
        output, which must be recorded in its place among the new asks.
        """
        i: cython.Py_ssize_t = start
        told: cython.Py_ssize_t = len(self.descent.out)
        message: Allocation
        self.active = self.partition.state is ACTIVE
        while i < len(messages) and isinstance(messages[i], Allocation):
            message = cython.cast(Allocation, messages[i])
            if message.partition != name:
                break
            if cython.compiled:
                self._fetch_ahead(messages, i)
            self._take(message)
            i += 1
            if self.asked is not None and len(self.descent.out) != told:
                break
        return i

    @cython.cfunc
    def _fetch_ahead(self, messages: list[Any], i: cython.Py_ssize_t) -> cython.void:
        """Prefetch the applications of the next messages; no result depends on it.

        When the messages of many applications alternate, the processor's caches no longer hold an application when its
        next message comes. Memory is fetched link by link, as in `licorne.si.reading`: the application of the message
        8 ahead, and the objects that are reached through the applications of the messages 6 and 4 ahead.
        """
        if cython.compiled:
            at: cython.Py_ssize_t = i + 8
            ahead: list[Any] = self.ahead
            app: Application | None = None
            if at < len(messages) and isinstance(messages[at], Allocation):
                app = self.applications.get(cython.cast(Allocation, messages[at]).application_id)
                if app is not None:
                    prefetch(cython.cast(cython.p_void, app), 6)
            ahead[at & 7] = app
            if ahead[(i + 6) & 7] is not None:
                cython.cast(Application, item(ahead, (i + 6) & 7)).prefetch_fields()
            if ahead[(i + 4) & 7] is not None:
                cython.cast(Application, item(ahead, (i + 4) & 7)).prefetch_more()

    @cython.cfunc
    def _take(self, message: Allocation) -> cython.void:
        tags = message.tags
        if tags and TAG_FOREIGN in tags:
            set_foreign(self.partition, message)
            return
        app: Application | None = self.applications.get(message.application_id)
        made: Application | None = None
        need: Need = self.plain
        fault: Fault | None = self._fault(app, message)
        if fault is None and tags and (TAG_POD in tags or TAG_NODE_CONSTRAINTS in tags or TAG_POD_TERMS in tags):
            try:
                need = self.need_of(_with_known(app, message))
            except ConstraintError as error:
                fault = str(error)
        if fault is None and app is None:
            made, fault = _independent(self.partition, message)
            app = made
        if fault is None:
            fault = self._known_or_new(app, message, need)
        if fault is not None:
            if made is not None:
                self.partition.remove_application(made)
            self.partition.out.append(refused_allocation(message, fault))

    def need_of(self, tags: dict[str, str]) -> Need:
        """Return the need that the tags of an ask say.

        Raises:
            ConstraintError: a text cannot be parsed, or there are terms without what the ask is as a pod.
        """
        needs = self.partition.needs
        need: Need = needs.of_text(tags[TAG_NODE_CONSTRAINTS]) if TAG_NODE_CONSTRAINTS in tags else self.plain
        pods: PodClass | None = needs.topology.class_of(tags)
        return need if pods is None else needs.topology.need_for(need, pods)

    @cython.cfunc
    def _fault(self, app: Application | None, message: Allocation) -> Fault | None:
        """Return why the message is refused, be it for a new or a known ask; None if it is accepted.

        Source: order of docs/spec/scheduler-interface.md, section 7.3.

        For an accepted message, `amounts` are set to its amounts.
        """
        if not self.active:
            where = f"partition {full_name(self.partition)} is stopped; cannot process allocation "
            return naming(where, message.key)
        if app is None:
            if not message.independent:
                return naming("failed to find application ", message.application_id)
        elif message.independent and not app.independent:
            return naming("allocationKey: ", repr(message.key), ": an application has this ID")
        elif app.state is FAILING or (app.state is RESUMING and message.placeholder and message.task_group):
            if (message.uuid or message.key) not in app.allocations:  # what runs counts as it is
                return naming("application ", message.application_id, f" is {app.state.lower()}")
        if not message.resource:
            return "allocation contains no resources"
        found: cython.int = self.types.read(message.resource, self.amounts)
        if found == NOTHING_IN_IT:
            return "allocation contains no resources"
        if found == NEGATIVE:
            return "allocation contains negative resources"
        if found == TOO_LARGE:
            return f"resourcePerAlloc: a quantity is larger than {SUM_MAX}"
        if not message.key:
            return "allocation without an allocationKey"
        if not 1 <= message.max_allocations <= REPEATS_MAX:
            return f"maxAllocations: {message.max_allocations}: must be at least 1"
        if message.priority_class and message.priority_class not in self.partition.settings.priority_classes:
            return f"priorityClassName: {message.priority_class!r}: no such priority class is set"
        if not PRIORITY_LOWEST <= message.priority <= PRIORITY_HIGHEST:
            return f"priority: {message.priority}: must be an integer of 32 bits"
        if found == NEW_TYPES:  # only an accepted message may take numbers for its types
            self.amounts = self.partition.numbering.of_ask(message.resource, message.application_id)
        return None

    @cython.cfunc
    def _known_or_new(self, app: Application | None, message: Allocation, need: Need) -> Fault | None:
        assert app is not None
        pending: Ask | None = app.asks.get(message.key)
        alloc: Ask | None = None
        if app.allocations:
            alloc = app.allocations.get(message.uuid or message.key)
        if pending is None and alloc is None and message.placeholder and app.atomic is not None:
            return naming("placeholder: application ", app.id, " is placed as a whole and has none")
        if message.node_id:
            return _placed_outside(self, app, message, need, pending, alloc)
        if pending is not None:
            _change_ask(self.partition, app, pending, message, need)
        elif alloc is not None:
            _resize(self.partition, app, alloc, message, need)
        # An ask in flight is neither pending nor an allocation.
        elif app.gang is None or not self.partition.replacement.resize(
            app, message.key, self.amounts, message.resource
        ):
            ask: Ask = self.make(app, message, need)
            self.submitted_with(app, ask)
            if app.state is NEW or app.state is COMPLETING:
                self.partition.lifecycle.ask_added(app)
                if self.partition.events is not None:  # the new state is recorded before the ask
                    self.partition.events.read_outputs()
            self.accounting.pend(app, ask)
            if self.asked is not None:
                self.asked.append((ask, ask.shape.resource))
        return None

    @cython.cfunc
    def submitted_with(self, app: Application, ask: Ask) -> cython.void:
        """Make the application as old as its oldest ask: an ask with a tagged creation time may be older than it."""
        if ask.created < app.submitted and ask.created < self.parking.now:
            self.parking.sleep(app)  # out of the kept order while its key changes
            app.submitted = ask.created
            self.wakeups.may_run(app)  # in a stateaware queue the oldest application runs first: it may be this one now

    @cython.cfunc
    def make(self, app: Application, message: Allocation, need: Need) -> Ask:
        """Return a new ask for a message whose amounts were read into `amounts`."""
        ask: Ask = Ask.__new__(Ask)
        tags = message.tags
        shape: Shape = self.accounting.shape_for(app, self.amounts, message.resource, need)
        if shape.amounts is self.amounts:  # the new shape has taken the vector over
            self.amounts = new_vec(0, 0)
        self.accounting.asks_seen += 1  # asks are numbered in the order of their arrival
        ask.initialise(message.key, app, shape, message.priority, self.parking.now, self.accounting.asks_seen)
        if message.priority_class:
            ask.priority = self.partition.settings.priority_classes[message.priority_class]
        if tags:
            if TAG_ALLOCATION_CREATION_TIME in tags:
                tagged = seconds_tag(tags[TAG_ALLOCATION_CREATION_TIME])
                if tagged is not None:
                    ask.created = tagged
            ask.required = tags.get(TAG_REQUIRED_NODE, "")
            if ask.required:
                app.requires_nodes = True
            ask.tags = tags
        ask.repeats = message.max_allocations
        if message.task_group:
            ask.task_group = message.task_group
            ask.placeholder = message.placeholder
            if ask.placeholder:
                self.partition.gangs.arrived(app, ask, 1 if message.node_id else ask.repeats)
        ask.originator = message.originator
        ask.allow_self = message.allow_preempt_self
        ask.allow_other = message.allow_preempt_other
        if message.timeout_ms > 0:
            ask.timeout_ns = timeout_ns(message.timeout_ms)
        return ask


def _with_known(app: Application | None, message: Allocation) -> dict[str, str]:
    """Return the tags of a message, and of `NEED_TAGS` those that it leaves as they are of a known ask or allocation."""
    tags: dict[str, str] = message.tags or {}
    known: Ask | None = None
    if app is not None:
        known = app.asks.get(message.key) or app.allocations.get(message.uuid or message.key)
    if known is None or not known.tags:
        return tags
    return {name: text for name, text in known.tags.items() if name in NEED_TAGS} | tags


def _retagged(ask: Ask, message: Allocation) -> dict[str, str]:
    """Return the tags of a known ask or allocation with those of `NEED_TAGS` that a message has."""
    return (ask.tags or {}) | {name: text for name, text in (message.tags or {}).items() if name in NEED_TAGS}


def _change_ask(partition: Partition, app: Application, ask: Ask, message: Allocation, need: Need) -> None:
    """Change the resources of a pending ask, its need and, in the first interface, its number of repeats.

    Nothing else changes, so the ask keeps its age. A message without a tag of `NEED_TAGS` leaves what it says as it is.
    """
    repeats = message.max_allocations if partition.first_interface else ask.repeats
    amounts: Vec = partition.intake.amounts
    if not message.tags or NEED_TAGS.isdisjoint(message.tags):
        need = ask.shape.need
    if need is not ask.shape.need:
        ask.tags = _retagged(ask, message)
        if ask.reserved is not None and not need.of_empty().matches(ask.reserved):
            partition.reservations.cancel(ask, Outcome.CHANGED)
    elif repeats == ask.repeats and partition.accounting.describes(ask.shape, amounts, message.resource):
        return
    _ask_for(partition, app, ask, partition.accounting.shape(amounts, message.resource, need), repeats)


def _ask_for(partition: Partition, app: Application, ask: Ask, shape: Shape, repeats: int) -> None:
    partition.accounting.unpend(app, ask)
    ask.shape = shape
    if ask.placeholder:
        partition.gangs.arrived(app, ask, repeats - ask.repeats)
    ask.repeats = repeats
    partition.accounting.pend(app, ask)
    if ask.reserved is not None:
        partition.claims.changed(ask)


def _resize(partition: Partition, app: Application, alloc: Ask, message: Allocation, need: Need) -> None:
    """Change the amounts of an allocation, in all sums and without checking any limit, and what it is as a pod.

    Source: forced, docs/spec/scheduling.md, section 8.2.
    """
    amounts: Vec = partition.intake.amounts
    if message.tags and TAG_POD in message.tags and need.pods is not None and need.pods is not alloc.shape.need.pods:
        _relabel(partition, alloc, message, need.pods)
    if partition.accounting.describes(alloc.shape, amounts, message.resource):
        return
    more = amounts.clone()
    more.minus(alloc.shape.amounts)
    _change_shape(partition, app, alloc, partition.accounting.shape(amounts, message.resource, alloc.shape.need))
    if partition.config.quota_preemption_enabled:
        partition.quotas.usage_forced(app.queue, more)
    partition.claims.review(Outcome.FORCED)
    for watcher in partition.accounting.watchers:
        watcher.resized(app, alloc)


def _relabel(partition: Partition, alloc: Ask, message: Allocation, pods: PodClass) -> None:
    """Give an allocation the labels and terms that its pod has now, and count it by them; its node constraints stay."""
    needs, shape = partition.needs, alloc.shape
    slot = -1 if alloc.node is None else alloc.node.slot
    before = shape.need.pods
    need = needs.topology.need_for(needs.get(shape.need.constraints), pods)
    needs.topology.begin(slot, pods)
    if before is not None:
        needs.topology.end(slot, before)
    alloc.tags = _retagged(alloc, message)
    alloc.shape = partition.accounting.shape(shape.amounts, shape.resource, need)


def _change_shape(partition: Partition, app: Application, alloc: Ask, shape: Shape) -> None:
    """Give an allocation another shape: take its old amounts out of all sums and add the new ones.

    Its deadline, and whether it is a victim, stay as they are.
    """
    node = alloc.node
    assert node is not None, "an allocation has a node"
    preempted = alloc.preempted
    deadline, alloc.deadline = alloc.deadline, None  # so that the removal does not cancel its timer
    partition.accounting.remove_allocation(app, alloc)
    alloc.preempted = False
    alloc.deadline = deadline
    alloc.shape = shape
    partition.accounting.add_allocation(app, alloc, node)
    partition.accounting.may_be_overused(node)
    if preempted:
        partition.accounting.preempting(app, alloc)


def read_again(partition: Partition, app: Application, names: dict[str, None]) -> None:
    """Count anew the asks and allocations of an application that name types whose numbers have changed or are lost.

    Only asks for types that share a number, or for types that have lost theirs, can be concerned.
    """
    ask: Ask
    gang = app.gang
    types: Types = partition.types
    flying = [] if gang is None else list(gang.replacing.values())
    for ask in [*app.asks.values(), *app.allocations.values(), *flying]:
        resource: dict[str, int] = ask.shape.resource
        if names.keys().isdisjoint(resource):
            continue
        shape: Shape = Shape(types.amounts(resource), resource, ask.shape.need)
        if ask.block is not None:
            _ask_for(partition, app, ask, shape, ask.repeats)
        elif ask.id in app.allocations:
            _change_shape(partition, app, ask, shape)
            for watcher in partition.accounting.watchers:
                watcher.resized(app, ask)
        else:
            partition.replacement.resize(app, ask.key, shape.amounts, resource)
    if not names.keys().isdisjoint(app.placeholder_resource):
        app.placeholder_ask = types.amounts(app.placeholder_resource)


def _placed_outside(
    intake: Intake, app: Application, message: Allocation, need: Need, pending: Ask | None, alloc: Ask | None
) -> str | None:
    """Take in an allocation that exists already (recovery, or placed by others), even above quota, and announce it.

    Return why it is refused; None if it is accepted.
    """
    partition: Partition = intake.partition
    if alloc is not None:
        _resize(partition, app, alloc, message, need)
        return None
    node = partition.nodes.get(message.node_id)
    if node is None:
        return f"failed to find node {message.node_id}"
    if not app.group_chosen:
        partition.limits.attach(app)
    if app.gang is not None:
        partition.replacement.placed_outside(app, message.key)
    if pending is not None and pending.repeats == 1 and not partition.first_interface:
        # The resource manager has placed a pending ask: the ask itself becomes the allocation.
        partition.drop_ask(app, pending, counted=False)
        new = pending
        new.shape = partition.accounting.shape(intake.amounts, message.resource, need)
    else:
        new = intake.make(app, message, need)
        new.repeats = 0
        if partition.first_interface or pending is not None:  # more allocations of the pending ask will come
            new.id = message.uuid or partition.descent.uuids.next()
        intake.submitted_with(app, new)
    partition.lifecycle.ask_added(app)
    new.bound_ns = partition.now
    partition.accounting.add_allocation(app, new, node)
    partition.accounting.may_be_overused(node)
    if partition.config.quota_preemption_enabled:
        partition.quotas.usage_forced(app.queue, new.shape.amounts)
    partition.wakeups.victim_appeared(node)
    partition.allocated(app, new)
    if message.tags and TAG_ENDING in message.tags and not new.placeholder:  # a member takes a placeholder's place
        await_end(partition, new)
    partition.wakeups.gang_changed(app)  # the allocation may be a member that runs already
    partition.wakeups.may_run(app)  # limits on applications of its user and group count it as running now
    partition.descent.announce(app, new)
    partition.claims.review(Outcome.FORCED)
    return None


def _independent(partition: Partition, message: Allocation) -> tuple[Application | None, Fault | None]:
    """Make an application for an ask without one (first interface); return it, or why it was refused.

    Source: docs/spec/scheduler-interface.md, section 9.
    """
    add = AddApplication(application_id=message.key, user="nobody", groups=("nogroup",), tags=message.tags or {})
    start = len(partition.out)
    if not add_application(partition, add):
        rejected = partition.out.pop()
        assert isinstance(rejected, RejectedApplication), "the refusal is told last"
        return None, Reason(rejected.reason, rejected.template or rejected.reason)
    del partition.out[start:]  # the resource manager knows no such application, so its messages are dropped
    app = partition.applications[message.key]
    app.independent = True
    if partition.events is not None:
        partition.events.joined(app)
    return app, None
