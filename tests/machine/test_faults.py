"""Every invariant is really checked: a fault planted in a product code path is caught by `validate()` or by the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from machine.faults import FAULTS

HERE = Path(__file__).resolve().parent


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    """In a process of its own, with the hot modules as plain Python, where every function can be replaced."""
    paths = os.pathsep.join([str(HERE.parent), str(HERE.parent.parent / "src")])
    environment = {**os.environ, "LICORNE_INTERPRETED": "1", "PYTHONPATH": paths}
    program = [sys.executable, "-m", "machine.faults", name]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert re.match(f"caught: .*{FAULTS[name].caught}", done.stdout, re.DOTALL), done.stdout
