"""The recordings of yunikorn-core 1.9: every decision of the workloads in order, every line of the scripts.

`tests/data/README.md` describes how they were recorded, and which faults of the original were mended. A difference
that is wanted would stand in `docs/reference/differences.md`, one by one; in what these recordings show there is none.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from bench.workloads.generate import Options, benchmark

from licorne.core import compiled
from licorne.sim.runner import simulate
from licorne.workload.workload import Workload, read_workload
from parity.traces import traced

RECORDED = Path(__file__).resolve().parents[1] / "data" / "parity"
GENERATED = {
    "t.app": ("t", Options()),
    "a.unique.fair.fair": ("a", Options(shape="unique", appsort="fair", nodesort="fair")),
    "b.app": ("b", Options()),
}


def decided(workload: Workload, folder: Path) -> list[str]:
    """The lines that a simulation writes."""
    path = folder / "decisions"
    simulate(workload, decisions=path)
    return path.read_text().splitlines()


def assert_same(got: list[str], recorded: list[str]) -> None:
    """Fail with the first difference and its surroundings; a diff of thousands of lines would be of no use."""
    for number, (mine, theirs) in enumerate(zip(got, recorded, strict=False)):
        if mine != theirs:
            before = "\n  ".join(recorded[max(0, number - 3) : number])
            pytest.fail(f"line {number + 1} differs, after\n  {before}\nrecorded: {theirs!r}\nlicorne:  {mine!r}")
    assert len(got) == len(recorded)


@pytest.mark.parametrize("number", range(1, 21))
def test_a_mixed_workload_is_decided_as_recorded(tmp_path: Path, number: int) -> None:
    name = RECORDED / f"mixed-{number}"
    recorded = name.with_suffix(".trace").read_text().splitlines()
    assert_same(decided(read_workload(name.with_suffix(".jsonl")), tmp_path), recorded)


@pytest.mark.parametrize("number", range(1, 26))
def test_a_script_runs_as_recorded(number: int) -> None:
    name = RECORDED / f"script-{number}"
    recorded = name.with_suffix(".trace").read_text().splitlines()
    assert_same(traced(read_workload(name.with_suffix(".jsonl"))), recorded)


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_workload_is_decided_as_recorded(tmp_path: Path, name: str) -> None:
    if name == "b.app" and not compiled:
        pytest.skip("50,000 pods are for the compiled core")
    case, options = GENERATED[name]
    trace = RECORDED / f"{name}.trace"
    text = (
        trace.read_text() if trace.exists() else gzip.decompress(trace.with_suffix(".trace.gz").read_bytes()).decode()
    )
    assert_same(decided(benchmark(case, options), tmp_path), text.splitlines())
