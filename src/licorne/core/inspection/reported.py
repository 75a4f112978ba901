"""What a resource manager would report to a new scheduler after a restart, read from the scheduler that has it now.

The messages are those of docs/use/embedding.md, "What is reported again", in that order: nodes, applications, foreign
allocations and those that run, and asks. What messages cannot say is missing: ages, timers, back-off, reservations, and the
queue that an application asked for, in whose place stands the one in which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from licorne.si.messages import AddApplication, Allocation, Input, NodeAction, NodeUpdate

if TYPE_CHECKING:
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask

MILLISECOND_NS: Final = 1_000_000


def report(partition: Partition) -> Iterator[Input]:
    """Yield the messages that give a new scheduler what a partition has."""
    for node in partition.nodes.values():
        yield _node(partition, node)
    applications = sorted(partition.applications.values(), key=attrgetter("seq"))
    for app in applications:
        if not app.independent:
            yield _application(partition, app)
    yield from _foreign(partition)
    for app in applications:
        for allocation in app.allocations.values():
            assert allocation.node is not None, "an allocation has a node"
            uuid = allocation.id if allocation.id != allocation.key else ""
            yield asked_again(partition, allocation, node_id=allocation.node.id, uuid=uuid, max_allocations=1)
    for ask in sorted((ask for app in applications for ask in app.asks.values()), key=attrgetter("seq")):
        yield asked_again(partition, ask)


def asked_again(partition: Partition, ask: Ask, **other: Any) -> Allocation:  # noqa: ANN401  any field of the message
    """Return the message that submits an ask, or an allocation as an ask, once more, with other fields where they are given."""
    fields: dict[str, Any] = {
        "key": ask.key,
        "application_id": ask.app.id,
        "partition": partition.name,
        "resource": dict(ask.shape.resource),
        "priority": ask.priority,
        "tags": ask.tags,
        "task_group": ask.task_group,
        "placeholder": ask.placeholder,
        "originator": ask.originator,
        "allow_preempt_self": ask.allow_self,
        "allow_preempt_other": ask.allow_other,
        "max_allocations": max(1, ask.repeats),
        "timeout_ms": ask.timeout_ns // MILLISECOND_NS,
        "independent": ask.app.independent,
    }
    return Allocation(**{**fields, **other})


def _node(partition: Partition, node: Node) -> NodeUpdate:
    return NodeUpdate(
        node_id=node.id,
        action=NodeAction.CREATE if node.schedulable else NodeAction.CREATE_DRAIN,
        partition=partition.name,
        attributes=dict(node.attributes),
        capacity=node.capacity.named(partition.types),
        occupied=node.base_occupied.named(partition.types),
    )


def _application(partition: Partition, app: Application) -> AddApplication:
    gang = app.gang
    timeout_ns = app.running_timeout_ns or (gang.timeout_ns if gang is not None else 0)
    return AddApplication(
        application_id=app.id,
        partition=partition.name,
        queue=app.queue.path,
        user=app.user,
        groups=app.groups,
        groups_found=True,  # the name was accepted, and would be refused if the message had named these groups
        tags=app.tags,
        execution_timeout_ms=timeout_ns // MILLISECOND_NS,
        timeout_is_running_time=app.running_timeout_ns > 0,
        placeholder_ask=app.placeholder_resource,
        gang_style="Hard" if gang is not None and gang.hard else "",
    )


def _foreign(partition: Partition) -> Iterator[Allocation]:
    for key, foreign in partition.foreign.items():
        amounts = foreign.node.foreign.get(key)
        resource = foreign.unread or (amounts.named(partition.types) if amounts is not None else {})
        yield Allocation(
            key=key,
            partition=partition.name,
            resource=resource,
            priority=foreign.priority,
            tags=foreign.tags,
            node_id=foreign.node.id,
        )
