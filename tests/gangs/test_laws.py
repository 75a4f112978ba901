"""Gangs with placeholders under random messages, confirmations out of order, time and lost nodes keep the laws of
`gangs.laws`, and these laws catch faults that are planted in the product."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from common.examples import examples
from common.plain_python import printed_by
from gangs import faults
from gangs.laws import STARTS, World, lived
from licorne.si.messages import Termination

number = st.integers(0, 7)
STEPS = [
    st.tuples(st.just("place"), number, st.sampled_from([1, 1, 2]), st.sampled_from(["g", "g", "h"])),
    st.tuples(st.just("real"), number, st.sampled_from([1, 1, 2, 3]), st.sampled_from(["g", "g", "h", ""])),
    st.tuples(st.just("run"), st.sampled_from([None, None, 1, 2])),
    st.tuples(st.just("confirm"), number, st.booleans()),
    st.tuples(st.just("confirm"), number, st.booleans()),
    st.tuples(st.just("release"), number, st.sampled_from(list(Termination))),
    st.tuples(st.just("drop"), number),
    st.tuples(st.just("resize"), number, st.sampled_from([1, 2, 4])),
    st.tuples(st.just("bound"), number),
    st.tuples(st.just("node"), st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(["lose", "drain", "open", "add"])),
    st.tuples(st.just("time"), st.sampled_from([1, 10, 31, 61])),
    st.tuples(st.just("preempt"), number),
]
steps = st.lists(st.one_of(STEPS), min_size=5, max_size=40)
worlds = st.tuples(st.sampled_from(["Soft", "Hard"]), st.booleans(), st.booleans())


@examples(80, suppress_health_check=list(HealthCheck))
@given(worlds, st.sampled_from(list(STARTS)), steps)
def test_gangs_keep_their_counters_and_come_to_an_end(
    world: tuple[str, bool, bool], start: str, steps: list[Any]
) -> None:
    style, first_interface, picky = world
    w = World(style, first_interface=first_interface, picky=picky)
    for step in [*STARTS[start], *steps]:
        w.step(step)
    w.finish()


@pytest.mark.nightly
@pytest.mark.parametrize("start", STARTS)
def test_thousands_of_gangs_keep_their_counters_and_end(start: str, new_seed: int) -> None:
    for number in range(new_seed, new_seed + 5_000):
        try:
            lived(random.Random(number), start=start)
        except Exception as error:
            raise AssertionError(f"the gang of seed {number}") from error


@pytest.mark.gate
def test_planted_faults_are_caught() -> None:
    """One process plants them all, one after the other: most are caught in less time than a process takes to start."""
    lines = printed_by("gangs.faults").splitlines()
    assert [line.partition(": ")[0] for line in lines] == list(faults.FAULTS)
    assert [line for line in lines if ": caught after" not in line] == []


@pytest.mark.parametrize("error", [KeyError("of the test"), AssertionError("of the test")])
def test_an_error_that_is_no_broken_law_catches_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(_self: World) -> None:
        raise error

    monkeypatch.setitem(faults.FAULTS, "none", (World, "finish", lambda _sound: finish))
    with pytest.raises(type(error), match="of the test"):
        faults.caught("none")
