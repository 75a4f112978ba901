#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More random cases for the oracle: corner cases, sequences and scores.

    gen_more.py --kind single   --seed 1 --count 2000   one waiting pod each; themes of gen_cases.py and those below
    gen_more.py --kind sequence --seed 1 --count 700    pods placed one after the other, events between them
    gen_more.py --kind score    --seed 1 --count 300    preferences; for `oracle -scores`
    ... --theme NAME                                    only one theme

The same seed gives the same cases. gen_cases.py lies beside this file and is used by it.
"""

import argparse
import copy
import json
import random
import sys

import gen_cases as g
from gen_cases import APPS, DELETED, HOST, REGION, TIERS, ZONE, ZONES, clean

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def labels_of(obj):
    return obj["metadata"].setdefault("labels", {})


# ---------------------------------------------------------------- InterPodAffinity


def affinity_corners(c):
    """Required terms in their odd forms; running pods that are ending, on cordoned nodes, of unlabelled nodes."""
    home = c.pending["metadata"]["namespace"]
    mine = labels_of(c.pending)
    mine.setdefault("app", c.pick(APPS))
    for node in c.nodes:
        if c.chance(0.2):
            node["spec"]["unschedulable"] = True
        if c.chance(0.15):
            labels_of(node).pop(ZONE, None)
        elif c.chance(0.5):
            labels_of(node)[ZONE] = c.pick(list(ZONES))
    for pod in c.pods:
        if c.chance(0.12):
            pod["metadata"]["deletionTimestamp"] = DELETED
    kind = c.pick(["podAffinity", "podAffinity", "podAntiAffinity", "podAntiAffinity", "both", "theirs", "theirs"])

    def term(owner):
        own = labels_of(owner)
        selector = c.pick(
            [
                {},
                None,
                {"matchLabels": {"app": own.get("app", "web")}},
                {"matchLabels": {"app": c.pick(APPS)}},
                {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [c.pick(APPS)]}]},
                {
                    "matchLabels": {"app": c.pick(APPS)},
                    "matchExpressions": [{"key": "tier", "operator": "In", "values": TIERS}],
                },
            ]
        )
        out = clean(
            {
                "topologyKey": c.pick(
                    [HOST, ZONE, ZONE, REGION, "rack", "nowhere.example.com/key"]
                    if c.chance(0.3)
                    else [HOST, ZONE, ZONE]
                ),
                "labelSelector": copy.deepcopy(selector),
            }
        )
        x = c.pick(["none", "none", "none", "list", "empty", "select", "both", "void"])
        if x in ("list", "both"):
            out["namespaces"] = c.some(list(g.NAMESPACES) + ["nowhere"], 1, 2)
        if x in ("select", "both"):
            out["namespaceSelector"] = copy.deepcopy(c.pick(g.NAMESPACE_SELECTORS + g.NEGATIVE_SELECTORS))
        if x == "empty":
            out["namespaceSelector"] = {}
        if x == "void":  # selects no namespace at all; then the list (if any) alone counts
            out["namespaceSelector"] = {"matchLabels": {"team": "nobody"}}
        if out.get("labelSelector") and c.chance(0.25):
            keys = [k for k in ("tier", "ver") if f'"{k}"' not in json.dumps(out["labelSelector"])]
            if keys:
                field, op = c.pick([("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")])
                out[field] = keys[:1]
                if keys[0] in own:
                    out["labelSelector"].setdefault("matchExpressions", []).append(
                        {"key": keys[0], "operator": op, "values": [own[keys[0]]]}
                    )
        return out

    if kind == "theirs":
        for pod in c.running(1, 4):
            pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = {
                REQUIRED: [term(pod) for _ in range(c.pick([1, 1, 2]))]
            }
            if c.chance(0.6):
                one = c.pick(pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED])
                one.pop("matchLabelKeys", None), one.pop("mismatchLabelKeys", None)
                one["labelSelector"] = {"matchLabels": {"app": mine["app"]}}
                one["topologyKey"] = c.pick([HOST, ZONE])
        return
    where = c.pending["spec"].setdefault("affinity", {})
    if kind != "podAntiAffinity":
        where["podAffinity"] = {REQUIRED: [term(c.pending) for _ in range(c.pick([1, 1, 2, 3]))]}
        if c.chance(0.3):  # the first of its kind, with several terms
            mine["app"] = "first"
            for one in where["podAffinity"][REQUIRED]:
                one.pop("matchLabelKeys", None), one.pop("mismatchLabelKeys", None)
                one["labelSelector"] = {"matchLabels": {"app": c.pick(["first"] * 8 + ["other"])}}
                if c.chance(0.15):
                    one["namespaces"] = [c.pick([home, "blue", "red"])]
    if kind != "podAffinity":
        where["podAntiAffinity"] = {REQUIRED: [term(c.pending) for _ in range(c.pick([1, 1, 2, 3]))]}


# ---------------------------------------------------------------- PodTopologySpread


def spread_corners(c):
    home, app = c.pending["metadata"]["namespace"], c.pick(APPS)
    c.pending["metadata"]["labels"] = {"app": app, "ver": c.pick(g.VERSIONS)}
    if c.chance(0.07):
        del c.pending["metadata"]["labels"]
    odd = c.pick(
        ["zero", "few", "few", "tight", "tight", "bare", "ending", "cordoned", "selector", "several", "several", "keys"]
    )
    for i, node in enumerate(c.nodes):
        labels = labels_of(node)
        labels[HOST] = node["metadata"]["name"]
        labels[ZONE] = list(ZONES)[i % 3] if c.chance(0.7) else c.pick(list(ZONES))
        labels["rack"] = c.pick(["a", "b", "c"])
        if odd == "zero" or (odd == "bare" and c.chance(0.4)) or c.chance(0.04):
            labels.pop(c.pick([ZONE, ZONE, "rack"]), None)
            if odd == "zero":
                labels.pop(ZONE, None)
        if odd == "cordoned" and c.chance(0.4):
            node["spec"]["unschedulable"] = True
            if c.chance(0.8):
                node["spec"]["taints"] = [{"key": g.UNSCHEDULABLE, "effect": "NoSchedule"}]
        if odd in ("several", "tight") and c.chance(0.25):
            node["spec"].setdefault("taints", []).append(
                {"key": "dedicated", "value": "a", "effect": c.pick(["NoSchedule", "NoExecute", "PreferNoSchedule"])}
            )
    for pod in c.pods:
        if c.chance(0.8):
            pod["metadata"] |= {"namespace": home, "labels": {"app": app, "ver": c.pick(g.VERSIONS)}}
        if odd == "ending" and c.chance(0.45):
            pod["metadata"]["deletionTimestamp"] = DELETED
    keys = {"several": [ZONE, HOST, "rack"], "tight": [ZONE], "few": [c.pick([ZONE, HOST, "rack"])]}.get(odd) or c.pick(
        [[ZONE], [HOST], [ZONE, HOST]]
    )
    keys = c.some(keys, 2, 3) if odd == "several" else keys
    out = []
    for key in keys:
        one = {
            "maxSkew": 1 if odd == "tight" or c.chance(0.6) else c.pick([2, 3, 5]),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        if odd == "few":
            one["minDomains"] = c.pick([2, 3, 4, 5, 6, 9])
        elif c.chance(0.15):
            one["minDomains"] = c.r.randint(1, 4)
        if odd == "selector":
            one["labelSelector"] = c.pick(
                [
                    None,
                    {},
                    {"matchLabels": {"app": "other"}},
                    {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                    {"matchExpressions": [{"key": "ver", "operator": "DoesNotExist"}]},
                ]
            )
        if (odd == "keys" or c.chance(0.12)) and one["labelSelector"]:
            one["matchLabelKeys"] = c.pick([["ver"], ["ver", "tier"], ["tier"]])
        if c.chance(0.35):
            one["nodeAffinityPolicy"] = c.pick(["Honor", "Ignore"])
        if c.chance(0.5) or odd == "cordoned":
            one["nodeTaintsPolicy"] = c.pick(["Honor", "Honor", "Ignore"])
        out.append(clean(one))
    if c.chance(0.15):
        out.append(
            {
                "maxSkew": 1,
                "topologyKey": HOST if HOST not in keys else REGION,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": app}},
            }
        )
    c.pending["spec"]["topologySpreadConstraints"] = out
    if c.chance(0.25):
        c.pending["spec"]["nodeSelector"] = {"rack": c.pick(["a", "b"])}
    if c.chance(0.25):
        c.pending["spec"]["tolerations"] = [
            c.pick(
                [
                    {"key": "dedicated", "operator": "Exists"},
                    {"operator": "Exists"},
                    {"key": g.UNSCHEDULABLE, "operator": "Exists", "effect": "NoSchedule"},
                ]
            )
        ]


# ---------------------------------------------------------------- volumes


def volume_terms(c):
    """Volumes whose node affinity has several terms, fields, all operators; claims that are ending or lost."""
    home = c.pending["metadata"]["namespace"]
    for node in c.nodes:
        labels_of(node).setdefault(HOST, node["metadata"]["name"])
        if c.chance(0.7):
            labels_of(node)[ZONE] = c.pick(list(ZONES))
    for _ in range(c.pick([1, 1, 2, 3])):
        terms = []
        for _ in range(c.pick([1, 2, 2, 3])):
            x = c.r.random()
            if x < 0.08:
                terms.append({})
            elif x < 0.2:
                terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [c.node_name()]}]})
            else:
                terms.append({"matchExpressions": [g.node_requirement(c) for _ in range(c.pick([1, 1, 2]))]})
        name = g.bound_claim(c, home, affinity={"required": {"nodeSelectorTerms": terms}} if c.chance(0.93) else None)
        g.use_claim(c, c.pending, name)
    if c.chance(0.15):
        g.use_claim(c, c.pending, g.odd_claim(c, home))


def crowded_once(c):
    """ReadWriteOncePod claims that are in use: by pods that are ending, in other namespaces, by several claims."""
    home = c.pending["metadata"]["namespace"]
    claims = [
        g.bound_claim(c, home, modes=c.pick([["ReadWriteOncePod"]] * 3 + [["ReadWriteOnce"]]))
        for _ in range(c.r.randint(1, 3))
    ]
    for pod in c.running(1, 4):
        pod["metadata"]["namespace"] = home if c.chance(0.85) else "other"
        g.use_claim(c, pod, c.pick(claims), c.pick([None, True]))
        if c.chance(0.2):
            pod["metadata"]["deletionTimestamp"] = DELETED
    for name in c.some(claims, 1, 3):
        g.use_claim(c, c.pending, name)
    if c.chance(0.2):
        c.add_volume(c.pending, g.inline_source(c))
    if c.chance(0.04):
        g.use_claim(c, c.pending, "nope")


def limits_more(c):
    """Volume limits; drivers that must be installed (CSIDriver's preventPodSchedulingIfMissing), nodes that lack them or have no CSINode."""
    g.csi_limits(c)
    known = {d["metadata"]["name"] for d in c.obj.get("csidrivers", [])}
    for driver in g.DRIVERS[:2]:
        if driver not in known and c.chance(0.7):
            c.add(
                "csidrivers",
                {
                    "metadata": {"name": driver},
                    "spec": {
                        "preventPodSchedulingIfMissing": c.pick([True, True, True, False]),
                        "attachRequired": True,
                    },
                },
            )


# ---------------------------------------------------------------- devices

DRIVER = "gpu.example.com"
ADMIN = {"resource.kubernetes.io/admin-access": "true"}


def cel(c):
    d = DRIVER
    return {
        "cel": {
            "expression": c.pick(
                [
                    f'device.attributes["{d}"].model == "a"',
                    f'device.attributes["{d}"].model != "b"',
                    f'device.attributes["{d}"].cores >= 8',
                    f'device.attributes["{d}"].healthy',
                    f'device.attributes["{d}"].firmware.isGreaterThan(semver("1.4.0"))',
                    f'"zone" in device.attributes["{d}"]',
                    f'device.capacity["{d}"].memory.compareTo(quantity("32Gi")) >= 0',
                    f'device.driver == "{d}" && device.attributes["{d}"].cores < 16',
                    'device.attributes["other.example.com"].model == "a"',
                    f'has(device.attributes["{d}"].serial)',
                    "true",
                    f'device.attributes["{d}"].serial == "x"'
                    if c.chance(0.25)
                    else f'device.attributes["{d}"].cores in [4, 8]',
                ]
            )
        }
    }


def device_slices(c, rich=True):
    """Slices of nodes, of zones and of the whole cluster; returns the devices."""
    out = []
    lists = c.chance(0.2)
    if lists:
        c.obj.setdefault("config", {}).setdefault("gates", {})["DRAListTypeAttributes"] = True

    def device(name):
        attributes = {
            "model": {"string": c.pick(["a", "b"])},
            "cores": {"int": c.pick([4, 8, 16])},
            "healthy": {"bool": c.chance(0.7)},
            "firmware": {"version": c.pick(["1.3.9", "1.5.0", "2.0.0"])},
            "numa": {"ints": c.some([0, 1, 2], 1, 2)} if lists and c.chance(0.7) else {"int": c.r.randint(0, 1)},
        }
        made = {
            "name": name,
            "attributes": attributes,
            "capacity": {"memory": {"value": c.pick(["16Gi", "40Gi", "80Gi"])}},
        }
        if rich and c.chance(0.12):
            made["taints"] = [
                clean(
                    {
                        "key": "sick",
                        "value": c.pick([None, "x"]),
                        "effect": c.pick(["NoSchedule", "NoExecute", "None"]),
                        "timeAdded": "2026-01-01T00:00:00Z",
                    }
                )
            ]
        return made

    def publish(pool, where, devices, generation=1, count=1, name=None):
        c.add(
            "resourceslices",
            {
                "metadata": {"name": name or f"{pool}-{DRIVER}"},
                "spec": {
                    "driver": DRIVER,
                    **where,
                    "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                    "devices": devices,
                },
            },
        )

    for node in c.nodes:
        name = node["metadata"]["name"]
        if c.chance(0.8):
            mine = [device(f"d{i}") for i in range(c.r.randint(1, 4))]
            x = c.r.random() if rich else 1
            if x < 0.06:  # a part of the pool is not there yet: the pool is not complete
                publish(name, {"nodeName": name}, mine, count=2)
            elif x < 0.12:  # the old generation of the pool does not count
                publish(name, {"nodeName": name}, mine, generation=2)
                publish(name, {"nodeName": name}, [device("old0")], generation=1, name=f"{name}-old")
            elif x < 0.24:  # partitions of one device draw on the same counters
                total = c.pick([2, 3, 4])
                publish(name, {"nodeName": name}, [], count=2, name=f"{name}-counters")
                del c.obj["resourceslices"][-1]["spec"]["devices"]
                c.obj["resourceslices"][-1]["spec"]["sharedCounters"] = [
                    {"name": "board", "counters": {"parts": {"value": str(total)}}}
                ]
                for d in mine:
                    d["consumesCounters"] = [
                        {"counterSet": "board", "counters": {"parts": {"value": str(c.r.randint(1, total))}}}
                    ]
                publish(name, {"nodeName": name}, mine, count=2)
            elif x < 0.34:  # a device that several claims may share, each taking a part of its capacity
                for d in mine:
                    d["allowMultipleAllocations"] = True
                publish(name, {"nodeName": name}, mine)
                mine = []
            else:
                publish(name, {"nodeName": name}, mine)
            out += [(name, d["name"]) for d in mine]
    if rich and c.chance(0.25):
        zone = c.pick(list(ZONES))
        mine = [device(f"z{i}") for i in range(c.r.randint(1, 2))]
        publish(
            f"net-{zone}",
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
                }
            },
            mine,
        )
    if rich and c.chance(0.12):
        publish("everywhere", {"allNodes": True}, [device("w0")])
    return out


def device_request(c, name, classes, rich=True):
    x = c.r.random()
    if rich and x < 0.2:
        subs = [
            {
                "name": f"s{i}",
                "deviceClassName": c.pick(classes),
                "allocationMode": "ExactCount",
                "count": c.pick([1, 1, 2, 3]),
                **({"selectors": [cel(c)]} if c.chance(0.5) else {}),
            }
            for i in range(c.r.randint(1, 3))
        ]
        return {"name": name, "firstAvailable": subs}
    exact = {"deviceClassName": c.pick(classes) if c.chance(0.97) else "gone"}
    if rich and x < 0.35:
        exact["allocationMode"] = "All"
    else:
        exact |= {"allocationMode": "ExactCount", "count": c.pick([1, 1, 1, 1, 2, 3])}
    if c.chance(0.3):
        exact["selectors"] = [cel(c) for _ in range(c.pick([1, 1, 1, 2]))]
    if rich and c.chance(0.07):
        exact["adminAccess"] = True
    if c.chance(0.12):
        exact["capacity"] = {"requests": {"memory": c.pick(["10Gi", "30Gi", "50Gi"])}}
    if rich and c.chance(0.15):
        exact["tolerations"] = [
            c.pick(
                [
                    {"operator": "Exists"},
                    {"key": "sick", "operator": "Exists"},
                    {"key": "sick", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
                ]
            )
        ]
    return {"name": name, "exactly": exact}


def device_classes(c):
    c.add(
        "deviceclasses",
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}},
    )
    c.add(
        "deviceclasses",
        {
            "metadata": {"name": "big"},
            "spec": {
                "selectors": [
                    {"cel": {"expression": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].cores >= 8'}}
                ]
            },
        },
    )
    return ["gpu", "gpu", "big"]


def new_claim(c, home, requests, **more):
    name = c.unique("claim-")
    spec = {"devices": {"requests": requests}}
    if len(requests) > 1 and c.chance(0.4):
        spec["devices"]["constraints"] = [
            clean(
                {
                    c.pick(
                        ["matchAttribute", "matchAttribute", "distinctAttribute"]
                    ): f"{DRIVER}/{c.pick(['model', 'numa', 'cores'])}",
                    "requests": None if c.chance(0.5) else [r["name"] for r in requests[:2]],
                }
            )
        ]
    c.add(
        "resourceclaims",
        {"metadata": {"name": name, "namespace": home, "uid": f"uid-{home}-{name}"}, "spec": spec, **more},
    )
    return name


def allocated(c, home, node, device, users, selector=None):
    """A claim that has its device already."""
    where = selector or {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    }
    return new_claim(
        c,
        home,
        [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}],
        status=clean(
            {
                "allocation": {
                    "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": node, "device": device}]},
                    "nodeSelector": where,
                },
                "reservedFor": [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users] or None,
            }
        ),
    )


def use_device(c, pod, name, template=False):
    source = {"resourceClaimName": name}
    ref = f"c{len(pod['spec'].get('resourceClaims', []))}"
    if template:
        source = {"resourceClaimTemplateName": "template"}
        pod.setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(
            {"name": ref, "resourceClaimName": name}
        )
        for claim in c.obj.get("resourceclaims", []):
            if claim["metadata"]["name"] == name:
                meta = pod["metadata"]
                claim["metadata"]["ownerReferences"] = [
                    {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
                ]
    pod["spec"].setdefault("resourceClaims", []).append({"name": ref, **source})


def devices_more(c):
    """Claims with several requests, constraints, alternatives, all devices of a node, taints, admin access; slices of zones."""
    if c.obj.get("deviceclasses"):
        return
    home = c.pending["metadata"]["namespace"]
    classes = device_classes(c)
    free = device_slices(c)
    c.r.shuffle(free)
    for pod in c.running(0, 3):
        if free:
            node, device = free.pop()
            allocated(c, home, node, device, [pod["metadata"]["name"]])
    for _ in range(c.pick([1, 1, 1, 2])):
        x = c.r.random()
        if x < 0.12 and free:
            node, device = free.pop()
            zone = {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [c.pick(list(ZONES))]}]}
                ]
            }
            users = (
                [f"u{i}" for i in range(256)] if c.chance(0.1) else c.pick([[], ["p1"], ["p1", "p2"]])
            )  # 256 is the most
            name = allocated(c, home, node, device, users, c.pick([None, zone]))
        elif x < 0.14:
            name = "nope"
        else:
            name = new_claim(c, home, [device_request(c, f"r{i}", classes) for i in range(c.pick([1, 1, 1, 1, 2, 3]))])
            if c.chance(0.025):
                c.obj["resourceclaims"][-1]["metadata"]["deletionTimestamp"] = DELETED
        use_device(c, c.pending, name, c.chance(0.2) and name != "nope")
    if c.chance(0.025):  # the controller has not made the claim yet
        c.pending["spec"]["resourceClaims"].append({"name": "late", "resourceClaimTemplateName": "template"})


THEMES = {
    "affinity-corners": (affinity_corners, 11),
    "spread-corners": (spread_corners, 12),
    "volume-terms": (volume_terms, 5),
    "crowded-once": (crowded_once, 18),
    "devices-more": (devices_more, 12),
    "near": (g.pod_affinity, 4),
    "apart": (g.pod_anti_affinity, 3),
    "unwelcome": (g.existing_anti_affinity, 4),
    "negative-namespaces": (g.negative_namespaces, 1),
    "spread": (g.spread, 5),
    "spread-policies": (g.spread_policies, 4),
    "spread-defaults": (g.spread_defaults, 3),
    "inline": (g.inline_volumes, 3),
    "limits": (g.csi_limits, 9),
    "limits-more": (limits_more, 8),
    "zone": (g.volume_zone, 10),
    "binding": (g.volume_binding, 6),
    "matching": (g.volume_matching, 4),
    "capacity": (g.storage_capacity, 3),
    "odd-claims": (g.odd_claims, 3),
    "devices": (g.device_claims, 4),
    "features": (g.declared_features, 14),
    "cordon": (g.unschedulable, 2),
    "nodename": (g.node_name, 8),
    "taints": (g.taints, 1),
    "affinity": (g.node_affinity, 4),
    "ports": (g.ports, 16),
    "resources": (g.resources, 6),
    "brim": (g.brim, 1),
}
OVER = {
    "cordon": 5,
    "taints": 3,
    "affinity": 7,
    "ports": 14,
    "resources": 8,
    "nodename": 7,
    "near": 2,
    "apart": 2,
    "unwelcome": 2,
    "spread": 3,
    "affinity-corners": 2,
    "spread-corners": 2,
    "inline": 2,
    "crowded-once": 3,
    "limits": 5,
    "zone": 5,
    "binding": 2,
    "devices-more": 3,
    "features": 5,
}


def make_single(seed, number, theme=None):
    r = random.Random(f"more/{seed}/{number}")
    theme = theme or r.choices(list(THEMES), [w for _, w in THEMES.values()])[0]
    over = r.choices(list(OVER), list(OVER.values()))[0] if r.random() < 0.55 else None
    if (
        theme in (over, "nodename")
        or (over == "devices-more" and theme == "devices")
        or (over == "limits" and theme == "limits-more")
        or (theme in ("brim", "resources") and over in ("ports", "features"))
    ):
        over = None
    c = g.Case(r, f"{theme}{'+' + over if over else ''}-{seed}-{number}")
    if over:
        THEMES[over][0](c)
    THEMES[theme][0](c)
    return clean(c.obj)


# ---------------------------------------------------------------- sequences


class Sequence(g.Case):
    """A case whose waiting pods come one after the other."""

    def __init__(self, r, ident):
        super().__init__(r, ident)
        self.obj.pop("pending")
        self.obj["steps"] = []
        self.waiting = []
        self.home = self.pending["metadata"]["namespace"]

    def new(self, name=None):
        self.made = getattr(self, "made", 0) + 1
        name = name or f"w{self.made}"
        self.pending = self.pod(name, self.home)
        return self.pending

    def ask(self, pod, assume=True):
        step = {"ask": copy.deepcopy(pod)}
        if assume and self.chance(0.9):
            step["assume"] = {"nth": self.r.randint(0, 5)} if self.chance(0.85) else {"node": self.node_name()}
        self.waiting.append(f"{self.home}/{pod['metadata']['name']}")
        self.obj["steps"].append(step)

    def again(self, assume=True):
        step = {"again": f"?{self.r.randint(0, 9)}"}
        if assume:
            step["assume"] = {"nth": self.r.randint(0, 5)}
        self.obj["steps"].append(step)

    def replicas(self, pod, low, high, event=0.3):
        """Copies of a pod, each asked for in turn; now and then something happens between."""
        for i in range(self.r.randint(low, high)):
            one = copy.deepcopy(pod)
            one["metadata"] |= {"name": f"w{i + 1}", "uid": f"uid-w{i + 1}"}
            self.ask(one)
            if self.chance(event):
                self.event()

    def put(self, kind, *objects):
        self.obj["steps"].append({"put": {kind: [clean(copy.deepcopy(o)) for o in objects]}})

    def event(self):
        """Something that happens in the cluster, and then a second look at a pod that waits."""
        kind = self.pick(
            [
                "remove-running",
                "remove-placed",
                "remove-placed",
                "forget",
                "label-pod",
                "ended",
                "node-label",
                "node-taint",
                "cordon",
                "allocatable",
                "add-node",
                "remove-node",
                "namespace",
                "add-pod",
                *self.obj.get("_events", []) * 3,
            ]
        )
        alive = [
            p
            for p in self.pods
            if p["spec"]["nodeName"] != "gone"
            and p.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            and not p.get("_gone")
        ]
        if kind in ("remove-running", "label-pod", "ended") and not alive:
            return
        if kind == "remove-running":
            pod = self.pick(alive)
            pod["_gone"] = True
            self.obj["steps"].append({"_remove": pod})
        elif kind == "ended":
            pod = self.pick(alive)
            pod["_gone"] = True
            changed = copy.deepcopy(pod)
            changed["status"] = {"phase": "Succeeded"}
            self.put("pods", strip(changed))
            self.obj["steps"][-1]["_of"] = pod
        elif kind == "label-pod":
            pod = self.pick(alive)
            changed = copy.deepcopy(pod)
            changed["metadata"]["labels"] = self.pod("x", self.home)["metadata"].get("labels", {})
            self.put("pods", strip(changed))
            self.obj["steps"][-1]["_of"] = pod
        elif kind == "add-pod":
            pod = self.pod(self.unique("q"), self.home)
            pod["spec"]["nodeName"] = self.node_name()
            pod["status"] = {"phase": "Running"}
            self.put("pods", pod)
        elif kind == "remove-placed":
            self.obj["steps"].append({"remove": f"Pod/?{self.r.randint(0, 9)}"})
        elif kind == "forget":
            self.obj["steps"].append({"forget": f"?{self.r.randint(0, 9)}"})
        elif kind in ("node-label", "node-taint", "cordon", "allocatable"):
            node = self.pick(self.nodes)
            changed = (
                self.changed.setdefault(node["metadata"]["name"], copy.deepcopy(node))
                if hasattr(self, "changed")
                else copy.deepcopy(node)
            )
            if kind == "node-label":
                labels = labels_of(changed)
                key = self.pick([ZONE, ZONE, "rack", "disk", HOST])
                if key in labels and self.chance(0.4):
                    del labels[key]
                else:
                    labels[key] = {
                        ZONE: self.pick(list(ZONES)),
                        "rack": self.pick(["a", "b"]),
                        "disk": self.pick(["ssd", "hdd"]),
                        HOST: node["metadata"]["name"],
                    }[key]
            elif kind == "node-taint":
                changed["spec"]["taints"] = (
                    []
                    if changed["spec"].get("taints")
                    else [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]
                )
            elif kind == "cordon":
                changed["spec"]["unschedulable"] = not changed["spec"].get("unschedulable")
            else:
                changed["status"]["allocatable"] |= {
                    "cpu": self.pick(["1", "4", "16"]),
                    "memory": self.pick(["2Gi", "32Gi"]),
                    "pods": self.pick(["2", "5", "110"]),
                }
            self.put("nodes", changed)
        elif kind == "add-node":
            node = self.node(self.unique("m"), True, True)
            self.put("nodes", node)
        elif kind == "remove-node" and len(self.nodes) > 2 and not self.obj.get("_kept"):
            self.obj["_kept"] = True
            gone = self.pick(self.nodes)["metadata"]["name"]
            if all(p["spec"]["nodeName"] != gone for p in self.pods):
                self.obj["steps"].append({"remove": f"Node/{gone}"})
                self.obj["_removed"] = gone
        elif kind == "namespace":
            name = self.pick(self.namespaces)
            self.put("namespaces", {"metadata": {"name": name, "labels": self.pick(list(g.NAMESPACES.values()))}})
        else:
            self.special(kind)
            return
        for _ in range(self.pick([1, 1, 2])):
            self.again(self.chance(0.6))

    def special(self, kind):
        if kind == "pv":
            cls = self.pick(self.obj["storageclasses"])["metadata"]["name"]
            g.pv(
                self,
                self.unique("new"),
                source={"local": {"path": "/mnt"}},
                cls=cls,
                gi=20,
                affinity=g.local_affinity(self),
            )
            self.put("pvs", self.obj["pvs"].pop())
        elif kind == "pvc" and self.obj.get("pvcs"):
            claim = copy.deepcopy(self.pick(self.obj["pvcs"]))
            claim["metadata"].pop("deletionTimestamp", None)
            claim["metadata"].setdefault("annotations", {})["touched"] = "yes"
            self.put("pvcs", claim)
        elif kind == "class":
            known = self.obj.get("storageclasses", [])
            if known and self.chance(0.6):
                one = copy.deepcopy(self.pick(known))
                one["allowedTopologies"] = [
                    {"matchLabelExpressions": [{"key": ZONE, "values": self.some(list(ZONES), 1, 2)}]}
                ]
            else:
                one = {
                    "metadata": {"name": self.unique("class")},
                    "provisioner": g.DRIVERS[0],
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            self.put("storageclasses", one)
        elif kind == "csinode" and self.obj.get("csinodes"):
            one = copy.deepcopy(self.pick(self.obj["csinodes"]))
            for driver in one["spec"].get("drivers", []):
                if "allocatable" in driver:
                    driver["allocatable"]["count"] = self.pick([0, 1, 2, 5])
            self.put("csinodes", one)
        elif kind == "bind":
            self.obj["steps"].append({"bind": f"?{self.r.randint(0, 9)}"})
        elif kind == "claim":
            claim = copy.deepcopy(self.pick(self.obj["resourceclaims"]))
            claim.pop("status", None)
            self.put("resourceclaims", claim)
        self.again(self.chance(0.7))


def strip(obj):
    return {k: v for k, v in obj.items() if not k.startswith("_")}


def seq_spread(c):
    c.new()
    c.pick([spread_corners, spread_corners, g.spread, g.spread_policies])(c)
    c.replicas(c.pending, 4, 9)


def seq_apart(c):
    app = c.pick(APPS)
    c.new()["metadata"]["labels"] = {"app": app}
    kind = c.pick(["podAntiAffinity", "podAntiAffinity", "podAffinity", "both"])
    term = {
        "topologyKey": c.pick([HOST, ZONE, ZONE]),
        "labelSelector": {"matchLabels": {"app": c.pick([app, app, app, c.pick(APPS)])}},
    }
    where = c.pending["spec"]["affinity"] = {}
    if kind != "podAffinity":
        where["podAntiAffinity"] = {REQUIRED: [term]}
    if kind != "podAntiAffinity":
        where["podAffinity"] = {REQUIRED: [{**term, "topologyKey": ZONE if kind == "both" else c.pick([HOST, ZONE])}]}
        if kind == "both":
            where["podAntiAffinity"] = {REQUIRED: [{**term, "topologyKey": HOST}]}
    if c.chance(0.6):
        for pod in c.pods:
            if c.chance(0.8) and pod["metadata"].get("labels"):
                pod["metadata"]["labels"]["app"] = "else"
    if c.chance(0.25):
        g.existing_anti_affinity(c, 1, 2)
    c.replicas(c.pending, 3, 8)


def seq_once(c):
    claims = [
        g.bound_claim(c, c.home, modes=[c.pick(["ReadWriteOncePod", "ReadWriteOncePod", "ReadWriteOnce"])])
        for _ in range(2)
    ]
    c.obj["_events"] = ["pvc"]
    for _ in range(c.r.randint(3, 6)):
        g.use_claim(c, c.new(), c.pick(claims))
        if c.chance(0.3):
            c.add_volume(c.pending, g.inline_source(c))
        c.ask(c.pending)
        if c.chance(0.4):
            c.event()


def seq_limits(c):
    c.obj["_events"] = ["csinode", "pvc"]
    for _ in range(c.r.randint(3, 6)):
        c.new()
        if not c.obj.get("csinodes"):
            g.csi_limits(c)
        else:
            for _ in range(c.pick([1, 1, 2])):
                name = g.bound_claim(
                    c, c.home, source={"csi": {"driver": c.pick(g.DRIVERS[:2]), "volumeHandle": c.unique("h")}}
                )
                g.use_claim(c, c.pending, name)
        c.ask(c.pending)
        if c.chance(0.35):
            c.event()


def seq_binding(c):
    """Volumes that are promised to one pod are not free for the next."""
    cls = g.storage_class(c, "local", provisioner="kubernetes.io/no-provisioner")
    dyn = g.storage_class(
        c,
        "dyn",
        provisioner=g.DRIVERS[0],
        allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": c.some(list(ZONES), 1, 2)}]}]
        if c.chance(0.5)
        else None,
    )
    c.obj["_events"] = ["pv", "pv", "pvc", "class"]
    for node in c.nodes:
        labels_of(node)[HOST] = node["metadata"]["name"]
        for _ in range(c.pick([0, 1, 1, 2])):
            where = {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node["metadata"]["name"]]}]}
                    ]
                }
            }
            g.pv(c, c.unique("pv"), source={"local": {"path": "/mnt"}}, cls=cls, gi=c.pick([5, 10, 20]), affinity=where)
    shared = g.pvc(c, c.unique("claim"), c.home, cls=c.pick([cls, dyn]), gi=2)
    for _ in range(c.r.randint(3, 7)):
        c.new()
        for _ in range(c.pick([1, 1, 2])):
            g.use_claim(
                c,
                c.pending,
                shared
                if c.chance(0.3)
                else g.pvc(c, c.unique("claim"), c.home, cls=c.pick([cls, cls, cls, dyn]), gi=c.pick([2, 5, 10])),
            )
        c.ask(c.pending)
        if c.chance(0.3):
            c.event()


def seq_devices(c):
    classes = device_classes(c)
    device_slices(c, rich=c.chance(0.4))
    c.obj["_events"] = ["bind", "bind", "claim"]
    shared = new_claim(c, c.home, [device_request(c, "r", classes, rich=False)])
    for _ in range(c.r.randint(3, 7)):
        c.new()
        name = (
            shared
            if c.chance(0.35)
            else new_claim(
                c, c.home, [device_request(c, f"r{i}", classes, rich=c.chance(0.3)) for i in range(c.pick([1, 1, 2]))]
            )
        )
        use_device(c, c.pending, name, name != shared and c.chance(0.3))
        c.ask(c.pending)
        if c.chance(0.45):
            c.event()


def seq_room(c):
    for node in c.nodes:
        node["status"]["allocatable"] |= {
            "cpu": c.pick(["1", "2", "4"]),
            "memory": c.pick(["2Gi", "4Gi"]),
            "pods": c.pick(["2", "4", "110"]),
        }
    c.new()
    if c.chance(0.35):
        c.pending["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    c.pending["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": c.pick(["300m", "700m"]), "memory": c.pick(["256Mi", "1Gi"])}
    }
    if c.chance(0.3):
        g.taints(c)
    c.replicas(c.pending, 4, 9)


def seq_gang(c):
    """Gangs (feature gate GenericWorkload, off by default): who enters the queue, who waits in Permit."""
    c.obj["config"] = {"gates": {"GenericWorkload": True}}
    need = c.r.randint(2, 4)
    policy = {"gang": {"minCount": need}} if c.chance(0.85) else {"basic": {}}
    group = {"metadata": {"name": "team", "namespace": c.home, "uid": "uid-team"}, "spec": {"schedulingPolicy": policy}}
    late = c.chance(0.3)
    if not late:
        c.add("podgroups", group)
    for i in range(need + c.r.randint(-1, 2)):
        c.new()
        c.pending["spec"]["schedulingGroup"] = {"podGroupName": "team"}
        if c.chance(0.4):
            g.node_affinity(c)
        c.ask(c.pending)
        if late and i == need // 2:
            c.put("podgroups", group)
        if c.chance(0.15):
            c.event()
    if "gang" in policy and c.chance(0.3):
        smaller = copy.deepcopy(group)
        smaller["spec"]["schedulingPolicy"]["gang"]["minCount"] = max(1, need - 1)
        c.put("podgroups", smaller)
    for name in c.waiting[:6]:
        c.obj["steps"].append({"again": name, "assume": {"nth": c.r.randint(0, 5)}})


def seq_mixed(c):
    """Different pods in one cluster, each with demands of its own."""
    c.obj["_events"] = ["pvc", "csinode"]
    known = [
        "near",
        "apart",
        "unwelcome",
        "spread",
        "inline",
        "crowded-once",
        "limits",
        "zone",
        "taints",
        "ports",
        "affinity-corners",
        "spread-corners",
        "cordon",
        "affinity",
        "features",
    ]
    for _ in range(c.r.randint(3, 6)):
        c.new()
        for theme in c.some(known, 1, 2):
            if not (theme == "limits" and c.obj.get("csinodes")):
                THEMES[theme][0](c)
        c.ask(c.pending)
        if c.chance(0.5):
            c.event()


SEQUENCES = {
    "seq-spread": (seq_spread, 8),
    "seq-apart": (seq_apart, 7),
    "seq-once": (seq_once, 3),
    "seq-limits": (seq_limits, 4),
    "seq-binding": (seq_binding, 6),
    "seq-devices": (seq_devices, 7),
    "seq-room": (seq_room, 3),
    "seq-gang": (seq_gang, 3),
    "seq-mixed": (seq_mixed, 7),
}


def make_sequence(seed, number, theme=None):
    r = random.Random(f"sequence/{seed}/{number}")
    theme = theme or r.choices(list(SEQUENCES), [w for _, w in SEQUENCES.values()])[0]
    c = Sequence(r, f"{theme}-{seed}-{number}")
    c.changed = {}
    SEQUENCES[theme][0](c)
    for _ in range(r.randint(1, 4)):
        c.event()
    for step in c.obj["steps"]:  # a running pod may have been given another namespace since
        if "_remove" in step:
            meta = step.pop("_remove")["metadata"]
            step["remove"] = f"Pod/{meta['namespace']}/{meta['name']}"
        elif "_of" in step:
            step["put"]["pods"][0]["metadata"]["namespace"] = step.pop("_of")["metadata"]["namespace"]
    c.obj["pods"] = [strip(p) for p in c.obj["pods"]]
    removed, out, steps = c.obj.get("_removed"), [], c.obj["steps"]
    gone = False
    for step in steps:  # a removed node must not come back, or be removed by a change
        if step.get("remove") == f"Node/{removed}":
            gone = True
        nodes = step.get("put", {}).get("nodes", [])
        pods = step.get("put", {}).get("pods", [])
        if gone and (
            any(n["metadata"]["name"] == removed for n in nodes)
            or any(p["spec"].get("nodeName") == removed for p in pods)
        ):
            continue
        out.append(step)
    c.obj["steps"] = out
    # A pod that is removed or ended must exist then, and only once.
    return clean(strip(c.obj))


# ---------------------------------------------------------------- scores


def score_pods(c):
    for _ in range(c.pick([0, 1, 2, 3])):
        g.add_pod_term(c, c.pending, c.pick(["podAffinity", "podAntiAffinity"]), required=False)
        c.pending["spec"]["affinity"][list(c.pending["spec"]["affinity"])[-1]][PREFERRED][-1]["weight"] = c.r.randint(
            1, 100
        )
    for pod in c.running(0, 4):
        kind = c.pick(["podAffinity", "podAntiAffinity"])
        g.add_pod_term(c, pod, kind, required=False)
        pod["spec"]["affinity"][kind][PREFERRED][-1]["weight"] = c.r.randint(1, 100)
    for pod in c.running(0, 2):
        g.add_pod_term(c, pod, "podAffinity")


def score_nodes(c):
    terms = [
        {
            "weight": c.r.randint(1, 100),
            "preference": {"matchExpressions": [g.node_requirement(c) for _ in range(c.pick([1, 1, 2]))]},
        }
        for _ in range(c.r.randint(1, 4))
    ]
    c.pending["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})[PREFERRED] = terms


def score_spread(c):
    g.spread(c)
    for one in c.pending["spec"]["topologySpreadConstraints"]:
        one["whenUnsatisfiable"] = "ScheduleAnyway"
        one.pop("minDomains", None)
    c.pending["spec"].pop("affinity", None)


def score_defaults(c):
    g.spread_defaults(c)
    if c.chance(0.7):
        c.obj.pop("config", None)
    for one in c.pending["spec"].get("topologySpreadConstraints", []):
        one["whenUnsatisfiable"] = "ScheduleAnyway"
        one.pop("minDomains", None)


def score_images(c):
    names = [
        "registry.example.com/app:v1",
        "registry.example.com/app:v2",
        "registry.example.com/base:latest",
        "registry.example.com/tool",
        "registry.example.com/other:v1",
    ]
    for node in c.nodes:
        chosen = c.some(names, 0, 4)
        node["status"]["images"] = [
            {
                "names": [n if ":" in n else n + ":latest"],
                "sizeBytes": c.pick([5, 40, 250, 700, 1400, 3000]) * 1024 * 1024 + c.r.randint(0, 999),
            }
            for n in chosen
        ]
    c.pending["spec"]["containers"] = [{"name": f"c{i}", "image": c.pick(names)} for i in range(c.r.randint(1, 3))]
    if c.chance(0.3):
        c.pending["spec"]["initContainers"] = [{"name": "i", "image": c.pick(names)}]


def score_taints(c):
    for node in c.nodes:
        taints = {
            (t["key"], t["effect"]): t
            for t in [
                {"key": c.pick(["dedicated", "gpu", "slow"]), "value": c.pick(["a", "b"]), "effect": "PreferNoSchedule"}
                for _ in range(c.r.randint(0, 3))
            ]
        }
        if taints:
            node["spec"]["taints"] = list(taints.values())
    if c.chance(0.6):
        c.pending["spec"]["tolerations"] = [
            clean(
                {
                    "key": c.pick(["dedicated", "gpu", "slow"]),
                    "operator": "Exists",
                    "effect": c.pick([None, "PreferNoSchedule", "NoSchedule"]),
                }
            )
        ]


def score_room(c):
    g.resources(c)
    c.pending["spec"]["containers"] = [
        {"name": "c", "resources": {"requests": {"cpu": c.pick(["100m", "500m"]), "memory": c.pick(["128Mi", "1Gi"])}}}
    ]
    (
        c.pending["spec"].pop("initContainers", None),
        c.pending["spec"].pop("resources", None),
        c.pending["spec"].pop("overhead", None),
        c.pending["spec"].pop("runtimeClassName", None),
    )


SCORES = {
    "score-pods": (score_pods, 8),
    "score-nodes": (score_nodes, 6),
    "score-spread": (score_spread, 8),
    "score-defaults": (score_defaults, 5),
    "score-images": (score_images, 5),
    "score-taints": (score_taints, 5),
    "score-room": (score_room, 4),
}


def make_score(seed, number, theme=None):
    r = random.Random(f"score/{seed}/{number}")
    theme = theme or r.choices(list(SCORES), [w for _, w in SCORES.values()])[0]
    over = r.choice(list(SCORES)) if r.random() < 0.45 else None
    if (
        over == theme
        or {over, theme} == {"score-spread", "score-defaults"}
        or (over and theme == "score-room")
        or {over, theme} == {"score-images", "score-room"}
    ):
        over = None
    c = g.Case(r, f"{theme}{'+' + over if over else ''}-{seed}-{number}")
    if over:
        SCORES[over][0](c)
    SCORES[theme][0](c)
    return clean(c.obj)


KINDS = {"single": (make_single, THEMES), "sequence": (make_sequence, SEQUENCES), "score": (make_score, SCORES)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, default="single")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--theme")
    args = parser.parse_args()
    make, themes = KINDS[args.kind]
    if args.theme and args.theme not in themes:
        parser.error("themes: " + ", ".join(themes))
    for number in range(args.count):
        sys.stdout.write(json.dumps(make(args.seed, number, args.theme), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
