"""The table of RLScheduler: its rules for logs, stretches of generated ones, and the published values where the data lie."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

import seeds
from licorne.config.simulation import JOB_ORDERS
from licorne.lab.papers.rlscheduler import FIRST_STRETCH, LISTS, ORDERS, PUBLISHED, read_log, reproduce, run_stretch
from licorne.workload.traces.swf import SwfJob, SwfLog, write_jobs
from licorne.workload.workload import WorkloadError
from rings import first_in_gate
from sim.naive_batch import BatchJob, starts

SPEC = Path(__file__).parents[2] / "docs" / "spec" / "experiments.md"


def generated(rng: random.Random, jobs: int, processors: int = 64) -> list[BatchJob]:
    """Return a busy log: few long and many short jobs, powers of two and others, some at the same second."""
    found: list[BatchJob] = []
    now = 1000
    for number in range(1, jobs + 1):
        now += rng.choice((0, rng.randrange(30), rng.randrange(400)))
        run = rng.choice((rng.randrange(1, 60), rng.randrange(1, 5000)))
        needed = min(processors, rng.choice((1, 2, 8, 32, rng.randrange(1, processors + 1))))
        found.append(BatchJob(number, now, run, run, needed))
    return found


def written(path: Path, jobs: list[BatchJob], processors: int = 64) -> Path:
    log = SwfLog(
        file="",
        labels=[("Version", "2.2"), ("MaxProcs", str(processors))],
        jobs=[SwfJob(number=job.number, submit_s=job.submit, run_s=job.run, allocated=job.processors) for job in jobs],
    )
    with gzip.open(path, "wb") as stream:
        write_jobs(stream, log.labels, log.jobs)
    return path


def slowdown(jobs: list[BatchJob], began: dict[int, int]) -> float:
    """A.6."""
    values = [max(1, (began[job.number] - job.submit + job.run) / max(job.run, 10)) for job in jobs]
    return sum(values) / len(values)


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("order", JOB_ORDERS)
def test_a_stretch_of_any_log_has_the_slowdown_of_a_naive_batch_system(
    tmp_path: Path, order: str, backfill: bool
) -> None:
    rng = random.Random(seeds.first_seed("LICORNE_BATCH_SEED"))
    jobs = generated(rng, 150)
    log = read_log(written(tmp_path / "made.swf.gz", jobs))
    for start in (0, rng.randrange(1, 50)):
        chosen = jobs[start : start + 100]
        expected = slowdown(chosen, starts(chosen, 64, order, backfill=backfill))
        found = run_stretch(log, start, order=order, backfill=backfill, jobs=100)
        assert found.slowdown == pytest.approx(expected, abs=1e-6)


def test_the_logs_are_read_by_the_rules_of_the_published_program(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    rest = "-1 1 -1 -1 -1 7 -1 -1 -1"
    path.write_text(
        "; MaxNodes: 16\n"
        f"2 20 -1 50 4 -1 -1 8 60 {rest}\n"
        f"1 10 -1 -1 4 -1 -1 -1 -1 {rest}\n"
        f"3 30 -1 0 4 -1 -1 -1 -1 {rest}\n"
    )
    jobs = read_log(path).jobs
    found = [(job.number, job.run_s, job.estimate_s, job.processors, job.queue) for job in jobs]
    assert found == [(1, 10, 10, 4, -1), (2, 50, 60, 8, -1)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 10 -1 5 17 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "log.swf:2: job 1: needs 17 of 16 processors"),
        ("1 -5 -1 5 1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "log.swf:2: job 1: needs a submission"),
        ("1 10 -1 5 1 -1 -1 -1 0 -1 1 -1 -1 -1 -1 -1 -1 -1", "log.swf:2: job 1: needs a submission, a requested time"),
        ("1 10 -1 5 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1", "log.swf:2: job 1: needs"),
    ],
)
def test_a_job_that_could_not_start_refuses_the_log(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "log.swf"
    path.write_text(f"; MaxNodes: 16\n{line}\n")
    with pytest.raises(WorkloadError, match=words):
        read_log(path)


def test_a_log_that_is_too_short_or_not_there_is_an_error(tmp_path: Path) -> None:
    log = read_log(written(tmp_path / "short.swf.gz", generated(random.Random(1), 20)))
    with pytest.raises(WorkloadError, match="has 20 jobs, too few for 15 from 6"):
        run_stretch(log, 6, order="fcfs", backfill=False, jobs=15)
    with pytest.raises(WorkloadError, match=r"lublin-1\.swf\.gz: no such file; the data are published at github"):
        reproduce(tmp_path)


def test_the_expected_values_are_those_of_the_specification() -> None:
    text = SPEC.read_text()
    for (name, backfill), values in PUBLISHED.items():
        row = f"| {name.title()}, {'backfill' if backfill else 'none'} | {' | '.join(f'{value:.2f}' for value in values)} |"
        assert row in text
    for (name, backfill), values in FIRST_STRETCH.items():
        for order, value in zip(ORDERS, values, strict=True):
            assert f"| {name.title()}, {'backfill' if backfill else 'none'}, {order} | {value:.4f} |" in text


@pytest.mark.parametrize("name", first_in_gate(LISTS))
@pytest.mark.parametrize("backfill", [False, True])
def test_one_stretch_has_the_known_values(lublin: Path, name: str, backfill: bool) -> None:
    log = read_log(lublin / f"{name}.swf.gz")
    found = [run_stretch(log, 1981, order=order.lower(), backfill=backfill).slowdown for order in ORDERS]
    assert [round(value, 4) for value in found] == list(FIRST_STRETCH[name, backfill])


@pytest.mark.nightly
def test_all_twenty_published_values_come_out(lublin: Path) -> None:
    found = reproduce(lublin)
    assert [cell for cell in found.cells if not cell.agrees] == []
    assert len(found.cells) == 20
