"""The hot modules can be run from their Python text although they are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from licorne import core

PROGRAM = "from licorne import core; from licorne.core.base import order; print(core.compiled, order.__file__)"


def run(program: str = PROGRAM, **environment: str) -> tuple[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LICORNE_")}
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=clean | environment
    )
    compiled, _, file = done.stdout.strip().partition(" ")
    return compiled, Path(file).suffix


def test_text_is_run_when_asked_for() -> None:
    assert run(LICORNE_INTERPRETED="1") == ("False", ".py")


@pytest.mark.skipif(not core.compiled, reason="nothing is compiled here")
def test_extensions_are_run_otherwise() -> None:
    assert run() in {("True", ".so"), ("True", ".pyd")}


def test_text_is_run_without_cython() -> None:
    program = "import sys, licorne; licorne.SchedulerAPI(); print(licorne.core.compiled, *{'cython', 'Cython'} & {*sys.modules})"
    assert run(program, LICORNE_INTERPRETED="1") == ("False", "")
