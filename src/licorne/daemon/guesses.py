"""Who is refused is told in the log, and who guesses tokens is slowed down.

Where several wrong tokens came from an address lately, a token from there is looked at only after a pause, be it right or
wrong: so there is nothing to be learned from how long an answer takes, or by giving up early. Only so many may wait at a
time; who is one more is refused without a look. That also slows down those who share the address and know the token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from .log import Log, no_log

FREE = 5
"""Wrong tokens of an address without any pause."""
REMEMBERED_S = 60.0
"""Seconds without a wrong token after which the wrong tokens of an address are forgotten."""
PAUSE_S = 1.0
WAITING_MAX = 20
"""Tokens of an address that wait to be looked at, at most: so many guesses it has in a second."""
ADDRESSES_MAX = 10_000
"""Addresses that are remembered; the one that was refused first is forgotten."""
LINE_EVERY_S = 1.0
"""An address has a line in the log, with the number of refusals, once in so long."""


class _Address:
    """What is known of an address."""

    def __init__(self) -> None:
        self.wrong = 0
        self.last_s = 0.0
        self.waiting = 0
        self.line_s = 0.0
        self.untold = 0


class Guesses:
    """Refusals by address. `clock`: seconds."""

    def __init__(
        self, log: Log | None = None, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log or no_log()
        self._pause_s = pause_s
        self._clock = clock
        self._addresses: dict[str, _Address] = {}

    async def pause(self, address: str) -> bool:
        """Wait before a token from there is looked at, if wrong ones came from there; False: it must not be looked at."""
        known = self._addresses.get(address)
        if known is None or known.wrong < FREE:
            return True
        if self._clock() - known.last_s >= REMEMBERED_S:
            known.wrong = 0
            return True
        if known.waiting >= WAITING_MAX:
            self.refused(address, "too many wrong tokens")
            return False
        known.waiting += 1
        try:
            await asyncio.sleep(self._pause_s)
        finally:
            known.waiting -= 1
        return True

    def refused(self, address: str, reason: str, *, wrong: bool = False) -> None:
        """A request from there was refused. `wrong`: it had a token that nobody knows."""
        now = self._clock()
        known = self._addresses.pop(address, None)
        if known is None:
            known = _Address()
            known.line_s = now - LINE_EVERY_S
            if len(self._addresses) >= ADDRESSES_MAX:
                del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = known
        if wrong:
            known.wrong = 1 if now - known.last_s >= REMEMBERED_S else known.wrong + 1
            known.last_s = now
        known.untold += 1
        if now - known.line_s >= LINE_EVERY_S:
            self._log.warning("access refused", peer=address[:80], reason=reason, refusals=known.untold)
            known.line_s, known.untold = now, 0


__all__ = ["Guesses"]
