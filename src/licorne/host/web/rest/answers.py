"""Turn objects into HTTP answers: JSON in pieces, made in small steps, so that a large answer does not hold the loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from html import escape
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Scope

from licorne.host.pace import paced
from licorne.si.rest_objects import Failure

JSON = "application/json; charset=UTF-8"
WHOLE_MAX = 256 << 10
"""Bytes up to which an answer is sent in one piece; larger ones are streamed in pieces of about this size."""

encode = msgspec.json.Encoder(enc_hook=str).encode


def cors(methods: str) -> dict[str, str]:
    """Return the headers by which the original permits pages of other origins to read an answer."""
    return {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
    }


def json_response(body: object, status: int = 200) -> Response:
    """Return an object as a JSON answer."""
    return Response(encode(body) + b"\n", status, media_type=JSON)


def failure(status: int, message: str) -> Response:
    """Return an error object as an answer."""
    return json_response(Failure(status_code=status, message=message, description=message), status)


def redirect(target: str) -> Response:
    """Return a permanent redirect to the right path."""
    body = f'<a href="{escape(target)}">Moved Permanently</a>.\n\n'.encode()
    return Response(body, 301, {"Location": target}, media_type="text/html; charset=utf-8")


def json_list(items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """Yield the pieces of a JSON list, given the pieces of each item."""
    yield b"["
    first = True
    for pieces in items:
        if not first:
            yield b","
        first = False
        yield from pieces
    yield b"]"


def spliced(head: bytes, parts: Iterable[tuple[str, Iterator[bytes]]]) -> Iterator[bytes]:
    """Yield an encoded object extended by further members, each given as its name and the pieces of its value."""
    yield head[:-1]
    comma = b"" if head == b"{}" else b","
    for name, pieces in parts:
        yield comma + encode(name) + b":"
        comma = b","
        yield from pieces
    yield b"}"


async def in_pieces(pieces: Iterable[bytes]) -> Response:
    """Return an answer made of pieces: sent at once if it is small, else streamed while it is made."""
    made = _gathered(pieces)
    first = await anext(made, b"")
    if len(first) < WHOLE_MAX:
        return Response(first + b"\n", media_type=JSON)
    return StreamingResponse(_all(first, made), media_type=JSON)


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
    yield b"\n"


async def _gathered(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Join pieces to chunks of at least `WHOLE_MAX` bytes, in small steps; yield the chunks."""
    waiting: list[bytes] = []
    size = 0
    async for piece in paced(pieces):
        waiting.append(piece)
        size += len(piece)
        if size >= WHOLE_MAX:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def wants_gzip(scope: Scope) -> bool:
    """Whether the client accepts compressed answers."""
    for name, value in scope["headers"]:
        if name == b"accept-encoding":
            for item in value.decode("latin-1").lower().split(","):
                coding, _, rest = item.strip().partition(";")
                if coding.strip() == "gzip" and rest.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
                    return True
    return False


def encoded(item: Any) -> Iterator[bytes]:
    """Yield one object, encoded, as a single piece."""
    yield encode(item)
