"""Hostile configurations: the time and memory of a check grow with the length of the text, and no faster.

A megabyte takes up to 8 s and 190 MB on the machine that this was measured on (250 texts); the bounds leave room for a
machine that is three times as slow. The process that checks is ended when its processor time is used up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seeds import first_seed

PROGRAM = Path(__file__).with_name("hostile.py")
MIB = 1 << 20


def beyond_bounds(first: int, count: int, size: int, fault: str = "") -> list[dict[str, float]]:
    """The texts whose check took more than it may."""
    command = [sys.executable, str(PROGRAM), str(first), str(count), str(size), *([fault] if fault else [])]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == count
    peak_bytes = 16 * MIB + 384 * size
    found = [json.loads(line) for line in lines]
    return [each for each in found if each["status"] or each["peak_bytes"] > peak_bytes]


@pytest.mark.gate
def test_time_and_memory_of_a_check_are_bounded() -> None:
    assert beyond_bounds(first_seed("LICORNE_HOSTILE_SEED"), 60, 32 << 10) == []


@pytest.mark.gate
@pytest.mark.parametrize("fault", ["pairs", "copies"])
def test_a_check_that_costs_more_is_found(fault: str) -> None:
    assert beyond_bounds(5, 1, 128 << 10, fault)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_time_and_memory_of_a_check_are_bounded_for_long_texts(part: int, new_seed: int) -> None:
    first = new_seed + 60 * part
    print(f"part {part}: python {PROGRAM.name} {first} 60 {MIB}")  # noqa: T201  the seed
    assert beyond_bounds(first, 60, MIB) == []
