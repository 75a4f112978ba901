"""The scheduler under a state machine of Hypothesis: anything may happen, in any order, while time moves.

By default the same runs each time, as many as LICORNE_MACHINE_STEPS says (a quarter of 8,000 steps; in the profile `long` of
`common.examples` twenty times as many), from LICORNE_MACHINE_SEED on (`seeds`); the seed is printed, and with it and the
same code every run comes out the same again.
"""

from __future__ import annotations

import os
import sys

import pytest

import seeds
from common.examples import scaled
from machine.run import run

STEPS = int(os.environ.get("LICORNE_MACHINE_STEPS") or scaled(8000))
SEED = seeds.first_seed("LICORNE_MACHINE_SEED")
FEW = 100
"""Steps before each commit; the gate takes all."""
ENOUGH = 5000
"""From this many steps on every situation must have been met; with a random seed one may be missed."""


@pytest.mark.timeout(max(1800, STEPS // 10))
@pytest.mark.parametrize("steps", [pytest.param(STEPS, id="all steps", marks=pytest.mark.gate), min(STEPS, FEW)])
def test_whatever_happens_the_invariants_hold(steps: int) -> None:
    sys.stdout.write(f"to run this again: LICORNE_MACHINE_SEED={SEED} LICORNE_MACHINE_STEPS={steps}\n")
    situations = run(steps, SEED)
    sys.stdout.write(f"{situations.steps} steps\n{situations.report()}\n")
    assert situations.steps >= steps
    if steps >= ENOUGH and not seeds.RANDOM:
        assert not situations.missing(), f"never met: {', '.join(situations.missing())}"
