"""The worked examples of docs/spec/placement.md, section 6, as tables.

A row has the question, the answer of the original, and, where licorne mends a fault of the original, the answer of
licorne. An answer is a queue, or the end of a rejection's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from licorne.config.model import FilterConfig, RuleConfig
from licorne.core.placement.placer import Placement

Place = Callable[..., Placement]

NO_RULE = "failed to place application app: application rejected: no placement rule matched"
BAD_NAME = (
    "failed to place application app: invalid queue name, max 64 characters consisting of alphanumeric "
    "characters and '-', '_', '#', '@', '/', ':' allowed"
)
FORCED = {"application.create.force": "true"}


def rule(name: str, value: str = "", **fields: Any) -> RuleConfig:
    return RuleConfig(name=name, value=value, **fields)


def asks(user: str = "developer", queue: str = "", groups: Sequence[str] = (), **tags: str) -> dict[str, Any]:
    """An application; `ns` is short for the tag namespace."""
    given = {"namespace" if key == "ns" else key: value for key, value in tags.items()}
    return {"user": user, "queue": queue, "groups": tuple(groups), "tags": given}


def forced(**request: Any) -> dict[str, Any]:
    wanted = asks(**request)
    return wanted | {"tags": FORCED | wanted["tags"]}


def check(placement: Placement, expected: str) -> None:
    if expected.startswith("root."):
        assert (placement.queue, placement.reason) == (expected, "")
    else:
        assert placement.queue is None
        assert placement.reason == expected


def not_created(path: str, cause: str) -> str:
    return f"failed to create rule based queue {path} for application app\n{cause}"


# -- 6.1 ---------------------------------------------------------------------------------------------------

LEAF_PARENT = "failed to place application app: parent rule returned a leaf queue: root.leafuser"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asks(queue="my_special_queue"), "root.developer.my_special_queue"),
        (asks(queue="root.dev_queue"), "root.dev_queue"),
        (asks(queue="a.b"), "root.developer.a_dot_b"),
        (asks(queue="root.x.y.z"), "root.x.y.z"),
        (asks(user="Dev", queue="QQ"), "root.dev.qq"),
        (asks(queue="root"), "root.developer.root"),
        (asks(queue="ROOT.x"), "root.developer.root_dot_x"),
        (asks(), NO_RULE),
        (asks(queue="sp ace"), BAD_NAME),
        (asks(queue="root.a..b"), BAD_NAME),
        (asks(user="leafuser", queue="q"), LEAF_PARENT),
        (asks(queue="root.puser"), NO_RULE),
        (
            asks(queue="root.leafuser.sub"),
            not_created(
                "root.leafuser.sub",
                "creation of queue root.leafuser.sub failed parent is already a leaf: root.leafuser",
            ),
        ),
        (asks(user="u" * 70, queue="q"), BAD_NAME),
        (
            asks(queue="@recovery@"),
            not_created(
                "root.developer.@recovery@",
                "creation of queue root.developer.@recovery@ failed, @recovery@ is reserved",
            ),
        ),
    ],
)
def test_provided_queue_below_a_user_queue(place: Place, request_: dict[str, Any], expected: str) -> None:
    rules = [rule("provided", create=True, parent=rule("user", create=True))]
    check(place(rules, {"root.leafuser": "", "root.puser.": ""}, **request_), expected)


# -- 6.2 to 6.4 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asks(user="finance.test"), "root.finance_dot_test"),
        (asks(), NO_RULE),
        (forced(), "root.@recovery@"),
        (forced(user="finance.test"), "root.finance_dot_test"),
    ],
)
def test_user_without_create(place: Place, request_: dict[str, Any], expected: str) -> None:
    check(place([rule("user")], {"root.finance_dot_test": ""}, **request_), expected)


def test_fixed(place: Place) -> None:
    request = asks(queue="my_special_queue")
    check(place([rule("fixed", "last_resort")], {"root.last_resort": ""}, **request), "root.last_resort")


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asks(queue="my_special_queue", ns="default"), "root.default"),
        (asks(ns="testing"), "root.testing"),
        (asks(), NO_RULE),
        (asks(NameSpace="up"), "root.up"),
        (asks(ns="root.a.b"), "root.a.b"),
        (asks(ns="a.b"), "root.a_dot_b"),
    ],
)
def test_tag_with_create(place: Place, request_: dict[str, Any], expected: str) -> None:
    check(place([rule("tag", "namespace", create=True)], {}, **request_), expected)


def test_without_the_tag_the_default_queue_is_the_last_resort(place: Place) -> None:
    rules = [rule("tag", "namespace", create=True)]
    check(place(rules, {"root.default": ""}, **asks()), "root.default")


# -- 6.5 ---------------------------------------------------------------------------------------------------

SARAH = asks(user="sarah", groups=["sarah", "test_app", "dev_app"], ns="newapp")


@pytest.mark.parametrize(
    ("tag_creates", "request_", "expected"),
    [
        (False, asks(user="john", ns="testing"), "root.namespaces.testing"),
        (False, SARAH, "root.default"),
        (True, SARAH, "root.newapp.sarah"),
        (False, asks(user="bob", groups=["bob"], ns="testapp"), "root.default"),
    ],
)
def test_three_rules(place: Place, tag_creates: bool, request_: dict[str, Any], expected: str) -> None:
    rules = [
        rule(
            "user",
            create=True,
            filter=FilterConfig(type="allow", groups=("dev*",)),
            parent=rule("tag", "namespace", create=tag_creates),
        ),
        rule(
            "tag",
            "namespace",
            create=True,
            parent=rule("fixed", "root.namespaces", filter=FilterConfig(type="allow", users=("john",))),
        ),
        rule("fixed", "root.default"),
    ]
    check(place(rules, {"root.namespaces.": "", "root.default": ""}, **request_), expected)


# -- 6.6 and 6.7 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "user", "expected"),
    [
        ("", "john", "root.production"),
        ("", "bob", "root.production"),
        ("", "alice", NO_RULE),
        ("*", "alice", "root.production"),
    ],
)
def test_access_lists(place: Place, root: str, user: str, expected: str) -> None:
    rules = [rule("fixed", "root.production"), rule("user", create=True)]
    check(place(rules, {"root": root, "root.production": "john,bob"}, user=user), expected)


@pytest.mark.parametrize(
    ("queues", "request_", "expected"),
    [
        ({"root.default": ""}, asks(queue="root.zzz"), "root.default"),
        ({"root.default": ""}, asks(), "root.default"),
        ({"root.default": ""}, asks(queue="default"), "root.default"),
        ({"root.default": ""}, forced(), "root.@recovery@"),
        ({"root.default.": ""}, asks(), NO_RULE),
        ({"root": "", "root.default": "u1 g1"}, asks(user="x"), NO_RULE),
        ({"root": "", "root.default": "u1 g1"}, asks(user="u1"), "root.default"),
        ({"root": "", "root.default": "u1 g1"}, asks(user="x", groups=["g0", "g1"]), "root.default"),
        ({"root": "", "root.adm": "", "root.adm admin": "adminuser"}, asks("adminuser", "adm"), "root.adm"),
        ({"root": "", "root.adm": "", "root.adm admin": "adminuser"}, asks("someone", "adm"), NO_RULE),
    ],
)
def test_no_rules(place: Place, queues: Mapping[str, str], request_: dict[str, Any], expected: str) -> None:
    check(place([], queues, **request_), expected)


# -- 6.9 ---------------------------------------------------------------------------------------------------


def test_an_illegal_user_stops_the_chain(place: Place) -> None:
    rules = [rule("user", create=True), rule("fixed", "last")]
    placement = place(rules, {"root.last": ""}, **asks(user="a b"))
    check(placement, BAD_NAME)
    assert [step.rule for step in placement.steps] == ["user"]


def test_a_leaf_as_parent_stops_the_chain(place: Place) -> None:
    rules = [rule("user", create=True, parent=rule("tag", "namespace")), rule("fixed", "last")]
    placement = place(rules, {"root.last": ""}, **asks(ns="last"))
    check(placement, "failed to place application app: parent rule returned a leaf queue: root.last")


# -- faults of the original (sections 3 to 5) -----------------------------------------------------------------

CRASH = "(the original crashes)"
EXPLICIT_RECOVERY = asks(queue="root.@recovery@")
PROVIDED = [rule("provided", create=True)]


@pytest.mark.parametrize(
    ("rules", "queues", "request_", "original", "licorne"),
    [
        pytest.param(
            [rule("fixed", "rootx", create=True)],
            {},
            asks(),
            CRASH,
            "failed to place application app: queue rootx is not below root",
            id="a path not below root",
        ),
        pytest.param(
            [rule("test"), rule("fixed", "root.default")],
            {"root.default": ""},
            asks(),
            CRASH,
            "failed to place application app: queue test is not below root",
            id="the test rule at the top",
        ),
        pytest.param(PROVIDED, {}, EXPLICIT_RECOVERY, "root.@recovery@", NO_RULE, id="recovery asked for"),
        pytest.param(
            PROVIDED,
            {"root.default": ""},
            asks(queue="root.@Recovery@"),
            "root.@recovery@",
            "root.default",
            id="recovery asked for in capitals",
        ),
        pytest.param(
            PROVIDED, {"root.@recovery@": ""}, EXPLICIT_RECOVERY, NO_RULE, NO_RULE, id="recovery asked for, existing"
        ),
        pytest.param(
            PROVIDED,
            {"root": ""},
            forced(queue="root.@recovery@"),
            "root.@recovery@",
            "root.@recovery@",
            id="recovery asked for and forced",
        ),
    ],
)
def test_faults_of_the_original(
    place: Place,
    rules: Sequence[RuleConfig],
    queues: Mapping[str, str],
    request_: dict[str, Any],
    original: str,
    licorne: str,
) -> None:
    del original  # recorded for the reader
    check(place(rules, queues, **request_), licorne)
