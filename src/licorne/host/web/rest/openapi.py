"""The OpenAPI 3.1 document of the REST interface.

It is generated from the list of endpoints and from the types of their answers: summaries come from `Endpoint`, descriptions
of objects from the docstrings in `objects`. So it cannot disagree with what is served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import licorne
from licorne.si import rest_objects as objects

from .routing import Endpoint

Map = dict[str, Any]
_VARIABLE = re.compile(r"\{(\w+)\}")
_REASONS = {
    400: "A name or number is not legal",
    401: "A token is needed",
    403: "The token's role does not allow it",
    404: "There is no such thing",
    409: "Refused: the scheduler would not take it",
    413: "The body is too long",
    414: "The path is too long",
    500: "Not available",
    429: "Too many wrong tokens came from this address",
    503: "Busy",
}
_PART = "[a-zA-Z0-9_:#/@-]{1,64}"
_VARIABLES: dict[str, tuple[str, Map]] = {
    "partition": ("Short name, or [rm]name where several resource managers have a partition of this name.", {}),
    "queue": ("Full path. What is escaped is decoded twice.", {"pattern": rf"^{_PART}(\.{_PART})*$"}),
    "state": ("Letter case makes no difference.", {"enum": ["active", "completed", "rejected"]}),
    "user": ("", {"pattern": "^[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?$"}),
    "group": ("", {"pattern": "^[_a-zA-Z][a-zA-Z0-9:_.-]*$"}),
}
_PREFIX = "#/components/schemas/"
_INTRODUCTION = """\
What a scheduler knows, as JSON. Fields are left out where they are zero, empty or false, unless they are listed as
required. Memory is in bytes, vcore in thousandths, times are Unix nanoseconds unless a type says otherwise. Integers have
64 bits."""


def document(endpoints: Iterable[Endpoint]) -> Map:
    """Return the OpenAPI document."""
    endpoints = list(endpoints)
    types = [endpoint.result for endpoint in endpoints if endpoint.result is not None]
    shapes, components = msgspec.json.schema_components([*types, objects.Failure], ref_template=_PREFIX + "{name}")
    of_type = dict(zip(map(repr, [*types, objects.Failure]), shapes, strict=True))
    for component in components.values():
        if component.get("title") and component.get("type") == "object":
            component.pop("title")
    paths: dict[str, Map] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, of_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "licorne", "version": licorne.__version__, "description": _INTRODUCTION},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(endpoint: Endpoint, of_type: dict[str, Map]) -> Map:
    parts = [part.strip("{}") for part in endpoint.path.split("/")[1:]]
    operation: Map = {
        "operationId": "-".join([endpoint.method.lower(), *parts]),
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint, of_type),
    }
    if endpoint.body:
        text = "A queue configuration (queues.yaml)"
        operation["requestBody"] = {"description": text, "content": {endpoint.body: {"schema": {}}}}
    return operation


def _parameters(endpoint: Endpoint) -> list[Map]:
    found: list[Map] = []
    for name in _VARIABLE.findall(endpoint.path):
        text, more = _VARIABLES.get(name, ("", {}))
        if name == "state" and "{queue}" in endpoint.path:
            more = {"enum": ["active"]}
        schema: Map = {"type": "string", "minLength": 1, **more}
        found.append({"name": name, "in": "path", "required": True, "schema": schema})
        if text:
            found[-1]["description"] = text
    return found + [
        {"name": parameter.name, "in": "query", "description": parameter.text, "schema": dict(parameter.schema)}
        for parameter in endpoint.query
    ]


def _responses(endpoint: Endpoint, of_type: dict[str, Map]) -> Map:
    found: Map = {}
    if endpoint.media:
        shape = {"type": "string"} if endpoint.result is None else of_type[repr(endpoint.result)]
        media = {endpoint.media: {"schema": shape}}
        if endpoint.path == "/ws/v1/config" and endpoint.method == "GET":
            media["application/x-yaml"] = {"schema": {}}
        found["200"] = {"description": endpoint.summary, "content": media}
    elif endpoint.summary.startswith("Moved"):
        found["301"] = {"description": endpoint.summary}
    if endpoint.method in ("PUT", "POST") and endpoint.role == "admin":
        shape = of_type[repr(endpoint.result)]
        found["409"] = {"description": _REASONS[409], "content": {"application/json": {"schema": shape}}}
    failure = {"application/json": {"schema": of_type[repr(objects.Failure)]}}
    named = (400, 404) if "{partition}" in endpoint.path else ()
    for status in sorted({*endpoint.statuses, *named, 401, 403, 414, 429, 503}):
        found[str(status)] = {"description": _REASONS[status], "content": failure}
    return found
