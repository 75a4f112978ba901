"""Faults that the comparison has found in the product, each as small as possible; the reference shows what is right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from licorne.config import load
from licorne.core.cluster import Cluster
from licorne.core.constants import UNLIMITED
from licorne.si.constants import TAG_NODE_CONSTRAINTS, TAG_REQUIRED_NODE, TAG_RESOURCE_GUARANTEED
from licorne.si.messages import (
    AddApplication,
    Allocation,
    Input,
    NewAllocation,
    NodeAction,
    NodeUpdate,
    Output,
    Release,
    Released,
    RemoveApplication,
    Termination,
    WaitingForResources,
)
from reference.atomic import GROUPS_TAG
from reference.cluster import ReferenceCluster
from reference.gangdraws import held_by_product, held_by_reference
from reference.model import SECOND_NS


class Both:
    """The product and the reference, with the queues `root.a` and `root.b`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.product = Cluster()
        self.reference = ReferenceCluster(load)
        self.now_ns = SECOND_NS
        self.wait(0)
        self.product.register("rm", _configuration(), settings, None, first_interface=False)
        self.reference.register("rm", _configuration(), settings, None, first_interface=False)

    def wait(self, seconds: int) -> None:
        self.now_ns += seconds * SECOND_NS
        self.product.advance(self.now_ns)
        self.reference.advance(self.now_ns)

    def submit(self, *messages: Input) -> None:
        self.product.submit("rm", messages)
        self.reference.submit("rm", messages)

    def reload(self, **queue: Any) -> None:
        self.product.reload("rm", _configuration(**queue), {})
        self.reference.reload("rm", _configuration(**queue))

    def schedule(self) -> tuple[list[str], list[str]]:
        """Decide, and return the placements of the product and of the reference."""
        product, reference = self.decide()
        return _placed(product), _placed(reference)

    def decide(self) -> tuple[list[Output], list[Output]]:
        """Decide, and return the messages of the product and of the reference."""
        self.product.schedule(UNLIMITED)
        self.reference.schedule()
        return _outputs(list(self.product.outputs())), _outputs(self.reference.outputs())

    def holders(self) -> tuple[list[str], list[str]]:
        """Which gang holds nodes."""
        held = held_by_product(self.product), held_by_reference(self.reference)
        product, reference = ([gang for gang, *_ in each.values()] for each in held)
        return product, reference


def _outputs(said: Sequence[tuple[str, list[Output]]]) -> list[Output]:
    return [output for _, outputs in said for output in outputs]


def _placed(said: list[Output]) -> list[str]:
    return [f"{o.key} on {o.node_id}" for o in said if isinstance(o, NewAllocation)]


def _configuration(**queue: Any) -> str:
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "a", **queue}, {"name": "b"}]}
    rules = [{"name": "provided", "create": True}]
    return json.dumps({"partitions": [{"name": "default", "placementrules": rules, "queues": [root]}]})


def _node(name: str, vcore: int) -> Input:
    action = NodeAction.CREATE_DRAIN if name == "drained" else NodeAction.CREATE
    return NodeUpdate(node_id=name, action=action, capacity={"vcore": vcore})


def _app(name: str, queue: str = "root.a", **more: Any) -> Input:
    return AddApplication(application_id=name, queue=queue, user="alice", **more)


def _ask(key: str, app: str, vcore: int, *, required: str = "", **more: Any) -> Input:
    tags = {TAG_REQUIRED_NODE: required} if required else None
    return Allocation(key=key, application_id=app, resource={"vcore": vcore}, tags=tags, **more)


def _placeholder(key: str, **more: Any) -> Input:
    return Allocation(key=key, application_id="gang", resource={"vcore": 2}, task_group="g", placeholder=True, **more)


def _gang(name: str, queue: str) -> Input:
    groups = json.dumps([{"name": "g", "minMember": 2, "minResource": {"cpu": "1m"}}])
    return _app(name, queue, tags={"gang.scheduling": "atomic", GROUPS_TAG: groups})


def _member(key: str, gang: str, vcore: int) -> Input:
    return _ask(key, gang, vcore, task_group="g")


def test_a_reserved_ask_goes_to_a_node_that_opens_while_decisions_are_made() -> None:
    """An ask that requires n2 displaces the reservation there: the other reserved ask fits what is left of n2.

    It comes before those without a reservation. With `scheduler.parking` off, it does.
    """
    both = Both({"reservation.delay": "0s"})
    both.submit(
        _node("n1", 10), _node("n2", 10), _node("drained", 10), *map(_app, ("filler", "small", "large", "daemon"))
    )
    both.submit(_ask("eight", "filler", 8, required="n1"), _ask("six", "filler", 6, required="n2"))
    both.schedule()
    both.submit(_ask("3", "small", 3), _ask("6", "large", 6, priority=5))
    both.wait(1)
    assert both.schedule() == ([], [])  # 6 reserves n2, 3 reserves n1
    both.submit(_ask("1", "daemon", 1, priority=9, required="n2"))
    product, reference = both.schedule()
    assert reference == ["1 on n2", "3 on n2"]
    assert product == reference


def test_no_more_applications_run_than_a_lowered_maximum_allows() -> None:
    """Four run, then two may; a fifth has its turn when one is left, not when two are."""
    both = Both({})
    both.submit(_node("n", 10))
    for number in range(1, 5):
        both.submit(_app(f"app{number}"), _ask(f"ask{number}", f"app{number}", 1))
    both.schedule()
    both.reload(maxapplications=2)
    both.submit(_app("app5"), _ask("ask5", "app5", 1))
    started = []
    for number in range(1, 4):
        both.submit(RemoveApplication(application_id=f"app{number}"))
        started.append(both.schedule())
    assert [reference for _, reference in started] == [[], [], ["ask5 on n"]]
    assert [product for product, _ in started] == [[], [], ["ask5 on n"]]


def test_a_second_freed_node_is_not_forgotten() -> None:
    """Two nodes are freed. One ask of 3 has no quota, a second one gets a node, and a third one the other node."""
    both = Both({"reservation.enabled": "false"})
    both.reload(resources={"max": {"vcore": "3m"}})
    both.submit(_node("n1", 3), _node("n2", 3), _node("n3", 1), _node("drained", 10), _app("filler", "root.b"))
    both.submit(_ask("filler 1", "filler", 3, required="n1"), _ask("filler 2", "filler", 3, required="n2"))
    both.schedule()
    both.submit(_app("first"), _ask("first", "first", 3, priority=1), _ask("1", "first", 1))
    both.submit(_app("second", "root.b"), _ask("second", "second", 3))
    assert both.schedule() == (["1 on n3"], ["1 on n3"])
    both.submit(RemoveApplication(application_id="filler"))
    assert both.schedule() == (["second on n1"], ["second on n1"])
    both.submit(_ask("third", "second", 3))
    product, reference = both.schedule()
    assert reference == ["third on n2"]
    assert product == reference


def test_an_application_is_woken_by_a_placeholder_that_was_placed_elsewhere() -> None:
    """Scenario 1425: with the placeholder the gang is one of those that the user's limit counts, and so it may run."""
    both = Both({"reservation.enabled": "false"})
    both.reload(limits=[{"users": ["alice"], "maxapplications": 1}])
    both.submit(_node("n", 10), *map(_app, ("first", "gang")), _ask("1", "first", 1))
    both.schedule()
    both.submit(_placeholder("held"))
    assert both.schedule() == ([], [])
    both.submit(_placeholder("there", node_id="n"))
    assert both.schedule() == (["there on n", "held on n"], ["there on n", "held on n"])


def test_matching_an_ask_with_a_placeholder_is_no_attempt() -> None:
    """Scenarios 653 and 1077: a real ask waits again, since its placeholder was ended. It has not had its turn since then.

    Back-off leaves the application alone after one ask that fits no node; here that is another ask, which comes first.
    """
    both = Both({"reservation.enabled": "false"})
    both.reload(properties={"application.unschedasks.backoff": "1"})
    zone = {TAG_NODE_CONSTRAINTS: '{"nodeSelector": {"zone": "z"}}'}
    both.submit(
        *(_node("n1", 2), _node("small 1", 1), _node("small 2", 1)),
        NodeUpdate(node_id="n2", action=NodeAction.CREATE, capacity={"vcore": 2}, attributes={"label/zone": "z"}),
        *map(_app, ("gang", "other")),
        _placeholder("place", tags={TAG_REQUIRED_NODE: "n1"}),
    )
    assert both.schedule() == (["place on n1"], ["place on n1"])
    both.submit(Allocation(key="real", application_id="gang", resource={"vcore": 2}, tags=zone, task_group="g"))
    both.wait(2)
    both.decide()  # it is to replace the placeholder, on n2
    both.submit(
        Release(application_id="gang", key="place", termination=Termination.STOPPED_BY_RM),
        Allocation(key="taken 1", application_id="other", resource={"vcore": 2}, node_id="n1"),
        Allocation(key="taken 2", application_id="other", resource={"vcore": 2}, node_id="n2"),
        _ask("first", "gang", 2, priority=1),
    )
    both.wait(2)
    told = [[o.key for o in said if isinstance(o, WaitingForResources)] for said in both.decide()]
    assert told == [["first"], ["first"]]


def test_a_guarantee_that_a_tag_brings_may_be_preempted_for() -> None:
    """Scenario 2128: the configuration has no guarantee. Asks that wait already in the queue may preempt too."""
    both = Both({"reservation.enabled": "false"})
    both.submit(_node("n", 2), _app("rich", "root.b"), _app("poor", "root.team"))
    both.submit(*(_ask(key, "rich", 1, allow_preempt_self=True) for key in ("old", "new")))
    assert both.schedule() == (["old on n", "new on n"], ["old on n", "new on n"])
    both.submit(_ask("waiting", "poor", 1, allow_preempt_other=True))
    both.wait(40)
    assert [_victims(said) for said in both.decide()] == [[], []]
    guarantee = {TAG_RESOURCE_GUARANTEED: '{"resources": {"vcore": {"value": 1}}}'}
    both.submit(_app("next", "root.team", tags=guarantee))
    assert [_victims(said) for said in both.decide()] == [["new"], ["new"]]


def test_placing_a_pending_ask_outside_makes_its_application_no_older() -> None:
    """Scenario 12817: applications that come at one moment are a nanosecond apart; their asks are of the moment itself."""
    both = Both({})
    both.submit(_node("n", 5), *map(_app, ("first", "second", "third")))
    both.submit(_ask("2", "second", 2), _ask("3", "third", 2), _ask("there", "third", 1))
    both.wait(1)
    both.submit(Allocation(key="there", application_id="third", resource={"vcore": 1}, node_id="n"))
    expected = ["there on n", "2 on n", "3 on n"]
    assert both.schedule() == (expected, expected)


def test_a_gang_that_became_smaller_is_tried() -> None:
    """Scenario 15653: its queue had no room for the large member; with another one in its place it has."""
    both = Both({})
    both.reload(resources={"max": {"vcore": "10m"}})
    both.submit(_node("n", 20), _app("other"), _ask("there", "other", 5), _gang("gang", "root.a"))
    both.submit(*(_member(key, "gang", vcore) for key, vcore in (("a", 1), ("large", 5), ("b", 1))))
    assert both.schedule() == (["there on n"], ["there on n"])
    both.submit(Release(application_id="gang", key="large", termination=Termination.STOPPED_BY_RM))
    expected = ["a on n", "b on n"]
    assert both.schedule() == (expected, expected)


def test_a_gang_that_gives_nodes_up_leaves_them_to_the_next_gang_of_the_call() -> None:
    """Scenario 14113: work in front of the gang took the only slot of its queue; no event would have come later."""
    both = Both({})
    both.reload(maxapplications=1)
    both.submit(_node("n", 11), _app("other", "root.b"), _gang("first", "root.a"), _gang("second", "root.b"))
    both.submit(_ask("there", "other", 9, timeout_ms=9000))
    both.submit(*(_member(f"{gang} {n}", gang, 5) for gang in ("first", "second") for n in range(2)))
    both.schedule()
    assert both.holders() == (["first"], ["first"])
    both.submit(_app("small"), _ask("1", "small", 1, timeout_ms=1000))
    assert both.schedule() == (["1 on n"], ["1 on n"])
    assert both.holders() == (["second"], ["second"])


def test_an_ask_that_requires_a_node_uses_room_that_another_evicted_there() -> None:
    """Scenario 19837: the victims for the second daemon free more than it wants; the first one had found too few before."""
    both = Both({})
    both.submit(_node("n", 4), _node("other", 4), *map(_app, ("apps", "first", "second")))
    both.submit(_ask("wide", "apps", 3, priority=5, node_id="n"), _ask("thin", "apps", 1, node_id="n"))
    both.submit(_ask("low", "first", 2, required="n"))
    assert [_victims(said) for said in both.decide()] == [[], []]
    both.submit(_ask("high", "second", 2, required="n", priority=9))
    assert [_victims(said) for said in both.decide()] == [["wide", "thin"], ["wide", "thin"]]


def _victims(said: list[Output]) -> list[str]:
    return [o.key for o in said if isinstance(o, Released)]
