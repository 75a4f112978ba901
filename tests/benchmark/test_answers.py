"""The measurement of answers measures what it states."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

ROOT = Path(__file__).resolve().parents[2]


def test_it_measures_a_small_cluster() -> None:
    command = [sys.executable, "-m", "bench", "answers", "--scale", "0.002", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    found = json.loads(done.stdout)
    assert found["running"] > 0 and found["dump_bytes"] > 0
    assert found["chain_p99_ms"] >= found["chain_median_ms"] >= 0
