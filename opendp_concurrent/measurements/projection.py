"""Linear queries by projection: noisy answers to batches, made consistent with one histogram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l2_distance
from opendp.mod import Domain, Measure, Metric, assert_features
from opendp.transformations import make_user_transformation

from .. import checks, owned
from ..checks import at_most, checked, count, each, optional, positive
from ..combinators import guards
from ..combinators.concurrent_composition import make_concurrent_composition
from ..combinators.wrap import Answer, wrap
from ..errors import InvalidTypeError, InvalidValueError, MessageLimitError, UnsupportedMeasureError
from ..exact.bracket import upper
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.named_queries import SYNTHESISE, SYNTHETIC
from ..queryables.session import validate_d_in
from .gaussian import make_certified_gaussian
from .histogram import (
    FRACTION,
    Universe,
    make_histogram,
    positive_distance,
    public_size,
    records_changed,
    rounded,
)

Array = NDArray[np.float64]


def project(answers: Array, queries: Array, size: int, rounds: int) -> Array:
    """Return a histogram of ``size`` records whose answers are nearly the nearest in L2.

    This is Frank and Wolfe's algorithm with exact steps on the simplex. Each round moves towards
    the cell of steepest descent.

    :param answers: shape (queries,)
    :param queries: shape (queries, cells)
    :param rounds: number of rounds; the squared distance is within O(1/rounds) of the least
    :return: shape (cells,), nonnegative, with sum ``size``
    """
    cells = queries.shape[1]
    weights = np.full(cells, 1 / cells)
    target, fitted = answers / size, queries @ weights
    for _ in range(rounds):
        residual = fitted - target
        best = int(np.argmin(residual @ queries))
        move = queries[:, best] - fitted
        length = float(move @ move)
        step = min(1.0, max(0.0, -float(residual @ move) / length)) if length > 0.0 else 0.0
        if step == 0.0:
            break
        weights *= 1 - step
        weights[best] += step
        fitted += step * move
    histogram: Array = size * weights
    return histogram


class _Batch:
    """A batch of queries, and the measurement that releases noisy answers to them."""

    def __init__(self, queries: Any, universe: Universe) -> None:
        if checks.is_a(queries, np.ndarray):
            try:
                rows = owned.array(queries)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(f"the batch {error}") from error
            queries = list(rows) if rows.ndim else None
        if checks.is_a(queries, str, bytes) or not checks.is_a(queries, Sequence):
            raise InvalidTypeError(
                "the batch must be a sequence of linear queries, each a value for each cell or a "
                f"function of a cell's value, found {type(queries).__name__}"
            )
        # at most 10^6 of them, so that squares of columns, at most 2^40 each, add up in 64 bits
        queries = checks.read("linear queries", **{"the batch": queries})
        if len(queries) == 0:
            raise InvalidValueError("the batch must have at least one query")
        self.matrix = rounded(np.stack([universe.vector(query) for query in queries]))
        columns = np.square((self.matrix * FRACTION).astype(np.int64)).sum(axis=0)
        squared = int(columns.max())
        root = upper(lambda real: real(squared).sqrt() / real(int(FRACTION)))
        self.longest = root if squared else 0.0

    def measurement(
        self, space: tuple[Domain, Metric], d_in: float, measure: Measure, d_mid: float
    ) -> Any:
        """Return a measurement that adds Gaussian noise to the answers; its loss is at most d_mid.

        The answers are a nonnegative combination of columns. Adding a record moves them by one
        column. Changing one moves them by the difference of two, at most sqrt(2) columns long.
        """
        matrix, columns = self.matrix, 2 if space[1] == records_changed() else 1

        def stability_map(distance: float) -> float:
            if self.longest == 0.0:
                return 0.0
            return upper(lambda real: real(columns).sqrt() * real(self.longest) * real(distance))

        answers = make_user_transformation(
            *space,
            vector_domain(atom_domain(T=float, nan=False)),
            l2_distance(T=float),
            function=lambda histogram: (matrix @ histogram).tolist(),
            stability_map=stability_map,
        )
        # the answers of an all-zero batch are constant, so any noise will do
        sensitivity = stability_map(d_in) if self.longest > 0.0 else 1.0
        rough = composition_measure(measure).gaussian_scale(sensitivity, d_mid)
        assert rough is not None  # the constructor has checked this
        self.scale = rough
        while True:
            noisy = answers >> make_certified_gaussian(
                answers.output_domain, answers.output_metric, self.scale, measure
            )
            if noisy.map(d_in) <= d_mid:
                return noisy
            self.scale *= 1 + 2.0**-40


class _Projection:
    """The state machine: the released answers, and the histogram that fits them best."""

    def __init__(
        self,
        launch: Answer,
        universe: Universe,
        size: int,
        release: Callable[[_Batch, float], Any],
        d_mids: tuple[float, ...],
        rounds: int,
    ) -> None:
        self._launch, self._universe, self._size = launch, universe, size
        self._release, self._d_mids, self._rounds = release, d_mids, rounds
        self._asked = 0
        self._queries = np.zeros((0, universe.cells))
        self._answers = np.zeros(0)
        self._histogram = np.full(universe.cells, size / universe.cells)

    def __call__(self, message: Any) -> Array:
        if type(message) is str and message == SYNTHETIC:
            histogram: Array = self._histogram.copy()
            return histogram
        batch = _Batch(message, self._universe)
        if self._asked == len(self._d_mids):
            raise MessageLimitError(self._asked, "batches", "more d_mids")
        measurement = self._release(batch, self._d_mids[self._asked])
        self._asked += 1
        answers = np.asarray(self._launch(measurement))
        self._queries = np.vstack([self._queries, batch.matrix / batch.scale])
        self._answers = np.concatenate([self._answers, answers / batch.scale])
        self._histogram = project(self._answers, self._queries, self._size, self._rounds)
        fitted: Array = batch.matrix @ self._histogram
        return fitted


_MOST_ROUNDS = at_most(10**6, "each is a pass over all released answers")


@checked(
    input_domain=guards.domain,
    input_metric=guards.metric,
    output_measure=guards.measure,
    d_mids=each("positive numbers", positive),
    size=optional(count),
    rounds=_MOST_ROUNDS,
)
def make_projected_queries(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Any,
    d_mids: Sequence[float],
    universe: Any,
    *,
    size: int | None = None,
    rounds: int = 1000,
) -> ConcurrentMeasurement:
    """Answer batches of linear queries by projection.

    The projection mechanism [NTZ13] is optimal for large error under zCDP [BBNS19]. The returned
    measurement spawns a queryable that takes one batch for each of ``d_mids``. A batch is a
    sequence of queries, such as one-way marginals. Each query is a value in [0, 1] for each cell of
    the universe, or a function of a cell's value. The mechanism first adds Gaussian noise to the
    batch's answers. It then projects all noisy answers so far, each divided by the scale of its
    noise, onto the answers of a histogram of ``size`` records. It returns the batch's answers on
    this histogram, in records. ``queryable.synthetic()``, or ``queryable("synthetic")``, returns
    the histogram itself at no charge.

    Batches may be chosen adaptively, and interleaved with other mechanisms. With q queries, m
    cells, n records and noise of scale σ, the error per query is about the root of
    n σ sqrt(log m)/q, if that is less than σ: projection removes noise that no histogram explains.

    Guarantee: the sum of ``d_mids`` for zCDP; the root of the sum of their squares for Gaussian DP
    [VZ23]. Projection is postprocessing.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: vectors of records
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance
    :param output_measure: zero-concentrated or Gaussian DP
    :param d_in: distance between neighbouring inputs
    :param d_mids: privacy loss of each batch, in order
    :param universe: the values of a record, or the number of categories if records are 0, 1, ...
    :param size: number of records, if it is public or was estimated privately; the size of
        ``input_domain`` if left out
    :param rounds: rounds of Frank and Wolfe's algorithm per projection; at most 10^6
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
    >>> marginals.shape, queryable.synthetic().shape
    ((4,), (16,))
    """
    assert_features("contrib", "honest-but-curious")
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
    size, rounds = public_size(input_domain, size), checks.count(rounds=rounds)
    space = histogram.output_domain, histogram.output_metric
    shares = tuple(
        checks.positive(**{f"d_mids[{index}]": d_mid})
        for index, d_mid in enumerate(checks.elements("positive numbers", d_mids=d_mids))
    )
    compositor = make_concurrent_composition(*space, output_measure, distance, shares)

    def release(batch: _Batch, d_mid: float) -> Any:
        return batch.measurement(space, distance, output_measure, d_mid)

    inner = wrap(
        compositor,
        lambda launch: _Projection(launch, known, size, release, shares, rounds),
        "ProjectedQueries",
        queries=SYNTHESISE,
    )
    concurrent: ConcurrentMeasurement = histogram >> inner
    return concurrent


then_projected_queries = _native.to_then(make_projected_queries)
