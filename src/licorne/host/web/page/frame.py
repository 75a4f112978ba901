"""What all views share: the templates, units, the files beside them, and the headers that keep a page to itself."""

from __future__ import annotations

import datetime as dt
import hashlib
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from licorne import __version__
from licorne.core.base.states import SECOND_NS
from licorne.workload.quantities import amount, duration

from .bars import ordered
from .source import ROWS
from .view import KEPT

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # not `no-referrer`, with which browsers would not say whose form is sent
}
"""Headers of all pages. A browser loads only what this server has, runs nothing that stands in a page itself, sends forms to
this server alone, shows pages in no frame of others, and keeps none."""
TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAME_CHARS: Final = 160
"""The most characters of a name that a page shows; a link to what has the name carries all of them."""


@cache
def environment() -> Environment:
    """Return the templates with what they may call."""
    loader = PackageLoader("licorne.host.web.page", "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters.update(
        age=age, moment=moment, short=short, count="{:,}".format, percent=lambda part: f"{100 * part:.0f} %"
    )
    made.filters.update(clock=partial(moment, form="%H:%M:%S UTC"), iso=partial(moment, form="%Y-%m-%dT%H:%M:%SZ"))
    made.filters.update(kind=lambda name: {"vcore": "CPU", "memory": "Memory", "pods": "Pods"}.get(name) or short(name))
    made.globals.update(amount=amount, duration=duration, ordered=ordered, static=static, ROWS=ROWS, KEPT=KEPT)
    # What pages have that show no partition.
    made.globals.update(source="", at_ns=0, span=None, changes=False, live=False, partitions=[])
    made.globals.update(version=__version__, partition_name="", compared="", active="")
    return made


def render(template: str, context: dict[str, Any]) -> str:
    """Return a page."""
    return environment().get_template(f"{template}.html.j2").render(context)


# -- the files -----------------------------------------------------------------------------------------------


@cache
def static_files() -> dict[str, bytes]:
    """Return the files beside the templates, by name."""
    folder = files("licorne.host.web.page") / "static"
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in TYPES}


@cache
def static(name: str) -> str:
    """Return the address of a file, which changes with its content, so that browsers may keep it for ever."""
    return f"/static/{name}?v={hashlib.sha256(static_files()[name]).hexdigest()[:12]}"


# -- how values are written ----------------------------------------------------------------------------------


def age(time_ns: int, now_ns: int) -> str:
    """Return how long ago a time was; empty where it is not known."""
    return duration(max(now_ns - time_ns, 0) / SECOND_NS) if time_ns > 0 else ""


def moment(time_ns: int, form: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    """Return a time in UTC, to the second; empty where it is not known or beyond the calendar."""
    try:
        return f"{dt.datetime.fromtimestamp(time_ns // SECOND_NS, dt.UTC):{form}}" if time_ns > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


def short(name: str, chars: int = NAME_CHARS) -> str:
    """Return a name, cut where it is longer than people read."""
    return name if len(name) <= chars else f"{name[: chars - 1]}…"
