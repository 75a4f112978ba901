"""Gangs with placeholder pods, step by step: what the manager wants done, and what it says to the scheduler."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from common.virtual import in_virtual_time, run
from kube import schedules
from kube.apiserver import FakeClient
from kube.books import is_placeholder
from licorne import SchedulerAPI
from licorne.kube.api import ApiError
from licorne.kube.manager import Manager, Outbox
from licorne.kube.manager.commands import AskAgain, Bind, CreatePod, Evict, Fail
from licorne.kube.manager.records import GangStage
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Node, Pod
from licorne.kube.objects.pods import Condition, Volume
from licorne.kube.pods.work import PodContext, read_pod, unix_seconds
from licorne.kube.settings import RunSettings
from licorne.si import v19
from licorne.si.messages import Termination

QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}, {name: fixed, value: root.other}]
    queues: [{name: root, submitacl: '*', queues: [{name: q}, {name: other}]}]
"""
GROUPS = json.dumps([{"name": "g", "minMember": 3, "minResource": {"cpu": "1"}}])
LABELS = {"applicationId": "app", "queue": "root.q"}
HARD = {"yunikorn.apache.org/schedulingPolicyParameters": "gangSchedulingStyle=Hard"}
ANNOTATIONS = {"yunikorn.apache.org/task-groups": GROUPS, "yunikorn.apache.org/task-group-name": "g"}


def as_pod(name: str, body: dict[str, Any], version: int) -> Pod:
    body["metadata"] |= {
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return msgspec.convert(body, Pod)


def member(name: str, labels: dict[str, str] = LABELS, cpu: str = "1") -> Pod:
    metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": ANNOTATIONS}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return as_pod(name, {"metadata": metadata, "spec": {"schedulerName": "yunikorn", "containers": containers}}, 1)


def started(
    queues: str = QUEUES, clock: Callable[[], int] = lambda: 10**18, now_s: Callable[[], float] = lambda: 0.0
) -> Manager:
    api = SchedulerAPI(clock=clock, other_settings=True, on_output=lambda _, outputs: manager.decisions.take(outputs))
    manager = Manager(Outbox(api, "rm", now_s=now_s))
    api.register_resource_manager(
        v19.RegisterResourceManagerRequest(rm_id="rm", config=queues), manager.decisions, now_ns=10**18
    )
    manager.node_seen(node("n"))
    return manager


def node(name: str) -> Node:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "status": status}, Node)


def step(manager: Manager) -> list[Any]:
    """Return what is to be done after one round of decisions."""
    done = manager.flush()
    manager.outbox.api.schedule()
    return [*done, *manager.flush()]


def test_a_placeholder_that_goes_before_it_is_bound_gives_its_place_to_its_member() -> None:
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    assert len(bodies) == 3
    for number, body in enumerate(bodies):
        manager.lifecycle.pod_seen(as_pod(f"placeholder-{number}", body, 10 + number))
    bound = [command.uid for command in step(manager) if isinstance(command, Bind)]
    assert len(bound) == 3  # all are decided, and none of these bindings has been carried out
    (gone,) = [command for command in step(manager) if isinstance(command, Evict)]

    manager.lifecycle.not_bound(gone.uid, "the pod is being deleted")  # the deletion was faster than the binding
    told = step(manager)
    assert [command.uid for command in told if isinstance(command, Bind)] == ["uid-first"]
    assert not [command for command in told if isinstance(command, AskAgain)]
    app = manager.outbox.api.cluster.partition("rm").applications["app"]
    assert sorted(app.allocations) == sorted({"uid-first", *bound} - {gone.uid})
    assert app.gang is not None
    assert (app.gang.groups["g"].created, app.gang.groups["g"].replaced) == (3, 1)
    manager.outbox.api.validate()


USER_INFO = "yunikorn.apache.org/user.info"
USERS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "annotation": ({}, {USER_INFO: '{"user":"ann"}'}),
    "label": ({"yunikorn.apache.org/username": "ann"}, {}),
}


@pytest.mark.parametrize("how", USERS)
def test_placeholders_name_no_user(how: str) -> None:
    """An admission controller refuses a pod for which licorne names a user, or lets a group name somebody else."""
    labels, annotations = USERS[how]
    first = member("first", LABELS | labels)
    group = json.loads(GROUPS)[0] | {
        "labels": {"yunikorn.apache.org/username": "eve", "team": "t"},
        "annotations": {USER_INFO: '{"user":"eve"}', "note": "n"},
    }
    first.metadata.annotations = {**ANNOTATIONS, "yunikorn.apache.org/task-groups": json.dumps([group]), **annotations}
    manager = started()
    manager.lifecycle.pod_seen(first)
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    assert len(bodies) == 3
    for body in bodies:
        assert USER_INFO not in body["metadata"]["annotations"]
        assert "yunikorn.apache.org/username" not in body["metadata"]["labels"]
        assert (body["metadata"]["labels"]["team"], body["metadata"]["annotations"]["note"]) == ("t", "n")
    assert manager.outbox.api.cluster.partition("rm").applications["app"].user == "ann"


@pytest.mark.parametrize("how", USERS)
@pytest.mark.parametrize("queue", [{"queue": "root.q"}, {"yunikorn.apache.org/queue": "root.q"}], ids=["old", "new"])
def test_after_a_restart_a_gang_that_reserves_is_what_its_oldest_pod_says(queue: dict[str, str], how: str) -> None:
    """Placeholders have nodes, and the pods of the gang wait. An admission controller says of placeholders who made them."""
    labels, annotations = USERS[how]
    before = started()
    first, second = (member(name, {"applicationId": "app", **queue, **labels}) for name in ("first", "second"))
    for each in (first, second):
        each.metadata.annotations = {**ANNOTATIONS, **annotations}
    second.metadata.creation_timestamp = "2026-01-01T00:00:09Z"
    second.metadata.labels = {"applicationId": "app", "queue": "root.other"}
    for each in (first, second):
        before.lifecycle.pod_seen(each)
    body = next(command.body for command in step(before) if isinstance(command, CreatePod))
    body["spec"]["nodeName"] = "n"
    body["metadata"]["annotations"][USER_INFO] = '{"user":"system:serviceaccount:yunikorn:yunikorn-admin"}'
    placeholder = as_pod("placeholder", body, 10)
    placeholder.metadata.creation_timestamp = "2026-01-01T00:00:10Z"
    manager = started()
    manager.lifecycle.pods_read([placeholder, second, first])
    told = step(manager)
    assert len([command for command in told if isinstance(command, CreatePod)]) == 2
    for one in (before, manager):
        application = one.outbox.api.cluster.partition("rm").applications["app"]
        assert (application.queue.path, application.user) == ("root.q", "ann")
        assert application.tags["yunikorn.apache.org/creationTime"] == "1767225600"
    assert manager.records.pods["uid-placeholder"].stage is Stage.BOUND
    assert manager.records.applications["app"].originator == "uid-first"


@pytest.mark.parametrize("app", ["job_1", "Job.1-a", "team/job 1", "x" * 100, "y" * 27 + "."])
@pytest.mark.parametrize("queue", ["root.q", "root.q@home", "root." + "q" * 64])
def test_placeholders_have_names_and_labels_that_the_api_server_takes(app: str, queue: str) -> None:
    """What cannot be a label may be an annotation, from which it is read too."""
    manager = started(QUEUES.replace("{name: q}", "{name: q}, {name: q@home}, {name: %s}" % ("q" * 64)))
    first = member("first", {})
    given = {"yunikorn.apache.org/app-id": app, "yunikorn.apache.org/queue": queue}
    groups = json.dumps([json.loads(GROUPS)[0] | {"name": "G_1"}])
    first.metadata.annotations = {**ANNOTATIONS, **given, "yunikorn.apache.org/task-groups": groups}
    manager.lifecycle.pod_seen(first)
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    assert len({body["metadata"]["name"] for body in bodies}) == 3
    for number, body in enumerate(bodies):
        meta = body["metadata"]
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", meta["name"])
        for text in meta["labels"].values():
            assert len(text) <= 63
            assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", text)
        work = read_pod(as_pod(f"placeholder-{number}", body, 10), PodContext())
        assert (work.ask.application_id, work.application.queue) == (app, queue)


def test_placeholders_belong_to_a_pod_without_a_fault_when_the_first_one_has_gone() -> None:
    manager = started()
    first, second, third = (member(name) for name in ("first", "second", "third"))
    second.metadata.annotations = {**ANNOTATIONS, "yunikorn.apache.org/queue": "root." + "q" * 2000}
    second.metadata.labels = {"applicationId": "app"}
    for each in (first, second, third, member("fourth"), member("fifth")):
        manager.lifecycle.pod_seen(each)
    manager.lifecycle.pod_gone(first)
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    assert [body["metadata"]["ownerReferences"][0]["name"] for body in bodies] == ["third"] * 3


def test_a_placeholder_says_what_its_application_is_where_no_other_pod_is_there() -> None:
    before = started()
    before.lifecycle.pod_seen(member("first"))
    body = next(command.body for command in step(before) if isinstance(command, CreatePod))
    body["spec"]["nodeName"] = "n"
    manager = started()
    manager.lifecycle.pods_read([as_pod("placeholder", body, 10)])
    manager.flush()
    assert manager.outbox.api.cluster.partition("rm").applications["app"].queue.path == "root.q"


def exchanged() -> Manager:
    """Return a manager where a pod takes the place of a placeholder that has gone: decided, and not given out."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    placeholders = [as_pod(f"placeholder-{number}", body, 10 + number) for number, body in enumerate(bodies)]
    for pod in placeholders:
        manager.lifecycle.pod_seen(pod)
    step(manager)
    (gone,) = [command for command in step(manager) if isinstance(command, Evict)]
    manager.lifecycle.pod_gone(next(pod for pod in placeholders if pod.metadata.uid == gone.uid))
    manager.lifecycle.flush()
    assert manager.records.pods["uid-first"].node == "n"
    return manager


def test_a_binding_that_was_decided_is_not_sent_to_a_node_that_has_gone() -> None:
    """A pod takes the place of a placeholder as soon as that is gone; in the same moment its node may go, too."""
    manager = exchanged()
    manager.node_gone(manager.records.nodes["n"])
    assert not [command for command in step(manager) if isinstance(command, Bind)]
    manager.node_seen(node("m"))
    assert [(command.uid, command.node) for command in step(manager) if isinstance(command, Bind)] == [
        ("uid-first", "m")
    ]
    manager.outbox.api.validate()


def test_a_binding_that_was_decided_is_not_sent_for_a_pod_that_has_gone() -> None:
    manager = exchanged()
    manager.lifecycle.pod_gone(manager.records.pods["uid-first"].pod)
    assert not [command for command in step(manager) if isinstance(command, Bind)]
    manager.outbox.api.validate()


@pytest.mark.parametrize("bound_to", ["n", "m"], ids=["the same node", "another node"])
def test_a_binding_that_was_decided_is_not_sent_for_a_pod_that_others_have_bound(bound_to: str) -> None:
    manager = exchanged()
    manager.node_seen(node("m"))
    pod = manager.records.pods["uid-first"].pod
    manager.lifecycle.pod_seen(changed(pod, node_name=bound_to))
    assert not [command for command in step(manager) if isinstance(command, Bind)]
    nodes = manager.outbox.api.cluster.partition("rm").nodes
    assert [name for name in ("m", "n") if "uid-first" in {one.key for one in nodes[name].allocations}] == [bound_to]
    manager.outbox.api.validate()


@pytest.mark.parametrize("kind", [{}, {"gang.scheduling": "atomic"}], ids=["placeholders", "as a whole"])
def test_a_gang_that_runs_counts_after_a_restart_though_its_quota_is_less_by_now(kind: dict[str, str]) -> None:
    """It was admitted when its quota was larger. A new one of this size is refused, and what it has not must wait."""
    manager = started(QUEUES.replace("{name: q}", "{name: q, resources: {max: {vcore: 2}}}"))
    members = [member(f"member-{number}") for number in range(3)]
    for each in members:
        each.metadata.annotations = {**ANNOTATIONS, **kind}
    for each in members[:2]:
        each.spec.node_name = "n"
    for each in members:
        manager.lifecycle.pod_seen(each)
    assert not [command for command in step(manager) if isinstance(command, Bind | Fail)]
    partition = manager.outbox.api.cluster.partition("rm")
    assert len(partition.nodes["n"].allocations) == 2
    assert partition.applications["app"].queue.path == "root.q"
    manager.outbox.api.validate()


def test_the_others_do_not_wait_for_ever_when_somebody_else_has_bound_a_member() -> None:
    """The application runs then, so the scheduler removes its placeholders when their time is over, and says no more."""
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    manager.lifecycle.pod_seen(member("first"))
    bodies = [command.body for command in step(manager) if isinstance(command, CreatePod)]
    placeholders = [as_pod(f"placeholder-{number}", body, 10 + number) for number, body in enumerate(bodies[:2])]
    for pod in placeholders:
        manager.lifecycle.pod_seen(pod)
    second = member("second")
    second.metadata.annotations = {}  # of the application, and of no group
    manager.lifecycle.pod_seen(second)
    step(manager)
    manager.lifecycle.pod_seen(
        msgspec.structs.replace(second, spec=msgspec.structs.replace(second.spec, node_name="n"))
    )
    step(manager)
    assert manager.records.pods["uid-first"].stage is Stage.HELD
    now_ns += 1000 * 10**9
    gone = {command.uid for command in [*step(manager), *step(manager)] if isinstance(command, Evict)}
    assert gone == {pod.metadata.uid for pod in placeholders}
    for pod in placeholders:
        manager.lifecycle.pod_gone(pod)
    assert [command.uid for command in step(manager) if isinstance(command, Bind)] == ["uid-first"]


def test_the_others_of_a_gang_that_runs_at_the_start_are_decided_in_the_first_round() -> None:
    """Its room was complete before the restart: of three pods that took the places of placeholders two have ended."""
    manager = started()
    runs, waits = member("runs"), member("waits")
    runs = msgspec.structs.replace(runs, spec=msgspec.structs.replace(runs.spec, node_name="n"))
    manager.lifecycle.pods_read([waits, runs])
    assert [command.uid for command in step(manager) if isinstance(command, Bind)] == ["uid-waits"]


@in_virtual_time
async def test_asks_that_follow_from_a_decision_are_decided_at_once() -> None:
    """The last placeholder of a gang gets a node, so its pods are asked for. In a dry run no binding is seen, which would wake licorne."""
    world = schedules.World(1)
    for number in range(6):
        metadata: dict[str, Any] = {"name": f"p{number}", "namespace": "default", "uid": f"p{number}"}
        metadata |= {"labels": LABELS | {"queue": "root.a"}, "annotations": ANNOTATIONS}
        if number >= 3:
            owner = {"kind": "Pod", "name": "p0", "uid": "p0"}
            metadata["ownerReferences"] = [owner]
            metadata["annotations"] = ANNOTATIONS | {"internal.yunikorn.apache.org/placeholder": "true"}
        requests = {"cpu": "1", "memory": "1Mi"}
        world.add_pod(metadata=metadata, containers=[{"name": "c", "resources": {"requests": requests}}])
    runner, task = schedules.start(world, settings=RunSettings(dry_run=True))
    await asyncio.sleep(0.5)
    records = runner.manager.records.pods
    assert all(records[f"p{number}"].leaving is not None for number in (3, 4, 5))  # each for one of the gang
    await schedules.stop(task)


def changed(pod: Pod, **parts: Any) -> Pod:
    """Return a pod of which parts of the specification or the status are others."""
    spec = msgspec.structs.replace(pod.spec, **{name: value for name, value in parts.items() if name != "condition"})
    conditions = (Condition("PodScheduled", "False", *parts["condition"]),) if "condition" in parts else ()
    return msgspec.structs.replace(
        pod, spec=spec, status=msgspec.structs.replace(pod.status, conditions=conditions or pod.status.conditions)
    )


def created(commands: list[Any]) -> list[CreatePod]:
    return [command for command in commands if isinstance(command, CreatePod)]


@pytest.mark.parametrize(
    ("condition", "placeholders"),
    [
        (None, 3),
        (("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"), 3),
        (("SchedulingSkipped", "The pod waits until all placeholders of application app run."), 3),
        (("SchedulingSkipped", "The pod waits until licorne has seen namespace default."), 3),
        (("SchedulingSkipped", "The max of queue root.q leaves too little: 1000 vcore."), 0),
        (("Unschedulable", "No node takes the ask now: 1 node full."), 0),
    ],
)
def test_a_gang_that_is_older_than_its_timeout_has_given_up_if_a_pod_was_asked_for(
    condition: tuple[str, str] | None, placeholders: int
) -> None:
    """As after a restart. That it is old says nothing alone: it may have had gates, or there was no scheduler."""
    manager = started(now_s=lambda: unix_seconds("2026-01-01T00:00:00Z") + 1000.0)
    first = member("first")
    manager.lifecycle.pod_seen(changed(first, condition=condition) if condition else first)
    assert len(created(step(manager))) == placeholders


@pytest.mark.parametrize("hard", [True, False], ids=["Hard", "Soft"])
@pytest.mark.parametrize("behind", ["nothing", "gates", "no scheduler"])
@in_virtual_time
async def test_a_gang_has_its_whole_time_from_its_first_placeholder_on(behind: str, hard: bool) -> None:
    """Gates, such as those of Kueue, may keep pods for hours; so may an outage, or a change of the scheduler.

    Room for two of four is free. Until the time is over nothing ends; then all is given up.
    """
    world = schedules.World(1)
    ended: list[float] = []
    loop = asyncio.get_running_loop()
    world.server.on_delete = lambda _pod: ended.append(loop.time())
    for name in ("n1", "n2"):
        world.server.remove("nodes", "", name)
    world.add_pod(nodeName="n0", containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    if behind != "no scheduler":
        _, task = schedules.start(world)
    world.add_gang(4, timeout_s=60, hard=hard, gated=behind == "gates")
    if behind != "nothing":
        await asyncio.sleep(70.0)
    for _ in range(4 if behind == "gates" else 0):
        world.open_gate()
    if behind == "no scheduler":
        _, task = schedules.start(world)
    began = loop.time()
    await asyncio.sleep(59.0)
    placed = [pod for pod in world.server.pods() if pod.spec.node_name and is_placeholder(pod)]
    assert (len(placed), ended) == (2, [])
    assert not [pod for pod in world.server.pods() if pod.status.phase == "Failed"]
    await asyncio.sleep(2.0)
    assert {round(at - began) for at in ended} == {60}
    assert len([pod for pod in world.server.pods() if pod.status.phase == "Failed"]) == hard * 4
    await schedules.stop(task)


def test_a_hard_gang_that_runs_does_not_fail_after_a_restart_for_a_member_that_does_not_come() -> None:
    """It had all its room once, which the new scheduler has not seen: only the placeholder that is left times out."""
    now_ns = 10**18
    runs, other = member("runs"), member("other")
    for pod in (runs, other):
        pod.metadata.annotations = {**ANNOTATIONS, **HARD}
    before = started()
    before.lifecycle.pod_seen(runs)
    left = as_pod("left", created(step(before))[0].body, 10)
    for pod in (runs, other, left):
        pod.spec.node_name = "n"
    manager = started(clock=lambda: now_ns)
    manager.lifecycle.pods_read([runs, other, left])
    step(manager)
    now_ns += 1000 * 10**9
    done = [*step(manager), *step(manager)]
    assert [one.uid for one in done if isinstance(one, Evict)] == ["uid-left"]
    assert not [one for one in done if isinstance(one, Fail)]
    manager.outbox.api.validate()


def held_with(manager: Manager, pod: Pod) -> str:
    return manager.lifecycle.waiting.why_held(manager.records.pods[pod.metadata.uid])


@pytest.mark.parametrize("why", ["not decided", "a fault"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_a_gang_with_a_member_that_is_not_asked_for_is_held_as_a_whole(style: str, place: int, why: str) -> None:
    """In whatever order they come, and also if room was being reserved: what was made of it is deleted."""
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    members = [member(name) for name in ("first", "second", "third")]
    for pod in members:
        pod.metadata.annotations = {**ANNOTATIONS, **(HARD if style == "Hard" else {})}
    odd = members[place]
    if why == "a fault":
        odd.metadata.labels = {**LABELS, **{f"label-{number}": "" for number in range(5000)}}
    else:
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        odd.spec = msgspec.structs.replace(odd.spec, volumes=msgspec.convert([volume], tuple[Volume, ...]))
    under_way = []
    for pod in members:
        manager.lifecycle.pod_seen(pod)
        under_way += created(step(manager))
    assert len(under_way) == (0 if place == 0 else 3)
    assert not any(manager.lifecycle.gangs.is_wanted(one) for one in under_way)
    late = [as_pod(f"late-{number}", one.body, 10) for number, one in enumerate(under_way)]
    for pod in late:
        manager.lifecycle.pod_seen(pod)
    done = step(manager)
    assert [one.name for one in done if isinstance(one, Evict)] == [pod.metadata.name for pod in late]
    for pod in late:
        manager.lifecycle.pod_gone(pod)
    for _ in range(3):  # the scheduler forgets an application of which nothing waits
        assert not [one for one in step(manager) if isinstance(one, Bind | CreatePod | Fail)]
        now_ns += 1000 * 10**9
    reason = held_with(manager, odd)
    for pod in members:
        if pod is not odd:
            text = f"The pod waits until all of application app can start together. Pod default/{odd.metadata.name}: "
            assert held_with(manager, pod) == text + reason

    manager.lifecycle.pod_gone(odd)
    manager.lifecycle.pod_seen(member("fourth"))
    assert len(created(step(manager))) == 3


def test_a_gang_with_more_members_than_it_needs_does_not_wait_for_one_that_is_not_asked_for() -> None:
    manager = started()
    spare = member("spare")
    spare.spec = msgspec.structs.replace(
        spare.spec, volumes=(msgspec.convert({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, Volume),)
    )
    for pod in (spare, *(member(f"member-{number}") for number in range(3))):
        manager.lifecycle.pod_seen(pod)
    assert len(created(step(manager))) == 3


def test_a_hard_gang_of_which_a_placeholder_is_refused_waits_and_tries_again() -> None:
    """As by a ResourceQuota: its user has asked for all or nothing. Of the members none starts, and they say why."""

    class Refuses(FakeClient):
        refused = 0
        quota = 2

        async def create(self, path: str, body: dict[str, Any]) -> None:
            placeholders = [pod for pod in self.server.pods() if is_placeholder(pod)]
            if path.endswith("/pods") and len(placeholders) >= self.quota:
                self.refused += 1
                raise ApiError(403, "Forbidden", f"pods {body['metadata']['name']} is forbidden: exceeded quota")
            await super().create(path, body)

    async def main() -> None:
        world = schedules.World(1)
        client = Refuses(world.server)
        _, task = schedules.start(world, client)
        await asyncio.sleep(1.0)
        world.add_gang(4, timeout_s=600, hard=True)
        await asyncio.sleep(300.0)
        members = [pod for pod in world.server.pods() if not is_placeholder(pod)]
        assert len(members) == 4
        assert not [pod for pod in members if pod.spec.node_name or pod.status.phase == "Failed"]
        assert 10 <= client.refused <= 40, "each is tried about twice a minute"
        for pod in members:
            [condition] = pod.status.conditions or ()
            assert condition.reason == "SchedulingSkipped"
            assert "exceeded quota" in condition.message
        told = [event for event in world.server.events if event["action"] == "PlaceholderCreateFailed"]
        assert len(told) == 1
        client.quota = 4
        for _ in range(60):
            await asyncio.sleep(1.0)
            world.kubelets()
        assert len(world.bound) == 8
        await schedules.stop(task)

    run(main())


def test_placeholders_that_come_after_their_gang_has_given_up_are_deleted_and_get_no_room() -> None:
    """One creation is refused while others are under way or wait for their turn, and one placeholder is asked for."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    creations = created(step(manager))
    manager.lifecycle.pod_seen(as_pod("early", creations[0].body, 10))
    manager.lifecycle.flush()
    assert manager.records.pods["uid-early"].stage is Stage.ASKED
    assert all(manager.lifecycle.gangs.is_wanted(one) for one in creations)
    manager.lifecycle.gangs.not_created("app", creations[0].body["metadata"]["name"], "403 Forbidden: no", 1.0)
    assert not any(manager.lifecycle.gangs.is_wanted(one) for one in creations)
    manager.lifecycle.pod_seen(as_pod("late", creations[1].body, 11))
    running = as_pod("bound", creations[2].body, 12)
    running.spec.node_name = "n"
    manager.lifecycle.pod_seen(running)
    done = step(manager)
    assert {one.uid for one in done if isinstance(one, Evict)} == {"uid-early", "uid-late", "uid-bound"}
    assert not [one for one in done if isinstance(one, Bind)]
    manager.lifecycle.pod_gone(running)  # its member takes the place of one that has a node
    assert [one.uid for one in step(manager) if isinstance(one, Bind)] == ["uid-first"]
    manager.outbox.api.validate()


def test_placeholders_that_come_after_the_time_of_their_gang_are_deleted() -> None:
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    manager.lifecycle.pod_seen(member("first"))
    creations = created(step(manager))
    manager.lifecycle.pod_seen(as_pod("early", creations[0].body, 10))
    step(manager)
    now_ns += 1000 * 10**9
    gone = {one.uid for one in [*step(manager), *step(manager)] if isinstance(one, Evict)}
    assert gone == {"uid-early"}
    assert not any(manager.lifecycle.gangs.is_wanted(one) for one in creations)
    manager.lifecycle.pod_seen(as_pod("late", creations[1].body, 11))
    done = step(manager)
    assert [one.uid for one in done if isinstance(one, Evict)] == ["uid-late"]
    assert "uid-late" not in {one.uid for one in done if isinstance(one, Bind)}
    manager.outbox.api.validate()


def test_placeholders_of_a_pod_that_is_gone_are_not_created_any_more() -> None:
    manager = started()
    for name in ("first", "second"):
        manager.lifecycle.pod_seen(member(name))
    creations = created(step(manager))
    manager.lifecycle.pod_gone(manager.records.pods["uid-first"].pod)
    assert not any(manager.lifecycle.gangs.is_wanted(one) for one in creations)
    anew = created(step(manager))
    assert [one.owner for one in anew] == ["uid-second"] * 3
    assert all(manager.lifecycle.gangs.is_wanted(one) for one in anew)


@pytest.mark.parametrize("annotations", [ANNOTATIONS, {}], ids=["a gang", "no gang"])
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_an_application_whose_only_pod_is_gone_is_forgotten(annotations: dict[str, str], rounds: int) -> None:
    """However soon the pod is gone: a later one with the same id is an application of its own, in another queue."""
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    first = member("first")
    first.metadata.annotations = annotations
    manager.lifecycle.pod_seen(first)
    for _ in range(rounds):
        step(manager)
    manager.lifecycle.pod_gone(first)
    step(manager)
    now_ns += 60 * 10**9  # an application that had an ask completes after a while
    step(manager)
    assert not manager.records.applications
    assert not manager.outbox.api.cluster.partition("rm").applications
    second = member("second", {"applicationId": "app", "queue": "root.other"})
    second.metadata.annotations = annotations
    manager.lifecycle.pod_seen(second)
    done = step(manager)
    assert manager.outbox.api.cluster.partition("rm").applications["app"].queue.path == "root.other"
    if annotations:
        assert [one.owner for one in created(done)] == ["uid-second"] * 3
    else:
        assert [one.uid for one in done if isinstance(one, Bind)] == ["uid-second"]
    manager.outbox.api.validate()


def test_a_later_pod_of_a_gang_whose_first_pod_and_placeholders_are_gone_does_not_wait_for_ever() -> None:
    """The application is there for some time: its placeholders have been asked for."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    placeholder = as_pod("early", created(step(manager))[0].body, 10)
    manager.lifecycle.pod_seen(placeholder)
    step(manager)
    manager.lifecycle.pod_gone(manager.records.pods["uid-first"].pod)
    manager.lifecycle.pod_gone(placeholder)
    step(manager)
    assert "app" in manager.records.applications
    manager.lifecycle.pod_seen(member("second"))
    assert [one.owner for one in created(step(manager))] == ["uid-second"] * 3


def test_placeholders_are_in_the_namespace_of_the_pod_that_they_belong_to() -> None:
    """The garbage collector deletes a pod whose owner it does not find in the pod's own namespace."""
    manager = started()
    first, second = member("first"), member("second")
    second.metadata.namespace = "other"
    for pod in (first, second):
        manager.lifecycle.pod_seen(pod)
    before = created(step(manager))
    manager.lifecycle.pod_gone(first)
    for owner, creations in ((first, before), (second, created(step(manager)))):
        assert {one.namespace for one in creations} == {owner.metadata.namespace}
        assert {one.body["metadata"]["namespace"] for one in creations} == {owner.metadata.namespace}
        assert {one.body["metadata"]["ownerReferences"][0]["uid"] for one in creations} == {owner.metadata.uid}


def test_a_placeholder_that_has_failed_is_deleted_and_another_one_has_another_name() -> None:
    """As one that its kubelet refuses. For a watch of pods that have not ended it is gone, and its name is still taken."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    creations = created(step(manager))
    for number, one in enumerate(creations):
        manager.lifecycle.pod_seen(as_pod(one.body["metadata"]["name"], one.body, 10 + number))
    failed = manager.records.pods[f"uid-{creations[0].body['metadata']['name']}"].pod
    manager.lifecycle.pod_gone(failed)
    done = manager.flush()
    (anew,) = created(done)
    assert anew.body["metadata"]["name"] not in {one.body["metadata"]["name"] for one in creations}
    assert [one.uid for one in done if isinstance(one, Evict)] == [failed.metadata.uid]


def test_placeholders_that_fail_again_and_again_are_made_anew_with_pauses() -> None:
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    coming = created(step(manager))
    rounds = 0
    while coming:
        assert len(coming) == 3
        rounds += 1
        assert rounds < 10, "they are made without a pause"
        pods = [as_pod(one.body["metadata"]["name"], one.body, 10) for one in coming]
        for pod in pods:
            manager.lifecycle.pod_seen(pod)
        for pod in pods:
            manager.lifecycle.pod_gone(pod)
        coming = created(step(manager))
    manager.lifecycle.gangs.look_again("app")
    assert len(created(step(manager))) == 3


def test_a_name_that_a_pod_has_which_is_not_seen_is_not_tried_for_ever() -> None:
    """As after a restart, when a placeholder had failed before: the API server says that there is one of that name."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    creations = created(step(manager))
    names = [one.body["metadata"]["name"] for one in creations]
    manager.lifecycle.pod_seen(as_pod(names[0], creations[0].body, 10))
    for name in names[:2]:  # the creation of the first was repeated, because its answer was lost
        manager.lifecycle.gangs.created("app", name, 1.0, taken=True)
    manager.lifecycle.gangs.created("app", names[2], 1.0)
    manager.lifecycle.gangs.look_again("app", 1.0)
    anew = [one.body["metadata"]["name"] for one in created(manager.flush())]
    assert len(set(anew)) == 2
    assert names[2] in anew
    assert not {names[0], names[1]} & set(anew)


def test_what_is_being_created_is_not_asked_for_again() -> None:
    """As long as the API server has said nothing of it, and a while longer, until it is to be seen."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    creations = created(step(manager))
    names = [one.body["metadata"]["name"] for one in creations]
    for number in range(5):  # each of these has the gang looked at
        manager.lifecycle.pod_seen(member(f"member-{number}"))
        assert manager.lifecycle.gangs.look_again("app", 100.0) is None
        assert created(step(manager)) == []
    manager.lifecycle.gangs.created("app", names[0], 101.0)
    manager.lifecycle.gangs.created("app", names[1], 102.0)
    manager.lifecycle.pod_seen(as_pod(names[1], creations[1].body, 10))
    assert manager.lifecycle.gangs.look_again("app", 100.0) == 101.0
    assert created(step(manager)) == []
    assert manager.lifecycle.gangs.look_again("app", 101.0) == 102.0
    (anew,) = created(step(manager))
    assert anew.body["metadata"]["name"] == names[0], "it is made again if nobody has seen it"
    assert manager.lifecycle.gangs.look_again("app", 102.0) is None
    assert created(step(manager)) == [], "the other has been seen"


def test_what_was_to_be_created_for_a_pod_that_is_gone_is_created_for_the_next_one() -> None:
    manager = started()
    first = member("first")
    manager.lifecycle.pod_seen(first)
    manager.lifecycle.pod_seen(member("second"))
    assert len(created(step(manager))) == 3
    manager.lifecycle.pod_gone(first)
    anew = created(step(manager))
    assert [one.owner for one in anew] == ["uid-second"] * 3


def reserving(manager: Manager) -> list[Pod]:
    """Show the first pod of a gang and its three placeholders, which have nodes; return these."""
    manager.lifecycle.pod_seen(member("first"))
    placeholders = [as_pod(f"{number}", one.body, 10 + number) for number, one in enumerate(created(step(manager)))]
    for pod in placeholders:
        manager.lifecycle.pod_seen(pod)
    return placeholders


def test_a_gang_is_not_complete_with_a_placeholder_on_a_node_that_is_not_there() -> None:
    """The scheduler does not count it. With this one the pods of the gang would start, and a Hard gang fail in the end."""
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    lost, *others = [as_pod(f"{number}", one.body, 10 + number) for number, one in enumerate(created(step(manager)))]
    lost.spec.node_name = "m"
    for pod in (lost, *others):
        manager.lifecycle.pod_seen(pod)
    assert not [one for one in [*step(manager), *step(manager)] if isinstance(one, Evict)]
    manager.node_seen(node("m"))
    assert [one.reason for one in [*step(manager), *step(manager)] if isinstance(one, Evict)] == [
        "PLACEHOLDER_REPLACED"
    ]


@pytest.mark.parametrize(("cpu", "is_bound"), [("1", True), ("3", False)])
def test_a_member_that_is_another_one_when_its_placeholder_ends_is_bound_where_it_fits(
    cpu: str, is_bound: bool
) -> None:
    manager = started(QUEUES.replace("{name: q}", "{name: q, resources: {max: {vcore: 4}}}"))
    placeholders = reserving(manager)
    done = step(manager)
    for bound in [one for one in done if isinstance(one, Bind)]:
        manager.lifecycle.pod_seen(changed(manager.records.pods[bound.uid].pod, node_name=bound.node))
    [ends] = [one.uid for one in [*done, *step(manager)] if isinstance(one, Evict)]
    manager.lifecycle.pod_seen(member("first", cpu=cpu))
    step(manager)
    manager.lifecycle.pod_gone(next(pod for pod in placeholders if pod.metadata.uid == ends))
    done = [*step(manager), *step(manager)]
    assert any(isinstance(one, Bind) and one.uid == "uid-first" for one in done) is is_bound
    partition = manager.outbox.api.cluster.partition("rm")
    assert partition.nodes["n"].free.named(partition.types)["vcore"] == (1000 if is_bound else 2000)
    manager.outbox.api.validate()


def test_a_gang_that_reserves_goes_on_when_gangs_are_turned_off() -> None:
    manager = started()
    manager.lifecycle.pod_seen(member("first"))
    bodies = [one.body for one in created(step(manager))]
    settings = msgspec.structs.replace(manager.lifecycle.context.settings, gangs=False)
    manager.lifecycle.context.settings = settings
    for number, body in enumerate(bodies):
        manager.lifecycle.pod_seen(as_pod(f"{number}", body, 10 + number))
    manager.lifecycle.gangs.look_again("app")
    assert not created(step(manager))
    evicted = [one for one in [*step(manager), *step(manager)] if isinstance(one, Evict)]
    assert [one.reason for one in evicted] == ["PLACEHOLDER_REPLACED"]


def test_a_placeholder_that_is_asked_for_again_just_before_the_time_of_its_gang_is_over_leaves_no_ask() -> None:
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    placeholders = reserving(manager)
    first = next(one.uid for one in step(manager) if isinstance(one, Bind))
    now_ns += 3600 * 10**9
    manager.lifecycle.outdated(first)
    manager.outbox.api.schedule()  # before it is told of that
    assert manager.records.pods[first].leaving is Termination.TIMEOUT
    manager.flush()  # the ask is there, and not decided
    manager.lifecycle.pod_gone(next(pod for pod in placeholders if pod.metadata.uid == first))
    step(manager)
    app = manager.outbox.api.cluster.partition("rm").applications["app"]
    assert first not in {*app.asks, *app.allocations}


def test_a_placeholder_that_is_preempted_while_its_gang_reserves_is_made_anew() -> None:
    manager = started()
    [victim, *_] = reserving(manager)
    manager.flush()  # they are asked for, and not decided
    manager.records.pods[victim.metadata.uid].leaving = Termination.PREEMPTED_BY_SCHEDULER
    manager.lifecycle.pod_gone(victim)
    [anew] = created(manager.flush())
    assert anew.body["metadata"]["name"] != victim.metadata.name


def test_a_placeholder_that_is_replaced_is_no_room_for_the_next_try_of_its_gang() -> None:
    """Its member is not bound, and the application completes, while no news comes of the end of the placeholder."""
    now_ns = 10**18
    manager = started(QUEUES, lambda: now_ns)
    first = member("first")
    first.metadata.annotations = ANNOTATIONS | {"yunikorn.apache.org/task-groups": GROUPS.replace("3", "1", 1)}
    manager.lifecycle.pod_seen(first)
    [creation] = created(step(manager))
    placeholder = as_pod("0", creation.body, 10)
    manager.lifecycle.pod_seen(placeholder)
    done = [*step(manager), *step(manager)]
    assert [one.reason for one in done if isinstance(one, Evict)] == ["PLACEHOLDER_REPLACED"]
    manager.lifecycle.not_bound("uid-0", "the pod is being deleted")
    assert [one.uid for one in step(manager) if isinstance(one, Bind)] == ["uid-first"]
    manager.lifecycle.not_bound("uid-first", "a conflict")
    step(manager)
    now_ns += 3600 * 10**9
    manager.lifecycle.ask_again("uid-first")
    made = [*step(manager), *step(manager)]
    assert manager.records.applications["app"].gang_stage is GangStage.RESERVING
    manager.lifecycle.pod_gone(placeholder)
    [anew] = created([*made, *step(manager)])
    assert anew.body["metadata"]["name"] != placeholder.metadata.name


def test_a_placeholder_that_waits_for_its_next_binding_ends_with_the_time_of_its_gang() -> None:
    now_ns = 10**18
    manager = started(clock=lambda: now_ns)
    manager.lifecycle.pod_seen(member("first"))
    for number, one in enumerate(created(step(manager))[:2]):  # the third one is not there yet
        manager.lifecycle.pod_seen(as_pod(f"{number}", one.body, 10 + number))
    bound = [one.uid for one in step(manager) if isinstance(one, Bind)]
    manager.lifecycle.not_bound(bound[1], "a webhook does not answer")
    step(manager)
    now_ns += 1000 * 10**9
    assert {one.uid for one in [*step(manager), *step(manager)] if isinstance(one, Evict)} == set(bound)
    manager.lifecycle.ask_again(bound[1])
    assert not [one for one in step(manager) if isinstance(one, Bind) and one.uid == bound[1]]
