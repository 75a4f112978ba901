"""The events that a resource manager receives, in which order and when: docs/spec/events.md, sections 1 to 4."""

from __future__ import annotations

import pytest

from core.bench import SECOND_NS, START_S, Bench, config, parent, partition, partitions
from licorne import ResourceManagerCallback
from licorne.core.events.records import EventStore
from licorne.si.events import MESSAGE_MAX, Event, first_records, v19_records
from licorne.si.messages import NodeAction, Termination
from licorne.si.v19 import ChangeDetail, ChangeType, EventRecord, EventType
from plugins.listener import Listener, heard, line, listening

DYNAMIC = (
    "partitions: [{name: default, placementrules: [{name: provided, create: true}], queues: [{name: root, %s}]}]\n"
)


# -- sequences (section 3) -------------------------------------------------------------------------------


def test_an_application_from_its_coming_to_its_natural_end() -> None:
    b, listener = listening(config("a"))
    assert heard(b, listener) == []
    b.node("n1", vcore=10)
    assert heard(b, listener) == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: true",
        "QUEUE root SET QUEUE_MAX {vcore: 10}",
        "NODE n1 ADD {vcore: 10} Node added to the scheduler",
    ]
    b.app("x")
    b.ask("x", "k", vcore=3)
    b.run()
    assert heard(b, listener) == [
        "APP x ADD APP_NEW",
        "QUEUE root.a ADD QUEUE_APP x",
        "APP x SET APP_ACCEPTED",
        "APP x ADD APP_REQUEST k {vcore: 3}",
        "APP x SET APP_RUNNING",
        "NODE n1 ADD NODE_ALLOC k {vcore: 3}",
        "APP x ADD APP_ALLOC k {vcore: 3}",
    ]
    b.release("x", "k")
    assert heard(b, listener) == [
        "APP x REMOVE ALLOC_CANCEL k {vcore: 3}",
        "NODE n1 REMOVE NODE_ALLOC k {vcore: 3}",
        "APP x REMOVE REQUEST_CANCEL k {vcore: 3}",
        "APP x SET APP_COMPLETING",
    ]
    b.run(after=30)
    assert heard(b, listener) == ["APP x SET APP_COMPLETED", "QUEUE root.a REMOVE QUEUE_APP x", "APP x REMOVE"]


def test_an_application_that_its_resource_manager_removes() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=3)
    b.app("x")
    b.ask("x", "k", vcore=2)
    b.ask("x", "l", vcore=1)
    b.ask("x", "waits", vcore=3)
    b.run()
    heard(b, listener)
    b.remove("x")
    assert heard(b, listener, users=True) == [
        "APP x REMOVE REQUEST_CANCEL waits {vcore: 3}",
        "APP x REMOVE REQUEST_CANCEL k {vcore: 2}",
        "APP x REMOVE REQUEST_CANCEL l {vcore: 1}",
        "QUEUE root.a REMOVE QUEUE_APP x",
        "APP x REMOVE",
        "APP x REMOVE ALLOC_CANCEL k {vcore: 2}",
        "APP x REMOVE ALLOC_CANCEL l {vcore: 1}",
        "USERGROUP u REMOVE UG_USER_RESOURCE root.a {vcore: 3}",
        "APP x SET APP_COMPLETING",
        "NODE n1 REMOVE NODE_ALLOC k {vcore: 2}",
        "NODE n1 REMOVE NODE_ALLOC l {vcore: 1}",
    ]
    b.remove("x")
    assert heard(b, listener) == []


def test_applications_that_are_refused() -> None:
    b, listener = listening(config("a"))
    b.app("x", user="")
    b.app("y", partition="unknown")
    assert heard(b, listener) == ["APP x ADD APP_NEW", "APP x SET APP_REJECT empty user cannot resolve"]


def test_dynamic_queues_come_and_go() -> None:
    b, listener = listening(DYNAMIC % "submitacl: '*'")
    quota = {"namespace.resourcequota": '{"resources":{"vcore":{"value":5}}}'}
    b.app("x", "root.team.leaf", tags=quota)
    assert heard(b, listener) == [
        "APP x ADD APP_NEW",
        "QUEUE root.team ADD QUEUE_DYNAMIC",
        "QUEUE root.team.leaf ADD QUEUE_DYNAMIC",
        "QUEUE root.team.leaf SET QUEUE_MAX {vcore: 5}",
        "QUEUE root.team.leaf ADD QUEUE_APP x",
    ]
    b.app("y", "root.team.leaf")
    assert heard(b, listener) == ["APP y ADD APP_NEW", "QUEUE root.team.leaf ADD QUEUE_APP y"]
    b.remove("x")
    b.remove("y")
    heard(b, listener)
    b.run(after=10)
    assert heard(b, listener) == [
        "QUEUE root.team.leaf REMOVE QUEUE_DYNAMIC",
        "QUEUE root.team REMOVE QUEUE_DYNAMIC",
    ]


def test_a_dynamic_queue_comes_with_its_template() -> None:
    b, listener = listening(DYNAMIC % "submitacl: '*', childtemplate: {resources: {max: {vcore: 1}}}")
    quota = {"namespace.resourcequota": '{"resources":{"vcore":{"value":5}}}'}
    b.app("x", "root.one")
    b.app("y", "root.two", tags=quota)
    b.app("z", "root.@recovery@", tags={"application.create.force": "true"})
    assert [line for line in heard(b, listener) if line.startswith("QUEUE") and "QUEUE_APP" not in line] == [
        "QUEUE root.one ADD QUEUE_DYNAMIC",
        "QUEUE root.two ADD QUEUE_DYNAMIC",
        "QUEUE root.two SET QUEUE_MAX {vcore: 5}",
        "QUEUE root.@recovery@ ADD QUEUE_DYNAMIC",
    ]


def test_a_reload_reports_changed_queues() -> None:
    b, listener = listening(config("a", "b resources: {max: {vcore: 1}}", "c"))
    b.reload(config("a", "b resources: {max: {vcore: 2}, guaranteed: {vcore: 1}}", parent("d", "e")))
    assert heard(b, listener) == [
        "QUEUE root.b SET QUEUE_MAX {vcore: 2000}",
        "QUEUE root.b SET QUEUE_GUARANTEED {vcore: 1000}",
        "QUEUE root.d ADD",
        "QUEUE root.d.e ADD",
    ]
    b.reload(config("a", "b", parent("d", "e")))
    b.run(after=10)
    assert heard(b, listener) == [
        "QUEUE root.b SET QUEUE_MAX {}",
        "QUEUE root.b SET QUEUE_GUARANTEED {}",
        "QUEUE root.c REMOVE",
    ]


def test_a_leaf_that_becomes_a_parent_and_a_new_partition() -> None:
    b, listener = listening(config("a"))
    b.reload(partitions(partition("default", parent("a", "b")), partition("other", "q")))
    assert heard(b, listener) == [
        "QUEUE root.a SET QUEUE_TYPE leaf queue: false",
        "QUEUE root.a.b ADD",
        "QUEUE root ADD",
        "QUEUE root.q ADD",
    ]


def test_registration_reports_the_queues_but_not_their_properties() -> None:
    b = Bench(config("a resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}"))
    listener = Listener()
    b.register(listener)
    assert heard(b, listener) == [
        "QUEUE root ADD",
        "QUEUE root.a ADD",
    ]


# -- nodes -----------------------------------------------------------------------------------------------


def test_a_node_that_drains_grows_and_goes() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=5)
    b.app("x")
    b.ask("x", "k", vcore=5)
    b.run()
    heard(b, listener)
    b.node("n1", NodeAction.DRAIN_NODE)
    b.node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    b.node("n1", NodeAction.UPDATE, vcore=5)
    b.node("n1", NodeAction.UPDATE, vcore=7)
    b.node("unknown", NodeAction.DRAIN_NODE)
    b.node("n1", vcore=5)
    assert heard(b, listener) == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: false",
        "NODE n1 SET NODE_SCHEDULABLE schedulable: true",
        "QUEUE root SET QUEUE_MAX {vcore: 7}",
        "NODE n1 SET NODE_CAPACITY {vcore: 7}",
    ]
    b.node("n1", NodeAction.DECOMISSION)
    assert heard(b, listener) == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: false",
        "APP x REMOVE ALLOC_NODEREMOVED k {vcore: 5}",
        "NODE n1 REMOVE NODE_ALLOC k {vcore: 5}",
        "QUEUE root SET QUEUE_MAX {}",
        "NODE n1 REMOVE NODE_DECOMISSION Node removed from the scheduler",
        "APP x SET APP_COMPLETING",
    ]


def test_reservations_are_reported() -> None:
    b, listener = listening(config("a"))
    b.app("x")
    for node in ("n1", "n2"):
        b.node(node, vcore=10)
        b.ask("x", f"on-{node}", node=node, vcore=5)
    b.ask("x", "k", vcore=6)
    heard(b, listener)
    b.run(after=1)
    assert b.reserved() == "k@n1"
    assert heard(b, listener) == ["NODE n1 ADD NODE_RESERVATION k {vcore: 6}"]
    b.node("n1", NodeAction.DECOMISSION)
    assert heard(b, listener)[:4] == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: false",
        "NODE n1 REMOVE NODE_RESERVATION k {vcore: 6}",
        "APP x REMOVE ALLOC_NODEREMOVED on-n1 {vcore: 5}",
        "NODE n1 REMOVE NODE_ALLOC on-n1 {vcore: 5}",
    ]


def test_a_reservation_that_is_used_or_dropped() -> None:
    b, listener = listening(config("a"))
    b.app("x")
    for node in ("n1", "n2"):
        b.node(node, vcore=10)
        b.ask("x", f"on-{node}", node=node, vcore=5)
    b.ask("x", "used", vcore=6)
    b.ask("x", "dropped", vcore=6)
    heard(b, listener)
    b.run(after=1)
    assert b.reserved() == "used@n1 dropped@n2"
    heard(b, listener)
    b.release("x", "dropped")
    assert heard(b, listener) == [
        "NODE n2 REMOVE NODE_RESERVATION dropped {vcore: 6}",
        "APP x REMOVE REQUEST_CANCEL dropped {vcore: 6}",
    ]
    b.release("x", "on-n1")
    b.run()
    assert [text for text in heard(b, listener) if "used" in text] == [
        "NODE n1 REMOVE NODE_RESERVATION used {vcore: 6}",
        "NODE n1 ADD NODE_ALLOC used {vcore: 6}",
        "APP x ADD APP_ALLOC used {vcore: 6}",
    ]


# -- releases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("termination", "detail", "ask_goes"),
    [
        (Termination.UNKNOWN, "ALLOC_NODEREMOVED", True),
        (Termination.STOPPED_BY_RM, "ALLOC_CANCEL", True),
        (Termination.TIMEOUT, "ALLOC_TIMEOUT", False),
        (Termination.PREEMPTED_BY_SCHEDULER, "ALLOC_PREEMPT", True),
        (Termination.PLACEHOLDER_REPLACED, "ALLOC_REPLACED", True),
    ],
)
def test_the_detail_gives_the_cause_of_an_allocations_end(
    termination: Termination, detail: str, ask_goes: bool
) -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=5)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.ask("x", "stays", vcore=1)
    b.run()
    heard(b, listener)
    b.release("x", "k", termination=termination)
    expected = [f"APP x REMOVE {detail} k {{vcore: 1}}", "NODE n1 REMOVE NODE_ALLOC k {vcore: 1}"]
    assert heard(b, listener) == expected + ["APP x REMOVE REQUEST_CANCEL k {vcore: 1}"] * ask_goes
    b.release("x", "k", termination=termination)
    assert heard(b, listener) == []


def test_asks_that_change_go_or_exist_already() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=5)
    b.app("x")
    heard(b, listener)
    b.ask("x", "k", vcore=9)
    b.ask("x", "k", vcore=8)
    b.ask("x", "wrong", vcore=-1)
    b.foreign("f", "n1", vcore=1)
    assert heard(b, listener)[:2] == ["APP x SET APP_ACCEPTED", "APP x ADD APP_REQUEST k {vcore: 9}"]
    b.ask("x", "there", node="n1", vcore=1)
    assert heard(b, listener)[-2:] == [
        "NODE n1 ADD NODE_ALLOC there {vcore: 1}",
        "APP x ADD APP_ALLOC there {vcore: 1}",
    ]
    b.release("x", "k")
    assert heard(b, listener) == ["APP x REMOVE REQUEST_CANCEL k {vcore: 8}"]


# -- the first interface ----------------------------------------------------------------------------------


def test_records_of_the_first_interface_name_group_and_reason() -> None:
    b, listener = listening(config("a"), first_interface=True)
    b.node("n1", vcore=5)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.run()
    assert heard(b, listener) == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: true",
        "QUEUE root SET QUEUE_MAX",
        "NODE n1 ADD Node added to the scheduler",
        "APP x root.a ADD APP_NEW",
        "QUEUE root.a ADD QUEUE_APP x",
        "APP x root.a SET APP_ACCEPTED",
        "APP x root.a ADD APP_REQUEST k",
        "APP x root.a SET Starting",
        "NODE n1 ADD NODE_ALLOC k",
        "APP x root.a ADD APP_ALLOC k",
    ]
    b.release("x", next(iter(b.uuids())))
    b.run(after=40)
    assert heard(b, listener) == [
        "APP x root.a REMOVE ALLOC_CANCEL k",
        "NODE n1 REMOVE NODE_ALLOC k",
        "APP x root.a SET APP_COMPLETING",
        "APP x root.a SET APP_COMPLETED",
        "QUEUE root.a REMOVE QUEUE_APP x",
        "APP x root.a REMOVE",
    ]


def test_an_execution_timeout_drops_asks() -> None:
    b, listener = listening(config("a"), first_interface=True)
    b.node("n1", vcore=1)
    b.app("x", timeout_ms=60_000)
    b.ask("x", "k", vcore=1, times=2)
    b.run()
    heard(b, listener)
    b.run(after=60)
    assert heard(b, listener) == [
        "APP x root.a SET APP_FAILING ExecutionTimeout",
        "APP x root.a REMOVE REQUEST_TIMEOUT k",
    ]


# -- records ---------------------------------------------------------------------------------------------


def test_messages_are_cut() -> None:
    event = Event(EventType.APP, "x", 1, ChangeType.SET, ChangeDetail.APP_REJECT, message="m" * (MESSAGE_MAX + 1))
    for record in (v19_records([event])[0], first_records([event])[0]):
        assert record.message == "m" * (MESSAGE_MAX - 3) + "..."
    event.message = "m" * MESSAGE_MAX
    assert v19_records([event])[0].message == event.message


def test_the_first_interface_has_no_events_of_users() -> None:
    event = Event(EventType.USERGROUP, "u", 1, ChangeType.ADD, ChangeDetail.UG_USER_RESOURCE)
    assert first_records([event]) == []
    assert line(v19_records([event])[0]) == "USERGROUP u ADD UG_USER_RESOURCE"


def test_records_carry_the_time_of_what_happened() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=1)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.run()
    b.release("x", "k")
    heard(b, listener)
    released = b.seconds - 2
    b.run(after=100)
    records = [r for r in listener.records if isinstance(r, EventRecord)]
    assert {r.timestamp_nano for r in records} == {int((released + 30) * SECOND_NS)}


# -- when, and how many (section 4) ----------------------------------------------------------------------


def test_a_batch_is_sent_every_two_seconds_if_there_is_one() -> None:
    b, listener = listening(config("a"))
    start = b.seconds
    assert b.api.next_deadline_ns() is None
    b.seconds += 0.5
    b.node("n1", vcore=1)
    b.node("n2", vcore=1)
    assert (listener.batches, b.api.next_deadline_ns()) == ([], int((start + 2) * SECOND_NS))
    b.seconds = start + 1.9
    b.api.schedule()
    assert listener.batches == []
    b.seconds = start + 2
    b.api.schedule()
    assert [len(batch) for batch in listener.batches] == [6]
    assert b.api.next_deadline_ns() is None
    b.seconds = start + 7
    b.node("n3", vcore=1)
    assert b.api.next_deadline_ns() == int((start + 8) * SECOND_NS)


@pytest.mark.parametrize(("capacity", "kept"), [("5", 5), ("0", 1000), ("many", 1000), ("-1", 1000), ("", 1000)])
def test_the_store_has_a_limit(capacity: str, kept: int) -> None:
    b, listener = listening(config("a"), settings={"event.requestCapacity": capacity})
    for number in range(334):
        b.api.submit("rm", [])
        b.node(f"n{number}", vcore=1)
    b.seconds += 2
    b.api.schedule()
    assert [len(batch) for batch in listener.batches] == [min(kept, 1002)]
    store = b.api.cluster.managers["rm"].store
    assert store is not None and store.dropped == 1002 - kept
    heard(b, listener)
    b.app("x")
    assert heard(b, listener) == ["APP x ADD APP_NEW", "QUEUE root.a ADD QUEUE_APP x"]


def test_a_store_is_empty_when_it_was_taken() -> None:
    store = EventStore(2, now=7)
    for _ in range(3):
        store.add(Event(EventType.APP, "x", 8, ChangeType.ADD), 8)
    assert (len(store), store.dropped, store.due_ns) == (2, 1, 7 + 2 * SECOND_NS)
    assert store.drain(8) == []
    assert len(store.drain(7 + 2 * SECOND_NS)) == 2
    assert (len(store), store.due_ns) == (0, None)


def test_no_event_is_made_without_a_listener() -> None:
    b = Bench(config("a"))
    for callback in (None, ResourceManagerCallback()):
        b.register(callback)
        assert b.partition.events is None
    off, listener = listening(config("a"), settings={"event.trackingEnabled": "false"})
    off.node("n1", vcore=1)
    assert off.partition.events is None
    assert heard(off, listener) == []


def test_tracking_can_be_turned_off_and_on() -> None:
    b, listener = listening(config("a"))
    text = b.api.policy_groups["group"][0]
    b.node("n1", vcore=1)
    b.api.policy_groups["group"] = (text, {"event.trackingEnabled": "false"})
    b.api.reload_configuration("rm")
    b.app("x")
    assert heard(b, listener) == []
    b.api.policy_groups["group"] = (text, {"event.trackingEnabled": "true", "event.requestCapacity": "1"})
    b.api.reload_configuration("rm")
    b.ask("x", "k", vcore=1)
    assert heard(b, listener) == ["APP x SET APP_ACCEPTED"]


def test_a_listener_that_fails_changes_nothing() -> None:
    class Fails(ResourceManagerCallback):
        def send_event(self, events: object) -> None:
            raise ValueError(str(START_S))

    b = Bench(config("a"))
    b.register(Fails())
    b.run(after=2)
    assert b.api.callback_errors == [f"ValueError: {START_S}"]


def test_listening_changes_no_decision() -> None:
    def story(listens: bool) -> list[str]:
        b = Bench(config("a", "b resources: {max: {vcore: 4}}"))
        b.register(Listener() if listens else None)
        for number in range(4):
            b.node(f"n{number}", vcore=3)
        for name, queue in (("x", "root.a"), ("y", "root.b")):
            b.app(name, queue)
            for number in range(8):
                b.ask(name, f"{name}{number}", vcore=1 + number % 3)
        b.hear(after=3)
        b.release("x", "x0")
        b.node("n1", NodeAction.DECOMISSION)
        b.hear(after=3)
        b.remove("y")
        b.hear(after=100)
        return b.said

    assert story(listens=True) == story(listens=False)
