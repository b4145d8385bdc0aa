"""Means and variances from noisy sums: what the integers of an answer mean, and intervals.

Of each group, the answer has the sum S of q - c over the rows with a value, q the value in steps
and c a public middle, and W times the number N of these rows. For a variance it has also the sum T
of (q - c)² - h, and W' times S. All integers get noise of one scale, so the weights W decide how
the budget is shared. They are chosen for the least expected squared error of a mean that may be
anywhere between the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Literal, TypeAlias

Statistic: TypeAlias = Literal["mean", "variance", "stdev"]
MOST_STEPS = 2**31  # of a value whose square is added

# What a row may add to the other integers of its group, as shares of what it may add to the first.
# If the errors at equal shares are e_i, the best shares are e_i^(2/3) in L1, and e_i^(1/2) in L2.
# A mean that is uniform between the bounds is off the middle by 1/sqrt(3) of the largest distance.
_OFF = 1 / sqrt(3)
_SHARES: dict[int, dict[str, tuple[float, ...]]] = {
    1: {"l1": (_OFF ** (2 / 3),), "l2": (_OFF ** (1 / 2),), "linf": (1.0,)},
    2: {
        "l1": ((4 * _OFF) ** (2 / 3), 1.0),
        "l2": ((4 * _OFF) ** (1 / 2), 1.0),
        "linf": (1.0, 1.0),
    },
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic of a column, from noisy sums.

    :ivar value: the estimate; NaN if the noisy count says that there are no values
    :ivar lower: lower end of an interval that has the true statistic with probability 1 - alpha
    :ivar upper: upper end
    """

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Moments:
    """How a column's values become the integers of an answer, and back.

    :ivar first: lower bound in steps
    :ivar last: upper bound in steps, above ``first``
    :ivar step: one step in units of the column
    :ivar whole: whether values are whole steps
    :ivar order: 1 for means, 2 for variances
    :ivar norm: of the answer
    """

    first: int
    last: int
    step: float
    whole: bool
    order: int
    norm: str

    @property
    def middle(self) -> int:
        """What is subtracted from each value, in steps."""
        return (self.first + self.last) // 2

    @property
    def reach(self) -> int:
        """The largest distance of a value from the middle."""
        return self.last - self.middle

    @property
    def half(self) -> int:
        """What is subtracted from each square."""
        return self.reach**2 // 2

    @property
    def parts(self) -> int:
        """Number of integers of a group."""
        return self.order + 1

    @property
    def weights(self) -> tuple[int, ...]:
        """Factors of the integers of a group; the first one is 1."""
        leading = self.reach if self.order == 1 else self.reach**2 - self.half
        largest = (1,) if self.order == 1 else (self.reach, 1)
        shares = _SHARES[self.order][self.norm]
        pairs = zip(shares, largest, strict=True)
        return (1, *(max(1, round(share * leading / own)) for share, own in pairs))

    @property
    def per_row(self) -> tuple[int, ...]:
        """The largest absolute value that a row adds to each integer of its group."""
        squares = () if self.order == 1 else (self.reach**2 - self.half,)
        own = (*squares, self.reach, 1)
        return tuple(weight * most for weight, most in zip(self.weights, own, strict=True))

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """The part of ε in L1, or of ρ in L2, that each integer of a group takes; none in L∞."""
        if self.norm == "linf":
            return ()
        taken = [own if self.norm == "l1" else own**2 for own in self.per_row]
        names = ("squares", "sum", "count")[-self.parts :]
        return tuple((name, one / sum(taken)) for name, one in zip(names, taken, strict=True))

    def integers(self, count: int, total: int, squares: int = 0) -> tuple[int, ...]:
        """Return the integers of a group from exact sums over its rows with a value.

        :param count: number of rows
        :param total: sum of values, in steps
        :param squares: sum of squares of values
        """
        middle = self.middle
        around = total - middle * count
        found = [around, count]
        if self.order == 2:
            found.insert(0, squares - 2 * middle * total + (middle**2 - self.half) * count)
        return tuple(weight * one for weight, one in zip(self.weights, found, strict=True))

    def estimates(
        self, noisy: Sequence[float], accuracy: float, statistic: Statistic
    ) -> list[Estimate]:
        """Return the statistic of each group.

        :param accuracy: the noise in each integer is at most this
        """
        groups = range(0, len(noisy), self.parts)
        return [self._estimate(noisy[at : at + self.parts], accuracy, statistic) for at in groups]

    def _estimate(self, noisy: Sequence[float], accuracy: float, statistic: Statistic) -> Estimate:
        parts = [
            (one / weight, accuracy / weight)
            for one, weight in zip(noisy, self.weights, strict=True)
        ]
        if statistic == "mean":
            value, lower, upper = self._mean(*parts[-2:])
            rest = 0.0 if self.whole else 0.5
            ends = value, lower - rest, upper + rest
            return Estimate(*(one * self.step for one in ends))
        value, lower, upper = map(sqrt, self._variance(*parts))
        if not self.whole:  # each value is rounded by at most half a step, and so is the deviation
            lower, upper = max(0.0, lower - 0.5), upper + 0.5
        found = [one * self.step for one in (value, lower, upper)]
        return Estimate(*(found if statistic == "stdev" else [one**2 for one in found]))

    def _mean(
        self, total: tuple[float, float], count: tuple[float, float]
    ) -> tuple[float, float, float]:
        low, high = float(self.first), float(self.last)
        if sum(count) < 1.0:
            return nan, low, high
        value, lower, upper = _ratio(total, count)
        found = (min(max(self.middle + one, low), high) for one in (value, lower, upper))
        return next(found), next(found), next(found)

    def _variance(
        self,
        squares: tuple[float, float],
        total: tuple[float, float],
        count: tuple[float, float],
    ) -> tuple[float, float, float]:
        """Return T/N + h - (S/N)², within what values between the bounds can have."""
        largest = ((self.last - self.first) / 2) ** 2
        if sum(count) < 1.0:
            return nan, 0.0, largest
        second, least, most = _ratio(squares, count)
        mean, low, high = _ratio(total, count)
        smallest = 0.0 if low <= 0.0 <= high else min(low**2, high**2)
        ranges = (
            second - mean**2,
            least - max(low**2, high**2),
            most - smallest,
        )
        found = (min(max(one + self.half, 0.0), largest) for one in ranges)
        return next(found), next(found), next(found)


def _ratio(above: tuple[float, float], below: tuple[float, float]) -> tuple[float, float, float]:
    """Return a ratio of noisy numbers and its bounds; the lower number is at least 1."""
    value, off = above
    counts = [max(1.0, below[0] + sign * below[1]) for sign in (0, -1, 1)]
    ends = [(value + sign * off) / count for sign in (-1, 1) for count in counts[1:]]
    return value / counts[0], min(ends), max(ends)
