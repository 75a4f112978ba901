"""The seed of a test run, LICORNE_SEED: a new one each time, printed, and taken again where the environment has it.

The order of the tests always comes from it. By default the tests draw the same examples each time, so that a verdict is
about the change and not about luck. With LICORNE_HYPOTHESIS=random or `long` the examples come from the seed too. Tests
marked `long` draw from it in any case (the fixture `new_seed`).
"""

from __future__ import annotations

import os
import random

PROFILE = os.environ.get("LICORNE_HYPOTHESIS", "licorne")
RANDOM = PROFILE != "licorne"
LONG = 20
"""How many times as many examples a test takes in the profile `long` as by default."""

# Written back, for the processes among which pytest-xdist divides the tests: they take the seed of the first.
SEED = int(os.environ.setdefault("LICORNE_SEED", str(random.SystemRandom().randrange(1, 10**9))))


def first_seed(variable: str) -> int:
    """Return the seed of a test with a loop over seeds of its own, of which a variable of the environment may give the first.

    Without the variable it is 1, or the seed of the run where examples are random.
    """
    return int(os.environ.get(variable) or (SEED if RANDOM else 1))


def some_seeds(variable: str, count: int) -> range:
    """Return seeds that follow each other, of which `first_seed` gives the first: `count`, or more where tests take more."""
    first = first_seed(variable)
    return range(first, first + count * (LONG if PROFILE == "long" else 1))


def to_run_again() -> str:
    """Return what to set to run the tests as this time."""
    return f"LICORNE_HYPOTHESIS={PROFILE} LICORNE_SEED={SEED}" if RANDOM else f"LICORNE_SEED={SEED}"
