"""Small workloads under the virtual clock, with results worked out by hand."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.bench import config
from licorne import RegistrationError, SettingsError
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.workload import Workload, WorkloadError, parse_workload
from parity.traces import traced

QUEUES = config("a resources: {guaranteed: {vcore: 1}}", "b resources: {max: {vcore: 1}}")
NODE = {"t": "node", "id": "n1", "res": {"vcore": 2000}}
APP = {"t": "app", "id": "app", "queue": "root.a", "user": "u"}


def workload(*lines: dict[str, Any], version: int = 2, config: str = QUEUES) -> Workload:
    head = [{"t": "meta", "name": "w", "version": version}, {"t": "config", "yaml": config}]
    return parse_workload([msgspec.json.encode(line) + b"\n" for line in [*head, *lines]])


def ask(key: str, at: float | None = None, vcore: int = 1000, **more: Any) -> dict[str, Any]:
    time = {} if at is None else {"at": at}
    return {"t": "ask", "key": key, "app": "app", "res": {"vcore": vcore}, **time, **more}


def lines_of(result_file: Path) -> list[str]:
    return result_file.read_text().splitlines()


def facts(result: Result, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(result, name) for name in names)


def test_a_pod_arrives_waits_runs_and_ends(tmp_path: Path) -> None:
    """Two pods fit at once; the third waits for the first to end at 10, the fourth for the second at 20."""
    lines = [
        ask(f"k{i}", at, duration_s=length) for i, (at, length) in enumerate([(0, 10), (0, 20), (1, 10), (2.5, 5)])
    ]
    decisions = tmp_path / "decisions"
    result = simulate(workload(NODE, APP, *lines), decisions=decisions)
    assert facts(result, "asks", "placed", "never_placed", "ended", "simulated_s") == (4, 4, 0, 4, 25.0)
    assert lines_of(decisions) == ["k0\tn1", "k1\tn1", "k2\tn1", "k3\tn1"]
    assert result.digest == hashlib.sha256(decisions.read_bytes()).hexdigest()
    waits, _ = result.waiting_times
    assert (waits.queue, waits.placed, waits.p50_s, waits.p99_s, waits.longest_s) == ("root.a", 4, 0.0, 17.5, 17.5)


def test_use_is_weighed_by_time() -> None:
    """One core of two for 10 s, then both for 10 s, then one for 20 s."""
    result = simulate(workload(NODE, APP, ask("k0", 0, duration_s=40), ask("k1", 10, duration_s=10)))
    (vcore,) = result.utilisation
    assert (vcore.mean_capacity, vcore.mean_used, vcore.peak_used) == (2000, 1250, 2000)
    assert (vcore.mean, vcore.peak) == (0.625, 1.0)
    rows = {row.queue: row for row in result.queues}
    assert (rows["root.a"].mean, rows["root.a"].peak, rows["root.a"].guaranteed, rows["root.a"].max) == (
        1250, 2000, 1000, None,
    )  # fmt: skip
    assert (rows["root"].mean, rows["root"].max) == (1250, 2000)
    assert (rows["root.b"].peak, rows["root.b"].max) == (0, 1000)


def test_a_pod_that_ends_and_one_that_arrives_share_a_place() -> None:
    lines = [ask("k0", 0, 2000, duration_s=10), ask("k1", 10, 2000, duration_s=0), ask("k2", 10, 2000)]
    result = simulate(workload(NODE, APP, *lines))
    assert result.placed == 3
    assert result.waiting_times[0].longest_s == 0


def test_asks_that_were_never_placed_have_reasons() -> None:
    other = {"t": "app", "id": "stray", "queue": "root.none", "user": "u"}
    quota = {"t": "app", "id": "capped", "queue": "root.b", "user": "u"}
    lines = [
        ask("big", 0, 3000),
        ask("gone", 0, 4000),
        {"t": "release", "app": "app", "key": "gone", "at": 5},
        ask("lost", 0, app="stray"),
        ask("orphan", 0, app="nobody"),
        ask("c0", 0, app="capped"),
        ask("c1", 0, app="capped"),
    ]
    result = simulate(workload(NODE, APP, other, quota, *sorted(lines, key=lambda line: line["at"])))
    assert facts(result, "asks", "placed", "never_placed", "applications_rejected") == (6, 1, 5, 1)
    assert sum(row.asks for row in result.reasons) == 5
    words = {row.example: row.reason for row in result.reasons}
    assert words["big"].startswith("larger than the whole cluster (vcore): it never runs as things are")
    assert words["c1"].startswith("max of queue root.b reached (vcore)")
    assert words["lost"] == "rejected: failed to place application …: application rejected: no placement rule matched"
    assert words["orphan"] == "rejected: failed to find application …"
    assert words[""] == "taken back before it was placed"


def test_an_ask_may_repeat() -> None:
    result = simulate(workload(NODE, APP, ask("k", 0, max=5, duration_s=10)))
    assert facts(result, "asks", "placed", "ended", "simulated_s") == (5, 5, 5, 30.0)


def test_a_timeout_ends_a_pod_that_would_stay() -> None:
    """An execution timeout is a release by the scheduler, which the resource manager confirms."""
    result = simulate(workload(NODE, APP, ask("k0", 0, 2000, timeout_ms=7_000), ask("k1", 1, 2000, duration_s=1)))
    assert facts(result, "placed", "timed_out", "ended", "simulated_s") == (2, 1, 1, 8.0)


def test_a_timeout_of_days_takes_effect() -> None:
    result = simulate(workload(NODE, APP, ask("k0", 0, 2000, timeout_ms=300_000_000), ask("k1", 1, 2000, duration_s=1)))
    assert facts(result, "placed", "timed_out", "simulated_s") == (2, 1, 300_001.0)


def test_an_application_may_have_a_running_time() -> None:
    result = simulate(workload(NODE, {**APP, "timeout_ms": 5_000}, ask("k0", 0), ask("k1", 0)))
    assert facts(result, "placed", "timed_out", "simulated_s") == (2, 2, 5.0)


def test_nodes_come_go_and_drain() -> None:
    lines = [
        ask("k0", 0, 2000),
        {"t": "node-remove", "id": "n1", "at": 5},
        ask("k1", 6, 2000, duration_s=10),
        {"t": "node", "id": "n2", "res": {"vcore": 2000}, "at": 7, "drain": True},
        {"t": "node-undrain", "id": "n2", "at": 9},
        {"t": "node-update", "id": "n2", "res": {"vcore": 3000}, "at": 11},
        {"t": "node-drain", "id": "n2", "at": 12},
        ask("k2", 13, duration_s=1),
    ]
    result = simulate(workload(NODE, APP, *lines))
    assert facts(result, "placed", "never_placed", "ended", "simulated_s") == (2, 1, 1, 19.0)
    assert [row.reason for row in result.reasons] == ["no node will do (not schedulable)"]
    # Empty for two seconds, then 2,000 and 3,000 milli; k0 had 2,000 for 5 s and k1 for 10 s.
    (vcore,) = result.utilisation
    assert vcore.mean_capacity == pytest.approx((5 * 2000 + 4 * 2000 + 8 * 3000) / 19)
    assert vcore.mean_used == pytest.approx(15 * 2000 / 19)


def test_a_reload_takes_effect_at_its_time() -> None:
    wider = QUEUES.replace("max: {vcore: 1}", "max: {vcore: 2}")
    capped = {"t": "app", "id": "app", "queue": "root.b", "user": "u"}
    lines = [
        ask("k0", 0),
        ask("k1", 0),
        {"t": "reload", "yaml": "partitions: 5", "at": 3},
        {"t": "reload", "yaml": wider, "at": 4},
    ]
    result = simulate(workload(NODE, capped, *lines))
    assert result.placed == 2
    assert result.waiting_times[0].longest_s == 4
    assert any("1 changed configuration refused" in note for note in result.notes)


def test_an_allocation_that_runs_already_is_no_decision() -> None:
    lines = [ask("k0", 0, node="n1", duration_s=10), ask("k1", 0, 2000, duration_s=1)]
    result = simulate(workload(NODE, APP, *lines))
    assert facts(result, "asks", "placed", "recovered", "ended") == (1, 1, 1, 2)
    assert result.waiting_times[0].longest_s == 10


def test_a_key_may_be_used_again_after_its_end() -> None:
    lines = [ask("k", 0, duration_s=5), {"t": "release", "app": "app", "key": "k", "at": 1}, ask("k", 2, duration_s=9)]
    result = simulate(workload(NODE, APP, *lines))
    assert facts(result, "asks", "placed", "ended", "simulated_s") == (2, 2, 1, 11.0)


def test_version_1_places_all_at_once() -> None:
    result = simulate(workload(NODE, APP, ask("k0"), ask("k1"), ask("k2"), version=1))
    assert facts(result, "mode", "asks", "placed", "never_placed", "simulated_s") == ("batch", 3, 2, 1, 0.0)
    assert result.utilisation[0].mean == 1.0


def test_a_script_is_run_line_by_line() -> None:
    lines: list[dict[str, Any]] = [
        NODE,
        {"t": "node", "id": "n1", "res": {"vcore": 1}},
        APP,
        {"t": "app", "id": "stray", "queue": "root.none", "user": "u"},
        ask("k0", node="n1"),
        ask("k1", app="nobody"),
        ask("k2", vcore=500),
        ask("k3", vcore=500),
        {"t": "run"},
        {"t": "release", "app": "app", "key": "k2"},
        {"t": "release", "app": "app", "key": "unknown"},
        {"t": "reload", "yaml": "partitions: 5"},
        {"t": "release-app", "app": "app"},
        {"t": "run"},
    ]
    assert traced(workload(*lines)) == [
        "Y\tn1",
        "Q\tapp\troot.a",
        "X\tstray\t",
        "N\tk0\tn1",
        "J\tk1",
        "A\tk2\tn1",
        "A\tk3\tn1",
        'S\troot\t{"vcore":2000}',
        'S\troot.a\t{"vcore":2000}',
        "S\troot.b\t{}",
        "R\tk2\tSTOPPED_BY_RM",
        "C\trejected",
        "R\tk0\tSTOPPED_BY_RM",
        "R\tk3\tSTOPPED_BY_RM",
        "S\troot\t{}",
        "S\troot.a\t{}",
        "S\troot.b\t{}",
    ]
    assert simulate(workload(*lines)).digest == hashlib.sha256(b"k2\tn1\nk3\tn1\n").hexdigest()


def test_the_releases_of_a_node_that_goes_are_one_message_sorted_by_key() -> None:
    """Each application changes its state between two of them, which has no line."""
    lines: list[dict[str, Any]] = [
        NODE,
        *({"t": "app", "id": f"app-{number}", "queue": "root.a", "user": "u"} for number in (1, 2, 3)),
        *(ask(key, app=f"app-{number}", vcore=500) for number, key in ((1, "k3"), (2, "k1"), (3, "k2"))),
        {"t": "run"},
        {"t": "node-remove", "id": "n1"},
    ]
    trace = traced(workload(*lines))
    assert trace[-3:] == [f"R\tk{number}\tSTOPPED_BY_RM" for number in (1, 2, 3)]


@pytest.mark.parametrize("config", ["partitions: 5", "partitions: ["])
def test_a_refused_configuration_is_an_error(config: str, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"^<workload>:2: yaml:[12]:"):
        simulate(workload(NODE, config=config), decisions=tmp_path / "decisions")
    with pytest.raises(RegistrationError, match=r"<config>:[12]:"):
        simulate(workload(NODE), config=config, decisions=tmp_path / "decisions")
    with pytest.raises(SettingsError, match=r"did you mean reservation\.delay"):
        simulate(workload(NODE), settings={"reservation.dealy": "5s"}, decisions=tmp_path / "decisions")
    assert not (tmp_path / "decisions").exists()


def test_applications_need_the_partition_default() -> None:
    with pytest.raises(WorkloadError, match="no partition 'default'"):
        simulate(workload(NODE, config=QUEUES.replace("name: default", "name: other")))


def test_progress_comes_to_its_end() -> None:
    told: list[tuple[int, int]] = []
    lines = [ask(f"k{i}", i, duration_s=1) for i in range(200)]
    simulate(workload(NODE, APP, *lines), progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert all(done <= total for done, total in told)


def test_the_same_input_gives_the_same_result() -> None:
    lines = [ask(f"k{i}", i // 3, 700, duration_s=5 + i % 4) for i in range(60)]
    results = [simulate(workload(NODE, APP, *lines)) for _ in range(2)]
    once, again = (msgspec.structs.replace(result, real_s=0.0) for result in results)
    assert once == again
