"""What the texts of a scenario mean: times, rates, quantities, numbers, and distributions of them.

Times are whole microseconds of virtual time, quantities whole amounts as in a workload file. A fault names the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Final, NamedTuple, cast

from licorne.config.quantity import QueueQuantityError, parse_queue_quantity
from licorne.workload.scenarios import draws
from licorne.workload.scenarios.document import LENGTH_MAX_S, Draw, Drawn, Value
from licorne.workload.scenarios.draws import Source
from licorne.workload.yaml_files.faults import DocumentError, Path, together

MICROSECONDS: Final = 1_000_000
_UNITS: Final = {"ms": 1_000, "s": MICROSECONDS, "m": 60 * MICROSECONDS, "h": 3_600 * MICROSECONDS}
UNITS_US: Final = {**_UNITS, "d": 24 * _UNITS["h"], "w": 168 * _UNITS["h"]}
_PART: Final = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(ms|s|m|h|d|w)"
_TIME: Final = re.compile(rf"(?:{_PART}\s*)+")
_RATE: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*/\s*(s|m|h|d|w)")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_SIZE_STEP: Final = {"vcore": 1, "memory": 1 << 20}
"""What drawn quantities are rounded to: thousandths of a core, MiB, others whole."""


def time_us(value: Value, path: Path) -> int:
    """Return a time in microseconds: a number of seconds, or a text such as `90s`, `1h30m`, `2d`."""
    if isinstance(value, str):
        text = value.strip()
        if _TIME.fullmatch(text):
            return _bounded_us(sum(float(number) * UNITS_US[unit] for number, unit in re.findall(_PART, text)), path)
        if not _NUMBER.fullmatch(text):
            raise DocumentError(path, f"{text[:40]!r} is no time; write seconds, or like 90s, 15m, 1h30m, 2d, 1w")
        value = float(text)
    return _bounded_us(value * MICROSECONDS, path)


def _bounded_us(us: float, path: Path) -> int:
    if not 0 <= us <= LENGTH_MAX_S * MICROSECONDS:
        raise DocumentError(path, "a time is from 0 to ten years")
    return round(us)


def rate(value: Value, path: Path) -> float:
    """Return a rate, per microsecond."""
    text = str(value).strip()
    found = _RATE.fullmatch(text)
    if found is None:
        raise DocumentError(
            path, f"{text[:40]!r} is no rate; write a number per s, m, h, d or w, such as 20/h or 0.5/s"
        )
    return float(found[1]) / UNITS_US[found[2]]


def quantity(kind: str, value: Value, path: Path) -> int:
    """Return an amount of a resource type, as queue configurations write it: vcore in thousandths, others plain."""
    try:
        return parse_queue_quantity(str(value), kind)
    except QueueQuantityError as error:
        raise DocumentError(path, str(error)) from None


class Unit(NamedTuple):
    """A kind of value that can be drawn: how one is read, and how a drawn number becomes one (`step`: its multiple)."""

    read: Callable[[Value, Path], float]
    step: int = 1
    whole: bool = False
    least: int = 0
    most: int = 2**62

    def rounded(self, number: float) -> int:
        """Return the nearest value to a drawn number, within the bounds of the unit."""
        return min(max(round(number / self.step) * self.step, self.least), self.most)


def _number(value: Value, path: Path) -> float:
    try:
        return float(value)
    except ValueError:
        raise DocumentError(path, f"{str(value)[:40]!r} is no number") from None


def _whole(value: Value, path: Path) -> float:
    number = _number(value, path)
    if number != int(number):
        raise DocumentError(path, f"{value} is no whole number")
    return number


def _devices(value: Value, path: Path) -> float:
    number = _number(value, path)
    if number < 0 or (number > 1 and number != int(number)) or abs(number * 1000 - round(number * 1000)) > 1e-6:
        raise DocumentError(path, f"{value}: a pod has a share of one device, like 0.25, or whole ones")
    return number * 1000


TIME: Final = Unit(time_us, step=1_000)
"""Durations, in microseconds, drawn to the millisecond."""
COUNT: Final = Unit(_whole, whole=True, least=1, most=100_000)
PRIORITY: Final = Unit(_whole, whole=True, least=-(2**31), most=2**31 - 1)
DEVICES: Final = Unit(_devices)
"""Thousandths of devices."""


def amount(kind: str) -> Unit:
    """Return the unit of a resource type."""
    return Unit(lambda value, path: quantity(kind, value, path), step=_SIZE_STEP.get(kind, 1))


class Variable(NamedTuple):
    """Something that is drawn: `constant`, or None and then each `draw` gives one."""

    constant: int | None
    draw: Callable[[Source], int]

    def mean(self) -> float:
        """Return the mean: of a constant exactly, of a distribution the mean of 4,000 drawn values."""
        if self.constant is not None:
            return self.constant
        source = Source("mean")
        return sum(self.draw(source) for _ in range(4_000)) / 4_000


def variable(value: Draw, unit: Unit, path: Path) -> Variable:
    """Return what a value or a distribution means.

    Raises:
        DocumentError, DocumentErrors: it is not usable.
    """
    if not isinstance(value, Drawn):
        number = unit.read(value, path)
        constant = unit.rounded(number)
        if not unit.least <= number <= unit.most:
            raise DocumentError(path, f"{value} is not from {unit.least:,} to {unit.most:,}")
        return Variable(constant, lambda _: constant)
    draw, least, most = together(
        lambda: _kind(value, unit, path),
        lambda: None if value.min is None else unit.read(value.min, (*path, "min")),
        lambda: None if value.max is None else unit.read(value.max, (*path, "max")),
    )
    if least is not None and most is not None and least > most:
        raise DocumentError((*path, "max"), "is below min")
    low = unit.rounded(unit.least if least is None else least)
    high = unit.rounded(unit.most if most is None else most)
    step, drawing = unit.step, cast("draws.Draw", draw)

    def drawn(source: Source) -> int:  # the same as `unit.rounded`, with the bounds of the distribution as well
        return min(max(round(drawing(source) / step) * step, low), high)

    return Variable(None, drawn)


def _kind(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    given = [kind for kind in _READERS if getattr(value, kind) is not None]
    if len(given) != 1:
        what = f"it has {' and '.join(given)}" if given else "it has none"
        raise DocumentError(path, f"a distribution has exactly one of {', '.join(_READERS)}; {what}")
    if unit is DEVICES and given[0] not in ("choice", "uniform"):
        raise DocumentError(
            (*path, given[0]), "devices are shares of one or whole ones: use choice, or uniform up to 1"
        )
    return _READERS[given[0]](value, unit, (*path, given[0]))


def _read(unit: Unit, values: Iterable[tuple[Value, Path]]) -> list[float]:
    """Return what values mean, each at its path."""
    return together(*(partial(unit.read, value, path) for value, path in values))


def _choice(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    if isinstance(value.choice, dict):
        values = _read(unit, ((one, (*path, one)) for one in value.choice))
        weights = list(value.choice.values())
    else:
        values = _read(unit, ((one, (*path, index)) for index, one in enumerate(value.choice or ())))
        weights = [1.0] * len(values)
    if not sum(weights):
        raise DocumentError(path, "needs a value with a weight above 0")
    return draws.choice(values, weights)


def _uniform(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    assert value.uniform is not None
    low, high = _read(unit, ((one, (*path, index)) for index, one in enumerate(value.uniform)))
    if low > high:
        raise DocumentError(path, "the first of the two is the larger one")
    if unit is DEVICES and high > 1000:
        raise DocumentError(path, "shares of a device go up to 1; use choice for whole ones")
    return draws.whole_between(int(low), int(high)) if unit.whole else draws.between(low, high)


def _exponential(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    assert value.exponential is not None
    return draws.exponential(unit.read(value.exponential, path))


def _lognormal(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    given = value.lognormal
    assert given is not None
    if (given.median is None) == (given.mean is None):
        raise DocumentError(path, "needs either median or mean")
    if given.median is not None:
        return draws.lognormal(unit.read(given.median, (*path, "median")), given.sigma)
    assert given.mean is not None
    mean = unit.read(given.mean, (*path, "mean"))
    return draws.lognormal(mean / draws.exp(given.sigma * given.sigma / 2), given.sigma)


def _pareto(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    assert value.pareto is not None
    return draws.pareto(unit.read(value.pareto.min, (*path, "min")), value.pareto.shape)


def _table(value: Drawn, unit: Unit, path: Path) -> draws.Draw:
    rows = value.table or []
    shares = [share for share, _ in rows]
    values = _read(unit, ((one, (*path, index, 1)) for index, (_, one) in enumerate(rows)))
    if shares[0] != 0 or shares[-1] != 1 or any(a >= b for a, b in pairwise(shares)):
        raise DocumentError(
            path, "the shares must rise from 0 in the first row to 1 in the last, like [[0, 1m], [0.5, 10m], [1, 2h]]"
        )
    if any(a > b for a, b in pairwise(values)):
        raise DocumentError(path, "the values must not fall")
    return draws.table(shares, values)


_READERS: Final = {
    "choice": _choice,
    "uniform": _uniform,
    "exponential": _exponential,
    "lognormal": _lognormal,
    "pareto": _pareto,
    "table": _table,
}


def size_of(given: dict[str, Draw], path: Path) -> dict[str, Variable]:
    """Return what each resource type of a size means."""
    if not given:
        raise DocumentError(path, "is empty; write like {vcore: 2, memory: 4Gi}")
    makes = (partial(variable, value, amount(kind), (*path, kind)) for kind, value in given.items())
    return dict(zip(given, together(*makes), strict=True))


def seconds(us: int) -> int | float:
    """Return microseconds as seconds, as a line of a workload has them: whole where they are."""
    whole, rest = divmod(us, MICROSECONDS)
    return us / MICROSECONDS if rest else whole


def milliseconds(us: int) -> int:
    """Return microseconds as milliseconds, rounded up."""
    return ceil(us / 1_000)


def filled(template: str, user: str, group: str) -> str:
    """Return a text with a user and its first group in place of `{user}` and `{group}`."""
    return template.replace("{user}", user).replace("{group}", group) if "{" in template else template
