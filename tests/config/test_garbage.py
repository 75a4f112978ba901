"""A text leaves nothing for the garbage collector, whatever is wrong with it: a service rarely runs it in full."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from licorne.config import ConfigError, check, load

pytestmark = pytest.mark.gate

RECORDED = Path(__file__).resolve().parents[1] / "data" / "verdicts.jsonl"
TEXTS = {
    "legal": "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]",
    "too deep": "[" * 10_000,
    "a tab": "a:\n\t- b",
    "an unknown anchor": "partitions: *x",
    "an anchor that contains itself": "partitions: &a [" + "x, " * 1_000 + "*a]",
    "such an anchor, not reached": "unknown: &a {b: [1, 2, *a]}",
    "half a pair": 'partitions: "\\ud800"',
    "no character": "partitions: \x01",
    "no list": "- a\n" * 1_000,
    "two documents": "partitions: []\n---\n[",
    "too many aliases": "a: &a [1]\nb: [" + "*a, " * 2_000 + "]",
}


@pytest.fixture
def collector() -> Iterator[None]:
    """Without the collector, and with it again."""
    check("")
    gc.collect()
    gc.freeze()  # what lives already need not be looked through each time
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def garbage_of(text: str) -> int:
    """How many objects only the collector frees after this text was read and checked."""
    check(text)
    with contextlib.suppress(ConfigError):
        load(text)
    return gc.collect()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("what", TEXTS)
def test_a_text_leaves_no_garbage(what: str) -> None:
    assert garbage_of(TEXTS[what]) == 0


@pytest.mark.usefixtures("collector")
def test_a_refused_text_leaves_nothing_at_all() -> None:
    """Everything that was read is freed with the last reference to the report, without the collector."""
    check(TEXTS["too deep"])
    before = len(gc.get_objects())
    for _ in range(20):
        check(TEXTS["too deep"])
    assert len(gc.get_objects()) - before < 20


@pytest.mark.usefixtures("collector")
def test_recorded_configurations_leave_no_garbage() -> None:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line) for line in lines]
    found = {index: count for index, one in enumerate(texts[::5]) if (count := garbage_of(one["yaml"]))}
    assert found == {}
