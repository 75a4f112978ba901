"""Messages: applications, asks, allocations, releases and nodes come, change and go.

Source: docs/spec/scheduling.md, sections 12 and 14.

Refusals have no reason here; the product's texts have their own tests.
"""

from __future__ import annotations

import json

from licorne.si.constants import (
    TAG_ALLOCATION_CREATION_TIME,
    TAG_APPLICATION_CREATION_TIME,
    TAG_FOREIGN,
    TAG_NODE_CONSTRAINTS,
    TAG_REQUIRED_NODE,
    TAG_RESOURCE_GUARANTEED,
    TAG_RESOURCE_MAX_APPS,
    TAG_RESOURCE_QUOTA,
)
from licorne.si.messages import (
    AcceptedApplication,
    AcceptedNode,
    AddApplication,
    Allocation,
    DisruptionBudgetUpdate,
    Input,
    NodeAction,
    NodeUpdate,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Release,
    RemoveApplication,
    Termination,
)
from reference import atomic, claims, gangs, quotas
from reference.life import RUN, drop_ask, emptied, end, fire, unreserve, watch_queues
from reference.model import SECOND_NS, App, Ask, Budget, Node, Partition, Queue, next_uuid, pruned
from reference.queues import create_dynamic, find
from reference.scheduler import place
from reference.sums import choose_group

MILLISECOND_NS = 10**6
CONFIRMATIONS = (Termination.TIMEOUT, Termination.PREEMPTED_BY_SCHEDULER, Termination.PLACEHOLDER_REPLACED)


def take(partition: Partition, message: Input) -> None:
    """Apply one message."""
    _take(partition, message)
    claims.review(partition)
    atomic.watch(partition)


def _take(partition: Partition, message: Input) -> None:
    match message:
        case AddApplication():
            add_application(partition, message)
        case RemoveApplication():
            if (app := partition.apps.get(message.application_id)) is not None:
                end(partition, app)
        case Allocation(tags=tags) if tags and TAG_FOREIGN in tags:
            _foreign(partition, message)
        case Allocation():
            if not _take_ask(partition, message):
                partition.out.append(RejectedAllocation(message.key, message.application_id, ""))
        case Release():
            _release(partition, message)
        case NodeUpdate():
            _node(partition, message)
        case DisruptionBudgetUpdate(allowed=None):
            partition.budgets.pop(message.name, None)
        case DisruptionBudgetUpdate():
            budget = partition.budgets.setdefault(message.name, Budget())
            budget.allowed = message.allowed or 0
            budget.members = (budget.members - set(message.left)) | set(message.joined)
            budget.going -= set(message.left)


# -- applications ----------------------------------------------------------------------------------------


def add_application(partition: Partition, message: AddApplication) -> None:
    """Place an application in the queue that it names, which is created where it is missing; every user may submit."""
    path = message.queue.lower()
    queue = find(partition.root, path)
    if message.application_id in partition.apps or atomic.refused(message, None):
        queue = None
    elif queue is None:
        queue = create_dynamic(partition.root, path)
    elif not queue.leaf or queue.draining:
        queue = None
    if queue is None or atomic.refused(message, queue):
        partition.out.append(RejectedApplication(message.application_id, ""))
        watch_queues(partition)
        return
    if not queue.managed:
        _quota_of_tags(partition, queue, message.tags)
    if not gangs.admissible(queue, message):
        partition.out.append(RejectedApplication(message.application_id, ""))
        watch_queues(partition)
        return
    number = partition.number("app")
    created = _seconds(message.tags.get(TAG_APPLICATION_CREATION_TIME))
    if created is None:  # difference 7: moments of creation are unique
        created = partition.last_moment_ns = max(partition.now_ns, partition.last_moment_ns + 1)
    app = App(message.application_id, number, created, queue, message.user, message.groups or (message.user,))
    app.atomic = atomic.gang_of(message, queue)
    gangs.admit(partition, app, message)
    if message.timeout_is_running_time and message.execution_timeout_ms > 0 and not app.gang.announced:
        app.running_timeout_ns = message.execution_timeout_ms * MILLISECOND_NS
    partition.apps[app.id] = app
    partition.out.append(AcceptedApplication(app.id))


def _seconds(text: str | None) -> int | None:
    return None if text is None else int(text) * SECOND_NS


def _quota_of_tags(partition: Partition, queue: Queue, tags: dict[str, str]) -> None:
    """The quota of an unmanaged leaf as the namespace has it (section 12)."""
    before = queue.max_apps, queue.maximum, queue.guaranteed
    if TAG_RESOURCE_MAX_APPS in tags:
        queue.max_apps = int(tags[TAG_RESOURCE_MAX_APPS]) or queue.max_apps
    if TAG_RESOURCE_QUOTA in tags or TAG_RESOURCE_GUARANTEED in tags:
        queue.maximum = _amounts_of_tag(tags.get(TAG_RESOURCE_QUOTA))
        queue.guaranteed = _amounts_of_tag(tags.get(TAG_RESOURCE_GUARANTEED))
    if before != (queue.max_apps, queue.maximum, queue.guaranteed):
        partition.number("configuration")


def _amounts_of_tag(text: str | None) -> dict[str, int]:
    document = json.loads(text) if text else {"resources": {}}
    return {name: quantity["value"] for name, quantity in document["resources"].items()}


# -- asks and allocations --------------------------------------------------------------------------------


def _take_ask(partition: Partition, message: Allocation) -> bool:
    """An ask, an allocation that exists already, or a change of either; False if it is refused."""
    app = partition.apps.get(message.application_id)
    amounts = message.resource or {}
    if any(amount < 0 for amount in amounts.values()) or not pruned(amounts):
        return False
    if message.priority_class and message.priority_class not in partition.priority_classes:
        return False
    if app is None:
        return False
    pending = app.asks.get(message.key)
    alloc = app.allocations.get(message.uuid or message.key)
    if app.state == "Failing" and alloc is None:  # difference 52
        return False
    if app.state == "Resuming" and message.placeholder and message.task_group and alloc is None:
        return False
    if pending is None and alloc is None and message.placeholder and app.atomic is not None:
        return False
    if message.node_id:
        return _placed_outside(partition, app, message, pending, alloc)
    if pending is not None:
        if pending.amounts != pruned(message.resource) or pending.repeats != message.max_allocations:
            atomic.changed(app)
        pending.amounts = pruned(message.resource)
        if partition.first_interface:
            pending.repeats = message.max_allocations
        claims.changed(partition, pending)
    elif alloc is not None:
        _resize(partition, alloc, message)
    elif flying := [real for real in app.gang.flying if real.key == message.key and not partition.first_interface]:
        gangs.resize(partition, flying[0], pruned(message.resource))
    else:
        ask = _new_ask(partition, app, message)
        if app.state in ("New", "Completing"):
            fire(partition, app, RUN)
        app.asks[ask.key] = ask
        atomic.changed(app)
    return True


def _new_ask(partition: Partition, app: App, message: Allocation) -> Ask:
    tags = message.tags or {}
    tagged = _seconds(tags.get(TAG_ALLOCATION_CREATION_TIME))
    ask = Ask(
        message.key,
        app,
        pruned(message.resource),
        partition.priority_classes[message.priority_class] if message.priority_class else message.priority,
        partition.now_ns if tagged is None else tagged,
        partition.number("ask"),
        id=message.key,
        repeats=message.max_allocations,
        required=tags.get(TAG_REQUIRED_NODE, ""),
        constraints=tags.get(TAG_NODE_CONSTRAINTS, ""),
        timeout_ns=max(0, message.timeout_ms) * MILLISECOND_NS,
        originator=message.originator,
        allow_self=message.allow_preempt_self,
        allow_other=message.allow_preempt_other,
        task_group=message.task_group,
        placeholder=message.placeholder and bool(message.task_group),
    )
    if ask.placeholder:
        gangs.arrived(partition, app, ask)
    if ask.created_ns < partition.now_ns:  # an application is as old as its oldest ask (section 2)
        app.submitted_ns = min(app.submitted_ns, ask.created_ns)
    return ask


def _resize(partition: Partition, alloc: Ask, message: Allocation) -> None:
    """Change the size of an allocation; no limit is checked (section 8.2)."""
    amounts = pruned(message.resource)
    if amounts != alloc.amounts:
        old, alloc.amounts = alloc.amounts, amounts
        alloc.placed = partition.number("placed")
        alloc.app.allocations[alloc.id] = alloc.app.allocations.pop(alloc.id)
        quotas.forced(partition, alloc.app.queue, old, amounts)


def _placed_outside(
    partition: Partition, app: App, message: Allocation, pending: Ask | None, alloc: Ask | None
) -> bool:
    """An allocation that exists already: taken above any quota, and announced (section 14)."""
    node = partition.nodes.get(message.node_id)
    if alloc is not None:
        _resize(partition, alloc, message)
        return True
    if node is None:
        return False
    choose_group(partition, app)
    app.gang.flying = [real for real in app.gang.flying if real.key != message.key or partition.first_interface]
    if pending is not None and not partition.first_interface:
        drop_ask(pending)
        new = pending
        new.amounts = pruned(message.resource)
    else:
        new = _new_ask(partition, app, message)
        if partition.first_interface:
            new.id = message.uuid or next_uuid(partition)
    if app.state in ("New", "Completing"):
        fire(partition, app, RUN)
    place(partition, new, node)
    quotas.forced(partition, app.queue, {}, new.amounts)
    atomic.changed(app)
    return True


def _release(partition: Partition, message: Release) -> None:
    """End allocations, then asks; unknown ones are ignored."""
    if not message.application_id and message.what == "both":
        for node in partition.nodes.values():
            if node.foreign.pop(message.key, None) is not None:
                partition.number("node")
        return
    app = partition.apps.get(message.application_id)
    if app is None:
        return
    if message.what == "ask" or (message.what == "both" and message.termination is not Termination.TIMEOUT):
        app.gang.flying = [real for real in app.gang.flying if message.key not in ("", real.key)]
    if message.what != "ask":
        wanted = message.uuid if message.what == "allocation" else message.key
        for alloc in [a for a in app.allocations.values() if wanted in ("", a.id)]:
            echo = message.termination not in CONFIRMATIONS
            gangs.ended(partition, alloc, message.termination, echo=echo)
    if message.what == "ask" or (message.what == "both" and message.termination is not Termination.TIMEOUT):
        asks = [ask for ask in app.asks.values() if message.key in ("", ask.key)]
        for ask in asks:
            drop_ask(ask)
            gangs.stop_clock(app)
        if asks:
            emptied(partition, app)


# -- nodes (docs/spec/scheduling.md, section 14; docs/spec/states.md, section 3) ---------------------------


def _node(partition: Partition, message: NodeUpdate) -> None:
    node = partition.nodes.get(message.node_id)
    if message.action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN):
        if node is not None:
            partition.out.append(RejectedNode(message.node_id, ""))
            return
        schedulable = message.action is NodeAction.CREATE
        node = Node(message.node_id, message.attributes or {}, pruned(message.capacity), schedulable)
        node.occupied = pruned(message.occupied)
        partition.nodes[node.id] = node
        partition.out.append(AcceptedNode(node.id))
        return
    undrained = message.action is NodeAction.DRAIN_TO_SCHEDULABLE and node is not None and node.schedulable
    if node is None or undrained:
        if message.strict:
            partition.out.append(RejectedNode(message.node_id, ""))
        return
    match message.action:
        case NodeAction.UPDATE:
            partition.number("node")
            node.capacity = node.capacity if message.capacity is None else pruned(message.capacity)
            node.occupied = node.occupied if message.occupied is None else pruned(message.occupied)
            node.attributes = node.attributes if message.attributes is None else message.attributes
        case NodeAction.DRAIN_NODE:
            if node.schedulable:
                partition.number("node")
            node.schedulable = False
        case NodeAction.DRAIN_TO_SCHEDULABLE:
            partition.number("node")
            node.schedulable = True
        case NodeAction.DECOMISSION:
            _remove_node(partition, node)


def _remove_node(partition: Partition, node: Node) -> None:
    """Remove a node with its allocations, and those of other schedulers (difference 41)."""
    for ask in list(node.reserved_by):
        unreserve(ask)
    del partition.nodes[node.id]
    gangs.node_lost(partition, node)


def _foreign(partition: Partition, message: Allocation) -> None:
    """Another scheduler's allocation occupies its node, and counts nowhere else."""
    known = [node for node in partition.nodes.values() if message.key in node.foreign]
    node = known[0] if known else partition.nodes.get(message.node_id)
    if not message.node_id or node is None:
        partition.out.append(RejectedAllocation(message.key, message.application_id, ""))
    else:
        node.foreign[message.key] = pruned(message.resource)
        partition.number("node")
