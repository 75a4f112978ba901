"""Native pod groups, step by step: gangs, groups that come late, go or change, the condition, the domain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.test_gangs import QUEUES, started, step
from licorne.kube.manager import Manager
from licorne.kube.manager.commands import Bind, Evict, PostEvent, SetCondition, SetGroupCondition
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Node, Pod, PodGroup
from licorne.kube.objects.pods import Condition
from licorne.kube.pods.groups import group_application

APP = "podgroup.default.g"
WITHIN = QUEUES.replace(
    "{name: other}", "{name: other, properties: {preemption.within-queue: priority, preemption.delay: 1s}}"
)


def group(needed: int = 0, uid: str = "uid-g", name: str = "g", **spec: Any) -> PodGroup:
    policy = {"gang": {"minCount": needed}} if needed else {"basic": {}}
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1", "generation": 1}
    return msgspec.convert({"metadata": meta, "spec": {"schedulingPolicy": policy, **spec}}, PodGroup)


def member(name: str, cpu: str = "1", **spec: Any) -> Pod:
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "schedulerName": "yunikorn",
            "schedulingGroup": {"podGroupName": "g"},
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
    }
    return msgspec.convert(body, Pod)


def see(manager: Manager, *found: Pod | PodGroup) -> None:
    for one in found:
        if isinstance(one, PodGroup):
            manager.lifecycle.groups.seen(one)
        else:
            manager.lifecycle.pod_seen(one)


def bound(manager: Manager) -> str:
    """Decide, and let the API server show the bindings; returns the pods that were bound."""
    commands = [command for command in step(manager) if isinstance(command, Bind)]
    for command in commands:
        pod = manager.records.pods[command.uid].pod
        spec = msgspec.structs.replace(pod.spec, node_name=command.node)
        manager.lifecycle.pod_seen(msgspec.structs.replace(pod, spec=spec))
    manager.outbox.api.validate()
    return " ".join(sorted(command.uid for command in commands))


def why(manager: Manager, uid: str) -> str:
    return manager.lifecycle.waiting.why_held(manager.records.pods[uid])


def test_no_pod_of_a_gang_is_placed_before_min_count_are_together() -> None:
    manager = started()
    see(manager, group(2), member("a"))
    assert bound(manager) == ""
    assert "g 1 of 2" in why(manager, "a")
    see(manager, member("b"))
    assert bound(manager) == "a b"
    see(manager, member("c"), member("d"))
    assert bound(manager) == "c d"


def test_pods_of_a_basic_group_are_placed_one_by_one() -> None:
    manager = started()
    see(manager, group(), member("a"))
    assert bound(manager) == "a"
    see(manager, member("b"))
    assert bound(manager) == "b"
    assert [*manager.records.applications] == [APP]


def test_pods_wait_for_their_group_until_it_comes_and_when_it_has_gone() -> None:
    manager = started()
    see(manager, member("a"), member("b", cpu="9"))
    assert bound(manager) == ""
    assert why(manager, "a") == "The pod waits until its pod group default/g is there."
    see(manager, group(2))
    assert bound(manager) == ""
    assert [one.stage for one in manager.records.pods.values()] == [Stage.ASKED] * 2
    manager.lifecycle.groups.gone(group(2))
    assert bound(manager) == ""
    assert [one.stage for one in manager.records.pods.values()] == [Stage.HELD] * 2
    see(manager, group(uid="anew"))
    assert bound(manager) == "a"


def test_a_group_that_comes_after_a_younger_and_an_older_pod_is_a_gang() -> None:
    manager = started()
    younger = member("b")
    younger.metadata.creation_timestamp = "2026-01-01T00:00:05Z"
    see(manager, younger, member("a"), group(3))
    assert bound(manager) == ""


def test_a_group_that_comes_anew_may_be_a_gang_and_need_more() -> None:
    manager = started()
    see(manager, group(), member("a"))
    assert bound(manager) == "a"
    manager.lifecycle.groups.gone(group())
    see(manager, group(3, uid="anew"), member("b"))
    assert bound(manager) == ""
    see(manager, group(2, uid="anew"))
    assert bound(manager) == "b"


def test_after_a_restart_members_that_run_count() -> None:
    manager = started()
    see(manager, group(3))
    manager.lifecycle.pods_read([member("c"), member("a", nodeName="n"), member("b", nodeName="n")])
    assert bound(manager) == "c"
    manager = started()
    see(manager, group(4))
    manager.lifecycle.pods_read([member("c"), member("a", nodeName="n"), member("b", nodeName="n")])
    assert bound(manager) == ""


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"parentCompositePodGroupName": "p"}, "pod group default/g is part of a composite pod group"),
        ({"schedulingPolicy": {"gang": {"minCount": 10_001}}}, "minCount 10001: must be at most 10000"),
    ],
)
def test_what_is_not_decided_waits(spec: dict[str, Any], text: str) -> None:
    manager = started()
    see(
        manager,
        msgspec.convert({"metadata": {"name": "g", "namespace": "default"}, "spec": spec}, PodGroup),
        member("a"),
    )
    assert bound(manager) == ""
    assert text in why(manager, "a")


def test_the_group_says_the_priority_and_whether_its_pods_preempt() -> None:
    manager = started()
    see(manager, group(priority=7, preemptionPolicy="Never"), member("a", priority=3))
    work = manager.records.pods["a"].work
    assert (work.ask.priority, work.ask.allow_preempt_other) == (7, False)


def test_other_keys_of_applications_and_gangs_do_not_count_in_a_group() -> None:
    manager = started()
    pod = member("a")
    pod.metadata.labels = {"applicationId": "mine"}
    pod.metadata.annotations = {"yunikorn.apache.org/task-groups": "[", "yunikorn.apache.org/task-group-name": "x"}
    see(manager, group(1), pod)
    assert bound(manager) == "a"
    assert not manager.records.pods["a"].is_driver


@pytest.mark.parametrize(("mode", "gone"), [("single", 1), ("all", 3)])
def test_the_pods_of_a_group_are_disrupted_one_by_one_or_together(mode: str, gone: int) -> None:
    now = [10**18]
    manager = started(WITHIN, clock=lambda: now[0])
    see(manager, group(3, disruptionMode={mode: {}}), *(member(name) for name in "abc"))
    assert bound(manager) == "a b c"
    high = member("high", cpu="2", priority=9)
    high.spec.scheduling_group = None
    see(manager, high)
    evicted = []
    for _ in range(3):
        now[0] += 10**9
        evicted += [command.name for command in step(manager) if isinstance(command, Evict)]
    assert len(evicted) == gone


def test_a_pod_without_the_group_cannot_name_its_application() -> None:
    manager = started()
    other = member("x", schedulingGroup=None)
    other.metadata.labels = {"applicationId": APP}
    see(manager, group(2), other, member("a"))
    assert manager.records.pods["x"].application.id != APP
    assert bound(manager) == "x"
    (note,) = manager.records.pods["x"].work.notes
    assert note.text.startswith("application ids that begin with podgroup.")


def test_ids_of_applications_of_groups_differ() -> None:
    names = [("a", "b"), ("a", "b" * 60), ("a", "b" * 61), ("a" * 60, "b"), ("a", "b.c"), ("a-b", "c")]
    made = {group_application(*one) for one in names}
    assert len(made) == len(names)
    assert max(map(len, made)) <= 63


# -- the condition -----------------------------------------------------------------------------------------------


def told(manager: Manager) -> list[tuple[bool, str, str]]:
    manager.lifecycle.groups.review()
    commands = manager.flush()
    found = [one for one in commands if isinstance(one, SetGroupCondition)]
    assert len([one for one in commands if isinstance(one, PostEvent) and one.kind == "PodGroup"]) == len(found)
    return [(one.status, one.reason, one.message) for one in found]


def test_the_group_is_told_what_its_pods_are_told_and_once_that_it_is_scheduled() -> None:
    now = [1000.0]
    manager = started(now_s=lambda: now[0])
    see(manager, group(2), member("a"), member("b", cpu="9"))
    assert bound(manager) == ""
    assert told(manager) == []
    now[0] += 3.0
    manager.lifecycle.waiting.review(0)
    (one, _) = (command for command in manager.flush() if isinstance(command, SetCondition))
    pod = member("a")
    pod.status.conditions = (Condition("PodScheduled", "False", one.reason, one.message),)
    see(manager, pod)
    assert told(manager) == [(False, "Unschedulable", one.message)]
    assert told(manager) == []
    manager.lifecycle.groups.not_told("uid-g")
    now[0] += 11.0
    assert told(manager) == [(False, "Unschedulable", one.message)]
    see(manager, member("c"))
    assert bound(manager) == "a c"
    assert told(manager) == [(True, "Scheduled", "2 pods of the group have a node.")]
    manager.lifecycle.groups.not_told("uid-g")
    assert told(manager) == []  # not each second
    now[0] += 11.0
    assert told(manager) == [(True, "Scheduled", "2 pods of the group have a node.")]
    manager.lifecycle.pod_gone(manager.records.pods["c"].pod)
    assert told(manager) == []


def test_a_group_that_is_scheduled_is_not_told_again_after_a_restart() -> None:
    manager = started()
    found = group(1)
    condition = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}
    found = msgspec.convert({**msgspec.to_builtins(found), "status": {"conditions": [condition]}}, PodGroup)
    see(manager, found, member("a", cpu="9"))
    assert bound(manager) == ""
    assert told(manager) == []


# -- the domain --------------------------------------------------------------------------------------------------


def zoned(manager: Manager, **zones: str) -> None:
    for name, zone in zones.items():
        meta = {"name": name, "uid": name, "labels": {"zone": zone} if zone else {}}
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
        manager.node_seen(msgspec.convert({"metadata": meta, "status": status}, Node))


CONSTRAINT: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}


@pytest.mark.parametrize("needed", [0, 2, 4])
def test_all_members_are_in_one_domain(needed: int) -> None:
    """Node `n` is in none; the first zone takes two of a gang, the second one all."""
    manager = started()
    zoned(manager, a1="a", b1="b", b2="b")
    see(manager, group(needed, **CONSTRAINT))
    see(manager, *(member(f"p{number}", cpu="2" if needed else "1") for number in range(4)))
    assert bound(manager) == "p0 p1 p2 p3"
    nodes = {manager.records.pods[f"p{number}"].node for number in range(4)}
    assert nodes <= {"b1", "b2"} if needed else nodes in ({"a1"}, {"b1", "b2"}, {"b1"}, {"b2"})
    see(manager, member("p4", cpu="4"))
    placed = bound(manager)
    zones = {record.node[0] for record in manager.records.pods.values() if record.node}
    assert len(zones) == 1, placed


def test_a_gang_without_a_domain_that_takes_it_waits() -> None:
    manager = started()
    zoned(manager, a1="a", b1="b")
    see(manager, group(3, **CONSTRAINT), *(member(f"p{number}", cpu="2") for number in range(3)))
    assert bound(manager) == ""
    zoned(manager, b2="b")
    assert bound(manager) == "p0 p1 p2"
