"""The types of values of settings: each parses a text, or states the rule that the text breaks.

Truth values and durations are those of the original's settings (docs/spec/config.md, section 12), which are Go's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec

from licorne.config.properties import parse_duration_ns, parse_int32

from .states import SECOND_NS, TIME_MAX_NS

MOST = 1 << 31
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_PLAIN = re.compile(r"[0-9]{1,19}")
LEVELS = {
    "debug": 10,
    "info": 20,
    "warn": 30,
    "warning": 30,
    "error": 40,
    "dpanic": 50,
    "panic": 50,
    "fatal": 50,
}
"""The names of log levels, the original's and Python's, with the numbers of Python's `logging`."""
_LEVEL_NUMBERS = dict(zip(("-1", "0", "1", "2", "3", "4", "5"), (10, 20, 30, 40, 50, 50, 50), strict=True))


class ValueType(msgspec.Struct, frozen=True):
    """A type of value. `read` returns the value of a text, or None if the text breaks the `rule`.

    `unset`: a value that follows the rule and means the default; None if there is none.
    """

    name: str
    rule: str
    read: Callable[[str], Any]
    unset: Any = None


def parse_flag(text: str) -> bool | None:
    """Return the truth value that a text stands for in Go; None if it stands for none."""
    return text in _TRUE if text in _TRUE + _FALSE else None


def _count(text: str) -> int | None:
    return int(text) if _PLAIN.fullmatch(text) and 0 < int(text) <= MOST else None


def _natural(text: str) -> int | None:
    return int(text) if _PLAIN.fullmatch(text) and int(text) < 1 << 63 else None


def capacity(most: int) -> ValueType:
    """Return the type of numbers of which a larger one counts as `most`, and 0 means the default."""

    def read(text: str) -> int | None:
        value = _natural(text)
        return None if value is None else min(value, most)

    return ValueType("number", NATURAL.rule, read, unset=0)


def _seconds(text: str) -> float | None:
    nanoseconds = parse_duration_ns(text)
    try:
        value = float(text) if nanoseconds is None else nanoseconds / 1e9
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value <= MOST else None


def _interval(text: str) -> float | None:
    nanoseconds = parse_duration_ns(text)
    return None if nanoseconds is None else nanoseconds / SECOND_NS


def _age(text: str) -> int | None:
    nanoseconds = parse_duration_ns(text)
    return None if nanoseconds is None or nanoseconds < 0 else min(nanoseconds, TIME_MAX_NS)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part for item in text.split(",") if (part := item.strip()))


def _named_files(text: str) -> dict[str, str] | None:
    named = [item.partition("=") for item in _list(text)]
    if not all(name.strip() and equals and file.strip() for name, equals, file in named):
        return None
    return {name.strip(): file.strip() for name, _, file in named}


def choice(*words: str) -> ValueType:
    """Return the type whose values are these words."""
    listed = f"{', '.join(words[:-1])} or {words[-1]}"
    return ValueType(listed, f"must be {listed}", lambda text: text if text in words else None)


def parse_level(text: str) -> int | None:
    """Return the level that a text names: -1 (debug) to 5 (fatal), or a name in any case; None for none of these."""
    return _LEVEL_NUMBERS.get(text, LEVELS.get(text.lower()))


def _any(text: str) -> str:
    return text


TEXT = ValueType("text", "must be a text", _any)
PATH = ValueType("path", "must be a path", _any)
FLAG = ValueType("true or false", "must be true or false", parse_flag)
COUNT = ValueType("number", f"must be a whole number from 1 to {MOST}", _count)
NATURAL = ValueType("number", "must be a whole number, 0 or more", _natural)
INT32 = ValueType("number", "must be an integer of 32 bits", parse_int32)
SECONDS = ValueType(
    "seconds", f"must be more than 0 and at most {MOST}, in seconds, or a duration like 1m30s", _seconds
)
DURATION = ValueType("duration", "must be a duration like 2s or 1m30s", parse_duration_ns)
INTERVAL = ValueType("duration", DURATION.rule, _interval)
"""The values are seconds."""
DELAY = ValueType("duration", DURATION.rule, _age)
"""The values are nanoseconds, 0 to `TIME_MAX_NS`, as which a longer time counts."""
AGE = ValueType("duration", "must be a duration like 30m, or 0", _age)
"""The values are those of `DELAY`."""
LIST = ValueType("list", "must be a list, with commas between", _list)
NAMED_FILES = ValueType("name=path", "is written NAME=FILE, with commas between several", _named_files)
LEVEL = ValueType("level", "must be debug, info, warn, error, dpanic, panic, fatal, or -1 to 5", parse_level)

__all__ = [
    "AGE", "COUNT", "DELAY", "DURATION", "FLAG", "INT32", "INTERVAL", "LEVEL", "LEVELS", "LIST", "MOST", "NAMED_FILES",
    "NATURAL", "PATH", "SECONDS", "TEXT", "ValueType", "capacity", "choice", "parse_flag", "parse_level",
]  # fmt: skip
