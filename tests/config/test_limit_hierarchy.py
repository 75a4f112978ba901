"""Limits of users and groups along the tree (docs/spec/config.md, sections 5.9 and 13)."""

from __future__ import annotations

import pytest

from licorne.config import check

A = "limit-above-parent-applications"
R = "limit-above-parent-max"


def tree(*limits: str) -> str:
    """A chain of queues, root first, with the given limits."""
    text = ""
    for number, own in reversed(list(enumerate(limits))):
        children = f", queues: [{text}]" if text else ""
        text = f"{{name: {'root' if number == 0 else f'q{number}'}, limits: [{own}]{children}}}"
    return f"partitions: [{{queues: [{text}]}}]"


def users(name: str, applications: int = 0, **resources: int) -> str:
    return f"{{users: ['{name}'], maxapplications: {applications}, maxresources: {resources}}}".replace("'", '"')


@pytest.mark.parametrize(
    ("limits", "rules"),
    [
        ((users("u", 2), users("u", 2)), []),
        ((users("u", 2), users("u", 3)), [A]),
        ((users("u", 2), users("v", 3)), []),
        ((users("u", 2), "", users("u", 3)), [A]),
        ((users("u", 2), users("u", 1), users("u", 2)), [A]),
        ((users("u", 2), users("u", vcore=1)), [A]),
        ((users("u", vcore=1), users("u", 5)), []),
        ((users("u", vcore=1), users("u", memory=5)), []),
        ((users("u", vcore=1), users("u", memory=5), users("u", vcore=2)), [R]),
        ((users("*", vcore=1), users("u", vcore=2)), [R]),
        ((users("*", vcore=1), users("*", vcore=2)), [R]),
        # Below a named entry under a wildcard, deeper levels no longer see the wildcard.
        ((users("*", vcore=1), users("u", memory=5), users("u", vcore=2)), []),
        # A named entry hides the wildcard of its own queue from deeper levels.
        ((f"{users('u', vcore=3)}, {users('*', vcore=1)}", users("u", vcore=2)), []),
        # Entries of one queue are not compared with each other.
        ((users("w", 9), f"{users('u', 5)}, {users('*', 1)}"), []),
        ((users("u", 1, vcore=1), users("u", 2, vcore=2)), [R, A]),
    ],
)
def test_users(limits: tuple[str, ...], rules: list[str]) -> None:
    assert [fault.rule for fault in check(tree(*limits)).faults] == rules


def test_users_and_groups_are_apart() -> None:
    text = tree(users("u", 1), "{groups: [u], maxapplications: 5}")
    assert check(text).faults == ()


def test_siblings_do_not_see_each_other() -> None:
    text = f"partitions: [{{queues: [{{name: a, limits: [{users('u', 1)}]}}, {{name: b, limits: [{users('u', 9)}]}}]}}]"
    assert check(text).faults == ()


def test_resources_of_the_whole_tree_come_first() -> None:
    text = tree(users("u", 1, vcore=1), users("u", 2, vcore=1), users("u", 1, vcore=2))
    assert [fault.rule for fault in check(text).faults] == [R, A]
