"""The benchmark measures what it claims to measure; no speed is tested."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import Any

import pytest
from bench.measure.boundary import FEEDS, BoundaryName, ByteSession, feed_of
from bench.measure.churn import churn
from bench.measure.footprint import footprint
from bench.measure.machine import Meter, cpu_model, forget_peak, warm_memory
from bench.measure.speed import measure, measure_blocked
from bench.workloads.generate import Options, Size, benchmark
from bench.workloads.week import week

from licorne._machine import peak_rss_bytes, rss_bytes
from licorne.core import calls
from licorne.si import first, v19
from licorne.si._schema import Message
from licorne.si.wire import decode
from licorne.sim.runner import simulate
from licorne.workload.lines import Ask, Node
from licorne.workload.workload import WorkloadError

BOUNDARIES: tuple[BoundaryName, ...] = ("objects", "bytes", "first-bytes")


def test_a_benchmark_places_the_expected_allocations() -> None:
    result = measure(benchmark("t"), repeat=2)
    assert (result.asks, result.allocations, result.expected) == (200, 200, 200)
    assert len(result.runs) == 2
    assert result.seconds > 0
    assert result.allocations_per_s > 0
    for run in result.runs:
        assert run.seconds == pytest.approx(run.submit_s + run.decide_s)
        assert run.allocations_per_s == pytest.approx(run.allocations / run.seconds)


def test_a_benchmark_decides_as_the_simulator_does(tmp_path: Path) -> None:
    workload = benchmark("t", Options(shape="unique", appsort="fair"))
    path = tmp_path / "decisions"
    digest = simulate(workload, decisions=path).digest
    assert measure(workload).digest == digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_reservations_can_be_on() -> None:
    assert measure(benchmark("t"), reservations=True).allocations == 200


def test_only_version_1_is_measured() -> None:
    with pytest.raises(WorkloadError, match="only workloads of version 1"):
        measure(week())


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_refused_ask_is_no_measurement(boundary: BoundaryName) -> None:
    workload = benchmark("t")
    workload.lines = [*workload.lines, Ask(key="k", app="nobody", res={"vcore": 1})]
    with pytest.raises(WorkloadError, match="1 asks refused, the first: failed to find application nobody"):
        measure(workload, boundary=boundary)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_refused_node_is_no_measurement(boundary: BoundaryName) -> None:
    workload = benchmark("t")
    workload.lines = [*workload.lines, next(line for line in workload.lines if isinstance(line, Node))]
    with pytest.raises(WorkloadError, match="1 refused, the first: "):
        measure(workload, boundary=boundary)


def test_every_boundary_is_measured() -> None:
    assert tuple(FEEDS) == BOUNDARIES


@pytest.mark.gate
@pytest.mark.parametrize(
    ("case", "options", "size"),
    [
        ("t", Options(), None),
        ("t", Options(shape="unique", appsort="fair", nodesort="binpacking"), None),
        ("t", Options(demand=20), None),
        # More than one batch, and asks with a tag.
        ("constraints", Options(shape="unique"), Size(50, 1_200, 12, 2)),
        # Priorities, quotas, limits, and asks left over.
        ("tree", Options(shape="unique"), Size(20, 300, 60, 20)),
    ],
)
def test_decisions_are_the_same_over_every_boundary(
    case: str, options: Options, size: Size | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = benchmark(case, options, size)
    expected = measure(workload)
    assert expected.allocations > 0
    for boundary in ("bytes", "first-bytes"):
        for decisions in (7, 5_000):
            monkeypatch.setattr(calls, "DELIVERY_BATCH", decisions)
            result = measure(workload, boundary=boundary)
            assert (result.boundary, result.digest) == (boundary, expected.digest)
            assert (result.allocations, result.pending) == (expected.allocations, expected.pending)


@pytest.mark.parametrize(
    ("boundary", "message"), [("bytes", v19.AllocationResponse), ("first-bytes", first.UpdateResponse)]
)
def test_bytes_go_in_and_come_out_in_messages_of_a_bounded_size(
    boundary: BoundaryName, message: type[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "DELIVERY_BATCH", 30)
    feed = feed_of(benchmark("t"), boundary)
    assert all(type(batch) is bytes for batch in feed.batches)
    session = feed.connect(keep=True, reservations=False)
    assert isinstance(session, ByteSession)
    for batch in feed.batches:
        session.hand_in(batch)
    before = len(session.sent)
    session.decide()
    sizes = []
    for kind, data in session.sent[before:]:
        if kind in ("allocation", "update"):
            response: Any = decode(message, data)
            sizes.append(len(response.new if boundary == "bytes" else response.new_allocations))
    assert sum(sizes) == session.made == 200
    assert max(sizes) <= 30


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_decisions_that_are_only_counted_are_not_kept(boundary: BoundaryName) -> None:
    feed = feed_of(benchmark("t"), boundary)
    session = feed.connect(keep=False, reservations=False)
    for batch in feed.batches:
        session.hand_in(batch)
    session.decide()
    assert (session.made, session.decisions()) == (200, [])


def test_a_run_reports_its_idle_cycle_and_the_machine() -> None:
    result = measure(benchmark("t", Options(demand=20)))
    assert result.pending == 200 - result.allocations > 0
    assert 0 < result.idle_cycle_us < 1e6
    assert result.cpu_s > 0
    assert result.kernel_s >= 0
    assert 0 <= result.peak_bytes < result.peak_rss_bytes
    assert result.boundary == "objects"


def test_an_unknown_boundary_is_refused() -> None:
    with pytest.raises(WorkloadError, match="boundary: 'telepathy' is none of objects"):
        measure(benchmark("t"), boundary="telepathy")  # type: ignore[arg-type]


@pytest.mark.parametrize("case", ["e2", "e3"])
def test_blocked_asks_are_measured_against_none(case: str) -> None:
    result = measure_blocked(benchmark(case, size=Size(20, 1_100, 11, 2) if case == "e3" else Size(50, 1_200, 60, 2)))
    blocked = 100 if case == "e3" else 1_000
    assert result.complete.asks - result.without.asks == blocked == result.complete.pending
    assert result.complete.allocations == result.without.allocations == result.without.asks
    assert result.decide_ratio == pytest.approx(result.complete.decide_s / result.without.decide_s)
    assert result.submit_us_per_ask == pytest.approx(result.complete.submit_s / result.complete.asks * 1e6)


def test_each_end_makes_room_for_one_that_waits() -> None:
    result = churn(benchmark("churn", Options(shape="unique"), Size(20, 320, 16, 2)), releases=30)
    assert (result.releases, result.allowed) == (30, 30)
    assert 30 <= result.allocations <= 60
    assert result.waiting > 60
    assert 0 < result.release_us_median <= result.release_us_p99


def test_a_churn_ends_when_its_time_is_up() -> None:
    assert churn(benchmark("churn", size=Size(20, 320, 16, 2)), limit_s=0).releases == 1


def test_a_churn_needs_something_that_can_end() -> None:
    workload = benchmark("t")
    workload.lines = [line for line in workload.lines if not isinstance(line, Ask)]
    with pytest.raises(WorkloadError, match="nothing was allocated"):
        churn(workload)


def test_memory_is_reported_for_asks_and_allocations() -> None:
    result = footprint(benchmark("a", Options(shape="unique")))
    assert (result.asks, result.allocations) == (10_000, 10_000)
    # Wide bounds: the process has a past, and allocators reuse what it gave back.
    assert result.pending_ask_bytes < 20_000
    assert result.peak_bytes < 1 << 30


def test_memory_is_counted_in_bytes() -> None:
    assert 10_000_000 < rss_bytes() < 100_000_000_000
    assert 10_000_000 < peak_rss_bytes() < 100_000_000_000


@pytest.mark.gate
def test_memory_is_touched_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_peak()
    before = rss_bytes()
    warm_memory(64 << 20)
    assert peak_rss_bytes() >= before + (60 << 20)
    assert rss_bytes() < before + (30 << 20)
    warm_memory(0)
    monkeypatch.setattr("os.sysconf", lambda _: (64 << 20) // mmap.PAGESIZE)
    forget_peak()
    warm_memory(1 << 60)  # of 64 MiB that are free, half
    assert before + (28 << 20) < peak_rss_bytes() < before + (60 << 20)


def test_the_machine_is_told_apart_from_this_process() -> None:
    meter = Meter()
    sum(range(2_000_000))
    use = meter.read()
    assert use.cpu_s > 0
    assert 0 <= use.kernel_s <= use.cpu_s + 0.02  # ticks of a hundredth of a second
    assert use.wall_s > 0
    assert use.other_cores is None or use.other_cores >= 0
    assert cpu_model()
