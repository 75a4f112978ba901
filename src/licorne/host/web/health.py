"""The health checks: those of the original (docs/spec/rest-api.md, "Health"), and the invariants of the state.

They run in the background, in small steps between which the scheduler works; a request is answered with the result of the
last run. A fault that no longer exists counts as healthy: unlike in the original, whose counters never fall, checks 1 and 2
count what happened since the previous run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from licorne.core.amounts.vectors import Vec, new_sum
from licorne.core.inputs.node_changes import full_name
from licorne.core.inspection import validate

from .backend import Backend

if TYPE_CHECKING:
    from licorne.core.partition import Partition

WHOLE_MAX = 5_000
"""Nodes, applications and pending asks of a partition up to which it is also checked as a whole, in a single step."""
NAMED_MAX = 20
"""Most objects that a message names."""


class HealthCheck(msgspec.Struct, rename="pascal"):
    """The result of one check."""

    name: str
    succeeded: bool
    description: str
    diagnosis_message: str


class Health(msgspec.Struct, kw_only=True, rename="pascal"):
    """The result of the last run of all checks."""

    healthy: bool
    health_checks: list[HealthCheck]


class _Found:
    """The findings of a run so far, by check."""

    def __init__(self) -> None:
        self.negative_partitions: list[str] = []
        self.negative_nodes: list[str] = []
        self.wrong_partitions: list[str] = []
        self.wrong_nodes: list[str] = []
        self.ratios: list[float] = []
        self.orphans_on_nodes: list[str] = []
        self.orphans_on_apps: list[str] = []
        self.contradictions: list[str] = []
        self.unchecked: list[str] = []


def run(backend: Backend, errors: int, failed_nodes: int) -> Iterator[Health | None]:
    """Run all checks; yield None after each step, and the result at the end.

    `errors`, `failed_nodes`: errors of the scheduler, and nodes refused for lack of their partition, since the last run.
    """
    found = _Found()
    for partition in list(backend.partitions()):
        yield from _nodes(partition, found)
        _partition(partition, found)
        yield None
        yield from _applications(partition, found)
        yield from _invariants(backend, partition, found)
    health = _result(found, errors, failed_nodes)
    for name, ok, description, message, _ in backend.checks():
        health.health_checks.append(HealthCheck(name, ok, description, message))
        health.healthy &= ok
    yield health


def _partition(partition: Partition, found: _Found) -> None:
    name = full_name(partition)
    amounts = (*partition.total.values(), *partition.tree.root.allocated.values())
    if min(amounts, default=0) < 0:
        found.negative_partitions.append(name)
    total = new_sum()
    for node in partition.nodes.values():
        total.plus(node.capacity)
    if not partition.total.agrees(total):
        found.wrong_partitions.append(name)
    if partition.nodes:
        found.ratios.append(len(partition.reservations) / len(partition.nodes))


def _nodes(partition: Partition, found: _Found) -> Iterator[None]:
    for node in list(partition.nodes.values()):
        amounts = (*node.capacity.values(), *node.allocated.values(), *node.occupied.values(), *node.free.values())
        if min(amounts, default=0) < 0 and not _shrunk(node.capacity, node.free, node.allocated, node.occupied):
            found.negative_nodes.append(node.id)
        together = new_sum()
        for part in (node.allocated, node.occupied, node.free):
            together.add_sum(part, 1)
        if not together.same(node.capacity):
            found.wrong_nodes.append(node.id)
        for alloc in node.allocations:
            app = partition.applications.get(alloc.app.id)
            if app is None or alloc.id not in app.allocations:
                found.orphans_on_nodes.append(alloc.id)
        yield None


def _shrunk(capacity: Vec, free: Vec, allocated: Vec, occupied: Vec) -> bool:
    """Whether only `free` is negative: the node shrank, or others use more than it has, which is no fault of the scheduler."""
    return min((*capacity.values(), *allocated.values(), *occupied.values()), default=0) >= 0 and not free.zero()


def _applications(partition: Partition, found: _Found) -> Iterator[None]:
    for app in list(partition.applications.values()):
        if partition.applications.get(app.id) is not app:
            continue
        for number, alloc in enumerate(list(app.allocations.values())):
            if number % 500 == 499:
                yield None
            if app.allocations.get(alloc.id) is not alloc:
                continue
            node = alloc.node
            if node is None or partition.nodes.get(node.id) is not node or alloc not in node.allocations:
                found.orphans_on_apps.append(alloc.id)
        yield None


def _invariants(backend: Backend, partition: Partition, found: _Found) -> Iterator[None]:
    try:
        asks = partition.tree.root.asks_pending
        small = len(partition.nodes) + len(partition.applications) + asks <= WHOLE_MAX
        yield from validate.each(partition, queues=small)
        if small:
            yield from validate.check_partition(partition)
        else:
            found.unchecked.append(full_name(partition))
    except validate.InvariantError as error:
        if partition in backend.partitions():  # one that was removed meanwhile may be half dismantled
            found.contradictions.append(str(error))


def _result(found: _Found, errors: int, failed_nodes: int) -> Health:
    ratios = " ".join(f"{ratio:f}" for ratio in found.ratios or [0.0])
    invariants = f"Contradictions: {_list(found.contradictions)}"
    if found.unchecked:
        invariants += f"; too large to be checked as a whole: {_list(found.unchecked)}"
    rows = [
        (
            "Scheduling errors",
            errors == 0,
            "Check for scheduling error entries in metrics",
            f"There were {errors} scheduling errors logged in the metrics",
        ),
        (
            "Failed nodes",
            failed_nodes == 0,
            "Check for failed nodes entries in metrics",
            f"There were {failed_nodes} failed nodes logged in the metrics",
        ),
        _row(
            "Negative resources",
            "Check for negative resources in the partitions",
            "Partitions with negative resources",
            found.negative_partitions,
        ),
        _row(
            "Negative resources",
            "Check for negative resources in the nodes",
            "Nodes with negative resources",
            found.negative_nodes,
        ),
        _row(
            "Consistency of data",
            "Check if total partition resource == sum of the node resources from the partition",
            "Partitions with inconsistent data",
            found.wrong_partitions,
        ),
        _row(
            "Consistency of data",
            "Check if node total resource = allocated resource + occupied resource + available resource",
            "Nodes with inconsistent data",
            found.wrong_nodes,
        ),
        (
            "Reservation check",
            True,
            "Check the reservation nr compared to the number of nodes",
            f"Reservation/node nr ratio: [{ratios}]",
        ),
        _row(
            "Orphan allocation on node check",
            "Check if there are orphan allocations on the nodes",
            "Orphan allocations",
            found.orphans_on_nodes,
        ),
        _row(
            "Orphan allocation on app check",
            "Check if there are orphan allocations on the applications",
            "OrphanAllocations",
            found.orphans_on_apps,
        ),
        ("Invariants", not found.contradictions, "Check if the state contradicts itself", invariants),
    ]
    checks = [HealthCheck(*row) for row in rows]
    return Health(healthy=all(check.succeeded for check in checks), health_checks=checks)


def _row(name: str, description: str, what: str, faulty: list[str]) -> tuple[str, bool, str, str]:
    return name, not faulty, description, f"{what}: {_list(faulty)}"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return f"[{' '.join(names[:NAMED_MAX])}{more}]"
