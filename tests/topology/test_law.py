"""Terms against a count from scratch: after each step every node's verdict about every pending pod is what a naive reading says."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, config
from licorne.core.nodes.preferences import scores
from licorne.core.nodes.terms import PodLabels, PodTerms, parse_pod, parse_terms
from licorne.si.messages import Allocation, NewAllocation, NodeAction

KEYS = ("host", "zone")
WEB, DB = ({"matchLabels": {"app": app}} for app in ("web", "db"))
SELECTORS: tuple[dict[str, Any] | None, ...] = (
    WEB,
    DB,
    {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    {},
    None,
)
term = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS), "labelSelector": st.sampled_from(SELECTORS)},
    optional={
        "namespaces": st.just(["a", "b"]),
        "namespaceSelector": st.sampled_from(({}, {"matchLabels": {"x": "y"}})),
    },
)
constraint = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS), "labelSelector": st.sampled_from(SELECTORS), "maxSkew": st.integers(1, 2)},
    optional={
        "minDomains": st.integers(1, 3),
        "nodeAffinityPolicy": st.just("Ignore"),
        "nodeTaintsPolicy": st.just("Honor"),
    },
)
pods = st.fixed_dictionaries(
    {"namespace": st.sampled_from("ab"), "labels": st.sampled_from(({}, {"app": "web"}, {"app": "db"}))},
    optional={"namespaceLabels": st.sampled_from(({}, {"x": "y"})), "terminating": st.just(True)},
)
weighted = st.fixed_dictionaries({"weight": st.integers(1, 3), "term": term})
preferred = st.fixed_dictionaries(
    {"spreadIsDefault": st.booleans()},
    optional={
        "affinity": st.lists(weighted, max_size=2),
        "antiAffinity": st.lists(weighted, max_size=2),
        "spread": st.lists(constraint, max_size=2),
    },
)
mark = st.fixed_dictionaries({"topologyKey": st.sampled_from(("", "host")), "name": st.sampled_from("mn")})
terms = st.fixed_dictionaries(
    {},
    optional={
        "holds": st.lists(mark, max_size=2),
        "unless": st.lists(mark, max_size=2),
        "attached": st.fixed_dictionaries({"d": st.lists(st.sampled_from("uvw"), max_size=2)}),
        "affinity": st.lists(term, max_size=2),
        "antiAffinity": st.lists(term, max_size=2),
        "spread": st.lists(constraint, max_size=2),
        "preferred": preferred,
    },
)
nodes = st.fixed_dictionaries(
    {},
    optional={
        "zone": st.sampled_from("xy"),
        "host": st.sampled_from("pqr"),
        "taint": st.just("t"),
        "csi-driver:d": st.sampled_from(("0", "1", "2", "")),
    },
)
names = st.sampled_from(("n1", "n2", "n3"))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), pods, terms, st.booleans()),
        st.tuples(st.just("foreign"), pods, terms, names),
        st.tuples(st.just("again"), st.integers(0, 9), pods, terms),
        st.tuples(st.just("end"), st.integers(0, 9)),
        st.tuples(st.just("node"), names, nodes),
        st.tuples(st.just("remove"), names),
    ),
    max_size=14,
)


@dataclass
class Pod:
    key: str
    pod: PodLabels
    terms: PodTerms
    pinned: bool  # it may run only on nodes in zone x
    node: str = ""
    foreign: bool = False


class Naive:
    """What nodes and pods there are, and the rules of docs/spec/scheduler-interface.md, section 9, counted from scratch."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.pods: dict[str, Pod] = {}

    def refusal(self, pod: Pod, name: str) -> str:
        labels = self.nodes[name]
        if pod.pinned and labels.get("zone") != "x":
            return "static"
        if "taint" in labels:
            return "static"
        running = [(one, self.nodes[one.node]) for one in self.pods.values() if one.node in self.nodes]
        uneven = self.uneven(pod, labels, running)
        if uneven.startswith("topology spread: no label"):
            return uneven
        return self.by_name(pod, name, running) or uneven or self.apart(pod, labels, running)

    def by_name(self, pod: Pod, name: str, running: list[tuple[Pod, dict[str, str]]]) -> str:
        labels = self.nodes[name]
        for key, held in pod.terms.unless:
            there = [p for p, of in running if not key or (key in labels and of.get(key) == labels[key])]
            if any((key, held) in p.terms.holds for p in there):
                return "disk in use" if key else "claim in use"
        here = [one for p, _ in running if p.node == name for one in p.terms.attached]
        for driver, names in pod.terms.attached:
            limit = labels.get(f"csi-driver:{driver}", "")
            used = {each for one in here if one.driver == driver for each in one.names}
            if limit and not {*names} <= used and len(used | {*names}) > int(limit):
                return f"volume limit {driver}"
        return ""

    def uneven(self, pod: Pod, labels: dict[str, str], running: list[tuple[Pod, dict[str, str]]]) -> str:
        keys = {one.topology_key for one in pod.terms.spread}
        for one in pod.terms.spread:
            key = one.topology_key
            if key not in labels:
                return f"topology spread: no label {key}"
            counts: dict[str, int] = {}
            counted = [name for name, of in self.nodes.items() if self.counts(one, pod, of, keys)]
            for name in counted:
                here = [p for p, _ in running if p.node == name and one.counts(p.pod)]
                value = self.nodes[name][key]
                counts[value] = counts.get(value, 0) + len(here)
            least = min(counts.values(), default=0) if len(counts) >= one.min_domains else 0
            if counts.get(labels[key], 0) + one.is_self(pod.pod) - least > one.max_skew:
                return "topology spread"
        return ""

    @staticmethod
    def counts(one: Any, pod: Pod, labels: dict[str, str], keys: set[str]) -> bool:
        if not keys <= labels.keys() or (one.honor_taints and "taint" in labels):
            return False
        return not (one.honor_affinity and pod.pinned and labels.get("zone") != "x")

    @staticmethod
    def apart(pod: Pod, labels: dict[str, str], running: list[tuple[Pod, dict[str, str]]]) -> str:
        wanted = pod.terms.affinity
        mates = [of for p, of in running if all(t.selects(p.pod) for t in wanted)]
        first = all(t.selects(pod.pod) for t in wanted) and not any(
            t.topology_key in of for of in mates for t in wanted
        )
        for one in wanted:
            key = one.topology_key
            if key not in labels or not (first or any(of.get(key) == labels[key] for of in mates)):
                return "pod affinity"

        def same(key: str, of: dict[str, str]) -> bool:
            return key in labels and of.get(key) == labels[key]

        if any(same(t.topology_key, of) and t.selects(p.pod) for t in pod.terms.anti_affinity for p, of in running):
            return "pod anti-affinity"
        held = [(t, of) for p, of in running for t in p.terms.anti_affinity]
        return (
            "anti-affinity of running pods"
            if any(same(t.topology_key, of) and t.selects(pod.pod, runs=True) for t, of in held)
            else ""
        )

    def liking(self, pod: Pod, name: str) -> int:
        """The raw score of InterPodAffinity."""
        labels = self.nodes[name]
        found = 0
        for one in self.pods.values():
            of = self.nodes.get(one.node, {})
            pairs = [(w, t) for w, t in pod.terms.preferred.terms if t.selects(one.pod)]
            held = [*one.terms.preferred.terms, *((1, t) for t in one.terms.affinity)]
            pairs += [(w, t) for w, t in held if t.selects(pod.pod, runs=True)]
            found += sum(
                w
                for w, t in pairs
                if t.topology_key in labels.keys() & of and of[t.topology_key] == labels[t.topology_key]
            )
        return found

    def spreading(self, pod: Pod, name: str) -> int:
        """The raw score of PodTopologySpread, where all nodes are compared; no key is `kubernetes.io/hostname`."""
        wishes = pod.terms.preferred.spread
        keys = set() if pod.terms.preferred.spread_is_default else {one.topology_key for one in wishes}
        compared = [of for of in self.nodes.values() if keys <= of.keys()]
        if self.nodes[name] not in compared:
            return 0
        found = 0.0
        for one in wishes:
            key = one.topology_key
            value = self.nodes[name].get(key)
            if value is not None:
                counted = [
                    each for each, of in self.nodes.items() if of.get(key) == value and self.counts(one, pod, of, keys)
                ]
                number = sum(p.node in counted and one.counts(p.pod) for p in self.pods.values())
                found += number * math.log(len({of.get(key, "") for of in compared}) + 2) + one.max_skew - 1
        return math.floor(found + 0.5)


class Run:
    def __init__(self) -> None:
        self.bench = Bench(config("a"), settings={"reservation.enabled": "false"})
        self.bench.app("x")
        self.naive = Naive()
        self.number = 0

    def step(self, kind: str, *about: Any) -> None:
        getattr(self, kind)(*about)
        self.check()
        start = len(self.bench.outputs)
        self.bench.run()
        for one in self.bench.outputs[start:]:
            if isinstance(one, NewAllocation):
                self.naive.pods[one.key].node = one.node_id
        self.check()
        for pod in self.naive.pods.values():  # nothing more can be placed
            assert pod.node or all(self.naive.refusal(pod, name) for name in self.naive.nodes), pod

    def check(self) -> None:
        for pod in self.naive.pods.values():
            if not pod.node:
                ask = self.bench.partition.applications["x"].asks[pod.key]
                for name, node in self.bench.partition.nodes.items():
                    verdict = ask.shape.need.mismatch(node)
                    verdict = "static" if verdict.startswith(("nodeSelector", "taint")) else verdict
                    assert verdict == self.naive.refusal(pod, name), (pod, name)
                self.check_scores(pod)

    def check_scores(self, pod: Pod) -> None:
        partition = self.bench.partition
        need = partition.applications["x"].asks[pod.key].shape.need
        nodes = partition.index.by_id
        found = scores(partition.needs.topology, need, nodes) if nodes else {}
        for plugin, naive in (("InterPodAffinity", self.naive.liking), ("PodTopologySpread", self.naive.spreading)):
            wanted = [naive(pod, node.id) for node in nodes]
            assert (found[plugin][0] if plugin in found else [0] * len(nodes)) == wanted, (plugin, pod)
            assert not any(wanted) or need.prefers

    def say(
        self,
        key: str,
        pod: dict[str, Any],
        terms: dict[str, Any],
        *,
        pinned: bool = False,
        node: str = "",
        foreign: bool = False,
    ) -> None:
        tags = {"licorne/pod": json.dumps(pod), "licorne/pod-terms": json.dumps(terms)}
        if pinned:
            tags["licorne/node-constraints"] = '{"nodeSelector": {"zone": "x"}}'
        if foreign:
            tags["foreign"] = "default"
        self.bench.send(
            Allocation(key=key, application_id="" if foreign else "x", resource={"vcore": 1}, node_id=node, tags=tags)
        )
        labels = parse_pod(tags["licorne/pod"])
        self.naive.pods[key] = Pod(
            key, labels, parse_terms(tags["licorne/pod-terms"], labels.namespace), pinned, node, foreign
        )

    def ask(self, pod: dict[str, Any], terms: dict[str, Any], pinned: bool) -> None:
        self.number += 1
        self.say(f"p{self.number}", pod, terms, pinned=pinned)

    def foreign(self, pod: dict[str, Any], terms: dict[str, Any], node: str) -> None:
        if node in self.naive.nodes:
            self.number += 1
            self.say(f"f{self.number}", pod, terms, node=node, foreign=True)

    def again(self, at: int, pod: dict[str, Any], terms: dict[str, Any]) -> None:
        if self.naive.pods:
            known = [*self.naive.pods.values()][at % len(self.naive.pods)]
            self.say(known.key, pod, terms, pinned=known.pinned, node=known.node, foreign=known.foreign)

    def end(self, at: int) -> None:
        if self.naive.pods:
            known = [*self.naive.pods.values()][at % len(self.naive.pods)]
            self.bench.release("" if known.foreign else "x", known.key)
            del self.naive.pods[known.key]

    def node(self, name: str, labels: dict[str, str]) -> None:
        attributes = {f"label/{key}": value for key, value in labels.items() if key != "taint"}
        if "taint" in labels:
            attributes["taints"] = '[{"key": "t", "effect": "NoSchedule"}]'
        action = NodeAction.UPDATE if name in self.naive.nodes else NodeAction.CREATE
        self.bench.node(name, action, attributes=attributes, vcore=100)
        self.naive.nodes[name] = labels

    def remove(self, name: str) -> None:
        if self.naive.nodes.pop(name, None) is not None:
            self.bench.node(name, NodeAction.DECOMISSION)
            self.naive.pods = {key: pod for key, pod in self.naive.pods.items() if pod.node != name}


@given(steps, nodes, nodes)
@examples(60)
def test_verdicts_are_those_of_a_count_from_scratch(
    what: list[tuple[Any, ...]], one: dict[str, str], other: dict[str, str]
) -> None:
    run = Run()
    run.node("n1", one)
    run.node("n2", other)
    for kind, *about in what:
        run.step(kind, *about)
    restored = Bench(config("a"), settings={"reservation.enabled": "false"})
    restored.api = type(run.bench.api)(clock=lambda: int(run.bench.seconds * 1e9))
    restored.api.restore_checkpoint(run.bench.api.checkpoint())
    restored.api.validate()
    for pod in [*run.naive.pods.values()]:
        run.bench.release("" if pod.foreign else "x", pod.key)
    run.bench.run()
    topology = run.bench.partition.needs.topology
    assert not (
        topology.counts
        or topology.classes
        or topology.keys
        or topology.spreads
        or topology._anywhere
        or topology._counts_by
    )
