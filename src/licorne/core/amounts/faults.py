"""The check of amounts in messages: none is negative, none larger than `SUM_MAX`, so that sums cannot overflow."""

from __future__ import annotations

from licorne.core.constants import SUM_MAX


def amounts_fault(amounts: dict[str, int] | None) -> str:
    """Return why these cannot be amounts of resources; empty if they can."""
    for name, amount in (amounts or {}).items():
        if amount < 0:
            return f"negative quantity {amount} of {name}"
        if amount > SUM_MAX:
            return f"quantity {amount} of {name} is larger than {SUM_MAX}"
    return ""
