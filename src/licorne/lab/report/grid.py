"""Division of virtual time into bins, and means of sampled values over them, in memory that does not grow with the time.

The state is sampled once in each bin, at a moment that moves through the bins (the fractional parts of multiples of the
golden ratio). Samples at equal distances would all see the same side of whatever repeats with them: of jobs that come on the
hour, a sample on the hour sees each begin. When the bins are used up, neighbours are joined and new ones are twice as wide.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

FINE_MAX = 2048
"""Most bins at a time; a joined bin holds several samples."""
SHOWN_MAX = 300
"""Most bins of a result: some neighbouring ones are joined once more."""
_GOLDEN = 0.6180339887498949


class Binned:
    """The sums and numbers of samples of one value, by bin."""

    __slots__ = ("counts", "sums")

    def __init__(self) -> None:
        self.sums = array("d")
        self.counts = array("q")

    def add(self, at: int, value: float) -> None:
        """Add a sample to a bin."""
        missing = at + 1 - len(self.sums)
        if missing > 0:
            self.sums.extend([0.0] * missing)
            self.counts.extend([0] * missing)
        self.sums[at] += value
        self.counts[at] += 1

    def zeros_of(self, other: Binned) -> None:
        """Take a sample of 0 for each sample of another value, in place of what it has."""
        self.counts = array("q", other.counts)
        self.sums = array("d", bytes(self.counts.itemsize * len(self.counts)))

    def join(self, number: int) -> None:
        """Join each `number` neighbouring bins."""
        self.sums = array("d", (sum(self.sums[at : at + number]) for at in range(0, len(self.sums), number)))
        self.counts = array("q", (sum(self.counts[at : at + number]) for at in range(0, len(self.counts), number)))

    def means(self, bins: int) -> list[float | None]:
        """Return the mean of each bin, None for bins without a sample."""
        found = [
            round(total / count, 6) if count else None for total, count in zip(self.sums, self.counts, strict=True)
        ]
        return (found + [None] * (bins - len(found)))[:bins]


class Grid:
    """Bins from `start_ns` on, up to `end_ns` (None: without end), and the moments at which the state is sampled.

    `horizon_ns` is when the simulation is expected to end: up to there half of the bins are used.
    """

    def __init__(self, start_ns: int, end_ns: int | None, horizon_ns: int) -> None:
        self.start_ns = start_ns
        self.end_ns = end_ns
        if end_ns is not None:
            horizon_ns = min(horizon_ns, end_ns)
        self.width_ns = max(1, -(-(horizon_ns - start_ns) // (FINE_MAX // 2)))
        self.series: list[Binned] = []
        self.samples = 0
        self._bin = 0
        self.next_ns = self._moment(0)

    def new(self) -> Binned:
        """Return a new value that is binned."""
        series = Binned()
        self.series.append(series)
        return series

    def _moment(self, at: int) -> int:
        return self.start_ns + at * self.width_ns + int(self.width_ns * ((at + 1) * _GOLDEN % 1))

    def take(self, until_ns: int) -> Iterator[int]:
        """Yield the bins of the samples that are due before `until_ns`."""
        if self.end_ns is not None:
            until_ns = min(until_ns, self.end_ns)
        while self.next_ns < until_ns:
            if self._bin == FINE_MAX:
                for series in self.series:
                    series.join(2)
                self.width_ns *= 2
                self._bin //= 2
                self.next_ns = self._moment(self._bin)
                continue
            at = self._bin
            self._bin += 1
            self.next_ns = self._moment(self._bin)
            self.samples += 1
            yield at

    def finish(self, now_ns: int) -> int:
        """Join bins to those of a result, and return their number up to this time, which is at least 1."""
        end_ns = now_ns if self.end_ns is None else min(now_ns, self.end_ns)
        bins = max(1, -(-(end_ns - self.start_ns) // self.width_ns))
        joined = -(-bins // SHOWN_MAX)
        for series in self.series:
            series.join(joined)
        self.width_ns *= joined
        return -(-bins // joined)
