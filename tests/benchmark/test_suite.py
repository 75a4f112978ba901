"""The benchmark from end to end, on the smallest workload; no speed is tested."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.cases import CASES, Target
from bench.measure.boundary import FEEDS, BoundaryName
from bench.measure.contest import measure_contest
from bench.measure.footprint import Footprint
from bench.measure.speed import BenchResult
from bench.peer import version
from bench.ratio import Ratio
from bench.report import peer_rate, sentence, show, warnings
from bench.results import CaseResult, Machine, Pair, PeerRun, Report, Verdict, judged
from bench.worker import Task, perform
from bench.workloads.contended import contended
from bench.workloads.generate import Options, Size
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.gate
def test_licorne_alone(tmp_path: Path) -> None:
    out = tmp_path / "new" / "result.json"
    printed = bench("run", "t", "--repeat", 2, "--out", out, "--json").stdout
    report: dict[str, Any] = json.loads(printed)
    assert report == json.loads(out.read_bytes())
    (case,) = report["cases"]
    assert case["case"]["name"] == "t"
    assert case["speed"]["allocations"] == 200
    assert len(case["speed"]["runs"]) == 2
    assert case["memory"]["allocations"] == 200
    assert report["machine"]["processors"] >= 1
    assert report["compiled"] is case["speed"]["compiled"]


@pytest.mark.gate
def test_tables_for_a_terminal_and_plain_python(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    shown = bench("run", "t", "--repeat", 1, "--no-memory", "--interpreted", "--out", out).stdout
    assert ", interpreted, " in shown
    assert "t: target 2,000 allocations/s: " in shown
    report = msgspec.json.decode(out.read_bytes(), type=Report)
    assert report.cases[0].memory is None
    assert report.compiled is False


@pytest.mark.parametrize("boundary", FEEDS)
def test_a_task_names_its_boundary(boundary: BoundaryName) -> None:
    speed, memory = (perform(Task(what=what, workload="t", boundary=boundary)) for what in ("speed", "memory"))
    assert isinstance(speed, BenchResult)
    assert isinstance(memory, Footprint)
    assert (speed.boundary, speed.allocations, memory.allocations) == (boundary, 200, 200)


def fake_driver(path: Path, allocations: int, *, capped: bool) -> Path:
    """A peer that needs no time: it prints what the real one would."""
    result = {
        "allocs": allocations, "asks": 200, "expect": 200, "seconds": 60.0, "capped": capped, "own_cpu_s": 60,
        "allocs_per_s": allocations / 60, "other_cores": 0.0, "rss_loaded_mb": 10, "rss_peak_mb": 30, "nodes": 10,
    }  # fmt: skip
    path.write_text(
        f"#!{sys.executable}\nprint('a line of its log')\nprint('''{json.dumps(result)}''')\n", encoding="utf-8"
    )
    path.chmod(0o755)
    return path


@pytest.mark.gate
@pytest.mark.parametrize(("allocations", "capped"), [(200, False), (10, True)])
def test_both_in_turn(tmp_path: Path, allocations: int, capped: bool) -> None:
    driver = fake_driver(tmp_path / "driver", allocations, capped=capped)
    out = tmp_path / "result.json"
    shown = bench("peer", "t", "--pairs", 2, "--driver", driver, "--out", out).stdout
    assert ("≥" in shown) is capped
    report = msgspec.json.decode(out.read_bytes(), type=Report)
    (case,) = report.cases
    assert len(case.pairs) == 2
    for pair in case.pairs:
        assert pair.licorne.allocations == 200
        assert pair.ratio.bound is capped
        assert pair.ratio.value == pytest.approx(60 / pair.licorne.seconds)
        assert peer_rate(pair) == ("≤ 3.33" if capped else "3.33")
    assert case.ratios is not None
    assert case.ratios.least.value <= case.ratios.median.value <= case.ratios.greatest.value


@pytest.mark.gate
def test_a_failure_is_reported_in_a_line(tmp_path: Path) -> None:
    assert bench("run", "zz", status=2).stderr.startswith("bench: zz: neither a case nor a group")
    driver = tmp_path / "driver"
    driver.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no room')\n", encoding="utf-8")
    driver.chmod(0o755)
    arguments = ("peer", "t", "--pairs", 1, "--driver", driver, "--out", tmp_path / "o.json")
    assert "t failed: the peer failed: no room" in bench(*arguments, status=1).stderr
    assert json.loads((tmp_path / "o.json").read_bytes())["failures"]
    missing = bench("peer", "t", "--driver", tmp_path / "nothing", "--out", tmp_path / "o.json", status=1)
    assert f"t failed: the peer failed: {tmp_path / 'nothing'}: " in missing.stderr


def test_a_list_of_cases() -> None:
    listed = bench("list").stdout
    assert all(name in listed for name in (*CASES, "quick", "variants"))


@pytest.mark.parametrize(
    ("target", "measured", "bound", "expected"),
    [
        (Target("allocations_per_s", 150_000), 92_000, False, "target 150,000 allocations/s: missed, 92,000"),
        (Target("ratio", 25), 30, False, "target 25 times the peer: reached, 30"),
        (Target("ratio", 40), 50, True, "target 40 times the peer: reached, ≥ 50"),
        (Target("ratio", 40), 30, True, "target 40 times the peer: open, ≥ 30, as the peer was cut off"),
        (Target("idle_cycle_us", 10, at_most=True), 5.25, False, "target at most 10 µs an idle cycle: reached, 5.25"),
        (
            Target("peak_rss_bytes", 3e9, at_most=True),
            3.5e9,
            False,
            "target at most 3.00 GB, the whole process: missed, 3.50",
        ),
    ],
)
def test_a_verdict_in_words(target: Target, measured: float, bound: bool, expected: str) -> None:
    verdict = Verdict(target=target, measured=measured, reached=target.reached(measured), bound=bound)
    assert sentence(verdict) == expected


@pytest.mark.gate
def test_a_busy_machine_is_reported(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    bench("run", "t", "--repeat", 1, "--no-memory", "--out", out)
    report = msgspec.json.decode(out.read_bytes(), type=Report)
    run = report.cases[0].speed
    assert run is not None
    for cores, expected in ((0.0, []), (1.5, ["t (1.5)"])):
        busy = msgspec.structs.replace(run, other_cores=cores)
        report.cases = [CaseResult(case=CASES["t"], speed=busy)]
        report.machine = msgspec.structs.replace(report.machine, other_cores=cores)
        said = list(warnings(report))
        assert len(said) == 2 * len(expected)
        assert all(name in said[1] for name in expected)
    pair = Pair(licorne=run, peer=peer_run(other_cores=0.7), ratio=Ratio(2))
    report.cases = [CaseResult(case=CASES["t"], pairs=[pair])]
    assert "t (" in list(warnings(report))[-1]


def peer_run(*, other_cores: float) -> PeerRun:
    return PeerRun(
        allocs=1, asks=1, expect=1, seconds=1, capped=False, allocs_per_s=1, own_cpu_s=1, other_cores=other_cores,
        rss_loaded_mb=1, rss_peak_mb=1,
    )  # fmt: skip


def test_the_version_of_the_peer_is_that_of_its_module() -> None:
    assert version() == "yunikorn-core v1.9.0"


def test_a_contest_has_a_table_and_verdicts() -> None:
    workload = contended("gangs-atomic", Options(), Size(10, 40, 4, 2))
    contest = msgspec.structs.replace(measure_contest(workload), other_cores=None)
    result = judged(CaseResult(case=CASES["gangs-atomic"], contest=contest), compiled=True)
    assert [verdict.target.figure for verdict in result.verdicts] == ["members_per_s"]
    report = msgspec.structs.replace(empty_report(), cases=[result])
    stream = io.StringIO()
    show(report, Console(file=stream, width=200))
    assert "gangs-atomic" in stream.getvalue()
    assert "members of gangs/s" in stream.getvalue()
    assert list(warnings(report)) == []
    missing = msgspec.structs.replace(contest, placed=39)
    report.cases = [CaseResult(case=CASES["gangs-atomic"], contest=missing)]
    assert list(warnings(report)) == ["gangs-atomic: 39 pods run in the end, where 40 should"]
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def empty_report() -> Report:
    machine = Machine(cpu="", processors=1, memory_bytes=0, system="", other_cores=0.0)
    return Report(made="", licorne="", python="", compiled=True, machine=machine)


@pytest.mark.gate
def test_a_contest_is_not_for_the_peer(tmp_path: Path) -> None:
    driver = fake_driver(tmp_path / "driver", 200, capped=False)
    arguments = ("peer", "preempt", "--pairs", 1, "--driver", driver, "--out", tmp_path / "o.json")
    assert "preempt is for licorne alone" in bench(*arguments, status=1).stderr
