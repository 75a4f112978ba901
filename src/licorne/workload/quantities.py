"""Amounts and durations in readable units."""

from __future__ import annotations

from collections.abc import Mapping

from licorne.core.constants import SUM_MAX

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DAY_S, HOUR_S, _MINUTE_S = 86_400, 3_600, 60


def amount(resource: str, value: float) -> str:
    """Format an amount in the usual unit of its resource: cores, binary multiples of bytes, or a plain number."""
    if resource == "vcore":
        cores = _short(value / 1000)
        return f"{cores} core" if cores == "1" else f"{cores} cores"
    if resource == "memory":
        power = 0
        while abs(value) >= 1024 and power < len(_BINARY) - 1:
            value /= 1024
            power += 1
        return f"{_short(value)} {_BINARY[power]}B"
    return _short(value)


def bounded(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return the amounts without those of `SUM_MAX`, which say that a node, or the cluster, does not limit a type, such as devices."""
    return {name: amount for name, amount in amounts.items() if amount < SUM_MAX}


def _short(value: float) -> str:
    """Format a number: without decimals if it is whole or at least 1000, otherwise with one, or with its first digit."""
    if 0 < abs(value) < 0.1:
        return f"{value:.1g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.1f}"


def duration(seconds: float) -> str:
    """Format a duration, given in seconds, in its two largest units."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    if whole < _DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // _MINUTE_S} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // HOUR_S} h"
