"""Host ports: two allocations that want the same port never run on one node, and what waits is woken by the end of one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from core.bench import Bench, config
from gangs.gang import REPLACED, Gangs
from gangs_atomic.helpers import GangBench, task_groups
from licorne.core.nodes.constraints import ANY_ADDRESS, NodeLabels, parse_constraints
from licorne.core.nodes.node import SHARED
from licorne.core.nodes.reading import ConstraintError
from licorne.si.constants import TAG_FOREIGN
from licorne.si.messages import Allocation, NodeAction
from seeds import some_seeds


def tag(*ports: dict[str, Any] | int, **more: Any) -> dict[str, str]:
    """The tag of an ask that takes these ports; a number is a TCP port on all addresses."""
    wanted = [{"hostPort": port} if isinstance(port, int) else port for port in ports]
    return {"licorne/node-constraints": json.dumps({"hostPorts": wanted, **more})}


def on(port: int, address: str = "", protocol: str = "") -> dict[str, Any]:
    fields: dict[str, Any] = {"hostPort": port}
    if address:
        fields["hostIP"] = address
    if protocol:
        fields["protocol"] = protocol
    return fields


def a_cluster(*nodes: str, settings: dict[str, str] | None = None) -> Bench:
    bench = Bench(config("a"), settings=settings)
    for name in nodes:
        bench.node(name, vcore=10_000)
    bench.app("x")
    return bench


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (on(80), on(80), True),
        (on(80), on(81), False),
        (on(80), on(80, protocol="TCP"), True),
        (on(80), on(80, protocol="UDP"), False),
        (on(80), on(80, "10.0.0.1"), True),
        (on(80, ANY_ADDRESS), on(80, "10.0.0.1"), True),
        (on(80, "10.0.0.1"), on(80, "10.0.0.1"), True),
        (on(80, "10.0.0.1"), on(80, "10.0.0.2"), False),
        (on(80, "::"), on(80, "fe80::1"), False),  # `::` is an address like any other
        (on(80, "::"), on(80), True),
    ],
)
def test_which_ports_conflict(one: dict[str, Any], other: dict[str, Any], conflict: bool) -> None:
    for first, second in ((one, other), (other, one)):
        bench = a_cluster("n1")
        bench.ask("x", "first", tags=tag(first), vcore=1)
        bench.ask("x", "second", tags=tag(second), vcore=1)
        assert bench.run() == ("first@n1" if conflict else "first@n1 second@n1")


@pytest.mark.parametrize(
    ("ports", "fault"),
    [
        ([{"hostPort": 0}], "hostPorts[0].hostPort: 0: must be an integer from 1 to 65535"),
        ([{"hostPort": 65536}], "hostPorts[0].hostPort: 65536: must be an integer from 1 to 65535"),
        ([{"hostPort": True}], "hostPorts[0].hostPort: true: must be an integer from 1 to 65535"),
        ([{"hostPort": 1, "port": 2}], 'hostPorts[0]: "port": is an unknown key'),
        ([{"hostPort": 1, "protocol": 6}], "hostPorts[0].protocol: 6: must be a text"),
        ({}, "hostPorts: {}: must be a list"),
    ],
)
def test_what_is_no_port_is_refused(ports: object, fault: str) -> None:
    with pytest.raises(ConstraintError) as refused:
        parse_constraints(json.dumps({"hostPorts": ports}))
    assert f"licorne/node-constraints.{fault}" in str(refused.value)


@pytest.mark.parametrize("settings", [{}, {"reservation.enabled": "false"}])
def test_a_thousand_asks_for_one_port_in_one_call(settings: dict[str, str]) -> None:
    """Each decision counts before the next one is made: every node gets one of them."""
    bench = a_cluster(*(f"n{number}" for number in range(10)), settings=settings)
    asks = [Allocation(key=f"k{n}", application_id="x", resource={"vcore": 1}, tags=tag(80)) for n in range(1000)]
    bench.send(*asks)
    placed = [one.split("@")[1] for one in bench.run().split()]
    assert sorted(placed) == sorted(bench.partition.nodes)
    assert bench.run() == ""
    bench.release("x", "k0")
    assert bench.run().count("@") == 1


@pytest.mark.gate
def test_asks_of_all_kinds_of_ports_share_a_bit() -> None:
    """More sets of constraints than there are bits: the ports of those that share one are compared on each node."""
    bench = a_cluster("n1")
    asks = [
        Allocation(key=f"k{n}-{turn}", application_id="x", resource={"vcore": 1}, tags=tag(n))
        for turn in range(2)
        for n in range(1, SHARED + 200)
    ]
    bench.send(*asks)
    placed = bench.run().split()
    assert sorted(placed) == sorted(f"k{n}-0@n1" for n in range(1, SHARED + 200))


def test_what_gives_the_port_back_wakes_what_waits_for_it() -> None:
    bench = a_cluster("n1")
    bench.ask("x", "holds", tags=tag(80), vcore=1)
    bench.ask("x", "waits", tags=tag(80), vcore=1)
    assert bench.run() == "holds@n1"
    [reason] = bench.why("waits")
    assert reason.failed == {"hostPort 80/TCP": 1}  # type: ignore[union-attr]
    bench.ask("x", "other", vcore=1)
    assert bench.run() == "other@n1"
    bench.release("x", "other")
    assert bench.run() == ""
    bench.release("x", "holds")
    assert bench.run() == "waits@n1"


def test_a_port_is_free_on_a_node_that_comes() -> None:
    bench = a_cluster("n1")
    bench.ask("x", "holds", tags=tag(80), vcore=1)
    bench.ask("x", "waits", tags=tag(80), vcore=1)
    assert bench.run() == "holds@n1"
    bench.node("n2", vcore=1)
    assert bench.run() == "waits@n2"


def test_new_labels_do_not_free_a_port() -> None:
    bench = a_cluster("n1")
    bench.ask("x", "holds", tags=tag(80), vcore=1)
    bench.ask("x", "waits", tags=tag(80), vcore=1)
    assert bench.run() == "holds@n1"
    bench.node("n1", NodeAction.UPDATE, attributes={"label/zone": "z"})
    assert bench.run() == ""
    bench.release("x", "holds")
    assert bench.run() == "waits@n1"


def test_a_foreign_allocation_takes_ports_and_gives_them_back() -> None:
    bench = a_cluster("n1")
    tags = {"foreign": "default", **tag(80)}
    bench.send(Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags=tags))
    bench.send(Allocation(key="f", resource={"vcore": 2}, node_id="n1", tags=tags))
    bench.ask("x", "waits", tags=tag(80), vcore=1)
    assert bench.run() == ""
    bench.release("", "f")
    assert bench.run() == "waits@n1"


def test_a_foreign_allocation_of_malformed_ports_is_refused() -> None:
    bench = a_cluster("n1")
    said = bench.send(
        Allocation(key="f", resource={"vcore": 1}, node_id="n1", tags={"foreign": "default", **tag({"hostPort": -1})})
    )
    assert "hostPort: -1: must be an integer" in said[0]
    assert not bench.partition.foreign


def test_an_allocation_that_is_reported_takes_its_port_whoever_has_it() -> None:
    """The resource manager says what runs; both give the port back before anybody else has it."""
    bench = a_cluster("n1")
    for key in ("one", "two"):
        bench.ask("x", key, node="n1", tags=tag(80), vcore=1)
    bench.ask("x", "waits", tags=tag(80), vcore=1)
    assert bench.run() == ""
    bench.release("x", "one")
    assert bench.run() == ""
    bench.release("x", "two")
    assert bench.run() == "waits@n1"


def test_the_ports_go_with_their_node() -> None:
    bench = a_cluster("n1")
    bench.ask("x", "holds", tags=tag(80), vcore=1)
    assert bench.run() == "holds@n1"
    bench.node("n1", NodeAction.DECOMISSION)
    bench.node("n1", vcore=1)
    bench.ask("x", "next", tags=tag(80), vcore=1)
    assert bench.run() == "next@n1"


def test_an_ask_whose_port_is_taken_on_its_required_node_reserves_nothing() -> None:
    """Else no other ask could have the node for as long as the port is taken: by one of a higher priority, which stays."""
    bench = a_cluster("n1")
    bench.ask("x", "holds", priority=1, tags=tag(80), vcore=1)
    assert bench.run() == "holds@n1"
    bench.ask("x", "waits", required="n1", tags=tag(80), vcore=1)
    bench.ask("x", "other", vcore=1)
    assert bench.run() == "other@n1"
    assert bench.reserved() == ""
    bench.release("x", "holds")
    assert bench.run() == "waits@n1"


def test_asks_that_require_one_node_take_turns() -> None:
    bench = a_cluster("n1", "n2")
    bench.ask("x", "one", required="n1", tags=tag(80), vcore=1)
    bench.ask("x", "two", required="n1", tags=tag(80), vcore=1)
    assert bench.run() == "one@n1"
    bench.release("x", "one")
    assert bench.run() == "two@n1"


@pytest.mark.parametrize(("nodes", "placed"), [((10, 10), "g0@n1 g1@n2"), ((10,), "")])
def test_a_gang_that_starts_as_a_whole_has_each_port_on_a_node_of_its_own(nodes: tuple[int, ...], placed: str) -> None:
    bench = GangBench(*nodes)
    bench.add("g", task_groups(w=2))
    for key in ("g0", "g1"):
        bench.member("g", key, 2, tags=tag(80))
    assert bench.run() == placed
    if placed:
        bench.add("h", task_groups(w=1))
        bench.member("h", "h0", 2, tags=tag(80))
        assert bench.run() == ""
        bench.release("g", "g0")
        assert bench.run() == "h0@n1"
    else:
        assert bench.partition.nodes["n1"].labels.ports == ()
        bench.node("n2", vcore=10)
        assert len(bench.run().split()) == 2


def test_members_on_their_way_to_the_place_of_a_placeholder_have_their_ports_already() -> None:
    bench = Gangs(10)
    bench.gang(total=2)
    for key in ("p1", "p2"):
        bench.member(key, placeholder=True)
    assert bench.run() == "p1@n1 p2@n1"
    for key in ("r1", "r2"):
        bench.member(key, tags=tag(80))
    bench.run()
    going = [one.split()[1] for one in bench.said if one.startswith("released")]
    assert len(going) == 1, "the second one would meet the first one's port"
    bench.release("x", going[0], termination=REPLACED)
    assert bench.run() == ""
    assert bench.partition.nodes["n1"].labels.ports != ()
    bench.release("x", "r1")
    bench.run()
    going = [one.split()[1] for one in bench.said if one.startswith("released")]
    assert going == ["p1", "r1", "p2"]
    bench.release("x", "r2")  # it is withdrawn on its way
    assert bench.partition.nodes["n1"].labels.ports == ()


@pytest.mark.parametrize("seed", some_seeds("LICORNE_PORTS_SEED", 8))
def test_a_random_cluster_never_doubles_a_port_and_leaves_none_unused(seed: int) -> None:
    """When nothing moves any more, each ask that waits finds each of its ports taken on every node that it may run on."""
    rng = random.Random(seed)
    choices = [
        [on(80)], [on(80, "10.0.0.1")], [on(80, "10.0.0.2")], [on(81)], [on(80), on(81)], [on(80, protocol="UDP")], [],
    ]  # fmt: skip
    bench = a_cluster("n0")
    running: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for step in range(300):
        what = rng.random()
        if what < 0.6:
            tags = tag(*rng.choice(choices), **({"nodeSelector": {"zone": "z"}} if rng.random() < 0.3 else {}))
            bench.ask("x", f"k{step}", tags=tags, vcore=1)
            waiting[f"k{step}"] = tags["licorne/node-constraints"]
        elif what < 0.9 and running:
            key = rng.choice(sorted(running))
            del running[key]
            bench.release("x", key)
        elif len(bench.partition.nodes) < 6:
            zone = {"label/zone": "z"} if rng.random() < 0.5 else {}
            bench.node(f"n{step}", attributes=zone, vcore=10_000)
        for one in bench.run().split():
            key, _, node = one.partition("@")
            running[key] = f"{node} {waiting.pop(key)}"
        _prove(bench, running, waiting)


def _prove(bench: Bench, running: dict[str, str], waiting: dict[str, str]) -> None:
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in bench.partition.nodes}
    for where, _, text in (one.partition(" ") for one in running.values()):
        for port in json.loads(text)["hostPorts"]:
            assert not any(_conflict(port, other) for other in taken[where]), (where, port)
        taken[where] += json.loads(text)["hostPorts"]
    for key, text in waiting.items():
        wanted = json.loads(text)
        for name, node in bench.partition.nodes.items():
            if "nodeSelector" in wanted and node.attributes.get("label/zone") != "z":
                continue
            assert any(_conflict(p, other) for p in wanted["hostPorts"] for other in taken[name]), (key, name)


def _conflict(one: dict[str, Any], other: dict[str, Any]) -> bool:
    if one["hostPort"] != other["hostPort"] or one.get("protocol", "TCP") != other.get("protocol", "TCP"):
        return False
    addresses = {one.get("hostIP", ""), other.get("hostIP", "")}
    return len(addresses) == 1 or "" in addresses


def test_labels_without_ports_are_read_as_before() -> None:
    assert NodeLabels.from_attributes({"label/a": "b"}).ports == ()


@pytest.mark.parametrize("parking", ["true", "false"])
@pytest.mark.parametrize("foreign", [False, True])
def test_an_old_ask_reserves_a_node_whose_port_has_become_free(parking: str, foreign: bool) -> None:
    """It is too large for what is free there, so room that is freed says nothing to it; the port does."""
    b = Bench(config("a"), settings={"reservation.delay": "1s", "scheduler.parking": parking})
    b.node("n1", vcore=5, attributes={"label/zone": "here"})
    b.node("n2", vcore=9, attributes={"label/zone": "other"})
    b.app("a1", "root.a")
    b.ask("a1", "large", vcore=3, node="n1")
    if foreign:
        tags = tag(80) | {TAG_FOREIGN: "default"}
        b.send(Allocation(key="other", application_id="", node_id="n1", resource={"vcore": 1}, tags=tags))
    else:
        b.ask("a1", "small", vcore=1, tags=tag(80), node="n1")
    b.run(after=1)
    b.ask("a1", "wants", vcore=4, tags=tag(80, nodeSelector={"zone": "here"}))
    b.run(after=5)
    assert not b.partition.nodes["n1"].reservations
    if foreign:
        b.release("", "other")
    else:
        b.release("a1", "small")
    b.run(after=1)
    assert [ask.key for ask in b.partition.nodes["n1"].reservations] == ["wants"]
