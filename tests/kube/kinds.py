"""Kinds of worlds for random schedules: which features of Kubernetes and of queues the users of a cluster have.

A seed draws some of them together, because what goes wrong is often between two.
"""

from __future__ import annotations

import random
from typing import Any, Final

import msgspec

from kube.books import DEVICE, Amounts, Limits
from licorne.kube.objects.volumes import SINGLE_POD

SHARE: Final = 0.35
"""How many worlds have a feature."""
PLAIN: Final = 0.1
"""How many worlds have none."""
QUEUES: Final = ("root.a", "root.b", "root.p.c", "root.p.d")
ATOMIC_QUEUE: Final = "root.atom"
DISKS: Final = ("ssd", "hdd")
PORTS: Final = (8080, 8443)
TAINT: Final = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
CORDON: Final = "node.kubernetes.io/unschedulable"
GUARDED: Final = {"guarded": "yes"}
GATE: Final = "example.com/wait"
DEVICES: Final = 2
"""How many devices a node has."""
GIB: Final = 1 << 30
GANG_S: Final = 30
"""The placeholder timeout of gangs."""
GATED_S: Final = (1.0, 20.0, 40.0, 100.0)
"""How long the gates of a gang may stay."""
ROLE: Final = "role"
"""The label by which pods demand to be near others, apart from them, or spread."""
ROLES: Final = ("x", "y")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
CLAIM: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
"""A volume that licorne does not decide."""
MODES: Final = ("ReadWriteOnce", "ReadWriteMany", SINGLE_POD)
LIMIT: Final = 5
"""How many volumes of the driver a node takes, where there are volumes."""
LATER: Final = ("shrinks", "devices", "hangs", "beside", "together", "volumes", "groups", "namespaces", "refuses")
"""Features with rng of their own, so that the worlds without them stay what they were."""


class Kind(msgspec.Struct, frozen=True):
    """What a world has.

    - `quotas`: queues have a maximum, those above them too.
    - `preemption`: a queue has a guarantee, and pods have priorities.
    - `budgets`: PodDisruptionBudgets, which protect a share of the pods.
    - `atomic`: gangs without placeholders, by the property of their queue or by the annotation of their pods.
    - `holds`: these may hold nodes.
    - `foreign`: others bind pods, those of their own and now and then one of licorne's.
    - `gates`: pods come with scheduling gates, which are removed later, or never.
    - `ports`: pods take ports of their nodes.
    - `places`: nodes are tainted, cordoned and relabelled; pods select and tolerate.
    - `maps`: the ConfigMap changes, sometimes to one that is refused.
    - `reservations`: pods that wait may reserve nodes.
    - `hard`: gangs are Hard, come with scheduling gates that go later, have a member that licorne does not decide, or all of
      these; and a controller replaces pods that fail at once.
    - `shrinks`: what nodes have falls, also below what runs there, and rises again.
    - `devices`: nodes have devices, for which some pods ask; when their plugin restarts there are none for a while.
    - `hangs`: victims hang, for a while or for ever, and pods have grace periods of their own.
    - `together`: pods demand to be near others, apart from them, or spread; pods and nodes are relabelled.
    - `volumes`: pods have claims, of volumes that are there and of ones that a provisioner makes, or does not; nodes take so many.
    - `groups`: native pod groups, which come late, go, come anew, and need more or fewer pods than before.
    - `namespaces`: pods that name no application, in namespaces with queues of their own, whose quotas change.
    - `refuses`: a ResourceQuota takes only so many placeholders for a while, or none.
    - `beside`: a second process is started beside the first one, which then ends or loses sight of the Lease, or goes on.
    """

    quotas: bool = False
    preemption: bool = False
    budgets: bool = False
    atomic: bool = False
    holds: bool = False
    foreign: bool = False
    gates: bool = False
    ports: bool = False
    places: bool = False
    maps: bool = False
    reservations: bool = False
    hard: bool = False
    shrinks: bool = False
    devices: bool = False
    hangs: bool = False
    beside: bool = False
    together: bool = False
    volumes: bool = False
    groups: bool = False
    namespaces: bool = False
    refuses: bool = False

    @property
    def keeps_nodes(self) -> bool:
        """Whether a node may be kept for a pod that waits, so that others do not get what is free there."""
        return self.reservations or self.holds


def draw(seed: int) -> Kind:
    """Return the kind of a seed's world."""
    rng = random.Random(f"kind {seed}")
    if rng.random() < PLAIN:
        return Kind()
    has = {name: rng.random() < SHARE for name in Kind.__struct_fields__ if name not in LATER}
    has |= {name: random.Random(f"{name} {seed}").random() < SHARE for name in LATER}
    has["preemption"] |= has["budgets"] or has["hangs"]
    has["holds"] &= has["atomic"]
    has["reservations"] &= rng.random() < 0.5
    has["hard"] &= not has["foreign"]  # a Hard gang that fails takes the members with it that others have bound
    return Kind(**has)


# -- configurations ----------------------------------------------------------------------------------------------


def draw_limits(kind: Kind, rng: random.Random) -> Limits:
    """Return maxima and guarantees that make a valid configuration."""
    most: dict[str, Amounts] = {}
    if kind.quotas:
        if rng.random() < 0.7:
            most["root.a"] = {"vcore": rng.randrange(2000, 6001, 250)}
        if rng.random() < 0.5:
            most["root.b"] = {"vcore": rng.randrange(4000, 8001, 250), "memory": rng.randrange(8, 13) * GIB}
        if rng.random() < 0.7:
            most["root.p"] = {"vcore": rng.randrange(3000, 6001, 250), "pods": rng.randrange(6, 16)}
        if rng.random() < 0.5:
            most["root.p.c"] = {"vcore": rng.randrange(1000, 3001, 250)}
    guaranteed: dict[str, Amounts] = {}
    if kind.preemption:
        bound = most.get("root.b", {"vcore": 8000, "memory": 20 * GIB})
        guaranteed["root.b"] = {
            "vcore": rng.randrange(bound["vcore"] // 2, bound["vcore"] + 1, 250),
            "memory": bound["memory"],
        }
        if rng.random() < 0.3:
            guaranteed["root.a"] = {"vcore": 1000}
    return Limits(most, guaranteed)


def configuration(kind: Kind, limits: Limits) -> dict[str, str]:
    """Return the entries of the ConfigMap."""

    def resources(name: str) -> str:
        parts = {"max": limits.max.get(name), "guaranteed": limits.guaranteed.get(name)}
        texts = []
        for part, given in parts.items():
            if given is not None:
                shown = {key: f"{value}m" if key == "vcore" else str(value) for key, value in given.items()}
                texts.append(f"{part}: {{{', '.join(f'{key}: {value}' for key, value in shown.items())}}}")
        return f"resources: {{{', '.join(texts)}}}" if texts else "resources: {}"

    delay = "properties: {preemption.delay: 1s}"
    by_namespace = "{name: tag, value: namespace, create: true, parent: {name: fixed, value: root.t}}, "
    of_namespaces = "\n          - {name: t, parent: true}" if kind.namespaces else ""
    queues = f"""
partitions:
  - name: default
    placementrules: [{{name: provided}}, {by_namespace if kind.namespaces else ""}{{name: fixed, value: root.d}}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {{name: a, {resources("root.a")}, {delay}}}
          - {{name: b, {resources("root.b")}, {delay}}}
          - name: p
            {resources("root.p")}
            queues:
              - {{name: c, {resources("root.p.c")}}}
              - {{name: d}}
          - {{name: d}}
          - {{name: atom, properties: {{gang.scheduling: atomic}}}}{of_namespaces}
"""
    return {
        "queues.yaml": queues,
        "reservation.enabled": "true" if kind.reservations else "false",
        "gang.hold.max.age": "120m" if kind.holds else "0s",
    }


def refused_configuration(kind: Kind, limits: Limits, rng: random.Random) -> dict[str, str]:
    """Return the entries of a ConfigMap that cannot be used."""
    sound = configuration(kind, limits)
    broken = (
        {"queues.yaml": "partitions: ["},
        {"queues.yaml": "partitions: [{name: other, queues: [{name: root}]}]"},
        {"queues.yaml": sound["queues.yaml"].replace("{name: d}", "{name: d, resources: {max: {vcore: much}}}")},
        {"service.enableConfigHotRefresh": "perhaps"},
    )
    return sound | rng.choice(broken)


# -- pods --------------------------------------------------------------------------------------------------------


def dress(kind: Kind, rng: random.Random, body: dict[str, Any]) -> None:
    """Give a plain pod what pods of such a world have."""
    spec, labels = body["spec"], body["metadata"]["labels"]
    if kind.places and rng.random() < 0.3:
        spec["nodeSelector"] = {"disk": rng.choice(DISKS)}
    if kind.places and rng.random() < 0.4:
        whole = {"key": TAINT["key"], "operator": "Exists"}
        one = {"key": TAINT["key"], "operator": "Equal", "value": rng.choice((TAINT["value"], "other"))}
        spec["tolerations"] = [rng.choice((whole, one, {"key": CORDON, "operator": "Exists"}, {"operator": "Exists"}))]
    if kind.ports and rng.random() < 0.4:
        port = {"containerPort": 80, "hostPort": rng.choice(PORTS), "protocol": "TCP"}
        spec["containers"][0] = {**spec["containers"][0], "ports": [port]}
    if kind.devices and rng.random() < 0.3:
        spec["containers"][0]["resources"]["requests"][DEVICE] = "1"
    if kind.hangs and rng.random() < 0.5:
        spec["terminationGracePeriodSeconds"] = rng.choice((1, 60, 90))
    if kind.gates and rng.random() < 0.2:
        spec["schedulingGates"] = [{"name": GATE}]
    if kind.preemption:
        spec["priority"] = rng.choice((0, 0, 5, 10))
        if rng.random() < 0.1:
            spec["preemptionPolicy"] = "Never"
    if kind.budgets and rng.random() < 0.5:
        labels.update(GUARDED)


def demand(rng: random.Random, body: dict[str, Any]) -> None:
    """Give a pod a role, and perhaps what it demands of pods with this or another one."""
    spec, labels = body["spec"], body["metadata"]["labels"]
    labels[ROLE] = rng.choice(ROLES)
    what = rng.choice(("", "", "podAffinity", "podAntiAffinity", "podAntiAffinity", "spread", "spread"))
    term: dict[str, Any] = {"topologyKey": rng.choice((ZONE, HOST))}
    term["labelSelector"] = {"matchLabels": {ROLE: labels[ROLE] if rng.random() < 0.7 else rng.choice(ROLES)}}
    if what == "spread":
        policies = {"nodeTaintsPolicy": "Honor"} if rng.random() < 0.4 else {}
        term |= {"maxSkew": rng.choice((1, 1, 2)), "whenUnsatisfiable": "DoNotSchedule", **policies}
        spec["topologySpreadConstraints"] = [term]
    elif what:
        spec["affinity"] = {what: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
