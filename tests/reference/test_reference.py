"""The product against a plain reference scheduler: random clusters with everything switched on, decision by decision.

By default the same scenarios each time, as many as LICORNE_REFERENCE_SCENARIOS says (100; 400 in the other
profiles of `common.examples`), from the seed LICORNE_REFERENCE_SEED on. A disagreement prints its seed, every step, and the
messages of each of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import seeds
from common.examples import scaled
from common.plain_python import printed_by
from reference.compare import DisagreementError, run
from reference.faults import FAULTS
from reference.situations import Situations
from rings import first_in_gate

SCENARIOS = int(os.environ.get("LICORNE_REFERENCE_SCENARIOS") or min(scaled(400), 400))
SEED = seeds.first_seed("LICORNE_REFERENCE_SEED")
ENOUGH = 400
"""From this many scenarios on every situation must have been met; with a random seed one may be missed."""
PARTS, PART = 10, 400
"""Where time is no matter (`make nightly PART=long`) thousands of others follow, in parts that may run at the same time."""
PARKING_OFF = 4
"""Each fourth scenario also runs through a product that never parks."""
HERE = Path(__file__).resolve().parent


@pytest.mark.gate
def test_the_product_decides_as_the_reference() -> None:
    situations = _compare(SEED, SCENARIOS)
    if SCENARIOS >= ENOUGH and not seeds.RANDOM:
        assert not situations.missing(), f"never met: {', '.join(situations.missing())}"


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_the_product_decides_as_the_reference_for_thousands_more_seeds(part: int, new_seed: int) -> None:
    _compare(new_seed + part * PART, PART)


def _compare(first: int, count: int) -> Situations:
    """Compare a number of scenarios, from a seed on; all must agree."""
    situations = Situations()
    differ: list[str] = []
    for seed in range(first, first + count):
        try:
            run(seed, situations, parking_off=seed % PARKING_OFF == 0)
        except DisagreementError as error:
            differ.append(str(error))
    sys.stdout.write(f"{count} scenarios from seed {first} on\n{situations.report()}")
    assert not differ, "\n".join([f"{len(differ)} scenarios differ", *map(_first_line, differ), differ[0]])
    return situations


@pytest.mark.parametrize(
    "module",
    [
        "model", "sums", "life", "queues", "intake", "scheduler", "preempting", "claims", "quotas", "gangs",
        "atomic", "gangplans", "cluster",
    ],
)  # fmt: skip
def test_the_reference_shares_no_code_with_the_core(module: str) -> None:
    assert "licorne.core" not in (HERE / f"{module}.py").read_text(encoding="utf-8")


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_a_planted_fault_is_caught(name: str) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    printed = printed_by("reference.faults", name)
    assert printed.startswith("caught after"), printed
