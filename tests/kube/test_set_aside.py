"""Exceptions in licorne itself, planted: what concerns one pod is for that pod alone, anything else ends the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from common.virtual import run
from kube import schedules
from kube.places import Places
from licorne.kube.manager import foreign as foreign_module
from licorne.kube.manager import lifecycle as module
from licorne.kube.manager.applications import Applications
from licorne.kube.manager.commands import Bind, PostEvent
from licorne.kube.manager.gangs import Gangs
from licorne.kube.manager.lifecycle import PodLifecycle
from licorne.kube.manager.outbox import SharedFaultError
from licorne.kube.manager.records import PodRecord
from licorne.kube.manager.stages import Stage
from licorne.kube.objects import Node, Pod, PriorityClass
from licorne.kube.pods.foreign import foreign_allocation
from licorne.kube.pods.work import asks_the_same, read_pod, with_surroundings


class PlantedError(RuntimeError):
    """The exception that the tests raise."""


def raising(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the method, which raises an exception where it is given the pod of this name, or its record."""

    def replaced(*arguments: Any, **named: Any) -> Any:
        for each in arguments:
            pod = each.pod if isinstance(each, PodRecord) else each
            if isinstance(pod, Pod) and pod.metadata.name == name:
                raise PlantedError("a fault of the test")
        return method(*arguments, **named)

    return replaced


class Cluster(Places):
    """A node of 4 cores. `log` has what the manager complains of; of each pod with an exception it has a line."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.manager.outbox.warn = lambda text, _: self.log.append(text)
        self.namespace("ns")
        self.node("n", allocatable={"cpu": "4"})

    def small(self, name: str, cpu: str = "1", **more: Any) -> None:
        """Show a pod of this size."""
        more.setdefault("schedulerName", "yunikorn")
        self.pod(name, containers=[{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more)

    def told(self) -> list[tuple[str, str]]:
        """Review the pods that wait, and return the names and reasons of all events."""
        for second in (10.0, 30.0, 700.0):
            self.manager.outbox.now_s = partial(float, second)
            self.manager.lifecycle.waiting.review(int(second))
        self.events += self.manager.flush()
        return [(each.name, each.reason) for each in self.events if isinstance(each, PostEvent)]


def test_an_exception_about_one_decision_loses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gangs, "placed", raising(Gangs.placed, "p1"))
    cluster = Cluster()
    for number in range(6):
        cluster.small(f"p{number}")
    assert sorted(cluster.run()) == ["p0", "p2", "p3", "p4"]  # the place of p1 is free for p4
    assert (
        cluster.manager.records.pods["p1"].stage is Stage.REFUSED
        and cluster.manager.records.pods["p5"].stage is Stage.ASKED
    )
    assert cluster.told().count(("p1", "TaskRejected")) == 1
    assert cluster.log == ["pod ns/p1 is set aside: a fault of licorne: PlantedError: a fault of the test"]
    cluster.no_pod("p1")
    cluster.no_pod("p0")
    assert cluster.run() == {"p5": "n"}


WHILE_TAKEN_IN: list[tuple[Any, str, str]] = [
    (module, "read_pod", "FailedScheduling"),
    (Gangs, "note_originator", "TaskRejected"),
    (PodLifecycle, "ask", "TaskRejected"),
]


@pytest.mark.parametrize(("owner", "function", "reason"), WHILE_TAKEN_IN)
@pytest.mark.parametrize("at_the_start", [False, True], ids=["later", "at the start"])
def test_an_exception_about_a_pod_that_waits_is_for_that_pod_alone(
    owner: Any, function: str, reason: str, at_the_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, function, raising(getattr(owner, function), "bad"))
    cluster = Cluster()
    if at_the_start:
        with monkeypatch.context() as unseen:
            unseen.setattr(cluster.manager.lifecycle, "pod_seen", lambda _: None)
            for name in ("first", "bad", "last"):
                cluster.small(name)
        cluster.manager.lifecycle.pods_read([msgspec.convert(body, Pod) for body in cluster.pods.values()])
    else:
        for name in ("first", "bad", "last"):
            cluster.small(name)
    assert sorted(cluster.run()) == ["first", "last"]
    assert cluster.told() == [("bad", reason)]
    assert cluster.manager.lifecycle.asides == len(cluster.log) == 1


def test_a_pod_that_could_not_be_read_is_read_again_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    with monkeypatch.context() as planted:
        planted.setattr(module, "read_pod", raising(read_pod, "bad"))
        cluster.small("bad")
    assert (cluster.run(), cluster.manager.lifecycle.asides) == ({}, 1)
    cluster.small("bad")
    assert cluster.run() == {"bad": "n"}


@pytest.mark.parametrize("function", ["read_pod", "asks_the_same"])
def test_a_pod_that_runs_counts_where_an_exception_is_raised(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    if function == "asks_the_same":
        cluster.small("bad", "3", node="n")
        cluster.run()
    monkeypatch.setattr(module, function, raising(getattr(module, function), "bad"))
    cluster.small("bad", "3", node="n")
    monkeypatch.undo()
    cluster.small("two", "2")
    assert cluster.run() == {}
    assert ("bad", "CountedAsForeign") in cluster.told() and "ns/bad is set aside" in cluster.log[0]
    cluster.no_pod("bad")
    assert cluster.run() == {"two": "n"}


def test_a_pod_whose_binding_has_been_sent_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.small("bad", "3")
    cluster.manager.flush()
    cluster.api.schedule()
    assert [type(each) for each in cluster.manager.flush()] == [Bind]
    with monkeypatch.context() as planted:
        planted.setattr(module, "asks_the_same", raising(asks_the_same, "bad"))
        cluster.small("bad", "3", labels={"new": "label"})
    cluster.small("two", "2")
    assert (cluster.manager.lifecycle.asides, cluster.run()) == (1, {})
    cluster.small("bad", "3", node="n")
    assert (cluster.run(), cluster.manager.records.pods["bad"].stage) == ({}, Stage.BOUND)


def test_pods_on_a_node_that_comes_back_count_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    for name in ("bad", "good"):
        cluster.small(name, "2", node="n")
    cluster.run()
    body = cluster.nodes["n"]
    cluster.no_node("n")
    with monkeypatch.context() as planted:
        planted.setattr(Gangs, "placed", raising(Gangs.placed, "bad"))
        cluster.manager.node_seen(msgspec.convert(body, Node))
        cluster.small("one")
        cluster.manager.flush()
        assert cluster.api.schedule() == 0
    cluster.nodes["n"] = body
    assert cluster.run() == {} and cluster.manager.lifecycle.asides == 1


def test_an_exception_about_a_pod_whose_namespace_changes_is_for_that_pod_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    for name in ("bad", "good"):
        cluster.small(name, "5")
    for name in ("worse", "better"):
        cluster.small(name, node="n", schedulerName="other")
    assert cluster.run() == {}
    monkeypatch.setattr(module, "with_surroundings", raising(with_surroundings, "bad"))
    monkeypatch.setattr(foreign_module, "foreign_allocation", raising(foreign_allocation, "worse"))
    cluster.namespace("ns", team="x")
    assert (cluster.run(), cluster.manager.lifecycle.asides) == ({}, 2)
    assert [name for name, record in cluster.manager.records.pods.items() if record.stage is Stage.ASKED] == ["good"]
    told = cluster.manager.records.foreign["better"].told.tags
    assert told is not None and '"team":"x"' in told["licorne/pod"]


def test_an_exception_in_the_scheduler_is_for_no_pod_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()

    def planted(*_: object) -> None:
        raise PlantedError

    monkeypatch.setattr(cluster.api, "submit", planted)
    with pytest.raises(SharedFaultError, match="PlantedError"):
        cluster.small("p")
    assert cluster.manager.lifecycle.asides == 0


def test_an_exception_in_taking_what_the_scheduler_says_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: object) -> None:
        raise PlantedError

    monkeypatch.setattr(Applications, "ended", planted)

    async def main() -> None:
        world = schedules.World(1)
        _, task = schedules.start(world)
        await asyncio.sleep(1)
        assert not task.done()
        world.add_pod()
        await asyncio.sleep(1)
        assert task.done()
        error = task.exception()
        assert isinstance(error, BaseExceptionGroup) and error.subgroup(PlantedError) is not None

    run(main())


def _not_bound(cluster: Cluster) -> None:
    cluster.manager.lifecycle.not_bound("p", "its node is full")
    cluster.manager.lifecycle.ask_again("p")


def _class_seen(cluster: Cluster) -> None:
    cluster.manager.class_seen(msgspec.convert({"metadata": {"name": "late"}, "value": 1}, PriorityClass))


ENTRIES: list[tuple[str, Callable[[Cluster], None]]] = [
    ("", _not_bound),
    ("", lambda cluster: cluster.manager.lifecycle.outdated("p")),
    ("late", _class_seen),
]


@pytest.mark.parametrize(("of_class", "entry"), ENTRIES)
def test_an_exception_while_a_pod_is_asked_for_again_is_for_that_pod_alone(
    monkeypatch: pytest.MonkeyPatch, of_class: str, entry: Callable[[Cluster], None]
) -> None:
    cluster = Cluster()
    cluster.manager.class_seen(msgspec.convert({"metadata": {"name": "other"}, "value": 1}, PriorityClass))
    cluster.pod("p", priorityClassName=of_class)
    if not of_class:
        cluster.manager.flush()
        cluster.api.schedule()
    monkeypatch.setattr(PodLifecycle, "ask", raising(PodLifecycle.ask, "p"))
    entry(cluster)
    assert (cluster.manager.records.pods["p"].stage, cluster.manager.lifecycle.asides) == (Stage.REFUSED, 1)


def test_a_pod_that_was_set_aside_is_asked_for_when_it_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    with monkeypatch.context() as planted:
        planted.setattr(PodLifecycle, "ask", raising(PodLifecycle.ask, "p"))
        cluster.small("p")
        assert cluster.run() == {}
    cluster.small("p", cpu="2")
    assert cluster.run() == {"p": "n"}
