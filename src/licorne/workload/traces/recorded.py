"""A recording as a workload: what resource managers asked for, apart from what the scheduler decided.

Nodes, applications and asks come when they came. A pod runs as long as it ran: from its allocation until its resource manager
ended it, or its application. What was decided is left out, and so is what follows from it: answers to evictions, and answers of
predicates. So the same arrivals can be simulated under another configuration, in which pods start at other times.

What a recording does not show is assumed and said in the workload's notes. An ask that its application makes after one of its
pods was evicted, with the same amounts and priority, is that pod once more: without the eviction it would not have come. The pod
runs as long as it did then. A pod that nobody asked for again runs as long as it ran, as its end is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from licorne.config.limits import USER_NAME
from licorne.core.base.setting_table import unknown_settings
from licorne.core.inspection.reported import report
from licorne.si import messages
from licorne.si.constants import DEFAULT_PARTITION, NODE_PARTITION, TAG_FOREIGN
from licorne.si.messages import NodeAction, Termination
from licorne.state.recording import Replay, Run, choose_run, list_runs
from licorne.state.recording.moments import written
from licorne.workload import lines
from licorne.workload.measure import NANOSECONDS
from licorne.workload.workload import ASKS_MAX, Mode, Progress, Workload, WorkloadError

RUNS_NAMED: Final = 5
"""How many other runs a note names."""
GRACE_S: Final = 1.0
"""How long an evicted pod takes to end, where none was evicted."""
NOTES: Final = {
    "partition": "inputs for other partitions than default are left out",
    "manager": "inputs of other resource managers than the first are left out",
    "budget": "disruption budgets are left out",
    "change": "changes of applications after their beginning, such as of how many members a gang needs, are left out",
    "again": "pods were evicted and asked for again; each counts as one pod, which is created again where it is evicted",
    "evicted": "pods were evicted and not asked for again; each runs as long as it ran",
    "trimmed": "the beginning of the run was removed; what was there at the time of its oldest checkpoint comes at the "
    "beginning of the workload, applications in the queue in which they were",
    "class": "priority classes are left out; priorities are numbers",
}
"""What the notes of the workload say of the recording, by the key under which the cases are counted."""

Pod = tuple[str, str]
"""Application and key of an ask."""


def recorded_workload(
    folder: Path, *, run: int | None = None, asks_max: int = ASKS_MAX, progress: Progress | None = None
) -> Workload:
    """Return the run of a recording with a number, or else the last one, as a workload.

    Raises:
        RecordingError: the folder is no recording that can be used, or the run cannot be repeated.
        WorkloadError: the recording has no ask, or more than `asks_max`.
    """
    chosen = choose_run(folder, run)
    made = _Lines(chosen)
    replay = made.replay
    size = replay.bytes_all
    outcome = replay.run(step=lambda: progress(replay.bytes_read, size) if progress is not None else None)
    if not made.pods:
        raise WorkloadError(f"{folder}: the recording has no ask, so there is nothing to simulate")
    if made.asks > asks_max:
        raise WorkloadError(f"{folder}: {made.asks:,} asks are more than {asks_max:,}; --max-asks allows more")
    notes = _other_runs(folder, chosen)
    notes += [f"{NOTES[why]} ({count:,})" for why, count in made.noted.items() if count]
    if outcome.remark:
        notes.append(outcome.remark)
    return Workload(
        name=folder.name,
        mode=Mode.TIMED,
        config=made.config,
        extra={key: text for key, text in made.settings.items() if not unknown_settings({key: text})},
        lines=made.lines,
        notes=notes,
        grace_s=median(made.graces_s) if made.graces_s else GRACE_S,
        resubmit=made.noted["again"] > 0,
    )


def _other_runs(folder: Path, chosen: Run) -> list[str]:
    """Return a note that names the runs that the workload does not have, the latest last; none if it has all."""
    runs = [each for each in list_runs(folder) if each.begins_ns is not None]
    named = [f"{each.number} from {written(each.begins_ns or 0)}" for each in runs if each.number != chosen.number]
    more = f"{len(named) - RUNS_NAMED:,} more, " if len(named) > RUNS_NAMED else ""
    listed = more + ", ".join(named[-RUNS_NAMED:])
    this = f"this is run {chosen.number} of the recording, from {written(chosen.begins_ns or 0)}"
    return [f"{this}; other runs are left out: {listed}; --run takes another one"] if named else []


def without_reloads(workload: Workload) -> Workload:
    """Return a workload without the configurations that took effect while it was recorded: another one is to be tried."""
    changes = len(list(workload.reloads))
    if not changes:
        return workload
    kept = [line for line in workload.lines if not isinstance(line, lines.Reload)]
    note = f"changes of the configuration are left out, as another one is tried ({changes})"
    return msgspec.structs.replace(workload, lines=kept, notes=[*workload.notes, note])


class _Lines:
    """Makes lines of the inputs of a repetition while it goes on."""

    def __init__(self, run: Run) -> None:
        self.replay = Replay(run, self._on_outputs, on_inputs=self._on_inputs, on_configuration=self._on_configuration)
        self.config = ""
        self.settings: dict[str, str] = {}
        self.lines: list[lines.Line] = []
        self.pods: dict[Pod, lines.Ask] = {}
        self.asks = 0
        self.noted: Counter[str] = Counter()
        self.graces_s: list[float] = []
        self._begins_ns = run.begins_ns or 0
        self._rm_id = self._present = ""
        self._started_ns: dict[Pod, int] = {}
        self._evicted_ns: dict[Pod, int] = {}
        self._lost: dict[tuple[object, ...], dict[str, lines.Ask]] = {}
        """Pods that were evicted, and that nobody has asked for again, by what they are like and then by key."""
        self._of_uuid: dict[str, Pod] = {}
        self._of_application: dict[str, dict[str, None]] = {}
        if run.trimmed:
            self._begin_with_what_is_there()

    @property
    def _at(self) -> float:
        return lines.from_ns(self.replay.now_ns - self._begins_ns)

    def _begin_with_what_is_there(self) -> None:
        """Take in what the scheduler has at the checkpoint at which the run begins, as if it were reported then."""
        for rm_id, manager in self.replay.api.cluster.managers.items():
            self._on_configuration(rm_id, manager.configuration.text, self.replay.settings.get(rm_id, {}))
            for partition in manager.ordered:
                for one in report(partition):
                    self.noted["trimmed"] += isinstance(one, messages.AddApplication)
                    self._on_inputs(rm_id, [one])

    # -- what the recording says -----------------------------------------------------------------------------

    def _on_configuration(self, rm_id: str, text: str, settings: Mapping[str, str]) -> None:
        if not self._rm_id:
            self._rm_id, self.config, self.settings = rm_id, text, dict(settings)
        elif rm_id != self._rm_id:
            return
        elif text != self._present:
            self.lines.append(lines.Reload(at=self._at, yaml=text))
        self._present = text

    def _on_inputs(self, rm_id: str, inputs: Sequence[messages.Input]) -> None:
        if rm_id != self._rm_id:
            self.noted["manager"] += len(inputs)
            return
        for one in inputs:
            if one.partition != DEFAULT_PARTITION:
                self.noted["partition"] += 1
                continue
            match one:
                case messages.Allocation():
                    self._asked(one)
                case messages.Release():
                    self._released(one)
                case messages.AddApplication():
                    self._application(one)
                case messages.RemoveApplication():
                    for key in list(self._of_application.pop(one.application_id, {})):
                        self._ended((one.application_id, key))
                case messages.NodeUpdate():
                    self._node(one)
                case messages.ChangeApplication():
                    self.noted["change"] += 1
                case _:
                    self.noted["budget"] += 1

    def _on_outputs(self, rm_id: str, outputs: Iterable[messages.Output]) -> None:
        if rm_id != self._rm_id:
            return
        for one in outputs:
            if isinstance(one, messages.NewAllocation):
                pod = (one.application_id, one.key)
                self._started_ns[pod] = self.replay.now_ns
                if one.uuid:
                    self._of_uuid[one.uuid] = pod
            elif isinstance(one, messages.Released) and one.termination not in _ANSWERS and not one.ask:
                self._evicted(self._of_uuid.get(one.uuid, (one.application_id, one.key)))

    def _evicted(self, pod: Pod) -> None:
        line = self.pods.get(pod)
        if line is not None:
            self._evicted_ns[pod] = self.replay.now_ns
            if not line.ph:
                self._lost.setdefault(_kind(line), {})[line.key] = line
                self.noted["evicted"] += 1

    # -- lines -----------------------------------------------------------------------------------------------

    def _asked(self, one: messages.Allocation) -> None:
        if TAG_FOREIGN in (one.tags or {}):
            tags = {name: text for name, text in (one.tags or {}).items() if name != TAG_FOREIGN} or None
            self.lines.append(
                lines.Foreign(at=self._at, key=one.key, node=one.node_id, res=one.resource or {}, tags=tags)
            )
            return
        pod = (one.application_id, one.key)
        if one.priority_class:
            self.noted["class"] += 1
        line = lines.Ask(
            at=self._at,
            key=one.key,
            app=one.application_id,
            res=one.resource or {},
            prio=one.priority,
            tags=one.tags or None,
            group=one.task_group,
            ph=one.placeholder,
            pre_self=one.allow_preempt_self,
            pre_other=one.allow_preempt_other,
            node=one.node_id,
            max=one.max_allocations,
            timeout_ms=max(0, one.timeout_ms),
            originator=one.originator,
        )
        if one.key in self._of_application.get(one.application_id, {}):
            self.lines.append(line)  # a change of its resources
            return
        if not one.node_id and (lost := self._lost.get(_kind(line))):
            line = lost.pop(next(iter(lost)))
            self.noted["again"] += 1
            self.noted["evicted"] -= 1
        else:
            if one.independent and not self._of_application.get(one.application_id):
                # The scheduler makes an application for an ask without one; the workload has to name it.
                tags = one.tags or None
                self.lines.append(lines.App(at=self._at, id=one.key, user="nobody", groups=("nogroup",), tags=tags))
            self.lines.append(line)
            self.asks += one.max_allocations
        self.pods[pod] = line
        self._of_application.setdefault(one.application_id, {})[one.key] = None
        if one.node_id:
            self._started_ns[pod] = self.replay.now_ns
            if one.uuid:
                self._of_uuid[one.uuid] = pod

    def _released(self, one: messages.Release) -> None:
        # The first interface names an allocation by its UUID, and an ask without an application by its key alone.
        app, key = self._of_uuid.get(one.uuid) or (one.application_id, one.key or one.uuid)
        if not app and one.what == "both":
            self.lines.append(lines.Release(at=self._at, app="", key=key))
            return
        app = app or key
        there = self._of_application.get(app, {})
        for each in [key] if key else list(there):
            if each in there:
                del there[each]
                self._ended((app, each))

    def _ended(self, pod: Pod) -> None:
        """Note the end of a pod: a duration if it ran, or else a release of its ask."""
        line = self.pods[pod]
        started_ns = self._started_ns.pop(pod, None)
        evicted_ns = self._evicted_ns.pop(pod, None)
        if started_ns is None:
            if line.key == pod[1]:  # otherwise it is an evicted pod that was asked for again, in vain
                self.lines.append(lines.Release(at=self._at, app=pod[0], key=pod[1]))
            return
        if evicted_ns is not None:
            if line.ph:
                return  # its place goes to the pod for which it was held, or its time was over: the scheduler's affair
            self.graces_s.append((self.replay.now_ns - evicted_ns) / NANOSECONDS)
            if line.key not in self._lost.get(_kind(line), {}):
                return  # it was asked for again meanwhile
        line.duration_s = (self.replay.now_ns - started_ns) / NANOSECONDS

    def _application(self, one: messages.AddApplication) -> None:
        timeout_ms = one.execution_timeout_ms
        # A workload names groups as a resource manager does, and beside those not every name of a user is accepted.
        named = not one.groups_found or USER_NAME.fullmatch(one.user) is not None
        self.lines.append(
            lines.App(
                at=self._at,
                id=one.application_id,
                queue=one.queue,
                user=one.user,
                groups=one.groups if named else (),
                tags=one.tags or None,
                timeout_ms=timeout_ms if one.timeout_is_running_time else 0,
                ph_timeout_ms=0 if one.timeout_is_running_time else timeout_ms,
                ph_ask=one.placeholder_ask or None,
                style=one.gang_style if one.gang_style in lines.STYLES else "",
            )
        )

    def _node(self, one: messages.NodeUpdate) -> None:
        name, at = one.node_id, self._at
        # The adapters name the partition by the resource manager's id, and the simulator has another one.
        attrs = {key: text for key, text in (one.attributes or {}).items() if key != NODE_PARTITION} or None
        match one.action:
            case NodeAction.CREATE | NodeAction.CREATE_DRAIN:
                drain = one.action == NodeAction.CREATE_DRAIN
                self.lines.append(lines.Node(at=at, id=name, res=one.capacity or {}, attrs=attrs, drain=drain))
                if one.occupied:
                    self._occupied(one)
                for each in one.existing:
                    self._asked(each)
            case NodeAction.UPDATE:
                self.lines.append(lines.NodeUpdate(at=at, id=name, res=one.capacity, attrs=attrs))
                if one.occupied is not None:
                    self._occupied(one)
            case NodeAction.DRAIN_NODE:
                self.lines.append(lines.NodeDrain(at=at, id=name))
            case NodeAction.DRAIN_TO_SCHEDULABLE:
                self.lines.append(lines.NodeUndrain(at=at, id=name))
            case NodeAction.DECOMISSION:
                self.lines.append(lines.NodeRemove(at=at, id=name))
            case _:
                pass  # the scheduler ignores it, too

    def _occupied(self, one: messages.NodeUpdate) -> None:
        """Take what a node reports as occupied (first interface) for an allocation of another scheduler."""
        key = f"{one.node_id} occupied"
        self.lines.append(lines.Foreign(at=self._at, key=key, node=one.node_id, res=one.occupied or {}))


def _kind(line: lines.Ask) -> tuple[object, ...]:
    return (line.app, tuple(sorted(line.res.items())), line.prio, line.group)


_ANSWERS: Final = (Termination.UNKNOWN, Termination.STOPPED_BY_RM)
"""Terminations with which the scheduler answers the resource manager, rather than ends something by itself."""
