"""How long to wait before something that has failed is tried again."""

from __future__ import annotations

import random
from typing import NamedTuple

DOUBLINGS_MAX = 60
"""The bound on doublings, so that no number of failures overflows."""


class Backoff(NamedTuple):
    """Exponential backoff: a wait that doubles with each failure in a row, up to a bound.

    - `first_s`, `longest_s`: the wait after the first failure, and the longest one, in seconds, before jitter.
    - `jitter`: the range of the random factor that keeps clients which failed together from trying again together.
    """

    first_s: float
    longest_s: float
    jitter: tuple[float, float] = (1.0, 1.0)

    def wait_s(self, failures: int, rng: random.Random | None = None, asked_s: float | None = None) -> float:
        """Return the seconds to wait after so many failures in a row, one or more.

        Without `rng` there is no jitter. The wait is never shorter than `asked_s`, which the server has asked for.
        """
        wait_s: float = min(self.first_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX), self.longest_s)
        if rng is not None:
            wait_s *= rng.uniform(*self.jitter)
        return max(wait_s, asked_s or 0.0)
