"""What licorne says of a pod and a node is what kube-scheduler's filter plugins say: recorded cases, and new ones.

The new ones are drawn, and put to kube-scheduler's plugins, where `make oracle` has built the program that asks them;
`make nightly PART=oracle` builds it and draws more. LICORNE_ORACLE_CASES says how many; LICORNE_SEED draws the same again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from licorne.core.nodes.preferences import WEIGHTS
from seeds import SEED

from .plugins import Code
from .verdicts import (
    DECIDED,
    FORGOTTEN,
    JUDGED,
    Comparison,
    differences,
    misplaced,
    missed_wakeups,
    recorded,
    score_differences,
)

ROOT = Path(__file__).resolve().parents[2]
ORACLE = Path(os.environ.get("LICORNE_ORACLE", ROOT / "build" / "oracle" / "oracle"))
CASES = int(os.environ.get("LICORNE_ORACLE_CASES", "300"))
SHARE = 1 if CASES > 300 else 8
"""One of so many recorded cases is placed, and followed, by `make test`; all are with LICORNE_ORACLE_CASES above the default."""


def test_the_naive_model_agrees_node_by_node() -> None:
    found = [difference for case in recorded() for difference in differences(case)]
    assert not found, "\n".join(found[:20])


def test_production_agrees_node_by_node() -> None:
    """With the reason that it gives; what is skipped is listed by why."""
    made = Comparison()
    for case in [*recorded(), *recorded("volumes"), *recorded("devices")][::SHARE]:
        made.compare(case)
    assert not made.wrong, "\n".join(made.wrong[:20])
    assert unlisted(made) == set()
    assert {plugin for plugin in JUDGED if made.agreed[plugin] < 200 // SHARE} == {"NodeName"}, made.agreed


def unlisted(made: Comparison) -> set[str]:
    return {why for why in made.skipped if why not in SKIPPED}


SKIPPED = {
    "licorne has no setting addedAffinity",
    "licorne has no setting gates",
    "a pod that waits has no node in production (NodeName)",
    "a spread honours taints, and a cordoned node has not got its taint yet",
    "a volume of the pod is attached, and no pod uses it",
    "a claim is reserved for 256 pods, which kube-scheduler does not look at",
    "the pod names a claim twice, for which kube-scheduler wants two volumes",
    "a pod before it names a claim of its class twice, and has two volumes",
    FORGOTTEN,
    "two pods of a node have one host port, which kube-scheduler forgets with the first that ends",
    "the namespace of a pod that waits is not there, as in no cluster",
    "ports of a pod change, which the API server refuses",
    "a pod is bound twice, which the API server refuses",
}


def test_production_agrees_in_sequences() -> None:
    made = Comparison()
    for case in [*recorded("sequences"), *recorded("volume-sequences"), *recorded("device-sequences")]:
        made.compare(case)
    assert not made.wrong, "\n".join(made.wrong[:20])
    assert unlisted(made) == set()
    assert made.agreed["PodTopologySpread"] > 1000 < made.agreed["InterPodAffinity"]
    assert made.agreed["DynamicResources"] > 1000
    assert made.devices[True] > 100 > made.devices[False] == 0


def test_production_gives_the_points_of_the_recording() -> None:
    """Raw and normalized, and takes a node with the most; of all cases, by what it orders nodes by."""
    compared: Counter[str] = Counter()
    found = [wrong for case in recorded("scores") for wrong in score_differences(case, compared)]
    assert not found, "\n".join(found[:20])
    assert {plugin for plugin in WEIGHTS if compared[plugin] < 60} == set(), compared


def test_what_waits_in_a_sequence_is_woken() -> None:
    found = [
        missed
        for case in [*recorded("sequences"), *recorded("device-sequences")][::SHARE]
        for missed in missed_wakeups(case)
    ]
    assert not found, "\n".join(found[:20])


def test_pods_are_placed_where_the_recording_allows_it() -> None:
    """By the manager and the scheduler, as in production."""
    cases = [*recorded(), *recorded("volumes"), *recorded("devices")][::SHARE]
    found = [wrong for case in cases if (wrong := misplaced(case))]
    assert not found, "\n".join(found[:20])


def test_the_recording_decides_each_plugin_both_ways() -> None:
    """A comparison of verdicts that never refuse, or never allow, would compare nothing."""
    refused: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    for case in recorded():
        skipped = case["verdict"]["prefilter"].get("skip", [])
        for rows in case["verdict"]["nodes"].values():
            refused.update({plugin for plugin, _, _ in rows})
            allowed.update({*DECIDED} - {plugin for plugin, _, _ in rows} - {*skipped})
    for plugin in DECIDED:
        assert refused[plugin] >= 100 <= allowed[plugin], plugin


@pytest.mark.parametrize(
    ("change", "plugin"),
    [
        (lambda case: _each(case["nodes"], lambda node: node["spec"].pop("taints", None)), "TaintToleration"),
        (lambda case: _each(case["nodes"], lambda node: node["spec"].pop("unschedulable", None)), "NodeUnschedulable"),
        (lambda case: _each(case["nodes"], lambda node: node["metadata"].pop("labels", None)), "NodeAffinity"),
        (lambda case: case["pods"].clear(), "NodePorts"),
        (lambda case: case["pods"].clear(), "NodeResourcesFit"),
        (lambda case: case["pods"].clear(), "InterPodAffinity"),
        (lambda case: case["pods"].clear(), "PodTopologySpread"),
    ],
)
def test_a_verdict_of_another_cluster_would_be_noticed(change: Any, plugin: str) -> None:
    found = []
    for case in [*recorded()][::SHARE]:
        change(case)
        found += [one for one in differences(case) if plugin in one]
    assert len(found) > 5


def _each(objects: list[dict[str, Any]], change: Any) -> None:
    for one in objects:
        change(one)


@pytest.mark.skipif(not ORACLE.exists(), reason="needs kube-scheduler's plugins: make oracle, which needs Go")
@pytest.mark.parametrize(("kind", "share"), [("single", 1), ("sequence", 4)])
def test_new_cases_agree_too(kind: str, share: int) -> None:
    recorder = [sys.executable, str(ROOT / "oracle" / "record.py"), "--oracle", str(ORACLE), "--kind", kind]
    drawn = [*recorder, "--seed", str(SEED), "--count", str(CASES // share)]
    said = subprocess.run(drawn, check=True, capture_output=True).stdout
    lines = said.splitlines()
    assert len(lines) > 0.8 * CASES // share
    made, found = Comparison(), list[str]()
    for case in map(json.loads, lines):
        if kind == "single":
            found += differences(case)
        made.compare(case)
    found += made.wrong
    assert not found, f"seed {SEED}:\n" + "\n".join(found[:20])


def test_codes_are_those_of_the_recording() -> None:
    said = {code for case in recorded() for rows in case["verdict"]["nodes"].values() for _, code, _ in rows}
    assert said == {*Code, "Error"}
