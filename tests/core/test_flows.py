"""Messages of a resource manager, and what each of them leads to.

Source: docs/spec/scheduling.md, sections 13 and 14; docs/spec/scheduler-interface.md, sections 7.2, 7.3 and 7.5.
"""

from __future__ import annotations

import pytest

from core.bench import Bench, config, limit, partition, partitions
from licorne.si.messages import NodeAction, Release, Termination

ECHO = "STOPPED_BY_RM: allocation remove as per RM request"
DONE = "x Completing: completeApplication"


def bench(*nodes: int, text: str = "", first_interface: bool = False, settings: dict[str, str] | None = None) -> Bench:
    b = Bench(text or config("a"), first_interface=first_interface, settings=settings)
    for number, vcore in enumerate(nodes, 1):
        b.node(f"n{number}", vcore=vcore)
    b.app("x")
    return b


# -- releases (1.9): docs/spec/scheduler-interface.md, section 7.3 ---------------------------------------------------------------

# `x` has the allocations a1, a2 and the pending asks p1, p2: (app, key, type), what is said, what is left
RELEASES = [
    (("x", "a1", Termination.STOPPED_BY_RM), [f"released a1 {ECHO}"], "a2 p1 p2"),
    (("x", "a1", Termination.UNKNOWN), [f"released a1 {ECHO}"], "a2 p1 p2"),
    (("x", "a1", Termination.TIMEOUT), [], "a2 p1 p2"),
    (("x", "a1", Termination.PREEMPTED_BY_SCHEDULER), [], "a2 p1 p2"),
    (("x", "a1", Termination.PLACEHOLDER_REPLACED), [], "a2 p1 p2"),  # with none in flight: a plain release
    (("x", "p1", Termination.STOPPED_BY_RM), [], "a1 a2 p2"),
    (("x", "p1", Termination.PREEMPTED_BY_SCHEDULER), [], "a1 a2 p2"),
    (("x", "p1", Termination.TIMEOUT), [], "a1 a2 p1 p2"),  # any type but this one removes the ask
    (("x", "", Termination.TIMEOUT), [], "p1 p2"),
    (("x", "", Termination.STOPPED_BY_RM), [f"released a1 {ECHO}", f"released a2 {ECHO}", DONE], ""),
    (("x", "none", Termination.STOPPED_BY_RM), [], "a1 a2 p1 p2"),
    (("y", "a1", Termination.STOPPED_BY_RM), [], "a1 a2 p1 p2"),
    (("", "a1", Termination.STOPPED_BY_RM), [], "a1 a2 p1 p2"),  # another scheduler's, which is unknown
]


@pytest.mark.parametrize(("release", "said", "left"), RELEASES)
def test_releases(release: tuple[str, str, Termination], said: list[str], left: str) -> None:
    b = bench(10)
    for key in ("a1", "a2"):
        b.ask("x", key, vcore=5)
    b.run()
    for key in ("p1", "p2"):
        b.ask("x", key, vcore=5)
    app, key, termination = release
    assert b.release(app, key, termination=termination) == said
    x = b.application("x")
    assert " ".join([*x.allocations, *x.asks]) == left
    assert b.release(app, key, termination=termination) in ([], said)  # again: nothing is there, or the same
    b.run()


def test_the_last_confirmation_completes_the_application() -> None:
    b = bench(10)
    b.ask("x", "k", vcore=1)
    b.run()
    assert b.release("x", "k", termination=Termination.TIMEOUT) == [DONE]
    assert b.hear(after=29) == []
    assert b.hear(after=1) == ["x Completed: completeApplication"]


def test_releases_to_an_unknown_partition_are_ignored() -> None:
    b = bench(10)
    assert b.send(Release(partition="other", application_id="x", key="k")) == []


# -- removal of an application: 7.1 ------------------------------------------------------------------------------


def test_a_removed_application_goes_at_once_with_its_asks_and_allocations() -> None:
    b = bench(10)
    b.ask("x", "k1", vcore=6)
    b.run()
    b.ask("x", "k2", vcore=6)
    assert b.remove("x") == ["released k1 STOPPED_BY_RM: Application x Removed", DONE]
    assert b.hear(after=100) == []
    assert (b.states(), b.pending(), b.allocated("root")) == ("", {}, {})
    assert b.remove("x") == []


def test_a_removed_application_without_allocations_causes_no_message() -> None:
    b = bench(10)
    b.ask("x", "k1", vcore=11)
    assert b.remove("x") == []


# -- asks and allocations: 7.3 -----------------------------------------------------------------------------------


def test_a_known_pending_ask_changes_only_its_resources() -> None:
    b = bench(10)
    b.ask("x", "other", vcore=11)
    b.ask("x", "k", vcore=11, priority=5)
    assert b.run() == ""
    assert b.ask("x", "k", vcore=11, priority=99) == []  # the same: nothing
    assert b.ask("x", "k", vcore=3, priority=99) == []
    assert b.pending() == {"vcore": 14}
    assert b.application("x").asks["k"].priority == 5
    assert b.run() == "k@n1"


def test_a_known_allocation_is_resized_in_place_and_no_limit_is_asked() -> None:
    b = bench(10, text=config("a resources: {max: {vcore: 5m}}"))
    b.ask("x", "k", vcore=3)
    b.run()
    assert b.ask("x", "k", vcore=20) == []
    assert (b.allocated("root"), b.free("n1")) == ({"vcore": 20}, {"vcore": -10})
    b.ask("x", "p", vcore=1)
    assert b.run() == ""
    b.ask("x", "k", vcore=1)
    assert b.run() == "p@n1"


def test_a_pending_ask_that_was_placed_elsewhere_is_announced() -> None:
    b = bench(10, text=config("a resources: {max: {vcore: 5m}}"))
    b.ask("x", "k", vcore=7)
    assert b.run() == ""
    assert b.ask("x", "k", vcore=7, node="n1") == ["x Running: runApplication", "new k@n1"]
    assert (b.pending(), b.allocated("root.a")) == ({}, {"vcore": 7})
    assert b.ask("x", "k", vcore=7, node="n1") == []  # again: nothing


def test_an_existing_allocation_is_taken_above_quota_and_starts_its_application() -> None:
    b = bench(10, text=config("a resources: {max: {vcore: 5m}}", root=f"limits: [{limit('u', vcore=1)}]"))
    found = b.ask("x", "k", vcore=7, node="n1")
    assert found == ["x Accepted: runApplication", "x Running: runApplication", "new k@n1"]


def test_recovery_in_the_recommended_order_overcommits_nothing() -> None:
    b = Bench(config("a"))
    b.node("n1", NodeAction.CREATE_DRAIN, vcore=10)
    b.app("x")
    b.ask("x", "new", vcore=5)
    assert b.run() == ""  # asks before the recovery is complete find no node
    b.ask("x", "old", vcore=8, node="n1")
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert b.run() == ""
    b.release("x", "old")
    assert b.run() == "new@n1"


# -- foreign allocations, occupied resources -----------------------------------------------------------------------


def test_foreign_allocations_occupy_their_node_and_nothing_else() -> None:
    b = bench(10)
    b.ask("x", "k", vcore=6)
    b.foreign("f", "n1", vcore=5)
    assert b.run() == ""
    b.foreign("f", "n1", vcore=4)  # a change
    assert b.run() == "k@n1"
    b.foreign("f", "n1", vcore=20)
    assert b.free("n1") == {"vcore": -16}
    assert b.allocated("root") == {"vcore": 6}
    b.release("", "f")
    assert b.free("n1") == {"vcore": 4}
    assert b.release("", "f") == []


def test_foreign_allocations_that_are_refused() -> None:
    b = bench(10)
    assert b.foreign("f", "", vcore=1) == ["rejected f of : trying to add a foreign request (non-allocation) f"]
    assert b.foreign("f", "n9", vcore=1) == ["rejected f of : failed to find node n9 for allocation f"]
    assert b.foreign("f", "n1", vcore=-1)[0].startswith("rejected f of : negative quantity -1 of vcore")
    assert b.free("n1") == {"vcore": 10}


def test_occupied_resources_of_the_first_interface() -> None:
    b = Bench(config("a"), first_interface=True)
    b.node("n1", vcore=10, occupied={"vcore": 8})
    b.app("x")
    b.ask("x", "k", vcore=3)
    assert b.run() == ""
    assert b.node("n1", NodeAction.UPDATE, occupied={"vcore": 7}) == []  # the capacity is not said: it stays
    assert b.run() == "k@n1"


# -- nodes: 7.2 ------------------------------------------------------------------------------------------------------


def test_capacity_is_replaced_and_the_quota_of_root_follows() -> None:
    b = bench(10)
    b.ask("x", "k", vcore=12)
    assert b.run() == ""
    b.node("n1", NodeAction.UPDATE, vcore=12, gpu=0)
    assert b.partition.tree.root.max_resource() == {"vcore": 12}
    assert b.run() == "k@n1"
    b.node("n1", NodeAction.UPDATE, vcore=5)  # below what is used
    assert (b.free("n1"), b.partition.tree.root.max_resource()) == ({"vcore": -7}, {"vcore": 5})


def test_draining_and_undraining() -> None:
    b = bench(10)
    for _ in range(2):
        assert b.node("n1", NodeAction.DRAIN_NODE) == []
    b.ask("x", "k", vcore=1)
    assert b.run() == ""
    for _ in range(2):
        assert b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE) == []
    assert b.run() == "k@n1"


def test_another_resource_type_that_comes_late() -> None:
    b = bench(10)
    b.ask("x", "k", resource={"vcore": 1} | {f"type-{i}": 1 for i in range(12)})
    assert b.run() == ""
    b.node("n1", NodeAction.UPDATE, capacity={f"type-{i}": 1 for i in range(11, -1, -1)} | {"vcore": 10})
    assert b.run() == "k@n1"


def test_other_attributes_take_effect_at_once() -> None:
    b = bench(10)
    wants = {"licorne/node-constraints": '{"nodeSelector": {"disk": "ssd"}}'}
    b.ask("x", "k", vcore=1, tags=wants)
    assert b.run() == ""
    b.node("n1", NodeAction.UPDATE, attributes={"label/disk": "ssd"})
    assert b.run() == "k@n1"


# -- repeats and UUIDs (first interface) -----------------------------------------------------------------------


def repeated() -> Bench:
    b = bench(10, first_interface=True)
    b.ask("x", "k", times=4, vcore=3)
    assert b.run() == "k@n1 k@n1 k@n1"
    return b


def test_a_repeated_ask_gives_allocations_of_one_key_each_with_its_uuid() -> None:
    b = repeated()
    assert list(b.uuids().values()) == ["k@n1"] * 3
    assert b.pending() == {"vcore": 3}
    first = next(iter(b.uuids()))
    assert b.release("x", first) == [f"released k {ECHO}"]
    assert b.run() == "k@n1"
    assert b.pending() == {}


def test_uuids_are_made_from_the_stream_of_decisions() -> None:
    assert repeated().uuids() == repeated().uuids()
    assert len(repeated().uuids()) == 3


def test_a_known_key_sets_how_many_repetitions_are_still_wanted() -> None:
    b = repeated()
    b.ask("x", "k", times=3, vcore=1)
    assert b.pending() == {"vcore": 3}
    assert b.run() == "k@n1"
    assert b.pending() == {"vcore": 2}


@pytest.mark.parametrize("first_interface", [True, False])
def test_an_allocation_that_is_reported_for_a_repeated_ask_is_one_more(first_interface: bool) -> None:
    """No later allocation takes its place: in a workload of the simulator asks of the 1.9 interface may repeat too."""
    b = bench(10, first_interface=first_interface)
    b.ask("x", "k", times=3, vcore=1)
    b.ask("x", "k", node="n1", vcore=1)
    assert b.run() == "k@n1 k@n1 k@n1"
    assert (len(b.application("x").allocations), b.allocated("root.a")) == (4, {"vcore": 4})
    assert b.release("x")[:4] == [f"released k {ECHO}"] * 4
    assert b.allocated("root.a") == {}


def test_releases_of_the_first_interface() -> None:
    b = repeated()
    assert b.release("x", "k", what="ask") == []
    assert (b.pending(), len(b.application("x").allocations)) == ({}, 3)
    assert b.release("x") == [f"released k {ECHO}"] * 3 + [DONE]


def test_all_asks_of_an_application_are_released_without_a_key() -> None:
    b = repeated()
    b.ask("x", "other", vcore=99)
    b.release("x", what="ask")
    assert (b.pending(), len(b.application("x").allocations)) == ({}, 3)


# -- partitions ------------------------------------------------------------------------------------------------------


def test_partitions_never_meet() -> None:
    b = bench(10, text=partitions(partition("default", "a"), partition("gpu", "a")))
    b.node("g1", partition="gpu", vcore=10)
    assert b.app("x", partition="gpu") == ["accepted x"]  # an ID of its own
    b.ask("x", "k1", vcore=6)
    b.ask("x", "k2", vcore=6)
    b.ask("x", "k1", partition="gpu", vcore=6)
    assert b.run() == "k1@n1 k1@g1"
    assert b.node("n1", partition="gpu", vcore=1) == ["accepted n1"]


# -- outstanding requests (docs/spec/scheduling.md, section 13) --------------------------------------------------------

INSPECT = {"outstanding.inspection": "true"}


def test_an_ask_that_only_lacks_a_node_is_reported_once() -> None:
    b = bench(10, settings=INSPECT)
    b.ask("x", "k", vcore=11)
    b.ask("x", "daemon", required="n1", vcore=11)
    assert b.hear(after=0.5) == []
    assert b.hear(after=0.5) == ["waiting k of x"]
    b.node("n2", vcore=1)
    assert b.hear(after=5) == []


def test_quotas_are_shared_by_asks_that_wait() -> None:
    text = config("a resources: {max: {vcore: 30m}}", root=f"limits: [{limit('u', vcore=25)}]")
    b = bench(10, text=text, settings=INSPECT)
    for i in range(4):
        b.ask("x", f"k{i}", vcore=11)
    assert b.hear(after=1) == ["waiting k0 of x", "waiting k1 of x"]
    b.release("x", "k0")
    assert b.hear(after=1) == ["waiting k2 of x"]


def test_an_ask_above_its_quota_is_not_reported() -> None:
    b = bench(10, text=config("a resources: {max: {vcore: 5m}}"), settings=INSPECT)
    b.ask("x", "k", vcore=6)
    assert b.hear(after=1) == []


def test_asks_left_out_by_backoff_were_not_attempted() -> None:
    text = config("a properties: {application.unschedasks.backoff: '1'}")
    b = bench(10, 10, text=text, settings={**INSPECT, "reservation.enabled": "false"})
    for node in ("n1", "n2"):
        b.ask("x", f"on-{node}", node=node, vcore=5)
    b.ask("x", "k0", vcore=6)
    b.ask("x", "k1", vcore=7)
    assert b.hear(after=1) == ["waiting k0 of x"]
