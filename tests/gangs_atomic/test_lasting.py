"""Lasting gangs: one again whenever fewer members run than it needs, and how many it needs may change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench import config
from gangs_atomic.helpers import TAG, GangBench, task_groups
from licorne.core.gangs import atomic
from licorne.core.preemption.evictions import Outcome
from licorne.core.strict import NoEffectError, refuse_unknown
from licorne.si.constants import TAG_REQUIRED_NODE
from licorne.si.messages import AddApplication, ChangeApplication, NewAllocation
from preemption.test_examples import DELAY, confirm, quota, victims
from topology.helpers import node_labels
from topology.helpers import tags as pod_tags


def lasting(need: int) -> dict[str, str]:
    return {TAG: task_groups(w=need), "gang.scheduling": "atomic", "gang.lasting": "true"}


def bench(*nodes: int, need: int, asks: int) -> GangBench:
    b = GangBench(*nodes)
    b.send(AddApplication(application_id="g", queue="root.a", user="u", tags=lasting(need)))
    for number in range(asks):
        b.member("g", f"g{number}", 2)
    return b


def change(b: GangBench, need: int) -> None:
    tags = lasting(need) if need else {"gang.lasting": "false"}
    b.send(ChangeApplication(application_id="g", tags=tags))


def test_members_that_come_later_are_placed_alone_while_enough_run() -> None:
    b = bench(10, need=3, asks=2)
    assert b.run() == ""
    b.member("g", "g2", 2)
    assert b.run() == "g0@n1 g1@n1 g2@n1"
    b.member("g", "g3", 2)
    assert b.run() == "g3@n1"
    b.release("g", "g3")
    b.member("g", "g4", 2)
    assert b.run() == "g4@n1"


def test_members_that_replace_others_start_together() -> None:
    b = bench(6, need=3, asks=3)
    b.run()
    b.release("g", "g1")
    b.release("g", "g2")
    b.member("g", "g3", 2)
    assert b.run() == ""
    assert b.gang_reason("g3").groups == {"w": (2, 3)}
    b.member("g", "g4", 3)
    assert b.run() == ""  # there is room for one of them alone
    b.member("g", "g4", 2)
    assert b.run() == "g3@n1 g4@n1"


def test_how_many_it_needs_may_change() -> None:
    b = bench(8, need=3, asks=2)
    assert b.run() == ""
    change(b, 2)
    assert b.run() == "g0@n1 g1@n1"
    change(b, 4)
    b.member("g", "g2", 2)
    assert b.run() == ""
    b.member("g", "g3", 2)
    assert b.run() == "g2@n1 g3@n1"
    change(b, 9)
    b.member("g", "g4", 1)
    assert b.run() == ""
    change(b, 0)
    b.release("g", "g0")
    assert b.run() == "g4@n1"


def test_other_tags_of_a_gang_that_does_not_last_change_nothing() -> None:
    b = GangBench(10)
    b.add("g", task_groups(w=2))
    b.member("g", "g0", 2)
    b.send(ChangeApplication(application_id="g", tags={"x": "y"}))
    assert b.run() == ""


def test_an_application_is_lasting_with_both_tags_alone() -> None:
    b = GangBench(10)
    tags = {TAG: task_groups(w=3), "gang.lasting": "true"}
    b.send(AddApplication(application_id="g", queue="root.a", user="u", tags=tags))
    b.member("g", "g0", 2)
    b.member("g", "g1", 2)
    assert b.run() == "g0@n1 g1@n1"
    b.release("g", "g0")
    b.member("g", "g2", 2)
    assert b.run() == "g2@n1"


def test_an_end_does_not_count_all_members(monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench(10, need=2, asks=5)
    b.run()
    b.release("g", "g0")
    monkeypatch.setattr(atomic, "_parsed", None)  # needed for each count of all that run
    b.release("g", "g1")
    b.release("g", "g2")
    b.member("g", "g5", 2)
    assert b.run() == "g5@n1"


def test_malformed_task_groups_are_not_taken_over() -> None:
    b = bench(10, need=2, asks=1)
    message = ChangeApplication(application_id="g", tags={TAG: "[{}]"})
    with pytest.raises(NoEffectError, match=r"application 'g': task-groups\[0\].name: missing"):
        refuse_unknown(b.api.cluster.managers["rm"], [message])
    b.send(message)
    assert b.run() == ""
    b.member("g", "g1", 2)
    assert b.run() == "g0@n1 g1@n1"


def test_any_members_will_do_where_the_first_do_not_fit() -> None:
    b = bench(6, need=2, asks=1)
    b.member("g", "huge", 9)
    b.member("g", "g1", 2)
    assert b.run() == "g0@n1 g1@n1"
    b = bench(6, need=3, asks=1)
    for key, size in (("a", 4), ("b", 2), ("c", 2)):
        b.member("g", key, size)
    assert b.run() == "g0@n1 b@n1 c@n1"


def test_members_near_each_other_will_do_though_one_of_a_complete_group_waits() -> None:
    b = GangBench()
    for name, zone, size in (("n1", "a", 3), ("n2", "b", 2), ("n3", "b", 2), ("n9", "", 1)):
        b.node(name, attributes=node_labels(name, zone), vcore=size)
    tags = lasting(1) | {TAG: task_groups(one=1, w=2)}
    b.send(AddApplication(application_id="g", queue="root.a", user="u", tags=tags))
    b.member("g", "one", 1, "one", tags={TAG_REQUIRED_NODE: "n9"})
    b.member("g", "x", 1)
    b.member("g", "y", 1)
    b.run()
    b.release("g", "x")
    b.release("g", "y")
    b.member("g", "more", 1, "one")
    b.member("g", "huge", 9)
    for key in ("g0", "g1"):
        b.member("g", key, 2, tags=pod_tags("app=g", near="zone app=g"))
    assert sorted(b.run().split()) == ["g0@n2", "g1@n3", "more@n1"]


def test_members_within_the_quota_will_do() -> None:
    b = GangBench(9, text=config("a resources: {max: {vcore: 5m}}"))
    b.send(AddApplication(application_id="g", queue="root.a", user="u", tags=lasting(2)))
    for key, size in (("a", 4), ("b", 2), ("c", 3)):
        b.member("g", key, size)
    assert b.run() == "b@n1 c@n1"


STEPS = st.lists(
    st.tuples(st.sampled_from(("add", "add", "end", "need", "drop", "run")), st.integers(0, 9)), max_size=40
)


@given(STEPS)
def test_no_member_is_placed_while_too_few_run(steps: list[tuple[str, int]]) -> None:
    """After each call the gang has as many members as it needs, or none of its members was placed by that call."""
    b = GangBench(7, 5, text=config("a"))
    need, running, waiting = 2, set[str](), set[str]()
    b.send(AddApplication(application_id="g", queue="root.a", user="u", tags=lasting(need)))
    b.app("x", "root.a")
    for number, (what, value) in enumerate([*steps, ("run", 0)]):
        key = f"g{number}"
        match what:
            case "add":
                waiting.add(key)
                b.member("g", key, 1 + value % 4)
            case "end" if running:
                gone = sorted(running)[value % len(running)]
                running.remove(gone)
                b.release("x" if gone.startswith("x") else "g", gone)
            case "drop" if waiting:
                gone = sorted(waiting)[value % len(waiting)]
                waiting.remove(gone)
                b.release("g", gone, what="ask")
            case "need":
                need = 1 + value % 4
                change(b, need)
            case "run":
                if value % 3 == 1:
                    b.ask("x", f"x{number}", vcore=value)
                start = len(b.outputs)
                b.run(limit=1 if value % 2 else None)
                made = {one.key for one in b.outputs[start:] if isinstance(one, NewAllocation)}
                running |= made
                waiting -= made
                members = {one for one in running if one.startswith("g")}
                assert len(members) >= need or not made & members, f"{sorted(made)} of a gang that needs {need}"
        b.api.validate()


def claiming(need: int = 3) -> GangBench:
    """A gang of `need` with one that runs; the others of its first ones have claims to n2, where a victim of another queue ends."""
    b = GangBench(2, 4, text=config("a", f"b {quota(20)}"))
    b.send(AddApplication(application_id="g", queue="root.b", user="u", tags=lasting(1)))
    b.member("g", "g0", 2)
    assert b.run() == "g0@n1"
    b.app("x", "root.a")
    b.ask("x", "v", vcore=4)
    assert b.run() == "v@n2"
    b.send(ChangeApplication(application_id="g", tags=lasting(need)))
    for number in range(1, need):
        b.member("g", f"g{number}", 2, allow_preempt_other=True)
    assert victims(b, after=DELAY) == ["v"]
    return b


def test_a_gang_of_which_a_member_ends_while_it_claims_nodes_does_not_start_with_the_others_alone() -> None:
    b = claiming()
    b.release("g", "g0")
    assert b.run() == ""
    assert not b.reserved()
    assert {record.outcome for record in b.partition.evictions} == {Outcome.GANG}
    confirm(b, "v")
    assert b.run() == ""
    b.member("g", "g3", 2)
    assert b.run() == "g1@n1 g2@n2 g3@n2"


def test_members_that_come_first_in_request_order_do_not_end_claims() -> None:
    b = claiming()
    b.member("g", "first", 9, priority=5)
    assert b.run() == ""
    assert b.reserved() == "g1@n2 g2@n2"
    confirm(b, "v")
    assert b.run() == "g1@n2 g2@n2"
