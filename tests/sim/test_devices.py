"""Devices: what a demand means, which device is taken, and what simulations make of it; random ones are in `test_device_worlds`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from licorne.core.nodes.constraints import (
    CONSTRAINTS_TAG,
    DEVICE_POLICY_ATTRIBUTE,
    DEVICES_ATTRIBUTE,
    NodeLabels,
    parse_constraints,
)
from licorne.core.nodes.devices import CHOICES, Demand, DevicesLeft, NodeDevices, first, least_left, most_left
from licorne.core.nodes.reading import ConstraintError
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.devices import Devices
from licorne.workload.lines import App, Ask, Line, Node
from licorne.workload.workload import Mode, Workload, WorkloadError, parse_workload
from sim.device_worlds import could_run

GPU = "gpu"
amounts = st.one_of(st.integers(1, 999), st.sampled_from([100, 250, 300, 460, 500, 700, 1000, 2000, 3000]))
CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"


# -- demands and choices -----------------------------------------------------------------------------------------


@given(amounts, st.lists(st.integers(0, 1000) | st.sampled_from([0, 1000]), max_size=5).map(tuple))
def test_a_demand_fits_if_some_set_of_devices_serves_it_and_the_labels_say_so(
    amount: int, free: tuple[int, ...]
) -> None:
    demand = Demand.of(amount)
    assert demand.fits(free) == could_run(free, amount)
    assert DevicesLeft.of(free).suffice(demand) == could_run(free, amount)


@pytest.mark.parametrize("amount", [-1, 1001, 1460, 2500])
def test_parts_of_several_devices_are_no_demand(amount: int) -> None:
    with pytest.raises(ValueError, match="neither a share of one device"):
        Demand.of(amount)


@pytest.mark.parametrize(
    ("free", "share", "expected"),
    [  # least left, most left, first
        ((1000, 540, 460, 460), 460, (2, 0, 0)),
        ((300, 540, 1000, 1000), 400, (1, 2, 1)),
        ((0, 500, 500), 500, (1, 1, 1)),
    ],
)
def test_the_policies_choose_different_devices(
    free: tuple[int, ...], share: int, expected: tuple[int, int, int]
) -> None:
    assert (least_left(free, share), most_left(free, share), first(free, share)) == expected


@given(st.sampled_from(list(CHOICES.values())), st.lists(st.integers(0, 1000), min_size=1, max_size=6), st.data())
def test_a_policy_chooses_a_device_that_suffices(choose: Any, free: list[int], data: st.DataObject) -> None:
    share = data.draw(st.integers(0, max(free)))
    assert free[choose(free, share)] >= share


class Holder:
    """Stands for an allocation, of which the books of devices know nothing but that it is not another one."""


def take(devices: NodeDevices, holder: Any, amount: int, choose: Any = None) -> tuple[int, ...]:
    devices.take(holder, Demand.of(amount), choose)
    return devices.held[holder].devices if holder in devices.held else ()


def test_a_choice_of_a_full_device_is_refused() -> None:
    devices = NodeDevices(2, "first")
    assert take(devices, Holder(), 600, lambda *_: 0) == (0,)
    with pytest.raises(ValueError, match=r"the policy chose device 0 of \[400, 1000\] for a share of 600"):
        take(devices, Holder(), 600, lambda *_: 0)
    assert devices.free == [400, 1000]


@given(st.lists(st.tuples(amounts, st.booleans(), st.integers(0, 4)), max_size=30), st.sampled_from(list(CHOICES)))
def test_what_is_taken_and_given_back_adds_up(steps: list[tuple[int, bool, int]], policy: str) -> None:
    """Against a list of (device, amount) pairs from which each sum is computed anew."""
    devices = NodeDevices(4, policy)
    held: dict[Any, list[tuple[int, int]]] = {}

    def left() -> tuple[int, ...]:
        used = [pair for pairs in held.values() for pair in pairs]
        return tuple(1000 - sum(amount for device, amount in used if device == index) for index in range(4))

    for amount, ends, which in steps:
        if ends and held:
            holder = list(held)[which % len(held)]
            devices.give_back(holder)
            del held[holder]
        else:
            fits = could_run(left(), amount)
            holder = Holder()
            taken = take(devices, holder, amount)
            assert bool(taken) == fits
            if taken:
                held[holder] = [(index, min(amount, 1000)) for index in taken]
                assert sum(part for _, part in held[holder]) == amount
        assert tuple(devices.free) == left()
        assert min(left()) >= 0


def test_devices_that_go_take_along_what_was_on_them() -> None:
    devices = NodeDevices(2, "least-left")
    a: Any = Holder()
    take(devices, a, 2000)
    devices.resize(1)
    devices.resize(3)
    assert devices.free == [0, 1000, 1000]
    devices.give_back(a)
    assert devices.free == [1000, 1000, 1000]


@pytest.mark.parametrize(
    ("held", "wanted", "left"),
    [
        (2000, 2000, [0, 0, 1000]),
        (2000, 1000, [0, 1000, 1000]),
        (1000, 300, [700, 1000, 1000]),
        (500, 300, [700, 1000, 1000]),
    ],
)
def test_a_placeholder_hands_over_its_devices_and_gives_back_the_rest(held: int, wanted: int, left: list[int]) -> None:
    devices = NodeDevices(3, "most-left")
    place: Any = Holder()
    real: Any = Holder()
    before = take(devices, place, held)
    assert devices.suffices_of(place, Demand.of(wanted))
    devices.hand_over(place, real, Demand.of(wanted))
    assert devices.free == left and place not in devices.held
    assert {*devices.held[real].devices} <= {*before}


@pytest.mark.parametrize(("held", "wanted"), [(300, 500), (1000, 2000), (500, 1000)])
def test_a_placeholder_without_enough_devices_hands_over_nothing(held: int, wanted: int) -> None:
    devices = NodeDevices(3, "first")
    place: Any = Holder()
    take(devices, place, held)
    assert not devices.suffices_of(place, Demand.of(wanted))
    devices.hand_over(place, Holder(), Demand.of(wanted))  # type: ignore[arg-type]
    assert [*devices.held] == [place]


def test_a_demand_is_added_to_the_constraints_that_an_ask_has() -> None:
    devices = Devices(GPU)
    text = msgspec.json.encode({"nodeSelector": {"a": "b"}}).decode()
    ask = Ask(key="a", app="a", res={GPU: 460}, tags={CONSTRAINTS_TAG: text, "other": "kept"})
    tags = devices.marked(ask).tags or {}
    assert msgspec.json.decode(tags[CONSTRAINTS_TAG]) == {"nodeSelector": {"a": "b"}, "devices": 460}
    assert tags["other"] == "kept"
    plain = Ask(key="b", app="a", res={"vcore": 1})
    assert devices.marked(plain) is plain


@pytest.mark.parametrize(
    ("devices", "complaint"),
    [
        (-1, "devices: -1: must be an integer from 0 to 10000000, in thousandths of a device"),
        (True, "devices: true: must be an integer"),
        ("460", 'devices: "460": must be an integer'),
        (1460, "devices: 1460: must be a share of one device, 1 to 999, or a multiple of 1000"),
    ],
)
def test_a_malformed_demand_is_refused(devices: object, complaint: str) -> None:
    with pytest.raises(ConstraintError) as refusal:
        parse_constraints(msgspec.json.encode({"devices": devices}).decode())
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({DEVICES_ATTRIBUTE: "many"}, 'licorne/devices: "many": must be an integer from 0 to 10000'),
        ({DEVICES_ATTRIBUTE: "-1"}, 'licorne/devices: "-1": must be an integer'),
        (
            {DEVICE_POLICY_ATTRIBUTE: "best"},
            'licorne/device-policy: "best": must be one of least-left, most-left, first',
        ),
    ],
)
def test_malformed_devices_of_a_node_are_refused(attributes: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConstraintError) as refusal:
        NodeLabels.from_attributes(attributes)
    assert complaint in str(refusal.value)


# -- whole simulations -------------------------------------------------------------------------------------------


def workload(nodes: list[int], asks: list[tuple[int, float, int | None]], **fields: Any) -> Workload:
    """Nodes with thousandths of GPUs; asks with thousandths, arrival and duration in seconds."""
    lines: list[Line] = [Node(id=f"n{i}", res={"vcore": 100, GPU: amount}) for i, amount in enumerate(nodes)]
    lines.append(App(id="a", queue="root.q", user="u"))
    for number, (amount, at, duration_s) in enumerate(sorted(asks, key=lambda ask: ask[1])):
        res = {"vcore": 1, GPU: amount}
        lines.append(Ask(at=at, key=str(number), app="a", res=res, duration_s=duration_s))
    return Workload(name="w", mode=Mode.TIMED, config=CONFIG, lines=lines, devices=GPU, **fields)


def run(given_workload: Workload) -> Result:
    return simulate(given_workload, settings={"reservation.enabled": "false"})


sizes = st.sampled_from([200, 300, 460, 500, 540, 700, 999, 1000, 2000])


@examples(30)
@given(st.lists(st.sampled_from([1000, 2000, 3000]), min_size=1, max_size=3), st.lists(sizes, min_size=1, max_size=12))
def test_an_ask_waits_only_if_no_placement_of_the_others_on_their_nodes_would_do(
    nodes: list[int], wanted: list[int]
) -> None:
    """Pods stay: with the policy that fills devices, compared with a book of each device kept here."""
    result = run(workload(nodes, [(amount, number, None) for number, amount in enumerate(wanted)]))
    free = {f"n{index}": [1000] * (capacity // 1000) for index, capacity in enumerate(nodes)}
    placed = {pod.key: pod.node for pod in result.pods if pod.node}
    for number, amount in enumerate(wanted):
        node = placed.get(str(number))
        if node is None:
            assert not any(could_run(tuple(left), amount) for left in free.values())
            continue
        each, some = min(amount, 1000), max(1, amount // 1000)
        for _ in range(some):
            chosen = min((left, index) for index, left in enumerate(free[node]) if left >= each)[1]
            free[node][chosen] -= each


@examples(30)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=20))
def test_asks_without_devices_are_decided_as_without_them(asks: list[tuple[int, int, int]]) -> None:
    lines: list[Line] = [Node(id=f"n{i}", res={"vcore": 60, GPU: 2000}) for i in range(3)]
    lines.append(App(id="a", queue="root.q", user="u"))
    for number, (vcore, at, duration_s) in enumerate(sorted(asks, key=lambda ask: ask[1])):
        lines.append(Ask(at=at, key=str(number), app="a", res={"vcore": vcore}, duration_s=duration_s))
    plain = Workload(name="w", mode=Mode.TIMED, config=CONFIG, lines=lines)
    assert simulate(plain).digest == simulate(msgspec.structs.replace(plain, devices=GPU)).digest


def test_eight_half_used_devices_are_no_four_free_ones() -> None:
    halves = [(600, 0.0, None)] * 4
    result = run(workload([4000], [*halves, (1000, 1.0, None)]))
    assert (result.placed, result.never_placed) == (4, 1)
    assert result.reasons[0].reason == "no node will do (devices in use)"
    assert not run(workload([4000], [*[(500, 0.0, None)] * 4, (2000, 1.0, None)])).never_placed  # two and two share


def test_the_policy_decides_whether_a_whole_device_is_left() -> None:
    asks: list[tuple[int, float, int | None]] = [(400, 0, None), (400, 1, None), (1000, 2, None)]
    assert run(workload([2000], asks)).placed == 3
    assert run(workload([2000], asks, device_policy="most-left")).placed == 2


def test_a_device_is_free_again_at_the_moment_when_its_pod_ends() -> None:
    result = run(workload([1000], [(1000, 0, 10), (700, 1, 5), (300, 1, 5), (1000, 2, 5)]))
    assert [(pod.key, pod.start_s) for pod in result.pods] == [("0", 0), ("1", 10), ("2", 10), ("3", 15)]


def test_an_evicted_pod_holds_its_device_until_it_is_gone() -> None:
    """The guarantee of one queue evicts a pod of the other, which ends 5 s later."""
    lines = [
        '{"t":"meta","version":2,"devices":"gpu","grace_s":5,"resubmit":false}',
        msgspec.json.encode(
            {
                "t": "config",
                "yaml": "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: low}, "
                "{name: high, resources: {guaranteed: {vcore: 2}}, properties: {preemption.delay: 1s}}]}]}]",
            }
        ).decode(),
        '{"t":"node","id":"n","res":{"vcore":2,"gpu":1000},"at":0}',
        '{"t":"app","id":"l","queue":"root.low","user":"u","at":0}',
        '{"t":"app","id":"h","queue":"root.high","user":"u","at":0}',
        '{"t":"ask","key":"l0","app":"l","res":{"vcore":2,"gpu":600},"pre_self":true,"at":0}',
        '{"t":"ask","key":"h0","app":"h","res":{"vcore":2},"pre_other":true,"at":1}',
        '{"t":"ask","key":"l1","app":"l","res":{"gpu":600},"at":1}',
    ]
    result = simulate(parse_workload(line.encode() for line in lines))
    started = {pod.key: pod.start_s for pod in result.pods}
    evicted = next(pod for pod in result.pods if pod.key == "l0")
    assert evicted.end_s == 7 and started["l1"] == 7, result.pods


# -- what is refused ---------------------------------------------------------------------------------------------

HEAD = '{"t":"meta","version":2,"devices":"gpu"}'
NODE = '{"t":"node","id":"n","res":{"gpu":2000},"at":0}'


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((HEAD, NODE, '{"t":"ask","key":"a","app":"a","res":{"gpu":1460}}'), "w:3: res.gpu: 1460 is neither a share"),
        ((HEAD, '{"t":"node","id":"n","res":{"gpu":1500},"at":0}'), "w:2: res.gpu: 1500 are not whole devices"),
        (
            (HEAD, NODE, *(f'{{"t":"ask","key":"a","app":"a","res":{{"gpu":{n}}}}}' for n in (10, 20))),
            "w:4: res.gpu: 20 instead of 10: an ask cannot change its devices",
        ),
        (
            (HEAD, NODE, '{"t":"app","id":"a","gang":[{"name":"g","min":1,"res":{"gpu":1010}}]}'),
            "w:3: gang[0].res.gpu: 1010 is neither a share of one device",
        ),
        ((HEAD, '{"t":"node","id":"n","res":{"gpu":2000}}'), "devices (gpu) need a workload with times"),
        ((HEAD.replace("2", "1"), NODE), 'w:1: devices: needs "version":2 in meta'),
        ((HEAD.replace("}", ',"device_policy":"best"}'), NODE), "w:1: device_policy: invalid enum value 'best'"),
    ],
)
def test_what_devices_are_not_modelled_for_is_refused_with_its_line(lines: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(WorkloadError) as refusal:
        simulate(parse_workload((line.encode() for line in lines), file="w"))
    assert complaint in str(refusal.value)
