"""One-way marginals of many columns, and two-way ones of listed pairs, as noisy sums.

A row has d values. Each is clamped to public bounds and rounded to a grid, so all sums are
integers, which no order of additions changes. A row that is added or removed moves the sum of a
column by at most m, the larger magnitude of its bounds; a row that is changed by at most m, their
distance. So it moves all sums by at most Σ m in L1, and sqrt(Σ m²) in L2. Both sums are exact, and
a root is rounded up. For binary columns these are d and sqrt(d), so that Gaussian noise of scale σ
on the counts has ρ = d / (2 σ²).

What a row adds is a function of the row alone, whatever is in it: a value that is no number counts
as 0, and so does each value of a row that has not d of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .. import _checks as checks
from .. import _opendp as _native
from .. import composition, errors, measures, numerics, queryables
from .._opendp import dp
from ..data import kind_of
from .histogram import counts_changes
from .linear_answers import has_laplace, noisy_vector

Integers = NDArray[np.int64]
MOST_ANSWERS = checks.at_most(2**24, "a number is kept for each answer")
MOST_STEPS = 2**31  # of a bound: sums over 2^31 rows have 63 bits
MOST_SUM = 2**62
BLOCK = 2**22  # values that are copied at a time
_NUMBERS = "biuf"  # kinds of NumPy's types


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """What is summed.

    :ivar low: least value of each column, in steps of the grid
    :ivar high: greatest value
    :ivar pairs: columns of each pair, shape (pairs, 2)
    :ivar step: of the grid
    """

    low: Integers
    high: Integers
    pairs: Integers
    step: float

    def steps(self, values: NDArray[Any], columns: slice | Integers = slice(None)) -> Integers:
        """Return numbers of some columns as steps within their bounds."""
        if values.dtype.kind == "f" or self.step != 1.0:
            with np.errstate(all="ignore"):  # a warning would depend on the data
                values = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0) / self.step)
        found: Integers = np.clip(values, self.low[columns], self.high[columns]).astype(np.int64)
        return found

    def sums(self, data: errors.Data) -> list[int]:
        """Return the sum of each column, and of the products of each pair."""
        found = self._of_sparse(data) if scipy.sparse.issparse(data) else self._of_rows(data)
        return np.clip(found, -MOST_SUM, MOST_SUM).tolist()  # type: ignore[no-any-return]

    def _of_rows(self, data: errors.Data) -> Integers:
        width = len(self.low)
        found = np.zeros(width + len(self.pairs), dtype=np.int64)
        one, other = self.pairs.T
        for block in _blocks(data, width, max(1, BLOCK // len(found))):
            steps = self.steps(block)
            found[:width] += steps.sum(axis=0)
            found[width:] += (steps[:, one] * steps[:, other]).sum(axis=0)
        return found

    def _of_sparse(self, data: Any) -> Integers:
        _check_numbers(data, len(self.low))
        table = _well_formed(data.copy()).tocsr()
        table.sum_duplicates()
        empty = self.steps(np.zeros(len(self.low)))  # what a value that is not stored counts as
        more = self.steps(table.data, table.indices) - empty[table.indices]
        extra = scipy.sparse.csr_array((more, table.indices, table.indptr), shape=table.shape)
        columns = extra.tocsc()
        both = [columns[:, [at]].multiply(columns[:, [other]]).sum() for at, other in self.pairs]
        sums = extra.sum(axis=0) + table.shape[0] * empty
        return np.concatenate([sums, np.array(both, dtype=np.int64)])

    def norms(self, changed: bool) -> tuple[int, int]:
        """Return the L1 norm of what a row moves the sums by, and the square of the L2 norm."""
        most = self.high - self.low if changed else np.maximum(abs(self.low), abs(self.high))
        sizes, count = np.unique(most, return_counts=True)
        both = [(int(size), int(many)) for size, many in zip(sizes, count, strict=True)]
        pairs = len(self.pairs)  # of binary columns
        return sum(s * n for s, n in both) + pairs, sum(s * s * n for s, n in both) + pairs


def _blocks(data: errors.Data, width: int, rows: int) -> Iterator[NDArray[Any]]:
    """Yield arrays of some rows of so many numbers."""
    given, array_like = isinstance(data, np.ndarray), hasattr(data, "__array__")
    try:
        table = np.asarray(np.ma.filled(data, 0) if given else data)
    except Exception:  # rows of several lengths
        table = np.empty(0, dtype=object)
    if table.ndim == 1 and width == 1:
        table = table[:, None]
    if table.ndim == 2 and table.shape[1] == width and table.dtype.kind in _NUMBERS:
        yield from (table[at : at + rows] for at in range(0, len(table), rows))
        return
    narrow = table.ndim == 2 and table.shape[1] != width
    if (given and table.dtype.kind != "O") or (array_like and narrow):
        _check_numbers(table, width)
    for row in table if array_like else data:  # iterating over a frame may give its columns
        yield _as_numbers(row, width)[None]


def _check_numbers(table: Any, width: int) -> None:
    """Raise unless an array has numbers in so many columns; its type says nothing of a row."""
    if table.ndim != 2 or table.shape[1] != width or table.dtype.kind not in _NUMBERS:
        raise errors.InvalidTypeError(  # the number of rows, and the length of texts, are private
            f"the data must be numbers in {width} columns, with a row for each person, found rows "
            f"of shape {table.shape[1:]} of {table.dtype.type.__name__}"
        )


def _well_formed(table: Any) -> Any:
    """Return a sparse matrix, or raise if an index is outside: SciPy writes there unchecked."""
    try:
        getattr(table, "check_format", lambda: None)()
    except ValueError:
        raise errors.InvalidValueError(
            "the data must be a well-formed sparse matrix, found an index outside of its shape; "
            "build it from a scipy.sparse.coo_array, which checks"
        ) from None
    return table


def _as_numbers(row: errors.Data, width: int) -> NDArray[np.float64]:
    try:
        with np.errstate(all="ignore"):  # a warning, which may be an error, would depend on it
            numbers = np.atleast_1d(np.asarray(np.real(row), dtype=np.float64))
    except Exception:  # an error would reveal the row
        numbers = np.zeros(0)
    return numbers if numbers.shape == (width,) else np.zeros(width)


def _columns(columns: int, bounds: Any, pairs: Any, step: float) -> _Columns:
    try:
        ends = np.rint(checks.array(bounds, np.float64) / step)
    except (TypeError, ValueError) as error:
        raise errors.InvalidTypeError(f"bounds must be numbers: {error}") from error
    if ends.shape not in ((2,), (columns, 2)):
        raise errors.InvalidValueError(
            f"bounds must be two numbers, or two for each of the {columns} columns, found shape "
            f"{ends.shape}"
        )
    low, high = np.broadcast_to(ends, (columns, 2)).T
    if not ((-MOST_STEPS < low) & (low <= high) & (high < MOST_STEPS)).all():
        raise errors.InvalidValueError(
            "bounds must have the lower bound first, not be NaN, and be below 2^31 steps"
        )
    try:
        both = checks.array(pairs)
    except (TypeError, ValueError) as error:
        raise errors.InvalidTypeError(f"pairs must be pairs of whole numbers: {error}") from error
    both = both if both.size else np.zeros((0, 2), dtype=np.int64)
    if both.dtype.kind not in "iu" or both.shape[1:] != (2,):
        raise errors.InvalidTypeError(
            "pairs must be pairs of whole numbers, the indices of columns"
        )
    inside = both.min(initial=0) >= 0 and both.max(initial=0) < columns
    if not inside or (both[:, 0] == both[:, 1]).any():
        raise errors.InvalidValueError(f"pairs must be of two of the {columns} columns, from 0")
    if low[both].any() or not (high[both] == 1).all():
        raise errors.InvalidValueError(
            "pairs must be of binary columns, with the bounds (0, 1) in steps"
        )
    return _Columns(low.astype(np.int64), high.astype(np.int64), both.astype(np.int64), step)


@composition.constructor(columns=MOST_ANSWERS)
def make_marginals(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: errors.Distance,
    d_out: errors.Loss,
    columns: int,
    bounds: Any = (0, 1),
    *,
    pairs: Any = (),
    step: checks.Positive = 1.0,
) -> queryables.ConcurrentMeasurement:
    """Release the sum of each of many columns, with noise: one-way marginals.

    The columns are binary, or have public bounds. ``pairs`` adds two-way marginals: for a pair of
    binary columns, the number of rows in which both are 1. Noise is Laplace under pure DP, and
    Gaussian under zCDP, Gaussian DP, and (ε, δ) with δ > 0; all answers have the same scale, the
    smallest one that fits. There may be more columns than rows: a million columns are one release.

    Values are clamped to their bounds and rounded to multiples of ``step``. What is no number
    counts as 0, and so does each value of a row in a list that has another length.

    Guarantee: at most ``d_out``. With m the most that a row moves a sum by, the sensitivity is Σ m
    in L1 and sqrt(Σ m²) in L2, which is attained. For d binary columns, Gaussian noise of scale σ
    has ρ = d / (2 σ²) [BS16].

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: of rows: a ``dp.user_domain`` of NumPy arrays, SciPy sparse matrices or
        lists of rows; or vectors of numbers, which are one column
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance
    :param output_measure: pure, (ε, δ), zero-concentrated or Gaussian DP
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on the privacy loss
    :param columns: the number d of columns
    :param bounds: least and greatest value of all columns, or of each
    :param pairs: two-way marginals: pairs of indices of binary columns, from 0
    :param step: values and answers are multiples of it, up to the noise
    :return: a measurement that releases an array: d sums, then the number of each pair
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and use :func:`.cast`

    :example:

    10,000 binary attributes of 1,000 people, at ρ = 1/2: each mean has noise of scale 1/10.

    >>> space = dp.user_domain("people", lambda data: data.ndim == 2), dp.symmetric_distance()
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> means = oc.m.make_marginals(*space, zcdp, d_in=1, d_out=0.5, columns=10_000)
    >>> people = np.random.default_rng(1).integers(0, 2, (1_000, 10_000), dtype=np.uint8)
    >>> noisy = means(people) / 1_000
    >>> means.map(1), round(float(np.std(noisy - people.mean(axis=0))), 2)
    (0.5, 0.1)
    """
    measure = measures.composition_measure(output_measure)
    d_in = queryables.validate_d_in(input_metric, d_in)
    changed = counts_changes(input_metric)
    composition.check_static(input_domain)
    if not kind_of(input_domain).has_rows:
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) must be of arrays or lists of rows, made by "
            "dp.user_domain or dp.vector_domain"
        )
    budget = measure.validate_budget("d_out", d_out) if measure.is_planned else None
    planned, bound, delta = (
        measure.planned_under(budget) if measure.is_planned else (measure, None, None)
    )
    laplace = has_laplace(planned)
    if not (laplace or planned.gaussian_scale(1.0, 1.0) is not None):
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) must be pure, (epsilon, delta), zero-concentrated or "
            "Gaussian DP; use cast afterwards"
        )
    bound = checks.positive(d_out=bound)
    if not d_in > 0:
        raise errors.InvalidValueError(f"d_in ({d_in}) must be at least 1")
    summed = _columns(columns, bounds, pairs, step)
    answers = MOST_ANSWERS(pairs=columns + len(summed.pairs))
    l1, l2_squared = summed.norms(changed)
    # vectors of integers have no certificate under Gaussian DP; doubles hold sums up to 2^53
    atom = "f64" if planned.kind == measures.GAUSSIAN else "i64"

    def stability_map(distance: int) -> Any:
        if not laplace:
            return numerics.sqrt_up(l2_squared * distance**2 << 2 * numerics.SMALLEST)
        if not l1 * distance < 2**63:
            raise errors.InvalidValueError(f"d_in ({distance}) must be smaller, or bounds closer")
        return l1 * distance

    def function(data: errors.Data) -> list[Any]:
        found = summed.sums(data)
        return found if atom == "i64" else [float(min(max(s, -(2**53)), 2**53)) for s in found]

    element = dp.atom_domain(T="i64") if atom == "i64" else dp.atom_domain(T="f64", nan=False)
    transformation = _native.make_user_transformation(
        input_domain,
        input_metric,
        dp.vector_domain(element, size=answers),
        dp.l1_distance(T="i64") if laplace else dp.l2_distance(T="f64"),
        function=function,
        stability_map=stability_map,
    )
    noisy, scale = noisy_vector(transformation, d_in, planned, bound)
    of_noise = queryables.known_accuracy(noisy)
    assert of_noise is not None
    accuracy = queryables.Accuracy(
        of_noise.noise, scale * step, lambda beta, many: step * of_noise.bound(beta, many), answers
    )
    unit = 1 if step == 1.0 and atom == "i64" else step
    made = composition.make_measurement(
        (input_domain, input_metric),
        planned.opendp(),
        lambda token: np.array(queryables.run(noisy, token)) * unit,
        lambda distance: queryables.read_map(noisy, distance),
        f"Marginals({planned.opendp()}, columns={columns}, scale={scale * step})",
        accuracy=accuracy,
        releases=True,
    )
    return made if planned == measure else composition.cast(made, output_measure, delta=delta)


then_marginals = _native.to_then(make_marginals)
