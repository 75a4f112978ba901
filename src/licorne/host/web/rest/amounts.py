"""Computations that several REST objects need: amounts by name, headroom, percentages, durations as texts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from licorne.core.constants import UNLIMITED
from licorne.workload.quantities import bounded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from licorne.core.amounts.types import Types
    from licorne.core.amounts.vectors import Vec
    from licorne.core.queues.queue import Queue

_UNITS = ((3600 * 10**9, "h"), (60 * 10**9, "m"))
_SMALL = ((10**6, "ms"), (10**3, "\u00b5s"))


def by_name(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts sorted by name."""
    return dict(sorted(amounts.items()))


def limits(vec: Vec | None, types: Types) -> dict[str, int]:
    """Return a vector of limits as a map by name, without unlimited types; limits of zero are included."""
    if vec is None:
        return {}
    return by_name({types.names[d]: amount for d, amount in enumerate(vec.values()) if amount != UNLIMITED})


def percent(capacity: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Return the use of each type of the capacity in percent, rounded down; for a capacity of zero, 0 or 100."""
    found = {}
    for name, most in by_name(capacity).items():
        amount = used.get(name, 0)
        if most > 0:
            found[name] = amount * 100 // most
        else:
            found[name] = 100 if amount > 0 else 0
    return found


def used_percent(capacity: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Return the use of the capacity in percent, rounded down, for the types of which any is used."""
    return {name: share for name, share in percent(capacity, used).items() if used.get(name)}


def plain(number: float) -> int | float:
    """Return the number as the original writes it: an integral one without a fraction, `1` and not `1.0`."""
    return int(number) if abs(number) < 1 << 53 and number.is_integer() else number


def headroom(queue: Queue) -> dict[str, int]:
    """Return what is left under every max from this queue up to root (the size of the cluster); below zero where one was lowered."""
    found: dict[str, int] = {}
    for level in queue.lineage():
        maximum = level.max_resource()
        if not maximum:
            continue
        used = level.allocated_resource()
        for name, amount in bounded(maximum).items():
            left = amount - used.get(name, 0)
            found[name] = min(left, found.get(name, left))
    return by_name(found)


@lru_cache(maxsize=1_000)
def duration(length_ns: int) -> str:
    """Format a duration as the original does: `30s`, `1m30s`, `1h0m0s`, `1.5s`, `0s`.

    >>> duration(90 * 10**9), duration(0), duration(1_500_000)
    ('1m30s', '0s', '1.5ms')
    """
    if length_ns == 0:
        return "0s"
    sign, rest = ("-", -length_ns) if length_ns < 0 else ("", length_ns)
    if rest < 10**9:
        for unit, name in _SMALL:
            if rest >= unit:
                return f"{sign}{_decimal(rest, unit)}{name}"
        return f"{sign}{rest}ns"
    text = ""
    for unit, name in _UNITS:
        if rest >= unit or text:
            text += f"{rest // unit}{name}"
            rest %= unit
    return f"{sign}{text}{_decimal(rest, 10**9)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    digits = len(str(unit)) - 1
    fraction = f"{part:0{digits}d}".rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
