"""Parses quantities of resources as people write them: digits and a unit, never a sign, a point or an exponent.

All accounting relies on quantities being whole numbers (docs/spec/design.md, rule 7), so a text that is not exactly
a whole number in the base unit is refused instead of rounded. The one unit below one, `m`, exists for `vcore` alone,
because that type is stored in millicores (docs/spec/config.md, section 4).
"""

from __future__ import annotations

import re
from typing import Final

MAX_QUANTITY: Final = 2**63 - 1

_PATTERN: Final = re.compile(r"([0-9]+)[\t\n\f\r ]*([mkKMGTPE]i?)?")
FACTORS: Final = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_LONGEST_DIGITS: Final = len(str(MAX_QUANTITY))

# The characters that Go's unicode.IsSpace takes for a blank. Python's str.strip() would also take U+001C to U+001F.
BLANKS: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)


_SUFFIXES: Final = "k, M, G, T, P, E or Ki, Mi, Gi, Ti, Pi, Ei"
_BYTES: Final = re.compile(r"([0-9]+)\s*([kKMGTPE])(i?)[bB]")
_DECIMAL: Final = re.compile(r"([0-9]*)\.([0-9]{1,3})")


class QueueQuantityError(ValueError):
    """The error for a text that is not a quantity. `rule` is the identifier of the rule that it breaks."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def parse_queue_quantity(text: str, resource_type: str) -> int:
    """Return the integer that `text` means: millicores if the type is `vcore`, else the plain number.

    >>> parse_queue_quantity("500m", "vcore"), parse_queue_quantity("10", "vcore"), parse_queue_quantity("4Gi", "memory")
    (500, 10000, 4294967296)

    Raises:
        QueueQuantityError: the text is outside the grammar, has a suffix that the type does not have, or a value above
            2**63 - 1.
    """
    match = _PATTERN.fullmatch(text.strip(BLANKS))
    if match is None:
        raise QueueQuantityError("quantity-invalid", f"invalid quantity {_cut(text)!r}: {_remedy(text, resource_type)}")
    digits, suffix = match[1].lstrip("0"), match[2] or ""
    # The length is checked first, so that a number of a million digits is refused without being computed.
    number = int(digits or "0") if len(digits) <= _LONGEST_DIGITS else MAX_QUANTITY + 1
    millis = resource_type == "vcore"
    factor = 1 if suffix == "m" and millis else FACTORS.get(suffix, 0) * (1000 if millis else 1)
    if number * (factor or 1) > MAX_QUANTITY:
        raise QueueQuantityError(
            "quantity-overflow", f"invalid quantity {_cut(text)!r}: overflow, the value is above 2**63 - 1"
        )
    if not factor:
        raise QueueQuantityError(
            "quantity-suffix",
            f"invalid suffix {suffix!r} for resource type {resource_type!r}: thousandths are for vcore alone, "
            f"write a whole number, or one with {_SUFFIXES}",
        )
    return number * factor


def spoken(resource_type: str, amount: int) -> str:
    """Return an amount as a configuration says it: `2500m` or `3` of vcore, `10Gi` or `5G` of memory, else digits.

    >>> spoken("vcore", 2500), spoken("memory", 10 * 2**30), spoken("memory", 5 * 10**9), spoken("pods", 1000)
    ('2500m', '10Gi', '5G', '1000')
    """
    if resource_type == "vcore":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource_type != "memory" or amount == 0:
        return str(amount)
    best = max((suffix for suffix, factor in FACTORS.items() if amount % factor == 0), key=FACTORS.__getitem__)
    return f"{amount // FACTORS[best]}{best}"


def _remedy(text: str, resource_type: str) -> str:
    """Return what to write instead of a text that is no quantity."""
    stripped = text.strip(BLANKS)
    as_bytes = _BYTES.fullmatch(stripped)
    if as_bytes is not None:
        number, letter, binary = as_bytes.groups()
        decimal = "" if binary else f"{number}{'k' if letter == 'K' else letter} or "
        return f"the unit has no B, write {decimal}{number}{letter.upper()}i"
    fraction = _DECIMAL.fullmatch(stripped)
    if fraction is not None and resource_type == "vcore":
        return f"there is no decimal point, write {int((fraction[1] or '0') + fraction[2].ljust(3, '0'))}m"
    if stripped.startswith(("-", "+")):
        return "there is no sign; leave the resource out where it is not limited"
    return f"digits and at most one suffix are expected, {_SUFFIXES}"


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"
