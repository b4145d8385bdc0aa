"""Datasets as histograms over a finite universe, and linear queries on them.

The distance of two histograms is the number of records that were added, removed or changed. It
bounds the change of the answer to a linear query with values in [0, 1]. Queries are rounded to
multiples of 2^-20, so that their answers, up to 2^32 records, are exact in doubles. Counts that an
engine computed may add up to more. Then an answer is computed in integers and clamped to 2^32: sums
of rounded products could differ between neighbours by more than the records do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import inf, nextafter
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _checks as checks
from .. import _opendp as _native
from .._opendp import dp
from ..errors import Distance, InvalidTypeError, InvalidValueError, Query, pass_interrupt
from ..numerics import double_up
from .noise import atom_type, is_vector, known_size
from .queries import INTEGERS

Array = NDArray[np.float64]
COUNTS = "i64"  # of counts that a table's engine computes
BITS = 20
FRACTION = 2.0**BITS  # values of queries are multiples of its inverse
MOST_RECORDS = 2.0 ** (52 - BITS)  # answers are exact up to this many
MOST_CELLS = checks.at_most(2**24, "a number is kept for each cell")


class Universe:
    """The values that a record may have, in order: cells of a histogram."""

    def __init__(self, universe: Any) -> None:
        if isinstance(checks.plain(universe), int):
            self.cells, self.values = MOST_CELLS(universe=universe), None
            return
        if isinstance(universe, (str, bytes, bytearray, memoryview)) or not isinstance(
            universe, Sequence
        ):
            raise InvalidTypeError(
                "universe must be a number of categories, or a sequence of values, "
                f"found {type(universe).__name__}"
            )
        values = [checks.plain(value) for value in checks.read("values", universe=universe)]
        self.cells = checks.count(universe=len(values))
        try:
            self.values = {value: cell for cell, value in enumerate(values)}
            equal = all(value == value for value in values)
        except Exception:
            raise InvalidTypeError("universe must have hashable values") from None
        if not (len(self.values) == self.cells and equal):
            raise InvalidValueError(
                "universe must have distinct values, each of which equals itself (NaN does not)"
            )

    def count(self, records: Sequence[Any]) -> Array:
        """Return the number of records in each cell. Values outside the universe do not count."""
        if self.values is not None:
            cells = [self._cell(record) for record in records]
            indices = [cell for cell in cells if cell is not None]
        else:
            indices = [one for one in records if 0 <= one < self.cells]
        counts = np.bincount(np.asarray(indices, dtype=np.int64), minlength=self.cells)
        return counts.astype(np.float64)

    def _cell(self, record: Any) -> int | None:
        """Return the cell of a record, or None if the lookup fails: an error would reveal data."""
        assert self.values is not None
        try:
            return self.values.get(record)
        except BaseException as error:
            pass_interrupt(error)
            return None

    def vector(self, query: Query, name: str = "the query") -> Array:
        """Return the rounded value of a linear query in each cell, or raise."""
        if callable(query):
            values = range(self.cells) if self.values is None else self.values
            query = [query(value) for value in values]
        try:
            long = isinstance(query, Sequence)  # it may be, so no more of it is read than is used
            found = list(islice(query, self.cells + 1)) if long else query
            array = checks.array(found, np.float64)  # nobody can change it after the check
        except Exception:
            raise InvalidTypeError(
                f"{name} must be a value for each cell of the universe, or a function of a "
                f"cell's value, found {type(query).__name__}"
            ) from None
        if array.shape != (self.cells,):
            raise InvalidValueError(
                f"{name} must have {self.cells} values, one for each cell, "
                f"found shape {array.shape}"
            )
        if not (array.min() >= 0.0 and array.max() <= 1.0):
            raise InvalidValueError(f"{name} must have values in [0, 1]; scale it")
        return rounded(array)


def rounded(values: Array) -> Array:
    """Return the values rounded to multiples of 2^-20."""
    grid: Array = np.rint(values * FRACTION) / FRACTION
    return grid


def inner(one: Array, two: Array) -> float:
    """Return the inner product without BLAS, whose threads wait for each other on shared cores."""
    return float(np.einsum("i,i->", one, two))


def answers(matrix: Array, histogram: Array) -> Array:
    """Return the exact answers to queries on whole counts up to 2^53, clamped to 2^32.

    :param matrix: shape (queries, cells), multiples of 2^-20 in [0, 1]
    """
    if histogram.sum() <= MOST_RECORDS:
        return matrix @ histogram
    limb = 53 - BITS - 24  # of at most 2^24 cells: sums in steps have 53 bits
    whole, total = histogram.astype(np.int64), np.zeros(1, dtype=object)
    for shift in range(0, 54, limb):
        part = matrix @ (whole >> shift & (1 << limb) - 1).astype(np.float64)
        total = total + (np.ldexp(part, BITS).astype(np.int64).astype(object) << shift)
    clamped: Array = np.clip(total, 0, 2**52).astype(np.float64) / FRACTION
    return clamped


class LinearQuery:
    """The sum of a query's values over the records of a histogram."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __call__(self, histogram: Array) -> float:
        """Return the exact answer on a histogram, clamped to 2^32."""
        if histogram.sum() <= MOST_RECORDS:
            return inner(self.values, histogram)
        return float(answers(self.values[None], histogram)[0])


@lru_cache(maxsize=1)
def records_added() -> dp.Metric:
    """Metric: the number of records added plus the number removed, over all cells."""
    return _native.user_distance("records added or removed")


@lru_cache(maxsize=1)
def records_changed() -> dp.Metric:
    """Metric: the larger of the number of records added and the number removed, over all cells."""
    return _native.user_distance("records changed")


def make_histogram(
    input_domain: dp.Domain, input_metric: dp.Metric, universe: Universe
) -> dp.Transformation:
    """Count the records of a vector by value.

    Stability: the symmetric and insert-delete distances count records added or removed. If the size
    is known, two of these are one change. Change-one and Hamming distance count changed records.
    """
    if not is_vector(input_domain):
        raise InvalidTypeError(
            f"input_domain ({input_domain}) must be of vectors; chain a table in an engine with "
            "oc.t.then_table_count, whose keys are the universe"
        )
    if input_metric == dp.l1_distance(T=COUNTS):
        return _from_counts(input_domain, input_metric, universe)
    if universe.values is None and atom_type(input_domain) not in INTEGERS:
        raise InvalidTypeError(
            f"universe must list its values for records of {input_domain}; "
            "a number of categories is for integers"
        )
    metric, stability_map = _stability(input_metric, known_size(input_domain) is not None)
    return _native.make_user_transformation(
        input_domain,
        input_metric,
        _space(universe)[0],
        metric,
        function=universe.count,
        stability_map=stability_map,
    )


def _from_counts(
    input_domain: dp.Domain, input_metric: dp.Metric, universe: Universe
) -> dp.Transformation:
    """Take a vector of counts, one for each cell of the universe, as the histogram.

    Stability: a record added or removed moves one count by 1. Counts are clamped to [0, 2^53],
    which increases no distance, and so that doubles hold them.
    """
    if atom_type(input_domain) != COUNTS or known_size(input_domain) != universe.cells:
        raise InvalidValueError(
            f"universe must have as many cells as input_domain ({input_domain}) has counts, found "
            f"{universe.cells}"
        )

    def function(counts: Sequence[int]) -> Array:
        return np.array([min(max(one, 0), 2**53) for one in counts], dtype=np.float64)

    return _native.make_user_transformation(
        input_domain, input_metric, *_space(universe), function=function, stability_map=double_up
    )


def _space(universe: Universe) -> tuple[dp.Domain, dp.Metric]:
    """Return the domain of histograms, and the metric of records added or removed."""
    return (
        _native.user_domain(
            f"Histogram({universe.cells} cells)", lambda x: isinstance(x, np.ndarray)
        ),
        records_added(),
    )


def _stability(input_metric: dp.Metric, sized: bool) -> tuple[dp.Metric, Callable[[int], float]]:
    if counts_changes(input_metric):
        return records_changed(), float
    if sized:
        return records_changed(), lambda d_in: float(d_in // 2)
    return records_added(), float


def counts_changes(input_metric: dp.Metric) -> bool:
    """Return whether the distance counts records that are changed, and not added or removed."""
    if input_metric in (dp.change_one_distance(), dp.hamming_distance()):
        return True
    if input_metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        return False
    raise InvalidTypeError(
        f"input_metric ({input_metric}) must be a distance of datasets: symmetric, "
        "insert-delete, change-one or Hamming"
    )


def public_size(input_domain: dp.Domain, input_metric: dp.Metric, size: int | None) -> int:
    """Return the number of records, which is given or fixed by the domain."""
    found = size_if_public(input_domain, input_metric, size)
    if found is None:
        raise InvalidTypeError(
            "size must be given, since input_domain does not fix it; if the number of records is "
            "not public, release an estimate first"
        )
    return found


def size_if_public(input_domain: dp.Domain, input_metric: dp.Metric, size: Any) -> int | None:
    """Return the number of records if it is given or fixed by the domain, else None."""
    counts = input_metric == dp.l1_distance(T=COUNTS)  # whose size is the number of cells
    found = known_size(input_domain) if size is None and not counts else size
    if found is None:
        return None
    if not checks.count(size=found) < 2**32:
        raise InvalidValueError(f"size ({checks.shown(found)}) must be below 2**32")
    return int(found)


def positive_distance(histogram: dp.Transformation, d_in: Distance) -> float:
    """Return the number of records that neighbours at ``d_in`` differ by; raise if it is 0."""
    distance: float = histogram.map(d_in)
    if not distance > 0.0:
        raise InvalidValueError(
            f"d_in ({d_in}) must be at least 1, and at least 2 if records are added and removed at "
            "a known size: one added means one removed"
        )
    return distance


# The histogram whose answers are nearest to noisy answers, with a certified duality gap.
#
# Let f(h) = |Q h - y|², r = Q h - y and g = Qᵀ r at the histogram h that was found. The histograms
# allowed are nonnegative and have a known sum n, or any sum up to 2^32. Let G be twice the largest
# <r, Q h - Q v> over the histograms v that are allowed: 2 (<g, h> - n min g) for a known sum, else
# 2 (<g, h> + 2^32 max(0, -min g)). For every v that is allowed, whatever h is:
#
# * f is convex, so f(v) >= f(h) - G: no histogram is nearer than f(h) - G.
# * |y - Q v|² = |Q h - Q v|² - 2 <r, Q h - Q v> + |r|² >= |Q h - Q v|² - G + |r|². So if G <= |r|²,
#   then Q h is at most as far from Q v as y is. Let v be the truth: the error is at most the noise.
#
# G is computed in the longest floats of the machine, with a bound on the rounding error: a sum of m
# products of floats with relative error u is within m u / (1 - m u) of the sum of magnitudes.

FIRM = 1e6  # weight of the sum, relative to the largest value of a query
ENOUGH = 1e-9  # a gap of this part of the squared distance is small enough


@dataclass(frozen=True, slots=True, eq=False)
class Nearest:
    """A histogram, and how near its answers are.

    :ivar histogram: shape (cells,), nonnegative
    :ivar gap: upper bound on how far its squared distance is above the least possible one
    :ivar never_worse: whether its answers are proven to be at most as far from the answers of each
        allowed histogram as the noisy answers are
    """

    histogram: Array
    gap: float
    never_worse: bool


def nearest(answers: Array, queries: Array, size: int | None) -> Nearest:
    """Return the histogram whose answers are nearest in L2.

    :param answers: noisy, shape (queries,), in units of their noise
    :param queries: shape (queries, cells), nonnegative, each in units of its noise
    :param size: the sum of the histogram; None if only a sum of at most 2^32 is known
    """
    found = certify(_solve(answers, queries, size), answers, queries, size)
    squared = float(np.sum(np.square(queries @ found.histogram - answers)))
    if found.gap <= ENOUGH * squared:
        return found
    histogram = _polish(found.histogram, answers, queries, size)
    return min(found, certify(histogram, answers, queries, size), key=lambda one: one.gap)


def _solve(answers: Array, queries: Array, size: int | None) -> Array:
    """Nonnegative least squares; a known sum is one more answer, of a large weight."""
    cells, matrix, target = queries.shape[1], queries, answers
    if size is not None:
        firm = FIRM * max(float(queries.max()), 1e-300)
        matrix = np.vstack([queries, np.full((1, cells), firm)])
        target = np.append(answers / size, firm)
    if len(matrix) > 16 * cells:  # the same distances, up to a constant
        short: Any = np.linalg.qr(np.column_stack([matrix, target]), mode="r")
        matrix, target = short[:, :-1], short[:, -1]
    try:
        histogram: Array = scipy.optimize.nnls(matrix, target)[0]
    except (RuntimeError, scipy.linalg.LinAlgError):  # too many rounds: the gap will say so
        histogram = np.zeros(cells)
    return _feasible(histogram, size)


def _feasible(histogram: Array, size: int | None) -> Array:
    histogram = np.maximum(np.nan_to_num(histogram), 0.0)
    total = float(histogram.sum())
    if size is None:
        return histogram if total <= MOST_RECORDS else histogram * (MOST_RECORDS / total)
    if not 0.0 < total < inf:
        return np.full(len(histogram), size / len(histogram))
    return histogram * (size / total)


def _polish(histogram: Array, answers: Array, queries: Array, size: int | None) -> Array:
    """One Newton step over the cells that are not empty, which keeps the sum."""
    cells = np.flatnonzero(histogram > 0.0)
    if len(cells) == 0:
        return histogram
    rest = int(cells[np.argmax(histogram[cells])])
    columns = queries[:, cells]
    if size is not None:
        columns = columns - queries[:, [rest]]
        kept = cells != rest
        cells, columns = cells[kept], columns[:, kept]
    if len(cells) == 0:  # one cell has the whole sum
        return histogram
    residual = answers - queries @ histogram
    try:
        step = scipy.linalg.cho_solve(
            scipy.linalg.cho_factor(columns.T @ columns), columns.T @ residual
        )
    except (scipy.linalg.LinAlgError, ValueError):  # dependent columns
        return histogram
    moved = histogram.copy()
    moved[cells] += step
    if size is not None:
        moved[rest] -= step.sum()
    return _feasible(moved, size)


def certify(histogram: Array, answers: Array, queries: Array, size: int | None) -> Nearest:
    """Return a histogram with its gap, rounded up, and whether it is never worse than the noise."""
    count, cells = queries.shape
    long: Any = np.longdouble
    unit = max(float(np.finfo(long).eps), 2.0**-63)  # twice that of an operation; not of pairs
    h, y, q = histogram.astype(long), answers.astype(long), queries.astype(long)
    magnitude = q @ h + np.abs(y)
    residual = q @ h - y
    wrong = (cells + 2) * unit * magnitude
    gradient = residual @ q
    most = np.abs(residual) + wrong
    slack = (wrong + (count + 2) * unit * most) @ q
    high, low = gradient + slack, gradient - slack
    least = float(low.min())
    other = MOST_RECORDS * max(0.0, -least) if size is None else -size * least
    total = h @ np.abs(high) + abs(other)
    gap = 2 * (float(h @ high) + other) + 4 * (cells + 8) * 2.0**-52 * float(total)
    gap = nextafter(max(0.0, gap) * (1 + 2.0**-40), inf)
    if not gap < inf:
        return Nearest(histogram, inf, never_worse=False)
    certain = np.maximum(np.abs(residual) - wrong, 0.0)
    distance = float((certain * certain).sum()) * (1 - (count + 2) * 2.0**-50)
    return Nearest(histogram, gap, never_worse=gap <= distance)
