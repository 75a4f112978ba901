"""Every invariant is really checked: a fault planted in a product code path is caught by `validate()` or by the machine."""

from __future__ import annotations

import re

import pytest

from common.plain_python import printed_by
from machine.faults import FAULTS
from rings import first_in_gate


@pytest.mark.parametrize("name", first_in_gate(FAULTS))
def test_a_planted_fault_is_caught(name: str) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    printed = printed_by("machine.faults", name)
    assert re.match(rf"caught after \d+ steps: .*{FAULTS[name].caught}", printed, re.DOTALL), printed
