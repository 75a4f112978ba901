"""PodDisruptionBudgets: whose pods count is told change by change, and no budget is broken while other victims would do."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import msgspec
import pytest

from kube.places import Places
from licorne.core.partition import Partition
from licorne.kube.manager.commands import Bind, Evict, PostEvent
from licorne.kube.objects import Pod, PodDisruptionBudget
from licorne.kube.pods.selectors import selects
from seeds import some_seeds

SECOND_NS = 10**9
QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: lender}
          - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 100}}}
"""


def budget(name: str, allowed: int, *, generation: int = 1, observed: int = 1, **spec: Any) -> PodDisruptionBudget:
    """Return a budget."""
    meta = {"name": name, "namespace": "n", "uid": name, "generation": generation}
    status = {"disruptionsAllowed": allowed, "observedGeneration": observed, "disruptedPods": spec.pop("going", None)}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, PodDisruptionBudget)


def pod(name: str, labels: dict[str, str], queue: str = "lender", **more: Any) -> Pod:
    """Return a pod of 4 cores."""
    meta = {
        "name": name,
        "namespace": "n",
        "uid": name,
        "labels": {"applicationId": f"app-{queue}", "queue": f"root.{queue}", **labels},
    }
    ends = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if more.pop("ends", False) else {}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]
    spec = {"schedulerName": "yunikorn", "containers": containers, **more}
    return msgspec.convert({"metadata": {**meta, **ends}, "spec": spec}, Pod)


class Cluster(Places):
    """Nodes of 4 cores, each filled by a pod of a queue that is guaranteed nothing."""

    queues = QUEUES

    def __init__(self, *labels: dict[str, str]) -> None:
        super().__init__()
        for number, each in enumerate(labels):
            self.node(f"n{number}", allocatable={"cpu": "4"})
            self.manager.lifecycle.pod_seen(pod(f"p{number}", each, nodeName=f"n{number}"))

    @property
    def partition(self) -> Partition:
        return self.api.cluster.partition("rm")

    def evictions(self, owner: str) -> list[Any]:
        """Let a pod of the guaranteed queue come, if one is named; return the commands that follow."""
        if owner:
            self.manager.lifecycle.pod_seen(pod(owner, {}, "owner"))
        commands = []
        for _ in range(4):
            commands += self.manager.flush()
            self.api.schedule()
            self.now_ns += SECOND_NS
        return commands + self.manager.flush()


GUARDED = {"guarded": "yes"}
SELECTOR: dict[str, Any] = {"selector": {"matchLabels": GUARDED}}
CASES: dict[str, tuple[list[PodDisruptionBudget], list[str]]] = {
    "without a budget the newest goes": ([], ["p3"]),
    "one that allows nothing": ([budget("b", 0, **SELECTOR)], ["p1"]),
    "one that allows one": ([budget("b", 1, **SELECTOR)], ["p3"]),
    "its status is that of an earlier specification": ([budget("b", 1, generation=2, **SELECTOR)], ["p1"]),
    "one of its pods goes anyway": ([budget("b", 0, going={"p2": "2026-01-01T00:00:00Z"}, **SELECTOR)], ["p2"]),
    "one of its pods went, and is back": (
        [budget("b", 0, going={"p3": "2026-01-01T00:00:00Z"}, **SELECTOR), budget("b", 0, **SELECTOR)],
        ["p1"],
    ),
    "no selector means no pod": ([budget("b", 0)], ["p3"]),
    "two, of which one allows nothing": ([budget("b", 1, **SELECTOR), budget("c", 0, **SELECTOR)], ["p1"]),
    "an empty selector means all, and somebody must go": ([budget("b", 0, selector={})], ["p3"]),
}


@pytest.mark.parametrize("name", CASES)
def test_who_goes(name: str) -> None:
    budgets, expected = CASES[name]
    cluster = Cluster({}, {}, GUARDED, GUARDED)
    for each in budgets:
        cluster.manager.lifecycle.budgets.seen(each)
    assert [c.name for c in cluster.evictions("owner") if isinstance(c, Evict)] == expected


def test_a_victim_counts_until_the_budget_follows() -> None:
    """The API server's number is old just after an eviction; the next victim is none that this number still allows."""
    cluster = Cluster({}, {}, GUARDED, GUARDED)
    cluster.manager.lifecycle.budgets.seen(budget("b", 1, **SELECTOR))
    assert [c.name for c in cluster.evictions("first") if isinstance(c, Evict)] == ["p3"]
    cluster.manager.lifecycle.budgets.seen(
        budget("b", 1, **SELECTOR)
    )  # of before the eviction: p3 is not seen to be deleted
    assert [c.name for c in cluster.evictions("second") if isinstance(c, Evict)] == ["p1"]
    cluster.manager.lifecycle.pod_seen(pod("p3", GUARDED, nodeName="n3", ends=True))
    cluster.manager.lifecycle.budgets.seen(budget("b", 1, **SELECTOR))
    assert [c.name for c in cluster.evictions("third") if isinstance(c, Evict)] == ["p2"]


def test_a_victim_is_told_for_whom_it_goes() -> None:
    cluster = Cluster({}, {}, {}, {})
    commands = cluster.evictions("owner")
    text = "Evicted for pod n/owner of queue root.owner, which is below its guarantee."
    (evict,) = [c for c in commands if isinstance(c, Evict)]
    (event,) = [c for c in commands if isinstance(c, PostEvent) and c.reason == "Preempted"]
    assert (evict.message, event.note) == (text, text)
    assert event.related == ("n", "owner", "owner")
    assert not [c for c in commands if isinstance(c, Bind)]


def test_a_pod_that_waited_for_its_placeholder_evicts_when_that_is_gone() -> None:
    """While a placeholder of its group is there it waits for that one; then for room, of which it is guaranteed some."""
    cluster = Cluster({}, {})
    member = pod("member", {}, "owner")
    placeholder = pod("placeholder", {}, "owner", preemptionPolicy="Never")
    group = {"yunikorn.apache.org/task-group-name": "g"}
    member.metadata.annotations = group
    placeholder.metadata.annotations = group | {"internal.yunikorn.apache.org/placeholder": "true"}
    cluster.manager.lifecycle.pod_seen(placeholder)
    cluster.manager.lifecycle.pod_seen(member)
    assert not [c for c in cluster.evictions("") if isinstance(c, Evict)]
    cluster.manager.lifecycle.pod_gone(placeholder)
    assert [c.name for c in cluster.evictions("") if isinstance(c, Evict)] == ["p1"]


@pytest.mark.parametrize("seed", some_seeds("LICORNE_BUDGETS_SEED", 60))
def test_the_scheduler_knows_whose_pods_count(seed: int) -> None:
    """Pods and budgets come, change and go; what the scheduler was told is what the objects say."""
    rng = random.Random(seed)
    cluster = Cluster()
    cluster.node("n1")
    manager = cluster.manager
    pods: dict[str, Pod] = {}
    budgets: dict[str, PodDisruptionBudget] = {}
    for _ in range(60):
        what, name = rng.random(), f"p{rng.randrange(6)}"
        labels = {key: rng.choice("xy") for key in "ab" if rng.random() < 0.6}
        if what < 0.4:
            ends = name in pods and (pods[name].metadata.deletion_timestamp is not None or rng.random() < 0.2)
            pods[name] = pod(name, labels, nodeName="n1", ends=ends)
            manager.lifecycle.pod_seen(pods[name])
        elif what < 0.5 and name in pods:
            manager.lifecycle.pod_gone(pods.pop(name))
        elif what < 0.8:
            which = f"b{rng.randrange(3)}"
            selector = rng.choice([None, {}, {"matchLabels": {"a": "x"}}, {"matchLabels": {"b": "y"}}])
            budgets[which] = budget(which, rng.randrange(3), selector=selector)
            manager.lifecycle.budgets.seen(budgets[which])
        elif budgets:
            which = rng.choice(sorted(budgets))
            manager.lifecycle.budgets.gone(budgets.pop(which))
        if rng.random() < 0.5:
            manager.flush()
    manager.flush()
    told = cluster.partition.disruption_budgets
    assert set(told.by_name) == {f"n/{name}" for name in budgets}
    for name, one in budgets.items():
        known = told.by_name[f"n/{name}"]
        selected = {uid for uid, each in pods.items() if selects(one.spec.selector, each.metadata.labels or {})}
        ending = {uid for uid, each in pods.items() if each.metadata.deletion_timestamp}
        assert selected - ending <= set(known.members) <= selected
        assert known.allowed == one.status.disruptions_allowed
    members = {uid for known in told.by_name.values() for uid in known.members}
    assert set(told.by_id) == members


def test_a_victim_of_very_many_is_evicted_though_its_record_is_dropped() -> None:
    cluster = Cluster({}, {}, {}, {})
    partition = cluster.partition
    partition.evictions = deque(maxlen=0)
    commands = cluster.evictions("owner")
    (evict,) = [c for c in commands if isinstance(c, Evict)]
    assert "to run ask: owner" in evict.message


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_victim_counts_until_the_next_state_of_its_budget(is_gone: bool) -> None:
    cluster = Cluster({}, {}, GUARDED, GUARDED)
    cluster.manager.lifecycle.budgets.seen(budget("b", 1, **SELECTOR))
    assert [command.name for command in cluster.evictions("first") if isinstance(command, Evict)] == ["p3"]
    ends = pod("p3", GUARDED, nodeName="n3", ends=True)
    cluster.manager.lifecycle.pod_seen(ends)
    if is_gone:  # before the API server's own number has followed
        cluster.manager.lifecycle.pod_gone(ends)
        [bound] = [command for command in cluster.evictions("") if isinstance(command, Bind)]
        cluster.manager.lifecycle.pod_seen(pod("first", {}, "owner", nodeName=bound.node))
    assert [command.name for command in cluster.evictions("second") if isinstance(command, Evict)] == ["p1"]
    cluster.manager.lifecycle.budgets.seen(budget("b", 1, **SELECTOR))
    assert [command.name for command in cluster.evictions("third") if isinstance(command, Evict)] == ["p2"]
