"""Times that are given as options: a number of seconds, or a duration like 1m30s, as settings have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

from cyclopts import Parameter

from licorne.config.properties import parse_duration_ns


class _Word(Protocol):
    """A word of the command line, as the parser's library hands it to a converter."""

    value: str


def _seconds(_: object, words: Sequence[_Word]) -> float:
    """Return the seconds that an option's word, such as `90` or `1m30s`, stands for. Raises ValueError: it is neither."""
    text = words[0].value
    nanoseconds = parse_duration_ns(text)
    try:
        value = float(text) if nanoseconds is None else nanoseconds / 1e9
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text}: give seconds, like 90, or a duration, like 1m30s or 168h")
    return value


DURATION: Final = Parameter(converter=_seconds, metavar="DURATION")
"""Annotates an option whose value is a time in seconds. The form of durations is docs/spec/config.md, section 12."""
