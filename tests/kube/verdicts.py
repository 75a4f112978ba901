"""Cases of kube-scheduler's filter plugins and what they said, and what licorne says of the same.

A case is a small cluster and a pod that waits, or a sequence of steps (oracle/README.md). Two things are compared with it, node
by node: the naive model of all plugins (`kube.plugins`), by which other tests judge, and what production decides by. There
the objects are shown to a manager, and the scheduler in process is asked why no node takes the ask of the pod. It gives one
reason: of those that no end of a pod removes the first in kube-scheduler's order, else the first of the others.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from licorne.core.inspection.explain import TOO_SMALL, survey
from licorne.core.nodes.constraints import CORDON
from licorne.core.nodes.preferences import CANDIDATES_MAX, WEIGHTS, ranked, scores
from licorne.core.partition import Partition
from licorne.core.queues.ask import Ask
from licorne.kube.api.kinds import OF_DEVICES, WORKLOADS
from licorne.kube.api.kinds import OF_VOLUMES as KINDS_OF_VOLUMES
from licorne.kube.manager.stages import Stage
from licorne.kube.manager.turns import Turns
from licorne.kube.objects import Namespace, Node, Pod
from licorne.kube.objects.meta import LabelSelector
from licorne.kube.objects.pods import TopologySpreadConstraint
from licorne.kube.pods.constraints import host_ports
from licorne.kube.pods.spreading import OF_SYSTEM, Spreading, read_constraints
from licorne.kube.pods.volumes import bindings_on, claims_of

from . import domains
from .places import Places
from .plugins import Code, Refusal, refused_at_once, verdict
from .snapshot import Snapshot

WORKLOADS_BY_PLURAL: Final = {kind.plural: kind for kind in WORKLOADS}
DATA: Final = Path(__file__).parent.parent / "data"
NODE: Final = (
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
)
AMONG_PODS: Final = ("PodTopologySpread", "InterPodAffinity")
DECIDED: Final = (*NODE, *AMONG_PODS, "NodeDeclaredFeatures")
"""The plugins that the naive model has, in kube-scheduler's order."""
OF_VOLUMES: Final = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
JUDGED: Final = (*NODE, *OF_VOLUMES, *AMONG_PODS, "DynamicResources", "NodeDeclaredFeatures")
"""The plugins whose verdicts production must give, in kube-scheduler's order."""
FOREVER: Final = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "VolumeBinding",
    "VolumeZone",
    "NodeDeclaredFeatures",
)
"""Plugins that refuse by what only a change of the node, the pod or its volumes removes."""
NOT_INSTALLED: Final = "CSI driver is not installed on the node"
ELSEWHERE_CLAIMED: Final = "resourceclaim not available on the node"
ELSEWHERE: Final = "another node is required"
"""Stands for NodeAffinity where a pod of a DaemonSet requires one node: the scheduler looks at no other."""
OF_NODES: Final = {
    "nodeSelector": "NodeAffinity",
    "nodeAffinity": "NodeAffinity",
    "feature": "NodeDeclaredFeatures",
    "hostPort": "NodePorts",
    "no driver": "NodeVolumeLimits",
    TOO_SMALL: "NodeResourcesFit",
    "lack of": "NodeResourcesFit",
}
AMONG: Final = {
    "topology spread: no label": ("PodTopologySpread", domains.NO_KEY),
    "topology spread": ("PodTopologySpread", domains.SPREAD),
    "pod affinity": ("InterPodAffinity", domains.AFFINITY),
    "pod anti-affinity": ("InterPodAffinity", domains.ANTI_AFFINITY),
    "anti-affinity of running pods": ("InterPodAffinity", domains.EXISTING),
    "claim in use": (
        "VolumeRestrictions",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    ),
    "disk in use": ("VolumeRestrictions", "node(s) had no available disk"),
    "volume limit": ("NodeVolumeLimits", "node(s) exceed max volume count"),
    "volume affinity": ("VolumeBinding", "node(s) didn't match PersistentVolume's node affinity"),
    "no volume": ("VolumeBinding", "node(s) didn't find available persistent volumes to bind"),
    "no storage": ("VolumeBinding", "node(s) did not have enough free storage"),
    "volume zone": ("VolumeZone", "node(s) had no available volume zone"),
    "claim elsewhere": ("DynamicResources", ELSEWHERE_CLAIMED),
    "no devices": ("DynamicResources", "cannot allocate all claims"),
    "CEL runtime error": ("DynamicResources", ""),
    "all devices are wanted": ("DynamicResources", ""),
}
"""How reasons of the scheduler begin that are about other pods and volumes, and what kube-scheduler says."""
FORGOTTEN: Final = (
    "a claim changes before the node is written for which its volume is made: kube-scheduler forgets that node"
)
VOLUME_KINDS: Final = dict(
    zip(
        ("pvcs", "pvs", "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"),
        KINDS_OF_VOLUMES,
        strict=True,
    )
)
"""How a case calls the kinds that say what volumes demand."""
GATES: Final = {"DRAListTypeAttributes"}
"""Feature gates of kube-scheduler that change nothing for licorne, which does what they enable."""
DEVICE_KINDS: Final = {kind.plural: kind for kind in OF_DEVICES}


def recorded(name: str = "verdicts") -> Iterator[dict[str, Any]]:
    """Yield the recorded cases of a file, each with its verdict."""
    with lzma.open(DATA / f"kube-{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def not_compared(case: dict[str, Any]) -> str:
    """Return why a case is not compared, "" if it is."""
    config = case.get("config", {})
    followed = {"spreadDefaults", *(["gates"] if config.get("gates", {}).keys() <= GATES else [])}
    others = config.keys() - followed
    return f"licorne has no setting {min(others)}" if others else ""


# -- the naive model ---------------------------------------------------------------------------------------------


def differences(case: dict[str, Any]) -> list[str]:
    """Return where the naive model disagrees with the verdict of a case of one pod, each as a line; nothing if it agrees."""
    if not_compared(case):
        return []
    pod = msgspec.convert(case["pending"], Pod, strict=False)
    said = case["verdict"]
    found = []
    early = [(plugin, code, reason) for plugin, code, reason in said["prefilter"].get("all", []) if plugin in DECIDED]
    at_once = refused_at_once(pod)
    if early != ([] if at_once is None else [tuple(map(str, at_once))]):
        found.append(f"{case['id']}: at once {at_once}, recorded {early}")
    cluster = Snapshot.of(
        msgspec.convert(case["nodes"], list[Node]),
        msgspec.convert(case["pods"], list[Pod]),
        msgspec.convert(case.get("namespaces", []), list[Namespace]),
    )
    cluster.spread = default_spread(case, pod)
    offered = by_devices(case)
    for name, rows in said["nodes"].items():
        theirs = [(plugin, code, reason) for plugin, code, reason in rows if plugin in DECIDED]
        all_ours = [tuple(map(str, one)) for one in verdict(pod, cluster.nodes[name], cluster)]
        ours = [one for one in all_ours if one[2] not in offered]
        if len(ours) < len(all_ours):  # what devices offer counts for the code of the others
            ours, theirs = [(one[0], "", one[2]) for one in ours], [(plugin, "", why) for plugin, _, why in theirs]
        if theirs != ours:
            found.append(f"{case['id']}: node {name}: the model {ours}, recorded {theirs}")
    return found


def by_devices(case: dict[str, Any]) -> set[str]:
    """Return the reasons that do not count: a node lacks what devices offer."""
    classes = case.get("deviceclasses", [])
    named = {one["spec"]["extendedResourceName"] for one in classes if "extendedResourceName" in one["spec"]}
    named |= {f"deviceclass.resource.kubernetes.io/{one['metadata']['name']}" for one in classes}
    asked = json.dumps([case.get("pending"), case.get("steps")])
    return {f"Insufficient {name}" for name in named if f'"{name}":' in asked}


def default_spread(case: dict[str, Any], pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    """Return the default constraints of a case, with the selector of the pod's workload; none if it has no workload."""
    given = case.get("config", {}).get("spreadDefaults", [])
    home, labels = pod.metadata.namespace, pod.metadata.labels or {}
    owned = [one for one in pod.metadata.owner_references or () if one.controller]
    pairs: dict[str, str] = {}
    conditions: list[Any] = []
    for one in case.get("services", []):
        chosen = one["spec"].get("selector")
        if one["metadata"]["namespace"] == home and chosen and chosen.items() <= labels.items():
            pairs |= chosen
    for owner in owned:
        for one in case.get(f"{owner.kind.lower()}s", []):
            if (one["metadata"]["namespace"], one["metadata"]["name"]) == (home, owner.name):
                chosen = one["spec"].get("selector") or {}
                plain = owner.kind == "ReplicationController"
                pairs |= chosen if plain else chosen.get("matchLabels", {})
                conditions += [] if plain else chosen.get("matchExpressions", [])
    if not (pairs or conditions):
        return ()
    selector = msgspec.convert({"matchLabels": pairs, "matchExpressions": conditions}, LabelSelector)
    made = msgspec.convert(given, tuple[TopologySpreadConstraint, ...])
    return tuple(msgspec.structs.replace(one, label_selector=selector) for one in made)


# -- production --------------------------------------------------------------------------------------------------


class NoTurns(Turns):
    """Has all pods asked for at once, so that the scheduler can be asked about each."""

    def take(self, uid: str, names: tuple[str, ...], now_s: float) -> bool:
        return True


class Production(Places):
    """The cluster of a case, shown to a manager and the scheduler. They decide nothing unless `run` is called."""

    def __init__(self, case: dict[str, Any], *, in_turn: bool = True) -> None:
        super().__init__({"reservation.enabled": "false", "scheduler.preferences": "first"})
        lifecycle = self.manager.lifecycle
        if not in_turn:
            lifecycle.volumes.turns = NoTurns()
        self.made_namespaces: set[str] = set()  # those of pods that wait, which no object of the case is
        given = case.get("config", {}).get("spreadDefaults")
        spreading = Spreading(OF_SYSTEM if given is None else read_constraints(json.dumps(given)))
        lifecycle.context.spreading = spreading
        kinds = ("namespaces", "nodes", *VOLUME_KINDS, *DEVICE_KINDS, "pods", *WORKLOADS_BY_PLURAL)
        self.put({kind: case.get(kind, []) for kind in kinds})

    def put(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        """Show objects that are new or have changed."""
        for one in objects.get("namespaces", []):
            self.namespaces[one["metadata"]["name"]] = one
            self.manager.namespace_seen(msgspec.convert(one, Namespace))
        for one in objects.get("nodes", []):
            self.nodes[one["metadata"]["name"]] = one
            self.manager.node_seen(msgspec.convert(one, Node))
        for plural, kind in VOLUME_KINDS.items():
            for one in objects.get(plural, []):
                for owner in one["metadata"].get("ownerReferences", ()):
                    owner["uid"] = owner["uid"].removeprefix("uid-")  # as pods have here
                self.manager.named_seen(msgspec.convert(one, kind.type))
        for plural, kind in DEVICE_KINDS.items():
            for one in objects.get(plural, []):
                for user in (
                    *one["metadata"].get("ownerReferences", ()),
                    *one.get("status", {}).get("reservedFor", ()),
                ):
                    user["uid"] = user["uid"].removeprefix("uid-")
                self.manager.named_seen(msgspec.convert(one, kind.type))
        for plural, kind in WORKLOADS_BY_PLURAL.items():
            for one in objects.get(plural, []):
                self.manager.workload_seen(kind.name, msgspec.convert(one, kind.type))
        for one in objects.get("pods", []):
            name = one["metadata"]["uid"] = one["metadata"]["name"]
            known = self.pods.get(name, one)["spec"]
            if any(known.get(part) != one["spec"].get(part) for part in ("affinity", "volumes")):
                self.no_pod(name)  # another one of the same name: what a pod demands never changes
            self.pods[name] = one
            self.show(name)

    def ask(self, pod: dict[str, Any]) -> str:
        """Show a pod that licorne schedules, and return its name. Its namespace is there, as it always is for such a pod."""
        home = pod["metadata"]["namespace"]
        if home not in self.namespaces:
            self.made_namespaces.add(home)
            self.put({"namespaces": [{"metadata": {"name": home}}]})
        pod["spec"]["schedulerName"] = "yunikorn"
        self.put({"pods": [pod]})
        return str(pod["metadata"]["name"])

    def step(self, step: dict[str, Any]) -> str:
        """Do what a step of a sequence says, but for placing a pod, and return the name of the pod that it asks about, or ""."""
        if "ask" in step:
            return self.ask(step["ask"])
        self.put(step.get("put", {}))
        kind, _, name = step.get("remove", "").partition("/")
        name = name.rpartition("/")[2]
        if kind == "Pod" and name in self.pods:
            self.no_pod(name)
        elif kind == "Node":
            self.no_node(name)
        elif known := [one for one in (*KINDS_OF_VOLUMES, *OF_DEVICES) if one.name == kind]:
            place = step["remove"].split("/")[1:]
            metadata = {"name": place[-1], "namespace": place[0] if len(place) > 1 else ""}
            gone = self.manager.named_gone
            gone(msgspec.convert({"metadata": metadata}, known[0].type))
        elif kind == "Namespace":
            self.manager.namespace_gone(msgspec.convert(self.namespaces.pop(name), Namespace))
        if "forget" in step:
            name = step["forget"].rpartition("/")[2]
            again = self.pods[name]
            for used in claims_of(msgspec.convert(again, Pod)):
                claim = (again["metadata"]["namespace"], used.name)
                self.manager.lifecycle.volumes.storage.release(claim)
                self.manager.lifecycle.volumes.reread({claim: "any"})
            self._end_decisions(name, written=False)
            self.no_pod(name)
            again["spec"].pop("nodeName", None)
            self.put({"pods": [again]})
        if "bind" in step:
            self._end_decisions(step["bind"].rpartition("/")[2], written=True)
        return str(step.get("again", "")).rpartition("/")[2]

    def _end_decisions(self, name: str, *, written: bool) -> None:
        """Have what was decided of the claims of a pod on devices written, or forgotten."""
        devices = self.manager.lifecycle.devices
        for key, decision in [*devices.store.decided.items()]:
            if name in decision.pods:
                claim = devices.store.claims[key]
                if written:
                    status = msgspec.structs.replace(claim.status, allocation=decision.allocation)
                    devices.seen(msgspec.structs.replace(claim, status=status))
                devices.renew(devices.store.release(key), key)
                devices.reread([key])

    def place(self, name: str, node: str) -> None:
        """Show a pod with a node, as if it had been bound there; what was decided of its claims is not written yet."""
        storage = self.manager.lifecycle.volumes.storage
        for claim, volume in bindings_on(self.manager.records.pods[name].pod, storage, node).items():
            storage.reserve(claim, volume, node)
            self.manager.lifecycle.volumes.reread({claim: "any"})
        store = self.manager.lifecycle.devices.store
        open_ = self.manager.records.pods[name].work.devices.open
        self.manager.lifecycle.devices.renew(store.take(tuple("/".join(key) for key in open_), node), *open_)
        for key in open_:
            store.decided[key] = store.decided[key]._replace(pods=frozenset({name}))
        self.manager.lifecycle.devices.reread(open_)
        self.pods[name]["spec"]["nodeName"] = node
        self.show(name)

    def forget_node(self, namespace: str, name: str) -> bool:
        """Forget the node for which the volume of a claim is to be made, as kube-scheduler does when anybody changes the claim."""
        volumes = self.manager.lifecycle.volumes
        known = volumes.storage.reserved.get((namespace, name))
        if known is None or known.volume:
            return False
        volumes.storage.release((namespace, name))
        volumes.reread({(namespace, name): ""})
        return True

    def given(self, name: str) -> list[str]:
        """Return the devices that the claims of a pod have got, and that are not written."""
        decided = self.manager.lifecycle.devices.store.decided.values()
        results = [one for each in decided if name in each.pods for one in each.allocation.devices.results or ()]
        results = [one for one in results if not (one.admin_access or one.share_id)]  # the recording has no others
        return sorted(f"{one.driver}/{one.pool}/{one.device}" for one in results)

    def asked(self, name: str) -> tuple[Ask, Partition] | str:
        """Return the ask of a pod, and its partition; or why the scheduler is not asked for it."""
        self.manager.flush()
        record = self.manager.records.pods.get(name)
        if record is None or record.stage is not Stage.ASKED:
            return "not waiting" if record is None else record.work.later or record.work.fault or str(record.stage)
        found = self.manager.lifecycle.waiting.ask_of(record)
        return f"refused: {record.failure}" if found is None else (found[1], self.manager.outbox.partition)

    def answers(self, name: str) -> dict[str, tuple[str, bool]] | str:
        """Return why each node does not take a pod, and whether it would not empty; or why the scheduler is not asked for it."""
        found = self.asked(name)
        if isinstance(found, str):
            return found
        ask, partition = found
        others = {node: (ELSEWHERE, True) for node in partition.nodes if ask.required not in ("", node)}
        return {node.id: (why, never) for node, why, never in survey(partition, ask)} | others


def expected(rows: list[list[str]]) -> Refusal | None:
    """Return the refusal that licorne gives, of all that kube-scheduler's plugins have for a node."""
    refusals = [Refusal(plugin, Code(code), reason) for plugin, code, reason in rows if plugin in JUDGED]
    endings = (NOT_INSTALLED, ELSEWHERE_CLAIMED)
    of_node = [one for one in refusals if one.plugin in FOREVER or one.reason.endswith(endings)]
    return next(iter([*of_node, *filter(lasts, refusals), *refusals]), None)


def lasts(one: Refusal) -> bool:
    """Return whether no end of a pod removes a refusal, and none that begins."""
    too_small = one.plugin == "NodeResourcesFit" and one.code is Code.UNRESOLVABLE
    static = one.plugin in FOREVER or one.reason.endswith((NOT_INSTALLED, ELSEWHERE_CLAIMED))
    return static or too_small or one.reason == domains.NO_KEY


def said_by(why: str, node: dict[str, Any]) -> tuple[str, str]:
    """Return the plugin and the reason that stand for a reason of the scheduler; the plugin alone where it has one reason."""
    if why.startswith("taint "):
        is_cordon = why == f"taint {CORDON}" and node["spec"].get("unschedulable")
        return "NodeUnschedulable" if is_cordon else "TaintToleration", ""
    for begin, said in AMONG.items():
        if why.startswith(begin):
            return said
    for begin, plugin in OF_NODES.items():
        if why.startswith(begin):
            return plugin, ""
    return why, ""


class Comparison:
    """What production says, compared with what was recorded: `agreed`, judgments of nodes by plugin, `skipped` by why, and `wrong`."""

    def __init__(self) -> None:
        self.agreed: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.devices: Counter[bool] = Counter()
        """Of pods that get devices for themselves, how many get those that were recorded, and how many others."""

    def compare(self, case: dict[str, Any]) -> None:
        """Compare all judgments of a case."""
        if why := not_compared(case):
            self.skipped[why] += 1
            return
        made = Production(case, in_turn=False)
        twice: set[str] = set()
        steps = case.get("steps") or [{"ask": case["pending"], "only": True}]
        said = case["verdict"].get("steps") or [case["verdict"]]
        for number, (step, answer) in enumerate(zip(steps, said, strict=True)):
            name = made.step(step)
            for claim in step.get("put", {}).get("pvcs", []):
                self.skipped[FORGOTTEN] += made.forget_node(claim["metadata"]["namespace"], claim["metadata"]["name"])
            others = len(self.wrong)
            if name and "nodes" in answer:
                self._judge(f"{case['id']}, step {number}", case, made, name, answer)
            if others < len(self.wrong) and _may_want(made, name, twice) and all(map(_is_binding, self.wrong[others:])):
                self.skipped["a pod before it names a claim of its class twice, and has two volumes"] += 1
                del self.wrong[others:]
            if "assumed" in answer:
                if _names_twice(made.pods[name]):
                    twice |= _classes_of_unbound(made, name)
                made.place(name, answer["assumed"])
                if given := made.given(name):
                    self.devices[given == sorted(answer.get("devices", []))] += 1

    def _judge(self, where: str, case: dict[str, Any], made: Production, name: str, answer: dict[str, Any]) -> None:
        if made.pods[name]["spec"].get("nodeName"):
            self.skipped["a pod that waits has no node in production (NodeName)"] += 1
            return
        ours = made.answers(name)
        if isinstance(ours, str):
            self._judge_held(where, ours, answer, lost=_loses_devices(case))
            return
        others = len(self.wrong)
        fails = any(row[:2] == ["DynamicResources", Code.ERROR] for rows in answer["nodes"].values() for row in rows)
        early = [plugin for plugin, _, _ in answer["prefilter"].get("all", []) if plugin in JUDGED]
        for node, rows in answer["nodes"].items():
            why, never = ours[node]
            if early:
                self.agreed[early[0]] += bool(why)
                self.wrong += [] if why else [f"{where}: node {node}: licorne takes it, {early[0]} refuses the pod"]
                continue
            theirs = expected(rows)
            plugin, reason = said_by(why, made.nodes[node])
            wanted = ("", "") if theirs is None else (theirs.plugin, theirs.reason if reason else "")
            if theirs is not None and theirs.plugin == plugin in OF_VOLUMES and reason in [row[2] for row in rows]:
                wanted = (plugin, reason)  # one of several
            of_claims = [row for row in rows if row[0] == "DynamicResources"]
            if plugin == "DynamicResources" and (of_claims or theirs is None or fails):
                both = reason == ELSEWHERE_CLAIMED  # of one claim, and another gets no devices: what lasts comes first
                if (
                    fails or both
                ):  # an error, which is told in words of CEL, about a device, ends the attempt for all nodes
                    wanted, never = (plugin, reason), theirs is not None and lasts(theirs)
            if why == ELSEWHERE and "NodeAffinity" in [row[0] for row in rows]:
                wanted = (ELSEWHERE, "")
            if (plugin, reason) != wanted or never is not (theirs is not None and lasts(theirs)):
                self.wrong.append(f"{where}: node {node}: licorne {why!r}, never {never}, recorded {rows}")
            else:
                self.agreed[plugin or "none"] += 1
        if others < len(self.wrong) and _names_twice(made.pods[name]):
            self.skipped["the pod names a claim twice, for which kube-scheduler wants two volumes"] += 1
            del self.wrong[others:]
        if others < len(self.wrong) and _ports_twice(case) and all("'hostPort " in one for one in self.wrong[others:]):
            self.skipped[
                "two pods of a node have one host port, which kube-scheduler forgets with the first that ends"
            ] += 1
            del self.wrong[others:]
        if (
            others < len(self.wrong)
            and _changes_ports(case)
            and all("'hostPort " in one for one in self.wrong[others:])
        ):
            self.skipped["ports of a pod change, which the API server refuses"] += 1
            del self.wrong[others:]
        of_pods = all("InterPod" in one or "licorne 'pod a" in one for one in self.wrong[others:])  # (anti-)affinity
        if others < len(self.wrong) and made.made_namespaces and of_pods:
            self.skipped["the namespace of a pod that waits is not there, as in no cluster"] += 1
            del self.wrong[others:]
        if others < len(self.wrong) and _has_attached(made, name):
            self.skipped["a volume of the pod is attached, and no pod uses it"] += 1
            del self.wrong[others:]
        if _honours_taints(made.pods[name]) and any(map(_is_cordoned_by_field, made.nodes.values())):
            self.skipped["a spread honours taints, and a cordoned node has not got its taint yet"] += others < len(
                self.wrong
            )
            del self.wrong[others:]

    def _judge_held(self, where: str, ours: str, answer: dict[str, Any], *, lost: bool) -> None:
        """Compare why the scheduler is not asked for a pod."""
        early = [*answer["prefilter"].get("all", []), *(row for rows in answer["nodes"].values() for row in rows[:1])]
        early += [["DynamicResources", "", one[2]] for one in answer.get("preenqueue", [])]
        said = [plugin for plugin, _, reason in early if plugin in (*OF_VOLUMES, "DynamicResources") and reason == ours]
        if said:
            self.agreed[said[0]] += len(answer["nodes"])
        elif ours.endswith("at most 256 can use it"):
            self.skipped["a claim is reserved for 256 pods, which kube-scheduler does not look at"] += 1
        elif lost and ours.endswith("is in the process of being allocated"):
            self.skipped["a claim loses its devices while pods use it, which no controller does"] += 1
        elif any(not rows for rows in answer["nodes"].values()) and not ours.startswith("licorne does not decide"):
            self.wrong.append(f"{where}: licorne {ours!r}, recorded {answer['nodes']}")
        else:
            self.skipped[ours] += 1


def _has_attached(made: Production, name: str) -> bool:
    """Return whether a volume of a pod is attached somewhere: it costs nothing there, though no pod uses it."""
    volumes = made.manager.lifecycle.volumes
    pod = made.manager.records.pods[name].pod
    claims = [volumes.storage.claims.get((pod.metadata.namespace, one.name)) for one in claims_of(pod)]
    attached = {one.spec.source.persistent_volume_name for of in volumes._on_node.values() for one in of.values()}
    return any(claim is not None and claim.spec.volume_name in attached for claim in claims)


def _classes_of_unbound(made: Production, name: str) -> set[str]:
    """Return the classes of the claims of a pod that have no volume."""
    storage = made.manager.lifecycle.volumes.storage
    pod = made.manager.records.pods[name].pod
    claims = [storage.claims.get((pod.metadata.namespace, one.name)) for one in claims_of(pod)]
    return {claim.storage_class for claim in claims if claim is not None and not claim.is_bound}


def _may_want(made: Production, name: str, twice: set[str]) -> bool:
    """Return whether a pod may want a volume that kube-scheduler has given to a claim as its second one."""
    return bool(twice) and not twice.isdisjoint(_classes_of_unbound(made, name))


def _is_binding(difference: str) -> bool:
    return "VolumeBinding" in difference or "licorne 'no volume'" in difference


def _ports_twice(case: dict[str, Any]) -> bool:
    """Return whether two pods of a node have the same host port, which no scheduler brings about."""
    pods = [msgspec.convert(one, Pod, strict=False) for one in case["pods"]]
    taken = Counter(
        (pod.spec.node_name, *port)
        for pod in pods
        for port in {(one["hostPort"], one.get("protocol", "TCP")) for one in host_ports(pod)}
    )
    return any(number > 1 for number in taken.values())


def _changes_ports(case: dict[str, Any]) -> bool:
    """Return whether a step gives a pod that runs other host ports."""
    pods = {pod["metadata"]["uid"]: pod for pod in case["pods"]}
    changed = [pod for step in case.get("steps", ()) for pod in step.get("put", {}).get("pods", ())]
    read = partial(msgspec.convert, type=Pod, strict=False)
    known = ((pod, pods.get(pod["metadata"]["uid"])) for pod in changed)
    return any(was and list(host_ports(read(pod))) != list(host_ports(read(was))) for pod, was in known)


def _loses_devices(case: dict[str, Any]) -> bool:
    """Return whether a claim loses its devices after a pod that uses it was decided.

    The binding of that pod then writes what another pod's decision gives the claim.
    """
    used: set[tuple[str, str]] = set()
    for step in case.get("steps", ()):
        if "assume" in step:
            pod = step.get("ask", {})
            used |= {
                (pod["metadata"]["namespace"], one["resourceClaimName"])
                for one in pod.get("spec", {}).get("resourceClaims", ())
                if "resourceClaimName" in one
            }
        for claim in step.get("put", {}).get("resourceclaims", ()):
            name = claim["metadata"]["namespace"], claim["metadata"]["name"]
            if name in used and not claim.get("status", {}).get("allocation"):
                return True
    return False


def _names_twice(pod: dict[str, Any]) -> bool:
    used = claims_of(msgspec.convert(pod, Pod))
    return len(set(used)) < len(used)


def _honours_taints(pod: dict[str, Any]) -> bool:
    return any(one.get("nodeTaintsPolicy") == "Honor" for one in pod["spec"].get("topologySpreadConstraints", ()))


def _is_cordoned_by_field(node: dict[str, Any]) -> bool:
    """Return whether a node is cordoned and has no taint for that: to licorne it has, as soon as it is cordoned."""
    taints = [one["key"] for one in node["spec"].get("taints", ())]
    return bool(node["spec"].get("unschedulable")) and CORDON.key not in taints


def misplaced(case: dict[str, Any]) -> str:
    """Return what is wrong with where the manager and the scheduler place the pod of a case; "" if nothing is.

    Cases are left out that differ by a setting that licorne has not, and those whose pod has a node.
    """
    pending = case["pending"]
    if not_compared(case) or pending["spec"].get("nodeName"):
        return ""
    made = Production(case)
    name = made.ask(pending)
    placed = made.run().get(name, "")
    said = case["verdict"]
    takers = {each for each, rows in said["nodes"].items() if not rows}
    record = made.manager.records.pods[name]
    if record.work.later or said["prefilter"].get("all"):
        takers = set()
    if (record.work.volumes.waiting or record.work.devices.claims) and not placed:  # it waits with a node
        placed = record.node
    if any(row[:2] == ["DynamicResources", Code.ERROR] for rows in said["nodes"].values() for row in rows):
        takers.add("")  # an error ends the attempt, unless it is on a node that is not looked at
    if placed in (takers or {""}):
        return ""
    judged = Comparison()
    judged.compare(case)  # what is left out there, for a listed reason, is left out here
    return "" if judged.skipped else f"{case['id']}: on {placed or 'none'} of {sorted(takers)}"


def missed_wakeups(case: dict[str, Any]) -> list[str]:
    """Return the pods of a sequence that wait though a node takes them, where licorne places them by itself."""
    made = Production(case)
    found = []
    for number, step in enumerate(case["steps"]):
        made.step(step)
        made.run()
        for pod in made.waiting():
            answers = made.answers(pod.metadata.name)
            if isinstance(answers, dict):
                takers = [node for node, (why, _) in answers.items() if not why]
                found += [f"{case['id']}, step {number}: {pod.metadata.name} waits, and {takers}" for _ in takers[:1]]
    return found


def score_differences(case: dict[str, Any], compared: Counter[str]) -> list[str]:
    """Return where production gives a node other points than was recorded; `compared` counts scores that tell nodes apart."""
    if not_compared(case) or by_devices(case):
        return []
    made = Production(case)
    found = made.asked(made.ask(case["pending"]))
    assert not isinstance(found, str), found
    ask, partition = found
    topology, shape = partition.needs.topology, ask.shape
    nodes = partition.index.first_fitting(shape.amounts, shape.need, CANDIDATES_MAX)
    said = case["verdict"].get("scores", {})
    if {node.id for node in nodes} != said.keys():
        return [f"{case['id']}: nodes {sorted(node.id for node in nodes)}, recorded {sorted(said)}"]
    if not nodes:
        return []
    ours = scores(topology, shape.need, nodes)
    wrong = []
    points = dict.fromkeys(said, 0)
    for plugin, weight in WEIGHTS.items():
        theirs = [tuple(said[node.id].get(plugin, (0, 0))) for node in nodes]
        mine = [*zip(*ours[plugin], strict=True)] if plugin in ours else theirs[:1] * len(nodes)
        if len({normalized for _, normalized in theirs}) > 1:
            compared[plugin] += len(nodes)
        if mine != theirs:
            wrong.append(f"{case['id']}: {plugin}: {mine}, recorded {theirs}")
        for node, (_, normalized) in zip(nodes, theirs, strict=True):
            points[node.id] += weight * normalized
    best = ranked(topology, partition.index, shape.amounts, shape.need) or nodes
    if not wrong and points[best[0].id] != max(points.values()):
        wrong.append(f"{case['id']}: {best[0].id} is the best of {points}")
    return wrong


def table() -> Iterator[str]:
    """Yield, of all recordings, how many nodes agree by plugin, and how many judgments are not compared, by why."""
    made = Comparison()
    for name in ("verdicts", "sequences", "volumes", "volume-sequences", "devices", "device-sequences"):
        for case in recorded(name):
            made.compare(case)
    yield f"{len(made.wrong):7}  differ"
    for plugin, count in made.agreed.most_common():
        yield f"{count:7}  agree: {plugin}"
    for why, count in made.skipped.most_common():
        yield f"{count:7}  not compared: {why}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table())
