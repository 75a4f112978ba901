"""docs/spec/k8shim.md, section 6: the conditions of pods that wait, as autoscalers read them, and events that no other case has."""

from __future__ import annotations

from typing import Any, Final

from kube.cluster import comes

from . import Cases, Place
from .gangs import gang, group, too_large

CASES = Cases()
EVENTS: Final = {"licorne.yunikorn-events": "true"}


def told(k: Place, name: str = "p") -> tuple[str, str]:
    """Return status and reason of the condition PodScheduled of a pod; empty if it has none."""
    found = k.condition("PodScheduled", name) or {}
    return found.get("status", ""), found.get("reason", "")


@CASES("6", "a pod that fits on no node", "a node with room comes", "it is Unschedulable, and not any more")
def _unschedulable(k: Place) -> None:
    k.node("small", amounts={"cpu": "1"})
    k.pod(app=k.name, cpu="2", **k.there)
    comes(lambda: told(k) == ("False", "Unschedulable"), told=k.told)
    assert k.event("PodUnschedulable", "", name="p").type == "Normal"
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
    k.alone(EVENTS)
    k.pod(app=k.name, schedulingGates=[{"name": "case.example/later"}])
    assert k.event("Scheduling", "waiting for scheduling gates: case.example/later", name="p").type == "Normal"
    k.waits("p")
    assert told(k) == ("False", "SchedulingGated")
    k.change("p", {"spec": {"schedulingGates": None}})
    k.bound("p")
    comes(lambda: told(k)[0] == "True", told=k.told)


@CASES("6", "a Soft gang without room, with YuniKorn's events", "its time is over", "an event on its pod tells it")
def _timed_out(k: Place) -> None:
    k.alone(EVENTS)
    too_large(k, "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Soft")
    event = k.event("GangScheduling", "placeholder has been timed out", name="p")
    assert (event.type, event.action) == ("Warning", "PlaceholderTimeOut")


@CASES("6", "a Hard gang without room, with YuniKorn's events", "its time is over", "an event on its pod tells it")
def _failed(k: Place) -> None:
    k.alone(EVENTS)
    too_large(k, "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Hard")
    assert k.event("ApplicationFailed", "scheduling failed", name="p").type == "Warning"


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


@CASES("6", "the events of YuniKorn", "a node comes and goes", "events on the node say so")
def _nodes(k: Place) -> None:
    k.alone(EVENTS)
    node = k.node()

    def found() -> set[tuple[str, str]]:
        items = k.plane.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        return {(item["reason"], item["note"]) for item in items if item["regarding"].get("name") == node}

    added = {
        ("NodeAccepted", f"node {node} is accepted by the scheduler"),
        ("Informational", "Node added to the scheduler"),
    }
    comes(lambda: added <= found(), told=k.told)
    k.plane.delete(f"/api/v1/nodes/{node}")
    removed = {
        ("NodeDeleted", f"node {node} is deleted from the scheduler"),
        ("Informational", "Node removed from the scheduler"),
    }
    comes(lambda: removed <= found(), told=k.told)


@CASES("6", "the events of YuniKorn, and a full queue", "a pod of it ends", "events on both pods say so")
def _informed(k: Place) -> None:
    k.alone(EVENTS)
    k.pod("first", app=k.name, queue="root.small", cpu="800m")
    k.bound("first")
    k.pod(app=k.name, queue="root.small", cpu="800m")
    k.event("Informational", f"Request '{k.uid()}' does not fit in queue 'root.small'", name="p")
    k.change("first", {"status": {"phase": "Succeeded"}}, "status")
    assert k.event("TaskCompleted", name="first").note == f"Task {k.name}/first is completed"
    k.event("Informational", f"Request '{k.uid()}' has become schedulable in queue 'root.small'", name="p")
    k.bound("p")


@CASES("6", "the events of YuniKorn", "an application is refused", "its pod fails, and an event says so")
def _task_failed(k: Place) -> None:
    k.alone(EVENTS)
    k.pod(app=k.name, queue="root.small", annotations=gang(group(2, "800m")))
    event = k.event("TaskFailed", name="p")
    assert (event.type, event.note) == ("Normal", f"Task {k.name}/p is failed")
