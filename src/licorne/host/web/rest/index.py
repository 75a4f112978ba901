"""The index page at `/`: what there is to look at, with links, for a person who opens the address in a browser.

It needs no script and no network. The numbers are those of the moment; each partition has links of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response

from licorne import __version__
from licorne._wording import counted

from . import views
from .handlers import Handlers
from .page import PAGE_HEADERS, STYLE
from .routing import Call

Link = tuple[str, str]
_PARTITION: tuple[Link, ...] = (
    ("queues", "Queues: usage, guarantees and maxima, as a tree"),
    ("applications/active", "Applications that are active, with their allocations, their asks, and why these wait"),
    ("applications/completed", "Applications that have completed or failed"),
    ("applications/rejected", "Applications that were rejected, and why"),
    ("nodes", "Nodes and what runs on them"),
    ("usage/users", "Usage of users, with their limits"),
    ("usage/groups", "Usage of groups, with their limits"),
    ("placementrules", "Placement rules"),
)
_SCHEDULER: tuple[Link, ...] = (
    ("why", "Why does it wait? Of an application or a pod, or of all that waits: a page"),
    ("api/v1/shares", "Who has what of which guarantee, and who borrows from whom"),
    ("ws/v1/scheduler/healthcheck", "Health: the last check of all invariants"),
    ("ws/v1/metrics", "Metrics, for Prometheus"),
    ("ws/v1/events/batch", "Events: what happened last"),
    ("ws/v1/events/stream?count=10", "Events as they happen"),
    ("ws/v1/config", "The queue configuration in force"),
    ("ws/v1/scheduler/node-utilizations", "How full the nodes are"),
    ("ws/v1/history/apps", "Applications, minute by minute"),
    ("ws/v1/history/containers", "Allocations, minute by minute"),
    ("ws/v1/clusters", "Partitions and their resource managers"),
    ("debug/fullstatedump", "All of the state, as one document"),
    ("openapi", "Every path of this interface, with parameters and answers"),
)


async def index(handlers: Handlers, _call: Call) -> Response:
    """Answer with the index page."""
    backend = handlers.backend
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>licorne</title><style>{STYLE}</style><main><h1>licorne {escape(__version__)}</h1>",
        "<p>A cluster resource scheduler. Each link leads to data as JSON, unless it says otherwise.",
    ]
    partitions = list(backend.partitions())
    for found in partitions:
        name = backend.shown_name(found)
        shown = views.partition(backend, found)
        states = {state: count for state, count in shown.applications.items() if state != "total"}
        applications = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
        parts += [
            f"<h2>Partition {escape(name)}</h2>",
            f"<p>{counted(shown.total_nodes, 'node')}, {counted(shown.total_containers, 'allocation')}; applications: {escape(applications)}",
            _links((f"ws/v1/partition/{quote(name, safe='')}/{path}", text) for path, text in _PARTITION),
        ]
    if not partitions:
        parts.append("<p>No resource manager is registered yet, so there is no partition.")
    parts += ["<h2>The scheduler</h2>", _links(_SCHEDULER), "</main>"]
    return HTMLResponse("\n".join(parts) + "\n", headers=PAGE_HEADERS)


def _links(links: Iterable[Link]) -> str:
    rows = "".join(f"<li><a href='/{escape(path)}'>{escape(text)}</a>" for path, text in links)
    return f"<ul>{rows}</ul>"


__all__ = ["index"]
