"""Faults that the comparison has found in the product, each as small as possible: an ask would have waited for ever."""

from __future__ import annotations

import json

import pytest

from core.bench import Bench, config, limit, parent
from gangs_atomic.helpers import GangBench, task_groups
from licorne.si.messages import AddApplication, Allocation, Termination
from parking import compare
from parking.situations import Situations
from preemption.test_examples import victims

OFF = {"reservation.enabled": "false"}
PARKING = pytest.mark.parametrize("parking", ["true", "false"])


@PARKING
def test_an_ask_as_large_as_one_that_waited_once(parking: str) -> None:
    """The application may still know the minima of asks that are gone, when those of the partition have been made anew."""
    b = Bench(
        config(f"a resources: {{max: {{vcore: 14m}}}}, limits: [{limit(users='u', vcore=5)}]", "b"),
        settings={**OFF, "scheduler.parking": parking},
    )
    for number, size in enumerate((7, 5, 6, 7), 1):
        b.node(f"n{number}", vcore=size)
    b.app("a1", "root.a")
    b.app("b0", "root.b")
    for app, key, size in (("b0", "k1", 5), ("a1", "k4", 5), ("b0", "k5", 5), ("b0", "k6", 5), ("a1", "k7", 3)):
        b.seconds += 1
        b.ask(app, key, vcore=size)
    b.run(after=1)
    b.ask("b0", "k8", vcore=3, priority=5)
    b.run(after=1)
    b.release("b0", "k6")
    b.run(after=1)
    b.ask("b0", "k11", vcore=5, priority=5)
    b.run(after=1)
    assert "k11" in b.application("b0").asks
    for app, key in (("a1", "k4"), ("b0", "k1"), ("b0", "k5"), ("b0", "k8"), ("a1", "k7")):
        if key in b.application(app).allocations:
            b.release(app, key)
        b.run(after=1)
    assert "k11" in b.application("b0").allocations


@PARKING
def test_more_sizes_than_the_minima_of_an_application_hold(parking: str) -> None:
    """Two sizes are kept as their common lower bound: that reaches an ask which those of the partition do not."""
    b = Bench(config("a"), settings={**OFF, "scheduler.parking": parking})
    b.node("n1", vcore=60, memory=60)
    for number in range(8):  # quotas are no cause to wait: the cluster is large, but in small pieces
        b.node(f"s{number}", vcore=1 if number % 2 else 9, memory=9 if number % 2 else 1)
    for app in ("full", "small", "many"):
        b.app(app)
    b.ask("full", "rest", vcore=51, memory=51)
    b.ask("full", "piece", vcore=9, memory=9)
    assert b.run(after=1) == "rest@n1 piece@n1"
    for vcore, memory in ((10, 2), (2, 10)):
        b.ask("small", f"s{vcore}", vcore=vcore, memory=memory)
    b.run(after=1)
    for vcore in (*range(29, 14, -1), 30, 2):  # no two of which are one above the other
        b.ask("many", f"m{vcore}", vcore=vcore, memory=32 - vcore)
    b.run(after=1)
    b.ask("many", "k", vcore=9, memory=9)
    b.run(after=1)
    b.release("full", "piece")
    assert b.run(after=1) == "k@n1"


@PARKING
def test_room_comes_while_the_queue_is_not_visited(parking: str) -> None:
    """An application that a reload puts to sleep waits for nodes like others."""
    leaf, upper = config("a", "b"), config(parent("a", "x"), "b")
    b = Bench(leaf, settings={**OFF, "scheduler.parking": parking})
    b.node("n1", vcore=4)
    for number in range(4):  # the cluster is large enough, no node is
        b.node(f"s{number}", vcore=1)
    b.app("full", "root.b")
    b.ask("full", "f1", vcore=2)
    b.ask("full", "f2", vcore=2)
    b.ask("full", "f3", vcore=2)
    b.run(after=1)
    b.app("app", "root.a")
    b.ask("app", "k1", vcore=1)  # awake for this one, it gets one that is known to fit no node
    b.ask("app", "k2", vcore=2)
    b.reload(upper)
    b.release("full", "f3")
    b.release("full", "f1")
    assert b.run(after=1) == ""
    b.reload(leaf)
    assert b.run(after=1) == "k1@s0 k2@n1"


@PARKING
def test_a_placeholder_that_was_replaced_makes_room_for_a_daemon(parking: str) -> None:
    """A placeholder that is being replaced cannot be evicted; its replacement can."""
    b = Bench(config("a", "b"), settings={"scheduler.parking": parking})
    b.node("n1", vcore=3)
    b.node("n2", vcore=3)
    b.send(
        AddApplication(
            application_id="gang", queue="root.a", user="u", placeholder_ask={"vcore": 3}, execution_timeout_ms=600_000
        )
    )
    b.ask("gang", "place", vcore=3, placeholder=True)
    b.run(after=1)
    b.send(
        Allocation(
            key="real", application_id="gang", resource={"vcore": 3}, task_group="group", allow_preempt_self=True
        )
    )
    b.run(after=1)
    b.app("app", "root.b")
    b.ask("app", "daemon", vcore=1, priority=5, required="n1")
    b.run(after=1)
    assert b.reserved() == "daemon@n1"
    assert b.hear(after=1) == []
    b.release("gang", "place", termination=Termination.PLACEHOLDER_REPLACED)
    assert any(line.startswith("released real PREEMPTED") for line in b.hear(after=1))


@PARKING
def test_room_under_a_quota_lets_a_back_off_count_asks_that_wait_for_nodes(parking: str) -> None:
    """Back-off begins at a third ask when two before it fit no node; asks that the quota keeps out are not counted."""
    text = config("a properties: {application.unschedasks.backoff: '2'}, resources: {max: {vcore: 9m}}")
    b = Bench(text, settings={**OFF, "scheduler.parking": parking})
    b.node("n1", vcore=6)
    b.node("n2", vcore=3)
    b.app("y")
    b.app("x")
    b.ask("y", "half", vcore=5)
    assert b.run(after=1) == "half@n1"
    for key in ("k1", "k2"):
        b.ask("x", key, vcore=4)
    b.run(after=1)
    b.ask("y", "more", vcore=1)
    assert b.run(after=1) == "more@n2"
    b.ask("x", "k3", vcore=4)
    b.run(after=1)
    b.release("y", "more")
    b.run(after=1)  # three asks of 4 fit the quota, and no node
    b.node("n3", vcore=4)
    assert b.run(after=1) == "", "it backs off"
    assert b.run(after=31) == "k1@n3"


def test_a_scenario_in_which_room_of_a_user_came_after_an_application_had_gone_to_sleep() -> None:
    """The limit began to bind while it slept for want of a node, so nothing told it of room to preempt in."""
    compare.run(125858683, Situations())


# -- what terms of pods let in -----------------------------------------------------------------------------------


def pod(app: str, **terms: tuple[str, str]) -> dict[str, str]:
    """The tags of a pod with the label `app`, and terms: the topology key, and the label of the pods that it is about."""
    found = {
        kind: [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": other}}}]
        for kind, (key, other) in terms.items()
    }
    return {
        "licorne/pod": json.dumps({"namespace": "x", "labels": {"app": app}}),
        "licorne/pod-terms": json.dumps(found),
    }


def one_zone(parking: str, *nodes: int) -> GangBench:
    """Nodes n0, n1 ... of one zone, and applications a and d."""
    b = GangBench(settings={"scheduler.parking": parking})
    for number, vcore in enumerate(nodes):
        b.node(f"n{number}", vcore=vcore, attributes={"label/zone": "z", "label/host": f"n{number}"})
    b.app("a")
    b.app("d")
    return b


@PARKING
def test_a_gang_that_starts_wakes_what_wants_to_be_near_it(parking: str) -> None:
    """Two of its members are on one node, where the search for nodes had counted both already."""
    b = one_zone(parking, 4)
    b.ask("a", "near", vcore=1, tags=pod("db", affinity=("host", "web")))
    assert b.run(after=1) == ""
    b.add("g", task_groups(w=2))
    for key in ("g0", "g1"):
        b.member("g", key, 1, tags=pod("web"))
    assert sorted(b.run(after=1).split()) == ["g0@n0", "g1@n0", "near@n0"]


@PARKING
@pytest.mark.parametrize("cause", ["one ends", "one is evicted"])
def test_a_daemon_evicts_the_last_pod_that_keeps_it_off_when_the_others_go(parking: str, cause: str) -> None:
    b = one_zone(parking, 4, 1)
    b.ask("a", "v0", node="n0", vcore=1, tags=pod("db"))
    b.ask("a", "v1", node="n1", vcore=1, tags=pod("db"))
    b.ask("d", "k0", required="n0", vcore=1, tags=pod("web", antiAffinity=("zone", "db")))
    assert victims(b, after=1) == []
    if cause == "one ends":
        b.release("a", "v1")
        assert victims(b, after=1) == ["v0"]
    else:
        b.ask("d", "k1", required="n1", vcore=1, priority=1)
        assert victims(b, after=1) == ["v1", "v0"]


@PARKING
def test_a_daemon_evicts_the_pod_that_it_wants_near_when_there_is_another(parking: str) -> None:
    b = one_zone(parking, 1, 2)
    b.ask("a", "v0", node="n0", vcore=1, tags=pod("db"))
    b.ask("d", "k0", required="n0", vcore=1, tags=pod("web", affinity=("zone", "db")))
    assert victims(b, after=1) == []
    b.ask("a", "other", vcore=1, tags=pod("db"))
    assert victims(b, after=1) == ["v0"]


def test_a_scenario_in_which_room_was_taken_beside_a_domain_that_is_to_open() -> None:
    """A daemon waits for a pod that others are evicted for, and then for room as well: it evicts as soon as that is lacking."""
    compare.run(881010078, Situations())


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(371535819, id="a reservation was given up before others of its application were tried"),
        pytest.param(
            746560645, id="a real ask is near a second pod of those that it wants near, beside its placeholder"
        ),
        pytest.param(746570342, id="others were evicted on the node of a daemon whose host port is taken"),
    ],
)
def test_a_scenario_in_which_something_was_missed(seed: int) -> None:
    compare.run(seed, Situations())
