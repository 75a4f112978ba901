"""licorne is killed at each of its awaits in turn, and started again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import cache

import pytest

import seeds
from common.planting import LOOKED_AT, a_law_breaks, number_of
from kube import faults, kills
from licorne.kube.manager.lifecycle import PodLifecycle
from licorne.kube.manager.records import PodRecord
from licorne.kube.manager.stages import Stage

EVERY = 12
"""Every day one await in so many is tried, others each time; all of them among the long tests."""
RANDOM_DAYS = 8
"""On so many random days licorne is killed at one await; at each await of four of them among the long tests."""
USUAL_AWAITS = 600
"""Few random days have fewer awaits."""


@cache
def awaits() -> int:
    """Return how many awaits the day has when licorne is not killed."""
    return max(kills.play(kills.NEVER, arrives=arrives) for arrives in (False, True))


def say(at: int, *, arrives: bool, seed: int | None = None) -> None:
    """Say how a kill is played again."""
    sys.stdout.write(f"to play this again: kube.kills.play({at}, arrives={arrives}, seed={seed})\n")


@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_at_some_awaits(arrives: bool) -> None:
    for at in range(1 + seeds.first_seed("LICORNE_KUBE_SEED") % EVERY, awaits() + 1, EVERY):
        say(at, arrives=arrives)
        kills.play(at, arrives=arrives)


@pytest.mark.nightly
@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_at_every_await(arrives: bool) -> None:
    for at in range(1, awaits() + 1):
        say(at, arrives=arrives)
        kills.play(at, arrives=arrives)


@pytest.mark.gate
@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_on_random_days(arrives: bool) -> None:
    first = seeds.first_seed("LICORNE_KUBE_SEED")
    for seed in range(first, first + RANDOM_DAYS):
        at = random.Random(seed).randrange(1, USUAL_AWAITS)
        say(at, arrives=arrives, seed=seed)
        kills.play(at, arrives=arrives, seed=seed)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_at_every_await_of_random_days(number: int, arrives: bool, new_seed: int) -> None:
    seed = new_seed + number
    for at in range(1, kills.play(kills.NEVER, arrives=arrives, seed=seed) + 1):
        say(at, arrives=arrives, seed=seed)
        kills.play(at, arrives=arrives, seed=seed)


def test_the_day_has_awaits_of_every_part() -> None:
    """Fewer would mean that a part of licorne is not counted."""
    assert awaits() > 300


@pytest.mark.parametrize("seed", [None, 1], ids=["fixed day", "random day"])
def test_a_process_that_passes_over_what_runs_is_noticed(
    seed: int | None, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    report = PodLifecycle.report

    def forgetful(self: PodLifecycle, record: PodRecord) -> None:
        if record.pod.spec.node_name and record.stage is Stage.HELD:
            return
        report(self, record)

    monkeypatch.setattr(PodLifecycle, "report", forgetful)
    tried: list[int] = []
    with a_law_breaks(*faults.LAWS):
        for at in range(1, 600, 50):
            tried.append(at)
            kills.play(at, arrives=False, seed=seed)
    record_property(LOOKED_AT, number_of(len(tried), "day"))
