"""The events that YuniKorn posts for each pod, gang and node, and licorne only when `licorne.yunikorn-events` is true.

Each costs the API server a write and says nothing that is wrong. The words are YuniKorn's, for programs that look for
them (docs/spec/k8shim.md, section 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licorne.kube.objects import Node, Pod
from licorne.kube.pods import Note
from licorne.si.events import Event
from licorne.si.v19 import EventType

from .commands import PostEvent
from .records import ApplicationRecord, GangStage, PodRecord

if TYPE_CHECKING:
    from licorne.core.events.runs import Record

    from .manager import Manager

INFORMATIONAL = "Informational"


class YuniKornEvents:
    """Posts these events. Each method is called when what it names has happened, and does nothing unless `wanted`."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.wanted = False

    def queued(self, record: PodRecord) -> None:
        """A pod is asked for."""
        if self.wanted:
            self._tell(record.pod, "Scheduling", "Scheduling", f"{_name(record)} is queued and waiting for allocation")

    def gated(self, record: PodRecord) -> None:
        """A pod has scheduling gates."""
        if self.wanted:
            gates = ",".join(gate.name for gate in record.pod.spec.scheduling_gates or ())
            self._tell(record.pod, "Scheduling", "Scheduling", f"waiting for scheduling gates: {gates}")

    def grouped(self, record: PodRecord) -> None:
        """A pod is one of a gang with placeholders."""
        group = record.work.ask.task_group
        if self.wanted and group and record.application.gang_stage is not GangStage.NONE:
            text = f"Pod belongs to the taskGroup {group}, it will be scheduled as a gang member"
            self._tell(record.pod, "GangScheduling", "TaskGroupMatch", text)

    def waits(self, record: PodRecord, why: str) -> None:
        """A pod waits for room, a quota or other pods."""
        if self.wanted:
            self._tell(record.pod, "PodUnschedulable", "PodUnschedulable", why)

    def decided(self, record: PodRecord) -> None:
        """A node was chosen."""
        if not self.wanted:
            return
        self._tell(record.pod, "Scheduled", "Scheduled", f"Successfully assigned {_name(record)} to node {record.node}")
        if record.work.ask.placeholder:
            text = f"Application {record.application.id} placeholder has been allocated."
            self._tell(record.pod, "GangScheduling", "PlaceholderAllocated", text)

    def bound(self, record: PodRecord) -> None:
        """The API server took a binding."""
        if self.wanted:
            text = f"Pod {_name(record)} is successfully bound to node {record.node}"
            self._tell(record.pod, "PodBindSuccessful", "PodBindSuccessful", text)

    def completed(self, record: PodRecord) -> None:
        """A pod that had a node has ended, or was deleted: YuniKorn does not tell these two apart either."""
        if self.wanted:
            self._tell(record.pod, "TaskCompleted", "TaskCompleted", f"Task {_name(record)} is completed")

    def pod_failed(self, record: PodRecord) -> None:
        """A pod without a node is given the phase Failed."""
        if self.wanted:
            self._tell(record.pod, "TaskFailed", "TaskFailed", f"Task {_name(record)} is failed")

    def noted(self, event: Record) -> None:
        """The scheduler has made a record of an event. One about an ask is posted on the pod that asks."""
        if self.wanted and isinstance(event, Event) and event.type is EventType.REQUEST:
            record = self._manager.pods.get(event.object_id)
            if record is not None:
                self._tell(record.pod, INFORMATIONAL, INFORMATIONAL, event.message)

    def reserved(self, application: ApplicationRecord) -> None:
        """All placeholders of a gang have a node."""
        text = f"Application {application.id} all placeholders are allocated. Transitioning to running state."
        self._of_application(application, "GangScheduling", "GangReservationComplete", text, warning=False)

    def timed_out(self, application: ApplicationRecord) -> None:
        """The time of a gang is over."""
        text = f"Application {application.id} placeholder has been timed out"
        self._of_application(application, "GangScheduling", "PlaceholderTimeOut", text)

    def failed(self, application: ApplicationRecord, why: str) -> None:
        """An application has failed."""
        text = f"Application {application.id} scheduling failed, reason: {why}"
        self._of_application(application, "ApplicationFailed", "ApplicationFailed", text)

    def node_accepted(self, node: Node) -> None:
        """The scheduler knows a node."""
        self._of_node(node, "NodeAccepted", f"node {node.metadata.name} is accepted by the scheduler")
        self._of_node(node, INFORMATIONAL, "Node added to the scheduler")

    def node_deleted(self, node: Node) -> None:
        """The scheduler does not know a node any more."""
        self._of_node(node, "NodeDeleted", f"node {node.metadata.name} is deleted from the scheduler")
        self._of_node(node, INFORMATIONAL, "Node removed from the scheduler")

    # -- how they are posted ------------------------------------------------------------------------------------

    def _of_application(
        self, application: ApplicationRecord, reason: str, action: str, text: str, *, warning: bool = True
    ) -> None:
        if self.wanted:
            for record in application.pods.values():
                if not record.work.ask.placeholder:
                    self._manager.tell(record.pod, Note(reason, action, text, warning=warning))

    def _of_node(self, node: Node, reason: str, text: str) -> None:
        if self.wanted:
            meta = node.metadata
            self._manager.decided.append(PostEvent("Node", "", meta.name, meta.uid, reason, reason, text))

    def _tell(self, pod: Pod, reason: str, action: str, text: str) -> None:
        self._manager.tell(pod, Note(reason, action, text, warning=False))


def _name(record: PodRecord) -> str:
    return f"{record.pod.metadata.namespace}/{record.pod.metadata.name}"
