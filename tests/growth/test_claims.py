"""Asks that claims keep off their domains cost others nothing: the work does not grow with their number times that of nodes."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from core.bench import Bench, config
from licorne.core.preemption import claims
from licorne.core.preemption.claims import Claims
from licorne.core.preemption.kept_off import KeptOff
from preemption.test_examples import DELAY, quota, victims
from topology.helpers import node_labels, tags

ZONES = 3


def waiting(nodes: int, asks: int) -> Bench:
    """Claims with anti-affinity in each zone, and asks that these keep off all nodes with room; each has a label of its own."""
    bench = Bench(config("a", f"b {quota(100)}"))
    for number in range(nodes):
        name = f"n{number}"
        labels = node_labels(name, f"z{number % ZONES}")
        bench.node(name, attributes=labels, vcore=4 if number < ZONES else 3)
    bench.app("x", "root.a")
    bench.app("y", "root.b")
    for number in range(ZONES):
        bench.ask("x", f"v{number}", node=f"n{number}", vcore=4)
        bench.ask("y", f"k{number}", vcore=4, preempt_other=True, tags=tags("app=k", apart="zone app=x"))
    assert len(victims(bench, after=DELAY)) == ZONES
    for number in range(asks):
        bench.ask("x", f"w{number}", vcore=1, tags=tags(f"app=x pod={number}"))
    return bench


@pytest.mark.parametrize(("nodes", "asks"), [(6, 3), (30, 3), (30, 40)])
def test_claims_are_looked_at_once_for_all_that_they_keep_off(nodes: int, asks: int) -> None:
    bench = waiting(nodes, asks)
    find, at = Claims._find_kept_off, KeptOff.at
    with (
        patch.object(Claims, "_find_kept_off", autospec=True, side_effect=find) as searches,
        patch.object(KeptOff, "at", autospec=True, side_effect=at) as looks,
    ):
        for number in range(3):
            bench.api.schedule()
            bench.ask("x", f"other{number}", vcore=1, tags=tags("app=other"))
        assert searches.call_count <= 3 * 2  # those that wait, and the others
        assert looks.call_count <= 3 * (nodes - ZONES) + 3
    assert bench.run().startswith("other2@")


def claimed(*nodes: tuple[str, int], **terms: Any) -> Bench:
    """A claim of terms in zone `z0`, and more nodes, each of a zone and a size that is too small for the ask that claims."""
    bench = Bench(config("a", f"b {quota(100)}"))
    bench.node("n0", attributes=node_labels("n0", "z0"), vcore=4)
    bench.app("x", "root.a")
    bench.app("y", "root.b")
    bench.ask("x", "v", vcore=4)
    bench.ask("y", "k", vcore=4, preempt_other=True, tags=tags("app=k", **terms))
    assert victims(bench, after=DELAY) == ["v"]
    for number, (zone, size) in enumerate(nodes, start=1):
        bench.node(f"n{number}", attributes=node_labels(f"n{number}", zone), vcore=size)
    return bench


def test_claims_that_are_not_about_an_ask_are_not_compared_with_each_node() -> None:
    bench = claimed(*[("z1", 1)] * 20, apart="zone app=x")
    bench.ask("x", "other", vcore=4, tags=tags("app=other"))
    assert bench.run() == ""
    ask, partition = bench.partition.applications["x"].asks["other"], bench.partition
    with patch.object(claims, "_may_shut", side_effect=claims._may_shut) as compared:
        assert not any(partition.claims.keep_off(ask, node) for node in partition.nodes.values())
    assert compared.call_count <= 1


def test_a_smaller_ask_may_have_a_node_where_a_larger_one_is_kept_off_all() -> None:
    bench = claimed(("z0", 3), ("z1", 1), apart="zone app=x")
    bench.ask("x", "large", vcore=2, tags=tags("app=x"))
    assert bench.run() == ""
    bench.ask("x", "small", vcore=1, tags=tags("app=x"))
    assert bench.run() == "small@n2"


def test_an_ask_that_is_kept_off_all_nodes_gets_one_that_is_freed() -> None:
    bench = claimed(("z0", 3), ("z1", 3), apart="zone app=x")
    bench.ask("x", "plain", node="n2", vcore=3)
    bench.ask("x", "waits", vcore=2, tags=tags("app=x"))
    assert "waits" not in bench.run()
    bench.release("x", "plain")
    assert bench.run() == "waits@n2"


def test_where_asks_are_kept_off_is_found_again_when_pods_have_come() -> None:
    bench = claimed(("z0", 3), ("z1", 3), spread="zone app=x")
    bench.ask("x", "first", node="n1", vcore=1, tags=tags("app=x"))
    bench.ask("x", "large", vcore=4, tags=tags("app=x"))
    bench.run()
    ask, kept_by = bench.partition.applications["x"].asks["large"], bench.partition.claims
    nodes = [bench.partition.nodes[name] for name in ("n0", "n1", "n2")]
    assert [kept_by.keep_off(ask, node) for node in nodes] == [True, True, False]
    bench.ask("x", "other", node="n2", vcore=1, tags=tags("app=x"))
    bench.run()
    assert [kept_by.keep_off(ask, node) for node in nodes] == [False] * 3
    assert all(kept_by.spare_domains(ask, node) for node in nodes)
