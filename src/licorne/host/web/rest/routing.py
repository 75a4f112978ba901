"""Find the endpoint of a path by the original's rules (docs/spec/rest-api.md, section 1), slightly more tolerant.

Fixed parts of a path are case-sensitive, but a path in another case, or with a slash at the end, is redirected to the
right one. A variable part is decoded, and then decoded again as query text, since the original wants `%` escaped twice;
where the second decoding changes nothing, escaping once is enough: `a%2Fb` and `a%252Fb` both mean `a/b`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from .access import Role
from .errors import RestError

if TYPE_CHECKING:
    from .handlers import Handlers


class Call(msgspec.Struct):
    """A request whose endpoint is known: `variables` of the path as the original decodes them, `once`: decoded only once."""

    request: Request
    variables: Mapping[str, str]
    once: Mapping[str, str]
    body: bytes = b""

    def query(self, name: str) -> str:
        """Return a parameter of the query; empty if it is missing."""
        return self.request.query_params.get(name, "")


Handler = Callable[["Handlers", Call], Awaitable[Response]]
Refused = Callable[[Request, RestError], Awaitable[Response]]


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of the query, as the OpenAPI document describes it."""

    name: str
    text: str
    schema: Mapping[str, Any]


class Endpoint(msgspec.Struct, frozen=True):
    """A method and a path with the handler that answers them, and their description for the OpenAPI document.

    `result` is the type of a successful answer, None for text; `statuses` are the possible statuses of error objects besides
    those of all endpoints and of all with a partition in their path; `limited`: the answer must begin within
    `RequestLimits.request_s`. `refused`: shows a refusal to people in place of an error object; such an endpoint is a page,
    whose answer no page of another server may read.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    result: Any = None
    media: str = "application/json"
    query: tuple[Parameter, ...] = ()
    statuses: tuple[int, ...] = ()
    body: str = ""
    role: Role = "read"
    limited: bool = True
    refused: Refused | None = None


class Match(msgspec.Struct, frozen=True):
    """The result of looking up a path: its endpoints by method and its raw variables, or the right path to redirect to.

    `allow` lists the methods of the path, for the `Allow` header.
    """

    by_method: Mapping[str, Endpoint] = {}
    raw: Mapping[str, str] = {}
    redirect: str = ""
    allow: str = ""


class Routes:
    """All endpoints, indexed by the number of parts of their paths."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._by_length: dict[int, dict[tuple[str, ...], dict[str, Endpoint]]] = {}
        for endpoint in self.endpoints:
            parts = tuple(endpoint.path.split("/")[1:])
            self._by_length.setdefault(len(parts), {}).setdefault(parts, {})[endpoint.method] = endpoint

    def find(self, raw_path: str) -> Match | None:
        """Return the endpoints of a path as it was sent; None if it has none."""
        parts = raw_path.split("/")[1:]
        found = self._match(parts, exact=True)
        if found is not None:
            return found
        if len(parts) > 1 and parts[-1] == "":
            parts = parts[:-1]
        return self._match(parts, exact=False)

    def _match(self, parts: list[str], *, exact: bool) -> Match | None:
        for shape, by_method in self._by_length.get(len(parts), {}).items():
            raw: dict[str, str] = {}
            right: list[str] = []
            for wanted, part in zip(shape, parts, strict=True):
                if wanted.startswith("{"):
                    raw[wanted[1:-1]] = part
                    right.append(part)
                elif part == wanted or (not exact and part.lower() == wanted.lower()):
                    right.append(wanted)
                else:
                    break
            else:
                if not exact:
                    return Match(redirect="/" + "/".join(right))
                return Match(by_method, raw, allow=", ".join([*sorted(by_method), "OPTIONS"]))
        return None


def decoded(raw: str) -> tuple[str, str]:
    """Return a variable part of a path decoded as the original does (twice), and decoded once."""
    once = unquote(raw, errors="replace")
    return unquote_plus(once, errors="replace"), once
