"""A workload from what `kubectl get pods,nodes -o json` prints: what pods, nodes and ConfigMaps mean to the scheduler.

Pods, nodes, namespaces, ConfigMaps, and claims of volumes and devices are read by the code of `licorne kube`, so a pod asks
here for what it would ask for there. Pure: objects in, a workload out. The time 0 is the creation of the first pod. What a
list of objects cannot tell is in the notes of the workload.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from licorne.config.manifest import SCHEDULER_NAMES
from licorne.core.base.setting_table import unknown_settings
from licorne.kube.configmaps import Configuration, check_queues, read_configuration
from licorne.kube.objects import (
    Claim,
    ConfigMap,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    KubernetesObject,
    Namespace,
    Node,
    PersistentVolume,
    Pod,
    PriorityClass,
    ResourceClaim,
    StorageClass,
)
from licorne.kube.objects.devices import ResourceClaimStatus
from licorne.kube.objects.meta import Object
from licorne.kube.pods.devices import DeviceStore
from licorne.kube.pods.extended import ANNOTATION
from licorne.kube.pods.foreign import foreign_allocation
from licorne.kube.pods.keys import TAG_IMAGE_PULL_SECRETS
from licorne.kube.pods.namespaces import namespace_tags
from licorne.kube.pods.nodes import node_update
from licorne.kube.pods.resources import PODS
from licorne.kube.pods.storage import Storage
from licorne.kube.pods.work import PodContext, Work, is_managed, is_over, is_placeholder, read_pod, unix_seconds
from licorne.si.constants import (
    NODE_PARTITION,
    TAG_ALLOCATION_CREATION_TIME,
    TAG_APPLICATION_CREATION_TIME,
    TAG_CREATE_FORCE,
    TAG_FOREIGN,
)
from licorne.si.messages import NodeAction
from licorne.workload import lines
from licorne.workload.workload import Mode, Workload

KINDS: Final[dict[str, type[KubernetesObject]]] = {
    "CSIDriver": CSIDriver,
    "CSINode": CSINode,
    "CSIStorageCapacity": CSIStorageCapacity,
    "ConfigMap": ConfigMap,
    "DeviceClass": DeviceClass,
    "Namespace": Namespace,
    "Node": Node,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": Claim,
    "Pod": Pod,
    "PriorityClass": PriorityClass,
    "ResourceClaim": ResourceClaim,
    "StorageClass": StorageClass,
}
"""The objects that are read; others are passed over."""
_OF_THE_MOMENT: Final = (TAG_APPLICATION_CREATION_TIME, TAG_CREATE_FORCE, TAG_ALLOCATION_CREATION_TIME)
"""Tags that only mean something to a scheduler that is started anew beside pods that run."""
NOTES: Final = {
    "running": "pods run; for how long is not known, and they run on",
    "unended": "pods have ended, and when is not known; they are left out",
    "placeholder": "placeholders of gangs are left out; the simulator makes them as they are needed",
    "foreign": "pods of other schedulers hold their room from the beginning to the end",
    "elsewhere": "pods wait for other schedulers; they are left out",
    "later": "pods ask for claims that are not in the files, or for what licorne does not decide yet; that is left out",
    "volumes": "pods wait for volumes that exist; which pod gets which is not simulated, so several may count on one",
    "devices": "pods have claims of devices; quotas count these, and any node is taken to have them",
    "gated": "pods wait for their scheduling gates to be removed; here they ask at once",
    "fault": "pods have resources that cannot be read; they are left out",
    "kind": "objects of other kinds were passed over",
}
"""What the notes of the workload say, by the key under which the cases are counted."""
ALWAYS: Final = (
    "nodes are there from the beginning to the end, as they are now",
    "pods that were deleted are not known",
)


class ImportedError(ValueError):
    """The objects make no workload; the text says why and what to do."""


class _Terminated(Object):
    finished_at: str | None = None


class _State(Object):
    terminated: _Terminated | None = None


class _ContainerTimes(Object):
    state: _State | None = None


class _ConditionTimes(Object):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _StatusTimes(Object):
    conditions: tuple[_ConditionTimes, ...] | None = None
    container_statuses: tuple[_ContainerTimes, ...] | None = None


class PodTimes(Object):
    """When a pod was placed and its containers ended; a scheduler needs neither, so `Pod` has them not."""

    status: _StatusTimes = msgspec.field(default_factory=_StatusTimes)

    def duration_s(self, pod: Pod) -> int | None:
        """Return for how many seconds a pod ran that has ended; None if that is not known."""
        placed = [
            unix_seconds(one.last_transition_time)
            for one in self.status.conditions or ()
            if one.type == "PodScheduled" and one.status == "True"
        ]
        ended = [
            unix_seconds(one.state.terminated.finished_at)
            for one in self.status.container_statuses or ()
            if one.state is not None and one.state.terminated is not None
        ]
        began = min(placed, default=0) or unix_seconds(pod.status.start_time)
        return max(max(ended) - began, 0) if began and max(ended, default=0) else None


class Imported:
    """Collects objects, in any order, and makes a workload of them.

    Parameters:
        scheduler_names: pods that name one of these schedulers are the workload; others hold room.
    """

    def __init__(self, scheduler_names: Iterable[str] = SCHEDULER_NAMES) -> None:
        self.counts: Counter[str] = Counter()
        self._scheduler_names = tuple(scheduler_names)
        self._pods: dict[str, tuple[Pod, PodTimes]] = {}
        self._nodes: dict[str, Node] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._classes: dict[str, PriorityClass] = {}
        self._maps: dict[str, ConfigMap] = {}
        self._storage = Storage(self._nodes)
        self._devices = DeviceStore(self._storage.where, self._nodes)

    def add(self, found: Mapping[str, Any]) -> None:
        """Take an object, or a list of objects, as the API writes it.

        Raises:
            ImportedError: it is no such object.
        """
        kind = found.get("kind")
        if not isinstance(kind, str):
            raise ImportedError("an object without a kind; give what `kubectl get pods,nodes -o json` prints")
        if kind.endswith("List"):
            for item in found.get("items") or ():
                if not isinstance(item, Mapping):
                    raise ImportedError(f"items of a {kind} must be objects")
                self.add({"kind": kind.removesuffix("List"), **item})
            return
        if kind not in KINDS:
            self.counts["kind"] += 1
            return
        try:
            self._take(msgspec.convert(found, KINDS[kind], strict=False), found)
        except msgspec.ValidationError as error:
            meta = found.get("metadata")
            name = meta.get("name", "") if isinstance(meta, Mapping) else ""
            raise ImportedError(f"{kind} {name!r}: {_with_key(str(error), found)}") from None

    def _take(self, made: KubernetesObject, found: Mapping[str, Any]) -> None:
        meta = made.metadata
        match made:
            case Pod():
                uid = meta.uid or f"{meta.namespace}/{meta.name}"
                meta.uid = uid
                self._pods[uid] = made, msgspec.convert(found, PodTimes, strict=False)
            case Node():
                self._nodes[meta.name] = made
            case Namespace():
                self._namespaces[meta.name] = made
            case PriorityClass():
                self._classes[meta.name] = made
            case ConfigMap():
                self._maps[meta.name] = made
            case DeviceClass():
                self._devices.put(made)
            case ResourceClaim() if ANNOTATION not in (meta.annotations or {}):  # else the pod has it made anew
                made.status = ResourceClaimStatus(reserved_for=made.status.reserved_for)  # devices are given anew
                self._devices.put(made)
            case _:
                self._storage.put(made)

    def workload(self, name: str) -> Workload:
        """Return the workload.

        Raises:
            ImportedError: there is no node, or no pod that the scheduler would place.
            ConfigurationError: the ConfigMaps cannot be used.
        """
        configuration = read_configuration(self._maps)
        check_queues(configuration.queues, "", configuration.settings.queues_max, where=configuration.queues_key)
        settings = configuration.work_settings(self._scheduler_names)
        context = PodContext(
            self._classes, self._namespaces, settings=settings, storage=self._storage, devices=self._devices
        )
        ours = [(pod, times) for pod, times in self._pods.values() if is_managed(pod, context.settings)]
        self._check(ours)
        begin_s = min(unix_seconds(pod.metadata.creation_timestamp) for pod, _ in ours)
        asked = self._asked(ours, context, begin_s)
        offered = {  # as much as all pods ask for, so that it limits nothing
            name: sum(line.res.get(name, 0) for line in asked if isinstance(line, lines.Ask))
            for name in self._devices.unlimited
        }
        made: list[lines.Line] = [self._node(self._nodes[each], offered) for each in sorted(self._nodes)]
        made += [
            self._foreign(pod)
            for pod, _ in self._pods.values()
            if not is_managed(pod, context.settings) and not is_over(pod) and self._is_placed(pod)
        ]
        made += asked
        return Workload(
            name=name,
            mode=Mode.TIMED,
            config=configuration.queues or None,
            extra={key: text for key, text in configuration.texts.items() if not unknown_settings({key: text})},
            lines=made,
            notes=[*self._notes(configuration), *ALWAYS],
        )

    def _check(self, ours: list[tuple[Pod, PodTimes]]) -> None:
        if not self._nodes:
            raise ImportedError("there is no node; give what `kubectl get pods,nodes -A -o json` prints")
        if not ours:
            there = Counter(pod.spec.scheduler_name for pod, _ in self._pods.values())
            told = ", ".join(f"{name or 'none'} ({count:,})" for name, count in there.most_common(5)) or "no pods"
            raise ImportedError(
                f"no pod names the scheduler {' or '.join(self._scheduler_names)}; there are: {told}. "
                "--scheduler-name chooses another one"
            )

    def _notes(self, configuration: Configuration) -> Iterable[str]:
        if not configuration.queues:
            yield "there is no ConfigMap with queues, so the built-in configuration applies; --config of simulate gives one"
        for why, text in NOTES.items():
            if count := self.counts[why]:
                yield f"{text} ({count:,})"

    # -- lines -----------------------------------------------------------------------------------------------

    def _node(self, node: Node, offered: Mapping[str, int]) -> lines.Node:
        """Return a node. `offered`: how much it has of the resources that devices are counted as, unless it lists them."""
        found = node_update(node, NodeAction.CREATE, self._storage.csi_nodes.get(node.metadata.name))
        has = {name: amount for name, amount in (found.capacity or {}).items() if amount or name not in offered}
        attrs = {key: text for key, text in (found.attributes or {}).items() if key != NODE_PARTITION and text}
        return lines.Node(at=0, id=found.node_id, res={**offered, **has}, attrs=attrs or None)

    def _is_placed(self, pod: Pod) -> bool:
        placed = pod.spec.node_name in self._nodes
        self.counts["foreign" if placed else "elsewhere"] += 1
        return placed

    def _foreign(self, pod: Pod) -> lines.Foreign:
        found = foreign_allocation(pod, self._namespaces.get(pod.metadata.namespace), self._storage)
        tags = {name: text for name, text in (found.tags or {}).items() if name != TAG_FOREIGN}
        return lines.Foreign(at=0, key=found.key, node=found.node_id, res=dict(found.resource or {}), tags=tags)

    def _asked(self, ours: list[tuple[Pod, PodTimes]], context: PodContext, begin_s: int) -> list[lines.Line]:
        made: list[lines.Line] = []
        apps: set[str] = set()
        order = sorted(
            ours,
            key=lambda each: (
                unix_seconds(each[0].metadata.creation_timestamp),
                each[0].metadata.namespace,
                each[0].metadata.name,
            ),
        )
        for pod, times in order:
            work = self._read(pod, context)
            duration_s = times.duration_s(pod) if is_over(pod) else None
            if not self._counts(pod, work, duration_s):
                continue
            at_s = unix_seconds(pod.metadata.creation_timestamp) - begin_s
            if work.application.application_id not in apps:
                apps.add(work.application.application_id)
                made.append(self._app(work, pod, at_s))
            made.append(self._ask(work, at_s, duration_s))
        if not made:
            raise ImportedError("none of the pods can be taken over: " + "; ".join(self._notes(Configuration("-"))))
        return made

    def _read(self, pod: Pod, context: PodContext) -> Work:
        """Return what a pod asks for: the workload has it placed anew, so one that has a node asks for what it demands of nodes, too."""
        anew = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        self._devices.note_extended(anew)
        work = read_pod(anew, context)
        return read_pod(pod, context) if work.fault else work  # what runs takes its room, as far as that can be read

    def _counts(self, pod: Pod, work: Work, duration_s: int | None) -> bool:
        """Count what is to be said of a pod; returns whether it is taken over."""
        if is_placeholder(pod):
            self.counts["placeholder"] += 1
            return False
        if work.fault:
            self.counts["fault"] += 1
            return False
        if is_over(pod) and duration_s is None:
            self.counts["unended"] += 1
            return False
        self.counts["running"] += bool(pod.spec.node_name) and not is_over(pod)
        self.counts["later"] += bool(work.later)
        self.counts["volumes"] += work.volumes.names_nodes
        self.counts["devices"] += bool(work.devices.claims)
        self.counts["gated"] += bool(work.gates)
        return True

    def _tags(self, tags: Mapping[str, str] | None) -> dict[str, str] | None:
        kept = {key: text for key, text in (tags or {}).items() if key not in _OF_THE_MOMENT}
        kept.pop(TAG_IMAGE_PULL_SECRETS, None)
        return kept or None

    def _app(self, work: Work, pod: Pod, at_s: int) -> lines.App:
        asked, gang = work.application, work.gang
        namespace = self._namespaces.get(pod.metadata.namespace)
        made = lines.App(
            at=at_s,
            id=asked.application_id,
            queue=asked.queue,
            user=asked.user,
            groups=asked.groups,
            tags=self._tags({**asked.tags, **(namespace_tags(namespace) if namespace is not None else {})}),
        )
        if gang is not None:
            made.gang = tuple(
                lines.TaskGroup(name=group.name, min=group.members, res={**group.resource, PODS: 1})
                for group in gang.groups
            )
            made.atomic = gang.atomic
            made.style = "Hard" if gang.hard else "Soft"
            made.ph_timeout_ms = 1000 * gang.timeout_s
        return made

    def _ask(self, work: Work, at_s: int, duration_s: int | None) -> lines.Ask:
        ask = work.ask
        return lines.Ask(
            at=at_s,
            key=ask.key,
            app=ask.application_id,
            res=dict(ask.resource or {}),
            prio=ask.priority,
            tags=self._tags(ask.tags),
            group=ask.task_group,
            pre_self=ask.allow_preempt_self,
            pre_other=ask.allow_preempt_other,
            duration_s=duration_s,
        )


def _with_key(text: str, found: Mapping[str, Any]) -> str:
    """Return the words about a fault with the key of a map whose value is no text, such as a label's: `[...]` stands for it."""
    at, unknown, _ = text.partition("[...]")
    if unknown:
        value: Any = found
        for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", at.partition("`$")[2]):
            value = value[name] if name else value[int(index)]
        key = next(key for key, each in value.items() if not isinstance(each, str))
        text = text.replace(unknown, f"[{key!r}]", 1)
    return text
