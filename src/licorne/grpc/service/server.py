"""The service: a scheduler that resource managers reach by gRPC.

The scheduler and all calls share one process and one loop. gRPC passes messages as bytes, without code generated for
them; `licorne.si` decodes and encodes them. The service `si.v1.Scheduler` speaks both dialects
(docs/spec/scheduler-interface.md, sections 1 and 4); gRPC's own services for health and reflection stand beside it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from licorne.core.api import Incident, PolicyGroups, SchedulerAPI
from licorne.core.base.setting_table import TABLE
from licorne.core.input_log import InputLog
from licorne.grpc.service.checking.checks import Checks
from licorne.grpc.service.checking.prepared import Prepared
from licorne.grpc.service.groups.resolver import GroupSettings, Resolver
from licorne.host.descriptors import shares
from licorne.host.follower import Follower
from licorne.host.guesses import Guesses
from licorne.host.listening import why_not
from licorne.host.log import Log, named, no_log
from licorne.host.memory import Memory
from licorne.host.pace import steady_clock
from licorne.host.secrets import SecurityError
from licorne.host.security import Security, grpc_address
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.server import Web, WebServer
from licorne.host.web.settings import WebSettings
from licorne.si.rpc import DEFAULT_ADDRESS, METHODS, REGISTER, REGISTRATION, RM_ID, SERVICE, Kind
from licorne.state.recording.noting import Both

from .access import TokenCheck, refuse, server_credentials
from .engine import Engine
from .proto import V19
from .sessions import Refused, Sessions, registered_text
from .settings import ServiceSettings
from .streams import End, Stream

HANDSHAKE_MS = 10_000
"""Milliseconds in which a new connection must complete its handshake: TLS, where it is used, and the beginning of HTTP/2.
REST allows the same time for the head of a request."""


class Service:
    """A scheduler served by gRPC, within a running loop.

    Parameters:
        addresses: where to listen, `HOST:PORT` (port 0: a free one) or `unix:PATH`.
        policy_groups, scheduler_settings: `policy_groups` and `settings` of `SchedulerAPI`.
        settings: limits and times of the service itself.
        groups: how groups of users are found where messages name none.
        security: TLS and token.
        web: addresses and access of REST; None: no REST, and then no events, history or metrics are kept.
        recorder: records all inputs of the scheduler; whoever made it closes it. None: nothing is recorded.
        follower: answers questions by REST, from `start` to `stop`; None: each is asked a state dump.
        log: the log; None: nothing is logged.

    `async with Service(...) as service` starts and stops it.
    """

    def __init__(
        self,
        addresses: Sequence[str] = (DEFAULT_ADDRESS,),
        *,
        policy_groups: PolicyGroups | None = None,
        scheduler_settings: Mapping[str, str] | None = None,
        settings: ServiceSettings | None = None,
        groups: GroupSettings | None = None,
        security: Security | None = None,
        web: Web | None = None,
        recorder: InputLog | None = None,
        follower: Follower | None = None,
        log: Log | None = None,
    ) -> None:
        self.settings = settings or ServiceSettings()
        self.security = security or Security()
        self.security.check(addresses)
        self.log = log or no_log()
        self.addresses = [grpc_address(address) for address in addresses]
        """The addresses of the service; after the start with the real port in place of port 0."""
        clock = steady_clock()
        self.api = SchedulerAPI(
            policy_groups=policy_groups,
            settings=scheduler_settings,
            clock=clock,
            on_output=self._on_outputs,
            on_incident=self._passed_over,
            other_settings=True,
        )
        self.checks = Checks(
            lambda: self.settings.request_s, lambda: self.settings.queues, named(self.log, "core.config")
        )
        self.prepared = Prepared(lambda: self.settings.queues, self.checks)
        self.api.cluster.read = self.prepared.read
        self.follower = follower
        self.api.input_log = Both.of(recorder, follower)
        self.groups = Resolver(groups, log=named(self.log, "core.security"))
        self.sessions = Sessions(self.api, self.settings, named(self.log, "core.rmproxy"), self.groups)
        self.engine = Engine(self.api, self.sessions, self.settings, clock, named(self.log, "core.scheduler"))
        self.memory = Memory(self.api.cluster, self.engine.idle_s)
        """The garbage collector; a program that owns its process runs the service within `memory.running()`."""
        self.sessions.gone = self.memory.gone
        self.guesses = Guesses(named(self.log, "core.security"))
        self.monitor: Monitor | None = None
        self.web: WebServer | None = None
        if web is not None:
            self._watch(web, clock, scheduler_settings or {})
        self._streams: dict[Stream, None] = {}
        self._opened = 0
        self._server: Any = None
        self._health = health.aio.HealthServicer()
        self._work: asyncio.Task[None] | None = None
        self.failed = asyncio.Event()
        """Set when the engine has failed, which is a bug: nothing is decided any more."""

    def _on_outputs(self, rm_id: str, outputs: list[Any]) -> None:
        if self.monitor is not None:
            self.monitor.on_outputs(rm_id, outputs)
        self.sessions.deliver(rm_id, outputs)

    def _passed_over(self, incident: Incident) -> None:
        """Log that the scheduler ignored a part of a registration, but not its text, which quotes what was sent."""
        named(self.log, "core.rmproxy").info("parts of a registration ignored", rm=incident.rm_id)

    def _watch(self, web: Web, clock: Callable[[], int], texts: Mapping[str, str]) -> None:
        """Set up REST, metrics, events and history, so that they cover everything from the first registration on."""
        sessions = self.sessions
        backend = Backend(
            self.api,
            clock,
            build_info=sessions.build_info,
            messages=lambda: {rm_id: (one.messages_in, one.messages_out) for rm_id, one in sessions.by_id.items()},
            changed=sessions.wake.set,
            prepare=self.prepared.prepare,
            check=self.checks.report,
            follower=self.follower,
        )
        settings = TABLE.fill(WebSettings(), texts)
        self.monitor = self.engine.monitor = Monitor(backend, str(uuid.uuid4()), settings, self.log)
        log = named(self.log, "core.rest")
        self.web = WebServer(web, self.monitor, self.security, texts, log, self.guesses, self.memory)
        self.engine.waiting = self.web.waiting

    def retune(self, settings: ServiceSettings, texts: Mapping[str, str]) -> None:
        """Change limits, and settings of the scheduler (`scheduler_settings`), while the service runs.

        Connections and buffers that exist keep their sizes. A registered resource manager gets the scheduler's settings
        with the next reload of its configuration.
        """
        self.settings = self.sessions.settings = self.engine.settings = settings
        self.api.settings = dict(texts)
        if self.web is not None:
            self.web.retune(texts, settings.request_s, settings.body_bytes)

    # -- start and end ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to listen, and to decide.

        Raises:
            SecurityError: the service cannot listen on one of its addresses.
        """
        interceptors = [TokenCheck(self.security.token, self.guesses)] if self.security.token else []
        calls = self.settings.streams + 100  # bounded, as each registration that waits for a thread keeps a message
        server = grpc.aio.server(interceptors=interceptors, options=self._options(), maximum_concurrent_rpcs=calls)
        server.add_generic_rpc_handlers((self._handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        credentials = server_credentials(self.security)
        for index, address in enumerate(self.addresses):
            port = self._listen(server, address, credentials)
            if not address.startswith("unix:"):
                self.addresses[index] = f"{address.rpartition(':')[0]}:{port}"
        assert V19.services_by_name["Scheduler"].full_name == SERVICE  # reflection finds it
        await server.start()
        self._server = server
        if self.follower is not None:
            self.follower.start()
        self._work = asyncio.create_task(self.engine.run())
        self._work.add_done_callback(self._engine_ended)
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        self.log.info("listening", addresses=self.addresses, tls=credentials is not None)
        if exposed := self.security.exposed(self.addresses, tokens=bool(self.security.token)):
            self.log.warning("open to everybody, as insecure was said", addresses=exposed)
        if self.web is not None:
            try:
                await self.web.start()
            except SecurityError:
                await self.stop()
                raise

    def _engine_ended(self, work: asyncio.Task[None]) -> None:
        if not work.cancelled():
            self.log.error("the engine failed", exc_info=work.exception())
            self.failed.set()

    @staticmethod
    def _listen(server: Any, address: str, credentials: grpc.ServerCredentials | None) -> int:
        try:
            if credentials is None:
                port: int = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise SecurityError(f"{address}: cannot listen there: {why_not(address)}")
        return port

    def _options(self) -> list[tuple[str, Any]]:
        settings = self.settings
        keepalive_ms = max(int(settings.keepalive_s * 1000), 1)
        return [
            ("grpc.so_reuseport", 0),  # otherwise two services could share a port, unnoticed
            ("grpc.max_receive_message_length", settings.message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_concurrent_streams", settings.streams + 100),  # for each connection
            ("grpc.max_allowed_incoming_connections", max(shares().grpc // len(self.addresses), 1)),  # for each address
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.keepalive_time_ms", keepalive_ms),
            ("grpc.keepalive_timeout_ms", keepalive_ms),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", 5000),
        ]

    async def stop(self) -> None:
        """Stop listening, end all streams, and give calls under way `grace_s` seconds to finish."""
        if self._server is None:
            return
        await self._health.enter_graceful_shutdown()
        if self.web is not None:
            await self.web.stop()
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        for stream in list(self._streams):
            stream.end(End(grpc.StatusCode.UNAVAILABLE, "the scheduler is shutting down"))
        await self._server.stop(self.settings.grace_s)
        for session in self.sessions.by_id.values():
            session.cancel_timer()
            for task in session.taking.values():
                task.cancel()
        if self.follower is not None:
            self.follower.close()
        self.groups.close()
        self._server = None
        self.checks.close()
        self.log.info("ended", allocations=self.engine.decided)

    async def wait(self) -> None:
        """Wait until the gRPC server has ended."""
        if self._server is not None:
            await self._server.wait_for_termination()

    async def __aenter__(self) -> Self:
        """Start the service."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the service."""
        await self.stop()

    # -- calls -----------------------------------------------------------------------------------------

    def _handlers(self) -> grpc.GenericRpcHandler:
        handlers: dict[str, Any] = {
            name: grpc.stream_stream_rpc_method_handler(self._stream_handler(kind)) for name, kind in METHODS.items()
        }
        handlers[REGISTER] = grpc.unary_unary_rpc_method_handler(self._register)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _register(self, data: bytes, context: Any) -> bytes:
        try:
            async with asyncio.timeout(self.settings.request_s):
                await self.prepared.prepare(registered_text(data))
            session = self.sessions.register(data, context.peer())
            context.set_trailing_metadata(((REGISTRATION, session.number),))
        except Refused as refusal:
            refuse(context, refusal.code, refusal.details)
        except TimeoutError:
            text = f"registration of RM failed: it took longer than {self.settings.request_s:g} s"
            refuse(context, grpc.StatusCode.DEADLINE_EXCEEDED, text)
        return b""  # the response is empty, in both dialects

    def _stream_handler(self, kind: Kind) -> Callable[[Any, Any], Awaitable[None]]:
        async def handle(_requests: object, context: Any) -> None:
            if len(self._streams) >= self.settings.streams:
                text = f"there are {len(self._streams)} streams, and no more are allowed"
                refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, text)
                return
            stream = Stream(kind, context, self.sessions.next_number())
            self._streams[stream] = None
            try:
                end = await self._run(stream)
            finally:
                del self._streams[stream]
                self.sessions.closed(stream)
            if end.code is not grpc.StatusCode.OK:
                refuse(context, end.code, end.details)

        return handle

    async def _run(self, stream: Stream) -> End:
        said = {key: value for key, value in stream.context.invocation_metadata() or () if isinstance(value, str)}
        if RM_ID in said:
            self.sessions.bind(stream, said[RM_ID], said.get(REGISTRATION, ""))
        return await stream.run(self.sessions.take)
