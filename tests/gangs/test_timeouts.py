"""The placeholder timer, in every state and both styles, and after a restart: docs/spec/scheduling.md, section 9.5."""

from __future__ import annotations

from typing import Any

import pytest

from gangs.gang import TIMEOUT, Gangs
from licorne.si.messages import NodeAction, Termination

PLACED = "released {} TIMEOUT: releasing allocated placeholders on placeholder timeout"
PENDING = "released {} TIMEOUT: releasing pending placeholders on placeholder timeout"
OVER = "ResourceReservationTimeout"
MINUTES = 15 * 60


def waiting(style: str, *, first_interface: bool = False, timeout_ms: int = 0, **more: Any) -> Gangs:
    """A gang of three placeholders, two of them placed; a real ask waits, another one has no task group."""
    b = Gangs(4, first_interface=first_interface)
    b.gang(total=6, style=style, timeout_ms=timeout_ms, **more)
    b.places("p1 p2 p3", 2)
    b.run()
    return b


LENGTHS = [
    (0, {}, MINUTES),
    (-5, {}, MINUTES),
    (20_000, {}, 20),
    (20_000, {"yunikorn.apache.org/creationTime": "999993"}, 13),
    (20_000, {"yunikorn.apache.org/creationTime": "900000"}, 0.001),
    (0, {"yunikorn.apache.org/creationTime": "999900"}, MINUTES - 100),
    (20_000, {"yunikorn.apache.org/creationTime": "2000000"}, 20),
    (20_000, {"yunikorn.apache.org/creationTime": "yesterday"}, 20),
    (20_000, {"yunikorn.apache.org/creationTime": "900000", "licorne/whole-placeholder-timeout": "true"}, 20),
    (20_000, {"yunikorn.apache.org/creationTime": "999993", "licorne/whole-placeholder-timeout": "no"}, 13),
]


@pytest.mark.parametrize("first_interface", [False, True])
@pytest.mark.parametrize(("timeout_ms", "tags", "seconds"), LENGTHS)
def test_the_timeout_runs_from_the_first_placeholder_on(
    timeout_ms: int, tags: dict[str, str], seconds: float, first_interface: bool
) -> None:
    b = waiting("Soft", first_interface=first_interface, timeout_ms=timeout_ms, tags=tags)
    assert b.hear(after=seconds - 0.0005) == []
    assert PLACED.format("p1") in b.hear(after=0.0006)


STYLES = [("Hard", True), ("hard", False), ("Soft", False), ("", False), ("HARD", False)]


@pytest.mark.parametrize(("style", "hard"), STYLES)
def test_style_hard_fails_and_any_other_style_is_soft(style: str, hard: bool) -> None:
    b = waiting(style)
    said = b.hear(after=MINUTES)
    state = "Failing" if hard else "Resuming"
    assert said == [f"x {state}: {OVER}", PLACED.format("p1"), PLACED.format("p2"), PENDING.format("p3")]
    assert b.counts() == "3=2+0+0+1"


def test_soft_gang_goes_on_as_an_ordinary_application_without_placeholders() -> None:
    b = waiting("Soft")
    b.hear(after=MINUTES)
    b.members("r1 r2", 1)
    assert b.hear() == []
    assert b.member("late", placeholder=True) == ["rejected late of x: application x is resuming"]
    assert b.confirm("p1", TIMEOUT) == []
    assert b.confirm("p2", TIMEOUT) == ["x Accepted: runApplication"]
    assert b.counts() == "3=0+0+0+3"
    assert b.hear() == ["x Running: runApplication", "new r1@n1", "new r2@n1"]


def test_soft_gang_keeps_real_asks() -> None:
    b = Gangs(2)
    b.gang(total=4)
    b.places("p1 p2", 2, group="g")
    b.run()
    b.member("r1", 2, group="other")
    b.hear(after=MINUTES)
    assert list(b.application("x").asks) == ["r1"]
    b.confirm("p1", TIMEOUT)
    assert b.run() == "r1@n1"


def test_soft_gang_times_out_while_a_replacement_is_in_flight() -> None:
    b = waiting("Soft")
    b.member("r1", 2)
    b.run()
    assert b.hear(after=MINUTES) == [f"x Resuming: {OVER}", PLACED.format("p2"), PENDING.format("p3")]
    assert b.confirm("p1") == ["new r1@n1"]  # it stays Resuming until the others are gone
    assert b.confirm("p2", TIMEOUT) == ["x Accepted: runApplication", "x Running: runApplication"]


def test_hard_gang_leaves_nothing() -> None:
    b = waiting("Hard")
    b.members("r1 r2 r3", 2)
    b.run()
    assert b.confirm("p1") == ["new r1@n1"]
    assert b.state("x") == "Accepted"
    said = b.hear(after=MINUTES)
    assert said == [f"x Failing: {OVER}", PLACED.format("r1"), *map(PENDING.format, ["p3", "r3", "r2"])]
    assert b.member("r4") == ["rejected r4 of x: application x is failing"]
    assert b.confirm("p2") == []  # too late: it only ends
    assert b.confirm("r1", TIMEOUT) == ["x Failed: failApplication"]
    assert b.free("n1") == {"vcore": 4}


def test_hard_gang_that_ran_in_part_fails_too() -> None:
    b = waiting("Hard")
    b.members("r1 r2", 2)
    b.run()
    b.confirm("p1")
    b.confirm("p2")
    assert b.state("x") == "Running"
    b.member("r3", 2)
    released = "released {} TIMEOUT: releasing allocated placeholders on placeholder timeout"
    assert b.hear(after=MINUTES) == [  # no placeholder is placed any more, but p3 waits for its place
        f"x Failing: {OVER}",
        *map(released.format, ["r1", "r2"]),
        *map(PENDING.format, ["p3", "r3"]),
    ]


def test_soft_gang_without_any_placeholder_placed_resumes_at_once() -> None:
    b = waiting("Soft")
    b.release("x", "p1")
    b.release("x", "p2")
    b.member("r1", 1)
    b.node("n1", NodeAction.DRAIN_NODE)
    assert b.hear(after=MINUTES) == [f"x Resuming: {OVER}", PENDING.format("p3"), "x Accepted: runApplication"]


def test_hard_gang_that_ran_in_part_and_has_a_placeholder_left_fails() -> None:
    b = Gangs(6)
    b.gang(total=8, style="Hard")
    b.places("p1 p2 p3 p4", 2)
    b.run()
    b.members("r1 r2", 2)
    b.run()
    b.confirm("p1")
    b.confirm("p2")
    assert b.state("x") == "Running"
    assert b.hear(after=MINUTES)[0] == f"x Failing: {OVER}"
    for key in ("r1", "r2", "p3"):
        b.confirm(key, TIMEOUT)
    assert b.states() == ""


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_running_gang_keeps_real_allocations_and_releases_placeholders(style: str) -> None:
    b = Gangs(8)
    b.gang(total=6, style=style)
    b.places("p1 p2 p3", 2)
    b.run()
    b.members("r1 r2", 2)
    b.run()
    b.confirm("p1")
    assert b.hear(after=MINUTES) == [PLACED.format("p3")]
    assert b.confirm("p2") == ["new r2@n1"]
    assert b.confirm("p3", TIMEOUT) == []
    b.member("r3", 2)
    assert (b.run(), b.state("x"), b.counts()) == ("r3@n1", "Running", "3=0+2+0+1")


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_completing_gang_releases_its_placeholders(style: str) -> None:
    b = Gangs(8)
    b.gang(total=4, style=style, timeout_ms=10_000)
    b.places("p1 p2", 2)
    b.run()
    b.member("r1", 2)
    b.run()
    b.confirm("p1")
    b.release("x", "r1")
    assert (b.state("x"), b.hear(after=10)) == ("Completing", [PLACED.format("p2")])
    assert b.hear(after=50) == []  # Completing lasts until it is confirmed
    assert b.confirm("p2", TIMEOUT) == ["x Completed: completeApplication"]


def test_the_timeout_stops_with_the_last_placeholder() -> None:
    b = Gangs(8)
    b.gang(total=4)
    b.places("p1", 2)
    b.run()
    b.member("r1", 2)
    b.run()
    b.confirm("p1")
    assert b.hear(after=3 * MINUTES) == []  # it is still Accepted, for the first replacement does not make it run
    assert b.state("x") == "Accepted"


def test_a_preempted_placeholder_is_not_released_twice() -> None:
    b = waiting("Soft")
    alloc = b.application("x").allocations["p1"]
    b.partition.accounting.preempting(b.application("x"), alloc)
    assert b.hear(after=MINUTES) == [f"x Resuming: {OVER}", PLACED.format("p2"), PENDING.format("p3")]
    b.confirm("p2", TIMEOUT)
    assert b.confirm("p1", Termination.PREEMPTED_BY_SCHEDULER) == ["x Accepted: runApplication"]


# -- the first interface has no Resuming ------------------------------------------------------------------------


def test_in_the_first_interface_a_soft_gang_stays_accepted() -> None:
    b = waiting("Soft", first_interface=True)
    b.members("r1 r2", 2)
    b.run()
    assert b.confirm("p1") == ["new r1@n1"]
    assert b.hear(after=MINUTES) == [PENDING.format("p3")]  # both are replaced, or about to be
    assert b.state("x") == "Accepted"
    b.confirm("p2", TIMEOUT)  # ended otherwise than it was asked: r2 is pending again
    assert b.states() == "x:Starting"
    assert b.run() == "r2@n1"


def test_in_the_first_interface_a_hard_gang_fails() -> None:
    b = waiting("Hard", first_interface=True)
    assert b.hear(after=MINUTES)[0] == f"x Failing: {OVER}"
    b.confirm("p1", TIMEOUT)
    assert b.confirm("p2", TIMEOUT) == ["x Failed: failApplication"]


# -- a placeholder that comes after a real ask -----------------------------------------------------------------

LATE = [
    ("Soft", False, [PLACED.format("p1")]),
    ("Soft", True, [PLACED.format("p1")]),
    ("Hard", False, [f"x Failing: {OVER}", PLACED.format("r1"), PLACED.format("p1")]),  # the gang was never whole
    ("Hard", True, [f"x Failing: {OVER}", PLACED.format("r1"), PLACED.format("p1")]),
]


@pytest.mark.parametrize(("style", "first_interface", "said"), LATE)
def test_the_timeout_runs_for_a_placeholder_of_a_running_application(
    style: str, first_interface: bool, said: list[str]
) -> None:
    b = Gangs(8, first_interface=first_interface)
    b.gang(total=4, style=style, timeout_ms=5_000)
    b.member("r1", group="")
    b.run()
    assert b.state("x") == ("Starting" if first_interface else "Running")
    b.places("p1", 2)
    b.run()
    assert b.hear(after=4.9) == []
    assert b.hear(after=0.1) == said
    b.confirm("p1", TIMEOUT)
    assert "p1" not in b.application("x").allocations


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_the_timeout_runs_for_a_placeholder_that_revives_a_completing_application(style: str) -> None:
    b = Gangs(8)
    b.gang(total=4, style=style, timeout_ms=5_000)
    b.member("r1", group="")
    b.run()
    b.release("x", "r1")
    assert b.state("x") == "Completing"
    b.places("p1", 2)
    b.run()
    assert b.hear(after=5)[-1] == PLACED.format("p1")


# -- restart ---------------------------------------------------------------------------------------------------


def test_recovered_placeholders_make_a_gang_run_and_time_out_in_the_remaining_time() -> None:
    b = Gangs(8)
    b.gang(total=4, timeout_ms=60_000, tags={"yunikorn.apache.org/creationTime": str(1_000_000 - 50)})
    b.places("p1 p2", 2, node="n1")
    assert (b.state("x"), b.counts()) == ("Running", "2=2+0+0+0")
    b.member("r1", 2)
    b.run()
    b.confirm("p1")
    assert b.hear(after=9.9) == []
    assert b.hear(after=0.1) == [PLACED.format("p2")]


def test_a_timeout_that_has_passed_already_ends_the_placeholders_at_once() -> None:
    b = Gangs(8)
    b.gang(total=4, style="Hard", timeout_ms=60_000, tags={"yunikorn.apache.org/creationTime": "900000"})
    b.places("p1", 2, node="n1")
    assert b.hear(after=0.001) == [f"x Failing: {OVER}", PLACED.format("p1")]


def test_real_allocations_first_and_placeholders_later() -> None:
    b = Gangs(8)
    b.gang(total=4)
    b.member("r1", 2, node="n1")
    b.places("p1", 2, node="n1")
    assert b.state("x") == "Running"
    b.member("r2", 1)
    b.member("r3", 1)
    assert len(b.hear()) == 1
    b.confirm("p1")
    assert b.run() == "r3@n1"


def test_a_recovered_placeholder_of_an_application_that_runs_times_out_too() -> None:
    b = Gangs(8)
    b.gang(total=4)
    b.member("r1", 2, node="n1")
    b.places("p1", 2, node="n1")
    assert b.hear(after=MINUTES) == [PLACED.format("p1")]


def test_a_pending_placeholder_that_was_bound_meanwhile_counts_once() -> None:
    b = Gangs()
    b.gang(total=4)
    b.places("p1", 2)
    b.node("n1", vcore=4)
    b.places("p1", 2, node="n1")
    assert b.counts() == "1=1+0+0+0"
