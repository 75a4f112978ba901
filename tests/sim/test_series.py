"""The time series of queues: one state for each point of time, and an end with the simulation."""

from __future__ import annotations

from typing import Any

import pytest

from licorne import simulate
from licorne.sim import Series, SeriesRow
from sim.test_runner import QUEUES

SECOND_NS = 10**9


def rows(*lines: dict[str, Any], every_s: float = 10) -> list[SeriesRow]:
    head: list[dict[str, Any]] = [
        {"t": "meta", "name": "w", "version": 2},
        {"t": "config", "yaml": QUEUES},
        {"t": "node", "id": "n", "res": {"vcore": 2000}},
        {"t": "app", "id": "app", "queue": "root.a", "user": "u"},
    ]
    found: list[SeriesRow] = []
    simulate([*head, *lines], observers=[Series(round(every_s * SECOND_NS), found.append)])
    return found


def ask(key: str, at: float, **more: Any) -> dict[str, Any]:
    return {"t": "ask", "key": key, "app": "app", "res": {"vcore": 1500}, "at": at, **more}


def test_each_point_has_the_state_after_what_happens_then() -> None:
    """k0 runs from 5 to 20, k1 waits from 10 and runs from 20 to 45."""
    found = rows(ask("k0", 5, duration_s=15), ask("k1", 10, duration_s=25))
    assert [row for row in found if row.time_s == 10] == [
        SeriesRow(10.0, "cluster", "vcore", 1500, 1500, None, 2000),
        SeriesRow(10.0, "root", "vcore", 1500, 1500, None, 2000),
        SeriesRow(10.0, "root.a", "vcore", 1500, 1500, 1000, None),
        SeriesRow(10.0, "root.b", "vcore", 0, 0, None, 1000),
    ]
    cluster = [(row.time_s, row.used, row.pending) for row in found if row.queue == "cluster"]
    assert cluster == [(0.0, 0, 0), (10.0, 1500, 1500), (20.0, 1500, 0), (30.0, 1500, 0), (40.0, 1500, 0)]


def test_it_ends_with_the_simulation_and_not_with_the_clock() -> None:
    """The clock looks at deadlines for a day after 12, since a pod waits that never fits."""
    found = rows(ask("k", 0, duration_s=12), ask("never", 0, res={"vcore": 1, "gpu": 1}), every_s=4)
    assert sorted({row.time_s for row in found}) == [0.0, 4.0, 8.0, 12.0]


@pytest.mark.parametrize("every_s", [0.5, 1, 3, 7, 100])
def test_no_point_is_left_out_and_none_comes_twice(every_s: float) -> None:
    """One pod runs at a time: they need 30 s from 1 on, since the first takes none."""
    lines = [ask(f"k{at}", at, duration_s=at % 4) for at in range(20)]
    times = [row.time_s for row in rows(*lines, every_s=every_s) if row.queue == "root.b"]
    assert times == [number * every_s for number in range(len(times))]
    assert times[-1] <= 31 < times[-1] + every_s


def test_an_interval_is_above_zero() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Series(0, print)
