"""What stands between an ask and a node: which nodes come nearest, and what is missing there."""

from __future__ import annotations

import licorne
from licorne.answers import AskAnswer
from licorne.answers.chain import Chain, NearMiss
from rest.world import World

CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"


def _world() -> World:
    world = World().register(text=CONFIG).application("x")
    for index, vcore in enumerate((3000, 1000, 2500, 4000), 1):
        world.node(f"n{index}", vcore=vcore)
    return world


def _answer(world: World, key: str) -> AskAnswer:
    answer = licorne.explain(world.api, key, prove=False)
    assert isinstance(answer, AskAnswer)
    return answer


def _chain(answer: AskAnswer) -> Chain:
    assert answer.chain is not None
    return answer.chain


def test_nodes_that_are_too_small_are_told_with_what_they_lack() -> None:
    world = _world().ask("old", "x", vcore=1000)
    world.schedule()
    answer = _answer(world.ask("k", "x", vcore=5000), "k")
    assert _chain(answer).nodes == {"too small": 4}
    assert _chain(answer).nearest == tuple(
        NearMiss(node, "too small", {"vcore": missing})
        for node, missing in (("n4", 1000), ("n1", 2000), ("n3", 2500), ("n2", 4000))
    )


def test_nodes_that_may_have_room_come_before_those_that_are_too_small() -> None:
    world = _world().ask("old", "x", vcore=3500)
    world.schedule()
    nearest = _chain(_answer(world.ask("k", "x", vcore=3500), "k")).nearest
    assert [(each.node, each.why) for each in nearest] == [
        ("n4", "lack of vcore"),
        ("n1", "too small"),
        ("n3", "too small"),
        ("n2", "too small"),
    ]
    assert nearest[0].missing == {"vcore": 3000}


def test_a_type_that_no_node_has_is_named() -> None:
    world = _world().ask("k", "x", **{"vcore": 1000, "foo.com/bar": 1})
    answer = _answer(world, "k")
    assert answer.sentence == "No node has foo.com/bar, so it never runs as things are: too small (4 nodes)."
    assert [reason.details for reason in _chain(answer).reasons] == [
        {"failed": {"too small": 4}, "absent": ("foo.com/bar",)}
    ]
    assert _chain(answer).nearest[0].missing == {"foo.com/bar": 1}
