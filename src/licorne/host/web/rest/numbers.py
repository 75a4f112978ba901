"""Parse numbers of a query. Errors have the original's wording."""

from __future__ import annotations

from .errors import refuse

_MOST = (1 << 64) - 1


def parse_uint(text: str, default: int) -> int:
    """Parse an unsigned 64-bit integer; an empty text means the default.

    Raises:
        RestError: 400, the text is no such number.
    """
    if not text:
        return default
    shown = text[:80]
    if not (text.isascii() and text.isdigit()):
        refuse(400, f'strconv.ParseUint: parsing "{shown}": invalid syntax')
    if len(text.lstrip("0")) > 20 or int(text) > _MOST:
        refuse(400, f'strconv.ParseUint: parsing "{shown}": value out of range')
    return int(text)
