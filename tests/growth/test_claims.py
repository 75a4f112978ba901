"""Asks that claims keep off their domains cost others nothing: the work does not grow with their number times that of nodes."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from core.bench import Bench, config
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
