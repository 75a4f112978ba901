"""Amounts of resources: the table of docs/spec/scheduling.md, section 1, as far as it is used, and a naive algebra.

Methods that only other hot code may call (C methods, once compiled) are tested by `core.c_methods`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.core.amounts.types import Types
from licorne.core.amounts.vectors import Vec
from licorne.core.constants import SUM_MAX, UNLIMITED
from licorne.core.queues.application import Application
from licorne.core.queues.queue import Queue

Amounts = dict[str, int]

AB = Types()
for name in "abc":
    AB.slot(name)


def vec(amounts: Amounts, fill: int = 0) -> Vec:
    return AB.vector(amounts, fill)


# -- the table ------------------------------------------------------------------------------------------------

ADD_SUB = [
    ({}, {}, {}, {}),
    ({"a": 1}, {}, {"a": 1}, {"a": 1}),
    ({}, {"a": 1}, {"a": 1}, {"a": -1}),
    ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": -2}),
    ({"a": 5, "c": 1}, {"a": 5}, {"a": 10, "c": 1}, {"c": 1}),
    ({"a": SUM_MAX}, {"a": SUM_MAX}, {"a": SUM_MAX}, {}),  # they saturate
    ({"a": -SUM_MAX}, {"a": 1}, {"a": 1 - SUM_MAX}, {"a": -SUM_MAX}),
]


@pytest.mark.parametrize(("a", "b", "sum_", "difference"), ADD_SUB)
def test_add_and_sub(a: Amounts, b: Amounts, sum_: Amounts, difference: Amounts) -> None:
    plus, minus = vec(a), vec(a)
    plus.plus(vec(b))
    minus.minus(vec(b))
    assert (plus.named(AB), minus.named(AB)) == (sum_, difference)


# A, b, FitIn, FitInMaxUndef (types that are not listed in A are without limit)
FITS = [
    ({}, {}, True, True),
    ({}, {"a": 0}, True, True),
    ({}, {"a": 1}, False, True),
    ({"a": 1}, {"a": 1}, True, True),
    ({"a": 1}, {"a": 2}, False, False),
    ({"a": 1}, {"b": 1}, False, True),
    ({"a": -1}, {"a": 0}, True, True),  # what is negative in A counts as 0
    ({"a": -1}, {"a": 1}, False, False),
    ({"a": -1}, {"a": -5}, True, True),
    ({"a": -1, "b": 5}, {"b": 5}, True, True),
    ({"a": 0}, {"a": 1, "b": 1}, False, False),
]


@pytest.mark.parametrize(("room", "b", "fit_in", "fit_in_max_undef"), FITS)
def test_fit_in(room: Amounts, b: Amounts, fit_in: bool, fit_in_max_undef: bool) -> None:
    assert vec(room).covers(vec(b)) == fit_in
    assert vec(room, UNLIMITED).covers(vec(b)) == fit_in_max_undef


# a, b, Equals, and whether a - b is GTZero
COMPARED = [
    ({}, {}, True, False),
    ({}, {"a": 0}, True, False),
    ({"a": 1}, {"a": 1, "b": 0}, True, False),
    ({"a": 1}, {}, False, True),
    ({"a": 1}, {"a": 1, "b": -1}, False, True),
    ({"a": 2, "b": 1}, {"a": 1, "b": 1}, False, True),
    ({"a": 2, "b": 0}, {"a": 1, "b": 1}, False, False),
    ({"a": 1}, {"b": 1}, False, False),
]


@pytest.mark.parametrize(("a", "b", "equal", "above"), COMPARED)
def test_equals_and_above_zero(a: Amounts, b: Amounts, equal: bool, above: bool) -> None:
    assert (vec(a).same(vec(b)), vec(b).same(vec(a)), vec(a).above(vec(b))) == (equal, equal, above)


@pytest.mark.parametrize(("a", "zero"), [({}, True), ({"b": 0}, True), ({"b": -1}, False), ({"a": 0, "c": 1}, False)])
def test_is_zero(a: Amounts, zero: bool) -> None:
    assert vec(a).zero() == zero


# usage l and r under these guaranteed amounts: who comes first in fair order (CompareShares), "" for neither
SHARES = [
    ({"a": 10}, {"a": 4}, {"a": 5}, "l"),
    ({"a": 10, "b": 100}, {"a": 4}, {"b": 50}, "l"),  # 0.4 and 0.5
    ({"a": 10}, {"b": 1}, {"a": 9}, "r"),  # without a total the amount itself: 1 and 0.9
    ({"a": 0}, {"a": 3}, {"a": 4}, "l"),  # a total of 0 is none
    ({"a": 10, "b": 10}, {"a": 5, "b": 5}, {"a": 5}, "r"),  # the first that differs, from the largest down
    ({"a": 10, "b": 10}, {"a": 5, "b": 4}, {"a": 5, "b": 3}, "r"),
    ({"a": 10, "b": 10}, {"a": 5}, {"b": 5}, ""),
    ({"a": 10}, {}, {"a": 1}, "l"),
    ({}, {}, {}, ""),
]


@pytest.mark.parametrize(("guaranteed", "l", "r", "first"), SHARES)
def test_compare_shares(guaranteed: Amounts, l: Amounts, r: Amounts, first: str) -> None:  # noqa: E741
    leaf = Queue("leaf", None, True, True, AB)
    leaf.set_resources(None, guaranteed)
    usages = []
    for used in (l, r):
        app = Application("x", 0, 0, leaf, "u")
        app.allocated.plus(vec(used))
        app.recompute_usage()
        usages.append(app.usage)
    left, right = usages
    assert first == ("l" if left < right else "r" if right < left else "")


# -- a naive algebra: dicts, types that come in any order, more than a cache line of them ------------------------

NAMES = [f"type-{i}" for i in range(12)]
AMOUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(-(10**12), 10**12), max_size=12)
PAIRS = st.tuples(AMOUNTS, AMOUNTS)


def pruned(amounts: Amounts) -> Amounts:
    return {name: value for name, value in sorted(amounts.items()) if value}


def combined(a: Amounts, b: Amounts, sign: int) -> Amounts:
    return pruned({name: a.get(name, 0) + sign * b.get(name, 0) for name in a.keys() | b.keys()})


@given(st.lists(AMOUNTS, max_size=8))
def test_sums_and_differences_with_types_that_come_late(many: list[Amounts]) -> None:
    types, total, expected = Types(), Vec(), Amounts()
    vectors = []
    for amounts in many:
        vectors.append(types.vector(amounts))
        total.plus(vectors[-1])
        expected = combined(expected, amounts, 1)
        assert total.named(types) == expected
    for amounts, vector in zip(many, vectors, strict=True):
        assert vector.named(types) == pruned(amounts)
        total.minus(vector)
        expected = combined(expected, amounts, -1)
        assert total.named(types) == expected
    assert total.zero() and total.same(Vec()) and Vec().same(total)


@given(PAIRS)
def test_comparisons_agree_with_the_definitions(pair: tuple[Amounts, Amounts]) -> None:
    a, b = pair
    types = Types()
    x, limit, y = types.vector(a), types.vector(a, UNLIMITED), types.vector(b)
    both = a.keys() | b.keys()
    difference = combined(a, b, -1)
    assert x.covers(y) == all(b[name] <= max(0, a.get(name, 0)) for name in b)
    assert limit.covers(y) == all(b[name] <= max(0, a[name]) for name in b if name in a)
    assert x.same(y) == all(a.get(name, 0) == b.get(name, 0) for name in both)
    assert x.above(y) == (bool(difference) and all(value >= 0 for value in difference.values()))
    assert x.zero() == (not pruned(a))


@given(PAIRS)
def test_a_clone_is_independent(pair: tuple[Amounts, Amounts]) -> None:
    types = Types()
    x = types.vector(pair[0])
    clone = x.clone()
    assert clone.values() == x.values()
    clone.plus(types.vector(pair[1]))
    assert x.named(types) == dict(sorted(pruned(pair[0]).items()))
