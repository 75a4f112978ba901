"""Pods of other schedulers: they take room, host ports and topology domains where they run."""

from __future__ import annotations

from licorne.kube.objects import Pod
from licorne.kube.pods.foreign import foreign_allocation
from licorne.kube.pods.work import Note, PodContext, is_managed
from licorne.si.messages import Allocation

from .outbox import Outbox
from .records import ForeignRecord, Records


class ForeignPods:
    """Tells the scheduler of each pod that another scheduler has placed, as soon as the pod's node is known."""

    def __init__(self, records: Records, outbox: Outbox, context: PodContext) -> None:
        self._records = records
        self._outbox = outbox
        self._context = context

    def seen(self, pod: Pod) -> None:
        """Take in a pod that is new or has changed; without a node it does not count."""
        if not pod.spec.node_name:
            return
        uid = pod.metadata.uid
        record = self._records.foreign.get(uid)
        if record is None:
            record = self._records.foreign[uid] = ForeignRecord(pod, self._allocation(pod, whole=True))
            self.place(record)
            return
        record.pod = pod
        self.ask_again(record)

    def counted(self, pod: Pod, why: str) -> None:
        """Count a pod that runs as if another scheduler had placed it, and say so: licorne cannot count it as its own."""
        self.seen(pod)
        if is_managed(pod, self._context.settings):
            text = f"The pod runs and counts on its node, but for no queue and no user: {why}"
            self._outbox.post_event(pod, Note("CountedAsForeign", "Scheduling", text))
            self._outbox.warn(f"pod {pod.metadata.namespace}/{pod.metadata.name}: {text}", None)

    def gone(self, uid: str) -> bool:
        """Forget a pod. Returns whether it was another scheduler's."""
        record = self._records.foreign.pop(uid, None)
        if record is None:
            return False
        self._records.node_known(uid, record.pod.spec.node_name)
        if record.known:
            self._outbox.release("", uid)
        return True

    def place(self, record: ForeignRecord) -> None:
        """Count a pod, if its node is known."""
        node = record.pod.spec.node_name
        record.known = node in self._records.nodes
        if record.known:
            self._outbox.ask(record.told)
        else:
            self._records.await_node(record.pod.metadata.uid, node)

    def ask_again(self, record: ForeignRecord) -> None:
        """Tell the scheduler of a pod again, if something has changed that counts."""
        was, record.told = record.told, self._allocation(record.pod, whole=record.whole)
        if record.known and (was.resource, was.tags) != (record.told.resource, record.told.tags):
            self._outbox.ask(record.told)

    def refused(self, uid: str, why: str) -> None:
        """Report a pod again, without host ports, labels and terms, with which the scheduler refused it."""
        record = self._records.foreign.get(uid)
        if record is not None and record.known and record.whole:
            record.whole = False
            self.ask_again(record)
            meta = record.pod.metadata
            text = f"its host ports, labels and demands of other pods do not count: {why}"
            self._outbox.warn(f"pod {meta.namespace}/{meta.name}: {text}", None)

    def _allocation(self, pod: Pod, *, whole: bool) -> Allocation:
        namespace = self._records.namespaces.get(pod.metadata.namespace)
        return foreign_allocation(pod, namespace, self._context.storage, whole=whole)
