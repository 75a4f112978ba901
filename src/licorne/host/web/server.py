"""The HTTP server of REST and metrics, in the event loop of the service.

The application itself is made by `licorne.host.web.rest`; this module decides on which addresses it listens and which of them
are safe. The default is loopback. Any other address requires TLS and tokens (or client certificates), unless the operator
explicitly allows insecure operation (`insecure`), in which nothing can be changed without a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import uvicorn

from licorne.core.base.setting_table import TABLE as SCHEDULER
from licorne.host.descriptors import BACKLOG, shares
from licorne.host.guesses import Guesses
from licorne.host.listening import listen, reason
from licorne.host.log import Log
from licorne.host.memory import Memory
from licorne.host.secrets import SecurityError
from licorne.host.security import Security, grpc_address
from licorne.host.setting_table import REST_ADDRESS, TABLE
from licorne.host.web.rest.errors import SHUTTING_DOWN, TRACKING_DISABLED

from .courtesy import Waiting, quiet
from .http import HEADER_BYTES, Connections, Protocol, guarded, of_interest
from .monitor import Monitor
from .page.routes import live_pages
from .rest import Access, RequestLimits, make_app
from .rest.app import no_pages
from .settings import WebSettings

GRACE_S = 2
"""Seconds that answers under way may take when the service ends."""


class Web(msgspec.Struct, frozen=True, kw_only=True):
    """What the REST server of a service offers: addresses, tokens, limits.

    `addresses`: each `HOST:PORT` (port 0: any free port) or `unix:PATH`. `access`: the accepted tokens. `old_queue_names`:
    metrics of queues are also exported under the names of old releases. `page`: `on` where there are pages for people, else `off`.
    """

    addresses: tuple[str, ...] = (REST_ADDRESS,)
    access: Access = Access()
    limits: RequestLimits = RequestLimits()
    old_queue_names: bool = TABLE.field("licorne.old-queue-metrics")
    page: str = TABLE.field("licorne.page")

    def check(self, security: Security) -> None:
        """Refuse addresses that would be open to strangers.

        Raises:
            SecurityError: an address beyond loopback lacks TLS, or neither tokens nor client certificates are required.
        """
        exposed = security.exposed(self.addresses, tokens=self.access.wanted)
        if not exposed or security.insecure:
            return
        if not security.certificate:
            raise SecurityError(f"{exposed[0]} is beyond loopback: give TLS a certificate and a key, or say insecure")
        raise SecurityError(
            f"{exposed[0]} is beyond loopback: ask for tokens (rest-token-file) or certificates of clients, or say insecure"
        )


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the owner of the loop and limits its connections.

    `startup` sets what the method of uvicorn sets, so pyproject.toml excludes versions of uvicorn in which that may differ.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._connections = connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen. uvicorn's own method is replaced because it sets no time limit for the TLS handshake."""
        config, loop = self.config, asyncio.get_running_loop()
        await self.lifespan.startup()

        def http(state: dict[str, Any]) -> Any:
            made = config.http_protocol_class
            return made(config=config, server_state=self.server_state, app_state=state, _loop=loop)  # type: ignore[call-arg]

        limit_s = self._connections.head_s if config.ssl else None
        self.servers = [
            await loop.create_server(
                partial(Protocol, http, self._connections),
                sock=one,
                backlog=config.backlog,
                ssl=config.ssl,
                ssl_handshake_timeout=limit_s,
            )
            for one in sockets or ()
        ]
        self.started = True
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening; answers under way get `GRACE_S` seconds, then their connections are closed.

        A connection whose request is incomplete is closed at once.
        """
        for one in [one for one in self._connections.open if one.reading]:
            one.cut()
        cutting = asyncio.get_running_loop().call_later(GRACE_S, self._cut)
        await super().shutdown(sockets)
        cutting.cancel()

    def _cut(self) -> None:
        for one in list(self._connections.open):
            one.cut()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


class WebServer:
    """A REST server, from `start` to `stop`."""

    def __init__(
        self,
        web: Web,
        monitor: Monitor,
        security: Security,
        texts: Mapping[str, str],
        log: Log,
        guesses: Guesses,
        memory: Memory,
    ) -> None:
        web.check(security)
        exposed = security.exposed(web.addresses, tokens=web.access.wanted)
        self._app = make_app(
            monitor,
            access=msgspec.structs.replace(web.access, read_only=bool(exposed)),
            limits=SCHEDULER.fill(web.limits, texts),
            guesses=guesses,
            old_queue_names=web.old_queue_names,
            pages=live_pages if web.page == "on" else no_pages,
            on_change=lambda **fields: log.warning("a change by REST", **fields),
            on_error=lambda path, error: log.error("a REST request failed", path=path, exc_info=error),
        )
        self._counted = Waiting(self._app)
        self._connections_max = shares().rest  # further ones are answered 503
        self.connections = Connections(self._connections_max, left=memory.connection_ended)
        self._web = web
        self.wants_token = web.access.wanted
        self._monitor = monitor
        self._security = security
        self._guesses = guesses
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []
        self._server: _Server | None = None
        self.addresses: list[str] = []
        """The addresses it listens on, known once it has started."""

    def waiting(self) -> bool:
        """Whether a client waits for an answer."""
        return self._counted.count > 0

    async def start(self) -> None:
        """Listen, and start the monitor.

        Raises:
            SecurityError: an address is not available, or a certificate is not usable.
        """
        config = uvicorn.Config(
            quiet(guarded(self._counted)),
            http="h11",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=self._connections_max,
            backlog=BACKLOG,
            timeout_keep_alive=self.connections.idle_s,
            timeout_graceful_shutdown=GRACE_S + 1,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        config.load()
        logging.getLogger("uvicorn.error").addFilter(of_interest)
        config.ssl = self._security.context(self._guesses)
        sockets = _sockets(self._web.addresses)
        self.addresses = [_shown(one, given) for one, given in zip(sockets, self._web.addresses, strict=True)]
        self._server = _Server(config, self.connections)
        self._tasks = [
            asyncio.create_task(self._server.serve(sockets=sockets)),
            asyncio.create_task(self._monitor.run()),
        ]
        self._tasks[1].add_done_callback(self._watch_ended)
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait([ready, self._tasks[0]], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not self._server.started:
            raise SecurityError(f"{', '.join(self._web.addresses)}: cannot listen there")
        self._log.info("listening for REST", addresses=self.addresses, tls=config.ssl is not None)
        if exposed := self._security.exposed(self.addresses, tokens=self.wants_token):
            self._log.warning("open to everybody, as insecure was said", addresses=exposed, permits="reading")
        elif self._security.token and not self.wants_token and not self._security.client_ca:
            text = "gRPC asks for a token and REST for none, so whoever reaches REST may read and change everything"
            self._log.warning(f"{text}; rest-token-file gives it tokens", addresses=self.addresses)

    def retune(self, texts: Mapping[str, str], request_s: float, body_bytes: int) -> None:
        """Apply changed settings at run time; `texts`: those of the scheduler, other keys mean nothing."""
        limits = SCHEDULER.fill(self._web.limits, texts)
        self._app.limits = msgspec.structs.replace(limits, request_s=request_s, body_bytes=body_bytes)
        settings = SCHEDULER.fill(WebSettings(), texts)
        self._monitor.retune(settings)
        if not settings.tracks_events:
            self._monitor.ring.end_all(TRACKING_DISABLED)

    def _watch_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._log.error("history and health checks have ended", exc_info=task.exception())

    async def stop(self) -> None:
        """Stop listening, and end the requests and streams under way."""
        if self._server is None:
            return
        self._tasks[1].cancel()
        self._monitor.ring.end_all(SHUTTING_DOWN)
        self._server.should_exit = True
        await asyncio.wait(self._tasks)
        for address in self.addresses:
            if address.startswith("unix:"):
                with contextlib.suppress(OSError):
                    os.unlink(address.removeprefix("unix:"))  # noqa: PTH108
        self._server = None


def _sockets(addresses: Sequence[str]) -> list[socket.socket]:
    made: list[socket.socket] = []
    try:
        for given in addresses:
            made.append(listen(grpc_address(given)))
    except OSError as error:
        for one in made:
            one.close()
        raise SecurityError(f"{given}: cannot listen there: {reason(error)}") from None
    return made


def _shown(one: socket.socket, given: str) -> str:
    address = grpc_address(given)
    if address.startswith("unix:"):
        return address
    return f"{address.rpartition(':')[0]}:{one.getsockname()[1]}"


__all__ = ["Web", "WebServer"]
