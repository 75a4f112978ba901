"""Logging refused clients, and slowing down those that guess tokens.

After several wrong tokens from an address within a short time, a token from there is checked only after a pause,
whether it is right or wrong: so a client learns nothing from the time that an answer takes, and nothing by giving up
early. The number of requests in such a pause is limited for each address; a further one is refused without a check. The
price is that clients with the right token are slowed down too, if they share the address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from .log import Log, no_log

FREE = 5
"""Wrong tokens of an address before the first pause."""
REMEMBERED_S = 60.0
"""Seconds without a wrong token after which the count of an address begins anew."""
PAUSE_S = 1.0
WAITING_MAX = 20
"""Requests of an address in the pause at the same time, at most: with `PAUSE_S`, also its guesses a second."""
ADDRESSES_MAX = 10_000
"""Addresses that are remembered; beyond it, the one whose last refusal is the oldest is dropped."""
LINE_EVERY_S = 1.0
"""Shortest time between two lines in the log about an address; a line has the number of refusals since the last one."""


class _Address:
    """The recent refusals of an address."""

    def __init__(self) -> None:
        self.wrong = 0  # tokens
        self.last_s = 0.0  # when the last wrong token came
        self.waiting = 0  # requests in the pause
        self.line_s = 0.0  # when the last line was logged
        self.untold = 0  # refusals since that line


class Guesses:
    """The refusals by address. `pause_s`: the pause before a token is checked; `clock`: seconds, from any start."""

    def __init__(
        self, log: Log | None = None, *, pause_s: float = PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log or no_log()
        self._pause_s = pause_s
        self._clock = clock
        self._addresses: dict[str, _Address] = {}

    async def pause(self, address: str) -> bool:
        """Wait before a token of this address is checked, if wrong ones came from it; False: refuse without a check."""
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
        """Note that a request of this address was refused. `wrong`: because of a wrong token, not of a missing one."""
        now = self._clock()
        known = self._addresses.pop(address, None)
        if known is None:
            known = _Address()
            known.line_s = now - LINE_EVERY_S
            if len(self._addresses) >= ADDRESSES_MAX:
                del self._addresses[next(iter(self._addresses))]
        self._addresses[address] = known  # at the end: the first address is the one refused the longest time ago
        if wrong:
            known.wrong = 1 if now - known.last_s >= REMEMBERED_S else known.wrong + 1
            known.last_s = now
        known.untold += 1
        if now - known.line_s >= LINE_EVERY_S:
            self._log.warning("access refused", peer=address[:80], reason=reason, refusals=known.untold)
            known.line_s, known.untold = now, 0
