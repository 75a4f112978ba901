"""Random workloads run to their end without an error from within, twice with the same result; each ask not placed has a reason.

At each moment the model of the resource manager knows what the scheduler has: the same allocations live, the same asks wait.

LICORNE_WORKLOADS says how many, LICORNE_WORKLOADS_SEED the first seed; the long form takes 5,000 from a new seed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

import seeds
from licorne.core.partition import Partition
from licorne.sim.observer import Observer
from licorne.sim.runner import simulate
from licorne.sim.simulation import SimulatedCluster
from licorne.workload.workload import Workload
from sim.random_workloads import Writer, in_strict_order

WORKLOADS = int(os.environ.get("LICORNE_WORKLOADS", "200"))
SEED = seeds.first_seed("LICORNE_WORKLOADS_SEED")
LONG = 5_000


@pytest.mark.gate
def test_random_workloads_end_well() -> None:
    _simulated(SEED, WORKLOADS, lambda seed: Writer(seed).workload())


@pytest.mark.gate
def test_random_workloads_in_strict_order_end_well() -> None:
    _simulated(SEED, WORKLOADS, _strict)


@pytest.mark.nightly
def test_thousands_more_random_workloads_end_well(new_seed: int) -> None:
    _simulated(new_seed, LONG, lambda seed: Writer(seed).workload())
    _simulated(new_seed, LONG, _strict)


REPORTED: dict[str, object] = {"t": "ask", "at": 5, "app": "a", "key": "k", "res": {"vcore": 1}, "node": "n"}
APP: dict[str, object] = {"t": "app", "at": 5, "id": "a", "queue": "root.q", "user": "u"}


@pytest.mark.parametrize(
    "ends",
    [
        [{"t": "release", "at": 5, "app": "a", "key": "k"}],
        [{"t": "release", "at": 5, "app": "a", "key": ""}],
        [{"t": "release-app", "at": 5, "app": "a"}, APP],
    ],
)
def test_a_key_that_is_reported_released_and_asked_for_at_once_is_another_pod(ends: list[dict[str, object]]) -> None:
    config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
    workload: list[dict[str, object]] = [
        {"t": "meta", "name": "at-once", "version": 2},
        {"t": "config", "yaml": config},
        {"t": "node", "at": 0, "id": "n", "res": {"vcore": 4}},
        *(APP, REPORTED, *ends),
        {**REPORTED, "node": "", "duration_s": 9},
    ]
    result = simulate(workload, observers=[Agreement()])
    assert (result.recovered, result.placed, result.ended) == (1, 1, 1)


def _strict(seed: int) -> Workload:
    return in_strict_order(Writer(seed).workload(), seed)


class Agreement(Observer):
    """Compares what the model and the scheduler take for running and for waiting, at the end of each moment."""

    def on_begin(self, simulation: SimulatedCluster) -> None:
        self._simulation = simulation

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        del until_ns
        model, jobs = self._simulation.model, self._simulation.jobs
        waiting: Counter[tuple[str, str]] = Counter()
        running: set[str | tuple[str, str]] = set()
        for app in partition.applications.values():
            for ask in app.asks.values():
                waiting[app.id, ask.key] += ask.repeats
            for ask in app.gang.replacing.values() if app.gang is not None else ():
                waiting[app.id, ask.key] += 1
            running |= {(app.id, one.key) if one.id == one.key else one.id for one in app.allocations.values()}
        held = [] if jobs is None else [pod for _, pod in jobs.held_back()]
        known = {(pod.ask.app, pod.ask.key): pod.ask.max - pod.placed for pod in model.waiting() if pod not in held}
        assert known == waiting, f"at {now_ns} ns"
        if model.follows:
            assert {run.name for run in (*model.running.values(), *(run for _, _, run in model.going))} == running


def _simulated(first: int, count: int, written: Callable[[int], Workload]) -> None:
    placed = 0
    for seed in range(first, first + count):
        try:
            results = [
                msgspec.structs.replace(simulate(written(seed), observers=[Agreement()]), real_s=0.0) for _ in range(2)
            ]
        except Exception as error:
            raise AssertionError(f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}") from error
        assert results[0] == results[1], f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}"
        reasons = sum(reason.asks for reason in results[0].reasons)
        assert reasons == results[0].never_placed, (
            f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}: {reasons} reasons"
        )
        placed += results[0].placed
    assert placed > count, "hardly anything was placed"
