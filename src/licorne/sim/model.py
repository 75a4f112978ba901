"""A model of a resource manager: what it submits, what it remembers, and how it answers the scheduler.

Like a real one it knows its pods: when each arrived, where it runs, when it ends by itself. It confirms a release that
the scheduler starts (a timeout, a replaced placeholder) by sending the same release back at the same virtual time. A
preemption victim first has a grace period, and is then created again, as a controller would do. In scripts it does
neither, because there a victim stays until a line of the script names it. Gangs are handled in `gangs.py`.

Outputs of the core are collected while a call runs and handled after it has returned, so that nothing is submitted while
the core is at work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

import msgspec

from licorne import ConfigurationError, SchedulerAPI
from licorne.si import messages, v19
from licorne.sim import lines
from licorne.sim.evictions import EvictionBook, cause
from licorne.sim.gangs import Gangs
from licorne.sim.inputs import CONVERSIONS
from licorne.sim.refusals import Refusals
from licorne.sim.registration import refused_configuration, register
from licorne.sim.use import Use
from licorne.sim.workload import Workload

RM_ID = "simulator"
CONFIRMED = frozenset(
    (
        messages.Termination.TIMEOUT,
        messages.Termination.PREEMPTED_BY_SCHEDULER,
        messages.Termination.PLACEHOLDER_REPLACED,
    )
)


class Observer(Protocol):
    """Receives every output of the core, in order; `deciding` says whether it came from a call of `schedule`."""

    def take(self, outputs: Sequence[messages.Output], *, deciding: bool) -> None:
        """Handle outputs of the scheduler."""


class Pod(msgspec.Struct, gc=False):
    """What the resource manager remembers of an ask. A duration of -1 means that it runs until something ends it."""

    ask: lines.Ask
    app: str
    arrived_ns: int
    duration_ns: int
    wanted: int = 1
    placed: int = 0


class Running(msgspec.Struct, gc=False):
    """A live allocation: its pod, its number among all allocations, and its start."""

    key: str
    pod: Pod
    uuid: str
    number: int
    since_ns: int


class ResourceManager:
    """Submits a workload's lines to the scheduler and keeps track of what becomes of them."""

    def __init__(
        self,
        workload: Workload,
        *,
        config: str | None = None,
        settings: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
        follows: bool = False,
    ) -> None:
        """Register with a new scheduler.

        `follows`: pods end by themselves and releases are confirmed, as in timed simulations. `settings` take precedence over
        those of the workload, and these over `defaults`.
        """
        self.api = SchedulerAPI(settings=dict(defaults or {}), on_output=self._on_output)
        self.workload = workload
        self.now_ns = 0
        self.changed_ns = 0
        self.follows = follows
        self.observers: tuple[Observer, ...] = ()
        self.extra = {**workload.extra, **(settings or {})}
        self.pods: dict[str, Pod] = {}
        self.keys_of: defaultdict[str, list[str]] = defaultdict(list)
        self.running: dict[str, Running] = {}
        self.ends: list[tuple[int, int, str]] = []
        self.going: list[tuple[int, int, Running]] = []
        self.grace_ns = lines.to_ns(workload.grace_s)
        self.resubmits = workload.resubmit
        self.evictions = EvictionBook()
        self.gangs = Gangs()
        self.counts: Counter[str] = Counter()
        self.refusals = Refusals(workload)
        self.waits_ns: defaultdict[str, list[int]] = defaultdict(list)
        self._numbered = 0
        self._outputs: list[messages.Output] = []
        self._queue_of: dict[str, Any] = {}
        self.partition = register(self.api, RM_ID, workload, config, settings or {})
        self.use = Use(next(iter(self.partition.tree.queues())))

    # -- inputs --------------------------------------------------------------------------------------------------

    def hand_in(self, given: Sequence[lines.Line], first: int = -1) -> None:
        """Submit lines, in order, at the present moment. A `run` is not a message and is left to the caller.

        `first` is the index in the workload of the first line; -1 if they are not its lines. A refusal then names the line.
        """
        batch: list[messages.Input] = []
        self.refusals.handing_in(given, first)
        for index, line in enumerate(given, first):
            if type(line) is lines.Ask:
                self._note_ask(line)
                if self.follows and self.gangs.known and self.gangs.keeps(line):
                    continue
            elif type(line) is lines.Reload:
                self._submit(batch)
                batch = []
                self.reload(line.yaml, self.workload.place(index))
                continue
            elif type(line) is lines.Run:
                continue
            elif type(line) is lines.App:
                self.gangs.submitted(line, self.now_ns)
            else:
                self._note_other(line)
            batch.append(CONVERSIONS[type(line)](line))
        self._submit(batch)

    def reload(self, text: str, place: str = "") -> str | None:
        """Replace the configuration, from a line at `place`; return the scheduler's reason for refusing it, or None."""
        request = v19.UpdateConfigurationRequest(rm_id=RM_ID, config=text, extra_config=self.extra)
        try:
            self.api.update_configuration(request, now_ns=self.now_ns)
        except ConfigurationError as error:
            self.counts["reloads refused"] += 1
            reason = refused_configuration(text, "yaml", error)
            self.refusals.reload(reason, place)
            return reason
        finally:
            self._take(deciding=False)
        self.use.queues_changed(self._queue_of.values())
        self.changed_ns = self.now_ns
        return None

    def decide(self, limit: int | None = None) -> int:
        """Let the scheduler decide until nothing more is possible, or up to a limit; return the number of allocations made."""
        made = self.api.schedule(now_ns=self.now_ns, limit=limit)
        # A confirmed release frees room that the next decision may be waiting for.
        while self._take(deciding=True):
            made += self.api.schedule(now_ns=self.now_ns, limit=limit)
        return made

    def end_due(self) -> int:
        """End the pods whose duration is over; return their number."""
        batch: list[messages.Input] = []
        while self.ends and self.ends[0][0] <= self.now_ns:
            _, number, name = heappop(self.ends)
            run = self.running.get(name)
            if run is not None and run.number == number:
                batch.append(self._release(run, messages.Termination.STOPPED_BY_RM))
        self.counts["ended"] += len(batch)
        self._submit(batch)
        return len(batch)

    def end_evicted(self) -> int:
        """Confirm the evictions whose grace period is over, and create those pods again; return their number."""
        batch: list[messages.Input] = []
        number = 0
        while self.going and self.going[0][0] <= self.now_ns:
            self._gone(heappop(self.going)[2], batch)
            number += 1
        self._submit(batch)
        return number

    def next_end_ns(self) -> int | None:
        """Return when the next pod ends, by itself or because its grace period is over; None if none will."""
        moments = [heap[0][0] for heap in (self.ends, self.going) if heap]
        return min(moments) if moments else None

    def _submit(self, batch: list[messages.Input]) -> None:
        if batch:
            self.api.submit(RM_ID, batch, now_ns=self.now_ns)
            self.changed_ns = self.now_ns
        self._take(deciding=False)

    def _release(self, run: Running, termination: messages.Termination) -> messages.Release:
        return messages.Release(
            application_id=run.pod.app,
            key=run.key,
            uuid=run.uuid,
            termination=termination,
            what="allocation" if run.pod.wanted > 1 else "both",
        )

    def _note_ask(self, line: lines.Ask) -> None:
        """Remember a new ask; for a known key only its resources change."""
        known = self.pods.get(line.key)
        if known is not None:
            known.ask = msgspec.structs.replace(known.ask, res=line.res)
            queue = self._queue_of.get(line.app)
            if queue is not None:
                self.use.changed(queue)
            return
        duration_ns = -1 if line.duration_s is None else lines.to_ns(line.duration_s)
        self.pods[line.key] = Pod(line, line.app, self.now_ns, duration_ns, line.max)
        self.keys_of[line.app].append(line.key)
        if not line.node and not line.ph:
            self.counts["asked"] += line.max

    def _note_other(self, line: lines.Line) -> None:
        """Forget pods that a line releases; note lines that change the cluster's size."""
        if isinstance(line, lines.Release):
            pod = self.pods.get(line.key)
            if pod is not None and pod.app == line.app:
                del self.pods[line.key]
            self.gangs.forget(line.app, line.key)
            if not line.key:
                self._forget(line.app)
        elif isinstance(line, lines.ReleaseApp):
            self._forget(line.app)
        else:
            self.use.resized()

    def _forget(self, app: str) -> None:
        self.gangs.forget(app, "")
        for key in self.keys_of.pop(app, ()):
            pod = self.pods.get(key)
            if pod is not None and pod.app == app:
                del self.pods[key]

    # -- outputs -------------------------------------------------------------------------------------------------

    def _on_output(self, rm_id: str, outputs: list[messages.Output]) -> None:
        del rm_id
        self._outputs += outputs

    def _take(self, *, deciding: bool) -> bool:
        """Handle the collected outputs, and submit the answers that they need; return whether there were any."""
        confirmed = False
        # Answers may cause further outputs at the same moment.
        while self._outputs:
            outputs, self._outputs = self._outputs, []
            for observer in self.observers:
                observer.take(outputs, deciding=deciding)
            answers: list[messages.Input] = []
            for output in outputs:
                if isinstance(output, messages.NewAllocation):
                    self._allocated(output, deciding)
                elif isinstance(output, messages.Released):
                    self._released(output, answers)
                else:
                    self._other(output, answers)
            if answers:
                confirmed = True
                self.api.submit(RM_ID, answers, now_ns=self.now_ns)
        return confirmed

    def _allocated(self, new: messages.NewAllocation, deciding: bool) -> None:
        self.changed_ns = self.now_ns
        queue = self._queue_of.get(new.application_id)
        if queue is not None:
            self.use.changed(queue)
        pod = self.pods.get(new.key)
        if pod is None:
            return
        pod.placed += 1
        if pod.ask.ph:
            self.counts["placeholders"] += 1
        elif deciding:
            self.counts["placed"] += 1
            self.waits_ns[queue.path if queue is not None else new.queue].append(self.now_ns - pod.arrived_ns)
        else:
            self.counts["recovered"] += 1
        if self.follows:
            self._numbered += 1
            name = new.uuid or new.key
            self.running[name] = Running(new.key, pod, new.uuid, self._numbered, self.now_ns)
            self.gangs.placed(pod.ask, self.now_ns)
            if pod.duration_ns >= 0:
                heappush(self.ends, (self.now_ns + pod.duration_ns, self._numbered, name))

    def _released(self, released: messages.Released, answers: list[messages.Input]) -> None:
        self.changed_ns = self.now_ns
        queue = self._queue_of.get(released.application_id)
        if queue is not None:
            self.use.changed(queue)
        if not self.follows or released.ask:
            return
        run = self.running.pop(released.uuid or released.key, None)
        if run is None:
            return
        self.gangs.ended(run.pod.ask)
        if released.termination is messages.Termination.PREEMPTED_BY_SCHEDULER:
            self._evicted(run, released.message)
            if self.grace_ns:
                heappush(self.going, (self.now_ns + self.grace_ns, run.number, run))
            else:
                self._gone(run, answers)
            return
        if run.pod.wanted == 1 and self.pods.get(run.key) is run.pod:
            del self.pods[run.key]
        if released.termination in CONFIRMED:
            if not run.pod.ask.ph:
                self.counts[released.termination.name.lower()] += 1
            answers.append(self._release(run, released.termination))

    def _evicted(self, run: Running, message: str) -> None:
        """Record an eviction: of which queue, for which queue, and the work that is lost."""
        self.counts["preempted_by_scheduler"] += 1
        kind, wanted_by = cause(message)
        if kind != "quota-change":
            wanting = self.pods.get(wanted_by)
            wanted_by = self._path(wanting.app) if wanting is not None else ""
        ask = run.pod.ask
        self.evictions.evicted(
            kind,
            self._path(run.pod.app),
            wanted_by,
            held=ask.res,
            ran_ns=self.now_ns + self.grace_ns - run.since_ns,
            real=not ask.ph,
        )

    def _path(self, app: str) -> str:
        queue = self._queue_of.get(app)
        return queue.path if queue is not None else ""

    def _gone(self, run: Running, batch: list[messages.Input]) -> None:
        """Confirm that an evicted pod has ended; its controller creates it again, unless the pod was released meanwhile."""
        batch.append(self._release(run, messages.Termination.PREEMPTED_BY_SCHEDULER))
        if self.pods.get(run.key) is not run.pod:
            return
        line = run.pod.ask
        if run.pod.wanted == 1:
            del self.pods[run.key]
        if line.ph or not self.resubmits:
            return
        if run.pod.wanted > 1 or line.node:
            key = line.key if run.pod.wanted == 1 else f"{line.key}~{run.number}"
            line = msgspec.structs.replace(line, key=key, max=1, node="")
        self.counts["resubmitted"] += 1
        self._note_ask(line)
        batch.append(CONVERSIONS[lines.Ask](line))

    def _hand_in_kept(self, asks: list[lines.Ask]) -> list[messages.Input]:
        """Return the inputs for asks that were kept back and are still wanted."""
        return [CONVERSIONS[lines.Ask](ask) for ask in asks if ask.key in self.pods]

    def _give_up(self, app: str, reason: str) -> None:
        """Count the asks that were kept back for an application as rejected, since it has ended."""
        for ask in self.gangs.given_up(app):
            if self.pods.pop(ask.key, None) is not None:
                self.refusals.given_up(reason, ask, app)

    def _other(self, output: messages.Output, answers: list[messages.Input]) -> None:
        if isinstance(output, messages.AcceptedApplication):
            self.counts["applications accepted"] += 1
            self.refusals.accepted("application", output.application_id)
            application = self.partition.applications.get(output.application_id)
            if application is not None:
                self._queue_of[output.application_id] = application.queue
                if self.follows:
                    placeholders = self.gangs.accepted(output.application_id, application.queue.path)
                    for ask in placeholders:
                        self._note_ask(ask)
                    answers += [CONVERSIONS[lines.Ask](ask) for ask in placeholders]
        elif isinstance(output, messages.RejectedApplication):
            self.counts["applications rejected"] += 1
            there = output.application_id in self._queue_of  # a second application of the same name was refused
            reason = self.refusals.application(output, there=there)
            if not there:
                self._give_up(output.application_id, reason)
        elif isinstance(output, messages.UpdatedApplication):
            if output.application_id in self.gangs.known:
                answers += self._hand_in_kept(self.gangs.entered(output.application_id, output.state, output.message))
                if output.state in ("Failing", "Failed"):
                    self._give_up(output.application_id, f"its gang failed: {output.message}")
        elif isinstance(output, messages.AcceptedNode):
            self.refusals.accepted("node", output.node_id)
        elif isinstance(output, messages.RejectedNode):
            self.counts["nodes rejected"] += 1
            self.refusals.node(output)
        elif isinstance(output, messages.RejectedAllocation):
            self._rejected(output)

    def _rejected(self, output: messages.RejectedAllocation) -> None:
        pod = self.pods.get(output.key)
        if pod is None or pod.app != output.application_id or pod.placed:
            self.refusals.allocation(output)
            return
        del self.pods[output.key]
        if pod.ask.ph:
            self.refusals.allocation(output)
        else:
            self.refusals.ask(output, pod.wanted)

    def unsettled(self) -> bool:
        """Whether a deadline can still change the result: an ask waits, or an allocation lives."""
        return bool(self.running or self.going) or self.counts["placed"] < self.counts["asked"]

    def observe(self) -> None:
        """Read from the core what has changed at this moment: the usage of queues and the size of the cluster."""
        self.use.observe(self.now_ns)
