"""docs/spec/k8shim.md, section 4: pods that demand to be near others, apart from them or spread, as kube-scheduler decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from kube.cluster import Object, comes

from . import Case, Cases, Place
from .placing import HOSTNAME, REQUIRED, pods_like
from .workloads import APPS, template

CASES = Cases()
ZONE: Final = "topology.kubernetes.io/zone"


def zones(k: Place, *names: str) -> list[str]:
    """Add a node for each name, in the zone that its first letter names, and return their full names."""
    return [k.node(name, labels={ZONE: f"{k.name}-{name[0]}"}) for name in names]


def near(k: Place, topology: str = ZONE) -> Object:
    """Return the affinity of a pod to pods of the case's application."""
    return {"podAffinity": {REQUIRED: pods_like(k.name, topology)}}


def apart(k: Place, topology: str = HOSTNAME, **more: Any) -> Object:
    """Return the anti-affinity of a pod to pods of the case's application."""
    (term,) = pods_like(k.name, topology)
    return {"podAntiAffinity": {REQUIRED: [{**term, **more}]}}


def spread(k: Place, topology: str = ZONE, **more: Any) -> list[Object]:
    """Return a spread of the pods of the case's application."""
    (term,) = pods_like(k.name, topology)
    return [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term, **more}]


def stateful(k: Place, replicas: int, **spec: Any) -> None:
    """Create a StatefulSet without claims, whose pods come at once."""
    labels = {"applicationId": k.name}
    pod = template(k, labels, **{**k.there, **spec})
    body = {"replicas": replicas, "podManagementPolicy": "Parallel", "serviceName": "s"}
    body |= {"selector": {"matchLabels": labels}, "template": pod}
    k.plane.create(APPS.format(k.name, "statefulsets"), {"metadata": {"name": "s"}, "spec": body})


def placed(k: Place) -> dict[str, int]:
    """Return how many pods run in each zone."""
    return dict(Counter(node.rpartition("-")[2][0] for node in k.pods().values() if node))


# What the pods of a StatefulSet demand; how many there are; how many may run in the zones a, of two nodes, and b, of one.
SETS: Final[list[tuple[str, Callable[[Place], Object], int, list[dict[str, int]]]]] = [
    ("to be apart by host", lambda k: {"affinity": apart(k)}, 5, [{"a": 2, "b": 1}]),
    ("to be apart by zone", lambda k: {"affinity": apart(k, ZONE)}, 4, [{"a": 1, "b": 1}]),
    ("to be spread over zones", lambda k: {"topologySpreadConstraints": spread(k)}, 6, [{"a": 3, "b": 3}]),
    (
        "to be spread over three zones",
        lambda k: {"topologySpreadConstraints": spread(k, minDomains=3)},
        6,
        [{"a": 1, "b": 1}],
    ),
    ("to be near each other", lambda k: {"affinity": near(k)}, 6, [{"a": 6}, {"b": 6}]),
    ("to be near each other and apart by host", lambda k: {"affinity": near(k) | apart(k)}, 6, [{"a": 2}, {"b": 1}]),
]


def _set_case(what: str, spec: Callable[[Place], Object], replicas: int, ends: list[dict[str, int]]) -> Case:
    def run(k: Place) -> None:
        zones(k, "a1", "a2", "b1")
        stateful(k, replicas, **spec(k))
        comes(lambda: len(k.pods()) == replicas and placed(k) in ends, told=k.told)
        k.waits(*(name for name, node in k.pods().items() if not node))

    return Case("4", f"a StatefulSet without claims whose pods demand {what}", "it is created", "they get it", run)


CASES += [_set_case(*row) for row in SETS]


@CASES("4", "a DaemonSet whose pods demand to be apart by zone", "it is created", "one pod of each zone runs")
def _(k: Place) -> None:
    zones(k, "a1", "a2", "b1")
    labels = {"applicationId": k.name}
    pod = template(k, labels, affinity=apart(k, ZONE), **k.there)
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    k.plane.create(APPS.format(k.name, "daemonsets"), {"metadata": {"name": "d"}, "spec": spec})
    comes(lambda: len(k.pods()) == 3 and placed(k) == {"a": 1, "b": 1}, told=k.told)
    k.waits(*(name for name, node in k.pods().items() if not node))


def _relabel_pod(k: Place) -> None:
    k.change("first", {"metadata": {"labels": {"role": "other"}}})


def _relabel_node(k: Place) -> None:
    k.change_node(f"{k.name}-b1", {"metadata": {"labels": {ZONE: f"{k.name}-b"}}})


def _relabel_namespace(k: Place) -> None:
    k.plane.patch(k.path, {"metadata": {"labels": {"team": "other"}}})


# What changes; how; which pods have the demand.
RELABELLED: Final[list[tuple[str, Callable[[Place], None], str]]] = [
    ("that one is relabelled", _relabel_pod, "p"),
    ("a node is relabelled", _relabel_node, "first p"),
    ("the namespace is relabelled", _relabel_namespace, "first p"),
    ("it is relabelled itself", lambda k: k.change("p", {"metadata": {"labels": {"role": "other"}}}), "first"),
    ("that one ends", lambda k: k.delete("first"), "first p"),
]


def _relabel_case(what: str, change: Callable[[Place], None], demanding: str) -> Case:
    """Return a case in which pods with the same role demand to be apart by zone, in namespaces of a team."""

    def run(k: Place) -> None:
        k.plane.patch(k.path, {"metadata": {"labels": {"team": k.name}}})
        zones(k, "a1")
        k.node("b1", labels={ZONE: f"{k.name}-a"})
        role = {"labelSelector": {"matchLabels": {"role": "one"}}}
        team = {"namespaceSelector": {"matchLabels": {"team": k.name}}}
        demand = apart(k, ZONE, **role, **team)

        def pod(name: str, **spec: Any) -> None:
            affinity = {"affinity": demand} if name in demanding.split() else {}
            k.pod(name, app=k.name, labels={"role": "one"}, **{**k.there, **affinity, **spec})

        pod("first", nodeSelector={HOSTNAME: f"{k.name}-a1"})
        k.bound("first")
        pod("p")
        k.waits("p")
        change(k)
        k.bound("p")

    return Case("4", f"a pod that another keeps off until {what}", "that happens", "it runs", run)


CASES += [_relabel_case(*row) for row in RELABELLED]


@CASES("4", "a pod that needs a feature of its node", "a node declares it", "it runs there")
def _(k: Place) -> None:
    k.node()
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    container = {"name": "c", "image": "none", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    k.pod(app=k.name, containers=[container], restartPolicy="Never", **k.there)
    k.waits("p")
    features = ["RestartAllContainersOnContainerExits"]
    k.change_node(f"{k.name}-n", {"status": {"declaredFeatures": features}}, "status")
    k.bound("p")
