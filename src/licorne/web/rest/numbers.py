"""Numbers of queries, refused in the words of the original."""

from __future__ import annotations

from .errors import refuse

_MOST = (1 << 64) - 1


def parse_uint(text: str, default: int) -> int:
    """A number of 64 bits without a sign; the default if nothing is there.

    Raises:
        RestError: 400, it is no such number.
    """
    if not text:
        return default
    shown = text[:80]
    if not (text.isascii() and text.isdigit()):
        refuse(400, f'strconv.ParseUint: parsing "{shown}": invalid syntax')
    if len(text.lstrip("0")) > 20 or int(text) > _MOST:
        refuse(400, f'strconv.ParseUint: parsing "{shown}": value out of range')
    return int(text)
