"""The noise that linear queries have under a measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import scipy

from .. import _checks as checks
from .. import _opendp as _native
from .. import composition, errors, numerics, queryables
from .._opendp import dp
from ..measures import CompositionMeasure, Noise, composition_measure
from . import histogram
from .certified import make_certified_gaussian, make_certified_laplace
from .noise import UP

_ATTEMPTS = 40  # to enlarge a scale, by 2^-40 first and by half last


def column_norm(
    space: tuple[dp.Domain, dp.Metric],
    measure: CompositionMeasure[Any],
    longest: float,
    distance: float,
) -> float:
    """Return how far a product with columns of this norm moves at a distance; rounded up."""
    if longest == 0.0:
        return 0.0
    changed, laplace = space[1] == histogram.records_changed(), has_laplace(measure)
    square = (4 if laplace else 2) if changed else 1
    return numerics.upper(lambda real: real(square).sqrt() * real(longest) * real(distance))


def has_laplace(measure: CompositionMeasure[Any]) -> bool:
    """Whether noise under the measure is Laplace, and not Gaussian."""
    return measure.noise is Noise.LAPLACE


def scale_for(measure: CompositionMeasure[Any], sensitivity: float, d_mid: float) -> float:
    """Return about the scale of the noise whose loss is ``d_mid``."""
    if has_laplace(measure):
        return sensitivity / d_mid
    scale = measure.gaussian_scale(sensitivity, d_mid)
    assert scale is not None  # the constructor has checked this
    return scale


def noisy_vector(
    transformation: Any, d_in: float, measure: CompositionMeasure[Any], d_mid: float
) -> tuple[Any, float]:
    """Return a measurement that adds noise to a vector, and the noise's scale.

    Its loss at ``d_in`` is at most ``d_mid``, by its own map.

    :param transformation: to vectors, with the L1 distance for Laplace noise, else the L2 distance
    :param measure: pure DP, for Laplace noise; or one that Gaussian noise has
    """
    # what never changes is constant, so any noise will do
    sensitivity = float(transformation.map(d_in)) or 1.0
    scale = scale_for(measure, sensitivity, d_mid)
    make = make_certified_laplace if has_laplace(measure) else make_certified_gaussian
    for attempt in range(_ATTEMPTS):
        domain, metric = transformation.output_domain, transformation.output_metric
        noisy = transformation >> make(domain, metric, scale, measure.opendp())
        if noisy.map(d_in) <= d_mid:
            return noisy, scale
        scale *= 1 + 2.0 ** (attempt - _ATTEMPTS)
    raise errors.InvalidValueError(
        f"d_mid ({d_mid}) must be larger: no scale of the noise is found for sensitivity "
        f"{sensitivity}"
    )


# Batches of linear queries, the Gaussian noise on their answers, and what is returned.

MOST_VALUES = 2**25  # of a batch
PAIRS = 2**31  # entries that are compared for the differences of columns: about a second
COMPARED_CELLS = 2048


@dataclass(frozen=True, eq=False)  # with slots, OpenDP's attempt to annotate it would raise
class LinearAnswers:
    """Answers to a batch of linear queries. It is also a sequence of them, and an array.

    :ivar values: the answers, in records; shape (queries,)
    :ivar gap: upper bound on how far the squared distance of the histogram's answers to all noisy
        answers is above the least possible one, in units of the noise's variance
    :ivar never_worse: whether all answers so far, in units of their noise, are proven to be at most
        as far from the truth as the noisy ones; if not, at most the root of ``gap`` further

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.change_one_distance()
    >>> zcdp, cells = dp.zero_concentrated_divergence(), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> made = oc.m.make_projected_queries(*space, zcdp, 1, [0.25, 0.25], universe=3)
    >>> answers = made([0] * 600 + [2] * 400)(cells)
    >>> round(answers[0], 1)  # noisy
    598.5
    >>> round(sum(answers), 3), answers.gap < 1e-3
    (1000.0, True)
    """

    values: histogram.Array
    gap: float = 0.0
    never_worse: bool = True

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __getitem__(self, index: int) -> float:
        return float(self.values[index])

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> histogram.Array:
        array: histogram.Array = np.array(self.values, dtype=dtype)
        return array


class Batch:
    """A batch of linear queries, as rows of a matrix.

    :ivar matrix: shape (queries, cells), multiples of 2^-20 in [0, 1]
    """

    def __init__(self, queries: Any, universe: histogram.Universe) -> None:
        if isinstance(queries, np.ndarray):
            try:
                rows = checks.array(queries)
            except (TypeError, ValueError) as error:
                raise errors.InvalidTypeError(f"the batch {error}") from error
            queries = list(rows) if rows.ndim else None
        if isinstance(queries, str | bytes) or not isinstance(queries, Sequence):
            raise errors.InvalidTypeError(
                "the batch must be a sequence of linear queries, each a value for each cell or a "
                f"function of a cell's value, found {type(queries).__name__}"
            )
        # at most 10^6 of them, so that squares of columns, at most 2^40 each, add up in 64 bits
        queries = checks.read("linear queries", **{"the batch": queries})
        if len(queries) == 0:
            raise errors.InvalidValueError("the batch must have at least one query")
        if not len(queries) * universe.cells <= MOST_VALUES:
            raise errors.InvalidValueError(
                f"the batch ({len(queries) * universe.cells:,} values) must have at most 2^25 "
                "values; answer the queries from a noisy histogram"
            )
        self.matrix: histogram.Array = np.stack([universe.vector(query) for query in queries])

    def release(
        self,
        space: tuple[dp.Domain, dp.Metric],
        d_in: float,
        measure: CompositionMeasure[Any],
        d_mid: float,
    ) -> tuple[Any, float]:
        """Return a measurement that adds noise to the answers, and the noise's scale.

        Its loss at ``d_in`` is at most ``d_mid``.

        :param measure: one that Gaussian noise has
        """
        length = self._length(changed=space[1] == histogram.records_changed())
        transformation = _native.make_user_transformation(
            *space,
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.l2_distance(T=float),
            function=lambda counts: histogram.answers(self.matrix, counts).tolist(),
            stability_map=lambda distance: numerics.upper(
                lambda real: real(length) * real(distance)
            ),
        )
        return noisy_vector(transformation, d_in, measure, d_mid)

    def _length(self, *, changed: bool) -> float:
        """Return the L2 norm of the most that a record changes the answers by; rounded up.

        It is added or removed: a column. Or it is changed: the difference of two columns; or one
        column, since a record may have no cell.
        """
        steps = (self.matrix * histogram.FRACTION).astype(np.int64)
        squares = int(np.square(steps).sum(axis=0).max())
        if changed:
            squares = max(squares, _largest_difference(steps, squares))
        return numerics.upper(lambda real: real(squares).sqrt() / real(int(histogram.FRACTION)))

    def answers(
        self, noisy: histogram.Array, found: histogram.Nearest, *, first: bool
    ) -> LinearAnswers:
        """Return the answers of the histogram that was found.

        If floats cannot tell that it is at most as far from the truth, as where a histogram
        explains all answers, the noisy answers to a first batch are as good.
        """
        values = noisy if first and not found.never_worse else self.matrix @ found.histogram
        return LinearAnswers(values, found.gap, first or found.never_worse)


def _largest_difference(steps: Any, most: int) -> int:
    """Return a bound on the squared norm of the difference of two columns; exact if there are few.

    :param steps: shape (rows, cells), nonnegative
    :param most: bound on the squared norm of a column
    """
    rows, cells = steps.shape
    if cells > COMPARED_CELLS or rows * cells**2 > PAIRS or 4 * most >= 2**53:
        return 2 * most  # |a - b|² = |a|² + |b|² - 2 <a, b>
    if cells == 1:
        return 0
    # sums of integers below 2^53 are exact in doubles, in any order
    return int(scipy.spatial.distance.pdist(steps.T.astype(np.float64), "sqeuclidean").max())


# Linear queries by projection: noisy answers to batches, made consistent with one histogram.


class _Projection:
    """The state machine: the released answers, and the histogram that fits them best."""

    def __init__(
        self,
        launch: composition.Ask,
        universe: histogram.Universe,
        size: int | None,
        release: Callable[[Batch, float], tuple[Any, float]],
        d_mids: tuple[float, ...],
    ) -> None:
        self._launch, self._universe, self._size = launch, universe, size
        self._release, self._d_mids = release, d_mids
        self._asked = 0
        self._queries = np.zeros((0, universe.cells))
        self._answers = np.zeros(0)
        self._histogram = np.full(universe.cells, (size or 0) / universe.cells)

    def __call__(self, message: errors.Query) -> histogram.Array | LinearAnswers:
        if type(message) is str and message == queryables.SYNTHETIC:
            copied: histogram.Array = self._histogram.copy()
            return copied
        batch = Batch(message, self._universe)
        if self._asked == len(self._d_mids):
            raise errors.MessageLimitError(self._asked, "batches", "more d_mids")
        measurement, scale = self._release(batch, self._d_mids[self._asked])
        self._asked += 1
        noisy = np.asarray(self._launch(measurement))
        self._queries = np.vstack([self._queries, batch.matrix / scale])
        self._answers = np.concatenate([self._answers, noisy / scale])
        found = histogram.nearest(self._answers, self._queries, self._size)
        self._histogram = found.histogram
        return batch.answers(noisy, found, first=self._asked == 1)


@composition.constructor(d_mids=checks.each("positive numbers", checks.positive))
def make_projected_queries(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: errors.Distance,
    d_mids: Sequence[float],
    universe: Any,
    *,
    size: checks.Count | None = None,
) -> queryables.ConcurrentMeasurement:
    """Answer batches of linear queries by projection.

    The projection mechanism [NTZ13] is optimal for large error under zCDP [BBNS19]. The returned
    measurement spawns a queryable that takes one batch for each of ``d_mids``. A batch is a
    sequence of queries, such as one-way marginals. Each query is a value in [0, 1] for each cell of
    the universe, or a function of a cell's value. The mechanism first adds Gaussian noise to the
    batch's answers. It then finds the histogram whose answers are nearest to all noisy answers so
    far, each divided by the scale of its noise. It returns :class:`.LinearAnswers`: the batch's
    answers on this histogram, in records, and the certified duality gap of the projection.
    ``queryable.synthetic()``, or ``queryable("synthetic")``, returns the histogram itself at no
    charge. Batches may be chosen adaptively, and interleaved with other mechanisms. If only
    sums of columns are needed, use :func:`.make_marginals`, which needs no histogram.

    Accuracy: suppose ``size`` is the number of records in the universe, or is left out. Then the
    answers to all batches so far are at most as far from the truth as the noisy answers were, in L2
    and in units of their noise, if ``never_worse`` of the last answer is true. It is always true
    for the first batch, and false where the noise is below what floats can resolve. With q queries,
    m cells, n records and noise of scale σ, the mean squared error of a batch is at most
    n σ sqrt(8 log(2m/β)/q) with probability 1 - β, and in expectation at most σ² min(1, m/q):
    projection removes noise that no histogram explains.

    Guarantee: the sum of ``d_mids`` for zCDP; the root of the sum of their squares for Gaussian DP
    [VZ23]. Projection is postprocessing.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: vectors of records; or of counts, one for each value of the universe, such
        as :func:`.make_table_count` returns
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance; of counts,
        ``dp.l1_distance(T="i64")``
    :param output_measure: zero-concentrated or Gaussian DP
    :param d_in: distance between neighbouring inputs
    :param d_mids: privacy loss of each batch, in order
    :param universe: the values of a record, or the number of categories if records are 0, 1, ...
    :param size: number of records, if it is public; the size of ``input_domain`` if left out; if
        that has none either, the number is taken to be unknown. An estimate of it is no help: its
        error becomes an error of the answers
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and use :func:`.cast`

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> mechanism = oc.m.make_projected_queries(
    ...     *space, dp.zero_concentrated_divergence(), d_in=1, d_mids=[0.25, 0.25],
    ...     universe=16, size=1000
    ... )
    >>> mechanism.map(1)
    0.5
    >>> queryable = mechanism([3, 5, 7, 9] * 250)
    >>> marginals = queryable([lambda value, bit=bit: value >> bit & 1 for bit in range(4)])
    >>> len(marginals), marginals.gap < 1e-3, queryable.synthetic().shape
    (4, True, (16,))
    """
    measure = composition_measure(output_measure)
    if measure.gaussian_scale(1.0, 1.0) is None:
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) must be zero-concentrated or Gaussian DP, which "
            "Gaussian noise has; use cast afterwards"
        )
    d_in = queryables.validate_d_in(input_metric, d_in)
    known = histogram.Universe(universe)
    counted = histogram.make_histogram(input_domain, input_metric, known)
    distance = histogram.positive_distance(counted, d_in)
    size = histogram.size_if_public(input_domain, input_metric, size)
    space = counted.output_domain, counted.output_metric
    shares = tuple(d_mids)
    compositor = composition.make_concurrent_composition(*space, output_measure, distance, shares)

    def release(batch: Batch, d_mid: float) -> tuple[Any, float]:
        return batch.release(space, distance, measure, d_mid)

    def error(beta: float, answers: int) -> float:
        """Bound the norm of the errors of a batch; each of its columns is at most this long."""
        longest = column_norm(space, measure, sqrt(answers), distance)
        scale = scale_for(measure, longest, min(shares)) * UP
        rank = min(known.cells, answers) if len(shares) == 1 else known.cells
        return scale * sqrt(scipy.special.chdtri(rank, beta) * UP) + 1 / histogram.FRACTION

    inner = composition.wrap(
        compositor,
        lambda launch: _Projection(launch, known, size, release, shares),
        "ProjectedQueries",
        queries=queryables.SYNTHESISE,
        accuracy=queryables.Accuracy("Gaussian, projected", None, error),
    )
    concurrent: queryables.ConcurrentMeasurement = counted >> inner
    return concurrent


then_projected_queries = _native.to_then(make_projected_queries)
