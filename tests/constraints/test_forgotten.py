"""Sets of constraints of which no ask is left are forgotten, and those of asks that may wait again are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.bench import Bench, config
from gangs.gang import Gangs
from licorne.core.nodes.constraints import NodeConstraints, NodeLabels
from licorne.core.nodes.node import SHARED
from licorne.core.nodes.reading import CHARACTERS_MAX
from licorne.si.messages import Allocation, NodeAction, Release

if TYPE_CHECKING:
    import pytest


def constrained(**labels: str) -> dict[str, str]:
    """The tag of an ask that wants these labels."""
    return {"licorne/node-constraints": json.dumps({"nodeSelector": labels})}


def a_cluster() -> Bench:
    bench = Bench(config("a"))
    for name in ("n1", "n2"):
        bench.node(name, vcore=10)
    bench.app("x")
    bench.ask("x", "runs", vcore=1)
    bench.run()
    return bench


def test_failed_amounts_of_a_need_are_forgotten_with_its_last_ask() -> None:
    bench = a_cluster()
    failed = bench.partition.parking.failed_needs
    bench.ask("x", "one", tags=constrained(zone="z"), vcore=1)
    bench.ask("x", "other", tags=constrained(zone="z"), vcore=2)
    bench.ask("x", "large", vcore=11)
    bench.run()
    assert len(failed) == 2
    bench.release("x", "one")
    assert len(failed) == 2
    bench.release("x", "other")
    assert [need.constraints.selector for need in failed] == [()]
    bench.release("x", "large")
    assert not failed


def test_failed_amounts_that_fit_a_new_node_are_forgotten() -> None:
    bench = a_cluster()
    bench.ask("x", "large", vcore=11)
    bench.run()
    assert len(bench.partition.parking.failed_needs) == 1
    bench.node("n3", vcore=12)
    assert bench.run() == "large@n3"
    assert not bench.partition.parking.failed_needs


def test_constraints_without_a_bit_of_their_own_are_forgotten_too() -> None:
    """More sets of constraints wait than the bitmap has bits; when their asks have gone, only sets of asks are known."""
    bench = a_cluster()
    known = bench.partition.needs._needs
    for n in range(SHARED + 100):
        bench.api.submit("rm", [ask_for(n)])
    bench.run()
    assert len(known) == SHARED + 101
    for n in range(SHARED + 100):
        bench.api.submit("rm", [end_of(n)])
    for n in range(3 * SHARED):
        bench.api.submit("rm", [ask_for(n + 10_000), end_of(n + 10_000)])
        assert len(known) <= 2 * SHARED + 202, f"after {n}"
    assert not any(need.waiting for need in known.values())
    bench.api.validate()


def test_an_ask_for_a_node_by_its_name_is_not_evaluated_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of pods that are each made for a node would take a second for each hundred, in a large cluster."""
    bench = Bench(config("a"))
    bench.app("x")
    for n in range(300):
        bench.node(f"n{n}", vcore=10, attributes={"label/name": f"n{n}", "label/zone": "z"})
    evaluations = 0

    def matches(constraints: NodeConstraints, labels: NodeLabels) -> bool:
        nonlocal evaluations
        evaluations += 1
        return real(constraints, labels)

    real = NodeConstraints.matches
    monkeypatch.setattr(NodeConstraints, "matches", matches)
    for n in range(300):
        names = {"key": "name", "operator": "In", "values": [f"n{n}"]}
        zones = {"key": "zone", "operator": "In", "values": ["z"]}
        for key, wanted in (
            (f"a{n}", {"nodeAffinity": [[zones, names]]}),
            (f"s{n}", {"nodeSelector": {"zone": "z", "name": f"n{n}"}}),
        ):
            tags = {"licorne/node-constraints": json.dumps(wanted)}
            bench.api.submit("rm", [Allocation(key=key, application_id="x", resource={"vcore": 1}, tags=tags)])
    monkeypatch.undo()
    assert evaluations == 600
    bench.run()
    assert all(len(node.allocations) == 2 for node in bench.partition.nodes.values())


def test_the_bits_of_forgotten_constraints_are_cleared() -> None:
    """Else a need that gets such a bit would be met by nodes that were passed over when it was evaluated."""
    bench = Bench(config("a"))
    bench.app("x")
    for n in range(3):
        bench.node(f"n{n}", vcore=1_000, attributes={"label/name": f"n{n}"})
    for n in range(80):
        name = f"n{n % 3}"
        bench.ask("x", f"k{n}", tags=constrained(name=name) | {"other": f"{n}"}, vcore=1)
        wide = {"nodeAffinity": [[{"key": f"none{n}", "operator": "DoesNotExist", "values": []}]]}
        bench.ask("x", f"w{n}", tags={"licorne/node-constraints": json.dumps(wide)}, vcore=1)
        bench.run()
        only = {"nodeSelector": {"name": name}, "tolerations": [{"key": f"t{n}", "operator": "Exists"}]}
        bench.ask("x", f"o{n}", tags={"licorne/node-constraints": json.dumps(only)}, vcore=1)
        assert bench.run() == f"o{n}@{name}"
        bench.api.validate()


def test_remembered_texts_of_constraints_are_bounded_in_characters() -> None:
    bench = a_cluster()
    needs = bench.partition.needs
    for n in range(40):
        text = json.dumps({"nodeSelector": {"zone": "z"}}) + " " * (60_000 + n)
        bench.ask("x", f"k{n}", tags={"licorne/node-constraints": text}, vcore=1)
        assert sum(map(len, needs._by_text)) <= CHARACTERS_MAX
    assert len(needs._needs) == 2


def test_remembered_texts_of_pods_are_bounded_in_characters() -> None:
    bench = a_cluster()
    topology = bench.partition.needs.topology
    for n in range(40):
        text = json.dumps({"namespace": "n"}) + " " * (60_000 + n)
        bench.ask("x", f"k{n}", tags={"licorne/pod": text}, vcore=1)
        assert sum(len(pod) + len(terms) for pod, terms in topology._by_text) <= CHARACTERS_MAX
    assert len(topology.classes) == 1


def test_an_ask_in_flight_keeps_its_constraints() -> None:
    """A real ask replaces a placeholder; meanwhile other asks have so many constraints that bits are assigned anew.

    When the node is lost it is pending again, and its constraints still mean what they did.
    """
    gangs = Gangs()
    for zone in "ab":
        gangs.node(f"n-{zone}", attributes={"label/zone": zone}, vcore=2)
    gangs.gang(total=2)
    gangs.member("p1", 2, placeholder=True, tags=constrained(zone="a"))
    assert gangs.run() == "p1@n-a"
    gangs.member("k1", 2, tags=constrained(zone="a"))
    gangs.run()
    assert not gangs.application("x").asks, "k1 is in flight"
    gangs.app("y")
    for n in range(70):
        tags = json.dumps({"nodeSelector": {"zone": "b"}, "tolerations": [{"key": f"t{n}", "operator": "Exists"}]})
        gangs.ask("y", f"other{n}", tags={"licorne/node-constraints": tags}, vcore=3)
    gangs.node("n-a", NodeAction.DECOMISSION)
    assert gangs.run() == ""
    assert list(gangs.application("x").asks) == ["k1"]
    gangs.node("n-a2", attributes={"label/zone": "a"}, vcore=2)
    assert gangs.run() == "k1@n-a2"


def ask_for(n: int) -> Allocation:
    return Allocation(key=f"k{n}", application_id="x", resource={"vcore": 1}, tags=constrained(zone=f"z{n}"))


def end_of(n: int) -> Release:
    return Release(key=f"k{n}", application_id="x")
