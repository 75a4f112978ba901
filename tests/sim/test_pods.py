"""What became of each pod, the times of pods in the report, and the window that figures are for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from licorne import simulate
from licorne.sim import Observer, PodRecord, Result
from licorne.sim.pods import bounded_slowdown
from licorne.sim.times import ALL_QUEUES
from licorne.workload import WorkloadError, load_workload

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}, {name: b}]}]}]"
HEAD: list[dict[str, Any]] = [
    {"t": "meta", "name": "w", "version": 2, "grace_s": 5},
    {"t": "config", "yaml": QUEUES},
    {"t": "node", "id": "n1", "res": {"vcore": 2000}},
    {"t": "node", "id": "n2", "res": {"vcore": 2000}, "drain": True},
    {"t": "app", "id": "app", "queue": "root.a", "user": "ann"},
    {"t": "app", "id": "daemon", "queue": "root.b", "user": "bob"},
]
NEEDS_N1 = {"yunikorn.apache.org/requiredNode": "n1"}


def ask(key: str, at: float, vcore: int = 1000, app: str = "app", **more: Any) -> dict[str, Any]:
    return {"t": "ask", "key": key, "app": app, "res": {"vcore": vcore}, "at": at, **more}


def run(*lines: dict[str, Any], **options: Any) -> Result:
    return simulate([*HEAD, *lines], **options)


def pods(result: Result) -> dict[str, PodRecord]:
    found = {record.key: record for record in result.pods}
    assert len(found) == len(result.pods)
    return found


def test_a_pod_that_waits_and_runs() -> None:
    result = run(ask("k0", 0, 2000, duration_s=10), ask("k1", 2.5, 2000, duration_s=0.25))
    assert pods(result)["k1"] == PodRecord(
        key="k1", application="app", queue="root.a", user="ann", outcome="ended", arrival_s=2.5, start_s=10.0,
        end_s=10.25, node="n1", waiting_s=7.5, run_s=0.25, evictions=0, lost_s=0.0, pods=1,
    )  # fmt: skip


def test_an_evicted_pod_is_one_record() -> None:
    """It runs from 0 to 45, grace included, waits for the daemon, and runs its 100 s from 55 on."""
    result = run(ask("k", 0, 2000, duration_s=100), ask("d", 40, app="daemon", tags=NEEDS_N1, duration_s=10))
    record = pods(result)["k"]
    assert (record.outcome, record.arrival_s, record.start_s, record.end_s) == ("ended", 0.0, 55.0, 155.0)
    assert (record.evictions, record.lost_s, record.waiting_s, record.run_s) == (1, 45.0, 10.0, 100.0)
    completed = result.completions[-1]
    assert (completed.queue, completed.completed, completed.not_completed) == (ALL_QUEUES, 2, 0)
    assert (completed.longest_s, completed.slowdown_most) == (155.0, 1.55)


def test_equal_keys_of_two_applications_are_two_records() -> None:
    """The daemon evicts a pod of its own key, and ends while that waits to run again."""
    result = run(ask("k", 0, 2000, duration_s=100), ask("k", 40, app="daemon", tags=NEEDS_N1, duration_s=10))
    found = {record.application: (record.arrival_s, record.evictions, record.end_s) for record in result.pods}
    assert found == {"app": (0.0, 1, 155.0), "daemon": (40.0, 0, 55.0)}


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ([{"t": "release", "app": "app", "key": "k", "at": 5}], "released"),
        ([{"t": "release-app", "app": "app", "at": 5}], "released"),
        ([{"t": "node-remove", "id": "n1", "at": 5}], "stopped"),
        ([], "running"),
    ],
)
def test_how_a_run_ends(lines: list[dict[str, Any]], outcome: str) -> None:
    result = run(ask("k", 0), *lines, ask("later", 7, vcore=9000))
    record = pods(result)["k"]
    assert (record.outcome, record.end_s) == (outcome, None if outcome == "running" else 5.0)
    assert (record.user, record.queue, record.run_s) == ("ann", "root.a", 7.0 if outcome == "running" else 5.0)
    completed = outcome == "released"
    assert [(row.completed, row.not_completed) for row in result.completions[-1:]] == [(completed, 2 - completed)]


def test_a_running_time_that_is_over_and_an_eviction_without_return() -> None:
    result = run(ask("k", 0, timeout_ms=3000))
    assert (pods(result)["k"].outcome, pods(result)["k"].run_s) == ("timeout", 3.0)
    lines = [*HEAD, ask("k", 0, 2000), ask("d", 40, app="daemon", tags=NEEDS_N1, duration_s=1)]
    lines[0] = {**lines[0], "resubmit": False}
    record = pods(simulate(lines))["k"]
    found = (record.outcome, record.evictions, record.lost_s, record.run_s, record.end_s)
    assert found == ("evicted", 1, 45.0, 0.0, 45.0)


@pytest.mark.parametrize(
    ("lines", "outcome", "queue", "waiting_s"),
    [
        ([ask("k", 1, 9000), ask("last", 4)], "waiting", "root.a", 3.0),
        ([ask("k", 1, 9000), {"t": "release", "app": "app", "key": "k", "at": 3}], "withdrawn", "root.a", 2.0),
        ([ask("k", 1, 9000), {"t": "release-app", "app": "app", "at": 3}], "withdrawn", "root.a", 2.0),
        ([ask("k", 1, -1)], "refused", "root.a", 0.0),
        ([{"t": "app", "id": "x", "queue": "root.gone", "user": "eve"}, ask("k", 1, app="x")], "refused", "root.gone", 0.0),
        ([ask("k", 1, app="nobody")], "refused", "", 0.0),
    ],
)  # fmt: skip
def test_a_pod_that_is_never_placed_is_counted_beside_the_percentiles(
    lines: list[dict[str, Any]], outcome: str, queue: str, waiting_s: float
) -> None:
    result = run(*lines)
    record = pods(result)["k"]
    assert (record.outcome, record.queue, record.waiting_s, record.start_s) == (outcome, queue, waiting_s, None)
    rows = {row.queue: row for row in result.waiting_times}
    assert rows[queue].never_placed == rows[ALL_QUEUES].never_placed == result.never_placed == 1
    placed = [row.placed for row in rows.values() if row.queue == "root.a"] or [0]
    assert rows[queue].mean_least_s == (0.0 if outcome == "refused" else waiting_s / (1 + placed[0]))


def test_the_part_of_a_repeating_ask_that_was_not_placed_is_one_record() -> None:
    result = run(ask("k", 0, max=1_000_000))
    assert [(record.outcome, record.pods) for record in result.pods] == [("running", 1)] * 2 + [("waiting", 999_998)]
    assert result.waiting_times[-1].never_placed == result.never_placed == 999_998


def test_where_time_stands_still_pods_are_placed_or_not() -> None:
    lines = [*HEAD, *({**ask(key, 0, 2000), "at": None} for key in ("k0", "k1")), {"t": "run"}]
    result = simulate(lines)
    found = [(record.key, record.outcome, record.node) for record in result.pods]
    assert found == [("k0", "placed", "n1"), ("k1", "waiting", None)]
    assert result.completions == []


@pytest.mark.parametrize(("completion_s", "run_s", "slowdown"), [(10, 10, 1), (5, 1, 1), (30, 1, 3), (300, 100, 3)])
def test_slowdown_is_bounded(completion_s: int, run_s: int, slowdown: float) -> None:
    assert bounded_slowdown(completion_s * 10**9, run_s * 10**9) == slowdown


def test_percentiles_and_means_of_waiting() -> None:
    result = run(*(ask(f"k{number}", 0, 2000, duration_s=20) for number in range(4)))
    (row, every) = result.waiting_times
    assert (row.mean_s, row.p50_s, row.longest_s) == (30.0, 20.0, 60.0)
    assert msgspec.structs.replace(row, queue=ALL_QUEUES) == every
    (_, done) = result.completions
    assert (done.mean_s, done.p50_s, done.slowdown_mean, done.slowdown_p99) == (50.0, 40.0, 2.5, 4.0)


# -- the window ------------------------------------------------------------------------------------------------


def test_a_window_leaves_out_what_is_before_and_after() -> None:
    """One core of two from 0 on, both from 10 to 30, none from 40 on."""
    lines = (ask("k0", 0, duration_s=40), ask("k1", 10, duration_s=20), ask("k2", 50, 1000, duration_s=10))
    whole = run(*lines)
    assert whole.window_s == (0.0, 60.0)
    assert (whole.utilisation[0].peak_used, whole.utilisation[0].end_used) == (2000, 0)
    part = run(*lines, since_s=5, until_s=25)
    (vcore,) = part.utilisation
    assert part.window_s == (5.0, 25.0)
    assert (vcore.mean_used, vcore.peak_used, vcore.end_used, vcore.end) == (1750.0, 2000, 2000, 0.5)
    rows = {row.queue: row for row in part.queues}
    assert (rows["root.a"].mean, rows["root.a"].end) == (1750.0, 2000)
    assert (part.waiting_times[-1].placed, part.completions[-1].completed) == (1, 1)
    assert (part.placed, part.digest, part.simulated_s) == (3, whole.digest, 60.0), "counts are of the whole"
    later = run(*lines, since_s=35)
    assert (later.window_s, later.utilisation[0].peak_used) == ((35.0, 60.0), 1000)
    assert later.utilisation[0].mean_used == 600.0


def test_a_window_after_the_end_is_noted() -> None:
    result = run(ask("k", 0, duration_s=3), since_s=10)
    assert "the simulation ended after 3.0 s, before the time that figures are for" in result.notes


@pytest.mark.parametrize(("since_s", "until_s"), [(-1, None), (5, 5), (6, 5), (float("nan"), None)])
def test_a_window_must_have_a_length(since_s: float, until_s: float | None) -> None:
    with pytest.raises(ValueError, match=r"from|since"):
        run(ask("k", 0), since_s=since_s, until_s=until_s)


# -- observers -------------------------------------------------------------------------------------------------


class Everything(Observer):
    """Notes whatever it hears."""

    def __init__(self) -> None:
        self.outputs: list[tuple[int, str, bool]] = []
        self.records: list[PodRecord] = []
        self.spans: list[tuple[int, int | None]] = []
        self.used: list[int] = []

    def on_outputs(self, now_ns: int, outputs: Any, *, deciding: bool) -> None:
        self.outputs += [(now_ns, type(output).__name__, deciding) for output in outputs]

    def on_pod(self, record: PodRecord) -> None:
        self.records.append(record)

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Any) -> None:
        self.spans.append((now_ns, until_ns))
        self.used.append(next(iter(partition.tree.queues())).allocated_resource().get("vcore", 0))


def test_an_observer_hears_outputs_pods_and_moments() -> None:
    one = Everything()
    result = run(ask("k", 2, duration_s=3), observers=[one, Observer()])
    second = 10**9
    assert (2 * second, "NewAllocation", True) in one.outputs
    assert (5 * second, "Released", False) in one.outputs
    assert one.records == result.pods
    assert [(now, until) for now, until in one.spans if now != until] == [
        (0, 2 * second), (2 * second, 5 * second), *one.spans[-1:],
    ]  # fmt: skip
    assert one.spans[-1] == (5 * second, None)
    assert one.used[-2:] == [1000, 0]
    assert run(ask("k", 2, duration_s=3)).digest == result.digest


def test_what_an_observer_raises_ends_the_simulation() -> None:
    class Full(Observer):
        def on_pod(self, record: PodRecord) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        run(ask("k", 0, duration_s=1), observers=[Full()])


def test_records_need_not_be_kept() -> None:
    result = run(ask("k", 0, duration_s=1), pods=False)
    assert result.pods == []
    assert "pods" not in msgspec.json.decode(msgspec.json.encode(result))


# -- what is simulated -----------------------------------------------------------------------------------------


def test_a_workload_is_a_path_or_lines(tmp_path: Any) -> None:
    path = tmp_path / "w.jsonl"
    lines = [*HEAD, ask("k", 0, duration_s=1)]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    assert simulate(path).digest == simulate(str(path)).digest == simulate(lines).digest
    assert simulate(load_workload(path)).digest == simulate(lines).digest
    with pytest.raises(WorkloadError, match="a seed and a load are for a scenario"):
        load_workload(path, load=0.5)
    with pytest.raises(WorkloadError, match="<workload>:1: t: unknown kind"):
        simulate([{"t": "mteta"}])


# -- which configuration counted -------------------------------------------------------------------------------


def test_the_built_in_configuration_is_named_where_it_uses_no_queue() -> None:
    lines = [HEAD[0], *HEAD[2:], ask("k", 0)]
    result = simulate(lines)
    assert result.configuration == (
        "built-in; application app asked for root.a, which no rule uses; so did 1 more, for this queue or another"
    )
    one = [line for line in lines if line.get("id") != "daemon"]
    assert simulate(one).configuration == "built-in; application app asked for root.a, which no rule uses"
    where = [{**line, "tags": {"namespace": "a"}} if line.get("id") == "app" else line for line in one]
    assert simulate(where).configuration == "built-in", "the rule gives it the queue that it asks for"
    assert run(ask("k", 0)).configuration == "the workload's"
    assert run(ask("k", 0), config=QUEUES).configuration == "given in place of the workload's"
    assert simulate(lines, config=QUEUES).configuration == "given"


def test_rejected_applications_are_counted_by_the_queue_that_they_asked_for() -> None:
    renamed = QUEUES.replace("name: a}", "name: new, submitacl: ann}")
    lines = [{"t": "app", "id": f"b{number}", "queue": "root.a", "user": "ann"} for number in range(2)]
    closed = {"t": "app", "id": "closed", "queue": "root.new", "user": "eve"}
    result = run(*lines, closed, {"t": "app", "id": "nowhere", "user": "eve"}, config=renamed.replace("'*'", "''"))
    assert [(row.queue, row.applications, row.example, row.exists) for row in result.rejected_queues] == [
        ("root.a", 3, "app", False), ("", 1, "nowhere", False), ("root.b", 1, "daemon", True), ("root.new", 1, "closed", True),
    ]  # fmt: skip
