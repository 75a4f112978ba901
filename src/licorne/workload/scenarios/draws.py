"""Random numbers whose values depend on nothing but the seed: not on the version of Python, the machine or its C library.

The only source is `random.Random.random`, of which the library promises that equal seeds give equal numbers in every version.
What is made of them is computed here with additions, multiplications, divisions and square roots alone, which IEEE 754
rounds the same way everywhere. `math.log` and `math.exp` are not used, since the last digit of their results differs between
C libraries, nor the library's distributions, whose algorithms may change.
"""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import frexp
from typing import Final

from licorne._plain import cython

if cython.compiled:
    from cython.cimports.libc.math import ldexp, sqrt
else:
    from math import ldexp, sqrt

_LN2 = cython.declare(cython.double, 0.6931471805599453)
_EXP_LARGEST = cython.declare(cython.double, 700.0)
_TWO_PI: Final = 6.283185307179586

Draw = Callable[["Source"], float]
"""A function that draws a number."""


@cython.ccall
@cython.exceptval(check=False)
def ln(x: cython.double) -> cython.double:
    """Return the natural logarithm of a number above 0, to about 15 digits."""
    mantissa: cython.double
    exponent: cython.int
    z: cython.double
    q: cython.double
    high: cython.double
    mantissa, exponent = frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    # ln m = 2 artanh((m - 1) / (m + 1)), where the quotient is below 0.172.
    z = (mantissa - 1.0) / (mantissa + 1.0)
    q = z * z
    high = q * (1 / 11 + q * (1 / 13 + q * (1 / 15 + q * (1 / 17 + q / 19))))
    return exponent * _LN2 + 2.0 * z * (1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + high)))))


@cython.ccall
@cython.exceptval(check=False)
def exp(x: cython.double) -> cython.double:
    """Return e to the power of x, to about 14 digits; x is held within ±700."""
    twos: cython.int
    r: cython.double
    high: cython.double
    root: cython.double
    if not -_EXP_LARGEST <= x <= _EXP_LARGEST:
        x = _EXP_LARGEST if x > 0 else -_EXP_LARGEST
    twos = int(x / _LN2 + (0.5 if x >= 0 else -0.5))
    r = (x - twos * _LN2) * 0.25  # below 0.09, so that few terms of the series suffice
    high = r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r / 362880))))
    root = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + high))))
    root *= root
    return ldexp(root * root, twos)


def cosine(turns: float) -> float:
    """Return the cosine of an angle in whole turns."""
    angle = (turns - int(turns)) * _TWO_PI
    angle = angle - _TWO_PI if angle > _TWO_PI / 2 else angle + _TWO_PI if angle < -_TWO_PI / 2 else angle
    square = angle * angle
    series = 1.0
    for n in range(14, 0, -1):
        series = 1.0 - square * series / ((2 * n - 1) * (2 * n))
    return series


@cython.cclass
class Source:
    """A stream of random numbers; equal names give equal streams, and different names independent ones.

    `uniform` draws a number from 0 up to, and not, 1.
    """

    uniform: Callable[[], float]
    _spare: cython.double
    _has_spare: cython.bint

    def __init__(self, *name: object) -> None:
        digest = hashlib.sha256("\n".join(map(str, name)).encode()).digest()
        self.uniform = random.Random(int.from_bytes(digest)).random
        self._spare = 0.0
        self._has_spare = False

    @cython.ccall
    def exponential(self) -> cython.double:
        """Draw from the exponential distribution of mean 1."""
        x: cython.double = self.uniform()
        return -ln(1.0 - x)

    @cython.ccall
    def normal(self) -> cython.double:
        """Draw from the normal distribution of mean 0 and deviation 1, by Marsaglia's polar method."""
        x: cython.double
        y: cython.double
        square: cython.double
        factor: cython.double
        if self._has_spare:
            self._has_spare = False
            return self._spare
        while True:
            x = self.uniform()
            y = self.uniform()
            x, y = 2.0 * x - 1.0, 2.0 * y - 1.0
            square = x * x + y * y
            if 0.0 < square < 1.0:
                factor = sqrt(-2.0 * ln(square) / square)
                self._spare = y * factor
                self._has_spare = True
                return x * factor

    def below(self, number: int) -> int:
        """Draw a whole number from 0 up to, and not, `number`."""
        return int(self.uniform() * number)


def always(value: float) -> Draw:
    """Return a draw that is always the same."""
    return lambda _: value


def choice(values: Sequence[float], weights: Sequence[float]) -> Draw:
    """Return a draw of one of some values, each with its weight."""
    pick = picker(weights)
    return lambda source: values[pick(source)]


def picker(weights: Sequence[float]) -> Callable[[Source], int]:
    """Return a function that draws the index of one of some weights."""
    if len(weights) == 1:
        return lambda _: 0
    sums = list(accumulate(weights))
    last = len(sums) - 1
    total = sums[last]
    return lambda source: min(bisect_right(sums, source.uniform() * total), last)


def between(low: float, high: float) -> Draw:
    """Return a draw that is uniform between two numbers."""
    return lambda source: low + (high - low) * source.uniform()


def whole_between(low: int, high: int) -> Draw:
    """Return a draw of the whole numbers from `low` to `high`, both included."""
    return lambda source: low + source.below(high - low + 1)


def exponential(mean: float) -> Draw:
    """Return an exponential draw."""
    return lambda source: mean * source.exponential()


def lognormal(median: float, sigma: float) -> Draw:
    """Return a draw whose logarithm is normal, of deviation `sigma`; its mean is median * exp(sigma² / 2)."""
    return lambda source: median * exp(sigma * source.normal())


def pareto(least: float, shape: float) -> Draw:
    """Return a draw that exceeds x with probability (least / x) ** shape."""
    return lambda source: least * exp(source.exponential() / shape)


def table(shares: Sequence[float], values: Sequence[float]) -> Draw:
    """Return a draw by a table of quantiles, with straight lines between them; `shares` begin with 0 and end with 1."""
    last = len(shares) - 2

    def draw(source: Source) -> float:
        u = source.uniform()
        i = min(bisect_right(shares, u) - 1, last)
        return values[i] + (values[i + 1] - values[i]) * ((u - shares[i]) / (shares[i + 1] - shares[i]))

    return draw
