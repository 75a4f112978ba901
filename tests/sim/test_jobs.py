"""Strict order and backfill in the simulator: against a naive batch system, and examples by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.planting import LOOKED_AT, number_of
from core.bench import config
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


ORDERED = "properties: {simulation.order: fcfs, simulation.backfill: enabled}"
CONFIG = config(f"strict {ORDERED}", "free")


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


def jobs(text: str) -> list[dict[str, Any]]:
    """Jobs of one pod each: name, arrival, cores, run time (`-`: it stays), and the queue if it is not the strict one."""
    lines: list[dict[str, Any]] = []
    for name, at, cores, run_s, *queue in map(str.split, text.split(",")):
        lines += job(name, int(at), int(cores), None if run_s == "-" else int(run_s), *queue)
    return lines


def starts_of(result: Result) -> dict[str, float | None]:
    return {pod.key: pod.start_s for pod in result.pods}


def record(result: Result, key: str) -> PodRecord:
    return next(pod for pod in result.pods if pod.key == key)


HEAD = "a 0 3 100, head 1 4 10, "
"""The head waits until 100; one core is free until then."""
SECOND_NODE = {"t": "node", "id": "m", "res": {"vcore": 4000}}
OTHERS_USE = {"t": "foreign", "key": "f", "node": "m", "res": {"vcore": 1000}}
TWO_QUEUES = config(f"small {ORDERED}, resources: {{max: {{vcore: 4}}}}", f"large {ORDERED}")


class Example(NamedTuple):
    """What comes, and when each job starts. `ended`: how those ended that did not run to their end."""

    lines: list[dict[str, Any]]
    starts: dict[str, float | None]
    config: str = CONFIG
    ended: dict[str, str] | None = None


EXAMPLES = {
    "only what cannot delay the head is backfilled": Example(
        # `long` would end at 101, after the head could start, and `even` at 100, which is not before.
        jobs(HEAD + "long 2 1 99, even 3 1 97, short 4 1 95"),
        {"a": 0, "head": 100, "short": 4, "long": 110, "even": 110},
    ),
    "another queue is not held back": Example(jobs(HEAD + "long 2 1 99 free"), {"a": 0, "head": 101, "long": 2}),
    "a head that is not expected to start lets everything pass that says its time": Example(
        jobs("a 0 2 -, head 1 4 10, small 2 1 1000000, stays 3 1 -"), {"a": 0, "head": None, "small": 2, "stays": None}
    ),
    "a head that waits for a quota lets nothing pass": Example(
        jobs("a 0 2 100, head 1 2 10, short 2 1 5"),
        {"a": 0, "head": 100, "short": 100},
        config(f"strict {ORDERED}, resources: {{max: {{vcore: 3}}}}", "free"),
    ),
    "a head that is withdrawn makes room for the next": Example(
        [*jobs(HEAD + "next 2 1 500"), {"t": "release", "app": "head", "key": "head", "at": 5}],
        {"a": 0, "head": None, "next": 5},
        ended={"head": "withdrawn"},
    ),
    "a job that is released while it is held back never starts": Example(
        [*jobs(HEAD + "next 2 1 500"), {"t": "release", "app": "next", "key": "next", "at": 3}],
        {"a": 0, "head": 100, "next": None},
        ended={"next": "withdrawn"},
    ),
    "a job whose application is released while it is held back never starts": Example(
        [*jobs(HEAD + "next 2 1 500"), {"t": "release-app", "app": "next", "at": 3}],
        {"a": 0, "head": 100, "next": None},
        ended={"next": "withdrawn"},
    ),
    "a job that is released after it was backfilled has started": Example(
        [*jobs(HEAD + "next 2 1 50"), {"t": "release", "app": "next", "key": "next", "at": 2.5}],
        {"a": 0, "head": 100, "next": 2},
        ended={"next": "released"},
    ),
    "a job whose application is released after it was backfilled has started": Example(
        [*jobs(HEAD + "next 2 1 50"), {"t": "release-app", "app": "next", "at": 2.5}],
        {"a": 0, "head": 100, "next": 2},
        ended={"next": "released"},
    ),
    "a job that the scheduler refuses does not block": Example(
        [*jobs("a 0 3 100"), app("bad", 1), {**ask("bad", 1, 0, 5), "res": {"vcore": -1}}, *jobs("next 2 1 5")],
        {"a": 0, "bad": None, "next": 2},
        ended={"bad": "refused"},
    ),
    "jobs of one application are jobs of their own": Example(
        [app("x", 0), ask("x", 0, 3, 100, "k1"), ask("x", 1, 4, 10, "k2"), ask("x", 2, 1, 200, "k3"), ask("x", 3, 1, 20, "k4")],
        {"k1": 0, "k2": 100, "k3": 110, "k4": 3},
    ),
    "a job that is asked for again while it is held back changes": Example(
        [*jobs(HEAD + "b 2 2 500"), ask("b", 3, 1, 500)], {"a": 0, "head": 100, "b": 110}
    ),
    "what a quota of one queue refuses another may have": Example(
        # `s-one` takes what is left of the quota, and `s-two` is refused.
        [
            SECOND_NODE,
            *jobs("s1 0 3 100 small, l1 0 3 100 large, s-head 1 4 10 small, l-head 2 4 10 large"),
            *jobs("s-one 3 1 20 small, s-two 4 1 20 small, l-one 5 1 20 large"),
        ],
        {"s1": 0, "l1": 0, "s-head": 100, "l-head": 100, "s-one": 3, "s-two": 23, "l-one": 5},
        TWO_QUEUES,
    ),
    "a job of an application that runs may start where one more application may not": Example(
        [app("a", 0), ask("a", 0, 3, 100, "a1"), ask("a", 1, 4, 10, "a2"), *jobs("b 2 1 20"), ask("a", 3, 1, 20, "a3")],
        {"a1": 0, "a2": 100, "a3": 3, "b": 110},
        config(f"strict {ORDERED}, maxapplications: 1", "free"),
    ),
    "the limit is when one node has the room, not all together": Example(
        [SECOND_NODE, *jobs("a 0 3 100, b 0 3 50, head 1 4 10, even 2 1 48, c 2 1 47")],
        {"a": 0, "b": 0, "head": 50, "c": 2, "even": 50},
    ),
    "what others use is no room for the head": Example(  # else it would start on `m` at once; `long` fits beside them
        [SECOND_NODE, OTHERS_USE, *jobs(HEAD + "small 2 1 97, long 3 1 99")],
        {"a": 0, "head": 100, "small": 2, "long": 100},
    ),
    "a node that is drained is no room for the head": Example(
        [SECOND_NODE, {"t": "node-drain", "id": "m"}, *jobs(HEAD + "small 2 1 97, long 3 1 99")],
        {"a": 0, "head": 100, "small": 2, "long": 110},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_when_jobs_start(name: str) -> None:
    example = EXAMPLES[name]
    result = run(*example.lines, config=example.config)
    assert starts_of(result) == example.starts
    usual = ("ended", "running", "waiting")
    assert {pod.key: pod.outcome for pod in result.pods if pod.outcome not in usual} == (example.ended or {})
    assert result.applications_accepted == sum(line["t"] == "app" for line in example.lines)


def test_what_is_held_back_to_the_end_has_a_reason() -> None:
    result = run(*jobs("a 0 2 -, head 1 4 10, small 2 1 -"), config=CONFIG.replace("enabled", "disabled"))
    assert {pod.key: pod.outcome for pod in result.pods} == {"a": "running", "head": "waiting", "small": "waiting"}
    reasons = {reason.example: reason.reason for reason in result.reasons}
    assert reasons["small"] == "held back: another job is first in the strict order of root.strict"
    assert "head" in reasons
    assert result.never_placed == 2


def test_an_evicted_job_waits_in_the_order_again() -> None:
    free = "free properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 4}}"
    result = run(
        *job("a", 0, 4, 100, pre_self=True),
        *job("second", 1, 4, 10),
        app("want", 2, "free"),
        {**ask("want", 2, 4, 50), "pre_other": True},
        config=config("strict properties: {simulation.order: fcfs}", free),
    )
    # `second` was handed in before `a` came back.
    assert [pod.key for pod in sorted(result.pods, key=lambda pod: pod.start_s or 0)] == ["want", "second", "a"]
    assert record(result, "a").evictions == 1


def test_a_changed_configuration_changes_the_order() -> None:
    lines = jobs("a 0 4 100, head 1 4 50, long 2 4 30, short 3 4 10")
    assert starts_of(run(*lines)) == {"a": 0, "head": 100, "long": 150, "short": 180}
    sjf = {"t": "reload", "yaml": CONFIG.replace("fcfs", "sjf"), "at": 4}
    assert starts_of(run(*lines, sjf)) == {"a": 0, "head": 100, "short": 150, "long": 160}
    reload = {"t": "reload", "yaml": config("strict", "free"), "at": 4}
    found = run(*jobs("a 0 2 100, head 1 4 50, b 2 2 500"), reload, *jobs("small 5 2 10"))
    assert starts_of(found) == {"a": 0, "head": 504, "b": 4, "small": 100}


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


def test_a_gang_of_different_pods_is_one_job() -> None:
    def gang(name: str, at: float, run_s: float) -> list[dict[str, Any]]:
        groups = [{"name": "x", "min": 1, "res": {"vcore": 2000}}, {"name": "y", "min": 2, "res": {"vcore": 1000}}]
        asks = [
            ask(name, at, cores, run_s, f"{name}-{number}", group=group)
            for number, (cores, group) in enumerate([(2, "x"), (1, "y"), (1, "y")])
        ]
        return [{**app(name, at), "gang": groups, "atomic": True}, *asks]

    result = run(*jobs("a 0 1 100"), *gang("head", 1, 20), *jobs("short 2 3 97, long 3 1 98"), *gang("last", 4, 5))
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
