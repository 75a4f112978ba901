"""Gangs with placeholder pods: room is reserved by pods that do nothing, and the pods of the gang take their places.

An application whose first pod names task groups gets its placeholders created, as many as the groups have members. Its
own pods are asked for when all placeholders have a node; the scheduler then replaces one by one. A gang that is placed
without placeholders (docs/understand/gangs-atomic.md) needs none of this: its pods are asked for at once.

Source: docs/spec/k8shim.md, section 3.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from licorne.core.gangs.atomic import BY_QUEUE
from licorne.kube.objects import Pod
from licorne.kube.pods import keys
from licorne.kube.pods.task_groups import TaskGroup, read_task_groups
from licorne.kube.pods.work import Gang, Note, Work, placeholder_ask, unix_seconds
from licorne.kube.settings import Settings
from licorne.si.constants import TAG_WHOLE_TIMEOUT
from licorne.si.messages import AddApplication, Termination

from .commands import CreatePod, Evict, names_of
from .holding import Holding
from .outbox import Outbox
from .records import ApplicationRecord, Creation, GangStage, PodRecord, Records
from .stages import COUNTED, PLACED, WAITING, Stage
from .waiting import was_asked_for

NOT_OF_NAMES: Final = re.compile(r"[^a-z0-9-]")
LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What a label may have as its value, if it has one."""
FAILED: Final = "ApplicationFailed"
"""The reason of a pod that is failed with its application, where that does not fail because its time is over."""
TIMEOUT_REASON: Final = "ResourceReservationTimeout"
TIMEOUT_MESSAGE: Final = "Scheduling has timed out due to insufficient resources"
DEFAULT_TIMEOUT_S: Final = 900
"""How long placeholders wait where the application does not say: the scheduler's own default."""


class Gangs:
    """The gangs of all applications. `settings` counts for placeholders that are made from now on.

    Parameters:
        release_held: asks for the pods of an application that waited for the room of their gang.
    """

    def __init__(
        self, records: Records, outbox: Outbox, holding: Holding, release_held: Callable[[ApplicationRecord], None]
    ) -> None:
        self._records = records
        self._outbox = outbox
        self._holding = holding
        self._release_held = release_held
        self.settings = Settings()
        self._due: dict[str, None] = {}  # ids of applications that may lack placeholders

    # -- the beginning ------------------------------------------------------------------------------------------

    def note_originator(self, record: PodRecord) -> None:
        """Take a new pod as the originator of its application, if it is the first; of a placeholder, take the pod that owns it.

        One with a fault, which waits until somebody mends it, becomes the originator if it makes the application known.
        """
        application = record.application
        if not record.work.ask.placeholder:
            if record.work.fault:
                return
            application.originator = application.originator or record.uid
        elif owner := _owner(record.pod):
            application.originator = owner

    @staticmethod
    def announcement(application: ApplicationRecord, work: Work) -> AddApplication:
        """Return the message that makes an application known, completed if it is a gang.

        One of which a pod runs had all its room before a restart, so it does not fail for a member that is still to come.
        """
        if work.gang is None or work.gang.atomic:
            return work.application
        own = (record for record in application.pods.values() if not record.work.ask.placeholder)
        whole = any(record.node or record.pod.spec.node_name for record in own)
        return msgspec.structs.replace(
            work.application,
            gang_style="Hard" if work.gang.hard and not whole else "Soft",
            placeholder_ask=placeholder_ask(work.gang),
            # The oldest pod may have waited for hours with scheduling gates, or for a scheduler.
            tags={**work.application.tags, TAG_WHOLE_TIMEOUT: "true", keys.GANG_KIND: BY_QUEUE},
        )

    def begin(self, application: ApplicationRecord, record: PodRecord) -> None:
        """Reserve room for an application that the scheduler has just accepted, if it is a gang with placeholders."""
        if not record.work.ask.placeholder and application.originator not in application.pods:
            application.originator = record.uid
        application.gang = record.work.gang
        application.gang_stage = GangStage.NONE
        application.given_up = False
        application.undecided = None
        application.not_created = ""
        application.spent.clear()
        application.creations.clear()
        if application.gang is None:
            return
        known = self._outbox.partition.applications.get(application.id)
        application.atomic = known is not None and known.atomic is not None
        if application.atomic or application.gang.atomic:
            return
        application.gang_stage = GangStage.RESERVING
        self._due[application.id] = None

    def held(self, record: PodRecord) -> None:
        """Have the room reserved for a pod that waits for it, if the pod for which that was begun is gone."""
        application = record.application
        if application.reserved_for not in application.pods:
            self._due[application.id] = None

    def changed(self, record: PodRecord) -> None:
        """Look anew whether a gang that reserves room can be whole, where a pod that comes, changes or goes may decide that."""
        application = record.application
        waits = record.work.later or record.work.fault or application.undecided is not None
        if waits and application.gang_stage is GangStage.RESERVING:
            self._due[application.id] = None

    def create_missing(self) -> None:
        """Have the placeholders created that gangs lack; to be called when all pods that exist are known."""
        due, self._due = self._due, {}
        for application_id in due:
            application = self._records.applications.get(application_id)
            if application is not None and application.gang_stage is GangStage.RESERVING:
                self._reserve(application)

    def _reserve(self, application: ApplicationRecord) -> None:
        originator = self._originator(application)
        if originator is None:
            return
        if any(record.stage in PLACED and not record.work.ask.placeholder for record in application.pods.values()):
            self._run(application)  # a pod of its own runs, so the room was complete before a restart
            return
        assert application.gang is not None
        application.reserved_for = originator.uid
        placeholders = [record for record in application.pods.values() if record.work.ask.placeholder]
        # One that is preempted is made anew when it has gone; the others that leave are of a try before this one.
        stay = (record for record in placeholders if record.leaving in (None, Termination.PREEMPTED_BY_SCHEDULER))
        present = Counter(record.work.ask.task_group for record in stay)
        names = {record.pod.metadata.name for record in application.pods.values()}
        for name, creation in application.creations.items():
            if name not in names and creation.owner == originator.uid:
                present[creation.group] += 1
        if not present and self._has_given_up(application, application.gang, originator):
            self._run(application)
            return
        application.undecided = _undecided(application, application.gang)
        if application.undecided is not None:
            application.creations.clear()
            for record in placeholders:
                self._holding.remove_placeholder(record, f"Application {application.id} cannot start as a whole")
            return
        if not present:
            text = f"Application {application.id} creating placeholders"
            self._outbox.post_event(originator.pod, Note("GangScheduling", "CreatingPlaceholders", text, warning=False))
        self._create(application, originator, present, names | application.spent)
        self._run_if_complete(application)

    def _create(
        self, application: ApplicationRecord, originator: PodRecord, present: Mapping[str, int], not_these: set[str]
    ) -> None:
        """Have the placeholders created that are lacking, besides those that are there or on their way, by task group."""
        assert application.gang is not None
        creations = application.creations
        namespace, owner = originator.pod.metadata.namespace, originator.uid
        devices = self._devices(application)
        for known in read_task_groups(application.gang.text):
            group_name = known.spec.name
            counted = devices.get(group_name)
            more = {keys.PLACEHOLDER_DEVICES: msgspec.json.encode(counted).decode()} if counted else {}
            group = msgspec.structs.replace(known, annotations={**known.annotations, **more})
            bodies = (self._body(application, originator, group, number) for number in itertools.count())
            lacking = ((body["metadata"]["name"], body) for body in bodies)
            free = ((name, body) for name, body in lacking if name not in not_these and name not in creations)
            for name, body in itertools.islice(free, max(group.spec.members - present[group_name], 0)):
                creations[name] = Creation(group_name, owner)
                self._outbox.commands.append(CreatePod(namespace, application.id, group_name, owner, body))

    def _devices(self, application: ApplicationRecord) -> dict[str, Counter[str]]:
        """Return the devices of each class that quotas count for the members of a task group: of those that are known, the most."""
        found: dict[str, Counter[str]] = {}
        for record in application.pods.values():
            if record.pod.spec.resource_claims:
                claimed = Counter(self._holding.devices.store.claimed(record.pod))
                group = record.work.ask.task_group
                found[group] = found.get(group, Counter()) | claimed
        return found

    def _originator(self, application: ApplicationRecord) -> PodRecord | None:
        """Return the pod that placeholders belong to; another one takes over when it is gone.

        Placeholders of a pod that is gone would be deleted as soon as they are made, and those of one with a fault name
        the queue that cannot be used.
        """
        known = application.pods.get(application.originator)
        if known is None or known.is_failed:
            own = (record for record in application.pods.values() if not record.work.ask.placeholder)
            able = (record for record in own if not (record.pod.metadata.deletion_timestamp or record.is_failed))
            known = min(able, key=lambda record: bool(record.work.fault), default=None)
            application.originator = "" if known is None else known.uid
        return known

    def _has_given_up(self, application: ApplicationRecord, gang: Gang, originator: PodRecord) -> bool:
        """Return whether a gang without any placeholder has gone on without its room, before licorne was started anew.

        That it is older than its timeout is not enough: its pods may have had scheduling gates, and no scheduler may have
        run. One of its pods must also have been told a reason of pods that are asked for, which the pods of a gang are
        not before it has all its room or gives up. Where that is not known the gang reserves again, which ends in time.
        """
        age_s = self._outbox.now_s() - unix_seconds(originator.pod.metadata.creation_timestamp)
        if age_s <= (gang.timeout_s or DEFAULT_TIMEOUT_S):
            return False
        return any(was_asked_for(record) for record in application.pods.values() if not record.work.ask.placeholder)

    # -- the way ------------------------------------------------------------------------------------------------

    def placed(self, record: PodRecord) -> None:
        """Note that a pod has a node: perhaps the room of its gang is complete now."""
        if record.application.gang_stage is GangStage.RESERVING and record.work.ask.placeholder:
            self._run_if_complete(record.application)

    def _run_if_complete(self, application: ApplicationRecord) -> None:
        assert application.gang is not None
        placed = Counter(
            record.work.ask.task_group
            for record in application.pods.values()
            if record.stage in COUNTED and record.work.ask.task_group
        )
        if all(placed[group.name] >= group.members for group in application.gang.groups):
            self._run(application)

    def _run(self, application: ApplicationRecord) -> None:
        application.gang_stage = GangStage.RUNNING
        application.creations.clear()
        self._release_held(application)

    def pod_gone(self, record: PodRecord) -> None:
        """Make a placeholder anew that ended before its gang had all its room, unless the scheduler let it go for that gang.

        It may have failed, as one that its kubelet refuses, and be there still: licorne follows no pods that have ended.
        So it is deleted, which is of no effect if it is gone, and the next one has another name.

        Of a pod that is gone, which they belonged to, those that are not there yet are not created any more.
        """
        application = record.application
        if application.gang_stage is not GangStage.RESERVING:
            return
        self.changed(record)
        application.creations.pop(record.pod.metadata.name, None)
        preempted = record.leaving is Termination.PREEMPTED_BY_SCHEDULER
        ended = record.work.ask.placeholder and (record.leaving is None or preempted)
        if ended:
            application.spent.add(record.pod.metadata.name)
            if not (preempted or record.pod.metadata.deletion_timestamp):
                text = f"Application {application.id} has another placeholder made"
                end = Evict(*names_of(record.pod), "Unneeded", text, disruption=False)
                self._outbox.commands.append(end)
        if record.uid == application.reserved_for or (ended and not self._fails_often(application)):
            self._due[application.id] = None

    @staticmethod
    def _fails_often(application: ApplicationRecord) -> bool:
        """Return whether more placeholders have ended than the gang has: the next one waits until `look_again`.

        A kubelet that refuses each of them would else have pods created and deleted without a pause.
        """
        gang = application.gang
        return gang is not None and len(application.spent) > sum(group.members for group in gang.groups)

    def created(self, application_id: str, name: str, now_s: float, *, taken: bool = False) -> None:
        """Note that the API server has a placeholder, since it was created, or since before: then the name was taken."""
        application = self._records.applications.get(application_id)
        creation = None if application is None else application.creations.get(name)
        if application is not None and creation is not None:
            creation.told_s, creation.taken = now_s, taken
            application.not_created = ""

    def look_again(self, application_id: str, before_s: float = math.inf) -> float | None:
        """Create what a gang lacks, some time after placeholders were created.

        Those that the API server has had since `before_s` or longer should have been seen. One that is deleted while no
        watch is open, as after a pause or an expired watch, is never seen. Names of placeholders repeat, so one that is
        only late is not created twice. If no pod is seen of a name that was taken, it is one that has ended, as before a
        restart, and the next placeholder has another name.

        Returns since when the API server has had the next one that is to be looked for; None: there is none.
        """
        application = self._records.applications.get(application_id)
        if application is None or application.gang_stage is not GangStage.RESERVING:
            return None
        self._due[application_id] = None
        names = {record.pod.metadata.name for record in application.pods.values()}
        told = [(one.told_s, name) for name, one in application.creations.items() if one.told_s is not None]
        for told_s, name in told:
            if told_s <= before_s:
                creation = application.creations.pop(name)
                if creation.taken and name not in names:
                    application.spent.add(name)
        return min((told_s for told_s, _ in told if told_s > before_s), default=None)

    def is_wanted(self, command: CreatePod) -> bool:
        """Return whether a placeholder is still to be created: its gang reserves room, and the pod that owns it is there."""
        application = self._records.applications.get(command.application_id)
        if (
            application is None
            or application.gang_stage is not GangStage.RESERVING
            or application.undecided is not None
        ):
            return False
        return command.owner in application.pods

    def remove_late(self, record: PodRecord, *, read_at_start: bool) -> None:
        """Have a new placeholder deleted that is of no use: its creation was under way when its gang gave up or failed.

        That may be some time ago, and the gang have begun anew: then the pod that the placeholder belongs to is not there.
        """
        if not record.work.ask.placeholder:
            return
        application, owner = record.application, _owner(record.pod)
        orphan = owner and owner not in application.pods and not (read_at_start or record.pod.spec.node_name)
        if application.given_up or orphan:
            self._holding.remove_placeholder(record, f"Application {application.id} does not need the placeholder")

    def not_created(self, application_id: str, name: str, reason: str, now_s: float) -> None:
        """Note that the API server refuses a placeholder: a Soft gang goes on without its room.

        A Hard one is to start as a whole or not at all, so it waits, and `look_again` has the placeholder created again.
        """
        application = self._records.applications.get(application_id)
        if application is None or application.gang_stage is not GangStage.RESERVING:
            return
        assert application.gang is not None
        if application.gang.hard:
            first = not application.not_created
            self.created(application_id, name, now_s)
            application.not_created = reason
            if first:
                text = f"Application {application_id} waits for a placeholder that is refused: {reason}"
                self._tell_originator(application, Note("GangScheduling", "PlaceholderCreateFailed", text))
            return
        text = f"Application {application_id} fall back to normal scheduling: {reason}"
        self._tell_originator(application, Note("GangScheduling", "PlaceholderCreateFailed", text))
        for record in application.pods.values():
            if record.work.ask.placeholder:
                self._holding.remove_placeholder(record, text)
        application.given_up = True
        self._run(application)

    def state_changed(self, application: ApplicationRecord, message: str) -> None:
        """Take a new state of an application: a gang whose time is over goes on without its room, or fails."""
        if application.state == "Resuming" and application.gang_stage is GangStage.RESERVING:
            self._give_up(application)
        elif application.state in ("Completed", "Expired", "Failed"):
            application.gang_stage = GangStage.NONE
        elif application.is_failing:
            self._fail(application, message)

    def _fail(self, application: ApplicationRecord, message: str) -> None:
        """Fail the pods of an application that wait. Those that come until it has failed are the next try, and are held."""
        application.gang_stage = GangStage.NONE
        self._abandon_placeholders(application, f"Application {application.id} has failed")
        reason, text = (TIMEOUT_REASON, TIMEOUT_MESSAGE) if TIMEOUT_REASON in message else (FAILED, message)
        for record in application.pods.values():
            if record.stage in WAITING and not (record.node or record.work.ask.placeholder):
                self._holding.fail(record, reason, text)

    def placeholder_timed_out(self, record: PodRecord) -> None:
        """Note that a placeholder has timed out: a gang of which a pod runs already, bound by somebody else, goes on without its room.

        The application of such a gang is running, so the scheduler does not let it resume, which would say the same.
        """
        application = record.application
        if application.gang_stage is GangStage.RESERVING and application.state in ("Running", "Completing"):
            self._give_up(application)

    def _give_up(self, application: ApplicationRecord) -> None:
        text = f"Application {application.id} resuming as non-gang application (SOFT)"
        self._tell_originator(application, Note("GangScheduling", "GangSchedulingFailed", text))
        self._abandon_placeholders(application, text)
        self._run(application)

    def _abandon_placeholders(self, application: ApplicationRecord, why: str) -> None:
        """Have placeholders deleted that the scheduler does not know, so that it does not release them; also later ones."""
        application.given_up = True
        for record in application.pods.values():
            if record.work.ask.placeholder and record.stage in (Stage.HELD, Stage.UNBOUND):
                self._holding.remove_placeholder(record, why)

    def _tell_originator(self, application: ApplicationRecord, note: Note) -> None:
        originator = application.pods.get(application.originator)
        if originator is not None:
            self._outbox.post_event(originator.pod, note)

    # -- placeholder pods ---------------------------------------------------------------------------------------

    def _body(
        self, application: ApplicationRecord, originator: PodRecord, group: TaskGroup, number: int
    ) -> dict[str, Any]:
        """Return a placeholder pod, in the namespace of its owner: elsewhere the garbage collector would delete it.

        It names no user, whatever its group says: YuniKorn's admission controller refuses a pod for which licorne names
        one, and where it trusts licorne a group could name somebody else. Its name follows from application, group and
        number, so that one which is created twice, because an answer was lost, is there once.
        """
        meta, spec = originator.pod.metadata, originator.pod.spec
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
        seed = f"{meta.uid}/{application.id}/{group.spec.name}/{number}"
        ending = hashlib.sha256(seed.encode()).hexdigest()[:10]
        queue = originator.work.application.queue
        annotations = {
            **group.annotations,
            keys.PLACEHOLDER: "true",
            keys.TASK_GROUP_NAME: group.spec.name,
            keys.TASK_GROUPS: application.gang.text if application.gang is not None else "",
        }
        if keys.GANG_PARAMETERS in (meta.annotations or {}):
            annotations[keys.GANG_PARAMETERS] = (meta.annotations or {})[keys.GANG_PARAMETERS]
        annotations.pop(keys.USER_INFO, None)
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"tg-{application.id[:28]}-{group.spec.name[:20]}-{ending}".lower(),
                "namespace": meta.namespace,
                "labels": {**group.labels, keys.APP_ID: application.id, **({keys.QUEUE: queue} if queue else {})},
                "annotations": annotations,
                "ownerReferences": [{**owner, "controller": False, "blockOwnerDeletion": True}],
            },
            "spec": {**self._spec(originator.pod, group.requests), **group.constraints},
        }
        body["metadata"]["labels"].pop(keys.USER_NAME, None)
        if spec.priority_class_name:
            body["spec"]["priorityClassName"] = spec.priority_class_name
        if spec.image_pull_secrets:
            body["spec"]["imagePullSecrets"] = [{"name": secret.name} for secret in spec.image_pull_secrets]
        _make_allowed(body["metadata"])
        return body

    def _spec(self, originator: Pod, requests: Mapping[str, str]) -> dict[str, Any]:
        """Return the `spec` of a placeholder without what its task group adds: one container that only pauses, without any privilege."""
        settings = self.settings
        as_whom = {"runAsUser": settings.run_as_user, "runAsGroup": settings.run_as_group, "fsGroup": settings.fs_group}
        return {
            "schedulerName": originator.spec.scheduler_name,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
                **{name: number for name, number in as_whom.items() if number},
            },
            "containers": [
                {
                    "name": "pause",
                    "image": settings.placeholder_image,
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {"requests": requests, "limits": requests},
                    "securityContext": {
                        "privileged": False,
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        }


def _undecided(application: ApplicationRecord, gang: Gang) -> PodRecord | None:
    """Return a member that cannot be asked for, if its task group has not enough others; None: there is no such member.

    Members that are not there yet may come: a driver makes its executors when it runs.
    """
    lacking = {group.name: group.members for group in gang.groups}
    undecided: dict[str, PodRecord] = {}
    for record in application.pods.values():
        group = record.work.ask.task_group
        gone = record.pod.metadata.deletion_timestamp or record.is_failed
        if group not in lacking or record.work.ask.placeholder or gone:
            continue
        if record.work.later or record.work.fault:
            undecided.setdefault(group, record)
        else:
            lacking[group] -= 1
    return next((record for group, record in undecided.items() if lacking[group] > 0), None)


def _make_allowed(metadata: dict[str, Any]) -> None:
    """Change what the API server would refuse in the metadata of a placeholder.

    Application id and queue may be those of an annotation, of any length and any characters; what cannot be a label stays
    one, which is read where there is no label. Names of pods have fewer characters than ids and groups.
    """
    metadata["name"] = NOT_OF_NAMES.sub("-", metadata["name"])
    labels = metadata["labels"]
    for key in (keys.APP_ID, keys.QUEUE):
        if key in labels and not LABEL.fullmatch(labels[key]):
            metadata["annotations"][key] = labels.pop(key)


def _owner(pod: Pod) -> str:
    """Return the UID of the pod that a placeholder belongs to; "" if there is none."""
    return next((owner.uid for owner in pod.metadata.owner_references or () if owner.kind == "Pod"), "")
