"""Reasons in words: each kind has a sentence and a summary, and the page of reasons names each kind."""

from __future__ import annotations

import typing
from pathlib import Path

import msgspec
import pytest

from licorne.core.inspection import explain
from licorne.core.inspection.sentences import most_important, sentence, summary

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "reasons.md"
SENTENCES: list[tuple[explain.Reason, str]] = [
    (
        explain.QueueQuota("root.a", {"memory": 3 << 30, "vcore": 500}),
        "The max of queue root.a leaves too little: 3Gi memory, 500m vcore missing.",
    ),
    (
        explain.QueueQuota("root.a", {"vcore": 2000}, never=True),
        "Larger than the max of queue root.a (2 vcore missing): it never runs as things are.",
    ),
    (explain.ClusterFull({"vcore": 2000}), "The cluster is full: 2 vcore missing."),
    (
        explain.ClusterFull({"vcore": 1}, never=True),
        "Larger than the whole cluster (1m vcore missing): it never runs as things are.",
    ),
    (
        explain.UserLimit("user", "ann", "root", {"pods": 1}),
        "The limit of user ann at root leaves too little: 1 pods missing.",
    ),
    (
        explain.Claimed("queue", "root.a", "root.a", {"vcore": 1000}),
        "What queue root.a may use is claimed by asks that have preempted: 1 vcore missing.",
    ),
    (explain.MaxApplications("root.a"), "Queue root.a runs as many applications as it may."),
    (explain.StateOrder("root.a"), "Another application of root.a starts first."),
    (explain.Backoff(5), "Its application backs off after too many asks that fit no node."),
    (
        explain.Nodes({"lack of vcore": 1, "reserved": 2}),
        "No node takes the ask now: lack of vcore (1 node); reserved (2 nodes).",
    ),
    (
        explain.Nodes({"nodeSelector": 3}, never=True),
        "No node can take the ask, even an empty one, so it never runs as things are: nodeSelector (3 nodes).",
    ),
    (
        explain.Nodes({"too small": 6}, never=True, absent=("foo.com/bar", "gpu")),
        "No node has foo.com/bar or gpu, so it never runs as things are: too small (6 nodes).",
    ),
    (explain.Nodes({}, never=True), "There is no node, so it never runs as things are."),
    (
        explain.RequiredNode("n1", "full", {"vcore": 1000}),
        "Node n1, which the ask requires, does not take it: full, 1 vcore missing.",
    ),
    (
        explain.RequiredNode("n1", "too small", {}, never=True),
        "Node n1, which the ask requires, cannot take it (too small), so it never runs as things are.",
    ),
    (
        explain.RequiredNode("n1", "too small", {"vcore": 1000}, never=True),
        "Node n1, which the ask requires, cannot take it (too small, 1 vcore missing), so it never runs as things are.",
    ),
    (explain.Reserved("n1", 0), "Waits for node n1, which is reserved for it."),
    (explain.Preemption("too young", "", None), "Preemption: too young."),
    (explain.Preemption("attempted", "no victims help", None), "Preemption: tried without success (no victims help)."),
    (explain.Placeholder("g", 2), "The ask waits for a placeholder of task group g, of which 2 live."),
    (explain.Gang(False, {"g": (1, 2)}, False, None, ()), "The gang is not complete: g 1 of 2."),
    (explain.Gang(True, {"g": (2, 2)}, True, None, ("n1",)), "The gang fits the nodes not as a whole; it holds n1."),
    (explain.NotTried(), "Nothing is in its way, it has not had its turn."),
]


@pytest.mark.parametrize(("reason", "said"), SENTENCES)
def test_a_reason_as_a_sentence(reason: explain.Reason, said: str) -> None:
    assert sentence(reason) == said
    assert summary(reason)


def test_each_kind_has_a_sentence_and_a_row_of_the_page() -> None:
    kinds = typing.get_args(explain.Reason)
    assert {type(reason) for reason, _ in SENTENCES} == set(kinds)
    page = PAGE.read_text(encoding="utf-8")
    for kind in kinds:
        assert f"| `{kind.__struct_config__.tag}` |" in page, kind


def test_a_reason_that_does_not_pass_comes_first() -> None:
    passing, lasting = explain.ClusterFull({"vcore": 1}), explain.Nodes({"nodeSelector": 1}, never=True)
    assert most_important([passing, lasting]) == lasting
    assert most_important([passing, explain.NotTried()]) == passing
    assert msgspec.to_builtins(lasting)["never"] is True
