"""licorne is killed at each of its awaits in turn, and started again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import sys
from functools import cache

import pytest

import seeds
from kube import kills
from licorne.kube.manager import Manager
from licorne.kube.manager.records import PodRecord, Stage

EVERY = 12
"""Every day one await in so many is tried, others each time; all of them among the long tests."""


@cache
def awaits() -> int:
    """Return how many awaits the day has when licorne is not killed."""
    return max(kills.play(kills.NEVER, arrives=arrives) for arrives in (False, True))


def say(at: int, *, arrives: bool) -> None:
    """Say how a kill is played again."""
    sys.stdout.write(f"to play this again: kube.kills.play({at}, arrives={arrives})\n")


@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_at_some_awaits(arrives: bool) -> None:
    for at in range(1 + seeds.first_seed("LICORNE_KUBE_SEED") % EVERY, awaits() + 1, EVERY):
        say(at, arrives=arrives)
        kills.play(at, arrives=arrives)


@pytest.mark.long
@pytest.mark.parametrize("arrives", [False, True], ids=["what is under way is lost", "what is under way arrives"])
def test_killed_at_every_await(arrives: bool) -> None:
    for at in range(1, awaits() + 1):
        say(at, arrives=arrives)
        kills.play(at, arrives=arrives)


def test_the_day_has_awaits_of_every_part() -> None:
    """Fewer would mean that a part of licorne is not counted."""
    assert awaits() > 300


def test_a_process_that_passes_over_what_runs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Manager._report

    def forgetful(self: Manager, record: PodRecord) -> None:
        if record.pod.spec.node_name and record.stage is Stage.HELD:
            return
        report(self, record)

    monkeypatch.setattr(Manager, "_report", forgetful)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        _kill_now_and_then()


def _kill_now_and_then() -> None:
    for at in range(1, 600, 50):
        kills.play(at, arrives=False)
