"""Recordings on the command line: how a moment of one is chosen."""

from __future__ import annotations

import datetime as dt

from licorne.cli.common import Argument, UsageError
from licorne.core.base.states import SECOND_NS
from licorne.recording.moments import parse_moment


class Moment(Argument, shown="TIME"):
    """A time, as `moment_ns` reads it."""

    __slots__ = ()


def moment_ns(text: str, option: str = "--at") -> int:
    """Return a time, given with `option`, as nanoseconds since 1970 (`parse_moment`). Raises UsageError: it is no time."""
    try:
        return parse_moment(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def written(time_ns: int) -> str:
    """Return a time as a text in UTC, to the millisecond."""
    at = dt.datetime.fromtimestamp(time_ns // SECOND_NS, dt.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ns % SECOND_NS // 1_000_000:03d}Z"


__all__ = ["Moment", "moment_ns", "written"]
