"""Access control lists (docs/spec/config.md, section 8 and 13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config.acl import ACL, ACLError


@pytest.mark.parametrize(
    ("text", "user", "groups", "allowed"),
    [
        ("", "alice", ["dev"], False),
        (" ", "alice", ["dev"], False),
        ("*", "alice", [], True),
        ("* ", "alice", [], True),
        (" *", "alice", [], True),
        ("* ops", "alice", [], True),
        ("alice *", "bob", [], True),
        ("alice,bob", "bob", [], True),
        ("alice,bob", "carol", ["alice"], False),
        ("alice dev,ops", "carol", ["x", "ops"], True),
        (" dev", "carol", ["dev"], True),
        (" dev", "dev", [], False),
        ("alice ", "alice", [], True),
        ("Alice", "alice", [], False),
        ("a@b.c-d$", "a@b.c-d$", [], True),
        ("a:b", "a:b", [], False),
        ("a#b,c/d", "c/d", [], False),
        ("9a", "9a", [], False),
        (" a.b", "u", ["a.b"], False),
        (" a:b", "u", ["a:b"], False),
        ("alice,*", "bob", [], False),
        ("a\tb", "a", ["b"], False),
        ("a\tb", "a\tb", [], False),
        (",,alice,,", "alice", [], True),
    ],
)
def test_an_access_list_allows_its_users_and_groups(text: str, user: str, groups: list[str], allowed: bool) -> None:
    assert ACL.parse(text).allows(user, groups) is allowed


@pytest.mark.parametrize("text", ["a b c", "a b ", "a  b", " a b", "  ", "   ", " * ", "* x y"])
def test_more_than_two_parts(text: str) -> None:
    with pytest.raises(ACLError):
        ACL.parse(text)


def test_dropped_names_are_reported() -> None:
    assert ACL.parse("alice,9bob dev,x.y").dropped == ("9bob", "x.y")
    assert ACL.parse("alice,bob dev").dropped == ()


@given(
    st.lists(st.from_regex(r"[_a-z][a-z0-9_.@-]*\$?", fullmatch=True)),
    st.lists(st.from_regex(r"[_a-z][a-z0-9_-]*", fullmatch=True)),
)
def test_every_listed_user_and_group_is_allowed(users: list[str], groups: list[str]) -> None:
    acl = ACL.parse(",".join(users) + " " + ",".join(groups))
    assert all(acl.allows(user, []) for user in users)
    assert all(acl.allows("!", [group]) for group in groups)
    assert not acl.allows("!", ["!"])
