"""A simulation that is driven step by step comes to the same result as one that is run as a whole."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import licorne
from common.examples import examples
from licorne.sim.report import Result
from licorne.workload.workload import Mode
from sim.random_workloads import Writer

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKLOAD = EXAMPLES / "gpu-holiday" / "workload.jsonl"


def same(result: Result) -> Result:
    return msgspec.structs.replace(result, real_s=0.0)


@given(st.integers(0, 200), st.lists(st.floats(0, 300), max_size=6))
@examples(30)
def test_steps_change_nothing(seed: int, times: list[float]) -> None:
    whole = same(licorne.simulate(Writer(seed).workload(), every_s=7))
    simulation = licorne.Simulation(Writer(seed).workload(), every_s=7)
    if whole.mode == Mode.TIMED.value:
        for until_s in times:  # a time that has passed already has no effect
            before_s = simulation.now_s
            simulation.advance(until_s)
            assert before_s <= simulation.now_s <= max(until_s, before_s) + 1e-9  # its clock counts nanoseconds
    assert same(simulation.run()) == whole


def test_between_steps_one_can_look() -> None:
    simulation = licorne.Simulation(WORKLOAD)
    assert simulation.now_s == 0
    assert simulation.advance(6 * 3600 + 1)
    assert 0 < simulation.now_s <= 6 * 3600 + 1
    used = {(row.queue, row.resource): row.used for row in simulation.queues()}
    assert used["cluster", "nvidia.com/gpu"] == used["root", "nvidia.com/gpu"] > 0
    waiting = list(simulation.waiting())
    assert waiting
    assert {row.queue for row in waiting} == {"root.language"}
    assert all(row.reason for row in waiting)
    result = simulation.run()
    assert simulation.run() is result
    assert not simulation.advance(10**6)
    assert result.digest == licorne.simulate(WORKLOAD).digest


def test_a_workload_without_times_has_no_steps() -> None:
    lines: list[dict[str, object]] = [
        {"t": "meta", "version": 2, "name": "still"},
        {"t": "node", "id": "n", "res": {"vcore": 1}},
        {"t": "run"},
    ]
    simulation = licorne.Simulation(lines)
    with pytest.raises(ValueError, match="time stands still"):
        simulation.advance(1)
    assert simulation.run().mode == "script"
