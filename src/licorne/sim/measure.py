"""Observations of a simulation: waiting times, and the usage of resources over time.

Amounts are read from the core, never counted a second time here: after each moment of virtual time the changed queues are
read, and the value counts for as long as it lasted. So states that lasted no time count neither for means nor for peaks.
The exception is a workload of version 1, where no time passes at all: there the last state counts.

Means over time are sums of integers divided once, at the end; percentiles are nearest-rank, so each is a value that
occurred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

NANOSECONDS = 1_000_000_000
Number = TypeVar("Number", int, float)


def seconds(nanoseconds: float) -> float:
    """Convert to seconds, rounded to microseconds: finer digits say nothing to a reader, such as those of 29196.000000002.

    Whole microseconds need no rounding: the quotient is already the float nearest to them. It would take four times as long.
    """
    quotient = nanoseconds / NANOSECONDS
    return quotient if not nanoseconds % 1000 else round(quotient, 6)


class Gauge:
    """An amount of each resource type over time: its integral and its peak."""

    __slots__ = ("_integrals", "_peaks", "_since_ns", "_value")

    def __init__(self, now_ns: int) -> None:
        self._since_ns = now_ns
        self._value: dict[str, int] = {}
        self._integrals: dict[str, int] = {}  # of each type that was ever above zero, as are the peaks
        self._peaks: dict[str, int] = {}

    def set(self, now_ns: int, value: dict[str, int]) -> None:
        """Set the amounts from this time on."""
        lasted_ns = now_ns - self._since_ns
        if lasted_ns > 0:
            self._since_ns = now_ns
            integrals, peaks = self._integrals, self._peaks
            for name, amount in self._value.items():
                if amount:
                    if name in integrals:
                        integrals[name] += amount * lasted_ns
                        if amount > peaks[name]:  # noqa: PLR1730  max() takes longer, and this is done for each pod
                            peaks[name] = amount
                    else:
                        integrals[name], peaks[name] = amount * lasted_ns, amount
        self._value = value

    def last(self, name: str) -> int:
        """Return the amount that was set last."""
        return self._value.get(name, 0)

    def over(self, start_ns: int, end_ns: int) -> dict[str, Level]:
        """Return mean over the span and peak of each type that was ever above zero, in order of name."""
        self.set(end_ns, self._value)
        span_ns = end_ns - start_ns
        levels: dict[str, Level] = {}
        for name in sorted(self._value.keys() | self._integrals.keys()):
            last = self._value.get(name, 0)
            mean = self._integrals.get(name, 0) / span_ns if span_ns > 0 else float(last)
            peak = self._peaks.get(name, 0) if span_ns > 0 else last
            if peak or last:
                levels[name] = Level(mean=mean, peak=peak)
        return levels


class Level(msgspec.Struct, frozen=True):
    """Mean and peak of an amount over time."""

    mean: float
    peak: int


class Share:
    """Usage of the cluster: used amount over capacity, for each type, as both change."""

    def __init__(self, now_ns: int) -> None:
        self.used = Gauge(now_ns)
        self.capacity = Gauge(now_ns)
        self._peak: dict[str, float] = {}
        self._used: dict[str, int] = {}
        self._most: dict[str, int] = {}  # most that was used for a while since the capacity changed
        self._since_ns = now_ns
        self._capacity: dict[str, int] = {}

    def set(self, now_ns: int, used: dict[str, int], capacity: dict[str, int]) -> None:
        """Set usage and capacity from this time on."""
        self._settle(now_ns)
        self.used.set(now_ns, used)
        self._used = used
        if capacity is not self._capacity:
            self._divide()
            self._capacity = capacity
            self.capacity.set(now_ns, capacity)

    def _settle(self, now_ns: int) -> None:
        if now_ns > self._since_ns:
            self._since_ns = now_ns
            most = self._most
            for name, amount in self._used.items():
                if name not in most or amount > most[name]:
                    most[name] = amount

    def _divide(self) -> None:
        """Note the highest shares of this capacity: those of the highest amounts, so one division for each type is enough."""
        for name, amount in self._capacity.items():
            if amount > 0:
                self._peak[name] = max(self._peak.get(name, 0.0), self._most.get(name, 0) / amount)
        self._most.clear()

    def peak(self, name: str, *, lasting: bool) -> float:
        """Return the highest share that lasted; if no time passed at all (not `lasting`), the last one."""
        if lasting:
            return self._peak.get(name, 0.0)
        capacity = self._capacity.get(name, 0)
        return self._used.get(name, 0) / capacity if capacity > 0 else 0.0

    def finish(self, now_ns: int) -> None:
        """Count the last state up to this time."""
        self._settle(now_ns)
        self._divide()


def percentiles(values: Iterable[Number], ranks: Sequence[int]) -> list[Number]:
    """Return the nearest-rank values for percentages from 1 to 100; zeros if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return [0] * len(ranks)
    return [ordered[-(-len(ordered) * rank // 100) - 1] for rank in ranks]
