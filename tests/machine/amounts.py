"""Amounts of resources as plain dicts and node constraints as plain functions, for the computations of the checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

Amounts = dict[str, int]
Labels = Mapping[str, str]

TAINT = json.dumps([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])

CONSTRAINTS = [
    "",
    json.dumps({"nodeSelector": {"zone": "a"}}),
    json.dumps({"nodeAffinity": [[{"key": "zone", "operator": "In", "values": ["b", "c"]}]]}),
    json.dumps({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
    json.dumps(
        {
            "nodeAffinity": [
                [{"key": "zone", "operator": "NotIn", "values": ["a"]}],
                [{"key": "ssd", "operator": "Exists"}],
            ]
        }
    ),
]
"""The constraints that asks have; `met` says by number what each of them means."""

_MEANING: list[Callable[[Labels], bool]] = [
    lambda _labels: True,
    lambda labels: labels.get("zone") == "a",
    lambda labels: labels.get("zone") in ("b", "c"),
    lambda _labels: True,
    lambda labels: labels.get("zone") != "a" or "ssd" in labels,
]
_TOLERANT = 3


def met(constraint: int, labels: Labels, *, tainted: bool) -> bool:
    """May an ask with this constraint run on a node with these labels?"""
    return _MEANING[constraint](labels) and (not tainted or constraint == _TOLERANT)


def plus(one: Amounts, other: Mapping[str, int], times: int = 1) -> Amounts:
    """One + times × other."""
    return {name: one.get(name, 0) + times * other.get(name, 0) for name in {**one, **other}}


def total(many: Iterable[Mapping[str, int]]) -> Amounts:
    """The sum."""
    found: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            found[name] = found.get(name, 0) + amount
    return found


def fits(ask: Mapping[str, int], room: Mapping[str, int]) -> bool:
    """Tell whether the room has every amount of the ask; a type that the room does not list is 0."""
    return all(amount <= max(0, room.get(name, 0)) for name, amount in ask.items() if amount)


def within(ask: Mapping[str, int], most: Mapping[str, int] | None, used: Mapping[str, int]) -> bool:
    """May this much more be used where `most` is the limit? What it does not list is not limited."""
    if not most:
        return True
    return all(
        amount <= max(0, most[name] - used.get(name, 0)) for name, amount in ask.items() if amount and name in most
    )


def pruned(amounts: Mapping[str, int]) -> Amounts:
    """Without zeros, in order of the names."""
    return {name: amounts[name] for name in sorted(amounts) if amounts[name]}
