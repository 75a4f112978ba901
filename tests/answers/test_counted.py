"""Reasons of many asks at one moment are the same whether the nodes are looked at for each of them or once for those alike."""

from __future__ import annotations

import pytest

from determinism.history import History
from licorne.core.inspection import explain


@pytest.mark.parametrize("first_interface", [False, pytest.param(True, marks=pytest.mark.gate)])
def test_reasons_are_the_same_with_a_cache_of_what_nodes_say(first_interface: bool) -> None:
    history = History(first_interface)
    seen = reserved = 0
    for _ in range(400):
        history.step()
        for partition in history.api.cluster.partitions():
            counted: explain.Counted = {}
            for app in partition.applications.values():
                for ask in app.asks.values():
                    seen += 1
                    reserved += ask.reserved is not None
                    assert explain.reasons(partition, app, ask, counted) == explain.reasons(partition, app, ask)
    assert seen > 100 and reserved > 10, (seen, reserved)
