"""Claims on devices of pods: which pods are concerned when one changes, and what is written for a pod that has a node.

A claim gets its devices, and is reserved for the pod, before the pod is bound. Each write says which version of the claim it is
about, so it has no effect where somebody else was faster. The claims show how far it is: a process that is killed between two
writes is followed by one that finds the devices of a claim there, which keep the pod to their nodes.

Of a pod that runs, the devices are taken back by Kubernetes' controller of claims when it ends. What was written for a pod that
could not be bound is taken back here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from licorne.kube.api.kinds import PODS, RESOURCE_CLAIMS
from licorne.kube.objects import DeviceClass, Pod, ResourceClaim, ResourceSlice
from licorne.kube.objects.devices import ClaimAllocation, Consumer
from licorne.kube.pods.constraints import Terms
from licorne.kube.pods.device_claims import first_consumer, names_of_claims
from licorne.kube.pods.device_pools import NOWHERE, Nodes, both
from licorne.kube.pods.devices import SHARED, DeviceObject, DeviceStore
from licorne.kube.pods.extended import FINALIZER, IMPLICIT, claim_key, requested_of
from licorne.kube.pods.groups import group_name
from licorne.kube.pods.storage import ClaimKey, drop_from

from .claims import RELEASE, ClaimAttempt, ClaimAttempts
from .commands import CLAIM_STATUS, DROPPED, WriteClaim, names_of
from .outbox import Outbox
from .records import PodRecord, Records
from .stages import Stage

KEPT_S: Final = 30.0
"""How long a pod that waits keeps devices that its claims have got already, as of a process that was killed."""


class Devices:
    """The claims on devices of a cluster as `store` has them, and the pods that name them."""

    def __init__(
        self, records: Records, outbox: Outbox, attempts: ClaimAttempts, where: Callable[[Terms], Nodes]
    ) -> None:
        self._records = records
        self._outbox = outbox
        self.store = DeviceStore(where, records.nodes, records.groups)
        self._names: dict[str, tuple[ClaimKey, ...]] = {}  # by the UID of a pod without a node
        self.changed: dict[str, None] = {}
        """UIDs of pods that are to be read anew."""
        self._attempts = attempts.of_pod
        self._written: dict[ClaimKey, str] = {}  # versions of claims about which a write is under way
        self._requested: dict[str, dict[str, None]] = {}  # extended resources, by the UID of a pod without a node
        self._requesting: dict[str, dict[str, None]] = {}  # by extended resource, the UIDs of these pods
        self._kept: dict[str, float] = {}  # since when pods without a node have been seen with devices

    # -- objects ------------------------------------------------------------------------------------------------

    def seen(self, one: DeviceObject) -> None:
        """Take in an object that is new or has changed."""
        self._take(one, self.store.put)

    def gone(self, one: DeviceObject) -> None:
        """Forget an object that was deleted."""
        self._take(one, self.store.drop)

    def _take(self, one: DeviceObject, change: Callable[[DeviceObject], Nodes]) -> None:
        if isinstance(one, DeviceClass):
            self._class_changed(one, change)
        elif isinstance(one, ResourceSlice):
            self.renew(change(one))
        else:
            key, claims = one.key, self.store.claims
            before = first_consumer(claims.get(key))
            self.renew(change(one), key)
            self._claim_changed(key)
            if (now := first_consumer(claims.get(key))) != before:  # in whose quotas it counts
                self.changed |= {now: None, before: None}

    def _class_changed(self, one: DeviceClass, change: Callable[[DeviceObject], Nodes]) -> None:
        """Read pods anew that wait: those whose claims name a class, and those that request a resource which it backs or has backed."""
        name, store = one.metadata.name, self.store
        backs = {
            IMPLICIT + name,
            *(each.spec.extended_resource_name for each in (one, store.classes.get(name)) if each),
        }
        nodes = change(one)
        self._read_requests(uid for resource in backs for uid in self._requesting.get(resource or "", ()))
        self.changed |= {
            uid: None for uid, keys in self._names.items() if any(store.names_class(key, name) for key in keys)
        }
        self.renew(nodes)

    def _read_requests(self, pods: Iterable[str]) -> None:
        """Read anew the pods without a node among these, since the extended resources that they request may be backed by other classes."""
        for uid in dict.fromkeys(pods):
            record = self._records.pods.get(uid)
            if record is not None:
                self.pod_seen(record.pod)
                self._note_kept(claim_key(record.pod), uid)
                self.changed[uid] = None

    def refused(self, reason: str) -> None:
        """Note why a claim could not be written: a pod that is not told of its claim for extended resources gets no devices from its node."""
        if reason == DROPPED and self.store.keeps_status:
            self.store.keeps_status = False
            self._outbox.warn(f"extended resources are no devices here: {DROPPED}", None)
            self.renew(self.store.classes_changed())
            self._read_requests([one.pod.metadata.uid for one in self.store.extended.values()])

    def _claim_changed(self, key: ClaimKey) -> None:
        claim = self.store.claims.get(key)
        if claim is None or self._written.get(key) != claim.metadata.resource_version:
            self._written.pop(key, None)
            if self.store.unsure.pop(key, None) is not None:
                self.renew(self.store.release(key), key)
        self.reread([key])
        for uid in self.store.users.get(key, ()):
            self._note_kept(key, uid)
        extended = self.store.extended.get(key)
        if claim is None and extended is not None and not extended.classes:  # it was known for this claim alone
            self.pod_seen(extended.pod)
            self.changed[extended.pod.metadata.uid] = None

    def _note_kept(self, key: ClaimKey, uid: str) -> None:
        if uid in self.store.placing:
            return
        claim = self.store.claims.get(key)
        made = None if claim is None else self.store.extended_for(key, uid)
        if made is not None and claim is not None and (claim.status.allocation is None or not made.fits(claim)):
            self._release(uid)  # as of a process that was killed, or of classes that have changed
        elif self._is_reserved(key, uid):
            self._kept.setdefault(uid, self._outbox.now_s())

    def _release(self, uid: str) -> None:
        self.store.releasing[uid] = None
        self.changed[uid] = None

    def renew(self, nodes: Nodes, *claims: ClaimKey) -> None:
        """Have the scheduler look again which nodes have devices, and where these claims get some; it may decide something then."""
        if (nodes != NOWHERE or claims) and self._names:
            partition = self._outbox.partition
            partition.needs.topology.devices_changed(nodes, ["/".join(key) for key in claims])
            partition.wakeups.victims_changed()
            self._outbox.changed()

    # -- pods ---------------------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        """Note which claims of devices a pod without a node names, and forget those of a pod that has got one."""
        uid = pod.metadata.uid
        if pod.spec.node_name:
            if self.store.of_groups.placed(pod):
                self.reread(self.store.of_groups.counted_for_first(pod))
            self._forget_requests(uid)
        elif uid not in self._requested and (requested := requested_of(pod)):
            self._requested[uid] = requested
            for resource in requested:
                self._requesting.setdefault(resource, {})[uid] = None
        made = None if pod.spec.node_name else self.store.note_extended(pod)
        if pod.spec.node_name or not (pod.spec.resource_claims or made):
            self._stop_releasing(uid)
            self._forget_extended(uid)
            self._forget_names(uid)
            return
        names = tuple((pod.metadata.namespace, one.name) for one in names_of_claims(pod) if one.name)
        names = (*names, *((made,) if made is not None else ()))
        if self._names.get(uid) == names:
            if made is not None and uid in self._attempts:
                self.changed[uid] = None  # perhaps its status names its claim now
            return
        self._forget_names(uid)
        self._outbox.partition.needs.topology.allocator = self.store
        self._names[uid] = names
        for name in names:
            self.store.users.setdefault(name, {})[uid] = pod
            self._note_kept(name, uid)
        self.reread(name for name in names if len(self.store.users[name]) == SHARED)

    def pod_gone(self, pod: Pod) -> None:
        """Forget a pod."""
        uid = pod.metadata.uid
        self.give_back(uid)
        self._left(pod)
        self.store.pod_gone(uid)
        self._forget_requests(uid)
        self._stop_releasing(uid)
        self._forget_extended(uid)
        self._forget_names(uid)

    def _left(self, pod: Pod) -> None:
        """Note that a pod has no node any more: if it counted claims of its group in quotas, others do from now on."""
        of_groups = self.store.of_groups
        counted = of_groups.counted_for_first(pod)
        of_groups.left(pod)
        for key in counted:
            first = of_groups.first_placed(pod, key)
            self.changed |= dict.fromkeys([first] if first else self.store.users.get(key, ()))

    def _forget_requests(self, uid: str) -> None:
        for name in self._requested.pop(uid, ()):
            drop_from(self._requesting, name, uid)

    def _forget_extended(self, uid: str) -> None:
        """Forget what a pod requests that has its node, or is gone; another pod may still name the claim that was made for it."""
        for name in self._names.get(uid, ()):
            known = self.store.extended.get(name)
            if known is not None and known.pod.metadata.uid == uid:
                del self.store.extended[name]

    def _forget_names(self, uid: str) -> None:
        self.changed.pop(uid, None)
        self._kept.pop(uid, None)
        for name in dict.fromkeys(self._names.pop(uid, ())):
            if not drop_from(self.store.users, name, uid):
                first = next(iter(self.store.users[name]))
                self.changed[first] = None  # perhaps it is alone now, or counts the claim in quotas

    def take_changed(self) -> list[str]:
        """Return the UIDs of the pods for whose claims something has changed since the last call."""
        changed, self.changed = self.changed, {}
        return [*changed]

    # -- decisions ----------------------------------------------------------------------------------------------

    def reserve(self, record: PodRecord, attempt: ClaimAttempt) -> str:
        """Have the claims of a pod get what was decided, and be reserved for the pod; return why they cannot, or ""."""
        store, uid, node = self.store, record.uid, attempt.node
        devices = record.work.devices
        listed = {key for key in devices.open if store.extended_for(key, uid) and not store.demands(key, node)}
        if listed:  # the node has what the pod requests as amounts
            claims, open_ = ([key for key in keys if key not in listed] for keys in (devices.claims, devices.open))
            devices = msgspec.structs.replace(devices, claims=tuple(claims), open=tuple(open_))
        for key in devices.open:
            decision = store.decided.get(key)
            if decision is None or (decision.pods and not store.of_groups.is_shared(record.pod, key)):
                return f"node {node} has no devices left for claim {key[1]}"
        if any(key not in store.claims and store.extended_for(key, uid) is None for key in devices.claims):
            return "a claim of it has been deleted"
        for key in devices.open:
            decision = store.decided[key]
            store.decided[key] = decision._replace(pods=decision.pods | {uid})
        store.placing[uid] = devices
        store.of_groups.placed(record.pod)
        attempt.devices = {key: store.claims[key].metadata.uid if key in store.claims else "" for key in devices.claims}
        self._kept.pop(uid, None)
        self.reread(devices.claims)
        self.changed[uid] = None
        return ""

    def is_releasing(self, uid: str) -> bool:
        """Return whether writes are wanted that take back what was written for the claims of a pod."""
        return uid in self.store.releasing or uid in self.store.unsure.values()

    def give_back(self, uid: str) -> None:
        """Give up what was decided of the claims of a pod, and have taken back what is written of it, unless the pod has its node."""
        devices = self.store.placing.pop(uid, None)
        if devices is None:
            return
        attempt = self._attempts[uid]
        nodes = NOWHERE
        for key in devices.open:
            decision = self.store.decided.get(key)
            if decision is None or uid not in decision.pods:
                continue
            claim = self.store.claims.get(key)
            if decision.pods != {uid}:
                self.store.decided[key] = decision._replace(pods=decision.pods - {uid})
                continue
            # A claim with an allocation keeps its devices by itself; an unanswered write is then about another pod.
            if (
                claim is not None
                and claim.status.allocation is None
                and key in self._written
                and FINALIZER in (claim.metadata.finalizers or ())
            ):
                self._make_sure(uid, attempt, claim)
            else:
                nodes = both(nodes, self.store.release(key))
        self._forget_writes(devices.claims)
        record = self._records.pods.get(uid)
        if record is not None and not record.pod.spec.node_name:
            self._left(record.pod)
            if any(self._may_take_back(key, uid) or self._is_made(key, uid) for key in attempt.devices):
                self._release(uid)
        self.reread(devices.claims)
        self.renew(nodes, *devices.open)

    def _make_sure(self, uid: str, attempt: ClaimAttempt, claim: ResourceClaim) -> None:
        """Keep the devices of a ResourceClaim from others while a write that allocates them to it is unanswered.

        They are kept until the API server shows the claim with another version. A write of the same version, which takes back what
        the pod has written before, sees to it that one of both has no effect.
        """
        self.store.unsure[claim.key] = uid
        self._remove(attempt.names, claim)

    def reread(self, claims: Iterable[ClaimKey]) -> None:
        """Mark the pods that name one of these ResourceClaims: what their claims demand is read again in the next step."""
        for key in claims:
            self.changed |= dict.fromkeys(self.store.users.get(key, ()))

    def _consumer(self, key: ClaimKey, uid: str) -> Consumer:
        """Return for whom a claim is reserved that a pod without a node names."""
        pod = self.store.users.get(key, {}).get(uid)
        return Consumer(uid=uid) if pod is None else self.store.of_groups.consumer(pod, key)

    def _is_reserved(self, key: ClaimKey, uid: str) -> bool:
        """Return whether a claim is reserved for a pod without a node, or for its group."""
        claim, consumer = self.store.claims.get(key), self._consumer(key, uid)
        return claim is not None and any(one.uid == consumer.uid for one in claim.status.reserved_for or ())

    def _may_take_back(self, key: ClaimKey, uid: str) -> bool:
        """Return whether a claim is reserved for a pod without a node, or for its group while no pod of that has one."""
        pod = self.store.users.get(key, {}).get(uid)
        return self._is_reserved(key, uid) and not (pod is not None and self.store.of_groups.is_in_use(pod, key))

    def _is_made(self, key: ClaimKey, uid: str) -> bool:
        """Return whether there is a claim that was made for the extended resources of a pod."""
        return key in self.store.claims and self.store.extended_for(key, uid) is not None

    def look(self, record: PodRecord, attempt: ClaimAttempt) -> tuple[bool, str]:
        """Have written what is missing; return whether nothing is, and else why the claims will not get what was decided, or ""."""
        done = True
        for key, uid in attempt.devices.items():
            claim = self.store.claims.get(key)
            extended = self.store.extended_for(key, record.uid)
            if claim is None and extended is not None and not uid:
                done = False
                if key not in self._written:
                    self._written[key] = ""
                    body = extended.body(key, self.store.listed(attempt.node))
                    self._send(attempt.names, attempt.number, RESOURCE_CLAIMS.path(key[0]), body, "POST")
                continue
            if claim is not None and not uid:
                if extended is None:
                    return False, f"claim {key[1]} was not made for the extended resources of the pod"
                attempt.devices[key] = claim.metadata.uid
            if claim is None or claim.metadata.uid != attempt.devices[key] or claim.metadata.deletion_timestamp:
                return False, f"claim {key[1]} has been deleted"
            decision = self.store.decided.get(key)
            if self.store.extended_for(key) and decision is not None and not _is_for(claim, decision.allocation):
                return False, f"claim {key[1]} was made for another node"
            allocation = claim.status.allocation
            if decision is None and allocation is None:
                return False, f"the devices of claim {key[1]} have been taken back"
            if decision is not None and allocation is not None and _given(allocation) != _given(decision.allocation):
                return False, f"claim {key[1]} has got other devices"
            if (
                allocation is not None
                and self._is_reserved(key, record.uid)
                and FINALIZER in (claim.metadata.finalizers or ())
            ):
                continue
            done = False
            if key not in self._written:
                self._write(attempt, claim, None if decision is None else decision.allocation)
        return done and self._is_told(record, attempt), ""

    def _is_told(self, record: PodRecord, attempt: ClaimAttempt) -> bool:
        """Return whether the status of a pod says what devices are for its extended resources; have it written."""
        for key in attempt.devices:
            extended = self.store.extended_for(key, record.uid)
            if extended is None:
                continue
            status = extended.status(self.store.claims[key])
            if record.pod.status.extended_resource_claim_status != status:
                if not attempt.told:
                    attempt.told = True
                    body = {"metadata": {"uid": record.uid}, "status": {CLAIM_STATUS: status}}
                    path = PODS.path(record.pod.metadata.namespace, record.pod.metadata.name, "status")
                    self._send(attempt.names, attempt.number, path, body, kept=CLAIM_STATUS)
                return False
        return True

    def _write(self, attempt: ClaimAttempt, claim: ResourceClaim, allocation: ClaimAllocation | None) -> None:
        """Write the next thing that a claim lacks: what keeps it from being removed, then its devices and the pod."""
        finalizers = claim.metadata.finalizers or ()
        if FINALIZER not in finalizers:  # as of a process that was killed while it had the claim removed, too
            self._patch(attempt.names, attempt.number, claim, "", {"finalizers": [*finalizers, FINALIZER]}, {})
            return
        consumer = self._consumer(claim.key, attempt.names[-1])
        reserved = [*map(msgspec.to_builtins, (*(claim.status.reserved_for or ()), consumer))]
        status: dict[str, Any] = {"reservedFor": reserved}
        if claim.status.allocation is None:
            status["allocation"] = msgspec.to_builtins(allocation)
        self._patch(attempt.names, attempt.number, claim, "status", {}, {"status": status})

    def _patch(
        self,
        names: tuple[str, str, str],
        number: int,
        claim: ResourceClaim,
        part: str,
        meta: dict[str, Any],
        body: dict[str, Any],
    ) -> None:
        version = claim.metadata.resource_version
        key = claim.key
        self._written[key] = version
        whole = {"metadata": {"resourceVersion": version, **meta}, **body}
        self._send(names, number, RESOURCE_CLAIMS.path(*key, part), whole)

    def _send(
        self,
        names: tuple[str, str, str],
        number: int,
        path: str,
        body: dict[str, Any],
        method: str = "PATCH",
        kept: str = "",
    ) -> None:
        self._outbox.commands.append(WriteClaim(*names, number, path, body, watched=True, method=method, kept=kept))

    # -- what is taken back -------------------------------------------------------------------------------------

    def settle(self, record: PodRecord) -> None:
        """Have the reservations of claims for a pod that could not be bound taken back, and their devices if no other pod has them."""
        uid = record.uid
        if uid not in self.store.releasing:
            waits = group_name(record.pod) and uid not in self.store.placing
            if waits and any(self._is_reserved(key, uid) for key in self._names.get(uid, ())):
                self._kept.setdefault(uid, self._outbox.now_s())  # perhaps its group has come after it
            return
        names = dict.fromkeys(self._names.get(uid, ()))
        others = {key: self._others(key, uid) for key in names if key in self.store.claims}
        reserved = [
            key for key in others if self._may_take_back(key, uid) or (self._is_made(key, uid) and not others[key])
        ]
        if not reserved:
            del self.store.releasing[uid]
            self.changed[uid] = None
        for key in reserved:
            claim = self.store.claims[key]
            if key in self._written:
                continue
            if self._is_made(key, uid) and not others[key]:
                self._remove(names_of(record.pod), claim)
            else:
                status = {"reservedFor": others[key]} if others[key] else {"reservedFor": None, "allocation": None}
                if self.store.of_groups.is_shared(record.pod, key):
                    self.store.unsure[key] = uid
                    self.reread([key])
                self._patch(names_of(record.pod), RELEASE, claim, "status", {}, {"status": status})

    def _others(self, key: ClaimKey, uid: str) -> list[Any]:
        """Return for which other pods and groups a claim is reserved."""
        reserved, own = self.store.claims[key].status.reserved_for or (), self._consumer(key, uid).uid
        return [msgspec.to_builtins(one) for one in reserved if one.uid != own]

    def _remove(self, names: tuple[str, str, str], claim: ResourceClaim) -> None:
        """Have a claim deleted that was made for the extended resources of a pod; first take off what keeps it."""
        meta = claim.metadata
        if FINALIZER in (meta.finalizers or ()):
            left = [one for one in meta.finalizers or () if one != FINALIZER]
            self._patch(names, RELEASE, claim, "", {"finalizers": left or None}, {})
        elif not meta.deletion_timestamp:
            self._written[claim.key] = meta.resource_version
            self._send(names, RELEASE, RESOURCE_CLAIMS.path(*claim.key), {"uid": meta.uid}, "DELETE")

    def not_released(self, uid: str, path: str) -> None:
        """Note that a write which takes something back was refused; `path` is that of its object.

        A pod whose reservation could not be taken back keeps what its claims have, until it waits for too long.
        """
        paths = {key: RESOURCE_CLAIMS.path(*key) for key, pod in self.store.unsure.items() if pod == uid}
        unsure = [key for key, of_claim in paths.items() if path in (of_claim, f"{of_claim}/status")]
        given_up = not unsure or any(self._is_reserved(key, uid) for key in unsure)
        for key in unsure:
            del self.store.unsure[key]
            self._written.pop(key, None)
            self.renew(self.store.release(key), key)
            self.reread([key])
        if given_up and self._stop_releasing(uid):
            self._kept[uid] = self._outbox.now_s()

    def _stop_releasing(self, uid: str) -> bool:
        """Send no more writes that take reservations back from a pod; return whether some were to be sent."""
        if uid not in self.store.releasing:
            return False
        del self.store.releasing[uid]
        names = self._names.get(uid, ())
        self._forget_writes(names)
        self.reread(names)
        return True

    def _forget_writes(self, claims: Iterable[ClaimKey]) -> None:
        """Await no answer to writes about these claims, but for those that may still give devices to a pod which gave up."""
        for key in claims:
            if key not in self.store.unsure:
                self._written.pop(key, None)

    def pass_on(self) -> None:
        """Have devices taken back from pods that have had them for some time, and find no node."""
        now = self._outbox.now_s()
        for uid, since in [*self._kept.items()]:
            record = self._records.pods.get(uid)
            if record is None or 0.0 <= now - since < KEPT_S or uid in self.store.placing:
                continue
            used = [key for key in self._names.get(uid, ()) if self._is_reserved(key, uid)]
            if used and not any(self._may_take_back(key, uid) for key in used):
                self._kept[uid] = now  # other pods of its group have a node
            elif record.stage in (Stage.ASKED, Stage.HELD, Stage.REFUSED):  # else later
                del self._kept[uid]
                self._release(uid)


def _is_for(claim: ResourceClaim, allocation: ClaimAllocation) -> bool:
    """Return whether a claim requests as many devices as it is to get."""
    wanted = {one.name: one.exactly.count for one in claim.spec.devices.requests or () if one.exactly is not None}
    return wanted == Counter(one.request for one in allocation.devices.results or ())


def _given(allocation: ClaimAllocation) -> list[tuple[str, ...]]:
    """Return which devices a claim has got for which request; amounts and tolerations the API server writes in its own way."""
    return [(one.request, one.driver, one.pool, one.device) for one in allocation.devices.results or ()]
