"""The outcome of a simulation as a log of a batch system."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from licorne import Scenario
from licorne.sim import Observer, PodRecord
from licorne.sim.runner import simulate
from licorne.sim.swf_log import SwfOutcome, swf_file
from licorne.workload.traces.batch import JobsAs, batch_workload
from licorne.workload.traces.swf import SwfJob, SwfLog, parse_swf, read_swf
from licorne.workload.workload import Workload, parse_workload

jobs = st.builds(
    SwfJob,
    number=st.integers(1, 10**6),
    submit_s=st.integers(0, 1000),
    run_s=st.integers(0, 500),
    allocated=st.integers(1, 6),
    requested_s=st.integers(1, 500),
)


def written(outcome: SwfOutcome) -> bytes:
    stream = io.BytesIO()
    outcome.write(stream)
    return stream.getvalue()


def log_of(outcome: SwfOutcome) -> SwfLog:
    return parse_swf(written(outcome).splitlines(keepends=True), whole=True)


def outcome_of(workload: Workload) -> SwfLog:
    outcome = SwfOutcome(workload)
    simulate(workload, observers=[outcome], pods=False)
    return log_of(outcome)


@example(  # the second of two that arrive together ends first
    given_jobs=[
        SwfJob(number=1, submit_s=1, run_s=1, allocated=1, requested_s=1),
        SwfJob(number=2, submit_s=1, run_s=0, allocated=1, requested_s=1),
    ],
    jobs_as="gang",
)
@given(
    given_jobs=st.lists(jobs, min_size=1, max_size=6, unique_by=lambda job: job.number),
    jobs_as=st.sampled_from(("gang", "asks", "one")),
)
def test_on_a_machine_that_is_large_enough_a_log_comes_out_as_it_went_in(
    given_jobs: list[SwfJob], jobs_as: JobsAs
) -> None:
    log = SwfLog(file="", labels=[("MaxProcs", "64")], jobs=given_jobs)
    found = outcome_of(batch_workload(log, jobs_as=jobs_as))
    expected = [
        msgspec.structs.replace(job, wait_s=0, requested=job.allocated, status=1, user=1, queue=1)
        for job in sorted(given_jobs, key=lambda job: job.submit_s)
    ]
    assert found.jobs == expected
    assert found.number("MaxProcs") == 64


def lines(*rows: dict[str, Any]) -> Workload:
    config = (
        "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n        queues:\n"
    )
    config += "          - name: a\n          - name: b\n"
    head = [{"t": "meta", "version": 2, "name": "w"}, {"t": "config", "yaml": config}]
    return parse_workload(map(msgspec.json.encode, [*head, {"t": "node", "id": "n", "res": {"vcore": 4000}}, *rows]))


def app(name: str, at: float, user: str, queue: str = "a") -> dict[str, Any]:
    return {"t": "app", "id": name, "queue": f"root.{queue}", "user": user, "at": at}


def test_states_users_queues_and_several_pods() -> None:
    found = outcome_of(
        lines(
            app("ends", 1, "ann"),
            {"t": "ask", "key": "e1", "app": "ends", "res": {"vcore": 1000}, "duration_s": 10},
            {"t": "ask", "key": "e2", "app": "ends", "res": {"vcore": 1500}, "duration_s": 30, "requested_s": 40},
            app("stays", 2, "bob", "b"),
            {"t": "ask", "key": "s", "app": "stays", "res": {"vcore": 1000}},
            app("never", 3, "ann"),
            {"t": "ask", "key": "n", "app": "never", "res": {"vcore": 9000}, "duration_s": 5},
            {**app("cut", 4, "ann"), "timeout_ms": 20_000},
            {"t": "ask", "key": "c", "app": "cut", "res": {"vcore": 500}, "duration_s": 90},
        )
    )
    rows = [
        (job.number, job.submit_s, job.wait_s, job.run_s, job.allocated, job.requested, job.status, job.user, job.queue)
        for job in found.jobs
    ]
    assert rows == [
        (1, 1, 0, 30, 3, 3, 1, 1, 1),
        (2, 2, 0, -1, 1, 1, -1, 2, 2),
        (3, 3, -1, -1, -1, 9, 5, 1, 1),
        (4, 4, 0, 20, 1, 1, 0, 1, 1),
    ]
    assert [job.requested_s for job in found.jobs] == [40, -1, -1, -1]
    assert ("Queue", "2 root.b") in found.labels
    assert ("Note", "user 2 is bob") in found.labels


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_a_file_is_there_when_it_is_complete_and_can_be_simulated(tmp_path: Path, name: str) -> None:
    workload = batch_workload(SwfLog(file="", labels=[], jobs=[SwfJob(number=7, submit_s=3, run_s=4, allocated=2)]))
    path = tmp_path / name
    outcome = SwfOutcome(workload)
    with swf_file(path, outcome):
        assert not path.exists()
        simulate(workload, observers=[outcome], pods=False)
    assert [job.number for job in read_swf(path).jobs] == [7]
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data) == written(outcome)
    with swf_file(tmp_path / f"again-{name}", outcome):
        pass
    assert (tmp_path / f"again-{name}").read_bytes() == data


def records(number: int) -> list[PodRecord]:
    """Return records of pods, each of an application of its own. No two share a text or a time object, as in a long simulation."""
    return [
        PodRecord(
            key=f"k{index}",
            application=f"a{index}",
            queue="root.a",
            user="ann",
            outcome="ended",
            arrival_s=index + 0.25,
            start_s=index + 1.5,
            end_s=index + 51.5,
            node="n",
            waiting_s=1.25,
            run_s=50,
            evictions=0,
            lost_s=0,
            pods=1,
        )
        for index in range(number)
    ]


class Nowhere:
    """Takes bytes and keeps none."""

    def write(self, data: bytes) -> None:
        """Take bytes."""


def test_an_application_takes_half_a_kilobyte_and_no_list_of_all_jobs_is_made() -> None:
    told = records(5_000)
    outcome = SwfOutcome(lines())
    tracemalloc.start()
    for record in told:
        outcome.on_pod(record)
    outcome.write(Nowhere())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / len(told) < 500


def test_of_a_scenario_the_asks_that_have_ended_are_forgotten() -> None:
    """All are found, so the log says what they asked for, and none is kept."""
    workload = Scenario.read(Path("examples/scenarios/shared-gpus.yaml")).workload()
    outcome = SwfOutcome(workload)
    known: list[int] = []

    class Counts(Observer):
        def on_pod(self, record: PodRecord) -> None:
            known.append(len(outcome._asks._known))  # what is kept is seen nowhere else

    result = simulate(workload, observers=[outcome, Counts()], pods=False)
    jobs = log_of(outcome).jobs
    placed = [job for job in jobs if job.allocated != -1]
    assert all(job.requested >= job.allocated for job in placed) and any(job.allocated > 0 for job in placed)
    assert max(known) < result.asks / 2 and known[-1] == 0


def test_nothing_is_left_of_a_file_that_was_not_completed(tmp_path: Path) -> None:
    workload = batch_workload(SwfLog(file="", labels=[], jobs=[SwfJob(number=7, submit_s=3, run_s=4, allocated=2)]))
    with pytest.raises(RuntimeError), swf_file(tmp_path / "out.swf", SwfOutcome(workload)):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
