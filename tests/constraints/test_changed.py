"""An ask that is sent again with other node constraints: it keeps its age, and is placed where it may run now."""

from __future__ import annotations

import json
import random

import pytest

from core.bench import Bench, config
from seeds import some_seeds


def on(*zones: str) -> dict[str, str]:
    """The tag of an ask that may run in these zones; none: everywhere."""
    terms = [[{"key": "zone", "operator": "In", "values": [zone]}] for zone in zones]
    return {"licorne/node-constraints": json.dumps({"nodeAffinity": terms} if zones else {})}


def a_cluster(**settings: str) -> Bench:
    bench = Bench(config("a"), settings={key.replace("_", "."): text for key, text in settings.items()})
    for app in ("x", "y"):
        bench.app(app)
    return bench


def in_zone(bench: Bench, name: str, zone: str, vcore: int) -> None:
    bench.node(name, attributes={"label/zone": zone}, vcore=vcore)


def test_an_ask_keeps_its_age() -> None:
    bench = a_cluster()
    in_zone(bench, "n1", "one", 1)
    bench.ask("x", "old", tags=on("none"), vcore=1)
    bench.run(after=1)
    bench.ask("x", "young", tags=on("two"), vcore=1)
    bench.run(after=1)
    bench.ask("x", "old", tags=on("two"), vcore=1)
    assert bench.run(after=1) == ""
    in_zone(bench, "n2", "two", 1)
    assert bench.run() == "old@n2"


@pytest.mark.parametrize(
    ("then", "placed"),
    [(on("one"), "k@n1"), (on(), "k@n1"), (on("two"), ""), ({"other": "tag"}, ""), ({}, "")],
)
def test_what_counts_is_the_last_tag(then: dict[str, str], placed: str) -> None:
    bench = a_cluster()
    in_zone(bench, "n1", "one", 1)
    bench.ask("x", "k", tags=on("none"), vcore=1)
    assert bench.run() == ""
    bench.ask("x", "k", tags=then, vcore=1)
    assert bench.run() == placed


def test_amounts_and_constraints_change_together() -> None:
    bench = a_cluster()
    in_zone(bench, "n1", "one", 1)
    in_zone(bench, "n2", "two", 2)
    bench.ask("x", "k", tags=on("none"), vcore=3)
    assert bench.run() == ""
    bench.ask("x", "k", tags=on("two"), vcore=2)
    assert bench.run() == "k@n2"


@pytest.mark.parametrize(("zone", "reserved"), [("one", ["n1"]), ("two", [])])
def test_a_reservation_of_a_node_that_is_excluded_ends(zone: str, reserved: list[str]) -> None:
    bench = a_cluster(reservation_delay="1s")
    in_zone(bench, "n1", "one", 4)
    in_zone(bench, "n3", "three", 4)
    bench.ask("y", "runs", vcore=3, node="n1")
    bench.ask("x", "k", tags=on("one"), vcore=2)
    bench.run(after=1)
    bench.run(after=2)
    ask = bench.partition.applications["x"].asks["k"]
    assert ask.reserved is bench.partition.nodes["n1"]
    bench.ask("x", "k", tags=on(zone, "elsewhere"), vcore=2)
    bench.run()
    assert [node.id for node in bench.partition.nodes.values() if ask in node.reservations] == reserved


@pytest.mark.parametrize("seed", some_seeds("LICORNE_CONSTRAINTS_SEED", 8))
@pytest.mark.parametrize("parking", ["true", "false"])
def test_in_a_random_cluster_nothing_waits_that_fits(seed: int, parking: str) -> None:
    rng = random.Random(seed)
    bench = a_cluster(scheduler_parking=parking, reservation_enabled="false")
    zones: dict[str, str] = {}
    waiting: dict[str, list[str]] = {}
    running: list[str] = []
    for step in range(200):
        what = rng.random()
        if what < 0.3:
            waiting[f"k{step}"] = rng.sample(["one", "two", "three"], rng.randrange(3))
            bench.ask("x", f"k{step}", tags=on(*waiting[f"k{step}"]), vcore=rng.randrange(1, 4))
        elif what < 0.6 and waiting:
            key = rng.choice(sorted(waiting))
            waiting[key] = rng.sample(["one", "two", "three"], rng.randrange(3))
            bench.ask("x", key, tags=on(*waiting[key]), vcore=rng.randrange(1, 4))
        elif what < 0.8 and running:
            bench.release("x", running.pop(rng.randrange(len(running))))
        elif len(zones) < 5:
            zones[f"n{step}"] = rng.choice(["one", "two", "three"])
            in_zone(bench, f"n{step}", zones[f"n{step}"], rng.randrange(1, 6))
        for key, _, node in (one.partition("@") for one in bench.run().split()):
            allowed = waiting.pop(key)
            assert not allowed or zones[node] in allowed
            running.append(key)
        asks = bench.partition.applications["x"].asks
        assert sorted(asks) == sorted(waiting)
        for key, allowed in waiting.items():
            need = asks[key].shape.amounts
            fits = (n for n in bench.partition.nodes.values() if n.free.covers(need))
            assert not [node.id for node in fits if not allowed or zones[node.id] in allowed], (step, key)
