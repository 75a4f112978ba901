"""The measurements of the service from end to end, on small workloads; no speed is tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bench.cases import Target
from bench.results import Verdict
from bench.service.cases import SERVICE_CASES, ServiceCase
from bench.service.report import new_service_report, sentence, verdicts
from bench.service.run import ServiceResult
from bench.service.tasks import times
from bench.service.wire import NEW, RELEASED, RefusedError, counted

from licorne.si import v19
from licorne.si.wire import encode
from rings import first_in_gate

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "grpc": {"pods_per_s", "with_rest_per_s", "least_per_s", "most_per_s", "client_us_per_pod"},
    "client": {"pods_per_s", "with_rest_per_s"},
    "managers": {"pods_per_s", "first_s", "median_s", "last_s", "alone_per_s", "beside_idle_per_s"},
    "dump": {"dump_bytes", "slow_dump_bytes", "longest_gap_ms", "dump_longest_lag_ms", "probe_p99_ms"},
    "rest": {"rest_p99_ms", "nodes_p99_ms", "queues_p99_ms", "applications_p99_ms", "users_p99_ms", "lost_percent"},
    "memory": {"process_bytes", "bytes_per_pod"},
    "record": {"loop_us_per_pod", "loop_us_per_pod_recording", "decisions", "bytes_per_decision", "replayed_per_s"},
    "follow": {"loop_us_per_pod"},
}
FIGURES["rest-changing"] = FIGURES["rest"]


def service(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "service", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("name", first_in_gate(SERVICE_CASES))
def test_each_measurement(tmp_path: Path, name: str) -> None:
    out = tmp_path / "result.json"
    done = service(name, "--scale", 0.01, "--out", out, "--json")
    report: dict[str, Any] = json.loads(done.stdout)
    assert report == json.loads(out.read_bytes())
    assert report["failures"] == []
    (result,) = report["results"]
    assert result["case"]["name"] == name
    figures = result["figures"]
    assert FIGURES[name] <= set(figures)
    assert all(figures[figure] > 0 for figure in FIGURES[name] if figure not in ("longest_gap_ms", "lost_percent"))
    assert result["rounds"][-1]["allocations"] > 0
    assert f"{name}: " in done.stderr  # it tells how far it is


def test_an_unknown_measurement_is_refused() -> None:
    assert service("zz", status=2).stderr.startswith("bench: zz: no such measurement; there are grpc, client")


def test_sizes_are_those_of_the_goal_and_targets_hold_for_these_only() -> None:
    assert SERVICE_CASES["managers"].managers == 200
    watched = SERVICE_CASES["rest"]
    assert watched.beside == (1_000, 10_000, 1_000, 100)
    assert (watched.clients, SERVICE_CASES["dump"].beside) == (50, (5_000, 150_000, 1_500, 100))
    for case in SERVICE_CASES.values():
        assert case.scaled(1) is case
        assert case.scaled(0.01).targets == ()
        assert case.scaled(0.01).size.pods >= case.scaled(0.01).size.applications


def test_verdicts_are_shown_in_words() -> None:
    target = Target("rest_p99_ms", 50, at_most=True)
    verdict = Verdict(target=target, measured=61.25, reached=False)
    assert sentence(verdict) == "target at most 50 ms for 99 of 100 requests: missed, 61.2"
    result = ServiceResult(case=SERVICE_CASES["rest"], figures={}, verdicts=[verdict])
    report = new_service_report(0.5)
    report.results, report.failures = [result], ["x failed"]
    assert [style for _, style in verdicts(report)] == ["red", "yellow", "yellow"]
    for case in SERVICE_CASES.values():
        for one in case.targets:
            sentence(Verdict(target=one, measured=1, reached=True))


def test_decisions_in_a_response_are_counted() -> None:
    new = [v19.Allocation(allocation_key=f"k{n}" * 50) for n in range(3)]
    gone = [v19.AllocationRelease(allocation_key="k")] * 2
    data = encode(v19.AllocationResponse(new=new, released=gone))
    assert (counted(data, NEW), counted(data, RELEASED), counted(b"", NEW)) == (3, 2, 0)
    refusal = v19.AllocationResponse(rejected_allocations=[v19.RejectedAllocation(reason="no")])
    with pytest.raises(RefusedError, match="no"):
        counted(encode(refusal), NEW)


def test_times() -> None:
    found = times([n / 1000 for n in range(1, 201)])
    assert (found.count, found.median_ms, found.p99_ms, found.most_ms) == (200, 100, 199, 200)
    assert times([]).count == 0


def test_cases_are_plain_data() -> None:
    case = SERVICE_CASES["rest"]
    assert msgspec.json.decode(msgspec.json.encode(case), type=ServiceCase) == case
