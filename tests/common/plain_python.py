"""Programs beside the tests that run with the hot modules as plain Python, whether they are compiled or not.

A compiled function cannot be replaced by a broken one, and a C method cannot be called from a test. A test that needs
this has such a program, and looks at what it prints.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEARCHED = os.pathsep.join(str(ROOT / folder) for folder in ("tests", "src", "."))
"""Where Python looks for modules: the tests, the product, and the benchmark beside them."""


def printed_by(module: str, *arguments: str) -> str:
    """Return what `python -m MODULE ARGUMENTS` prints, in a process of its own; fail with its errors if it fails.

    A planted fault that random examples must notice needs more of them than tests take by default.
    """
    environment = {"LICORNE_HYPOTHESIS": "fixed", **os.environ, "LICORNE_INTERPRETED": "1", "PYTHONPATH": SEARCHED}
    program = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(program)}\n{done.stdout}{done.stderr}"
    return done.stdout
