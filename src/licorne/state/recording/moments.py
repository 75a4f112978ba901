"""Times of a recording as people write them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from licorne.core.base.states import SECOND_NS


def parse_moment(text: str) -> int:
    """Return a time as nanoseconds since 1970: ISO 8601, in UTC unless it says otherwise, or a number of seconds.

    Raises:
        ValueError: it is no such time.
    """
    try:
        if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,9})?", text):
            return int(Decimal(text) * SECOND_NS)
        at = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            "is no time; give one like 2026-11-03T14:00 (UTC), 2026-11-03T14:00+02:00, or seconds since 1970"
        ) from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)
    since = at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


def written(time_ns: int) -> str:
    """Return a time as a text in UTC, to the millisecond."""
    at = dt.datetime.fromtimestamp(time_ns // SECOND_NS, dt.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ns % SECOND_NS // 1_000_000:03d}Z"
