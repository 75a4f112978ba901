"""Which labels a selector means (`LabelSelector`, not the one of nodes, which knows numbers too)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeGuard

from licorne.kube.objects.meta import LabelSelector, LabelSelectorRequirement

OF_VALUES: Final = ("In", "NotIn")
OPERATORS: Final = (*OF_VALUES, "Exists", "DoesNotExist")


def is_selector(selector: LabelSelector | None) -> TypeGuard[LabelSelector]:
    """Return whether a selector is there, of known operators, each with values that fit it."""
    return selector is not None and all(
        one.key and one.operator in OPERATORS and bool(one.values) is (one.operator in OF_VALUES)
        for one in selector.match_expressions or ()
    )


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector means an object with these labels: none, or one that is none, means nothing, an empty one everything."""
    if not is_selector(selector):
        return False
    for key, value in (selector.match_labels or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(one, labels) for one in selector.match_expressions or ())


def _holds(one: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    match one.operator:
        case "In":
            return labels.get(one.key) in (one.values or ())
        case "NotIn":
            return labels.get(one.key) not in (one.values or ())
        case "Exists":
            return one.key in labels
    return one.key not in labels
