"""Random workloads run to their end without an error from within, twice with the same result; each ask not placed has a reason.

LICORNE_WORKLOADS says how many, LICORNE_WORKLOADS_SEED the first seed; the long form takes 5,000 from a new seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec
import pytest

import seeds
from licorne.sim.runner import simulate
from licorne.sim.workload import Workload
from sim.random_workloads import Writer, in_strict_order

WORKLOADS = int(os.environ.get("LICORNE_WORKLOADS", "200"))
SEED = seeds.first_seed("LICORNE_WORKLOADS_SEED")
LONG = 5_000


@pytest.mark.timeout(300)
def test_random_workloads_end_well() -> None:
    _simulated(SEED, WORKLOADS, lambda seed: Writer(seed).workload())


@pytest.mark.timeout(300)
def test_random_workloads_in_strict_order_end_well() -> None:
    _simulated(SEED, WORKLOADS, _strict)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_thousands_more_random_workloads_end_well(new_seed: int) -> None:
    _simulated(new_seed, LONG, lambda seed: Writer(seed).workload())
    _simulated(new_seed, LONG, _strict)


def _strict(seed: int) -> Workload:
    return in_strict_order(Writer(seed).workload(), seed)


def _simulated(first: int, count: int, written: Callable[[int], Workload]) -> None:
    placed = 0
    for seed in range(first, first + count):
        try:
            results = [msgspec.structs.replace(simulate(written(seed)), real_s=0.0) for _ in range(2)]
        except Exception as error:
            raise AssertionError(f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}") from error
        assert results[0] == results[1], f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}"
        reasons = sum(reason.asks for reason in results[0].reasons)
        assert reasons == results[0].never_placed, (
            f"LICORNE_WORKLOADS=1 LICORNE_WORKLOADS_SEED={seed}: {reasons} reasons"
        )
        placed += results[0].placed
    assert placed > count, "hardly anything was placed"
