"""Where pods with terms are placed, and what lets one that waits run: worked examples (docs/spec/scheduler-interface.md, section 9)."""

from __future__ import annotations

from typing import Any

import pytest

from core.bench import Bench, config
from gangs_atomic.helpers import GangBench, task_groups
from licorne.si.messages import Allocation, NodeAction
from preemption.test_examples import DELAY, quota, victims

from .helpers import cluster, node_labels, run_all, tags

WEB = tags("app=web")
APART = tags("app=web", apart="host app=web")


def spread(labels: str = "app=web", of: str = "zone app=web", **more: Any) -> dict[str, str]:
    return tags(labels, spread=of, **more)


@pytest.mark.parametrize(
    ("nodes", "pods", "placed"),
    [
        # Anti-affinity: of the pod that asks, and of those that run.
        ("n1 n2", [APART, APART, APART], "p0@n1 p1@n2"),
        ("n1:a n2:a n3:b", [tags("app=web", apart="zone app=web")] * 3, "p0@n1 p1@n3"),
        ("n1 n2", [WEB, tags("app=db", apart="host app=web")], "p0@n1 p1@n2"),
        ("n1 n2", [tags("app=db", apart="host app=web"), WEB], "p0@n1 p1@n2"),
        ("n1", [tags("app=db", apart="zone app=web"), WEB], "p0@n1 p1@n1"),  # the node does not have the label
        ("n1", [tags("app=web", apart="host app=web", namespace="other"), APART], "p0@n1 p1@n1"),
        # Affinity: the first of its kind may go anywhere with the label, the others follow it.
        ("n1:a n2:b n3:b", [tags("app=web", near="zone app=web")] * 3, "p0@n1 p1@n1 p2@n1"),
        ("n1 n2:b", [tags("app=web", near="zone app=web")], "p0@n2"),
        ("n1:a n2:b", [tags("app=db", near="zone app=web")], ""),  # it is none of those that it wants near
        ("n1:a n2:b n3:b", [tags("app=web"), tags("app=db", near="zone app=web", apart="host app=web")], "p0@n1"),
        ("n1:a n2:a", [tags("app=web"), tags("app=db", near="zone app=web", apart="host app=web")], "p0@n1 p1@n2"),
        # Several terms: one pod must match all of them, each domain is that of its own term.
        ("n1:a n2:a", [tags("app=web"), tags("app=db"), tags("x=y", near="zone app=web, host app=db")], "p0@n1 p1@n2"),
        ("n1:a n2:a", [tags("app=web tier=1"), tags("x=y", near="zone app=web, host tier=1")], "p0@n1 p1@n1"),
        # Spread.
        ("n1:a n2:b", [spread()] * 4, "p0@n1 p1@n2 p2@n1 p3@n2"),
        ("n1:a n2:b n3", [spread()] * 3, "p0@n1 p1@n2 p2@n1"),
        ("n1:a n2:b", [WEB, WEB, spread(of="zone app=web max=2")], "p0@n1 p1@n2 p2@n1"),
        ("n1:a", [spread(of="zone app=web domains=2")] * 2, "p0@n1"),  # fewer domains than wanted: the minimum is 0
        ("n1:a n2:b", [spread("app=db")] * 2, "p0@n1 p1@n2"),  # it does not count itself
        ("n1:a n2:b", [tags("app=web", terminating=True), spread(), spread()], "p0@n1 p1@n2 p2@n1"),
    ],
)  # fmt: skip
def test_where_pods_are_placed(nodes: str, pods: list[dict[str, str]], placed: str) -> None:
    assert run_all(cluster(nodes), *((f"p{number}", of) for number, of in enumerate(pods))) == placed


@pytest.mark.parametrize("settings", [{}, {"reservation.enabled": "false"}, {"scheduler.parking": "false"}])
@pytest.mark.parametrize("of", [APART, spread(of="host app=web domains=11")])
def test_a_thousand_asks_that_exclude_each_other_in_one_call(of: dict[str, str], settings: dict[str, str]) -> None:
    bench = cluster(" ".join(f"n{number}" for number in range(10)), settings)
    bench.send(*(Allocation(key=f"k{n}", application_id="x", resource={"vcore": 1}, tags=of) for n in range(1000)))
    assert sorted(one.split("@")[1] for one in bench.run().split()) == sorted(bench.partition.nodes)
    assert bench.run() == ""
    bench.release("x", "k0")
    assert bench.run().count("@") == 1


def test_few_nodes_that_take_a_pod_are_compared_in_order() -> None:
    """Of twenty nodes two are in the zone of the first pod: they take turns, without the one that a predicate refuses."""
    bench = Bench(config("a"), holds=lambda key, node, _: key != "p5" or node != "n00")
    for number in range(20):
        bench.node(f"n{number:02d}", attributes=node_labels(f"n{number:02d}", f"z{number // 2}"), vcore=10)
    bench.app("x")
    placed = run_all(bench, *((f"p{number}", tags("app=web", near="zone app=web")) for number in range(8)))
    assert placed == "p0@n00 p1@n01 p2@n00 p3@n01 p4@n00 p5@n01 p6@n00 p7@n01"
    bench = Bench(config("a"), holds=lambda key, node, _: key != "p5" or node != "n01")
    for number in range(20):
        bench.node(f"n{number:02d}", attributes=node_labels(f"n{number:02d}", f"z{number // 2}"), vcore=10)
    bench.app("x")
    placed = run_all(bench, *((f"p{number}", tags("app=web", near="zone app=web")) for number in range(6)))
    assert placed == "p0@n00 p1@n01 p2@n00 p3@n01 p4@n00 p5@n00"


def test_policies_say_which_nodes_count_for_a_spread() -> None:
    """An empty node that the pod may not run on keeps the minimum at 0, unless the policy leaves it out."""
    taints = '[{"key": "full", "effect": "NoSchedule"}]'
    for policy, placed in (("affinity=Honor", "a@n1 b@n1"), ("affinity=Ignore", "a@n1")):
        bench = cluster("n1:a n2:b")
        pods = [spread(of=f"zone app=web {policy}", nodeSelector={"host": "n1"})] * 2
        assert run_all(bench, ("a", pods[0]), ("b", pods[1])) == placed
    for policy, placed in (("taints=Honor", "a@n1 b@n1"), ("taints=Ignore", "a@n1")):
        bench = cluster("n1:a")
        bench.node("n2", attributes={**node_labels("n2", "b"), "taints": taints}, vcore=10)
        assert (
            run_all(bench, ("a", spread(of=f"zone app=web {policy}")), ("b", spread(of=f"zone app=web {policy}")))
            == placed
        )


def relabel(bench: Bench, key: str, node: str, of: dict[str, str]) -> None:
    bench.ask("x", key, node=node, tags=of, vcore=1)


@pytest.mark.parametrize("settings", [{}, {"reservation.enabled": "false"}])
def test_what_lets_a_pod_run(settings: dict[str, str]) -> None:
    """Each event that can help wakes it: a pod ends, begins or is relabelled, a node comes, goes or is relabelled."""
    near = tags("app=db", near="zone app=web")
    bench = cluster("n1:a n2:b", settings)
    assert run_all(bench, ("waits", near)) == ""
    assert run_all(bench, ("web", WEB)) == "web@n1 waits@n1"

    bench = cluster("n1:a n2:b", settings)
    assert run_all(bench, ("other", tags("app=no")), ("waits", near)) == "other@n1"
    relabel(bench, "other", "n1", WEB)
    assert bench.run() == "waits@n1"

    bench = cluster("n1:a", settings)
    assert run_all(bench, ("web", WEB), ("waits", APART)) == "web@n1"
    relabel(bench, "web", "n1", tags("app=no"))
    assert bench.run() == "waits@n1"

    bench = cluster("n1:a", settings)
    assert run_all(bench, ("first", APART), ("waits", WEB)) == "first@n1"
    bench.ask("x", "waits", tags=tags("app=no"), vcore=1)
    assert bench.run() == "waits@n1"

    bench = cluster("n1:a", settings)
    assert run_all(bench, ("web", WEB), ("waits", APART)) == "web@n1"
    bench.ask("x", "waits", tags={"licorne/pod-terms": "{}"}, vcore=1)
    assert bench.run() == "waits@n1"

    bench = cluster("n1:a n2:b", settings)
    assert (
        run_all(bench, ("one", spread()), ("two", spread()), ("three", spread(nodeSelector={"host": "n1"})))
        == "one@n1 two@n2 three@n1"
    )
    bench = cluster("n1:a n2:b", settings)
    pinned = spread(of="zone app=web affinity=Ignore", nodeSelector={"host": "n1"})
    assert run_all(bench, ("one", pinned), ("waits", pinned)) == "one@n1"
    bench.node("n2", NodeAction.DECOMISSION)  # one domain less: the minimum rises
    assert bench.run() == "waits@n1"

    bench = cluster("n1:a", settings)
    assert run_all(bench, ("web", WEB), ("waits", tags("app=x", apart="zone app=web"))) == "web@n1"
    bench.node("n1", NodeAction.UPDATE, attributes=node_labels("n1"))
    assert bench.run() == "waits@n1"


def test_a_pod_that_was_first_of_its_kind_is_so_again_when_the_others_have_ended() -> None:
    bench = cluster("n1:a n2:b")
    of = tags("app=web", near="zone app=web")
    assert run_all(bench, ("first", of)) == "first@n1"
    bench.ask("x", "waits", tags={**of, "licorne/node-constraints": '{"nodeSelector": {"host": "n2"}}'}, vcore=1)
    assert bench.run() == ""
    bench.release("x", "first")
    assert bench.run() == "waits@n2"


def test_foreign_pods_count() -> None:
    bench = cluster("n1 n2")
    foreign = {"foreign": "default"}
    bench.send(Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags={**APART, **foreign}))
    assert run_all(bench, ("web", WEB), ("waits", APART)) == "web@n2"
    bench.send(Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags={**tags("app=no"), **foreign}))
    assert bench.run() == "waits@n1"
    bench.release("x", "waits")
    bench.send(Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags={**APART, **foreign}))
    bench.release("", "f")
    assert not bench.partition.foreign
    bench.remove("x")
    bench.run()
    assert not bench.partition.needs.topology.counts and not bench.partition.needs.topology.classes


@pytest.mark.parametrize(
    ("of", "refused"),
    [
        ({"licorne/pod-terms": "{}"}, "needs the tag licorne/pod"),
        ({**WEB, "licorne/pod-terms": '{"affinity": [{}]}'}, "topologyKey"),
        ({"licorne/pod": "{}"}, "namespace"),
    ],
)
def test_malformed_texts_are_refused(of: dict[str, str], refused: str) -> None:
    bench = cluster("n1")
    assert refused in bench.ask("x", "p", tags=of, vcore=1)[0]
    said = bench.send(Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags={**of, "foreign": "default"}))
    assert refused in said[0]


@pytest.mark.parametrize("other", ["zone app=web", "zone app=web affinity=Ignore"])
def test_constraints_that_come_to_the_same_are_one(other: str) -> None:
    """The second differs for node constraints alone, and these pods have none."""
    of = tags("app=web", spread=f"zone app=web, {other}")
    bench = cluster("n1:a n2:b")
    assert run_all(bench, ("a", of), ("b", of), ("c", of)) == "a@n1 b@n2 c@n1"


def test_a_required_node_is_waited_for_as_long_as_terms_exclude_it() -> None:
    bench = cluster("n1 n2")
    assert run_all(bench, ("web", APART)) == "web@n1"
    bench.ask("x", "waits", required="n1", priority=-1, tags=APART, vcore=1)
    assert bench.run() == "" and bench.reserved() == ""
    bench.release("x", "web")
    assert bench.run() == "waits@n1"


@pytest.mark.parametrize(
    ("of", "placed"),
    [
        (APART, "g0@n1 g1@n2"),
        (tags("app=web", near="host app=web"), "g0@n1 g1@n1"),
        (spread(of="host app=web"), "g0@n1 g1@n2"),
    ],
)
def test_a_gang_that_starts_as_a_whole_keeps_the_terms_of_its_members(of: dict[str, str], placed: str) -> None:
    bench = GangBench()
    for name in ("n1", "n2"):
        bench.node(name, attributes=node_labels(name), vcore=10)
    bench.add("g", task_groups(w=2))
    for key in ("g0", "g1"):
        bench.member("g", key, 2, tags=of)
    assert bench.run() == placed
    bench = GangBench()
    bench.node("n1", attributes=node_labels("n1"), vcore=10)
    bench.add("g", task_groups(w=2))
    for key in ("g0", "g1"):
        bench.member("g", key, 2, tags=APART)
    assert bench.run() == ""


@pytest.mark.parametrize(
    ("nodes", "placed"),
    [
        ("n1:a=1 n2:a=1 n3:b=3", "n3 n3 n3"),  # the first node in order is in a zone that is too small
        ("n1:a=2 n2:b=2 n3:b=1", "n2 n2 n3"),
        ("n1:a=2 n2:b=2", ""),
    ],
)
@pytest.mark.parametrize("driver", [tags("app=web", near="zone app=web"), WEB])
def test_a_gang_whose_members_want_to_be_near_each_other_is_placed_in_a_domain_with_room_for_all(
    nodes: str, placed: str, driver: dict[str, str]
) -> None:
    bench = GangBench()
    for one in nodes.split():
        name, zone, room = one.replace("=", ":").split(":")
        bench.node(name, attributes=node_labels(name, zone), vcore=int(room))
    bench.add("g", task_groups(w=3))
    for key, of in (
        ("w0", tags("app=w", near="zone app=web")),
        ("w1", tags("app=w", near="zone app=web")),
        ("d", driver),
    ):
        bench.member("g", key, 1, tags=of)
    assert sorted(one.split("@")[1] for one in bench.run().split()) == placed.split()


@pytest.mark.parametrize(("others", "evicted"), [("n1", []), ("n2", ["v0"])])
def test_a_pod_that_an_ask_wants_near_is_not_evicted_for_it(others: str, evicted: list[str]) -> None:
    """The ask has a guarantee, and may run in the zone of n1 and n2 alone, because the pod `mate` runs there."""
    bench = Bench(config("a", f"b {quota(8)}"))
    for name, zone, size in (("n1", "a", 2), ("n2", "a", 2), ("n3", "b", 2)):
        bench.node(name, attributes=node_labels(name, zone), vcore=size)
    bench.app("x", "root.a")
    bench.app("y", "root.b")
    bench.ask("x", "mate", tags=tags("app=web"), node="n1", vcore=2)
    if others == "n2":
        bench.ask("x", "v0", tags=tags("app=db"), node="n2", vcore=2)
    else:
        bench.node("n2", NodeAction.DRAIN_NODE)
    bench.ask("x", "v1", node="n3", vcore=2)
    bench.ask("y", "k", tags=tags("app=db", near="zone app=web"), vcore=2, preempt_other=True)
    assert victims(bench, after=DELAY) == evicted
