"""What stands between an ask and a node: which nodes come nearest, and what is missing there."""

from __future__ import annotations

from collections.abc import Callable

import licorne
from licorne.answers import ApplicationAnswer, AskAnswer, Home, Overview, why
from licorne.answers.chain import Chain, NearMiss
from licorne.host.web.rest.state import full_state
from licorne.state.dump import read_dump
from licorne.state.restore import restore
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
    found = [(each.node, each.why) for each in nearest]
    assert found == [("n4", "lack of vcore"), ("n1", "too small"), ("n3", "too small"), ("n2", "too small")]
    assert nearest[0].missing == {"vcore": 3000}


def test_a_type_that_no_node_has_is_named() -> None:
    world = _world().ask("k", "x", **{"vcore": 1000, "foo.com/bar": 1})
    answer = _answer(world, "k")
    assert answer.sentence == "No node has foo.com/bar, so it never runs as things are: too small (4 nodes)."
    assert [reason.details for reason in _chain(answer).reasons] == [
        {"failed": {"too small": 4}, "absent": ("foo.com/bar",)}
    ]
    assert _chain(answer).nearest[0].missing == {"foo.com/bar": 1}


def _questions(most: int) -> Callable[[], bool]:
    """Return whether to go on, `most` times."""
    left = iter(range(most))
    return lambda: next(left, None) is not None


def test_asks_for_which_there_is_no_time_are_counted() -> None:
    world = _world()
    for number in range(6):
        world.ask(f"k{number}", "x", vcore=5000 + number // 2)  # three kinds
    home = Home(restore(read_dump(full_state(world.api, world.now))))
    for most, explained in ((0, 0), (2, 4), (3, 6)):
        found = why(home, more=_questions(most))
        assert isinstance(found, Overview)
        made = (found.waiting, found.unexplained, sum(group.asks for group in found.groups))
        assert made == (6, 6 - explained, explained)
        of_app = why(home, "x", prove=False, more=_questions(most))
        assert isinstance(of_app, ApplicationAnswer) and of_app.first is not None
        assert (of_app.waiting, of_app.unexplained) == (6, 6 - explained)
