"""The privacy loss of a sparse vector.

A threshold T gets noise ρ of scale s. Each query's answer q gets fresh noise ν of scale s', and is
above if q + ν >= T + ρ, at most c times. Answers are whole steps, at most D apart on neighbours.
ρ and ν are whole steps too, with probabilities p(k) proportional to exp(-|k|/scale). The noise has
no upper bound and sums of integers are exact, so the proofs hold for the code without rounding.

**Threshold noised once** [LSL17, Algorithm 7]. Let a be outcomes, at most c of them above, F(ρ)
their probability on the data given ρ, F'(ρ) that on a neighbour, whose answers are q'. Below,
q + ν < T + ρ gives q' + ν < T + ρ + D. Above, q + ν >= T + ρ gives q' + (ν + 2D) >= T + ρ + D, and
a shift of ν by 2D costs a factor e^η, η = 2D/s'. So F(ρ) <= e^(cη) F'(ρ + D).

* Pure DP: the shift of ρ costs a factor e^(D/s), so D/s + c η.
* Rényi DP [ZW20, Theorem 8]: the divergence of the shift of ρ by D, and c η. Proof: x^α y^(1-α) is
  convex and homogeneous, so P(a)^α Q(a)^(1-α) <= sum over ρ of p(ρ)^α p(ρ+D)^(1-α) F^α F'^(1-α),
  the last with F = F(ρ) and F' = F'(ρ+D); F^α F'^(1-α) = F (F/F')^(α-1) <= F e^((α-1)cη); and the
  sum of F over all a is 1.

**Monotone queries**: η = Δ/s' [LSL17, Theorem 4]. For two neighbours let u be the largest rise of
any answer, and v the largest fall, in whole steps, with u + v <= Δ. All may rise, or all may fall,
or u records were added and v removed. Below, q' + ν < T + ρ + u; above, q' + (ν + u + v) >=
T + ρ + u. So ρ is shifted by u <= D, and ν by at most Δ. The neighbours fix u and v, whatever the
queries. Integers that rise and fall by at most D together have Δ = D. If numbers are rounded down
to steps, a rise of r and a fall of f become at most ceil(r) and ceil(f): Δ = D + 1.

**Bounded range** [Derived]. So the log of the ratio of F to F' is between -(v/s + cη) and u/s + cη:
in an interval of length r = Δ/s + 2cη, for all outcomes. Then the Rényi divergence is at most
α r²/8, which is r²/8-zCDP. Proof: with L the log ratio, K(t) = log E e^(tL) is 0 at t = 0 and at
t = 1, and K'' is the variance of L under a tilted law, at most r²/4.

**Directions that outcomes decide**, as in an alarm: on each sequence of outcomes all answers move
by 0 to D, either up or down, and they do not differ before the direction is chosen. The bounds of
pure DP and of the range, with Δ = D, hold given these outcomes, whose law is the same for both
neighbours, so they hold. The bound of [ZW20] shifts ρ before: it keeps η = 2D/s'.

**One-sided noise** [Derived]. All shifts of ρ and ν are upward, in both directions of the
neighbours. So noise on 0, 1, 2, ... with probabilities proportional to exp(-k/scale) has the same
ε, at half of the variance. The sum over the ρ that are reached is at most that over all. Its Rényi
divergence is all of its ε, so under Rényi DP the threshold keeps two-sided noise.

**Threshold refreshed** after each answer above [DR14, Algorithm 2]: c rounds of the case c = 1, in
sequence, composed under the output measure.

**Numbers released** for answers above: c releases with noise of their own. They and the comparisons
are children of one concurrent compositor. Their losses compose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import exp, log
from typing import Any

from .. import _opendp as _native
from .. import composition, measures, queryables
from .._checks import Positive, Probability, at_most, checked, plain, recorded
from .._opendp import dp
from ..errors import Distance, InvalidTypeError, InvalidValueError, Query
from ..numerics import double_up, upper
from .certified import composed, from_pure, laplace_loss
from .noise import (
    ATOM,
    LaplaceNoise,
    OneSidedNoise,
    Steps,
    best_known,
    grid_step,
    known_size,
    one_sided_mean,
    released,
)
from .queries import CheckedQueries, sensitivity_at


@dataclass(frozen=True, slots=True)
class SparseVectorNoise:
    """Scales, in steps of a grid of integers, and how they are used.

    :ivar threshold: scale of the threshold's noise
    :ivar query: scale of each query's noise
    :ivar answer: scale of each released number's noise; None if no numbers are released
    :ivar hits: largest number of answers above
    :ivar refresh: whether the threshold gets fresh noise after each answer above
    :ivar one_sided_threshold: whether the threshold's noise is never negative
    :ivar one_sided_query: whether each query's noise is never negative
    """

    threshold: float
    query: float
    answer: float | None
    hits: int
    refresh: bool
    one_sided_threshold: bool = False
    one_sided_query: bool = False

    @property
    def center(self) -> int:
        """The steps by which the threshold is raised, so that the noises' sum has about mean 0."""
        threshold = round(one_sided_mean(self.threshold)) if self.one_sided_threshold else 0
        return (round(one_sided_mean(self.query)) if self.one_sided_query else 0) - threshold

    def loss(
        self,
        sensitivity: int,
        measure: dp.Measure,
        *,
        spread: int | None = None,
        decided: bool = False,
    ) -> Any:
        """Privacy loss if answers on neighbours are at most ``sensitivity`` steps apart.

        :param spread: Δ, the largest rise plus the largest fall, in steps; at most twice the
            sensitivity
        :param decided: whether outcomes may decide which of the two answers is larger
        """
        above = 2 * sensitivity if spread is None else min(spread, 2 * sensitivity)
        parts = [self._comparisons(sensitivity, above, measure, decided)]
        if self.answer is not None:
            parts.append((laplace_loss(self.answer, sensitivity, measure), self.hits))
        return composed(measure, parts)

    def _comparisons(
        self, sensitivity: int, above: int, measure: dp.Measure, decided: bool
    ) -> tuple[Any, int]:
        hits, rounds = (1, self.hits) if self.refresh else (self.hits, 1)
        # fractions: noise on the integers loses exactly shift over scale
        threshold, query = Fraction(sensitivity) / Fraction(self.threshold), Fraction(self.query)
        queries, moved = hits * above / query, Fraction(above) / Fraction(self.threshold)
        epsilon = double_up(threshold + queries)
        length = double_up(moved + 2 * queries)  # of the interval with all log ratios
        of_range = upper(lambda real: real(length) * real(length) / 8)
        rho = min(measures.pure_to_zcdp(epsilon), of_range)
        step = grid_step(dp.atom_domain(T=ATOM), self.threshold, None)

        def renyi(alpha: float) -> float:
            moving = measures.laplace_to_renyi(double_up(threshold), alpha, step)
            shifted = upper(lambda real: real(moving) + real(double_up(queries)))
            line = upper(lambda real: real(rho) * real(alpha))
            return min(measures.pure_to_renyi(epsilon, alpha), shifted, line)

        if self.one_sided_threshold or not reads_curves(measure):
            # a shift of one-sided noise has all of its ε
            exact = best_known(
                measure, {measures.ZERO_CONCENTRATED_DIVERGENCE: lambda: lambda _: rho}
            )
        else:
            if decided:
                queries = hits * 2 * sensitivity / query
            exact = best_known(measure, {measures.RENYI_DIVERGENCE: lambda: lambda _: renyi})
        return from_pure(epsilon, measure) if exact is None else exact(epsilon), rounds


def reads_curves(measure: dp.Measure) -> bool:
    """Whether the Rényi curve of the threshold's two-sided noise counts under the measure."""
    return best_known(measure, {measures.RENYI_DIVERGENCE: lambda: lambda loss: loss}) is not None


# Above threshold and sparse vector: many queries, of which only those above a threshold cost.


class Outcome(Enum):
    """The outcome that a sparse vector reports for one query.

    :example:

    >>> [*oc.handles.Outcome]
    [BELOW, ABOVE, EXHAUSTED]
    """

    BELOW = "below"
    ABOVE = "above"
    EXHAUSTED = "exhausted"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class SparseVectorAnswer:
    """Answer to one query. It is truthy if the outcome is ``ABOVE``.

    :ivar outcome: below, above, or exhausted: all hits were used, and the query was not run
    :ivar value: the query's answer with noise, if it is above and ``answer_scale`` was given

    :example:

    >>> bool(oc.handles.SparseVectorAnswer(oc.handles.Outcome.ABOVE, 12.5))
    True
    """

    outcome: Outcome
    value: float | None = None

    def __bool__(self) -> bool:
        return self.outcome is Outcome.ABOVE


BELOW, ABOVE, EXHAUSTED = map(SparseVectorAnswer, Outcome)


class NoisyComparison:
    """Compare answers with thresholds under noise, until the hits that were paid for are used.

    Not thread-safe. Holds noise that must stay secret.
    """

    def __init__(self, noise: SparseVectorNoise) -> None:
        self._noise, self._left = noise, noise.hits
        self._query = (OneSidedNoise if noise.one_sided_query else LaplaceNoise)(noise.query)
        self._raised = self._draw_threshold()

    def _draw_threshold(self) -> int:
        kind = OneSidedNoise if self._noise.one_sided_threshold else LaplaceNoise
        return self._noise.center + kind(self._noise.threshold, 1).draw()

    @property
    def exhausted(self) -> bool:
        """Whether all hits are used. Nothing may be compared after that."""
        return self._left <= 0

    def above(self, answer: int, level: int) -> bool:
        """Compare an answer with a threshold, both in steps. Count a hit if it is above."""
        if answer + self._query.draw() < level + self._raised:
            return False
        self._left -= 1
        if self._noise.refresh and self._left:
            self._raised = self._draw_threshold()
        return True


class _SparseVector:
    """The state machine that answers queries."""

    def __init__(self, queries: CheckedQueries, noise: SparseVectorNoise, threshold: float) -> None:
        self._queries, self._threshold = queries, threshold
        self._comparison = NoisyComparison(noise)
        self._answer = None if noise.answer is None else LaplaceNoise(noise.answer)

    def check(self, message: Query) -> tuple[Callable[[], int], int]:
        """Return what computes the answer, and the threshold in steps, or raise.

        A handle calls it first, so that what is refused for public reasons is not hidden.
        """
        parts = tuple(message) if isinstance(message, tuple) else (message, self._threshold)
        if len(parts) != 2:
            raise InvalidTypeError(
                "the message must be a query, or a query and its threshold, found a tuple of "
                f"length {len(parts)}"
            )
        query, threshold = parts
        level = self._queries.steps.level("threshold", threshold)
        return self._queries.accept(query), level

    def __call__(self, message: Query) -> SparseVectorAnswer:
        compute, level = self.check(message)
        if self._comparison.exhausted:
            return EXHAUSTED
        answer = compute()
        if self._comparison.exhausted:  # the query itself may have queried this queryable
            return EXHAUSTED
        if not self._comparison.above(answer, level):
            return BELOW
        if self._answer is None:
            return ABOVE
        return SparseVectorAnswer(
            Outcome.ABOVE, self._queries.steps.value(answer + self._answer.draw())
        )


@composition.constructor(max_hits=at_most(2**63 - 1, "no session has more"))
def make_sparse_vector(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: Distance,
    scale: Positive,
    threshold: float,
    max_hits: int,
    *,
    sensitivity: float | None = None,
    query_scale: Positive | None = None,
    answer_scale: Positive | None = None,
    refresh: bool = False,
    monotone: bool = False,
    one_sided: bool = True,
) -> queryables.ConcurrentMeasurement:
    """Report which of many queries are above a threshold, until ``max_hits`` were above.

    The returned measurement spawns a queryable. A query is a transformation from ``input_domain``
    to a number, whose stability map is checked at ``d_in``, or a callable on the data, whose
    sensitivity at ``d_in`` you promise. ``(query, threshold)`` sets a threshold for one query. The
    answer is a :class:`.SparseVectorAnswer`: below, above, or exhausted once ``max_hits`` queries
    were above. It is truthy if above. :class:`.Deviation` queries the distance from a guess.

    All privacy is paid at launch, whatever the queries are. The privacy map refuses distances
    larger than ``d_in``, because the promise does not cover them. OpenDP samples the noise on a
    grid: the integers if ``sensitivity`` is an integer, else multiples of a power of two below a
    billionth of it. Comparisons are exact.

    Guarantee, with D the sensitivity and c = ``max_hits`` [LSL17, Algorithm 7]: ε = D/scale +
    c 2D/query_scale. For monotone queries the second term is c D/query_scale (D plus one step, if D
    is no integer). With ``refresh``, ε = c (D/scale + 2D/query_scale) [DR14, Theorem 3.25]. Other
    measures get the loss that ε-DP implies, per round with ``refresh`` (for zCDP often less in
    all); for monotone queries, zCDP gets at most r²/8 per round, r = D/scale + c 2D/query_scale.
    Rényi DP also gets the divergence of the threshold's noise plus the queries' ε [ZW20]. Numbers
    released with ``answer_scale`` compose concurrently. This file has the proofs.

    The noise of comparisons is one-sided: Laplace noise, given that it is not negative. It costs
    the same and has half the variance, since the proofs shift noise upward only. The threshold is
    raised by the public difference of its mean values, so that the noise adds up to about 0. Under
    Rényi DP the threshold's noise is two-sided, whose curve is lower.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: scale of the threshold's Laplace noise, in units of the queries' answers
    :param threshold: threshold of queries that do not set their own
    :param max_hits: how many queries may be above, c
    :param sensitivity: bound on the change of an answer between inputs at distance ``d_in`` (not
        per record); an integer for queries with integer answers. It may be left out only if
        ``d_in`` is 1: then it is 1
    :param query_scale: scale of each query's noise. The default has the least variance at its cost:
        ``scale`` times (2c)^(1/3), or c^(1/3) for monotone queries, with c = 1 under ``refresh``
    :param answer_scale: also release the answers above, with Laplace noise of this scale
    :param refresh: draw fresh noise for the threshold after each hit
    :param monotone: a promise: between two neighbours, the largest rise of any answer plus the
        largest fall of any answer is at most ``sensitivity``. Counts satisfy it if records are
        added and removed. A negated count, which asks whether a count is *below* a level, falls
        where counts rise: queries of both kinds break the promise, queries of one kind keep it
    :param one_sided: whether the noise of comparisons is one-sided; if not, it is Laplace noise
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> sparse_vector = oc.m.make_sparse_vector(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, threshold=500, max_hits=2
    ... )
    >>> sparse_vector.map(1)
    1.7599...
    >>> queryable = sparse_vector([1, 2, 3] * 1000)
    >>> queryable(space >> dp.t.then_count())
    SparseVectorAnswer(outcome=ABOVE, value=None)
    >>> bool(queryable(lambda data: data.count(0)))
    False
    """
    composition.check_static(input_domain)
    measures.composition_measure(output_measure)
    d_in = queryables.validate_d_in(input_metric, d_in)
    sensitivity = plain(sensitivity_at(d_in, sensitivity))
    threshold, scale = plain(threshold), plain(scale)
    steps = Steps.for_sensitivity(sensitivity)
    steps.level("threshold", threshold)
    if monotone and (
        input_metric in (dp.change_one_distance(), dp.hamming_distance())
        or known_size(input_domain) is not None
    ):
        raise InvalidValueError(
            f"monotone must be False for {input_domain} under {input_metric}: a record that "
            "changes lets some counts rise and others fall"
        )
    hits = max_hits
    own = steps.scale(scale=scale)
    if query_scale is None:
        query_scale = scale * least_cost(1 if refresh else hits, monotone)
    noise = SparseVectorNoise(
        threshold=own,
        query=steps.scale(query_scale=query_scale),
        answer=None if answer_scale is None else steps.scale(answer_scale=answer_scale),
        hits=hits,
        refresh=refresh,
        one_sided_threshold=one_sided and not reads_curves(output_measure),
        one_sided_query=one_sided,
    )
    most = steps.up(sensitivity)
    spread = most + (0 if steps.whole else 1) if monotone else None  # rounding down may add a step
    d_out = noise.loss(most, output_measure, spread=spread)
    space = input_domain, input_metric

    def error(beta: float, answers: int) -> float:
        share = beta if noise.answer is None else beta / 2
        bound = sparse_vector_accuracy(
            scale,
            query_scale,
            answers,
            share,
            thresholds=hits if refresh else 1,
            one_sided=one_sided,
            renyi=reads_curves(output_measure),
        ) + (0 if steps.whole else steps.value(1))
        if noise.answer is None:
            return bound
        return max(bound, released(noise.answer, steps, share, min(hits, answers)))

    def spawn(token: queryables.Sealed) -> queryables.MachineQueryable:
        queries = CheckedQueries(space, d_in, sensitivity, steps, token, monotone=monotone)
        return queryables.MachineQueryable(_SparseVector(queries, noise, threshold), "SparseVector")

    return composition.make_measurement(
        space,
        output_measure,
        spawn,
        composition.constant_map(input_metric, d_in, d_out),
        f"SparseVector({output_measure}, d_in={d_in}, max_hits={hits})",
        accuracy=queryables.Accuracy("one-sided" if one_sided else "Laplace", scale, error),
        live=not monotone,  # answers could decide in which direction later rows move
    )


def least_cost(hits: int, monotone: bool) -> float:
    """Return ``query_scale / scale`` of the least variance of the noises' sum at one ε [LSL17]."""
    return float((hits if monotone else 2 * hits) ** (1 / 3))


@recorded
def make_above_threshold(
    input_domain: dp.Domain,
    input_metric: dp.Metric,
    output_measure: dp.Measure,
    d_in: Distance,
    scale: float,
    threshold: float,
    *,
    sensitivity: float | None = None,
    query_scale: float | None = None,
    monotone: bool = False,
    one_sided: bool = True,
) -> queryables.ConcurrentMeasurement:
    """Answer queries until one is above a threshold.

    This is :func:`.make_sparse_vector` with one hit [DR14, Algorithm 1]. Guarantee, with D the
    sensitivity: ε = D/scale + 2D/query_scale. For monotone queries the second term is D/query_scale
    (D plus one step, if D is no integer).

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: scale of the threshold's Laplace noise, in units of the queries' answers
    :param threshold: threshold of queries that do not set their own
    :param sensitivity: bound on the change of an answer, as in :func:`.make_sparse_vector`
    :param query_scale: scale of each query's noise; by default 2^(1/3) times ``scale``, or
        ``scale`` for monotone queries
    :param monotone: a promise, as in :func:`.make_sparse_vector`
    :param one_sided: whether the noise is one-sided, as in :func:`.make_sparse_vector`
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> alarm = oc.m.make_above_threshold(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, query_scale=4.0, threshold=500
    ... )
    >>> alarm.map(1)
    1.0
    >>> queryable = alarm([1, 2, 3] * 1000)
    >>> count = space >> dp.t.then_count()
    >>> queryable(count), queryable(count)
    (SparseVectorAnswer(outcome=ABOVE, ...), SparseVectorAnswer(outcome=EXHAUSTED, ...))
    """
    return make_sparse_vector(
        input_domain,
        input_metric,
        output_measure,
        d_in,
        scale,
        threshold,
        1,
        sensitivity=sensitivity,
        query_scale=query_scale,
        monotone=monotone,
        one_sided=one_sided,
    )


_number = at_most(2**62, "more are not asked in a lifetime")


@checked(queries=_number, thresholds=_number)
def sparse_vector_accuracy(
    scale: Positive,
    query_scale: Positive,
    queries: int,
    beta: Probability,
    *,
    thresholds: int = 1,
    one_sided: bool = True,
    renyi: bool = False,
) -> float:
    """Return the error α of a sparse vector that holds for all its queries at once.

    With probability at least 1 - ``beta``, among the first ``queries`` queries, each that is
    reported above is above T - α, and each that is reported below is below T + α, T the threshold.
    With one-sided noise, of which each kind can err in one direction only, α is the larger one of
    query_scale log(2k/β) - (c' - c - 1) and scale log(2m/β) + (c' - c + 1). Here c' is the mean of
    the queries' noise on the integers, c that of the threshold's, about query_scale and scale. With
    two-sided noise α = scale log(4m/(β(1+e^(-1/scale)))) + query_scale
    log(2k/(β(1+e^(-1/query_scale)))). Answers are compared in whole steps, of 1 or less, see
    :func:`.make_sparse_vector`. ``docs/proofs/sparse-vector.rst`` has the proof. After [DR14,
    Theorem 3.24].

    :param scale: scale of the threshold's noise
    :param query_scale: scale of the queries' noise
    :param queries: number of queries, k
    :param beta: probability of failure, above 0
    :param thresholds: how often the threshold's noise is drawn, m: 1, or ``max_hits`` if refreshed
    :param one_sided: whether the noise is one-sided, as :func:`.make_sparse_vector` was given it
    :param renyi: whether the measure is Rényi DP, under which the threshold's noise is two-sided
    :return: α, in units of the scales
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.mechanisms.sparse_vector_accuracy(2.0, 4.0, queries=1000, beta=0.05)
    41.40...
    >>> oc.mechanisms.sparse_vector_accuracy(2.0, 4.0, queries=1000, beta=0.05, one_sided=False)
    47.89...
    """
    if not 0.0 < beta:
        raise InvalidValueError(f"beta ({beta}) must be above 0")
    if not one_sided:
        return _two_sided(scale, 2 * thresholds, beta) + _two_sided(query_scale, queries, beta)
    query = query_scale * log(2 * queries / beta)
    if renyi:
        centre = one_sided_mean(query_scale)
        errors = query - max(0.0, centre - 0.5), centre + 1
        return _two_sided(scale, 2 * thresholds, beta) + max(0.0, *errors)
    centre = one_sided_mean(query_scale) - one_sided_mean(scale)
    return max(0.0, query - centre + 1, scale * log(2 * thresholds / beta) + centre + 1)


def _two_sided(scale: float, tails: int, beta: float) -> float:
    """Return what Laplace noise exceeds with probability β/2, in one of several tails."""
    return scale * log(2 * tails / (beta * (1 + exp(-1 / scale))))


then_sparse_vector = _native.to_then(make_sparse_vector)
then_above_threshold = _native.to_then(make_above_threshold)
