"""Quantities of Kubernetes: decimal texts with a suffix or an exponent, such as `500m`, `1.5Gi`, `1e3`.

They differ from those of a queue configuration (`quantity`), which have neither a point nor an exponent.
The scheduler counts whole units, thousandths for processors; a part of a unit is rounded up, as kube-scheduler does. What
is added up first and rounded then is counted exactly, in billionths, the smallest part that the API server knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from licorne.si.constants import VCORE

from .quantity import MAX_QUANTITY

_PATTERN: Final = re.compile(
    r"([+-]?)([0-9]{0,1000})(?:\.([0-9]{0,1000}))?(?:(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?[0-9]{1,3}))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
CPU: Final = "cpu"
NANO: Final = 10**9


class QuantityError(ValueError):
    """The error for a text that is not a quantity, or one that is too large to be counted."""

    too_large = False


def parse_quantity(text: str, *, milli: bool = False) -> int:
    """Return the whole number that a quantity means, rounded away from zero; with `milli` in thousandths.

    >>> parse_quantity("1.5Gi"), parse_quantity("100m"), parse_quantity("100m", milli=True), parse_quantity("1e3")
    (1610612736, 1, 100, 1000)

    Raises:
        QuantityError: the text is no quantity, or its amount is above 2**63 - 1.
    """
    nano = parse_nano(text)
    return -rounded(-nano, milli=milli) if nano < 0 else rounded(nano, milli=milli)


def rounded(nano: int, *, milli: bool = False) -> int:
    """Return an amount in billionths, at least 0, in whole units, or in thousandths with `milli`, rounded up.

    Raises:
        QuantityError: the amount is above 2**63 - 1.
    """
    amount = -(-nano // (NANO // 1000 if milli else NANO))
    if amount > MAX_QUANTITY:
        error = QuantityError("it is too large: at most 2**63 - 1 can be counted")
        error.too_large = True
        raise error
    return amount


@lru_cache(maxsize=4096)
def parse_nano(text: str) -> int:
    """Return the amount that a quantity means in billionths, rounded away from zero.

    >>> parse_nano("1.5"), parse_nano("100m"), parse_nano("2Ki")
    (1500000000, 100000000, 2048000000000)

    Raises:
        QuantityError: the text is no quantity, or its amount is far above what can be counted.
    """
    match = _PATTERN.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise QuantityError(f"{text[:100]!r} is not a quantity such as 500m, 2, 1.5 or 4Gi")
    sign, whole, part, suffix, exponent = match.groups()
    digits = int((whole or "") + (part or ""))
    tens = _DECIMAL.get(suffix or "", 0) + int(exponent or 0) - len(part or "") + 9
    digits <<= _BINARY.get(suffix or "", 0)
    nano: int = digits * 10**tens if tens >= 0 else -(-digits // 10**-tens)
    return -nano if sign == "-" else nano


def read_amounts(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the amounts of a map of quantities by the scheduler's names: `cpu` is `vcore`, in thousandths.

    Raises:
        QuantityError: a quantity cannot be read, or is negative; the text names the resource.
    """
    return round_up(read_exact(quantities))


def read_exact(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the amounts of a map of quantities in billionths, by their own names.

    Raises:
        QuantityError: a quantity cannot be read, or is negative; the text names the resource.
    """
    amounts = {}
    for name, value in (quantities or {}).items():
        try:
            nano = parse_nano(value if isinstance(value, str) else _text(value))
        except QuantityError as error:
            raise QuantityError(f"{name[:100]}: {error}") from None
        if nano < 0:
            raise QuantityError(f"{name[:100]}: {str(value)[:100]!r} is negative")
        amounts[name] = nano
    return amounts


def round_up(exact: Mapping[str, int]) -> dict[str, int]:
    """Return amounts in billionths by the scheduler's names, rounded up: `cpu` is `vcore`, in thousandths.

    Raises:
        QuantityError: an amount is too large; the text names the resource.
    """
    amounts = {}
    for name, nano in exact.items():
        milli = name == CPU
        try:
            amounts[VCORE if milli else name] = rounded(nano, milli=milli)
        except QuantityError as error:
            raise QuantityError(f"{name[:100]}: {error}") from None
    return amounts


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(f"{str(value)[:100]!r} is neither a text nor a number")
    return format(value, "f") if isinstance(value, float) else str(value)
