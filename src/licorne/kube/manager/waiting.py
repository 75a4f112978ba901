"""Why pods wait, as their condition `PodScheduled` and an event tell it (docs/spec/k8shim.md, section 6).

Autoscalers add nodes for pods whose condition has the reason `Unschedulable`. So only a pod that would run on another
node has it: one that was tried, and fits its quotas together with the pods before it; and one whose volumes or claims of devices
are not there, as kube-scheduler says it. What waits for anything else has
`SchedulingSkipped`, or `SchedulerError`; so does a pod that the scheduler refuses.

Most pods are told after `FIRST_S`, so one that is placed at once is told nothing. A pod that lacks nothing but room on nodes is told
as soon as the core has found that, since autoscalers act on it; a pod that may preempt must have tried that before.
A reason is written when another rule keeps the pod, not when amounts have changed; neither again for a pod, nor for very many
pods at once, within some time.

A pod for which others are evicted has the node in its `nominatedNodeName`, which is written with the condition, and at
once; it is cleared with the next condition, if the pod has given up. The API server clears it when the pod is bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from licorne.core.inspection import explain
from licorne.core.inspection.sentences import leading_sentence, sentence
from licorne.core.queues.application import Application
from licorne.core.queues.ask import Ask
from licorne.kube.objects import Pod
from licorne.kube.objects.pods import Condition
from licorne.kube.pods.work import Note

from .commands import SetCondition
from .outbox import Outbox
from .records import ApplicationRecord, GangStage, PodRecord, Records
from .stages import PLACED, Stage

UNSCHEDULABLE: Final = "Unschedulable"
SKIPPED: Final = "SchedulingSkipped"
ERROR: Final = "SchedulerError"
SCHEDULED: Final = "PodScheduled"
FIRST_S: Final = 1.0
"""Seconds that a pod waits before it is told why, unless the core finds sooner that it lacks nothing but room on nodes.

If it gets a node within this time, neither a condition nor an event is written."""
PASSED_OVER_S: Final = 2.0
"""Seconds that a pod waits before it is told `PASSED_OVER`: the core counts once a second which pods would fit their quotas."""
AGAIN_S: Final = 10.0
"""Seconds from one reason that a pod is told to the next, at least."""
EVENT_AGAIN_S: Final = 600.0
"""Seconds until an event with a reason that the pod was told before may be posted again."""
LOOKED_AT_MAX: Final = 1000
"""The most waiting pods that one review goes through."""
CONDITIONS_MAX: Final = 500
"""The most pods whose condition one review has written: an autoscaler that sees a part of those that wait adds too few nodes."""
NODES_MAX: Final = 50_000
"""The most comparisons of a pod with a node that one review makes, to find out why nodes do not take it."""
QUOTAS: Final = (
    explain.QueueQuota,
    explain.UserLimit,
    explain.Claimed,
    explain.MaxApplications,
    explain.StateOrder,
    explain.Placeholder,
)
ROOM: Final = (explain.ClusterFull, explain.Nodes, explain.RequiredNode, explain.Gang)
UNTRIED: Final = ("too young", "not tried")
"""The states of `explain.Preemption` in which an ask may preempt, and has not tried it yet."""
UNTIL: Final = "The pod waits until "
"""How the message begins of a pod that is held back, before the scheduler is asked for it."""


class Verdict:
    """Why a pod waits: the reason of the condition, its message, and `key`, which is equal while the same rules keep it.

    `node` is the one where others are evicted for it.
    """

    __slots__ = ("key", "message", "node", "reason")

    def __init__(self, reason: str, message: str, key: str = "", node: str = "") -> None:
        self.reason = reason
        self.message = message
        self.key = f"{reason}: {key or message}"
        self.node = node


PASSED_OVER: Final = Verdict(SKIPPED, "Pods before it will take what is left of its quotas.", "others")


class _LookBudget:
    """How many times a review may still look at all nodes. `counted`: what the nodes say of shapes that it has looked at."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self.counted: explain.Counted = {}

    def take(self, ask: Ask) -> bool:
        """Return whether the nodes may be looked at for an ask; a shape that is known costs nothing."""
        if ask.reserved is None and explain.alike(ask) in self.counted:
            return True
        self._looks -= 1
        return self._looks >= 0


class Waiting:
    """The pods that wait, in the order in which they are looked at."""

    def __init__(self, records: Records, outbox: Outbox) -> None:
        self._records = records
        self._outbox = outbox
        self._since: dict[str, float] = {}
        self._settled = -1
        """The state of the cluster in which no pod has anything to be told; -1: there is none."""

    def __len__(self) -> int:
        return len(self._since)

    def add(self, uid: str) -> None:
        """Take in a pod that has no node."""
        self._since.setdefault(uid, self._outbox.now_s())
        self._settled = -1

    def not_told(self, uid: str) -> None:
        """Note that a condition was not written, because the pod had changed: it is looked at again."""
        record = self._records.pods.get(uid)
        if record is not None:
            record.told = ""
            self._settled = -1

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._since.pop(uid, None)

    def review(self, state: int) -> None:
        """Tell pods why they wait; to be called after each inspection of the core (`Partition.inspections`), else once a second.

        Pods that were looked at go to the end, and those for which there was no time come first in the next review, so
        that each has its turn however many wait. `state` is another number whenever a pod, the cluster or what the scheduler
        knows may have changed; while it stays, pods that were all looked at are not looked at again.
        """
        if state == self._settled:
            return
        records, now = self._records, self._outbox.now_s()
        budget = _LookBudget(max(1, NODES_MAX // max(1, len(records.nodes))))
        told, is_settled = 0, len(self._since) <= LOOKED_AT_MAX
        first, last = dict[str, float](), dict[str, float]()
        for uid in list(islice(self._since, LOOKED_AT_MAX)):
            since = self._since.pop(uid)
            record = records.pods.get(uid)
            if record is None or record.stage in PLACED or record.leaving is not None:
                continue
            if record.pod.metadata.deletion_timestamp or self._is_early(record, since, now):
                last[uid] = since
                is_settled = False
            elif told >= CONDITIONS_MAX or not self._affordable(record, budget):
                first[uid] = since
                is_settled = False
            else:
                last[uid] = since
                verdict = self._safe_verdict(record, budget)
                if verdict is PASSED_OVER and is_within(now, since, PASSED_OVER_S):
                    is_settled = False
                elif verdict is not None and verdict.key != record.told:
                    told += self._tell(record, verdict, now)
        self._since = {**first, **self._since, **last}
        self._settled = state if is_settled else -1

    def _is_early(self, record: PodRecord, since: float, now: float) -> bool:
        """Return whether it is too early to tell a pod why it waits, which it does from the time `since` on."""
        told_lately = is_within(now, record.told_s, AGAIN_S)
        if not (told_lately or is_within(now, since, FIRST_S)):
            return False
        found = self.ask_of(record)
        if found is None:
            return True
        _, ask = found
        claim = self._outbox.partition.claims.by_ask.get(ask)
        if claim is not None and claim.node.id != record.pod.status.nominated_node_name:
            return False  # others are evicted for it, on a node that its status does not name yet
        return told_lately or not self._is_outstanding(ask) or self._will_try_preemption(ask)

    def _is_outstanding(self, ask: Ask) -> bool:
        """Return whether an ask waits for room on nodes and for nothing else, by the last inspection of the core."""
        return ask.outstanding == self._outbox.partition.inspections > 0

    def _will_try_preemption(self, ask: Ask) -> bool:
        """Return whether an ask may preempt and has not tried it yet, so that it may need no new node."""
        preemption = self._outbox.partition.guarantee_preemption.reason(ask)
        return preemption is not None and preemption[0] in UNTRIED

    def _tell(self, record: PodRecord, verdict: Verdict, now: float) -> bool:
        """Have a condition written, and an event posted; return False if the pod has the condition already."""
        record.told = verdict.key
        meta = record.pod.metadata
        if record.told_s == -math.inf and _has(record.pod, verdict):  # told before this process began
            record.posted[verdict.key] = now
            return False
        record.told_s = now
        nominated = None if verdict.node == record.pod.status.nominated_node_name else verdict.node
        names = (meta.namespace, meta.name, meta.uid)
        self._outbox.commands.append(
            SetCondition(*names, verdict.reason, verdict.message, meta.resource_version, nominated)
        )
        if not is_within(now, record.posted.get(verdict.key, -math.inf), EVENT_AGAIN_S):
            if len(record.posted) > 20:
                record.posted.clear()
            record.posted[verdict.key] = now
            kind = "TaskRejected" if record.stage is Stage.REFUSED else "FailedScheduling"
            self._outbox.post_event(record.pod, Note(kind, kind, verdict.message))
        return True

    # -- verdicts -----------------------------------------------------------------------------------------------

    def ask_of(self, record: PodRecord) -> tuple[Application, Ask] | None:
        """Return the application and the ask of a pod, if the scheduler has it and it waits there."""
        application = self._outbox.partition.applications.get(record.application.id)
        ask = None if application is None else application.asks.get(record.uid)
        return None if application is None or ask is None else (application, ask)

    def is_early(self, record: PodRecord) -> bool:
        """Return whether a pod has come before its namespace, by another watch: its quota and its labels are not known.

        Where no namespace is known at all, licorne may not read them, and nobody waits for one.
        """
        return bool(self._records.namespaces) and record.pod.metadata.namespace not in self._records.namespaces

    def why_held(self, record: PodRecord) -> str:
        """Return why the scheduler is not asked for a pod that has no node; "" if it is about to be."""
        if record.pod.metadata.deletion_timestamp:
            return "The pod is being deleted."
        if record.work.gates:
            return f"The pod has scheduling gates: {', '.join(record.work.gates)}."
        verdict = self._safe_verdict(record, _LookBudget(0))
        return "" if verdict is None else verdict.message

    def _affordable(self, record: PodRecord, budget: _LookBudget) -> bool:
        """Return whether there is time in this review for what it takes to find out why the pod waits."""
        found = self.ask_of(record) if record.stage is Stage.ASKED else None
        if found is None:
            return True
        application, ask = found
        claims = self._outbox.partition.claims.by_ask
        looks_at_nodes = not ask.required and application.atomic is None and ask not in claims
        return not looks_at_nodes or budget.take(ask)

    def _safe_verdict(self, record: PodRecord, budget: _LookBudget) -> Verdict | None:
        """Return why a pod waits; an error in finding out is told to that pod, and harms no other."""
        try:
            return self._verdict(record, budget.counted)
        except Exception as error:  # noqa: BLE001  whatever it is, the scheduler goes on
            return Verdict(ERROR, f"Why the pod waits could not be found out: {error!r}", "fault")

    def _verdict(self, record: PodRecord, counted: explain.Counted) -> Verdict | None:
        """Return why a pod waits; None if that is not known now, or if the API server itself or the end of its application says it."""
        work = record.work
        if work.gates:
            return None  # the API server has set the condition
        if record.stage is Stage.UNBOUND:
            return Verdict(ERROR, f"The pod could not be bound, and is tried again: {record.failure}", "bind")
        if record.stage is Stage.REFUSED:  # one whose application was refused has failed, and waits for nothing
            return Verdict(ERROR, f"The pod is refused: {record.failure}") if record.failure else None
        if work.fault:
            return Verdict(ERROR, work.fault)
        if (
            work.later
        ):  # of volumes and devices kube-scheduler's filters say the same, and so does an autoscaler's simulation
            of_filters = work.later in (work.volumes.why, work.devices.why)
            return Verdict(UNSCHEDULABLE if of_filters else SKIPPED, work.later)
        if record.stage is Stage.ASKED:
            return self._of_asked(record, counted)
        if self.is_early(record):
            return Verdict(SKIPPED, f"{UNTIL}licorne has seen namespace {record.pod.metadata.namespace}.")
        if (before := self._records.pods.get(record.behind)) is not None:
            meta = before.pod.metadata
            text = f"{UNTIL}pod {meta.namespace}/{meta.name} has a node, with which it has claims or volumes in common."
            return Verdict(SKIPPED, text, "turn")
        return _of_gang(record.application)

    def _of_asked(self, record: PodRecord, counted: explain.Counted) -> Verdict | None:
        found = self.ask_of(record)
        if found is None:
            return None
        application, ask = found
        partition = self._outbox.partition
        if ask in partition.claims.by_ask and (coming := partition.guarantee_preemption.reason(ask)) is not None:
            reason = explain.Preemption(*coming)
            text = f"The pod waits for room. {sentence(reason)}"
            return Verdict(SKIPPED, text, f"coming {reason.detail}", reason.detail)
        reasons: list[explain.Reason] = [
            reason
            for reason in explain.reasons(partition, application, ask, counted)
            if isinstance(reason, QUOTAS + ROOM)
        ]
        if not reasons:
            return None
        quotas = [reason for reason in reasons if isinstance(reason, QUOTAS)]
        gang = next((reason for reason in reasons if isinstance(reason, explain.Gang)), None)
        if quotas:
            return Verdict(SKIPPED, leading_sentence(quotas if gang is None else [*quotas, gang]), _key(quotas))
        reasons = [_without_reservations(reason) for reason in reasons]
        if gang is not None and not (gang.ready and gang.fits_quota):
            return _said(SKIPPED, [gang])
        if self._is_outstanding(ask) or ask.required or gang is not None:
            return _said(UNSCHEDULABLE, reasons)
        if not (ask.attempted or ask.seq <= application.visited_seq):
            return None  # it has not had its turn
        return PASSED_OVER


def _of_gang(application: ApplicationRecord) -> Verdict | None:
    """Return why the pods of an application are not asked for, if that is for its gang."""
    if application.is_failing:
        text = f"{UNTIL}the last try of application {application.id}, which has failed, has ended. Then it begins anew."
        return Verdict(SKIPPED, text)
    if application.gang_stage is not GangStage.RESERVING:
        return None
    if (other := application.undecided) is not None:
        meta, why = other.pod.metadata, other.work.fault or other.work.later
        text = f"{UNTIL}all of application {application.id} can start together. Pod {meta.namespace}/{meta.name}: {why}"
        return Verdict(SKIPPED, text)
    text = f"{UNTIL}all placeholders of application {application.id} run."
    if application.not_created:
        refused = f" One is refused, and tried again: {application.not_created}"
        return Verdict(SKIPPED, text + refused, f"{text} refused")
    return Verdict(SKIPPED, text)


def told_why(pod: Pod) -> Condition | None:
    """Return the condition of a pod that says why it has no node; None if it was not told yet."""
    return next((one for one in pod.status.conditions or () if one.type == SCHEDULED and one.status == "False"), None)


def was_asked_for(record: PodRecord) -> bool:
    """Return whether the condition of a pod says that it has been asked for, be it by a process before this one.

    Only of such a pod is it told that no node takes it, or that a quota keeps it.
    """
    one = told_why(record.pod)
    if one is None:
        return False
    held = one.message.startswith(UNTIL) or one.message == record.work.later
    return one.reason in (UNSCHEDULABLE, SKIPPED) and not held


def is_within(now: float, since: float, seconds: float) -> bool:
    """Return whether so many seconds have not passed yet.

    Where the machine's clock was set back, they count as over: an hour back, and pods would be told nothing for an hour.
    """
    return 0.0 <= now - since < seconds


def _said(reason: str, reasons: Sequence[explain.Reason]) -> Verdict:
    return Verdict(reason, leading_sentence(reasons), _key(reasons))


def _has(pod: Pod, verdict: Verdict) -> bool:
    known = (verdict.reason, verdict.message)
    return pod.status.nominated_node_name == verdict.node and any(
        one.type == SCHEDULED and (one.reason, one.message) == known for one in pod.status.conditions or ()
    )


def _without_reservations(reason: explain.Reason) -> explain.Reason:
    """Leave out how many nodes are reserved, if there are others: reservations come and go, and say nothing of room."""
    if not isinstance(reason, explain.Nodes):
        return reason
    failed = {why: count for why, count in reason.failed.items() if why not in ("reserved", "held for a gang")}
    return msgspec.structs.replace(reason, failed=failed or reason.failed)


def _key(reasons: Sequence[explain.Reason]) -> str:
    """Return which rules keep a pod, without amounts."""
    where = (f"{type(one).__name__} {getattr(one, 'queue', '')} {getattr(one, 'name', '')}" for one in reasons)
    return "; ".join(dict.fromkeys(where))
