"""The rows of the tables in docs/spec/events.md, section 2, that the sequences in `plugins/test_events.py` do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.bench import Bench, config, limit, partition, partitions
from licorne.core.events import notices
from licorne.si import v19
from licorne.si.messages import AddApplication, Allocation, NodeAction, NodeUpdate, Release
from plugins.listener import Listener, heard, listening

if TYPE_CHECKING:
    import pytest

DAY_S = 24 * 3600


def both(b: Bench, listener: Listener, *, users: bool = False) -> list[str]:
    """The events of a step: an inspection runs after a second, and its events are sent two seconds later."""
    return heard(b, listener, users=users) + heard(b, listener, users=users)


def of(kind: str, lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(kind)]


# -- requests --------------------------------------------------------------------------------------------


def test_a_request_that_does_not_fit_in_its_queue_until_it_does() -> None:
    b, listener = listening(config("a resources: {max: {vcore: 5m}}"))
    b.node("n1", vcore=100, memory=100)
    b.app("x")
    for key in ("k1", "k2"):
        b.ask("x", key, vcore=3, memory=1)
    b.run()
    text = "Request 'k2' does not fit in queue 'root.a' (requested map[memory:1 vcore:3], available map[memory:99 vcore:2])"
    assert of("REQUEST", both(b, listener)) == [f"REQUEST k2 NONE x {{vcore: 3, memory: 1}} {text}"]
    b.ask("x", "k3", vcore=3, memory=1)
    b.run(after=20)
    assert ["k3" in line for line in of("REQUEST", both(b, listener))] == [True], "once for each"
    b.release("x", "k1")
    assert b.run() == "k2@n1"
    fits = "REQUEST k2 NONE x {vcore: 3, memory: 1} Request 'k2' has become schedulable in queue 'root.a'"
    lines = both(b, listener)
    assert of("REQUEST", lines) == [fits]
    assert lines.index(fits) + 1 == lines.index("NODE n1 ADD NODE_ALLOC k2 {vcore: 3, memory: 1}")
    b.release("x", "k3")
    b.ask("x", "k3", vcore=3, memory=1)
    b.run()
    assert ["k3" in line for line in of("REQUEST", both(b, listener))] == [True], "it is another one"


def test_a_request_that_fits_again_and_waits_for_a_node() -> None:
    b, listener = listening(config("a resources: {max: {vcore: 5m}}"))
    b.node("n1", vcore=5)
    b.app("x")
    b.ask("x", "k1", vcore=3)
    b.run()
    b.ask("x", "k2", vcore=3)
    assert ["does not fit" in line for line in of("REQUEST", both(b, listener))] == [True]
    b.foreign("f", "n1", vcore=2)
    b.reload(config("a resources: {max: {vcore: 6m}}"))
    b.node("n2", vcore=1)
    b.run()
    assert of("REQUEST", both(b, listener)) == [
        "REQUEST k2 NONE x {vcore: 3} Request 'k2' has become schedulable in queue 'root.a'"
    ]


def test_a_request_above_the_quota_of_its_user() -> None:
    b, listener = listening(config(f"a limits: [{limit('u', vcore=5)}]"))
    b.node("n1", vcore=100)
    b.app("x")
    for key in ("k1", "k2"):
        b.ask("x", key, vcore=3)
    b.run()
    text = "Request 'k2' exceeds the available user quota (requested map[vcore:3], available map[vcore:2])"
    assert of("REQUEST", both(b, listener)) == [f"REQUEST k2 NONE x {{vcore: 3}} {text}"]
    b.release("x", "k1")
    assert b.run() == "k2@n1"
    assert of("REQUEST", both(b, listener)) == [
        "REQUEST k2 NONE x {vcore: 3} Request 'k2' fits in the available user quota"
    ]


class Choosy(Listener):
    """It listens, and lets nothing run on nodes that end in an odd number; n3 breaks it."""

    def predicates(self, args: v19.PredicatesArgs) -> str | None:
        if args.node_id == "n3":
            raise LookupError("n3?")
        return "odd" if int(args.node_id[1:]) % 2 else None


def test_a_request_that_predicates_refuse() -> None:
    b = Bench(config("a"))
    listener = Choosy()
    b.register(listener)
    for number in (1, 3, 5):
        b.node(f"n{number}", vcore=10)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.run()
    text = "REQUEST k NONE x {vcore: 1} Unschedulable request 'k': LookupError: n3? (1x); odd (2x);"
    assert [line.rstrip() for line in of("REQUEST", both(b, listener))] == [text]
    for _ in range(9):
        b.run(after=1)
    assert of("REQUEST", both(b, listener)) == []
    b.run(after=4)
    b.node("n7", vcore=10)
    assert [line.rstrip() for line in of("REQUEST", both(b, listener))] == [text.replace("odd (2x)", "odd (3x)")]
    b.node("n2", vcore=10)
    assert b.run() == "k@n2"
    assert of("REQUEST", both(b, listener)) == []


def test_a_request_that_labels_and_taints_keep_off() -> None:
    b, listener = listening(config("a"))
    for number in range(3):
        taints = '[{"key": "gpu", "effect": "NoSchedule"}]'
        b.node(f"n{number}", vcore=10, attributes={"taints": taints})
    b.node("full", vcore=1, attributes={"label/disk": "ssd"})
    b.app("x")
    b.ask("x", "large", vcore=2)
    wants = {"licorne/node-constraints": '{"nodeSelector": {"disk": "ssd"}}'}
    b.ask("x", "picky", vcore=2, tags=wants)
    b.run()
    texts = {line.split()[1]: line.partition("': ")[2] for line in of("REQUEST", both(b, listener))}
    assert texts == {"large": "taint gpu:NoSchedule (3x); ", "picky": "taint gpu:NoSchedule (3x); "}


def test_a_request_for_a_node_on_which_nothing_may_be_evicted() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=10)
    b.app("x")
    b.ask("x", "important", vcore=8, priority=9)
    b.run()
    b.node("n2", vcore=10)
    heard(b, listener)
    b.ask("x", "daemon", vcore=5, required="n1")
    b.run(after=1)
    b.run(after=1)
    b.node("n1", NodeAction.UPDATE, vcore=11)
    text = "Unschedulable request 'daemon' with required node 'n1', no preemption victim found"
    assert of("REQUEST", both(b, listener)) == [f"REQUEST daemon NONE x {{vcore: 5}} {text}"]
    b.run(after=15)
    b.node("n1", NodeAction.UPDATE, vcore=12)
    assert of("REQUEST", both(b, listener)) == [f"REQUEST daemon NONE x {{vcore: 5}} {text}"]


def test_a_victim() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=10)
    b.app("x")
    b.ask("x", "victim", vcore=8)
    b.run()
    b.node("n2", vcore=10)
    heard(b, listener)
    b.app("y")
    b.ask("y", "daemon", vcore=5, required="n1", priority=1)
    b.run(after=1)
    b.run(after=1)
    assert of("REQUEST", both(b, listener)) == [
        "REQUEST victim NONE x {vcore: 8} Preempted by daemon from application y in root.a"
    ]


def test_a_placeholder_that_is_too_small() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=10)
    b.send(AddApplication(application_id="x", queue="root.a", user="u", placeholder_ask={"vcore": 2}))
    b.send(Allocation(key="p", application_id="x", resource={"vcore": 2}, task_group="g", placeholder=True))
    b.run()
    b.send(Allocation(key="r", application_id="x", resource={"vcore": 3}, task_group="g"))
    b.run()
    text = "Task group 'g' in application 'x': allocation resources 'map[vcore:3]' are not matching placeholder 'map[vcore:2]' "
    assert of("REQUEST", both(b, listener)) == [f"REQUEST p NONE x {{vcore: 3}} {text}allocation with ID 'p'"]


def test_an_inspection_is_bounded_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "STEPS", 3)
    b, listener = listening(config("a resources: {max: {vcore: 1m}}"))
    b.node("n1", vcore=100)
    b.app("x")
    for number in range(8):
        b.ask("x", f"k{number}", vcore=2)
    b.run(after=1)
    keys = []
    for _ in range(6):
        b.run(after=1)
        keys.append([record.object_id for record in listener.records if "does not fit" in record.message])
        listener.batches.clear()
    assert [key for batch in keys for key in batch] == [f"k{number}" for number in range(8)]
    assert max(map(len, keys)) <= 6
    b.run(after=5)
    assert b.api.next_deadline_ns() is None, "all was looked at"


# -- applications ----------------------------------------------------------------------------------------


def test_applications_that_may_not_run_until_they_may() -> None:
    b, listener = listening(config(f"a maxapplications: 1, limits: [{limit('u', apps=1)}]"))
    b.node("n1", vcore=100)
    for app, user in (("x", "u"), ("y", "u"), ("z", "v")):
        b.app(app, "root.a", user)
        b.ask(app, f"{app}1", vcore=1)
    assert b.run() == "x1@n1"
    b.run(after=1)
    b.run(after=1)
    cannot = [line for line in both(b, listener) if "RUN" in line and "RUNNING" not in line]
    assert cannot == [
        "APP y NONE APP_CANNOTRUN_QUEUE",
        "APP y NONE APP_CANNOTRUN_QUOTA",
        "APP z NONE APP_CANNOTRUN_QUEUE",
    ]
    b.release("x", "x1")
    b.remove("x")
    assert b.run() == "y1@n1"
    assert [line for line in both(b, listener) if " y " in line and "RUN" in line] == [
        "APP y NONE APP_RUNNABLE_QUEUE",
        "APP y NONE APP_RUNNABLE_QUOTA",
        "APP y SET APP_RUNNING",
    ]


def test_an_application_that_ended_expires() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=1)
    b.app("x")
    b.ask("x", "k", vcore=1)
    b.run()
    b.release("x", "k")
    b.run(after=30)
    heard(b, listener)
    b.run(after=3 * DAY_S - 60)
    assert heard(b, listener) == []
    b.run(after=60)
    assert heard(b, listener) == ["APP x SET APP_EXPIRED"]


# -- nodes, queues, partitions ---------------------------------------------------------------------------


def test_occupied_amounts_of_a_node() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=5)
    heard(b, listener)
    b.node("n1", NodeAction.UPDATE, vcore=5, occupied={"vcore": 2})
    b.node("n1", NodeAction.UPDATE, vcore=5, occupied={"vcore": 2})
    assert heard(b, listener) == ["NODE n1 SET NODE_OCCUPIED {vcore: 2}"]


def test_other_schedulers_allocations_come_and_go() -> None:
    b, listener = listening(config("a"))
    b.node("n1", vcore=5)
    b.node("n2", vcore=5)
    heard(b, listener)
    foreign = {"foreign": "default"}
    for key, node, vcore in (("f1", "n1", 2), ("f1", "n1", 3), ("f2", "n1", 1), ("f3", "n2", 1), ("no", "none", 1)):
        b.send(Allocation(key=key, node_id=node, resource={"vcore": vcore}, tags=foreign))
    b.send(Release(key="f1"))
    b.send(Release(key="f1"))
    b.node("n1", NodeAction.DECOMISSION)
    assert heard(b, listener) == [
        "NODE n1 ADD NODE_ALLOC f1 {vcore: 2}",
        "NODE n1 ADD NODE_ALLOC f2 {vcore: 1}",
        "NODE n2 ADD NODE_ALLOC f3 {vcore: 1}",
        "NODE n1 REMOVE NODE_ALLOC f1 {vcore: 3}",
        "NODE n1 SET NODE_SCHEDULABLE schedulable: false",
        "QUEUE root SET QUEUE_MAX {vcore: 5}",
        "NODE n1 REMOVE NODE_ALLOC f2 {vcore: 1}",
        "NODE n1 REMOVE NODE_DECOMISSION Node removed from the scheduler",
    ]


def test_a_node_of_an_unknown_partition() -> None:
    b, listener = listening(config("a"))
    b.send(NodeUpdate(node_id="n1", action=NodeAction.CREATE, partition="none", capacity={"vcore": 1}))
    b.send(NodeUpdate(node_id="n2", action=NodeAction.CREATE_DRAIN, partition="none", capacity={"vcore": 1}))
    assert heard(b, listener) == [
        "NODE n1 SET NODE_SCHEDULABLE schedulable: true",
        "NODE n2 SET NODE_SCHEDULABLE schedulable: false",
    ]


def test_a_queue_that_was_made_for_an_application_that_was_then_rejected() -> None:
    rules = "placementrules: [{name: user, create: true}]"
    template = "childtemplate: {properties: {application.sort.policy: fair}}"
    b, listener = listening(config("a", root=template, more=rules))
    heard(b, listener)
    said = b.send(AddApplication(application_id="x", user="u", placeholder_ask={"vcore": 1}))
    assert "unsupported sort type" in said[0]
    assert of("QUEUE", heard(b, listener)) == ["QUEUE root.u ADD QUEUE_DYNAMIC"]


def test_a_partition_goes() -> None:
    b, listener = listening(partitions(partition("default", "a"), partition("other", "q")))
    b.send(NodeUpdate(node_id="n1", action=NodeAction.CREATE, partition="other", capacity={"vcore": 5}))
    b.send(Allocation(key="f", node_id="n1", partition="other", resource={"vcore": 1}, tags={"foreign": "static"}))
    b.app("x", "root.q", partition="other")
    for key in ("k", "waits"):
        b.ask("x", key, vcore=3, partition="other")
    b.run()
    heard(b, listener)
    b.reload(config("a"))
    assert heard(b, listener, users=True) == [
        "APP x REMOVE REQUEST_CANCEL waits {vcore: 3}",
        "APP x REMOVE REQUEST_CANCEL k {vcore: 3}",
        "QUEUE root.q REMOVE QUEUE_APP x",
        "APP x REMOVE",
        "APP x REMOVE ALLOC_CANCEL k {vcore: 3}",
        "USERGROUP u REMOVE UG_USER_RESOURCE root.q {vcore: 3}",
        "APP x SET APP_FAILING PartitionRemoved",
        "NODE n1 REMOVE NODE_ALLOC k {vcore: 3}",
        "NODE n1 SET NODE_SCHEDULABLE schedulable: false",
        "NODE n1 REMOVE NODE_ALLOC f {vcore: 1}",
        "NODE n1 REMOVE NODE_DECOMISSION Node removed from the scheduler",
        "QUEUE root.q REMOVE",
        "QUEUE root REMOVE",
    ]


# -- users and groups ------------------------------------------------------------------------------------


def test_limits_are_set_changed_and_cleared() -> None:
    b, listener = listening(config("a"))
    b.reload(config(f"a limits: [{limit('u *', apps=1)}, {limit(groups='g', vcore=5)}]"))
    assert heard(b, listener, users=True) == [
        "USERGROUP u SET UG_USER_LIMIT root.a",
        "USERGROUP * SET UG_USER_LIMIT root.a",
        "USERGROUP g SET UG_GROUP_LIMIT root.a",
    ]
    b.reload(config(f"a limits: [{limit('u', apps=1)}, {limit(groups='g', vcore=6)}]"))
    assert heard(b, listener, users=True) == [
        "USERGROUP * REMOVE UG_USER_LIMIT root.a",
        "USERGROUP g SET UG_GROUP_LIMIT root.a",
    ]


def test_registration_reports_the_limits() -> None:
    b = Bench(config(f"a limits: [{limit('u', apps=1)}]"))
    listener = Listener()
    b.register(listener)
    assert heard(b, listener, users=True)[-1] == "USERGROUP u SET UG_USER_LIMIT root.a"


def test_usage_of_users_and_groups_and_the_group_that_counts() -> None:
    b, listener = listening(config(f"a limits: [{limit(groups='g h', vcore=50)}]"))
    b.node("n1", vcore=100, memory=100)
    b.app("x", "root.a", "u", "g", "h")
    b.ask("x", "k", vcore=3, memory=5)
    b.run()
    assert of("USERGROUP", both(b, listener, users=True)) == [
        "USERGROUP g SET UG_APP_LINK x",
        "USERGROUP u ADD UG_USER_RESOURCE root.a {vcore: 3, memory: 5}",
        "USERGROUP g ADD UG_GROUP_RESOURCE root.a {vcore: 3, memory: 5}",
    ]
    b.ask("x", "k", vcore=7, memory=4)
    b.ask("x", "k", vcore=7, memory=4)
    assert both(b, listener, users=True) == [
        "USERGROUP u ADD UG_USER_RESOURCE root.a {vcore: 4}",
        "USERGROUP g ADD UG_GROUP_RESOURCE root.a {vcore: 4}",
        "USERGROUP u REMOVE UG_USER_RESOURCE root.a {memory: 1}",
        "USERGROUP g REMOVE UG_GROUP_RESOURCE root.a {memory: 1}",
    ]
    b.reload(config(f"a limits: [{limit(groups='h', vcore=50)}]"))
    assert both(b, listener, users=True) == [
        "USERGROUP g REMOVE UG_GROUP_RESOURCE root.a {memory: 4, vcore: 7}",
        "USERGROUP g REMOVE UG_APP_LINK x",
        "USERGROUP h SET UG_APP_LINK x",
        "USERGROUP h ADD UG_GROUP_RESOURCE root.a {memory: 4, vcore: 7}",
        "USERGROUP g REMOVE UG_GROUP_LIMIT root.a",
    ]
    b.release("x", "k")
    assert of("USERGROUP", both(b, listener, users=True)) == [
        "USERGROUP u REMOVE UG_USER_RESOURCE root.a {vcore: 7, memory: 4}",
        "USERGROUP h REMOVE UG_GROUP_RESOURCE root.a {vcore: 7, memory: 4}",
        "USERGROUP h REMOVE UG_APP_LINK x",
    ]


def test_an_ask_without_an_application() -> None:
    b, listener = listening(config("a", more="placementrules: [{name: fixed, value: root.a}]"), first_interface=True)
    b.node("n1", vcore=1)
    heard(b, listener)
    b.ask("", "k", vcore=1)
    b.run()
    lines = both(b, listener)
    b.release("k", next(iter(b.uuids())))
    assert lines[:2] == ["APP k root.a ADD APP_NEW", "QUEUE root.a ADD QUEUE_APP k"]
    assert both(b, listener)[-2:] == ["QUEUE root.a REMOVE QUEUE_APP k", "APP k root.a REMOVE"]
