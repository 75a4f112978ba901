"""The events that YuniKorn posts for each pod, gang and node, and licorne only when `licorne.yunikorn-events` is true.

That a pod has its node, which kube-scheduler tells too, is posted also where `licorne.scheduled-events` alone is true.

Each costs the API server a write and says nothing that is wrong. The words are YuniKorn's, for programs that look for
them (docs/spec/k8shim.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import msgspec

from licorne.core.events.runs import Record
from licorne.kube.objects import Node
from licorne.kube.pods.work import Note
from licorne.si.events import Event
from licorne.si.v19 import EventType

from .commands import PostEvent
from .outbox import Outbox
from .records import ApplicationRecord, GangStage, PodRecord, Records

INFORMATIONAL = "Informational"
_says = partial(Note, warning=False)
QUEUED = _says("Scheduling", "Scheduling", "{pod} is queued and waiting for allocation")
GATED = _says("Scheduling", "Scheduling", "waiting for scheduling gates: {why}")
_OF_GANG = "Pod belongs to the taskGroup {why}, it will be scheduled as a gang member"
GROUPED = _says("GangScheduling", "TaskGroupMatch", _OF_GANG)
WAITS = _says("PodUnschedulable", "PodUnschedulable", "{why}")
DECIDED = _says("Scheduled", "Scheduled", "Successfully assigned {pod} to node {node}")
ALLOCATED = _says("GangScheduling", "PlaceholderAllocated", "Application {app} placeholder has been allocated.")
BOUND = _says("PodBindSuccessful", "PodBindSuccessful", "Pod {pod} is successfully bound to node {node}")
COMPLETED = _says("TaskCompleted", "TaskCompleted", "Task {pod} is completed")
"""Of a pod with a node that has ended or was deleted; YuniKorn posts the same for both."""
FAILED = _says("TaskFailed", "TaskFailed", "Task {pod} is failed")
_COMPLETE = "Application {app} all placeholders are allocated. Transitioning to running state."
RESERVED = _says("GangScheduling", "GangReservationComplete", _COMPLETE)
_OVER = "Application {app} placeholder has been timed out"
TIMED_OUT = _says("GangScheduling", "PlaceholderTimeOut", _OVER, warning=True)
_WHY = "Application {app} scheduling failed, reason: {why}"
APPLICATION_FAILED = _says("ApplicationFailed", "ApplicationFailed", _WHY, warning=True)


@dataclass(slots=True, eq=False, repr=False)
class YuniKornEvents:
    """Posts these events, if they are `wanted`; and if only `scheduled` is set, the one that a pod has its node."""

    _records: Records
    _outbox: Outbox
    wanted: bool = False
    scheduled: bool = False

    def post(self, record: PodRecord, note: Note, why: str = "") -> None:
        """Post an event about a pod."""
        if self.wanted or (self.scheduled and note is DECIDED):
            meta, app = record.pod.metadata, record.application.id
            text = note.text.format(pod=f"{meta.namespace}/{meta.name}", node=record.node, app=app, why=why)
            self._outbox.post_event(record.pod, msgspec.structs.replace(note, text=text))

    def post_all(self, application: ApplicationRecord, note: Note, why: str = "") -> None:
        """Post an event about an application, on each of its pods."""
        for record in application.pods.values():
            if not record.work.ask.placeholder:
                self.post(record, note, why)

    def grouped(self, record: PodRecord) -> None:
        """A pod is one of a gang with placeholders."""
        if record.work.ask.task_group and record.application.gang_stage is not GangStage.NONE:
            self.post(record, GROUPED, record.work.ask.task_group)

    def noted(self, event: Record) -> None:
        """The scheduler has made a record of an event. One about an ask is posted on the pod that asks."""
        if self.wanted and isinstance(event, Event) and event.type is EventType.REQUEST:
            record = self._records.pods.get(event.object_id)
            if record is not None:
                self._outbox.post_event(record.pod, Note(INFORMATIONAL, INFORMATIONAL, event.message, warning=False))

    def node_accepted(self, node: Node) -> None:
        """The scheduler knows a node."""
        self._of_node(node, "NodeAccepted", f"node {node.metadata.name} is accepted by the scheduler")
        self._of_node(node, INFORMATIONAL, "Node added to the scheduler")

    def node_deleted(self, node: Node) -> None:
        """The scheduler does not know a node any more."""
        self._of_node(node, "NodeDeleted", f"node {node.metadata.name} is deleted from the scheduler")
        self._of_node(node, INFORMATIONAL, "Node removed from the scheduler")

    def _of_node(self, node: Node, reason: str, text: str) -> None:
        if self.wanted:
            meta = node.metadata
            self._outbox.commands.append(PostEvent("Node", "", meta.name, meta.uid, reason, reason, text))
