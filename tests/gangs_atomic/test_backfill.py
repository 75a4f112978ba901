"""Nodes held by a waiting gang, its earliest start, and the asks that may run on them in front of it."""

from __future__ import annotations

import pytest

from core.bench import config, parent
from gangs_atomic.helpers import GangBench, task_groups
from licorne.core.inspection.explain import Nodes
from licorne.si.messages import NodeAction, Termination

Work = tuple[int, int, int]  # node, vcore, seconds it may run; 0: for ever

# nodes, what runs there, the gang, which nodes it holds and when it may start (? for unknown)
HOLDS: list[tuple[tuple[int, ...], list[Work], tuple[int, ...], str]] = [
    ((10,), [(1, 5, 30)], (6,), "g n1 30"),
    ((10,), [(1, 5, 0)], (6,), "g n1 ?"),
    ((10, 10), [(1, 5, 30), (2, 5, 20)], (6,), "g n2 20"),
    ((10, 10), [(1, 5, 30), (2, 5, 20)], (6, 6), "g n1,n2 30"),
    ((10, 10), [(1, 5, 0), (2, 5, 20)], (6,), "g n2 20"),
    ((10, 10), [(1, 5, 0), (2, 5, 20)], (6, 6), "g n1,n2 ?"),
    ((10, 10), [(1, 3, 10), (1, 3, 40), (2, 6, 50)], (5,), "g n1 10"),
    ((10, 10), [(1, 3, 10), (1, 3, 40), (2, 6, 50)], (8,), "g n1 40"),
    ((10,), [(1, 5, 30)], (11,), ""),  # it fits no node even if it is empty
    ((10, 10), [(1, 10, 0), (2, 10, 0)], (10,), "g n1 ?"),  # of those unknown the oldest ends first
]


def running(b: GangBench, work: list[Work]) -> None:
    b.app("x", "root.b")
    for number, (node, vcore, seconds) in enumerate(work):
        b.ask("x", f"x{number}", node=f"n{node}", vcore=vcore, timeout_ms=seconds * 1000)
    b.run()


@pytest.mark.parametrize(("nodes", "work", "gang", "held"), HOLDS)
def test_a_gang_holds_the_nodes_on_which_it_starts_first(
    nodes: tuple[int, ...], work: list[Work], gang: tuple[int, ...], held: str
) -> None:
    b = GangBench(*nodes)
    running(b, work)
    b.gang("g", *gang)
    assert b.run() == ""
    assert b.held() == held
    if held:
        reason = b.gang_reason("g0")
        assert (reason.ready, reason.fits_quota, list(reason.held)) == (True, True, held.split()[1].split(","))
        assert (reason.start_ns is None) == held.endswith("?")


# One node of 10 with 5 used for 30 s more; a gang of 6. Asks after it: (vcore, seconds it may run) -> does it run?
BEHIND = [
    (4, 30, True),  # gone when the gang starts
    (4, 31, True),  # beside the gang: 10 - 6
    (4, 0, True),
    (5, 30, True),
    (5, 31, False),
    (5, 0, False),
    (6, 10, False),  # there is no room now
]


@pytest.mark.parametrize(("vcore", "seconds", "runs"), BEHIND)
def test_only_work_that_ends_in_time_runs_in_front_of_the_gang(vcore: int, seconds: int, runs: bool) -> None:
    b = GangBench(10)
    running(b, [(1, 5, 30)])
    b.gang("g", 6)
    b.run()
    b.ask("x", "k", vcore=vcore, timeout_ms=seconds * 1000)
    assert b.run() == ("k@n1" if runs else "")
    if not runs and vcore == 5:
        assert b.why("k") == [Nodes({"held for a gang": 1})]
    b.run(after=30)
    b.end("x", "x0")
    if seconds == 30 and runs:
        b.end("x", "k")
    assert b.run() == "g0@n1"


def test_without_known_ends_nothing_runs_on_held_nodes() -> None:
    b = GangBench(10)
    running(b, [(1, 5, 0)])
    b.gang("g", 6)
    b.run()
    b.ask("x", "k", vcore=1, timeout_ms=1)
    assert b.run() == ""


def test_room_beside_the_gang_is_given_once() -> None:
    b = GangBench(10)
    running(b, [(1, 5, 30)])
    b.gang("g", 6)
    b.run()
    for key in ("k1", "k2", "k3"):
        b.ask("x", key, vcore=2)
    assert b.run() == "k1@n1 k2@n1"
    b.ask("x", "k4", vcore=1, timeout_ms=30_000)
    assert b.run() == "k4@n1"


def test_other_nodes_stay_open() -> None:
    b = GangBench(10, 5)
    running(b, [(1, 5, 0)])
    b.gang("g", 6)
    b.ask("x", "k", vcore=4)
    assert b.run() == "k@n2"  # before anything is held the first node with room in order
    assert b.held() == "g n1 ?"


@pytest.mark.parametrize(("most", "runs"), [(5, ""), (6, "k@n1")])
def test_what_others_claim_of_a_quota_is_not_left_to_work_in_front_of_the_gang(most: int, runs: str) -> None:
    guaranteed = "c resources: {guaranteed: {vcore: 3m}}, properties: {preemption.delay: 1s}"
    b = GangBench(10, 3, text=config(parent(f"p resources: {{max: {{vcore: {most}m}}}}", "a", guaranteed), "b"))
    running(b, [(1, 9, 30), *[(2, 1, 0)] * 3])
    b.gang("g", 2, queue="root.p.a")
    b.run()
    b.app("y", "root.p.c")
    b.ask("y", "claims", vcore=3, preempt_other=True)
    b.run(after=2)
    assert b.reserved() == "claims@n2"
    b.app("z", "root.p.a")
    b.ask("z", "k", vcore=1)
    assert b.run() == runs
    assert b.held() == "g n1 28"


@pytest.mark.parametrize(("most", "fits_quota"), [(8, True), (4, False)])
def test_a_gang_keeps_its_nodes_while_others_preempt_elsewhere(most: int, fits_quota: bool) -> None:
    """Otherwise the ask would be placed there at once, and its victim would have been evicted in vain."""
    guaranteed = "c resources: {guaranteed: {vcore: 1m}}, properties: {preemption.delay: 1s}"
    b = GangBench(4, 4, text=config(parent(f"p resources: {{max: {{vcore: {most}m}}}}", "a", guaranteed), "b"))
    running(b, [(2, 3, 0), *[(1, 1, 0)] * 4])
    b.gang("g", 4, queue="root.p.a")
    b.run()
    b.app("y", "root.p.c")
    b.ask("y", "k", vcore=1, preempt_other=True)
    assert b.run(after=2) == ""
    assert (b.reserved(), b.held()) == ("k@n1", "g n2 ?")
    assert b.gang_reason("g0").fits_quota == fits_quota
    b.release("x", "x4", termination=Termination.PREEMPTED_BY_SCHEDULER)
    assert b.run() == "k@n1"
    assert b.held() == ("g n2 ?" if fits_quota else "")


def test_the_plan_follows_work_that_ends_early() -> None:
    b = GangBench(10, 10)
    running(b, [(1, 5, 30), (1, 5, 50), (2, 10, 40)])
    b.gang("g", 6)
    b.run()
    assert b.held() == "g n2 40"
    b.release("x", "x1")
    b.run()
    assert b.held() == "g n1 30"
    assert b.gang_reason("g0").held == ("n1",)


def test_a_plan_is_kept_unless_another_starts_earlier() -> None:
    b = GangBench(10, 10)
    running(b, [(1, 5, 30), (2, 5, 30)])
    b.gang("g", 6)
    b.run()
    assert b.held() == "g n1 30"
    b.ask("x", "k", vcore=2, timeout_ms=10_000)  # comes to n2, or n1, and changes the order of nodes
    b.run()
    assert b.held() == "g n1 30"


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DECOMISSION])
def test_a_held_node_that_goes_is_replaced_in_the_plan(action: NodeAction) -> None:
    b = GangBench(10, 10)
    running(b, [(1, 5, 30), (2, 5, 40)])
    b.gang("g", 6)
    b.run()
    assert b.held() == "g n1 30"
    b.node("n1", action)
    b.run()
    assert b.held() == "g n2 40"


def test_an_ask_that_requires_a_held_node_comes_first_as_with_reservations() -> None:
    b = GangBench(10, 10)
    running(b, [(1, 5, 30), (2, 5, 40)])
    b.gang("g", 6)
    b.run()
    b.ask("x", "daemon", vcore=5, required="n1")
    assert b.run() == "daemon@n1"
    assert b.held() == "g n2 40"


def test_a_hold_ends_and_may_come_again() -> None:
    b = GangBench(10, settings={"gang.hold.max.age": "60s"})
    running(b, [(1, 5, 0)])
    b.gang("g", 6)
    b.run()
    b.ask("x", "k1", vcore=1)
    assert b.run(after=59) == ""
    assert b.run(after=1) == "k1@n1"
    b.ask("x", "k2", vcore=1)
    assert (b.run(after=59), b.held()) == ("k2@n1", "")
    assert (b.run(after=1), b.held()) == ("", "g n1 ?")


def test_a_setting_lets_gangs_hold_nothing() -> None:
    b = GangBench(10, settings={"gang.hold.max.age": "0"})
    running(b, [(1, 5, 0)])
    b.gang("g", 6)
    b.run()
    b.ask("x", "k", vcore=5)
    assert b.run() == "k@n1"


def test_only_the_first_gang_in_order_holds_nodes() -> None:
    b = GangBench(10, 10)
    running(b, [(1, 5, 30), (2, 5, 0)])
    b.gang("g", 6)
    b.gang("h", 6)
    b.run()
    assert b.held() == "g n1 30"
    b.remove("g")
    b.run()
    assert b.held() == "h n1 30"


def test_a_gang_that_no_longer_fits_its_quota_gives_its_nodes_up() -> None:
    b = GangBench(10, 10, text=config("a resources: {max: {vcore: 8m}}", "b"))
    running(b, [(1, 5, 0), (2, 5, 0)])
    b.gang("g", 6)
    b.run()
    assert b.held() == "g n1 ?"
    b.app("y")
    b.ask("y", "y0", vcore=3)
    assert b.run() == "y0@n2"
    b.run()
    assert b.held() == ""


def test_work_in_front_leaves_the_gang_its_quota() -> None:
    b = GangBench(10, text=config("a resources: {max: {vcore: 8m}}", "b"))
    running(b, [(1, 5, 30)])
    b.gang("g", 6)
    b.app("y")
    b.run()
    b.ask("y", "y3", vcore=3, timeout_ms=1000)
    b.ask("y", "y2", vcore=2, timeout_ms=1000)
    assert b.run() == "y2@n1"


def test_the_limit_of_a_call_counts_for_work_in_front_of_a_gang() -> None:
    b = GangBench(10)
    running(b, [(1, 5, 30)])
    b.gang("g", 6)
    b.run()
    for key in ("k1", "k2", "k3"):
        b.ask("x", key, vcore=1)
    assert b.run(limit=2) == "k1@n1 k2@n1"
    assert b.run(limit=2) == "k3@n1"


def test_a_stream_of_small_jobs_does_not_starve_a_gang() -> None:
    """Without the hold each job that ends would be followed by the next one."""
    for age, starts in (("120m", True), ("0", False)):
        b = GangBench(4, 4, settings={"gang.hold.max.age": age})
        b.app("x", "root.b")
        waiting = 0
        ends: list[tuple[float, str]] = []
        b.add("g", task_groups(w=2))
        started = False
        for second in range(40):
            for key in [k for at, k in ends if at <= second]:
                b.end("x", key)
            ends = [(at, k) for at, k in ends if at > second]
            while waiting < 10:
                b.ask("x", f"k{second}-{waiting}", vcore=1, timeout_ms=4000)
                waiting += 1
            if second == 5:
                b.member("g", "g0", 4)
                b.member("g", "g1", 4)
            placed = b.run(after=1).split()
            waiting -= sum(name.startswith("k") for name in placed)
            ends += [(second + 4 + (sum(map(ord, name)) % 3), name.split("@")[0]) for name in placed if name[0] == "k"]
            started = started or any(name.startswith("g") for name in placed)
        assert started == starts
