"""Large objects as pieces of JSON: applications with many allocations, trees of queues, the full state dump.

Pieces are made in small steps, so that a large object does not hold the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from licorne.core.base.rejections import Rejection
from licorne.core.base.states import ApplicationState
from licorne.core.constants import NO_PRIORITY
from licorne.core.inspection import dump
from licorne.host.log import level_of
from licorne.host.web.monitor import Monitor
from licorne.si import rest_objects as objects

from . import allocations, views
from .answers import encode, encoded, json_list, spliced

if TYPE_CHECKING:
    from licorne.core.partition import Partition
    from licorne.core.queues.application import Application
    from licorne.core.queues.queue import Queue

LEVELS = {"WARNING": "warn", "CRITICAL": "fatal"}
"""Log levels that the original names differently; its other names are these in lower case."""
WHOLE_MAX = 100
"""Asks and allocations up to which an application is one piece."""


def application_pieces(app: Application, home: Partition, name: str, *, nodes: bool) -> Iterator[bytes]:
    """Yield an application with its asks and allocations; `nodes`: each ask also says why nodes do not fit it."""
    view = allocations.application(app, home, name)
    if len(app.asks) + len(app.allocations) <= WHOLE_MAX:
        view.requests = list(allocations.asks(app, home, nodes=nodes))
        view.allocations = list(allocations.allocations(app))
        yield encode(view)
        return
    parts: list[tuple[str, Iterator[bytes]]] = []
    if app.asks:
        parts.append(("requests", json_list(map(encoded, allocations.asks(app, home, nodes=nodes)))))
    if app.allocations:
        parts.append(("allocations", json_list(map(encoded, allocations.allocations(app)))))
    yield from spliced(encode(view), parts)


def rejection_view(found: Rejection, name: str) -> objects.Application:
    """Return a refused application as an object of the REST interface."""
    state = str(ApplicationState.REJECTED)
    return objects.Application(
        application_id=found.application_id,
        partition=name,
        queue_name=found.queue,
        submission_time=found.at_ns,
        finished_time=found.at_ns,
        application_state=state,
        user=found.user,
        groups=list(found.groups),
        rejected_message=found.reason,
        state_log=[objects.StateChange(time=found.at_ns, application_state=state)],
        max_request_priority=NO_PRIORITY,
        start_time=allocations.NEVER_STARTED_MS,
        resource_history=objects.ResourceHistory(),
    )


def queue_pieces(queue: Queue, name: str) -> Iterator[bytes]:
    """Yield a queue with its subtree; `name` is the partition's, empty to leave it out."""
    head = encode(views.queue(queue, name=name))
    if not queue.children:
        yield head
        return
    # Reopen the encoded object to append its children.
    comma = head[:-1] + b',"children":['
    for _, child in sorted(queue.children.items()):  # a list: queues may come and go between two pieces
        yield comma
        yield from queue_pieces(child, "")
        comma = b","
    yield b"]}"


def node_pieces(home: Partition) -> Iterator[bytes]:
    """Yield all nodes of a partition."""
    nodes = [home.nodes[name] for name in sorted(home.nodes)]
    return json_list(encoded(views.node(node, home)) for node in nodes)


def state_pieces(
    monitor: Monitor,
    config: dict[str, Any],
    app_history: list[objects.AppHistory],
    container_history: list[objects.ContainerHistory],
    exact: objects.ExactState | None = None,
) -> Iterator[bytes]:
    """Yield the whole state. Each object is consistent in itself; between two objects the scheduler may change the state."""
    backend = monitor.backend
    homes = [(partition, backend.shown_name(partition)) for partition in backend.partitions()]
    streams = [objects.OpenStream(name=str(n), host=host) for n, host in enumerate(monitor.ring.listeners.values())]
    held = [objects.PartitionHolds(partition=name, holds=found) for home, name in homes if (found := dump.holds(home))]
    apps = any(home.applications or home.terminated or home.rejected for home, _ in homes)
    members: list[tuple[str, object, Iterator[bytes]]] = [
        ("timestamp", True, encoded(backend.clock())),
        ("partitions", homes, json_list(encoded(views.partition(backend, home)) for home, _ in homes)),
        ("applications", apps, json_list(_all_applications(homes))),
        ("appHistory", app_history, encoded(app_history)),
        ("nodes", homes, json_list(_partition_nodes(home, name) for home, name in homes)),
        ("clusterInfo", homes, encoded([views.cluster(backend, home) for home, _ in homes])),
        ("containerHistory", container_history, encoded(container_history)),
        ("queues", homes, json_list(queue_pieces(home.tree.root, name) for home, name in homes)),
        (
            "rmDiagnostics",
            True,
            encoded(backend.diagnostics() or {"empty": "Resource Manager did not register callback"}),
        ),
        ("logLevel", True, encoded(LEVELS.get(level := level_of(monitor.log), level.lower()))),
        ("config", True, encoded(config)),
        ("placementRules", homes, json_list(encoded(_rules(home, name)) for home, name in homes)),
        ("eventStreams", streams, encoded(streams)),
        ("gangHolds", held, encoded(held)),
        ("licorne", exact, encoded(exact)),
    ]
    yield from spliced(b"{}", [(name, pieces) for name, filled, pieces in members if filled])


def _all_applications(homes: list[tuple[Partition, str]]) -> Iterator[Iterator[bytes]]:
    for home, name in homes:
        for app in [*home.applications.values(), *home.terminated]:
            yield application_pieces(app, home, name, nodes=False)
        for rejected in list(home.rejected):
            yield encoded(rejection_view(rejected, name))


def _partition_nodes(home: Partition, name: str) -> Iterator[bytes]:
    head = encode(objects.PartitionNodes(partition_name=name))
    yield from spliced(head, [("nodesInfo", node_pieces(home))]) if home.nodes else (head,)


def _rules(home: Partition, name: str) -> objects.PartitionRules:
    return objects.PartitionRules(partition=name, rules=views.rules(home))
