"""The model of a resource manager for gangs and evictions, and their parts of the report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.bench import config
from licorne.sim.evictions import EvictionCosts, Evictions, cause
from licorne.sim.gangs import Gangs, GangWaits, placeholder_ask, task_groups
from licorne.sim.inputs import application
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.sim.times import ALL_QUEUES
from licorne.workload.lines import App, Ask, TaskGroup, encode
from licorne.workload.workload import Mode, Workload, WorkloadError, parse_workload
from parity.traces import traced

QUEUES = config("a", "b")
NODE: dict[str, Any] = {"t": "node", "id": "n1", "res": {"vcore": 2000}}
# Root's quota is the cluster's size: with a second node, which takes no pods, a daemon is not kept waiting by it.
SPARE: dict[str, Any] = {"t": "node", "id": "n2", "res": {"vcore": 2000}, "drain": True}
APP: dict[str, Any] = {"t": "app", "id": "app", "queue": "root.a", "user": "u"}
DAEMON: dict[str, Any] = {"t": "app", "id": "daemon", "queue": "root.b", "user": "u"}
ON_N1, ON_N2 = ({"yunikorn.apache.org/requiredNode": node} for node in ("n1", "n2"))
GROUPS = (TaskGroup(name="driver", min=1, res={"vcore": 500}), TaskGroup(name="worker", min=2, res={"vcore": 750}))


def workload(*lines: dict[str, Any], config: str = QUEUES, **meta: Any) -> Workload:
    head = [{"t": "meta", "name": "w", "version": 2, **meta}, {"t": "config", "yaml": config}]
    return parse_workload([msgspec.json.encode(line) + b"\n" for line in [*head, *lines]], file="w")


def ask(key: str, at: float, vcore: int = 1000, app: str = "app", **more: Any) -> dict[str, Any]:
    return {"t": "ask", "key": key, "app": app, "res": {"vcore": vcore}, "at": at, **more}


def evicting(**meta: Any) -> Workload:
    """Two pods of 100 s fill the node; at 40 a daemon of 10 s wants half of it, and the newer of the two goes."""
    return workload(
        NODE,
        SPARE,
        APP,
        DAEMON,
        ask("k0", 0, duration_s=100, pre_self=True),
        ask("k1", 10, duration_s=100, pre_self=True),
        ask("d", 40, app="daemon", tags=ON_N1, duration_s=10, prio=5),
        **meta,
    )


def facts(result: Result) -> tuple[int, ...]:
    return result.asks, result.placed, result.preempted, result.resubmitted, result.ended


def test_an_evicted_pod_is_created_again_when_its_grace_is_over(tmp_path: Path) -> None:
    """The release is requested at 40, the pod gone at 41: the daemon runs until 51; then the pod runs its full 100 s, until 151."""
    decisions = tmp_path / "decisions"
    result = simulate(evicting(), decisions=decisions)
    assert facts(result) == (4, 4, 1, 1, 3)
    assert result.simulated_s == 151.0
    assert decisions.read_text().split() == ["k0", "n1", "k1", "n1", "d", "n1", "k1", "n1"]
    assert result.evictions == [
        Evictions("required-node", "root.a", "root.b", 1, 0, lost_pod_s=31.0, lost={"vcore": 31_000.0})
    ]
    waits = {row.queue: row.longest_s for row in result.waiting_times}
    assert waits == {"root.a": 10.0, "root.b": 1.0, ALL_QUEUES: 10.0}


@pytest.mark.parametrize(("grace_s", "lost_s", "end_s"), [(0, 30.0, 150.0), (30, 60.0, 180.0), (2.5, 32.5, 152.5)])
def test_grace_is_that_of_the_workload(grace_s: float, lost_s: float, end_s: float) -> None:
    result = simulate(evicting(grace_s=grace_s))
    assert (result.evictions[0].lost_pod_s, result.simulated_s) == (lost_s, end_s)


def test_a_pod_removed_during_its_grace_is_not_created_again() -> None:
    lines = [NODE, SPARE, APP, DAEMON, ask("k0", 0, vcore=2000, duration_s=100)]
    lines += [
        ask("d", 40, app="daemon", tags=ON_N1, duration_s=10),
        {"t": "release", "app": "app", "key": "k0", "at": 45},
    ]
    result = simulate(workload(*lines, grace_s=10))
    assert facts(result) == (2, 2, 1, 0, 1)
    # Its place is free at 45, as soon as it is taken back.
    assert {row.queue: row.longest_s for row in result.waiting_times}["root.b"] == 5.0


def test_a_pod_that_ran_already_may_be_evicted_and_created_again() -> None:
    lines = [NODE, SPARE, APP, DAEMON, ask("k0", 0, vcore=2000, node="n1", duration_s=100)]
    result = simulate(workload(*lines, ask("d", 40, app="daemon", tags=ON_N1, duration_s=10)))
    assert (result.recovered, *facts(result)) == (1, 2, 2, 1, 1, 2)


def test_a_script_leaves_victims_until_it_releases_them() -> None:
    lines = [NODE, SPARE, APP, DAEMON, ask("k0", 0, vcore=2000), ask("d", 0, app="daemon", tags=ON_N1, prio=1)]
    for line in lines:
        line.pop("at", None)
    runs = [*lines[:-1], {"t": "run"}, lines[-1], {"t": "run"}]
    trace = traced(workload(*runs))
    assert "R\tk0\tPREEMPTED_BY_SCHEDULER" in trace
    assert "A\td\tn1" not in trace


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("preempting allocations to free up resources to run ask: k", ("guaranteed", "k")),
        ("preempting allocations to free up resources to run daemon set ask: k", ("required-node", "k")),
        ("preempting allocations to enforce new max quota for queue : root.a", ("quota-change", "root.a")),
        ("something else", ("guaranteed", "")),
    ],
)
def test_the_message_gives_the_cause_of_an_eviction(message: str, expected: tuple[str, str]) -> None:
    assert cause(message) == expected


def test_work_lost_adds_up_in_whole_numbers() -> None:
    costs = EvictionCosts()
    for number in range(10):
        costs.evicted("guaranteed", "root.b", "root.a", held={"gpu": 2}, ran_ns=10**8 + number, real=True)
    costs.evicted("guaranteed", "root.b", "root.a", held={"gpu": 2}, ran_ns=10**12, real=False)
    (row,) = costs.rows()
    assert (row.pods, row.placeholders, row.lost_pod_s, row.lost) == (11, 1, 1.000000045, {"gpu": 2.00000009})


# -- gangs -----------------------------------------------------------------------------------------------


def gang(**more: Any) -> App:
    return App(id="g", queue="root.a", user="u", gang=GROUPS, **more)


def test_a_gang_is_an_application_with_placeholders() -> None:
    message = application(gang(ph_timeout_ms=5_000, style="Hard", timeout_ms=9))
    assert message.placeholder_ask == placeholder_ask(GROUPS) == {"vcore": 2000}
    assert (message.execution_timeout_ms, message.timeout_is_running_time, message.gang_style) == (5_000, False, "Hard")
    assert msgspec.json.decode(message.tags["yunikorn.apache.org/task-groups"]) == [
        {"name": "driver", "minMember": 1, "minResource": {"vcore": "500m"}},
        {"name": "worker", "minMember": 2, "minResource": {"vcore": "750m"}},
    ]


def test_an_atomic_gang_has_a_tag_and_no_placeholders() -> None:
    message = application(gang(atomic=True, timeout_ms=9, tags={"a": "b"}))
    assert message.placeholder_ask == {}
    found = message.tags
    assert found == {"a": "b", "gang.scheduling": "atomic", "yunikorn.apache.org/task-groups": task_groups(GROUPS)}
    assert (message.execution_timeout_ms, message.timeout_is_running_time) == (9, True)


def real(key: str, group: str = "worker") -> Ask:
    return Ask(key=key, app="g", res={"vcore": 700}, group=group)


def test_real_asks_are_kept_until_the_application_runs() -> None:
    gangs = Gangs()
    gangs.submitted(gang(), 5)
    keys = [ask.key for ask in gangs.accepted("g", "root.a")]
    assert keys == ["tg-g-driver-0", "tg-g-worker-0", "tg-g-worker-1"]
    assert [gangs.keeps(real(key)) for key in ("r0", "r1", "r2")] == [True, True, True]
    assert gangs.keeps(real("r0"), new=False) is True
    gangs.forget("g", "r1")
    assert gangs.entered("g", "Accepted", "") == []
    assert [ask.key for ask in gangs.entered("g", "Running", "")] == ["r0", "r2"]
    assert gangs.keeps(real("r3")) is False
    assert gangs.rows() == [GangWaits("root.a", "placeholders", 1, 0, 0, 0.0, 0.0, 0.0)]


def test_a_gang_has_started_when_all_members_run_at_once() -> None:
    gangs = Gangs()
    gangs.submitted(gang(atomic=True), 5 * 10**9)
    assert gangs.accepted("g", "root.a") == []
    assert gangs.keeps(real("r0")) is False
    for now, key, group in ((6, "d", "driver"), (7, "r0", "worker")):
        gangs.placed(real(key, group), now * 10**9)
    gangs.ended(real("d", "driver"))
    gangs.placed(real("r1"), 8 * 10**9)
    gangs.placed(real("x", "unknown"), 8 * 10**9)
    assert gangs.rows()[0].started == 0
    gangs.placed(real("d", "driver"), 9 * 10**9)
    assert gangs.rows() == [GangWaits("root.a", "atomic", 1, 1, 0, 4.0, 4.0, 4.0)]


def test_a_soft_gang_goes_back_to_an_ordinary_application() -> None:
    gangs = Gangs()
    gangs.submitted(gang(), 0)
    gangs.accepted("g", "root.a")
    gangs.keeps(real("r0"))
    assert gangs.entered("g", "Resuming", "ResourceReservationTimeout") == []
    assert [ask.key for ask in gangs.entered("g", "Accepted", "")] == ["r0"]
    assert gangs.rows()[0].timed_out == 1


def test_a_hard_gang_is_given_up() -> None:
    gangs = Gangs()
    gangs.submitted(gang(style="Hard"), 0)
    gangs.accepted("g", "root.a")
    gangs.keeps(real("r0"))
    assert gangs.entered("g", "Failing", "ResourceReservationTimeout") == []
    assert [ask.key for ask in gangs.given_up("g")] == ["r0"]
    assert gangs.rows()[0].timed_out == 1


def test_placeholders_of_the_workload_define_a_gang() -> None:
    gangs = Gangs()
    gangs.submitted(App(id="g", ph_ask={"vcore": 1000}), 0)
    assert gangs.accepted("g", "root.a") == []
    for number in range(2):
        assert gangs.keeps(Ask(key=f"p{number}", app="g", res={"vcore": 500}, group="worker", ph=True)) is False
    assert gangs.keeps(real("r0")) is False
    gangs.placed(real("r0"), 1)
    assert gangs.rows()[0].started == 0
    gangs.placed(real("r1"), 10**9)
    assert gangs.rows()[0].longest_s == 1.0


def test_a_gang_makes_a_workload_timed_and_is_written_as_it_was_read() -> None:
    line = gang(atomic=True)
    found = workload({**msgspec.json.decode(encode(line))})
    assert found.mode is Mode.TIMED
    assert found.lines == [line]


@pytest.mark.parametrize(
    ("line", "meta", "complaint"),
    [
        ({**APP, "atomic": True}, {}, "w:3: atomic: needs a gang"),
        ({**APP, "gang": [{"name": "a", "min": 0, "res": {}}]}, {}, "w:3: gang[0].min: expected int >= 1"),
        ({**APP, "gang": [{"name": "a", "min": 1, "res": {}}] * 2}, {}, "w:3: gang: two groups have the same name"),
        (
            {**APP, "gang": [{"name": "a", "min": 1, "res": {}}], "ph_ask": {"vcore": 1}},
            {},
            "w:3: ph_ask: follows from the gang",
        ),
        (
            {**APP, "gang": [{"name": "a", "min": 1, "res": {}}]},
            {"version": 1},
            'w:3: gang: needs "version":2 in meta',
        ),
        (APP, {"version": 1, "grace_s": 2}, 'w:1: grace_s: needs "version":2 in meta'),
        (APP, {"version": 1, "resubmit": False}, 'w:1: resubmit: needs "version":2 in meta'),
        (APP, {"grace_s": -1}, "w:1: grace_s: expected int >= 0"),
    ],
)
def test_a_refusal_names_the_field(line: dict[str, Any], meta: dict[str, Any], complaint: str) -> None:
    with pytest.raises(WorkloadError) as refusal:
        workload(line, **meta)
    assert str(refusal.value).startswith(complaint)


# -- gangs in a scheduler --------------------------------------------------------------------------------


def pair(*lines: dict[str, Any], reals: int = 2, duration_s: int = 20, **more: Any) -> Workload:
    """A gang of two pods of 1,000 each that comes at 5, on a node of 2,000; the given lines come before it."""
    groups = [{"name": "worker", "min": 2, "res": {"vcore": 1000}}]
    app = {"t": "app", "id": "g", "queue": "root.a", "user": "u", "at": 5, "gang": groups, **more}
    asks = [ask(f"r{i}", 5, app="g", group="worker", duration_s=duration_s) for i in range(reals)]
    return workload(NODE, SPARE, APP, *lines, app, *asks)


def waited(result: Result) -> tuple[int, int, int, float]:
    (row,) = result.gangs
    return row.gangs, row.started, row.timed_out, row.longest_s


@pytest.mark.parametrize("atomic", [False, True])
def test_a_gang_runs_at_once_where_there_is_room(atomic: bool) -> None:
    result = simulate(pair(atomic=atomic))
    assert (result.asks, result.placed, result.ended, result.placeholders) == (2, 2, 2, 0 if atomic else 2)
    assert waited(result) == (1, 1, 0, 0.0)
    assert result.simulated_s == 25.0
    assert [(row.queue, row.placed) for row in result.waiting_times] == [("root.a", 2), (ALL_QUEUES, 2)]


@pytest.mark.parametrize("atomic", [False, True])
def test_a_gang_waits_until_all_of_it_fits(atomic: bool) -> None:
    result = simulate(pair(ask("k", 0, duration_s=100), atomic=atomic))
    assert waited(result) == (1, 1, 0, 95.0)
    assert (result.placed, result.waiting_times[0].longest_s, result.simulated_s) == (3, 95.0, 120.0)


def test_a_hard_gang_that_times_out_runs_nothing() -> None:
    """One placeholder runs from 5 on, and its time is over at 15."""
    result = simulate(pair(ask("k", 0, duration_s=100), style="Hard", ph_timeout_ms=10_000))
    assert waited(result) == (1, 0, 1, 0.0)
    assert (result.asks, result.placed, result.never_placed, result.placeholders) == (3, 1, 2, 1)
    assert [(row.reason, row.asks) for row in result.reasons] == [
        ("rejected: its gang failed: ResourceReservationTimeout", 2)
    ]
    assert result.timed_out == 0, "a placeholder is no pod"


def test_a_soft_gang_that_times_out_runs_its_members_one_by_one() -> None:
    """From 15 on its pods are like any others: one beside what runs, the other after it."""
    result = simulate(pair(ask("k", 0, duration_s=100), style="Soft", ph_timeout_ms=10_000))
    assert waited(result) == (1, 0, 1, 0.0)
    assert (result.placed, result.never_placed, result.simulated_s) == (3, 0, 100.0)
    assert result.waiting_times[0].longest_s == 30.0


def test_placeholders_that_nothing_replaces_end_by_their_timeout() -> None:
    result = simulate(pair(reals=1, ph_timeout_ms=60_000))
    assert (result.asks, result.placed, result.placeholders, result.timed_out) == (1, 1, 2, 0)
    assert waited(result) == (1, 0, 0, 0.0)


def test_a_gang_without_room_waits_for_the_reasons_of_its_placeholders() -> None:
    """The timeout of placeholders runs from the first that is placed, and none ever is."""
    result = simulate(pair(ask("k", 0, vcore=2000)))
    assert (result.asks, result.placed, result.never_placed) == (3, 1, 2)
    assert [(row.asks, row.example) for row in result.reasons] == [(2, "r0")]
    assert result.reasons[0].reason.startswith("waits for the placeholders of its gang: no node will do (")


def test_a_pod_that_takes_the_place_of_a_placeholder_whose_node_is_removed_was_decided() -> None:
    """In a script nobody confirms the replacement, so the removal of the node completes it, outside of a decision."""
    result = simulate(
        workload(
            NODE,
            APP,
            {"t": "ask", "key": "p", "app": "app", "res": {"vcore": 500}, "ph": True, "group": "x"},
            {"t": "run"},
            {"t": "node", "id": "n2", "res": {"vcore": 2000}},
            {"t": "ask", "key": "k", "app": "app", "res": {"vcore": 500}, "group": "x", "max": 3, "tags": ON_N2},
            {"t": "run"},
            {"t": "node-remove", "id": "n1"},
            {"t": "run"},
        )
    )
    assert (result.asks, result.placed, result.recovered, result.never_placed) == (3, 3, 0, 0)


def test_an_evicted_placeholder_is_not_created_again() -> None:
    """A daemon takes half of the node at 40, while both placeholders wait for asks that never come."""
    daemon = ask("d", 40, app="daemon", tags=ON_N1, prio=5, duration_s=10)
    given = pair(reals=0)
    given.lines = [*given.lines, *workload(DAEMON, daemon).lines]
    result = simulate(given)
    assert (result.asks, result.placed, result.preempted, result.resubmitted) == (1, 1, 1, 0)
    assert [(row.pods, row.placeholders, row.lost_pod_s, row.lost) for row in result.evictions] == [(1, 1, 0.0, {})]


# -- the outputs of a scheduler, without one ---------------------------------------------------------------


def test_asks_that_are_never_submitted_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang that is refused leaves nothing over: its asks count as rejected for the same reason."""
    line = msgspec.json.decode(encode(gang()))
    asks = [ask(f"r{number}", 0, app="g", group="worker") for number in range(3)]
    result = simulate(workload(NODE, {**line, "queue": "root.none"}, *asks))
    assert (result.asks, result.placed, result.never_placed, result.applications_rejected) == (3, 0, 3, 1)
    assert Counter({row.reason[:29]: row.asks for row in result.reasons}) == {"rejected: failed to place app": 3}
    assert result.gangs == []
