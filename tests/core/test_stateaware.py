"""The order `stateaware` and the state Starting.

Source: *Sorting Policies*, *Scheduler Object States*; docs/spec/scheduling.md, section 5.1; docs/spec/states.md,
sections 1.4 and 1.7.
"""

from __future__ import annotations

import pytest

from core.bench import SECOND_NS, Bench, cluster, config

STATEAWARE = "a properties: {application.sort.policy: stateaware}"


def starting(where: str) -> Bench:
    """Starting is part of an application's life in the first interface, and by a setting in the 1.9 interface."""
    settings = {"application.state.starting": "true"} if where == "setting" else {}
    return Bench(config(STATEAWARE), first_interface=where == "first", settings=settings)


@pytest.mark.parametrize("where", ["first", "setting"])
def test_stateaware_starts_one_application_after_the_other(where: str) -> None:
    b = starting(where)
    b.node("n1", vcore=100)
    for app in ("x1", "x2", "x3"):
        b.app(app)
    for app in ("x3", "x2", "x1"):
        b.ask(app, f"{app}-0", vcore=1)
    assert b.run() == "x1-0@n1"
    assert b.states() == "x1:Starting x2:Accepted x3:Accepted"  # one without pending asks blocks them all the same
    assert b.run(after=299) == ""
    assert b.run(after=1) == "x2-0@n1"  # five minutes have passed
    assert b.states() == "x1:Running x2:Starting x3:Accepted"
    b.ask("x1", "x1-1", vcore=1)
    b.ask("x2", "x2-1", vcore=1)
    assert b.run() == "x1-1@n1 x2-1@n1 x3-0@n1"  # the second allocation ends Starting
    assert b.states() == "x1:Running x2:Running x3:Starting"


def test_stateaware_goes_on_when_the_one_that_starts_goes_away() -> None:
    b = starting("setting")
    b.node("n1", vcore=100)
    for app in ("x1", "x2", "x3"):
        b.app(app)
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1"
    b.release("x1", "x1")
    assert (b.run(), b.states()) == ("x2@n1", "x1:Completing x2:Starting x3:Accepted")
    b.remove("x2")
    assert (b.run(), b.states()) == ("x3@n1", "x1:Completing x3:Starting")


def test_the_oldest_accepted_application_blocks_others_even_if_it_fits_nowhere() -> None:
    b = starting("setting")
    b.node("n1", vcore=100)
    for app, vcore in (("x1", 101), ("x2", 1)):
        b.app(app)
        b.ask(app, app, vcore=vcore)
    assert b.run() == ""
    b.node("n2", vcore=101)
    assert b.run() == "x1@n2"


def test_where_starting_is_off_stateaware_is_fifo() -> None:
    b = cluster(config(STATEAWARE), 100)
    for app in ("x1", "x2"):
        b.app(app)
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1 x2@n1"


def test_starting_is_a_running_application_for_quotas_and_its_clock() -> None:
    b = cluster(config("a maxapplications: 1"), 100, apps="x1 x2", first_interface=True)
    for app in ("x1", "x2"):
        b.ask(app, app, vcore=1)
    assert b.run() == "x1@n1"
    begun = b.application("x1").started_ns
    b.run(after=300)
    assert b.states() == "x1:Running x2:Accepted"
    assert b.application("x1").started_ns == begun == (b.seconds - 300) * SECOND_NS
