"""New, changed and removed nodes, and the foreign allocations that occupy them.

Sources: docs/spec/scheduler-interface.md, section 7.2; docs/spec/scheduling.md, sections 14 and 16.4;
docs/spec/states.md, section 3.

After a change of a known node the same steps follow, in this order: the node's sums, its entry in the node index, the
wake-up of what waits for nodes, and the review of claims, which may have lost the room that they count on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from licorne.core.amounts.faults import amounts_fault
from licorne.core.amounts.vectors import Vec
from licorne.core.base.rejections import Fault, naming, refused_allocation, refused_node
from licorne.core.base.states import ObjectState
from licorne.core.base.tags import seconds_tag
from licorne.core.nodes.constraints import NodeLabels, parse_constraints
from licorne.core.nodes.domains import PodClass
from licorne.core.nodes.foreign import Foreign
from licorne.core.nodes.node import Node
from licorne.core.nodes.reading import ConstraintError
from licorne.core.preemption.evictions import Outcome
from licorne.si.constants import TAG_ALLOCATION_CREATION_TIME, TAG_NODE_CONSTRAINTS, TAG_POD
from licorne.si.messages import (
    AcceptedNode,
    Allocation,
    NodeAction,
    NodeUpdate,
    Termination,
)
from licorne.si.partitions import qualified_partition
from licorne.si.v19 import ChangeType

if TYPE_CHECKING:
    from licorne.core.partition import Partition


def change_node(partition: Partition, message: NodeUpdate) -> bool:
    """Handle a message about a node; return whether a node was added."""
    action = message.action
    if action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN):
        return _create(partition, message)
    node = partition.nodes.get(message.node_id)
    fault: Fault = ""
    if node is None:
        fault = naming("failed to find node ", message.node_id)
    elif action is NodeAction.UPDATE:
        fault = _update(partition, node, message)
    elif action is NodeAction.DRAIN_TO_SCHEDULABLE and message.strict and node.schedulable:
        fault = naming("node ", node.id, " is not draining")
    elif action in (NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE):
        set_schedulable(partition, node, action is NodeAction.DRAIN_TO_SCHEDULABLE)
        if partition.events is not None:  # also if the node was that already
            partition.events.records.schedulable(node.id, node.schedulable)
    elif action is NodeAction.DECOMISSION:
        remove_node(partition, node)
    if fault and message.strict:
        partition.out.append(refused_node(message, fault))
    return False


def full_name(partition: Partition) -> str:
    """Return `[rmID]name`, the form in which reasons name a partition."""
    return qualified_partition(partition.name, partition.owner)


def _create(partition: Partition, message: NodeUpdate) -> bool:
    attributes = message.attributes or {}
    capacity = {name: amount for name, amount in (message.capacity or {}).items() if amount}
    fault = amounts_fault(capacity) or amounts_fault(message.occupied)
    fault = fault or partition.numbering.node_fault(capacity, message.occupied)
    labels = NodeLabels()
    try:
        labels = NodeLabels.from_attributes(attributes)
    except ConstraintError as error:
        fault = fault or str(error)
    words: tuple[str, ...] = (fault,) if fault else ()
    if partition.state is not ObjectState.ACTIVE:
        words = (f"partition {full_name(partition)} is stopped cannot add a new node ", message.node_id)
    elif message.node_id in partition.nodes:
        words = (
            "failed to add node ",
            message.node_id,
            f" to partition {full_name(partition)}, error: partition {full_name(partition)} has an existing node ",
            message.node_id,
            ", node name must be unique",
        )
    elif not message.node_id:
        words = words or ("node without a nodeID",)
    if words:
        reason = naming(f"failure while adding new node, node rejected with error: \n{words[0]}", *words[1:])
        partition.out.append(refused_node(message, reason))
        return False
    partition.numbering.register_node_types(capacity, message.occupied)
    node = Node(message.node_id, attributes, labels, partition.types.amounts(capacity))
    node.schedulable = message.action is NodeAction.CREATE
    node.base_occupied = partition.types.amounts(message.occupied or {})
    node.occupied.plus(node.base_occupied)
    node.refree()
    partition.numbering.count_node(node, 1)
    partition.nodes[node.id] = node
    partition.needs.enter(node)
    partition.index.add(node, node.capacity.n)
    partition.reservations.mend_open(node)
    partition.wakeups.node_opened(node)
    partition.resize(node.capacity, 1)
    partition.out.append(AcceptedNode(node.id))
    if partition.events is not None:
        partition.events.node_added(node)
    return True


def _update(partition: Partition, node: Node, message: NodeUpdate) -> str:
    fault = amounts_fault(message.capacity) or amounts_fault(message.occupied)
    fault = fault or partition.numbering.node_fault(message.capacity, message.occupied)
    labels = node.labels
    if not fault and message.attributes is not None:
        try:
            labels = NodeLabels.from_attributes(message.attributes)
        except ConstraintError as error:
            fault = str(error)
    if fault:
        return fault
    partition.numbering.register_node_types(message.capacity, message.occupied)  # vectors below need the numbers
    before = node.capacity, node.base_occupied
    capacity = node.capacity if message.capacity is None else partition.types.amounts(message.capacity)
    partition.numbering.count_node(node, -1)  # and again below, with its new amounts
    if message.attributes is not None:
        node.attributes = message.attributes
        partition.needs.reattribute(node, labels)
    if message.occupied is not None:
        node.occupied.minus(node.base_occupied)
        node.base_occupied = partition.types.amounts(message.occupied)
        node.occupied.plus(node.base_occupied)
    if capacity is not node.capacity:
        partition.resize(node.capacity, -1)
        node.capacity = capacity
        partition.resize(capacity, 1)
        partition.accounting.may_be_overused(node)
    partition.numbering.count_node(node, 1)
    node.refree()
    if capacity.n > partition.index.width:
        partition.index.rebuild(capacity.n)
    partition.index.mend(node)
    partition.wakeups.node_opened(node)
    partition.claims.review(Outcome.NODE)
    if partition.events is not None:
        partition.events.node_updated(node, *before)
    return ""


def set_schedulable(partition: Partition, node: Node, schedulable: bool) -> None:
    """Set whether new asks may be placed on the node."""
    if node.schedulable == schedulable:
        return
    node.schedulable = schedulable
    partition.reservations.mend_open(node)
    if schedulable:
        partition.wakeups.node_opened(node)
    partition.claims.review(Outcome.NODE)


def remove_node(partition: Partition, node: Node) -> None:
    """Remove a node with its reservations and all allocations on it, foreign ones too.

    Source: docs/spec/scheduling.md, sections 16.4 and 16.7. What happens to the allocations of gangs is decided in
    `Replacement.node_lost`.
    """
    if partition.events is not None:
        partition.events.records.schedulable(node.id, False)
    node.schedulable = False  # or the end of its reservations would open it
    partition.reservations.mend_open(node)
    partition.reservations.cancel_all(node)
    partition.index.drop(node)
    partition.needs.remove(node)
    del partition.nodes[node.id]
    partition.numbering.count_node(node, -1)
    partition.wakeups.forget_node(node)
    for key in node.foreign:
        _count_pod(partition, node, partition.foreign.pop(key).pods, None)
    for alloc in list(node.allocations):
        app = alloc.app
        if app.gang is not None:
            partition.replacement.node_lost(app, alloc, f"Node {node.id} Removed")
            continue
        partition.accounting.remove_allocation(app, alloc)
        partition.notify_released(alloc, Termination.STOPPED_BY_RM, f"Node {node.id} Removed")
        partition.lifecycle.emptied(app)
    partition.resize(node.capacity, -1)
    partition.accounting.overused.pop(node, None)
    partition.claims.review(Outcome.NODE)
    if partition.events is not None:
        partition.events.node_removed(node)


# -- foreign allocations -----------------------------------------------------------------------------------


def set_foreign(partition: Partition, message: Allocation) -> None:
    """Add or change a foreign allocation, which occupies its node and is counted nowhere else."""
    known = partition.foreign.get(message.key)
    node = partition.nodes.get(message.node_id) if known is None else known.node
    fault: Fault = ""
    if not message.node_id:
        fault = naming("trying to add a foreign request (non-allocation) ", message.key)
    elif node is None:
        fault = naming(f"failed to find node {message.node_id} for allocation ", message.key)
    else:
        fault = amounts_fault(message.resource)
    foreign = known
    if not fault and node is not None and foreign is None:
        try:
            foreign = _foreign(partition, message, node)
        except ConstraintError as error:
            fault = str(error)
    elif not fault and foreign is not None and message.tags and TAG_POD in message.tags:
        try:
            tags = foreign.tags | message.tags
            foreign = msgspec.structs.replace(foreign, pods=partition.needs.topology.class_of(tags), tags=tags)
        except ConstraintError as error:
            fault = str(error)
    if not fault and node is not None and foreign is not None:
        amounts = {name: amount for name, amount in (message.resource or {}).items() if amount}
        partition.numbering.number(amounts, "")
        unread = None if amounts.keys() <= partition.types.index.keys() else amounts
        partition.foreign[message.key] = msgspec.structs.replace(foreign, unread=unread)
        _count_pod(partition, node, None if known is None else known.pods, foreign.pods)
        if known is None:
            partition.needs.take_ports(node, foreign.ports)
        _occupy(partition, node, message.key, partition.types.known(amounts, 0))
        if known is None and partition.events is not None:
            partition.events.records.foreign(message.key, node, ChangeType.ADD)
        return
    partition.out.append(refused_allocation(message, fault))


def _foreign(partition: Partition, message: Allocation, node: Node) -> Foreign:
    tags = message.tags or {}
    tagged = seconds_tag(tags.get(TAG_ALLOCATION_CREATION_TIME, ""))
    ports = parse_constraints(tags[TAG_NODE_CONSTRAINTS]).ports if TAG_NODE_CONSTRAINTS in tags else ()
    created = partition.now if tagged is None else tagged
    return Foreign(node, tags, created, message.priority, ports, pods=partition.needs.topology.class_of(tags))


def _count_pod(partition: Partition, node: Node, before: PodClass | None, now: PodClass | None) -> None:
    """Count a foreign allocation as a pod of another class on its node; None: of none."""
    if now is before:
        return
    if now is not None:
        partition.needs.topology.begin(node.slot, now)
    if before is not None:
        partition.needs.topology.end(node.slot, before)


def read_again(partition: Partition, key: str) -> None:
    """Count a foreign allocation anew after types that it names have got numbers."""
    known = partition.foreign[key]
    amounts = known.unread or {}
    if amounts.keys() <= partition.types.index.keys():
        partition.foreign[key] = msgspec.structs.replace(known, unread=None)
    _occupy(partition, known.node, key, partition.types.known(amounts, 0))


def remove_foreign(partition: Partition, key: str) -> None:
    """Remove a foreign allocation that has ended; an unknown one is ignored."""
    known = partition.foreign.pop(key, None)
    if known is not None:
        if partition.events is not None:
            partition.events.records.foreign(key, known.node, ChangeType.REMOVE)
        partition.needs.give_back_ports(known.node, known.ports)
        _count_pod(partition, known.node, known.pods, None)
        _occupy(partition, known.node, key, None)
        if known.ports:
            partition.wakeups.node_opened(known.node)


def _occupy(partition: Partition, node: Node, key: str, amounts: Vec | None) -> None:
    before: Vec = node.foreign.pop(key, Vec())
    node.occupied.minus(before)
    if amounts is not None:
        node.foreign[key] = amounts
        node.occupied.plus(amounts)
    node.refree()
    partition.index.mend(node)
    partition.wakeups.node_freed(node)
    partition.claims.review(Outcome.FOREIGN)
