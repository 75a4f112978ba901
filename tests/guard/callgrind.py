"""Instructions that the compiled modules take, counted by callgrind (valgrind): only on demand, for two cases.

They depend on the compiler, on Python and on the C library, so they are compared only with a baseline of the very same.
A process that prepares a case and does not run it is counted as well, and subtracted: what starting Python takes.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version

from guard.cases import CASES, prepare, run
from guard.worker import TESTS, environment

VARIABLE = "LICORNE_GUARD_CALLGRIND"
COUNTED = ("churn", "full")


def available() -> bool:
    """Is valgrind here?"""
    return shutil.which("valgrind") is not None


def toolchain() -> str:
    """The versions of the tools that the numbers depend on besides the source."""
    compiler = (os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")).split()[0]
    try:
        said = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        said = "no compiler"
    parts = [said.partition("\n")[0].strip(), f"Cython {version('Cython')}", f"Python {platform.python_version()}"]
    return ", ".join([*parts, platform.python_compiler(), " ".join(platform.libc_ver()), platform.machine()])


def instructions() -> dict[str, int]:
    """Instructions by case, of the deciding process alone."""
    return {case: _measure(case, "run") - _measure(case, "prepare") for case in COUNTED}


def _measure(case: str, what: str) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    command += ["-m", "guard.callgrind", what, case]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(interpreted=False), cwd=TESTS
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert done.returncode == 0 and found, done.stderr
    return int(found[1])


def main() -> None:
    """Prepare a case, and run it or not."""
    what, name = sys.argv[1:]
    feed = prepare(CASES[name])
    if what == "run":
        run(CASES[name], feed)


if __name__ == "__main__":
    main()
