"""Policies of one's own: what they decide, what they cannot change, and what becomes of those that go wrong."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from zlib import crc32

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import licorne
from common.examples import examples
from common.planting import a_law_breaks
from common.waiting import WAIT_S
from core.bench import config
from licorne.core.nodes.devices import Demand
from licorne.sim.policies import (
    Application,
    Node,
    PlannedPod,
    Pod,
    Policy,
    PolicyError,
    Queue,
    loading,
    views,
    watch,
)
from licorne.sim.policies.calls import Caller
from licorne.sim.policies.loading import Given
from licorne.sim.policies.orders import Policies
from licorne.sim.report import Result
from licorne.sim.runner import Simulation, simulate
from licorne.workload.lines import App, Ask, Line, ReleaseApp, TaskGroup
from licorne.workload.lines import Node as NodeLine
from licorne.workload.workload import Mode, Workload
from sim.held import Held
from sim.random_workloads import Writer

EXAMPLES = Path(__file__).parents[2] / "examples" / "policies"
GPU = "gpu-milli"
CONFIGURATION = config("a properties: {weight: '1'}", "b properties: {weight: '3'}")


def node(name: str, cores: int = 4, **more: Any) -> NodeLine:
    return NodeLine(id=name, res={"vcore": 1000 * cores}, **more)


def pods(app: str, queue: str, count: int, cores: int = 1, **more: Any) -> list[Line]:
    asks = [Ask(key=f"{app}-{i}", app=app, res={"vcore": 1000 * cores}, **more) for i in range(count)]
    return [App(id=app, queue=queue, user="ann"), *asks]


def workload(*given: Line | Sequence[Line], **more: Any) -> Workload:
    lines: list[Line] = []
    for each in given:
        lines += [each] if isinstance(each, Line) else each
    return Workload(name="own", mode=Mode.TIMED, lines=lines, config=CONFIGURATION, **more)


def placed(result: Result) -> dict[str, str]:
    return {record.key: record.node for record in result.pods if record.node}


def started(result: Result) -> list[str]:
    """The pods in the order in which they were placed, by application."""
    return [record.key.rpartition("-")[0] for record in sorted(result.pods, key=lambda record: record.start_s or 0.0)]


# -- what they decide ------------------------------------------------------------------------------------------------


class ByName(Policy):
    """The node with the last name."""

    def node_key(self, pod: Pod, node: Node) -> int:
        return -int(node.id.removeprefix("n"))


def test_the_page_says_which_attributes_are_iterators() -> None:
    page = (Path(__file__).parents[2] / "docs/use/policies-of-your-own.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^.* are iterators", page, re.MULTILINE)
    found = [
        f"{kind.__name__.lower()}.{name}"
        for kind in (Node, Queue, Application, Pod)
        for name, made in vars(kind).items()
        if isinstance(made, property) and str(made.fget.__annotations__["return"]).startswith("Iterator")
    ]
    assert re.findall(r"`([^`]*)`", sentence) == found


def test_a_node_order_chooses_the_node() -> None:
    result = simulate(workload(node("n1"), node("n2"), node("n3"), pods("x", "root.a", 5)), policies=[ByName])
    assert placed(result) == {"x-0": "n3", "x-1": "n3", "x-2": "n3", "x-3": "n3", "x-4": "n2"}


def test_a_chosen_node_may_be_named_or_none_so_that_the_pod_waits() -> None:
    class Alone(Policy):
        def choose_node(self, pod: Pod, nodes: Iterable[Node]) -> Node | str | None:
            empty = [each for each in nodes if not list(each.pods)]
            return empty[-1] if pod.key.endswith("0") and empty else empty[-1].id if empty else None

    given = workload(node("n1"), node("n2"), pods("x", "root.a", 3, duration_s=10))
    result = simulate(given, policies=[Alone()])
    assert placed(result) == {"x-0": "n2", "x-1": "n1", "x-2": "n2"}
    assert {record.key: record.waiting_s for record in result.pods} == {"x-0": 0, "x-1": 0, "x-2": 10}


def test_a_queue_order_says_whose_turn_it_is() -> None:
    class LastFirst(Policy):
        def queue_key(self, queue: Queue) -> tuple[int, ...]:
            return tuple(-ord(letter) for letter in queue.path)

    given = workload(node("n1"), pods("x", "root.a", 3), pods("y", "root.b", 3))
    assert sorted(placed(simulate(given, policies=[LastFirst]))) == ["x-0", "y-0", "y-1", "y-2"]
    assert sorted(placed(simulate(given))) == ["x-0", "x-1", "y-0", "y-1"]


def test_an_application_order_says_which_application_is_next() -> None:
    class YoungestFirst(Policy):
        def application_key(self, application: Application) -> float:
            return -application.submitted_s

    given = workload(
        node("n1"),
        pods("x", "root.a", 3, at=1),
        pods("y", "root.a", 3, at=1),
        [App(id="z", queue="root.a", user="ann", at=2)],
    )
    lines = list(given.lines)
    lines[1].at, lines[5].at = 0.5, 1
    assert sorted(placed(simulate(given, policies=[YoungestFirst]))) == ["x-0", "y-0", "y-1", "y-2"]


def devices_of_shares(shares: Sequence[int], *policies: Given) -> dict[str, tuple[int, ...]]:
    """The devices that pods with these shares get, one after the other, on a node with three."""
    held = Held()
    asks = [Ask(key=f"p{i}", app="x", res={GPU: share}, at=i) for i, share in enumerate(shares)]
    lines: list[Line] = [NodeLine(id="n1", res={GPU: 3000}, at=0), App(id="x", queue="root.a", user="ann", at=0), *asks]
    simulate(workload(lines, devices=GPU), policies=policies, observers=[held])
    return held.devices


def test_a_choice_of_device_sees_the_pod_and_the_node_without_it() -> None:
    """So it may depend on either: here pods of one kind share a device, and others have another one."""
    seen: list[object] = []

    class ByKind(Policy):
        def choose_device(self, pod: Pod, node: Node, share: int) -> int:
            seen.append((pod.key, share, node.free, [each.key for each in node.pods], node.devices, node.model))
            assert (share, pod.devices.number) == (pod.devices.each, 1)
            return pod.priority

    held = Held()
    asks = [
        Ask(key=f"p{i}", app="x", res={"vcore": 1000, GPU: share}, prio=kind, at=i)
        for i, (share, kind) in enumerate([(300, 1), (2000, 0), (200, 1)])
    ]
    gpus = NodeLine(id="n1", res={"vcore": 9000, GPU: 4000}, attrs={"label/model": "T4"}, at=0)
    given = workload(gpus, [App(id="x", queue="root.a", user="ann", at=0), *asks], devices=GPU)
    simulate(given, policies=[ByKind], observers=[held])
    assert held.devices == {"p0": (1,), "p1": (0, 2), "p2": (1,)}
    assert seen == [
        ("p0", 300, {GPU: 4000, "vcore": 9000}, [], (1000, 1000, 1000, 1000), "T4"),
        ("p2", 200, {GPU: 1700, "vcore": 7000}, ["p0", "p1"], (0, 700, 0, 1000), "T4"),
    ]


def test_a_member_of_a_gang_gets_the_device_that_a_policy_chooses_for_it() -> None:
    class ByName(Policy):
        def choose_device(self, pod: Pod, node: Node, share: int) -> int:
            assert node.free[GPU] == sum(node.devices)
            return int(pod.key[-1])

    held = Held()
    gang = App(id="g", queue="root.a", user="ann", gang=(TaskGroup(name="w", min=2, res={GPU: 300}),), atomic=True)
    asks: list[Line] = [Ask(key=f"g-{i}", app="g", group="w", res={GPU: 300}, duration_s=5) for i in (1, 0)]
    given = workload(NodeLine(id="n1", res={GPU: 2000}), [gang, *asks], devices=GPU)
    simulate(given, policies=[ByName], observers=[held])
    assert held.devices == {"g-1": (1,), "g-0": (0,)}


def test_a_pod_says_which_models_and_devices_it_wants() -> None:
    told: list[tuple[str, Demand, tuple[str, ...], str]] = []

    class Tells(Policy):
        def node_key(self, pod: Pod, node: Node) -> float:
            told.append((pod.key, pod.devices, pod.models, node.model))
            return 0

    terms = {"nodeAffinity": [[{"key": "model", "operator": "In", "values": ["T4", "A10"]}]]}
    tags = {"licorne/node-constraints": msgspec.json.encode(terms).decode()}
    asks = [
        Ask(key="p0", app="x", res={"vcore": 1, GPU: 300}, tags=tags),
        Ask(key="p1", app="x", res={"vcore": 1, GPU: 2000}),
        Ask(key="p2", app="x", res={"vcore": 1}),
    ]
    nodes = NodeLine(id="n1", res={"vcore": 9000, GPU: 3000}, attrs={"label/model": "A10"})
    simulate(workload(nodes, [App(id="x", queue="root.a", user="ann"), *asks], devices=GPU), policies=[Tells])
    assert told == [
        ("p0", Demand(1, 300), ("T4", "A10"), "A10"),
        ("p1", Demand(2, 1000), (), "A10"),
        ("p2", Demand(0, 0), (), "A10"),
    ]


def test_a_policy_is_told_the_pods_of_the_workload_once_before_it_decides() -> None:
    told: list[object] = []

    class Plans(Policy):
        def begin(self, pods: Iterable[PlannedPod]) -> None:
            for each in (*pods, *pods):  # more than once
                told.append((each.key, each.application, each.number, dict(each.resources), each.devices, each.models))
                told.append((each.arrives_s, each.requested_s))

        def node_key(self, pod: Pod, node: Node) -> float:
            told.append(pod.key)
            return 0

    terms = {"nodeAffinity": [[{"key": "model", "operator": "In", "values": ["T4"]}]]}
    tags = {"licorne/node-constraints": msgspec.json.encode(terms).decode()}
    asks = [
        Ask(key="p0", app="x", res={"vcore": 1, GPU: 300}, tags=tags, at=3, duration_s=5),
        Ask(key="p1", app="x", res={"vcore": 1}, max=2, duration_s=5, requested_s=7),
    ]
    nodes = NodeLine(id="n1", res={"vcore": 9, GPU: 3000}, attrs={"label/model": "T4"}, at=0)
    given = workload(nodes, [App(id="x", queue="root.a", user="ann", at=1), *asks], devices=GPU)
    simulation = Simulation(given, policies=[Plans])
    simulation.advance(2)
    simulation.run()
    planned = [
        ("p0", "x", 1, {"vcore": 1, GPU: 300}, Demand(1, 300), ("T4",)),
        (3, 5),
        ("p1", "x", 2, {"vcore": 1}, Demand(0, 0), ()),
        (3, 7),
    ]
    assert told == [*planned, *planned, "p0", "p1", "p1"]


def test_a_choice_of_device_fills_devices() -> None:
    class Last(Policy):
        def choose_device(self, pod: Pod, node: Node, share: int) -> int:
            return max(index for index, left in enumerate(node.devices) if left >= share)

    seen: list[tuple[int, ...]] = []

    class Sees(Policy):
        def node_key(self, pod: Pod, node: Node) -> float:
            seen.append(node.devices)
            return 0

    gpus = NodeLine(id="n1", res={"vcore": 9000, GPU: 2000})
    asks = [Ask(key=f"p{i}", app="x", res={"vcore": 1000, GPU: 300}, duration_s=9) for i in range(3)]
    given = workload(gpus, [App(id="x", queue="root.a", user="ann"), *asks], devices=GPU)
    result = simulate(given, policies=[Last, Sees])
    assert seen == [(1000, 1000), (1000, 700), (1000, 400)]
    assert result.policies[0].decides == ("choose_device",)
    assert any(f"chosen by {__name__}:" in note for note in result.notes)


def test_views_tell_what_the_scheduler_knows() -> None:
    told: list[object] = []

    class Tells(Policy):
        def node_key(self, pod: Pod, node: Node) -> float:
            app, queue = pod.application, pod.application.queue
            told.append((self.now_s, pod.key, dict(pod.resources), pod.priority, dict(pod.tags), pod.requested_s))
            told.append((pod.arrived_s, pod.placeholder, pod.task_group, app.id, app.user, app.groups, dict(app.tags)))
            told.append((app.running, [each.key for each in app.waiting], app.used, app.pending, app.submitted_s))
            told.append((queue.path, queue.used, queue.pending, queue.guaranteed, queue.max, dict(queue.properties)))
            told.append((node.id, node.capacity, node.free, dict(node.attributes), node.labels, node.devices))
            return 0

    ask = Ask(key="p", app="x", res={"vcore": 1000}, prio=7, tags={"colour": "red"}, duration_s=9, requested_s=20, at=3)
    app = App(id="x", queue="root.b", user="ann", groups=("g",), tags={"namespace": "dev"}, at=2)
    given = workload(NodeLine(id="n1", res={"vcore": 4000}, attrs={"price": "2"}), [app, ask])
    simulate(given, policies=[Tells])
    assert told == [
        (3.0, "p", {"vcore": 1000}, 7, {"colour": "red"}, 20),
        (3.0, False, "", "x", "ann", ("g",), {"namespace": "dev"}),
        (0, ["p"], {}, {"vcore": 1000}, 2.0),
        ("root.b", {}, {"vcore": 1000}, {}, {}, {"weight": "3"}),
        ("n1", {"vcore": 4000}, {"vcore": 4000}, {"price": "2"}, {}, ()),
    ]


def test_views_are_equal_if_they_are_of_the_same_thing() -> None:
    """An application that comes again under its name is another one; its queue is the same."""
    seen: list[tuple[Pod, Node, Application, Queue]] = []

    class Sees(Policy):
        def node_key(self, pod: Pod, node: Node) -> float:
            seen.append((pod, node, pod.application, pod.application.queue))
            assert all(each.application == pod.application for each in node.pods)
            return 0

    again = [App(id="x", queue="root.a", user="ann", at=50), Ask(key="x-2", app="x", res={"vcore": 1000}, at=50)]
    lines = [*pods("x", "root.a", 2, duration_s=5, at=0), ReleaseApp(app="x", at=20), *again]
    simulate(workload(node("n1"), lines), policies=[Sees])
    first, second, last = seen
    assert first[0] != second[0] != last[0]
    assert first[1:] == second[1:]
    assert {*first[1:]} == {*second[1:]}
    assert (first[1], first[3]) == (last[1], last[3])
    assert first[2] != last[2] and first[2].id == last[2].id
    assert first[0] != first[0].key and hash(first[2]) == hash(second[2])


# -- what they cannot change, as laws ----------------------------------------------------------------------------------


class Indifferent(Policy):
    """Equal keys for everything."""

    def node_key(self, pod: Pod, node: Node) -> float:
        return 0

    def queue_key(self, queue: Queue) -> float:
        return 0

    def application_key(self, application: Application) -> float:
        return 0


class Arbitrary(Policy):
    """Keys without sense, which change with the time."""

    def node_key(self, pod: Pod, node: Node) -> float:
        return crc32(f"{pod.key}{node.id}{node.free}{self.now_s}".encode()) % 5

    def queue_key(self, queue: Queue) -> float:
        return crc32(f"{queue.path}{queue.used}{self.now_s}".encode()) % 3

    def application_key(self, application: Application) -> float:
        return crc32(f"{application.id}{application.running}{self.now_s}".encode()) % 3


def decisions(seed: int, policies: Sequence[type[Policy]], **settings: str) -> Result:
    found = simulate(Writer(seed).workload(), policies=policies, settings=settings)
    return msgspec.structs.replace(found, real_s=0.0, policies=[])


@given(st.integers(0, 100_000))
@examples(30)
def test_equal_keys_change_nothing(seed: int) -> None:
    assert decisions(seed, [Indifferent]) == decisions(seed, [])


@given(st.integers(0, 100_000))
# A member of a gang that repeats loses its node on the way to it, after another of the same ask has arrived.
@hypothesis.example(602)
@examples(30)
def test_orders_without_sense_are_followed_also_where_asks_are_parked(seed: int) -> None:
    """What waits is woken in time: without parking every ask is tried in every pass, and the decisions are the same."""
    parked = decisions(seed, [Arbitrary])
    tried = decisions(seed, [Arbitrary], **{"scheduler.parking": "false"})
    assert parked.digest == tried.digest


@given(st.integers(0, 100_000))
@examples(30)
def test_all_nodes_that_fit_are_offered_and_the_smallest_key_is_taken(seed: int) -> None:
    """Against a look at all nodes, by amounts alone: the workload has no constraints and no devices."""
    rng = Random(seed)
    nodes = [node(f"n{i}", rng.randrange(1, 6)) for i in range(4)]
    free = {each.id: each.res["vcore"] for each in nodes}
    offered: dict[str, dict[str, int]] = {}

    class Noted(Policy):
        def node_key(self, pod: Pod, node: Node) -> int:
            key = crc32(f"{pod.key}{node.id}{seed}".encode()) % 3
            offered.setdefault(pod.key, {})[node.id] = key
            return key

    sizes = {f"p{i}": rng.randrange(1, 5) for i in range(12)}
    asks: list[Line] = [Ask(key=key, app="x", res={"vcore": 1000 * size}) for key, size in sizes.items()]
    result = simulate(workload(nodes, [App(id="x", queue="root.a", user="ann"), *asks]), policies=[Noted])
    for key, where in placed(result).items():
        fitting = {name for name, left in free.items() if left >= 1000 * sizes[key]}
        assert offered[key].keys() == fitting
        assert offered[key][where] == min(offered[key].values())
        free[where] -= 1000 * sizes[key]
    waiting = sizes.keys() - placed(result)
    assert all(left < 1000 * sizes[key] for key in waiting for left in free.values())


def test_atomic_gangs_follow_a_node_order() -> None:
    group = TaskGroup(name="w", min=2, res={"vcore": 1000})
    gang = App(id="g", queue="root.a", user="ann", gang=(group,), atomic=True)
    asks: list[Line] = [Ask(key=f"g-{i}", app="g", group="w", res={"vcore": 1000}, duration_s=5) for i in range(2)]
    result = simulate(workload(node("n1"), node("n2"), [gang, *asks]), policies=[ByName])
    assert placed(result) == {"g-0": "n2", "g-1": "n2"}


# -- what goes wrong ---------------------------------------------------------------------------------------------------

TWO = workload(node("n1"), node("n2"), pods("x", "root.a", 1), pods("y", "root.a", 1), pods("z", "root.b", 1))


def made(**methods: Callable[..., object]) -> type[Policy]:
    return type("Own", (Policy,), methods)


def raising(error: BaseException) -> Callable[..., object]:
    def method(*_: object) -> object:
        raise error

    return method


NODES_EXPECTED = "expected was one of the nodes, its id, or None"
KEY_EXPECTED = "expected was a number that is not NaN, a text, or a tuple of these"


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("node_key", lambda *_: None, f"node_key(pod 'x-0', node 'n1') answered None; {KEY_EXPECTED}"),
        ("node_key", lambda *_: float("nan"), f"node_key(pod 'x-0', node 'n1') answered nan; {KEY_EXPECTED}"),
        ("node_key", lambda *_: (1, [2]), f"node_key(pod 'x-0', node 'n1') answered (1, [2]); {KEY_EXPECTED}"),
        ("node_key", lambda *_: (1, (2,)), f"node_key(pod 'x-0', node 'n1') answered (1, (2,)); {KEY_EXPECTED}"),
        ("node_key", lambda _self, _pod, node: 1 if node.id == "n1" else "1", f"node_key(pod 'x-0', node 'n2') answered '1'; {KEY_EXPECTED}, like a number that it answered before"),
        ("node_key", lambda _self, _pod, node: (1,) if node.id == "n1" else (1, "a"), "like a tuple of 1: a number that it answered before"),
        ("node_key", raising(ZeroDivisionError("by zero")), "node_key(pod 'x-0', node 'n1') raised ZeroDivisionError: by zero (test_policies.py:"),
        ("node_key", raising(SystemExit(3)), "raised SystemExit: 3 (test_policies.py:"),
        ("node_key", lambda: 1, "node_key(pod 'x-0', node 'n1') raised TypeError:"),
        ("choose_node", lambda *_: "n7", f"choose_node(pod 'x-0', nodes) answered 'n7'; {NODES_EXPECTED}"),
        ("choose_node", lambda *_: 3, f"choose_node(pod 'x-0', nodes) answered 3; {NODES_EXPECTED}"),
        ("choose_node", lambda _self, _pod, nodes: [*nodes, *nodes], "answered [node 'n1', node 'n2']; " + NODES_EXPECTED),
        ("queue_key", lambda *_: 1j, f"queue_key(queue root.a) answered 1j; {KEY_EXPECTED}"),
        ("application_key", lambda *_: {}, f"application_key(application 'x') answered {{}}; {KEY_EXPECTED}"),
        ("begin", lambda *_: 3, "begin(pods) answered 3; expected was None"),
        ("begin", raising(KeyError("gpu")), "begin(pods) raised KeyError: 'gpu' (test_policies.py:"),
    ],
)  # fmt: skip
def test_nonsense_is_an_error_that_names_the_call(method: str, answer: Callable[..., object], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        simulate(TWO, policies=[made(**{"queue_key": lambda *_: 0, method: answer})])
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"policy {__name__}:Own: ")


def test_a_node_that_does_not_fit_cannot_be_chosen() -> None:
    given = workload(node("n1", 1), node("n2"), pods("x", "root.a", 1, 3))
    with pytest.raises(PolicyError, match=r"answered 'n1'; .*: the pod does not fit that one"):
        simulate(given, policies=[made(choose_node=lambda *_: "n1")])


@pytest.mark.parametrize("answer", [-1, 2, True, "0", 0.0, None, 1])
def test_a_device_that_does_not_suffice_cannot_be_chosen(answer: object) -> None:
    asks = [Ask(key=f"p{i}", app="x", res={GPU: 600}, duration_s=9) for i in range(2)]
    given = workload(NodeLine(id="n1", res={GPU: 2000}), [App(id="x", queue="root.a", user="ann"), *asks], devices=GPU)
    answers = iter([1, answer])
    with pytest.raises(
        PolicyError, match=r"choose_device\(pod 'p1', node 'n1', 600\) answered .*; left on each is 1000, 400"
    ):
        simulate(given, policies=[made(choose_device=lambda *_: next(answers))])


def forever(*_: object) -> float:
    while True:
        pass


def asleep(*_: object) -> float:
    time.sleep(3600)
    return 0


def stubborn(*_: object) -> float:
    """Catch what ends it, once."""
    try:
        while True:
            pass
    except BaseException:  # noqa: BLE001  that is the point
        while True:
            pass


def compiled(*_: object) -> float:
    """Run no Python for about a second."""
    return float(sum(range(60_000_000)))


@pytest.mark.parametrize("endless", [forever, asleep, stubborn, compiled])
def test_a_call_that_takes_too_long_is_ended(endless: Callable[..., float]) -> None:
    handler, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0]
    with pytest.raises(PolicyError, match=r"node_key\(pod 'x-0', node 'n1'\) took longer than 0.2 s"):
        simulate(TWO, policies=[made(node_key=endless)], policy_timeout_s=0.2)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert bool(signal.getitimer(signal.ITIMER_REAL)[0]) == bool(timer)


def test_many_calls_may_together_take_longer() -> None:
    def slow(*_: object) -> float:
        time.sleep(0.1)  # eight calls: together twice the limit
        return 0

    given = workload(node("n1"), node("n2"), pods("x", "root.a", 4))
    assert simulate(given, policies=[made(node_key=slow)], policy_timeout_s=0.4).placed == 4


def test_a_call_is_ended_once_though_the_next_tick_comes_before_its_caller_has_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    too_long = watch.Watch.too_long

    def late(self: watch.Watch, call: str) -> PolicyError:
        time.sleep(0.3)  # more than a tick
        return too_long(self, call)

    monkeypatch.setattr(watch.Watch, "too_long", late)
    with pytest.raises(PolicyError, match=r"took longer than 0\.2 s"):
        simulate(
            workload(node("n1")),
            policies=[made(node_key=lambda *_: 0, begin=lambda *_: time.sleep(3600))],
            policy_timeout_s=0.2,
        )


def test_the_time_of_a_call_begins_anew_with_each_pod_of_the_workload() -> None:
    def slow(_: object, pods: Iterable[PlannedPod]) -> None:
        for _each in pods:
            time.sleep(0.06)

    def stuck(_: object, pods: Iterable[PlannedPod]) -> None:
        for _each in pods:
            time.sleep(3600)

    given = workload(node("n1"), node("n2"), pods("x", "root.a", 10))
    assert simulate(given, policies=[made(node_key=lambda *_: 0, begin=slow)], policy_timeout_s=0.4).placed == 8
    with pytest.raises(PolicyError, match=r"begin\(pods\) took longer than 0.2 s"):
        simulate(given, policies=[made(node_key=lambda *_: 0, begin=stuck)], policy_timeout_s=0.2)


LOADED_ONCE = """
from licorne import Policy

with open({noted!r}, "a") as file:
    file.write("loaded\\n")


class Noted(Policy):
    def __init__(self):
        with open({noted!r}, "a") as file:
            file.write("made\\n")

    def node_key(self, pod, node):
        return 0
"""


def test_the_command_loads_and_makes_a_policy_once(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    (tmp_path / "own.py").write_text(LOADED_ONCE.format(noted=str(noted)))
    file = str(EXAMPLES.parent / "gpu-holiday" / "workload.jsonl")
    command = [sys.executable, "-m", "licorne.cli", "simulate", file, "--policy", f"{tmp_path / 'own.py'}:Noted"]
    for verify, times in ((), 1), (("--verify",), 2):
        noted.unlink(missing_ok=True)
        subprocess.run([*command, *verify], capture_output=True, check=True, timeout=WAIT_S)
        assert noted.read_text() == "loaded\nmade\n" * times


ENDLESS_OBJECT = """
from licorne import Policy


class Own(Policy):
    def __init__(self):
        while True:
            pass

    def node_key(self, pod, node):
        return 0
"""


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("import time\ntime.sleep(3600)\n", "loading its code"),
        ("while True:\n    pass\n", "loading its code"),
        (ENDLESS_OBJECT, "Own()"),
    ],
)
def test_loading_and_making_a_policy_take_no_longer_than_the_limit(tmp_path: Path, text: str, call: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(text)
    expected = rf"own.py:Own: {re.escape(call)} took longer than 0.2 s, which is the limit"
    with pytest.raises(PolicyError, match=expected):
        simulate(TWO, policies=[f"{path}:Own"], policy_timeout_s=0.2)
    ended = subprocess.run(
        [sys.executable, "-m", "licorne.cli", "simulate", "no-file.jsonl", "--policy", f"{path}:Own", "--policy-timeout", "0.2"],
        capture_output=True, text=True, timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert re.search(expected, ended.stderr)
    assert ended.returncode == 1


def test_a_policy_that_leaves_while_it_is_loaded_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    for text, message in (
        ("raise SystemExit(0)", "cannot be loaded: SystemExit: 0"),
        (
            "import licorne\n\nclass Own(licorne.Policy):\n    node_key = 1\n    def __init__(self): exit(0)",
            "raised SystemExit: 0",
        ),
    ):
        path.write_text(text)
        with pytest.raises(PolicyError, match=message):
            simulate(TWO, policies=[f"{path}:Own"])


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("node_key(self, pod, node)", "policy __main__:Stuck: node_key"),
        ("__init__(self)", "policy __main__:Stuck: Stuck()"),
    ],
)
def test_compiled_code_that_never_returns_ends_the_process(method: str, call: str) -> None:
    """`sum` neither gives the interpreter's lock away nor handles signals. The policy and the call are among the frames."""
    program = f"""
        import licorne
        from licorne.sim.policies import watch

        watch.HARD_S = 0.5

        class Stuck(licorne.Policy):
            def node_key(self, pod, node):
                return 0

            def {method}:
                return sum(range(10**15))

        file = {str(EXAMPLES.parent / "gpu-holiday" / "workload.jsonl")!r}
        licorne.simulate(file, policies=[Stuck], policy_timeout_s=0.2)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert re.search(
        rf"line \d+ in {re.escape(method.partition('(')[0])}\n.*line \d+ in {re.escape(call)}\n", ended.stderr
    )


def test_calls_in_another_thread_are_not_watched_unless_they_need_not_be() -> None:
    results: list[object] = []

    def run(limit_s: float | None) -> None:
        try:
            results.append(simulate(TWO, policies=[ByName], policy_timeout_s=limit_s).placed)
        except PolicyError as error:
            results.append(str(error))

    for limit_s in (1, None):
        thread = threading.Thread(target=run, args=(limit_s,))
        thread.start()
        thread.join()
    assert "in the main thread only" in str(results[0])
    assert results[1] == 3


@pytest.mark.parametrize("limit_s", [0, -1, float("nan"), watch.LIMIT_MAX_S + 1])
def test_a_limit_is_above_zero(limit_s: float) -> None:
    with pytest.raises(PolicyError, match="must be above 0 s"):
        simulate(TWO, policies=[ByName], policy_timeout_s=limit_s)


def test_orders_are_not_recorded() -> None:
    class Log:
        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    log: Any = Log()
    with pytest.raises(ValueError, match="cannot be replayed"):
        simulate(TWO, policies=[ByName], input_log=log)


# -- planted faults ----------------------------------------------------------------------------------------------------


def test_a_key_is_asked_for_again_when_what_it_is_about_has_changed() -> None:
    """The fuller node comes first: one pod goes anywhere, and all others follow it as long as there is room."""

    class Fullest(Policy):
        def node_key(self, pod: Pod, node: Node) -> int:
            return node.free.get("vcore", 0)

    result = simulate(workload(node("n1"), node("n2"), pods("x", "root.a", 5)), policies=[Fullest])
    assert list(placed(result).values()) == ["n1"] * 4 + ["n2"]


def test_a_call_that_returns_too_late_is_an_error_too() -> None:
    def late(*_: object) -> float:
        time.sleep(1.5)
        return 0

    with pytest.raises(PolicyError, match=r"took longer than 0.2 s"):
        simulate(
            workload(node("n1"), node("n2"), pods("x", "root.a", 1)),
            policies=[made(node_key=late)],
            policy_timeout_s=0.2,
        )


def an_answer_that_is_none() -> None:
    test_nonsense_is_an_error_that_names_the_call("node_key", lambda *_: float("nan"), "answered nan")


def an_error_of_a_policy() -> None:
    broken = raising(ZeroDivisionError("by zero"))
    test_nonsense_is_an_error_that_names_the_call("node_key", broken, "raised ZeroDivisionError: by zero")


def a_device_without_room() -> None:
    test_a_device_that_does_not_suffice_cannot_be_chosen(-1)


def shares_by_weight() -> None:
    test_the_example_of_a_queue_order_shares_by_weight()


def first_node(_: object, __: object, nodes: Iterator[Any]) -> object:
    return next(nodes, None)


def unchecked_node(self: Any, ask: Any, nodes: Iterator[Any]) -> object:
    answer = self._callers["choose_node"](0.0, ask, nodes)
    return self._nodes[answer] if isinstance(answer, str) else answer


def unchecked_device(self: Any, ask: Any, node: Any, free: Sequence[int], share: int) -> object:
    """A device that cannot be had does not become one that can: what is wrong is found out by nobody, or later."""
    answer = self._callers["choose_device"](0.0, ask, node, share)
    return answer if isinstance(answer, int) and 0 <= answer < len(free) and free[answer] >= share else 0


def remembered_key(self: Any, now_s: float, *given: object) -> object:
    known = vars(self).setdefault("known", {})
    return known.setdefault(repr(given[-1]), self(now_s, *given))


def passed_over(self: Any, now_s: float, *given: object) -> object:
    self._policy.now_s = now_s
    try:
        return self._function(*given)
    except Exception:  # noqa: BLE001  that is the fault
        return 0


FAULTS: dict[str, tuple[type, str, object, Callable[[], None]]] = {
    "the keys of nodes are ignored": (Policies, "_least_node", first_node, test_a_node_order_chooses_the_node),
    "the chosen node is ignored": (
        Policies, "_chosen_node", first_node, test_a_chosen_node_may_be_named_or_none_so_that_the_pod_waits,
    ),
    "the keys of queues are ignored": (
        Policies, "_queue_key", lambda *_: 0, test_a_queue_order_says_whose_turn_it_is,
    ),
    "the keys of applications are ignored": (
        Policies, "_application_key", lambda *_: 0, test_an_application_order_says_which_application_is_next,
    ),
    "the choice of a device is ignored": (
        Policies, "device_choice", lambda _: None, test_a_choice_of_device_fills_devices,
    ),
    "a key is remembered": (
        Caller, "key", remembered_key, test_a_key_is_asked_for_again_when_what_it_is_about_has_changed,
    ),
    "a key of a queue is remembered": (
        Caller, "key", remembered_key, shares_by_weight,
    ),
    "what is no key is one": (Caller, "key", Caller.__call__, an_answer_that_is_none),
    "what a policy raises is passed over": (Caller, "__call__", passed_over, an_error_of_a_policy),
    "policies are not told of the workload": (
        Policies, "begin", lambda *_: None, test_a_policy_is_told_the_pods_of_the_workload_once_before_it_decides,
    ),
    "the pod is counted on the node that gets it": (
        views.NodeBefore, "free", Node.free, test_a_choice_of_device_sees_the_pod_and_the_node_without_it,
    ),
    "the pod is among those of the node that gets it": (
        views.NodeBefore, "pods", Node.pods, test_a_choice_of_device_sees_the_pod_and_the_node_without_it,
    ),
    "the times of pods of a workload add up": (
        watch.Watch, "number", property(lambda _: 0, lambda *_: None),
        test_the_time_of_a_call_begins_anew_with_each_pod_of_the_workload,
    ),
    "a node that does not fit is taken": (
        Policies, "_chosen_node", unchecked_node, test_a_node_that_does_not_fit_cannot_be_chosen,
    ),
    "a device that does not suffice is taken": (Policies, "_device", unchecked_device, a_device_without_room),
    "a call is never too long": (
        watch.Watch, "_tick", lambda *_: None, test_a_call_that_returns_too_late_is_an_error_too,
    ),
    "the times of calls add up": (
        watch.Watch, "number", property(lambda _: 0, lambda *_: None), test_many_calls_may_together_take_longer,
    ),
}  # fmt: skip
"""What is replaced by what, and a law that must not hold then."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    owner, name, broken, law = FAULTS[fault]
    law()
    monkeypatch.setattr(owner, name, broken, raising=False)
    with a_law_breaks(sys.modules[__name__], crashes=ValueError):  # the scheduler refuses a node; and PolicyError
        law()


# -- finding them ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    text = """
        import licorne
        class Good(licorne.Policy):
            def node_key(self, pod, node):
                return 0
            class Inner(licorne.Policy):
                def queue_key(self, queue):
                    return 0
        class Idle(licorne.Policy):
            pass
        class Both(licorne.Policy):
            node_key = choose_node = lambda *_: 0
        class Wants(Good):
            def __init__(self, size):
                pass
        number = 3
    """
    (tmp_path / "own.py").write_text(textwrap.dedent(text))
    (tmp_path / "broken.py").write_text("import licorne\n1 / 0\n")
    (tmp_path / "wrong.py").write_text("class :\n")
    (tmp_path / "needs.py").write_text("import no_such_module\n")
    yield tmp_path
    for name in ("own", "broken", "wrong", "needs"):
        sys.modules.pop(f"licorne_policy_{name}", None)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.py:Good", "policy none.py:Good: none.py: no such file"),
        ("own.py", "policy own.py: name a class of the file, as own.py:Class; it has Good, Idle, Both, Wants"),
        ("own.py:Bad", "policy own.py:Bad: own.py has no Bad; it has Good, Idle, Both, Wants"),
        ("own.py:number", "policy own.py:number: an object of int is no subclass of licorne.Policy"),
        ("own.py:Idle", "it decides nothing; override at least one of node_key, choose_node, queue_key,"),
        ("own.py:Both", "it has node_key and choose_node, and only one of them can decide about nodes"),
        ("own.py:Wants", "Wants() raised TypeError:"),
        ("broken.py:X", "broken.py cannot be loaded: ZeroDivisionError: division by zero (broken.py:2)"),
        ("wrong.py:X", "wrong.py cannot be loaded: SyntaxError: invalid syntax"),
        ("needs.py:X", "needs.py cannot be loaded: ModuleNotFoundError: No module named 'no_such_module' (needs.py:1)"),
        ("no_such.module:X", "there is no module no_such.module; a file is given with its ending: FILE.py:Class"),
        ("json:JSONDecoder", "policy json:JSONDecoder: JSONDecoder is no subclass of licorne.Policy"),
        ("json:nothing", "policy json:nothing: json has no nothing; it has no subclass of licorne.Policy"),
        (
            "spread",
            "policy spread: not found; a policy is given as module:Class, file.py:Class, or the name of an entry",
        ),
        ("", "policy : not found"),
        (":X", "policy :X: not found"),
        ("x:", "policy x:: not found"),
    ],
)
def test_a_policy_that_cannot_be_used_is_an_error(folder: Path, name: str, message: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(message)):
        loading.load_policy(name)


def test_a_policy_is_found_in_a_file_a_module_or_by_an_entry_point(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    first = loading.load_policy("own.py:Good")
    assert (first.name, first.decides) == ("own.py:Good", ("node_key",))
    assert loading.load_policy(str(folder / "own.py") + ":Good").digest == first.digest
    assert loading.load_policy("own:Good").digest == first.digest
    assert loading.load_policy("own.py:Good.Inner").decides == ("queue_key",)
    info = folder / "own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[licorne.policies]\nspread = own:Good\n")
    assert loading.load_policy("spread").digest == first.digest
    sys.modules.pop("own", None)


def test_a_file_is_run_anew_each_time_so_that_runs_share_nothing(folder: Path) -> None:
    assert loading.find_policy("own.py:Good") is not loading.find_policy("own.py:Good")


def test_the_digest_is_that_of_the_file(folder: Path) -> None:
    before = loading.load_policy("own.py:Good").digest
    (folder / "own.py").write_text((folder / "own.py").read_text() + "# another text\n")
    assert loading.load_policy("own.py:Good").digest != before


def test_two_policies_cannot_decide_the_same() -> None:
    with pytest.raises(PolicyError, match="both have node_key"):
        loading.load_policies([ByName, Indifferent])
    with pytest.raises(PolicyError, match="both decide about nodes"):
        loading.load_policies([ByName, made(choose_node=lambda *_: None)])


def test_a_class_is_made_anew_for_each_run_and_an_object_is_not() -> None:
    class Counts(Policy):
        made: ClassVar[int] = 0

        def __init__(self) -> None:
            type(self).made += 1

        def node_key(self, pod: Pod, node: Node) -> float:
            return 0

    for _ in range(2):
        simulate(TWO, policies=[Counts])
    assert Counts.made == 2
    one = Counts()
    for _ in range(2):
        simulate(TWO, policies=[one])
    assert Counts.made == 3


# -- the examples -------------------------------------------------------------------------------------------------------


def test_the_public_names_are_those_of_the_library() -> None:
    assert licorne.Policy is Policy
    assert licorne.PolicyError is PolicyError


def example(name: str) -> str:
    return str(EXAMPLES / name)


def test_the_example_of_a_node_order_takes_the_cheapest_node() -> None:
    given = workload(node("n1", attrs={"price": "2"}), node("n2", attrs={"price": "1"}), pods("x", "root.a", 5))
    result = simulate(given, policies=[example("cheap_nodes.py:CheapNodes")])
    assert list(placed(result).values()) == ["n2"] * 4 + ["n1"]
    assert result.policies[0].digest == loading.digest_of(loading.find_policy(example("cheap_nodes.py:CheapNodes")))


def test_the_example_of_a_choice_of_node_keeps_applications_together() -> None:
    given = workload(node("n1"), node("n2"), pods("x", "root.a", 2), pods("y", "root.a", 2))
    assert list(placed(simulate(given)).values()) == ["n1", "n2", "n1", "n2"]
    result = simulate(given, policies=[example("close_together.py:CloseTogether")])
    assert list(placed(result).values()) == ["n1", "n1", "n2", "n2"]


def test_the_example_of_a_queue_order_shares_by_weight() -> None:
    given = workload(node("n1", 8), pods("x", "root.a", 8), pods("y", "root.b", 8))
    result = simulate(given, policies=[example("weighted_queues.py:WeightedQueues")])
    assert sorted(key[0] for key in placed(result)) == ["x"] * 2 + ["y"] * 6


def test_the_example_of_an_application_order_starts_the_shortest_first() -> None:
    given = workload(
        node("n1", 1),
        pods("long", "root.a", 1, duration_s=100),
        pods("short", "root.a", 1, duration_s=10),
        pods("unknown", "root.a", 1),
    )
    result = simulate(given, policies=[example("shortest_first.py:ShortestFirst")])
    assert started(result) == ["short", "long", "unknown"]


def test_the_example_of_a_choice_of_device_keeps_untouched_ones() -> None:
    result = devices_of_shares([600, 400, 500, 300], example("spread_devices.py:SpreadDevices"))
    assert result == {"p0": (0,), "p1": (0,), "p2": (1,), "p3": (1,)}
