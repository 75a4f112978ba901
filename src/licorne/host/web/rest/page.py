"""Endpoints of the OpenAPI document: as JSON, and as an HTML page for people that needs no network and no script."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from starlette.responses import HTMLResponse, Response

from . import openapi
from .answers import JSON, encode
from .handlers import Handlers
from .routing import Call

Map = dict[str, Any]
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}
"""Headers of the page. A browser loads nothing for it, runs no script, and shows it in no frame."""
STYLE = """\
body{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b2330;background:#fff}
code{font:14px ui-monospace,monospace}h1{margin-bottom:0}h2{margin-top:2.5rem}section{border-top:1px solid #d5dae2;
padding:.5rem 0}b.m{display:inline-block;min-width:3.2rem;color:#0b5c36}table{border-collapse:collapse;margin:.3rem 0}
td,th{text-align:left;vertical-align:top;padding:.15rem 1rem .15rem 0}th{font-weight:600;color:#4a5568}
details{margin:.3rem 0}a{color:#0b4f9e}
@media(prefers-color-scheme:dark){body{color:#dfe5ee;background:#141a22}section{border-color:#333d4b}b.m{color:#6fd6a3}
th{color:#9aa7b8}a{color:#7db5ff}}"""


@cache
def _document() -> Map:
    from .endpoints import ENDPOINTS  # noqa: PLC0415  `endpoints` imports this module, whose handlers it lists

    return openapi.document(ENDPOINTS)


@cache
def _encoded() -> bytes:
    return encode(_document()) + b"\n"


async def document(_: Handlers, _call: Call) -> Response:
    """Answer with the OpenAPI document as JSON."""
    return Response(_encoded(), media_type=JSON)


async def page(_: Handlers, _call: Call) -> Response:
    """Answer with the OpenAPI document as an HTML page."""
    return HTMLResponse(_page(), headers=PAGE_HEADERS)


@cache
def _page() -> str:
    found = _document()
    info = found["info"]
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>{escape(info['title'])}: REST</title><style>{STYLE}</style>",
        f"<main><h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}",
        "<p>The same for programs: <a href=openapi.json>openapi.json</a> (OpenAPI 3.1).<h2>Endpoints</h2>",
    ]
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            parts.append(_operation(path, method, operation))
    parts.append("<h2>Objects</h2>")
    for name, schema in found["components"]["schemas"].items():
        parts.append(_schema(name, schema))
    return "\n".join([*parts, "</main>"]) + "\n"


def _operation(path: str, method: str, operation: Map) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(p['name'])}</code><td>{p['in']}<td>{escape(p.get('description', ''))}"
        for p in operation["parameters"]
    )
    table = f"<table><tr><th>Parameter<th>In<th>Meaning{rows}</table>" if rows else ""
    results = "".join(
        f"<tr><td>{status}<td>{escape(response['description'])}<td>{_content(response)}"
        for status, response in operation["responses"].items()
    )
    return (
        f"<section><b class=m>{method.upper()}</b> <code>{escape(path)}</code><br>{escape(operation['summary'])}{table}"
        f"<details><summary>Answers</summary><table>{results}</table></details></section>"
    )


def _content(response: Map) -> str:
    return ", ".join(_type(media["schema"]) for media in response.get("content", {}).values())


def _type(schema: Map) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return " and ".join(_type(one) for one in schema["prefixItems"])
        return f"list of {_type(schema.get('items', {}))}"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"map of {_type(inner)}" if isinstance(inner, dict) else "object"
    return escape(str(schema.get("type", "anything")))


def _schema(name: str, schema: Map) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code><td>{_type(of)}<td>{'always' if field in required else ''}"
        for field, of in schema.get("properties", {}).items()
    )
    text = escape(schema.get("description", ""))
    return f"<section id='{escape(name)}'><b>{escape(name)}</b><br>{text}<table>{rows}</table></section>"


__all__ = ["document", "page"]
