"""The parameters of private multiplicative weights, and the error that they guarantee.

A synthetic histogram n p answers linear queries q with values in [0, 1]. Guess and check finds its
bad answers. Suppose that all noise stays in bounds: an answer that is confirmed is within
α = T + t, an answer that is released was off by at least g = T - t, and its noise is below g. Then
an update goes in the right direction: p' ∝ p exp(-η r), r = q or 1 - q, <r, p> - <r, x> >= d = g/n,
with x the true histogram over n. By Hoeffding's lemma log <p, exp(-η r)> <= -η <r, p> + η²/8, so
the divergence of x from p falls by at least η d - η²/8, which is 2d² for η = 4d. It is at most
log m at the start, m the number of cells, and never negative. So there are at most log m / (2 d²)
updates, and at most one per query. After [HR10] and [DR14, Section 4.2], whose Lemma 4.9 has
η d - η².

Noise: the threshold's noise (c draws if refreshed) is at most t - t', and each query's noise is at
most t' in the direction of an error. Releases' noise is below g. Each fails with probability β/3.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, expm1, log, log1p, sqrt
from typing import Any

import numpy as np
import scipy
from opendp.mod import Domain, Measure, Metric

from .. import _opendp as _native
from .. import errors, queryables
from .._checks import Probability, at_most, optional
from ..composition import ANSWER, QUERY, Tag, cast, constructor, postprocessing
from ..measures import CompositionMeasure, Noise, composition_measure
from .certified import composed, laplace_loss
from .guess_and_check import make_guess_and_check
from .histogram import (
    Array,
    LinearQuery,
    Universe,
    inner,
    make_histogram,
    positive_distance,
    public_size,
)
from .linear_answers import column_norm, has_laplace, scale_for
from .noise import Steps
from .sparse_vector import Outcome, SparseVectorAnswer, SparseVectorNoise

LEAST = 1e-301  # logarithms of numbers that it divides are doubles
SHARES = (0.15, 0.2, 0.25, 1 / 3)  # of t in T
TAIL = 1 - 1e-6  # discrete noise on a fine grid has tails above Laplace's by a factor below 1/TAIL


@dataclass(frozen=True, slots=True)
class MultiplicativeWeightsPlan:
    """The parameters, and the error that they guarantee.

    :ivar error: α: with probability at least 1 - β every answer is within this, in records
    :ivar tolerance: T: largest error of the synthetic histogram before it is updated
    :ivar max_updates: c: largest number of updates
    :ivar learning_rate: η
    :ivar scale: scale of the tolerance's noise
    :ivar query_scale: scale of each check's noise
    :ivar answer_scale: scale of each release's noise
    :ivar refresh: whether the tolerance gets fresh noise after each release
    """

    error: float
    tolerance: float
    max_updates: int
    learning_rate: float
    scale: float
    query_scale: float
    answer_scale: float
    refresh: bool

    def loss(self, sensitivity: float, measure: CompositionMeasure[Any]) -> Any:
        """Return the privacy loss, for queries of this sensitivity."""
        steps, opendp = Steps.for_sensitivity(sensitivity), measure.opendp()
        noise = SparseVectorNoise(
            threshold=steps.scale(scale=self.scale),
            query=steps.scale(query_scale=self.query_scale),
            answer=None,
            hits=self.max_updates,
            refresh=self.refresh,
        )
        shift = steps.up(sensitivity)
        release = laplace_loss(steps.scale(answer_scale=self.answer_scale), shift, opendp)
        return composed(opendp, [(noise.loss(shift, opendp), 1), (release, self.max_updates)])


def plan(
    measure: CompositionMeasure[Any],
    sensitivity: float,
    d_out: errors.Loss,
    *,
    cells: int,
    size: int,
    queries: int,
    beta: float,
) -> MultiplicativeWeightsPlan:
    """Return the parameters with the least error, among those with a loss of at most ``d_out``."""
    refresh = measure.noise is not Noise.LAPLACE  # pure losses add up, however they are split

    def fits(candidate: MultiplicativeWeightsPlan) -> bool:
        return measure.at_most(candidate.loss(sensitivity, measure), d_out)

    best: MultiplicativeWeightsPlan | None = None
    for share in SHARES:

        def at(error: float, share: float = share) -> MultiplicativeWeightsPlan:
            return _at(error, share, refresh, cells, size, queries, beta)

        low, high = 0.0, float(size) if best is None else best.error
        if not fits(at(high)):
            continue
        while high - low > 1e-4 * high:
            middle = (low + high) / 2 if low else high / 4
            if middle < sensitivity:  # below the noise that any release needs
                break
            low, high = (low, middle) if fits(at(middle)) else (middle, high)
        best = at(high)
    if best is None:
        raise errors.InvalidValueError(
            f"d_out ({d_out}) must be larger for {size} records, {cells} cells and "
            f"{queries} queries: no error below the number of records can be guaranteed"
        )
    return best


def _at(
    error: float,
    share: float,
    refresh: bool,
    cells: int,
    size: int,
    queries: int,
    beta: float,
) -> MultiplicativeWeightsPlan:
    tolerance = error / (1 + share)
    gap = (1 - share) * tolerance
    distance = gap / size
    updates = max(1, min(queries, ceil(log(cells) / (2 * distance**2))))
    third = TAIL * beta / 3
    if not third > LEAST:
        raise errors.InvalidValueError(f"beta ({beta}) must be at least 1e-300")
    threshold_tail = log((updates if refresh else 1) / third)
    query_tail = log(max(2.0, queries / (2 * third)))
    ratio = sqrt(2 * (1 if refresh else updates) * threshold_tail / query_tail)
    scale = share * tolerance / (threshold_tail + ratio * query_tail)
    return MultiplicativeWeightsPlan(
        error=error,
        tolerance=tolerance,
        max_updates=updates,
        learning_rate=4 * distance,
        scale=scale,
        query_scale=ratio * scale,
        answer_scale=gap / log(updates / third),
        refresh=refresh,
    )


# Private multiplicative weights: answer many linear queries from a synthetic histogram.


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """State of the person in the middle: logarithms of the weights, and the query in progress."""

    log_weights: Array
    distribution: Array
    query: Array | None = None
    guess: float = 0.0


def _state(log_weights: Array) -> _State:
    weights = np.exp(log_weights - log_weights.max())
    return _State(log_weights, weights / weights.sum())


class _MultiplicativeWeights:
    """The person in the middle between the analyst and guess and check."""

    def __init__(self, universe: Universe, size: int, learning_rate: float) -> None:
        self._universe, self._size, self._rate = universe, size, learning_rate

    def start(self) -> _State:
        return _state(np.full(self._universe.cells, -log(self._universe.cells)))

    def __call__(self, state: _State, tag: Tag, message: errors.Query) -> tuple[_State, Tag, Any]:
        if tag is QUERY:
            if type(message) is str and message == queryables.SYNTHETIC:
                return state, ANSWER, self._size * state.distribution
            query = self._universe.vector(message)
            guess = self._size * inner(query, state.distribution)
            asking = _State(state.log_weights, state.distribution, query, guess)
            return asking, QUERY, (LinearQuery(query), guess)
        assert state.query is not None
        if message.outcome is not Outcome.ABOVE:
            return state, ANSWER, SparseVectorAnswer(message.outcome, state.guess)
        too_high = message.value < state.guess
        direction = state.query if too_high else 1 - state.query
        return _state(state.log_weights - self._rate * direction), ANSWER, message


_MOST_QUERIES = at_most(2**62, "no session has more")


@constructor(queries=_MOST_QUERIES, size=optional(_MOST_QUERIES))
def make_private_multiplicative_weights(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: errors.Distance,
    d_out: errors.Loss,
    universe: Any,
    queries: int,
    *,
    size: int | None = None,
    beta: Probability = 0.05,
) -> queryables.ConcurrentMeasurement:
    """Answer linear queries over a finite universe from a synthetic histogram.

    Private multiplicative weights [HR10]. The returned measurement spawns a queryable. A query is
    a value in [0, 1] for each cell of the universe, or a function from a cell's value to [0, 1].
    Its answer is the sum over the records, as a :class:`.SparseVectorAnswer`: ``BELOW`` if the
    synthetic histogram was accurate enough; ``ABOVE`` if it was not, and was updated; ``EXHAUSTED``
    if all updates are used: then the value is synthetic, without an accuracy guarantee.
    ``queryable.synthetic()``, or ``queryable("synthetic")``, returns the synthetic histogram at no
    charge.

    The error that can be promised is small for very many queries only, over more cells than there
    are records: elsewhere one noisy histogram promises less, and a warning says so
    (:class:`.AccuracyWarning`).

    The mechanism is interactive postprocessing of :func:`.make_guess_and_check`: a person in the
    middle guesses from the synthetic histogram, and updates it with the answers to bad guesses. The
    parameters are those with the least guaranteed error within ``d_out``. They are in ``plan`` of
    the measurement.

    Privacy: the guarantee of guess and check, by [HSTVVXZ23, Theorem 2.17]; for (ε, δ) with δ > 0,
    zCDP converted at δ. Accuracy: suppose ``size`` is the number of records in the universe. With
    probability at least 1 - ``beta``, the first ``queries`` answers are all within ``plan.error``
    (for queries rounded to multiples of 2^-20), and there are at most ``plan.max_updates`` updates.
    The proof is in ``mechanisms/multiplicative_weights.py``. The noise of comparisons
    is two-sided: one-sided noise would reduce ``plan.error`` by at most 2 %.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: vectors of records; or of counts, one for each value of the universe, such
        as :func:`.make_table_count` returns
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance; of counts,
        ``dp.l1_distance(T="i64")``
    :param output_measure: pure, (ε, δ), zero-concentrated, Gaussian DP, or one Rényi order
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on the privacy loss
    :param universe: the values of a record, or the number of categories if records are 0, 1, ...
    :param queries: number of queries that the accuracy guarantee covers; more are allowed
    :param size: number of records, if it is public or was estimated privately; the size of
        ``input_domain`` if left out
    :param beta: probability that the accuracy guarantee fails
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument; ``d_out`` if no error below
        ``size`` can be guaranteed
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and use :func:`.cast`

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> mechanism = oc.m.make_private_multiplicative_weights(
    ...     *space, dp.zero_concentrated_divergence(), d_in=1, d_out=0.5,
    ...     universe=64, queries=100, size=10_000
    ... )
    >>> mechanism.map(1) <= 0.5
    True
    >>> mechanism.plan.max_updates, round(mechanism.plan.error)
    (100, 1940)
    >>> queryable = mechanism([0, 1, 2, 3] * 2500)
    >>> answer = queryable(lambda value: value % 2)
    >>> queryable.synthetic().shape
    (64,)
    """
    measure = composition_measure(output_measure)
    if not measure.is_planned:
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) is not supported; build the mechanism for "
            "zCDP, and use cast"
        )
    d_in = queryables.validate_d_in(input_metric, d_in)
    budget = measure.validate_budget("d_out", d_out)
    planned, bound, delta = measure.planned_under(budget)
    known = Universe(universe)
    size = public_size(input_domain, input_metric, size)
    if not 0.0 < beta < 1.0:
        raise errors.InvalidValueError(f"beta ({beta}) must be above 0 and below 1")
    histogram = make_histogram(input_domain, input_metric, known)
    distance = positive_distance(histogram, d_in)
    space = histogram.output_domain, histogram.output_metric
    parameters = plan(
        planned, distance, bound, cells=known.cells, size=size, queries=queries, beta=beta
    )
    _warn_if_worse(parameters.error, space, planned, distance, bound, known, queries, beta)
    checker = make_guess_and_check(
        *space,
        planned.opendp(),
        distance,
        parameters.scale,
        parameters.tolerance,
        parameters.max_updates,
        sensitivity=distance,
        query_scale=parameters.query_scale,
        answer_scale=parameters.answer_scale,
        refresh=parameters.refresh,
        one_sided=False,  # the plan is for noise to both sides
    )
    person = _MultiplicativeWeights(known, size, parameters.learning_rate)

    def error(failing: float, answers: int) -> float:
        if not (beta <= failing and answers <= queries):
            raise errors.InvalidValueError(
                f"beta ({failing}) must be at least {beta}, and answers ({answers}) at most "
                f"{queries}, which the mechanism was planned for; plan it for others"
            )
        return parameters.error

    accuracy = queryables.Accuracy("Laplace", None, error, queries)
    start = person.start()
    mechanism: Any = histogram >> postprocessing(
        checker, person, start, queries=queryables.SYNTHESISE, accuracy=accuracy
    )
    if planned != measure:
        mechanism = cast(mechanism, output_measure, delta=delta)
    mechanism.plan = parameters
    concurrent: queryables.ConcurrentMeasurement = mechanism
    return concurrent


def _warn_if_worse(
    error: float,
    space: tuple[Domain, Metric],
    measure: CompositionMeasure[Any],
    distance: float,
    d_out: Any,
    universe: Universe,
    queries: int,
    beta: float,
) -> None:
    """Warn if one noisy histogram promises a smaller error for as many queries, whatever they are.

    The promise is that of queries of 1 in each cell, which have the most noise.
    """
    if not (has_laplace(measure) or measure.gaussian_scale(1.0, 1.0) is not None):
        return
    scale = scale_for(measure, column_norm(space, measure, 1.0, distance), d_out)
    promised = scale * _largest_sum(universe.cells, queries, beta, laplace=has_laplace(measure))
    if promised < error:
        warnings.warn(
            f"one noisy histogram promises an error of {promised:.4g} for {queries} linear "
            f"queries over {universe.cells} cells, private multiplicative weights {error:.4g}; "
            "add noise to the histogram",
            errors.AccuracyWarning,
            stacklevel=5,
        )


def _largest_sum(cells: int, queries: int, beta: float, *, laplace: bool) -> float:
    """Bound all sums over so many draws of noise of scale 1, with probability 1 - β.

    By Šidák's inequality for Gaussian noise; by Chernoff's and the union bound for Laplace noise.
    """
    if not laplace:
        return sqrt(cells) * -float(scipy.special.ndtri(-expm1(log1p(-beta) / queries) / 2))
    rates = np.arange(1, 1000) / 1000  # log E exp(t w) = -log(1 - t²)
    tails = log(2 * queries / beta) - cells * np.log1p(-np.square(rates))
    return float((tails / rates).min())


then_private_multiplicative_weights = _native.to_then(make_private_multiplicative_weights)
