"""The demonstration's resource manager and its scenario, against a scheduler in this process, under a clock of the test."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from itertools import islice, takewhile
from typing import Any

import pytest

from licorne import ResourceManagerCallback, SchedulerAPI
from licorne.config import check
from licorne.core.partition import Partition
from licorne.grpc.demo import scenario as endless
from licorne.grpc.demo.manager import CROWD_BUSY, CROWD_PODS, RM_ID, Manager
from licorne.grpc.demo.scenario import AGENTS, CLUSTER, scenario
from licorne.si import v19
from licorne.workload.lines import App, Ask, Node, NodeDrain, NodeRemove, NodeUndrain
from licorne.workload.scenarios.scenario import Scenario

SECOND_NS = 10**9
STEP_NS = SECOND_NS // 4


class Played(ResourceManagerCallback):
    """The scenario, as far as it has been played."""

    def __init__(self, seed: int = 1) -> None:
        self.now_ns = 0
        self.api = SchedulerAPI(clock=lambda: self.now_ns)
        self.manager = Manager(lambda: self.api)
        self.states: Counter[str] = Counter()
        self.ends: Counter[v19.TerminationType] = Counter()
        self._answers: list[Any] = []
        self._stream = scenario(seed)
        self._next = next(self._stream)
        self.register()

    def register(self) -> None:
        """Register as `run` does; a second time everything is forgotten."""
        given = CLUSTER.workload()
        request = v19.RegisterResourceManagerRequest(rm_id=RM_ID, config=given.config or "", extra_config=given.extra)
        self.api.register_resource_manager(request, self)

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        self._answers.append(response)
        self.ends.update(v19.TerminationType(one.termination_type) for one in response.released)

    def update_application(self, response: v19.ApplicationResponse) -> None:
        self._answers.append(response)
        self.states.update(one.state for one in response.updated)

    @property
    def partition(self) -> Partition:
        return self.api.cluster.partition(RM_ID)

    def play(self, seconds: int) -> None:
        """Go on for so long."""
        end_ns = self.now_ns + seconds * SECOND_NS
        while self.now_ns < end_ns:
            while self._next[0] * 1e9 <= self.now_ns:
                self.manager.hand_in(self._next[1], self.now_ns)
                self._next = next(self._stream)
            self.manager.pass_time(self.now_ns)
            self.settle()
            self.now_ns += STEP_NS

    def settle(self) -> None:
        """Let the scheduler decide, and tell the manager, until nothing more happens."""
        while self.api.schedule() or self._answers:
            answers, self._answers = self._answers, []
            for answer in answers:
                self.manager.take(answer, self.now_ns)

    def placed(self) -> dict[str, str]:
        """Map allocations to their nodes, as the scheduler sees it; foreign ones and those being replaced do not count."""
        apps = self.partition.applications.values()
        return {a.key: a.node.id for app in apps for a in app.allocations.values() if a.node is not None}


def test_the_cluster_has_no_warnings_but_of_applications_that_are_to_be_refused() -> None:
    report = check(CLUSTER.workload().config or "")
    assert (report.faults, report.warnings) == ((), ())
    assert [warning.path for warning in CLUSTER.warnings] == ["arrivals.nowhere.queue", "arrivals.stranger.queue"]


def test_the_same_seed_gives_the_same_lines() -> None:
    first, same, other = (list(islice(scenario(seed), 300)) for seed in (1, 1, 2))
    assert first == same
    assert first != other
    assert [at for at, _ in first] == sorted(at for at, _ in first)
    names = [line.id for _, lines in first for line in lines if isinstance(line, App)]
    keys = [line.key for _, lines in first for line in lines if isinstance(line, Ask) and line.app != AGENTS.id]
    assert (len(set(names)), len(set(keys))) == (len(names), len(keys))


def test_a_turn_ends_with_the_nodes_with_which_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    text = files("licorne.grpc.demo").joinpath("cluster.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(endless, "CLUSTER", Scenario(text.replace("length: 1d", "length: 90s")))
    moments = list(takewhile(lambda moment: moment[0] < 270, scenario()))
    assert [at for at, _ in moments] == sorted(at for at, _ in moments)
    assert {int(at // 90) for at, _ in moments} == {0, 1, 2}
    up: Counter[str] = Counter()
    for _, lines in moments:
        up.update(line.id for line in lines if isinstance(line, Node | NodeUndrain))
        up.subtract(line.id for line in lines if isinstance(line, NodeRemove | NodeDrain))
        assert set(up.values()) <= {0, 1}
    assert (len(up), up.total()) == (24, 24)


def test_a_minute_shows_everything() -> None:
    played = Played()
    played.play(75)
    assert {"Accepted", "Running", "Completing", "Completed", "Failing", "Failed", "Resuming"} <= set(played.states)
    kinds = v19.TerminationType
    assert {kinds.TIMEOUT, kinds.PREEMPTED_BY_SCHEDULER, kinds.PLACEHOLDER_REPLACED} <= set(played.ends)
    counts = played.manager.counts
    seen = (
        "applications refused",
        "asks refused",
        "resubmitted",
        "preempted_by_scheduler",
        "lost",
        "placeholders",
        "placed",
        "failed",
    )
    assert [name for name in seen if not counts[name]] == []
    queues = {queue.path for queue in played.partition.tree.queues()}
    assert "root.tenants.blue" in queues
    played.api.cluster.validate()


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_ended_jobs_are_forgotten(seed: int) -> None:
    played = Played(seed)
    for _ in range(4):
        played.play(240)
        manager, model = played.manager, played.manager.model
        assert manager.busy() <= CROWD_BUSY + 1
        assert manager.waiting() <= CROWD_PODS + 50  # those of the last application, and those that are created again
        assert len(model.gangs.known) <= len(model.applications)
        assert len(model.applications) <= 100  # those that complete are there for 30 s
        assert len(model.ends) + len(model.going) + len(manager._withdrawals) <= 500
        assert set(model.applications) == set(played.partition.applications)
        assert set(model.keys_of) <= set(model.applications)
        assert {run.pod.ask.app for run in model.running.values()} <= set(model.applications)
        played.api.cluster.validate()
    assert played.manager.counts["placed"] > 1000
    assert played.manager.counts["stayed away"] > 0


def test_everything_is_reported_to_a_scheduler_that_knows_nothing() -> None:
    played = Played()
    played.play(40)
    model = played.manager.model
    running = {run.pod.ask.key: run.node for run in (*model.running.values(), *(run for _, _, run in model.going))}
    waiting = {pod.ask.key for pod in model.waiting()}
    assert running
    assert waiting
    played.register()
    assert played.placed() == {}
    played.manager.report(played.api)
    assert played.placed() == running
    asks = {ask.key for app in played.partition.applications.values() for ask in app.asks.values()}
    assert asks == waiting
    assert set(played.partition.nodes) == set(model.nodes)
    assert len(played.partition.foreign) == len(model.foreign)
    played.settle()
    played.play(60)
    assert set(model.applications) == set(played.partition.applications)
    played.api.cluster.validate()
