"""Applications of several pods: which pod creates and starts one, and what becomes of the others when it is refused or fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from kube.places import Places
from licorne.core.queues.application import Application
from licorne.kube.manager import lifecycle
from licorne.kube.manager.commands import AskAgain, Bind, CreatePod, Evict, Fail, PostEvent
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Namespace, Pod, PriorityClass
from licorne.si import v19
from licorne.si.messages import AddApplication, Input, RejectedApplication, UpdatedApplication

SECOND_NS = 10**9
Y = "yunikorn.apache.org/"
PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
QUEUES = """
partitions:
  - name: default
    placementrules: [{name: provided}]
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: lender}
          - {name: other}
          - {name: fair, properties: {application.sort.policy: fair}}
          - {name: owner, properties: {preemption.delay: 1s}, resources: {guaranteed: {vcore: 100}}}
"""


def pod(name: str, app: str, queue: str = "lender", *, cpu: str = "4", owner: str = "", **more: Any) -> Pod:
    """Return a pod; `owner`: it is a placeholder that belongs to the pod of this UID."""
    annotations = more.pop("annotations", {})
    second = more.pop("second", 0)
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "n",
        "uid": name,
        "labels": {"applicationId": app, "queue": f"root.{queue}"},
        "annotations": annotations,
        "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
    }
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner}]
        meta["annotations"] = annotations | {PLACEHOLDER: "true"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": "yunikorn", "containers": containers, **more}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


class Cluster(Places):
    """Nodes of 4 cores, and the commands that follow from what is seen."""

    queues = QUEUES

    def __init__(self, nodes: int = 0) -> None:
        super().__init__()
        for number in range(nodes):
            self.node(f"n{number}", allocatable={"cpu": "4"})

    def see(self, *pods: Pod) -> list[Any]:
        """Show pods; return the commands of the next four seconds."""
        for each in pods:
            self.manager.lifecycle.pod_seen(each)
        commands = []
        for _ in range(4):
            commands += self.manager.flush()
            self.api.schedule()
            self.now_ns += SECOND_NS
        self.api.validate()
        return commands + self.manager.flush()

    def application(self, name: str) -> Application:
        return self.api.cluster.partition("rm").applications[name]

    def counted(self, node: str) -> dict[str, dict[str, int]]:
        """Return what counts on a node, by the UID of the pod."""
        partition = self.api.cluster.partition("rm")
        found = partition.nodes[node]
        amounts = {one.key: one.shape.amounts for one in found.allocations} | dict(found.foreign)
        return {key: one.named(partition.types) for key, one in amounts.items()}

    def originators(self, name: str) -> list[str]:
        """Return the keys of the asks and allocations of an application that are said to be its originator."""
        found = self.application(name)
        return [each.key for each in (*found.asks.values(), *found.allocations.values()) if each.originator]


# -- the originator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["", "n0"])
def test_the_first_pod_of_an_application_is_its_originator(node: str) -> None:
    cluster = Cluster(1)
    cluster.see(pod("driver", "a", cpu="1", nodeName=node), pod("one", "a", cpu="1"), pod("two", "a", cpu="9"))
    assert cluster.originators("a") == ["driver"]


@pytest.mark.parametrize(("app", "events"), [("a", 1), ("", 2)])
def test_a_misspelled_key_is_told_once_for_an_application_that_has_a_name(app: str, events: int) -> None:
    cluster = Cluster(1)
    commands = cluster.see(*(pod(name, app, annotations={Y + "taskGroup": "[]"}) for name in ("one", "two")))
    assert [each.reason for each in commands if isinstance(each, PostEvent)].count("InvalidAnnotation") == events


@pytest.mark.parametrize("given", ["", "spark-uniqueautogen"])
def test_no_pod_is_the_originator_of_an_application_whose_id_was_generated(given: str) -> None:
    cluster = Cluster(2)
    pods = [pod("first", given, cpu="1", nodeName="n0"), pod("second", given, cpu="1")]
    cluster.see(*pods)
    apps = cluster.api.cluster.partition("rm").applications
    assert len(apps) == (2 if given else 1) and [cluster.originators(name) for name in apps] == [[]] * len(apps)


def test_a_pod_that_heeds_the_demands_of_others_is_an_originator_too() -> None:
    cluster = Cluster(1)
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"applicationId": "a"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.see(pod("alone", "b", cpu="1", nodeName="n0", affinity=apart), pod("driver", "a", cpu="1"))
    assert (cluster.originators("a"), list(cluster.application("a").asks)) == (["driver"], ["driver"])


def test_after_a_restart_the_originator_is_the_pod_that_the_placeholders_belong_to() -> None:
    groups = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "1"}}])
    member = {Y + "task-groups": groups, Y + "task-group-name": "g"}
    cluster = Cluster(1)
    cluster.see(
        pod("holds", "a", cpu="1", owner="driver", nodeName="n0", annotations=member),
        pod("one", "a", cpu="1", nodeName="n0", annotations=member),
        pod("driver", "a", cpu="1", annotations=member, nodeSelector={"no": "such"}),
    )
    assert cluster.originators("a") == ["driver"]


def test_an_originator_is_evicted_after_all_others() -> None:
    cluster = Cluster(3)
    cluster.see(*(pod(f"p{number}", app, nodeName=f"n{number}") for number, app in enumerate("aab")))
    commands = cluster.see(pod("needs", "c", "owner"))
    assert [each.name for each in commands if isinstance(each, Evict)] == ["p1"]


# -- which pod creates an application ---------------------------------------------------------------------------------


GATED: dict[str, Any] = {"schedulingGates": [{"name": "example.com/later"}]}
CREATORS: dict[str, tuple[list[Pod], str]] = {
    "the first one": ([pod("p", "a"), pod("q", "a", "other")], "root.lender"),
    "the first one, though it waits for its gates": ([pod("p", "a", **GATED), pod("q", "a", "other")], "root.lender"),
    "the first one, though it waits for its gates and the other one runs": (
        [pod("q", "a", "other", nodeName="n0", second=1), pod("p", "a", **GATED)],
        "root.lender",
    ),
    "the first one without a fault": ([pod("p", "a", cpu="lots"), pod("q", "a", "other")], "root.other"),
    "the first one without a fault, though the other one runs": (
        [pod("p", "a", cpu="lots", nodeName="n0"), pod("q", "a", "other")],
        "root.other",
    ),
    "one with a fault that runs, if there is no other": ([pod("p", "a", cpu="lots", nodeName="n0")], "root.lender"),
    "no placeholder, if there is another": (
        [pod("p", "a", owner="q", nodeName="n0"), pod("q", "a", "other")],
        "root.other",
    ),
}


@pytest.mark.parametrize("name", CREATORS)
def test_which_pod_says_what_the_application_is(name: str) -> None:
    pods, queue = CREATORS[name]
    cluster = Cluster(1)
    cluster.manager.lifecycle.pods_read(pods)
    cluster.see()
    assert cluster.application("a").queue.path == queue


@pytest.mark.parametrize("starts", [False, True], ids=["seen", "read at the start"])
def test_a_pod_whose_queue_has_too_long_a_name_has_no_others_refused(starts: bool) -> None:
    """Alone it would wait, and be told why."""
    cluster = Cluster(1)
    pods = [pod("long", "a", "x" * 2000), pod("short", "a")]
    if starts:
        cluster.manager.lifecycle.pods_read(pods)
        pods = []
    commands = cluster.see(*pods)
    assert not [each for each in commands if isinstance(each, Fail)]
    assert [each.name for each in commands if isinstance(each, Bind)] == ["short"]
    assert cluster.manager.records.pods["long"].stage is Stage.HELD
    assert cluster.originators("a") == ["short"]


def test_a_pod_whose_queue_has_a_short_name_again_is_asked_for() -> None:
    cluster = Cluster(1)
    cluster.see(pod("p", "a", "x" * 2000))
    assert [each.name for each in cluster.see(pod("p", "a")) if isinstance(each, Bind)] == ["p"]
    assert cluster.originators("a") == ["p"]


def test_the_quota_of_a_namespace_is_that_of_the_moment_when_the_application_is_made() -> None:
    cluster = Cluster(1)
    cluster.see(pod("gated", "a", **GATED))
    for cpus in (1, 2):
        annotations = {Y + "namespace.quota": json.dumps({"cpu": cpus})}
        found = msgspec.convert({"metadata": {"name": "n", "annotations": annotations}}, Namespace)
        cluster.manager.namespace_seen(found)
        cluster.see(pod(f"p{cpus}", "a"))
        tags = cluster.application("a").tags
        assert tags["namespace.resourcequota"] == '{"resources": {"vcore": {"value": 1000}}}'


class WithNewQueues(Cluster):
    """The queue that a pod names is made if there is none."""

    queues = QUEUES.replace("{name: provided}", "{name: provided, create: true}")


def test_a_quota_that_is_raised_counts_at_once() -> None:
    cluster = WithNewQueues(2)

    def quota(cpus: str) -> None:
        meta = {"name": "n", "annotations": {Y + "namespace.quota": json.dumps({"cpu": cpus})}}
        cluster.manager.namespace_seen(msgspec.convert({"metadata": meta}, Namespace))

    def bound(*pods: Pod) -> list[str]:
        return [each.name for each in cluster.see(*pods) if isinstance(each, Bind)]

    quota("2")
    assert bound(*(pod(name, "a", "of.n", cpu="2") for name in ("one", "two"))) == ["one"]
    quota("4")
    assert bound() == ["two"]
    for record in list(cluster.manager.records.pods.values()):
        cluster.manager.lifecycle.pod_gone(record.pod)
    cluster.see()
    quota("2")  # while the application, which has no pods, is completing
    assert bound(*(pod(name, "a", "of.n", cpu="2") for name in ("three", "four"))) == ["three"]
    assert [*cluster.api.cluster.partition("rm").applications] == [*cluster.manager.records.applications] == ["a"]


def test_a_pod_that_comes_before_its_namespace_waits_for_its_quota() -> None:
    cluster = Cluster(1)
    cluster.manager.namespace_seen(msgspec.convert({"metadata": {"name": "default"}}, Namespace))
    assert not [each for each in cluster.see(pod("p", "a")) if isinstance(each, Bind)]
    annotations = {Y + "namespace.quota": '{"cpu": 5}'}
    cluster.manager.namespace_seen(msgspec.convert({"metadata": {"name": "n", "annotations": annotations}}, Namespace))
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["p"]
    assert cluster.application("a").tags["namespace.resourcequota"] == '{"resources": {"vcore": {"value": 5000}}}'


# -- priority classes -------------------------------------------------------------------------------------------------


def priority_class(name: str, allow: str = "") -> PriorityClass:
    annotations = {Y + "allow-preemption": allow} if allow else {}
    return msgspec.convert({"metadata": {"name": name, "annotations": annotations}}, PriorityClass)


def may_be_evicted(cluster: Cluster, key: str) -> bool:
    """Return what the scheduler knows of an ask or an allocation of application `a`."""
    application = cluster.application("a")
    return bool((application.asks.get(key) or application.allocations[key]).allow_self)


def test_a_pod_that_comes_before_its_priority_class_waits_a_moment_for_what_it_says() -> None:
    cluster = Cluster(1)
    cluster.manager.class_seen(priority_class("other"))
    waits = cluster.see(pod("p", "a", priorityClassName="kept"))
    assert [each for each in waits if isinstance(each, AskAgain | Bind)] == [AskAgain("p", 1.0)]
    cluster.manager.class_seen(priority_class("kept", "false"))
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["p"]
    assert not may_be_evicted(cluster, "p")


def test_a_pod_whose_priority_class_is_gone_is_asked_for_after_that_moment() -> None:
    cluster = Cluster(1)
    cluster.manager.class_seen(priority_class("other"))
    cluster.see(pod("p", "a", priorityClassName="gone"))
    cluster.manager.lifecycle.ask_again("p")
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["p"]
    assert may_be_evicted(cluster, "p")


SAYS_ITSELF: dict[str, Any] = {"annotations": {Y + "allow-preemption": "true"}}
AT_ONCE: dict[str, tuple[list[PriorityClass], dict[str, Any]]] = {
    "it names none": ([priority_class("other")], {}),
    "it says itself whether it may be evicted": (
        [priority_class("other")],
        {"priorityClassName": "unseen", **SAYS_ITSELF},
    ),
    "licorne may not read priority classes": ([], {"priorityClassName": "unseen"}),
    "it has a node": ([priority_class("other")], {"priorityClassName": "unseen", "nodeName": "n0"}),
}


@pytest.mark.parametrize("why", AT_ONCE)
def test_other_pods_wait_for_no_priority_class(why: str) -> None:
    classes, more = AT_ONCE[why]
    cluster = Cluster(1)
    for known in classes:
        cluster.manager.class_seen(known)
    assert not [each for each in cluster.see(pod("p", "a", **more)) if isinstance(each, AskAgain)]
    assert list(cluster.application("a").allocations) == ["p"]


@pytest.mark.parametrize(("age_s", "waits"), [(59, True), (60, False)])
def test_an_old_pod_waits_for_no_priority_class(age_s: int, waits: bool) -> None:
    """Else it would be behind younger ones after a restart, because its class has been deleted meanwhile."""
    cluster = Cluster(1)
    shown = pod("p", "a", priorityClassName="gone")
    created_s = datetime.fromisoformat(shown.metadata.creation_timestamp or "").timestamp()
    cluster.manager.outbox.now_s = lambda: created_s + age_s
    cluster.manager.class_seen(priority_class("other"))
    assert any(isinstance(each, AskAgain) for each in cluster.see(shown)) is waits


def test_a_priority_class_that_changes_counts_for_pods_that_are_not_asked_for_yet() -> None:
    cluster = Cluster()
    cluster.manager.class_seen(priority_class("kept"))
    cluster.see(pod("asked", "a", priorityClassName="kept"), pod("gated", "a", priorityClassName="kept", **GATED))
    cluster.manager.lifecycle.pod_seen(pod("new", "a", priorityClassName="kept"))
    cluster.manager.class_seen(priority_class("kept", "false"))
    cluster.see(pod("gated", "a", priorityClassName="kept"))
    assert {key: may_be_evicted(cluster, key) for key in ("asked", "new", "gated")} == {
        "asked": True,
        "new": False,
        "gated": False,
    }


def test_a_pod_that_is_asked_for_keeps_its_age_when_its_priority_class_changes() -> None:
    cluster = Cluster()
    cluster.manager.class_seen(priority_class("kept"))
    cluster.see(pod("old", "a", priorityClassName="kept"))
    cluster.see(pod("young", "a"))
    cluster.manager.class_seen(priority_class("kept", "false"))
    cluster.see()
    cluster.node("n0", allocatable={"cpu": "4"})
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["old"]


# -- pods of an application that was refused, or fails ----------------------------------------------------------------


def failed(commands: list[Any]) -> list[tuple[str, str]]:
    """Return names and reasons of the pods whose phase is set to Failed."""
    return [(each.name, each.reason) for each in commands if isinstance(each, Fail)]


def test_a_gang_in_a_queue_that_sorts_fair_is_told_what_it_needs() -> None:
    groups = '[{"name": "g", "minMember": 1, "minResource": {"cpu": "1"}}]'
    annotations = {Y + "task-groups": groups, Y + "task-group-name": "g"}
    (found,) = (
        each for each in Cluster(1).see(pod("p", "a", "fair", annotations=annotations)) if isinstance(each, Fail)
    )
    assert found.message.endswith(
        "unsupported sort type; a gang with placeholders needs a queue with application.sort.policy fifo"
    )


def test_each_pod_of_a_refused_application_is_failed_once() -> None:
    cluster = Cluster()
    commands = cluster.see(*(pod(f"p{number}", "a", "none") for number in range(20)))
    assert failed(commands) == [(f"p{number}", "ApplicationRejected") for number in range(20)]


def test_a_pod_that_could_not_be_bound_is_failed_with_its_application() -> None:
    cluster = Cluster(1)
    commands = cluster.see(pod("p", "a"))
    assert [each.name for each in commands if isinstance(each, Bind)] == ["p"]
    cluster.manager.lifecycle.not_bound("p", "no bindings today")
    cluster.manager.decisions.take([UpdatedApplication("a", "Failing", 0, "ResourceReservationTimeout")])
    assert failed(cluster.manager.flush()) == [("p", "ResourceReservationTimeout")]


def test_a_pod_that_cannot_be_bound_waits_twice_as_long_each_time_up_to_a_bound() -> None:
    cluster = Cluster(1)
    commands = cluster.see(pod("p", "a"))
    waits = []
    for _ in range(7):
        assert [each.name for each in commands if isinstance(each, Bind)] == ["p"]
        cluster.manager.lifecycle.not_bound("p", "no bindings today")
        waits += [each.after_s for each in cluster.see() if isinstance(each, AskAgain)]
        cluster.manager.lifecycle.ask_again("p")
        commands = cluster.see()
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]


def failing() -> tuple[Cluster, list[Pod]]:
    """Return a cluster where the Hard gang of pod `p` fails, and its placeholders: one has a node and has not ended yet."""
    groups = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "3"}}])
    parameters = "gangSchedulingStyle=Hard placeholderTimeoutInSeconds=1"
    gang = {Y + "task-groups": groups, Y + "task-group-name": "g", Y + "schedulingPolicyParameters": parameters}
    cluster = Cluster(1)
    placeholders = [pod(f"holds-{number}", "a", cpu="3", owner="p", annotations=gang) for number in range(2)]
    cluster.see(pod("p", "a", annotations=gang), *placeholders)
    assert cluster.application("a").state.name == "FAILING"
    return cluster, placeholders


def as_member(placeholder: Pod) -> dict[str, str]:
    """The annotations of a member of the gang of a placeholder."""
    return {**(placeholder.metadata.annotations or {}), PLACEHOLDER: "false"}


def test_a_pod_that_comes_while_its_application_fails_is_the_next_try() -> None:
    """A controller that replaces pods that fail makes one for each member and try, not as many as it can."""
    cluster, placeholders = failing()
    late = pod("late", "a", annotations=as_member(placeholders[0]))
    assert not [each for each in cluster.see(late) if isinstance(each, Bind | Fail)]
    waits = cluster.manager.lifecycle.waiting.why_held(cluster.manager.records.pods["late"])
    assert waits.startswith("The pod waits until the last try of application a, which has failed, has ended.")
    cluster.manager.lifecycle.pod_gone(pod("p", "a"))
    for each in placeholders:
        cluster.manager.lifecycle.pod_gone(each)
    commands = cluster.see()
    assert failed(commands) == []
    assert [each.owner for each in commands if isinstance(each, CreatePod)] == ["late", "late"]


def test_the_next_try_does_not_give_its_placeholders_to_a_pod_whose_failure_is_still_being_written() -> None:
    cluster, placeholders = failing()
    cluster.see(pod("late", "a", annotations=as_member(placeholders[0])))
    for each in placeholders:
        cluster.manager.lifecycle.pod_gone(each)
    assert [each.owner for each in cluster.see() if isinstance(each, CreatePod)] == ["late", "late"]


def test_the_next_try_is_not_forgotten_with_the_one_that_has_failed() -> None:
    """Its first pod comes when the scheduler is told of the last placeholder's end, and licorne has not gone on yet."""
    cluster, placeholders = failing()
    for each in (pod("p", "a"), *placeholders):
        cluster.manager.lifecycle.pod_gone(each)
    cluster.manager.lifecycle.flush()
    late = pod("late", "a", annotations=as_member(placeholders[0]))
    assert [each.owner for each in cluster.see(late) if isinstance(each, CreatePod)] == ["late", "late"]


@pytest.mark.parametrize("when", ["it fails", "it has failed", "the next try reserves room"])
def test_a_placeholder_that_comes_when_its_gang_has_failed_is_deleted(when: str) -> None:
    """Its creation was under way. It belongs to licorne; as a pod of phase Failed it would stay as long as its owner."""
    cluster, placeholders = failing()
    late = pod("late", "a", cpu="3", owner="p", annotations=placeholders[0].metadata.annotations)
    if when != "it fails":
        for each in (pod("p", "a"), *placeholders):
            cluster.manager.lifecycle.pod_gone(each)
        cluster.see()
        assert "a" not in cluster.manager.records.applications
    if when == "the next try reserves room":
        cluster.see(pod("next", "a", annotations=as_member(placeholders[0])))
    commands = cluster.see(late)
    assert [each.name for each in commands if isinstance(each, Evict)] == ["late"]
    assert not [each for each in commands if isinstance(each, Bind | Fail)]


def completes_and_loses_its_queue(cluster: Cluster) -> None:
    """Let application `a`, which has nothing that counts, complete, and take its queue from the configuration."""
    for _ in range(30):
        cluster.see()
    assert cluster.manager.records.applications["a"].state == "Completed"
    queues = QUEUES.replace("{name: lender}", "{name: another}")
    cluster.api.update_configuration(v19.UpdateConfigurationRequest(rm_id="rm", config=queues))


def test_a_pod_that_runs_counts_when_its_node_comes_back_though_its_queue_is_gone() -> None:
    """It was bound here, so it was read before it had a node; meanwhile its application has completed."""
    cluster = Cluster(1)
    cluster.see(pod("p", "a", cpu="3"))
    cluster.see(pod("p", "a", cpu="3", nodeName="n0"))
    created_ns = cluster.application("a").allocations["p"].created
    cluster.no_node("n0")
    completes_and_loses_its_queue(cluster)
    cluster.node("n0", allocatable={"cpu": "4"})
    commands = cluster.see(pod("q", "b", "other", cpu="2"))
    assert [each for each in commands if isinstance(each, Bind | Fail)] == []
    assert cluster.manager.records.pods["p"].stage is Stage.BOUND
    assert cluster.application("a").queue.path == "root.@recovery@"
    created = datetime.fromisoformat("2026-01-01T00:00:00Z").timestamp()
    again_ns = cluster.application("a").allocations["p"].created
    assert (created_ns == created * SECOND_NS, again_ns) == (False, created * SECOND_NS)


@pytest.mark.parametrize("queue", ["none", "a..b", "x" * 2000], ids=["no such queue", "no name of a queue", "too long"])
def test_a_pod_that_runs_counts_whatever_queue_it_names(queue: str) -> None:
    """As one that somebody else has bound. The scheduler refuses the second and third name also for what runs."""
    cluster = Cluster(1)
    commands = cluster.see(pod("p", "a", queue, cpu="3", nodeName="n0"), pod("q", "b", cpu="2"))
    assert [each for each in commands if isinstance(each, Bind | Fail)] == []
    assert cluster.manager.records.pods["p"].stage is Stage.BOUND
    assert cluster.application("a").queue.path == "root.@recovery@"


def test_a_pod_that_runs_is_not_failed_with_its_application() -> None:
    """Somebody else has bound it while its application fails, or its node comes back. It counts on its node at once."""
    cluster, shown = failing()
    assert failed(cluster.see(pod("late", "a", cpu="1", nodeName="n0"))) == []
    assert "late" in cluster.counted("n0")
    for each in shown:
        cluster.manager.lifecycle.pod_gone(each)
    assert failed(cluster.see()) == []
    assert cluster.counted("n0") == {"late": {"vcore": 1000, "pods": 1}}
    cluster.manager.lifecycle.pod_gone(pod("late", "a", cpu="1", nodeName="n0"))
    cluster.see()
    assert cluster.counted("n0") == {}


INVALID_USER = {Y + "user.info": json.dumps({"user": "a b", "groups": ["dev"]})}
OWNERS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "the user is invalid": ("lender", INVALID_USER, "root.lender", "nobody"),
    "the queue is invalid": ("a..b", {Y + "user.info": '{"user": "ann"}'}, "root.@recovery@", "ann"),
    "both are invalid": ("a..b", INVALID_USER, "root.@recovery@", "nobody"),
}


@pytest.mark.parametrize("why", OWNERS)
def test_a_pod_that_runs_counts_whoever_it_names(why: str) -> None:
    """The scheduler refuses a user with this name, if groups are given, also for what runs."""
    queue, annotations, path, user = OWNERS[why]
    cluster = Cluster(1)
    commands = cluster.see(pod("p", "a", queue, cpu="3", nodeName="n0", annotations=annotations), pod("q", "b"))
    assert [each for each in commands if isinstance(each, Bind | Fail)] == []
    assert cluster.counted("n0") == {"p": {"vcore": 3000, "pods": 1}}
    assert (cluster.application("a").queue.path, cluster.application("a").user) == (path, user)


def test_no_pod_is_failed_when_an_application_is_refused_and_accepted_at_the_second_attempt() -> None:
    """As after a restart: the oldest pod runs, and names a queue that no queue can be; another one waits."""
    cluster = Cluster(2)
    cluster.manager.lifecycle.pods_read([pod("runs", "a", "a..b", nodeName="n0"), pod("waits", "a", second=1)])
    commands = cluster.see()
    assert [type(each).__name__ for each in commands] == ["Bind"]


def test_a_pod_that_was_failed_with_its_application_before_its_own_turn_is_not_asked_for() -> None:
    cluster = Cluster(1)
    cluster.manager.lifecycle.pods_read([pod("first", "a", "none", cpu="1"), pod("second", "a", cpu="1", second=1)])
    commands = cluster.see()
    assert failed(commands) == [("first", "ApplicationRejected"), ("second", "ApplicationRejected")]
    assert len(commands) == 2


def refuse_constraints() -> dict[str, Any]:
    """Return the affinity of a pod that the scheduler refuses, also if it runs, because it is too long."""
    names = [f"{n}-{'x' * 50}" for n in range(2000)]
    terms = [{"matchExpressions": [{"key": "a", "operator": "NotIn", "values": names}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize("what", ["application", "allocation"])
def test_a_pod_that_runs_counts_whatever_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No application of a running pod is known that the scheduler refuses at each attempt; so a refusal is planted."""
    cluster = Cluster(1)
    submit = cluster.api.submit

    def refuse_a(rm_id: str, inputs: Sequence[Input]) -> None:
        if any(isinstance(each, AddApplication) and each.application_id == "a" for each in inputs):
            cluster.manager.decisions.take([RejectedApplication("a", "the test wants it")])
        else:
            submit(rm_id, inputs)

    more = refuse_constraints() if what == "allocation" else {}
    if what == "application":
        monkeypatch.setattr(cluster.api, "submit", refuse_a)
    told: list[str] = []
    cluster.manager.outbox.warn = lambda text, _: told.append(text)
    runs = pod("p", "a", cpu="3", nodeName="n0", **more)
    commands = cluster.see(runs, pod("q", "b", cpu="2"))
    assert [each for each in commands if isinstance(each, Bind | Fail)] == []
    assert cluster.counted("n0") == {"p": {"vcore": 3000, "pods": 1}}
    [event] = [each for each in commands if isinstance(each, PostEvent)]
    assert (event.name, event.reason) == ("p", "CountedAsForeign")
    assert {"application": "the test wants it", "allocation": "is longer than"}[what] in event.note
    assert told == [f"pod n/p: {event.note}"]
    assert list(cluster.manager.records.applications) == list(cluster.api.cluster.partition("rm").applications) == ["b"]
    cluster.no_node("n0")
    cluster.node("n0", allocatable={"cpu": "4"})
    cluster.see(pod("p", "a", cpu="1", nodeName="n0", **more))
    assert cluster.counted("n0") == {"p": {"vcore": 1000, "pods": 1}, "q": {"vcore": 2000, "pods": 1}}
    cluster.manager.lifecycle.pod_gone(runs)
    cluster.see()
    assert list(cluster.counted("n0")) == ["q"]


def test_a_pod_that_was_failed_and_is_bound_all_the_same_counts() -> None:
    cluster = Cluster(1)
    assert failed(cluster.see(pod("p", "a", "none"))) == [("p", "ApplicationRejected")]
    cluster.see(pod("p", "a", "none", nodeName="n0"))
    assert list(cluster.counted("n0")) == ["p"]


def test_a_pod_whose_binding_is_under_way_is_not_failed_when_its_node_and_its_application_are_gone() -> None:
    """Failed, it was still kept for the return of its node, which ended the process when it came."""
    cluster = Cluster(1)
    assert [type(each) for each in cluster.see(pod("p", "a", cpu="3"))] == [Bind]
    cluster.no_node("n0")
    completes_and_loses_its_queue(cluster)
    assert failed(cluster.see(pod("q", "a"))) == [("q", "ApplicationRejected")]
    cluster.manager.lifecycle.pod_gone(pod("q", "a"))
    cluster.node("n0", allocatable={"cpu": "4"})
    cluster.see(pod("p", "a", cpu="3", nodeName="n0"))
    assert list(cluster.counted("n0")) == ["p"]


# -- changes of a pod -------------------------------------------------------------------------------------------------


def test_a_pod_that_is_resized_while_it_is_being_bound_counts_with_what_it_takes_now() -> None:
    cluster = Cluster(1)
    cluster.see(pod("p", "a", cpu="1"))
    for shown in (pod("p", "a", cpu="3"), pod("p", "a", cpu="3", nodeName="n0")):
        cluster.see(shown)
        node = cluster.application("a").allocations["p"].node
        assert node is not None and node.id == "n0"
    bound = cluster.see(pod("q", "b", cpu="2"))
    assert [each for each in bound if isinstance(each, Bind)] == []


@pytest.mark.parametrize("cpu", ["3", "4"])
def test_a_pod_whose_labels_name_another_application_later_stays_in_its_own(cpu: str) -> None:
    cluster = Cluster()
    cluster.see(pod("p", "a", cpu="3"))
    assert not [each for each in cluster.see(pod("p", "b", cpu=cpu)) if isinstance(each, PostEvent)]
    cluster.node("n0", allocatable={"cpu": "4"})
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["p"]
    cluster.see(pod("p", "b", cpu="2", nodeName="n0"))
    assert cluster.application("a").allocations["p"].shape.resource["vcore"] == 2000


CHANGES: dict[str, dict[str, Any]] = {
    "it tolerates a taint": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    "it is resized": {"cpu": "3"},
    "both": {"tolerations": [{"key": "gpu", "operator": "Exists"}], "cpu": "3"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_pod_that_waits_and_changes_keeps_its_age(name: str) -> None:
    cluster = Cluster()
    for shown in (pod("old", "a"), pod("young", "a"), pod("old", "a", **CHANGES[name])):
        cluster.see(shown)
    cluster.node("n0", allocatable={"cpu": "4"})
    assert [each.name for each in cluster.see() if isinstance(each, Bind)] == ["old"]


def test_a_pod_that_others_keep_off_no_more_runs() -> None:
    cluster = Cluster(1)
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"a": "b"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.see(pod("alone", "z", cpu="1", nodeName="n0", affinity=apart))
    for labels in ({"a": "b"}, {}):
        cluster.manager.namespace_seen(msgspec.convert({"metadata": {"name": "n", "labels": labels}}, Namespace))
        if labels:
            cluster.see(pod("old", "a", cpu="3"))
    asked = cluster.manager.records.pods["old"].asked
    cluster.see()
    assert asked is not None and "licorne/node-constraints" not in (asked.tags or {})
    assert [each.key for each in cluster.application("a").allocations.values()] == ["old"]


# -- what the scheduler refuses --------------------------------------------------------------------------------------


def of_memory(name: str, memory: str) -> Pod:
    """Return a pod of one core and so much memory."""
    requests = {"cpu": "1", "memory": memory}
    return pod(name, "a", containers=[{"name": "c", "resources": {"requests": requests}}])


def test_an_ask_of_which_a_change_is_refused_is_not_decided_until_the_pod_is_changed_again() -> None:
    cluster = Cluster()
    cluster.see(of_memory("p", "1Gi"))
    cluster.see(of_memory("p", "5E"))  # resized while it waits, to more than the scheduler counts
    assert cluster.manager.records.pods["p"].stage is Stage.REFUSED
    cluster.node("n0", allocatable={"cpu": "1", "memory": "2Gi"})
    assert not [command for command in cluster.see() if isinstance(command, Bind)]
    assert cluster.counted("n0") == {}
    [bound] = [command for command in cluster.see(of_memory("p", "2Gi")) if isinstance(command, Bind)]
    assert bound.name == "p" and cluster.counted("n0")["p"]["memory"] == 2 * 2**30


def test_pods_of_which_a_change_was_refused_leave_nothing_behind() -> None:
    cluster = Cluster()
    for number in range(3):
        cluster.see(of_memory(f"p{number}", "1Gi"))
        cluster.see(of_memory(f"p{number}", "5E"))
    cluster.node("n0", allocatable={"cpu": "4", "memory": "8Gi"})
    cluster.see()
    for number in range(3):
        cluster.manager.lifecycle.pod_gone(of_memory(f"p{number}", "5E"))
    cluster.see()
    assert (cluster.counted("n0"), cluster.manager.records.pods) == ({}, {})


def test_a_pod_whose_change_is_refused_while_it_is_bound_keeps_its_place_until_it_is_not() -> None:
    cluster = Cluster(1)
    cluster.see(of_memory("p", "1Gi"))
    cluster.see(of_memory("p", "5E"))
    assert cluster.counted("n0")["p"]["memory"] == 2**30
    cluster.manager.lifecycle.not_bound("p", "its node is full")
    assert any(isinstance(command, AskAgain) for command in cluster.see())
    assert cluster.counted("n0") == {}
    cluster.manager.lifecycle.ask_again("p")
    cluster.see()
    assert cluster.manager.records.pods["p"].stage is Stage.REFUSED


@pytest.mark.parametrize("set_aside", [False, True])
def test_a_pod_that_is_refused_while_it_is_bound_and_then_changed_is_not_given_another_node(set_aside: bool) -> None:
    """One that failed of both bindings would give back the place of the second one, which may still arrive."""
    cluster = Cluster(1)
    cluster.see(of_memory("p", "1Gi"))
    cluster.see(of_memory("p", "5E"))
    cluster.no_node("n0")
    cluster.node("n0", allocatable={"cpu": "4", "memory": "8Gi"})
    cluster.see()
    assert cluster.counted("n0") == {}
    if set_aside:
        cluster.manager.outbox.warn = lambda *_: None
        with patch.object(lifecycle, "read_pod", side_effect=RuntimeError):
            cluster.see(of_memory("p", "3Gi"))
    assert not [command for command in cluster.see(of_memory("p", "2Gi")) if isinstance(command, Bind)]
    assert cluster.counted("n0")["p"]["memory"] == 2 * 2**30
    cluster.manager.lifecycle.not_bound("p", "its node is full")
    cluster.see()
    assert (cluster.counted("n0"), cluster.manager.records.pods["p"].stage) == ({}, Stage.UNBOUND)


def test_a_new_originator_takes_the_place_of_one_that_ended_with_the_application_of_before() -> None:
    cluster = Cluster(2)
    gated = pod("gated", "a", cpu="1", second=5, schedulingGates=[{"name": "g"}])
    cluster.see(pod("first", "a", cpu="1"), gated)
    cluster.manager.lifecycle.pod_gone(cluster.manager.records.pods["first"].pod)
    for _ in range(10):  # the application completes after 30 seconds
        cluster.see()
    assert "a" not in cluster.api.cluster.partition("rm").applications
    cluster.see(pod("second", "a", cpu="1", second=2))
    assert cluster.originators("a") == ["second"]


def test_a_node_that_the_scheduler_refuses_is_told_once_and_taken_when_it_is_another_one() -> None:
    cluster = Cluster()
    complaints: list[str] = []
    cluster.manager.outbox.warn = lambda text, _: complaints.append(text)
    many = {f"example.com/r{number}": "1" for number in range(1100)}
    for _ in range(2):
        cluster.node("big", allocatable={"cpu": "4", **many})
    runs = pod("runs", "a", cpu="1", nodeName="big")
    events = [command for command in cluster.see(runs) if isinstance(command, PostEvent)]
    assert [(event.kind, event.reason) for event in events] == [("Node", "NodeRejected")]
    assert len(complaints) == 1 and "big" in complaints[0]
    assert cluster.manager.records.pods["runs"].stage is Stage.NODE_UNKNOWN
    cluster.node("big", allocatable={"cpu": "4"})
    cluster.see()
    assert (list(cluster.counted("big")), cluster.manager.refused_nodes) == (["runs"], {})
