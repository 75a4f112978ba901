"""Rates of arrival over time, and the times of arrivals made of them.

A rate is a sequence of steps that repeats, each with a constant rate. A wave is made of 96 steps a period, with the rate in the
middle of each. So the number of arrivals that is expected up to any moment is a sum, and it is exact.

Arrivals are points of a process of rate 1, stretched by the rate: the n-th arrival is where the expected number has reached
the n-th point. A higher load moves all arrivals forward and changes nothing else of the first n applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

from licorne.workload.scenarios.document import Profile, Value
from licorne.workload.scenarios.draws import Source, cosine
from licorne.workload.scenarios.values import UNITS_US, rate, time_us
from licorne.workload.yaml_files.faults import DocumentError, Path, together

WAVE_STEPS: Final = 96
STEP_MIN_US: Final = 1_000_000
_DAY: Final = UNITS_US["d"]


class Rates(NamedTuple):
    """Steps that repeat: when each begins in the period, and its rate per microsecond. A constant rate is one step."""

    period_us: int
    begins_us: Sequence[int]
    rates: Sequence[float]

    def steps(self, start_us: int, end_us: int) -> Iterator[tuple[int, int, float]]:
        """Yield beginning, end and rate of each step from `start_us` to `end_us`."""
        ends = [*self.begins_us[1:], self.period_us]
        base = start_us - start_us % self.period_us
        while base < end_us:
            for begin, end, per_us in zip(self.begins_us, ends, self.rates, strict=True):
                first, last = max(base + begin, start_us), min(base + end, end_us)
                if first < last:
                    yield first, last, per_us
            base += self.period_us

    def expected(self, start_us: int, end_us: int) -> float:
        """Return the number of arrivals that is expected from `start_us` to `end_us`."""
        return sum((end - begin) * per_us for begin, end, per_us in self.steps(start_us, end_us))


def rates_of(given: Value | Profile, path: Path) -> Rates:
    """Return the steps of a rate or a profile.

    Raises:
        DocumentError, DocumentErrors: it is not usable.
    """
    if not isinstance(given, Profile):
        return Rates(_DAY, (0,), (rate(given, path),))
    if (given.mean is None) == (given.steps is None):
        raise DocumentError(path, "needs either mean, a rate that day, week or sine vary, or steps")
    if given.steps is not None:
        return _of_steps(given, path)
    assert given.mean is not None
    if given.every is not None:
        raise DocumentError((*path, "every"), "is for steps")
    if given.sine is not None:
        if given.day or given.week:
            raise DocumentError((*path, "sine"), "stands alone: day and week are the other way to vary a mean")
        return _of_wave(given, path)
    mean, day, week = together(
        partial(rate, given.mean, (*path, "mean")),
        partial(_parts_of_day, given.day or [1.0], (*path, "day")),
        partial(_around_one, given.week or [1.0], (*path, "week")),
    )
    part_us = _DAY // len(day)
    begins = [index * part_us for index in range(len(day) * len(week))]
    return Rates(_DAY * len(week), begins, [mean * of_week * of_day for of_week in week for of_day in day])


def _around_one(factors: list[float], path: Path) -> list[float]:
    mean = sum(factors) / len(factors)
    if not mean:
        raise DocumentError(path, "needs a factor above 0")
    return [factor / mean for factor in factors]


def _parts_of_day(factors: list[float], path: Path) -> list[float]:
    if _DAY % len(factors):
        raise DocumentError(path, f"{len(factors)} parts do not divide a day evenly")
    return _around_one(factors, path)


def _of_steps(given: Profile, path: Path) -> Rates:
    for key in ("day", "week", "sine"):
        if getattr(given, key) is not None:
            raise DocumentError((*path, key), "varies a mean, and steps have none")
    steps = given.steps or {}
    count = len(steps)
    found = together(
        *(partial(time_us, begin, (*path, "steps", begin)) for begin in steps),
        *(partial(rate, value, (*path, "steps", begin)) for begin, value in steps.items()),
        lambda: 11 * 366 * _DAY if given.every is None else time_us(given.every, (*path, "every")),
    )
    begins, per_us, period_us = found[:count], found[count:-1], found[-1]
    if begins[0] != 0 or any(a >= b for a, b in pairwise(begins)):
        raise DocumentError((*path, "steps"), "must begin with 0s and rise, like {0s: 10/h, 8h: 40/h}")
    if period_us <= begins[-1]:
        raise DocumentError((*path, "every"), "must be after the last step")
    lengths = [b - a for a, b in zip(begins, [*begins[1:], period_us], strict=True)]
    if min(lengths) < STEP_MIN_US:
        raise DocumentError((*path, "steps"), "a step is at least 1 s long")
    return Rates(period_us, begins, per_us)


def _of_wave(given: Profile, path: Path) -> Rates:
    wave = given.sine
    assert wave is not None and given.mean is not None
    mean, period_us, peak_us = together(
        partial(rate, given.mean, (*path, "mean")),
        partial(time_us, wave.period, (*path, "sine", "period")),
        partial(time_us, wave.peak, (*path, "sine", "peak")),
    )
    if period_us < WAVE_STEPS * STEP_MIN_US:
        raise DocumentError((*path, "sine", "period"), f"is at least {WAVE_STEPS} s")
    peak = peak_us / period_us
    begins = [period_us * step // WAVE_STEPS for step in range(WAVE_STEPS)]
    middles = ((step + 0.5) / WAVE_STEPS for step in range(WAVE_STEPS))
    return Rates(period_us, begins, [mean * (1.0 + wave.swing * cosine(middle - peak)) for middle in middles])


def arrivals(rates: Rates, start_us: int, end_us: int, load: float, source: Source | None) -> Iterator[int]:
    """Yield the times of arrivals in microseconds, in order, from `start_us` and before `end_us`.

    With a source they are a Poisson process, without one evenly spaced as to the expected number.
    """
    need = source.exponential() if source is not None else 0.5
    for begin, end, per_us in rates.steps(start_us, end_us):
        loaded = per_us * load
        at = float(begin)
        left = (end - begin) * loaded
        while need < left:
            left -= need
            at += need / loaded
            yield min(int(at), end - 1)
            need = source.exponential() if source is not None else 1.0
        need -= left


def burst(at_us: int, apps: float, within_us: int, end_us: int, carry: list[float]) -> Iterator[int]:
    """Yield the times of a burst of `apps` applications, evenly within a time, before `end_us`.

    What is left of a number that is not whole is carried to the next burst of the same `carry`.
    """
    carry[0] += apps
    number = int(carry[0] + 1e-9)
    carry[0] -= number
    for index in range(number):
        time = at_us + within_us * index // number
        if time < end_us:
            yield time


def merged_bursts(bursts: Iterable[Iterator[int]]) -> Iterator[int]:
    """Yield the times of bursts that are ordered by their beginning; bursts may overlap."""
    waiting: list[int] = []
    for times in bursts:
        found = list(times)
        if found:
            ready = [time for time in waiting if time <= found[0]]
            yield from ready
            waiting = sorted([*waiting[len(ready) :], *found])
    yield from waiting
