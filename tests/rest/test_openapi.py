"""The OpenAPI document: it is complete, its types are those of the answers, and any request that it allows is answered."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.examples import scaled
from licorne.host.web.rest.endpoints import ENDPOINTS
from rest.world import CONFIG, World, busy, run

EXAMPLES = int(os.environ.get("LICORNE_REST_REQUESTS") or scaled(400))
NAMES = {
    "partition": ["default", "[mycluster]default", "none"],
    "queue": ["root", "root.a", "root.b", "root.b.dyn", "root.none", "ROOT.A"],
    "application": ["app-1", "app-2", "none"],
    "node": ["n1", "none"],
    "user": ["alice", "bob", "none"],
    "group": ["dev", "none"],
    "state": ["active", "completed", "rejected", "ACTIVE"],
    "name": ["app-1", "k3", "none"],
    "namespace": ["default", "none"],
    "pod": ["k3", "none"],
}
STREAM = "/ws/v1/events/stream"
QUESTIONS = ("/api/v1/",)
"""Answered in a process of its own, which takes a second: asked in test_questions.py, and not at random."""


@pytest.fixture(scope="module")
def world() -> World:
    world = busy().application("late", user="")
    world.release("k2", "app-1")
    world.schedule(61.0)
    world.monitor.tick()
    run(world.monitor.check_health())
    return world


@pytest.fixture(scope="module")
def document(world: World) -> Any:
    return world.get("/openapi.json")


def test_the_document_lists_all_endpoints(document: Any) -> None:
    assert document["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert listed == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
    for path, methods in document["paths"].items():
        for operation in methods.values():
            variables = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert variables == re.findall(r"\{(\w+)\}", path)


def test_every_reference_leads_somewhere(document: Any) -> None:
    text = msgspec.json.encode(document).decode()
    for name in re.findall(r'"#/components/schemas/([^"]+)"', text):
        assert name in document["components"]["schemas"]


def _tags(document: Any, schema: Any) -> list[str]:
    """Return the tags by which a union knows an object of this schema."""
    of = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    found: list[str] = of.get("properties", {}).get("type", {}).get("enum", [])
    return found


def conforms(document: Any, schema: Any, value: Any, where: str = "") -> None:
    """Check a value against a schema, as far as these schemas go; unknown fields are a fault too."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        kinds = schema["anyOf"]
        tag = value.get("type") if isinstance(value, dict) else None
        tagged = [s for s in kinds if "$ref" in s and tag is not None and tag in _tags(document, s)]
        schema = next((s for s in tagged or kinds if (s.get("type") == "null") == (value is None)), kinds[0])
        conforms(document, schema, value, where)
        return
    kind = schema.get("type")
    python = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    if kind in python:
        assert isinstance(value, python[kind]), f"{where}: {value!r} is no {kind}"
    if kind == "array":
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            of = first[number] if number < len(first) else schema.get("items", {})
            conforms(document, of, item, f"{where}[{number}]")
    if kind == "object":
        properties = schema.get("properties")
        if properties is None:
            inner = schema.get("additionalProperties")
            for key, item in value.items():
                conforms(document, inner if isinstance(inner, dict) else {}, item, f"{where}.{key}")
            return
        assert set(schema.get("required", [])) <= set(value), where
        for key, item in value.items():
            assert key in properties, f"{where}.{key}"
            conforms(document, properties[key], item, f"{where}.{key}")


def _paths(path: str) -> list[str]:
    found = [path]
    for name in re.findall(r"\{(\w+)\}", path):
        found = [one.replace(f"{{{name}}}", quote(value, safe="[]")) for one in found for value in NAMES[name]]
    return found


@pytest.mark.parametrize("endpoint", [e for e in ENDPOINTS if e.path != STREAM], ids=lambda e: f"{e.method} {e.path}")
def test_answers_have_the_documented_types(world: World, document: Any, endpoint: Any) -> None:
    operation = document["paths"][endpoint.path][endpoint.method.lower()]
    for path in _paths(endpoint.path):
        answer = world.request(endpoint.method, path, CONFIG if endpoint.body else "", {"accept": "application/json"})
        assert not world.failures, world.failures
        assert str(answer.status_code) in operation["responses"], (path, answer.status_code, answer.text)
        content = operation["responses"][str(answer.status_code)].get("content", {})
        if answer.headers["content-type"].startswith("application/json"):
            conforms(document, content["application/json"]["schema"], answer.json(), path)
        elif answer.status_code != 301:
            assert any(answer.headers["content-type"].startswith(media) for media in content), path


# -- random requests -------------------------------------------------------------------------------------

PARTS = st.one_of(
    st.sampled_from([name for names in NAMES.values() for name in names]),
    st.text(max_size=12),
    st.sampled_from(["%", "%2", "%zz", "%00", "%25", "%252F", "..", ".", "+", "%0d%0aX: y", "a" * 300]),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes, dict[str, str]]:
    endpoint = draw(st.sampled_from([e for e in ENDPOINTS if e.path != STREAM and not e.path.startswith(QUESTIONS)]))
    method = draw(st.sampled_from([endpoint.method] * 6 + ["GET", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "HEAD"]))
    path = endpoint.path
    for name in re.findall(r"\{(\w+)\}", path):
        value = draw(st.one_of(st.sampled_from(NAMES[name]), PARTS))
        path = path.replace(f"{{{name}}}", value if value.isascii() and value.isprintable() else quote(value))
    if draw(st.integers(0, 9)) == 0:
        path = draw(st.sampled_from([path + "/", path.upper(), path[:-1], path + "/x", "/" + path]))
    query = draw(
        st.lists(
            st.tuples(st.sampled_from(["count", "start", "status", "subtree", "rm", "x"]), st.text(max_size=8)),
            max_size=2,
        )
    )
    text = "&".join(f"{key}={quote(value)}" for key, value in query)
    body = draw(st.one_of(st.just(b""), st.just(CONFIG.encode()), st.binary(max_size=60)))
    headers = draw(st.dictionaries(st.sampled_from(["accept", "accept-encoding", "authorization"]), st.sampled_from(["gzip", "application/json", "*/*", ""]), max_size=2))  # fmt: skip
    return method, path.replace("?", "%3F").replace("#", "%23") + (f"?{text}" if text else ""), body, headers


@settings(max_examples=EXAMPLES)
@given(requests())
def test_every_request_is_answered_without_a_failure(request: tuple[str, str, bytes, dict[str, str]]) -> None:
    world = WORLD
    method, path, body, headers = request
    try:
        answer = world.request(method, path, body, headers)
    except (ValueError, TypeError) as error:  # what the client itself refuses to send
        if type(error).__module__.startswith("httpx"):
            return
        raise
    assert not world.failures, (request, world.failures)
    assert answer.status_code != 500
    assert "Traceback" not in answer.text or path.startswith("/debug")
    if answer.status_code >= 400 and answer.headers.get("content-type", "").startswith("application/json"):
        assert answer.json().get("status_code", answer.status_code) == answer.status_code


WORLD = busy()
