"""Recordings on the command line: how a moment of one is chosen."""

from __future__ import annotations

from licorne.cli.common import Argument, UsageError
from licorne.state.recording.moments import parse_moment


class Moment(Argument, shown="TIME"):
    """A time, as `moment_ns` reads it."""

    __slots__ = ()


def moment_ns(text: str, option: str = "--at") -> int:
    """Return a time, given with `option`, as nanoseconds since 1970 (`parse_moment`). Raises UsageError: it is no time."""
    try:
        return parse_moment(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
