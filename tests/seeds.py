"""The seed of a test run, LICORNE_SEED: a new one each time, printed, and taken again where the environment has it.

The order of the tests always comes from it. By default the tests draw the same few examples each time, so that a verdict is
about the change and not about luck. With LICORNE_HYPOTHESIS=random or `long` the examples come from the seed too. Tests
that are marked `nightly` draw from it in any case (the fixture `new_seed`).
"""

from __future__ import annotations

import os
import random

PROFILE = os.environ.get("LICORNE_HYPOTHESIS", "short")
SIZES = {"short": 0.25, "fixed": 1, "random": 1, "long": 20}
"""By profile: how many times the number of examples that a test names it takes. `short` is for each commit and the gate."""
RANDOM_PROFILES = {"random", "long"}
RANDOM = PROFILE in RANDOM_PROFILES
MEETS_ALL = PROFILE == "fixed"
"""Whether the examples are so many, and the same each time, that a test may demand that each situation was met."""

# Written back, for the processes among which pytest-xdist divides the tests: they take the seed of the first.
SEED = int(os.environ.setdefault("LICORNE_SEED", str(random.SystemRandom().randrange(1, 10**9))))


def first_seed(variable: str) -> int:
    """Return the seed of a test with a loop over seeds of its own, of which a variable of the environment may give the first.

    Without the variable it is 1, or the seed of the run where examples are random.
    """
    return int(os.environ.get(variable) or (SEED if RANDOM else 1))


def some_seeds(variable: str, count: int) -> range:
    """Return seeds that follow each other, of which `first_seed` gives the first: `count` times the size of the profile."""
    first = first_seed(variable)
    return range(first, first + max(1, round(count * SIZES[PROFILE])))


def to_run_again() -> str:
    """Return what to set to run the tests as this time."""
    return f"LICORNE_HYPOTHESIS={PROFILE} LICORNE_SEED={SEED}" if RANDOM else f"LICORNE_SEED={SEED}"
