"""How many examples a property test takes, and which: the profiles of Hypothesis, and numbers that grow with them.

By default the same few examples are taken each time, so that a gate's verdict is about the change. LICORNE_HYPOTHESIS=fixed
takes four times as many of the same, `random` as many from a new seed, and `long` twenty times as many as these. A test
that needs another number than Hypothesis' own takes it from here, `@examples(60)`: a fixed `max_examples=60` would be 60 in
every profile. Importing this module loads the profile, which must happen before the first `@given`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

import seeds

# Times depend on the machine, so there is no deadline; a failure prints how to run it again.
USUAL = 100
"""Examples of a test that names no number."""
for profile, size in seeds.SIZES.items():
    settings.register_profile(
        profile,
        deadline=None,
        print_blob=True,
        derandomize=profile not in seeds.RANDOM_PROFILES,
        max_examples=round(USUAL * size),
    )
settings.load_profile(seeds.PROFILE)

# Hypothesis also draws numbers and texts that it finds in the modules of ours that are imported so far, which depends on
# the tests that the same process ran before, and on whether modules are compiled. No setting turns it off, so this replaces
# a function of its inside; `tests/test_runs.py` notices if that no longer does it.
if not seeds.RANDOM:
    providers._get_local_constants = Constants


def scaled(number: int) -> int:
    """A number of examples, runs or steps, in proportion to the profile that is loaded; at least one."""
    return max(1, number * settings().max_examples // USUAL)


def examples(number: int, **more: Any) -> settings:
    """The settings of a test that takes this number of examples, in proportion to the profile that is loaded."""
    return settings(max_examples=scaled(number), **more)
