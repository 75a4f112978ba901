"""docs/spec/k8shim.md, section 3: gangs, with placeholder pods and without."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kube.cluster import Object, Y, comes

from . import Case, Cases, Place
from .place import QUEUES
from .placing import HOSTNAME, expressions

CASES = Cases()
PLACEHOLDER: Final = "internal.yunikorn.apache.org/placeholder"
PARAMETERS: Final = Y + "schedulingPolicyParameters"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def group(members: int = 2, cpu: str = "100m", name: str = "g", **more: Any) -> Object:
    """Return a task group."""
    return {"name": name, "minMember": members, "minResource": {"cpu": cpu, "memory": "64Mi"}, **more}


def gang(*groups: Object, parameters: str = "", member: str = "g") -> dict[str, str]:
    """Return the annotations of a pod of a gang."""
    made = {Y + "task-groups": json.dumps(list(groups) or [group()]), Y + "task-group-name": member}
    return {**made, PARAMETERS: parameters} if parameters else made


def placeholders(k: Place) -> list[Object]:
    """Return the placeholder pods of the namespace."""
    items = k.plane.get(f"{k.path}/pods")["items"]
    return [item for item in items if item["metadata"].get("annotations", {}).get(PLACEHOLDER) == "true"]


def too_large(k: Place, parameters: str) -> None:
    """Create the first pod of a gang for which its node has no room, and wait until placeholders are there."""
    k.node(amounts={"cpu": "1"})
    room = {"nodeSelector": k.there["nodeSelector"], "tolerations": k.there["tolerations"]}
    k.pod(app=k.name, annotations=gang(group(3, "400m", **room), parameters=parameters), **k.there)
    comes(lambda: len(placeholders(k)) == 3, told=k.told)
    k.waits("p")


# What is wrong with the annotation.
BAD_GROUPS: Final = [
    ("no JSON", "{"),
    ("no list", '{"name": "g"}'),
    ("a group without a name", json.dumps([group(name="")])),
    ("a group of no members", json.dumps([group(0)])),
    ("a group of -1 members", json.dumps([group(-1)])),
    ("a group without resources", '[{"name": "g", "minMember": 1}]'),
    ("an amount that is none", json.dumps([group(cpu="much")])),
    ("a negative amount", json.dumps([group(cpu="-1")])),
    ("amounts that are beyond all bounds together", json.dumps([group(9000, cpu="9223372036854775")])),
    ("no group", "[]"),
    ("a name twice", json.dumps([group(1), group(1, "200m")])),
    ("a key of another case", json.dumps([group()]).replace("minMember", "MinMember")),
    ("101 groups", json.dumps([group(1, name=f"g{number}") for number in range(101)])),
    ("a node selector that is a list", json.dumps([group(nodeSelector=["a"])])),
    ("tolerations that are an object", json.dumps([group(tolerations={"operator": "Exists"})])),
    ("an affinity that is a text", json.dumps([group(affinity="near")])),
]


def _bad_case(what: str, text: str) -> Case:
    def run(k: Place) -> None:
        k.pod(app=k.name, annotations={Y + "task-groups": text, Y + "task-group-name": "g"})
        event = k.event("GangScheduling", "unable to get taskGroups for pod, reason: ", name="p")
        assert (event.type, event.action) == ("Warning", "TaskGroupsError")
        k.bound("p")
        assert not placeholders(k)

    return Case(
        "3", f"a pod whose task groups have {what}", "it is created", "an event says so, and it runs alone", run
    )


CASES += [_bad_case(*row) for row in BAD_GROUPS]


@CASES("3", "a gang of three", "its first pod is created", "placeholders hold room, and its pods take their places")
def _(k: Place) -> None:
    k.pod("first", app=k.name, annotations=gang(group(3)))
    k.bound("first")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    for name in ("second", "third"):
        k.pod(name, app=k.name, annotations=gang(group(3)))
    comes(lambda: sorted(k.pods()) == ["first", "second", "third"] and all(k.pods().values()), told=k.told)
    (data,) = k.application(k.name)["placeholderData"]
    assert (data["taskGroupName"], data["count"], data["replaced"]) == ("g", 3, 3)


@CASES("3", "a gang of two groups", "its first pod is created", "each group has its placeholders")
def _(k: Place) -> None:
    groups = [group(1, name="driver"), group(2, name="executor", cpu="200m")]
    k.pod("driver", app=k.name, annotations=gang(*groups, member="driver"))
    k.bound("driver")

    def left() -> list[str]:
        return [pod["metadata"]["annotations"][Y + "task-group-name"] for pod in placeholders(k)]

    comes(lambda: left() == ["executor", "executor"], told=k.told)


@CASES("3", "a gang with all that groups may say", "placeholders are made", "they look as those of YuniKorn")
def _(k: Place) -> None:
    k.node(amounts={"cpu": "1"})
    more = {
        "labels": {"example.com/l": "1"},
        "annotations": {"example.com/a": "2"},
        "nodeSelector": k.there["nodeSelector"],
        "tolerations": k.there["tolerations"],
        "affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": expressions("disk", "Exists")}]}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    }
    given = gang(group(2, "800m", **more), parameters="placeholderTimeoutInSeconds=600 gangSchedulingStyle=Soft")
    app = k.name + "-with-an-id-that-is-longer-than-28"
    secrets: dict[str, Any] = {"imagePullSecrets": [{"name": "pull"}]}
    k.pod(app=app, queue="root.open", annotations=given, priorityClassName="cases-high", **secrets, **k.there)
    made = comes(lambda: len(found := placeholders(k)) == 2 and found, told=k.told)
    assert made
    meta, spec = made[0]["metadata"], made[0]["spec"]
    assert meta["name"].startswith(f"tg-{app[:28]}-g-")
    assert len(meta["name"].rpartition("-")[2]) == 10
    assert meta["labels"] == {"example.com/l": "1", Y + "app-id": app, **_queue_label(meta["labels"])}
    assert {"example.com/a": "2", PLACEHOLDER: "true", **given}.items() <= meta["annotations"].items()
    (owner,) = meta["ownerReferences"]
    assert (owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == ("p", False, True)
    (container,) = spec["containers"]
    requests = {"cpu": "800m", "memory": "64Mi"}
    assert (container["name"], container["image"]) == ("pause", "registry.k8s.io/pause:3.7")
    assert (container["imagePullPolicy"], container["resources"]["requests"]) == ("IfNotPresent", requests)
    assert container["resources"]["limits"] == requests
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    closed = {"privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}
    assert container["securityContext"] == {**closed, "capabilities": {"drop": ["ALL"]}}
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Never", 0)
    assert (spec["priorityClassName"], spec["imagePullSecrets"]) == ("cases-high", [{"name": "pull"}])
    assert (spec["schedulerName"], spec["nodeSelector"]) == ("yunikorn", k.there["nodeSelector"])
    assert k.there["tolerations"][0] in spec["tolerations"]
    assert not spec.get("hostNetwork")
    (preferred,) = spec["affinity"]["nodeAffinity"][PREFERRED]
    assert (preferred["weight"], preferred["preference"]["matchExpressions"][0]["key"]) == (7, "disk")
    (spread,) = spec["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "ScheduleAnyway")


def _queue_label(labels: dict[str, str]) -> dict[str, str]:
    """Return the label of the queue; it may be left out, because the queue of an application is that of its first pod."""
    return {key: text for key, text in labels.items() if key == Y + "queue" and text == "root.open"}


@CASES("3", "a Soft gang without room", "its time is over", "it goes on without, and an event says so")
def _(k: Place) -> None:
    too_large(k, "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Soft")
    event = k.event("GangScheduling", "resuming as non-gang application (SOFT)", name="p")
    assert (event.type, event.action) == ("Warning", "GangSchedulingFailed")
    k.bound("p")
    comes(lambda: not placeholders(k), told=k.told)


@CASES("3", "a Hard gang without room", "its time is over", "its pods fail with the reason")
def _(k: Place) -> None:
    too_large(k, "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Hard")
    found = comes(lambda: (pod := k.find()) is not None and pod["status"]["phase"] == "Failed" and pod, told=k.told)
    assert found
    status = found["status"]
    assert status["reason"] == "ResourceReservationTimeout"
    assert status["message"] == "Scheduling has timed out due to insufficient resources"
    comes(lambda: not placeholders(k), told=k.told)


def _timeout_case(parameters: str) -> Case:
    def run(k: Place) -> None:
        too_large(k, parameters)
        k.pod("other", app=k.name + "-other")
        k.bound("other")
        assert len(placeholders(k)) == 3
        assert not k.node_of("p")

    then = "they are passed over: 15 minutes, Soft"
    return Case("3", f"a gang with the parameters {parameters}", "its first pod is created", then, run)


CASES += [
    _timeout_case(parameters)
    for parameters in (
        "placeholderTimeoutInSeconds=soon gangSchedulingStyle=Loose one=two three",
        "placeholderTimeoutInSeconds=0",
        "placeholderTimeoutInSeconds=-1",
    )
]


@CASES("3", "a gang of a style that there is not", "its time is over", "it goes on without, as a Soft one")
def _(k: Place) -> None:
    too_large(k, "gangSchedulingStyle=hard what placeholderTimeoutInSeconds=3")
    k.bound("p")
    comes(lambda: not placeholders(k), told=k.told)


@CASES("3", "a group of a long name", "placeholders are made", "their names have its first 20 characters")
def _(k: Place) -> None:
    name = "n" * 25
    k.pod(app="a" * 30 + k.name, annotations=gang(group(2, name=name), member=name))
    meta = comes(lambda: placeholders(k), told=k.told)[0]["metadata"]
    assert re.fullmatch(f"tg-{'a' * 28}-{'n' * 20}-[0-9a-z]{{10}}", meta["name"])
    assert meta["annotations"][Y + "task-group-name"] == name


@CASES(
    "3", "a gang in a queue that may have as many pods as it has", "one more is created", "the gang runs, and it waits"
)
def _(k: Place) -> None:
    k.alone({"queues.yaml": QUEUES.replace("max: {vcore: 1}", "max: {pods: 3}")})
    k.pod("first", app=k.name, queue="root.small", annotations=gang(group(3)))
    k.bound("first")
    comes(lambda: len(placeholders(k)) == 2 and all(k.pods().values()), told=k.told)
    k.pod("more", app=f"{k.name}-more", queue="root.small")
    k.waits("more")
    k.pod("large", app=f"{k.name}-large", queue="root.small", annotations=gang(group(4)))
    comes(lambda: (k.find("large") or {})["status"].get("reason") == "ApplicationRejected", told=k.told)


@CASES(
    "3", "a gang whose pods are in two namespaces", "its first pod is created", "all placeholders are beside that one"
)
def _(k: Place) -> None:
    k.pod("first", app=k.name, annotations=gang(group(2)))
    k.bound("first")
    comes(lambda: len(placeholders(k)) == 1, told=k.told)
    other = Place(k.plane, k.licorne, f"{k.name}-other")
    try:
        other.pod("second", app=k.name, annotations=gang(group(2)))
        other.bound("second")
        comes(lambda: sorted(k.pods()) == ["first"], told=k.told)
        assert sorted(other.pods()) == ["second"]
    finally:
        other.close()


@CASES("3", "a gang whose first pod has a gate", "the gate goes", "room is reserved then, and not before")
def _(k: Place) -> None:
    k.pod("gated", app=k.name, annotations=gang(group(3)), schedulingGates=[{"name": "example.com/a"}])
    k.waits("gated")
    assert not placeholders(k)
    k.change("gated", {"spec": {"schedulingGates": None}})
    k.bound("gated")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)


@CASES(
    "3",
    "a Hard gang that fails, and a placeholder that ends slowly",
    "one more pod comes",
    "it waits, and is the next try",
)
def _(k: Place) -> None:
    too_large(k, "placeholderTimeoutInSeconds=6 gangSchedulingStyle=Hard")
    slow = next(pod["metadata"]["name"] for pod in placeholders(k) if pod["spec"].get("nodeName"))
    k.change(slow, {"metadata": {"finalizers": ["example.com/look"]}})
    comes(lambda: (k.find("p") or {})["status"].get("reason") == "ResourceReservationTimeout", told=k.told)
    assert k.find(slow)
    k.pod("late", app=k.name, **k.there)
    k.waits("late")
    k.change(slow, {"metadata": {"finalizers": None}})
    k.bound("late")


@CASES("3", "a gang whose pod is no member", "its first pod is created", "it waits for the room, and takes no place")
def _(k: Place) -> None:
    given = {Y + "task-groups": json.dumps([group(2)])}
    k.pod(app=k.name, annotations=given)
    k.bound("p")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)


@CASES("3", "a gang that reserves room", "its first pod is deleted", "its placeholders go too")
def _(k: Place) -> None:
    k.pod(app=k.name, annotations=gang(group(3)))
    k.bound("p")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    k.delete("p")
    comes(lambda: not k.pods(), told=k.told)


@CASES("3", "a gang that reserves room", "a placeholder is deleted by somebody", "another one takes its place")
def _(k: Place) -> None:
    too_large(k, "placeholderTimeoutInSeconds=600")
    lost = placeholders(k)[0]["metadata"]
    k.delete(lost["name"])

    def made_anew() -> bool:
        uids = {pod["metadata"]["uid"] for pod in placeholders(k)}
        return len(uids) == 3 and lost["uid"] not in uids

    comes(made_anew, told=k.told)


@CASES("3", "a gang larger than the quota of its queue", "its first pod is created", "it is refused, and the pod fails")
def _(k: Place) -> None:
    k.pod(app=k.name, queue="root.small", annotations=gang(group(2, "800m")))
    found = comes(lambda: (pod := k.find()) is not None and pod["status"]["phase"] == "Failed" and pod, told=k.told)
    assert found
    assert found["status"]["reason"] == "ApplicationRejected"
    assert found["status"]["message"]


@CASES("3", "gangs switched off by the configuration", "a pod of a gang is created", "it runs alone")
def _(k: Place) -> None:
    k.alone({"service.disableGangScheduling": "true"})
    k.pod(app=k.name, annotations=gang(group(3)))
    k.bound("p")
    k.pod("more", app=k.name)
    k.bound("more")
    assert sorted(k.pods()) == ["more", "p"]


@CASES("3", "a queue of gangs without placeholders", "all members but one are there", "all wait, and go together")
def _(k: Place) -> None:
    for name in ("first", "second"):
        k.pod(name, app=k.name, queue="root.whole", annotations=gang(group(3)))
    k.waits("first", "second")
    k.pod("third", app=k.name, queue="root.whole", annotations=gang(group(3)))
    k.bound("first", "second", "third")
    assert sorted(k.pods()) == ["first", "second", "third"]


@CASES("3", "a pod annotated gang.scheduling: atomic", "all members but one are there", "all wait, and go together")
def _(k: Place) -> None:
    given = {**gang(group(2)), "gang.scheduling": "atomic"}
    k.pod("first", app=k.name, annotations=given)
    k.waits("first")
    k.pod("second", app=k.name, annotations=given)
    k.bound("first", "second")


@CASES("3", "a gang without placeholders that does not fit", "room is made", "no member runs before, all run then")
def _(k: Place) -> None:
    k.node(amounts={"cpu": "1"})
    k.pod("before", app=k.name + "-before", cpu="600m", **k.there)
    k.bound("before")
    for name in ("first", "second"):
        k.pod(name, app=k.name, queue="root.whole", cpu="400m", annotations=gang(group(2, "400m")), **k.there)
    k.waits("first", "second")
    k.delete("before")
    k.bound("first", "second")
