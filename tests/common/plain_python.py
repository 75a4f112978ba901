"""Programs beside the tests that run with the hot modules as plain Python, whether they are compiled or not.

A compiled function cannot be replaced by a broken one, and a C method cannot be called from a test. A test that needs
this has such a program, and looks at what it prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


def printed_by(module: str, *arguments: str) -> str:
    """Return what `python -m MODULE ARGUMENTS` prints, in a process of its own; fail with its errors if it fails."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = {**os.environ, "LICORNE_INTERPRETED": "1", "PYTHONPATH": paths}
    program = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(program)}\n{done.stdout}{done.stderr}"
    return done.stdout
