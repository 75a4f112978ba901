"""What preferences decide among the nodes that take a pod: worked examples (docs/spec/kube-scheduler.md, section 5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.bench import Bench, config
from gangs_atomic.helpers import GangBench, task_groups
from licorne.answers.weighed import Points, Weighed, weighed
from licorne.core.nodes.images import MIB
from licorne.core.nodes.preferences import CANDIDATES_MAX, ranked
from licorne.si.messages import NodeAction

from .helpers import cluster, node_labels, run_all, tags

WEB = tags("app=web")
DB = "app=db"
SOFT = '[{"key": "old", "effect": "PreferNoSchedule"}]'
TOLERATES = [{"key": "old", "operator": "Exists"}]


def wish(weight: int, key: str, *values: str) -> dict[str, Any]:
    return {"weight": weight, "term": [{"key": key, "operator": "In", "values": [*values]}]}


def on(name: str) -> dict[str, Any]:
    return {"nodeSelector": {"host": name}}


NEAR_BY_HOST = {"affinity": "host app=web"}
APART_BY_ZONE = {"antiAffinity": "zone app=web"}
SPREAD = {"spread": "zone app=web"}


def test_why_says_what_the_preferences_of_a_running_pod_weigh() -> None:
    """Node order gives 100 points less the use in percent: n2 is empty without the pod itself."""
    bench = cluster("n1:a n2:b n3:b")
    pods = [
        tags("app=web", **on("n1")),
        tags(DB, preferred={**NEAR_BY_HOST, "nodes": [wish(1, "zone", "b")]}),
        tags(DB),
    ]
    assert run_all(bench, *zip("wpx", pods, strict=True)) == "w@n1 p@n2 x@n3"
    by_key = {alloc.key: alloc for alloc in bench.partition.applications["x"].allocations.values()}
    assert weighed(bench.partition, by_key["p"]) == Weighed(
        Points("n2", 300, {"NodeAffinity": 200, "InterPodAffinity": 0, "node order": 100}),
        Points("n1", 290, {"NodeAffinity": 0, "InterPodAffinity": 200, "node order": 90}),
        3,
    )
    assert weighed(bench.partition, by_key["x"]) is None


@pytest.mark.parametrize(
    ("nodes", "pods", "placed"),
    [
        # Labels of nodes: the weights of all terms that match.
        ("n1:a n2:b", [tags(DB, preferred={"nodes": [wish(1, "zone", "b")]})], "p0@n2"),
        ("n1:a n2:b n3:c", [tags(DB, preferred={"nodes": [wish(2, "zone", "b"), wish(1, "zone", "c"), wish(2, "host", "n3")]})], "p0@n3"),
        ("n1:a", [tags(DB, preferred={"nodes": [wish(1, "zone", "b")]})], "p0@n1"),
        # Pods: its own terms, and those of running pods, of which required affinity counts as well.
        ("n1:a n2:b", [tags("app=web", **on("n1")), tags(DB, preferred=NEAR_BY_HOST)], "p0@n1 p1@n1"),
        ("n1:a n2:a n3:b", [WEB, tags(DB, preferred=APART_BY_ZONE)], "p0@n1 p1@n3"),
        ("n1:a n2:b", [tags(DB, preferred=NEAR_BY_HOST), WEB], "p0@n1 p1@n1"),
        ("n1:a n2:a n3:b", [tags(DB, preferred=APART_BY_ZONE), WEB], "p0@n1 p1@n3"),
        ("n1:a n2:b n3:a", [tags("app=web", near="zone app=web"), WEB], "p0@n1 p1@n3"),
        ("n1:a n2:b n3:a", [tags("app=web", near="zone app=web"), tags(DB)], "p0@n1 p1@n2"),
        # Spread: domains are those of the nodes that are compared; a node without a label that is not the default's comes last.
        ("n1:a n2:a n3:b", [tags("app=web", preferred=SPREAD)] * 3, "p0@n1 p1@n3 p2@n2"),
        ("n1 n2:b", [tags("app=web", preferred=SPREAD)] * 2, "p0@n2 p1@n2"),
        ("n1 n2:b", [tags("app=web", preferred={**SPREAD, "spreadIsDefault": True})] * 2, "p0@n1 p1@n2"),
    ],
)  # fmt: skip
def test_where_pods_had_better_be(nodes: str, pods: list[dict[str, str]], placed: str) -> None:
    bench = cluster(nodes)
    assert run_all(bench, *((f"p{number}", of) for number, of in enumerate(pods))) == placed
    found = weighed(bench.partition, list(bench.partition.applications["x"].allocations.values())[-1])
    assert found is None or found.next is None or found.chosen.points >= found.next.points
    bench.api.validate()


def test_a_taint_that_excludes_nothing_is_avoided_by_all_that_do_not_tolerate_it() -> None:
    bench = cluster("n1 n2 n3")
    bench.node("n1", NodeAction.UPDATE, attributes={**node_labels("n1"), "taints": SOFT})
    plain: dict[str, str] = {}
    tolerates = {"licorne/node-constraints": json.dumps({"tolerations": TOLERATES})}
    assert run_all(bench, ("a", plain), ("b", tolerates), ("c", WEB)) == "a@n2 b@n1 c@n3"
    bench.node("n1", NodeAction.UPDATE, attributes=node_labels("n1"))
    bench.release("x", "b")
    bench.run()
    assert run_all(bench, ("d", plain)) == "d@n1"
    assert not bench.partition.needs.plain.prefers


def test_images_draw_pods_where_they_are() -> None:
    """The size is that of the first node by id; half a gigabyte on one node of two counts as a quarter."""
    bench = cluster("n1 n2")
    has = {"a:1": 500 * MIB}
    bench.node("n2", NodeAction.UPDATE, attributes={**node_labels("n2"), "licorne/images": json.dumps(has)})
    wants = {"images": ["a:1"]}
    assert run_all(bench, ("p", tags(DB, preferred=wants))) == "p@n2"
    topology = bench.partition.needs.topology
    nodes = [bench.partition.nodes[name] for name in ("n1", "n2")]
    assert topology.images.points(("a:1",), nodes) == [0, 100 * (250 - 23) // (1000 - 23)]
    both = {**node_labels("n1"), "licorne/images": json.dumps({"a:1": 100 * MIB})}
    bench.node("n1", NodeAction.UPDATE, attributes=both)
    assert topology.images.points(("a:1", "b:1"), nodes) == [100 * (100 - 23) // (2000 - 23)] * 2
    assert not topology.images.matter(("a:1",))
    for name in ("n1", "n2"):
        bench.node(name, NodeAction.DECOMISSION)
    assert not topology.images.known


def test_a_node_with_images_that_cannot_be_read_is_refused() -> None:
    bench = cluster("n1")
    for text in ("[]", '{"a": -1}', '{"a": true}', "{"):
        bench.node("n2", attributes={"licorne/images": text}, vcore=10)
        assert "licorne/images" in str(bench.outputs[-1])
    assert [*bench.partition.nodes] == ["n1"]


@pytest.mark.parametrize(("mode", "node"), [("weighed", "n2"), ("first", "n3"), ("off", "n1")])
def test_how_preferences_and_node_order_go_together(mode: str, node: str) -> None:
    """The third node is liked most, and the second almost as much and less used; the first is liked by nobody."""
    bench = cluster("n1:a n2:b n3:c", {"scheduler.preferences": mode})
    assert run_all(bench, *((f"k{number}", tags("app=x", **on("n3"))) for number in range(3))).count("@n3") == 3
    pod = tags(DB, preferred={"nodes": [wish(90, "zone", "b"), wish(100, "zone", "c")]})
    assert run_all(bench, ("p", pod)) == f"p@{node}"


def test_an_ask_that_no_preference_is_about_is_placed_as_if_there_were_none() -> None:
    bench = cluster("n1:a n2:b")
    run_all(bench, ("a", tags("app=web", preferred=NEAR_BY_HOST)))
    for key, of in (("b", tags("app=no")), ("c", {})):
        bench.ask("x", key, tags=of, vcore=100)
        assert not bench.partition.applications["x"].asks[key].shape.need.prefers
    bench.ask("x", "d", tags=WEB, vcore=100)
    need = bench.partition.applications["x"].asks["d"].shape.need
    assert need.prefers
    bench.release("x", "a")
    bench.run()
    assert not need.prefers  # nobody who likes it is left


def test_terms_that_leave_one_domain_tell_nothing_apart_in_it() -> None:
    """Affinity of running pods is a preference, too; where the pod's own leaves one zone, its nodes are equal."""
    bench = cluster("n1:a n2:a n3:b")
    near = tags("app=web", near="zone app=web")
    assert run_all(bench, ("a", near)) == "a@n1"
    bench.ask("x", "b", tags=near, vcore=100)
    shape = bench.partition.applications["x"].asks["b"].shape
    assert shape.need.prefers
    assert ranked(bench.partition.needs.topology, bench.partition.index, shape.amounts, shape.need) == []


def test_so_many_nodes_are_compared() -> None:
    bench = cluster(" ".join(f"n{number:03d}:z{number}" for number in range(CANDIDATES_MAX + 1)))
    for last, placed in ((CANDIDATES_MAX, "p@n000"), (CANDIDATES_MAX - 1, f"p@n{CANDIDATES_MAX - 1}")):
        pod = tags(DB, preferred={"nodes": [wish(1, "zone", f"z{last}")]})
        assert run_all(bench, ("p", pod)) == placed
        bench.release("x", "p")
        bench.run()


def test_the_best_node_that_no_predicate_refuses_is_taken() -> None:
    bench = Bench(config("a"), holds=lambda key, node, _: (key, node) != ("p", "n3"))
    for name in ("n1", "n2", "n3"):
        bench.node(name, attributes=node_labels(name), vcore=10)
    bench.app("x")
    pod = tags(DB, preferred={"nodes": [wish(1, "host", "n2"), wish(2, "host", "n3")]})
    assert run_all(bench, ("p", pod)) == "p@n2"


def test_preferences_choose_among_freed_nodes() -> None:
    bench = cluster("n1:a n2:b")
    assert run_all(bench, ("a", tags("app=x", **on("n1"))), ("b", tags("app=x", **on("n2")))) == "a@n1 b@n2"
    bench.ask("x", "full1", tags=tags("app=x", **on("n1")), vcore=9)
    bench.ask("x", "full2", tags=tags("app=x", **on("n2")), vcore=9)
    bench.run()
    assert run_all(bench, ("p", tags(DB, preferred={"nodes": [wish(1, "zone", "b")]}))) == ""
    bench.release("x", "a")
    bench.release("x", "b")
    assert bench.run() == "p@n2"


def test_a_gang_that_starts_as_a_whole_prefers() -> None:
    bench = GangBench()
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "b")):
        bench.node(name, attributes=node_labels(name, zone), vcore=10)
    bench.add("g", task_groups(w=2))
    pod = tags("app=web", preferred={"nodes": [wish(1, "zone", "b")]})
    for key in ("g1", "g2"):
        bench.member("g", key, 1, tags=pod)
    assert bench.run() == "g1@n2 g2@n3"


def test_a_trial_leaves_what_is_woken_as_it_was() -> None:
    bench = cluster("n1:a n2:b")
    apart = tags("app=web", apart="host app=web")
    assert run_all(bench, ("a", apart), ("b", apart), ("c", apart)) == "a@n1 b@n2"
    topology, need = bench.partition.needs.topology, bench.partition.applications["x"].asks["c"].shape.need
    pods = need.pods
    assert pods is not None and not topology.eased
    topology.attempt(bench.partition.nodes["n1"].slot, pods, -1)
    assert not topology.eased and need.matches(bench.partition.nodes["n1"])
    topology.attempt(bench.partition.nodes["n1"].slot, pods, 1)
    assert not topology.eased and not need.matches(bench.partition.nodes["n1"])


def test_a_question_about_what_runs_looks_up_no_preference() -> None:
    bench = cluster("n1:a n2:b")
    bench.ask("x", "p", tags=tags(DB, preferred={"nodes": [wish(1, "zone", "b")]}), vcore=1)
    need = bench.partition.applications["x"].asks["p"].shape.need
    assert need.ranking is not None
    assert bench.run() == "p@n2"
    assert need.ranking is None
    bench.partition.needs._forget_unused()
    before = [*bench.partition.needs._needs]
    assert need.mismatch(bench.partition.nodes["n1"]) == ""
    assert [*bench.partition.needs._needs] == before
