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
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, log, log2, nan, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _checks as checks
from ..errors import InvalidValueError
from .domain import Norms
from .schema import LARGEST, Decimal, Type, exact_of, in_unit, value_of

Statistic: TypeAlias = Literal["mean", "variance", "stdev"]
MOST_STEPS = 2**31  # of a value whose square is added

# What a row may add to the other integers of its group, as shares of what it may add to the first.
# If the errors at equal shares are e_i, the best shares are e_i^(2/3) in L1, and e_i^(1/2) in L2.
# A mean that is uniform between the bounds is off the middle by 1/sqrt(3) of the largest distance.
_OFF = 1 / sqrt(3)
_ERRORS = {1: (_OFF,), 2: (4 * _OFF, 1.0)}
_POWERS = {"l1": 2 / 3, "l2": 1 / 2, "linf": 0.0}


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
    def _largest(self) -> tuple[int, ...]:
        """The largest absolute value that a row adds to each integer without its weight."""
        squares = () if self.order == 1 else (self.reach**2 - self.half,)
        return (*squares, self.reach, 1)

    @property
    def weights(self) -> tuple[int, ...]:
        """Factors of the integers of a group; the first one is 1."""
        leading, *others = self._largest
        shares = (one ** _POWERS[self.norm] for one in _ERRORS[self.order])
        pairs = zip(shares, others, strict=True)
        return (1, *(max(1, round(share * leading / own)) for share, own in pairs))

    @property
    def per_row(self) -> tuple[int, ...]:
        """The largest absolute value that a row adds to each integer of its group."""
        return tuple(
            weight * most for weight, most in zip(self.weights, self._largest, strict=True)
        )

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """The part of ε in L1, or of ρ in L2, that each integer of a group takes; none in L∞."""
        if self.norm == "linf":
            return ()
        taken = [own if self.norm == "l1" else own**2 for own in self.per_row]
        names = ("squares", "sum", "count")[-len(taken) :]
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

    def estimate(self, noisy: Sequence[float], accuracy: float, statistic: Statistic) -> Estimate:
        """Return the statistic of a group.

        :param accuracy: the noise in each integer is at most this
        """
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


# Prefix counts of cells from one noisy release, and quantiles from them.
#
# A group has counts x of n cells between public cuts. The release is A x with noise on each
# integer, and prefix counts are W A^+ (A x + noise), W the lower triangle of ones. The strategy A
# is the one with the least mean squared error among: no combination at all, which is a noisy
# histogram; sums over the blocks of a tree; and, for L2, the optimum of the matrix mechanism,
# rounded to integers. Rounding costs no privacy, as the sensitivity is that of the integers.

MOST_CELLS = 1001
SPACED = 250  # candidates between two numbers, at most
OPTIMISED = 256  # cells up to which the optimum is computed
BRANCHES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
CLOSE, MOST_ROUNDS = 1.005, 200  # of the optimum: closer is not worth more rounds
EXACT = 2**62  # of sums in 64 bits
_EXPONENT = checks.integer.narrowed(lambda one: -500 <= one <= 62, "be from -500 to 62", 63)

Matrix = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Strategy:
    """Integer combinations of the counts of cells.

    :ivar matrix: a row for each integer of the answer
    :ivar per_row: norms of what one row of the table adds
    :ivar prefixes: matrix from the answer to prefix counts
    """

    matrix: Matrix
    per_row: Norms
    prefixes: Matrix

    @classmethod
    def of(cls, matrix: Matrix) -> Strategy:
        """Return the strategy of a matrix of integers."""
        sizes = np.abs(matrix).astype(object)
        real = matrix.astype(float)
        inverse = np.linalg.solve(real.T @ real, real.T)  # columns are independent
        prefixes = np.cumsum(inverse, axis=0)
        return cls(
            matrix,
            Norms(
                int(sizes.sum(axis=0).max()),
                int((sizes**2).sum(axis=0).max()),
                int(sizes.max()),
            ),
            prefixes,
        )

    @property
    def integers(self) -> int:
        """Number of integers of a group."""
        return len(self.matrix)

    def combine(self, counts: Sequence[int]) -> list[int]:
        """Return the integers of a group, exactly."""
        small = sum(counts) * self.per_row.linf < EXACT
        kind: Any = np.int64 if small else object
        return list(map(int, self.matrix.astype(kind) @ np.array(counts, dtype=kind)))

    def error(self, norm: str) -> float:
        """Return the root mean squared error of prefix counts, for a loss of 1."""
        sensitivity = sqrt(self.per_row.l2_squared) if norm == "l2" else self.per_row.l1
        return sensitivity * float(np.sqrt((self.prefixes**2).sum(axis=1).mean()))

    def quantiles(
        self,
        noisy: Sequence[int],
        cuts: Sequence[Any],
        share: float,
        noise: tuple[bool, float],
        alpha: float,
    ) -> list[Estimate]:
        """Return the last cut of each group below which at most a share of its values is.

        :param noise: whether it is Laplace noise, and its scale
        :param alpha: probability for each group that the interval does not have the cut
        """
        weights = self.prefixes[:-1] - share * self.prefixes[-1]
        most = np.array([_tail(row, *noise, alpha / len(weights)) for row in weights])
        found = []
        for at in range(0, len(noisy), self.integers):
            off = weights @ np.array(noisy[at : at + self.integers], dtype=float)
            first, last = _last(off + most), _last(off - most)
            rising = np.maximum.accumulate(off), np.minimum.accumulate(off[::-1])[::-1]
            place = min(max(_last(rising[0] + rising[1]), first), last)
            found.append(Estimate(*(float(cuts[one]) for one in (place, first, last))))
        return found


def bounds_of(
    noisy: Sequence[int], cuts: Sequence[Any], threshold: float, share: float
) -> tuple[Any, Any] | None:
    """Return a cut that about at most a share of the values is below, and one above; None if none.

    :param noisy: counts of the values below the first cut, between cuts, and above the last one
    :param threshold: a count that is not above it is taken for noise, and so for 0
    """
    known = [one if one > threshold else 0 for one in noisy]
    most = share * sum(known)
    places = [place for place, one in enumerate(known) if one]
    if not places:
        return None
    first = next(place for place in places if sum(known[: place + 1]) > most)
    last = next(place for place in reversed(places) if sum(known[place:]) > most)
    above = max(1, min(last, len(cuts) - 1))
    return cuts[min(max(first, 1), above) - 1], cuts[above]


def powers_of_two(kind: Type, **argument: Any) -> list[Any]:
    """Return 0 and powers of 2 with either sign, as increasing numbers of a type, or raise.

    Powers that the type does not have, such as 1/2 of integers, are left out.
    """
    ((name, _),) = argument.items()
    found = {_EXPONENT(**{name: one}) for one in checks.sequence("integers", **argument)}
    known = [Fraction(2) ** one for one in sorted(found)]
    if kind is not float:
        unit = 10**kind.scale if isinstance(kind, Decimal) else 1
        steps = [one * unit for one in known]
        known = [one for one in steps if one.denominator == 1 and one <= LARGEST]
    if not 0 < len(known) <= MOST_CELLS // 2 - 1:
        raise InvalidValueError(f"{name} must have from 1 to {MOST_CELLS // 2 - 1} exponents")
    both = [*(-one for one in reversed(known)), Fraction(0), *known]
    return [float(one) if kind is float else in_unit(kind, int(one)) for one in both]


def spaced(kind: Type, **ends: Any) -> list[Any]:
    """Return at most 250 numbers of a type from one public number to another, or raise."""
    ((name, (low, high)),) = ends.items()
    if kind is float:
        first, last = (exact_of(**{name: one}) for one in (low, high))
    else:
        first, last = (Fraction(value_of(kind, **{name: one})) for one in (low, high))
    if not first < last:
        raise InvalidValueError(
            f"{name} ({checks.shown((low, high))}) must be increasing numbers, or a lower and an "
            "upper bound"
        )
    parts = SPACED - 1 if kind is float else min(SPACED - 1, int(last - first))
    found = [first + (last - first) * Fraction(one, parts) for one in range(parts + 1)]
    if kind is float:
        return sorted(set(map(float, found)))
    return [in_unit(kind, floor(one)) for one in found]


def _last(off: Matrix) -> int:
    """Return the last place that is at most 0; the first one if there is none."""
    (places,) = np.nonzero(off <= 0.0)
    return int(places[-1]) if len(places) else 0


def _tail(weights: Matrix, laplace: bool, scale: float, alpha: float) -> float:
    """Return what a weighted sum of noise exceeds with a probability of at most alpha.

    Both laws on the integers have moments at most those of the laws on the reals: e^(λ² s²/2) for
    Gaussian noise [CKS20], 1/(1 - λ² s²) for Laplace noise, where sinh is convex.
    """
    spread, sides = scale * np.abs(weights), log(2 / alpha)
    if not spread.any():
        return 0.0
    if not laplace:
        return float(np.linalg.norm(spread)) * sqrt(2 * sides)
    rates = np.arange(1, 100) / (100 * spread.max())
    logs = -np.log1p(-(np.outer(rates, spread) ** 2)).sum(axis=1)
    return float(((logs + sides) / rates).min())


@lru_cache(maxsize=32)
def strategy_for(cells: int, norm: str) -> Strategy:
    """Return the strategy with the least error."""
    branches = [one for one in BRANCHES[:: 1 if cells <= OPTIMISED else 3] if one < cells]
    known = [Strategy.of(np.eye(cells, dtype=np.int64))]
    if norm == "l2" and 1 < cells <= OPTIMISED:
        known.append(Strategy.of(_optimum(cells)))
    else:
        known += [Strategy.of(tree(cells, one)) for one in branches]
    return min(known, key=lambda one: one.error(norm))


def tree(cells: int, branch: int) -> Matrix:
    """Return the cells, and sums over blocks of b, b², ... cells; not over all."""
    rows, size = [np.eye(cells, dtype=np.int64)], branch
    while size < cells:
        blocks = np.arange(-(-cells // size))[:, None]
        rows.append((np.arange(cells) // size == blocks).astype(np.int64))
        size *= branch
    return np.vstack(rows)


def _optimum(cells: int) -> Matrix:
    """Return the optimum for prefix counts, in steps of a small fraction.

    Let W be the prefix sums, v > 0, V = diag(v), and L s² L^T the eigenvalues and vectors of
    W V W^T. Then A = s^-1/2 L^T W has the squared error Σ s max r at columns of norm 1, where r has
    the squared norms of its columns; and no A has less than (Σ s)² / Σ v. The fixed point
    multiplies v by r [DMRST22, Algorithm 1] until both bounds are close; the best A is kept.
    """
    work, v = np.tri(cells), np.ones(cells)
    least, reached, best = 0.0, inf, work
    for _ in range(MOST_ROUNDS):
        values, vectors = np.linalg.eigh(work * v @ work.T)
        s = np.sqrt(values)
        found = (vectors / np.sqrt(s)).T @ work
        r = np.square(found).sum(axis=0)
        least = max(least, s.sum() / sqrt(v.sum()))
        if sqrt(s.sum() * r.max()) < reached:
            reached, best = sqrt(s.sum() * r.max()), found / sqrt(r.max())
        if reached <= CLOSE * least:
            break
        v = v * r
    return np.rint(2.0 ** (12 + ceil(log2(cells) / 2)) * best).astype(np.int64)
