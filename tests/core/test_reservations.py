"""Reservations and required nodes.

Source: docs/spec/scheduling.md, sections 7.1 to 7.4, 16.2, 16.7, 16.8; docs/spec/preemption.md, section 3.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import Bench, cluster, config
from licorne.core.inspection.explain import RequiredNode
from licorne.core.nodes.node import best_to_reserve
from licorne.core.scheduling import reservations
from licorne.si.messages import NodeAction, Termination

MINUTE = 60
LEFT = "preempting allocations to free up resources to run daemon set ask: "


def bench(*nodes: tuple[int, int], leaf: str = "a", settings: dict[str, str] | None = None) -> Bench:
    """Nodes n1, n2 ... of (size, used), used by one allocation `on-n1` ... of application `x`."""
    b = Bench(config(leaf), settings=settings)
    b.app("x")
    for number, (size, used) in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=size)
        if used:
            b.ask("x", f"on-n{number}", node=f"n{number}", vcore=used)
    b.run()
    return b


# -- making --------------------------------------------------------------------------------------------------


def test_only_an_ask_older_than_the_delay_reserves() -> None:
    b = bench((10, 5), (10, 5))
    b.ask("x", "k", vcore=6)
    assert (b.run(after=2), b.reserved()) == ("", "")
    assert (b.run(after=0.000_000_001), b.reserved()) == ("", "k@n1")
    b.ask("x", "old", vcore=6, age_s=3)
    assert (b.run(), b.reserved()) == ("", "k@n1 old@n2")


@pytest.mark.parametrize(
    ("settings", "after", "reserved"),
    [
        ({"reservation.delay": "10s"}, 10, ""),
        ({"reservation.delay": "10s"}, 11, "k@n1"),
        ({"reservation.delay": "0s"}, 1, "k@n1"),
        ({"reservation.enabled": "false"}, 1_000, ""),  # the original's DISABLE_RESERVATION
    ],
)
def test_the_delay_is_a_setting(settings: dict[str, str], after: int, reserved: str) -> None:
    b = bench((10, 5), (10, 5), settings=settings)
    b.ask("x", "k", vcore=6)
    b.run()
    assert (b.run(after=after), b.reserved()) == ("", reserved)


AMOUNTS = st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=1, max_size=12)


@given(AMOUNTS, AMOUNTS)
def test_what_found_no_node_is_remembered_rightly(
    nodes: list[tuple[int, int, int]], asks: list[tuple[int, int, int]]
) -> None:
    b = cluster(config("a"), apps="x", reservation_delay="0s")
    for number, (vcore, memory, gpu) in enumerate(nodes):
        b.node(f"n{number}", vcore=vcore, memory=memory, gpu=gpu)
    for number, (vcore, memory, gpu) in enumerate(asks):
        b.ask("x", f"k{number}", vcore=vcore + 1, memory=memory, gpu=gpu)
    b.run(after=1)
    partition = b.partition
    for ask in partition.applications["x"].asks.values():
        shape = ask.shape
        node = best_to_reserve(partition.index.ordered(), shape.amounts, shape.need.of_empty(), ask.expired_node)
        assert partition.reservations.node_to_reserve(ask) is node


def test_one_search_is_enough_for_asks_that_all_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench((10, 5), (10, 5), (10, 5))
    for number in range(3):
        b.ask("x", f"reserves{number}", vcore=6, age_s=3)
    b.run()
    searches: list[object] = []
    monkeypatch.setattr(reservations, "best_to_reserve", lambda *given: searches.append(given))
    for number in range(100):
        b.ask("x", f"k{number}", vcore=6, memory=number, age_s=3)
    b.run()
    assert len(b.reserved().split()) == 3  # each node, so there is none for others
    assert len(searches) == 1


# (size, used) of each node, the ask, which one is reserved: the smallest FitInScore, the first in order of equals
CANDIDATES = [
    ([(10, 9), (10, 5)], 6, "n2"),  # least used first: 0 on both
    ([(10, 9), (10, 9)], 2, "n1"),
    ([(5, 5), (10, 9)], 6, "n2"),  # n1 is too small even when it is empty
    ([(10, 10), (20, 20)], 8, ""),  # but root has no headroom: nothing is looked at
]


@pytest.mark.parametrize(("nodes", "wanted", "chosen"), CANDIDATES)
def test_the_reserved_node_is_chosen_by_its_free_amount(nodes: list[tuple[int, int]], wanted: int, chosen: str) -> None:
    b = bench(*nodes)
    b.ask("x", "k", vcore=wanted, age_s=10)
    if sum(size - used for size, used in nodes) < wanted:
        b.node("far", NodeAction.CREATE_DRAIN, vcore=wanted if chosen else 0)  # headroom, but not a place
    assert (b.run(), b.reserved().removeprefix("k@")) == ("", chosen)


def test_a_type_that_the_ask_does_not_want_makes_a_node_worse() -> None:
    b = cluster(config("a"), apps="x")
    for name, extra in (("n1", {"memory": 1}), ("n2", {"gpu": 1}), ("n3", {})):
        b.node(name, capacity={"vcore": 10, **extra})
        b.ask("x", f"on-{name}", node=name, vcore=5)
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    assert b.reserved() == "k@n3"  # n1 and n2 have a free type that it would leave unused: 1 each


def test_a_reserved_node_is_closed_to_all_others_until_the_reservation_goes() -> None:
    b = bench((10, 5))
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    b.ask("x", "small", vcore=1)
    assert (b.run(), b.reserved()) == ("", "k@n1")
    b.release("x", "k")
    assert (b.run(), b.reserved()) == ("small@n1", "")


def test_a_node_takes_one_ordinary_reservation() -> None:
    b = bench((10, 5))
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=20)
    b.ask("x", "k1", vcore=6, age_s=10)
    b.ask("x", "k2", vcore=6, age_s=10)
    b.run()
    assert b.reserved() == "k1@n1"
    b.node("n3", vcore=1)
    b.release("x", "on-n1")
    assert (b.run(), b.reserved()) == ("k1@n1", "k2@n1")


def test_an_accepted_application_with_a_reservation_holds_a_slot() -> None:
    b = bench((10, 5), (10, 5), leaf="a maxapplications: 2")
    b.app("y")
    b.ask("y", "ky", vcore=6, age_s=10)
    b.run()
    b.app("z")
    b.ask("z", "kz", vcore=1)
    assert (b.run(), b.states()) == ("", "x:Running y:Accepted z:Accepted")
    b.remove("y")
    assert b.run() == "kz@n1"


# -- using ---------------------------------------------------------------------------------------------------


def test_the_reserved_node_is_taken_when_it_has_room_and_before_others() -> None:
    b = bench((10, 5), (10, 8))
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    b.ask("x", "first", vcore=1, priority=100)
    b.release("x", "on-n1")
    assert b.run() == "k@n1 first@n1"


def test_the_second_loop_takes_any_other_node_with_room() -> None:
    b = bench((10, 5), (10, 8))
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    assert b.reserved() == "k@n1"
    b.node("n3", vcore=6)
    assert (b.run(), b.reserved()) == ("k@n3", "")


def test_a_reserved_ask_needs_headroom_like_any_other() -> None:
    b = bench((10, 5), (10, 5), leaf="a resources: {max: {vcore: 16m}}")
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    b.reload(config("a resources: {max: {vcore: 14m}}"))
    b.foreign("f", "n2", vcore=5)
    b.release("x", "on-n1")  # 5 are used, 11 fit
    assert b.run() == "k@n1"


def test_a_draining_node_takes_no_ask_until_it_is_schedulable_again() -> None:
    b = bench((10, 5), (10, 5))
    b.ask("x", "k", vcore=6, age_s=10)
    b.run()
    b.node("n1", NodeAction.DRAIN_NODE)
    b.release("x", "on-n1")
    assert b.run() == ""  # the original does not look at the flag here, and allocates
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert b.run() == "k@n1"


# -- ending --------------------------------------------------------------------------------------------------


def test_after_120_minutes_another_node_is_tried() -> None:
    b = bench((10, 5), (10, 6))
    b.ask("x", "k", vcore=7, age_s=10)
    b.run()
    assert b.reserved() == "k@n1"
    assert (b.run(after=120 * MINUTE), b.reserved()) == ("", "k@n1")
    assert (b.run(after=1), b.reserved()) == ("", "k@n2")
    assert (b.run(after=120 * MINUTE + 1), b.reserved()) == ("", "k@n1")  # another one has been tried


def test_after_120_minutes_a_node_that_is_the_only_one_is_open_again() -> None:
    b = bench((10, 5))
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=20)
    b.ask("x", "k", vcore=7, age_s=10)
    b.run()
    b.ask("x", "small", vcore=1)
    assert (b.run(after=120 * MINUTE), b.reserved()) == ("", "k@n1")
    assert (b.run(after=1), b.reserved()) == ("small@n1", "")
    b.release("x", "on-n1")
    assert b.run() == "k@n1"


@pytest.mark.parametrize("how", ["ask", "application", "node", "reload"])
def test_events_that_end_a_reservation(how: str) -> None:
    b = bench((10, 5), (10, 5))
    b.app("y")
    b.ask("y", "k", vcore=6, age_s=10)
    b.run()
    assert b.reserved() == "k@n1"
    match how:
        case "ask":
            b.release("y", "k")
        case "application":
            b.remove("y")
        case "node":
            b.node("n1", NodeAction.DECOMISSION)
        case "reload":
            b.reload(config("b"))
    assert b.reserved() == ("k@n1" if how == "reload" else "")


# -- required nodes (docs/spec/scheduling.md, section 7.4) ---------------------------------------------------


def test_a_required_node_is_taken_whether_or_not_it_is_schedulable() -> None:
    b = bench((10, 0))
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x", "k", required="n2", vcore=1)
    assert b.run() == "k@n2"


def test_an_unknown_required_node_is_waited_for() -> None:
    b = bench((10, 0))
    b.ask("x", "k", required="n7", vcore=1)
    b.ask("x", "other", vcore=1)
    assert b.run() == "other@n1"
    assert b.why("k") == [RequiredNode("n7", "unknown", {}, never=True)]
    b.node("n7", vcore=1)
    assert b.run() == "k@n7"


def test_a_full_required_node_is_reserved_at_once() -> None:
    b = bench((10, 10), (10, 0), settings={"reservation.enabled": "false"})
    b.ask("x", "k", required="n1", priority=-1, vcore=3)
    assert (b.run(), b.reserved()) == ("", "k@n1")
    assert b.why("k")[0] == RequiredNode("n1", "full", {"vcore": 3})
    b.ask("x", "k2", required="n1", priority=-1, vcore=3)
    assert (b.run(), b.reserved()) == ("", "k@n1 k2@n1")  # they share it
    b.release("x", "on-n1")
    assert b.run() == "k@n1 k2@n1"


def test_a_required_node_displaces_ordinary_reservations() -> None:
    b = bench((10, 5), (10, 8))
    b.ask("x", "big", vcore=6, age_s=10)
    b.run()
    b.ask("x", "daemon", required="n1", vcore=1)
    assert b.run() == "daemon@n1"
    assert b.reserved() == "big@n1"  # and may come back when the daemon has its place


def test_an_ask_larger_than_its_required_node_waits_and_delays_no_other() -> None:
    b = bench((10, 0), (10, 0))
    b.ask("x", "huge", required="n1", priority=9, vcore=11)
    b.ask("x", "small", vcore=1)
    assert (b.run(), b.reserved()) == ("small@n1", "")
    assert b.why("huge") == [RequiredNode("n1", "too small", {"vcore": 1}, never=True)]


def test_a_required_node_is_served_before_a_higher_priority_that_came_late() -> None:
    """docs/spec/scheduling.md, section 16.7: the ask of higher priority lacked headroom when reservations were made."""
    b = bench((10, 10), leaf="a resources: {max: {vcore: 14m}}")
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x", "high", required="n1", priority=5, vcore=5)  # 10 + 5 > 14
    b.ask("x", "low", required="n1", priority=-5, vcore=2)
    assert (b.run(), b.reserved()) == ("", "low@n1")
    b.release("x", "on-n1")
    assert b.run() == "low@n1 high@n1"


# victims for a daemon of priority 0 that wants 3 of a full node of 10; each: (vcore, priority, willing, originator)
VICTIMS = [
    ([(5, 0, True, False), (5, 0, True, False)], "b"),  # the newest
    ([(5, -1, True, False), (5, 0, True, False)], "a"),  # the lower priority
    ([(5, 0, True, False), (5, 0, False, False)], "a"),  # the willing one
    ([(5, 0, False, False), (5, -1, True, True)], "b"),  # an originator counts like one that refuses: then priority
    ([(5, 1, True, False), (5, 0, True, False)], "b"),  # one of higher priority never
    ([(5, 1, True, False), (5, 1, True, False)], ""),
    ([(2, 0, True, False), (2, 0, True, False), (6, 1, True, False)], "b a"),
    ([(2, 0, True, False), (8, 1, True, False)], ""),  # would not be enough: nobody goes
]


@pytest.mark.parametrize(("allocations", "victims"), VICTIMS)
def test_victims_on_a_required_node(allocations: list[tuple[int, int, bool, bool]], victims: str) -> None:
    b = cluster(config("a"), 10)
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.app("x")
    for key, (vcore, priority, willing, originator) in zip("abc", allocations, strict=False):
        b.ask("x", key, node="n1", vcore=vcore, priority=priority, preempt_self=willing, originator=originator)
    b.ask("x", "daemon", required="n1", vcore=3)
    said = b.hear()
    assert said == [f"released {key} PREEMPTED_BY_SCHEDULER: {LEFT}daemon" for key in victims.split()]
    assert b.hear() == []  # asked once
    assert b.allocated("root.a") == {"vcore": 10}  # counted until it is confirmed
    for key in victims.split():
        assert b.release("x", key, termination=Termination.PREEMPTED_BY_SCHEDULER) == []  # no echo
    assert b.run() == ("daemon@n1" if victims else "")


def test_free_room_counts_before_allocations_are_evicted() -> None:
    b = bench((10, 8))
    b.node("n2", NodeAction.CREATE_DRAIN, vcore=10)
    b.ask("x", "one", node="n1", vcore=1)
    b.ask("x", "daemon", required="n1", vcore=2)
    assert b.hear() == [f"released one PREEMPTED_BY_SCHEDULER: {LEFT}daemon"]
