"""The Kubernetes side of the scheduler: what follows from each change of the cluster and from each decision.

Objects come in (`node_seen`, `pod_seen`, ...), decisions come from the scheduler in process (`Decisions`), commands go
out. Nothing here reads a clock, waits, or talks to the API server, so each step can be tested by itself.

Two rules make it safe. A place is counted from the decision on, before the binding is sent, and given back only when
the API server says that the pod is gone, or that it was not bound. And a pod that the scheduler wants gone keeps its
place until the API server says that it is.

An exception that is raised for one pod, by a fault of licorne that this pod brings out, must neither stop the others nor end
the process, which would meet the pod again after each start. So such a pod is set aside: it counts if it runs, and waits
otherwise, and log and event say so. An exception in what concerns all of them ends the process: a new one reads everything
again, whereas this one would go on with records that the scheduler does not share.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import msgspec

from licorne.core.api import SchedulerAPI
from licorne.core.incidents import describe
from licorne.core.preemption.evictions import Eviction
from licorne.kube.backoff import Backoff
from licorne.kube.objects import Namespace, Node, Pod, PriorityClass
from licorne.kube.pods import (
    Note,
    PodContext,
    Work,
    WorkSettings,
    asks_the_same,
    foreign_allocation,
    has_generated_id,
    is_managed,
    is_over,
    lacks_class,
    misnamed_resources,
    namespace_tags,
    node_info,
    read_pod,
    unix_seconds,
    unread_annotations,
    with_classes,
)
from licorne.si import v19
from licorne.si.constants import (
    DEFAULT_PARTITION,
    NOBODY_USER,
    TAG_ALLOCATION_CREATION_TIME,
    TAG_CREATE_FORCE,
    TAG_NAMESPACE,
    TAG_NODE_CONSTRAINTS,
    TAG_REQUIRED_NODE,
)

from .anti_affinity import AntiAffinity
from .budgets import Budgets
from .commands import AnyCommand, AskAgain, Bind, Evict, Fail, PostEvent
from .decisions import Decisions
from .gangs import Gangs
from .records import ApplicationRecord, Asked, ForeignRecord, GangStage, PodRecord
from .stages import COUNTED, PLACED, WAITING, PodEvent, Stage
from .waiting import Waiting
from .yunikorn_events import YuniKornEvents

BACKOFF = Backoff(first_s=1.0, longest_s=20.0)
"""How long a pod that could not be bound waits before it is asked for again: not as long as the scheduler keeps an application
of which nothing runs or waits (`COMPLETING_TIMEOUT_NS`), so that it need not begin anew."""
CLASS_WAIT_S = 1.0
"""How long a pod waits for its priority class at most. The class was there before the pod, but may be gone by now."""
CLASS_AGE_S = 60.0
"""A pod older than this, in seconds, does not wait for an unknown priority class: the class was deleted after the pod was created."""
PODS_A_BEAT = 1000
"""How many pods are taken in at the start before the process says that it is awake."""
NOTED_MAX = 20
"""The most events about misspelled keys that the pods of an application get together."""
ASKS_A_CALL = 100
"""The most asks in one call of the scheduler. Where each has constraints of its own, 5,000 nodes make that two seconds."""
PREEMPTED = "PreemptionByScheduler"
"""The reason of the condition `DisruptionTarget`, the one that kube-scheduler gives."""


T = TypeVar("T")
R = TypeVar("R")


class SharedFaultError(Exception):
    """An exception, its cause, in what concerns more than the pod that is looked at: the process must not go on."""


@contextlib.contextmanager
def _for_all() -> Iterator[None]:
    """Mark exceptions so that no single pod is set aside for them."""
    try:
        yield
    except SharedFaultError:
        raise
    except Exception as error:
        raise SharedFaultError(f"telling the scheduler failed: {describe(error)}") from error


class Manager:
    """The pods, nodes and applications of one cluster, and what the scheduler knows of them.

    Parameters:
        api: the scheduler, in which `rm_id` is registered with `manager.decisions` as its callback.
        rm_id: the id of the resource manager.
        settings: what the configuration says that changes what pods mean. Both may be set later, before anything is seen.
        now_s: returns the time in seconds since 1970, with which ages of pods are compared.
        awake: called now and then while much is worked off in one go: the process does not stand still.
        changed: called when the scheduler is told of asks and releases, because it may then decide something, and when the
            manager is told that a pod was not bound, or is due to be asked for again.
        warn: told in a sentence what somebody should look at, with the exception that was raised, if one was.
    """

    def __init__(
        self,
        api: SchedulerAPI,
        rm_id: str = "",
        settings: WorkSettings | None = None,
        *,
        now_s: Callable[[], float] = lambda: 0.0,
        awake: Callable[[], None] = lambda: None,
        changed: Callable[[], None] = lambda: None,
        warn: Callable[[str, Exception | None], None] = lambda *_: None,
    ) -> None:
        self.api = api
        self.now_s = now_s
        self.awake = awake
        self.changed = changed
        self.warn = warn
        self.rm_id = rm_id
        self.namespaces: dict[str, Namespace] = {}
        self.classes: dict[str, PriorityClass] = {}
        self.context = PodContext(self.classes, settings or WorkSettings())
        self.nodes: dict[str, Node] = {}
        self.refused_nodes: dict[str, v19.NodeInfo] = {}
        """By name, the nodes that the scheduler has refused, as they were sent; the same one is not sent again."""
        self.pods: dict[str, PodRecord] = {}
        self.foreign: dict[str, ForeignRecord] = {}
        self.applications: dict[str, ApplicationRecord] = {}
        self.awaiting_node: dict[str, dict[str, None]] = {}
        """By the name of a node that the scheduler does not know: UIDs of its pods."""
        self.anti_affinity = AntiAffinity(self)
        self.budgets = Budgets(self)
        self.decisions = Decisions(self)
        self.gangs = Gangs(self)
        self.waiting = Waiting(self)
        self.yunikorn_events = YuniKornEvents(self)
        self.decided: list[AnyCommand] = []
        self.asides = 0
        """How many times a pod was set aside because of an exception."""
        self._ended: dict[ApplicationRecord, None] = {}
        self._asks: dict[str, v19.Allocation] = {}  # by key, so that one whose pod is gone can be taken back
        self._releases: list[v19.AllocationRelease] = []

    # -- for whoever runs the manager ---------------------------------------------------------------------------

    def commands(self) -> list[AnyCommand]:
        """Tell the scheduler what has changed, and return what is to be done at the API server since the last call.

        Nothing is left to be told: a gang that turns out to need no placeholders has its pods asked for at once.
        """
        while True:
            ended, self._ended = self._ended, {}
            for application in ended:  # forgotten by the scheduler, or their last pod counts as another scheduler's
                self.release_held(application)
                self._forget_unused(application)
            self.flush()
            self.gangs.create_missing()
            if not (self._ended or self._asks or self._releases):
                break
        decided, self.decided = self.decided, []
        return decided

    def flush(self) -> None:
        """Tell the scheduler which pods are new, changed and gone, and which nodes these keep pods off.

        Raises:
            SharedFaultError: an exception was raised.
        """
        with _for_all():
            self._flush()

    def _flush(self) -> None:
        self.anti_affinity.resubmit_matched()
        self.budgets.tell()
        while self.tell_some():
            pass

    @property
    def is_behind(self) -> bool:
        """Whether more asks wait to be told than the scheduler is given in one call (`ASKS_A_CALL`)."""
        return len(self._asks) > ASKS_A_CALL

    def tell_some(self) -> bool:
        """Tell the scheduler of pods that are new, changed or gone, in one call; return whether there are more."""
        again = any(one.allocation_key in self._asks for one in self._releases)
        # The scheduler takes asks before releases, so a pod that is asked for again is released in a call before.
        keys = [] if again else list(itertools.islice(self._asks, ASKS_A_CALL))
        asks = [self._asks.pop(key) for key in keys]
        releases: list[v19.AllocationRelease] = []
        if again or not self._asks:
            releases, self._releases = self._releases, releases
        if asks or releases:
            self.changed()
            released = v19.AllocationReleasesRequest(allocations_to_release=releases) if releases else None
            self.api.update_allocation(v19.AllocationRequest(rm_id=self.rm_id, releases=released, allocations=asks))
            self.awake()
        return bool(self._asks or self._releases)

    def tell(self, pod: Pod, note: Note, related: Pod | None = None) -> None:
        """Post an event about a pod; `related` is another pod that has to do with it."""
        meta = pod.metadata
        other = None if related is None else related.metadata
        self.decided.append(
            PostEvent(
                "Pod",
                meta.namespace,
                meta.name,
                meta.uid,
                note.reason,
                note.action,
                note.text,
                note.warning,
                None if other is None else (other.namespace, other.name, other.uid),
            )
        )

    # -- namespaces and priority classes ------------------------------------------------------------------------

    def namespace_seen(self, namespace: Namespace) -> None:
        """Take in a namespace; what its annotations say counts for its queues at once."""
        name = namespace.metadata.name
        before = self.namespaces.get(name)
        self.namespaces[name] = namespace
        if before is None or (before.metadata.labels or {}) != (namespace.metadata.labels or {}):
            self.anti_affinity.resubmit_namespace(name)
        if before is None:
            for record in list(self.pods.values()):
                if record.stage is Stage.HELD and record.pod.metadata.namespace == name:
                    self.run_isolated(record.pod, self._place, record)
        elif (tags := namespace_tags(namespace)) != namespace_tags(before):
            self._tell_of_quota(name, tags)
        told = () if before is None else _namespace_faults(before)
        for text in _namespace_faults(namespace):
            if text not in told:
                uid = namespace.metadata.uid
                self.decided.append(
                    PostEvent("Namespace", "", name, uid, "InvalidAnnotation", "Scheduling", text, warning=True)
                )

    def _tell_of_quota(self, namespace: str, tags: dict[str, str]) -> None:
        """Have the queues that were made for a namespace get its new quota.

        The scheduler takes a quota from each application that is added to such a queue. So one without pods is added to each
        of them, like one that is there, and removed at once.
        """
        partition = self.api.cluster.partition(self.rm_id)
        queues: dict[str, Work] = {}
        for application in self.applications.values():
            known = partition.applications.get(application.id)
            first = next(iter(application.pods.values()), None)
            if known is None or known.queue.managed or first is None:
                continue
            if first.pod.metadata.namespace == namespace:
                queues[known.queue.path] = first.work
        for number, work in enumerate(queues.values()):
            like = work.application
            new = v19.AddApplicationRequest(
                application_id=f"licorne-quota-{namespace}-{number}",
                queue_name=like.queue_name,
                partition_name=DEFAULT_PARTITION,
                ugi=like.ugi,
                tags={TAG_NAMESPACE: namespace, **tags},
            )
            gone = v19.RemoveApplicationRequest(application_id=new.application_id, partition_name=DEFAULT_PARTITION)
            self._tell_of_application(v19.ApplicationRequest(rm_id=self.rm_id, new=[new]))
            self._tell_of_application(v19.ApplicationRequest(rm_id=self.rm_id, remove=[gone]))
        self.changed()

    def namespace_gone(self, namespace: Namespace) -> None:
        """Forget a namespace."""
        if self.namespaces.pop(namespace.metadata.name, None) is not None:
            self.anti_affinity.resubmit_namespace(namespace.metadata.name)

    def class_seen(self, known: PriorityClass) -> None:
        """Take in a priority class; it counts for pods that the scheduler has not been told of yet."""
        name = known.metadata.name
        self.classes[name] = known
        for record in list(self.pods.values()):
            if record.pod.spec.priority_class_name == name:
                self.run_isolated(record.pod, self._class_changed, record)

    def _is_before_class(self, pod: Pod) -> bool:
        """Return whether a new pod may have come before its priority class, by another watch.

        Where no priority class is known at all, licorne may not read them, and nobody waits for one.
        """
        if pod.spec.node_name or not self.classes or not lacks_class(pod, self.classes):
            return False
        return unix_seconds(pod.metadata.creation_timestamp) > self.now_s() - CLASS_AGE_S

    def _class_changed(self, record: PodRecord) -> None:
        """Read anew what the priority class of a pod says.

        An ask that the scheduler has keeps its preemption policy: the interface cannot change it, and a new ask in its place
        would have lost its age and its reservation.
        """
        record.work = with_classes(record.work, record.pod, self.classes)
        if record.awaits_class:
            record.awaits_class = False
            if record.stage is Stage.HELD:
                self._hold_or_ask(record)
        elif record.stage is Stage.ASKED and record.uid in self._asks:
            self.ask(record)

    def class_gone(self, known: PriorityClass) -> None:
        """Forget a priority class."""
        self.classes.pop(known.metadata.name, None)

    # -- nodes --------------------------------------------------------------------------------------------------

    def node_seen(self, node: Node) -> None:
        """Take in a node that is new or has changed, and with a new one the pods that run there."""
        name = node.metadata.name
        before = self.nodes.get(name)
        action = v19.ActionFromRM.CREATE if before is None else v19.ActionFromRM.UPDATE
        info = node_info(node, action)
        if self.refused_nodes.get(name) == info:
            return  # it would be refused again
        self.refused_nodes.pop(name, None)
        is_changed = before is None or info != node_info(before, action)
        if is_changed:
            self.flush()  # before the node is another one, because the marks of nodes are told there too
        self.nodes[name] = node
        if is_changed:
            self.anti_affinity.existing.node_updated(name, node.metadata.labels or {})
            self._tell_of_node(self.anti_affinity.node_info(node, action))
        if before is not None or name not in self.nodes:
            return
        self.yunikorn_events.node_accepted(node)
        for uid in self.awaiting_node.pop(name, ()):
            if uid in self.foreign:
                self._place_foreign(self.foreign[uid])
            else:
                record = self.pods[uid]
                self.run_isolated(record.pod, self._report, record)

    def node_refused(self, name: str, why: str) -> None:
        """Report that the scheduler refuses a node, and forget the node if it is new, until it changes.

        No pod counts on a node that is forgotten, and none is bound to it. Where only a change of a node is refused, the scheduler goes on with the node as it was.
        """
        node = self.nodes.get(name)
        if node is None:
            return
        text = f"node {name} is rejected by the scheduler: {why}"
        self.warn(text, None)
        self.decided.append(
            PostEvent("Node", "", name, node.metadata.uid, "NodeRejected", "NodeRejected", text, warning=True)
        )
        if name not in self.api.cluster.partition(self.rm_id).nodes:
            del self.nodes[name]
            self.anti_affinity.node_gone(name)
            self.refused_nodes[name] = node_info(node, v19.ActionFromRM.CREATE)

    def node_gone(self, node: Node) -> None:
        """Forget a node. Its pods take nothing any more; whether they end is for others to decide.

        A binding to it that was decided and not given out is taken back: the API server would take it, and the pod be lost.
        """
        name = node.metadata.name
        self.refused_nodes.pop(name, None)
        if self.nodes.pop(name, None) is None:
            return
        self.flush()
        self.yunikorn_events.node_deleted(node)
        self.anti_affinity.node_gone(name)
        for record in self.pods.values():
            if record.node == name and record.stage in COUNTED:
                record.move(PodEvent.LOSE)
                self._await_node(record.uid, name)
        for foreign in self.foreign.values():
            if foreign.known and foreign.pod.spec.node_name == name:
                foreign.known = False
                self._await_node(foreign.pod.metadata.uid, name)
        self._tell_of_node(v19.NodeInfo(node_id=name, action=v19.ActionFromRM.DECOMISSION))
        for command in self._withdraw_bindings(lambda command: command.node == name):
            self.outdated(command.uid)

    def _withdraw_bindings(self, lost: Callable[[Bind], bool]) -> list[Bind]:
        """Take back bindings that were decided and not given out, and return them."""
        withdrawn = [one for one in self.decided if isinstance(one, Bind) and lost(one)]
        if withdrawn:
            self.decided = [one for one in self.decided if one not in withdrawn]
        return withdrawn

    def _tell_of_node(self, info: v19.NodeInfo) -> None:
        self.api.update_node(v19.NodeRequest(rm_id=self.rm_id, nodes=[info]))

    def _tell_of_application(self, request: v19.ApplicationRequest) -> None:
        with _for_all():
            self.api.update_application(request)

    # -- pods ---------------------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        """Take in a pod that is new or has changed."""
        if is_over(pod):
            self.pod_gone(pod)
        else:
            self.run_isolated(pod, self._seen, pod)

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid in self.foreign or not (uid in self.pods or is_managed(pod, self.context.settings)):
            self._foreign_seen(pod)
        elif uid in self.pods:
            self._changed(self.pods[uid], pod)
        elif (record := self._take(pod)) is not None:
            self._enter(record)

    def pods_read(self, pods: Iterable[Pod]) -> None:
        """Take in all pods that a process has read when it starts, in any order.

        All are known before the first one is placed. Those with a node are placed first, because what runs must count
        before anything is asked for; but the oldest pod of an application says what it is, and that one may wait while
        its placeholders have a node.
        """
        new: list[PodRecord] = []
        take = partial(self._take, read_at_start=True)
        for number, pod in enumerate(sorted(pods, key=_age)):
            if number % PODS_A_BEAT == 0:
                self.awake()
            if is_over(pod) or pod.metadata.uid in self.pods or not is_managed(pod, self.context.settings):
                self.pod_seen(pod)
            elif (record := self.run_isolated(pod, take, pod)) is not None:
                new.append(record)
        new.sort(key=lambda record: not record.pod.spec.node_name)
        for number, record in enumerate(new):
            if number % PODS_A_BEAT == 0:
                self.awake()
            if self.pods.get(record.uid) is record:  # else it has been set aside
                self.run_isolated(record.pod, self._enter, record)

    # -- pods for which an exception is raised

    def run_isolated(self, pod: Pod, step: Callable[[T], R], argument: T) -> R | None:
        """Call `step` with `argument`, which concerns this pod alone; where that raises, set the pod aside and return None."""
        try:
            return step(argument)
        except SharedFaultError:
            raise
        except Exception as error:  # noqa: BLE001  it may be any fault, and the other pods go on
            self._set_aside(pod, error)
            return None

    def _set_aside(self, pod: Pod, error: Exception) -> None:
        """Stop scheduling a pod because of an exception: with a node it counts as another scheduler's, else it waits until it is changed.

        A binding that was sent cannot be taken back, so such a pod keeps its place, and its node will be seen.
        """
        self.asides += 1
        meta = pod.metadata
        why = f"a fault of licorne: {describe(error)}"
        self.warn(f"pod {meta.namespace}/{meta.name} is set aside: {why}", error)
        record = self.pods.get(meta.uid)
        if record is not None:
            record.pod = pod
        if pod.spec.node_name:
            try:
                if record is not None:
                    self.count_as_foreign(record, why)
                else:
                    self._foreign_seen(pod)
                    self._warn_counted_as_foreign(pod, why)
            except Exception as again:  # noqa: BLE001  as above
                self.warn(f"pod {meta.namespace}/{meta.name} runs and is not counted", again)
        elif record is None:
            self.tell(pod, Note("FailedScheduling", "FailedScheduling", f"The pod is not scheduled: {why}"))
        elif not record.node or self._withdraw_bindings(lambda command: command.uid == meta.uid):
            self._leave(record)
            record.move(PodEvent.SET_ASIDE)
            record.node, record.failure = "", why
            self.waiting.add(meta.uid)

    def pod_gone(self, pod: Pod) -> None:
        """Forget a pod that has ended, or is no longer there."""
        uid = pod.metadata.uid
        self.anti_affinity.existing.pod_removed(uid)
        record = self.pods.pop(uid, None)
        evicted = record is not None and record.leaving is v19.TerminationType.PREEMPTED_BY_SCHEDULER
        self.budgets.pod_gone(uid, evicted=evicted)
        self.waiting.forget(uid)
        foreign = self.foreign.pop(uid, None)
        if foreign is not None:
            self._node_known(uid, foreign.pod.spec.node_name)
            if foreign.known:
                self._release("", uid, v19.TerminationType.STOPPED_BY_RM)
            return
        if record is None:
            return
        self._leave(record, record.leaving)
        if record.stage in PLACED:
            self.yunikorn_events.completed(record)
        application = record.application
        del application.pods[uid]
        self.gangs.pod_gone(record)
        self._forget_unused(application)

    def _forget_unused(self, application: ApplicationRecord) -> None:
        """Forget an application that has no pods, if the scheduler does not know it or was never asked for one of them."""
        if application.state == "New" and not application.pods:
            self._remove(application)
        self.forget_if_done(application)

    def _remove(self, application: ApplicationRecord) -> None:
        """Have the scheduler forget an application without pods to which no ask has ever come.

        It completes applications when their last ask or allocation ends, so this one it would keep, and a later pod with
        the same id would be in the queue of the one before.
        """
        self.flush()
        gone = v19.RemoveApplicationRequest(application_id=application.id, partition_name=DEFAULT_PARTITION)
        self._tell_of_application(v19.ApplicationRequest(rm_id=self.rm_id, remove=[gone]))
        application.state = ""

    def ended(self, application: ApplicationRecord) -> None:
        """Take in a new state of an application: pods that wait begin anew if the scheduler has forgotten it."""
        if not application.is_known:
            self._ended[application] = None
        self.forget_if_done(application)

    def forget_if_done(self, application: ApplicationRecord) -> None:
        """Forget an application without pods that the scheduler does not know, and no later one with the same id."""
        if not application.is_known and not application.pods and self.applications.get(application.id) is application:
            del self.applications[application.id]

    def _await_node(self, uid: str, node: str) -> None:
        """Note that a pod's node is unknown."""
        self.awaiting_node.setdefault(node, {})[uid] = None

    def _node_known(self, uid: str, node: str) -> None:
        """Note that a pod's node is known, or does not matter any more."""
        waiting = self.awaiting_node.get(node)
        if waiting is not None and waiting.pop(uid, 0) is None and not waiting:
            del self.awaiting_node[node]

    def _leave(self, record: PodRecord, why: v19.TerminationType | None = None) -> None:
        """Take a pod from where its stage has put it: the scheduler, those whose node is unknown, and bindings not given out."""
        if record.stage is Stage.NODE_UNKNOWN:
            self._node_known(record.uid, record.node)
        elif record.stage is Stage.ASSUMED:
            self._withdraw_bindings(lambda command: command.uid == record.uid)
        if record.stage in (Stage.ASKED, *COUNTED):
            self._release(record.application.id, record.uid, why or v19.TerminationType.STOPPED_BY_RM)

    def _release(self, application_id: str, uid: str, why: v19.TerminationType) -> None:
        """Release a pod's ask or allocation; what was asked for it and not sent yet is taken back."""
        self._asks.pop(uid, None)
        self._releases.append(
            v19.AllocationRelease(
                partition_name=DEFAULT_PARTITION,
                application_id=application_id,
                allocation_key=uid,
                termination_type=why,
            )
        )

    # -- pods of others

    def _foreign_seen(self, pod: Pod) -> None:
        if not pod.spec.node_name:
            return
        uid = pod.metadata.uid
        record = self.foreign.get(uid)
        allocation = foreign_allocation(pod, with_ports=record is None or record.with_ports)
        self.anti_affinity.existing.pod_added(pod, pod.spec.node_name)
        if record is None:
            record = self.foreign[uid] = ForeignRecord(pod, allocation.resource_per_alloc or {})
            self._place_foreign(record)
            return
        record.pod = pod
        if record.known and record.resources != allocation.resource_per_alloc:
            self._asks[uid] = allocation
        record.resources = allocation.resource_per_alloc or {}

    def _place_foreign(self, record: ForeignRecord) -> None:
        node = record.pod.spec.node_name
        record.known = node in self.nodes
        if record.known:
            self._asks[record.pod.metadata.uid] = foreign_allocation(record.pod, with_ports=record.with_ports)
        else:
            self._await_node(record.pod.metadata.uid, node)

    def foreign_refused(self, uid: str, why: str) -> None:
        """Report a pod of another scheduler again without its host ports, because the scheduler has refused it with them."""
        record = self.foreign.get(uid)
        if record is not None and record.known and record.with_ports:
            record.with_ports = False
            self._place_foreign(record)
            meta = record.pod.metadata
            self.warn(f"pod {meta.namespace}/{meta.name}: its host ports do not count: {why}", None)

    # -- pods of ours

    def _take(self, pod: Pod, *, read_at_start: bool = False) -> PodRecord | None:
        """Make a pod known here, and say nothing of it to the scheduler yet; None: it is not to be known.

        One that has a node when the process starts was told before what its user should know.
        """
        if pod.metadata.deletion_timestamp and not pod.spec.node_name:
            return None  # it ends before it began
        work = read_pod(pod, self.context)
        application_id = work.ask.application_id
        application = self.applications.get(application_id)
        if application is None:
            application = ApplicationRecord(application_id)
            self.applications[application_id] = application
        record = PodRecord(pod, work, application)
        if self._is_before_class(pod):
            record.awaits_class = True
            self.decided.append(AskAgain(record.uid, CLASS_WAIT_S))
        self.pods[record.uid] = application.pods[record.uid] = record
        self.gangs.note_originator(record)
        self.gangs.remove_late(record, read_at_start=read_at_start)
        self.budgets.pod_seen(pod)
        for note in () if read_at_start and pod.spec.node_name else work.notes:
            if note.once and not has_generated_id(pod):
                if note.text in application.noted or len(application.noted) >= NOTED_MAX:
                    continue
                application.noted.add(note.text)
            self.tell(pod, note)
        self._tell_uncounted(record)
        return record

    def _tell_uncounted(self, record: PodRecord) -> None:
        """Post an event that names the resources of which a running pod's amounts do not count: others may get what it uses."""
        if names := record.work.uncounted:
            shown = ", ".join(name[:100] for name in names[:5])
            text = f"The pod runs, and of these resources its amounts cannot be counted, and do not count: {shown}"
            self.tell(record.pod, Note("AmountNotCounted", "Scheduling", text))

    def _enter(self, record: PodRecord) -> None:
        """Tell the scheduler of a pod, or hold it."""
        self.gangs.changed(record)
        self._place(record)
        self.yunikorn_events.grouped(record)

    def _place(self, record: PodRecord) -> None:
        if record.node or record.pod.spec.node_name:  # be it that its binding is under way
            self._report(record)
        else:
            self._hold_or_ask(record)

    def _announce(self, record: PodRecord) -> bool:
        """Make the pod's application known to the scheduler if it is not; return False if it is refused."""
        application = record.application
        if application.is_known:
            return True
        self.flush()
        first = _creator(record)
        self.gangs.announce(application, first.work)
        request = first.work.application
        if record.node:  # what runs must count, though the pod that says what the application is may wait
            request = msgspec.structs.replace(request, tags=request.tags | {TAG_CREATE_FORCE: "true"})
        namespace = self.namespaces.get(first.pod.metadata.namespace)
        if namespace is not None:
            request = msgspec.structs.replace(request, tags=request.tags | namespace_tags(namespace))
        why = ""
        for attempt in _attempts(request) if record.node else [request]:
            application.state = "New"
            self._tell_of_application(v19.ApplicationRequest(rm_id=self.rm_id, new=[attempt]))
            if application.is_known:
                if why:
                    self.warn(f"application {application.id} runs, and counts all the same: {why}", None)
                self.gangs.begin(application, first)
                return True
            why = application.refusal
        for one in application.pods.values():
            if one.stage in WAITING and not (one.node or one.pod.spec.node_name):
                self.fail(one, "ApplicationRejected", application.refusal)
        return False

    def _hold_or_ask(self, record: PodRecord) -> None:
        """Ask for a pod without a node, unless something must happen first."""
        if record.stage is Stage.REFUSED:
            return  # it was failed together with its application, before its own turn
        work = record.work
        asked = record.stage is Stage.ASKED
        self.waiting.add(record.uid)
        if (
            work.gates
            or work.later
            or work.fault
            or record.pod.metadata.deletion_timestamp
            or record.leaving is not None
            or record.awaits_class
            or record.application.is_failing
            or self.is_early(record)
        ):
            self._hold(record)
            if work.gates:
                self.yunikorn_events.gated(record)
            return
        if not self._announce(record):
            return
        if record.application.gang_stage is GangStage.RESERVING and not work.ask.placeholder:
            self._hold(record)
            self.gangs.held(record)
            return
        if not asked:
            self.yunikorn_events.queued(record)
        self.ask(record)

    def _hold(self, record: PodRecord) -> None:
        """Ask for a pod no more, until something has happened."""
        self._leave(record)
        record.move(PodEvent.HOLD)

    def is_early(self, record: PodRecord) -> bool:
        """Return whether a pod has come before its namespace, by another watch: its quota and its labels are not known.

        Where no namespace is known at all, licorne may not read them, and nobody waits for one.
        """
        return bool(self.namespaces) and record.pod.metadata.namespace not in self.namespaces

    def ask(self, record: PodRecord) -> None:
        """Submit the ask of a pod. A pending ask that has changed keeps its age if the scheduler can change it in place."""
        ask = self.anti_affinity.ask_of(record)
        tags = ask.allocation_tags
        asked = Asked(tags.get(TAG_NODE_CONSTRAINTS, ""), tags.get(TAG_REQUIRED_NODE, ""), ask.resource_per_alloc)
        was, untold = record.asked, record.uid in self._asks
        if record.stage is Stage.ASKED and (asked != was or untold):
            # The scheduler changes what waits, but not which node it requires, nor what is to replace a placeholder.
            if self.waiting.ask_of(record) is not None and asked.node == was.node:
                if not asked.constraints and (was.constraints or untold):
                    # An ask without the tag would keep the constraints that the scheduler has.
                    ask = msgspec.structs.replace(ask, allocation_tags=tags | {TAG_NODE_CONSTRAINTS: "{}"})
            elif asked != was:
                self._release(record.application.id, record.uid, v19.TerminationType.STOPPED_BY_RM)
        record.asked = asked
        record.move(PodEvent.ASK)
        self._asks[record.uid] = ask

    def release_held(self, application: ApplicationRecord) -> None:
        """Ask for the pods that waited for the room of their gang."""
        for record in list(application.pods.values()):
            if record.stage is Stage.HELD:
                self.run_isolated(record.pod, self._place, record)

    def _report(self, record: PodRecord) -> None:
        """Tell the scheduler of a pod that has a node."""
        node = record.pod.spec.node_name or record.node
        record.node = node
        self.anti_affinity.existing.pod_added(record.pod, node)
        if node not in self.nodes:
            if record.stage is Stage.ASKED:  # somebody else has bound it
                self._leave(record)
            record.move(PodEvent.LOSE)
            self._await_node(record.uid, node)
            return
        if not self._announce(record):
            if record.pod.spec.node_name:
                self.count_as_foreign(
                    record, f"application {record.application.id} is refused: {record.application.refusal}"
                )
            else:
                record.move(PodEvent.FORGET)
            return
        record.move(PodEvent.SEE if record.pod.spec.node_name else PodEvent.COUNT)
        ask = record.work.ask
        tags = ask.allocation_tags
        if TAG_ALLOCATION_CREATION_TIME not in tags:  # it was bound here, and read when it had no node
            created = str(unix_seconds(record.pod.metadata.creation_timestamp))
            tags = tags | {TAG_ALLOCATION_CREATION_TIME: created}
        self._asks[record.uid] = msgspec.structs.replace(
            ask, node_id=node, originator=record.is_driver, allocation_tags=tags
        )
        self.gangs.placed(record)

    def count_as_foreign(self, record: PodRecord, why: str) -> None:
        """Count a pod that runs as if another scheduler had placed it, because the scheduler refuses it as one of its application.

        It then counts on its node, and for no queue and no user, and is not evicted. That lasts until it ends.
        """
        uid, pod = record.uid, record.pod
        assert pod.spec.node_name, f"pod {uid} has no node to count on"
        self._leave(record)
        del self.pods[uid], record.application.pods[uid]
        self.waiting.forget(uid)
        self._ended[record.application] = None
        self._foreign_seen(pod)
        self._warn_counted_as_foreign(pod, why)

    def _warn_counted_as_foreign(self, pod: Pod, why: str) -> None:
        if is_managed(pod, self.context.settings):
            text = f"The pod runs and counts on its node, but for no queue and no user: {why}"
            self.tell(pod, Note("CountedAsForeign", "Scheduling", text))
            self.warn(f"pod {pod.metadata.namespace}/{pod.metadata.name}: {text}", None)

    def _changed(self, record: PodRecord, pod: Pod) -> None:
        known = pod.spec.node_name in ("", record.node) and asks_the_same(record.pod, pod)
        work = record.work if known else _work_in(record.application, read_pod(pod, self.context))
        grown = work.ask.resource_per_alloc != record.work.ask.resource_per_alloc
        was = record.work
        self.budgets.pod_seen(pod, record.pod)
        record.pod, record.work = pod, work
        self.gangs.changed(record)
        if work.uncounted != was.uncounted:
            self._tell_uncounted(record)
        node = pod.spec.node_name
        if node and record.stage not in PLACED:
            self._report(record)  # somebody else has bound it
        elif node and node != record.node:
            self._moved(record)
        elif node and record.stage is Stage.ASSUMED:
            record.move(PodEvent.SEE)
            if grown:
                self._report(record)
        elif grown and record.stage in COUNTED:
            self._report(record)
        elif not node and record.stage in (Stage.HELD, Stage.ASKED, Stage.REFUSED):
            self._waiting_changed(record, was != work)

    def _waiting_changed(self, record: PodRecord, changed: bool) -> None:
        if record.pod.metadata.deletion_timestamp:
            self._hold(record)
        elif changed:
            if record.stage is Stage.REFUSED and record.failure:  # perhaps not any more, as it is now
                record.move(PodEvent.HOLD)
            self._place(record)

    def _moved(self, record: PodRecord) -> None:
        """Take back a decision that another scheduler was faster than: the pod runs on another node."""
        self._leave(record)
        self.flush()
        self._report(record)

    # -- what became of bindings --------------------------------------------------------------------------------

    def bound(self, uid: str) -> None:
        """Note that the API server took a binding. The pod stays assumed until it is seen with its node."""
        record = self.pods.get(uid)
        if record is not None:
            self.yunikorn_events.bound(record)

    def not_bound(self, uid: str, reason: str) -> None:
        """Give the place back, because the pod was not bound and will not be; it waits anew.

        It is asked for again a little later each time. If it is gone, or somebody else has bound it, the API server says
        so before that.
        """
        record = self._take_back(uid)
        if record is None:
            return
        self.tell(record.pod, Note("PodBindFailure", "PodBindFailure", reason))
        record.failure = reason
        self.waiting.add(uid)
        record.failures += 1
        self.decided.append(AskAgain(uid, BACKOFF.wait_s(record.failures)))

    def outdated(self, uid: str) -> None:
        """Give the place back, and ask at once, because the binding was decided on a past state and is not sent any more."""
        record = self._take_back(uid)
        if record is not None:
            self.run_isolated(record.pod, self._hold_or_ask, record)

    def _take_back(self, uid: str) -> PodRecord | None:
        """Give back the place of a pod that was not bound. Returns it if it must be asked for again."""
        self.changed()
        record = self.pods.get(uid)
        if record is None or record.pod.spec.node_name:
            return None
        # NODE_UNKNOWN: the node has gone between decision and binding. HELD with a node: its application was refused meanwhile.
        if record.stage not in (Stage.ASSUMED, Stage.NODE_UNKNOWN) and not (record.stage is Stage.HELD and record.node):
            return None
        self._leave(record, record.leaving)
        record.move(PodEvent.UNBIND)
        record.node = ""
        # One that was to go anyway, and never ran, is not asked for: whoever waits for its place has it now.
        return record if record.leaving is None else None

    def ask_again(self, uid: str) -> None:
        """Ask for a pod again that could not be bound, or for one whose priority class has not been seen."""
        self.changed()
        record = self.pods.get(uid)
        if record is None:
            return
        awaited, record.awaits_class = record.awaits_class, False
        if record.stage is Stage.UNBOUND or (awaited and record.stage is Stage.HELD):
            self.run_isolated(record.pod, self._hold_or_ask, record)

    def is_gone(self, uid: str) -> bool:
        """Return whether the API server has said that a pod is gone."""
        return uid not in self.pods and uid not in self.foreign

    def node_of(self, uid: str) -> str:
        """Return the node of a pod, as the API server has shown it; "": none."""
        record = self.pods.get(uid) or self.foreign.get(uid)
        return "" if record is None else record.pod.spec.node_name

    # -- what the scheduler says --------------------------------------------------------------------------------

    def fail(self, record: PodRecord, reason: str, message: str) -> None:
        """Have a pod without a node failed, because its application was refused, or fails."""
        record.move(PodEvent.FAIL)
        record.failure = ""
        meta = record.pod.metadata
        self.decided.append(Fail(meta.namespace, meta.name, meta.uid, reason, message))
        self.yunikorn_events.pod_failed(record)

    def refuse(self, record: PodRecord, why: str) -> None:
        """Note that the scheduler refuses a pod without a node, which waits until it is changed.

        Where only a change of its ask was refused, the ask is taken back, because the scheduler would go on to decide it.
        """
        self._leave(record)
        record.move(PodEvent.REFUSE)
        record.failure = why

    def is_counted(self, record: PodRecord) -> bool:
        """Return whether the scheduler counts a pod on a node."""
        application = self.api.cluster.partition(self.rm_id).applications.get(record.application.id)
        return application is not None and record.uid in application.allocations

    def remove_placeholder(self, record: PodRecord, why: str) -> None:
        """Have a placeholder deleted that is of no use any more; one that waits is not asked for any longer."""
        if record.leaving is None:
            record.leaving = v19.TerminationType.STOPPED_BY_RM
            if record.stage is Stage.ASKED:
                self._hold(record)
            meta = record.pod.metadata
            self.decided.append(Evict(meta.namespace, meta.name, meta.uid, "Unneeded", why, disruption=False))

    def evict(self, record: PodRecord, released: v19.AllocationRelease) -> None:
        """Have a pod deleted that the scheduler wants gone; its place is free when the API server says so."""
        kind = released.termination_type
        record.leaving = kind
        meta = record.pod.metadata
        victim = kind is v19.TerminationType.PREEMPTED_BY_SCHEDULER
        if not victim:
            text = released.message
            self.decided.append(Evict(meta.namespace, meta.name, meta.uid, kind.name, text, disruption=False))
            if kind is v19.TerminationType.TIMEOUT:
                self.gangs.placeholder_timed_out(record)
            return
        evictions = self.api.cluster.partition(self.rm_id).evictions
        eviction = next((one for one in reversed(evictions) if one.victim == meta.uid), None)
        asking = None if eviction is None else self.pods.get(eviction.ask)
        pod = None if asking is None else asking.pod
        # Of very many evictions at once the scheduler keeps the records of the newest alone.
        text = released.message if eviction is None else _why_evicted(eviction, pod)
        self.decided.append(Evict(meta.namespace, meta.name, meta.uid, PREEMPTED, text))
        self.tell(record.pod, Note("Preempted", "Preempting", text), pod)


def _work_in(application: ApplicationRecord, work: Work) -> Work:
    """Return what a pod asks for, in the application that it is in: this stays the same, whatever its labels say later."""
    if work.ask.application_id == application.id:
        return work
    return msgspec.structs.replace(
        work,
        ask=msgspec.structs.replace(work.ask, application_id=application.id),
        application=msgspec.structs.replace(work.application, application_id=application.id),
    )


def _attempts(request: v19.AddApplicationRequest) -> list[v19.AddApplicationRequest]:
    """Return what may make an application of running pods known, to be sent until the scheduler accepts one.

    Their amounts must count, even if no queue can have the name that they give, the queue does not admit the user, or the
    user's name is invalid. So first the queue is left out, and then they belong to nobody.
    """
    nobody = v19.UserGroupInformation(user=NOBODY_USER)
    users = [request.ugi] if request.ugi == nobody else [request.ugi, nobody]
    queues = [request.queue_name, ""] if request.queue_name else [""]
    return [msgspec.structs.replace(request, queue_name=queue, ugi=user) for user in users for queue in queues]


def _creator(record: PodRecord) -> PodRecord:
    """Return the pod whose keys say what an application is that must be made known for this one.

    It is the oldest that runs or may still run, even if it must wait itself. One that has a fault, such as a queue's name
    that is too long, says it only where there is no other, because it would have the others refused. So does a placeholder:
    the user that it names, if any, is the scheduler that has created it, as an admission controller writes it.
    """
    able = (
        one
        for one in record.application.pods.values()
        if one is record
        or (one.stage is not Stage.REFUSED and (one.pod.spec.node_name or not one.pod.metadata.deletion_timestamp))
    )
    return min(
        able,
        key=lambda one: (bool(one.work.fault), one.work.ask.placeholder, one.pod.metadata.creation_timestamp or ""),
    )


def _why_evicted(eviction: Eviction, asking: Pod | None) -> str:
    """Return for whom a pod is evicted, and why, as a sentence."""
    queue = eviction.queue
    if eviction.kind == "quota-change":
        return f"Evicted because queue {queue} has more than its maximum, which was lowered."
    name = eviction.ask if asking is None else f"{asking.metadata.namespace}/{asking.metadata.name}"
    if eviction.kind == "required-node":
        return f"Evicted for pod {name} of queue {queue}, which runs on this node only."
    return f"Evicted for pod {name} of queue {queue}, which is below its guarantee."


def _namespace_faults(namespace: Namespace) -> list[str]:
    """Return what is wrong with the quota of a namespace, each fault as the text of an event."""
    unread = unread_annotations(namespace)
    text = f"annotations that cannot be read, and do not count: {', '.join(unread)}"
    return [*([text] if unread else ()), *misnamed_resources(namespace)]


def _age(pod: Pod) -> tuple[str, bool, str, str]:
    meta = pod.metadata
    return (meta.creation_timestamp or "", not pod.spec.node_name, meta.namespace, meta.name)


__all__ = ["Manager"]
