"""One simulation: a scheduler in this process, the model of its resource manager, the virtual time, and what is observed.

In scripts the model does not follow its pods: there nothing ends, and no release is confirmed, until a line says so.

Outputs of the core are collected while a call runs and handled after it has returned, so that nothing is submitted while
the core is at work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from licorne.core.api import ConfigurationError, SchedulerAPI
from licorne.core.gangs.timeout import OVER as PLACEHOLDERS_OVER
from licorne.core.input_log import InputLog
from licorne.core.queues.queue import Queue
from licorne.core.strict import holds
from licorne.si import messages, v19
from licorne.sim.evictions import EvictionCosts, cause
from licorne.sim.jobs import SETTINGS, JobQueues, has_job_orders
from licorne.sim.model import Pod, ResourceManager, Running
from licorne.sim.observer import Observer, overriding
from licorne.sim.pods import PodRecord, PodRecords
from licorne.sim.policies.loading import Loaded
from licorne.sim.policies.orders import Policies
from licorne.sim.policies.watch import Watch
from licorne.sim.refusals import Refusals
from licorne.sim.registration import refused_configuration, register
from licorne.sim.unplaced import Unplaced, unplaced
from licorne.sim.use import Use
from licorne.workload import lines
from licorne.workload.devices import devices_of
from licorne.workload.measure import NANOSECONDS
from licorne.workload.workload import Workload

RM_ID = "simulator"
NO_RESERVATIONS = {"reservation.enabled": "false"}
"""For a policy that may let a pod wait although a node fits: the scheduler must not reserve one for it after a while."""
_OF_APPLICATIONS = (lines.App, lines.ReleaseApp, lines.Ask, lines.Release)


class SimulatedCluster:
    """Submits a workload's lines to the scheduler and keeps track of what becomes of them."""

    def __init__(
        self,
        workload: Workload,
        *,
        config: str | None = None,
        settings: Mapping[str, str] | None = None,
        defaults: Mapping[str, str] | None = None,
        follows: bool = False,
        window_ns: tuple[int, int | None] = (0, None),
        input_log: InputLog | None = None,
        policies: Sequence[Loaded] = (),
        watch: Watch | None = None,
    ) -> None:
        """Register with a new scheduler.

        `follows`: pods end by themselves and releases are confirmed, as in timed simulations. `settings` take precedence over
        those of the workload, and these over `defaults`. `window_ns`: the part of the time, from and up to (None: the end),
        that figures over time and figures of pods are for, the latter by the arrival of the pods. `input_log`: told of all
        inputs of the scheduler. `policies` decide in place of the scheduler what they have methods for; `watch` ends their
        calls, without it nothing does.
        """
        strict = has_job_orders(workload, config)
        given = NO_RESERVATIONS if any("choose_node" in each.decides for each in policies) else {}
        own = {**(SETTINGS if strict else given), **(defaults or {})}
        self.api = SchedulerAPI(settings=own, on_output=self._on_output)
        self.api.input_log = input_log
        self.policies = policies
        self._orders = orders = Policies(policies, lambda: self.now_ns / NANOSECONDS, watch or Watch(None))
        self.api.cluster.orders = orders.orders()
        self.model = ResourceManager(
            grace_ns=lines.to_ns(workload.grace_s),
            follows=follows,
            resubmits=workload.resubmit,
            replaces=workload.replace,
            devices=devices_of(workload, orders.device_choice()),
        )
        self.counts = self.model.counts
        self.workload = workload
        self.now_ns = 0
        self.changed_ns = 0
        self.hearing_outputs: tuple[Observer, ...] = ()
        self.hearing_moments: tuple[Observer, ...] = ()
        self.extra = {**workload.extra, **(settings or {})}
        self.evictions = EvictionCosts()
        self.refusals = Refusals(workload)
        self.waits_ns: defaultdict[str, list[int]] = defaultdict(list)
        self._unplaced: list[Unplaced] | None = None
        self._outputs: list[messages.Output] = []
        self._reported: set[tuple[str, str]] = set()  # allocations that the workload has told the scheduler of just now
        self._queue_of: dict[str, Queue] = {}
        self.jobs: JobQueues | None = None
        if strict:
            self.jobs = JobQueues(
                self.model,
                self._queue_of,
                knows=lambda app: app in self.partition.applications,
                waits=self._waits,
                send=self._send,
                decide=self._schedule,
                place=workload.place_of,
            )
        self.records = self.model.records = PodRecords(self._queue_of, *window_ns)
        self.partition = register(self.api, RM_ID, workload, config, settings or {})
        orders.attach(self.partition, self.model.find)
        if self.model.devices is not None:
            self.model.devices.attach(self.partition)
        self.use = Use(next(iter(self.partition.tree.queues())), *window_ns)

    def begin(self) -> None:
        """Let policies get ready, before anything has happened; later calls do nothing.

        Raises:
            PolicyError: a policy raised, returned something, or took too long.
        """
        self._orders.begin(self.workload.lines, self.workload.devices)

    def watch(self, observers: Sequence[Observer]) -> None:
        """Let observers hear what follows; one call for all of them."""
        for observer in overriding(observers, "on_begin"):
            observer.on_begin(self)
        self.hearing_outputs = overriding(observers, "on_outputs")
        self.hearing_moments = overriding(observers, "on_moment")
        hearing_pods = overriding(observers, "on_pod")

        def hand_on(record: PodRecord) -> None:
            for observer in hearing_pods:
                observer.on_pod(record)

        if hearing_pods:
            self.records.sink = hand_on if len(hearing_pods) > 1 else hearing_pods[0].on_pod

    # -- inputs --------------------------------------------------------------------------------------------------

    def hand_in(self, given: Sequence[lines.Line], first: int = -1) -> None:
        """Submit lines, in order, at the present moment. A `run` is not a message and is left to the caller.

        `first` is the index in the workload of the first line; -1 if they are not its lines. A refusal then names the line.
        """
        batch: list[messages.Input] = []
        self.refusals.handing_in(given, first)
        for index, line in enumerate(given, first):
            again = self._again(line)
            if again or type(line) is lines.Reload:
                self._submit(batch)
                batch = []
            if type(line) is lines.Reload:
                self.reload(line.yaml, self.workload.place(index))
            elif type(line) is not lines.Run:
                if again and type(line) is lines.Ask:
                    self._used(line.app)
                elif not isinstance(line, _OF_APPLICATIONS):
                    self.use.resized()
                message = self.model.take(line, self.now_ns)
                if message is not None:
                    batch.append(message)
        self._submit(batch)

    def _again(self, line: lines.Line) -> bool:
        """Whether what became of earlier lines about the same application or ask decides what this line means."""
        if type(line) is lines.Ask:
            return self.model.find(line.app, line.key) is not None
        if type(line) is lines.Release or type(line) is lines.ReleaseApp:
            # Allocations of an ask that repeats outlive its release, and one reported just now must not count for a later ask.
            key = line.key if type(line) is lines.Release else ""
            pods = [
                self.model.find(line.app, each) for each in ([key] if key else self.model.keys_of.get(line.app, ()))
            ]
            return any(pod is not None and pod.pending and (pod.ask.max > 1 or pod.ask.node) for pod in pods)
        return type(line) is lines.App and line.id in self.model.applications

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
        if self.jobs is not None:
            self.jobs.configuration_changed()
        self.changed_ns = self.now_ns
        return None

    def decide(self, limit: int | None = None) -> int:
        """Let the scheduler decide until nothing more is possible, or up to a limit; return the number of allocations made."""
        made = self._schedule(limit)
        if self.jobs is not None:
            made += self.jobs.serve(self.now_ns)
        return made

    def _schedule(self, limit: int | None = None) -> int:
        made = self.api.schedule(now_ns=self.now_ns, limit=limit)
        # A confirmed release frees room that the next decision may be waiting for.
        while self._outputs and self._take(deciding=True):
            made += self.api.schedule(now_ns=self.now_ns, limit=limit)
        return made

    def end_due(self, *, one: bool = False) -> int:
        """End the pods whose duration is over, or the grace period of their eviction; return their number.

        `one`: of those that end by themselves only the first, with what else ends then of its application.
        """
        batch = self.model.due(self.now_ns, one=one)
        if not batch:
            return 0
        self._submit(batch)
        return sum([type(message) is messages.Release for message in batch])

    def _submit(self, batch: list[messages.Input]) -> None:
        """Submit messages, without the asks that a strict order of jobs keeps back."""
        if self.jobs is not None and batch:
            self.changed_ns = self.now_ns
            batch = self.jobs.keep_back(batch)
        self._send(batch)

    def _send(self, batch: list[messages.Input]) -> None:
        if batch:
            self._reported = {
                (message.application_id, message.key)
                for message in batch
                if type(message) is messages.Allocation and message.node_id
            }
            self.api.submit(RM_ID, batch, now_ns=self.now_ns)
            self.changed_ns = self.now_ns
        if self._outputs:
            self._take(deciding=False)

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
            for observer in self.hearing_outputs:
                observer.on_outputs(self.now_ns, outputs, deciding=deciding)
            answers: list[messages.Input] = []
            for output in outputs:
                if isinstance(output, messages.NewAllocation):
                    self._allocated(output, deciding)
                elif isinstance(output, messages.Released):
                    answers += self._released(output)
                else:
                    answers += self._other(output)
            if answers and self.jobs is not None:
                answers = self.jobs.keep_back(answers)
            if answers:
                confirmed = True
                self.api.submit(RM_ID, answers, now_ns=self.now_ns)
        return confirmed

    def _used(self, app: str) -> Queue | None:
        """Note that the usage of an application's queue may have changed; return that queue, None if it is not known."""
        queue = self._queue_of.get(app)
        if queue is not None:
            self.use.changed(queue)
        return queue

    def _allocated(self, new: messages.NewAllocation, deciding: bool) -> None:
        """Take in an allocation that the scheduler tells of.

        If it follows from a message, the workload has reported it, or it takes the place of a placeholder, as was decided before.
        """
        self.changed_ns = now_ns = self.now_ns
        queue = self._used(new.application_id)
        reported = not deciding and (new.application_id, new.key) in self._reported
        pod = self.model.placed(new.application_id, new.key, new.uuid, new.node_id, now_ns, reported=reported)
        if pod is None:
            return
        if pod.ask.ph:
            self.counts["placeholders"] += 1
        elif not reported:
            self.counts["placed"] += 1
            if self.records.from_ns <= pod.arrived_ns < self.records.to_ns:
                self.waits_ns[queue.path if queue is not None else new.queue].append(now_ns - pod.arrived_ns)
        else:
            self.counts["recovered"] += 1
            devices = self.model.devices
            if devices is not None and pod.ask.res.get(devices.resource):
                # One that was reported, not decided, may find too few devices on its node.
                self.counts["without devices"] += not devices.held(new.application_id, new.uuid or new.key)
        if not self.model.follows:
            self.records.placed(pod, new.node_id, now_ns)

    def _released(self, released: messages.Released) -> list[messages.Input]:
        self.changed_ns = self.now_ns
        self._used(released.application_id)
        app, key, uuid = released.application_id, released.key, released.uuid
        if released.ask:
            pod = self.model.find(app, key)
            # Asks that are no placeholders are dropped when the failure of their application is told.
            if pod is not None and pod.pending and pod.ask.ph:
                self.model.refused(pod)
            return []
        run = self.model.running.get(uuid or (app, key))
        evicted = released.termination is messages.Termination.PREEMPTED_BY_SCHEDULER
        if evicted and run is not None and not run.ended:
            self._evicted(run, released.message)
        return self.model.released(app, key, uuid, released.termination, self.now_ns)

    def _evicted(self, run: Running, message: str) -> None:
        """Record an eviction: of which queue, for which queue, and the work that is lost."""
        kind, wanted_by = cause(message)
        if kind != "quota-change":
            wanting = self.model.pods.get(wanted_by)
            wanted_by = self.path(wanting.ask.app) if wanting is not None else ""
        ask = run.pod.ask
        self.evictions.evicted(
            kind,
            self.path(ask.app),
            wanted_by,
            held=ask.res,
            ran_ns=self.now_ns + self.model.grace_ns - run.since_ns,
            real=not ask.ph,
        )

    def path(self, app: str) -> str:
        """Return the path of an application's queue, "" if it has none."""
        queue = self._queue_of.get(app)
        return queue.path if queue is not None else ""

    def _give_up(self, pods: Iterable[Pod], reason: str) -> None:
        """Drop pods that wait, and count their asks as rejected for this reason, because their application has ended."""
        for pod in pods:
            self.records.never(pod, self.now_ns, "refused")
            if pod.counted:
                self.refusals.given_up(reason, pod.ask, pod.ask.max - pod.placed)
            self.model.refused(pod)
        if self.jobs is not None:
            self.jobs.withdrawn()

    def _other(self, output: messages.Output) -> list[messages.Input]:
        answers: list[messages.Input] = []
        if isinstance(output, messages.AcceptedApplication):
            # A job that was held back and comes again brings its application once more.
            self.counts["applications accepted"] += self.jobs is None or output.application_id not in self._queue_of
            self.refusals.accepted("application", output.application_id)
            application = self.partition.applications.get(output.application_id)
            if application is not None:
                self._queue_of[output.application_id] = application.queue
                answers = self.model.accepted(output.application_id, application.queue.path, self.now_ns)
        elif isinstance(output, messages.RejectedApplication):
            self.counts["applications rejected"] += 1
            known = self.model.applications.get(output.application_id)
            there = known is not None and bool(known.state)  # a second application of the same name was refused
            asked_for = self.records.queue_of(output.application_id)
            reason = self.refusals.application(output, there=there, queue=asked_for)
            if not there:  # asks that were not kept back are refused one by one
                self._give_up(self.model.give_up_kept(output.application_id), reason)
        elif isinstance(output, messages.UpdatedApplication):
            answers = self.model.entered(output.application_id, output.state, output.message)
            if output.state in ("Failing", "Failed"):
                what = "gang" if output.message == PLACEHOLDERS_OVER else "application"
                self._give_up(self.model.give_up_pending(output.application_id), f"its {what} failed: {output.message}")
            elif output.state == "Completed":
                self._give_up(self.model.give_up_kept(output.application_id), "its application has completed")
        elif isinstance(output, messages.AcceptedNode):
            self.refusals.accepted("node", output.node_id)
        elif isinstance(output, messages.RejectedNode):
            self.counts["nodes rejected"] += 1
            self.refusals.node(output)
        elif isinstance(output, messages.RejectedAllocation):
            self._rejected(output)
        return answers

    def _waits(self, application_id: str, key: str) -> bool:
        """Whether an ask waits in the scheduler."""
        app = self.partition.applications.get(application_id)
        return app is not None and key in app.asks

    def _rejected(self, output: messages.RejectedAllocation) -> None:
        app = self.partition.applications.get(output.application_id)
        pod = self.model.find(output.application_id, output.key)
        if pod is None or not pod.pending or (app is not None and holds(app, output.key)):
            self.refusals.allocation(output)  # of a change
            return
        number = pod.ask.max - pod.placed
        self.records.never(pod, self.now_ns, "refused")
        self.model.refused(pod)
        if self.jobs is not None:
            self.jobs.withdrawn()
        if pod.counted:
            self.refusals.ask(output, number)
        else:
            self.refusals.allocation(output)

    def unsettled(self) -> bool:
        """Whether a deadline can still change the result: an ask waits, or an allocation lives."""
        return bool(self.model.running or self.model.going) or self.counts["placed"] < self.counts["asked"]

    def span(self, until_ns: int) -> None:
        """Tell observers of the state from this moment until the next."""
        for observer in self.hearing_moments:
            observer.on_moment(self.now_ns, until_ns, self.partition)

    def unplaced(self) -> list[Unplaced]:
        """Return which asks were not placed up to now, and why; found once, so it is for the end of the simulation."""
        if self._unplaced is None:
            self._unplaced = list(unplaced(self))
        return self._unplaced

    def finish(self) -> None:
        """Say what became of the pods that run or wait at the end, which is the time of the last change."""
        for run in self.model.running.values():
            self.records.ended(run, self.changed_ns, "running")
        for pod in self.model.all_pods():
            self.records.never(pod, self.changed_ns, "waiting")
        for observer in self.hearing_moments:
            observer.on_moment(self.changed_ns, None, self.partition)
