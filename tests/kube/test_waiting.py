"""What pods that wait are told, and how many writes that takes: a table of clusters, and what each pod ends up with."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from common.virtual import in_virtual_time, run
from kube import schedules
from kube.places import Places
from licorne.core.inspection import explain
from licorne.kube.manager import waiting
from licorne.kube.objects import ConfigMap, Pod
from licorne.kube.runner import Runner

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.a}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - name: small
            resources: {max: {vcore: "2"}}
          - name: roomy
            resources: {max: {vcore: "13"}}
          - name: one
            maxapplications: 1
          - name: whole
            properties: {gang.scheduling: atomic}
          - name: ranks
            properties: {preemption.within-queue: priority, preemption.delay: 1s}
"""
GANG = '[{"name":"g","minMember":2,"minResource":{"cpu":"3","memory":"1Mi"}}]'
"""The cluster of a schedule has three nodes of 4 processors."""


class Cluster(schedules.World):
    """A cluster with the queues above, and pods of given sizes."""

    def __init__(self) -> None:
        super().__init__(1)
        found = self.server.objects["configmaps"]["default", "yunikorn-configs"]
        self.server.put("configmaps", msgspec.structs.replace(found, data={"queues.yaml": QUEUES}))

    def pod(self, cpu: str = "1", queue: str = "root.a", app: str = "a", **more: Any) -> Pod:
        """Create a pod."""
        annotations = more.pop("annotations", {})
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]
        labels = {"applicationId": app, "queue": queue}
        meta = {"labels": labels, "annotations": annotations}
        return self.add_pod(**{"metadata": meta, "containers": containers, **more})

    def told(self) -> Counter[str]:
        """Count the pods without a node by what their condition says."""
        counts: Counter[str] = Counter()
        for pod in self.server.pods():
            if not pod.spec.node_name:
                found = [one for one in pod.status.conditions or () if one.type == "PodScheduled"]
                counts[found[0].reason if found else "nothing"] += 1
        return counts


def full(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.pod("3")


def above_the_quota(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.pod("1", "root.small")


def room_and_quota_end_together(cluster: Cluster) -> None:
    for _ in range(8):  # three fit; the quota has room for one more, which would run on another node
        cluster.pod("3", "root.roomy")


def too_many_applications(cluster: Cluster) -> None:
    cluster.pod(app="first", queue="root.one")
    cluster.pod(app="second", queue="root.one")


def no_such_label(cluster: Cluster) -> None:
    cluster.pod(nodeSelector={"disk": "ssd"})


def without_its_claim(cluster: Cluster) -> None:
    cluster.pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])


def unreadable(cluster: Cluster) -> None:
    cluster.pod("twelve")


def refused(cluster: Cluster) -> None:
    cluster.pod(containers=[{"name": "c", "resources": {"requests": {"memory": "8E"}}}])


def gated(cluster: Cluster) -> None:
    cluster.pod(schedulingGates=[{"name": "later"}])


def before_its_namespace(cluster: Cluster) -> None:
    cluster.add_pod(metadata={"labels": {"applicationId": "a"}, "namespace": "later"})


def gang_without_room(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.pod("3")
    groups = {"yunikorn.apache.org/task-groups": GANG, "yunikorn.apache.org/task-group-name": "g"}
    cluster.pod("3", app="gang", annotations=groups)


def whole_gang_without_room(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.pod("3")
    groups = {"yunikorn.apache.org/task-groups": GANG, "yunikorn.apache.org/task-group-name": "g"}
    for _ in range(2):
        cluster.pod("3", app="gang", queue="root.whole", annotations=groups)


def whole_gang_with_a_member_missing(cluster: Cluster) -> None:
    groups = {"yunikorn.apache.org/task-groups": GANG, "yunikorn.apache.org/task-group-name": "g"}
    cluster.pod("3", app="gang", queue="root.whole", annotations=groups)


CASES = [
    (full, {"Unschedulable": 2}),
    (above_the_quota, {"SchedulingSkipped": 3}),
    (room_and_quota_end_together, {"Unschedulable": 1, "SchedulingSkipped": 4}),
    (too_many_applications, {"SchedulingSkipped": 1}),
    (no_such_label, {"Unschedulable": 1}),
    (without_its_claim, {"Unschedulable": 1}),
    (unreadable, {"SchedulerError": 1}),
    (refused, {"SchedulerError": 1}),
    (before_its_namespace, {"SchedulingSkipped": 1}),
    (gated, {"nothing": 1}),
    (gang_without_room, {"Unschedulable": 2, "SchedulingSkipped": 1}),
    (whole_gang_without_room, {"Unschedulable": 2}),
    (whole_gang_with_a_member_missing, {"SchedulingSkipped": 1}),
]


@pytest.mark.parametrize(("given", "then"), CASES, ids=[given.__name__ for given, _ in CASES])
def test_what_pods_that_wait_are_told(given: Any, then: dict[str, int]) -> None:
    async def play(cluster: Cluster) -> None:
        given(cluster)
        _, task = schedules.start(cluster)
        await asyncio.sleep(20.0)
        told, writes = cluster.told(), dict(cluster.server.writes)
        assert told == then, [(p.metadata.name, p.status.conditions) for p in cluster.server.pods()]
        await asyncio.sleep(500.0)
        assert cluster.server.writes == writes, "something is written again while nothing changes"
        await schedules.stop(task)
        _, task = schedules.start(cluster)
        await asyncio.sleep(100.0)
        assert cluster.server.writes == writes, "a new process writes what is known"
        await schedules.stop(task)

    run(play(Cluster()))


def test_pods_that_fit_take_a_binding_and_no_other_write() -> None:
    async def play(cluster: Cluster) -> None:
        _, task = schedules.start(cluster)
        await asyncio.sleep(5.0)
        for number in range(40):
            cluster.pod("100m", app=f"app{number % 7}")
            await asyncio.sleep(0.1)
        await asyncio.sleep(30.0)
        assert cluster.server.writes == {"bind": 40}
        assert cluster.server.events == []
        await schedules.stop(task)

    run(play(Cluster()))


def test_the_condition_goes_when_there_is_a_node() -> None:
    async def play(cluster: Cluster) -> None:
        full(cluster)
        _, task = schedules.start(cluster)
        await asyncio.sleep(10.0)
        assert cluster.told() == {"Unschedulable": 2}
        cluster.add_node("more")
        cluster.add_node("another")
        await asyncio.sleep(5.0)
        assert cluster.told() == {}
        await schedules.stop(task)

    run(play(Cluster()))


def test_a_pod_that_then_waits_for_its_quota_asks_for_no_node_any_more() -> None:
    async def play(cluster: Cluster) -> None:
        for _ in range(4):
            cluster.pod("3", "root.roomy")
        _, task = schedules.start(cluster)
        await asyncio.sleep(10.0)
        assert cluster.told() == {"Unschedulable": 1}
        found = cluster.server.objects["configmaps"]["default", "yunikorn-configs"]
        assert isinstance(found, ConfigMap)
        lower = QUEUES.replace('"13"', '"9"')
        cluster.server.put("configmaps", msgspec.structs.replace(found, data={"queues.yaml": lower}))
        await asyncio.sleep(30.0)
        assert cluster.told() == {"SchedulingSkipped": 1}
        events = [one["note"] for one in cluster.server.events if one["reason"] == "FailedScheduling"]
        assert {one["type"] for one in cluster.server.events} == {"Warning"}
        assert len(events) == 2
        assert "max of queue root.roomy" in events[1]
        await schedules.stop(task)

    run(play(Cluster()))


def test_a_pod_for_which_others_go_is_nominated_until_it_is_bound_or_gives_up() -> None:
    """It gives up when the node is gone, and is nominated for another one later. One that preempts never is nominated for none."""

    async def play(cluster: Cluster) -> None:
        for _ in range(3):
            cluster.pod("4", "root.ranks", priority=0)
        _, task = schedules.start(cluster)
        await asyncio.sleep(5.0)
        never = cluster.pod("4", "root.ranks", priority=9, preemptionPolicy="Never").metadata.name
        urgent = cluster.pod("4", "root.ranks", priority=5).metadata.name

        def now(name: str) -> Pod:
            (found,) = (pod for pod in cluster.server.pods() if pod.metadata.name == name)
            return found

        def victims() -> list[str]:
            return [pod.spec.node_name for pod in cluster.server.pods() if pod.metadata.deletion_timestamp]

        await asyncio.sleep(4.0)
        (first,) = victims()
        told = {one["note"] for one in cluster.server.events if one["reason"] == "Preempted"}
        assert told == {f"Evicted for pod default/{urgent} of queue root.ranks, which has a higher priority."}
        assert now(urgent).status.nominated_node_name == first
        assert cluster.told() == {"SchedulingSkipped": 1, "Unschedulable": 1}
        cluster.lose_node(first)
        await asyncio.sleep(10.0)
        assert now(urgent).status.nominated_node_name == ""
        await asyncio.sleep(15.0)
        (second,) = victims()
        assert now(urgent).status.nominated_node_name == second != first
        assert now(never).status.nominated_node_name == ""
        for _ in range(20):
            cluster.kubelets()
        await asyncio.sleep(5.0)
        assert (now(urgent).spec.node_name, now(urgent).status.nominated_node_name) == (second, "")
        assert not now(never).spec.node_name
        await schedules.stop(task)

    run(play(Cluster()))


@in_virtual_time
async def test_a_pod_behind_others_asks_for_no_node_any_more() -> None:
    """One core is left of a quota; whoever is first would use it on another node, and only that pod asks for one."""
    cluster = Cluster()
    _, task = schedules.start(cluster)
    await asyncio.sleep(1.0)
    for _ in range(3):
        cluster.pod("4", "root.roomy")
    await asyncio.sleep(1.0)
    cluster.pod("1", "root.roomy", priority=0)
    await asyncio.sleep(30.0)
    assert cluster.told() == {"Unschedulable": 1}
    cluster.pod("1", "root.roomy", priority=100)
    await asyncio.sleep(30.0)
    assert cluster.told() == {"Unschedulable": 1, "SchedulingSkipped": 1}
    await schedules.stop(task)


@in_virtual_time
async def test_a_pod_that_lacks_nothing_but_room_is_told_without_delay() -> None:
    cluster = Cluster()
    _, task = schedules.start(cluster)
    await asyncio.sleep(5.0)
    cluster.pod("5")
    cluster.pod("3", "root.small", app="b")
    cluster.pod("5", "root.ranks", app="c")  # it has yet to try preemption
    await asyncio.sleep(0.1)
    assert cluster.told() == {"Unschedulable": 1, "nothing": 2}
    cluster.pod("5")
    await asyncio.sleep(0.1)
    assert cluster.told() == {"Unschedulable": 1, "nothing": 3}
    await asyncio.sleep(2.0)
    assert cluster.told() == {"Unschedulable": 3, "SchedulingSkipped": 1}
    await schedules.stop(task)


def test_many_pods_that_wait_are_told_little_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "CONDITIONS_MAX", 100)

    async def play(cluster: Cluster) -> Runner:
        for number in range(1000):
            cluster.pod("5", app=f"app{number % 10}")
        runner, task = schedules.start(cluster)
        await asyncio.sleep(5.5)
        assert cluster.server.writes["status"] <= 500
        await asyncio.sleep(20.0)
        assert cluster.told() == {"Unschedulable": 1000}
        assert cluster.server.writes["status"] == 1000
        await schedules.stop(task)
        return runner

    run(play(Cluster()))


def test_pods_of_many_sizes_are_all_told_though_few_can_be_looked_at_in_one_review(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "NODES_MAX", 6)  # two sizes in a cluster of three nodes

    async def play(cluster: Cluster) -> None:
        for number in range(30):
            cluster.pod(f"{5000 + number}m", app=f"app{number % 3}")
        _, task = schedules.start(cluster)
        await asyncio.sleep(60.0)
        late = cluster.pod("9", app="late")
        await asyncio.sleep(20.0)
        assert cluster.told() == {"Unschedulable": 31}, late.metadata.name
        await schedules.stop(task)

    run(play(Cluster()))


def test_a_pod_whose_reasons_cannot_be_found_out_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found_out = explain.reasons

    def failing(partition: Any, app: Any, ask: Any, counted: Any) -> Any:
        if app.id == "odd":
            raise AssertionError("planted")
        return found_out(partition, app, ask, counted)

    monkeypatch.setattr(explain, "reasons", failing)

    async def play(cluster: Cluster) -> None:
        cluster.pod("5", app="odd")
        cluster.pod("5", app="other")
        _, task = schedules.start(cluster)
        await asyncio.sleep(10.0)
        assert cluster.told() == {"SchedulerError": 1, "Unschedulable": 1}
        await schedules.stop(task)

    run(play(Cluster()))


def test_a_clock_that_is_set_back_keeps_no_reason_from_a_pod() -> None:
    places = Places()
    places.node("n", allocatable={"cpu": "4"})
    told: dict[float, list[str]] = {}

    def review(now_s: float) -> None:
        places.manager.outbox.now_s = partial(float, now_s)
        places.manager.lifecycle.waiting.review(int(now_s))
        told[now_s] = [type(each).__name__ for each in places.manager.flush()]

    def change(cpu: str) -> None:
        places.pod("waits", containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}])
        places.run()

    review(7200.0)
    change("5")
    review(7201.0)
    review(3600.0)  # an hour back
    change("much")
    review(3605.0)
    review(3610.0)
    change("5")
    review(1800.0)  # back again
    both = ["SetCondition", "PostEvent"]
    assert told == {7200.0: [], 7201.0: [], 3600.0: both, 3605.0: [], 3610.0: both, 1800.0: both}


def test_a_pod_that_is_gone_is_forgotten_without_a_review() -> None:
    async def play(cluster: Cluster) -> None:
        runner, task = schedules.start(cluster)
        await asyncio.sleep(5.0)
        pod = cluster.pod("5")
        await asyncio.sleep(0.5)
        assert len(runner.manager.lifecycle.waiting) == 1
        cluster.server.remove("pods", pod.metadata.namespace, pod.metadata.name)
        await asyncio.sleep(0.2)
        assert len(runner.manager.lifecycle.waiting) == 0
        await schedules.stop(task)

    run(play(Cluster()))


def test_pods_are_not_looked_at_again_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    places = Places()
    places.pod("waits", containers=[{"name": "c", "resources": {"requests": {"cpu": "5"}}}])
    places.node("n", allocatable={"cpu": "4"})
    places.run()
    waiting, looked = places.manager.lifecycle.waiting, list[str]()

    def reasons(_partition: Any, _application: Any, ask: Any, _counted: Any) -> Iterator[explain.Reason]:
        looked.append(ask.key)
        yield from ()

    monkeypatch.setattr(explain, "reasons", reasons)

    def review(now_s: float, state: int) -> int:
        before, places.manager.outbox.now_s = len(looked), partial(float, now_s)
        waiting.review(state)
        return len(looked) - before

    assert review(0.5, 7) == 0  # it has only just come
    assert review(10.0, 7) == 1
    assert review(700.0, 7) == 0
    assert review(701.0, 8) == 1
    waiting.not_told("waits")
    assert review(702.0, 8) == 1
    assert review(703.0, 8) == 0
