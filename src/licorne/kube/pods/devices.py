"""What the claims of a pod on devices demand, and which devices they get.

As kube-scheduler's DynamicResources (docs/spec/kube-scheduler.md, section 7). A claim that has devices is a condition on labels of nodes;
one that has none yet is told to the scheduler, which asks here (`licorne.core.nodes.claimed`), in the step of a decision, whether a
node has devices for it, and has them given. What no node can help is a sentence, in kube-scheduler's words.
docs/understand/devices.md says why it is done this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from licorne.core.incidents import describe
from licorne.core.nodes.constraints import CLAIM_ELSEWHERE, LACKS_DEVICES
from licorne.kube.objects import Node
from licorne.kube.objects.devices import (
    AllocatedDevices,
    ClaimAllocation,
    DeviceClaim,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from licorne.kube.objects.meta import LabelSelectorRequirement
from licorne.kube.objects.pods import NodeSelector, NodeSelectorTerm, Pod

from .constraints import NODE_NAME, Terms, required_labels, required_node, terms_of
from .device_answers import DEMANDS_MAX, Answer, Answers
from .device_claims import (
    OF_CLASS,
    ClaimName,
    GroupClaims,
    counted_for_members,
    names_of_claims,
    replaces,
    users_of,
)
from .device_pools import NOWHERE, Held, Nodes, Pools, both, nano
from .device_search import ALL, DEVICES_MAX, Chosen, DeviceSearch, FailedError, RefusedError, allocated, requests_of
from .extended import Extended, backing, claim_key, extended_of
from .groups import Groups, group_of
from .storage import ClaimKey, drop_from, is_owned_by

RESERVED_MAX: Final = 256
"""The most pods that one claim can be reserved for, as the API server allows."""
SHARED: Final = 2
"""As many pods that wait and name a claim contend for it."""
UNLIMITED_MAX: Final = 256
"""Extended resources that device classes back, and names of classes in quotas, that nodes are said not to limit, at most."""

NONE: Final[Mapping[Any, Any]] = {}

DeviceObject = ResourceClaim | DeviceClass | ResourceSlice


class PodDevices(msgspec.Struct, frozen=True):
    """What the claims of a pod on devices mean.

    - `why`: why the pod waits, whatever the nodes; "": it does not.
    - `demands`: what claims that have devices demand of a node, for the tag `licorne/node-constraints`.
    - `claims`: all of them; each must have devices, and be reserved for the pod, before the pod is bound.
    - `open`: those without devices; `demand`: what they demand, for the tag `licorne/pod-terms`.
    """

    why: str = ""
    demands: tuple[dict[str, Any], ...] = ()
    claims: tuple[ClaimKey, ...] = ()
    open: tuple[ClaimKey, ...] = ()
    demand: str = ""


NO_CLAIMS: Final = PodDevices()


class _Demand(msgspec.Struct, frozen=True):
    """What a claim demands, as JSON; `name`: its name, if several pods that wait name it.

    `is_shared`: it is a claim of a pod group, so what one pod gets in a step serves the others in the same step.
    `resource`: the extended resource that nodes must have devices for that do not list it.
    """

    text: str
    name: str = ""
    is_shared: bool = False
    resource: str = ""


class _Demands(msgspec.Struct, frozen=True):
    """What the claims of a pod demand, and which nodes are looked at for it: where the search fails on one, the pod gets none.

    `told`: the status of the pod names a claim for its extended resources, which the API server lets nobody take back.
    """

    claims: tuple[_Demand, ...]
    where: Terms = None
    told: bool = False


class Decision(NamedTuple):
    """What was decided of a claim, for how many asks, and for which pods: their UIDs, none until the manager has the decision."""

    allocation: ClaimAllocation
    asks: int = 1
    pods: frozenset[str] = frozenset()


class DeviceStore:
    """The `Allocator` of a cluster with these `nodes`: ResourceClaims, DeviceClasses, ResourceSlices, and decisions not written yet."""

    def __init__(
        self, where: Callable[[Terms], Nodes], nodes: Mapping[str, Node] = NONE, groups: Groups = NONE
    ) -> None:
        self._nodes = nodes
        self._groups = groups
        self.of_groups = GroupClaims(groups)
        self.keeps_status = True
        """Whether the API server keeps `extendedResourceClaimStatus`; else only nodes that list a resource have it."""
        self.extended: dict[ClaimKey, Extended] = {}
        """By their claims, the pods without a node that request extended resources which device classes back."""
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.pools = Pools(where)
        self.held = Held()
        self.users: dict[ClaimKey, dict[str, Pod]] = {}
        """By their UIDs, the pods without a node that name a claim."""
        self.unlimited: dict[str, None] = {}
        """Names of resources that device classes back or count, and that pods have requested: nodes do not limit their amounts."""
        self.decided: dict[ClaimKey, Decision] = {}
        self.placing: dict[str, PodDevices] = {}
        """By the UID of a pod that has a node, what its claims meant when it got that."""
        self.releasing: dict[str, None] = {}
        """UIDs of pods whose reservations are being taken back."""
        self.unsure: dict[ClaimKey, str] = {}
        """Claims with an unanswered write that gives devices to a pod which gave up, or takes a group's: the UID of the pod."""
        self._where = where
        self._answers = Answers()
        self._of_pod: dict[str, dict[ClaimKey, None]] = {}  # claims that have devices, by the UIDs of their users
        self._ended: dict[str, None] = {}  # those that have ended
        self._lifted: Counter[str] = Counter()
        self._failing: dict[str, dict[str, None]] = {}  # by demand, nodes on which the search has failed

    # -- objects; both return the nodes on which claims may get other devices now -------------------------------

    def put(self, one: DeviceObject) -> Nodes:
        """Take in an object that is new or has changed."""
        if isinstance(one, ResourceSlice):
            return self._published(self.pools.put(one))
        if isinstance(one, DeviceClass):
            self.classes[one.metadata.name] = one
            return self.classes_changed()
        key, allocation = one.key, one.status.allocation
        self._used(key, one)
        self.claims[key] = one
        return NOWHERE if allocation is None and key in self.decided else self._hold(key, allocation)

    def drop(self, one: DeviceObject) -> Nodes:
        """Forget an object, and what was decided of it."""
        if isinstance(one, ResourceSlice):
            return self._published(self.pools.drop(one.metadata.name))
        if isinstance(one, DeviceClass):
            self.classes.pop(one.metadata.name, None)
            return self.classes_changed()
        key = one.key
        self._used(key, None)
        self.claims.pop(key, None)
        self.decided.pop(key, None)
        return self._hold(key, None)

    def classes_changed(self) -> Nodes:
        """Note that device classes are new, gone or have changed, or that none of them backs an extended resource any more."""
        backed = self.classes if self.keeps_status else {}
        names = [one for one in self.unlimited if one.removesuffix(OF_CLASS) in self.classes or backing(one, backed)]
        self.unlimited = dict.fromkeys(names)
        return self._published(None)

    def nodes_changed(self) -> None:
        """Note that nodes are new or gone, or have other labels."""
        self.pools.nodes_changed()
        self._published(None)

    def _used(self, key: ClaimKey, claim: ResourceClaim | None) -> None:
        """Note which pods may use a claim that is new, has changed, or, as None, is gone."""
        now = users_of(claim)
        for uid in now:
            self._of_pod.setdefault(uid, {})[key] = None
        for uid in users_of(self.claims.get(key)):
            if uid not in now and drop_from(self._of_pod, uid, key):
                self._ended.pop(uid, None)

    def pod_gone(self, uid: str) -> None:
        """Note that a pod has ended; its devices are free when they have been taken back."""
        if uid in self._of_pod:
            self._ended[uid] = None

    def _hold(self, key: ClaimKey, allocation: ClaimAllocation | None) -> Nodes:
        before = self.held.of(key)
        after = () if allocation is None else allocation.devices.results or ()
        if before == after:
            return NOWHERE
        self.held.put(key, after)
        nodes = NOWHERE
        for one in (*before, *after):
            nodes = both(nodes, self.pools.nodes_of((one.driver, one.pool)))
        self._answers.held(nodes, key, before, after)
        return nodes

    def _published(self, nodes: Nodes) -> Nodes:
        self._answers.published(nodes)
        return nodes

    # -- the allocator ------------------------------------------------------------------------------------------

    def refuses(self, demand: str, node: str) -> str:
        """Return why a node has no devices for what claims demand; "" if it has."""
        for one in _read(demand).claims:
            if one.name and self._has_devices(_key(one.name)) and not (one.is_shared and self._serves(one.name, node)):
                return f"{LACKS_DEVICES}: claim {one.name} is in the process of being allocated"
        answer = self._answer(demand, node)
        if answer.fails:
            if len(self._failing) >= DEMANDS_MAX:
                self._failing.clear()
            self._failing.setdefault(demand, {})[node] = None  # `fails` looks whether the pod allows it
        return answer.why

    def _serves(self, name: str, node: str) -> bool:
        """Return whether a claim has got devices in this step that can be used on a node."""
        decision = self.decided.get(_key(name))
        if decision is None or decision.pods:
            return False
        among = self._where(terms_of(decision.allocation.node_selector))
        return among is None or node in among

    def fails(self, demand: str) -> str:
        """Return why what claims demand cannot be decided on any node; "" if it can."""
        failing = self._failing.get(demand)
        if not failing:
            return ""
        among = self._where(_read(demand).where)
        for node in [*failing]:
            asked = node in self._nodes and (among is None or node in among)
            if asked and (answer := self._answer(demand, node)).fails:
                return f"{answer.why} (on node {node})"
            del failing[node]
        self._failing.pop(demand, None)
        return ""

    def _answer(self, demand: str, node: str) -> Answer:
        listed = self.listed(node)
        read = [one for one in _read(demand).claims if not (one.resource and nano(listed.get(one.resource, 0)) > 0)]
        read = [one for one in read if not (one.is_shared and self._has_devices(_key(one.name)))]
        if _read(demand).told and not any(one.resource for one in read):
            why = "the node lists the resources for which the status of the pod names a claim"
            return Answer(f"{LACKS_DEVICES}: {why}")
        without = next((one.resource for one in read if not one.text), "")
        if without:
            return Answer(f"{LACKS_DEVICES}: the node does not list {without}, and placeholders hold no devices")
        devices = tuple(one.text for one in read)
        answer = self._answers.of(node, devices)
        if answer is None:
            try:
                self._find(node, [_decoded(text) for text in devices], devices)
                answer = Answer("")
            except RefusedError as error:
                answer = Answer(str(error), isinstance(error, FailedError))
            self._answers.put(node, devices, answer)
        resources = ", ".join(one.resource for one in read if one.resource)
        if answer.why and resources:
            return answer._replace(why=f"{answer.why} (for {resources}, which the node does not list)")
        return answer

    def listed(self, node: str) -> Mapping[str, Any]:
        """Return the resources that a node lists, with their amounts."""
        known = self._nodes.get(node)
        return (known.status.allocatable if known is not None else None) or {}

    def _find(self, node: str, claims: list[DeviceClaim], demand: tuple[str, ...] = ()) -> list[list[Chosen]]:
        """Return the devices of a node that claims would get; count the steps for `demand`, unless it is empty. Raises RefusedError."""
        if why := self._answers.exhausted(demand):
            raise RefusedError(why)
        try:
            search = DeviceSearch(self.pools.seen_by(node), self.held)
            try:
                return search.find(claims, self.classes)
            finally:
                if demand:
                    self._answers.spend(demand, search.steps)
        except RefusedError:
            raise
        except Exception as error:  # the scheduler is in the middle of a decision, and goes on without the node
            raise RefusedError(f"{LACKS_DEVICES}: a fault of licorne: {describe(error)}") from error

    def _has_devices(self, key: ClaimKey) -> bool:
        claim = self.claims.get(key)
        return key in self.decided or (claim is not None and claim.status.allocation is not None)

    def take(self, names: tuple[str, ...], node: str) -> Nodes:
        """Give devices of a node to claims that have none; to all, or, if there are too few, to none."""
        for key in map(_key, names):
            if (known := self.decided.get(key)) is not None and not known.pods:
                self.decided[key] = known._replace(asks=known.asks + 1)
        keys = [key for key in map(_key, names) if not self._has_devices(key)]
        demands = [(key, one) for key in keys for one in self.demands(key, node)]
        if not demands:
            return NOWHERE
        try:
            found = self._find(node, [demand for _, demand in demands])
        except RefusedError:
            return NOWHERE
        by_claim: dict[ClaimKey, list[Chosen]] = {}
        for (key, _), chosen in zip(demands, found, strict=True):
            by_claim.setdefault(key, []).extend(chosen)
        nodes = NOWHERE
        for key, chosen in by_claim.items():
            allocation = self._allocation(key, chosen, node)
            self.decided[key] = Decision(allocation)
            nodes = both(nodes, self._hold(key, allocation))
        return nodes

    def names_class(self, key: ClaimKey, name: str) -> bool:
        """Return whether a claim requests devices of a class."""
        claim = self.claims.get(key)
        requests = () if claim is None else requests_of(claim.spec.devices)
        return any(one.device_class_name == name for _, alternatives in requests for one in alternatives)

    def demands(self, key: ClaimKey, node: str) -> list[DeviceClaim]:
        """Return what a claim demands of a node; nothing if there is no such claim, or the node lists the resources that it is for."""
        extended = self.extended_for(key)
        if extended is not None:
            return [*extended.parts(self.listed(node)).values()]
        return [self.claims[key].spec.devices] if key in self.claims else []

    def extended_for(self, key: ClaimKey, uid: str = "") -> Extended | None:
        """Return for which pod, or for the pod of this UID only, a claim was made or would be; None if somebody else has made it."""
        known, claim = self.extended.get(key), self.claims.get(key)
        if known is None or uid not in ("", known.pod.metadata.uid):
            return None
        return known if claim is None or known.is_for(claim) else None

    def give_back(self, names: tuple[str, ...], node: str) -> Nodes:
        """Undo `take`, but for claims whose devices the manager has taken over, or other asks have too."""
        del node
        nodes = NOWHERE
        for key in map(_key, names):
            known = self.decided.get(key)
            if known is None or known.pods:
                continue
            if known.asks > 1:
                self.decided[key] = known._replace(asks=known.asks - 1)
            else:
                nodes = both(nodes, self.release(key))
        return nodes

    def holds(self, key: str) -> bool:
        """Return whether a pod, by its UID, has devices, or may use some that others have too."""
        return key in self._of_pod

    def lift(self, key: str, change: int) -> Nodes:
        """Have a search pass over what a pod, by its UID, or all that have ended ("") hold (1), or count it again (-1) (`Allocator`)."""
        pods = [key] if key else [*self._ended]
        nodes = NOWHERE
        for uid in pods:
            self._lifted[uid] += change
            if self._lifted[uid] <= 0:
                del self._lifted[uid]
        for name in dict.fromkeys(name for uid in pods for name in self._of_pod.get(uid, ())):
            claim = self.claims[name]
            free = all(self._lifted[uid] > 0 for uid in users_of(claim))
            nodes = both(nodes, self._hold(name, None if free else claim.status.allocation))
        return nodes

    def release(self, key: ClaimKey) -> Nodes:
        """Forget what was decided of a claim: it is written, or will not be."""
        if self.decided.pop(key, None) is None:
            return NOWHERE
        claim = self.claims.get(key)
        return self._hold(key, None if claim is None else claim.status.allocation)

    def _allocation(self, key: ClaimKey, chosen: list[Chosen], node: str) -> ClaimAllocation:
        """Return what is written to the status of a claim."""
        claim = self.claims.get(key)
        uid = "/".join(key) if claim is None else claim.metadata.uid
        results = tuple(allocated(one, uid, number) for number, one in enumerate(chosen))
        config = tuple(self._config(() if claim is None else claim.spec.devices.config or (), chosen))
        return ClaimAllocation(AllocatedDevices(results, config or None), _selector(chosen, node))

    def _config(self, of_claim: tuple[dict[str, Any], ...], chosen: list[Chosen]) -> Iterator[dict[str, Any]]:
        """Yield what drivers are told: of the class of each request first, then of the claim."""
        by_class: dict[str, dict[str, None]] = {}
        for one in chosen:
            by_class.setdefault(one.wants.device_class_name, {})[one.request] = None
        names = {name for one in chosen for name in (one.request, one.request.partition("/")[0])}
        for name, requests in by_class.items():
            for config in self.classes[name].spec.config or ():
                yield {**config, "source": "FromClass", "requests": [*requests]}
        for config in of_claim:
            wanted = config.get("requests") or ()
            if not wanted or not names.isdisjoint(wanted):
                yield {**config, "source": "FromClaim"}

    # -- pods ---------------------------------------------------------------------------------------------------

    def read(self, pod: Pod) -> PodDevices:
        """Return what the claims of a pod mean; nothing for one that has a node, as the devices of its claims are known."""
        extended = self.extended.get(claim_key(pod)) if self.extended else None
        if pod.spec.node_name or not (pod.spec.resource_claims or extended):
            return NO_CLAIMS
        known = self.placing.get(pod.metadata.uid)
        if known is not None:
            return known
        names = names_of_claims(pod)
        why = self._why(pod, names)
        claimed = tuple(dict.fromkeys((pod.metadata.namespace, one.name) for one in names if one.name))
        if extended is not None and (known_claim := self.claims.get(claim_key(pod))) is not None:
            if not extended.is_for(known_claim):
                why = (
                    why
                    or f"resource claim {'/'.join(claim_key(pod))} was not made for the extended resources of the pod"
                )
            elif (
                known_claim.status.allocation is None
                or not extended.fits(known_claim)
                or known_claim.metadata.deletion_timestamp
                or pod.metadata.uid in self.releasing
            ):
                why = why or f"resource claim {'/'.join(claim_key(pod))} of its extended resources is being removed"
            claimed, extended = (*claimed, claim_key(pod)), None  # as of a process that was killed
        if why:
            return PodDevices(why)
        claims = [self.claims[key] for key in claimed]
        demands: list[dict[str, Any]] = []
        for one in claims:
            allocation = one.status.allocation
            terms = None if allocation is None else terms_of(allocation.node_selector)
            if terms is not None:
                demands.append({"reason": CLAIM_ELSEWHERE, "terms": terms})
        without = [one for one in claims if one.status.allocation is None]
        shared = [len(self.users.get(one.key, ())) >= SHARED for one in without]
        demand = [
            _Demand(_text(one), "/".join(one.key) * is_shared, is_shared and self.of_groups.is_shared(pod, one.key))
            for one, is_shared in zip(without, shared, strict=True)
        ]
        made = () if extended is None or replaces(pod) else (claim_key(pod),)
        for resource, part in (extended.parts(None) if extended is not None else {}).items():
            demand.append(_Demand(msgspec.json.encode(part).decode() if made else "", resource=resource))
        where = () if required_node(pod) else required_labels(pod)  # of a DaemonSet only its node is looked at
        told = extended is not None and pod.status.extended_resource_claim_status is not None
        text = msgspec.json.encode(_Demands(tuple(demand), where, told)).decode() if demand else ""
        return PodDevices("", tuple(demands), (*claimed, *made), (*(one.key for one in without), *made), text)

    def note_extended(self, pod: Pod) -> ClaimKey | None:
        """Note whether a pod without a node requests extended resources that device classes back; return the claim for them."""
        key = claim_key(pod) if self.classes or self.extended else None
        if key is None or pod.metadata.uid in self.placing:  # what it has been given is for what was known then
            return key if key in self.extended else None
        found = extended_of(pod, self.classes) if self.keeps_status else None
        if found is None:
            found, claim = Extended(pod, {}), self.claims.get(key)
            if claim is None or not found.is_for(claim):
                self.extended.pop(key, None)
                return None  # else the claim is to be removed, as a class has changed
        self.extended[key] = found
        self._note_unlimited(found.classes)
        return key

    def _note_unlimited(self, names: Iterable[str]) -> None:
        for name in names:
            if len(self.unlimited) < UNLIMITED_MAX:
                self.unlimited[name] = None

    def amounts(self, pod: Pod) -> dict[str, int]:
        """Return how many devices of each class a pod counts as in quotas, by the names that ResourceQuota has for them.

        A member of a gang counts none before it has a node, as it may take no more than its placeholder does, which has counted
        those of the members that were known when it was made.
        """
        waits = not pod.spec.node_name and pod.metadata.uid not in self.placing
        found, claimed = Counter(counted_for_members(pod)), self.claimed(pod, existing=waits)
        self._note_unlimited(one for one in (*found, *claimed) if one.removesuffix(OF_CLASS) in self.classes)
        if not (waits and replaces(pod)):
            found.update(claimed)
        return found

    def claimed(self, pod: Pod, *, existing: bool = True) -> dict[str, int]:
        """Return how many devices of each class the claims of a pod ask for; `existing`: of classes that are there, as it gets no others.

        `All` counts as the most that a claim can have, of alternatives the largest number of each class. Of pods that share a claim
        the one that was reserved first counts it, and as long as there is none, each; of a pod group the first that has a node.
        """
        found: Counter[str] = Counter()
        for name in dict.fromkeys(names_of_claims(pod)):
            claim = self.claims.get((pod.metadata.namespace, name.name or ""))
            if claim is None or not self.of_groups.is_counted_for(pod, claim, self.users.get(claim.key, {})):
                continue
            for _, alternatives in requests_of(claim.spec.devices):
                most: dict[str, int] = {}
                for one in alternatives:
                    if existing and one.device_class_name not in self.classes:
                        continue
                    of_class = one.device_class_name + OF_CLASS
                    number = DEVICES_MAX if one.allocation_mode == ALL else max(one.count, 1)
                    most[of_class] = max(number, most.get(of_class, 0))
                found.update(most)
        return found

    def _why(self, pod: Pod, names: list[ClaimName]) -> str:
        meta, group = pod.metadata, group_of(pod, self._groups)
        for one in names:
            if one.name is None:
                return f'pod "{meta.namespace}/{meta.name}": ResourceClaim not created yet'
            claim = self.claims.get((meta.namespace, one.name))
            if not one.name:
                continue
            if claim is None:
                return f'could not find ResourceClaim "{meta.namespace}/{one.name}"'
            if claim.metadata.deletion_timestamp:
                return f'resourceclaim "{one.name}" is being deleted'
            if one.is_made and not is_owned_by(claim, pod, group):
                owner = f"neither Pod nor PodGroup {group.metadata.name} is the" if group is not None else "Pod is not"
                return (
                    f"ResourceClaim {meta.namespace}/{one.name} was not created for Pod {meta.namespace}/{meta.name} "
                    f"({owner} owner)"
                )
        claims = [self.claims[meta.namespace, one.name] for one in names if one.name]
        return next((why for one in claims if (why := self._why_not(one, pod))), "")

    def _why_not(self, claim: ResourceClaim, pod: Pod) -> str:
        """Return why a pod waits for a claim that there is."""
        name = "/".join(claim.key)
        reserved = claim.status.reserved_for or ()
        if claim.status.allocation is None:
            if claim.key in self.decided:
                return f"resource claim {name} is in the process of being allocated"
            for request in claim.spec.devices.requests or ():
                for one in request.first_available or (() if request.exactly is None else (request.exactly,)):
                    if one.device_class_name not in self.classes:
                        return f"request {request.name}: device class {one.device_class_name} does not exist"
        elif claim.key in self.unsure:
            return f"resource claim {name} is being taken back from its pod group"
        elif any(one.uid == self.of_groups.consumer(pod, claim.key).uid for one in reserved):
            return (
                f"resource claim {name} is being taken back from the pod" if pod.metadata.uid in self.releasing else ""
            )
        elif len(reserved) >= RESERVED_MAX:
            return f"resource claim {name} is in use by {len(reserved)} pods, and at most {RESERVED_MAX} can use it"
        return ""


def _text(claim: ResourceClaim) -> str:
    return msgspec.json.encode(msgspec.structs.replace(claim.spec.devices, config=None)).decode()


@lru_cache(maxsize=DEMANDS_MAX)
def _read(demand: str) -> _Demands:
    return msgspec.json.decode(demand, type=_Demands)


@lru_cache(maxsize=DEMANDS_MAX)
def _decoded(text: str) -> DeviceClaim:
    return msgspec.json.decode(text, type=DeviceClaim)


def _key(name: str) -> ClaimKey:
    namespace, _, rest = name.partition("/")
    return namespace, rest


def _selector(chosen: list[Chosen], node: str) -> NodeSelector | None:
    """Return the nodes on which the devices of a claim can be used; None: all."""
    conditions: dict[str, LabelSelectorRequirement] = {}
    fields: dict[str, LabelSelectorRequirement] = {}
    for one in chosen:
        spec, device = one.offered.slice.spec, one.offered.device
        where = device if spec.per_device_node_selection else spec
        if where.node_name:
            name = LabelSelectorRequirement(NODE_NAME, "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(name,)),))
        selector = where.node_selector
        for term in () if selector is None else selector.node_selector_terms or ():
            conditions |= {repr(each): each for each in term.match_expressions or ()}
            fields |= {repr(each): each for each in term.match_fields or ()}
    if not (conditions or fields):
        return None
    return NodeSelector((NodeSelectorTerm(tuple(conditions.values()) or None, tuple(fields.values()) or None),))
