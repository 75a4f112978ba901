"""The objects of the scheduler in this process, made in small steps, so that no page holds the loop.

Lists are made for all viewers together: one is given again for `FACTOR` times as long as it took to make, at most `KEPT_S`, so
that viewers, however many, take a small part of the scheduler's time (`python -m bench page --viewers 50`).

A page learns by a stream (server-sent events) that something has changed; what, it asks for like anybody who opens it. The more
streams there are, the more seldom each looks: together at most `LOOKS_PER_S` times a second. A change is told again when no list
of before it is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from starlette.responses import Response, StreamingResponse

from licorne.answers.process import Question
from licorne.answers.timeline import Timeline
from licorne.core.partition import Partition
from licorne.host.pace import SLICE_S
from licorne.host.threads import COMMON
from licorne.host.web.rest import allocations as allocation_views
from licorne.host.web.rest import views
from licorne.host.web.rest.errors import PARTITION_NOT_FOUND, TOO_MANY_STREAMS, refuse
from licorne.host.web.rest.pieces import rejection_view
from licorne.host.web.rest.questions import answered
from licorne.si import rest_objects as objects
from licorne.state.configuration import as_yaml

from .source import ROWS, ApplicationSummary, Configuration, Figures, NodeSummary, People

if TYPE_CHECKING:
    from licorne.core.queues.queue import Queue
    from licorne.host.web.rest.handlers import Handlers

FACTOR: Final = 1_000.0
KEPT_S: Final = 15.0
"""Seconds for which a list is given again, at most."""
KEPT_MAX: Final = 64
"""Lists that are kept at a time, at most."""
STREAMS_MAX: Final = 64
CLIENT_MAX: Final = 16
"""Streams of one login, or of one address without a login, at most."""
LEAST_S: Final = 2.0
"""Seconds between two looks at one page, at least."""
LOOKS_PER_S: Final = 2.0
CHANGED: Final = b"event: changed\ndata: \n\n"
SAME: Final = b":\n\n"
"""A comment, by which a connection is found out that has gone without a word."""
Version = Callable[[], Awaitable[object]]
_T = TypeVar("_T")


class Streams:
    """The open streams, by client. `ending`: set when the server ends, and the streams with it."""

    def __init__(self, ending: asyncio.Event) -> None:
        self.open = Counter[str]()
        self._ending = ending

    def response(self, version: Version, client: str) -> Response:
        """Return a stream that tells a client when what `version` returns is another.

        Raises:
            RestError: 503, there are too many streams.
        """
        if self.open.total() >= STREAMS_MAX or self.open[client] >= CLIENT_MAX:
            refuse(503, TOO_MANY_STREAMS)
        return StreamingResponse(self._said(version, client), 200, {"Cache-Control": "no-store"}, "text/event-stream")

    @property
    def pause_s(self) -> float:
        """Seconds after which each stream looks again."""
        return max(LEAST_S, self.open.total() / LOOKS_PER_S)

    async def _said(self, version: Version, client: str) -> AsyncIterator[bytes]:
        self.open[client] += 1
        ended = asyncio.create_task(self._ending.wait())
        try:
            seen, stale_until = await version(), float("inf")
            yield SAME
            while not (await asyncio.wait({ended}, timeout=self.pause_s))[0]:
                before, seen, now = seen, await version(), time.monotonic()
                if told := seen != before or now >= stale_until:
                    stale_until = now + KEPT_S if seen != before else float("inf")
                yield CHANGED if told else SAME
        finally:
            self.open -= Counter([client])  # which forgets those that have none left
            ended.cancel()


class LiveSource:
    """The scheduler behind the REST interface of this process. `name`: what it is, for people, where it is not the running one."""

    def __init__(self, handlers: Handlers, name: str = "") -> None:
        self.name = name
        self.changes = not name
        self.span: tuple[int, int] | None = None
        self._handlers = handlers
        self._backend = handlers.backend
        self._making: dict[tuple[object, ...], asyncio.Task[list[Any]]] = {}
        self._kept: dict[tuple[object, ...], tuple[float, list[Any]]] = {}

    def version(self) -> object:
        """Return something that is another when anything of the scheduler has changed."""
        return [views.partition_state(found) for found in self._backend.partitions()]

    def now_ns(self) -> int:
        """Return the scheduler's time."""
        return self._backend.clock()

    def _home(self, partition: str) -> Partition:
        found = self._backend.find_partition(partition)
        return found if isinstance(found, Partition) else refuse(404, f"{PARTITION_NOT_FOUND}: {partition}")

    async def _list(self, make: Callable[[], Iterable[_T]], *key: object) -> list[_T]:
        """Return what `make` yields: as it was made a short time ago, is being made, or is made now."""
        until, kept = self._kept.get(key, (0.0, []))
        if time.monotonic() < until:
            return kept
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._make(key, make()))
            making.add_done_callback(lambda _: self._making.pop(key, None))
        return cast("list[_T]", await asyncio.shield(making))  # others may wait for it too

    async def _make(self, key: tuple[object, ...], items: Iterable[_T]) -> list[_T]:
        """Make a list in slices of `SLICE_S`, counting the processor time of these alone."""
        found: list[_T] = []
        busy_s, began, ends = 0.0, time.thread_time(), time.perf_counter() + SLICE_S
        for item in items:
            found.append(item)
            if time.perf_counter() >= ends:
                busy_s += time.thread_time() - began
                await asyncio.sleep(0)
                began, ends = time.thread_time(), time.perf_counter() + SLICE_S
        busy_s += time.thread_time() - began
        self._kept.pop(key, None)
        while len(self._kept) >= KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = time.monotonic() + min(busy_s * FACTOR, KEPT_S), found
        return found

    async def partitions(self) -> list[objects.Partition]:
        """Return all partitions."""
        backend = self._backend
        return await self._list(lambda: (views.partition(backend, each) for each in list(backend.partitions())), "all")

    async def partition(self, name: str) -> objects.Partition:
        """Return a partition."""
        return next(home for home in await self.partitions() if home.name == name)

    async def queues(self, partition: str) -> objects.Queue:
        """Return the root queue of a partition, with all below it."""
        home = self._home(partition)
        return (await self._list(lambda: _queues(home.tree.root, None), "queues", partition))[0]

    async def applications(self, partition: str) -> Sequence[ApplicationSummary]:
        """Return all applications that are known, also those that have ended or were rejected."""
        home = self._home(partition)
        return await self._list(lambda: _applications(home, partition), "applications", partition)

    async def application(self, partition: str, name: str, asks: int, allocations: int) -> ApplicationSummary | None:
        """Return an application with `ROWS` of its asks and allocations, from these positions on, and how many it has of each."""
        home, key = self._home(partition), (partition, name, asks, allocations)
        found = await self._list(lambda: _application(home, *key), "application", *key)
        return found[0] if found else None

    async def nodes(self, partition: str) -> Sequence[NodeSummary]:
        """Return all nodes."""
        home = self._home(partition)
        return await self._list(lambda: _nodes(home), "nodes", partition)

    async def node(self, partition: str, name: str) -> objects.Node | None:
        """Return a node with its allocations."""
        home = self._home(partition)
        node = home.nodes.get(name)
        return None if node is None else views.node(node, home)

    async def people(self, partition: str) -> People:
        """Return what users and groups use, with their limits."""
        home = self._home(partition)
        users, groups = home.limits.users, home.limits.groups
        return People(
            await self._list(lambda: (views.user_usage(home, *each) for each in users().items()), "users", partition),
            await self._list(
                lambda: (views.group_usage(home, *each) for each in groups().items()), "groups", partition
            ),
            limited=True,
        )

    async def rules(self, partition: str) -> list[objects.Rule]:
        """Return the placement rules."""
        return views.rules(self._home(partition))

    async def configuration(self, _partition: str) -> Configuration:
        """Return the queue configuration in force, as REST gives it to readers: comments may be for those alone who wrote them."""
        shown, report = await self._handlers.running(next(iter(self._backend.managers()), None))
        parts = {"Partitions": shown.get("Partitions", [])}
        return shown, report, await COMMON.run(lambda: as_yaml(parts)) if parts["Partitions"] else ""

    async def figures(self, _partition: str) -> Figures:
        """Return the rate of decisions, the history by the minute, how the recording goes, and the last health checks."""
        monitor, recorder = self._handlers.monitor, self._backend.recorder()
        return Figures(
            tuple((minute.timestamp, minute.applications, minute.containers) for minute in monitor.history.minutes),
            None if self.name else monitor.rate,
            "" if recorder is None else str(recorder.folder),
            None if self.name else self._backend.follower is not None,
            monitor.health,
        )

    async def timeline(self, _window_s: float) -> Timeline | None:
        """Return what was decided last, and how queues fared, as far as this process has noted it."""
        return self._handlers.monitor.timeline

    async def answer(self, question: Question) -> bytes:
        """Return the answer of the process that follows, or of one that is given a checkpoint."""
        return await answered(self._handlers, question)


def _queues(queue: Queue, above: objects.Queue | None) -> Iterator[objects.Queue]:
    """Yield a queue and all below it, parents first, children by name, each as a child of the one above."""
    view = views.queue(queue, whole=False)
    if above is not None:
        above.children.append(view)
    yield view
    for _, child in sorted(queue.children.items()):
        yield from _queues(child, view)


def _applications(home: Partition, partition: str) -> Iterator[ApplicationSummary]:
    for app in [*home.applications.values(), *home.terminated]:
        view = allocation_views.application(app, home, partition, whole=False)
        yield ApplicationSummary(view, len(app.allocations), len(app.asks))
    for rejected in list(home.rejected):
        yield ApplicationSummary(rejection_view(rejected, partition), 0, 0)


def _application(
    home: Partition, partition: str, name: str, asks: int, allocations: int
) -> Iterator[ApplicationSummary]:
    """Yield an application, again with each of its asks: for the reason why one waits all nodes may have to be looked at."""
    app = home.applications.get(name) or next((each for each in home.terminated if each.id == name), None)
    if app is None:
        found = [rejection_view(each, partition) for each in home.rejected if each.application_id == name]
        yield from (ApplicationSummary(each, 0, 0) for each in found)
        return
    view = allocation_views.application(app, home, partition)
    view.allocations = list(islice(allocation_views.allocations(app), allocations, allocations + ROWS))
    summary = ApplicationSummary(view, len(app.allocations), len(app.asks))
    yield summary
    for ask in islice(allocation_views.asks(app, home, nodes=True), asks, asks + ROWS):
        view.requests.append(ask)
        yield summary


def _nodes(home: Partition) -> Iterator[NodeSummary]:
    for name in sorted(home.nodes):
        node = home.nodes.get(name)
        if node is not None:  # it may have gone since the list was begun
            yield NodeSummary(views.node(node, home, whole=False), len(node.allocations))
