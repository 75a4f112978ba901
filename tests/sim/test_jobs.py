"""Strict order and backfill in the simulator: against a naive batch system, and examples by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.planting import LOOKED_AT, number_of
from licorne.config.simulation import JOB_ORDERS
from licorne.sim.jobs import NEVER_NS, JobQueue, JobQueues
from licorne.sim.pods import PodRecord
from licorne.sim.report import Result
from licorne.sim.runner import _Clock, simulate
from licorne.workload.joborders import ORDERS
from licorne.workload.traces.batch import JobsAs, batch_workload
from licorne.workload.traces.swf import SwfJob, SwfLog
from licorne.workload.workload import WorkloadError, parse_workload
from sim.naive_batch import BatchJob, starts

PROCESSORS = 8


@st.composite
def job_lists(draw: st.DrawFn, longest: int = 20) -> list[BatchJob]:
    """Jobs with many equal times, in the order of submission; the requested time may be above or below the run time."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(1, 12), st.integers(1, PROCESSORS)),
            min_size=1,
            max_size=longest,
        )
    )
    now = draw(st.integers(0, 3))
    jobs: list[BatchJob] = []
    for number, (gap, run, requested, processors) in enumerate(rows, 1):
        now += gap
        jobs.append(BatchJob(number, now, run, requested, processors))
    return jobs


def log_of(jobs: list[BatchJob]) -> SwfLog:
    return SwfLog(
        file="jobs.swf",
        labels=[("MaxProcs", str(PROCESSORS))],
        jobs=[
            SwfJob(
                number=job.number,
                submit_s=job.submit,
                run_s=job.run,
                requested=job.processors,
                requested_s=job.requested,
            )
            for job in jobs
        ],
    )


def simulated_starts(jobs: list[BatchJob], jobs_as: JobsAs, order: str, *, backfill: bool) -> dict[int, float | None]:
    """Return when each job started in the simulator; all pods of one must start together."""
    result = simulate(batch_workload(log_of(jobs), jobs_as=jobs_as, order=order, backfill=backfill))
    found: dict[int, float | None] = {}
    for pod in result.pods:
        number = int(pod.application.removeprefix("job-"))
        assert found.setdefault(number, pod.start_s) == pod.start_s
    return found


@given(jobs=job_lists(), order=st.sampled_from(JOB_ORDERS), backfill=st.booleans())
def test_jobs_start_when_a_naive_batch_system_starts_them(jobs: list[BatchJob], order: str, backfill: bool) -> None:
    expected = starts(jobs, PROCESSORS, order, backfill=backfill)
    assert simulated_starts(jobs, "one", order, backfill=backfill) == expected


@given(jobs=job_lists(longest=12), order=st.sampled_from(("fcfs", "sjf")))
def test_gangs_on_nodes_of_one_processor_start_at_the_same_times(jobs: list[BatchJob], order: str) -> None:
    expected = starts(jobs, PROCESSORS, order, backfill=True)
    assert simulated_starts(jobs, "gang", order, backfill=True) == expected


def test_the_orders_are_those_that_a_configuration_may_name() -> None:
    assert tuple(ORDERS) == JOB_ORDERS


CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: strict
            properties: {simulation.order: fcfs, simulation.backfill: enabled}
          - name: free
"""


def run(*lines: dict[str, Any], config: str = CONFIG) -> Result:
    meta = {"t": "meta", "name": "jobs", "version": 2, "grace_s": 0}
    rows = [meta, {"t": "config", "yaml": config}, {"t": "node", "id": "n", "res": {"vcore": 4000}}, *lines]
    return simulate(parse_workload(map(msgspec.json.encode, rows)))


def app(name: str, at: float, queue: str = "strict") -> dict[str, Any]:
    return {"t": "app", "id": name, "queue": f"root.{queue}", "user": "u", "at": at}


def ask(name: str, at: float, cores: int, run_s: float | None = None, key: str = "", **more: Any) -> dict[str, Any]:
    made = {"t": "ask", "key": key or name, "app": name, "res": {"vcore": 1000 * cores}, "at": at, **more}
    return made if run_s is None else {**made, "duration_s": run_s}


def job(
    name: str, at: float, cores: int, run_s: float | None, queue: str = "strict", **more: Any
) -> list[dict[str, Any]]:
    return [app(name, at, queue), ask(name, at, cores, run_s, **more)]


def starts_of(result: Result) -> dict[str, float | None]:
    return {pod.key: pod.start_s for pod in result.pods}


def record(result: Result, key: str) -> PodRecord:
    return next(pod for pod in result.pods if pod.key == key)


def test_the_head_blocks_and_only_what_cannot_delay_it_is_backfilled() -> None:
    result = run(
        *job("a", 0, 3, 100),
        *job("head", 1, 4, 10),
        *job("long", 2, 1, 99),  # would end at 101, after the head could start
        *job("even", 3, 1, 97),  # would end at 100, which is not before
        *job("short", 4, 1, 95),
    )
    assert starts_of(result) == {"a": 0, "head": 100, "short": 4, "long": 110, "even": 110}
    assert result.applications_accepted == 5


def test_another_queue_is_not_held_back() -> None:
    result = run(*job("a", 0, 3, 100), *job("head", 1, 4, 10), *job("long", 2, 1, 99, "free"))
    assert starts_of(result) == {"a": 0, "head": 101, "long": 2}


def test_what_is_held_back_to_the_end_has_a_reason() -> None:
    result = run(
        *job("a", 0, 2, None),
        *job("head", 1, 4, 10),
        *job("small", 2, 1, None),
        config=CONFIG.replace("enabled", "disabled"),
    )
    assert {pod.key: pod.outcome for pod in result.pods} == {"a": "running", "head": "waiting", "small": "waiting"}
    reasons = {reason.example: reason.reason for reason in result.reasons}
    assert reasons["small"] == "held back: another job is first in the strict order of root.strict"
    assert "head" in reasons
    assert result.never_placed == 2


def test_a_head_that_is_not_expected_to_start_lets_everything_pass_that_says_its_time() -> None:
    result = run(*job("a", 0, 2, None), *job("head", 1, 4, 10), *job("small", 2, 1, 10**6), *job("stays", 3, 1, None))
    assert starts_of(result) == {"a": 0, "head": None, "small": 2, "stays": None}


def test_a_head_that_waits_for_a_quota_lets_nothing_pass() -> None:
    config = CONFIG.replace(
        "          - name: free", "            resources: {max: {vcore: 3}}\n          - name: free"
    )
    result = run(*job("a", 0, 2, 100), *job("head", 1, 2, 10), *job("short", 2, 1, 5), config=config)
    assert starts_of(result) == {"a": 0, "head": 100, "short": 100}


def test_a_head_that_is_withdrawn_makes_room_for_the_next() -> None:
    result = run(
        *job("a", 0, 3, 100),
        *job("head", 1, 4, 10),
        *job("next", 2, 1, 500),
        {"t": "release", "app": "head", "key": "head", "at": 5},
    )
    assert starts_of(result) == {"a": 0, "head": None, "next": 5}
    assert record(result, "head").outcome == "withdrawn"


@pytest.mark.parametrize("line", [{"t": "release", "app": "next", "key": "next"}, {"t": "release-app", "app": "next"}])
def test_a_job_that_is_withdrawn_while_it_is_held_back_never_starts(line: dict[str, Any]) -> None:
    result = run(
        *job("a", 0, 3, 100), *job("head", 1, 4, 10), *job("next", 2, 1, 50, key="next"), {**line, "at": 1.5 + 1}
    )
    # It was backfilled at 2: withdrawn afterwards it ends.
    assert record(result, "next").start_s == 2
    result = run(*job("a", 0, 3, 100), *job("head", 1, 4, 10), *job("next", 2, 1, 500, key="next"), {**line, "at": 3})
    assert starts_of(result) == {"a": 0, "head": 100, "next": None}
    assert record(result, "next").outcome == "withdrawn"


def test_a_job_that_the_scheduler_refuses_does_not_block() -> None:
    result = run(
        *job("a", 0, 3, 100),
        app("bad", 1),
        {"t": "ask", "key": "bad", "app": "bad", "res": {"vcore": -1}, "at": 1, "duration_s": 5},
        *job("next", 2, 1, 5),
    )
    assert starts_of(result) == {"a": 0, "bad": None, "next": 2}
    assert record(result, "bad").outcome == "refused"


def test_jobs_of_one_application_are_jobs_of_their_own() -> None:
    result = run(
        app("app", 0),
        ask("app", 0, 3, 100, "k1"),
        ask("app", 1, 4, 10, "k2"),
        ask("app", 2, 1, 200, "k3"),
        ask("app", 3, 1, 20, "k4"),
    )
    assert starts_of(result) == {"k1": 0, "k2": 100, "k3": 110, "k4": 3}


def test_a_job_that_is_asked_for_again_while_it_is_held_back_changes() -> None:
    result = run(
        *job("a", 0, 3, 100), *job("head", 1, 4, 10), *job("b", 2, 2, 500), {**ask("b", 3, 1), "duration_s": 500}
    )
    assert record(result, "b").start_s == 110


def test_what_a_quota_of_one_queue_refuses_another_may_have() -> None:
    config = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: small
            properties: {simulation.order: fcfs, simulation.backfill: enabled}
            resources: {max: {vcore: 4}}
          - name: large
            properties: {simulation.order: fcfs, simulation.backfill: enabled}
"""
    result = run(
        {"t": "node", "id": "m", "res": {"vcore": 4000}},
        *job("s1", 0, 3, 100, "small"),
        *job("l1", 0, 3, 100, "large"),
        *job("s-head", 1, 4, 10, "small"),
        *job("l-head", 2, 4, 10, "large"),
        *job("s-one", 3, 1, 20, "small"),  # takes what is left of the quota
        *job("s-two", 4, 1, 20, "small"),  # is refused
        *job("l-one", 5, 1, 20, "large"),
        config=config,
    )
    found = starts_of(result)
    assert (found["s-one"], found["l-one"]) == (3, 5)
    assert found["s-two"] == 23


def test_a_job_of_an_application_that_runs_may_start_where_one_more_application_may_not() -> None:
    config = CONFIG.replace("          - name: free", "            maxapplications: 1\n          - name: free")
    result = run(
        app("a", 0),
        ask("a", 0, 3, 100, "a1"),
        ask("a", 1, 4, 10, "a2"),
        *job("b", 2, 1, 20),
        ask("a", 3, 1, 20, "a3"),
        config=config,
    )
    assert starts_of(result) == {"a1": 0, "a2": 100, "a3": 3, "b": 110}


def test_an_evicted_job_waits_in_the_order_again() -> None:
    config = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: '*'
        queues:
          - name: strict
            properties: {simulation.order: fcfs}
          - name: free
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 4}}
"""
    result = run(
        *job("a", 0, 4, 100, pre_self=True),
        *job("second", 1, 4, 10),
        app("want", 2, "free"),
        {**ask("want", 2, 4, 50), "pre_other": True},
        config=config,
    )
    # `second` was handed in before `a` came back.
    assert [pod.key for pod in sorted(result.pods, key=lambda pod: pod.start_s or 0)] == ["want", "second", "a"]
    assert record(result, "a").evictions == 1


def test_a_changed_configuration_changes_the_order() -> None:
    lines = [*job("a", 0, 4, 100), *job("head", 1, 4, 50), *job("long", 2, 4, 30), *job("short", 3, 4, 10)]
    assert starts_of(run(*lines)) == {"a": 0, "head": 100, "long": 150, "short": 180}
    sjf = {"t": "reload", "yaml": CONFIG.replace("fcfs", "sjf"), "at": 4}
    assert starts_of(run(*lines, sjf)) == {"a": 0, "head": 100, "short": 150, "long": 160}
    none = CONFIG.replace("            properties: {simulation.order: fcfs, simulation.backfill: enabled}\n", "")
    small = job("small", 5, 2, 10)
    assert starts_of(run(*job("a", 0, 2, 100), *job("head", 1, 4, 50), *job("b", 2, 2, 500), {"t": "reload", "yaml": none, "at": 4}, *small)) == {
        "a": 0, "head": 504, "b": 4, "small": 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([app("a", 0), ask("a", 0, 1, max=2)], "ask a is placed several times"),
        (
            [{**app("a", 0), "gang": [{"name": "g", "min": 2, "res": {"vcore": 1}}]}],
            "is of a gang with placeholders",
        ),
    ],
)
def test_what_cannot_be_held_back_is_refused(lines: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        run(*lines)


def test_an_order_by_requested_times_needs_them() -> None:
    with pytest.raises(
        WorkloadError, match="<workload>:5: ask a has neither requested_s nor duration_s, which the order sjf needs"
    ):
        run(*job("a", 0, 1, None), config=CONFIG.replace("fcfs", "sjf"))


def test_version_1_has_no_requested_time() -> None:
    rows = [
        {"t": "meta", "name": "x"},
        {"t": "app", "id": "a"},
        {"t": "ask", "key": "k", "app": "a", "res": {}, "requested_s": 5},
    ]
    with pytest.raises(WorkloadError, match='requested_s: needs "version":2 in meta'):
        parse_workload(map(msgspec.json.encode, rows))


NODES = [{"t": "node", "id": "m", "res": {"vcore": 4000}}]


def test_the_limit_is_when_one_node_has_the_room_not_all_together() -> None:
    lines = [
        *NODES,
        *job("a", 0, 3, 100),
        *job("b", 0, 3, 50),
        *job("head", 1, 4, 10),
        *job("even", 2, 1, 48),
        *job("c", 2, 1, 47),
    ]
    assert starts_of(run(*lines)) == {"a": 0, "b": 0, "head": 50, "c": 2, "even": 50}


@pytest.mark.parametrize(
    ("line", "long_s"),
    [
        (
            {"t": "foreign", "key": "f", "node": "m", "res": {"vcore": 1000}},
            100,
        ),  # then the rest of `m` has room for it
        ({"t": "node-drain", "id": "m"}, 110),
    ],
)
def test_a_node_that_is_drained_and_what_others_use_is_no_room_for_the_head(line: dict[str, Any], long_s: int) -> None:
    # Else the head would start on `m` at once.
    result = run(
        *NODES, line, *job("a", 0, 3, 100), *job("head", 1, 4, 10), *job("small", 2, 1, 97), *job("long", 3, 1, 99)
    )
    assert starts_of(result) == {"a": 0, "head": 100, "small": 2, "long": long_s}


def test_a_gang_of_different_pods_is_one_job() -> None:
    def gang(name: str, at: float, run_s: float) -> list[dict[str, Any]]:
        groups = [{"name": "x", "min": 1, "res": {"vcore": 2000}}, {"name": "y", "min": 2, "res": {"vcore": 1000}}]
        asks = [
            ask(name, at, cores, run_s, f"{name}-{number}", group=group)
            for number, (cores, group) in enumerate([(2, "x"), (1, "y"), (1, "y")])
        ]
        return [{**app(name, at), "gang": groups, "atomic": True}, *asks]

    result = run(
        *job("a", 0, 1, 100), *gang("head", 1, 20), *job("short", 2, 3, 97), *job("long", 3, 1, 98), *gang("last", 4, 5)
    )
    found = starts_of(result)
    assert {found[f"head-{number}"] for number in range(3)} == {100}
    assert found["short"] == 2
    assert found["long"] == 120
    assert {found[f"last-{number}"] for number in range(3)} == {218}


# -- the comparison with the naive batch system would notice -------------------------------------------------------


def _all_at_once(clock: Any) -> int:
    return int(clock.simulation.end_due() + clock._hand_in())


def _ends_first(clock: Any) -> int:
    return int(clock.simulation.end_due(one=True) or clock._hand_in(one=True))


def _policys_order(queue: Any) -> list[Any]:
    queue.jobs.sort(key=lambda one: one.key)
    return [one for one in queue.jobs if one is not queue.head]


def _newest_head(queue: Any) -> Any:
    queue.jobs.sort(key=lambda one: one.key, reverse=True)
    queue.head, queue.limit_ns, queue.sorted = queue.jobs[0], None, True
    return queue.head


def _new_limit(queues: Any, queue: Any, limit_ns: int, now_ns: int) -> int:
    del limit_ns
    return BACKFILL(queues, queue, queues._limit_ns(queue.head, now_ns), now_ns)


BACKFILL, LIMIT, HOPELESS = JobQueues._backfill, JobQueues._limit_ns, JobQueues._hopeless
FAULTS: dict[str, tuple[type, str, Any]] = {
    "all events of one second at once": (_Clock, "_happen", _all_at_once),
    "ends before arrivals": (_Clock, "_happen", _ends_first),
    "backfill in the order of the queue": (JobQueue, "later", _policys_order),
    "the last job first": (JobQueue, "next_head", _newest_head),
    "no backfill": (JobQueues, "_backfill", lambda *_: 0),
    "a limit a second later": (JobQueues, "_limit_ns", lambda queues, head, now: LIMIT(queues, head, now) + 10**9),
    "no limit": (JobQueues, "_limit_ns", lambda *_: NEVER_NS),
    "a limit made anew after each event": (JobQueues, "_backfill", _new_limit),
    "what was refused once is never tried again": (
        JobQueues,
        "_hopeless",
        lambda queues, one: bool(queues._refused) or HOPELESS(queues, one),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None], fault: str
) -> None:
    owner, name, broken = FAULTS[fault]
    monkeypatch.setattr(owner, name, broken, raising=False)
    for seed in range(200):
        rng = random.Random(seed)
        now, jobs = 0, []
        for number in range(1, 25):
            now += rng.choice((0, 0, 1, 3))
            jobs.append(
                BatchJob(number, now, rng.randrange(1, 12), rng.randrange(1, 12), rng.randrange(1, PROCESSORS + 1))
            )
        order = rng.choice(("fcfs", "sjf"))
        if simulated_starts(jobs, "one", order, backfill=True) != starts(jobs, PROCESSORS, order, backfill=True):
            record_property(LOOKED_AT, number_of(seed + 1, "list"))
            return
    pytest.fail("200 lists of jobs do not show it")
