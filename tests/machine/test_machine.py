"""The scheduler under a state machine of Hypothesis: anything may happen, in any order, while time moves.

By default the same runs each time, as many as LICORNE_MACHINE_STEPS says (5,000 steps), from LICORNE_MACHINE_SEED, a
number or `random`; the seed is printed, and with it and the same code every run comes out the same again.
"""

from __future__ import annotations

import os
import random

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from machine.driver import quick_configurations  # noqa: F401  a fixture
from machine.machine import Machine
from machine.situations import Situations

STEPS = int(os.environ.get("LICORNE_MACHINE_STEPS", "5000"))
SEED = os.environ.get("LICORNE_MACHINE_SEED", "1")
RUN_LENGTH = 60


@pytest.mark.timeout(max(600, STEPS // 10))
@pytest.mark.usefixtures("quick_configurations")
def test_whatever_happens_the_invariants_hold() -> None:
    seed = random.SystemRandom().randrange(10**9) if SEED == "random" else int(SEED)
    print(f"seed {seed}: LICORNE_MACHINE_SEED={seed} LICORNE_MACHINE_STEPS={STEPS}")
    situations = Machine.situations = Situations()
    settings = hypothesis.settings(
        max_examples=max(1, STEPS // RUN_LENGTH),
        stateful_step_count=RUN_LENGTH,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    while situations.steps < STEPS:
        run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=settings)
        seed += 1
    print(f"{situations.steps} steps\n{situations.report()}")
    if STEPS >= 5000:
        assert not situations.missing(), f"never met: {situations.missing()}"
