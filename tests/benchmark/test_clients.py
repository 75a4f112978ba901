"""The comparison of HTTP clients measures each that is installed, on each loop; no speed is tested."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from bench.kube.clients import CLIENTS, LOOPS

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]


def test_each_client_is_measured_on_each_loop() -> None:
    command = [sys.executable, "-m", "bench", "clients", "--count", "40", "--in-flight", "8", "--turns", "1", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    pairs = [(client, loop) for client in CLIENTS if find_spec(client) for loop in LOOPS if find_spec(loop)]
    assert [(one["client"], one["loop"]) for one in found] == pairs
    assert ("aiohttp", "asyncio") in pairs
    assert all(one["requests_per_s"] > 0 and one["cpu_ms_a_request"] > 0 for one in found)
