"""Levels of discrete Laplace noise on one exact answer, each a function of the finest one.

A level is a number e > 0, and its noise is A - B for independent A and B with P(n) proportional to
exp(-e n), n = 0, 1, 2, ... For such numbers of rates e and x, the minimum has the rate e + x. So a
level that is finer by x takes the minimum of A and a new draw of rate x, and the same for B.

A level e between two known ones, e1 < e < e2 with values a >= b of A, needs the law of A at e given
both. Let U and V have the rates e - e1 and e2 - e. The value at e2 is the minimum of that at e and
of a draw R of rate e2 - e. Given that this minimum is b, what exceeds it is memoryless: A at e is
the minimum of a and b + U - min(U, V). Below all known levels, e1 is 0 and a is infinite.

All differences between levels are independent of A at the finest level, which alone is added to the
exact answer: ``docs/proofs/shared-release.rst``. A rate is a sum of powers of two, and a draw of it
is the minimum of draws for these powers, whose inverses are doubles. So all laws are exact. How
many draws are made depends on the levels only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..arguments.checks import shown
from ..errors import InvalidValueError
from ..measurements.noise import OneSidedNoise

BITS = 30  # after the point: levels are multiples of 2^-30, and so are rates
FINEST = 2.0**20
_AHEAD = 16  # draws of a rate in one batch
MOST = 1000  # levels that are free: each keeps two numbers for each coordinate


def units_of(level: float, name: str = "level") -> int:
    """Return a level in units of 2^-30, rounded down; this is exact.

    :param name: of the argument, for the message
    :raises InvalidValueError: if it is not between 2^-30 and 2^20
    """
    if not 2.0**-BITS <= level <= FINEST:
        raise InvalidValueError(
            f"{name} ({shown(level)}) must be from 2^-{BITS} to 2^20; pass the privacy loss that "
            "this release may have per unit of sensitivity, such as 0.1"
        )
    return int(level * 2.0**BITS)


def level_of(units: int) -> float:
    """Return a level as a double, exactly."""
    return units * 2.0**-BITS


class GeometricDraws:
    """Draws from 0, 1, 2, ... with P(n) proportional to exp(-rate n). Not thread-safe."""

    def __init__(self) -> None:
        self._noises: dict[int, OneSidedNoise] = {}

    def __call__(self, rate: int) -> int:
        """Return a draw of a rate in units: the least one of those for its powers of two."""
        return min(self._power(bit) for bit in range(rate.bit_length()) if rate >> bit & 1)

    def _power(self, bit: int) -> int:
        if bit not in self._noises:
            self._noises[bit] = OneSidedNoise(2.0 ** (BITS - bit), _AHEAD)
        return self._noises[bit].draw()


class Chain:
    """The levels of one exact answer, a number or a vector of integers. Holds secret noise.

    :param exact: the exact answer
    :param draw: returns a draw of a rate in units
    """

    def __init__(self, exact: int | Sequence[int], draw: Callable[[int], int]) -> None:
        self._exact, self._draw = exact, draw
        self._noise: dict[int, list[int]] = {}  # by level: A of each coordinate, then B of each

    def check(self, level: int) -> None:
        """Raise, for public reasons, if a level would be one too many."""
        if level not in self._noise and len(self._noise) >= MOST:
            raise InvalidValueError(
                f"level ({level_of(level)}) must be one that was answered, since {MOST} were: the "
                f"next one is {level_of(min(self._noise, key=lambda one: abs(one - level)))}"
            )

    def at(self, level: int) -> int | list[int]:
        """Return the answer at a level in units, always the same one."""
        many = self._exact if isinstance(self._exact, Sequence) else (self._exact,)
        if level not in self._noise:
            coarser = max((one for one in self._noise if one < level), default=0)
            finer = min((one for one in self._noise if one > level), default=None)
            places = range(2 * len(many))
            self._noise[level] = [self._new(level, coarser, finer, place) for place in places]
        noise = self._noise[level]
        pairs = zip(many, noise[: len(many)], noise[len(many) :], strict=True)
        noisy = [exact + plus - minus for exact, plus, minus in pairs]
        return noisy if isinstance(self._exact, Sequence) else noisy[0]

    def _new(self, level: int, coarser: int, finer: int | None, place: int) -> int:
        value = self._draw(level - coarser)
        if finer is not None:
            value += self._noise[finer][place] - min(value, self._draw(finer - level))
        return min(value, self._noise[coarser][place]) if coarser else value
