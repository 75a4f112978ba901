"""With parking and without it the same is decided, at every step, and in the end no ask waits that could run.

By default the same scenarios each time, as many as LICORNE_PARKING_SCENARIOS says, from LICORNE_PARKING_SEED on. The long form
takes 30,000 from a new seed, which it prints; a disagreement prints its seed, and `python -m parking.compare SEED` every step.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import seeds
from common.plain_python import printed_by
from licorne.core.waiting import wakeups
from parking.compare import run
from parking.faults import CAUGHT_ELSEWHERE, EVENTS, FAULTS
from parking.situations import Situations
from reference.compare import DisagreementError
from rings import first_in_gate

SCENARIOS = int(os.environ.get("LICORNE_PARKING_SCENARIOS", "250"))
SEED = seeds.first_seed("LICORNE_PARKING_SEED")
ENOUGH = 250
"""From this many scenarios on every situation must have been met; with a random seed one may be missed."""
WHAT_IS_DUE = {"apply_node_events", "forget_node", "must_try_reserved", "retry_everything"}
"""The methods of `WakeUps` that are no events."""
PARTS, PART = 15, 2000
"""The long form, in parts that may run at the same time."""


@pytest.mark.gate
def test_the_same_is_decided_with_parking_and_without() -> None:
    situations = _compare(SEED, SCENARIOS)
    if SCENARIOS >= ENOUGH and not seeds.RANDOM:
        assert not situations.missing(), f"never met: {', '.join(situations.missing())}"


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_is_decided_for_thousands_more_seeds(part: int, new_seed: int) -> None:
    _compare(new_seed + part * PART, PART)


def test_every_event_is_dropped_by_a_planted_fault_or_by_a_test() -> None:
    """Read from the source, where no method is hidden as C methods of a compiled class are."""
    source = Path(wakeups.__file__).with_name("wakeups.py").read_text(encoding="utf-8")
    events = set(re.findall(r"    def ([a-z]\w*)", source)) - WHAT_IS_DUE
    assert events == {*EVENTS, *CAUGHT_ELSEWHERE}


@pytest.mark.parametrize("event", first_in_gate(CAUGHT_ELSEWHERE))
def test_the_test_of_an_event_that_others_do_not_miss_fails_without_it(event: str) -> None:
    printed = printed_by("parking.elsewhere", event)
    assert printed.startswith("caught after"), printed


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_a_lost_wake_up_is_caught(name: str) -> None:
    _caught(name, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_lost_wake_up_is_caught_from_any_seed(name: str, new_seed: int) -> None:
    """By what is decided alone, in two thousand scenarios."""
    _caught(name, new_seed)


def _compare(first: int, count: int) -> Situations:
    """Compare a number of scenarios, from a seed on."""
    sys.stdout.write(f"to run this again: LICORNE_PARKING_SEED={first} LICORNE_PARKING_SCENARIOS={count}\n")
    situations = Situations()
    differ: list[str] = []
    for seed in range(first, first + count):
        try:
            run(seed, situations)
        except DisagreementError as error:
            differ.append(str(error))
    sys.stdout.write(situations.report())
    firsts = [text.split("\n", 1)[0] for text in differ]
    assert not differ, "\n".join([f"{len(differ)} scenarios differ", *firsts, differ[0]])
    return situations


def _caught(name: str, seed: int) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    printed = printed_by("parking.faults", name, str(seed))
    sys.stdout.write(f"{name}, from seed {seed} on: {printed}\n")
    assert printed.startswith("caught after"), printed
