"""Guess and check: confirm good guesses of answers, and release the answer for a bad guess.

Private multiplicative weights guess from a synthetic histogram, and learn from bad guesses.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, expm1, log, log1p, sqrt
from typing import Any

import numpy as np
import scipy

from .. import _checks as checks
from .. import _opendp as _native
from .. import composition, errors, measures, queryables
from .._opendp import dp
from . import histogram
from .certified import composed, laplace_loss
from .linear_answers import column_norm, has_laplace, scale_for
from .noise import LaplaceNoise, Steps, released
from .queries import CheckedQueries, Deviation, sensitivity_at
from .sparse_vector import Outcome, SparseVectorAnswer, SparseVectorNoise, make_sparse_vector


class _Release:
    """Make measurements that release a query's answer with Laplace noise, in whole steps."""

    def __init__(
        self,
        space: tuple[dp.Domain, dp.Metric],
        measure: dp.Measure,
        d_in: errors.Distance,
        sensitivity: float,
        **scale: float,
    ) -> None:
        self._space, self._measure, self._d_in = space, measure, d_in
        self._sensitivity = sensitivity
        self._steps = Steps.for_sensitivity(sensitivity)
        self._scale = self._steps.scale(**scale)
        self.loss = laplace_loss(self._scale, self._steps.up(sensitivity), measure)

    def error(self, beta: float, answers: int) -> float:
        """Return the error of so many releases."""
        return released(self._scale, self._steps, beta, answers)

    def __call__(self, query: errors.Query) -> queryables.ConcurrentMeasurement:
        def spawn(token: queryables.Sealed) -> int | float:
            queries = CheckedQueries(
                self._space, self._d_in, self._sensitivity, self._steps, token, monotone=False
            )
            answer = queries.accept(query)()
            return self._steps.value(answer + LaplaceNoise(self._scale, 1).draw())

        return composition.make_measurement(
            self._space,
            self._measure,
            spawn,
            composition.constant_map(self._space[1], self._d_in, self.loss),
            "Release",
            releases=True,
        )


class _GuessAndCheck:
    """The state machine. It launches a sparse vector and the releases in one compositor."""

    def __init__(
        self, launch: Any, checker: queryables.ConcurrentMeasurement, release: _Release
    ) -> None:
        self._launch, self._release = launch, release
        self._check = launch(checker)

    def __call__(self, message: errors.Query) -> SparseVectorAnswer:
        parts = tuple(message) if isinstance(message, tuple) else ()
        if len(parts) != 2:
            raise errors.InvalidTypeError(
                f"the message must be a pair of a query and a guess, found {type(message).__name__}"
            )
        query, guess = parts
        answer: SparseVectorAnswer = self._check(Deviation(query, guess))
        if answer.outcome is Outcome.BELOW:
            return SparseVectorAnswer(Outcome.BELOW, guess)
        if answer.outcome is Outcome.EXHAUSTED:
            return answer
        return SparseVectorAnswer(Outcome.ABOVE, self._launch(self._release(query)))


_MOST_HITS = checks.at_most(10**5, "the compositor keeps a share for each release")


@composition.constructor(max_hits=_MOST_HITS)
def make_guess_and_check(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: errors.Distance,
    scale: checks.Positive,
    tolerance: checks.Real,
    max_hits: int,
    *,
    sensitivity: float | None = None,
    query_scale: checks.Positive | None = None,
    answer_scale: checks.Positive | None = None,
    refresh: bool = False,
    one_sided: bool = True,
    orders: Sequence[float] | None = None,
    delta: float | None = None,
) -> queryables.ConcurrentMeasurement:
    """Check guesses of queries' answers, and release the answers that were guessed badly.

    The mechanism of [LW22, Section 3]. The returned measurement spawns a queryable. It takes pairs
    of a query, as in :func:`.make_sparse_vector`, and a guess. If the answer is within about
    ``tolerance`` of the guess, it returns ``BELOW`` with the guess as value. Else it returns
    ``ABOVE`` with the answer plus Laplace noise as value. After ``max_hits`` of these it returns
    ``EXHAUSTED``. Inside, a sparse vector and Laplace releases are children of one
    :func:`.make_concurrent_composition`, and their queries interleave. Without concurrent
    composition each release would need a new sparse vector.

    Guarantee: the concurrent composition of the sparse vector and c = ``max_hits`` releases
    [LW22, Theorem 1]. For pure DP it is D/scale + c 2D/query_scale + c D/answer_scale. For
    (ε, δ)-DP with ``delta``: the optimal ε of their composition at that δ [KOV15], [MV16], where a
    sparse vector with ``refresh`` counts as c mechanisms of one hit. All of them are ε-DP, so
    finite communication is not needed [VW21, Theorem 5.4].

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: scale of the tolerance's Laplace noise, in units of the queries' answers
    :param tolerance: largest error of a good guess
    :param max_hits: how many answers may be released, c; at most 10^5
    :param sensitivity: bound D on the change of an answer between inputs at distance ``d_in``, as
        in :func:`.make_sparse_vector`; it may be left out only if ``d_in`` is 1: then it is 1
    :param query_scale: scale of each check's noise; by default as in :func:`.make_sparse_vector`
    :param answer_scale: scale of each release's noise; ``scale`` if left out
    :param refresh: give the tolerance fresh noise after each release
    :param one_sided: whether the noise of checks is one-sided, as in :func:`.make_sparse_vector`
    :param orders: for Rényi curves only, as in :func:`.make_concurrent_composition`
    :param delta: for (ε, δ)-DP: the δ of the optimal composition; the plain sum if left out
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> mechanism = oc.m.make_guess_and_check(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, query_scale=12.0, answer_scale=30.0,
    ...     tolerance=500, max_hits=3
    ... )
    >>> mechanism.map(1)
    1.1
    >>> queryable = mechanism([1, 2, 3] * 1000)
    >>> count = space >> dp.t.then_count()
    >>> queryable((count, 3100))
    SparseVectorAnswer(outcome=BELOW, value=3100)
    >>> queryable((count, 0)).outcome
    ABOVE

    With many releases, the optimal composition is much smaller than the sum:

    >>> hits, measure = 200, dp.approximate(dp.max_divergence())
    >>> for delta in (None, 1e-6):
    ...     oc.m.make_guess_and_check(
    ...         *space, measure, 1, scale=100.0, query_scale=4e4, answer_scale=50.0,
    ...         tolerance=500, max_hits=hits, delta=delta
    ...     ).map(1)
    (4.020..., 0.0)
    (1.2066..., 1e-06)
    """
    space = input_domain, input_metric
    d_in = queryables.validate_d_in(input_metric, d_in)
    sensitivity = checks.plain(sensitivity_at(d_in, sensitivity))
    make_checker = partial(
        make_sparse_vector,
        *space,
        output_measure,
        d_in,
        scale,
        tolerance,
        sensitivity=sensitivity,
        query_scale=query_scale,
        refresh=refresh,
        one_sided=one_sided,
    )
    checker = make_checker(max_hits)
    answer_scale = scale if answer_scale is None else answer_scale
    release = _Release(space, output_measure, d_in, sensitivity, answer_scale=answer_scale)
    compositor = composition.make_concurrent_composition(
        *space,
        output_measure,
        d_in,
        [checker.map(d_in)] + [release.loss] * max_hits,
        orders=orders,
    )
    privacy_map = compositor.inside.privacy_map
    if delta is not None:
        comparisons = [make_checker(1).map(d_in)] * max_hits if refresh else [checker.map(d_in)]
        shares = *comparisons, *[release.loss] * max_hits
        d_out = measures.composition_measure(output_measure).optimal(shares, delta)
        privacy_map = composition.constant_map(input_metric, d_in, d_out)

    def error(beta: float, answers: int) -> float:
        confirmed = tolerance + checker.accuracy(beta / 2, answers=answers)
        return max(confirmed, release.error(beta / 2, min(max_hits, answers)))

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        machine = _GuessAndCheck(compositor.inside.spawn(token), checker, release)
        handle = queryables.MachineQueryable(machine, "GuessAndCheck")
        handle.passes_on = True  # only what it launches sees the data
        return handle

    return composition.make_measurement(
        space,
        output_measure,
        spawn,
        privacy_map,
        f"GuessAndCheck({output_measure}, d_in={d_in}, max_hits={max_hits})",
        accuracy=queryables.Accuracy("Laplace", scale, error),
        free=True,  # its compositor is
    )


then_guess_and_check = _native.to_then(make_guess_and_check)


# The parameters of private multiplicative weights, and the error that they guarantee.
#
# A synthetic histogram n p answers linear queries q with values in [0, 1]. Guess and check finds
# its bad answers. Suppose that all noise stays in bounds: an answer that is confirmed is within α =
# T + t, an answer that is released was off by at least g = T - t, and its noise is below g. Then an
# update goes in the right direction: p' ∝ p exp(-η r), r = q or 1 - q, <r, p> - <r, x> >= d = g/n,
# with x the true histogram over n. By Hoeffding's lemma log <p, exp(-η r)> <= -η <r, p> + η²/8, so
# the divergence of x from p falls by at least η d - η²/8, which is 2d² for η = 4d. It is at most
# log m at the start, m the number of cells, and never negative. So there are at most log m / (2 d²)
# updates, and at most one per query. After [HR10] and [DR14, Section 4.2], whose Lemma 4.9 has η d
# - η².
#
# Noise: the threshold's noise (c draws if refreshed) is at most t - t', and each query's noise is
# at most t' in the direction of an error. Releases' noise is below g. Each fails with probability
# β/3.

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

    def loss(self, sensitivity: float, measure: measures.CompositionMeasure[Any]) -> Any:
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
    measure: measures.CompositionMeasure[Any],
    sensitivity: float,
    d_out: errors.Loss,
    *,
    cells: int,
    size: int,
    queries: int,
    beta: float,
) -> MultiplicativeWeightsPlan:
    """Return the parameters with the least error, among those with a loss of at most ``d_out``."""
    # pure losses add up, however they are split
    refresh = measure.noise is not measures.Noise.LAPLACE
    third = TAIL * beta / 3
    if not third > LEAST:
        raise errors.InvalidValueError(f"beta ({beta}) must be at least 1e-300")

    def at(error: float, share: float) -> MultiplicativeWeightsPlan:
        tolerance = error / (1 + share)
        gap = (1 - share) * tolerance
        distance = gap / size
        updates = max(1, min(queries, ceil(log(cells) / (2 * distance**2))))
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

    def fits(error: float, share: float) -> bool:
        return measure.at_most(at(error, share).loss(sensitivity, measure), d_out)

    best: MultiplicativeWeightsPlan | None = None
    for share in SHARES:
        low, high = 0.0, float(size) if best is None else best.error
        if not fits(high, share):
            continue
        while high - low > 1e-4 * high:
            middle = (low + high) / 2 if low else high / 4
            if middle < sensitivity:  # below the noise that any release needs
                break
            low, high = (low, middle) if fits(middle, share) else (middle, high)
        best = at(high, share)
    if best is None:
        raise errors.InvalidValueError(
            f"d_out ({d_out}) must be larger for {size} records, {cells} cells and "
            f"{queries} queries: no error below the number of records can be guaranteed"
        )
    return best


# Private multiplicative weights: answer many linear queries from a synthetic histogram.


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """State of the person in the middle: logarithms of the weights, and the query in progress."""

    log_weights: histogram.Array
    distribution: histogram.Array
    query: histogram.Array | None = None
    guess: float = 0.0


def _state(log_weights: histogram.Array) -> _State:
    weights = np.exp(log_weights - log_weights.max())
    return _State(log_weights, weights / weights.sum())


class _MultiplicativeWeights:
    """The person in the middle between the analyst and guess and check."""

    def __init__(self, universe: histogram.Universe, size: int, learning_rate: float) -> None:
        self._universe, self._size, self._rate = universe, size, learning_rate

    def start(self) -> _State:
        return _state(np.full(self._universe.cells, -log(self._universe.cells)))

    def __call__(
        self, state: _State, tag: composition.Tag, message: errors.Query
    ) -> tuple[_State, composition.Tag, Any]:
        if tag is composition.QUERY:
            if type(message) is str and message == queryables.SYNTHETIC:
                return state, composition.ANSWER, self._size * state.distribution
            query = self._universe.vector(message)
            guess = self._size * histogram.inner(query, state.distribution)
            asking = _State(state.log_weights, state.distribution, query, guess)
            return asking, composition.QUERY, (histogram.LinearQuery(query), guess)
        assert state.query is not None
        if message.outcome is not Outcome.ABOVE:
            return state, composition.ANSWER, SparseVectorAnswer(message.outcome, state.guess)
        too_high = message.value < state.guess
        direction = state.query if too_high else 1 - state.query
        return _state(state.log_weights - self._rate * direction), composition.ANSWER, message


_MOST_QUERIES = checks.at_most(2**62, "no session has more")


@composition.constructor(queries=_MOST_QUERIES, size=checks.optional(_MOST_QUERIES))
def make_private_multiplicative_weights(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: errors.Distance,
    d_out: errors.Loss,
    universe: Any,
    queries: int,
    *,
    size: int | None = None,
    beta: checks.Probability = 0.05,
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
    The proof is in ``mechanisms/guess_and_check.py``. The noise of comparisons
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
    measure = measures.composition_measure(output_measure)
    if not measure.is_planned:
        raise errors.UnsupportedMeasureError(
            f"output_measure ({measure.name}) is not supported; build the mechanism for "
            "zCDP, and use cast"
        )
    d_in = queryables.validate_d_in(input_metric, d_in)
    budget = measure.validate_budget("d_out", d_out)
    planned, bound, delta = measure.planned_under(budget)
    known = histogram.Universe(universe)
    size = histogram.public_size(input_domain, input_metric, size)
    if not 0.0 < beta < 1.0:
        raise errors.InvalidValueError(f"beta ({beta}) must be above 0 and below 1")
    counted = histogram.make_histogram(input_domain, input_metric, known)
    distance = histogram.positive_distance(counted, d_in)
    space = counted.output_domain, counted.output_metric
    parameters = plan(
        planned, distance, bound, cells=known.cells, size=size, queries=queries, beta=beta
    )
    laplace = has_laplace(planned)
    if laplace or planned.gaussian_scale(1.0, 1.0) is not None:
        # what one noisy histogram promises for queries of 1 in each cell, which have the most noise
        scale = scale_for(planned, column_norm(space, planned, 1.0, distance), bound)
        promised = scale * _largest_sum(known.cells, queries, beta, laplace=laplace)
        if promised < parameters.error:
            warnings.warn(
                f"one noisy histogram promises an error of {promised:.4g} for {queries} linear "
                f"queries over {known.cells} cells, private multiplicative weights "
                f"{parameters.error:.4g}; add noise to the histogram",
                errors.AccuracyWarning,
                stacklevel=4,
            )
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
    mechanism: Any = counted >> composition.postprocessing(
        checker, person, start, queries=queryables.SYNTHESISE, accuracy=accuracy
    )
    if planned != measure:
        mechanism = composition.cast(mechanism, output_measure, delta=delta)
    mechanism.plan = parameters
    concurrent: queryables.ConcurrentMeasurement = mechanism
    return concurrent


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
