"""Reasons as text, and equal ones counted without a look at every ask."""

from __future__ import annotations

import pytest
from bench.workloads.generate import Options, benchmark

from licorne.core.inspection import explain
from licorne.sim import reasons
from licorne.sim.runner import simulate


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([explain.QueueQuota("root.a", {"vcore": 5})], "max of queue root.a reached (vcore)"),
        ([explain.UserLimit("user", "ada", "root.a", {"gpu": 1})], "limit of user ada at root.a reached (gpu)"),
        ([explain.MaxApplications("root.a")], "queue root.a runs as many applications as it may"),
        (
            [explain.MaxApplications("root.a", "group", "dev")],
            "group dev runs as many applications at root.a as allowed",
        ),
        ([explain.StateOrder("root.a")], "another application of root.a starts first"),
        ([explain.Nodes({}, never=True)], "there is no node"),
        ([explain.Nodes({"too small": 1}, never=True)], "no node will ever do (too small)"),
        ([explain.Nodes({"too small": 1}, never=True, absent=("gpu",))], "no node will ever do (none has gpu)"),
        ([explain.ClusterFull({"vcore": 1})], "the cluster is full (vcore)"),
        (
            [explain.QueueQuota("root.a", {"vcore": 1}, never=True)],
            "larger than the max of queue root.a (vcore): it never runs as things are",
        ),
        (
            [explain.Nodes({"lack of vcore": 3, "lack of memory, vcore": 1, "too small": 2, "reserved": 1})],
            "no node will do (lack of memory or vcore; reserved; too small)",
        ),
        ([explain.RequiredNode("n1", "full", {"vcore": 1})], "the node that it requires: full (vcore)"),
        ([explain.RequiredNode("n1", "unknown", {})], "the node that it requires: unknown"),
        ([explain.Reserved("n1", 0)], "waits for the node that is reserved for it"),
        ([explain.Backoff(5)], "its application backs off after too many asks that fit no node"),
        ([explain.Placeholder("g", 2)], "waits for a placeholder of its task group"),
        ([explain.NotTried()], "nothing is in its way, it has not had its turn"),
        (
            [explain.QueueQuota("root", {"a": 1}), explain.QueueQuota("root", {"a": 2}), explain.Reserved("n", 1)],
            "max of queue root reached (a); waits for the node that is reserved for it",
        ),
    ],
)
def test_a_reason_in_words(found: list[explain.Reason], words: str) -> None:
    assert reasons.describe(found) == words


def test_every_waiting_ask_is_counted() -> None:
    result = simulate(benchmark("a", Options(demand=1.5)))
    assert result.never_placed > 1000
    assert sum(row.asks for row in result.reasons) == result.never_placed
    assert all(row.reason.startswith("no node will do (lack of ") for row in result.reasons)


def test_the_number_of_examined_asks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasons, "LOOKS_MAX", 1_000)
    result = simulate(benchmark("a", Options(demand=1.5, shape="unique")))
    assert sum(row.asks for row in result.reasons) == result.never_placed
    assert result.reasons[0].reason == reasons.NOT_LOOKED_INTO
    assert result.never_placed - result.reasons[0].asks == 11
