"""Runs licorne as the scheduler of a cluster: what the API server tells goes to the manager, its commands come back.

First the Lease is taken: one process schedules, others wait. Then everything is read: nodes, namespaces, priority classes,
pods, what they name (groups, volumes, claims of devices), both ConfigMaps. Then the scheduler is told all of it in one go, pods that run before pods that wait, and only then
the first decision is made. All state is in the API server, so a process that is killed and started again goes on where the
cluster is.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from licorne._extras import require

require("kube")

from licorne.core.api import Incident, RegistrationError, SchedulerAPI
from licorne.core.input_log import InputLog
from licorne.host.follower import Follower
from licorne.host.guesses import Guesses
from licorne.host.log import Levels, Log, named
from licorne.host.memory import Memory
from licorne.host.pace import steady_clock
from licorne.host.secrets import SecurityError
from licorne.host.security import Security
from licorne.host.web.backend import Backend
from licorne.host.web.monitor import Monitor
from licorne.host.web.server import Web, WebServer
from licorne.host.web.settings import WebSettings
from licorne.kube.api import Client
from licorne.kube.api.kinds import (
    PODS,
    config_map_kind,
)
from licorne.kube.binder import Binder
from licorne.kube.configmaps import Configuration, ConfigurationError, check_queues
from licorne.kube.configuring import ConfigMaps, build_info
from licorne.kube.health import Health
from licorne.kube.lease import HeldLease, LeaseLostError
from licorne.kube.manager import Manager, Outbox
from licorne.kube.manager.commands import AskAgain, Bind, GiveUpClaims
from licorne.kube.objects import Pod
from licorne.kube.pauses import PauseGuard
from licorne.kube.reading import Reading
from licorne.kube.results import Results
from licorne.kube.settings import TABLE, RunSettings
from licorne.kube.shadow import Difference, Shadow
from licorne.kube.unseen import UnseenPlaceholders
from licorne.kube.writer import Writer
from licorne.si.messages import Output
from licorne.state.recording.noting import Both

CONFIG_MAP_NAMES: Final = ("yunikorn-defaults", "yunikorn-configs")
SLICE: Final = 500
"""Decisions that are made before others have their turn."""
LONGEST_SLEEP_S: Final = 60.0
COMPLAINT_MAX: Final = 2000
"""The most characters of a line of the log about a pod: what it quotes of the pod may have 256 KiB."""
END_S: Final = 5.0
"""How long a process that ends waits for answers to what it has written."""
REVIEW_S: Final = 1.0
"""Seconds after which pods that wait are told why, if the core has inspected no asks in the meantime."""


class Clients(msgspec.Struct, frozen=True):
    """Connections to the API server, apart, so that none of these uses can delay another; they count their calls together."""

    reading: Client
    binding: Client
    writing: Client


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
        self._requests = clients.reading.requests
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
        self.reading = Reading(clients.reading, manager, settings, log=log, rng=rng, changed=self.changed)
        self.binder = self._make_binder(clients.binding)
        self.writer = self._make_writer(clients.writing)
        self.shadow = Shadow(lambda: self._clock() / 1e9, self._differs) if settings.dry_run else None
        if self.shadow is not None:
            self.manager.decisions.diagnostics["shadow"] = self.shadow.report
        self._wake = asyncio.Event()
        self._inspected = asyncio.Event()
        """Set when the core has found out anew which asks wait for room on nodes and for nothing else."""
        self._fault: Exception | None = None
        """The first exception in taking a decision; it ends the process."""
        self.decided, self._decided_s = 0, 0.0
        self._rounds = 0  # how many times decisions were made, which each change and each time limit brings about
        self.memory = Memory(self.api.cluster, lambda: time.monotonic() - self._decided_s)
        """The garbage collector, for the program that owns the process: `with runner.memory.running(): ...`"""
        self.reading.objects(PODS, self._pod_seen, self._pod_gone)
        self.reading.watch_all()
        self.health = Health(self.reading, self.results, self._requests, self.lease, self.shadow)
        writer, retune = None if settings.dry_run else self.writer, None if web is None else self._retune
        self.config_maps = ConfigMaps(manager, settings, levels or Levels(), log, writer, retune)
        for name in CONFIG_MAP_NAMES:
            config_map = config_map_kind(settings.namespace, name)
            self.reading.watch(config_map, self.config_maps, name, namespace=settings.namespace)
        self._web = web
        self._security = security or Security()
        self._server: WebServer | None = None
        self.monitor: Monitor | None = None

    def _make_binder(self, client: Client) -> Binder:
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

    def _make_writer(self, client: Client) -> Writer:
        return Writer(
            client,
            self._unseen.not_created,
            exists=self._unseen.exists,
            is_wanted=self.manager.lifecycle.gangs.is_wanted,
            is_gone=self.manager.records.is_gone,
            not_told=self.manager.lifecycle.not_told,
            claims_wanted=self.manager.lifecycle.holding.awaits,
            give_up_claims=self.manager.lifecycle.give_up_claims,
            answered=self.reading.answered,
            warn=named(self.log, "shim.cache").warning,
            guard=self.guard,
            clock=self._wall,
            results=self.results,
            rng=self._rng,
        )

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
                    group.create_task(self.reading.reflectors[name].run())
                group.create_task(self.guard.watch())
                if self.lease is not None:
                    await self._take_lease(self.lease)
                    group.create_task(self.lease.keep())
                for name, reflector in self.reading.reflectors.items():
                    if name not in CONFIG_MAP_NAMES:  # they are read now, with what another process has written
                        group.create_task(reflector.run())
                group.create_task(self.reading.read_after_pauses(self.guard))
                began = time.monotonic()
                await self.reading.wait(self.reading.reflectors)
                counts = {name: len(reflector.store) for name, reflector in self.reading.reflectors.items()}
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
        """Schedule until the event is set or `run` fails, and then end in order: another process may have the Lease at once.

        That is so once nothing more is sent, and what was sent is answered. Raises as `run`.
        """
        work = asyncio.create_task(self.run())
        # Its error is raised below; if this is cancelled before, nobody else asks for it.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
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
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await work
        finally:  # also when it has ended by a fault
            if answered and self.lease is not None:
                await self.lease.release()

    async def _take_lease(self, lease: HeldLease) -> None:
        """Wait for the Lease. REST says meanwhile that this process is alive, and not ready."""
        if await lease.attempt():
            return
        await self.reading.wait(CONFIG_MAP_NAMES)
        self._watch(self.config_maps.configuration())
        if self._server is not None:
            await self._server.start()
        await lease.take()

    def _begin(self) -> None:
        """Tell the scheduler everything that has been read."""
        request = self.config_maps.begin()
        self._watch(self.config_maps.in_force)
        try:
            self.api.register_resource_manager(request, self.manager.decisions)
        except RegistrationError as error:
            raise ConfigurationError(str(error)) from None
        self.reading.begin()
        self.guard.beat()

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
            figures=self.health.figures,
            checks=self.health.checks,
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
            partition = self.manager.outbox.partition
            inspections = partition.inspections
            made = self.api.schedule(limit=SLICE)
            if partition.inspections != inspections:
                self._inspected.set()
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
        """Tell pods why they wait: after each inspection of the core, and `REVIEW_S` after the last time."""
        waiting = self.manager.lifecycle.waiting
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REVIEW_S):
                    await self._inspected.wait()
            self._inspected.clear()
            self.manager.lifecycle.pass_turns()
            waiting.review(self._rounds)
            if self.manager.lifecycle.groups.review() or len(waiting):
                self._carry_out()
