"""Programs of others, and the project's example: a Go client with the official stubs, `examples/`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.waiting import WAIT_S, wait_for
from service.processes import serving

pytestmark = pytest.mark.gate

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GO_MODULE = "github.com/apache/yunikorn-scheduler-interface"


@pytest.fixture(scope="module")
def go_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Go client, built; skipped where Go or the modules that it needs are missing."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        pytest.skip("Go is not installed: the client with the official stubs is not tried")
    made = tmp_path_factory.mktemp("go") / "client"
    outcome = subprocess.run(
        [go, "build", "-o", str(made), "."],
        cwd=HERE / "go",
        env=os.environ | {"GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    missing = (
        "dial tcp",
        "no such host",
        "module lookup disabled",
        "requires go >=",
        "connection refused",
        "i/o timeout",
    )
    if outcome.returncode and any(sign in outcome.stderr for sign in missing):
        pytest.skip(f"the module {GO_MODULE} is not here: {outcome.stderr.strip().splitlines()[-1]}")
    assert outcome.returncode == 0, outcome.stderr
    return made


def test_a_client_with_the_official_stubs(go_client: Path) -> None:
    with serving() as running:
        outcome = subprocess.run(
            [str(go_client), running.address], capture_output=True, text=True, check=False, timeout=WAIT_S
        )
        assert outcome.stdout == "all is well\n", outcome.stdout + outcome.stderr
        wait_for(lambda: running.events("stopped"))
        assert [event["reason"] for event in running.events("stopped")] == ["goodbye"]


def test_the_example_runs() -> None:
    with serving() as running:
        outcome = subprocess.run(
            [sys.executable, "examples/resource_manager.py", running.address],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        assert outcome.stderr == ""
        lines = outcome.stdout.splitlines()
        assert lines[-1] == "all done, reported anew 0 times"
        assert sum(" runs on " in line for line in lines) == sum(" is done" in line for line in lines) == 10
        assert running.end() == 0
        assert [event["reason"] for event in running.events("stopped")] == ["goodbye"]


def test_the_example_is_short() -> None:
    assert len((ROOT / "examples" / "resource_manager.py").read_text().splitlines()) < 150
