"""What the volumes of a pod demand: of its node, of other pods, and of itself, which may have to wait.

As kube-scheduler's VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone (docs/spec/kube-scheduler.md, section 6):
what can be said of labels of nodes becomes conditions, what depends on other pods names that the scheduler counts, and what no
node can help with a sentence, in kube-scheduler's words. docs/understand/volumes.md says why it is done this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from licorne.core.nodes.constraints import DRIVER, FIELD_NAME, VOLUME_REASONS
from licorne.kube.objects.meta import Object
from licorne.kube.objects.pods import Pod
from licorne.kube.objects.volumes import SINGLE_POD, WAIT_FOR_FIRST_CONSUMER, Claim, CSISource, PersistentVolume
from licorne.si.constants import FOREIGN_DEFAULT, TAG_FOREIGN, TAG_POD_TERMS
from licorne.si.messages import Allocation

from .constraints import Terms
from .in_tree import BETA, DELIMITER, GA, csi_source, driver_of, usable_on
from .matching import OfferedVolumes, found_on, made_in, room_for
from .storage import ClaimKey, Storage, is_owned_by, size_of

NO_DRIVER, AFFINITY, NO_VOLUME, NO_STORAGE, ZONE, _ = VOLUME_REASONS
ZONES: Final = (f"{GA}zone", f"{GA}region", f"{BETA}zone", f"{BETA}region")
CLASS: Final = "class "
NAMES_MAX: Final = 1500
"""The most nodes of which a demand gives the names: one of all nodes must not be longer than a tag may be."""


class Mark(Object, frozen=True):  # type: ignore[misc]  # what holds for dataclasses does not for structs
    """A name that a pod holds on its node, or, without a topology key, in the whole cluster."""

    topology_key: str
    name: str


class PodVolumes(msgspec.Struct, frozen=True):
    """What the volumes of a pod mean.

    - `why`: why the pod waits, whatever the nodes; "": it does not.
    - `demands`: what each demands of a node, for the tag `licorne/node-constraints`.
    - `holds`, `unless`, `attached`: for the tag `licorne/pod-terms`.
    - `waiting`: the claims that are bound when the pod has a node.
    - `turns`: names of what one pod at a time is placed with, since a decision changes what is left for the others.
    """

    why: str = ""
    demands: tuple[dict[str, Any], ...] = ()
    holds: tuple[Mark, ...] = ()
    unless: tuple[Mark, ...] = ()
    attached: dict[str, tuple[str, ...]] = {}
    waiting: tuple[ClaimKey, ...] = ()
    turns: tuple[str, ...] = ()

    @property
    def names_nodes(self) -> bool:
        """Whether it may demand nodes by their names, which follow from those that there are."""
        return any(turn.startswith(CLASS) for turn in self.turns)


NO_VOLUMES: Final = PodVolumes()


class Used(NamedTuple):
    """A claim that a pod names; `ephemeral`: it is made with the pod."""

    name: str
    ephemeral: bool


def claims_of(pod: Pod) -> list[Used]:
    """Return the claims that a pod names."""
    found = []
    for one in pod.spec.volumes or ():
        if one.persistent_volume_claim is not None:
            found.append(Used(str(one.persistent_volume_claim.get("claimName", "")), ephemeral=False))
        elif one.ephemeral is not None:
            found.append(Used(f"{pod.metadata.name}-{one.name}", ephemeral=True))
    return found


def read_volumes(pod: Pod, storage: Storage) -> PodVolumes:
    """Return what the volumes of a pod mean; of one that has a node only what they mean for others."""
    if not pod.spec.volumes:
        return NO_VOLUMES
    used = claims_of(pod)
    disks, apart = _disks(pod)
    named = [source for one in pod.spec.volumes if (source := csi_source(one)) is not None]
    if not (used or disks or named):
        return NO_VOLUMES
    namespace = pod.metadata.namespace
    known = {one: claim for one in used if (claim := _usable(pod, one, storage)) is not None}
    single = [
        one.name for one, claim in known.items() if not one.ephemeral and SINGLE_POD in (claim.spec.access_modes or ())
    ]
    marks = tuple(Mark("", f"claim {namespace}/{name}") for name in dict.fromkeys(single))
    attached = _attached(list(known.values()), named, storage)
    made = PodVolumes(holds=(*marks, *disks), unless=(*marks, *apart), attached=attached)
    if pod.spec.node_name:
        return made
    if why := _why(pod, used, storage):
        return msgspec.structs.replace(made, why=why)
    bound = [claim for claim in known.values() if claim.is_bound]
    waiting = [claim for claim in known.values() if not claim.is_bound]
    contested = any(len(OfferedVolumes(claim, storage)) for claim in waiting if storage.selected_node(claim) is None)
    demands = [_demand(NO_DRIVER, _installed(driver)) for driver in attached if _must_be_there(driver, storage)]
    for claim in bound:
        volume = storage.volumes[claim.spec.volume_name]
        demands.append(_demand(AFFINITY, usable_on(volume)))
    demands += _of_waiting(waiting, storage, contested=contested)
    for one, claim in known.items():
        if claim.is_bound and not one.ephemeral:
            demands += [_demand(ZONE, terms) for terms in _zones(storage.volumes[claim.spec.volume_name])]
    return msgspec.structs.replace(
        made,
        demands=tuple(one for one in demands if one is not None),
        waiting=tuple(claim.key for claim in waiting),
        turns=tuple(dict.fromkeys(_turns(waiting, contested=contested))),
    )


def bindings_on(pod: Pod, storage: Storage, node: str) -> dict[ClaimKey, str]:
    """Return what each claim of a pod that waits gets on a node: the name of a volume, or "" if one is made for it."""
    waiting = [storage.claims[key] for key in read_volumes(pod, storage).waiting]
    open_ = [claim for claim in waiting if storage.selected_node(claim) is None]
    found = found_on(open_, storage, [node])
    return {claim.key: found.get(claim.key, {}).get(node, "") for claim in waiting}


# -- why a pod waits ---------------------------------------------------------------------------------------------


def _usable(pod: Pod, used: Used, storage: Storage) -> Claim | None:
    claim = storage.claims.get((pod.metadata.namespace, used.name))
    return None if claim is None or (used.ephemeral and not is_owned_by(claim, pod)) else claim


def _why(pod: Pod, used: Sequence[Used], storage: Storage) -> str:
    """Return why the pod waits whatever the nodes, as kube-scheduler has its plugins: the first reason of the first of them."""
    namespace = pod.metadata.namespace
    claims = [(one, storage.claims.get((namespace, one.name))) for one in used]
    for one, claim in claims:
        if claim is None and not one.ephemeral:
            return f'persistentvolumeclaim "{one.name}" not found'
    for one, claim in claims:
        if why := _why_not_bound(pod, one, claim):
            return why
    immediate = False
    for _, claim in claims:
        assert claim is not None, "it has been looked at"
        if not claim.is_bound:
            known = storage.classes.get(claim.storage_class)
            if known is not None and known.volume_binding_mode is None:
                return f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
            delayed = known is not None and known.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
            immediate = immediate or not delayed or bool(claim.spec.volume_name)
    if immediate:
        return "pod has unbound immediate PersistentVolumeClaims"
    return _why_not_used([(one, claim) for one, claim in claims if claim is not None], storage)


def _why_not_bound(pod: Pod, one: Used, claim: Claim | None) -> str:
    if claim is None:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{one.name}"'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{one.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp:
        return f'persistentvolumeclaim "{one.name}" is being deleted'
    if one.ephemeral and not is_owned_by(claim, pod):
        meta = pod.metadata
        return (
            f"PVC {meta.namespace}/{one.name} was not created for pod {meta.namespace}/{meta.name} (pod is not owner)"
        )
    return ""


def _why_not_used(claims: Sequence[tuple[Used, Claim]], storage: Storage) -> str:
    """Return why a claim that is bound, or waits for its node, cannot be used."""
    bound = [(one, claim) for one, claim in claims if claim.is_bound]
    for one, claim in sorted(bound, key=lambda each: each[0].ephemeral):  # VolumeZone looks at no ephemeral one
        name = claim.spec.volume_name
        if name not in storage.volumes:
            if one.ephemeral:
                return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            return f'persistentvolume "{name}" not found'
    return ""


# -- what volumes demand -----------------------------------------------------------------------------------------


def _demand(reason: str, terms: Terms) -> dict[str, Any] | None:
    return None if terms is None else {"reason": reason, "terms": terms}


def _installed(driver: str) -> Terms:
    return (({"key": DRIVER + driver, "operator": "Exists"},),)


def _must_be_there(driver: str, storage: Storage) -> bool:
    known = storage.drivers.get(driver)
    return known is not None and bool(known.spec.prevent_pod_scheduling_if_missing)


def _of_waiting(waiting: Sequence[Claim], storage: Storage, *, contested: bool) -> Iterator[dict[str, Any] | None]:
    """Yield what claims that are not bound demand of a node: a volume that exists and fits, or one that can be made there."""
    for claim in waiting:
        selected = storage.selected_node(claim)
        if selected is not None:
            yield _demand(NO_VOLUME, (_named([selected]),))
    open_ = sorted((claim for claim in waiting if storage.selected_node(claim) is None), key=size_of)
    in_order = [*(claim for claim in waiting if storage.selected_node(claim) is not None), *open_]
    if not contested:
        for claim in in_order:
            yield _demand(NO_VOLUME, made_in(claim, storage))
            yield _demand(NO_STORAGE, room_for(claim, storage))
        return
    nodes = frozenset(storage.nodes)
    found = found_on(open_, storage, nodes)
    left, unmade, full = nodes, frozenset[str](), frozenset[str]()
    for claim in in_order:
        made, room = storage.where(made_in(claim, storage)), storage.where(room_for(claim, storage))
        asked = left - found.get(claim.key, {}).keys()
        none = frozenset() if made is None else asked - made
        lacking = frozenset() if room is None else asked - none - room
        left, unmade, full = left - none - lacking, unmade | none, full | lacking
    yield _demand(NO_VOLUME, _among(nodes - unmade, nodes))
    yield _demand(NO_STORAGE, _among(nodes - full, nodes))


def _among(names: frozenset[str], nodes: frozenset[str]) -> Terms:
    if names == nodes:
        return None
    if 2 * len(names) > len(nodes) and len(nodes) - len(names) <= NAMES_MAX:
        return (({"key": FIELD_NAME, "operator": "NotIn", "values": sorted(nodes - names)},),)
    return (_named(sorted(names)[:NAMES_MAX]),) if names else ()


def _named(names: Sequence[str]) -> tuple[dict[str, Any], ...]:
    return ({"key": FIELD_NAME, "operator": "In", "values": list(names)},)


def _turns(waiting: Sequence[Claim], *, contested: bool) -> Iterator[str]:
    for claim in waiting:
        yield f"claim {claim.metadata.namespace}/{claim.metadata.name}"
        if contested:
            yield CLASS + claim.storage_class


def _zones(volume: PersistentVolume) -> Iterator[Terms]:
    """Yield what the labels of a volume demand: its zone and region, unless a node has no such label."""
    labels = volume.metadata.labels or {}
    for key in ZONES:
        values = [value.strip() for value in labels.get(key, "").split(DELIMITER)]
        if key not in labels or not all(values):
            continue
        has = {"key": key, "operator": "In", "values": values}
        terms: list[tuple[dict[str, Any], ...]] = [
            tuple({"key": one, "operator": "DoesNotExist"} for one in ZONES),
            (has,),
        ]
        if key.startswith(BETA):
            newer = {"key": key.replace(BETA, GA), "operator": "In", "values": values}
            terms.append(({"key": key, "operator": "DoesNotExist"}, newer))
        yield tuple(terms)


# -- what volumes mean for other pods ----------------------------------------------------------------------------


def _attached(claims: Sequence[Claim], named: Sequence[CSISource], storage: Storage) -> dict[str, tuple[str, ...]]:
    """Return the handles of volumes by driver: of a claim without one, its own name. `named`: in the pod itself."""
    found: dict[str, list[str]] = {}
    for source in named:
        found.setdefault(source.driver, []).append(source.volume_handle)
    for claim in claims:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is not None:
            if (translated := csi_source(volume.spec, volume.metadata.labels)) is not None:
                found.setdefault(translated.driver, []).append(translated.volume_handle)
            continue
        known = storage.classes.get(claim.storage_class)
        if known is not None:
            name = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
            found.setdefault(driver_of(known.provisioner), []).append(name)
    return {driver: tuple(sorted({*names})) for driver, names in sorted(found.items()) if driver}


def attachment_allocation(key: str, node: str, source: CSISource) -> Allocation:
    """Return a volume that is attached to a node as an allocation of another scheduler that takes nothing else."""
    terms = msgspec.json.encode({"attached": {source.driver: [source.volume_handle]}}).decode()
    return Allocation(key=key, tags={TAG_FOREIGN: FOREIGN_DEFAULT, TAG_POD_TERMS: terms}, resource={}, node_id=node)


def _disks(pod: Pod) -> tuple[list[Mark], list[Mark]]:
    """Return what marks a pod holds on its node for disks that are named in it, and where it cannot be.

    Two pods on a node share a disk if both only read it; they never share one of Elastic Block Store.
    """
    holds, unless = [], []
    for one in pod.spec.volumes or ():
        names = []
        source = one.iscsi or one.rbd or one.gce_persistent_disk or one.aws_elastic_block_store or {}
        if one.iscsi is not None:
            names = [f"iscsi {source.get('iqn')}"]
        elif one.gce_persistent_disk is not None:
            names = [f"gce-pd {source.get('pdName')}"]
        elif one.aws_elastic_block_store is not None:
            names = [f"aws-ebs {source.get('volumeID')}"]
        elif one.rbd is not None:
            what = f"{source.get('pool', 'rbd')} {source.get('image')}"
            names = [f"rbd {monitor} {what}" for monitor in source.get("monitors") or ()]
        writes = not source.get("readOnly") or one.aws_elastic_block_store is not None
        for name in dict.fromkeys(names):
            holds += [Mark(FIELD_NAME, name), *([Mark(FIELD_NAME, f"{name} written")] if writes else ())]
            unless.append(Mark(FIELD_NAME, name if writes else f"{name} written"))
    return list(dict.fromkeys(holds)), list(dict.fromkeys(unless))
