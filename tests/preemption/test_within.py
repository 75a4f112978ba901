"""Preemption within a queue, by priority (docs/understand/preemption.md, "Within a queue"): who goes, and who stays."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, config, parent
from licorne.core.inspection.explain import Preemption
from licorne.core.preemption.evictions import Outcome
from preemption.test_examples import DELAY, confirm, quota, victims

WITHIN = "preemption.within-queue: priority"
ON = f"properties: {{{WITHIN}}}"

Runs = str
"""What runs, the oldest first: queue, amount, priority and node of each."""

# the queues q and r below p, the nodes, what runs, amount and priority of the ask of q: victims
ROWS: list[tuple[str, str, str, tuple[int, ...], Runs, str, str]] = [
    ("the lowest priority goes", ON, "", (10,), "q5@0 q5@1", "5@2", "a0"),
    ("of equals the newest goes", ON, "", (10,), "q5@0 q5@0", "5@2", "a1"),
    ("equal priorities stay", ON, "", (10,), "q10@2", "1@2", ""),
    ("two of low priority before one of a higher", ON, "", (4, 4), "q4@1:n1 q2@0:n2 q2@0:n2", "4@2", "a2 a1"),
    ("two of low priority before one of a higher on one node", ON, "", (8,), "q4@1 q2@0 q2@0", "4@2", "a2 a1"),
    ("two of which one is of a higher priority stay", ON, "", (4, 4), "q4@1:n1 q2@0:n2 q2@1:n2", "4@2", "a0"),
    ("of two nodes that whose oldest is newer", ON, "", (4, 4), "q2@0:n1 q2@0:n2 q2@0:n2 q2@0:n1", "4@1", "a2 a1"),
    ("no more than are needed", ON, "", (10,), "q4@0 q4@0 q2@0", "2@1", "a2"),
    ("what is free counts first", ON, "", (10,), "q5@0 q2@0", "3@1", ""),
    ("another queue has nobody to give", ON, "", (10,), "r5@0 q5@1", "5@1", ""),
    ("the own queue's, however low another is", ON, "", (10,), "r5@0 q5@1", "5@2", "a1"),
    ("a queue at its maximum", f"{quota(0, 8)}, {ON}", "", (20,), "q4@0 q4@1", "3@2", "a0"),
    ("on other nodes, too, where only the maximum lacks", f"{quota(0, 8)}, {ON}", "", (8, 8), "q8@0:n2", "3@2", "a0"),
    ("with the parent at its maximum", ON, "", (20,), "r6@0 q6@1", "3@2", "a1"),
    ("above the guarantee", f"{quota(2)}, {ON}", "", (5,), "q4@0", "2@5", "a0"),
    ("no further below the guarantee", f"{quota(4)}, {ON}", "", (5,), "q4@0", "2@5", ""),
    ("as much as the ask takes, below the guarantee too", f"{quota(9)}, {ON}", "", (5,), "q2@0 q3@0", "3@5", "a1"),
    ("its guarantee takes from others first", f"{quota(5)}, {ON}", "", (10,), "r8@0 q2@0", "2@5", "a0"),
    (
        "a queue whose allocations stay",
        f"properties: {{preemption.policy: disabled, {WITHIN}}}",
        "",
        (10,),
        "q9@0",
        "5@5",
        "",
    ),
    ("another queue's property is its own", "", ON, (10,), "q9@0", "5@5", ""),
    ("off", "", "", (10,), "q9@0", "5@5", ""),
]


def bench(q: str, r: str, nodes: tuple[int, ...]) -> Bench:
    """Queues root.p.q and root.p.r with an application each; nodes n1, n2 ... of these sizes."""
    b = Bench(config(parent(f"p {quota(0, 12)}", f"q {q}".strip(), f"r {r}".strip())))
    for number, size in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=size)
    for name in "qr":
        b.app(name, f"root.p.{name}")
    return b


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_victims_of_a_decision(row: tuple[str, str, str, tuple[int, ...], Runs, str, str]) -> None:
    _, q, r, nodes, runs, asks, gone = row
    b = bench(q, r, nodes)
    for number, each in enumerate(runs.split()):
        what, _, node = each.partition(":")
        amount, priority = what[1:].split("@")
        b.ask(what[0], f"a{number}", node=node or "n1", vcore=int(amount), priority=int(priority))
    amount, priority = asks.split("@")
    b.run()
    b.ask("q", "shy", vcore=int(amount), priority=int(priority) - 100)
    b.ask("q", "k", vcore=int(amount), priority=int(priority), preempt_other=True)
    assert victims(b, after=DELAY) == gone.split()
    assert b.hear(after=100) == []
    confirm(b, *gone.split())
    assert ("k@" in b.run()) == bool(gone)
    assert victims(b, after=DELAY) == []


def test_one_that_may_not_preempt_others_waits() -> None:
    """As a pod with `preemptionPolicy: Never`."""
    b = bench(ON, "", (10,))
    b.ask("q", "a", vcore=10)
    b.run()
    b.ask("q", "k", vcore=1, priority=5, preempt_other=False)
    assert (b.hear(after=DELAY), victims(b, after=DELAY)) == ([], [])


def test_the_room_that_one_of_lower_priority_waits_for_is_taken_before_others_go() -> None:
    """The other one gives up, and preempts again, where it may; else it would have what one of a higher priority has lost."""
    b = bench(ON, "", (4, 4))
    b.ask("q", "a", node="n1", vcore=4)
    b.ask("q", "high", node="n2", vcore=4, priority=7)
    b.ask("q", "k", vcore=4, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == ["a"]
    b.ask("q", "top", vcore=4, priority=9, preempt_other=True)
    assert victims(b, after=DELAY) == []
    assert b.why("top")[-1] == Preemption("victims are going", "n1", None)
    assert b.partition.evictions[0].outcome is Outcome.HIGHER_ORDER
    confirm(b, "a")
    assert b.run() == "top@n1"
    assert victims(b, after=DELAY) == []


def test_what_is_told_of_it() -> None:
    b = bench(ON, "", (10,))
    b.ask("q", "a", vcore=10)
    b.run()
    b.ask("q", "equal", vcore=1, preempt_other=True)
    b.ask("q", "k", vcore=1, priority=5, preempt_other=True)
    assert b.hear(after=DELAY) == [
        "released a PREEMPTED_BY_SCHEDULER: preempting allocations of lower priority to free up resources to run ask: k"
    ]
    (eviction,) = b.partition.evictions
    assert (eviction.kind, eviction.queue, eviction.victim_queue) == ("within-queue", "root.p.q", "root.p.q")
    assert eviction.missing == {"vcore": 1}
    assert b.why("k")[-1] == Preemption("victims are going", "n1", None)
    assert b.why("equal")[-1] == Preemption("attempted", "nothing in the queue has a lower priority", None)


def test_a_dynamic_queue_has_it_from_its_template() -> None:
    rules = "placementrules: [{name: provided, create: true}]"
    b = Bench(config(f"d parent: true, childtemplate: {{properties: {{{WITHIN}}}}}", more=rules))
    b.node("n1", vcore=10)
    b.app("x", "root.d.new")
    b.ask("x", "a", vcore=10)
    b.run()
    b.ask("x", "k", vcore=1, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == ["a"]


PODS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=8)
"""What runs, the oldest first: node, amount and priority of each."""


def best(pods: list[tuple[int, int, int]], free: list[int], asks: int, priority: int) -> set[int]:
    """Who is to go, by trying all: of each node its best set, and of these the best, as kube-scheduler compares them."""
    found: list[tuple[int, int, int, int, set[int]]] = []
    for node, room in enumerate(free):
        lower = [n for n, (at, _, rank) in enumerate(pods) if at == node and rank < priority]
        sets = [one for count in range(1, len(lower) + 1) for one in combinations(lower, count)]
        able = [one for one in sets if room + sum(pods[n][1] for n in one) >= asks]
        ranks = [(*_rank(pods, one), sorted(-n for n in one), one) for one in able]
        if ranks:
            *_, one = min(ranks)
            top, count, total = _rank(pods, one)
            found.append((top, count, total, -min(n for n in one if pods[n][2] == top), set(one)))
    return min(found)[-1] if found and asks > max(free) else set()


def _rank(pods: list[tuple[int, int, int]], one: tuple[int, ...]) -> tuple[int, int, int]:
    return max(pods[n][2] for n in one), len(one), sum(pods[n][2] for n in one)


@examples(150)
@given(PODS, st.lists(st.integers(0, 2), min_size=2, max_size=2), st.integers(1, 8), st.integers(0, 4))
@example([(0, 4, 1), (0, 2, 0), (0, 2, 0)], [0, 0], 4, 2)  # by priority before number
@example([(0, 2, 0), (1, 2, 0), (1, 2, 0), (0, 2, 0)], [0, 0], 4, 2)  # of two nodes that whose oldest is newer
def test_the_best_set_of_all_goes(pods: list[tuple[int, int, int]], free: list[int], asks: int, priority: int) -> None:
    b = Bench(config(f"q {ON}"))
    b.app("x", "root.q")
    for node, room in enumerate(free):
        b.node(f"n{node}", vcore=max(1, room + sum(amount for at, amount, _ in pods if at == node)))
        free[node] = max(room, 1 - sum(amount for at, amount, _ in pods if at == node))
    for number, (at, amount, rank) in enumerate(pods):
        b.ask("x", f"a{number}", node=f"n{at}", vcore=amount, priority=rank)
    b.ask("x", "k", vcore=asks, priority=priority, preempt_other=True)
    assert set(victims(b, after=DELAY)) == {f"a{n}" for n in best(pods, free, asks, priority)}
