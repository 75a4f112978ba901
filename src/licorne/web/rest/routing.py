"""From a path to its endpoint, as the original does it (docs/spec/rest-api.md, section 1), and a little kinder.

Fixed parts count with their letter case, but another case, or a slash at the end, is answered with a redirect to the
right path. A variable part is decoded, and then decoded again as query text, since the original wants `%` escaped twice;
where that changes nothing, once is enough: `a%2Fb` and `a%252Fb` both mean `a/b`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from .access import Role

if TYPE_CHECKING:
    from .handlers import Handlers


class Call(msgspec.Struct):
    """One request that has found its endpoint: the request, its variables, and these decoded only once."""

    request: Request
    variables: Mapping[str, str]
    once: Mapping[str, str]
    body: bytes = b""

    def query(self, name: str) -> str:
        """A parameter of the query; empty if it is not there."""
        return self.request.query_params.get(name, "")


Handler = Callable[["Handlers", Call], Awaitable[Response]]


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of the query, for the OpenAPI document."""

    name: str
    text: str
    schema: Mapping[str, Any]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A method and a path, what answers it, and what is to be said of it in the OpenAPI document.

    `result` is the type of a successful answer, None where it is text; `statuses` are those of error objects.
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


class Match(msgspec.Struct, frozen=True):
    """What a path means: the endpoints by method and the raw variables, or where it should have gone.

    `allow` names the methods of the path, for the header.
    """

    by_method: Mapping[str, Endpoint] = {}
    raw: Mapping[str, str] = {}
    redirect: str = ""
    allow: str = ""


class Routes:
    """All endpoints, found by path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._by_length: dict[int, dict[tuple[str, ...], dict[str, Endpoint]]] = {}
        for endpoint in self.endpoints:
            parts = tuple(endpoint.path.split("/")[1:])
            self._by_length.setdefault(len(parts), {}).setdefault(parts, {})[endpoint.method] = endpoint

    def find(self, raw_path: str) -> Match | None:
        """The endpoints of a path as it was sent; None if there are none."""
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
    """A variable part decoded as the original does it, and once only."""
    once = unquote(raw, errors="replace")
    return unquote_plus(once, errors="replace"), once


__all__ = ["Call", "Endpoint", "Match", "Parameter", "Routes", "decoded"]
