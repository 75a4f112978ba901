"""Runs licorne as the scheduler of a cluster: what the API server tells goes to the manager, its commands come back.

First the Lease is taken: one process schedules, others wait. Then everything is read: nodes, namespaces, priority classes,
pods, what they name (groups, volumes, claims of devices), both ConfigMaps. Then the scheduler is told all of it in one go, pods that run before pods that wait, and only then
the first decision is made. All state is in the API server, so a process that is killed and started again goes on where the
cluster is.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from licorne._extras import require

require("kube")

from licorne.core.api import Incident, RegistrationError, SchedulerAPI
from licorne.core.events.runs import Record
from licorne.core.input_log import InputLog
from licorne.host.follower import Follower
from licorne.host.guesses import Guesses
from licorne.host.log import Levels, Log, named
from licorne.host.memory import Memory
from licorne.host.pace import steady_clock
from licorne.host.secrets import SecurityError
from licorne.host.security import Security
from licorne.host.web.backend import Backend, HostCheck, HostFigures
from licorne.host.web.monitor import Monitor
from licorne.host.web.server import Web, WebServer
from licorne.host.web.settings import WebSettings
from licorne.kube.api import Kind, Requests
from licorne.kube.api.kinds import (
    DISRUPTION_BUDGETS,
    NAMED_BY_PODS,
    NAMESPACES,
    NODES,
    OF_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    WORKLOADS,
    config_map_kind,
)
from licorne.kube.binding import Binder, BindingClient
from licorne.kube.configmaps import Configuration, ConfigurationError, check_queues
from licorne.kube.configuring import ConfigMaps, build_info
from licorne.kube.lease import HeldLease, LeaseClient, LeaseLostError
from licorne.kube.manager import Manager, Outbox
from licorne.kube.manager.commands import AskAgain, Bind, GiveUpClaims
from licorne.kube.objects import KubernetesObject, Pod
from licorne.kube.pauses import PauseGuard
from licorne.kube.pods.spreading import Spreading, read_constraints
from licorne.kube.reflector import Handler, Reflector, Source
from licorne.kube.results import Results
from licorne.kube.settings import TABLE, RunSettings
from licorne.kube.shadow import Difference, Shadow
from licorne.kube.unseen import UnseenPlaceholders
from licorne.kube.writing import Writer, WritingClient
from licorne.si.messages import Output
from licorne.state.recording.noting import Both

T = TypeVar("T", bound=KubernetesObject)

CONFIG_MAP_NAMES: Final = ("yunikorn-defaults", "yunikorn-configs")
NEEDED: Final = {
    "pods": "what runs already is not known",
    "nodes": "there would seem to be no room",
    "namespaces": "their quotas are not known",
    **{kind.plural: "what volumes demand is not known" for kind in OF_VOLUMES},
    **{kind.plural: "default spread constraints need the selectors of workloads" for kind in WORKLOADS},
    "configmaps": "their quotas are not known",  # the built-in queues, by which pods would run, have none
}
"""Why nothing is scheduled while a kind may not be read; kinds that are not here are done without."""
SLICE: Final = 500
"""Decisions that are made before others have their turn."""
LONGEST_SLEEP_S: Final = 60.0
COMPLAINT_MAX: Final = 2000
"""The most characters of a line of the log about a pod: what it quotes of the pod may have 256 KiB."""
NEWS_MAX_S: Final = 180.0
"""How old the last news of a kind may be: the API server tells about once a minute how far a watch is."""
END_S: Final = 5.0
"""How long a process that ends waits for answers to what it has written."""
REVIEW_S: Final = 1.0
"""How often pods that wait are looked at, to tell why they do."""


class _Writes(WritingClient, LeaseClient, Protocol):
    """What a client of the API server offers for all writes except bindings."""


class Clients(msgspec.Struct, frozen=True):
    """Connections to the API server, apart, so that none of these uses can delay another, and what counts their calls."""

    reading: Source
    binding: BindingClient
    writing: _Writes
    requests: Requests = msgspec.field(default_factory=Requests)


class Runner:
    """licorne in a cluster, within a running loop.

    Parameters:
        clients: the connections to the API server; whoever made them closes them.
        settings: how it runs.
        web: addresses and access of REST; None: no REST.
        security: TLS of REST, and whether it may be open to others.
        recorder: records all inputs of the scheduler; whoever made it closes it. None: nothing is recorded.
        follower: answers questions by REST while it runs; None: each is asked a state dump.
        log: the log.
        levels: the levels of its loggers, which the ConfigMaps set.
        clock: returns the time in nanoseconds since 1970, and never goes back; given, tests need no time.
        wall: returns the time in seconds as the machine's clock has it.
        rng: draws waiting times.
    """

    def __init__(
        self,
        clients: Clients,
        settings: RunSettings,
        *,
        web: Web | None = None,
        security: Security | None = None,
        recorder: InputLog | None = None,
        follower: Follower | None = None,
        log: Log,
        levels: Levels | None = None,
        clock: Callable[[], int] | None = None,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = settings
        self.log = log
        self._clock = clock or steady_clock()
        self._wall = wall
        self._rng = rng
        self.api = SchedulerAPI(
            clock=self._clock, other_settings=True, on_output=self._take, on_incident=self._passed_over
        )
        self.follower = follower
        self.api.input_log = Both.of(recorder, follower)
        self._reading = clients.reading
        self._requests = clients.requests
        self.begun = False
        """Whether the scheduler has been told what there is; the manager knows nothing before."""
        kubernetes = named(log, "kubernetes")
        self.results = Results(kubernetes.error, self._clock)
        self.lease: HeldLease | None = None
        if not settings.dry_run:
            self.lease = HeldLease(
                clients.writing, settings.namespace, clock=self._clock, wall=wall, log=kubernetes, results=self.results
            )
        self.guard = PauseGuard(self._clock, wall, self.lease)
        outbox = Outbox(self.api, now_s=wall, awake=self.guard.beat, changed=self.changed, warn=self._warn_of_pod)
        self.manager = manager = Manager(outbox)
        self._unseen = UnseenPlaceholders(manager.lifecycle.gangs, self.changed)
        self.binder = self._make_binder(clients.binding)
        self.writer = self._make_writer(clients.writing)
        self.shadow = Shadow(lambda: self._clock() / 1e9, self._differs) if settings.dry_run else None
        if self.shadow is not None:
            self.manager.decisions.diagnostics["shadow"] = self.shadow.report
        self._wake = asyncio.Event()
        self._fault: Exception | None = None
        """The first exception in taking a decision; it ends the process."""
        self.decided, self._decided_s = 0, 0.0
        self._rounds = 0  # how many times decisions were made, which each change and each time limit brings about
        self.memory = Memory(self.api.cluster, lambda: time.monotonic() - self._decided_s)
        """The garbage collector, for the program that owns the process: `with runner.memory.running(): ...`"""
        self.reflectors: dict[str, Reflector[Any]] = {}
        self._pods = self._reflector(PODS, _Objects(self, self._pod_seen, self._pod_gone))
        self._nodes = self._reflector(NODES, _Objects(self, manager.node_seen, manager.node_gone))
        self._namespaces = self._reflector(NAMESPACES, _Objects(self, manager.namespace_seen, manager.namespace_gone))
        self._classes = self._reflector(PRIORITY_CLASSES, _Objects(self, manager.class_seen, manager.class_gone))
        self._budgets = self._reflector(
            DISRUPTION_BUDGETS, _Objects(self, manager.lifecycle.budgets.seen, manager.lifecycle.budgets.gone)
        )
        self._read_what_pods_name()
        writer, retune = None if settings.dry_run else self.writer, None if web is None else self._retune
        self.config_maps = ConfigMaps(manager, settings, levels or Levels(), log, writer, retune)
        for name in CONFIG_MAP_NAMES:
            config_map = config_map_kind(settings.namespace, name)
            self._reflector(config_map, self.config_maps, name, namespace=settings.namespace)
        self._web = web
        self._security = security or Security()
        self._server: WebServer | None = None
        self.monitor: Monitor | None = None

    def _read_what_pods_name(self) -> None:
        """Watch pod groups, volumes, devices, and if there are default spread constraints, services and controllers."""
        manager = self.manager
        for kind in NAMED_BY_PODS:
            self._reflector(kind, _Objects(self, manager.named_seen, manager.named_gone))
        if not self.settings.spread:
            return
        spreading = Spreading(read_constraints(self.settings.spread))
        manager.lifecycle.context = msgspec.structs.replace(manager.lifecycle.context, spreading=spreading)
        for kind in WORKLOADS:
            seen, gone = (functools.partial(act, kind.name) for act in (manager.workload_seen, manager.workload_gone))
            self._reflector(kind, _Objects(self, seen, gone))

    def _make_binder(self, client: BindingClient) -> Binder:
        return Binder(
            client,
            self.manager.lifecycle.bound,
            self.manager.lifecycle.not_bound,
            self.manager.lifecycle.outdated,
            guard=self.guard,
            is_gone=self.manager.records.is_gone,
            node_of=self.manager.records.node_of,
            results=self.results,
            rng=self._rng,
        )

    def _make_writer(self, client: WritingClient) -> Writer:
        return Writer(
            client,
            self._unseen.not_created,
            created=self._unseen.created,
            taken=self._unseen.taken,
            is_wanted=self.manager.lifecycle.gangs.is_wanted,
            is_gone=self.manager.records.is_gone,
            not_told=self.manager.lifecycle.not_told,
            claims_wanted=self.manager.lifecycle.holding.awaits,
            give_up_claims=self.manager.lifecycle.give_up_claims,
            warn=named(self.log, "shim.cache").warning,
            guard=self.guard,
            clock=self._wall,
            results=self.results,
            rng=self._rng,
        )

    def _reflector(self, kind: Kind[T], handler: Handler[T], name: str = "", **where: str) -> Reflector[T]:
        """Make a reflector, under a name of its own or that of its kind; `where` says in the log which objects it is for."""
        needed = kind.plural in NEEDED and not (name and self.settings.queues)
        made = self.reflectors[name or kind.plural] = Reflector(
            self._reading,
            kind,
            handler,
            warn=named(self.log, "kubernetes").warning,
            forbidden=functools.partial(self._forbidden, kind.plural, **where) if needed else None,
            rng=self._rng,
        )
        return made

    def _forbidden(self, plural: str, text: str, **more: str) -> None:
        """Say that a kind may not be read that is needed."""
        name = plural.replace("configmaps", "ConfigMaps")
        why = f"the {name} may not be read; nothing is scheduled until they may, because {NEEDED[plural]}"
        named(self.log, "kubernetes").error(why, text=text, **more)

    def _warn_of_pod(self, text: str, error: Exception | None) -> None:
        log = named(self.log, "shim.cache")
        if error is None:
            log.warning(text[:COMPLAINT_MAX])
        else:
            log.error(text[:COMPLAINT_MAX], exc_info=error)

    def _passed_over(self, incident: Incident) -> None:
        named(self.log, "core.rmproxy").info("parts of a request had no effect", text=str(incident))

    def _take(self, rm_id: str, outputs: list[Output]) -> None:
        """Take what the scheduler says. An exception is one in what concerns all pods (`Manager`): the process ends.

        It is raised in `_carry_out`, since a request of REST may be what the scheduler answers.
        """
        if self.monitor is not None:
            self.monitor.on_outputs(rm_id, outputs)
        try:
            self.manager.decisions.take(outputs)
        except Exception as error:  # noqa: BLE001  it may be any fault
            self._fault = self._fault or error
            named(self.log, "core.rmproxy").exception("taking a decision failed")

    def _news_ages(self) -> dict[str, float]:
        """Return, for each kind of object that is watched, the seconds since the API server last sent something about it."""
        now = asyncio.get_running_loop().time()
        found = self.reflectors.items()
        return {name: now - one.news_s for name, one in found if one.news_s is not None and not one.absent}

    def _figures(self) -> HostFigures:
        ages = {(name,): round(age, 3) for name, age in self._news_ages().items()}
        found: dict[str, Mapping[Any, float]] = {"licorne_news_age_seconds": ages}
        found["licorne_api_requests"] = self._requests.answers
        if self.shadow is not None:
            found["licorne_shadow_pods"] = {(outcome,): number for outcome, number in self.shadow.counts.items()}
        if self.lease is not None:
            found |= {"licorne_writes": self.results.counts, "licorne_lease_held": {(): float(self.lease.held())}}
        return found

    def _checks(self) -> list[HostCheck]:
        old = [f"{name}: {age:.0f} s ago" for name, age in self._news_ages().items() if age > NEWS_MAX_S]
        failing = self.results.failing()
        made = [
            HostCheck("Cluster", self.begun, "Check if the cluster has been read", "Not read yet"),
            HostCheck("News", not old, "Check if the API server still tells of changes", f"Last news: {old}"),
            # No reason not to be ready: a webhook that denies the pods of one namespace must not hide REST.
            HostCheck("Writes", not failing, "Check if writes succeed", f"Fails: {failing}", readiness=False),
        ]
        if self.lease is not None:
            who = f"The lease is held by {self.lease.holder or 'nobody'}; this process is {self.lease.identity}"
            made.insert(
                0, HostCheck("Lease", self.lease.held(), "Check if this process is the one that schedules", who)
            )
        return made

    def _differs(self, found: Difference) -> None:
        named(self.log, "kubernetes").info("another decision", **msgspec.structs.asdict(found))

    def _pod_seen(self, pod: Pod) -> None:
        known = self.manager.records.pods.get(pod.metadata.uid)
        if self.shadow is not None and known is not None and pod.spec.node_name and not known.pod.spec.node_name:
            self.shadow.bound(pod)
        self.manager.lifecycle.pod_seen(pod)

    def _pod_gone(self, pod: Pod) -> None:
        if self.shadow is not None:
            self.shadow.gone(pod)
        self.manager.lifecycle.pod_gone(pod)

    def changed(self) -> None:
        """Look for work soon, because something has changed."""
        self._wake.set()

    # -- start and end ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until cancelled.

        Raises:
            ConfigurationError: the ConfigMaps, or the queue configuration, cannot be used.
            LeaseLostError: another process has the Lease.
            SecurityError: REST cannot listen on one of its addresses.
        """
        if self.follower is not None:
            self.follower.start()
        try:
            async with asyncio.TaskGroup() as group:
                for name in CONFIG_MAP_NAMES:
                    group.create_task(self.reflectors[name].run())
                group.create_task(self.guard.watch())
                if self.lease is not None:
                    await self._take_lease(self.lease)
                    group.create_task(self.lease.keep())
                for name, reflector in self.reflectors.items():
                    if name not in CONFIG_MAP_NAMES:  # they are read now, with what another process has written
                        group.create_task(reflector.run())
                group.create_task(self._read_after_pauses())
                began = time.monotonic()
                await self._read(self.reflectors)
                counts = {name: len(reflector.store) for name, reflector in self.reflectors.items()}
                self.log.info("the cluster has been read", seconds=round(time.monotonic() - began, 2), **counts)
                self._begin()
                if self._server is not None and not self._server.addresses:
                    await self._server.start()
                if self.shadow is None:
                    group.create_task(self.binder.run())
                    group.create_task(self.writer.run())
                    group.create_task(self._tell_reasons())
                await self._work()
        except* (ConfigurationError, LeaseLostError, SecurityError) as errors:
            raise errors.exceptions[0] from None
        finally:
            if self._server is not None:
                await self._server.stop()
            if self.follower is not None:
                self.follower.close()

    async def run_until(self, ending: asyncio.Event) -> None:
        """Schedule until the event is set, and then end in order, so that another process may have the Lease at once.

        That is so once nothing more is sent, and what was sent is answered. Raises as `run`.
        """
        work = asyncio.create_task(self.run())
        waiting = asyncio.create_task(ending.wait())
        try:
            await asyncio.wait([work, waiting], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            waiting.cancel()
        self.guard.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._requests.idle.wait()
        answered = self._requests.idle.is_set()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        if answered and self.lease is not None:
            await self.lease.release()

    async def _take_lease(self, lease: HeldLease) -> None:
        """Wait for the Lease. REST says meanwhile that this process is alive, and not ready."""
        if await lease.attempt():
            return
        await self._read(CONFIG_MAP_NAMES)
        self._watch(self.config_maps.configuration())
        if self._server is not None:
            await self._server.start()
        await lease.take()

    async def _read(self, names: Iterable[str]) -> None:
        """Wait until these kinds have been read."""
        for name in names:
            reflector = self.reflectors[name]
            while not reflector.synced.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(10.0):
                        await reflector.synced.wait()
                if not reflector.synced.is_set():
                    self.log.info("waiting for the API server", kind=name)

    def _begin(self) -> None:
        """Tell the scheduler everything that has been read."""
        manager, request = self.manager, self.config_maps.begin()
        self._watch(self.config_maps.in_force)
        self._post_records()
        try:
            self.api.register_resource_manager(request, manager.decisions)
        except RegistrationError as error:
            raise ConfigurationError(str(error)) from None
        for namespace in self._namespaces.store.values():
            manager.namespace_seen(namespace)
        for known in self._classes.store.values():
            manager.class_seen(known)
        for kind in WORKLOADS if self.settings.spread else ():
            for workload in self.reflectors[kind.plural].store.values():
                manager.workload_seen(kind.name, workload)
        for budget in self._budgets.store.values():
            manager.lifecycle.budgets.seen(budget)
        for kind in NAMED_BY_PODS:
            for one in self.reflectors[kind.plural].store.values():
                manager.named_seen(one)
        for node in self._nodes.store.values():
            manager.node_seen(node)
        manager.lifecycle.pods_read(self._pods.store.values())
        self.guard.beat()
        self.begun = True

    def _watch(self, configuration: Configuration) -> None:
        """Set up REST, metrics, events and history, so that they cover everything that the scheduler is told."""
        if self._web is None:
            return
        if self._server is not None:
            self._retune(configuration)
            return
        backend = Backend(
            self.api,
            self._clock,
            build_info=lambda _: build_info(),
            figures=self._figures,
            checks=self._checks,
            admit=self._admit,
            changed=self.changed,
            follower=self.follower,
        )
        texts = configuration.texts
        web = self._rest(configuration, self._web)
        settings = TABLE.fill(WebSettings(), texts)
        self.monitor = Monitor(backend, configuration.settings.cluster_id, settings, self.log)
        log = named(self.log, "core.rest")
        self._server = WebServer(web, self.monitor, self._security, texts, log, Guesses(self.log), self.memory)

    def _post_records(self) -> None:
        """Have the records of the scheduler's events posted where that is wanted, besides what REST does with them."""
        keep = self.api.cluster.recorder

        def record(rm_id: str, event: Record) -> None:
            if keep is not None:
                keep(rm_id, event)
            self.manager.lifecycle.yunikorn_events.noted(event)

        self.api.cluster.recorder = record

    @staticmethod
    def _rest(configuration: Configuration, web: Web) -> Web:
        """Return addresses and access of REST as they were given, with the limits of a configuration."""
        texts = configuration.texts
        return msgspec.structs.replace(TABLE.fill(web, texts), limits=TABLE.fill(web.limits, texts))

    def _admit(self, rm_id: str, queues: str) -> None:
        """Refuse a queue configuration that REST is given, by the rule for one of the ConfigMap; raises a ValueError."""
        try:
            check_queues(queues, rm_id, self.config_maps.in_force.settings.queues_max)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    def _retune(self, configuration: Configuration) -> None:
        if self._server is not None and self._web is not None:
            limits = self._rest(configuration, self._web).limits
            self._server.retune(configuration.texts, limits.request_s, limits.body_bytes)

    # -- work ---------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Decide and carry out while there is something to do, and sleep otherwise."""
        while True:
            while self.manager.outbox.is_behind:  # the loop has other work, too
                self.manager.outbox.send_some()
                await asyncio.sleep(0)
            await self.guard.recent()
            self._carry_out()
            self._wake.clear()  # what the scheduler is told from here on may have it decide more
            began = time.perf_counter()
            self._rounds += 1
            made = self.api.schedule(limit=SLICE)
            if made:
                self.decided += made
                self._decided_s = time.monotonic()
            if self.monitor is not None:
                self.monitor.cycle(time.perf_counter() - began, made)
            self._carry_out()
            if made >= SLICE:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._until_deadline()):
                    await self._wake.wait()

    def _carry_out(self) -> None:
        commands = self.manager.flush()
        if self._fault is not None:
            raise self._fault
        for command in commands:
            if isinstance(command, AskAgain):
                asyncio.get_running_loop().call_later(command.after_s, self.manager.lifecycle.ask_again, command.uid)
            elif self.shadow is not None:
                self.shadow.take(command)
            elif isinstance(command, GiveUpClaims):
                lose = self.manager.lifecycle.give_up_claims
                asyncio.get_running_loop().call_later(command.after_s, lose, command.uid, command.number)
            elif isinstance(command, Bind):
                self.binder.bind(command)
            else:
                self.writer.write(command)

    def _until_deadline(self) -> float:
        due = self.api.next_deadline_ns()
        if due is None:
            return LONGEST_SLEEP_S
        return min(max((due - self._clock()) / 1e9, 0.001), LONGEST_SLEEP_S)

    async def _tell_reasons(self) -> None:
        """Tell pods that wait why they do, about once a second."""
        waiting = self.manager.lifecycle.waiting
        while True:
            await asyncio.sleep(REVIEW_S)
            self.manager.lifecycle.pass_turns()
            waiting.review(self._rounds)
            if self.manager.lifecycle.groups.review() or len(waiting):
                self._carry_out()

    # -- a process that was paused ------------------------------------------------------------------------------

    async def _read_after_pauses(self) -> None:
        """Read everything again after each pause; until then nothing is decided and nothing is sent."""
        while True:
            await self.guard.paused()
            pauses = self.guard.pauses
            self.log.warning("the process was paused; nothing is written before the cluster has been read again")
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for reflector in self.reflectors.values():
                    group.create_task(reflector.read_again())
            self.guard.was_read(pauses)
            self.log.info("the cluster has been read again", seconds=round(time.monotonic() - began, 2))


@dataclass(frozen=True)
class _Objects(Generic[T]):
    """Hands objects on once licorne has begun; what was read before is handed over by `Runner._begin`."""

    runner: Runner
    seen: Callable[[T], None]
    gone: Callable[[T], None]

    def added(self, new: T) -> None:
        if self.runner.begun:
            self.seen(new)
            self.runner.changed()

    def updated(self, _old: T, new: T) -> None:
        self.added(new)

    def deleted(self, old: T) -> None:
        if self.runner.begun:
            self.gone(old)
            self.runner.changed()


__all__ = ["Clients", "RunSettings", "Runner", "build_info"]
