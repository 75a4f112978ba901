"""Clusters whose nodes have devices, with gangs, placeholders, evictions and reservations; and books of them, kept here.

`Books` watches a simulation. It knows from the outputs of the scheduler what runs where, and looks after each moment at who
holds which devices: each allocation those that it wants, on its node, the same from its start to its end, and no device more
than it has. It tries by brute force whether evictions make room. `FAULTS` are planted faults; run as a program with the name of
one, this plants it, simulates random clusters until the books, or a comparison, notice it, and prints how.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from common.planting import raised_by_a_law, replace
from core.bench import config
from licorne.core.nodes import devices as devices_module
from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.core.nodes.devices import DeviceRoom, NodeDevices
from licorne.core.nodes.needs import Needs
from licorne.core.nodes.node import Need
from licorne.core.partition import Partition
from licorne.core.preemption import required_node
from licorne.core.preemption.claims import Claims
from licorne.core.preemption.evictions import Outcome
from licorne.core.waiting.wakeups import WakeUps
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.si.messages import NewAllocation, Output, Released, Termination
from licorne.sim.observer import Observer
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.sim.simulation import SimulatedCluster
from licorne.workload.devices import Devices
from licorne.workload.lines import App, Ask, Line, Node, TaskGroup
from licorne.workload.workload import Mode, Workload

GPU = "gpu"
SIZES = (200, 300, 500, 500, 700, 1000, 1000, 2000, 3000)
QUEUES = config(
    "low properties: {application.sort.policy: fifo}",
    "high resources: {guaranteed: {gpu: 64000}}, properties: {application.sort.policy: fifo, preemption.delay: 1s}",
)
SETTINGS = {"reservation.delay": "2s"}


def demand(amount: int) -> tuple[int, int]:
    """Return how many devices an amount is about, and how many thousandths of each."""
    return (1 if amount else 0, amount) if amount < 1000 else (amount // 1000, 1000)


def could_run(free: Sequence[int], amount: int) -> bool:
    """Tell by trying all sets of devices whether one serves an amount."""
    number, each = demand(amount)
    return any(all(free[index] >= each for index in some) for some in combinations(range(len(free)), number))


class Books(Observer):
    """Compares who holds devices with what runs. `evictions`: how many asks evicted, `handed_over`: placeholders replaced."""

    def __init__(self) -> None:
        self.evictions = 0
        self.handed_over = 0
        self.gangs = 0
        self._looked_at: dict[str, None] = {}
        self._known: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._places: dict[str, tuple[str, tuple[int, ...]]] = {}

    def on_begin(self, simulation: SimulatedCluster) -> None:
        """Take the simulation."""
        self._simulation = simulation

    def on_outputs(self, now_ns: int, outputs: Sequence[Output], *, deciding: bool) -> None:
        """Compare as soon as something was decided, and look at what was evicted for whom."""
        del now_ns, deciding
        for output in outputs:
            if isinstance(output, Released) and output.termination is Termination.PLACEHOLDER_REPLACED:
                run = self._simulation.model.running.get((output.application_id, output.key))
                if run is not None:
                    key = output.message.removeprefix("replacing allocationKey: ")
                    self._places[key] = run.node, self._known.get(output.key, ("", ()))[1]
            if isinstance(output, NewAllocation) and output.key in self._places:
                self._check_succession(output)
        partition = self._simulation.partition
        for eviction in list(partition.evictions):
            if eviction.ask not in self._looked_at:
                self._looked_at[eviction.ask] = None
                if eviction.outcome is Outcome.WAITING:  # else another node has opened in the same call
                    self.evictions += 1
                    check_eviction(partition, eviction.ask)
        self._compare(partition)

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Partition) -> None:
        """Compare what is held at the end of a moment."""
        del now_ns, until_ns
        self._compare(partition)
        partition.needs.validate()
        partition.claims.validate()

    def _check_succession(self, real: NewAllocation) -> None:
        devices = self._simulation.model.devices
        assert devices is not None
        node, held = self._places.pop(real.key)
        if real.node_id == node and real.resource.get(GPU):
            mine = devices.held(real.application_id, real.key)
            assert mine and {*mine} <= {*held}, f"{real.key} has {mine} in place of {held}"
            self.handed_over += 1

    def _compare(self, partition: Partition) -> None:
        live: dict[str, None] = {}
        for node in partition.nodes.values():
            left = [1000] * (node.capacity.named(partition.types).get(GPU, 0) // 1000)
            for alloc in node.allocations:
                amount = alloc.shape.resource.get(GPU, 0)
                number, each = demand(amount)
                if not number:
                    continue
                assert node.devices is not None
                real_in_flight = alloc.app.gang is not None and alloc.id in alloc.app.gang.arriving
                held = node.devices.held.get(alloc)
                assert held is not None, f"{alloc.key} has no devices"
                assert len({*held.devices}) == number and held.each == each, f"{alloc.key}: {held} for {amount}"
                for index in held.devices:
                    left[index] -= each
                if not real_in_flight:
                    live[alloc.id] = None
                    known = self._known.setdefault(alloc.id, (node.id, held.devices))
                    assert known == (node.id, held.devices), f"{alloc.key} has moved from {known} to {held}"
            assert min(left, default=0) >= 0, f"over-committed: {left} on {node.id}"
            assert left == (node.devices.free if node.devices is not None else []), f"{node.id} has {left} left"
        self._known = {key: where for key, where in self._known.items() if key in live}


def check_eviction(partition: Partition, key: str) -> None:
    """Try all subsets of an ask's victims: all together make room for it on its node, and none of them is superfluous."""
    ask = next((ask for ask in partition.claims.by_ask if ask.key == key), None)
    assert ask is not None and ask.reserved is not None and ask.reserved.devices is not None, key
    node = ask.reserved
    mine = [e.victim for e in partition.evictions if e.ask == key]
    leaving = [alloc for alloc in node.allocations if alloc.preempted]
    victims = [alloc for alloc in leaving if alloc.id in mine]
    others = [alloc for alloc in leaving if alloc.id not in mine]

    def fits(gone: Sequence[Any]) -> bool:
        assert node.devices is not None
        free = list(node.devices.free)
        room = node.free.clone()
        for alloc in gone:
            room.plus(alloc.shape.amounts)
            for index in node.devices.held[alloc].devices if alloc in node.devices.held else ():
                free[index] += node.devices.held[alloc].each
        return could_run(free, ask.shape.resource.get(GPU, 0)) and bool(room.covers(ask.shape.amounts))

    assert victims and fits([*others, *victims]), f"{key} evicts in vain"
    for size in range(len(victims)):
        for some in combinations(victims, size):
            assert not fits([*others, *some]), f"{key} evicts {len(victims)}, and {size} are enough"


def random_workload(rng: random.Random) -> Workload:
    """Return a few nodes and applications of every kind, at random times."""
    nodes = rng.randint(1, 3)
    lines: list[Line] = [
        Node(at=0, id=f"n{i}", res={"vcore": rng.choice([6, 100]), GPU: 1000 * rng.randint(1, 4)}) for i in range(nodes)
    ]
    later: list[Line] = []
    for number in range(rng.randint(2, 7)):
        name, at = f"a{number}", rng.randint(0, 12)
        queue = rng.choice(["root.low", "root.low", "root.high"])
        kind = rng.choice(["pods", "pods", "atomic", "placeholders"])
        res = {"vcore": 1, GPU: rng.choice(SIZES)}
        members = rng.randint(1, 4)
        other = {"vcore": 1, GPU: rng.choice((*SIZES, 0))}
        groups = (TaskGroup(name="g", min=members, res=res), TaskGroup(name="h", min=1, res=other))
        gang = () if kind == "pods" else groups[: rng.randint(1, 2)]
        later.append(App(at=at, id=name, queue=queue, user="u", gang=gang, atomic=kind == "atomic"))
        for one in gang or groups[:1]:
            for index in range(one.min + rng.choice([0, 0, 1])):
                mine = one.res
                if rng.random() < 0.3:  # a real ask must not be larger than its placeholder
                    most = one.res[GPU] if kind == "placeholders" else max(SIZES)
                    mine = {"vcore": 1, GPU: rng.choice([size for size in SIZES if size <= most] or [0])}
                required = not gang and rng.random() < 0.3
                later.append(
                    Ask(
                        at=at + rng.randint(0, 2),
                        key=f"{name}-{one.name}{index}",
                        app=name,
                        res=mine,
                        group=one.name if gang else "",
                        duration_s=rng.randint(1, 25),
                        pre_self=True,
                        pre_other=True,
                        prio=rng.randint(0, 1),
                        tags={TAG_REQUIRED_NODE: f"n{rng.randrange(nodes)}"} if required else None,
                    )
                )
    later.sort(key=lambda line: (line.at or 0, isinstance(line, Ask)))
    policy = rng.choice(["least-left", "most-left", "first"])
    return Workload(
        name="w",
        mode=Mode.TIMED,
        config=QUEUES,
        lines=[*lines, *later],
        devices=GPU,
        device_policy=policy,  # type: ignore[arg-type]
        grace_s=rng.choice([0, 1, 3]),
        resubmit=False,
    )


def run(workload: Workload, *, parking: bool = True) -> tuple[Result, Books]:
    """Simulate a workload under the eyes of the books."""
    books = Books()
    settings = SETTINGS if parking else {**SETTINGS, "scheduler.parking": "false"}
    return simulate(workload, settings=settings, observers=[books]), books


# -- planted faults ----------------------------------------------------------------------------------------------


def _nothing(*_: object, **__: object) -> None:
    return None


def _as_one_sum(self: Any) -> bool:
    return bool(sum(self._free) >= self._demand.number * self._demand.each)


def _suffices_always(*_: object) -> bool:
    return True


def _nobody(*_: object) -> tuple[()]:
    return ()


def _plant_no_claims() -> None:
    sound = Claims.fits_node

    def without_devices(self: Any, ask: Any, node: Any) -> bool:
        return ask.shape.need.demand is not None or sound(self, ask, node)

    Claims.fits_node = without_devices  # type: ignore[method-assign]


def _wakes_nobody_without_room(sound: Any) -> Any:
    """An ask that waits is told of freed amounts only if nothing of the node's devices has come free."""

    def freed(self: Any, node: Any) -> None:
        if node.devices is None:
            sound(self, node)

    return freed


def _plant_lost_wake_up() -> None:
    WakeUps.node_freed = _wakes_nobody_without_room(WakeUps.node_freed)  # type: ignore[method-assign]
    WakeUps.node_opened = _wakes_nobody_without_room(WakeUps.node_opened)  # type: ignore[method-assign]


def _plant(owner: Any, name: str, broken: Any) -> Any:
    return lambda: replace(owner, name, broken)


def _plant_the_sum() -> None:
    devices_module.max = lambda free, **_: sum(free)  # type: ignore[attr-defined]  # the module has no other


def _plant_no_trials() -> None:
    Needs.try_take = Needs.undo_try = _nothing  # type: ignore[method-assign]


FAULTS = {
    "trials of gangs take no devices": _plant_no_trials,
    "a placeholder hands nothing over": _plant(Needs, "hand_over", _nothing),
    "what victims leave counts as one sum": _plant(DeviceRoom, "suffices", _as_one_sum),
    "devices always suffice beside victims": _plant(DeviceRoom, "suffices", _suffices_always),
    "devices are not given back": _plant(NodeDevices, "give_back", _nothing),
    "the labels have the sum of what is left": _plant_the_sum,
    "touched devices count as untouched": _plant(
        devices_module, "untouched", lambda free: (i for i, f in enumerate(free) if f)
    ),
    "an ask does not say that it wants devices": _plant(Devices, "marked", lambda _, ask: ask),
    "the labels stay as they were": _plant(Needs, "_devices_changed", _nothing),
    "devices that come free wake no ask": _plant_lost_wake_up,
    "an ask for a required node evicts beside the claim of another": _plant(required_node, "_claiming_beside", _nobody),
    "an ask takes devices that another claims": _plant_no_claims,
    "what is in use keeps an ask from reserving": _plant(Need, "of_empty", lambda self: self),
}
ENOUGH = 400
"""A fault that is not caught in so many random clusters is not caught."""


def caught() -> str:
    """Return how the first broken law is noticed; empty if none is broken. Other errors are raised."""
    for seed in range(ENOUGH):
        workload = random_workload(random.Random(seed))
        try:
            together, _ = run(workload)
            alone, _ = run(workload, parking=False)
            assert together.digest == alone.digest, "parking matters"
            check_starving()
        except Exception as error:
            if not raised_by_a_law(error, sys.modules[__name__]):
                raise
            return f"caught after {seed + 1} clusters: {type(error).__name__} {error}"
    return ""


def starving() -> Workload:
    """An ask for both devices of a node, and a stream of shares that would keep one of them in use for ever.

    Another node, whose devices nobody accepts, keeps the cluster from being full.
    """
    only_n = {CONSTRAINTS_TAG: '{"nodeSelector":{"model":"a"}}'}
    res = {"vcore": 100, GPU: 2000}
    lines: list[Line] = [
        Node(at=0, id="n", res=res, attrs={"label/model": "a"}),
        Node(at=0, id="m", res=res, attrs={"label/model": "b"}),
        App(at=0, id="s", queue="root.low", user="u"),
        App(at=0, id="big", queue="root.low", user="u"),
        *[
            Ask(at=number * 7, key=f"s{number}", app="s", res={"vcore": 1, GPU: 600}, duration_s=12, tags=only_n)
            for number in range(40)
        ],
        Ask(at=20, key="whole", app="big", res={"vcore": 1, GPU: 2000}, duration_s=10, tags=only_n),
    ]
    lines.sort(key=lambda line: line.at or 0)
    return Workload(name="w", mode=Mode.TIMED, config=QUEUES, lines=lines, devices=GPU, resubmit=False)


def check_starving() -> float:
    """Return when the ask for both devices starts: when the shares that ran at its reservation have ended."""
    result, _ = run(starving())
    start_s = next(pod.start_s for pod in result.pods if pod.key == "whole")
    assert start_s is not None and start_s <= 35, f"the ask for both devices starts at {start_s}"
    return start_s


if __name__ == "__main__":
    if sys.argv[1:]:
        FAULTS[sys.argv[1]]()
    sys.stdout.write(f"{sys.argv[1] if sys.argv[1:] else 'nothing'}: {caught() or 'not caught'}\n")
