# ruff: noqa: S603  # the programs started are Go and the one that it built
"""Measure licorne and yunikorn-core in turn: A B A B, so that a slow machine affects both alike.

Both read the same workload file, take the asks 1,000 in a call, and keep what is decided. The peer is driven in process
through its own API by the program in `peer/`, an ordinary Go module, and runs in its own scheduling loop. Reservations and
preemption are off on both sides. A run of the peer ends when everything that fits is placed, or at a time limit: then the
ratio of the pair is a bound (`ratio.py`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.cases import Case
from bench.measure.machine import warm_memory
from bench.measure.speed import WARM_BYTES_PER_ASK, BenchResult
from bench.ratio import Timed, ratio
from bench.results import CaseResult, Pair, PeerRun, judged
from bench.run import ROOT, BenchError, apart, task_of
from bench.worker import prepared
from licorne.workload.workload import write_workload

SOURCE = ROOT / "bench" / "peer"
QUIET_S = 15.0
"""The peer counts as done when it has allocated nothing for this many seconds."""


def build() -> Path:
    """Build the driver with yunikorn-core as the module that `go.mod` names. Raises BenchError without Go."""
    go = shutil.which("go")
    if go is None:
        raise BenchError("the peer is written in Go, and there is no `go` on the PATH; see bench/README.md")
    done = subprocess.run([go, "build", "-o", "peer", "."], cwd=SOURCE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"the driver of the peer cannot be built: {done.stderr.strip()}")
    return SOURCE / "peer"


def version() -> str:
    """Return name and version of the peer, from `go.mod`."""
    for line in (SOURCE / "go.mod").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0].endswith("/yunikorn-core"):
            return f"yunikorn-core {words[1]}"
    return "yunikorn-core"


def measure_pairs(
    case: Case, driver: Path, *, pairs: int, cap_s: float, told: Callable[[Pair], None] | None = None
) -> CaseResult:
    """Run both programs in turn on a case. Raises BenchError if one of them fails."""
    if case.kind == "contest":
        raise BenchError(f"{case.name} is for licorne alone: the driver of the peer hands asks in, and answers nothing")
    made: list[Pair] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workload.jsonl"
        with file.open("wb") as stream:
            write_workload(prepared(case.workload, case.options()), stream)
        for _ in range(pairs):
            ours = apart(task_of(case, "speed", file=str(file)), BenchResult)
            warm_memory(ours.asks * WARM_BYTES_PER_ASK)  # as before a run of licorne
            theirs = run_peer(driver, file, cap_s)
            made.append(pair(ours, theirs))
            if told is not None:
                told(made[-1])
    return judged(CaseResult(case=case, pairs=made), compiled=made[-1].licorne.compiled)


def pair(ours: BenchResult, theirs: PeerRun) -> Pair:
    """Return two runs with their ratio."""
    found = ratio(Timed(ours.allocations, ours.seconds), Timed(theirs.allocs, theirs.seconds, cut_off=theirs.capped))
    return Pair(licorne=ours, peer=theirs, ratio=found)


def run_peer(driver: Path, file: Path, cap_s: float) -> PeerRun:
    """Run the peer once, with a time limit of `cap_s` seconds. Raises BenchError if it fails."""
    command = [str(driver), "-workload", str(file), "-cap", str(cap_s), "-idle", str(QUIET_S)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise BenchError(f"the peer failed: {driver}: {error.strerror}") from None
    if done.returncode != 0:
        raise BenchError(f"the peer failed: {done.stderr.decode(errors='replace').strip()[-2000:]}")
    # The lines before the last one are the peer's log.
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=PeerRun)
