"""Evictions that free more than amounts: host ports, topology domains, volumes for one pod; worked examples, and all sets tried.

`Pod` and `passes` are a reading of the terms of their own, from docs/spec/scheduler-interface.md, section 9.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.examples import examples
from core.bench import Bench, config
from gangs_atomic.helpers import GangBench, task_groups
from gangs_atomic.helpers import tags as gang_tags
from licorne.core.nodes.constraints import FIELD_NAME
from licorne.core.nodes.counted import CLAIMS
from licorne.core.preemption.evictions import Outcome
from licorne.core.preemption.verdicts import NodeVerdict, verdict_of
from licorne.si.constants import ATTRIBUTE_LABEL_PREFIX
from licorne.si.messages import Allocation
from preemption.test_examples import DELAY, confirm, quota, victims
from preemption.test_within import ON
from topology.helpers import node_labels, tags

Term = tuple[str, str]  # topology key, and the label `app` of the pods that are meant


@dataclass(frozen=True)
class Pod:
    """A pod: its label `app`, and what it demands. `mark`: it uses a volume that a single pod may use.

    `claim`: the claim with a device that it uses, as others of its node may; `devices`: how many devices it claims.
    """

    app: str = "web"
    apart: Term | None = None
    near: Term | None = None
    spread: Term | None = None
    port: int = 0
    mark: bool = False
    claim: str = ""
    devices: int = 0

    def tags(self) -> dict[str, str]:
        """The tags of an ask."""
        found = tags(f"app={self.app}", apart=_said(self.apart), near=_said(self.near), spread=_said(self.spread))
        if self.port:
            found["licorne/node-constraints"] = json.dumps({"hostPorts": [{"hostPort": self.port}]})
        if self.mark:
            terms = json.loads(found["licorne/pod-terms"])
            marks = [{"topologyKey": "", "name": "m"}]
            found["licorne/pod-terms"] = json.dumps({**terms, "holds": marks, "unless": marks})
        if self.devices:
            terms = json.loads(found["licorne/pod-terms"])
            claims = {"demand": str(self.devices), "names": ["k"]}
            found["licorne/pod-terms"] = json.dumps({**terms, "claims": claims})
        return found


def _said(term: Term | None) -> str:
    return f"{term[0]} app={term[1]}" if term else ""


DEVICES = 2
Placed = tuple[Pod, str]  # with its node


class Devices:
    """Gives devices to claims; each node has `DEVICES`. `held`: of the claims of a node, the pods that use them."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], set[str]] = {}
        self.lifted: Counter[str] = Counter()
        self.gone: set[str] = set()

    def hold(self, key: str, pod: Pod, node: str) -> Pod:
        """Let a pod use its claim, if there is a device for it."""
        if (pod.claim, node) not in self.held and self.refuses("1", node):
            return replace(pod, claim="")
        self.held.setdefault((pod.claim, node), set()).add(key)
        return pod

    def end(self, pods: Iterable[str]) -> None:
        """Take back what pods used that have ended."""
        left = {key: users.difference(pods) for key, users in self.held.items()}
        self.held = {key: users for key, users in left.items() if users}
        self.gone.clear()

    def refuses(self, demand: str, node: str) -> str:
        taken = [users for (_, at), users in self.held.items() if at == node]
        used = sum(any(self.lifted[key] <= 0 for key in users) for users in taken)
        return "no devices" if used + int(demand) > DEVICES else ""

    def fails(self, _: str) -> str:
        return ""

    def take(self, names: tuple[str, ...], node: str) -> frozenset[str]:
        for name in names:
            self.held[name, node] = {name}
        return frozenset((node,))

    def give_back(self, names: tuple[str, ...], node: str) -> frozenset[str]:
        for name in names:
            del self.held[name, node]
        return frozenset((node,))

    def holds(self, key: str) -> bool:
        return any(key in users for users in self.held.values())

    def lift(self, key: str, change: int) -> frozenset[str]:
        self.lifted.update(dict.fromkeys([key] if key else self.gone, change))
        return frozenset(node for _, node in self.held)


def passes(pod: Pod, node: str, zones: dict[str, str], running: Iterable[Placed]) -> bool:
    """Whether a node takes a pod beside what runs, but for amounts."""
    running = list(running)

    def domain(key: str, of: str) -> str:
        return of if key == "host" else zones[of]

    def count(term: Term, where: str) -> int:
        return sum(one.app == term[1] and domain(term[0], at) == where for one, at in running)

    for one, at in running:
        if (pod.mark and one.mark) or (pod.port and pod.port == one.port and at == node):
            return False
        if one.apart and one.apart[1] == pod.app and domain(one.apart[0], at) == domain(one.apart[0], node) != "":
            return False
    if pod.devices and len({one.claim for one, at in running if at == node} - {""}) + pod.devices > DEVICES:
        return False
    if pod.apart and domain(pod.apart[0], node) and count(pod.apart, domain(pod.apart[0], node)):
        return False
    if pod.near:
        here = domain(pod.near[0], node)
        first = pod.app == pod.near[1] and not any(
            one.app == pod.app and domain(pod.near[0], at) for one, at in running
        )
        if not here or not (count(pod.near, here) or first):
            return False
    if pod.spread:
        here = domain(pod.spread[0], node)
        least = min(
            (count(pod.spread, where) for where in {domain(pod.spread[0], of) for of in zones} - {""}), default=0
        )
        if not here or count(pod.spread, here) + (pod.app == pod.spread[1]) - least > 1:
            return False
    return True


def in_the_way(pod: Pod, node: str, zones: dict[str, str], one: Pod, at: str, running: list[Placed]) -> bool:
    """Whether a pod on another node keeps one off this node now; not if only the end of others makes it do so."""
    alone = Pod(pod.app, pod.apart, mark=pod.mark)
    if not passes(alone, node, zones, [(one, at)]):
        return True
    spread = Pod(pod.app, spread=pod.spread)
    apps = [(Pod(other.app), where) for other, where in running]
    if pod.spread is None or passes(spread, node, zones, apps) or one.app != pod.spread[1]:
        return False
    return pod.spread[0] == "zone" and zones[at] == zones[node] != ""


class World:
    """Nodes of size 4 in zones, pods that run there with priorities, in one queue or another than that of the ask."""

    def __init__(self, zones: list[str], running: list[tuple[Pod, int, int, int]], *, within: bool) -> None:
        self.within = within
        self.zones = {f"n{i}": zone for i, zone in enumerate(zones)}
        self.bench = Bench(config(*((f"a {ON}",) if within else ("a", f"b {quota(20)}"))))
        for name, zone in self.zones.items():
            attributes = node_labels(name, zone) | {ATTRIBUTE_LABEL_PREFIX + FIELD_NAME: name}
            self.bench.node(name, attributes=attributes, vcore=4)
        self.bench.app("x", "root.a")
        self.bench.app("y", "root.a" if within else "root.b")
        self.pods: dict[str, tuple[Pod, int]] = {}
        self.devices = self.bench.partition.needs.topology.allocator = Devices()
        free = dict.fromkeys(self.zones, 4)
        for i, (pod, at, size, priority) in enumerate(running):
            node = f"n{at % len(zones)}"
            if size <= free[node]:
                free[node] -= size
                pod = self.devices.hold(f"v{i}", pod, node) if pod.claim else pod  # noqa: PLW2901
                self.pods[f"v{i}"] = pod, priority
                self.bench.ask("x", f"v{i}", node=node, priority=priority, tags=pod.tags(), vcore=size, age_s=100 - i)

    def end(self, *gone: str) -> None:
        """Let pods end, and their devices be taken back."""
        confirm(self.bench, *gone)
        self.devices.end(gone)
        self.bench.partition.needs.topology.devices_changed(None)

    def ask(self, pod: Pod, size: int) -> list[str]:
        """Ask for a pod, and return what is evicted for it."""
        assert self.bench.run() == ""
        self.bench.ask("y", "k", tags=pod.tags(), priority=2, vcore=size, preempt_other=True)
        return sorted(victims(self.bench, after=DELAY))

    def best(self, pod: Pod, size: int) -> list[str] | None:
        """The best set of victims, by trying all of them; None if there is none."""
        found: Any = None
        d = self.bench.partition.types.names.index("vcore")
        allocs = {a.key: a for a in self.bench.partition.applications["x"].allocations.values()}
        able = [key for key, (_, priority) in self.pods.items() if priority <= 2 - self.within]
        for order, node in enumerate(self.bench.partition.index.ordered()):
            apps = [(Pod(one.app), where) for one, where in self._without(())]
            if not passes(Pod(pod.app, near=pod.near), node.id, self.zones, apps):
                continue  # affinity is not brought about by evictions
            now = self._without(())
            at = {key: "" if alloc.node is None else alloc.node.id for key, alloc in allocs.items()}
            pool = [
                key
                for key in able
                if allocs[key].node is node or in_the_way(pod, node.id, self.zones, self.pods[key][0], at[key], now)
            ]
            mine: Any = None
            for gone in (gone for number in range(len(pool) + 1) for gone in combinations(pool, number)):
                room = node.free.at(d) + sum(
                    allocs[key].shape.amounts.at(d) for key in gone if allocs[key].node is node
                )
                if room < size or not passes(pod, node.id, self.zones, self._without(gone)):
                    continue
                if not gone:
                    return []
                ages = sorted((-allocs[key].created, -allocs[key].seq) for key in gone)
                priorities = [self.pods[key][1] for key in gone]
                top = max(priorities) if self.within else 0
                rank = (top, len(gone), sum(priorities))
                if mine is None or (rank, ages) < mine[:2]:
                    mine = rank, ages, gone
            if mine is None:
                continue
            rank, ages, gone = mine
            oldest = [a for a in (allocs[key] for key in gone) if a.priority == rank[0]] if self.within else []
            last = max(((-a.created, -a.seq) for a in oldest), default=ages[0])
            if found is None or (rank, last, ages, order) < found[:4]:
                found = rank, last, ages, order, gone
        return None if found is None else sorted(found[4])

    def _without(self, gone: Iterable[str]) -> list[Placed]:
        running = self.bench.partition.applications["x"].allocations.values()
        return [(self.pods[a.key][0], a.node.id) for a in running if a.key not in gone and a.node is not None]


WEB = Pod("web")
APART = Pod("web", apart=("zone", "web"))
EXAMPLES: list[tuple[str, str, list[tuple[Pod, int, int, int]], Pod, int, list[str]]] = [
    ("a pod with its host port", "a", [(Pod(port=80), 0, 1, 0), (WEB, 0, 1, 0)], Pod(port=80), 1, ["v0"]),
    ("no pod of a higher priority", "a", [(Pod(port=80), 0, 1, 3)], Pod(port=80), 1, []),
    ("what its anti-affinity means", "a", [(Pod("db"), 0, 1, 0), (WEB, 0, 1, 0)], APART, 1, ["v1"]),
    ("what has anti-affinity to it", "a", [(Pod("db", apart=("host", "web")), 0, 1, 0)], WEB, 1, ["v0"]),
    ("on another node of the zone", "aa", [(WEB, 0, 1, 0), (Pod("db"), 1, 1, 0)], APART, 1, ["v0"]),
    (
        "all that there are in the cheapest zone",
        "aab",
        [(WEB, 0, 1, 0), (WEB, 1, 1, 0), (WEB, 2, 1, 0)],
        APART,
        1,
        ["v2"],
    ),
    ("nobody if one stays", "a", [(WEB, 0, 1, 0), (WEB, 0, 1, 3)], APART, 1, []),
    ("the pod with a device", "a", [(Pod(claim="a"), 0, 1, 0), (WEB, 0, 1, 0)], Pod(devices=2), 1, ["v0"]),
    ("all that use its claim", "a", [(Pod(claim="a"), 0, 1, 0)] * 2, Pod(devices=2), 1, ["v0", "v1"]),
    ("nobody if one that uses it stays", "a", [(Pod(claim="a"), 0, 1, n) for n in (0, 3)], Pod(devices=2), 1, []),
    ("nobody for more devices than there are", "a", [(Pod(claim="a"), 0, 1, 0)], Pod(devices=3), 1, []),
    ("room too", "a", [(WEB, 0, 1, 0), (Pod("db"), 0, 3, 0)], APART, 2, ["v0", "v1"]),
    (
        "as many as a spread is over",
        "ab",
        [(WEB, 0, 1, 0), (WEB, 0, 1, 0), (WEB, 1, 4, 3)],
        Pod(spread=("zone", "web")),
        2,
        ["v1"],
    ),
    ("the pod that uses its volume", "ab", [(Pod(mark=True), 1, 1, 0)], Pod(mark=True), 1, ["v0"]),
    (
        "not the one that it wants near",
        "a",
        [(WEB, 0, 2, 0), (Pod("db"), 0, 2, 1)],
        Pod("db", near=("zone", "web")),
        2,
        ["v1"],
    ),
    (
        "nobody for affinity",
        "ab",
        [(WEB, 0, 1, 3), (Pod("db"), 0, 3, 3), (Pod("db"), 1, 4, 0)],
        Pod("db", near=("zone", "web")),
        2,
        [],
    ),
]


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(
    ("zones", "running", "pod", "size", "gone"), [pytest.param(*row[1:], id=row[0]) for row in EXAMPLES]
)
def test_what_goes(
    zones: str, running: list[tuple[Pod, int, int, int]], pod: Pod, size: int, gone: list[str], within: bool
) -> None:
    world = World([*zones], running, within=within)
    assert world.ask(pod, size) == gone
    world.end(*gone)
    assert world.bench.run().startswith("k@") == bool(gone)


def test_an_ask_waits_until_the_devices_of_its_victims_have_been_taken_back() -> None:
    world = World([*"a"], [(Pod(claim="a"), 0, 1, 0), (Pod(claim="b"), 0, 1, 1)], within=False)
    assert world.ask(Pod(devices=1), 1) == ["v0"]
    world.devices.gone = {"v0"}
    confirm(world.bench, "v0")
    assert world.bench.run() == ""
    assert victims(world.bench, after=DELAY) == []
    assert world.bench.reserved() == "k@n0"
    world.devices.end(["v0"])
    world.bench.partition.needs.topology.devices_changed(None)
    assert world.bench.run() == "k@n0"


def test_a_claim_holds_its_domain() -> None:
    """The pod that is made in the place of a victim does not take another node of the zone while the victim ends."""
    world = World([*"aa"], [(WEB, 0, 1, 0)], within=False)
    bench = world.bench
    assert world.ask(APART, 1) == ["v0"]
    bench.ask("x", "again", tags=WEB.tags(), vcore=1)
    bench.ask("x", "other", tags=Pod("db").tags(), vcore=1)
    assert bench.run() == "other@n0"  # the claim is to the node with the most room
    confirm(bench, "v0")
    assert bench.run() == "k@n1"
    bench.release("y", "k")
    assert bench.run().startswith("again@")


@pytest.mark.parametrize(("priority", "placed"), [(2, ""), (3, "again@n0")])
def test_a_later_pod_of_higher_order_may_shut_the_domain_that_is_claimed(priority: int, placed: str) -> None:
    world = World([*"aa"], [(WEB, 0, 1, 0)], within=False)
    bench = world.bench
    assert world.ask(APART, 1) == ["v0"]
    bench.ask("y", "again", tags=WEB.tags(), priority=priority, vcore=1)
    assert bench.run() == placed
    confirm(bench, "v0")
    bench.run()
    outcome = Outcome.TERMS if placed else Outcome.PLACED
    assert [record.outcome for record in bench.partition.evictions] == [outcome]


def test_a_pod_does_not_begin_elsewhere_what_a_claiming_one_is_near() -> None:
    world = World([*"a"], [(Pod("db"), 0, 4, 0)], within=False)
    bench, together = world.bench, Pod("web", near=("zone", "web"))
    assert world.ask(together, 4) == ["v0"]
    bench.node("n1", attributes=node_labels("n1", "b"), vcore=2)
    bench.ask("x", "other", tags=together.tags(), vcore=1)
    assert bench.run() == ""
    confirm(bench, "v0")
    assert bench.run() == "k@n0"
    bench.release("y", "k")
    assert bench.run().startswith("other@")


def test_asks_that_exclude_each_other_evict_in_different_domains() -> None:
    world = World([*"ab"], [(Pod("db"), 0, 4, 0), (Pod("db"), 1, 4, 0)], within=False)
    world.bench.ask("y", "other", tags=APART.tags(), priority=2, vcore=2, preempt_other=True)
    gone = world.ask(APART, 2)
    assert gone == ["v0", "v1"]
    confirm(world.bench, *gone)
    assert sorted(world.bench.run().split()) == ["k@n0", "other@n1"]


@pytest.mark.parametrize("members", [1, 2])
def test_plans_made_together_leave_claims_their_domains_together(members: int) -> None:
    """The claim of k stands one pod of zone b that ends, but not two: its spread would not admit it in zone a."""
    b = GangBench(text=config("a", f"b {quota(20)}"))
    for name, zone in zip(("n0", "n1", "n2", "n3"), "aabb", strict=True):
        b.node(name, attributes=node_labels(name, zone), vcore=4)
    b.app("x", "root.a")
    b.app("y", "root.b")
    for key, node, size, priority in (("w0", "n0", 4, 3), ("w1", "n1", 1, 3), ("w2", "n2", 4, 0), ("w3", "n3", 4, 0)):
        b.ask("x", key, node=node, vcore=size, priority=priority, tags=WEB.tags(), age_s=100)
    b.ask("x", "db", node="n1", vcore=3, tags=Pod("db").tags(), age_s=1)
    b.ask("y", "k", vcore=3, priority=2, tags=Pod("db", spread=("zone", "web")).tags(), preempt_other=True)
    assert victims(b, after=DELAY) == ["db"]
    b.add("g", task_groups(w=members), "", queue="root.b")
    for number in range(members):
        b.member("g", f"g{number}", 4, placeholder=True, allow_preempt_other=True, priority=2)
    assert len(victims(b, after=DELAY)) == (1 if members == 1 else 0)


@pytest.mark.parametrize("calls", range(1, 9))
def test_an_error_in_a_search_leaves_the_counts_of_pods_as_they_were(calls: int) -> None:
    world = World([*"aab"], [(WEB, 0, 1, 0), (WEB, 1, 1, 0), (WEB, 2, 1, 0)], within=False)
    topology = world.bench.partition.needs.topology
    before = [dict(pods) for pods in topology.on]
    answers = [*[False] * (calls - 1), ArithmeticError]
    with patch.object(NodeVerdict, "suffices", side_effect=answers), pytest.raises(ArithmeticError):
        world.ask(APART, 1)
    assert [dict(pods) for pods in topology.on] == before


BOTH_DEVICES = [(Pod(claim="a"), 0, 1, 0), (Pod(claim="b"), 0, 1, 1)]


def shut_by_devices(world: World) -> list[list[int]]:
    """Return, by check, whether the node is shut to those that claim devices."""
    return [list(check.shut)[1:] for check in world.bench.partition.needs.topology.counts[CLAIMS].checks]


def test_an_error_in_a_search_for_devices_in_a_trial_ends_the_trial() -> None:
    world = World([*"a"], BOTH_DEVICES, within=False)
    devices, raised, true = world.devices, list[None](), world.devices.refuses

    def refuses(demand: str, node: str) -> str:
        if +devices.lifted and not raised:
            raised.append(None)
            raise ArithmeticError
        return true(demand, node)

    with patch.object(devices, "refuses", refuses), pytest.raises(ArithmeticError):
        world.ask(Pod(devices=1), 1)
    assert not +devices.lifted
    assert shut_by_devices(world) == [[1]]


def test_an_error_in_the_counts_of_pods_takes_devices_of_a_trial_back() -> None:
    world = World([*"a"], BOTH_DEVICES, within=False)
    partition = world.bench.partition
    assert world.bench.run() == ""
    world.bench.ask("y", "k", tags=Pod(devices=1, apart=("zone", "web")).tags(), vcore=1)
    world.bench.run()
    verdict = verdict_of(partition.nodes["n0"], partition.applications["y"].asks["k"])
    shape = next(iter(partition.applications["x"].allocations.values())).shape
    nowhere: Any = SimpleNamespace(key="v0", shape=shape, node=SimpleNamespace(slot="none"))
    assert verdict is not None
    with pytest.raises(TypeError):
        verdict.add(nowhere)
    assert not +world.devices.lifted
    assert shut_by_devices(world) == [[1]]


def test_an_error_in_the_counts_of_claims_undoes_those_that_were_made() -> None:
    world = World([*"a"], [(WEB, 0, 1, 0)], within=False)
    world.ask(APART, 1)
    claims, topology = world.bench.partition.claims, world.bench.partition.needs.topology
    (ask,) = claims.by_ask
    before = [dict(pods) for pods in topology.on]
    nowhere: Any = SimpleNamespace(slot="none")
    with pytest.raises(TypeError), claims.as_planned(ask.shape.need, more=[(ask, nowhere)]):
        pass
    assert [dict(pods) for pods in topology.on] == before


def test_an_ask_gives_up_when_the_pod_ends_that_it_wants_near() -> None:
    world = World([*"aa"], [(WEB, 0, 4, 3), (Pod("db"), 1, 4, 0)], within=False)
    bench = world.bench
    assert world.ask(Pod("db", near=("zone", "web")), 2) == ["v1"]
    bench.release("x", "v0")
    confirm(bench, "v1")
    assert bench.run() == ""
    assert [record.outcome for record in bench.partition.evictions] == [Outcome.TERMS]
    assert not bench.reserved()


def test_an_ask_gives_up_when_a_victim_does_not_end_that_it_wants_to_be_apart_from_though_there_is_room() -> None:
    world = World([*"a"], [(WEB, 0, 1, 0), (Pod("db"), 0, 3, 0)], within=False)
    bench = world.bench
    assert world.ask(APART, 3) == ["v0", "v1"]
    world.end("v1")
    assert bench.run(after=30 + 599) == ""
    assert bench.reserved() == "k@n0"
    assert bench.run(after=1) == ""
    assert [record.outcome for record in bench.partition.evictions] == [Outcome.TERMS] * 2
    assert not bench.reserved()


def test_a_gang_gives_up_when_the_pod_ends_that_a_member_wants_near() -> None:
    world = World([*"aa"], [(WEB, 0, 4, 3), (Pod("db"), 1, 4, 0)], within=False)
    bench = world.bench
    _gang(bench, Pod("db", near=("zone", "web")), Pod("db"))
    assert victims(bench, after=DELAY) == ["v1"]
    bench.release("x", "v0")
    assert bench.run() == ""
    assert bench.reserved() == "g0@n1 g1@n1"
    confirm(bench, "v1")
    assert bench.run() == ""
    assert [record.outcome for record in bench.partition.evictions] == [Outcome.TERMS]
    assert not bench.reserved()


def test_the_claims_of_a_gang_count_once_when_it_starts() -> None:
    """Beside the claim of a pod that is spread from its members, at most two in the zone."""
    world = World([*"aab"], [(Pod("db"), 0, 4, 0), (Pod("db"), 1, 4, 0), (Pod("db"), 2, 4, 3)], within=False)
    bench = world.bench
    bench.ask("y", "k", tags=tags("app=k", spread="zone app=web max=2"), priority=2, vcore=4, preempt_other=True)
    assert victims(bench, after=DELAY) == ["v1"]
    _gang(bench, WEB, WEB)
    assert victims(bench, after=DELAY) == ["v0"]
    confirm(bench, "v0")
    assert bench.run() == "g0@n0 g1@n0"


def _gang(bench: Bench, *members: Pod) -> None:
    """An atomic gang of pods of 2 in the queue with the guarantee."""
    bench.app("g", "root.b", tags=gang_tags(task_groups(w=len(members))))
    for number, pod in enumerate(members):
        bench.send(
            Allocation(
                key=f"g{number}",
                application_id="g",
                resource={"vcore": 2},
                priority=2,
                tags=pod.tags(),
                task_group="w",
                allow_preempt_other=True,
            )
        )


@pytest.mark.parametrize(
    ("pod", "required"), [(Pod(port=80), Pod(port=80)), (WEB, Pod("web", apart=("host", "web"))), (Pod(mark=True),) * 2]
)
@pytest.mark.parametrize("priority", [0, 3])
def test_an_ask_that_requires_its_node_evicts_what_keeps_it_off_there(pod: Pod, required: Pod, priority: int) -> None:
    world = World([*"a"], [(pod, 0, 1, priority), (Pod("db"), 0, 1, 0)], within=False)
    bench = world.bench
    bench.ask("y", "k", tags=required.tags(), priority=2, required="n0", vcore=1)
    assert victims(bench) == (["v0"] if priority < 2 else [])
    assert bench.reserved() == ("k@n0" if priority < 2 else "")
    if priority < 2:
        confirm(bench, "v0")
        assert bench.run() == "k@n0"


terms = st.none() | st.tuples(st.sampled_from(("host", "zone")), st.sampled_from(("web", "db")))
pods = st.builds(
    Pod,
    st.sampled_from(("web", "db")),
    terms,
    st.none(),
    st.none(),
    st.sampled_from((0, 0, 80)),
    st.sampled_from((False,) * 3 + (True,)),
    st.sampled_from(("", "a", "b")),
)
asks = st.builds(
    Pod,
    st.sampled_from(("web", "db")),
    terms,
    terms,
    terms,
    st.sampled_from((0, 80)),
    st.booleans(),
    devices=st.sampled_from((0, 0, 1, 2)),
)


@examples(60)
@given(
    st.lists(st.sampled_from(("a", "b", "")), min_size=1, max_size=3),
    st.lists(st.tuples(pods, st.integers(0, 2), st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=6),
    asks,
    st.integers(1, 4),
    st.booleans(),
)
def test_the_best_set_goes_and_then_the_ask_is_placed(
    zones: list[str], running: list[tuple[Pod, int, int, int]], pod: Pod, size: int, within: bool
) -> None:
    world = World(zones, running, within=within)
    best = world.best(pod, size)
    gone = world.ask(pod, size)
    assert gone == (best or [])
    world.end(*gone)
    world.bench.run()
    allocations = world.bench.partition.applications["y"].allocations.values()
    assert (best is not None) == any(alloc.key == "k" for alloc in allocations)
