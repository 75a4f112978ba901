"""Amounts of resources over time: means and peaks of what is used and of what there is.

Amounts are read from the core, never counted a second time here: after each moment of virtual time the changed queues are
read (`licorne.sim.use`), and the value counts for as long as it lasted. So states that lasted no time count neither for means
nor for peaks. The exception is a workload of version 1, where no time passes at all: there the last state counts.

Means over time are sums of integers divided once, at the end.

The core may give the number of a resource type to another type. So vectors come with `names`, those of the types at that time,
a list that nobody changes any more.
"""

from __future__ import annotations

import msgspec

from licorne._plain import cython
from licorne.core.amounts.vectors import Vec


class Level(msgspec.Struct, frozen=True):
    """Mean and peak of an amount over time."""

    mean: float
    peak: int


@cython.cclass
class Gauge:
    """An amount of each resource type over time: its integral and its peak."""

    _since_ns: int
    _value: Vec
    _names: list[str]
    _integrals: dict[str, int]  # of each type that was ever above zero, as are the peaks
    _peaks: dict[str, int]

    def __init__(self, now_ns: int) -> None:
        self._since_ns = now_ns
        self._value = Vec()
        self._names = []
        self._integrals = {}
        self._peaks = {}

    @cython.ccall
    def set(self, now_ns: int, value: Vec, names: list[str]) -> None:
        """Set the amounts from this time on."""
        self._settle(now_ns)
        self._value.copy_from(value)
        self._names = names

    @cython.cfunc
    def _settle(self, now_ns: int) -> cython.void:
        """Count the amounts up to this time."""
        d: cython.Py_ssize_t
        lasted_ns: int = now_ns - self._since_ns  # as are amounts here, of Python: the product has more than 64 bits
        if lasted_ns <= 0:
            return
        self._since_ns = now_ns
        value: Vec = self._value
        for d in range(value.n):
            if value.v[d] == 0 or value.v[d] == value.fill:
                continue
            name: str = self._names[d]
            amount: int = value.v[d]
            if name in self._integrals:
                self._integrals[name] += amount * lasted_ns
                if amount > self._peaks[name]:  # noqa: PLR1730  max() takes longer, and this is done for each pod
                    self._peaks[name] = amount
            else:
                self._integrals[name] = amount * lasted_ns
                self._peaks[name] = amount

    def present(self) -> dict[str, int]:
        """Return the amounts that were set last; zeros, and types without an amount, left out."""
        values = zip(self._names, self._value.values(), strict=False)
        return {name: amount for name, amount in values if amount not in (0, self._value.fill)}

    def last(self, name: str) -> int:
        """Return the amount of a type that was set last."""
        return self.present().get(name, 0)

    def over(self, start_ns: int, end_ns: int) -> dict[str, Level]:
        """Return mean over the span and peak of each type that was ever above zero, in order of name."""
        self._settle(end_ns)
        span_ns = end_ns - start_ns
        value = self.present()
        levels: dict[str, Level] = {}
        for name in sorted(value.keys() | self._integrals.keys()):
            last = value.get(name, 0)
            mean = self._integrals.get(name, 0) / span_ns if span_ns > 0 else float(last)
            peak = self._peaks.get(name, 0) if span_ns > 0 else last
            if peak or last:
                levels[name] = Level(mean=mean, peak=peak)
        return levels


@cython.cclass
class Share:
    """Usage of the cluster: used amount over capacity, for each type, as both change."""

    used: Gauge
    capacity: Gauge
    _peak: dict[str, float]
    _used: Vec
    _names: list[str]
    _most: dict[str, int]  # most that was used for a while since the capacity changed
    _since_ns: int

    def __init__(self, now_ns: int) -> None:
        self.used = Gauge(now_ns)
        self.capacity = Gauge(now_ns)
        self._peak = {}
        self._used = Vec()
        self._names = []
        self._most = {}
        self._since_ns = now_ns

    @cython.ccall
    def set(self, now_ns: int, used: Vec, names: list[str]) -> None:
        """Set the usage from this time on."""
        self._settle(now_ns)
        self.used.set(now_ns, used, names)
        self._used.copy_from(used)
        self._names = names

    def resize(self, now_ns: int, capacity: Vec, names: list[str]) -> None:
        """Set the capacity from this time on; the usage is to be set after it."""
        self._settle(now_ns)
        self._divide()
        self.capacity.set(now_ns, capacity, names)

    @cython.cfunc
    def _settle(self, now_ns: int) -> cython.void:
        d: cython.Py_ssize_t
        if now_ns <= self._since_ns:
            return
        self._since_ns = now_ns
        for d in range(self._used.n):
            if self._used.v[d] != 0:
                name: str = self._names[d]
                amount: int = self._used.v[d]
                if name not in self._most or amount > self._most[name]:
                    self._most[name] = amount

    def _divide(self) -> None:
        """Note the highest shares of this capacity: those of the highest amounts, so one division for each type is enough."""
        for name, amount in self.capacity.present().items():
            if amount > 0:
                self._peak[name] = max(self._peak.get(name, 0.0), self._most.get(name, 0) / amount)
        self._most.clear()

    def peak(self, name: str, *, lasting: bool) -> float:
        """Return the highest share that lasted; if no time passed at all (not `lasting`), the last one."""
        if lasting:
            return self._peak.get(name, 0.0)
        capacity = self.capacity.last(name)
        return self.used.last(name) / capacity if capacity > 0 else 0.0

    def finish(self, now_ns: int) -> None:
        """Count the last state up to this time."""
        self._settle(now_ns)
        self._divide()
