"""Filters: docs/spec/placement.md, sections 3 and 6.8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.config import load
from licorne.config.model import FilterConfig
from licorne.core.placement.filters import Filter
from licorne.core.placement.placer import PlacementRequest, Placer
from licorne.core.placement.static_tree import StaticTree


@pytest.mark.parametrize(
    ("config", "user", "groups", "allowed"),
    [
        ({}, "u", [], True),
        ({"type": "deny"}, "u", ["g"], False),
        ({"users": ["u"]}, "u", [], True),
        ({"users": ["u"]}, "U", [], False),
        ({"users": ["u"]}, "uu", [], False),  # a name is not an expression
        ({"users": ["u", "v"]}, "v", [], True),
        ({"users": ["u"]}, "x", ["u"], False),
        ({"users": ["u"], "groups": ["g"]}, "x", ["a", "g"], True),
        ({"type": "deny", "users": ["u"], "groups": ["g"]}, "u", [], False),
        ({"type": "deny", "users": ["u"], "groups": ["g"]}, "x", ["g"], False),
        ({"type": "deny", "users": ["u"], "groups": ["g"]}, "x", ["h"], True),
        ({"groups": ["dev*"]}, "x", ["abcde"], True),  # searched, and `v*` may be nothing
        ({"groups": ["^dev"]}, "x", ["abc", "a.dev"], False),
        ({"groups": ["^dev$"]}, "x", ["abc", "dev"], True),
        ({"users": ["(?i)^ADMIN"]}, "administrator", [], True),
        ({"users": ["a{2}"]}, "baab", [], True),
        ({"users": ["a.b"]}, "axb", [], False),  # no sign of an expression: a name
        ({"users": ["(a"]}, "(a", [], False),  # does not compile: names nobody
        ({"type": "deny", "users": ["(a"]}, "(a", [], True),
        ({"users": ["a(?=b)"]}, "ab", [], False),  # no look-ahead in RE2
        ({"users": ["9bad"]}, "9bad", [], False),  # no legal name: dropped
        ({"users": ["9bad", "u"]}, "9bad", [], False),
        ({"users": ["u", "v*"]}, "vv", [], False),  # an expression among names is dropped
        ({"users": ["pc$"]}, "pc", [], True),  # `$` makes an expression, although a name may end so
        ({"users": ["pc$", "u"]}, "pc$", [], True),
        ({"users": ["a*"]}, "\ud800", [], False),  # half of a surrogate pair
    ],
)
def test_filters(config: dict[str, Any], user: str, groups: Sequence[str], allowed: bool) -> None:
    names = {key: tuple(config.get(key, ())) for key in ("users", "groups")}
    built = Filter.build(FilterConfig(type=config.get("type", "allow"), **names))
    assert built.allows(user, groups) is allowed


CHAIN = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]}
    placementrules:
      - {name: fixed, value: a, filter: {type: %s, users: [u1]}}
      - {name: fixed, value: b, filter: {type: deny, users: [u2], groups: [g2]}}
      - {name: fixed, value: c, filter: {users: [u3, u4, 9bad]}}
      - {name: fixed, value: d, filter: {type: deny}}
      - {name: fixed, value: e}
"""


@pytest.mark.parametrize(
    ("user", "groups", "original", "licorne"),
    [
        ("u1", (), "a", "b"),  # the original takes DENY for allow, licorne at its word
        ("u2", (), "e", "a"),
        ("u3", (), "b", "a"),
        ("zz", ("g2",), "e", "a"),
    ],
)
def test_filters_in_a_chain(user: str, groups: tuple[str, ...], original: str, licorne: str) -> None:
    """Section 6.8; with `allow` in place of `DENY` the original's results come out."""
    for filter_type, expected in (("DENY", licorne), ("allow", original)):
        (partition,) = load(CHAIN % filter_type).partitions
        request = PlacementRequest("app", user=user, groups=groups)
        placement = Placer(partition.placement_rules).place(request, StaticTree(partition))
        assert placement.queue == f"root.{expected}"


NAMES = st.text("abAB", min_size=1, max_size=3)


@given(
    users=st.lists(NAMES, min_size=1, max_size=3), groups=st.lists(NAMES, max_size=2), user=NAMES, mine=st.lists(NAMES)
)
def test_deny_is_the_opposite_of_allow(users: list[str], groups: list[str], user: str, mine: list[str]) -> None:
    allow = Filter.build(FilterConfig(users=tuple(users), groups=tuple(groups)))
    deny = Filter.build(FilterConfig(type="deny", users=tuple(users), groups=tuple(groups)))
    named = user in users or not set(mine).isdisjoint(groups)
    assert allow.allows(user, mine) is named
    assert deny.allows(user, mine) is not named
