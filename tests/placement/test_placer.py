"""The manager of rules: unusable lists, the answer of each step, draining queues, creation, the static tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config import lint_rules
from licorne.config.model import FilterConfig, RuleConfig
from licorne.core.placement import rules as placement_rules
from licorne.core.placement.placer import (
    MAX_LEVELS,
    Placement,
    PlacementConfigError,
    PlacementRequest,
    Placer,
    creation_fault,
    is_forced,
)
from licorne.core.placement.rules import INVALID_QUEUE_NAME, legal_queue_name
from licorne.core.placement.static_tree import StaticTree

Place = Callable[..., Placement]
MakeTree = Callable[[Mapping[str, str]], StaticTree]


def rule(name: str, value: str = "", **fields: Any) -> RuleConfig:
    return RuleConfig(name=name, value=value, **fields)


@dataclass
class FakeQueue:
    """A queue of a running partition: access is listed, nothing inherited."""

    path: str
    is_leaf: bool = True
    draining: bool = False
    users: Sequence[str] = field(default_factory=tuple)

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        return user in self.users


class FakeTree:
    def __init__(self, *queues: FakeQueue) -> None:
        root = FakeQueue("root", is_leaf=False, users=["u"])
        self.queues = {queue.path: queue for queue in (root, *queues)}

    def find(self, path: str) -> FakeQueue | None:
        return self.queues.get(path)


def test_the_check_of_configurations_knows_the_rules_that_there_are() -> None:
    assert tuple(placement_rules._RULES) == lint_rules._RULES


# -- lists that cannot be used -----------------------------------------------------------------------------

BROKEN = [
    pytest.param(rule("unknown"), "placementrules[1].name", id="unknown"),
    pytest.param(rule("Recovery"), "placementrules[1].name", id="recovery"),
    pytest.param(rule("fixed"), "placementrules[1].value", id="fixed without value"),
    pytest.param(rule("fixed", "a..b"), "placementrules[1].value", id="empty part"),
    pytest.param(rule("fixed", "a b"), "placementrules[1].value", id="illegal name"),
    pytest.param(rule("fixed", "root.a", parent=rule("user")), "placementrules[1].parent", id="full path with parent"),
    pytest.param(rule("fixed", "ROOTED", parent=rule("user")), "placementrules[1].parent", id="prefix with parent"),
    pytest.param(rule("tag"), "placementrules[1].value", id="tag without value"),
    pytest.param(
        rule("user", parent=rule("user", parent=rule("tag"))), "placementrules[1].parent.parent.value", id="deep parent"
    ),
]


@pytest.mark.parametrize(("broken", "path"), BROKEN)
def test_an_unusable_list_is_refused_whole(broken: RuleConfig, path: str) -> None:
    with pytest.raises(PlacementConfigError) as caught:
        Placer([rule("user", create=True), broken])
    assert caught.value.path == path
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(("broken", "path"), BROKEN)
def test_a_new_partition_with_an_unusable_list_places_no_application_at_all(
    place: Place, broken: RuleConfig, path: str
) -> None:
    assert Placer.first([rule("user", create=True), broken]).fault.startswith(path)
    placement = place([rule("user", create=True), broken], {"root.default": ""}, user="u", tags={FORCE: "1"})
    assert placement == Placement(
        None, False, "failed to place application app: application rejected: no placement rule matched", ()
    )


FORCE = "application.create.force"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (None, False),
        ({FORCE: "true"}, True),
        ({FORCE: "1"}, True),
        ({FORCE: "T"}, True),
        ({FORCE.upper(): "TRUE"}, True),
        ({FORCE: "false"}, False),
        ({FORCE: "yes"}, False),
        ({FORCE: "tRUE"}, False),
        ({FORCE: ""}, False),
        ({"force": "true"}, False),
    ],
)
def test_forced(tags: dict[str, str] | None, expected: bool) -> None:
    assert is_forced(tags) is expected


# -- what each step says -----------------------------------------------------------------------------------


def said(placement: Placement) -> list[str]:
    return [str(step) for step in placement.steps]


def test_each_rule_reports_its_answer_in_turn(place: Place) -> None:
    rules = [
        rule("Provided"),
        rule("tag", "Team", create=True),
        rule("user", filter=FilterConfig(users=("bob",))),
        rule("user", parent=rule("tag", "team")),
        rule("fixed", "nowhere"),
        rule("fixed", "parent"),
        rule("fixed", "closed", create=True),
        rule("fixed", "root.open", parent=None),
    ]
    queues = {"root": "nobody", "root.parent.": "*", "root.closed": "", "root.open": "alice"}
    placement = place(rules, queues, user="alice")
    assert placement.queue == "root.open"
    assert said(placement) == [
        "1. provided: no match (the application asks for no queue)",
        "2. tag: no match (the application has no tag 'team')",
        "3. user: no match (its filter keeps out user 'alice')",
        "4. user: no match (parent rule tag: the application has no tag 'team')",
        "5. fixed: no match (queue root.nowhere does not exist and the rule does not create it)",
        "6. fixed: passed over root.parent (queue root.parent is not a leaf)",
        "7. fixed: passed over root.closed (user 'alice' may not submit to root.closed)",
        "8. fixed: placed root.open (queue root.open exists)",
    ]


def test_the_last_step_is_the_recovery_rule_and_the_default_queue(place: Place) -> None:
    assert said(place([], {}, user="u")) == [
        "1. provided: no match (the application asks for no queue)",
        "2. recovery: no match (the application is not forced)",
    ]
    assert said(place([], {"root.default": ""}, user="u"))[-1] == (
        "2. recovery: placed root.default "
        "(the application is not forced, and no rule matched: root.default is the last resort)"
    )
    assert said(place([], {"root.default.": ""}, user="u"))[-1] == (
        "2. recovery: passed over root.default (queue root.default is not a leaf)"
    )
    assert said(place([], {}, user="u", tags={FORCE: "t"}))[-1] == (
        "2. recovery: placed root.@recovery@ (the application is forced)"
    )


def test_a_path_keeps_its_spelling_in_texts_and_is_lower_case_as_a_queue(place: Place) -> None:
    placement = place([rule("provided", create=True)], {"root.a": ""}, user="u", queue="root.B.C")
    assert (placement.queue, placement.create) == ("root.b.c", True)
    assert said(placement) == ["1. provided: placed root.B.C (queue root.B.C may be created)"]
    placement = place([rule("provided")], {"root.a": ""}, user="u", queue="root.A")
    assert (placement.queue, placement.create) == ("root.a", False)


# -- rules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "request_", "queue"),
    [
        # A parent's own `create` counts, not the child's.
        ([rule("user", create=True, parent=rule("fixed", "p"))], {}, None),
        ([rule("user", create=True, parent=rule("fixed", "p", create=True))], {}, "root.p.u"),
        ([rule("user", parent=rule("fixed", "p", create=True))], {}, None),
        # The innermost parent comes right below root.
        (
            [
                rule(
                    "provided",
                    create=True,
                    parent=rule("user", create=True, parent=rule("tag", "ns", create=True, parent=None)),
                )
            ],
            {"queue": "q", "tags": {"NS": "n"}},
            "root.n.u.q",
        ),
        # A value with dots is several levels in a fixed rule, and one level in a tag.
        (
            [rule("fixed", "A.b", create=True, parent=rule("tag", "ns", create=True))],
            {"tags": {"ns": "x.y"}},
            "root.x_dot_y.a.b",
        ),
        # A full path in a tag leaves the parent rule out.
        ([rule("tag", "ns", create=True, parent=rule("fixed", "nowhere"))], {"tags": {"ns": "root.x"}}, "root.x"),
        # Of tags that differ in case alone, the first in byte order.
        ([rule("tag", "ns", create=True)], {"tags": {"ns": "low", "NS": "up"}}, "root.up"),
        ([rule("tag", "ns", create=True)], {"tags": {"ns": ""}}, None),
        # Root itself is no leaf.
        ([rule("fixed", "root")], {}, None),
        ([rule("fixed", "rootx")], {}, None),
        # The test rule serves as a parent.
        ([rule("user", create=True, parent=rule("test"))], {}, "root.test.u"),
        ([rule("user", create=True, parent=rule("test"))], {"queue": "root.a"}, "root.root_dot_a.u"),
    ],
)
def test_rules(place: Place, rules: list[RuleConfig], request_: dict[str, Any], queue: str | None) -> None:
    assert place(rules, {}, user="u", **request_).queue == queue


def test_a_draining_queue_passes_the_turn_on() -> None:
    tree = FakeTree(FakeQueue("root.a", draining=True, users=["u"]), FakeQueue("root.b", users=["u"]))
    placement = Placer([rule("fixed", "a"), rule("fixed", "b")]).place(PlacementRequest("app", user="u"), tree)
    assert placement.queue == "root.b"
    assert placement.steps[0].why == "queue root.a is draining"


def test_a_copied_placer_still_knows_its_last_rule(make_tree: MakeTree) -> None:
    tree = make_tree({"root": "*", "root.default": ""})
    assert deepcopy(Placer([])).place(PlacementRequest("app", user="u"), tree).queue == "root.default"


# -- creation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "user", "fault"),
    [
        ("root.new", "u", None),
        ("root.P.new.er", "u", None),
        ("root.new", "x", "submit access to queue root denied for the creation of root.new"),
        ("root.leaf.a.b", "u", "creation of queue root.leaf.a.b failed parent is already a leaf: root.leaf"),
        ("root.old.a", "u", "creation of queue root.old.a failed, parent is draining: root.old"),
        ("root.p.a b", "u", INVALID_QUEUE_NAME),
        ("root.p.", "u", INVALID_QUEUE_NAME),
        ("root.@Recovery@", "u", "creation of queue root.@Recovery@ failed, @recovery@ is reserved"),
        ("rootx.a", "u", "creation of queue rootx.a failed, it is not below root"),
        ("root", "u", "creation of queue root failed, it is not below root"),
    ],
)
def test_creation(path: str, user: str, fault: str | None) -> None:
    tree = FakeTree(
        FakeQueue("root.p", is_leaf=False, users=["u"]),
        FakeQueue("root.leaf", users=["u"]),
        FakeQueue("root.old", is_leaf=False, draining=True, users=["u"]),
    )
    assert creation_fault(path, tree, user, ()) == fault


def test_creation_needs_a_root() -> None:
    tree = FakeTree()
    tree.queues.clear()
    assert creation_fault("root.a", tree, "u", ()) == "creation of queue root.a failed, there is no queue root"


def test_the_levels_of_a_path_are_limited(place: Place) -> None:
    rules = [rule("provided", create=True)]
    deepest = "root" + ".a" * (MAX_LEVELS - 1)
    assert place(rules, {}, user="u", queue=deepest).queue == deepest
    placement = place(rules, {}, user="u", queue=f"{deepest}.a")
    assert placement.reason == f"failed to place application app: queue path has more than {MAX_LEVELS} levels"
    assert "more than" in (creation_fault(f"{deepest}.a", FakeTree(), "u", ()) or "")


def test_a_recovery_queue_configured_as_a_parent_takes_no_application(place: Place) -> None:
    placement = place([], {"root.@recovery@.": ""}, user="u", tags={FORCE: "t"})
    assert placement.reason == "failed to find queue root.@recovery@ for application app"


# -- the static tree ---------------------------------------------------------------------------------------


def test_the_static_tree(make_tree: MakeTree) -> None:
    tree = make_tree({"root": "", "root.a.": "u", "root.a.b": " g", "root.a.b admin": "boss", "root.@recovery@": "*"})
    leaves = {path: queue.is_leaf for path in ("root", "root.a", "root.a.b") if (queue := tree.find(path))}
    assert leaves == {"root": False, "root.a": False, "root.a.b": True}
    assert tree.find("root.a.c") is None
    deep = tree.find("root.a.b")
    assert deep is not None
    assert not deep.draining
    assert deep.submit_allowed("u", ())  # by the queue above
    assert deep.submit_allowed("x", ("f", "g"))
    assert deep.submit_allowed("boss", ())
    assert not deep.submit_allowed("x", ())
    recovery = tree.find("root.@recovery@")
    assert recovery is not None
    assert not recovery.submit_allowed("u", ())


# -- laws --------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["root", "root.a", "a", "b", "root.p.q", "@recovery@", "root.@recovery@", "x y", "", ".", "rootx", "A.B"]
)
LEAF_RULES = st.builds(
    rule,
    st.sampled_from(["provided", "user", "fixed", "tag", "test"]),
    st.sampled_from(["ns", "root.a", "root.p", "b", "rootx"]),
    create=st.booleans(),
)
RULES = LEAF_RULES | st.builds(
    rule, st.sampled_from(["provided", "user", "tag"]), st.just("ns"), create=st.booleans(), parent=LEAF_RULES
)


@given(
    rules=st.lists(RULES, max_size=4),
    queue=WORDS,
    user=WORDS,
    namespace=WORDS,
    forced=st.booleans(),
    acl=st.sampled_from(["", "*", "a"]),
)
def test_a_placed_application_has_a_usable_queue_and_others_have_a_reason(
    make_tree: MakeTree, rules: list[RuleConfig], queue: str, user: str, namespace: str, forced: bool, acl: str
) -> None:
    tree = make_tree({"root": acl, "root.a": "b", "root.p.": "", "root.p.q": "a"})
    request = PlacementRequest("app", queue, user, (), {"ns": namespace}, forced)
    placement = Placer.first(rules).place(request, tree)
    assert placement == Placer.first(rules).place(request, tree)
    assert [step.index for step in placement.steps] == list(range(1, len(placement.steps) + 1))
    if placement.queue is None:
        assert "app" in placement.reason
        return
    assert placement.reason == ""
    assert placement.queue.startswith("root.")
    assert all(legal_queue_name(part) for part in placement.queue.split("."))
    existing = tree.find(placement.queue)
    assert placement.create is (existing is None)
    if placement.queue == "root.@recovery@":
        assert forced
    elif existing is not None:
        assert existing.is_leaf
        assert existing.submit_allowed(user, ())
    else:
        assert creation_fault(placement.queue, tree, user, ()) is None
