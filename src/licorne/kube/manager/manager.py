"""The Kubernetes side of the scheduler: what follows from each change of the cluster and from each decision.

Objects come in (pods in `lifecycle`), decisions come from the scheduler in process (`decisions`), commands go out (`outbox`).
"""

from __future__ import annotations

from typing import Final

from licorne.kube.api.kinds import OF_DEVICES
from licorne.kube.objects import (
    CSINode,
    KubernetesObject,
    Namespace,
    Node,
    PlainWorkload,
    PodGroup,
    PriorityClass,
    Workload,
)
from licorne.kube.pods.namespaces import misnamed_resources, namespace_tags, unread_annotations, what_counts
from licorne.kube.pods.nodes import node_update
from licorne.kube.pods.work import with_classes
from licorne.si.messages import NodeAction, NodeUpdate

from .commands import AnyCommand, PostEvent
from .decisions import Decisions
from .lifecycle import PodLifecycle
from .outbox import Outbox
from .records import PodRecord, Records
from .stages import COUNTED, PodEvent, Stage

DEVICE_OBJECTS: Final = tuple(kind.type for kind in OF_DEVICES)


class Manager:
    """What is known of a cluster, and what the scheduler is told of it; `outbox` is where that goes."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.records = Records()
        self.lifecycle = PodLifecycle(self.records, outbox)
        self.decisions = Decisions(self.records, outbox, self.lifecycle, self._node_refused)
        self.refused_nodes: dict[str, NodeUpdate] = {}
        """By name, the nodes that the scheduler has refused, as they were sent; the same one is not sent again."""
        self._unlimited: dict[str, None] = {}

    def flush(self) -> list[AnyCommand]:
        """Tell the scheduler what has changed, and return what is to be done at the API server since the last call.

        Nothing is left to be told: a gang that turns out to need no placeholders has its pods asked for at once.
        """
        lifecycle, applications = self.lifecycle, self.lifecycle.applications
        while True:
            ended, applications.has_ended = applications.has_ended, {}
            for application in ended:  # forgotten by the scheduler, or their last pod counts as another scheduler's
                lifecycle.release_held(application)
                applications.forget_unused(application)
            lifecycle.read_anew()
            self._tell_unlimited()
            lifecycle.flush()
            lifecycle.gangs.create_missing()
            changed = applications.has_ended or lifecycle.volumes.changed or lifecycle.devices.changed
            if not (changed or self.outbox.asks or self.outbox.releases):
                break
        commands, self.outbox.commands = self.outbox.commands, []
        return commands

    # -- namespaces and priority classes ------------------------------------------------------------------------

    def namespace_seen(self, namespace: Namespace) -> None:
        """Take in a namespace; what its annotations say counts for its queues at once."""
        name = namespace.metadata.name
        before = self.records.namespaces.get(name)
        self.records.namespaces[name] = namespace
        if before is None or (before.metadata.labels or {}) != (namespace.metadata.labels or {}):
            self.lifecycle.namespace_changed(name)
        if before is None:
            for record in list(self.records.pods.values()):
                if record.stage is Stage.HELD and record.pod.metadata.namespace == name:
                    self.lifecycle.run_isolated(record.pod, self.lifecycle.report_or_ask, record)
        elif (tags := namespace_tags(namespace)) != namespace_tags(before):
            self.lifecycle.applications.tell_of_quota(name, tags)
        told = () if before is None else _namespace_faults(before)
        for text in _namespace_faults(namespace):
            if text not in told:
                uid = namespace.metadata.uid
                self.outbox.commands.append(
                    PostEvent("Namespace", "", name, uid, "InvalidAnnotation", "Scheduling", text, warning=True)
                )

    def namespace_gone(self, namespace: Namespace) -> None:
        """Forget a namespace."""
        if self.records.namespaces.pop(namespace.metadata.name, None) is not None:
            self.lifecycle.namespace_changed(namespace.metadata.name)

    def workload_seen(self, kind: str, found: Workload | PlainWorkload) -> None:
        """Take in a service or a controller of pods; default spread constraints spread the pods that it selects."""
        if self.lifecycle.context.spreading.seen(kind, found):
            self.lifecycle.namespace_changed(found.metadata.namespace)

    def workload_gone(self, kind: str, found: Workload | PlainWorkload) -> None:
        """Forget a service or a controller of pods."""
        self.lifecycle.context.spreading.gone(kind, found)
        self.lifecycle.namespace_changed(found.metadata.namespace)

    def class_seen(self, known: PriorityClass) -> None:
        """Take in a priority class; it counts for pods that the scheduler has not been told of yet."""
        name = known.metadata.name
        self.records.classes[name] = known
        for record in list(self.records.pods.values()):
            if record.pod.spec.priority_class_name == name:
                self.lifecycle.run_isolated(record.pod, self._class_changed, record)

    def _class_changed(self, record: PodRecord) -> None:
        """Read anew what the priority class of a pod says.

        An ask that the scheduler has keeps its preemption policy: the interface cannot change it, and a new ask in its place
        would have lost its age and its reservation.
        """
        record.work = with_classes(record.work, record.pod, self.records.classes)
        if record.awaits_class:
            record.awaits_class = False
            if record.stage is Stage.HELD:
                self.lifecycle.hold_or_ask(record)
        elif record.stage is Stage.ASKED and record.uid in self.outbox.asks:
            self.lifecycle.ask(record)

    def class_gone(self, known: PriorityClass) -> None:
        """Forget a priority class."""
        self.records.classes.pop(known.metadata.name, None)

    # -- nodes --------------------------------------------------------------------------------------------------

    def named_seen(self, one: KubernetesObject) -> None:
        """Take in what pods name: a pod group, a claim, or what says more of volumes and devices."""
        lifecycle, name = self.lifecycle, one.metadata.name
        if isinstance(one, PodGroup):
            lifecycle.groups.seen(one)
        elif isinstance(one, DEVICE_OBJECTS):
            lifecycle.devices.seen(one)
        else:
            before = lifecycle.volumes.storage.csi_nodes.get(name)
            lifecycle.volumes.seen(one)
            if isinstance(one, CSINode) and one != before:
                self._drivers_changed(name)

    def named_gone(self, one: KubernetesObject) -> None:
        """Forget what pods name."""
        if isinstance(one, PodGroup):
            self.lifecycle.groups.gone(one)
        elif isinstance(one, DEVICE_OBJECTS):
            self.lifecycle.devices.gone(one)
        else:
            self.lifecycle.volumes.gone(one)
            if isinstance(one, CSINode):
                self._drivers_changed(one.metadata.name)

    def _drivers_changed(self, name: str) -> None:
        node = self.records.nodes.get(name)
        if node is not None:
            self.lifecycle.flush()
            self.outbox.send(self._node_update(node, NodeAction.UPDATE))

    def _node_update(self, node: Node, action: NodeAction) -> NodeUpdate:
        drivers = self.lifecycle.volumes.storage.csi_nodes.get(node.metadata.name)
        return node_update(node, action, drivers, self._unlimited)

    def _tell_unlimited(self) -> None:
        """Tell the scheduler which resources nodes do not limit, where that has changed."""
        known = self.lifecycle.devices.store.unlimited
        if known != self._unlimited:
            self._unlimited = {**known}
            for node in [*self.records.nodes.values()]:
                self.outbox.send(self._node_update(node, NodeAction.UPDATE))

    def node_seen(self, node: Node) -> None:
        """Take in a node that is new or has changed, and with a new one the pods that run there."""
        name = node.metadata.name
        before = self.records.nodes.get(name)
        action = NodeAction.CREATE if before is None else NodeAction.UPDATE
        update = self._node_update(node, action)
        if self.refused_nodes.get(name) == update:
            return  # it would be refused again
        self.refused_nodes.pop(name, None)
        self.records.nodes[name] = node
        if before is None or before.metadata.labels != node.metadata.labels:
            self.lifecycle.volumes.nodes_changed()
            self.lifecycle.devices.store.nodes_changed()
        if before is None or update != self._node_update(before, action):
            self.lifecycle.flush()
            self.outbox.send(update)
            self.lifecycle.devices.renew(frozenset((name,)))
        if before is not None or name not in self.records.nodes:
            return
        self.lifecycle.volumes.node_known(name)
        for uid in self.records.awaiting_node.pop(name, ()):
            if uid in self.records.foreign:
                self.lifecycle.foreign.place(self.records.foreign[uid])
            else:
                record = self.records.pods[uid]
                self.lifecycle.run_isolated(record.pod, self.lifecycle.report, record)

    def _node_refused(self, name: str, why: str) -> None:
        """Report that the scheduler refuses a node, and forget the node if it is new, until it changes.

        No pod counts on a node that is forgotten, and none is bound to it. Where only a change of a node is refused, the
        scheduler goes on with the node as it was.
        """
        node = self.records.nodes.get(name)
        if node is None:
            return
        text = f"node {name} is rejected by the scheduler: {why}"
        self.outbox.warn(text, None)
        self.outbox.commands.append(
            PostEvent("Node", "", name, node.metadata.uid, "NodeRejected", "NodeRejected", text, warning=True)
        )
        if name not in self.outbox.partition.nodes:
            del self.records.nodes[name]
            self.refused_nodes[name] = self._node_update(node, NodeAction.CREATE)

    def node_gone(self, node: Node) -> None:
        """Forget a node. Its pods take nothing any more; whether they end is for others to decide.

        A binding to it that was decided and not given out is taken back: the API server would take it, and the pod be lost.
        """
        name = node.metadata.name
        self.refused_nodes.pop(name, None)
        if self.records.nodes.pop(name, None) is None:
            return
        self.lifecycle.volumes.nodes_changed()
        self.lifecycle.devices.store.nodes_changed()
        self.lifecycle.volumes.node_gone(name)
        self.lifecycle.flush()
        here = [record for record in self.records.pods.values() if record.node == name and record.stage in COUNTED]
        awaiting = [record for record in here if record.stage is Stage.AWAITS_CLAIMS]
        for record in here:
            record.move(PodEvent.LOSE)
            self.records.await_node(record.uid, name)
        for foreign in self.records.foreign.values():
            if foreign.known and foreign.pod.spec.node_name == name:
                foreign.known = False
                self.records.await_node(foreign.pod.metadata.uid, name)
        self.outbox.send(NodeUpdate(node_id=name, action=NodeAction.DECOMISSION))
        self.lifecycle.devices.renew(frozenset((name,)))
        for command in self.outbox.withdraw_bindings(lambda command: command.node == name):
            self.lifecycle.outdated(command.uid)
        for record in awaiting:
            self.lifecycle.outdated(record.uid)


def _namespace_faults(namespace: Namespace) -> list[str]:
    """Return what is wrong with the quota of a namespace, each fault as the text of an event."""
    unread = unread_annotations(namespace)
    text = f"annotations that cannot be read, and do not count: {', '.join(unread)}; {what_counts(namespace)}"
    return [*([text] if unread else ()), *misnamed_resources(namespace)]
