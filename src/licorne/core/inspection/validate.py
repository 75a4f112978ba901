"""The check of the invariants that the state of a partition can show, from first principles.

Every sum is computed anew from the allocations and asks themselves and compared with the stored one; every index is
compared with the data that it repeats (docs/spec/design.md, rules 1 and 3). The numbers are those of the list of
invariants in `docs/understand/invariants.md`. Modules whose data only they can check have functions of their own, called from
here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.base.states import ApplicationState, ObjectState
from licorne.core.constants import SUM_MAX
from licorne.core.gangs import check_placeholders
from licorne.core.gangs.check_atomic import validate_gangs
from licorne.core.nodes.check import index_steps, validate_topology
from licorne.core.nodes.devices import NO_DEVICES, WHOLE
from licorne.core.queues.ask import request_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from licorne.core.nodes.constraints import HostPort
    from licorne.core.nodes.domains import PodClass
    from licorne.core.nodes.node import Node
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.ask import Ask, Shape
    from licorne.core.queues.queue import Queue


class InvariantError(AssertionError):
    """The state contradicts itself: a bug. The text names the invariant and the object."""


def validate(partition: Partition) -> None:
    """Check every invariant of a partition at once.

    Raises:
        InvariantError: the first contradiction found.
    """
    for steps in (each(partition), check_partition(partition)):
        for _ in steps:
            pass


def each(partition: Partition, *, queues: bool = True) -> Iterator[None]:
    """Check nodes, applications and queues, one in each step; the scheduler may run between two steps.

    `queues`: queues are checked too. Each of them is compared with all applications; the other steps are all short.

    Raises:
        InvariantError: the first contradiction found.
    """
    try:
        partition.settle_size()
        for node in list(partition.nodes.values()):
            if partition.nodes.get(node.id) is node:  # it may have been removed between two steps
                _node(partition, node)
            yield
        for app in list(partition.applications.values()):
            if partition.applications.get(app.id) is app:
                _application(partition, app)
                check_placeholders.check(partition, app)
            yield
        for queue in partition.tree.queues() if queues else ():
            if partition.tree.find(queue.path) is queue:
                _queue(partition, queue)
            yield
    except AssertionError as error:
        raise InvariantError(f"partition {partition.name}: {error}") from error


def check_partition(partition: Partition) -> Iterator[None]:
    """Check what concerns the partition as a whole, in steps, the longest of which grow with its size.

    Raises:
        InvariantError: the first contradiction found.
    """
    try:
        partition.settle_size()
        for check in (_total, _reservations, _waiting):
            check(partition)
            yield
        yield from _failed(partition)
        validate_gangs(partition)
        yield
        yield from index_steps(partition.index)
        partition.needs.validate()
        yield
        validate_topology(
            partition.needs.topology, {node.id: _pods(partition, node) for node in partition.nodes.values()}
        )
        yield
        partition.numbering.validate()
        yield
        partition.tree.validate()
        yield
        partition.claims.validate()
        partition.limits.validate(partition.applications.values())
        partition.quotas.validate()
    except AssertionError as error:
        raise InvariantError(f"partition {partition.name}: {error}") from error


def _sum(asks: Iterable[Ask]) -> Vec:
    total = new_sum()
    for ask in asks:
        total.plus(ask.shape.amounts)
    return total


def _expect(ok: bool, number: int, what: str) -> None:
    if not ok:
        raise AssertionError(f"invariant {number}: {what}")


def _ports(partition: Partition, node: Node) -> dict[HostPort, int]:
    """Count the host ports that are taken on the node, also by members of gangs on their way to a placeholder's place."""
    found: dict[HostPort, int] = {}
    holders = [alloc.shape.need.ports for alloc in node.allocations]
    holders += [partition.foreign[key].ports for key in node.foreign if key in partition.foreign]
    for alloc in node.allocations:
        real = None if alloc.app.gang is None else alloc.app.gang.replacing.get(alloc)
        if real is not None and real.node is node:
            holders.append(real.shape.need.ports)
    for ports in holders:
        for port in ports:
            found[port] = found.get(port, 0) + 1
    return found


def _pods(partition: Partition, node: Node) -> dict[PodClass, int]:
    """Count the pods that run on the node by their classes."""
    found: dict[PodClass, int] = {}
    classes = [alloc.shape.need.pods for alloc in node.allocations]
    classes += [partition.foreign[key].pods for key in node.foreign]
    for pods in classes:
        if pods is not None:
            found[pods] = found.get(pods, 0) + 1
    return found


def _devices(node: Node) -> None:
    """Compare what is left on each device of the node with what allocations there hold."""
    devices = node.devices
    if devices is None:
        _expect(node.labels.devices == NO_DEVICES, 1, f"devices in the labels of node {node.id}")
        return
    left = [WHOLE] * len(devices.free)
    for alloc, held in devices.held.items():
        _expect(alloc in node.allocations, 6, f"{alloc.key} holds devices of node {node.id} and does not run there")
        for index in held.devices:
            left[index] -= held.each
    _expect(left == devices.free and min(left, default=0) >= 0, 1, f"what is left on the devices of node {node.id}")
    _expect(not devices.tried, 1, f"devices of node {node.id} are taken in a trial")
    _expect(node.labels.devices == devices.left(), 1, f"devices in the labels of node {node.id}")


def _node(partition: Partition, node: Node) -> None:
    _expect(node.allocated.agrees(_sum(node.allocations)), 1, f"allocated on node {node.id}")
    occupied = new_sum()
    occupied.plus(node.base_occupied)
    for amounts in node.foreign.values():
        occupied.plus(amounts)
    _expect(node.occupied.agrees(occupied), 1, f"occupied on node {node.id}")
    free = new_sum()
    free.plus(node.capacity)
    free.add_sum(occupied, -1)
    free.add_sum(node.allocated, -1)
    _expect(node.free.agrees(free), 1, f"available on node {node.id}")
    _expect(node.ports == _ports(partition, node), 1, f"host ports on node {node.id}")
    _expect(node.labels.ports == tuple(sorted(node.ports)), 1, f"host ports in the labels of node {node.id}")
    _devices(node)
    for alloc in node.allocations:
        _expect(alloc.node is node, 6, f"allocation {alloc.id} on node {node.id} thinks it is elsewhere")
        app = partition.applications.get(alloc.app.id)
        _expect(app is alloc.app, 6, f"orphan allocation {alloc.id} on node {node.id}")
        known = alloc.app.allocations.get(alloc.id) is alloc or check_placeholders.in_flight(alloc)
        _expect(known, 6, f"allocation {alloc.id} unknown to its application")
    for key in node.foreign:
        foreign = partition.foreign.get(key)
        _expect(foreign is not None and foreign.node is node, 6, f"foreign allocation {key}")


def _total(partition: Partition) -> None:
    total = new_sum()
    overuse = Counter[str]()
    for node in partition.nodes.values():
        total.plus(node.capacity)
        overuse += Counter(node.allocated.named(partition.types)) - Counter(node.capacity.named(partition.types))
    _expect(partition.total.agrees(total), 2, "total of the partition")
    root = partition.tree.root
    named = {name: amount for name, amount in total.named(partition.types).items() if amount > 0}
    _expect((root.max_resource() or {}) == named, 2, "root's max")
    limit = {name: min(amount + overuse[name], SUM_MAX) for name, amount in named.items()}
    _expect(root.limit.named(partition.types) == limit, 2, "root's limit")


def _application(partition: Partition, app: Application) -> None:
    _expect(app.queue.apps.get(app.id) is app, 6, f"application {app.id} unknown to its queue")
    _expect(partition.tree.find(app.queue.path) is app.queue, 6, f"queue of application {app.id}")
    real = [a for a in app.allocations.values() if not a.placeholder]
    held = [a for a in app.allocations.values() if a.placeholder]
    _expect(app.allocated.agrees(_sum(real)), 3, f"allocated of application {app.id}")
    _expect(app.placeholders.agrees(_sum(held)), 3, f"placeholders of application {app.id}")
    _expect(app.asks_pending == len(app.asks), 7, f"pending asks of application {app.id}")
    pending = new_sum()
    for key, ask in app.asks.items():
        _expect(ask.key == key and ask.app is app and ask.repeats > 0, 7, f"ask {key}")
        one = new_sum()
        one.plus(ask.shape.amounts)
        pending.add_sum(one, ask.repeats)
        for d, amount in enumerate(ask.shape.amounts.values()):
            _expect(app.high.at(d) >= amount, 7, f"upper bound of application {app.id}")
    _expect(app.pending.agrees(pending), 3, f"pending of application {app.id}")
    _expect(app.bag.top == max((a.priority for a in app.asks.values()), default=app.bag.top), 3, "priority")
    app.requests.validate()
    _expect(app.requests.in_order() == sorted(app.asks.values(), key=request_order), 3, "request order")
    for alloc in app.allocations.values():
        _expect(
            alloc.node is not None and alloc in alloc.node.allocations, 6, f"allocation {alloc.id} unknown to its node"
        )
    _application_state(app)
    _preemption(partition, app)


def _preemption(partition: Partition, app: Application) -> None:
    """Check that a preempted allocation is not released too, and is listed among the victims (invariant 11).

    And that a pending ask which has preempted has a claim: without one it may preempt again.
    """
    for ask in app.asks.values():
        _expect(
            not ask.triggered or ask in partition.claims.by_ask, 11, f"ask {ask.key} has preempted, and claims nothing"
        )
    for alloc in app.allocations.values():
        _expect(not (alloc.preempted and alloc.released), 11, f"allocation {alloc.id} is a victim, and released")
        _expect(
            alloc.preempted == (alloc in partition.accounting.victims), 11, f"allocation {alloc.id} among the victims"
        )
        _expect(alloc.released or alloc not in partition.accounting.overdue, 11, f"allocation {alloc.id} is overdue")


def _application_state(app: Application) -> None:
    state = ApplicationState(app.state)
    idle = (ApplicationState.COMPLETING, ApplicationState.COMPLETED, ApplicationState.FAILED)
    if state in idle or state is ApplicationState.NEW:
        _expect(not app.asks, 8, f"application {app.id} is {state} with pending asks")
    if state in idle:
        real = [a for a in app.allocations.values() if state is not ApplicationState.COMPLETING or not a.placeholder]
        _expect(not real, 8, f"application {app.id} is {state} with allocations")
    ended = (ApplicationState.COMPLETED, ApplicationState.FAILED, ApplicationState.REJECTED, ApplicationState.EXPIRED)
    _expect(state not in ended, 8, f"application {app.id} has ended ({state}) but is listed")


def _queue(partition: Partition, queue: Queue) -> None:
    # A parent that a reload has turned into a leaf may still have draining children; its sums include theirs.
    if queue.is_leaf and not queue.children:
        _expect(queue.allocated.agrees(_sum_of(queue, "allocated", "placeholders")), 3, f"allocated of {queue.path}")
        _expect(queue.pending.agrees(_sum_of(queue, "pending")), 3, f"pending of {queue.path}")
        victims = _sum(a for app in queue.apps.values() for a in app.allocations.values() if a.preempted)
        _expect(queue.preempting.agrees(victims), 3, f"preempting of {queue.path}")
    counted = sum(
        app.state in (ApplicationState.RUNNING, ApplicationState.STARTING)
        for app in partition.applications.values()
        if queue in app.queue.lineage()
    )
    _expect(0 <= queue.running <= counted, 8, f"running applications of {queue.path}")
    if not queue.max_apps:
        _expect(queue.running <= counted, 8, f"running applications of {queue.path}")
    for app in queue.accepted:
        _expect(app.state is ApplicationState.ACCEPTED, 8, f"application {app.id} holds a slot in {queue.path}")
    _expect(queue.state in tuple(ObjectState), 8, f"state of {queue.path}")


def _sum_of(queue: Queue, *names: str) -> Vec:
    total = new_sum()
    for app in queue.apps.values():
        for name in names:
            total.add_sum(getattr(app, name), 1)
    return total


def _reservations(partition: Partition) -> None:
    count = 0
    for node in partition.nodes.values():
        ordinary = [ask for ask in node.reservations if not ask.required and not ask.triggered]
        _expect(len(ordinary) <= 1, 9, f"node {node.id} has {len(ordinary)} ordinary reservations")
        _expect(not ordinary or len(node.reservations) == 1, 9, f"node {node.id} shares an ordinary reservation")
        for ask in node.reservations:
            count += 1
            _expect(ask.reserved is node, 9, f"reservation of {ask.key} on {node.id}")
            _expect(ask.app.asks.get(ask.key) is ask, 9, f"reservation without a live ask on {node.id}")
            _expect(ask.app.reservations.get(ask.key) is ask, 9, f"reservation of {ask.key} unknown to its application")
    _expect(count == len(partition.reservations) == partition.wakeups.reservations, 9, "number of reservations")
    held = sum(len(app.reservations) for app in partition.applications.values())
    _expect(count == held, 9, "reservations of applications")
    counted = sum(n for queue in partition.tree.queues() for n in queue.reserved.values())
    _expect(count == counted, 9, "reservations of queues")


def _waiting(partition: Partition) -> None:
    """Check that the counts of shapes and needs, and the parked asks, agree with the pending asks (invariant 7)."""
    waiting: dict[Shape, int] = {}
    for app in partition.applications.values():
        for ask in app.asks.values():
            waiting[ask.shape] = waiting.get(ask.shape, 0) + 1
    for shape, number in waiting.items():
        _expect(shape.waiting == number, 7, "asks waiting with a shape")
    for shape in partition.parking.failed:
        _expect(shape in waiting and shape.failed, 7, "a failed shape nobody waits with")
    for shape in partition.parking.freed_nodes.partly_parked:
        _expect(shape in partition.parking.failed, 7, "a stray shape that has not failed")
    for need in partition.parking.failed_needs:
        _expect(need.waiting > 0 and need.failed.count > 0, 7, "failed amounts that nobody waits with")
    for shape in waiting:
        need = shape.need
        _expect(need.waiting > 0 and partition.needs.knows(need), 7, "constraints without a mark of their own")
        _expect(not need.failed.count or need in partition.parking.failed_needs, 7, "failed amounts, not listed")
    active = sum(app.active for app in partition.applications.values())
    _expect(partition.parking.active_count == active, 7, "active applications")
    partition.parking.validate(partition.applications.values())


def _failed(partition: Partition) -> Iterator[None]:
    """Check, a node in each step, that no node has room for a shape or amounts that failed (invariant 12).

    Nodes that were freed or opened since are left out.
    """
    parking = partition.parking
    for node in list(partition.nodes.values()):
        yield
        if (
            partition.nodes.get(node.id) is not node
            or node in partition.wakeups.newly_freed
            or node in partition.wakeups.newly_opened
            or node in parking.freed_nodes.nodes
        ):
            continue
        for shape in parking.failed:
            if shape.need in partition.wakeups.eased:
                continue
            _expect(not node.fits(shape.amounts, shape.need), 12, f"node {node.id} has room for a shape that failed")
        for need in [one for one in parking.failed_needs if one not in partition.wakeups.eased]:
            for i in range(need.failed.count):
                amounts = need.failed.row(i)
                _expect(not node.fits(amounts, need), 12, f"node {node.id} has room for amounts that failed")
