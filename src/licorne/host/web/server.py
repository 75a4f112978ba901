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
from collections.abc import Mapping
from email.utils import formatdate
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

from .http import HEADER_BYTES, Connections, Protocol, guarded, of_interest
from .monitor import Monitor
from .page.past import live_pages
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
        """Refuse addresses that are none, or open to clients that are neither local nor authenticated; raises a SecurityError."""
        what = "tokens (--rest-token-file) or certificates of clients"
        security.refuse_exposed(self.addresses, what, tokens=self.access.wanted)


class WebServer:
    """A REST server, from `start` to `stop`.

    uvicorn's own server is not used, as it sets no time limit for the TLS handshake; only its protocol is, in `Protocol`.
    """

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
        self._connections_max = shares().rest  # further ones are answered 503
        self.connections = Connections(self._connections_max, left=memory.connection_ended)
        self._web = web
        self.wants_token = web.access.wanted
        self._monitor = monitor
        self._security = security
        self._guesses = guesses
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []
        self._state = uvicorn.server.ServerState()
        self._listening: list[asyncio.Server] = []
        self.addresses: list[str] = []
        """The addresses it listens on, known once it has started."""

    def waiting(self) -> bool:
        """Whether a client waits for an answer."""
        return self.connections.waiting > 0

    async def start(self) -> None:
        """Listen, and start the monitor.

        Raises:
            SecurityError: an address is not available, or a certificate is not usable.
        """
        config = uvicorn.Config(
            guarded(self._app),
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
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
        config.load()
        logging.getLogger("uvicorn.error").addFilter(of_interest)
        config.ssl = self._security.context(self._guesses)
        self.addresses = await self._listen(config)
        self._tasks = [asyncio.create_task(self._monitor.run()), asyncio.create_task(self._date())]
        self._tasks[0].add_done_callback(self._watch_ended)
        self._log.info("listening for REST", addresses=self.addresses, tls=config.ssl is not None)
        if exposed := self._security.exposed(self.addresses, tokens=self.wants_token):
            self._log.warning("open to everybody, as insecure was said", addresses=exposed, permits="reading")
        elif self._security.token and not self.wants_token and not self._security.client_ca:
            text = "gRPC asks for a token and REST for none, so whoever reaches REST may read and change everything"
            self._log.warning(f"{text}; rest-token-file gives it tokens", addresses=self.addresses)

    async def _listen(self, config: uvicorn.Config) -> list[str]:
        """Listen on all addresses, and return them with their ports."""
        limit_s = self.connections.head_s if config.ssl else None

        def http(state: dict[str, Any]) -> Any:
            return config.http_protocol_class(config=config, server_state=self._state, app_state=state)  # type: ignore[call-arg]

        found: list[str] = []
        try:
            for given in self._web.addresses:
                one = listen(grpc_address(given))
                server = await asyncio.get_running_loop().create_server(
                    partial(Protocol, http, self.connections),
                    sock=one,
                    backlog=config.backlog,
                    ssl=config.ssl,
                    ssl_handshake_timeout=limit_s,
                )
                self._listening.append(server)
                found.append(_shown(one, given))
        except OSError as error:
            for server in self._listening:
                server.close()
            raise SecurityError(f"{given}: cannot listen there: {reason(error)}") from None
        return found

    async def _date(self) -> None:
        """Keep the date that answers have."""
        while True:
            self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
            await asyncio.sleep(1)

    def retune(self, texts: Mapping[str, str], request_s: float, body_bytes: int) -> None:
        """Apply changed settings at run time; `texts`: those of the scheduler, other keys mean nothing."""
        limits = SCHEDULER.fill(self._web.limits, texts)
        self._app.handlers.limits = msgspec.structs.replace(limits, request_s=request_s, body_bytes=body_bytes)
        settings = SCHEDULER.fill(WebSettings(), texts)
        self._monitor.retune(settings)
        if not settings.tracks_events:
            self._monitor.ring.end_all(TRACKING_DISABLED)

    def _watch_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._log.error("history and health checks have ended", exc_info=task.exception())

    async def stop(self) -> None:
        """Stop listening, and end the requests and streams under way: they get `GRACE_S` seconds, an incomplete one none."""
        if not self._listening:
            return
        for task in self._tasks:
            task.cancel()
        self._monitor.ring.end_all(SHUTTING_DOWN)
        self._app.handlers.ending.set()
        for server in self._listening:
            server.close()
        for one in [one for one in self.connections.open if one.reading]:
            one.cut()
        for http in list(self._state.connections):
            http.shutdown()
        for _ in range(GRACE_S * 20):
            if not self.connections.open:
                break
            await asyncio.sleep(0.05)
        for one in list(self.connections.open):
            one.cut()
        if self._state.tasks:
            _, late = await asyncio.wait(self._state.tasks, timeout=1)
            for unended in late:
                unended.cancel()
        await asyncio.wait(self._tasks)
        for address in self.addresses:
            if address.startswith("unix:"):
                with contextlib.suppress(OSError):
                    os.unlink(address.removeprefix("unix:"))  # noqa: PTH108
        self._listening = []


def _shown(one: socket.socket, given: str) -> str:
    address = grpc_address(given)
    if address.startswith("unix:"):
        return address
    return f"{address.rpartition(':')[0]}:{one.getsockname()[1]}"
