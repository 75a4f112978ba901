"""What is read of a cluster: the kinds that are watched, and where their objects go.

Nothing is handed on before everything has been read: then the manager is given all of it in one go (`Reading.begin`), what runs
before what waits, and from then on each change.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.host.log import Log, named
from licorne.kube.api import Client, Kind
from licorne.kube.api.kinds import (
    CLAIMS,
    DISRUPTION_BUDGETS,
    NAMED_BY_PODS,
    NAMESPACES,
    NODES,
    OF_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    VOLUMES,
    WORKLOADS,
)
from licorne.kube.manager import Manager
from licorne.kube.objects import KubernetesObject
from licorne.kube.pauses import PauseGuard
from licorne.kube.pods.spreading import Spreading, read_constraints
from licorne.kube.reflector import Handler, Reflector
from licorne.kube.settings import RunSettings

T = TypeVar("T", bound=KubernetesObject)

NEEDED: Final = {
    "pods": "what runs already is not known",
    "nodes": "there would seem to be no room",
    "namespaces": "their quotas are not known",
    **{kind.plural: "what volumes demand is not known" for kind in OF_VOLUMES},
    **{kind.plural: "default spread constraints need the selectors of workloads" for kind in WORKLOADS},
    "configmaps": "their quotas are not known",  # the built-in queues, by which pods would run, have none
}
"""Why nothing is scheduled while a kind may not be read; kinds that are not here are done without."""
HANDED_OVER: Final[tuple[Kind[Any], ...]] = (
    NAMESPACES,
    PRIORITY_CLASSES,
    *WORKLOADS,
    DISRUPTION_BUDGETS,
    *NAMED_BY_PODS,
    NODES,
)
"""The order in which the manager is given what has been read; pods come after all of it."""
ANSWERED: Final[dict[str, Kind[Any]]] = {kind.name: kind for kind in (CLAIMS, VOLUMES, RESOURCE_CLAIMS, PODS)}
"""The kinds of which one write follows another, by name."""


class _Named(msgspec.Struct):
    kind: str = ""


class Reading:
    """The reflectors of a process. `changed` is called after each object that is handed on."""

    def __init__(
        self,
        source: Client,
        manager: Manager,
        settings: RunSettings,
        *,
        log: Log,
        rng: random.Random | None,
        changed: Callable[[], None],
    ) -> None:
        self._source = source
        self._manager = manager
        self._settings = settings
        self.log = log
        self._rng = rng
        self.changed = changed
        self.begun = False
        """Whether the scheduler has been told what there is; the manager knows nothing before."""
        self.reflectors: dict[str, Reflector[Any]] = {}
        self._seen: dict[str, Callable[[Any], None]] = {}

    def objects(self, kind: Kind[T], seen: Callable[[T], None], gone: Callable[[T], None]) -> None:
        """Watch a kind, and hand its objects on once all kinds have been read."""
        self._seen[kind.plural] = seen
        self.watch(kind, _Objects(self, seen, gone))

    def watch_all(self) -> None:
        """Watch all kinds except pods; services and controllers if there are default spread constraints."""
        manager = self._manager
        self.objects(NODES, manager.node_seen, manager.node_gone)
        self.objects(NAMESPACES, manager.namespace_seen, manager.namespace_gone)
        self.objects(PRIORITY_CLASSES, manager.class_seen, manager.class_gone)
        self.objects(DISRUPTION_BUDGETS, manager.lifecycle.budgets.seen, manager.lifecycle.budgets.gone)
        for kind in NAMED_BY_PODS:
            self.objects(kind, manager.named_seen, manager.named_gone)
        if not self._settings.spread:
            return
        manager.lifecycle.context.spreading = Spreading(read_constraints(self._settings.spread))
        for kind in WORKLOADS:
            seen, gone = (functools.partial(act, kind.name) for act in (manager.workload_seen, manager.workload_gone))
            self.objects(kind, seen, gone)

    def watch(self, kind: Kind[T], handler: Handler[T], name: str = "", **where: str) -> None:
        """Watch a kind, under a name of its own or that of its kind; `where` says in the log which objects it is for."""
        needed = kind.plural in NEEDED and not (name and self._settings.queues)
        self.reflectors[name or kind.plural] = Reflector(
            self._source,
            kind,
            handler,
            warn=named(self.log, "kubernetes").warning,
            forbidden=functools.partial(self._forbidden, kind.plural, **where) if needed else None,
            rng=self._rng,
        )

    def _forbidden(self, plural: str, text: str, **more: str) -> None:
        """Say that a kind may not be read that is needed."""
        name = plural.replace("configmaps", "ConfigMaps")
        why = f"the {name} may not be read; nothing is scheduled until they may, because {NEEDED[plural]}"
        named(self.log, "kubernetes").error(why, text=text, **more)

    def answered(self, answer: bytes) -> None:
        """Take in an object that a write was answered with: what comes next need not wait until the watch shows it."""
        with contextlib.suppress(*UNDECODABLE):  # then the watch shows it, or says what is wrong
            kind = ANSWERED.get(msgspec.json.decode(answer, type=_Named).kind)
            if kind is not None:
                self.reflectors[kind.plural].answered(msgspec.json.decode(answer, type=kind.type))

    def news_ages(self) -> dict[str, float]:
        """Return, for each kind of object that is watched, the seconds since the API server last sent something about it."""
        now = asyncio.get_running_loop().time()
        found = self.reflectors.items()
        return {name: now - one.news_s for name, one in found if one.news_s is not None and not one.absent}

    async def wait(self, names: Iterable[str]) -> None:
        """Wait until these kinds have been read."""
        for name in names:
            reflector = self.reflectors[name]
            while not reflector.synced.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(10.0):
                        await reflector.synced.wait()
                if not reflector.synced.is_set():
                    self.log.info("waiting for the API server", kind=name)

    def begin(self) -> None:
        """Give the manager everything that has been read."""
        for kind in HANDED_OVER:
            if (seen := self._seen.get(kind.plural)) is not None:
                for one in self.reflectors[kind.plural].store.values():
                    seen(one)
        self._manager.lifecycle.pods_read(self.reflectors[PODS.plural].store.values())
        self.begun = True

    async def read_after_pauses(self, guard: PauseGuard) -> None:
        """Read everything again after each pause; until then nothing is decided and nothing is sent."""
        while True:
            await guard.paused()
            pauses = guard.pauses
            self.log.warning("the process was paused; nothing is written before the cluster has been read again")
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for reflector in self.reflectors.values():
                    group.create_task(reflector.read_again())
            guard.was_read(pauses)
            self.log.info("the cluster has been read again", seconds=round(time.monotonic() - began, 2))


@dataclass(frozen=True)
class _Objects(Generic[T]):
    """Hands objects on once everything has been read; what was read before is handed over by `Reading.begin`."""

    reading: Reading
    seen: Callable[[T], None]
    gone: Callable[[T], None]

    def added(self, new: T) -> None:
        if self.reading.begun:
            self.seen(new)
            self.reading.changed()

    def updated(self, _old: T, new: T) -> None:
        self.added(new)

    def deleted(self, old: T) -> None:
        if self.reading.begun:
            self.gone(old)
            self.reading.changed()
