"""Asks and allocations come in, change, and are released (spec scheduler-interface.md, section 7.3; scheduling.md, 14).

A new ask takes the short way through `take_in`, which is why this file is compiled; everything else is rare.
"""

from __future__ import annotations

from typing import Any

import cython

from licorne.si.constants import TAG_ALLOCATION_CREATION_TIME, TAG_FOREIGN, TAG_NODE_CONSTRAINTS, TAG_REQUIRED_NODE
from licorne.si.messages import AddApplication, Allocation, RejectedAllocation, Release, Termination

from .admission import add_application, seconds_tag, timeout_ns
from .constraints import ConstraintError, parse_constraints
from .nodechanges import remove_foreign, set_foreign
from .states import ApplicationState, ObjectState
from .vectors import SUM_MAX, TYPES_MAX

if cython.compiled:
    from cython.cimports.licorne.core.accounting import Books
    from cython.cimports.licorne.core.application import Application
    from cython.cimports.licorne.core.asks import Ask, Shape
    from cython.cimports.licorne.core.nodes import Need
    from cython.cimports.licorne.core.queue import Queue
else:
    from .accounting import Books
    from .application import Application
    from .asks import Ask, Shape
    from .nodes import Need
    from .queue import Queue

Partition = Any  # licorne.core.partition.Partition, which imports this module

ACTIVE = ObjectState.ACTIVE
NEW = ApplicationState.NEW
COMPLETING = ApplicationState.COMPLETING
FAILING = ApplicationState.FAILING
REPEATS_MAX = (1 << 31) - 1
_CONFIRMATIONS = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)
PRIORITY_LOWEST, PRIORITY_HIGHEST = -(1 << 31), (1 << 31) - 1


def take_in(partition: Partition, message: Allocation) -> None:
    """An ask, an allocation that exists already, another scheduler's allocation, or a change of one of these."""
    if message.tags and TAG_FOREIGN in message.tags:
        set_foreign(partition, message)
        return
    app = partition.applications.get(message.application_id)
    fault = _fault(partition, app, message)
    need: Need = partition.needs.plain
    if not fault and message.tags and TAG_NODE_CONSTRAINTS in message.tags:
        try:
            need = partition.needs.get(parse_constraints(message.tags[TAG_NODE_CONSTRAINTS]))
        except ConstraintError as error:
            fault = str(error)
    made = None
    if not fault and app is None:
        app, fault = _independent(partition, message)
        made = app
    if not fault:
        fault = _known_or_new(partition, app, message, need)
    if fault and made is not None:
        partition.remove_application(made)
    if fault:
        partition.out.append(RejectedAllocation(message.key, message.application_id, fault))


@cython.cfunc
def _fault(partition: Partition, app: Application | None, message: Allocation) -> str:
    """Why the message is refused, whatever is there already; empty if it is not (order of section 7.3)."""
    if partition.state is not ACTIVE:
        return f"partition {partition.name} is stopped; cannot process allocation {message.key}"
    if app is None and not message.independent:
        return f"failed to find application {message.application_id}"
    if app is not None and message.independent and not app.independent:
        return f"allocationKey: {message.key!r}: an application has this ID"
    if app is not None and app.state is FAILING:
        return f"application {message.application_id} is failing"
    resource = message.resource
    if not resource:
        return "allocation contains no resources"
    some = False
    for amount in resource.values():
        if amount < 0:
            return "allocation contains negative resources"
        if amount > SUM_MAX:
            return f"resourcePerAlloc: a quantity is larger than {SUM_MAX}"
        if amount:
            some = True
    if not some:
        return "allocation contains no resources"
    if not partition.types.admits(resource):
        return f"resourcePerAlloc: no more than {TYPES_MAX} resource types can be known"
    if not message.key:
        return "allocation without an allocationKey"
    if not 1 <= message.max_allocations <= REPEATS_MAX:
        return f"maxAllocations: {message.max_allocations}: must be at least 1"
    if message.priority_class and message.priority_class not in partition.settings.priority_classes:
        return f"priorityClassName: {message.priority_class!r}: no such priority class is set"
    if not PRIORITY_LOWEST <= message.priority <= PRIORITY_HIGHEST:
        return f"priority: {message.priority}: must be an integer of 32 bits"
    return ""


@cython.cfunc
def _known_or_new(partition: Partition, app: Application, message: Allocation, need: Need) -> str:
    books: Books = partition.books
    shape: Shape = books.shape(message.resource or {}, need)
    pending: Ask | None = app.asks.get(message.key)
    alloc: Ask | None = app.allocations.get(message.uuid or message.key)
    root: Queue = partition.tree.root
    present: Ask | None = pending if pending is not None else alloc
    if present is None or not present.shape.amounts.same(shape.amounts):
        if root.pending.crowded(shape.amounts, message.max_allocations, root.allocated):
            return f"the sum of all that is asked for would be larger than {SUM_MAX}"
    if message.node_id:
        return _placed_outside(partition, app, message, shape, pending, alloc)
    if pending is not None:
        _change_ask(partition, app, pending, message, shape)
    elif alloc is not None:
        _resize(partition, app, alloc, message)
    else:
        ask: Ask = _make(partition, app, message, shape)
        _submitted_with(partition, app, ask)
        if app.state is NEW or app.state is COMPLETING:
            partition.lifecycle.ask_added(app)
        books.pend(app, ask)
    return ""


@cython.cfunc
def _submitted_with(partition: Partition, app: Application, ask: Ask) -> cython.void:
    """An application is as old as its oldest ask: one with a creation time of its own may be older than it."""
    if ask.created < app.submitted and ask.created < partition.now:
        partition.parking.sleep(app)  # its place in the order changes
        app.submitted = ask.created
        partition.parking.wake(app)
        if app.reservations:  # in a stateaware queue it may be its turn now
            partition.parking.reserved_stale = True


@cython.cfunc
def _make(partition: Partition, app: Application, message: Allocation, shape: Shape) -> Ask:
    tags = message.tags
    priority: int = message.priority
    if message.priority_class:
        priority = partition.settings.priority_classes[message.priority_class]
    books: Books = partition.books
    books.asks_seen += 1  # asks are numbered in the order of their arrival
    ask: Ask = Ask(message.key, app, shape, priority, partition.now, books.asks_seen)
    if tags:
        tagged = seconds_tag(tags.get(TAG_ALLOCATION_CREATION_TIME, ""))
        if tagged is not None:
            ask.created = tagged
        ask.required = tags.get(TAG_REQUIRED_NODE, "")
        ask.tags = tags
    ask.repeats = message.max_allocations
    ask.task_group = message.task_group
    ask.placeholder = message.placeholder and message.task_group != ""
    ask.originator = message.originator
    ask.allow_self = message.allow_preempt_self
    ask.allow_other = message.allow_preempt_other
    if message.timeout_ms > 0:
        ask.timeout_ns = timeout_ns(message.timeout_ms)
    return ask


def _change_ask(partition: Partition, app: Application, ask: Ask, message: Allocation, shape: Shape) -> None:
    """A known ask: other resources (or, in the seed's dialect, another number) count from now on; nothing else."""
    repeats = message.max_allocations if partition.seed_dialect else ask.repeats
    if ask.shape.amounts.same(shape.amounts) and repeats == ask.repeats:
        return
    new = partition.books.shape(message.resource, ask.shape.need)
    partition.books.unpend(app, ask)
    ask.shape = new
    ask.repeats = repeats
    ask.aging = False
    partition.books.pend(app, ask)
    if ask.reserved is not None:
        partition.parking.reserved_stale = True  # it may fit now


def _resize(partition: Partition, app: Application, alloc: Ask, message: Allocation) -> None:
    """An allocation uses something else now: counted everywhere, no limit is asked (forced, section 8.2)."""
    shape = partition.books.shape(message.resource, alloc.shape.need)
    if alloc.shape.amounts.same(shape.amounts):
        return
    node = alloc.node
    preempted = alloc.preempted
    partition.books.give_back(app, alloc)
    alloc.preempted = False
    alloc.shape = shape
    partition.books.take(app, alloc, node)
    if preempted:
        partition.books.preempting(app, alloc)


def _placed_outside(
    partition: Partition,
    app: Application,
    message: Allocation,
    shape: Shape,
    pending: Ask | None,
    alloc: Ask | None,
) -> str:
    """An allocation that exists already: taken even above quota, and announced (recovery, or placed elsewhere)."""
    if alloc is not None:
        _resize(partition, app, alloc, message)
        return ""
    node = partition.nodes.get(message.node_id)
    if node is None:
        return f"failed to find node {message.node_id}"
    if not app.group_chosen:
        partition.limits.attach(app)
    if pending is not None and pending.repeats == 1 and not partition.seed_dialect:
        partition.drop_ask(app, pending)
        new = pending
        new.shape = partition.books.shape(message.resource, shape.need)
    else:
        new = _make(partition, app, message, shape)
        new.repeats = 0
        if partition.seed_dialect:
            new.id = message.uuid or partition.next_uuid()
    _submitted_with(partition, app, new)
    partition.lifecycle.ask_added(app)
    new.bound_ns = partition.now
    partition.books.take(app, new, node)
    if node.reservations:
        partition.parking.reserved_stale = True  # one more that can make room for an ask that requires the node
    partition.allocated(app, new)
    partition.descent.announce(app, new)
    return ""


def _independent(partition: Partition, message: Allocation) -> tuple[Application | None, str]:
    """An ask without an application (seed's dialect): an application of its own (spec scheduler-interface.md, 9)."""
    add = AddApplication(application_id=message.key, user="nobody", groups=("nogroup",), tags=message.tags or {})
    start = len(partition.out)
    if not add_application(partition, add):
        rejected = partition.out.pop()
        return None, str(getattr(rejected, "reason", ""))
    del partition.out[start:]  # the resource manager knows of no application
    app = partition.applications[message.key]
    app.independent = True
    return app, ""


# -- releases ----------------------------------------------------------------------------------------------


def release(partition: Partition, message: Release) -> None:
    """An allocation, an ask, or all that an application has, ends; what is unknown is ignored."""
    app_id = message.application_id
    if not app_id and message.what == "both":
        remove_foreign(partition, message.key)
        return
    app = partition.applications.get(app_id) if app_id else _owner(partition, message)
    if app is None:
        return
    if message.what != "ask":
        wanted = message.uuid if message.what == "allocation" else message.key
        if wanted:
            alloc = app.allocations.get(wanted)
            allocations = [] if alloc is None else [alloc]
        else:
            allocations = list(app.allocations.values())
        for alloc in allocations:
            end_allocation(partition, app, alloc, message.termination)
    if message.what == "ask" or (message.what == "both" and message.termination is not Termination.TIMEOUT):
        ask = app.asks.get(message.key)
        asks = ([] if ask is None else [ask]) if message.key else list(app.asks.values())
        for ask in asks:
            partition.drop_ask(app, ask)
        if asks:
            partition.lifecycle.emptied(app)
    partition.changed = True


def _owner(partition: Partition, message: Release) -> Application | None:
    """Whose ask or allocation it is that a release of the seed's dialect names by key or UUID alone."""
    app: Application
    for app in partition.applications.values():
        if (message.what == "ask" and message.key in app.asks) or (message.uuid and message.uuid in app.allocations):
            return app
    return None


def end_allocation(partition: Partition, app: Application, alloc: Ask, termination: Termination) -> None:
    """Free what it uses; echoed unless it confirms a release that the core asked for."""
    partition.books.give_back(app, alloc)
    if termination not in _CONFIRMATIONS:
        partition.say_released(alloc, Termination.STOPPED_BY_RM, "allocation remove as per RM request")
    partition.lifecycle.emptied(app)
