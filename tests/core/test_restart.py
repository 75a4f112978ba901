"""A program that embeds the scheduler restarts: asks keep their order, their age and their back-off (docs/use/embedding.md)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from core.bench import config
from licorne import NotRegisteredError, RequestError, ResourceManagerCallback, SchedulerAPI
from licorne.si import v19
from seeds import some_seeds

SECOND = 1_000_000_000
CONFIG = config(
    "fifo properties: {application.sort.policy: fifo}",
    "careful properties: {application.unschedasks.backoff: '2', application.unschedasks.backoff.delay: 30s}",
)
SETTINGS = {"reservation.enabled": "false"}


@dataclass
class Program(ResourceManagerCallback):
    """What a program knows of its own objects, and what it does with the scheduler."""

    nodes: dict[str, v19.NodeInfo] = field(default_factory=dict)
    apps: dict[str, v19.AddApplicationRequest] = field(default_factory=dict)
    pods: dict[str, v19.Allocation] = field(default_factory=dict)
    """By key; those that run have a node."""
    placed: list[tuple[str, str]] = field(default_factory=list)
    now: int = 1_700_000_000 * SECOND

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.api = SchedulerAPI()
        request = v19.RegisterResourceManagerRequest(rm_id="rm", config=CONFIG, extra_config=SETTINGS)
        self.api.register_resource_manager(request, self, now_ns=self.now)

    def update_allocation(self, response: v19.AllocationResponse) -> None:
        assert response.rejected_allocations == []
        for new in response.new:
            if not self.pods[new.allocation_key].node_id:
                self.pods[new.allocation_key] = replace_node(self.pods[new.allocation_key], new.node_id)
                self.placed.append((new.allocation_key, new.node_id))

    def update_application(self, response: v19.ApplicationResponse) -> None:
        assert response.rejected == []

    def update_node(self, response: v19.NodeResponse) -> None:
        assert response.rejected == []

    def say(self, *, nodes: Any = (), apps: Any = (), pods: Any = ()) -> None:
        self.api.update_node(v19.NodeRequest(rm_id="rm", nodes=list(nodes)), now_ns=self.now)
        self.api.update_application(v19.ApplicationRequest(rm_id="rm", new=list(apps)), now_ns=self.now)
        self.api.update_allocation(v19.AllocationRequest(rm_id="rm", allocations=list(pods)), now_ns=self.now)

    def node(self, name: str, vcore: int) -> None:
        self.nodes[name] = v19.NodeInfo(
            node_id=name, action=v19.ActionFromRM.CREATE, schedulable_resource={"vcore": vcore}
        )
        self.say(nodes=[self.nodes[name]])

    def app(self, name: str, queue: str) -> None:
        user = v19.UserGroupInformation(user="u", groups=["g"])
        self.apps[name] = v19.AddApplicationRequest(application_id=name, queue_name=f"root.{queue}", ugi=user)
        self.say(apps=[self.apps[name]])

    def pod(self, key: str, app: str, vcore: int, priority: int = 0) -> None:
        self.pods[key] = v19.Allocation(
            allocation_key=key, application_id=app, resource_per_alloc={"vcore": vcore}, priority=priority
        )
        self.say(pods=[self.pods[key]])

    def end(self, key: str) -> None:
        pod = self.pods.pop(key)
        release = v19.AllocationRelease(
            application_id=pod.application_id, allocation_key=key, termination_type=v19.TerminationType.STOPPED_BY_RM
        )
        releases = v19.AllocationReleasesRequest(allocations_to_release=[release])
        self.api.update_allocation(v19.AllocationRequest(rm_id="rm", releases=releases), now_ns=self.now)

    def schedule(self, after_s: float = 0) -> list[tuple[str, str]]:
        """Let time pass, decide, and return what was placed."""
        self.now += int(after_s * SECOND)
        start = len(self.placed)
        self.api.schedule(now_ns=self.now)
        self.api.validate()
        return self.placed[start:]

    def restart(self, draw: random.Random, *, ages: bool = True) -> None:
        """Stop, keep the ages as JSON, start anew, and report everything, the asks in any order."""
        kept = msgspec.json.encode(self.api.ages("rm"))
        self.start()
        self.say(nodes=self.nodes.values(), apps=draw.sample(list(self.apps.values()), len(self.apps)))
        pods = draw.sample(list(self.pods.values()), len(self.pods))
        self.say(pods=[pod for pod in pods if pod.node_id])
        self.say(pods=[pod for pod in pods if not pod.node_id])
        if ages:
            self.api.restore_ages("rm", msgspec.json.decode(kept), now_ns=self.now)
        self.api.validate()


def replace_node(pod: v19.Allocation, node: str) -> v19.Allocation:
    return msgspec.structs.replace(pod, node_id=node)


def work(draw: random.Random, program: Program) -> None:
    """A cluster with room on no node but in all, and asks that wait: of several ages, some at the same moment, some in
    back-off."""
    for number in range(6):
        program.node(f"n{number}", 1500)
    program.node("small", 900)  # too little for any pod, so that the cluster has room where no node has
    for number in range(4):
        program.app(f"fifo-{number}", "fifo")
        program.app(f"careful-{number}", "careful")
        program.now += draw.randrange(3 * SECOND)
    for number in range(60):
        app = f"{draw.choice(['fifo', 'careful'])}-{draw.randrange(4)}"
        program.pod(f"p{number}", app, draw.choice([1000, 1000, 1400]), draw.choice([0, 0, 5]))
        if draw.random() < 0.6:
            program.schedule(draw.choice([0, 0.1, 1, 7]))
    program.schedule()


def waiting(program: Program) -> dict[str, Any]:
    """The applications by age, each with its back-off, and its asks in their order, with their ages."""
    apps = sorted(program.api.cluster.partition("rm").applications.values(), key=lambda app: app.submitted)
    return {
        app.id: (
            app.submitted,
            max(app.backoff_until, program.now),
            [(a.key, a.created) for a in app.requests.in_order()],
        )
        for app in apps
    }


def later(draw: random.Random, program: Program) -> list[Any]:
    """What is placed as pods end, one by one."""
    found: list[Any] = []
    for _ in range(25):
        running = sorted(key for key, pod in program.pods.items() if pod.node_id)
        program.end(draw.choice(running))
        found.append(program.schedule(draw.choice([0, 1, 11])))
    return found


@pytest.mark.parametrize("seed", some_seeds("LICORNE_RESTART_SEED", 10))
def test_a_restart_changes_neither_order_nor_age_nor_decisions(seed: int) -> None:
    program, other = Program(), Program()
    work(random.Random(seed), program)
    work(random.Random(seed), other)
    before = waiting(program)
    assert sum(len(asks) for _, _, asks in before.values()) > 20
    assert any(until > program.now for _, until, _ in before.values())  # some back off
    other.restart(random.Random(seed))
    assert waiting(other) == before
    assert list(waiting(other)) == list(before)
    assert other.api.ages("rm") == program.api.ages("rm")
    assert later(random.Random(seed + 1), other) == later(random.Random(seed + 1), program)


def test_without_ages_the_order_is_that_of_the_report() -> None:
    """So the test above does not pass by itself."""
    program = Program()
    work(random.Random(1), program)
    before = waiting(program)
    program.restart(random.Random(1), ages=False)
    assert waiting(program) != before


def test_what_is_not_reported_again_is_passed_over() -> None:
    program = Program()
    program.app("a", "fifo")
    program.pod("p", "a", 500)
    kept = program.api.ages("rm")
    program.start()
    program.api.restore_ages("rm", kept, now_ns=program.now)
    program.app("a", "fifo")
    program.api.restore_ages("rm", {"gone": {}, **kept}, now_ns=program.now)
    (app,) = program.api.cluster.partition("rm").applications.values()
    assert (app.submitted, app.asks) == (kept["default"]["a"].submitted_ns, {})


def test_times_of_another_clock_count_as_the_present() -> None:
    """And a back-off ends no later than one that begins now."""
    program = Program()
    program.app("careful-1", "careful")
    program.pod("p", "careful-1", 500)
    program.pod("q", "careful-1", 500)
    kept = {
        "default": {
            "careful-1": {
                "submitted_ns": 2 * program.now,
                "backoff_until_ns": 2 * program.now,
                "created_ns": {"q": 2 * program.now, "p": 2 * program.now},
            }
        }
    }
    program.api.restore_ages("rm", kept, now_ns=program.now)
    (app,) = program.api.cluster.partition("rm").applications.values()
    assert [(ask.key, ask.created) for ask in app.requests.in_order()] == [("q", program.now), ("p", program.now)]
    assert (app.submitted, app.backoff_until) == (program.now, program.now + 30 * SECOND)
    program.node("n1", 4000)
    assert program.schedule(29) == []
    assert program.schedule(1) == [("q", "n1"), ("p", "n1")]


@pytest.mark.parametrize(
    ("ages", "complaint"),
    [
        (7, "Expected `object`, got `int`"),
        ({"default": {"a": {"submitted_ns": 1, "backoff_until_ns": 0}}}, "missing required field `created_ns`"),
        ({"default": {"a": {"submitted_ns": -1, "backoff_until_ns": 0, "created_ns": {}}}}, "Expected `int` >= 0"),
    ],
)
def test_other_data_are_refused(ages: object, complaint: str) -> None:
    program = Program()
    with pytest.raises(RequestError, match=complaint):
        program.api.restore_ages("rm", ages)


def test_an_unknown_resource_manager_is_refused() -> None:
    with pytest.raises(NotRegisteredError):
        SchedulerAPI().ages("rm")
    with pytest.raises(NotRegisteredError):
        SchedulerAPI().restore_ages("rm", {})
