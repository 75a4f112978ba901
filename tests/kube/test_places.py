"""Where pods are placed, and what wakes those that wait: no node that refuses a pod gets it, and none that takes it is missed."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from licorne.kube.objects import Pod
from seeds import some_seeds

from .places import Places, apart, ports

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_a_thousand_pods_that_exclude_each_other_in_one_call() -> None:
    places = Places()
    for number in range(10):
        places.node(f"n{number}")
    for number in range(1000):
        places.pod(f"p{number}", containers=ports(8080))
    bound = places.run()
    assert sorted(bound.values()) == sorted(places.nodes)
    assert not places.wrong(bound) and not places.missed()
    places.no_pod("p0")
    assert len(places.run()) == 1


@pytest.mark.parametrize("holder", ["ours", "of another scheduler"])
def test_the_end_of_the_pod_that_holds_a_port_wakes_what_waits(holder: str) -> None:
    places = Places()
    places.node("n")
    places.pod("holds", containers=ports(80, address="10.0.0.1"), node="n" if holder != "ours" else "")
    places.run()
    places.pod("waits", containers=ports(80))
    places.pod("other", containers=ports(81))
    assert places.run() == {"other": "n"}
    places.no_pod("other")
    assert places.run() == {}
    places.no_pod("holds")
    assert places.run() == {"waits": "n"}


def test_the_ports_of_a_sidecar_count_and_those_of_an_init_container_do_not() -> None:
    places = Places()
    places.node("n")
    [container] = ports(80)
    places.pod("init", initContainers=[{**container, "name": "i"}], node="n")
    places.pod("first", containers=ports(80))
    assert places.run() == {"first": "n"}
    places.pod("sidecar", initContainers=[{**container, "name": "i", "restartPolicy": "Always"}])
    assert places.run() == {}


# what a running pod demands, the waiting pod's labels and namespace, and the nodes that it is kept off
DEMANDS: list[tuple[dict[str, Any], dict[str, str], str, set[str]]] = [
    (apart({"app": "a"}), {"app": "a"}, "ns", {"n1"}),
    (apart({"app": "a"}), {"app": "b"}, "ns", set()),
    (apart({"app": "a"}, ZONE), {"app": "a"}, "ns", {"n1", "n2"}),
    (apart({"app": "a"}, "no-such-label"), {"app": "a"}, "ns", set()),
    (apart({"app": "a"}), {"app": "a"}, "far", set()),
    (apart({"app": "a"}, namespaces=["far"]), {"app": "a"}, "far", {"n1"}),
    (apart({"app": "a"}, namespaceSelector={}), {"app": "a"}, "far", {"n1"}),
    (apart({"app": "a"}, namespaceSelector={"matchLabels": {"team": "x"}}), {"app": "a"}, "far", {"n1"}),
    (apart({"app": "a"}, namespaceSelector={"matchLabels": {"team": "y"}}), {"app": "a"}, "far", set()),
    (apart({}), {}, "ns", {"n1"}),  # an empty selector means every pod
    (apart(None), {}, "ns", set()),  # none means no pod
]


@pytest.mark.parametrize(("demand", "labels", "namespace", "refused"), DEMANDS)
@pytest.mark.parametrize("first", ["the demand", "the pod that waits"])
def test_what_a_running_pod_demands_keeps_others_off(
    demand: dict[str, Any], labels: dict[str, str], namespace: str, refused: set[str], first: str
) -> None:
    places = Places()
    places.namespace("far", team="x")
    for name, zone in (("n1", "z1"), ("n2", "z1"), ("n3", "z2")):
        places.node(name, labels={ZONE: zone}, unschedulable=True)
    if first == "the demand":
        places.pod("demands", affinity=demand, node="n1")
        places.run()
    places.pod("waits", labels=labels, namespace=namespace)
    assert places.run() == {}
    if first != "the demand":
        places.pod("demands", affinity=demand, node="n1")
        places.run()
    for name in [*sorted(refused), *sorted({"n1", "n2", "n3"} - refused)]:
        places.node(name, labels={ZONE: "z2" if name == "n3" else "z1"})
        bound = places.run()
        if bound or name not in refused:
            assert bound == {"waits": name} and name not in refused
            return
    places.no_pod("demands")
    assert "waits" in places.run()


def test_the_end_of_the_last_pod_that_demands_wakes_what_waits() -> None:
    places = Places()
    places.node("n1", labels={ZONE: "z"})
    places.node("n2", labels={ZONE: "z"})
    for number in range(2):
        places.pod(f"d{number}", affinity=apart({"app": "a"}, ZONE), node=f"n{number + 1}")
    places.pod("waits", labels={"app": "a"})
    assert places.run() == {}
    places.no_pod("d0")
    assert places.run() == {}
    places.no_pod("d1")
    assert "waits" in places.run()


def test_a_demand_that_ends_begins_and_ends_before_anything_is_told_wakes_what_waits() -> None:
    places = Places()
    places.node("n1", labels={ZONE: "z"})
    places.pod("d0", affinity=apart({"app": "a"}, ZONE), node="n1")
    places.pod("waits", labels={"app": "a"})
    assert places.run() == {}
    places.no_pod("d0")
    places.pod("d1", affinity=apart({"app": "a"}, ZONE), node="n1")
    places.no_pod("d1")
    assert places.run() == {"waits": "n1"}


def kept_off() -> Places:
    """Return a cluster of one node, which a running pod's anti-affinity to pods `app=a` of team x keeps the pod `waits` off."""
    places = Places()
    places.namespace("ns", team="x")
    places.node("n1", labels={ZONE: "z"})
    demand = apart({"app": "a"}, ZONE, namespaceSelector={"matchLabels": {"team": "x"}})
    places.pod("demands", affinity=demand, node="n1")
    places.pod("waits", labels={"app": "a"})
    return places


def test_a_pod_that_is_asked_for_again_twice_before_that_is_told_is_free_of_demands_that_ended() -> None:
    places = kept_off()
    assert places.run() == {}
    places.no_pod("demands")
    for team in "yz":
        places.namespace("ns", team=team)
    assert places.run() == {"waits": "n1"}


def test_labels_that_change_are_heeded() -> None:
    places = kept_off()
    places.pod("also", labels={"app": "a"})
    assert places.run() == {}
    places.pod("waits", labels={"app": "b"})  # of the pod
    assert places.run() == {"waits": "n1"}
    places.node("n2", labels={ZONE: "z"}, unschedulable=True)
    assert places.run() == {}
    places.namespace("ns", team="y")  # of the namespace
    assert places.run() == {"also": "n1"}
    places.namespace("ns", team="x")
    places.node("n1", labels={ZONE: "z"}, unschedulable=True)
    places.pod("third", labels={"app": "a"})
    places.node("n2", labels={ZONE: "z"})
    assert places.run() == {}
    places.node("n2", labels={ZONE: "other"})  # of a node
    assert places.run() == {"third": "n2"}


def test_a_demand_about_a_large_zone_changes_no_node() -> None:
    places = Places()
    for number in range(100):
        places.node(f"n{number:02}", labels={ZONE: f"z{number % 2}"})
    places.pod("demands", affinity=apart({"app": "a"}, ZONE), node="n00")
    places.run()
    partition = places.api.cluster.partition("rm")
    labels = [node.labels for node in partition.nodes.values()]
    for number in range(60):
        places.pod(f"w{number:02}", labels={"app": "a"})
    bound = places.run()
    assert {int(node[1:]) % 2 for node in bound.values()} == {1} and len(bound) == 60
    assert all(node.labels is before for node, before in zip(partition.nodes.values(), labels, strict=True))


@pytest.mark.parametrize("amount", [str(1 << 62), str(1 << 63), "1e30"])
def test_a_pod_of_another_scheduler_with_an_amount_beyond_all_bounds_takes_its_other_amounts(amount: str) -> None:
    places = Places()
    places.node("n", allocatable={"cpu": "4"})
    for name, node in (("of another", "n"), ("waits", "")):
        requests = {"cpu": "3", **({"example.com/odd": amount} if node else {})}
        places.pod(name, node=node, containers=[{"name": "c", "resources": {"requests": requests}}])
    assert places.run() == {}
    places.no_pod("of another")
    assert places.run() == {"waits": "n"}


@pytest.mark.parametrize(
    ("resource", "amount"), [("cpu", "9223372036854775"), ("cpu", "1e30"), ("memory", "8E"), ("memory", "1e30")]
)
def test_a_pod_of_another_scheduler_with_an_amount_beyond_all_bounds_fills_its_node(resource: str, amount: str) -> None:
    places = Places()
    places.node("n")
    for name, node in (("of another", "n"), ("one more", "n"), ("waits", "")):
        requests = {resource: amount if node else "1"}
        places.pod(name, node=node, containers=[{"name": "c", "resources": {"requests": requests}}])
    assert places.run() == {}
    places.no_pod("one more")
    assert places.run() == {}
    places.no_pod("of another")
    assert places.run() == {"waits": "n"}


def test_a_toleration_that_is_added_is_heeded() -> None:
    places = Places()
    places.node("n", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    places.pod("waits")
    assert places.run() == {}
    places.pod("waits", tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert places.run() == {"waits": "n"}


class Drawn:
    """Random objects of a small vocabulary, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.places = Places({} if seed % 2 else {"reservation.enabled": "false"})
        self.number = 0
        for name in ("ns", "far"):
            self.places.namespace(name, **self.some_labels("team"))

    def some_labels(self, key: str) -> dict[str, str]:
        return {key: self.rng.choice("xy")} if self.rng.random() < 0.7 else {}

    def step(self) -> None:
        rng, places = self.rng, self.places
        what = rng.random()
        if what < 0.12 or not places.nodes:
            self.change_node(f"n{rng.randrange(5)}")
        elif what < 0.15:
            places.no_node(rng.choice(sorted(places.nodes)))
        elif what < 0.18:
            places.namespace(rng.choice(["ns", "far"]), **self.some_labels("team"))
        elif what < 0.58 or not places.pods:
            self.new_pod()
        elif what < 0.63:
            self.change_labels()
        else:
            places.no_pod(rng.choice(sorted(places.pods)))

    def change_node(self, name: str) -> None:
        rng = self.rng
        taints = [{"key": "k", "effect": rng.choice(["NoSchedule", "NoExecute"])}] if rng.random() < 0.3 else []
        more = {"unschedulable": True} if rng.random() < 0.15 else {}
        allocatable = {"cpu": rng.choice(["1", "2500m", "8"]), "pods": rng.choice(["2", "4", "100"])}
        self.places.node(name, taints=taints, labels=self.some_labels(ZONE), allocatable=allocatable, **more)

    def new_pod(self) -> None:
        rng = self.rng
        self.number += 1
        spec: dict[str, Any] = {"containers": [{"name": "c"}]}
        if rng.random() < 0.5:
            spec["containers"] = ports(rng.choice([80, 80, 81]), address=rng.choice(["", "", "10.0.0.1", "10.0.0.2"]))
        if rng.random() < 0.6:
            spec["containers"][0]["resources"] = {"requests": {"cpu": rng.choice(["300m", "1", "1500500u"])}}
        if rng.random() < 0.4:
            spec["tolerations"] = [rng.choice([{"operator": "Exists"}, {"key": "k", "effect": "NoSchedule"}])]
        if rng.random() < 0.3:
            spec["nodeSelector"] = {ZONE: rng.choice("xy")}
        node = rng.choice(sorted(self.places.nodes)) if rng.random() < 0.35 else ""
        if node and rng.random() < 0.7:
            demands: list[dict[str, Any]] = [
                {},
                {"namespaceSelector": {"matchLabels": {"team": "x"}}},
                {"namespaces": ["far"]},
            ]
            more = rng.choice(demands)
            key = rng.choice([ZONE, "kubernetes.io/hostname"])
            spec["affinity"] = apart(rng.choice([{"app": "x"}, {"app": "y"}, {}]), key, **more)
        elif rng.random() < 0.4:
            self.demand(spec)
        namespace = rng.choice(["ns", "far"])
        self.places.pod(f"p{self.number}", labels=self.some_labels("app"), namespace=namespace, node=node, **spec)

    def demand(self, spec: dict[str, Any]) -> None:
        """Let a pod demand others near, apart, or spread: perhaps those that are like it."""
        rng = self.rng
        term: dict[str, Any] = {"topologyKey": rng.choice([ZONE, "kubernetes.io/hostname"])}
        term["labelSelector"] = rng.choice([{"matchLabels": {"app": "x"}}, {"matchLabels": {"app": "y"}}, {}])
        what = rng.choice(["podAffinity", "podAntiAffinity", "spread"])
        if what == "spread":
            policies: list[dict[str, Any]] = [{}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}]
            term |= {"maxSkew": rng.choice([1, 2]), "whenUnsatisfiable": "DoNotSchedule"}
            term |= rng.choice([*policies, {"minDomains": 2}])
            spec["topologySpreadConstraints"] = [term]
        else:
            term |= rng.choice(
                [{}, {"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"namespaces": ["far", "ns"]}]
            )
            spec["affinity"] = {what: {REQUIRED: [term]}}

    def change_labels(self) -> None:
        name = self.rng.choice(sorted(self.places.pods))
        pod = self.places.pods[name]
        pod["metadata"]["labels"] = self.some_labels("app")
        self.places.show(name)


@pytest.mark.parametrize("seed", some_seeds("LICORNE_PLACES_SEED", 12))
def test_a_quiet_cluster_is_as_trying_everything_again_leaves_it(seed: int) -> None:
    """Pods, nodes, namespaces and labels come, change and go; after each step brute force finds nothing to mend."""
    drawn = Drawn(seed)
    waited = placed = 0
    for _ in range(150):
        for _ in range(drawn.rng.randint(1, 8)):
            drawn.step()
        bound = drawn.places.run()
        assert not drawn.places.missed(), f"seed {seed}"
        assert not drawn.places.wrong(bound), f"seed {seed}"
        waited += len(drawn.places.waiting())
        placed += len(bound)
    assert waited > 10 and placed > 10, "the cluster was never full, or always"


def test_nothing_is_kept_of_nodes_that_are_gone() -> None:
    places = Places()
    places.pod("elsewhere", node="gone")
    for number in range(10):
        places.node(f"n{number}")
        places.pod(f"p{number}", node=f"n{number}")
        places.no_node(f"n{number}")
        places.no_pod(f"p{number}")
        places.node(f"m{number}")
        places.no_node(f"m{number}")
    assert places.manager.records.awaiting_node == {"gone": {"elsewhere": None}}


def test_a_pod_that_somebody_bound_to_an_unknown_node_is_asked_for_no_more() -> None:
    places = Places()
    places.pod("p")
    assert places.run() == {}
    places.pods["p"]["spec"]["nodeName"] = "gone"
    places.manager.lifecycle.pod_seen(msgspec.convert(places.pods["p"], Pod))
    places.no_pod("p")
    places.node("n1")
    places.run()
    node = places.api.cluster.partition("rm").nodes["n1"]
    assert not node.allocations
