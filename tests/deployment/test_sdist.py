"""The source distribution, made from a copy of what git has: everything but what is of use in a checkout alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from deployment.places import ROOT
from references.texts import repository_files

pytestmark = pytest.mark.gate

CHECKOUT = (".ci/", ".github/", ".editorconfig", ".gitignore", ".pre-commit-config.yaml", "bench/.gitignore")
"""What concerns a checkout with git, or a host of it."""
MADE = {"PKG-INFO", "setup.cfg"}
"""What setuptools adds, beside the folder `licorne.egg-info`."""

LEFTOVERS = (
    Path("bench", "results", "new.json"),
    Path("src", "licorne", "calls.so"),
    Path("tests", "__pycache__", "old.pyc"),
)
"""What builds, tests and measurements may have left in a folder."""


def test_the_source_distribution_holds_what_git_has(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    known = [name for name in repository_files() if not (ROOT / name).is_symlink()]
    for path in [*map(Path, known), *LEFTOVERS]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        if path in LEFTOVERS:
            (source / path).touch()
        else:
            shutil.copy(ROOT / path, source / path)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(out)]
    made = subprocess.run(
        command, cwd=source, env={**os.environ, "LICORNE_PURE": "1"}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (archive,) = out.iterdir()
    with tarfile.open(archive) as opened:
        held = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    held = {name for name in held - MADE if "licorne.egg-info" not in name}
    assert held == {name for name in known if not name.startswith(CHECKOUT)}
