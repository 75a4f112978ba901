"""The stages of a pod: each row of the table occurs, no other event does, and the table is printed as it is."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from kube.places import Places
from kube.walk import Walk, watched_moves
from licorne.kube.manager.stages import STAGES, PodEvent, Stage
from pages import states_page

SEEDS = (7, 39, 225, 319, 0, 1, 2, 3, 4, 15, 20, 28)
"""Walks in which each row occurs; where a change has made them others, more walks are tried."""


def test_each_row_of_the_table_occurs_and_no_other_event_does() -> None:
    """An event without a row raises an exception, for which the pod is set aside, or the walk ends (`PodRecord.move`)."""
    lacking = set(STAGES)
    with watched_moves(lambda stage, event: lacking.discard((stage, event))):
        for seed in chain(SEEDS, range(400)):
            walk = Walk(seed)
            walk.walk(300)
            unplanned = [text for text in walk.log if "is set aside" in text and "PlantedError" not in text]
            assert not unplanned, f"walk {seed}"
            if not lacking:
                break
    assert not lacking


def test_an_event_without_a_row_raises_an_exception_and_changes_nothing() -> None:
    places = Places()
    places.pod("p")
    record = places.manager.records.pods["p"]
    with pytest.raises(RuntimeError, match="pod p was not bound while it is asked"):
        record.move(PodEvent.UNBIND)
    assert record.stage is Stage.ASKED


def test_the_printed_tables_are_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "states.md"
    assert page.read_text(encoding="utf-8") == states_page(), "run: python tools/pages.py"
