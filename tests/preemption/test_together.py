"""Several asks that preempt at one moment: they share nodes, gangs preempt as a whole, and a victim that hangs holds up nobody.

Source: docs/understand/preemption.md, "Several at once" and "What an ask claims".
"""

from __future__ import annotations

import pytest

from core.bench import Bench, config
from gangs_atomic.helpers import GangBench, task_groups
from licorne.core.inspection.explain import Preemption
from licorne.core.preemption.evictions import Outcome
from licorne.si.messages import Allocation, NodeAction
from preemption.test_claims import outcomes
from preemption.test_examples import DELAY, confirm, quota, victims

NO_RESERVATIONS = {"reservation.enabled": "false"}


def full(*nodes: int, size: int = 1, guaranteed: int = 8) -> GangBench:
    """Nodes that pods of `size` of root.a fill, and application y of root.b, which has a guarantee."""
    b = GangBench(*nodes, text=config("a", f"b {quota(guaranteed)}"))
    b.app("x", "root.a")
    for node, capacity in enumerate(nodes, 1):
        for number in range(capacity // size):
            b.ask("x", f"v{node}.{number}", node=f"n{node}", vcore=size)
    b.app("y", "root.b")
    return b


def asks(b: Bench, count: int, vcore: int = 1, **more: object) -> None:
    for number in range(count):
        b.ask("y", f"k{number}", vcore=vcore, preempt_other=True, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("nodes", [(8,), (4, 4), (5, 3, 2)])
def test_asks_that_are_entitled_wait_for_one_grace_period_however_few_nodes_there_are(nodes: tuple[int, ...]) -> None:
    b = full(*nodes)
    asks(b, 8)
    going = victims(b, after=DELAY)
    assert len(going) == 8
    confirm(b, *going)
    assert sorted(place.split("@")[0] for place in b.run().split()) == [f"k{n}" for n in range(8)]
    assert set(outcomes(b)) == {Outcome.PLACED}


def test_asks_share_the_room_of_one_victim() -> None:
    b = full(8, size=4)
    asks(b, 5)
    assert len(victims(b, after=DELAY)) == 2
    assert [b.why(f"k{n}")[-1] for n in range(5)] == [Preemption("victims are going", "n1", None)] * 5
    confirm(b, "v1.1", "v1.0")
    assert len(b.run().split()) == 5


def test_nobody_else_takes_what_is_left_beside_claims() -> None:
    b = full(4, size=4)
    asks(b, 2)
    assert victims(b, after=DELAY) == ["v1.0"]
    b.ask("x", "late", vcore=1)
    confirm(b, "v1.0")
    assert b.run() == "k0@n1 k1@n1 late@n1"


def test_asks_with_the_same_host_port_do_not_claim_one_node() -> None:
    b = full(2, 2)
    asks(b, 2, tags={"licorne/node-constraints": '{"hostPorts": [{"hostPort": 80}]}'})
    assert sorted(victims(b, after=DELAY)) == ["v1.1", "v2.1"]


def test_what_claims_leave_is_searched_again_when_one_of_them_ends() -> None:
    b = full(2)
    asks(b, 1, vcore=2)
    b.ask("y", "late", vcore=2, preempt_other=True)
    assert sorted(victims(b, after=DELAY)) == ["v1.0", "v1.1"]
    b.release("y", "k0", what="ask")
    assert victims(b, after=15) == []
    assert b.why("late")[-1] == Preemption("victims are going", "n1", None)
    confirm(b, "v1.0", "v1.1")
    assert b.run() == "late@n1"


# -- gangs -----------------------------------------------------------------------------------------------------


def gang(b: GangBench, *sizes: int, placeholders: bool) -> list[str]:
    """Add a gang of these members to root.b; return their keys."""
    b.add("g", task_groups(w=len(sizes)), "" if placeholders else "atomic", queue="root.b")
    keys = [f"g{number}" for number in range(len(sizes))]
    for key, size in zip(keys, sizes, strict=True):
        b.member("g", key, size, placeholder=placeholders, allow_preempt_other=True)
    return keys


@pytest.mark.parametrize("placeholders", [False, True])
def test_a_gang_preempts_as_a_whole(placeholders: bool) -> None:
    b = full(3, 3)
    keys = gang(b, 2, 2, 1, placeholders=placeholders)
    assert len(victims(b, after=DELAY)) == 5
    confirm(b, "v1.0", "v1.1", "v1.2", "v2.0")
    assert bool(b.run()) == placeholders
    confirm(b, "v2.1", "v2.2")
    b.run()
    assert sorted(b.application("g").allocations) == keys


@pytest.mark.parametrize("placeholders", [False, True])
@pytest.mark.parametrize("sizes", [(2, 4), (5, 4)], ids=["no node is large enough", "the guarantee is too small"])
def test_a_gang_evicts_nobody_if_not_all_of_it_can_run(sizes: tuple[int, ...], placeholders: bool) -> None:
    b = full(3, 3) if sizes == (2, 4) else full(9)
    gang(b, *sizes, placeholders=placeholders)
    assert victims(b, after=DELAY) == []
    assert victims(b, after=DELAY) == []


def test_a_gang_preempts_while_another_ask_waits_for_its_victims() -> None:
    b = full(3, 3)
    asks(b, 1)
    gang(b, 2, 1, placeholders=False)
    assert len(victims(b, after=DELAY)) == 4


def test_a_gang_keeps_free_room_beside_that_of_its_victims() -> None:
    b = full(2)
    b.node("n2", vcore=2)
    gang(b, 2, 2, placeholders=False)
    assert sorted(victims(b, after=DELAY)) == ["v1.0", "v1.1"]
    b.ask("x", "late", vcore=1)
    assert b.run() == ""
    confirm(b, "v1.0", "v1.1")
    assert sorted(b.run().split()) == ["g0@n2", "g1@n1"]


def test_a_gang_without_placeholders_gives_up_its_claims_as_a_whole() -> None:
    b = full(2, 2)
    gang(b, 2, 2, placeholders=False)
    assert len(victims(b, after=DELAY)) == 4
    b.node("n2", vcore=1)
    b.foreign("f", "n2", vcore=2)
    assert set(outcomes(b)) == {Outcome.FOREIGN, Outcome.GANG}
    assert b.reserved() == ""


@pytest.mark.parametrize("cause", [Outcome.NODE, Outcome.REQUIRED_NODE])
def test_members_that_claim_one_node_lose_it_together(cause: Outcome) -> None:
    b = full(4)
    gang(b, 2, 2, placeholders=False)
    assert len(victims(b, after=DELAY)) == 4
    if cause is Outcome.NODE:
        b.node("n1", NodeAction.DECOMISSION)
    else:
        b.ask("x", "daemon", required="n1", vcore=1, priority=10)
        b.run()
    assert set(outcomes(b)) == {cause, Outcome.GANG}
    assert b.reserved() in ("", "daemon@n1")


def test_members_that_come_later_are_no_part_of_it() -> None:
    b = full(4)
    b.add("g", task_groups(w=2), queue="root.b")
    b.member("g", "g0", 2, allow_preempt_other=True)
    assert victims(b, after=DELAY) == []  # it is not complete
    b.send(Allocation(key="g1", application_id="g", resource={"vcore": 2}, task_group="w", allow_preempt_other=True))
    assert len(victims(b, after=DELAY)) == 4


# -- a victim that does not end ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("grace", "waits"), [("", 30), ("900", 900), ("soon", 30)])
def test_a_victim_that_does_not_end_is_given_up_ten_minutes_after_its_grace_period(grace: str, waits: int) -> None:
    b = Bench(config("a", f"b {quota(1)}"), settings=NO_RESERVATIONS)
    b.app("x", "root.a")
    b.app("y", "root.b")
    for node, age in (("n1", 100), ("n2", 50)):
        b.node(node, vcore=1 if node == "n1" else 2)
        b.ask(
            "x",
            f"v-{node}",
            node=node,
            vcore=1,
            age_s=age,
            tags={"licorne/termination-grace-period": grace} if grace else None,
        )
    b.ask("x", "v-too", node="n2", vcore=1, age_s=75)
    b.ask("y", "k", vcore=1, preempt_other=True)
    assert victims(b, after=DELAY + 1) == ["v-n2"]
    assert victims(b, after=waits + 599) == []
    assert outcomes(b) == [Outcome.WAITING]
    assert victims(b, after=1) == ["v-n1"]
    assert outcomes(b) == [Outcome.VICTIM, Outcome.WAITING]
    confirm(b, "v-n1")
    assert b.run() == "k@n1"
    confirm(b, "v-n2")  # it ends after all
    assert b.free("n2") == {"vcore": 1}


def test_an_allocation_that_is_reported_as_ending_is_a_victim() -> None:
    b = Bench(config("a", f"b {quota(1)}"), settings=NO_RESERVATIONS)
    b.app("x", "root.a")
    b.app("y", "root.b")
    b.node("n1", vcore=2)
    b.node("n2", vcore=1)
    b.ask("x", "deleted", node="n1", vcore=1, age_s=100, tags={"licorne/ending": "true"})
    for key, node in (("v1", "n1"), ("v2", "n2")):
        b.ask("x", key, node=node, vcore=1)
    b.ask("y", "k", vcore=1, preempt_other=True)
    assert victims(b, after=DELAY + 1) == []
    assert [claim.node.id for claim in b.partition.claims.by_ask.values()] == ["n1"]
    assert victims(b, after=598) == []
    assert victims(b, after=DELAY + 1) == ["v2"], "ten minutes after its grace period it is not expected to end"
