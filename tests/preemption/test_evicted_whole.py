"""Applications whose allocations are evicted together or not at all: who goes, and who need not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import Bench, config
from licorne import ResourceManagerCallback
from licorne.core.preemption.together import TOGETHER_TAG
from licorne.si.messages import AddApplication, ChangeApplication, DisruptionBudgetUpdate, NodeAction
from preemption.test_examples import DELAY, Choosy, confirm, victims
from topology.helpers import node_labels
from topology.helpers import tags as pod

WITHIN = "a properties: {preemption.within-queue: priority}"
Runs = str
"""What runs: application, amount, priority and node of each; applications in capitals go together."""

ROWS: list[tuple[str, tuple[int, ...], Runs, str, str]] = [
    ("all go", (4, 4), "A2@0:1 A2@0:2", "4@5", "a1 a0"),
    ("one alone where it will do", (2, 4), "A2@0:1 A2@0:2 b2@0:2", "2@5", "a2"),
    ("the lower priority though more go", (4, 4), "A2@0:1 A2@0:2 b2@1:1 b2@1:2", "2@5", "a1 a0"),
    ("none where one has too high a priority", (4, 4), "A4@0:1 A4@5:2", "2@5", ""),
    ("none, and others of higher priority in their place", (4, 2), "A2@0:1 A2@9:2 b2@4:1", "2@5", "a2"),
    ("what the others leave counts", (6,), "A2@0:1 b2@0:1 A2@0:1", "4@5", "a2 a0"),
    ("one in place of a small one", (4, 2), "A1@0:1 A1@0:2 b3@0:1", "3@5", "a2"),
]


def bench(nodes: tuple[int, ...], runs: Runs, manager: ResourceManagerCallback | None = None) -> Bench:
    b = Bench(config(WITHIN))
    if manager is not None:
        b.register(manager)
    for number, size in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=size)
    for name in sorted({each[0] for each in runs.split()}):
        tags = {TOGETHER_TAG: "true"} if name.isupper() else {}
        b.send(AddApplication(application_id=name, queue="root.a", user="u", tags=tags))
    for number, each in enumerate(runs.split()):
        what, _, node = each.partition(":")
        amount, priority = what[1:].split("@")
        b.ask(each[0], f"a{number}", node=f"n{node}", vcore=int(amount), priority=int(priority))
    b.app("k", "root.a")
    b.run()
    return b


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_victims(row: tuple[str, tuple[int, ...], Runs, str, str]) -> None:
    _, nodes, runs, asks, gone = row
    b = bench(nodes, runs)
    amount, priority = asks.split("@")
    b.ask("k", "k", vcore=int(amount), priority=int(priority), preempt_other=True)
    assert victims(b, after=DELAY) == gone.split()
    confirm(b, *gone.split())
    assert ("k@" in b.run()) == bool(gone)
    b.api.validate()


def test_what_goes_together_may_change() -> None:
    b = bench((4,), "b2@0:1 b2@0:1")
    b.send(ChangeApplication(application_id="b", tags={TOGETHER_TAG: "true"}))
    b.ask("k", "k", vcore=1, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == ["a1", "a0"]


def test_one_that_must_stay_keeps_the_others_from_the_change_on() -> None:
    b = bench((4,), "b2@0:1 b2@9:1")
    b.ask("k", "huge", vcore=9, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == []
    b.send(ChangeApplication(application_id="b", tags={TOGETHER_TAG: "true"}))
    b.ask("k", "k", vcore=1, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == []


def test_all_go_for_an_ask_that_requires_a_node() -> None:
    b = bench((4, 4), "A2@0:1 A2@0:2")
    b.ask("k", "k", vcore=4, priority=5, required="n1")
    assert sorted(victims(b, after=DELAY)) == ["a0", "a1"]
    b = bench((4, 4), "A2@0:1 A2@9:2")
    b.ask("k", "k", vcore=4, priority=5, required="n1")
    assert victims(b, after=DELAY) == []


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DECOMISSION])
def test_those_on_nodes_that_take_nobody_go_too(action: NodeAction) -> None:
    """A search knows each node on which something runs: a drained one, and of one that is removed nothing is left."""
    b = bench((4, 4), "A2@0:1 A2@0:2 A2@0:1 c2@9:2")
    b.node("n2", action)
    b.ask("k", "k", vcore=4, priority=5, preempt_other=True)
    gone = ["a0", "a1", "a2"] if action is NodeAction.DRAIN_NODE else ["a0", "a2"]
    assert sorted(victims(b, after=DELAY)) == gone
    confirm(b, *gone)
    assert b.run() == "k@n1"


@pytest.mark.parametrize("required", ["", "n1"])
@pytest.mark.parametrize("lone", [False, True])
def test_nobody_goes_with_whom_a_pod_would_go_that_the_ask_wants_near(required: str, lone: bool) -> None:
    b = bench((), "")
    for name in ("n1", "n2"):
        b.node(name, attributes=node_labels(name, "z"), vcore=6)
    b.send(AddApplication(application_id="A", queue="root.a", user="u", tags={TOGETHER_TAG: "true"}))
    b.ask("A", "a0", node="n1", vcore=3)
    b.ask("A", "db", node="n2", vcore=6, tags=pod("role=db"))
    b.ask("k", "lone" if lone else "high", node="n1", vcore=3, priority=1 if lone else 9)
    wish = pod("role=web", near="zone role=db")
    b.ask("k", "k", vcore=3, priority=5, preempt_other=True, required=required, tags=wish)
    assert victims(b, after=DELAY) == (["lone"] if lone else [])
    confirm(b, "lone")
    assert b.run() == ("k@n1" if lone else "")


def test_the_resource_manager_is_asked_about_a_set_without_such_applications() -> None:
    plugin = Choosy("n2")
    b = bench((2, 4), "b2@0:2 A2@0:1 A2@0:2", plugin)
    b.ask("k", "k", vcore=2, priority=5, preempt_other=True)
    assert victims(b, after=DELAY) == ["a2", "a1"]
    assert plugin.asked == [("n2", ["a0"], 0), ("n1", ["a1"], 0)]


@pytest.mark.parametrize("required", ["", "n1"])
@pytest.mark.parametrize(("allowed", "lone", "gone"), [(3, True, "a3 a2 a1"), (1, True, "a0"), (1, False, "a3 a2 a1")])
def test_a_disruption_budget_counts_all(required: str, allowed: int, lone: bool, gone: str) -> None:
    b = bench((2, 1, 1), f"b1@{1 if lone else 9}:1 A1@0:1 A1@0:2 A1@0:3")
    ids = tuple(alloc.id for alloc in b.application("A").allocations.values())
    b.send(DisruptionBudgetUpdate(name="budget", allowed=allowed, joined=ids))
    b.ask("k", "k", vcore=1, priority=5, preempt_other=True, required=required)
    assert sorted(victims(b, after=DELAY)) == sorted(gone.split())


RUN = st.tuples(st.sampled_from("ABc"), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3))


@given(st.lists(RUN, max_size=9), st.integers(1, 5), st.integers(1, 4))
def test_all_or_none_go_and_none_that_need_not(
    runs: list[tuple[str, int, int, int]], amount: int, priority: int
) -> None:
    """Each part, an application that goes together or an allocation, is needed on the node of the ask; or nobody goes."""
    free = {1: 5, 2: 5, 3: 5}
    fitting = []
    for run in runs:
        if free[run[3]] >= run[1]:
            free[run[3]] -= run[1]
            fitting.append(run)
    b = bench((5, 5, 5), " ".join(f"{a}{size}@{p}:{node}" for a, size, p, node in fitting))
    b.ask("k", "k", vcore=amount, priority=priority, preempt_other=True)
    gone = {fitting[int(key[1:])]: key for key in victims(b, after=DELAY)}
    keys = {int(key[1:]) for key in gone.values()}
    parts: dict[object, set[int]] = {}
    for number, run in enumerate(fitting):
        parts.setdefault(run[0] if run[0].isupper() else number, set()).add(number)
    able = {part: of for part, of in parts.items() if all(fitting[number][2] < priority for number in of)}

    def room(without: set[int], node: int) -> int:
        return 5 - sum(run[1] for number, run in enumerate(fitting) if run[3] == node and number not in without)

    if max(free.values()) >= amount:
        assert not keys
    elif not keys:
        all_able = set().union(*able.values())
        assert all(room(all_able, node) < amount for node in free)
    else:
        chosen = [of for of in able.values() if of <= keys]
        assert set().union(*chosen) == keys
        (claimed,) = b.partition.claims.by_ask
        assert claimed.reserved is not None
        node = int(claimed.reserved.id[1:])
        assert room(keys, node) >= amount
        assert all(room(keys - of, node) < amount for of in chosen)
