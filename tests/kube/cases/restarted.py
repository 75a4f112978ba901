"""docs/spec/k8shim.md, section 10: what has changed while licorne was away, and what it knows again. Each case has a licorne of its own."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import licorne
from kube.cluster import comes

from . import Cases, Place
from .gangs import gang, group, placeholders, too_large
from .place import QUEUES
from .placing import HOSTNAME, occupied
from .running import LARGER

CASES = Cases()
TIGHT: Final = QUEUES.replace("max: {vcore: 1}", "max: {vcore: 500m}")
"""The queues that cases share, where `root.small` may take half as much."""


@contextmanager
def away(k: Place) -> Iterator[None]:
    """Kill licorne, and start it again at the end."""
    k.licorne.end(signal.SIGKILL)
    yield
    k.licorne.started()


def used(k: Place, queue: str) -> int:
    """Return how much CPU the pods of a queue take, in thousandths."""
    return int(((k.licorne.queue(queue) or {})["allocatedResource"] or {}).get("vcore", 0))


# -- nodes ------------------------------------------------------------------------------------------------------------


@CASES(
    "10",
    "a node on which a pod runs",
    "it is deleted while licorne is away, and made again later",
    "nothing is bound there, and its pod counts when it is back",
)
def _(k: Place) -> None:
    k.alone({})
    one, two = k.node("one"), k.node("two")
    tolerations = k.there["tolerations"]
    k.pod("runs", app=k.name, queue="root.small", cpu="800m", nodeSelector={HOSTNAME: one}, tolerations=tolerations)
    assert k.bound("runs") == [one]
    with away(k):
        k.plane.delete(f"/api/v1/nodes/{one}")
        k.pod("p", app=f"{k.name}-p", queue="root.small", cpu="800m", **k.there)
        k.pod("there", app=f"{k.name}-there", nodeSelector={HOSTNAME: one}, tolerations=tolerations)
    assert k.bound("p") == [two]
    assert k.licorne.node(one) is None
    assert used(k, "root.small") == 800
    k.waits("there")
    assert k.node_of("runs") == one
    k.node("one")
    comes(lambda: used(k, "root.small") == 1600, told=k.told)
    assert k.bound("there") == [one]
    assert [item["nodeId"] for item in k.application(k.name)["allocations"]] == [one]


@CASES(
    "10", "a node on which a pod runs", "it is cordoned while licorne is away", "it counts, and no other is bound there"
)
def _(k: Place) -> None:
    k.alone({})
    node = k.node()
    k.pod("runs", app=k.name, cpu="6", **k.there)
    k.bound("runs")
    with away(k):
        k.change_node(node, {"spec": {"unschedulable": True}})
        k.pod("p", app=f"{k.name}-p", cpu="2", **k.there)
    k.waits("p")
    assert [item["nodeId"] for item in k.application(k.name)["allocations"]] == [node]
    k.change_node(node, {"spec": {"unschedulable": None}})
    assert k.bound("p") == [node]
    k.pod("more", app=f"{k.name}-more", **k.there)
    k.waits("more")


@CASES("10", "a cordoned node", "it is uncordoned while licorne is away", "a pod that waited runs there")
def _(k: Place) -> None:
    k.alone({})
    node = k.node(unschedulable=True)
    k.pod("p", app=k.name, **k.there)
    k.waits("p")
    with away(k):
        k.change_node(node, {"spec": {"unschedulable": None}})
    assert k.bound("p") == [node]


# -- pods -------------------------------------------------------------------------------------------------------------


@CASES(
    "10", "a node", "a pod of another scheduler comes there while licorne is away, and another goes", "both are known"
)
def _(k: Place) -> None:
    k.alone({})
    node = k.node()
    k.pod("goes", cpu="5", schedulerName="default-scheduler", nodeName=node)
    comes(lambda: occupied(k, node) == 5000, told=k.told)
    with away(k):
        k.delete("goes")
        k.pod("comes", cpu="6", schedulerName="default-scheduler", nodeName=node)
        k.pod("p", app=k.name, cpu="3", **k.there)
        k.pod("fits", app=k.name, cpu="2", **k.there)
    k.bound("fits")
    assert occupied(k, node) == 6000
    k.waits("p")
    k.delete("comes")
    k.bound("p")


@CASES("10", "a pod that runs", "it ends by itself while licorne is away", "its room is free after the start")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("first", app=k.name, cpu="8", **k.there)
    k.bound("first")
    comes(lambda: (k.find("first") or {})["status"].get("phase") == "Running", told=k.told)
    with away(k):
        k.change("first", {"status": {"phase": "Succeeded"}}, "status")
        k.pod("second", app=f"{k.name}-second", cpu="8", **k.there)
    k.bound("second")
    assert k.licorne.application(k.name) is None


@CASES("10", "a pod with a scheduling gate", "the gate goes while licorne is away", "the pod runs after the start")
def _(k: Place) -> None:
    k.alone({})
    k.pod("p", app=k.name, schedulingGates=[{"name": "example.com/a"}])
    k.waits("p")
    with away(k):
        k.change("p", {"spec": {"schedulingGates": None}})
    k.bound("p")


@CASES("10", "two pods that wait", "licorne is killed and starts", "the older one is placed first")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("runs", app=f"{k.name}-runs", cpu="8", **k.there)
    k.bound("runs")
    k.pod("z-older", app=k.name, cpu="8", **k.there)
    time.sleep(1.1)  # an API server's times are in whole seconds
    k.pod("a-younger", app=k.name, cpu="8", **k.there)
    with away(k):
        pass
    k.waits("z-older", "a-younger")
    k.delete("runs")
    k.bound("z-older")
    k.waits("a-younger")


@CASES("10", "a pod that runs and one that waits", "licorne starts", "only the allocation has the tag creationTime")
def _(k: Place) -> None:
    k.alone({})
    k.node()
    k.pod("runs", app=k.name, cpu="6", **k.there)
    k.bound("runs")
    k.pod("waits", app=k.name, cpu="6", **k.there)
    with away(k):
        pass
    created = datetime.fromisoformat((k.find("runs") or {})["metadata"]["creationTimestamp"])
    assert k.item(k.name, "runs")["allocationTags"]["creationTime"] == str(int(created.timestamp()))
    assert "creationTime" not in k.item(k.name, "waits")["allocationTags"]


@CASES(
    "10",
    "two victims",
    "a budget that allows no disruption of one is made while licorne is away",
    "the other one goes when room is needed",
)
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "4"})
    lent: dict[str, Any] = {"app": f"{k.name}-lent", "queue": "root.shares.lender"}
    k.pod("driver", **lent)
    k.bound("driver")
    for name in ("first", "second"):
        k.pod(name, cpu="2", labels={"victim": name}, **lent, **k.there)
        k.bound(name)
    with away(k):
        spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"victim": "second"}}}
        body = {"metadata": {"name": "guarded"}, "spec": spec}
        k.plane.create(f"/apis/policy/v1/namespaces/{k.name}/poddisruptionbudgets", body)
        k.pod("owner", app=f"{k.name}-owner", queue="root.shares.owner", cpu="2", **k.there)
    k.bound("owner")
    assert sorted(k.pods()) == ["driver", "owner", "second"]


# -- applications and gangs -------------------------------------------------------------------------------------------


@CASES(
    "10",
    "two pods of one application that name different queues",
    "the first is deleted while licorne is away",
    "the oldest one that is left says the queue",
)
def _(k: Place) -> None:
    k.alone({})
    k.pod("z-first", app=k.name, queue="root.open")
    time.sleep(1.1)
    k.pod("a-second", app=k.name, queue="root.small", labels={"yunikorn.apache.org/username": "ann"})
    k.bound("z-first", "a-second")
    with away(k):
        pass
    found = k.application(k.name)
    assert (found["queueName"], found["user"], len(found["allocations"])) == ("root.open", "nobody", 2)
    with away(k):
        k.delete("z-first")
    found = k.application(k.name)
    assert (found["queueName"], found["user"], len(found["allocations"])) == ("root.small", "ann", 1)


@CASES("10", "a gang of which two pods run", "licorne is killed and starts", "the first is its originator, as before")
def _(k: Place) -> None:
    k.alone({})
    k.pod("z-first", app=k.name, annotations=gang(group(3)))
    k.bound("z-first")
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    k.pod("a-second", app=k.name, annotations=gang(group(3)))
    k.bound("a-second")
    comes(lambda: len(placeholders(k)) == 1, told=k.told)

    def originators() -> list[str]:
        items = k.application(k.name)["allocations"]
        return [item["allocationTags"]["kubernetes.io/meta/podName"] for item in items if item.get("originator")]

    comes(lambda: originators() == ["z-first"], told=k.told)
    with away(k):
        pass
    comes(lambda: originators() == ["z-first"], told=k.told)
    assert len(placeholders(k)) == 1


@CASES("10", "a gang that runs", "the max of its queue is made smaller while licorne is away", "it goes on, and counts")
def _(k: Place) -> None:
    k.alone({})
    for name in ("first", "second"):
        k.pod(name, app=k.name, queue="root.small", cpu="400m", annotations=gang(group(2, "400m")))
    k.bound("first", "second")
    with away(k):
        k.configure(**{"queues.yaml": TIGHT})
    assert (k.licorne.queue("root.small") or {})["maxResource"] == {"vcore": 500}
    found = k.application(k.name)
    assert (found["queueName"], len(found["allocations"])) == ("root.small", 2)
    k.pod("more", app=f"{k.name}-more", queue="root.small")
    k.waits("more")
    assert [pod["status"]["phase"] for pod in (k.find("first"), k.find("second")) if pod] == ["Running", "Running"]


@CASES(
    "10",
    "a gang of which nothing runs yet",
    "the max of its queue is made smaller than it while licorne is away",
    "it is refused",
)
def _(k: Place) -> None:
    k.alone({"queues.yaml": LARGER})
    k.node(amounts={"cpu": "500m"})
    given = gang(group(2, "400m", **{key: k.there[key] for key in ("nodeSelector", "tolerations")}))
    k.pod("p", app=k.name, queue="root.small", cpu="400m", annotations=given, **k.there)
    comes(lambda: len(placeholders(k)) == 2, told=k.told)
    k.licorne.end(signal.SIGKILL)
    for pod in placeholders(k):
        k.delete(pod["metadata"]["name"])
    k.configure(**{"queues.yaml": TIGHT})
    k.licorne.started()
    found = comes(lambda: (pod := k.find("p")) is not None and pod["status"]["phase"] == "Failed" and pod, told=k.told)
    assert found
    assert found["status"]["reason"] == "ApplicationRejected"


@CASES("10", "a Soft gang that has given up, and waits", "licorne is killed and starts", "no placeholder is made again")
def _(k: Place) -> None:
    k.alone({})
    k.node(amounts={"cpu": "1"})
    room = {key: k.there[key] for key in ("nodeSelector", "tolerations")}
    parameters = "placeholderTimeoutInSeconds=3 gangSchedulingStyle=Soft"
    k.pod("p", app=k.name, cpu="2", annotations=gang(group(3, "400m", **room), parameters=parameters), **k.there)
    comes(lambda: len(placeholders(k)) == 3, told=k.told)
    k.event("GangScheduling", "resuming as non-gang application (SOFT)", name="p")
    comes(lambda: not placeholders(k), told=k.told)
    comes(lambda: (k.condition("PodScheduled") or {}).get("reason") == "Unschedulable", told=k.told)
    with away(k):
        pass
    assert k.item(k.name)["resource"]["vcore"] == 2000
    k.waits("p")
    made = [event.times for event in k.events("GangScheduling") if event.action == "CreatingPlaceholders"]
    assert (made, placeholders(k)) == ([1], [])
    k.set_cpus(f"{k.name}-n", 2)
    k.bound("p")


@CASES("10", "a gang that reserves room", "its first pod is deleted while licorne is away", "no placeholder stays")
def _(k: Place) -> None:
    k.alone({})
    too_large(k, "placeholderTimeoutInSeconds=600")
    with away(k):
        k.delete("p")
    comes(lambda: not k.pods(), told=k.told)
    comes(lambda: not (k.licorne.application(k.name) or {}).get("requests"), told=k.told)
    time.sleep(1.0)
    assert not k.pods()


@CASES("10", "a licorne that runs", "REST is asked for the cluster", "it has its id, its version and its processor")
def _(k: Place) -> None:
    k.alone({"service.clusterId": "mine"})
    (cluster,) = k.licorne.ask("/ws/v1/clusters")
    (build,) = cluster["rmBuildInformation"]
    assert (build["rmId"], build["buildVersion"]) == ("mine", licorne.__version__)
    assert set(build) == {"rmId", "buildVersion", "arch"}
    assert [part["name"] for part in k.licorne.ask("/ws/v1/partitions")] == ["default"]
