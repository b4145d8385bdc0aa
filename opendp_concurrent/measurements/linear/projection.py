"""Linear queries by projection: noisy answers to batches, made consistent with one histogram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np
import scipy
from opendp.mod import Domain, Measure, Metric

from ...arguments.checked import Count
from ...arguments.checks import each, positive
from ...combinators.concurrent_composition import make_concurrent_composition
from ...combinators.constructor import constructor
from ...combinators.wrap import Ask, wrap
from ...errors import MessageLimitError, UnsupportedMeasureError
from ...measures import composition_measure
from ...native import opendp as _native
from ...queryables.accuracy import Accuracy
from ...queryables.mechanism import ConcurrentMeasurement
from ...queryables.named_queries import SYNTHESISE, SYNTHETIC
from ...queryables.session import validate_d_in
from ...types import Distance, Query
from ..noise_accuracy import UP
from .histogram import FRACTION, Array, Universe, make_histogram, positive_distance, size_if_public
from .linear_answers import Batch, LinearAnswers
from .nearest import nearest
from .noise_of import column_norm, scale_for


class _Projection:
    """The state machine: the released answers, and the histogram that fits them best."""

    def __init__(
        self,
        launch: Ask,
        universe: Universe,
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

    def __call__(self, message: Query) -> Array | LinearAnswers:
        if type(message) is str and message == SYNTHETIC:
            histogram: Array = self._histogram.copy()
            return histogram
        batch = Batch(message, self._universe)
        if self._asked == len(self._d_mids):
            raise MessageLimitError(self._asked, "batches", "more d_mids")
        measurement, scale = self._release(batch, self._d_mids[self._asked])
        self._asked += 1
        noisy = np.asarray(self._launch(measurement))
        self._queries = np.vstack([self._queries, batch.matrix / scale])
        self._answers = np.concatenate([self._answers, noisy / scale])
        found = nearest(self._answers, self._queries, self._size)
        self._histogram = found.histogram
        return batch.answers(noisy, found, first=self._asked == 1)


@constructor(d_mids=each("positive numbers", positive))
def make_projected_queries(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    d_mids: Sequence[float],
    universe: Any,
    *,
    size: Count | None = None,
) -> ConcurrentMeasurement:
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
        as :func:`.make_table_counts` returns
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
        raise UnsupportedMeasureError(
            f"output_measure ({measure.name}) must be zero-concentrated or Gaussian DP, which "
            "Gaussian noise has; use cast afterwards"
        )
    d_in = validate_d_in(input_metric, d_in)
    known = Universe(universe)
    histogram = make_histogram(input_domain, input_metric, known)
    distance = positive_distance(histogram, d_in)
    size = size_if_public(input_domain, input_metric, size)
    space = histogram.output_domain, histogram.output_metric
    shares = tuple(d_mids)
    compositor = make_concurrent_composition(*space, output_measure, distance, shares)

    def release(batch: Batch, d_mid: float) -> tuple[Any, float]:
        return batch.release(space, distance, measure, d_mid)

    def error(beta: float, answers: int) -> float:
        """Bound the norm of the errors of a batch; each of its columns is at most this long."""
        longest = column_norm(space, measure, sqrt(answers), distance)
        scale = scale_for(measure, longest, min(shares)) * UP
        rank = min(known.cells, answers) if len(shares) == 1 else known.cells
        return scale * sqrt(scipy.special.chdtri(rank, beta) * UP) + 1 / FRACTION

    inner = wrap(
        compositor,
        lambda launch: _Projection(launch, known, size, release, shares),
        "ProjectedQueries",
        queries=SYNTHESISE,
        accuracy=Accuracy("Gaussian, projected", None, error),
    )
    concurrent: ConcurrentMeasurement = histogram >> inner
    return concurrent


then_projected_queries = _native.to_then(make_projected_queries)
