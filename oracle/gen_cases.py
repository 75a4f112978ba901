#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes random small clusters, each with a pod that waits, for the oracle.

    gen_cases.py --seed 1 --count 2000 > cases.jsonl        one case per line
    gen_cases.py --seed 1 --count 50 --theme spread         only one theme
    gen_cases.py --bench 1000 --pods 10                     one big cluster, for -bench

A case has a theme, one of THEMES, named in its id. The theme's function dresses
nodes, running pods and the waiting pod so that its plugin says yes about as often
as no; a second theme is laid over a third of the cases. Vocabularies are small on
purpose: labels, ports, claims and zones have to meet. The same seed gives the
same cases, on every Python from 3.11 on.

Objects look as the API server would store them (`oracle -validate` checks), cut
down to the fields that scheduling reads.
"""

import argparse
import json
import random
import sys

ZONE, REGION, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
ZONES = {"z1": "r1", "z2": "r1", "z3": "r2"}
NAMESPACES = {
    "blue": {"team": "x", "env": "prod"},
    "green": {"team": "y", "env": "prod"},
    "red": {"team": "x"},
    "grey": {},
}
APPS, TIERS, VERSIONS = ["web", "db", "cache"], ["front", "back"], ["v1", "v2"]
# Label values on which Gt and Lt must agree with a strict 64-bit decimal parse.
NUMBERS = [
    "0",
    "1",
    "3",
    "3",
    "5",
    "5",
    "8",
    "12",
    "007",
    "1_0",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "x9",
    "",
]
GPU, FOO, HUGE = "nvidia.com/gpu", "example.com/foo", "hugepages-2Mi"
DELETED = "2026-01-01T00:00:00Z"


class Case:
    """One cluster in the making; every random choice goes through `r`."""

    def __init__(self, r, ident):
        self.r = r
        self.obj = {"id": ident, "nodes": [], "pods": [], "pending": None}
        self.serial = 0
        # Some pods may name namespaces that do not exist, or exist without labels.
        names = r.sample(list(NAMESPACES), r.randint(2, 4))
        self.namespaces = names
        self.add("namespaces", *[clean({"metadata": {"name": n, "labels": NAMESPACES[n]}}) for n in names])
        zoned, hosted = self.chance(0.85), self.chance(0.93)
        for i in range(self.skewed(1, 8)):
            self.obj["nodes"].append(self.node(f"n{i + 1}", zoned, hosted))
        home = self.pick(names) if self.chance(0.97) else "nowhere"
        self.pending = self.pod("pending", home)
        self.obj["pending"] = self.pending
        for i in range(r.randint(0, 15)):
            pod = self.pod(f"p{i + 1}", home if self.chance(0.6) else self.pick(names + ["nowhere"]))
            pod["spec"]["nodeName"] = self.pick(self.nodes)["metadata"]["name"] if self.chance(0.98) else "gone"
            pod["status"] = {"phase": "Running" if self.chance(0.95) else self.pick(["Pending", "Succeeded", "Failed"])}
            if self.chance(0.06):
                pod["metadata"]["deletionTimestamp"] = DELETED
            self.pods.append(pod)

    nodes = property(lambda self: self.obj["nodes"])
    pods = property(lambda self: self.obj["pods"])

    def chance(self, p):
        return self.r.random() < p

    def pick(self, values):
        return self.r.choice(values)

    def some(self, values, low, high):
        return self.r.sample(values, min(len(values), self.r.randint(low, high)))

    def skewed(self, low, high):
        """Mostly in the middle: clusters of one node decide little."""
        return (self.r.randint(low, high) + self.r.randint(low, high) + 1) // 2

    def add(self, kind, *objects):
        self.obj.setdefault(kind, []).extend(objects)

    def unique(self, prefix):
        self.serial += 1
        return f"{prefix}{self.serial}"

    def node_name(self):
        return self.pick(self.nodes)["metadata"]["name"]

    def node(self, name, zoned, hosted):
        labels = {}
        if hosted or self.chance(0.5):
            labels[HOST] = name
        if zoned and self.chance(0.9):
            zone = self.pick(list(ZONES))
            old = self.chance(0.12)
            if not old or self.chance(0.5):
                labels[ZONE] = zone
            if old:
                labels[OLD_ZONE] = zone
            if self.chance(0.6):
                labels[REGION] = ZONES[zone]
                if old:
                    labels[OLD_REGION] = ZONES[zone]
        if self.chance(0.7):
            labels["disk"] = self.pick(["ssd", "hdd"])
        if self.chance(0.7):
            labels["gen"] = self.pick(NUMBERS)
        if self.chance(0.5):
            labels["rack"] = self.pick(["a", "b"])
        if self.chance(0.2):
            labels["edge"] = ""
        return clean(
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {},
                "status": {
                    "allocatable": {
                        "cpu": self.pick(["4", "8"]),
                        "memory": self.pick(["8Gi", "16Gi"]),
                        "ephemeral-storage": "20Gi",
                        "pods": "110",
                    }
                },
            }
        )

    def pod(self, name, namespace):
        labels = {}
        for key, values, p in (("app", APPS, 0.85), ("tier", TIERS, 0.5), ("ver", VERSIONS, 0.4)):
            if self.chance(p):
                labels[key] = self.pick(values)
        return clean(
            {
                "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels},
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "resources": {"requests": {"cpu": self.pick(["10m", "50m"])}} if self.chance(0.3) else None,
                        }
                    ]
                },
            }
        )

    def selector(self, empty=0.06, nothing=0.05):
        """A label selector: sometimes none (matches nothing), sometimes empty (matches all)."""
        x = self.r.random()
        if x < nothing:
            return None
        if x < nothing + empty:
            return {}
        out = {}
        if self.chance(0.6):
            out["matchLabels"] = {
                k: self.pick(v) for k, v in self.some([("app", APPS), ("app", APPS), ("tier", TIERS)], 1, 1)
            }
        if not out or self.chance(0.35):
            out["matchExpressions"] = [self.requirement() for _ in range(self.r.randint(1, 2))]
        return out

    def requirement(self):
        key, values = self.pick([("app", APPS), ("app", APPS), ("tier", TIERS), ("ver", VERSIONS)])
        op = self.pick(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        return clean({"key": key, "operator": op, "values": self.some(values, 1, 2) if op.endswith("In") else None})

    def add_volume(self, pod, source):
        pod["spec"].setdefault("volumes", []).append({"name": self.unique("v"), **source})

    def running(self, low=0, high=3):
        return self.some(self.pods, low, high)


def clean(value):
    """Without keys that hold None, or an empty label map."""
    if isinstance(value, dict):
        return {
            k: clean(v) for k, v in value.items() if v is not None and not (k in ("labels", "annotations") and v == {})
        }
    return [clean(v) for v in value] if isinstance(value, list) else value


# ---------------------------------------------------------------- node: name, cordon, taints, affinity


def unschedulable(c):
    for node in c.some(c.nodes, 1, len(c.nodes)):
        node["spec"]["unschedulable"] = True
        taint = {"key": UNSCHEDULABLE, "effect": "NoSchedule"}
        if c.chance(0.5) and taint not in node["spec"].get("taints", []):  # the node controller adds it a little later
            node["spec"].setdefault("taints", []).append(taint)
    if c.chance(0.6):
        c.pending["spec"].setdefault("tolerations", []).append(
            c.pick(
                [
                    {"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"},
                    {"key": UNSCHEDULABLE, "operator": "Exists"},
                    {"key": UNSCHEDULABLE, "operator": "Exists", "effect": "NoExecute"},
                    {"key": UNSCHEDULABLE, "operator": "Equal", "effect": "NoSchedule"},
                    {"key": UNSCHEDULABLE, "effect": "NoSchedule", "value": "true"},
                    {"operator": "Exists"},
                    {"operator": "Exists", "effect": "NoSchedule"},
                    {"operator": "Exists", "effect": "PreferNoSchedule"},
                ]
            )
        )


def node_name(c):
    c.pending["spec"]["nodeName"] = c.node_name() if c.chance(0.9) else "ghost"


def taints(c, numeric=False):
    keys = ["dedicated", "gpu", "node.kubernetes.io/not-ready"]
    values = ["5", "7", "7", "12", "0", "007", "x", ""] if numeric else ["", "a", "b"]
    for node in c.nodes:
        if c.chance(0.65):
            chosen = {(t["key"], t["effect"]): t for t in node["spec"].get("taints", [])}
            for _ in range(c.pick([1, 1, 1, 2])):
                effect = c.pick(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
                key = c.pick(keys[:2] if numeric else keys)
                value = c.pick(values)
                chosen[key, effect] = clean({"key": key, "value": value or None, "effect": effect})
            node["spec"]["taints"] = list(chosen.values())
    tolerations = c.pending["spec"].setdefault("tolerations", [])
    seen = []
    for _ in range(c.r.randint(0, 3)):
        effect = c.pick([None, "NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
        op = c.pick(["Lt", "Gt", "Lt", "Gt", "Equal"] if numeric else [None, "Equal", "Equal", "Exists", "Exists"])
        t = {"key": c.pick(keys[:2] if numeric else keys), "operator": op, "effect": effect}
        if op == "Exists":
            if c.chance(0.2):
                del t["key"]
        elif numeric and op != "Equal":
            t["value"] = c.pick(["5", "6", "8", "-5", "0"])
        else:
            t["value"] = c.pick(values) or None
        if effect == "NoExecute" and c.chance(0.3):
            t["tolerationSeconds"] = 300
        t = clean(t)
        if t not in seen:
            seen.append(t)
            tolerations.append(t)
    if not tolerations:
        del c.pending["spec"]["tolerations"]


def taints_numeric(c):
    """Operators Lt and Gt: alpha in 1.36, so behind a gate."""
    c.obj.setdefault("config", {})["gates"] = {"TaintTolerationComparisonOperators": True}
    taints(c, numeric=True)


def node_requirement(c):
    key = c.pick([ZONE, ZONE, HOST, "disk", "disk", "gen", "gen", "rack", "edge"])
    op = c.pick(["Gt", "Lt", "In", "Exists"] if key == "gen" else ["In", "In", "NotIn", "Exists", "DoesNotExist"])
    values = None
    if op in ("In", "NotIn"):
        known = {
            ZONE: list(ZONES),
            HOST: [f"n{i}" for i in range(1, 7)],
            "disk": ["ssd", "hdd", "nvme"],
            "gen": NUMBERS[:9],
            "rack": ["a", "b"],
            "edge": ["", "x"],
        }[key]
        values = c.some(known, 1, 4)
    elif op in ("Gt", "Lt"):
        values = [c.pick(["0", "3", "4", "5", "10", "003", "9223372036854775806"])]
    return clean({"key": key, "operator": op, "values": values})


def node_term(c):
    if c.chance(0.04):
        return {}  # matches nothing
    term = {}
    if c.chance(0.8):
        term["matchExpressions"] = [node_requirement(c) for _ in range(c.pick([1, 1, 1, 1, 2]))]
    if not term or c.chance(0.12):
        names = [n["metadata"]["name"] for n in c.nodes] + ["ghost"]
        term["matchFields"] = [
            {"key": "metadata.name", "operator": c.pick(["In", "In", "NotIn"]), "values": [c.pick(names)]}
            for _ in range(c.pick([1, 1, 1, 2]))
        ]
    return term


def node_affinity(c):
    spec = c.pending["spec"]
    if c.chance(0.3):
        spec["nodeSelector"] = dict(
            c.some(
                [
                    (ZONE, c.pick(list(ZONES))),
                    ("disk", c.pick(["ssd", "hdd"])),
                    ("edge", ""),
                    ("rack", c.pick(["a", "b"])),
                    ("gen", c.pick(NUMBERS)),
                ],
                1,
                c.pick([1, 1, 2]),
            )
        )
    if c.chance(0.8):
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [node_term(c) for _ in range(c.pick([1, 1, 2, 2, 3]))]
        }
        if c.chance(0.15):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": 5, "preference": {"matchExpressions": [node_requirement(c)]}}
            ]


def daemon_affinity(c):
    """As the DaemonSet controller writes it: one node by name, and its tolerations."""
    names = [n["metadata"]["name"] for n in c.nodes] + ["ghost"]
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        for name in c.some(names, 1, c.pick([1, 1, 2]))
    ]
    c.pending["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    }
    c.pending["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}
    ]
    unschedulable(c)


# ---------------------------------------------------------------- ports and resources


def one_port(c, host_network):
    number = c.pick([80, 80, 443, 8080])
    port = {"containerPort": number, "protocol": c.pick(["TCP", "TCP", "TCP", "UDP", "SCTP"])}
    if host_network:
        port["hostPort"] = number
    elif c.chance(0.85):
        port["hostPort"] = c.pick([80, 80, 443, 8080])
    ip = c.pick([None, None, None, "0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "::1"])
    if ip and "hostPort" in port:
        port["hostIP"] = ip
    return port


def set_ports(c, pod):
    spec = pod["spec"]
    if c.chance(0.2):
        spec["hostNetwork"] = True
    ports = {}
    for _ in range(c.pick([1, 1, 1, 2])):
        port = one_port(c, spec.get("hostNetwork"))
        ports[port.get("hostPort"), port["protocol"], port.get("hostIP")] = port
    ports = list(ports.values())
    if c.chance(0.2):  # an init container's ports count only if it stays
        init = {"name": "i", "ports": ports}
        if c.chance(0.5):
            init["restartPolicy"] = "Always"
        spec.setdefault("initContainers", []).append(init)
    else:
        spec["containers"][0]["ports"] = ports


def ports(c):
    for pod in c.pods:
        if c.chance(0.85):
            set_ports(c, pod)
    if c.chance(0.95):
        set_ports(c, c.pending)


CPU = ["100m", "250m", "500m", "500m", "1", "1", "1500m", "2", "0"]
MEMORY = ["128Mi", "512Mi", "1Gi", "1Gi", "2Gi", "3000000000", "1G", "1200M", "2e9", "3Gi", "0"]
DISK = ["1Gi", "2Gi", "4Gi", "0"]


def requests(c, rich=True):
    out = {}
    if c.chance(0.85):
        out["cpu"] = c.pick(CPU)
    if c.chance(0.75):
        out["memory"] = c.pick(MEMORY)
    if c.chance(0.3):
        out["ephemeral-storage"] = c.pick(DISK)
    if rich and c.chance(0.25):
        out[c.pick([GPU, GPU, FOO])] = c.pick(["1", "1", "1", "2", "0"])
    if rich and c.chance(0.06) and out.get("cpu", "0") != "0":
        out[HUGE] = c.pick(["2Mi", "64Mi"])
    return out


def resources_of(c, rich=True):
    req = requests(c, rich)
    # Extended resources and huge pages need equal limits; other limits do not matter here.
    limits = {k: v for k, v in req.items() if "/" in k or k == HUGE}
    return clean({"requests": req or None, "limits": limits or None})


def set_resources(c, pod, big):
    spec = pod["spec"]
    spec["containers"] = [
        {"name": f"c{i}", "resources": resources_of(c)} for i in range(c.pick([1, 1, 2, 3] if big else [1, 1, 1, 2]))
    ]
    if c.chance(0.25):
        init = []
        for i in range(c.r.randint(1, 3)):
            one = {"name": f"i{i}", "resources": resources_of(c)}
            if c.chance(0.4):
                one["restartPolicy"] = "Always"
            init.append(one)
        spec["initContainers"] = init
    if c.chance(0.12):
        spec["overhead"] = {"cpu": c.pick(["50m", "250m"]), "memory": "64Mi"}
        spec["runtimeClassName"] = "sandbox"
    if c.chance(0.18):  # pod-level requests replace the sum of the containers'
        spec["resources"] = {
            "requests": dict(c.some([("cpu", c.pick(["1", "2", "4"])), ("memory", c.pick(["2Gi", "6Gi"]))], 1, 2))
        }
        for container in spec["containers"] + spec.get("initContainers", []):
            container["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}


def resized(c, pod):
    """A pod whose resize is under way: what counts is the largest of the numbers known."""
    status = pod.setdefault("status", {})
    stay = [i for i in pod["spec"].get("initContainers", []) if "restartPolicy" in i]
    for container in pod["spec"]["containers"] + stay:
        one = {"name": container["name"], "ready": True, "restartCount": 0, "image": "i", "imageID": "i"}
        if c.chance(0.85):
            one["allocatedResources"] = {"cpu": c.pick(CPU), "memory": c.pick(MEMORY)}
        if c.chance(0.85):
            one["resources"] = {"requests": {"cpu": c.pick(CPU), "memory": c.pick(MEMORY)}}
        status.setdefault("initContainerStatuses" if container in stay else "containerStatuses", []).append(one)
    if c.chance(0.6):
        status["conditions"] = [
            {"type": "PodResizePending", "status": "True", "reason": c.pick(["Infeasible", "Deferred"])}
        ]


def resources(c):
    for node in c.nodes:
        allocatable = node["status"]["allocatable"]
        allocatable["pods"] = c.pick(["1", "2", "3", "110", "110", "110", "110"])
        allocatable["cpu"] = c.pick(["2", "3920m", "4", "6", "8", "16"])
        allocatable["memory"] = c.pick(["4Gi", "8Gi", "12e9", "16G", "8000000Ki"])
        allocatable["ephemeral-storage"] = c.pick(["6Gi", "10Gi", "20Gi"])
        if c.chance(0.1):
            del allocatable["ephemeral-storage"]
        if c.chance(0.5):
            allocatable[GPU] = c.pick(["0", "1", "2", "4", "8"])
        if c.chance(0.35):
            allocatable[FOO] = c.pick(["1", "2", "4"])
        if c.chance(0.3):
            allocatable[HUGE] = "64Mi"
    for pod in c.pods:
        if c.chance(0.9):
            set_resources(c, pod, False)
            if c.chance(0.35):
                resized(c, pod)
    if c.chance(0.95):
        set_resources(c, c.pending, True)
    else:
        c.pending["spec"]["containers"] = [{"name": "c"}]


def pod_resize(c):
    """Resizes of pod-level requests under way: 1.36 counts what the pod's status says, 1.35 only its spec."""
    for node in c.nodes:
        node["status"]["allocatable"] |= {"cpu": c.pick(["2", "4", "6", "8"]), "memory": c.pick(["4Gi", "8Gi", "16Gi"])}
    for pod in c.pods:
        if c.chance(0.7):
            asked = dict(c.some([("cpu", c.pick(["1", "2"])), ("memory", c.pick(["1Gi", "3Gi"]))], 1, 2))
            pod["spec"]["resources"] = {"requests": asked}
            pod["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]
            status = pod.setdefault("status", {})
            for field in c.some(["resources", "allocatedResources"], 1, 2):
                amounts = {k: c.pick(["1", "2", "4"] if k == "cpu" else ["1Gi", "2Gi", "6Gi"]) for k in asked}
                status[field] = {"requests": amounts} if field == "resources" else amounts
            if c.chance(0.6):
                status["conditions"] = [
                    {"type": "PodResizePending", "status": "True", "reason": c.pick(["Infeasible", "Deferred"])}
                ]
    c.pending["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": c.pick(["500m", "1", "2"]), "memory": c.pick(["1Gi", "2Gi"])}
    }


def brim(c):
    """Nodes that are full to the brim, or lack the last millicore or byte. Memory is counted in
    thousandths of a byte here: a pod's sum is rounded up once, and each pod of a node alone."""
    kinds = ("cpu", "memory", GPU)

    def amount():
        return {
            "cpu": c.pick([0, c.r.randint(1, 900), c.r.randint(1, 900)]),
            "memory": 500 * c.pick([0, c.r.randint(1, 9), c.r.randint(1, 9)]),
            GPU: 1000 * c.pick([0, 0, 1]),
        }

    def written(a, gpu=True):
        return clean(
            {
                "cpu": f"{a['cpu']}m",
                "memory": f"{a['memory']}m" if a["memory"] % 1000 else str(a["memory"] // 1000),
                GPU: str(a[GPU] // 1000) if a[GPU] and gpu else None,
            }
        )

    def most(*amounts):
        return {k: max(a[k] for a in amounts) for k in kinds}

    def plus(*amounts):
        return {k: sum(a[k] for a in amounts) for k in kinds}

    def dress(pod, running):
        """Gives a pod containers; returns what it needs, in whole units."""
        resizing = c.pick([None, None, None, "Deferred", "Infeasible"]) if running else None

        def make(name, fixed=False):
            spec = amount()
            container = {
                "name": name,
                "resources": clean(
                    {"requests": written(spec), "limits": {GPU: written(spec)[GPU]} if spec[GPU] else None}
                ),
            }
            if not resizing or fixed:
                return container, spec, None
            actual, allocated = amount() | {GPU: spec[GPU]}, amount() | {GPU: spec[GPU]}
            status = {
                "name": name,
                "ready": True,
                "restartCount": 0,
                "image": "i",
                "imageID": "i",
                "resources": {"requests": written(actual)},
                "allocatedResources": written(allocated),
            }
            return (
                container,
                most(actual, allocated) if resizing == "Infeasible" else most(spec, actual, allocated),
                status,
            )

        total, staying, peak, zero = (dict.fromkeys(kinds, 0) for _ in range(4))
        spec, status = pod["spec"], pod.get("status", {})
        spec["containers"] = []
        for i in range(c.pick([0, 0, 0, 1, 2, 3])):
            stays = c.chance(0.5)
            init, need, seen = make(f"i{i}", fixed=not stays)
            peak = most(peak, plus(need, staying))
            if stays:
                init["restartPolicy"] = "Always"
                staying = plus(staying, need)
            spec.setdefault("initContainers", []).append(init)
            if seen:
                status.setdefault("initContainerStatuses", []).append(seen)
        for i in range(c.r.randint(1, 2)):
            container, need, seen = make(f"c{i}")
            total = plus(total, need)
            spec["containers"].append(container)
            if seen:
                status.setdefault("containerStatuses", []).append(seen)
        if resizing:
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": resizing}]
        if c.chance(0.2):
            zero, spec["overhead"], spec["runtimeClassName"] = zero | {"cpu": 100}, {"cpu": "100m"}, "sandbox"
        need = plus(most(plus(total, staying), peak), zero)
        return {"cpu": need["cpu"], "memory": -(-need["memory"] // 1000), GPU: need[GPU] // 1000}

    used = {node["metadata"]["name"]: dict.fromkeys(kinds, 0) for node in c.nodes}
    mine = dress(c.pending, False)
    for pod in c.pods:
        need = dress(pod, True)
        if pod["status"]["phase"] in ("Running", "Pending") and pod["spec"]["nodeName"] in used:
            used[pod["spec"]["nodeName"]] = plus(used[pod["spec"]["nodeName"]], need)
    for node in c.nodes:
        full = plus(used[node["metadata"]["name"]], mine)
        short = c.pick([None, *kinds])
        if short:  # by one; at times so much that it was too full before
            full[short] = max(0, full[short] - c.pick([1, 1, 1, mine[short] + 1]))
        node["status"]["allocatable"] |= {"cpu": f"{full['cpu']}m", "memory": str(full["memory"]), GPU: str(full[GPU])}


# ---------------------------------------------------------------- pods among each other

NAMESPACE_SELECTORS = [
    {},
    {"matchLabels": {"team": "x"}},
    {"matchLabels": {"env": "prod"}},
    {"matchExpressions": [{"key": "env", "operator": "Exists"}]},
]
# In the waiting pod's own terms these hit a fault of kube-scheduler (see README), so they have a theme.
NEGATIVE_SELECTORS = [
    {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]},
]


def affinity_term(c, owner):
    term = {"topologyKey": c.pick([HOST, HOST, ZONE, ZONE, ZONE, REGION, "rack"])}
    selector = c.selector()
    if selector is not None:
        term["labelSelector"] = selector
    x = c.r.random()
    if x < 0.2:
        term["namespaces"] = c.some(list(NAMESPACES), 1, 2)
    if 0.12 < x < 0.45:
        term["namespaceSelector"] = json.loads(
            json.dumps(c.pick(NAMESPACE_SELECTORS + ([] if owner is c.pending else NEGATIVE_SELECTORS)))
        )
    # The API server writes match and mismatch keys into the selector when the
    # pod is made; the scheduler reads the selector alone.
    if selector and c.chance(0.15):
        free = [k for k in ("tier", "ver") if f'"{k}"' not in json.dumps(selector)]
        field, op = c.pick([("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")])
        if free:
            keys = c.some(free, 1, 2)
            term[field] = keys
            merged = [
                {"key": k, "operator": op, "values": [owner["metadata"]["labels"][k]]}
                for k in keys
                if k in owner["metadata"].get("labels", {})
            ]
            if merged:
                selector.setdefault("matchExpressions", []).extend(merged)
    return term


def add_pod_term(c, pod, kind, required=True):
    where = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
    term = affinity_term(c, pod)
    if required:
        where.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)
    else:
        where.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
            {"weight": 10, "podAffinityTerm": term}
        )


def pod_affinity(c):
    for _ in range(c.pick([0, 1, 1, 1, 2])):
        add_pod_term(c, c.pending, "podAffinity")
    if c.chance(0.15):  # the first of a group that wants to be near itself
        labels = c.pending["metadata"].setdefault("labels", {})
        labels["app"] = "loner" if c.chance(0.6) else labels.get("app", "web")
        where = c.pending["spec"].setdefault("affinity", {}).setdefault("podAffinity", {})
        where["requiredDuringSchedulingIgnoredDuringExecution"] = [
            {"topologyKey": c.pick([HOST, ZONE]), "labelSelector": {"matchLabels": {"app": labels["app"]}}}
            for _ in range(c.pick([1, 1, 2]))
        ]


def pod_anti_affinity(c):
    if c.chance(0.75):
        for _ in range(c.pick([1, 1, 2])):
            add_pod_term(c, c.pending, "podAntiAffinity")
    if c.chance(0.1):
        add_pod_term(c, c.pending, c.pick(["podAffinity", "podAntiAffinity"]), required=False)
    existing_anti_affinity(c, 0, 1)


def negative_namespaces(c):
    """Selectors of namespaces by what they lack."""
    kind = c.pick(["podAffinity", "podAntiAffinity"])
    add_pod_term(c, c.pending, kind)
    term = c.pending["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = c.pick(NEGATIVE_SELECTORS)


def existing_anti_affinity(c, low=1, high=3):
    """What the pods that run have against the one that waits."""
    mine = c.pending["metadata"].get("labels", {})
    for pod in c.running(low, high):
        add_pod_term(c, pod, "podAntiAffinity")
        if mine and c.chance(0.5):  # else few would mean the waiting pod
            key = c.pick(sorted(mine))
            term = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][-1]
            if term.keys().isdisjoint(["matchLabelKeys", "mismatchLabelKeys"]):
                term["labelSelector"] = {"matchLabels": {key: mine[key]}}
    for pod in c.running(0, 1):
        add_pod_term(c, pod, "podAffinity")
    for pod in c.running(0, 1):
        add_pod_term(c, pod, "podAntiAffinity", required=False)


def constraint(c, owner, hard=0.85):
    out = {
        "maxSkew": c.pick([1, 1, 1, 2, 3]),
        "topologyKey": c.pick([HOST, HOST, ZONE, ZONE, ZONE, "rack"]),
        "whenUnsatisfiable": "DoNotSchedule" if c.chance(hard) else "ScheduleAnyway",
    }
    selector = (
        c.selector(nothing=0.04)
        if c.chance(0.5)
        else {"matchLabels": {"app": owner["metadata"].get("labels", {}).get("app", "web")}}
    )
    if selector is not None:
        out["labelSelector"] = selector
    if out["whenUnsatisfiable"] == "DoNotSchedule" and c.chance(0.25):
        out["minDomains"] = c.r.randint(1, 5)
    if c.chance(0.25):
        out["nodeAffinityPolicy"] = c.pick(["Honor", "Ignore"])
    if c.chance(0.35):
        out["nodeTaintsPolicy"] = c.pick(["Honor", "Honor", "Ignore"])
    if selector and c.chance(0.2):
        keys = [k for k in c.some(["tier", "ver"], 1, 2) if f'"{k}"' not in json.dumps(selector)]
        if keys:
            out["matchLabelKeys"] = keys
            if c.chance(0.5):  # newer API servers write them into the selector as well
                merged = [
                    {"key": k, "operator": "In", "values": [owner["metadata"]["labels"][k]]}
                    for k in keys
                    if k in owner["metadata"].get("labels", {})
                ]
                if merged:
                    selector.setdefault("matchExpressions", []).extend(merged)
    return out


def spread(c):
    for node in c.nodes:
        if c.chance(0.7):
            labels = node["metadata"].setdefault("labels", {})
            labels.setdefault(HOST, node["metadata"]["name"])
            labels.setdefault(ZONE, c.pick(list(ZONES)))
            labels.setdefault("rack", c.pick(["a", "b"]))
    # Each pair of topology key and action may stand only once.
    constraints = {}
    for _ in range(c.pick([1, 1, 1, 2, 2, 3])):
        one = constraint(c, c.pending)
        constraints[one["topologyKey"], one["whenUnsatisfiable"]] = one
    c.pending["spec"]["topologySpreadConstraints"] = list(constraints.values())
    home = c.pending["metadata"]["namespace"]
    app = c.pending["metadata"].get("labels", {}).get("app")
    for pod in c.pods:  # enough of its own kind to be uneven
        if app and c.chance(0.6):
            pod["metadata"].setdefault("labels", {})["app"] = app
        if c.chance(0.5):
            pod["metadata"]["namespace"] = home
        if c.chance(0.06):
            pod["metadata"]["deletionTimestamp"] = DELETED
    if c.chance(0.4):
        taints(c)
    if c.chance(0.35):
        node_affinity(c)


def spread_policies(c):
    """Spreading where it matters which nodes and which revisions of the pod are counted."""
    home, app = c.pending["metadata"]["namespace"], c.pick(APPS)
    c.pending["metadata"]["labels"] = {"app": app, "ver": "v2"}
    for node in c.nodes:
        labels = node["metadata"].setdefault("labels", {})
        labels |= {HOST: node["metadata"]["name"], ZONE: c.pick(list(ZONES)), "disk": c.pick(["ssd", "ssd", "hdd"])}
        if c.chance(0.4):
            node["spec"]["taints"] = [
                {"key": "dedicated", "value": "a", "effect": c.pick(["NoSchedule", "NoExecute", "PreferNoSchedule"])}
            ]
    for pod in c.pods:
        if c.chance(0.85):
            pod["metadata"] |= {"namespace": home, "labels": {"app": app, "ver": c.pick(VERSIONS)}}
    if c.chance(0.7):
        c.pending["spec"]["nodeSelector"] = {"disk": "ssd"}
    if c.chance(0.4):
        c.pending["spec"]["tolerations"] = [
            {
                "key": "dedicated",
                "operator": "Exists",
                **c.pick([{}, {"effect": "NoSchedule"}, {"effect": "PreferNoSchedule"}]),
            }
        ]
    constraints = []
    for key in c.pick([[HOST], [ZONE], [ZONE], [HOST, ZONE]]):
        one = {
            "maxSkew": c.pick([1, 1, 2]),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        if c.chance(0.65):
            one["nodeAffinityPolicy"] = c.pick(["Honor", "Ignore"])
        if c.chance(0.65):
            one["nodeTaintsPolicy"] = c.pick(["Honor", "Ignore"])
        if c.chance(0.4):
            one["matchLabelKeys"] = c.pick([["ver"], ["ver"], ["ver", "absent"]])
        if c.chance(0.2):
            one["minDomains"] = c.r.randint(2, 4)
        constraints.append(one)
    c.pending["spec"]["topologySpreadConstraints"] = constraints


def owner_kind(c, kind):
    """A workload that owns the waiting pod, from which default constraints take their selector."""
    labels = c.pending["metadata"].setdefault("labels", {"app": "web"})
    labels.setdefault("app", "web")
    home = c.pending["metadata"]["namespace"]
    match = {"app": labels["app"]}
    api = {"ReplicationController": "v1"}.get(kind, "apps/v1")
    if c.chance(0.85) and kind != "Deployment":  # a Deployment owns no pods itself, and is not looked up
        selector = match if api == "v1" else {"matchLabels": match}
        c.add(kind.lower() + "s", {"metadata": {"name": "owner", "namespace": home}, "spec": {"selector": selector}})
    c.pending["metadata"]["ownerReferences"] = [
        {"apiVersion": api, "kind": kind, "name": "owner", "uid": "uid-owner", "controller": True}
    ]


def spread_defaults(c):
    """Default constraints. The built-in ones never filter; a scheduler's own may."""
    home = c.pending["metadata"]["namespace"]
    for node in c.nodes:
        node["metadata"].setdefault("labels", {}).setdefault(HOST, node["metadata"]["name"])
    app = c.pending["metadata"].setdefault("labels", {}).setdefault("app", c.pick(APPS))
    for pod in c.pods:
        if c.chance(0.6):
            pod["metadata"]["namespace"] = home
            pod["metadata"].setdefault("labels", {})["app"] = app
    owned = c.chance(0.6)
    if c.chance(0.3 if owned else 0.8):
        for _ in range(c.pick([1, 1, 2])):
            c.add(
                "services",
                clean(
                    {
                        "metadata": {"name": c.unique("svc"), "namespace": home if c.chance(0.9) else "other"},
                        "spec": {"selector": c.pick([{"app": app}, {"app": app}, {"tier": "front"}, None])},
                    }
                ),
            )
    if owned:
        owner_kind(c, c.pick(["ReplicaSet", "ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"]))
    if c.chance(0.85):
        c.obj.setdefault("config", {})["spreadDefaults"] = [
            {
                "maxSkew": c.pick([1, 1, 2]),
                "topologyKey": key,
                "whenUnsatisfiable": c.pick(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            }
            for key in c.some([HOST, ZONE], 1, 2)
        ]
    if c.chance(0.1):
        c.pending["spec"]["topologySpreadConstraints"] = [constraint(c, c.pending)]


def added_affinity(c):
    """NodeAffinity's argument addedAffinity, a setting of the scheduler."""
    c.obj.setdefault("config", {})["addedAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [node_requirement(c)]}]
        }
    }
    if c.chance(0.5):
        node_affinity(c)


# ---------------------------------------------------------------- volumes


def inline_source(c, kinds=("gce", "ebs", "iscsi", "rbd", "emptyDir")):
    kind = c.pick(kinds)
    read_only = c.chance(0.5) or None
    source = {
        "gce": {"gcePersistentDisk": {"pdName": c.pick(["d1", "d2"]), "readOnly": read_only}},
        "ebs": {"awsElasticBlockStore": {"volumeID": c.pick(["vol-1", "vol-2"]), "readOnly": read_only}},
        "iscsi": {
            "iscsi": {
                "targetPortal": c.pick(["10.0.0.9", "10.0.0.8"]),
                "iqn": c.pick(["iqn.2020-01.com.example:a", "iqn.2020-01.com.example:b"]),
                "lun": c.pick([0, 1]),
                "readOnly": read_only,
            }
        },
        "rbd": {
            "rbd": {
                "monitors": c.some(["m1", "m2", "m3"], 1, 2),
                "image": c.pick(["i1", "i1", "i2"]),
                "pool": c.pick(["rbd", "rbd", "other"]),
                "readOnly": read_only,
            }
        },
        "emptyDir": {"emptyDir": {}},
    }[kind]
    return clean(source)


def inline_volumes(c):
    kinds = c.some(["gce", "ebs", "iscsi", "rbd"], 1, 2) + c.some(["emptyDir"], 0, 1)
    for pod in c.pods:
        if c.chance(0.7):
            c.add_volume(pod, inline_source(c, kinds))
    for _ in range(c.pick([1, 1, 2])):
        c.add_volume(c.pending, inline_source(c, kinds))


DRIVERS = ["disk.example.com", "nas.example.com", "ebs.csi.aws.com"]


def storage_class(c, name, mode="WaitForFirstConsumer", provisioner="disk.example.com", **more):
    if all(s["metadata"]["name"] != name for s in c.obj.get("storageclasses", [])):
        c.add(
            "storageclasses",
            clean({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode, **more}),
        )
    return name


def pv(c, name, source=None, labels=None, affinity=None, cls="", claim=None, gi=10, modes=None, **more):
    c.serial += 1  # every volume its own size: equal ones would be a draw
    status = "Bound" if claim else "Available"
    c.add(
        "pvs",
        clean(
            {
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {
                    "capacity": {"storage": f"{gi * 1024 + c.serial}Mi"},
                    "accessModes": modes or ["ReadWriteOnce"],
                    "storageClassName": cls or None,
                    "claimRef": claim,
                    "nodeAffinity": affinity,
                    **(source or {"csi": {"driver": c.pick(DRIVERS[:2]), "volumeHandle": f"h-{name}"}}),
                    **more,
                },
                "status": {"phase": status},
            }
        ),
    )
    return name


def pvc(
    c,
    name,
    namespace,
    volume=None,
    bound=True,
    cls=None,
    gi=5,
    modes=None,
    annotations=None,
    meta=None,
    phase=None,
    **more,
):
    notes = dict(annotations or {})
    if cls and c.chance(0.06):  # the old way to name the class
        notes["volume.beta.kubernetes.io/storage-class"], cls = cls, None
    if volume and bound:
        notes["pv.kubernetes.io/bind-completed"] = "yes"
    c.add(
        "pvcs",
        clean(
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": f"uid-{namespace}-{name}",
                    "annotations": notes,
                    **(meta or {}),
                },
                "spec": {
                    "accessModes": modes or ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": f"{gi}Gi"}},
                    "storageClassName": cls,
                    "volumeName": volume,
                    **more,
                },
                "status": {"phase": phase or ("Bound" if volume and bound else "Pending")},
            }
        ),
    )
    return name


def claim_ref(namespace, name, uid=True):
    return clean(
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace,
            "name": name,
            "uid": f"uid-{namespace}-{name}" if uid else None,
        }
    )


def local_affinity(c):
    x = c.r.random()
    if x < 0.55:
        expression = {"key": HOST, "operator": "In", "values": [f"n{c.r.randint(1, 5)}" for _ in range(1)]}
    elif x < 0.9:
        expression = {"key": ZONE, "operator": c.pick(["In", "In", "NotIn"]), "values": c.some(list(ZONES), 1, 2)}
    else:
        expression = {"key": "disk", "operator": "Exists"}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def use_claim(c, pod, name, read_only=None):
    c.add_volume(pod, {"persistentVolumeClaim": clean({"claimName": name, "readOnly": read_only})})


def bound_claim(c, namespace, **volume):
    name, disk = c.unique("claim"), c.unique("pv")
    modes = volume.pop("modes", None)
    pv(c, disk, claim=claim_ref(namespace, name), modes=modes, **volume)
    return pvc(c, name, namespace, volume=disk, cls="", modes=modes)


def once_pod(c):
    """ReadWriteOncePod claims, and others that several pods may use."""
    home = c.pending["metadata"]["namespace"]
    claims = [
        bound_claim(c, home, modes=[c.pick(["ReadWriteOncePod", "ReadWriteOncePod", "ReadWriteOnce", "ReadWriteMany"])])
        for _ in range(2)
    ]
    for pod in c.running(1, 4):
        if c.chance(0.7):
            pod["metadata"]["namespace"] = home
        use_claim(c, pod, c.pick(claims))
    for name in c.some(claims, 1, 2):
        use_claim(c, c.pending, name)
    if c.chance(0.05):
        use_claim(c, c.pending, "nope")


def csi_limits(c):
    migrated = c.chance(0.3)
    for node in c.nodes:
        if c.chance(0.9):
            drivers = []
            for d in DRIVERS:
                if c.chance(0.85):
                    drivers.append(
                        clean(
                            {
                                "name": d,
                                "nodeID": node["metadata"]["name"],
                                "topologyKeys": [HOST],
                                "allocatable": {"count": c.pick([0, 1, 1, 2, 2, 3, 4])} if c.chance(0.88) else None,
                            }
                        )
                    )
            notes = (
                {
                    "storage.alpha.kubernetes.io/migrated-plugins": c.pick(
                        ["kubernetes.io/aws-ebs", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd", ""]
                    )
                }
                if c.chance(0.8)
                else {}
            )
            c.add(
                "csinodes",
                clean(
                    {"metadata": {"name": node["metadata"]["name"], "annotations": notes}, "spec": {"drivers": drivers}}
                ),
            )
    home = c.pending["metadata"]["namespace"]

    def claim(namespace):
        x = c.r.random()
        if x < 0.12:
            return pvc(c, c.unique("claim"), namespace, cls=storage_class(c, "fast", provisioner=DRIVERS[0]))
        if x < 0.17:
            return pvc(
                c, c.unique("claim"), namespace, volume="vanished", cls=storage_class(c, "fast", provisioner=DRIVERS[0])
            )
        source = {"csi": {"driver": c.pick(DRIVERS[:2]), "volumeHandle": c.unique("h")}}
        labels = None
        if migrated and x < 0.5:
            source = c.pick(
                [
                    {"awsElasticBlockStore": {"volumeID": c.unique("vol-")}},
                    {"gcePersistentDisk": {"pdName": c.unique("disk")}},
                ]
            )
            labels = {ZONE: c.pick(list(ZONES))} if c.chance(0.25) else None
            if x > 0.42:
                return pvc(
                    c, c.unique("claim"), namespace, cls=storage_class(c, "old", provisioner="kubernetes.io/aws-ebs")
                )
        elif x > 0.95:
            source = {"nfs": {"server": "s", "path": "/"}}
        return bound_claim(c, namespace, source=source, labels=labels)

    shared = [claim(home) for _ in range(3)]
    for pod in c.running(2, 10):
        namespace = pod["metadata"]["namespace"]
        for _ in range(c.pick([1, 1, 2])):
            use_claim(c, pod, c.pick(shared) if namespace == home and c.chance(0.4) else claim(namespace))
        if c.chance(0.04):
            use_claim(c, pod, "nope")
        if migrated and c.chance(0.3):
            c.add_volume(pod, {"awsElasticBlockStore": {"volumeID": c.unique("vol-")}})
    for _ in range(c.pick([1, 1, 2, 3])):
        use_claim(c, c.pending, c.pick(shared) if c.chance(0.35) else claim(home))
    if migrated and c.chance(0.4):
        c.add_volume(c.pending, {"awsElasticBlockStore": {"volumeID": c.unique("vol-")}})
    if c.chance(0.6):  # attached for a pod that runs, or still for one that ended
        for disk in c.some([p for p in c.obj.get("pvs", []) if "csi" in p["spec"]], 1, 6):
            claim = disk["spec"]["claimRef"]["name"]
            users = [
                p["spec"]["nodeName"]
                for p in c.pods
                for v in p["spec"].get("volumes", [])
                if v.get("persistentVolumeClaim", {}).get("claimName") == claim
            ]
            c.add(
                "volumeattachments",
                {
                    "metadata": {"name": c.unique("va")},
                    "spec": {
                        "attacher": disk["spec"]["csi"]["driver"],
                        "nodeName": c.pick(users) if users and c.chance(0.6) else c.node_name(),
                        "source": {"persistentVolumeName": disk["metadata"]["name"] if c.chance(0.9) else "vanished"},
                    },
                    "status": {"attached": True},
                },
            )


def volume_zone(c):
    home = c.pending["metadata"]["namespace"]
    for _ in range(c.pick([1, 1, 2])):
        zones = c.pick([["z1"], ["z2"], ["z3"], ["z1", "z2"]])
        value = "__".join(zones)
        labels = c.pick(
            [
                {ZONE: value},
                {ZONE: value},
                {OLD_ZONE: value},
                {REGION: c.pick(["r1", "r2"])},
                {ZONE: value, REGION: ZONES[zones[0]]},
                {OLD_ZONE: value, OLD_REGION: ZONES[zones[0]]},
                {"disk": "ssd"},
                {},
                {ZONE: "z1__"},
            ]
        )
        use_claim(c, c.pending, bound_claim(c, home, labels=labels))
    if c.chance(0.1):
        for node in c.some(c.nodes, 1, 3):
            node["metadata"]["labels"] = {
                k: v
                for k, v in node["metadata"].get("labels", {}).items()
                if k not in (ZONE, REGION, OLD_ZONE, OLD_REGION)
            }
    if c.chance(0.12):
        use_claim(c, c.pending, c.pick([odd_claim, waiting_claim])(c, home))


def odd_claim(c, namespace):
    """A claim with which the pod cannot be placed at all, or with which something is amiss."""
    name = c.unique("claim")
    kind = c.pick(
        ["missing", "lost", "deleting", "immediate", "no-class", "class-gone", "prebound", "pv-gone", "mode-unset"]
    )
    if kind == "missing":
        return name
    if kind == "lost":
        return pvc(c, name, namespace, volume="vanished", phase="Lost", cls="")
    if kind == "deleting":
        pvc(
            c,
            name,
            namespace,
            volume=pv(c, c.unique("pv"), claim=claim_ref(namespace, name)),
            cls="",
            meta={"deletionTimestamp": DELETED},
        )
    elif kind == "immediate":
        pvc(c, name, namespace, cls=storage_class(c, "now", mode="Immediate"))
    elif kind == "no-class":
        pvc(c, name, namespace, cls=c.pick(["", None]))
    elif kind == "class-gone":
        pvc(c, name, namespace, cls="gone")
    elif kind == "prebound":
        disk = pv(c, c.unique("pv"), claim=claim_ref(namespace, name, uid=False), cls=storage_class(c, "late"))
        pvc(c, name, namespace, volume=disk, bound=False, cls="late")
    elif kind == "pv-gone":
        pvc(c, name, namespace, volume="vanished", cls="")
    elif kind == "mode-unset":
        pvc(c, name, namespace, cls=storage_class(c, "unset", mode=None))
    return name


def promised(c, ref):
    """Whether a claim has a volume promised already: a second one would make the outcome a draw."""
    return any(p["spec"].get("claimRef", {}).get("name") == ref["name"] for p in c.obj.get("pvs", []))


def static_volumes(c, cls, namespace, claim):
    """Volumes that wait for a claim, each with something that may keep it from matching."""
    for _ in range(c.r.randint(1, 4)):
        more, ref = {}, None
        if c.chance(0.12):
            more["volumeMode"] = "Block"
        if c.chance(0.08):
            more["volumeAttributesClassName"] = "gold"
        if c.chance(0.12):
            ref = c.pick(
                [
                    claim_ref(namespace, claim),
                    claim_ref(namespace, claim, uid=False),
                    claim_ref(namespace, "another"),
                    claim_ref(namespace, claim) | {"uid": "uid-of-one-before"},
                ]
            )
            if promised(c, ref):
                ref = None
        name = pv(
            c,
            c.unique("pv"),
            source={"local": {"path": "/mnt"}},
            affinity=local_affinity(c) if c.chance(0.85) else None,
            cls=cls if c.chance(0.93) else "other",
            gi=c.pick([1, 4, 5, 10, 20]),
            claim=ref,
            modes=c.pick([["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadOnlyMany"]]),
            labels=c.pick([{}, {"tier": "front"}, {"tier": "back"}]),
            **more,
        )
        made = c.obj["pvs"][-1]
        assert made["metadata"]["name"] == name
        if ref and c.chance(0.8):
            made["status"]["phase"] = "Available"
        if c.chance(0.06):
            made["status"]["phase"] = c.pick(["Released", "Failed", "Pending"])
        if c.chance(0.05):
            made["metadata"]["deletionTimestamp"] = DELETED


def waiting_claim(c, namespace):
    """A claim that is bound when its first pod has a node."""
    name, more = c.unique("claim"), {}
    kind = c.pick(["static"] * 4 + ["dynamic"] * 3 + ["capacity", "capacity", "selected"])
    if c.chance(0.12):
        more["selector"] = {"matchLabels": {"tier": c.pick(TIERS)}}
    if c.chance(0.07):
        more["volumeMode"] = "Block"
    if c.chance(0.05):
        more["volumeAttributesClassName"] = "gold"
    terms = None
    if c.chance(0.6):
        terms = [
            {
                "matchLabelExpressions": [
                    {"key": c.pick([ZONE, ZONE, HOST]), "values": c.some(list(ZONES) + ["n1", "n2"], 2, 3)}
                    for _ in range(c.pick([1, 1, 2]))
                ]
            }
            for _ in range(c.pick([1, 1, 2]))
        ]
    before = [
        s["metadata"]["name"] for s in c.obj.get("storageclasses", []) if s["metadata"]["name"].startswith("local")
    ]
    if kind == "static" and before and c.chance(0.7):
        cls = c.pick(before)
    elif kind == "static":
        provisioner = "kubernetes.io/no-provisioner" if c.chance(0.8) else "disk.example.com"
        cls = storage_class(c, c.unique("local"), provisioner=provisioner)
    elif kind == "capacity":
        cls = storage_class(
            c, c.unique("thin"), provisioner="nas.example.com", allowedTopologies=terms if c.chance(0.3) else None
        )
        if not c.obj.get("csidrivers"):
            c.add(
                "csidrivers",
                clean(
                    {
                        "metadata": {"name": "nas.example.com"},
                        "spec": {"storageCapacity": c.pick([True, True, True, True, False, None])},
                    }
                ),
            )
        for _ in range(c.pick([0, 1, 1, 2, 3])):
            topology = c.pick(
                [
                    {"matchLabels": {ZONE: c.pick(list(ZONES))}},
                    {"matchLabels": {HOST: c.node_name()}},
                    {"matchExpressions": [{"key": HOST, "operator": "Exists"}]},
                    {},
                    None,
                    None,
                ]
            )
            c.add(
                "csistoragecapacities",
                clean(
                    {
                        "metadata": {"name": c.unique("cap"), "namespace": "kube-system"},
                        "nodeTopology": topology,
                        "storageClassName": cls if c.chance(0.9) else "other",
                        "capacity": c.pick(["1Gi", "4Gi", "10Gi", "100Gi", None]),
                        "maximumVolumeSize": c.pick([None, None, "2Gi", "50Gi"]),
                    }
                ),
            )
    else:
        cls = storage_class(c, c.unique("dyn"), provisioner=c.pick(DRIVERS[:2]), allowedTopologies=terms)
    notes = {"volume.kubernetes.io/selected-node": c.node_name()} if kind == "selected" else None
    pvc(
        c,
        name,
        namespace,
        cls=cls,
        gi=c.pick([1, 4, 5, 10]),
        annotations=notes,
        modes=c.pick([["ReadWriteOnce"]] * 4 + [["ReadWriteMany"]]),
        **more,
    )
    if kind == "static" or c.chance(0.2):
        static_volumes(c, cls, namespace, name)
    return name


def volume_binding(c):
    home = c.pending["metadata"]["namespace"]
    for _ in range(c.pick([1, 1, 1, 2, 2])):
        x = c.r.random()
        if x < 0.13:
            use_claim(c, c.pending, odd_claim(c, home))
        elif x < 0.4:
            use_claim(c, c.pending, bound_claim(c, home, affinity=local_affinity(c) if c.chance(0.9) else None))
        elif x < 0.92:
            use_claim(c, c.pending, waiting_claim(c, home))
        else:
            ephemeral(c, home)


def volume_matching(c):
    """Claims that wait for local volumes: each node has about as many as are needed, most with one defect."""
    home = c.pending["metadata"]["namespace"]
    cls = storage_class(c, "local", provisioner="kubernetes.io/no-provisioner")
    claims = []
    for _ in range(c.pick([1, 2, 2, 3])):
        more = {"selector": {"matchLabels": {"tier": "front"}}} if c.chance(0.3) else {}
        claims.append(pvc(c, c.unique("claim"), home, cls=cls, gi=c.pick([2, 5, 10]), **more))
    for name in claims:
        use_claim(c, c.pending, name)
    for node in c.nodes:
        node["metadata"].setdefault("labels", {}).setdefault(HOST, node["metadata"]["name"])
        for _ in range(len(claims) + c.pick([-1, 0, 0, 0, 1])):
            where = {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node["metadata"]["name"]]}]}
                    ]
                }
            }
            made = {"cls": cls, "gi": c.pick([2, 5, 5, 10, 10, 20]), "labels": {"tier": "front"}, "affinity": where}
            defect = (
                c.pick(
                    [
                        "phase",
                        "mode",
                        "access",
                        "attributes",
                        "deleted",
                        "taken",
                        "before",
                        "mine",
                        "label",
                        "class",
                        "elsewhere",
                    ]
                )
                if c.chance(0.4)
                else None
            )
            made |= {
                "mode": {"volumeMode": "Block"},
                "access": {"modes": ["ReadOnlyMany"]},
                "attributes": {"volumeAttributesClassName": "gold"},
                "taken": {"claim": claim_ref(home, "another")},
                "before": {"claim": claim_ref(home, claims[0]) | {"uid": "uid-of-one-before"}},
                "mine": {"claim": claim_ref(home, claims[0], uid=False)},
                "label": {"labels": {"tier": "back"}},
                "class": {"cls": "other"},
                "elsewhere": {"affinity": local_affinity(c)},
            }.get(defect, {})
            if defect == "mine" and promised(c, made["claim"]):
                del made["claim"]
            pv(c, c.unique("pv"), source={"local": {"path": "/mnt"}}, **made)
            volume = c.obj["pvs"][-1]
            volume["status"]["phase"] = c.pick(["Released", "Failed", "Pending"]) if defect == "phase" else "Available"
            if defect == "deleted":
                volume["metadata"]["deletionTimestamp"] = DELETED


def storage_capacity(c):
    """Claims whose driver tells how much each part of the cluster can still make."""
    home = c.pending["metadata"]["namespace"]
    c.add(
        "csidrivers",
        clean(
            {"metadata": {"name": "nas.example.com"}, "spec": {"storageCapacity": c.pick([True] * 8 + [False, None])}}
        ),
    )
    classes = [storage_class(c, name, provisioner="nas.example.com") for name in ("thin", "thick")]
    for _ in range(c.pick([1, 1, 2])):
        use_claim(c, c.pending, pvc(c, c.unique("claim"), home, cls=c.pick(classes), gi=c.pick([4, 5, 6])))
    for node in c.nodes:
        for cls in classes:
            if c.chance(0.8):
                zone = node["metadata"].get("labels", {}).get(ZONE, "z9")
                topology = c.pick(
                    [{"matchLabels": {HOST: node["metadata"]["name"]}}] * 4 + [{"matchLabels": {ZONE: zone}}, {}, None]
                )
                c.add(
                    "csistoragecapacities",
                    clean(
                        {
                            "metadata": {"name": c.unique("cap"), "namespace": "kube-system"},
                            "nodeTopology": topology,
                            "storageClassName": cls,
                            "capacity": c.pick(["3Gi", "5Gi", "7Gi", None]),
                            "maximumVolumeSize": c.pick([None, None, "4Gi", "5Gi", "9Gi"]),
                        }
                    ),
                )


def odd_claims(c):
    """Claims for which PreFilter may send the pod away."""
    home = c.pending["metadata"]["namespace"]
    if c.chance(0.4):
        use_claim(c, c.pending, bound_claim(c, home))
    use_claim(c, c.pending, odd_claim(c, home))


def ephemeral(c, home):
    """A generic ephemeral volume: its claim is named after pod and volume, and owned by the pod."""
    volume = c.unique("v")
    c.pending["spec"].setdefault("volumes", []).append(
        {
            "name": volume,
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            },
        }
    )
    if c.chance(0.8):
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "pending",
            "uid": "uid-pending" if c.chance(0.8) else "uid-other",
            "controller": True,
        }
        name = f"pending-{volume}"
        disk = pv(c, c.unique("pv"), claim=claim_ref(home, name), affinity=local_affinity(c))
        pvc(c, name, home, volume=disk, cls="", meta={"ownerReferences": [owner]})


# ---------------------------------------------------------------- what newer schedulers add


def device_claims(c):
    """Dynamic resource allocation: claims on devices that nodes publish."""
    driver = "gpu.example.com"
    extended = c.chance(0.3)
    c.add(
        "deviceclasses",
        clean(
            {
                "metadata": {"name": driver},
                "spec": {
                    "selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}],
                    "extendedResourceName": "example.com/gpu" if extended else None,
                },
            }
        ),
    )
    devices = []
    for node in c.nodes:
        name = node["metadata"]["name"]
        if c.chance(0.75):
            mine = [
                {
                    "name": f"gpu{i}",
                    "attributes": {"model": {"string": c.pick(["a", "b"])}},
                    "capacity": {"memory": {"value": c.pick(["16Gi", "40Gi"])}},
                }
                for i in range(c.r.randint(1, 3))
            ]
            devices += [(name, d["name"]) for d in mine]
            c.add(
                "resourceslices",
                {
                    "metadata": {"name": f"{name}-gpus"},
                    "spec": {
                        "driver": driver,
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                        "devices": mine,
                    },
                },
            )
        elif extended and c.chance(0.5):
            node["status"]["allocatable"]["example.com/gpu"] = "2"
    home = c.pending["metadata"]["namespace"]

    def request():
        if c.chance(0.12):
            return {
                "name": "r",
                "firstAvailable": [
                    {
                        "name": f"s{i}",
                        "deviceClassName": driver,
                        "allocationMode": "ExactCount",
                        "count": count,
                        "selectors": [{"cel": {"expression": f'device.attributes["{driver}"].model == "{model}"'}}],
                    }
                    for i, (model, count) in enumerate(c.some([("a", 2), ("a", 1), ("b", 1), ("b", 3)], 1, 2))
                ],
            }
        exactly = {"deviceClassName": driver if c.chance(0.95) else "gone"}
        if c.chance(0.15):
            exactly["allocationMode"] = "All"
        else:
            exactly |= {"allocationMode": "ExactCount", "count": c.pick([1, 1, 1, 2])}
        if c.chance(0.35):
            exactly["selectors"] = [
                {
                    "cel": {
                        "expression": c.pick(
                            [
                                f'device.attributes["{driver}"].model == "a"',
                                f'device.capacity["{driver}"].memory.isGreaterThan(quantity("20Gi"))',
                            ]
                        )
                    }
                }
            ]
        return {"name": "r", "exactly": exactly}

    def new_claim(allocated, users=()):
        name = c.unique("dev")
        claim = {
            "metadata": {"name": name, "namespace": home, "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": [request()]}},
        }
        if allocated and devices:
            node, device = devices.pop(c.r.randrange(len(devices)))
            claim["spec"]["devices"]["requests"] = [
                {"name": "r", "exactly": {"deviceClassName": driver, "allocationMode": "ExactCount", "count": 1}}
            ]
            claim["status"] = clean(
                {
                    "allocation": {
                        "devices": {"results": [{"request": "r", "driver": driver, "pool": node, "device": device}]},
                        "nodeSelector": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                            ]
                        },
                    },
                    "reservedFor": [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users] or None,
                }
            )
        c.add("resourceclaims", claim)
        return name

    for pod in c.running(0, 4):  # devices that are in use
        new_claim(True, [pod["metadata"]["name"]])
    if extended and c.chance(0.7):
        c.pending["spec"]["containers"][0]["resources"] = {k: {"example.com/gpu": "1"} for k in ("requests", "limits")}
        return
    for i in range(c.pick([1, 1, 2])):
        name = new_claim(c.chance(0.35)) if c.chance(0.95) else "nope"
        source = {"resourceClaimName": name}
        if c.chance(0.25):  # made from a template: the pod's status has its name
            source = {"resourceClaimTemplateName": "template"}
            if c.chance(0.9):
                c.pending.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(
                    {"name": f"c{i}", "resourceClaimName": name}
                )
            if name != "nope":
                c.obj["resourceclaims"][-1]["metadata"]["ownerReferences"] = [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": "pending",
                        "uid": "uid-pending" if c.chance(0.9) else "uid-other",
                        "controller": True,
                    }
                ]
        elif name != "nope" and c.chance(0.04):
            c.obj["resourceclaims"][-1]["metadata"]["deletionTimestamp"] = DELETED
        c.pending["spec"].setdefault("resourceClaims", []).append({"name": f"c{i}", **source})


def declared_features(c):
    """Features that a node declares and that a pod's spec may need."""
    for node in c.nodes:
        if c.chance(0.6):
            known = ["RestartAllContainersOnContainerExits"] * 2 + ["GuaranteedQoSPodCPUResize", "OfTheFuture"]
            node["status"]["declaredFeatures"] = sorted(set(c.some(known, 1, 2)))
    containers = c.pending["spec"]["containers"]
    if c.chance(0.3):
        containers = c.pending["spec"].setdefault("initContainers", [{"name": "first"}])
    containers[0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [
            {
                "action": c.pick(["RestartAllContainers"] * 6 + ["Restart"]),
                "exitCodes": {"operator": "In", "values": [42]},
            }
        ],
    }


# Theme, its function, its share of the cases.
THEMES = {
    "cordon": (unschedulable, 4),
    "nodename": (node_name, 3),
    "taints": (taints, 9),
    "taints-numeric": (taints_numeric, 1),
    "affinity": (node_affinity, 10),
    "daemon": (daemon_affinity, 2),
    "added-affinity": (added_affinity, 1),
    "ports": (ports, 9),
    "resources": (resources, 11),
    "brim": (brim, 6),
    "pod-resize": (pod_resize, 2),
    "near": (pod_affinity, 7),
    "apart": (pod_anti_affinity, 6),
    "unwelcome": (existing_anti_affinity, 6),
    "negative-namespaces": (negative_namespaces, 1),
    "spread": (spread, 10),
    "spread-policies": (spread_policies, 6),
    "spread-defaults": (spread_defaults, 4),
    "inline": (inline_volumes, 6),
    "once": (once_pod, 4),
    "limits": (csi_limits, 7),
    "zone": (volume_zone, 5),
    "binding": (volume_binding, 10),
    "matching": (volume_matching, 7),
    "capacity": (storage_capacity, 2),
    "odd-claims": (odd_claims, 3),
    "devices": (device_claims, 5),
    "features": (declared_features, 5),
}
# Laid over another theme: those that leave it something to say.
OVER = [
    "cordon",
    "taints",
    "affinity",
    "ports",
    "near",
    "apart",
    "unwelcome",
    "spread",
    "inline",
    "limits",
    "zone",
    "binding",
]


def make_case(seed, number, theme=None):
    r = random.Random(f"{seed}/{number}")
    names = list(THEMES)
    theme = theme or r.choices(names, [THEMES[n][1] for n in names])[0]
    over = r.choice(OVER) if r.random() < 0.33 else None
    if over == theme or (over and theme == "nodename"):
        over = None
    c = Case(r, f"{theme}{'+' + over if over else ''}-{seed}-{number}")
    if over:
        THEMES[over][0](c)
    THEMES[theme][0](c)
    return clean(c.obj)


def bench_case(nodes, pods_per_node):
    """A big, plain cluster whose waiting pod meets most filter plugins."""
    r = random.Random(1)
    out = {"id": f"bench-{nodes}", "nodes": [], "pods": [], "namespaces": [{"metadata": {"name": "blue"}}]}
    for i in range(nodes):
        out["nodes"].append(
            {
                "metadata": {
                    "name": f"n{i}",
                    "labels": {HOST: f"n{i}", ZONE: f"z{i % 10}", "disk": r.choice(["ssd", "hdd"])},
                },
                "spec": {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]} if i % 3 == 0 else {},
                "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
            }
        )
        for j in range(pods_per_node):
            out["pods"].append(
                {
                    "metadata": {
                        "name": f"p{i}-{j}",
                        "namespace": "blue",
                        "labels": {"app": r.choices(APPS, [50, 1, 49])[0]},
                    },
                    "spec": {
                        "nodeName": f"n{i}",
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
                    },
                    "status": {"phase": "Running"},
                }
            )
    plain = {
        "metadata": {"name": "pending", "namespace": "blue", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"}],
        },
    }
    yield out | {"id": f"plain-{nodes}", "pending": plain}
    full = json.loads(json.dumps(plain))
    full["spec"] |= {
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "db"}}}
                ]
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1000,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
    }
    full["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    yield out | {"id": f"full-{nodes}", "pending": full}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--theme", choices=THEMES)
    parser.add_argument("--bench", type=int, metavar="NODES")
    parser.add_argument("--pods", type=int, default=10, help="running pods per node, with --bench")
    args = parser.parse_args()
    cases = (
        bench_case(args.bench, args.pods)
        if args.bench
        else (make_case(args.seed, i, args.theme) for i in range(args.count))
    )
    for case in cases:
        sys.stdout.write(json.dumps(case, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
