"""The answer of each endpoint (docs/spec/rest-api.md, section 2). `endpoints` maps paths to these methods.

The order of checks is the original's: the syntax of names, the partition, the object. State is read in one step, or,
where there may be many objects, object by object in small steps between which the scheduler runs.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from starlette.responses import Response

from licorne.config import Report
from licorne.config.limits import GROUP_NAME, USER_NAME
from licorne.core.base.states import ApplicationState
from licorne.core.manager import RegisteredManager
from licorne.core.partition import Partition
from licorne.core.placement.rules import INVALID_QUEUE_NAME, legal_queue_name
from licorne.core.queues.application import Application
from licorne.core.queues.queue import Queue
from licorne.host.pace import paced
from licorne.host.threads import COMMON
from licorne.host.web.event_ring import as_event_record
from licorne.host.web.figures import metrics
from licorne.host.web.monitor import Monitor
from licorne.si import rest_objects as objects
from licorne.state.configuration import as_yaml

from . import config as configs
from . import errors, views
from .access import RequestLimits
from .answers import encode, encoded, in_pieces, json_list, json_response, redirect, spliced, wants_gzip
from .errors import refuse
from .numbers import parse_uint
from .pieces import application_pieces, node_pieces, queue_pieces, rejection_view, state_pieces
from .routing import Call
from .shared import Make, Shared, State, unknown
from .state import exact_state
from .stream import StreamResponse, unless_gone

ACTIVE_STATUSES = ("new", "accepted", "running", "completing", "failing", "resuming")
SENT_STATUSES = (*ACTIVE_STATUSES, "starting")
CHECKPOINT_SHARE = 0.1
"""How much of the time the scheduler waits for checkpoints at most, however often they are asked for."""
_HOST = re.compile(r"[^\x21-\x7e]")


class Handlers:
    """The handlers of all endpoints, for one scheduler."""

    def __init__(self, monitor: Monitor, limits: RequestLimits, *, old_queue_names: bool) -> None:
        self.monitor = monitor
        self.backend = monitor.backend
        self.limits = limits
        self._old_queue_names = old_queue_names
        self._metrics = metrics.Metrics()
        self._checks = asyncio.Semaphore(limits.checks)
        self._taking = asyncio.Lock()
        self._next_checkpoint_s = 0.0
        self.ending = asyncio.Event()
        """Set when the server ends, and streams of pages with it."""
        self.asking = asyncio.Lock()  # held while a question is answered in a process of its own
        self._shared = Shared(lambda: self.limits.keep_s)
        self._shown: dict[str, tuple[Any, tuple[configs.Map, Report | None]]] = {}

    async def shared(self, call: Call, make: Make, state: State = unknown) -> Response:
        """Return an answer that may be slow to make: shared by concurrent requests, and cached while `state` is equal."""
        scope = call.request.scope
        asked = f"{scope['path']} {call.variables} {scope['query_string']!r}"
        return await self._shared.answer(asked, make, compress=wants_gzip(scope), state=state)

    def _state(self, partition: Partition, apps: Collection[Application] = ()) -> State:
        """Return the state of an answer about a partition. The reasons why asks wait depend on the time, so it is included."""

        def state() -> object:
            waits = any(app.asks for app in apps)
            return views.partition_state(partition), self.backend.shown_name(partition), partition.now if waits else 0

        return state

    # -- finding things --------------------------------------------------------------------------------

    def partition(self, call: Call) -> Partition:
        """Return the partition that the path names.

        Raises:
            RestError: 400 without a name; 404 if the name is unknown or ambiguous.
        """
        name = call.variables["partition"] or refuse(400, errors.MISSING)
        found = self.backend.find_partition(name)
        if isinstance(found, Partition):
            return found
        if found:
            refuse(404, f"{errors.PARTITION_NOT_FOUND}: {name} may be any of {', '.join(found)}")
        return refuse(404, errors.PARTITION_NOT_FOUND)

    def queue(self, call: Call) -> tuple[Partition, Queue]:
        """Return the queue that the path names, with its partition.

        Raises:
            RestError: 400 without a legal name; 404 if the partition or the queue is unknown.
        """
        path = call.variables["queue"] or refuse(400, errors.MISSING)
        if not all(legal_queue_name(part) for part in path.split(".")):
            refuse(400, INVALID_QUEUE_NAME)
        partition = self.partition(call)
        found = partition.tree.find(path.lower())
        return partition, found or refuse(404, errors.QUEUE_NOT_FOUND)

    def manager(self, call: Call) -> RegisteredManager | None:
        """Return the resource manager that the query names, else the first; None if there is none.

        Raises:
            RestError: 404 if the named one is unknown.
        """
        managers = self.backend.managers()
        wanted = call.query("rm")
        if wanted:
            return self.backend.cluster.managers.get(wanted) or refuse(404, f"Resource manager {wanted} not found")
        return managers[0] if managers else None

    # -- lists -----------------------------------------------------------------------------------------

    async def clusters(self, call: Call) -> Response:
        """Answer with all partitions and what is known of their resource managers."""
        return json_response([views.cluster(self.backend, found) for found in self.backend.partitions()])

    async def partitions(self, call: Call) -> Response:
        """Answer with all partitions."""
        found = list(self.backend.partitions())
        return await self.shared(call, lambda: json_list(encoded(views.partition(self.backend, one)) for one in found))

    async def placement_rules(self, call: Call) -> Response:
        """Answer with the placement rules of a partition."""
        return json_response(views.rules(self.partition(call)))

    async def queues(self, call: Call) -> Response:
        """Answer with the whole tree of queues."""
        partition = self.partition(call)
        name = self.backend.shown_name(partition)
        return await self.shared(call, lambda: queue_pieces(partition.tree.root, name), self._state(partition))

    async def one_queue(self, call: Call) -> Response:
        """Answer with one queue, or with its whole subtree if the query has `subtree`."""
        _, found = self.queue(call)
        if "subtree" in call.request.query_params:
            return await self.shared(call, lambda: queue_pieces(found, ""))
        return json_response(views.queue(found))

    async def nodes(self, call: Call) -> Response:
        """Answer with all nodes of a partition."""
        partition = self.partition(call)
        return await self.shared(call, lambda: node_pieces(partition), self._state(partition))

    async def one_node(self, call: Call) -> Response:
        """Answer with one node."""
        partition = self.partition(call)
        name = call.variables["node"] or refuse(400, errors.MISSING)
        found = partition.nodes.get(name) or partition.nodes.get(call.once["node"])
        return json_response(views.node(found or refuse(404, errors.NODE_NOT_FOUND), partition))

    # -- applications ----------------------------------------------------------------------------------

    async def queue_applications(self, call: Call) -> Response:
        """Answer with the active applications of a leaf queue; a parent queue has none."""
        partition, queue = self.queue(call)
        return await self._applications(call, partition, queue.apps.values())

    async def queue_applications_by_state(self, call: Call) -> Response:
        """Answer with the applications of a leaf queue by state, which may only be `active`."""
        partition, queue = self.queue(call)
        if call.variables["state"].lower() != "active":
            refuse(400, "Only following application states are allowed: active")
        return await self._applications(call, partition, _of_status(queue.apps.values(), call.query("status")))

    async def applications_by_state(self, call: Call) -> Response:
        """Answer with the applications of a partition that are active, have completed or failed, or were rejected."""
        state = call.variables["state"].lower()
        partition = self.partition(call)
        if state == "active":
            return await self._applications(
                call, partition, _of_status(partition.applications.values(), call.query("status"))
            )
        if state == "completed":
            return await self._applications(call, partition, partition.terminated)
        if state != "rejected":
            refuse(400, "Only following application states are allowed: active, rejected, completed")
        name = self.backend.shown_name(partition)
        return await in_pieces(json_list(encoded(rejection_view(one, name)) for one in list(partition.rejected)))

    async def queue_application(self, call: Call) -> Response:
        """Answer with one active application, which must be in the queue of the path."""
        partition, queue = self.queue(call)
        return await self._application(partition, call, queue)

    async def application(self, call: Call) -> Response:
        """Answer with one active application."""
        return await self._application(self.partition(call), call, None)

    async def _application(self, partition: Partition, call: Call, queue: Queue | None) -> Response:
        name = call.variables["application"] or refuse(400, errors.MISSING)
        found = partition.applications.get(name) or partition.applications.get(call.once["application"])
        if found is None or (queue is not None and found.queue is not queue):
            refuse(404, errors.APPLICATION_NOT_FOUND)
        shown = self.backend.shown_name(partition)
        return await in_pieces(application_pieces(found, partition, shown, nodes=True))

    async def _applications(self, call: Call, partition: Partition, found: Iterable[Application]) -> Response:
        name = self.backend.shown_name(partition)
        apps = list(found)
        return await self.shared(
            call,
            lambda: json_list(application_pieces(one, partition, name, nodes=False) for one in apps),
            self._state(partition, apps),
        )

    # -- users and groups ------------------------------------------------------------------------------

    async def users(self, call: Call) -> Response:
        """Answer with the usage of all users."""
        partition = self.partition(call)
        found = partition.limits.users()
        return await self.shared(
            call,
            lambda: json_list(encoded(views.user_usage(partition, u, t)) for u, t in found.items()),
            self._state(partition),
        )

    async def user(self, call: Call) -> Response:
        """Answer with the usage of one user."""
        name = call.variables["user"] or refuse(400, errors.MISSING)
        if not USER_NAME.fullmatch(name):
            refuse(400, "Invalid user name")
        partition = self.partition(call)
        trackers = partition.limits.users().get(name) or refuse(404, errors.USER_NOT_FOUND)
        return json_response(views.user_usage(partition, name, trackers))

    async def groups(self, call: Call) -> Response:
        """Answer with the usage of all groups."""
        partition = self.partition(call)
        found = partition.limits.groups()
        return await self.shared(
            call,
            lambda: json_list(encoded(views.group_usage(partition, g, t)) for g, t in found.items()),
            self._state(partition),
        )

    async def group(self, call: Call) -> Response:
        """Answer with the usage of one group."""
        name = call.variables["group"] or refuse(400, errors.MISSING)
        if not GROUP_NAME.fullmatch(name):
            refuse(400, "Invalid group name")
        partition = self.partition(call)
        trackers = partition.limits.groups().get(name) or refuse(404, errors.GROUP_NOT_FOUND)
        return json_response(views.group_usage(partition, name, trackers))

    # -- history, health, utilisation ------------------------------------------------------------------

    async def app_history(self, call: Call) -> Response:
        """Answer with the number of running applications, minute by minute."""
        return json_response(views.app_history(self.monitor))

    async def container_history(self, call: Call) -> Response:
        """Answer with the number of containers, minute by minute."""
        return json_response(views.container_history(self.monitor))

    async def health(self, call: Call) -> Response:
        """Answer with the result of the last health check."""
        return json_response(self.monitor.health or refuse(404, errors.HEALTH_NOT_AVAILABLE))

    async def ready(self, call: Call) -> Response:
        """Answer a readiness probe: 200 if this process schedules, else 503 with the reasons, a line each."""
        wrong = [check.message for check in self.backend.checks() if check.readiness and not check.succeeded]
        return Response(
            "".join(f"{line}\n" for line in wrong or ["ok"]), 503 if wrong else 200, media_type="text/plain"
        )

    async def node_utilizations(self, call: Call) -> Response:
        """Answer with the nodes in ten buckets of utilisation, by resource type."""
        found = []
        for partition in list(self.backend.partitions()):
            view = objects.PartitionNodesUtilization(
                cluster_id=partition.owner, partition=self.backend.shown_name(partition)
            )
            async for one in paced(views.utilizations(partition)):
                if one is not None:
                    view.utilizations.append(one)
            found.append(view)
        return json_response(found)

    async def metrics(self, call: Call) -> Response:
        """Answer with the metrics in Prometheus' text format."""
        found = metrics.Snapshot()
        async for _ in paced(metrics.fill(found, self.monitor, old_queue_names=self._old_queue_names)):
            pass
        text = await COMMON.run(partial(self._metrics.text, found))
        return Response(text, headers={"Content-Type": metrics.CONTENT_TYPE})

    # -- configuration ---------------------------------------------------------------------------------

    async def config(self, call: Call) -> Response:
        """Answer with the running configuration, as YAML or, if the client accepts exactly that, as JSON."""
        shown, _ = await self.running(self.manager(call))
        if call.request.headers.get("accept", "") == "application/json":
            return json_response(shown)
        text = await COMMON.run(partial(as_yaml, shown))
        return Response(text, headers={"Content-Type": "application/x-yaml; charset=UTF-8"})

    async def running(self, manager: RegisteredManager | None) -> tuple[configs.Map, Report | None]:
        """Return the running configuration of a resource manager, as JSON has it, and what is odd about it."""
        if manager is None:
            return configs.running(None, {})
        extra = dict(self.backend.api.extra_config(manager.rm_id))
        key = (manager.configuration.checksum, tuple(sorted(extra.items())))
        known = self._shown.get(manager.rm_id)
        if known is None or known[0] != key:
            known = key, await COMMON.run(partial(configs.running, manager, extra))
            if len(self._shown) > 1000:
                self._shown.clear()
            self._shown[manager.rm_id] = known
        return known[1]

    async def validate_conf(self, call: Call) -> Response:
        """Answer whether a configuration would be accepted."""
        async with self._checks:
            checked = self._checked(call, to_apply=False)
            return json_response(await unless_gone(call.request.receive, checked))

    async def _checked(self, call: Call, *, to_apply: bool) -> objects.ConfigVerdict:
        return configs.verdict(await self.backend.check(call.body.decode("utf-8", "replace"), to_apply))

    async def _read(self, text: str, found: objects.ConfigVerdict) -> objects.ConfigVerdict:
        """Read a configuration that was found legal, and refuse it if it has too many queues for this service."""
        await self.backend.prepare(text)
        try:
            self.backend.cluster.read(text)
        except ValueError as error:  # ConfigError
            return objects.ConfigVerdict(allowed=False, reason=str(error), warnings=found.warnings)
        return found

    async def change_config(self, call: Call) -> Response:
        """Apply another configuration if all of it is valid; otherwise change nothing."""
        manager = self.manager(call) or refuse(404, "No resource manager is registered")
        found = await self._checked(call, to_apply=True)
        if not found.allowed:
            return json_response(found, 409)
        text = call.body.decode()
        found = await self._read(text, found)
        if found.allowed and not self.backend.cluster.read(text).partitions:
            found = configs.NO_PARTITION
        if not found.allowed:
            return json_response(found, 409)
        fault = self._apply(manager, text)
        if fault:
            return json_response(objects.ConfigVerdict(allowed=False, reason=fault, warnings=found.warnings), 409)
        return json_response(found)

    def _apply(self, manager: RegisteredManager, text: str) -> str:
        if self.backend.cluster.managers.get(manager.rm_id) is not manager:
            return "the resource manager has registered again meanwhile"
        try:
            self.backend.change_configuration(manager.rm_id, text)
        except ValueError as error:  # ConfigurationError
            return str(error)
        return ""

    # -- events ----------------------------------------------------------------------------------------

    async def event_batch(self, call: Call) -> Response:
        """Answer with past events, from an ID on."""
        if not self.monitor.tracks_events:
            refuse(500, errors.TRACKING_DISABLED)
        most = self.limits.batch
        count = parse_uint(call.query("count"), most)
        if count == 0:
            refuse(400, '0 is not a valid value for "count"')
        ring = self.monitor.ring
        events, lowest, highest = ring.batch(parse_uint(call.query("start"), 0), min(count, most))
        head = {"InstanceUUID": ring.uuid, "LowestID": lowest, "HighestID": highest}
        if events is None:
            return json_response(head | {"EventRecords": None})
        pieces = json_list(encoded(as_event_record(event)) for event in events)
        return await in_pieces(spliced(encode(head), [("EventRecords", pieces)]))

    async def event_stream(self, call: Call) -> Response:
        """Answer with a stream of events as they happen, one line for each."""
        if not self.monitor.tracks_events:
            refuse(500, errors.TRACKING_DISABLED)
        count = parse_uint(call.query("count"), 0)
        ring = self.monitor.ring
        host = _HOST.sub("?", call.request.headers.get("host", ""))[:256]
        same = sum(other == host for other in ring.listeners.values())
        if len(ring.listeners) >= self.limits.streams or same >= self.limits.streams_per_host:
            refuse(503, errors.TOO_MANY_STREAMS)
        return StreamResponse(ring, ring.listen(host, count), self.limits.send_s)

    # -- all of the state ------------------------------------------------------------------------------

    async def full_state(self, call: Call) -> Response:
        """Answer with all of the state.

        A checkpoint in it is taken at once, between two decisions; the rest is made in small steps.
        """
        exact = await self._exact() if call.query("checkpoint") == "true" else None
        managers = self.backend.managers()
        config, _ = await self.running(managers[0] if managers else None)
        history = views.app_history(self.monitor), views.container_history(self.monitor)
        return await in_pieces(state_pieces(self.monitor, config, *history, exact))

    async def exact_dump(self) -> bytes:
        """Return a state dump that has only partitions, the diagnostics of the resource manager, and a checkpoint to restore from."""
        backend = self.backend
        return encode(
            objects.FullState(
                timestamp=backend.clock(),
                partitions=[views.partition(backend, home) for home in backend.partitions()],
                rm_diagnostics=backend.diagnostics() or {},
                licorne=await self._exact(),
            )
        )

    async def _exact(self) -> objects.ExactState:
        async with self._taking:
            await asyncio.sleep(max(self._next_checkpoint_s - time.monotonic(), 0))
            began = time.monotonic()
            data = self.backend.api.checkpoint()
            self._next_checkpoint_s = began + (time.monotonic() - began) / CHECKPOINT_SHARE
        return await asyncio.to_thread(exact_state, data)

    async def moved(self, call: Call) -> Response:
        """Redirect an old path to the one below `/debug/`."""
        return redirect("/debug/" + call.request.url.path.rpartition("/")[2])


def _of_status(apps: Iterable[Application], status: str) -> list[Application]:
    if not status:
        return list(apps)
    if status.lower() not in SENT_STATUSES:
        refuse(400, f"Only following active statuses are allowed: {','.join(ACTIVE_STATUSES)}")
    wanted = ApplicationState(status.capitalize())
    return [app for app in apps if app.state is wanted]
