"""Building the documentation site as `make docs` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build_whole(to: Path) -> None:
    """Build the site of this repository; a warning of Sphinx is an error."""
    done = build(ROOT, to)
    assert done.returncode == 0, done.stderr


def build(source: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a source folder as `make docs` does, but for the place of its files: `to/html`."""
    command = next(
        line.split("sphinx ")[1]
        for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
        if "-m sphinx" in line
    )
    words = command.replace("build/docs/trees", str(to / "trees")).replace("build/docs/html", str(to / "html"))
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *words.split()], cwd=source, capture_output=True, text=True, check=False
    )
