"""Claims of an ask that has evicted others: against which asks they hold, and events that end them (docs/understand/preemption.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.bench import Bench, config, limit, parent
from licorne.core.inspection.explain import Claimed, Preemption, QueueQuota
from licorne.core.preemption.evictions import Outcome
from licorne.si.messages import Allocation, NodeAction
from preemption.test_examples import confirm, quota, victims

DELAY = 31
LONG = {"licorne/termination-grace-period": "9000"}
"""A victim that takes longer than a claim lasts."""


def pair(most: int = 3, *, guaranteed: int = 3, limits: str = "") -> Bench:
    """Queue a, and queue b with a guarantee and a max; a's pod v fills n1, and k of b, of 3, is to have its place."""
    more = f", limits: [{limits}]" if limits else ""
    b = Bench(config("a", f"b {quota(guaranteed, most)}{more}"), settings={"reservation.enabled": "false"})
    b.node("n1", vcore=3)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.ask("x", "v", vcore=3, tags=LONG)
    b.run()
    b.ask("y", "k", vcore=3, preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    return b


def outcomes(b: Bench) -> list[object]:
    """The outcomes of the evictions."""
    return [each.outcome for each in b.partition.evictions]


def test_a_later_ask_does_not_take_the_quota_that_an_eviction_was_for() -> None:
    b = pair()
    b.node("n2", vcore=1)
    b.ask("y", "late", vcore=1)
    assert b.run() == ""
    assert b.why("late") == [Claimed("queue", "root.b", "root.b", {"vcore": 1}), *b.why("late")[1:]]
    confirm(b, "v")
    assert b.run() == "k@n1"
    assert (outcomes(b), b.reserved()) == ([Outcome.PLACED], "")
    assert QueueQuota("root.b", {"vcore": 1}) in b.why("late")


def test_an_ask_of_the_same_call_does_not_take_the_quota_evicted_for_a_daemon() -> None:
    b = Bench(config("a", f"b {quota(0, 2)}"))
    b.node("n1", vcore=4)
    b.node("n2", vcore=4)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.ask("x", "v", node="n1", vcore=4)
    b.ask("y", "d", vcore=2, priority=100, required="n1")
    b.ask("y", "low", vcore=1)
    assert victims(b) == ["v"]
    assert b.why("d")[-1] == Preemption("victims are going", "n1", None)
    confirm(b, "v")
    assert b.run() == "d@n1"


def test_a_withheld_ask_is_placed_when_the_claiming_ask_has_ended() -> None:
    b = pair()
    b.node("n2", vcore=1)
    b.ask("y", "late", vcore=1)
    assert b.run() == ""
    b.release("y", "k", what="ask")
    assert outcomes(b) == [Outcome.ENDED]
    assert b.run() == "late@n2"


def test_a_claim_takes_no_more_than_its_own_amounts() -> None:
    b = pair(4)
    b.node("n2", vcore=2)
    b.ask("y", "late", vcore=1)
    b.ask("y", "later", vcore=1)
    assert b.run() == "late@n2"
    confirm(b, "v")
    assert b.run() == "k@n1"


def test_in_the_parent_queue_victims_count_as_gone() -> None:
    b = Bench(config(parent(f"p {quota(0, 4)}", "a", f"b {quota(3)}")))
    b.node("n1", vcore=3)
    b.node("n2", vcore=1)
    b.app("x", "root.p.a")
    b.app("y", "root.p.b")
    b.ask("x", "v", node="n1", vcore=3)
    b.ask("y", "k", vcore=3, preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    b.ask("x", "small", vcore=1)
    assert b.run() == "small@n2"  # p is going to use 3 and 1
    confirm(b, "v")
    assert b.run() == "k@n1"


# -- order -----------------------------------------------------------------------------------------------------


def test_a_later_ask_of_higher_order_may_take_the_claimed_quota() -> None:
    b = pair()
    b.node("n2", vcore=1)
    b.ask("y", "high", vcore=1, priority=1)
    assert b.run() == "high@n2"
    assert (outcomes(b), b.reserved()) == ([Outcome.HIGHER_ORDER], "")
    assert b.why("k")[-1] == Preemption("gave up", Outcome.HIGHER_ORDER, b.partition.now + 15 * 10**9)
    confirm(b, "v")
    assert b.run(after=100) == ""
    assert victims(b) == []


def test_an_earlier_ask_of_higher_order_may_not_take_the_claimed_quota() -> None:
    b = Bench(config("a", f"b {quota(3, 3)}"), settings={"reservation.enabled": "false"})
    b.node("n1", vcore=3)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.ask("x", "v", vcore=3)
    b.run()
    b.ask("y", "high", vcore=2, priority=9)  # does not preempt
    b.ask("y", "k", vcore=3, preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    b.node("n2", vcore=2)
    b.ask("y", "between", vcore=1, priority=5)
    assert b.run() == ""
    b.ask("y", "higher", vcore=1, priority=10)
    assert b.run() == "higher@n2 between@n2"
    assert outcomes(b) == [Outcome.HIGHER_ORDER]


@pytest.mark.parametrize(("offset", "placed"), [(5, ""), (-5, "other@n2")])
def test_across_queues_order_is_what_the_lowest_common_queue_sees(offset: int, placed: str) -> None:
    leaf = f"b {quota(3)}, properties: {{priority.offset: '{offset}'}}"
    b = Bench(config("a", parent(f"p {quota(0, 3)}", leaf, "c")))
    b.node("n1", vcore=3)
    for app, queue in (("x", "root.a"), ("y", "root.p.b"), ("z", "root.p.c")):
        b.app(app, queue)
    b.ask("x", "v", node="n1", vcore=3, priority=-9)
    b.ask("y", "k", vcore=3, preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    b.node("n2", vcore=1)
    b.ask("z", "other", vcore=1, priority=1)
    assert b.run() == placed


def test_an_ask_that_gave_up_may_preempt_again() -> None:
    b = pair(6, guaranteed=6)
    b.node("n9", NodeAction.CREATE_DRAIN, vcore=9)
    b.ask("y", "daemon", vcore=3, required="n1")
    assert b.run() == ""
    assert outcomes(b) == [Outcome.REQUIRED_NODE]
    confirm(b, "v")
    assert b.run() == "daemon@n1"
    b.node("n2", vcore=3)
    b.ask("x", "w", node="n2", vcore=3)
    assert victims(b, after=15) == ["w"]
    confirm(b, "w")
    assert b.run() == "k@n2"
    assert outcomes(b) == [Outcome.REQUIRED_NODE, Outcome.PLACED]


# -- users -----------------------------------------------------------------------------------------------------


def test_a_limit_of_a_user_is_claimed_too() -> None:
    b = pair(6, guaranteed=6, limits=limit("u", vcore=3))
    b.node("n2", vcore=1)
    b.ask("y", "late", vcore=1)
    assert b.run() == ""
    assert Claimed("user", "u", "root.b", {"vcore": 1}) in b.why("late")
    b.ask("y", "k2", vcore=1, preempt_other=True)
    b.ask("x", "w", node="n2", vcore=1)
    assert victims(b, after=DELAY) == []  # its user has no room for it beside k
    confirm(b, "v")
    assert b.run() == "k@n1"


def test_an_application_slot_is_claimed_too() -> None:
    b = pair(6, limits=limit("u", apps=1))
    b.node("n2", vcore=1)
    b.app("z", "root.b")
    b.ask("z", "other", vcore=1)
    assert b.run() == ""
    confirm(b, "v")
    assert b.run() == "k@n1"


# -- nodes -----------------------------------------------------------------------------------------------------


def daemons() -> Bench:
    """d has evicted on n1, where 1 was free."""
    b = Bench(config("a"))
    b.node("n1", vcore=5)
    b.node("n9", NodeAction.CREATE_DRAIN, vcore=9)
    b.app("x")
    b.ask("x", "v", node="n1", vcore=4, tags=LONG)
    b.ask("x", "d", required="n1", vcore=5)
    assert victims(b) == ["v"]
    return b


def test_a_daemon_does_not_take_room_that_was_freed_for_another() -> None:
    b = daemons()
    b.ask("x", "small", required="n1", vcore=1)
    assert b.run() == ""
    confirm(b, "v")
    assert b.run() == "d@n1"


def test_a_daemon_of_higher_order_takes_it_and_the_other_evicts_anew_if_that_helps() -> None:
    b = daemons()
    b.ask("x", "small", required="n1", vcore=1, priority=1)
    assert b.run() == "small@n1"
    assert outcomes(b) == [Outcome.REQUIRED_NODE]


def test_a_daemon_that_gave_up_evicts_again_on_its_node_at_once() -> None:
    """Only for a guarantee an ask waits 15 seconds (`test_an_ask_that_gave_up_may_preempt_again`)."""
    b = Bench(config("a"))
    b.node("n1", vcore=4)
    b.app("x")
    for key in ("v1", "v2"):
        b.ask("x", key, node="n1", vcore=2)
    b.ask("x", "d", required="n1", vcore=2)
    assert victims(b) == ["v2"]
    b.ask("x", "forced", node="n1", vcore=2, priority=1)
    assert outcomes(b) == [Outcome.FORCED]
    assert victims(b) == ["v1"]


def test_nothing_is_evicted_for_a_daemon_that_may_not_run_there() -> None:
    b = Bench(config("a"))
    b.node("n1", vcore=4)
    b.app("x")
    b.ask("x", "v", node="n1", vcore=4)
    wanted = {"licorne/node-constraints": '{"nodeSelector": {"disk": "fast"}}'}
    b.ask("x", "d", required="n1", vcore=4, tags=wanted)
    assert victims(b) == []


# -- giving up -------------------------------------------------------------------------------------------------

CAUSES: list[tuple[Outcome, Callable[[Bench], object]]] = [
    (Outcome.NODE, lambda b: b.node("n1", NodeAction.DRAIN_NODE)),
    (Outcome.NODE, lambda b: b.node("n1", NodeAction.UPDATE, vcore=2)),
    (Outcome.NODE, lambda b: b.node("n1", NodeAction.DECOMISSION)),
    (Outcome.FOREIGN, lambda b: b.foreign("f", "n1", vcore=1)),
    (Outcome.FORCED, lambda b: b.ask("x", "w", node="n1", vcore=1)),
    (Outcome.FORCED, lambda b: (b.node("n2", vcore=2), b.ask("y", "w", node="n2", vcore=1))),
    (Outcome.CONFIGURATION, lambda b: b.reload(config("a", f"b {quota(2, 2)}"))),
    (Outcome.CHANGED, lambda b: b.ask("y", "k", vcore=4)),
    (Outcome.AGE, lambda b: b.run(after=7201)),
    (Outcome.ENDED, lambda b: b.remove("y")),
]


@pytest.mark.parametrize(("cause", "happens"), CAUSES)
def test_events_that_make_an_ask_give_up(cause: Outcome, happens: Callable[[Bench], object]) -> None:
    b = pair()
    happens(b)
    assert outcomes(b) == [cause]
    if cause is not Outcome.AGE:  # after which it claims anew the room that is still coming
        assert (b.reserved(), b.partition.claims.by_ask) == ("", {})


HARMLESS: list[Callable[[Bench], object]] = [
    lambda b: b.node("n2", vcore=2),
    lambda b: b.node("n1", NodeAction.UPDATE, vcore=4),
    lambda b: b.reload(config("a", f"b {quota(3, 4)}")),
    lambda b: b.ask("y", "k", vcore=2),
    lambda b: b.run(after=7199),
]


@pytest.mark.parametrize("happens", HARMLESS)
def test_events_that_do_not_make_an_ask_give_up(happens: Callable[[Bench], object]) -> None:
    b = pair()
    happens(b)
    assert (outcomes(b), b.reserved()) == ([Outcome.WAITING], "k@n1")
    confirm(b, "v")
    assert b.run() in ("k@n1", "k@n2")
    assert outcomes(b) == [Outcome.PLACED]


def test_a_daemon_gives_up_after_120_minutes_too() -> None:
    b = daemons()
    b.run(after=7201)
    assert outcomes(b) == [Outcome.AGE]
    assert (b.partition.claims.by_ask, b.reserved()) == ({}, "d@n1")  # as any daemon that waits for its node
    confirm(b, "v")
    assert b.run() == "d@n1"


def test_the_reason_shows_when_victims_have_gone() -> None:
    open_ = [False]
    b = Bench(config("a", f"b {quota(3)}"), holds=lambda key, _, allocate: key != "k" or open_[0] or not allocate)
    b.node("n1", vcore=3)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.ask("x", "v", vcore=3)
    b.run()
    b.ask("y", "k", vcore=3, preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    assert b.why("k")[-1] == Preemption("victims are going", "n1", None)
    confirm(b, "v")
    b.run(after=3600)
    assert b.why("k")[-1] == Preemption("victims have gone", "n1", None)
    open_[0] = True
    assert b.run() == "k@n1"


def test_a_gang_does_not_take_claimed_room() -> None:
    b = pair(3)
    b.node("n2", vcore=2)
    groups = '[{"name": "g", "minMember": 2, "minResource": {"cpu": "1m"}}]'
    b.app("gang", "root.b", tags={"yunikorn.apache.org/task-groups": groups, "gang.scheduling": "atomic"})
    for key in ("m1", "m2"):
        b.send(Allocation(key=key, application_id="gang", resource={"vcore": 1}, task_group="g"))
    assert b.run() == ""
    assert [type(reason).__name__ for reason in b.why("m1")] == ["Claimed", "Gang"]
    b.release("y", "k", what="ask")
    assert b.run() == "m1@n2 m2@n2"


def test_a_smaller_guarantee_by_a_tag_lets_an_ask_search_for_victims_again() -> None:
    def guaranteed(vcore: int) -> dict[str, str]:
        return {"namespace.resourceguaranteed": f'{{"resources": {{"vcore": {{"value": {vcore}}}}}}}'}

    b = Bench(config("a parent: true", f"b {quota(2)}", more="placementrules: [{name: provided, create: true}]"))
    b.node("n1", vcore=5)
    b.app("x", "root.a.dyn", tags=guaranteed(5))
    b.app("y", "root.b")
    b.ask("x", "u", vcore=3)
    b.ask("x", "v", vcore=2)
    b.run()
    b.ask("y", "k", vcore=2, preempt_other=True)
    assert victims(b, after=DELAY) == []
    b.app("x2", "root.a.dyn", tags=guaranteed(3))
    assert victims(b, after=DELAY) == ["v"]
