"""What the scheduler says: what follows from its decisions, releases, refusals and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from licorne.core.inspection.sentences import advised
from licorne.core.preemption.evictions import Eviction
from licorne.kube.objects import Pod
from licorne.kube.pods.work import Note
from licorne.si.callback import ResourceManagerCallback
from licorne.si.messages import (
    NewAllocation,
    Output,
    RejectedAllocation,
    RejectedApplication,
    RejectedNode,
    Released,
    Termination,
    UpdatedApplication,
)

from .commands import Bind, Evict, names_of
from .diagnostics import cache, held
from .lifecycle import PodLifecycle
from .outbox import Outbox
from .records import PodRecord, Records
from .stages import PodEvent, Stage

PREEMPTED = "PreemptionByScheduler"
"""The reason of the condition `DisruptionTarget`, the one that kube-scheduler gives."""


class Decisions(ResourceManagerCallback):
    """Turns the messages of the scheduler into commands and into records; as its callback, adds to a state dump."""

    def __init__(
        self, records: Records, outbox: Outbox, lifecycle: PodLifecycle, node_refused: Callable[[str, str], None]
    ) -> None:
        self._records = records
        self._outbox = outbox
        self._lifecycle = lifecycle
        self._node_refused = node_refused
        self.diagnostics: dict[str, Callable[[], Any]] = {
            "cache": lambda: cache(records),
            "held": lambda: held(records, lifecycle.waiting),
        }
        """What a state dump has under `rmDiagnostics`, by name."""

    def get_state_dump(self) -> str:
        """Return the diagnostics as JSON."""
        return msgspec.json.encode({name: read() for name, read in self.diagnostics.items()}).decode()

    def take(self, outputs: Iterable[Output]) -> None:
        """Take what the scheduler says, each apart: the core would not repeat the others after an exception about one pod."""
        records, isolated = self._records, self._lifecycle.run_isolated
        for output in outputs:
            match output:
                case NewAllocation():
                    record = records.pods.get(output.key)
                    # Else it is the echo of a pod that was reported with its node.
                    if record is not None and record.stage is Stage.ASKED:
                        isolated(record.pod, partial(self._decided, record), output)
                case Released():
                    record = records.pods.get(output.key)
                    wanted = output.termination is not Termination.STOPPED_BY_RM
                    if wanted and record is not None and record.leaving is None:
                        isolated(record.pod, partial(self._evict, record), output)
                case RejectedAllocation():
                    record = records.pods.get(output.key)
                    if record is None:
                        self._lifecycle.foreign.refused(output.key, output.reason)
                    elif record.stage is not Stage.REFUSED:  # else it has been failed
                        isolated(record.pod, partial(self._refused, record), output)
                case RejectedNode():
                    self._node_refused(output.node_id, output.reason)
                case RejectedApplication() | UpdatedApplication():
                    application = records.applications.get(output.application_id)
                    if application is None:
                        continue
                    if isinstance(output, RejectedApplication):
                        application.state, application.refusal = "Rejected", advised(output.reason)
                    else:
                        application.state = output.state
                        self._lifecycle.gangs.state_changed(application, output.message)
                        self._lifecycle.applications.ended(application)

    def _decided(self, record: PodRecord, new: NewAllocation) -> None:
        lifecycle = self._lifecycle
        if record.work.volumes.waiting or record.work.devices.claims:
            record.move(PodEvent.RESERVE)
        else:
            self._outbox.commands.append(Bind(*names_of(record.pod), new.node_id))
            record.move(PodEvent.DECIDE)
        record.node = new.node_id
        if record.stage is Stage.AWAITS_CLAIMS and (why := lifecycle.holding.reserve(record)):
            lifecycle.claims_failed(record.uid, why)
            return
        lifecycle.gangs.placed(record)

    def _refused(self, record: PodRecord, refused: RejectedAllocation) -> None:
        lifecycle, application = self._lifecycle, record.application
        if record.stage is Stage.AWAITS_CLAIMS:
            lifecycle.outdated(record.uid)  # no binding is under way, so it begins anew
        elif not application.is_known:
            record.move(PodEvent.FORGET)  # its application ended just before; both begin anew
            lifecycle.applications.ended(application)
        elif record.pod.spec.node_name:
            if record.work.ask.placeholder:
                lifecycle.holding.remove_placeholder(record, refused.reason)
            lifecycle.count_as_foreign(record, refused.reason)
        elif record.node:
            known = self._outbox.partition.applications.get(application.id)
            if known is None or record.uid not in known.allocations:  # else only a change was refused
                record.move(PodEvent.FORGET)  # its binding is under way; it is reported when the API server shows it
        elif record.work.ask.placeholder:
            lifecycle.holding.remove_placeholder(record, refused.reason)
        elif application.is_failing:
            record.move(PodEvent.FORGET)
        else:
            # Where only a change was refused, the ask is taken back, because the scheduler would go on to decide it.
            lifecycle.holding.leave(record)
            record.move(PodEvent.REFUSE)
            record.failure = refused.reason

    def _evict(self, record: PodRecord, released: Released) -> None:
        """Have a pod deleted that the scheduler wants gone; its place is free when the API server says so."""
        kind = released.termination
        record.leaving = kind
        names, text = names_of(record.pod), released.message
        if kind is not Termination.PREEMPTED_BY_SCHEDULER:
            self._outbox.commands.append(Evict(*names, kind.name, text, disruption=False))
            if kind is Termination.TIMEOUT:
                self._lifecycle.gangs.placeholder_timed_out(record)
            return
        evictions = self._outbox.partition.evictions
        eviction = next((one for one in reversed(evictions) if one.victim == record.uid), None)
        asking = None if eviction is None else self._records.pods.get(eviction.ask)
        pod = None if asking is None else asking.pod
        if eviction is not None:  # of very many evictions at once the scheduler keeps the records of the newest alone
            text = _why_evicted(eviction, pod)
        self._outbox.commands.append(Evict(*names, PREEMPTED, text))
        self._outbox.post_event(record.pod, Note("Preempted", "Preempting", text), pod)


def _why_evicted(eviction: Eviction, asking: Pod | None) -> str:
    """Return for whom a pod is evicted, and why, as a sentence."""
    queue = eviction.queue
    if eviction.kind == "quota-change":
        return f"Evicted because queue {queue} has more than its maximum, which was lowered."
    name = eviction.ask if asking is None else f"{asking.metadata.namespace}/{asking.metadata.name}"
    if eviction.kind == "required-node":
        return f"Evicted for pod {name} of queue {queue}, which runs on this node only."
    if eviction.kind == "within-queue":
        return f"Evicted for pod {name} of queue {queue}, which has a higher priority."
    return f"Evicted for pod {name} of queue {queue}, which is below its guarantee."
