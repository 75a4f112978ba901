"""The REST interface as an ASGI application: every request, from its first byte to its answer.

The answers themselves are made in `handlers`. This module has what all endpoints share: routing, authorisation, limits,
compression, the original's headers, and the rule that a client never sees more of a failure than a plain error object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from licorne.host.guesses import Guesses
from licorne.host.web.monitor import Monitor

from .access import Access, RequestLimits
from .answers import cors, failure, redirect, wants_gzip
from .endpoints import ENDPOINTS
from .errors import RestError
from .gate import Gate, peer
from .handlers import Handlers
from .routing import Call, Endpoint, Match, Routes, decoded

DEBUG = "/debug/"
STREAM_PATH = "/ws/v1/events/stream"
GZIP_MIN = 1400
OnChange = Callable[..., None]
OnError = Callable[[str, Exception], None]
Pages = Callable[[Handlers, Gate], Sequence[Endpoint]]


def no_pages(_handlers: Handlers, _gate: Gate) -> Sequence[Endpoint]:
    """Return no endpoints: the default of `pages`."""
    return ()


def make_app(
    monitor: Monitor,
    *,
    access: Access | None = None,
    limits: RequestLimits | None = None,
    guesses: Guesses | None = None,
    old_queue_names: bool = False,
    pages: Pages = no_pages,
    on_change: OnChange = lambda **_: None,
    on_error: OnError = lambda _path, _error: None,
) -> RestApp:
    """Return the REST interface of a monitored scheduler.

    Parameters:
        monitor: watches the scheduler; its `run` must be running for history, health and rates.
        access: the accepted tokens; without any, every client may do everything.
        limits: limits of requests.
        guesses: counts refused requests by address, and slows down clients that guess tokens.
        old_queue_names: whether metrics are also exported under the names of releases up to 1.3.
        pages: returns the endpoints of pages for people, such as `licorne.host.web.page.past.live_pages`.
        on_change: called when a client wanted to change something: who, from where, and whether it was done.
        on_error: called with (path, exception) when an endpoint fails, which is a bug; the client sees a plain 500.
    """
    handlers = Handlers(monitor, limits or RequestLimits(), old_queue_names=old_queue_names)
    gate = Gate(access or Access(), guesses or Guesses())
    dispatcher = Dispatcher(handlers, gate, (*ENDPOINTS, *pages(handlers, gate)), on_change, on_error)
    return RestApp(handlers, dispatcher)


class Dispatcher:
    """The ASGI application below compression: routes, authorises and answers requests."""

    def __init__(
        self, handlers: Handlers, gate: Gate, endpoints: Sequence[Endpoint], on_change: OnChange, on_error: OnError
    ) -> None:
        self._handlers = handlers
        self._gate = gate
        self._on_change = on_change
        self._on_error = on_error
        self._routes = Routes(endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or take part in the start and end of the server (ASGI lifespan)."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        response = await self._answer(request)
        if scope["method"] == "HEAD":
            response.body = b""
        response.headers["X-Content-Type-Options"] = "nosniff"
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        limits = self._handlers.limits
        raw_path = _raw_path(request.scope)
        query = request.scope.get("query_string", b"")
        if len(raw_path) + len(query) > limits.path_chars:
            return failure(414, f"The path and query have more than {limits.path_chars} characters")
        match = self._routes.find(raw_path)
        if match is None:
            return PlainTextResponse("404 page not found\n", 404)
        if match.redirect:
            return redirect(match.redirect + (f"?{query.decode('latin-1')}" if query else ""))
        method = request.method
        if method == "OPTIONS":
            return Response(b"", 200, {"Allow": match.allow})
        endpoint = match.by_method.get(method)
        if endpoint is None:
            return PlainTextResponse("Method Not Allowed\n", 405, {"Allow": match.allow})
        response = await self._guarded(request, endpoint, match)
        # In the original a redirect has no such headers, but its target has; pages are for nobody else's.
        if response.status_code != 301 and endpoint.refused is None:
            for name, value in self._cors(raw_path, match.allow).items():
                response.headers.setdefault(name, value)
        return response

    async def _guarded(self, request: Request, endpoint: Endpoint, match: Match) -> Response:
        limits = self._handlers.limits
        try:
            # Before the body is read, and outside of the time limit, as a wrong token may have to pause.
            await self._gate.check(request, endpoint)
            pairs = {name: decoded(part) for name, part in match.raw.items()}
            call = Call(request, {n: both[0] for n, both in pairs.items()}, {n: both[1] for n, both in pairs.items()})
            async with asyncio.timeout(limits.request_s if endpoint.limited else None):
                call.body = await _body(request, limits.body_bytes)
                response = await endpoint.handler(self._handlers, call)
        except RestError as error:
            return await _refused(request, endpoint, error)
        except TimeoutError:
            return await _refused(
                request, endpoint, RestError(503, f"The request took longer than {limits.request_s:g} s")
            )
        except ClientDisconnect:
            return failure(400, "The client has gone")
        except Exception as error:  # noqa: BLE001  a bug: the client learns only that there is one
            self._on_error(endpoint.path, error)
            return await _refused(request, endpoint, RestError(500, "Internal error"))
        if endpoint.role == "admin":
            by = "a token" if self._gate.access.wanted else "no token"
            self._on_change(path=endpoint.path, peer=peer(request)[:80], by=by, applied=response.status_code == 200)
        return response

    def _cors(self, path: str, methods: str) -> dict[str, str]:
        """Return the headers that let any page read the answer, as in the original; below `/debug/` only if tokens are required."""
        return {} if path.startswith(DEBUG) and not self._gate.access.wanted else cors(methods)


class RestApp:
    """The whole application. Large answers are gzipped if the client accepts that, except streams of events.

    `handlers`: make the answers; their `limits` may be replaced at any time, and `ending` ends the streams of pages.
    """

    def __init__(self, handlers: Handlers, app: ASGIApp) -> None:
        self.handlers = handlers
        self._app = app
        self._gzip = GZipMiddleware(app, minimum_size=GZIP_MIN, compresslevel=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with compression if the client accepts it."""
        if scope["type"] == "http" and scope["path"] != STREAM_PATH and wants_gzip(scope):
            await self._gzip(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _body(request: Request, most: int) -> bytes:
    """Read the body.

    Raises:
        RestError: 413, it is longer than `most` bytes.
    """
    headers = request.headers
    length = headers.get("content-length", "")
    if not length and "transfer-encoding" not in headers:
        return b""  # by HTTP/1.1, a request with neither header has no body
    if length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > most):
        raise RestError(413, f"The body is longer than {most} bytes")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise RestError(413, f"The body is longer than {most} bytes")
    return bytes(body)


async def _refused(request: Request, endpoint: Endpoint, error: RestError) -> Response:
    """Return an error object, or what a page shows instead."""
    if endpoint.refused is not None:
        response = await endpoint.refused(request, error)
    else:
        response = failure(error.status, error.message)
        if error.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
    response.headers.update(error.headers)
    return response


def _raw_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
