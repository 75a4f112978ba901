"""How many examples a property test takes, and which: the profiles of Hypothesis, and numbers that grow with them.

By default the same examples are taken each time, so that a gate's verdict is about the change; LICORNE_HYPOTHESIS=random
takes others each time, LICORNE_HYPOTHESIS=long twenty times as many. A test that needs another number than Hypothesis'
own takes it from here, `@examples(60)`: a fixed `max_examples=60` would be 60 in the long profile too. Importing this
module loads the profile, which must happen before the first `@given`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

import seeds

# Times depend on the machine, so there is no deadline; a failure prints how to run it again.
settings.register_profile("licorne", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("random", parent=settings.get_profile("licorne"), derandomize=False)
settings.register_profile(
    "long", parent=settings.get_profile("random"), max_examples=seeds.TIMES * settings.get_profile("licorne").max_examples
)
settings.load_profile(seeds.PROFILE)

# Hypothesis also draws numbers and texts that it finds in the modules of ours that are imported so far, which depends on
# the tests that the same process ran before, and on whether modules are compiled. No setting turns it off, so this replaces
# a function of its inside; `tests/test_runs.py` notices if that no longer does it.
if not seeds.RANDOM:
    providers._get_local_constants = Constants


def scaled(number: int) -> int:
    """A number of examples, runs or steps of the default profile, in proportion to the profile that is loaded."""
    return number * settings().max_examples // settings.get_profile("licorne").max_examples


def examples(number: int, **more: Any) -> settings:
    """The settings of a test that takes this number of examples in the default profile, and in others in proportion."""
    return settings(max_examples=scaled(number), **more)
