"""Builds the wheel of this repository from a copy of its files, as an installation does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from common.once import made_once
from deployment.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "tools", "src")
"""What a wheel is made from."""


def plain_wheel(factory: pytest.TempPathFactory) -> Path:
    """The wheel in which nothing is compiled, built once in a run."""
    return next((made_once(factory, "wheel", lambda folder: build_wheel(folder, LICORNE_PURE="1")) / "out").iterdir())


def build_wheel(folder: Path, names: Iterable[str] = SOURCES, **environment: str) -> Path:
    """The wheel that is made from these files of the repository, and nothing else; `folder` is to hold it."""
    source, out = folder / "src", folder / "out"
    source.mkdir()
    for name in names:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-build-isolation"]
    made = subprocess.run(
        [*pip, "--wheel-dir", str(out), "."],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = out.iterdir()
    return wheel
