"""What a view is: which objects it asks a source for, and a pure function from these to what its template shows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple

from .bars import ordered
from .live import LiveSource
from .source import DumpSource
from .tables import Query

Source = LiveSource | DumpSource
Fetch = Callable[[Source, str, Query], Coroutine[Any, Any, tuple[Any, ...]]]


def needs(*names: str) -> Fetch:
    """Return a function that asks a source for objects about a partition, each by the method of this name."""

    async def fetch(source: Source, partition: str, _query: Query) -> tuple[Any, ...]:
        return tuple([await getattr(source, name)(partition) for name in names])

    return fetch


class View(NamedTuple):
    """A view: its name, which is that of its template, its title and its path.

    `fetch` asks the source for the objects about a partition; it runs in the loop of the scheduler, and only waits. `context` is
    given the query and these objects, and makes what the template shows; it runs in a thread. `nav`: it stands in the navigation;
    `parent`: the name of the view under which it is found there. `live`: it is cheap enough to be asked for again whenever
    something has changed; `compared`: two moments of it are.
    """

    name: str
    title: str
    path: str
    fetch: Fetch
    context: Callable[..., dict[str, Any]]
    nav: bool = True
    parent: str = ""
    live: bool = True
    compared: bool = False


def chosen(types: Iterable[str], query: Query) -> tuple[list[str], str]:
    """Return the types of resources in order, and the one that the address names, or the first."""
    found = ordered(types)
    wanted = query["resource"]
    return found, wanted if wanted in found else found[0] if found else ""
