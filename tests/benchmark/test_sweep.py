"""The measurement of sweeps counts the time of all processes that run points; no speed is tested."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bench import sweep

from licorne.lab.sweep import Outcome, Point

if TYPE_CHECKING:
    import pytest


def busy(point: Point) -> Outcome:
    """Use a twentieth of a second of a processor."""
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    return Outcome(asks=int(point.load or 0))


def test_the_processor_time_is_that_of_the_processes_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    engines: dict[str, Any] = {"processes": sweep._ENGINES["processes"]}
    monkeypatch.setattr(sweep, "_ENGINES", engines)
    monkeypatch.setattr(sweep, "nothing", busy)
    found = sweep.measure_sweep(4, 1)
    assert [(each.engine, each.simulated, each.points) for each in found] == [
        ("processes", False, 4),
        ("processes", True, 1),
    ]
    assert found[0].processor_ms >= 40  # a tick is lost at both ends
