"""Applications come, or are refused, in the order of checks of docs/spec/scheduler-interface.md, section 7.1."""

from __future__ import annotations

import pytest

from core.bench import Bench, config, parent
from licorne.core.base.states import ObjectState
from licorne.core.placement.rules import INVALID_QUEUE_NAME
from licorne.si.messages import AddApplication, Allocation, NodeAction

NO_RULE = "failed to place application y: application rejected: no placement rule matched"
FORCED = {"Application.Create.Force": "true"}  # names of tags are matched without regard to case
RULES = "placementrules: [{name: provided, create: true}, {name: tag, value: namespace, create: true}]"
TREE = config(parent("p", "leaf"), "open", "closed submitacl: 'nobody-else'", more=RULES)

CANNOT_CREATE = "failed to create rule based queue root.open.new for"

REFUSED = [
    ({"partition": "gone"}, "Failed to add application y to partition [rm]gone, partition doesn't exist"),
    ({"partition": "[rm]gone"}, "Failed to add application y to partition [rm]gone, partition doesn't exist"),
    ({"user": ""}, "empty user cannot resolve"),
    ({"user": "", "application_id": "x"}, "empty user cannot resolve"),  # before the duplicate
    ({"user": "a b", "groups": ("g",)}, "invalid username, it contains invalid characters"),
    ({"user": "a b", "groups": ("g",), "tags": FORCED}, "invalid username, it contains invalid characters"),
    ({"application_id": "x"}, "adding application x to partition [rm]default, but application already existed"),
    ({"application_id": ""}, "application without an applicationID"),
    ({"queue": ""}, NO_RULE),
    ({"queue": "root.p"}, NO_RULE),  # a parent: the next rule is asked
    ({"queue": "root.p.new?"}, f"failed to place application y: {INVALID_QUEUE_NAME}"),
    ({"queue": "root.p.new?", "tags": FORCED}, f"failed to place application y: {INVALID_QUEUE_NAME}"),
    (
        {"queue": "root.open.new"},
        f"{CANNOT_CREATE} application y\ncreation of queue root.open.new failed parent is already a leaf: root.open",
    ),
    ({"placeholder_ask": {"vcore": -1}}, "placeholderAsk: negative quantity -1 of vcore"),
]


def add(b: Bench, **fields: object) -> list[str]:
    filled = {"application_id": "y", "queue": "root.open", "user": "u", **fields}
    return b.send(AddApplication(**filled))  # type: ignore[arg-type]


@pytest.mark.parametrize(("fields", "reason"), REFUSED)
def test_applications_that_are_refused(fields: dict[str, object], reason: str) -> None:
    b = Bench(TREE)
    b.app("x", "root.open")
    before = b.queues()
    assert add(b, **fields) == [f"rejected {fields.get('application_id', 'y')}: {reason}"]
    assert (b.states(), b.queues()) == ("x:New", before)


def test_a_queue_that_the_user_may_not_use_is_passed_over() -> None:
    text = TREE.replace("name: root, submitacl: '*'", "name: root, submitacl: alice")
    b = Bench(text)
    assert add(b, user="bob") == [f"rejected y: {NO_RULE}"]
    assert add(b, user="alice") == ["accepted y"]


# tags, queue named, where it goes
FORCED_ROWS = [
    ({}, "root.open", "root.open"),
    ({}, "", "root.@recovery@"),
    ({"namespace": "dev"}, "", "root.dev"),
]


@pytest.mark.parametrize(("tags", "queue", "path"), FORCED_ROWS)
def test_a_forced_application_is_not_lost(tags: dict[str, str], queue: str, path: str) -> None:
    b = Bench(TREE)
    assert add(b, user="", queue=queue, tags={**tags, **FORCED}) == ["accepted y"]
    app = b.application("y")
    assert (app.user, app.groups, app.queue.path) == ("nobody", ("nogroup",), path)


def test_nothing_but_forced_applications_come_to_the_recovery_queue() -> None:
    b = Bench(TREE)
    add(b, queue="", tags=FORCED)
    assert add(b, application_id="z", queue="root.@recovery@")[0].startswith("rejected z: ")
    b.remove("y")
    b.run(after=10)
    assert "root.@recovery@" not in b.queues()


def test_a_user_without_groups_is_a_group_of_its_own_name() -> None:
    b = Bench(TREE)
    b.app("x", "root.open", "a b")  # without groups the name need not be one of a limit
    assert b.application("x").groups == ("a b",)


def test_a_partition_that_does_not_take_anything_new() -> None:
    b = Bench(TREE)
    b.app("x", "root.open")
    b.partition.state = ObjectState.STOPPED
    assert add(b) == ["rejected y: partition [rm]default is stopped cannot add a new application y"]
    assert b.node("n1", vcore=1) == ["rejected n1: partition [rm]default is stopped cannot add a new node n1"]
    said = b.send(Allocation(key="k", application_id="x", resource={"vcore": 1}))
    assert said == ["rejected k of x: partition [rm]default is stopped; cannot process allocation k"]
    assert b.node("n1", NodeAction.DRAIN_NODE) == []
    assert b.run() == ""


def test_the_submission_time_is_a_tags_or_that_of_the_oldest_ask() -> None:
    b = Bench(TREE)
    tag = {"yunikorn.apache.org/creationTime": "1000"}
    for app, tags in (("x1", {}), ("x2", tag), ("x3", {"yunikorn.apache.org/creationTime": "soon"})):
        b.app(app, "root.open", tags=tags)
    b.ask("x3", "k", vcore=1, age_s=100)
    seconds = {app: b.application(app).submitted / 10**9 for app in ("x1", "x2", "x3")}
    assert seconds == pytest.approx({"x1": b.seconds, "x2": 1000, "x3": b.seconds - 100})


def test_applications_of_one_moment_have_unique_times_unless_a_tag_makes_them_equal() -> None:
    """Difference 7: in the original two applications may have the same creation time."""
    b = Bench(TREE)
    tag = {"yunikorn.apache.org/creationTime": "1000"}
    for app, tags in (("x3", {}), ("x2", {}), ("x1", {}), ("y2", tag), ("y1", tag)):
        b.app(app, "root.open", tags=tags)
    times = [b.application(app).submitted for app in ("x3", "x2", "x1")]
    assert times == sorted(set(times))
    assert b.application("y1").submitted == b.application("y2").submitted
    b.node("n1", vcore=10)
    for app in ("x1", "x2", "x3", "y1", "y2"):
        b.ask(app, app, vcore=1)
    assert b.run() == "y2@n1 y1@n1 x3@n1 x2@n1 x1@n1"  # equal times: in the order of arrival


def test_a_creation_time_in_the_future_outlives_the_first_ask() -> None:
    """Difference 114: in the original the application becomes as old as its first ask."""
    b = Bench(TREE)
    future = int(b.seconds) + 100
    b.app("late", "root.open", tags={"yunikorn.apache.org/creationTime": str(future)})
    b.ask("late", "k1", vcore=1)
    assert b.application("late").submitted == future * 10**9
    b.app("early", "root.open")
    b.ask("early", "k2", vcore=1)
    b.node("n1", vcore=10)
    assert b.run() == "k2@n1 k1@n1"
    b.ask("late", "old", vcore=1, age_s=100)  # an ask whose creation time has passed makes it older
    assert b.application("late").submitted == (b.seconds - 100) * 10**9
