"""Runs the machine a number of steps from a seed: the same ones each time."""

from __future__ import annotations

from functools import lru_cache
from unittest.mock import patch

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

import seeds
from licorne.config import load
from licorne.core import cluster
from machine.rules import Machine
from machine.situations import Situations

RUN_LENGTH = 60
"""Rules in one run. A run is one life of a scheduler; a rule checks one to four times."""
ROUND = 15
"""Runs from one seed; the next ones come from the next seed."""


def run(steps: int, seed: int, *, shrink: bool = True, alone: bool = False) -> Situations:
    """Run until that many steps were checked, and what was met; raises what the checks raise.

    If all situations must be met and some are missing then, it goes on for twice as long: a change of the product must not need another seed.
    """
    situations = Machine.situations = Situations()
    Machine.alone = alone
    phases = [hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if shrink else [])]
    settings = hypothesis.settings(
        max_examples=ROUND,
        stateful_step_count=RUN_LENGTH,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=phases,
        print_blob=False,
    )
    # Each text is read once: most of the time would go into that.
    with patch.object(cluster, "load", lru_cache(maxsize=512)(load)):
        while situations.steps < steps or (seeds.MEETS_ALL and situations.missing() and situations.steps < 3 * steps):
            run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=settings)
            seed += 1
    return situations
