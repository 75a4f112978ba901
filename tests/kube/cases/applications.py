"""docs/spec/k8shim.md, section 1: which pods are scheduled, and how they become applications. What counts is what REST shows."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from kube.cluster import Y, comes

from . import Case, Cases, Place
from .placing import affinity

CASES = Cases()
LONG: Final = "n" * 40

# Labels, annotations; the application id. `{ns}` is the namespace of the case, `{uid}` the pod's UID.
APPLICATION_IDS: Final[list[tuple[dict[str, str], dict[str, str], str]]] = [
    (
        {Y + "app-id": "{ns}-1", "applicationId": "{ns}-3", "spark-app-selector": "{ns}-4"},
        {Y + "app-id": "{ns}-2"},
        "{ns}-1",
    ),
    ({"applicationId": "{ns}-3", "spark-app-selector": "{ns}-4"}, {Y + "app-id": "{ns}-2"}, "{ns}-2"),
    ({"applicationId": "{ns}-3", "spark-app-selector": "{ns}-4"}, {}, "{ns}-3"),
    ({"spark-app-selector": "{ns}-4"}, {}, "{ns}-4"),
    ({}, {}, "yunikorn-{ns}-autogen"),
    ({Y + "app-id": "x-uniqueautogen"}, {}, "x-{uid}"),
    ({Y + "app-id": LONG + "-uniqueautogen"}, {}, LONG[:26] + "-{uid}"),
]
# Labels, annotations; the queue. Queues that cannot be used leave the place to the namespace's.
QUEUES: Final[list[tuple[dict[str, str], dict[str, str], str]]] = [
    ({Y + "queue": "root.open", "queue": "root.small"}, {Y + "queue": "root.whole"}, "root.open"),
    ({"queue": "root.small"}, {Y + "queue": "root.open"}, "root.open"),
    ({"queue": "root.open"}, {}, "root.open"),
    ({}, {}, "root.{ns}"),
]
# Labels, annotations; user and groups. Where no groups are given, the resolver of the queue configuration finds them.
USERS: Final[list[tuple[dict[str, str], dict[str, str], str, list[str]]]] = [
    ({}, {Y + "user.info": '{"user":"ann","groups":["g1","g2"]}'}, "ann", ["g1", "g2"]),
    ({Y + "username": "bob"}, {Y + "user.info": '{"user":"ann","groups":["g1"]}'}, "ann", ["g1"]),
    ({Y + "username": "bob"}, {}, "bob", ["bob"]),
    ({}, {Y + "user.info": "{"}, "nobody", ["nobody"]),
    ({Y + "username": "bob"}, {Y + "user.info": '{"user":""}'}, "nobody", ["nobody"]),
    ({}, {}, "nobody", ["nobody"]),
]
# Annotations of the namespace; what its queue has, as REST shows it.
NAMESPACES: Final[list[tuple[dict[str, str], dict[str, Any]]]] = [
    (
        {Y + "namespace.quota": '{"cpu":"64","memory":"100G","nvidia.com/gpu":"1"}'},
        {"maxResource": {"vcore": 64000, "memory": 100_000_000_000, "nvidia.com/gpu": 1}},
    ),
    (
        {Y + "namespace.max.cpu": "2", Y + "namespace.max.memory": "1Gi"},
        {"maxResource": {"vcore": 2000, "memory": 1 << 30}},
    ),
    (
        {Y + "namespace.quota": '{"cpu":"3"}', Y + "namespace.max.cpu": "2"},
        {"maxResource": {"vcore": 3000}},
    ),
    ({Y + "namespace.quota": "{"}, {"maxResource": None}),
    ({Y + "namespace.guaranteed": '{"cpu":"1"}'}, {"guaranteedResource": {"vcore": 1000}}),
    ({Y + "namespace.maxApps": "7"}, {"maxRunningApps": 7}),
    ({Y + "namespace.maxApps": "-7"}, {"maxRunningApps": None}),
]
# Pod spec, annotations; the priority, and the fields of the ask that REST shows.
POLICIES: Final[list[tuple[dict[str, Any], str]]] = [
    ({}, "0"),
    ({"priorityClassName": "cases-high"}, "1000"),
    ({"priorityClassName": "system-cluster-critical"}, "2000000000"),
]


def shown(texts: dict[str, str], place: Place) -> dict[str, str]:
    """Fill the name of the namespace in."""
    return {key: text.replace("{ns}", place.name) for key, text in texts.items()}


def _id_case(labels: dict[str, str], annotations: dict[str, str], expected: str) -> Case:
    def run(k: Place) -> None:
        k.pod(labels=shown(labels, k), annotations=shown(annotations, k))
        app = expected.replace("{ns}", k.name).replace("{uid}", k.uid())
        assert k.item(app)["allocationTags"]["kubernetes.io/meta/podName"] == "p"
        k.bound("p")

    keys = ", ".join([f"label {key}" for key in labels] + [f"annotation {key}" for key in annotations])
    given = f"a pod with {keys or 'no application id'}"
    return Case("1", given, "it is created", f"its application is {expected}", run)


def _queue_case(labels: dict[str, str], annotations: dict[str, str], expected: str) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, labels=labels, annotations=annotations)
        assert k.application(k.name)["queueName"] == expected.replace("{ns}", k.name)

    keys = ", ".join([f"label {key}" for key in labels] + [f"annotation {key}" for key in annotations])
    return Case("1", f"a pod with {keys or 'no queue'}", "it is created", f"its queue is {expected}", run)


def _user_case(labels: dict[str, str], annotations: dict[str, str], user: str, groups: list[str]) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, labels=labels, annotations=annotations)
        found = k.application(k.name)
        assert (found["user"], found.get("groups", [])) == (user, groups)

    said = {**labels, **annotations}
    given = "a pod that names its user by " + " and ".join(f"{key} {text}" for key, text in said.items())
    given = given if said else "a pod that names no user"
    return Case("1", given, "it is created", f"its application is of {user} in {groups}", run)


def _namespace_case(annotations: dict[str, str], expected: dict[str, Any]) -> Case:
    def run(k: Place) -> None:
        k.plane.patch(k.path, {"metadata": {"annotations": annotations}})
        # The annotation and the pod come by two watches, and the quota is read when the application is made.
        queue = comes(lambda: _queue_with(k, expected), told=k.told)
        assert queue

    then = f"the queue of its namespace has {expected}"
    return Case("1", f"a namespace with {annotations}", "an application is created", then, run)


def _queue_with(k: Place, expected: dict[str, Any]) -> bool:
    """Make one more application, and return whether the queue of its namespace is as expected."""
    name = f"p{len(k.pods())}"
    k.pod(name, app=f"{k.name}-{name}")
    k.application(f"{k.name}-{name}")
    queue = k.licorne.queue(f"root.{k.name}") or {}
    return all(queue.get(key) == value for key, value in expected.items())


def _policy_case(spec: dict[str, Any], priority: str) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, **spec)
        assert k.item(k.name)["priority"] == priority

    return Case("1", f"a pod with {spec or 'no priority'}", "it is created", f"its priority is {priority}", run)


CASES += [_id_case(*row) for row in APPLICATION_IDS]
CASES += [_queue_case(*row) for row in QUEUES]
CASES += [_user_case(*row) for row in USERS]
CASES += [_namespace_case(*row) for row in NAMESPACES]
CASES += [_policy_case(*row) for row in POLICIES]


@CASES("1", "a pod of another scheduler", "it is created", "licorne leaves it alone")
def _(k: Place) -> None:
    k.pod("other", schedulerName="default-scheduler")
    k.pod("ours", app=k.name)
    k.bound("ours")
    k.waits("other")


@CASES("1", "an application of a pod", "a pod of another namespace has the same id", "both are one application")
def _(k: Place) -> None:
    k.pod(app=k.name, queue="root.open")
    other = Place(k.plane, k.licorne, k.name + "-other")
    other.pod("q", app=k.name, queue="root.small")
    other.bound("q")
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.open", 2)
    other.close()


@CASES("1", "two pods of one application", "the second names another queue and user", "those of the first count")
def _(k: Place) -> None:
    k.pod("first", app=k.name, queue="root.open", labels={Y + "username": "ann"})
    k.bound("first")
    k.pod("second", app=k.name, queue="root.small", labels={Y + "username": "bob"})
    k.bound("second")
    found = k.application(k.name)
    assert (found["queueName"], found["user"]) == ("root.open", "ann")


@CASES("1", "a pod whose keys for the id differ", "it is created", "an event says which counts")
def _(k: Place) -> None:
    k.pod(app=k.name, labels={Y + "app-id": k.name + "-counts"})
    event = k.event("Scheduling", "multiple 'app-id'", k.name + "-counts", "(Label) applicationId: " + k.name)
    assert (event.type, event.action) == ("Warning", "Scheduling")


@CASES("1", "a pod whose keys for the queue differ", "it is created", "an event says which counts")
def _(k: Place) -> None:
    k.pod(app=k.name, queue="root.small", labels={Y + "queue": "root.open"})
    event = k.event("Scheduling", "multiple 'queue'", "root.open", "(Label) queue: root.small")
    assert (event.type, event.action) == ("Warning", "Scheduling")


@CASES("1", "a namespace with a parent queue", "an application is created", "its queue is made below that parent")
def _(k: Place) -> None:
    k.plane.patch(k.path, {"metadata": {"annotations": {Y + "parentqueue": "root.tenants"}}})
    number = iter(range(100))

    def placed() -> bool:
        app = f"{k.name}-{next(number)}"
        k.pod(app, app=app)
        return bool(k.application(app)["queueName"] == f"root.tenants.{k.name}")

    comes(placed, told=k.told)


@CASES("1", "a quota of a namespace", "its annotation changes", "it counts with the next application")
def _(k: Place) -> None:
    for cpus in (3, 5):
        k.plane.patch(k.path, {"metadata": {"annotations": {Y + "namespace.quota": json.dumps({"cpu": cpus})}}})
        comes(lambda cpus=cpus: _queue_with(k, {"maxResource": {"vcore": 1000 * cpus}}), told=k.told)  # type: ignore[misc]


@CASES("1", "a pod with labels", "it is created", "its ask has them, namespace and name as tags")
def _(k: Place) -> None:
    k.pod(app=k.name, labels={"example.com/team": "red"})
    tags = k.item(k.name)["allocationTags"]
    expected = {
        "kubernetes.io/meta/namespace": k.name,
        "kubernetes.io/meta/podName": "p",
        "kubernetes.io/label/example.com/team": "red",
        "kubernetes.io/label/applicationId": k.name,
    }
    assert expected.items() <= tags.items()


@CASES("1", "a DaemonSet", "its controller makes pods", "each requires its node, and runs there or waits")
def _(k: Place) -> None:
    large, little = k.node("large"), k.node("little", amounts={"cpu": "1"})
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "2"}}}
    labels = {"applicationId": k.name}
    spec = {"schedulerName": k.scheduler, "containers": [container], **k.there}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    k.plane.create(f"/apis/apps/v1/namespaces/{k.name}/daemonsets", body)
    comes(lambda: sorted(k.pods().values()) == ["", large], told=k.told)
    (waiting,) = (name for name, node in k.pods().items() if not node)
    assert k.item(k.name, waiting)["requiredNodeId"] == little
    k.waits(waiting)


@CASES("1", "a namespace of a long name", "a pod without an id is created", "the id is cut to 63 characters")
def _(k: Place) -> None:
    other = Place(k.plane, k.licorne, f"{k.name}-" + "n" * (60 - len(k.name)))
    try:
        other.pod()
        app = f"yunikorn-{other.name}-autogen"[:63]
        assert other.item(app)["allocationTags"]["kubernetes.io/meta/namespace"] == other.name
    finally:
        other.close()


@CASES("1", "a namespace with all that it may say", "an application is created", "its queue has all of it")
def _(k: Place) -> None:
    said = {
        "namespace.quota": '{"cpu":"8"}',
        "namespace.guaranteed": '{"cpu":"2"}',
        "namespace.maxApps": "9",
        "parentqueue": "root.tenants",
    }
    k.plane.patch(k.path, {"metadata": {"annotations": {Y + key: value for key, value in said.items()}}})
    expected = {"maxResource": {"vcore": 8000}, "guaranteedResource": {"vcore": 2000}, "maxRunningApps": 9}
    number = iter(range(100))

    def made() -> bool:
        app = f"{k.name}-{next(number)}"
        k.pod(app, app=app)
        k.application(app)
        queue = k.licorne.queue(f"root.tenants.{k.name}") or {}
        return all(queue.get(key) == value for key, value in expected.items())

    comes(made, told=k.told)


@CASES("1", "an application of a pod", "REST is asked", "it was submitted when the pod was created")
def _(k: Place) -> None:
    k.pod(app=k.name)
    submitted_ns = k.application(k.name)["submissionTime"]
    created = datetime.fromisoformat((k.find() or {})["metadata"]["creationTimestamp"])
    assert submitted_ns == int(created.timestamp()) * 10**9


MEMBER: Final = {Y + "task-group-name": "g"}
HOLDS: Final = {"taskGroupName": "g", "placeholder": True}
# Labels, annotations; what the ask of the pod has in REST.
ASKS: Final[list[tuple[dict[str, str], dict[str, str], dict[str, Any]]]] = [
    ({}, MEMBER, {"taskGroupName": "g"}),
    ({}, {"internal.yunikorn.apache.org/placeholder": "true", **MEMBER}, HOLDS),
    ({}, {Y + "placeholder": "true", **MEMBER}, HOLDS),
    ({"placeholder": "true"}, MEMBER, HOLDS),
    ({}, {Y + "ignore-application": "true"}, {}),
]


def _ask_case(labels: dict[str, str], annotations: dict[str, str], expected: dict[str, Any]) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, labels=labels, annotations=annotations)
        k.bound("p")
        found = k.item(k.name)
        names = ("taskGroupName", "placeholder")
        assert {name: found[name] for name in names if found.get(name)} == expected

    key = [*labels, *annotations][0]
    then = f"its ask has {expected}" if expected else "it is scheduled as any other"
    return Case("1", f"a pod with the {'label' if labels else 'annotation'} {key}", "it is created", then, run)


CASES += [_ask_case(*row) for row in ASKS]


@CASES(
    "1", "a pod that must be on a node of a name, and no DaemonSet", "it is created", "it does not require that node"
)
def _(k: Place) -> None:
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"{k.name}-none"]}]}
    k.pod(app=k.name, affinity=affinity(fields))
    assert not k.item(k.name).get("requiredNodeId")
    k.waits("p")


@CASES("1", "two pods of an application", "REST is asked", "only the first one is its originator")
def _(k: Place) -> None:
    for name in ("z-first", "a-second"):
        k.pod(name, app=k.name)
        k.bound(name)
    assert k.item(k.name, "z-first").get("originator") is True
    assert not k.item(k.name, "a-second").get("originator")


@CASES("1", "a pod with scheduling gates", "these are removed", "it is scheduled then, and not before")
def _(k: Place) -> None:
    k.pod("gated", app=k.name, schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}])
    k.waits("gated")
    k.change("gated", [{"op": "remove", "path": "/spec/schedulingGates"}], kind="json-patch")
    k.bound("gated")


GATE: Final = [{"name": "example.com/a"}]


@CASES(
    "1", "a pod with a gate, the first of its application", "a second one names another queue", "the first one says it"
)
def _(k: Place) -> None:
    k.pod("gated", app=k.name, queue="root.open", labels={Y + "username": "ann"}, schedulingGates=GATE)
    k.pod("second", app=k.name, queue="root.small", labels={Y + "username": "bob"})
    k.bound("second")
    found = k.application(k.name)
    assert (found["queueName"], found["user"], len(found["allocations"])) == ("root.open", "ann", 1)
    assert not found.get("requests")
    k.change("gated", {"spec": {"schedulingGates": None}})
    k.bound("gated")
    assert k.application(k.name)["queueName"] == "root.open"


@CASES("1", "a pod with a gate, the second of its application", "it names another queue", "the first one says it")
def _(k: Place) -> None:
    k.pod("first", app=k.name, queue="root.open")
    k.pod("gated", app=k.name, queue="root.small", schedulingGates=GATE)
    k.bound("first")
    k.waits("gated")
    k.change("gated", {"spec": {"schedulingGates": None}})
    k.bound("gated")
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.open", 2)


@CASES(
    "1", "a pod with a gate, alone in its application", "it is created", "there is no application before the gate goes"
)
def _(k: Place) -> None:
    k.pod(app=k.name, schedulingGates=GATE)
    k.pod("other", app=f"{k.name}-other")
    k.bound("other")
    assert k.licorne.application(k.name) is None
    k.change("p", {"spec": {"schedulingGates": None}})
    k.bound("p")
    assert len(k.application(k.name)["allocations"]) == 1


@CASES(
    "1", "annotations of the admission controller on a namespace", "a pod is created", "it is scheduled all the same"
)
def _(k: Place) -> None:
    said = {Y + "namespace.enableYuniKorn": "false", Y + "namespace.generateAppId": "false"}
    k.plane.patch(k.path, {"metadata": {"annotations": said}})
    k.pod()
    k.bound("p")
    assert k.item(f"yunikorn-{k.name}-autogen")
