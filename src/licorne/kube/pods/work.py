"""What a pod that licorne schedules means to the scheduler: its application, and its ask.

Pure: the same pod and priority class give the same answer. What is wrong with a pod is part of the answer,
so that a pod of strange content never stops the others. Rules: docs/spec/k8shim.md, sections 1 to 3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from licorne._bounded import UNDECODABLE
from licorne.config.kubernetes import QuantityError
from licorne.config.manifest import SCHEDULER_NAMES
from licorne.core.constants import SUM_MAX
from licorne.core.gangs.task_groups import TaskGroupsError, TaskGroupSpec, json_fault
from licorne.core.nodes.reading import MAX_TEXT_LENGTH
from licorne.core.preemption.evictions import GRACE_PERIOD_S
from licorne.host.setting_table import TABLE
from licorne.kube.objects import Namespace, Pod, PodGroup, PriorityClass
from licorne.si.constants import (
    NOBODY_USER,
    TAG_ALLOCATION_CREATION_TIME,
    TAG_APPLICATION_CREATION_TIME,
    TAG_CREATE_FORCE,
    TAG_GRACE_PERIOD,
    TAG_NAMESPACE,
    TAG_NODE_CONSTRAINTS,
    TAG_POD,
    TAG_POD_TERMS,
    TAG_REQUIRED_NODE,
)
from licorne.si.messages import AddApplication, Allocation

from . import keys
from .constraints import constraints_text, required_node, unknown_operators
from .devices import NO_CLAIMS, DeviceStore, PodDevices
from .groups import (
    OF_GROUPS,
    Groups,
    group_application,
    group_label,
    group_name,
    group_of,
    group_tags,
    near_its_group,
    why_not_yet,
)
from .misspelled import STYLE, TIMEOUT, misspelled
from .resources import PODS, read_countable, read_resources, takes_the_same
from .spreading import Spreading
from .storage import Storage
from .task_groups import read_task_groups
from .terms import pod_text, terms_text
from .volumes import NO_VOLUMES, PodVolumes, read_volumes

ID_MAX: Final = 63
"""Characters of an application's id that is made here, as a label may have."""
UNIQUE_BEGIN_MAX: Final = 26
"""Characters before the UID in the id of an application of one pod."""
PRIORITY_MIN, PRIORITY_MAX = -(2**31), 2**31 - 1
ATOMIC: Final = "atomic"
TOPOLOGY: Final = "topology.kubernetes.io/"
SHOWN_MAX: Final = 60
"""Characters of an annotation that an event about it shows."""


READ_TAGS: Final = {
    TAG_NODE_CONSTRAINTS: "node selector, required node affinity, tolerations, host ports, volumes and claims of devices",
    TAG_POD: "labels and those of its namespace",
    TAG_POD_TERMS: "affinity and anti-affinity to pods, preferences, topology spread constraints, volumes and claims of devices",
}
"""The tags of an ask that the scheduler reads, with what they hold."""


class Note(msgspec.Struct, frozen=True, gc=False):
    """An event about a pod, in the words of the events API. `once`: for all pods of an application that somebody has named."""

    reason: str
    action: str
    text: str
    warning: bool = True
    once: bool = False


class WorkSettings(msgspec.Struct, frozen=True):
    """What the configuration says that changes what pods mean.

    - `scheduler_names`: pods that name one of these schedulers are scheduled here.
    - `gangs`: whether task groups count.
    - `generate_unique_app_id`: a pod without an application id is an application of its own, instead of sharing one
      with the others of its namespace.
    - `name_chars_max`: the longest name that a pod may give anything; `entries_max`: the most labels, groups and kinds of
      resources of a pod.
    """

    scheduler_names: frozenset[str] = frozenset(SCHEDULER_NAMES)
    gangs: bool = True
    generate_unique_app_id: bool = False
    name_chars_max: int = TABLE.field("licorne.max-name")
    entries_max: int = TABLE.field("licorne.max-tags")


class PodContext(msgspec.Struct):
    """What else the meaning of a pod depends on; the maps, by name, are read here, never changed."""

    classes: Mapping[str, PriorityClass] = {}
    namespaces: Mapping[str, Namespace] = {}
    spreading: Spreading = Spreading()
    settings: WorkSettings = WorkSettings()
    storage: Storage = msgspec.field(default_factory=Storage)
    devices: DeviceStore = msgspec.field(default_factory=lambda: DeviceStore(lambda _: None))
    groups: Groups = {}


class Gang(msgspec.Struct, frozen=True):
    """The task groups of an application. `text` is the annotation, from which placeholders are made.

    `timeout_s` is how long placeholders may wait for their pods; 0: the scheduler's default. `atomic`: the pod itself
    asks for a gang without placeholders.
    """

    groups: tuple[TaskGroupSpec, ...]
    text: str
    hard: bool = False
    timeout_s: int = 0
    atomic: bool = False


class Work(msgspec.Struct, frozen=True):
    """What a pod asks for.

    - `application`: the application as this pod describes it, without the tags that it gets from its namespace; the
      first pod of an application counts.
    - `ask`: what the pod needs, without a node. It is never changed, since the scheduler keeps its maps.
    - `gates`: the scheduling gates that must be removed first.
    - `later`: why the pod must wait although it could be asked for, because a part of it is not supported; else "".
    - `fault`: why the pod cannot be asked for at all; else "".
    - `notes`: what its user should know.
    - `volumes`: what its volumes demand; `devices`: what its claims of devices demand.
    - `uncounted`: the names of the resources that it takes from its node and that do not count, because of their amounts.
    """

    application: AddApplication
    ask: Allocation
    gates: tuple[str, ...] = ()
    later: str = ""
    fault: str = ""
    notes: tuple[Note, ...] = ()
    gang: Gang | None = None
    uncounted: tuple[str, ...] = ()
    volumes: PodVolumes = NO_VOLUMES
    devices: PodDevices = NO_CLAIMS


def is_managed(pod: Pod, settings: WorkSettings) -> bool:
    """Return whether licorne is the scheduler of the pod."""
    return pod.spec.scheduler_name in settings.scheduler_names


def is_over(pod: Pod) -> bool:
    """Return whether the pod has ended, so that it takes nothing from its node."""
    return pod.status.phase in ("Succeeded", "Failed")


def asks_the_same(was: Pod, now: Pod) -> bool:
    """Return whether nothing has changed that `read_pod` reads, as when a pod is bound or begins to run.

    That a pod has a node counts only when it is read for the first time. With the node the API server adds labels that
    say where the node is (the admission plugin PodTopologyLabels); no user has written them, and nothing reads them.
    """
    one, other = was.metadata, now.metadata
    spec = was.spec
    if spec.node_name != now.spec.node_name:
        spec = msgspec.structs.replace(spec, node_name=now.spec.node_name)
    return (
        spec == now.spec
        and _has_the_same_labels(was, now)
        and one.annotations == other.annotations
        and one.owner_references == other.owner_references
        and bool(one.deletion_timestamp) is bool(other.deletion_timestamp)
        and takes_the_same(was, now)
        and was.status.resource_claim_statuses == now.status.resource_claim_statuses
    )


def _has_the_same_labels(was: Pod, now: Pod) -> bool:
    one, other = was.metadata.labels or {}, now.metadata.labels or {}
    if one == other or was.spec.node_name == now.spec.node_name:
        return one == other
    return one == {name: value for name, value in other.items() if name in one or not name.startswith(TOPOLOGY)}


def read_pod(pod: Pod, context: PodContext) -> Work:
    """Return what a pod that is managed here asks for."""
    notes: list[Note] = []
    meta = pod.metadata
    name, group = group_name(pod), group_of(pod, context.groups)
    application_id = _application_id(pod, context.settings, notes)
    gang = None if name else _read_gang(pod, context.settings, notes)
    fault = ""
    try:
        resources = read_resources(pod)
    except QuantityError as error:
        resources = {PODS: 1}
        fault = f"its resources cannot be read: {error}"
    uncounted: tuple[str, ...] = ()
    if pod.spec.node_name and (fault or max(resources.values()) > SUM_MAX):
        resources, uncounted = read_countable(pod)
    if pod.spec.resource_claims or keys.PLACEHOLDER_DEVICES in (meta.annotations or {}):
        resources |= context.devices.amounts(pod)
    placeholder = is_placeholder(pod)
    volumes, devices = read_volumes(pod, context.storage), context.devices.read(pod)
    ask = Allocation(
        key=meta.uid,
        application_id=application_id,
        resource=resources,
        priority=min(max(_priority(pod, group), PRIORITY_MIN), PRIORITY_MAX),
        tags=_ask_tags(pod, context, volumes, devices),
        # A placeholder was made before gangs were turned off, and its gang goes on.
        task_group=name or (_label(pod, keys.TASK_GROUP_NAME) if context.settings.gangs or placeholder else ""),
        placeholder=placeholder,
        allow_preempt_self=_may_be_evicted(pod, context.classes, notes),
        allow_preempt_other="Never" not in (pod.spec.preemption_policy, group and group.spec.preemption_policy),
    )
    application = _application(pod, application_id, gang, context.settings, notes)
    if group is not None:
        application.tags |= group_tags(group, gangs=context.settings.gangs)
    if not (ask.placeholder or pod.spec.node_name):
        notes += [Note("Scheduling", "Scheduling", text) for text in unknown_operators(pod)]
        notes += [Note("InvalidAnnotation", "Scheduling", text, once=True) for text in misspelled(pod)]
    return Work(
        application=application,
        ask=ask,
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates or ()),
        later=why_not_yet(pod, group) or volumes.why or devices.why,
        fault=fault or _beyond_limits(pod, application, ask, context.settings),
        notes=tuple(notes),
        gang=gang,
        uncounted=uncounted,
        volumes=volumes,
        devices=devices,
    )


def lacks_class(pod: Pod, classes: Mapping[str, PriorityClass]) -> bool:
    """Return whether a priority class that is not known says whether the pod may be evicted."""
    name = pod.spec.priority_class_name
    return bool(name) and name not in classes and _label(pod, keys.ALLOW_PREEMPTION) not in ("true", "false")


def with_classes(work: Work, pod: Pod, classes: Mapping[str, PriorityClass]) -> Work:
    """Return what a pod asks for where priority classes say something else than when it was read."""
    evictable = _may_be_evicted(pod, classes, [])
    if evictable == work.ask.allow_preempt_self:
        return work
    return msgspec.structs.replace(work, ask=ask_with(work.ask, allow_preempt_self=evictable))


def with_surroundings(work: Work, pod: Pod, context: PodContext) -> Work:
    """Return what a pod asks for where its namespace, or the selector of its workload, is another than when it was read."""
    kept = {tag: text for tag, text in (work.ask.tags or {}).items() if tag != TAG_POD_TERMS}
    tags = kept | _tags_of_surroundings(pod, context, work.volumes, work.devices)
    return work if tags == work.ask.tags else msgspec.structs.replace(work, ask=ask_with(work.ask, tags=tags))


def in_application(application_id: str, work: Work) -> Work:
    """Return the work of a pod with the id of its application, which a pod never changes, whatever its labels say later."""
    if work.ask.application_id == application_id:
        return work
    application = msgspec.structs.replace(work.application, application_id=application_id)
    return msgspec.structs.replace(work, ask=ask_with(work.ask, application_id=application_id), application=application)


def ask_with(ask: Allocation, **values: object) -> Allocation:
    """Return a copy of an ask with other values of these fields."""
    fields: dict[str, Any] = {**ask.fields(), **values}
    return Allocation(**fields)


def is_placeholder(pod: Pod) -> bool:
    """Return whether the pod only holds room for another one of its gang."""
    annotations = pod.metadata.annotations or {}
    labels = pod.metadata.labels or {}
    return "true" in (
        annotations.get(keys.PLACEHOLDER),
        annotations.get(keys.OLD_PLACEHOLDER),
        labels.get(keys.OLD_PLACEHOLDER_LABEL),
    )


def unix_seconds(timestamp: str | None) -> int:
    """Return a time of the API server in whole seconds since 1970; 0 if there is none, or it cannot be read."""
    try:
        return int(datetime.fromisoformat(timestamp).timestamp()) if timestamp else 0
    except (ValueError, OverflowError):
        return 0


# -- the application ---------------------------------------------------------------------------------------------


def _first(pod: Pod, name: str, sources: tuple[tuple[bool, str], ...], notes: list[Note]) -> str:
    """Return the first value that one of the keys has; note those that say otherwise. True: a label."""
    found = ""
    ignored = []
    for of_label, key in sources:
        place = pod.metadata.labels if of_label else pod.metadata.annotations
        value = (place or {}).get(key, "")
        if value and not found:
            found = value
        elif value and value != found:
            ignored.append(f"({'Label' if of_label else 'Annotation'}) {key}: {value}")
    if ignored:
        text = (
            f"Found multiple '{name}' values in pod {pod.metadata.namespace}/{pod.metadata.name}: {found} counts, "
            f"ignored are {', '.join(ignored)}"
        )
        notes.append(Note("Scheduling", "Scheduling", text))
    return found


def has_generated_id(pod: Pod) -> bool:
    """Return whether nobody has given the pod the id of an application that it has with others.

    Such pods have nothing in common but their namespace, so none of them is the driver of the others.
    """
    found = _given_id(pod, [])
    return not found or found.endswith(keys.UNIQUE_SUFFIX)


def _given_id(pod: Pod, notes: list[Note]) -> str:
    if group_name(pod):
        return ""
    sources = ((True, keys.APP_ID), (False, keys.APP_ID), (True, keys.OLD_APP_ID), (True, keys.SPARK_APP_ID))
    found = _first(pod, "app-id", sources, notes)
    if found.startswith(OF_GROUPS):
        text = f"application ids that begin with {OF_GROUPS} are those of native pod groups: it does not count"
        notes.append(Note("InvalidAnnotation", "Scheduling", text, once=True))
        return ""
    return found


def _application_id(pod: Pod, settings: WorkSettings, notes: list[Note]) -> str:
    meta = pod.metadata
    if name := group_name(pod):
        return group_application(meta.namespace, name)
    found = _given_id(pod, notes)
    if found:
        if found.endswith(keys.UNIQUE_SUFFIX):
            return _unique_id(found.removesuffix(keys.UNIQUE_SUFFIX), pod)
        return found
    if settings.generate_unique_app_id:
        return _unique_id(meta.namespace, pod)
    return f"yunikorn-{meta.namespace}-autogen"[:ID_MAX]


def _unique_id(begin: str, pod: Pod) -> str:
    """Return an id for this pod alone. What it begins with is cut, because the UID must be whole."""
    return f"{begin[:UNIQUE_BEGIN_MAX]}-{pod.metadata.uid}"[:ID_MAX]


def _passed_over(pod: Pod, key: str, why: str, notes: list[Note]) -> None:
    """Note that an annotation has no effect. A placeholder has those of its pod, which is told already."""
    if not is_placeholder(pod):
        shown = shown_value(_label(pod, key))
        notes.append(Note("InvalidAnnotation", "Scheduling", f"annotation {key}: {shown}: {why}"))


def shown_value(text: str) -> str:
    """Return what an event shows of a value: its beginning, without control characters."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "...")


def _label(pod: Pod, key: str) -> str:
    return (pod.metadata.annotations or {}).get(key, "")


def _application(
    pod: Pod, application_id: str, gang: Gang | None, settings: WorkSettings, notes: list[Note]
) -> AddApplication:
    meta = pod.metadata
    sources = ((True, keys.QUEUE), (False, keys.QUEUE), (True, keys.OLD_QUEUE))
    tags = {
        TAG_NAMESPACE: meta.namespace or "default",
        TAG_CREATE_FORCE: "true" if pod.spec.node_name else "false",
        TAG_APPLICATION_CREATION_TIME: str(unix_seconds(meta.creation_timestamp)),
    }
    if pod.spec.image_pull_secrets:
        tags[keys.TAG_IMAGE_PULL_SECRETS] = ",".join(secret.name for secret in pod.spec.image_pull_secrets)
    queue = _first(pod, "queue", sources, notes)
    user, groups = _user(pod, settings, notes)
    message = AddApplication(application_id=application_id, queue=queue, user=user, groups=groups, tags=tags)
    if gang is not None:
        tags[keys.TASK_GROUPS] = gang.text
        tags[keys.GANG_PARAMETERS] = _label(pod, keys.GANG_PARAMETERS)
        message.execution_timeout_ms = 1000 * gang.timeout_s
        message.gang_style = "Hard" if gang.hard else "Soft"
        if gang.atomic:
            tags[keys.GANG_KIND] = ATOMIC
    return message


def placeholder_ask(gang: Gang) -> dict[str, int]:
    """Return what all placeholders of a gang take together, each of them a pod."""
    total: dict[str, int] = {}
    for group in gang.groups:
        for name, amount in {**group.resource, PODS: 1}.items():
            total[name] = total.get(name, 0) + amount * group.members
    return total


def _user(pod: Pod, settings: WorkSettings, notes: list[Note]) -> tuple[str, tuple[str, ...]]:
    """Return the user that the annotation names, or the label of before, and groups; a pod that names none belongs to nobody."""
    text = _label(pod, keys.USER_INFO)
    if text:
        try:
            info = msgspec.json.decode(text, type=_UserInfo)
        except UNDECODABLE as error:
            _passed_over(pod, keys.USER_INFO, f"{json_fault(text) or error}; its user is {NOBODY_USER}", notes)
            return NOBODY_USER, ()
        if not info.user:
            _passed_over(pod, keys.USER_INFO, f"it names no user; its user is {NOBODY_USER}", notes)
            return NOBODY_USER, ()
        groups = tuple(group for group in info.groups or () if group)
        why = _too_long({"user": info.user, "group": max(groups, key=len, default="")}, settings)
        why = why or _too_many({"groups": groups}, settings)
        if why:
            _passed_over(pod, keys.USER_INFO, f"{why}; its user is {NOBODY_USER}", notes)
            return NOBODY_USER, ()
        return info.user, groups
    return (pod.metadata.labels or {}).get(keys.USER_NAME, "") or NOBODY_USER, ()


class _UserInfo(msgspec.Struct):
    user: str = ""
    groups: list[str] | None = None


# -- limits ------------------------------------------------------------------------------------------------------


def _beyond_limits(pod: Pod, application: AddApplication, ask: Allocation, settings: WorkSettings) -> str:
    """Return which limit on the names and entries of a pod it exceeds, "" if none.

    The API server takes annotations of 256 KiB, which neither the scheduler nor its logs should hold as a name.
    """
    names = {
        "application id": application.application_id,
        "queue": application.queue,
        "task group": ask.task_group,
    }
    for tag, what in READ_TAGS.items():
        length = len((ask.tags or {}).get(tag, ""))
        if length > MAX_TEXT_LENGTH:
            return f"its {what} have {length} characters, and at most {MAX_TEXT_LENGTH} can be read"
    entries = {"labels": pod.metadata.labels or (), "kinds of resources": ask.resource or ()}
    return _too_long(names, settings) or _too_many(entries, settings)


def _too_long(names: Mapping[str, str], settings: WorkSettings) -> str:
    for what, name in names.items():
        if len(name) > settings.name_chars_max:
            most = f"at most {settings.name_chars_max} are allowed (licorne.max-name)"
            return f"its {what} {shown_value(name)} has {len(name)} characters, and {most}"
    return ""


def _too_many(entries: Mapping[str, Collection[str]], settings: WorkSettings) -> str:
    for what, found in entries.items():
        if len(found) > settings.entries_max:
            return f"it has {len(found)} {what}, and at most {settings.entries_max} are allowed (licorne.max-tags)"
    return ""


# -- gangs -------------------------------------------------------------------------------------------------------


def _read_gang(pod: Pod, settings: WorkSettings, notes: list[Note]) -> Gang | None:
    text = _label(pod, keys.TASK_GROUPS)
    if not text or not settings.gangs:
        return None
    try:
        groups = tuple(group.spec for group in read_task_groups(text))
    except TaskGroupsError as error:
        notes.append(Note("GangScheduling", "TaskGroupsError", f"unable to get taskGroups for pod, reason: {error}"))
        return None
    hard, timeout_s = _gang_parameters(pod, notes)
    kind = _label(pod, keys.GANG_KIND)
    if kind not in ("", ATOMIC):
        _passed_over(pod, keys.GANG_KIND, f"must be {ATOMIC!r}; the gang has placeholders", notes)
    return Gang(groups, text, hard, timeout_s, atomic=kind == ATOMIC)


def _gang_parameters(pod: Pod, notes: list[Note]) -> tuple[bool, int]:
    """Return whether the style is Hard, and the timeout in seconds; values that cannot be used are passed over."""
    hard, timeout_s, why = False, 0, {}
    for item in _label(pod, keys.GANG_PARAMETERS).split():
        name, _, value = item.partition("=")
        if name == STYLE:
            hard = value == "Hard"
            if value not in ("Hard", "Soft"):
                why[name] = f"{STYLE}: {shown_value(value)}: must be Hard or Soft; Soft counts"
        elif name == TIMEOUT:
            if value.isascii() and value.isdigit() and len(value) < 10:
                timeout_s = int(value)
            else:
                why[name] = f"{TIMEOUT}: {shown_value(value)}: must be a number of seconds below 10**9"
    for text in why.values():
        _passed_over(pod, keys.GANG_PARAMETERS, text, notes)
    return hard, timeout_s


# -- the ask -----------------------------------------------------------------------------------------------------


def _ask_tags(pod: Pod, context: PodContext, volumes: PodVolumes, devices: PodDevices) -> dict[str, str]:
    meta = pod.metadata
    tags = {
        keys.TAG_POD_NAMESPACE: meta.namespace,
        keys.TAG_POD_NAME: meta.name,
        **_tags_of_surroundings(pod, context, volumes, devices),
    }
    for name, value in (meta.labels or {}).items():
        tags[keys.TAG_LABEL + name] = value
    if pod.spec.node_name:
        tags[TAG_ALLOCATION_CREATION_TIME] = str(unix_seconds(meta.creation_timestamp))
    if node := required_node(pod):
        tags[TAG_REQUIRED_NODE] = node
    if constraints := constraints_text(pod, (*volumes.demands, *devices.demands)):
        tags[TAG_NODE_CONSTRAINTS] = constraints
    grace_s = pod.spec.termination_grace_period_seconds
    if grace_s is not None and grace_s != GRACE_PERIOD_S:
        tags[TAG_GRACE_PERIOD] = str(grace_s)
    return tags


def _tags_of_surroundings(pod: Pod, context: PodContext, volumes: PodVolumes, devices: PodDevices) -> dict[str, str]:
    """Return the tags that depend on more than the pod: what it is for other pods, and what it demands of them."""
    group = group_of(pod, context.groups)
    tags = {TAG_POD: pod_text(pod, context.namespaces.get(pod.metadata.namespace), group_label(group))}
    if terms := terms_text(pod, context.spreading, volumes, devices, near_its_group(group)):
        tags[TAG_POD_TERMS] = terms
    return tags


def _priority(pod: Pod, group: PodGroup | None) -> int:
    """Return the priority of a pod, which is that of its group."""
    return pod.spec.priority or 0 if group is None or group.spec.priority is None else group.spec.priority


def _may_be_evicted(pod: Pod, classes: Mapping[str, PriorityClass], notes: list[Note]) -> bool:
    """Return whether the pod may be evicted, as it or its priority class says."""
    said = _label(pod, keys.ALLOW_PREEMPTION)
    if said not in ("", "true", "false"):
        why = "must be 'true' or 'false'; what its priority class says counts"
        _passed_over(pod, keys.ALLOW_PREEMPTION, why, notes)
    if said not in ("true", "false"):
        known = classes.get(pod.spec.priority_class_name)
        said = (known.metadata.annotations or {}).get(keys.ALLOW_PREEMPTION, "") if known is not None else ""
    return said != "false"
