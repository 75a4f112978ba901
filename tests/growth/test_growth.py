"""Objects that have gone leave nothing: after 360 of a kind have come and gone, there is as much as before.

All that is reachable from the scheduler is counted (`census`), so a table that was overlooked is seen too. What is kept on
purpose, to a bound, is listed in docs/reference/limits.md ("What grows, and who shrinks it"), and named here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.soak.kinds import KINDS, Kind, end, events
from bench.soak.world import World

from common.plain_python import printed_by
from growth.census import census, grown
from growth.later import COUNTED_KINDS
from licorne.core.preemption.guarantee_preemption import GuaranteePreemption

ROOT = Path(__file__).resolve().parents[2]
WARM_UP = 30
"""So many have come and gone before the first count."""
EVENTS = 360
"""So many more before the second."""
ALIVE = 120
"""At most so many are there at a time."""
SLACK = 110
"""So much more there may be of anything then: tables are looked through when what has gone is the most, and more than 64,
and an application keeps 100 task groups."""
KEPT = (
    "Eviction",
    "Needs._by_text",
    "Partition.?",
    "Partition.evictions",
    "Partition.rejected",
    "Rejection",
    "Timers._heap[",
    "Topology.?",
)
"""What is kept to a bound that is not reached here; parts of deadlines are those of cancelled ones, up to 64. Compiled,
tables have no names, but what is in them counts by its class: those of `Topology` have a place for each node that was there
before the newest one."""
C_ARRAYS = (".v", ".low")
"""These lists are C arrays, but for plain Python, and count with their owners."""
LONG_REST_S = 80 * 3600
"""Ended applications are kept for 72 hours."""
SHORT_REST_S = 60
ENDS_ITSELF = ("blocked", "completing", "gangs", "queues", "shy", "unplaced", "users")
"""Kinds of applications that complete, and so are kept for a while."""
NOT_IN_FIRST = ("managers", "reloads")
"""What the first interface has other calls for."""


def left(world: World, kind: Kind, rest_s: int) -> list[str]:
    """The kinds of objects that became more when 30, then 390, of a kind had come and gone."""
    share = min(1, 5 * kind.share)
    few = msgspec.structs.replace(kind, alive=min(kind.alive, WARM_UP))
    events(world, few, 0, WARM_UP)
    end(world, few, WARM_UP, rest_s)
    before = census(world.api)
    many = msgspec.structs.replace(kind, alive=min(kind.alive, ALIVE))
    count = int(EVENTS * share)
    events(world, many, WARM_UP, count, since=WARM_UP)
    end(world, many, WARM_UP + count, rest_s)
    world.api.validate()
    assert not world.api.callback_errors
    found = grown(before, census(world.api), int(SLACK * share))
    return [text for text in found if not text.startswith(KEPT) and not text.partition(":")[0].endswith(C_ARRAYS)]


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_when_everything_has_gone(name: str) -> None:
    assert left(World(), KINDS[name], LONG_REST_S) == []


@pytest.mark.gate
@pytest.mark.parametrize("name", [name for name in KINDS if name not in NOT_IN_FIRST])
def test_nothing_is_left_where_deadlines_are_far(name: str) -> None:
    """For a resource manager of the first interface that listens: removed objects drop their deadlines before those come."""
    world = World(first_interface=True, hears=True, settings={"reservation.delay": "10h"})
    assert left(world, KINDS[name], LONG_REST_S if name in ENDS_ITSELF else SHORT_REST_S) == []


def test_leftovers_of_a_planted_fault_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: applications that have gone are not forgotten by preemption."""
    monkeypatch.setattr(GuaranteePreemption, "forget", lambda _self, _app: None)
    found = left(World(), KINDS["promised"], LONG_REST_S)
    assert "GuaranteePreemption.seen: 30, then 390" in found
    assert any(text.startswith("Application: ") for text in found), found


class Holder:
    def __init__(self, things: Mapping[str, Any]) -> None:
        self.things = things


def test_a_census_names_the_holders_of_leftovers() -> None:
    counted = census([Holder({"a": [1, 2, []], "b": ({},)})])
    assert counted["Holder"] == 1
    assert counted["Holder.things"] == 2
    assert counted["Holder.things[]"] == 3 + 1
    assert grown({"Ask": 3}, {"Ask": 9, "Node": 2}, 5) == ["Ask: 3, then 9"]


@pytest.mark.gate
def test_no_later_event_does_more_work() -> None:
    """Kinds whose later events run a fifth more lines are shown with both numbers. One process counts them all, since most
    kinds take less time than a process takes to start."""
    counted = [line.rsplit(" ", 2) for line in printed_by("growth.later").splitlines()]
    assert [name for name, _, _ in counted] == list(COUNTED_KINDS)
    assert [each for each in counted if int(each[2]) > 1.2 * int(each[1])] == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", KINDS)
def test_a_million_come_and_go(name: str) -> None:
    """`python -m bench soak`: no later event is slower, and the process does not grow.

    Others on the machine may slow down what comes last: an attempt of three that holds will do.
    """
    count = os.environ.get("LICORNE_SOAK", "1000000")
    command = [sys.executable, "-m", "bench", "soak", name, "--count", count]
    said = []
    for _ in range(3):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        said.append(done.stdout + done.stderr)
        if done.returncode == 0:
            return
    pytest.fail("\n".join(said))
