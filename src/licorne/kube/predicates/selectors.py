"""Which labels a selector means (`LabelSelector`, not the one of nodes, which knows numbers too)."""

from __future__ import annotations

from collections.abc import Mapping

from licorne.kube.objects.meta import LabelSelector, LabelSelectorRequirement


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether a selector means an object with these labels: none means nothing, an empty one everything.

    A condition of an unknown operator, or with values that do not fit it, holds for nothing.
    """
    if selector is None:
        return False
    for key, value in (selector.match_labels or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(one, labels) for one in selector.match_expressions or ())


def _holds(one: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(one.key), one.values or ()
    match one.operator:
        case "In":
            return value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return not values and value is not None
        case "DoesNotExist":
            return not values and value is None
    return False
