"""docs/spec/k8shim.md, section 6: the conditions of pods that wait, as autoscalers read them, and events that no other case has."""

from __future__ import annotations

import re
from typing import Any, Final

from kube.cluster import Object, Y, comes

from . import Case, Cases, Place
from .gangs import gang, group

CASES = Cases()


def told(k: Place, name: str = "p") -> tuple[str, str]:
    """Return status and reason of the condition PodScheduled of a pod; empty if it has none."""
    found = k.condition("PodScheduled", name) or {}
    return found.get("status", ""), found.get("reason", "")


def events_of_cluster(k: Place, kind: str, name: str) -> list[Object]:
    """Return the events about an object that is in no namespace; the API server has these in the namespace `default`."""
    items = k.plane.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    found = [item for item in items if item["regarding"]["kind"] == kind]
    return [item for item in found if item["regarding"].get("name") == name]


@CASES("6", "a pod that fits on no node", "a node with room comes", "it is Unschedulable, and not any more")
def _unschedulable(k: Place) -> None:
    k.node("small", amounts={"cpu": "1"})
    k.pod(app=k.name, cpu="2", **k.there)
    comes(lambda: told(k) == ("False", "Unschedulable"), told=k.told)
    assert k.event("FailedScheduling", "", name="p").type == "Warning"
    k.node("large", amounts={"cpu": "4"})
    k.bound("p")
    comes(lambda: told(k)[0] == "True", told=k.told)


@CASES("6", "a queue that is full", "one more pod is created", "it is skipped, and asks an autoscaler for nothing")
def _skipped(k: Place) -> None:
    k.alone({})
    k.pod("first", app=k.name, queue="root.small", cpu="800m")
    k.bound("first")
    k.pod(app=k.name, queue="root.small", cpu="800m")
    comes(lambda: told(k) == ("False", "SchedulingSkipped"), told=k.told)
    k.delete("first")
    k.bound("p")
    comes(lambda: told(k)[0] == "True", told=k.told)


ERRORS: Final[list[tuple[str, str, str, str]]] = [
    ("an amount that cannot be read", "cpu", "9223372036854775807", "FailedScheduling"),
    ("an amount that the scheduler refuses", "memory", "8E", "TaskRejected"),
]


def _error(resource: str, amount: str, reason: str) -> Any:
    def run(k: Place) -> None:
        requests = {resource: amount}
        k.pod(app=k.name, containers=[{"name": "c", "image": "none", "resources": {"requests": requests}}])
        comes(lambda: told(k) == ("False", "SchedulerError"), told=k.told)
        assert k.event(reason, "", name="p").type == "Warning"
        k.waits("p")

    return run


for _what, _resource, _amount, _reason in ERRORS:
    CASES("6", f"a pod with {_what}", "it is created", "its condition says SchedulerError")(
        _error(_resource, _amount, _reason)
    )


@CASES("6", "a pod with a scheduling gate", "the gate goes", "the API server's condition stays until then, and it runs")
def _gated(k: Place) -> None:
    k.pod(app=k.name, schedulingGates=[{"name": "case.example/later"}])
    k.waits("p")
    assert told(k) == ("False", "SchedulingGated")
    k.change("p", {"spec": {"schedulingGates": None}})
    k.bound("p")
    comes(lambda: told(k)[0] == "True", told=k.told)


@CASES(
    "6", "a namespace that may have no more pods", "a gang is created", "its placeholders fail, and it goes on without"
)
def _not_created(k: Place) -> None:
    path = f"/api/v1/namespaces/{k.name}/resourcequotas"
    k.plane.create(path, {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}})
    comes(lambda: k.plane.get(f"{path}/one").get("status", {}).get("hard"), told=k.told)
    k.pod(app=k.name, annotations=gang(group(2)))
    event = k.event("GangScheduling", "fall back to normal scheduling", name="p")
    assert (event.type, event.action) == ("Warning", "PlaceholderCreateFailed")
    k.bound("p")


# Annotations of a namespace; those of them that cannot be read; what its queue has then.
UNREAD: Final[list[tuple[dict[str, str], list[str], dict[str, Any]]]] = [
    ({"namespace.quota": "{"}, ["namespace.quota"], {"maxResource": None}),
    (
        {"namespace.quota": '{"cpu":"much"}', "namespace.max.cpu": "2"},
        ["namespace.quota"],
        {"maxResource": None},
    ),
    (
        {"namespace.guaranteed": '["cpu"]', "namespace.quota": '{"cpu":"1"}'},
        ["namespace.guaranteed"],
        {"guaranteedResource": None, "maxResource": {"vcore": 1000}},
    ),
    (
        {"namespace.max.cpu": "two", "namespace.max.memory": "1Gi"},
        ["namespace.max.cpu"],
        {"maxResource": {"memory": 1 << 30}},
    ),
    ({"namespace.maxApps": "-7"}, ["namespace.maxApps"], {"maxRunningApps": None}),
    (
        {"namespace.maxApps": "some", "namespace.quota": "7"},
        ["namespace.quota", "namespace.maxApps"],
        {"maxRunningApps": None, "maxResource": None},
    ),
]


def unread_in(k: Place) -> set[str]:
    """Return what the events about the namespace name; those of other cases' licornes, which see it too, name the same."""
    notes = (event["note"].rpartition("do not count: ")[2] for event in events_of_cluster(k, "Namespace", k.name))
    return {re.sub(r" \(line \d+, column \d+: [^)]*\)", "", note).partition("; ")[0] for note in notes}


def _unread_case(annotations: dict[str, str], unread: list[str], expected: dict[str, Any]) -> Case:
    def run(k: Place) -> None:
        k.plane.patch(k.path, {"metadata": {"annotations": {Y + key: text for key, text in annotations.items()}}})
        event = comes(lambda: events_of_cluster(k, "Namespace", k.name), told=k.told)[0]
        assert (event["type"], event["reason"], event["action"]) == ("Warning", "InvalidAnnotation", "Scheduling")
        assert unread_in(k) == {", ".join(Y + key for key in unread)}
        k.pod(app=k.name)
        k.bound("p")
        queue = k.licorne.queue(f"root.{k.name}") or {}
        assert {key: queue.get(key) for key in expected} == expected

    given = f"a namespace with {annotations}"
    return Case("6", given, "licorne sees it", f"an event on it names {', '.join(unread)}", run)


CASES += [_unread_case(*row) for row in UNREAD]


@CASES(
    "6",
    "a namespace whose annotation cannot be read",
    "another cannot, either, and then both can",
    "an event each time",
)
def _again(k: Place) -> None:
    quota, apps = Y + "namespace.quota", Y + "namespace.maxApps"
    k.plane.patch(k.path, {"metadata": {"annotations": {quota: "{"}}})
    comes(lambda: unread_in(k) == {quota}, told=k.told)
    k.plane.patch(k.path, {"metadata": {"annotations": {apps: "x"}}})
    comes(lambda: unread_in(k) == {quota, f"{quota}, {apps}"}, told=k.told)
    k.plane.patch(k.path, {"metadata": {"annotations": {quota: '{"cpu":"1"}', apps: "1"}}})
    k.pod(app=k.name)
    k.bound("p")
    assert unread_in(k) == {quota, f"{quota}, {apps}"}


@CASES(
    "6", "a queue that there is not, in a configuration that makes none", "a pod names it", "it fails, with the reason"
)
def _rejected(k: Place) -> None:
    only = "partitions: [{name: default, placementrules: [{name: provided}], queues: [{name: root, submitacl: '*'}]}]"
    k.alone({"queues.yaml": only})
    k.pod(app=k.name, queue="root.none")
    found = comes(lambda: (pod := k.find()) is not None and pod["status"]["phase"] == "Failed" and pod, told=k.told)
    assert found
    assert found["status"]["reason"] == "ApplicationRejected"
    assert k.name in found["status"]["message"]
