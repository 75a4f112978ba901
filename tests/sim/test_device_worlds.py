"""Devices together with gangs, placeholders, evictions and reservations: random clusters under the books of `device_worlds`."""

from __future__ import annotations

import random
import sys
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seeds
from common.examples import examples
from common.plain_python import printed_by
from licorne.core.api import SchedulerAPI
from licorne.core.nodes.constraints import CONSTRAINTS_TAG
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.sim.report import Result
from licorne.sim.runner import simulate
from licorne.workload.lines import App, Ask, Line, Node, NodeUpdate, TaskGroup
from licorne.workload.workload import Mode, Workload
from rings import first_in_gate
from sim.device_worlds import (
    FAULTS,
    GPU,
    QUEUES,
    SETTINGS,
    Books,
    check_starving,
    could_run,
    demand,
    random_workload,
    run,
)

CLUSTERS = 60


def workload(lines: list[Line], **more: Any) -> Workload:
    given_lines = sorted(lines, key=lambda line: line.at or 0)
    return Workload(name="w", mode=Mode.TIMED, config=QUEUES, lines=given_lines, devices=GPU, resubmit=False, **more)


def node(name: str, devices: int, **more: Any) -> Node:
    return Node(at=0, id=name, res={"vcore": 100, GPU: 1000 * devices}, **more)


def ask(key: str, app: str, amount: int, **more: Any) -> Ask:
    return Ask(key=key, app=app, res={"vcore": 1, GPU: amount}, **more)


def starts(result: Result) -> dict[str, float | None]:
    return {pod.key: pod.start_s for pod in result.pods}


# -- random clusters ---------------------------------------------------------------------------------------------


def test_books_agree_in_random_clusters_and_parking_changes_nothing() -> None:
    """Also that gangs of both kinds, evictions and replacements are met, so that something was compared; by random seeds not."""
    met: dict[str, int] = dict.fromkeys(("evictions", "handed over", "placeholders", "atomic"), 0)
    for seed in seeds.some_seeds("LICORNE_DEVICES_SEED", CLUSTERS):
        sys.stdout.write(f"to run this again, first: LICORNE_DEVICES_SEED={seed}\n")
        given_workload = random_workload(random.Random(seed))
        together, books = run(given_workload)
        alone, _ = run(given_workload, parking=False)
        assert together.digest == alone.digest, f"seed {seed}: parking matters"
        met["evictions"] += books.evictions
        met["handed over"] += books.handed_over
        for gang in together.gangs:
            met[gang.kind] += gang.started
    assert not seeds.MEETS_ALL or min(met.values()) >= 10, met


@pytest.mark.parametrize("fault", first_in_gate(FAULTS))
def test_a_planted_fault_is_caught_in_random_clusters(fault: str) -> None:
    assert printed_by("sim.device_worlds", fault).startswith(f"{fault}: caught after ")


# -- gangs -------------------------------------------------------------------------------------------------------

amounts = st.sampled_from([200, 300, 400, 500, 700, 1000, 2000])


def most_that_fit(free: list[int], amount: int) -> int:
    """How many asks for an amount fit devices with this much left, by trying one more as long as one fits."""
    left, count = list(free), 0
    while could_run(left, amount):
        number, each = demand(amount)
        chosen = next(
            some for some in combinations(range(len(left)), number) if all(left[index] >= each for index in some)
        )
        for index in chosen:
            left[index] -= each
        count += 1
    return count


@examples(60)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(amounts, max_size=6),
    amounts,
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from(["least-left", "most-left", "first"]),
)
def test_a_gang_of_equal_members_starts_if_and_only_if_there_are_devices_for_all(
    sizes: list[int], before: list[int], amount: int, members: int, atomic: bool, policy: Any
) -> None:
    """For equal members it does not matter in which order, and on which sufficing device, they are placed."""
    res = {"vcore": 1, GPU: amount}
    lines: list[Line] = [node(f"n{index}", size) for index, size in enumerate(sizes)]
    lines.append(App(at=0, id="b", queue="root.low", user="u"))
    lines += [ask(f"b{index}", "b", size, at=index + 1) for index, size in enumerate(before)]
    gang = (TaskGroup(name="g", min=members, res=res),)
    lines.append(App(at=10, id="g", queue="root.low", user="u", gang=gang, atomic=atomic))
    lines += [Ask(at=10, key=f"g{index}", app="g", res=res, group="g", duration_s=5) for index in range(members)]
    found: list[int] = []

    class Before(Books):
        def on_moment(self, now_ns: int, until_ns: int | None, partition: Any) -> None:
            super().on_moment(now_ns, until_ns, partition)
            if now_ns < 10_000_000_000:
                nodes = partition.nodes.values()
                found[:] = [sum(most_that_fit(each.devices.free, amount) for each in nodes)]

    settings = {"reservation.enabled": "false"}
    result = simulate(workload(lines, device_policy=policy), settings=settings, observers=[Before()])
    started = {key for key, at in starts(result).items() if key.startswith("g") and at == 10}
    assert len(started) == (members if found[0] >= members else 0)


def test_members_of_a_gang_do_not_count_on_the_same_device() -> None:
    """Three members want 600 each; two devices have room for two of them, although 2000 thousandths are left."""
    res = {"vcore": 1, GPU: 600}
    lines: list[Line] = [
        node("n", 2),
        App(at=0, id="g", queue="root.low", user="u", gang=(TaskGroup(name="g", min=3, res=res),), atomic=True),
        *[Ask(at=0, key=f"g{index}", app="g", res=res, group="g", duration_s=5) for index in range(3)],
        Node(at=20, id="m", res={"vcore": 100, GPU: 1000}),
    ]
    assert set(starts(run(workload(lines))[0]).values()) == {20}


def test_an_ask_that_repeats_gets_devices_for_each_of_its_allocations() -> None:
    lines: list[Line] = [
        node("n", 2),
        App(at=0, id="a", queue="root.low", user="u"),
        ask("a", "a", 600, at=0, max=3, duration_s=10),
    ]
    result, _ = run(workload(lines))
    assert sorted(pod.start_s for pod in result.pods if pod.start_s is not None) == [0, 0, 10]


def test_a_gang_holds_nodes_for_its_plan_of_devices() -> None:
    """The gang needs both devices of the node, which shares of others use; it gets them as soon as the longer one ends."""
    res = {"vcore": 1, GPU: 1000}
    lines: list[Line] = [
        node("n", 2),
        node("spare", 1, attrs={"label/for": "nobody"}),
        App(at=0, id="a", queue="root.low", user="u"),
        ask("a0", "a", 500, at=0, duration_s=20, timeout_ms=20_000),
        ask("a1", "a", 600, at=0, duration_s=10, timeout_ms=10_000),
        App(at=1, id="g", queue="root.low", user="u", gang=(TaskGroup(name="g", min=2, res=res),), atomic=True),
        *[
            Ask(at=1, key=f"g{index}", app="g", res=res, group="g", duration_s=5, tags=KEPT_OFF_SPARE)
            for index in range(2)
        ],
        *[ask(f"late{index}", "a", 600, at=5 + index, duration_s=30, tags=KEPT_OFF_SPARE) for index in range(3)],
    ]
    found = starts(run(workload(lines))[0])
    assert found["g0"] == found["g1"] == 20, found
    assert [found[f"late{index}"] for index in range(3)] == [25, 25, 55], found


KEPT_OFF_SPARE = {
    "licorne/node-constraints": '{"nodeAffinity":[[{"key":"for","operator":"DoesNotExist"}]]}',
}

# -- reservations ------------------------------------------------------------------------------------------------


def test_an_ask_for_whole_devices_does_not_starve_behind_shares() -> None:
    """It reserves the node at 22 s; the shares that run then end at 26 s and 33 s."""
    assert check_starving() == 33


def test_an_ask_does_not_reserve_a_node_with_too_few_devices() -> None:
    lines: list[Line] = [
        node("n", 1),
        App(at=0, id="a", queue="root.low", user="u"),
        App(at=0, id="b", queue="root.low", user="u"),
        node("m", 3, attrs={"label/for": "nobody"}),
        ask("two", "a", 2000, at=0, tags=KEPT_OFF_SPARE),
        ask("one", "b", 1000, at=10, duration_s=5),
    ]
    result, _ = run(workload(lines))
    assert starts(result) == {"two": None, "one": 10}
    assert result.reasons[0].reason == "no node will ever do (nodeAffinity; too few devices)"


def test_devices_that_are_added_to_a_node_are_used_at_once() -> None:
    lines: list[Line] = [
        node("n", 1),
        App(at=0, id="a", queue="root.low", user="u"),
        ask("a0", "a", 2000, at=0),
        NodeUpdate(at=30, id="n", res={"vcore": 100, GPU: 2000}),
    ]
    assert starts(run(workload(lines))[0]) == {"a0": 30}


# -- evictions ---------------------------------------------------------------------------------------------------


@examples(80)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.lists(amounts, max_size=5)), min_size=1, max_size=2),
    amounts,
)
def test_the_fewest_victims_go_whose_devices_make_room_or_none(nodes: list[tuple[int, list[int]]], wanted: int) -> None:
    """Against all subsets of what runs on each node. All allocations are alike but for their devices."""
    lines: list[Line] = [
        node(f"n{index}", size, attrs={"label/id": str(index)}) for index, (size, _) in enumerate(nodes)
    ]
    lines.append(node("spare", 3, attrs={"label/id": "spare"}))  # so that the cluster as a whole is not full
    lines.append(App(at=0, id="l", queue="root.low", user="u"))
    lines.append(App(at=0, id="h", queue="root.high", user="u"))
    for index, (_, sizes) in enumerate(nodes):
        here = {"licorne/node-constraints": f'{{"nodeSelector":{{"id":"{index}"}}}}'}
        lines += [ask(f"l{index}-{n}", "l", size, at=n, pre_self=True, tags=here) for n, size in enumerate(sizes)]
    there = '{"nodeAffinity":[[{"key":"id","operator":"NotIn","values":["spare"]}]]}'
    lines.append(ask("h", "h", wanted, at=20, duration_s=5, pre_other=True, tags={"licorne/node-constraints": there}))
    fewest: list[int] = []

    class Before(Books):
        def on_moment(self, now_ns: int, until_ns: int | None, partition: Any) -> None:
            super().on_moment(now_ns, until_ns, partition)
            if now_ns < 20_000_000_000:
                fewest[:] = sorted(
                    size
                    for each in partition.nodes.values()
                    if each.id != "spare"
                    for size in range(len(each.allocations) + 1)
                    for gone in combinations(each.allocations, size)
                    if could_run(left_when(each.devices, gone), wanted)
                )[:1]

    settings = {"reservation.enabled": "false"}
    result = simulate(workload(lines, grace_s=2), settings=settings, observers=[Before()])
    evicted = sum(pod.outcome == "evicted" for pod in result.pods)
    assert evicted == (fewest[0] if fewest else 0)
    assert (starts(result)["h"] is not None) == bool(fewest)


def left_when(devices: Any, gone: tuple[Any, ...]) -> list[int]:
    """What is left on each device when some allocations have ended."""
    free = list(devices.free)
    for alloc in gone:
        for index in devices.held[alloc].devices:
            free[index] += devices.held[alloc].each
    return free


def test_two_halves_of_different_devices_are_not_evicted_for_a_whole_one() -> None:
    """Any two of the four give 1000 thousandths back, and the newest two are on different devices: they would go in vain."""
    halves = ["a0", "b0", "a1", "b1"]  # a0 and a1 share one device, b0 and b1 the other
    lines: list[Line] = [
        node("n", 2),
        App(at=0, id="l", queue="root.low", user="u"),
        App(at=0, id="h", queue="root.high", user="u"),
        *[ask(key, "l", 500, at=index, pre_self=True) for index, key in enumerate(halves)],
        ask("h", "h", 1000, at=10, duration_s=5, pre_other=True),
    ]
    result, _ = run(workload(lines, grace_s=2, device_policy="most-left"))
    assert {pod.key for pod in result.pods if pod.outcome == "evicted"} == {"b0", "b1"}
    assert starts(result)["h"] == 13  # 1 s of `preemption.delay`, and 2 s of grace


# -- required nodes ----------------------------------------------------------------------------------------------

priorities = st.sampled_from([0, 0, 0, 9])


def requiring(key: str, amount: int, model: str, *, at: float, prio: int = 1) -> Ask:
    """An ask for devices of a model on node n, in the middle between allocations that may go for it and others."""
    tags = {TAG_REQUIRED_NODE: "n", CONSTRAINTS_TAG: f'{{"nodeSelector":{{"model":"{model}"}}}}'}
    return ask(key, "h", amount, at=at, duration_s=5, prio=prio, tags=tags)


def required_world(size: int, present: list[tuple[int, int]]) -> list[Line]:
    """A node of model a with some devices, and allocations on it by amount and priority."""
    only_n = {CONSTRAINTS_TAG: '{"nodeSelector":{"model":"a"}}'}
    lines: list[Line] = [
        node("n", size, attrs={"label/model": "a"}),
        node("spare", 9, attrs={"label/model": "c"}),  # so that the cluster as a whole is not full
        App(at=0, id="l", queue="root.low", user="u"),
        App(at=0, id="h", queue="root.low", user="u"),
    ]
    return lines + [
        ask(f"l{index}", "l", amount, at=index, prio=prio, pre_self=True, tags=only_n)
        for index, (amount, prio) in enumerate(present)
    ]


class SmallestSets(Books):
    """Looks at the node at a moment, and tries which of its allocations that may go would have to, for some amounts.

    `sizes` are the numbers of allocations in the smallest such sets; None for an amount that no set makes room for.
    """

    def __init__(self, at_s: int, amounts_wanted: list[int]) -> None:
        super().__init__()
        self.at_s = at_s
        self.wanted = amounts_wanted
        self.sizes: list[int | None] = []

    def on_moment(self, now_ns: int, until_ns: int | None, partition: Any) -> None:
        """Try all subsets."""
        super().on_moment(now_ns, until_ns, partition)
        if now_ns < self.at_s * 10**9 and "n" in partition.nodes:
            there = partition.nodes["n"]
            may_go = [alloc for alloc in there.allocations if alloc.priority <= 1]
            sets = [gone for size in range(len(may_go) + 1) for gone in combinations(may_go, size)]
            self.sizes = [
                next((len(gone) for gone in sets if could_run(left_when(there.devices, gone), amount)), None)
                for amount in self.wanted
            ]


@examples(120)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(amounts, priorities), max_size=6),
    amounts,
    st.sampled_from(["a", "a", "a", "b"]),
    st.sampled_from(["least-left", "most-left", "first"]),
)
def test_for_a_required_node_the_fewest_go_whose_devices_make_room_or_none(
    size: int, present: list[tuple[int, int]], wanted: int, model: str, policy: Any
) -> None:
    """Against all subsets of what may go there. For a model that the node does not have nobody goes."""
    lines = [*required_world(size, present), requiring("h", wanted, model, at=20)]
    books = SmallestSets(20, [wanted])
    result = simulate(workload(lines, grace_s=2, device_policy=policy), settings=SETTINGS, observers=[books])
    fewest = books.sizes[0] if model == "a" else None
    assert sum(pod.outcome == "evicted" for pod in result.pods) == (fewest or 0)
    assert starts(result)["h"] == (None if fewest is None else 22 if fewest else 20)


@examples(120)
@given(
    st.integers(1, 3),
    st.lists(st.tuples(amounts, priorities), max_size=6),
    st.lists(st.tuples(amounts, st.integers(20, 24)), min_size=2, max_size=4),
    st.sampled_from(["least-left", "most-left", "first"]),
)
def test_asks_that_require_a_node_get_its_devices_one_after_the_other(
    size: int, present: list[tuple[int, int]], wanted: list[tuple[int, int]], policy: Any
) -> None:
    """Each of them runs in the end, if it could when all that may go had gone: none waits for devices that another took."""
    lines = required_world(size, present)
    lines += [requiring(f"h{index}", amount, "a", at=at) for index, (amount, at) in enumerate(wanted)]
    books = SmallestSets(20, [amount for amount, _ in wanted])
    result = simulate(workload(lines, grace_s=2, device_policy=policy), settings=SETTINGS, observers=[books])
    found = starts(result)
    for index, fewest in enumerate(books.sizes):
        at = found[f"h{index}"]
        assert (at is None) == (fewest is None) and (at is None or at < 60), (found, books.sizes)


# -- what else keeps the books -----------------------------------------------------------------------------------


def test_a_checkpoint_keeps_who_holds_which_devices() -> None:
    """A restored scheduler is asked to go on, with an invariant that compares what is left with what is held."""
    seen: list[bool] = []

    class Restoring(Books):
        def on_moment(self, now_ns: int, until_ns: int | None, partition: Any) -> None:
            super().on_moment(now_ns, until_ns, partition)
            api = self._simulation.api
            api.validate()
            again = SchedulerAPI()
            again.restore_checkpoint(api.checkpoint())
            restored = next(iter(next(iter(again.cluster.managers.values())).partitions.values()))
            for name, each in partition.nodes.items():
                if each.devices is not None:
                    other = restored.nodes[name].devices
                    assert other is not None and other.free == each.devices.free
                    mine = {alloc.id: held for alloc, held in each.devices.held.items()}
                    assert {alloc.id: held for alloc, held in other.held.items()} == mine
                    seen.append(bool(mine))
            assert again.checkpoint() == api.checkpoint()

    for seed in seeds.some_seeds("LICORNE_DEVICES_SEED", 3):
        sys.stdout.write(f"to run this again, first: LICORNE_DEVICES_SEED={seed}\n")
        simulate(random_workload(random.Random(seed)), settings=SETTINGS, observers=[Restoring()])
    assert not seeds.MEETS_ALL or any(seen)
