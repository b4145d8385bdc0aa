"""The random number of runs of a private selection, drawn exactly with OpenDP's noise.

With success probability γ = 1 - e^(-1/scale) and η in [0, 1], the number of runs K has
probabilities proportional to

    (1-γ)^k times the product over l = 1, ..., k-1 of (l+η)/(l+1),    k = 1, ..., most.

This is the truncated negative binomial distribution of [PS22], given that K is at most ``most``: η
= 1 is the geometric distribution, η = 0 the logarithmic one. OpenDP's Laplace noise of that scale
on the integers, given that it is not negative, is geometric with success probability exactly γ. So
K is drawn by rejection: k-1 is such a draw, which is accepted with the product as probability. All
factors are rational, and are compared bit by bit with fair bits, the signs of noise. No probability
is rounded: the loss is that of the law that is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, inf, ldexp, log, nextafter
from numbers import Number
from typing import Any, cast

import numpy as np

from .. import accounting, composition, errors, measures, numerics
from .._checks import Positive, Probability, at_most, function, number, optional
from .._opendp import dp
from ..fdp import SELECTIONS, UNIT, Session, TradeoffFunction
from ..queryables import ConcurrentMeasurement, Sealed, adopt, read_map, run
from .noise import LaplaceNoise, Reading

LARGEST = 2.0**32  # of the scale
AHEAD = 4  # draws per batch; what is left over is forgotten, so no noise is kept
NEVER = 50  # most is so many scales if left out: a larger draw has a probability below 1e-19


@dataclass(frozen=True, slots=True)
class RandomRuns:
    """The law of the number of runs.

    :ivar scale: -1 / log(1 - γ), exactly
    :ivar eta: η, in [0, 1]
    :ivar most: the largest number of runs
    """

    scale: float
    eta: float
    most: int

    def draw(self) -> int:
        """Return a number of runs."""
        proposals = LaplaceNoise(self.scale, AHEAD)
        signs = LaplaceNoise(1.0, AHEAD) if self.eta != 1.0 else None
        while True:
            more = proposals.draw()
            if 0 <= more < self.most and (signs is None or self._accepts(more, signs)):
                return more + 1

    def _accepts(self, more: int, signs: LaplaceNoise) -> bool:
        eta = Fraction(self.eta)
        return all(happens((i + eta) / (i + 1), signs) for i in range(1, more + 1))

    def gamma(self, real: numerics.Digits) -> numerics.Bracket:
        """γ, the success probability."""
        return 1 - (-1 / real(self.scale)).exp()

    def mean(self, real: numerics.Digits) -> numerics.Bracket:
        """The mean without ``most``, which is at least the mean [PS22, Definition 1]."""
        gamma = self.gamma(real)
        if self.eta == 1.0:
            return 1 / gamma
        if self.eta == 0.0:
            return (1 / gamma - 1) / -gamma.ln()
        eta = real(self.eta)
        return eta * (1 - gamma) / (gamma * (1 - (eta * gamma.ln()).exp()))


def happens(probability: Fraction, signs: LaplaceNoise) -> bool:
    """Return True with exactly this probability, below 1."""
    numerator, denominator = probability.as_integer_ratio()
    while numerator:  # compares a uniform number with the probability, bit by bit
        numerator *= 2
        bit = numerator >= denominator
        if bit:
            numerator -= denominator
        if fair(signs) != bit:
            return bit
    return False


def fair(signs: LaplaceNoise) -> bool:
    """Return a fair bit: the sign of symmetric noise that is not 0."""
    while (noise := signs.draw()) == 0:
        pass
    return noise > 0


def mean_of(scale: float, eta: float) -> float:
    """Return the mean without a cap, in doubles: only for the choice of a scale."""
    gamma = -expm1(-1 / scale)
    others = 1 - gamma
    if eta == 0.0:
        return others / gamma / -log(gamma) if gamma < 1.0 else 1.0
    return eta * others / (gamma * -expm1(eta * log(gamma))) if gamma < 1.0 else 1.0


def scale_for(mean: float, eta: float) -> float:
    """Return a scale whose mean is about ``mean``; at most ``LARGEST``."""
    low, high = 2.0**-5, LARGEST  # the mean increases with the scale
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if mean_of(middle, eta) < mean else (low, middle)
    return high


def most_of(scale: float) -> int:
    """Return the largest number of runs, if left out."""
    return ceil(NEVER * scale) + 1


# The privacy loss of a private selection, from the loss of one run.
#
# Let q be the probability that a run is worse than some answer. The selection releases this answer
# with g(q) = E[K q^(K-1)] times the probability that one run releases it. Let q', g(q') be those on
# a neighbour, p = 1 - (1-γ)q and p' = 1 - (1-γ)q'.
#
# Without the largest number of runs, g(q) = E[K] (γ/p)^(1+η) for the truncated negative binomial
# distribution [PS22]. The condition K <= most costs nothing. The derivative of log g at q is a mean
# of K-1, divided by q; the condition makes this mean smaller. So for q >= q' the ratio g(q)/g(q')
# is at most (p'/p)^(1+η) with the condition too, and for q < q' it is at most 1. Also g(q) <= g(1)
# <= E[K].
#
# * Pure DP: the loss is at most ε + (1+η) log(p'/p). The numbers 1-q and 1-q' are probabilities of
#   one event, so p'/p is largest for randomized response: (e^ε + γ)/(1 + γe^ε) <= e^ε.
# * Rényi DP: g(q)^λ g(q')^(1-λ) = g(q) (g(q)/g(q'))^(λ-1), and p and p' are the probabilities of
#   one event after postprocessing, so p'/p <= e^((1-1/m) e(m)) γ^(-1/m) for each order m >= 1. In
#   all e(λ) + (1+η) ((1 - 1/m) e(m) + log(1/γ)/m) + log(E[K])/(λ-1) [PS22, Theorem 2].
#
# The divergence increases with its order, so the bound at a larger order is a bound. Each bound
# holds for every m: the choice of m is a matter of tightness, not of privacy.

Curve = Callable[[float], Any]


def pure_selection(runs: RandomRuns, epsilon: float) -> float:
    """Return ε of the selection from ε of a run, rounded up."""
    if epsilon == 0.0 or epsilon == inf:
        return epsilon

    def loss(real: numerics.Digits) -> numerics.Bracket:
        one, gamma, decay = real(epsilon), runs.gamma(real), (-real(epsilon)).exp()
        worst = ((1 + gamma * decay) / (decay + gamma)).ln()
        return one + (1 + real(runs.eta)) * worst

    return numerics.upper(loss)


class SelectionCurve:
    """The Rényi curve of a selection from that of a run."""

    def __init__(self, runs: RandomRuns, curve: Curve) -> None:
        self._runs, self._curve = runs, curve
        self._known = {order: float(curve(order)) for order in measures.READ}
        self._middle = best_order(runs, self._known)

    def __call__(self, alpha: float) -> float:
        """Return the divergence at the order ``alpha``, rounded up."""
        if not number(alpha=alpha) > 1.0:
            raise errors.InvalidValueError(f"alpha ({alpha}) must be above 1")
        at = self._known.get(alpha)
        orders = {alpha: float(self._curve(alpha)) if at is None else at}
        orders.update((one, loss) for one, loss in self._known.items() if one > alpha)
        return least_loss(self._runs, orders, self._middle)


def fixed_selection(runs: RandomRuns, order: float, loss: float) -> float:
    """Return the divergence of one order, from that of a run at this order."""
    known = {order: loss}
    return least_loss(runs, known, best_order(runs, known))


def best_order(runs: RandomRuns, known: dict[float, float]) -> tuple[float, float]:
    """Return the order m of the least (1 - 1/m) e(m) + L/m, and e(m); order 1 needs no e(1)."""
    span = -float(numerics.evaluate(lambda real: runs.gamma(real).ln()).lower)
    return min(
        ((1.0, 0.0), *known.items()),
        key=lambda one: (1 - 1 / one[0]) * one[1] + span / one[0],
    )


def least_loss(runs: RandomRuns, known: dict[float, float], middle: tuple[float, float]) -> float:
    """Return the least bound over the orders that are known; 0 if a run loses nothing."""
    least = min(known.values())
    if least in (0.0, inf):  # no divergence at one order is none at all
        return least
    spread = log(max(1.0, mean_of(runs.scale, runs.eta)))
    order, loss = min(known.items(), key=lambda one: one[1] + spread / (one[0] - 1))
    return _divergence(runs, order, loss, *middle)


@lru_cache(maxsize=65536)
def _divergence(
    runs: RandomRuns, order: float, loss: float, middle: float, at_middle: float
) -> float:
    def divergence(real: numerics.Digits) -> numerics.Bracket:
        share = 1 / real(middle)
        others = (1 - share) * real(at_middle) - share * runs.gamma(real).ln()
        rest = real(order) - 1
        return real(loss) + (1 + real(runs.eta)) * others + runs.mean(real).ln() / rest

    return numerics.upper(divergence)


# The privacy profile of a private selection, from the profile of one run.
#
# Let d(e) bound the δ of one run at e, in both directions, and let B >= 1 be such that B - 1 is at
# least d(log B) (1-γ)/γ. As above, 1-q and 1-q' are probabilities of one event,
# so 1-q' <= B (1-q) + d(log B), and p' <= B p. So g(q) <= B^(1+η) g(q'), also with a largest number
# of runs, and g(q) <= E[K]. The δ of the selection at ε is at most E[K] d(ε - (1+η) log B), for
# every real ε. After [KRW24]; the proof is in ``docs/proofs/private-selection.rst``.

_READ, _BEFORE = 600, 8  # points from (1+η) log B on, and before: where the bound is read
_LAST = 1e-40  # δ at the last point
_WIDTH = 1e-4  # of the bounds on δ
_LARGEST = 650.0  # a larger ε is not read


def approximate_selection(runs: RandomRuns, loss: tuple[float, float]) -> tuple[float, float]:
    """Return (ε, δ) of the selection from that of a run, rounded up."""
    epsilon, delta = loss
    if epsilon == inf or delta >= 1.0 or loss == (0.0, 0.0):
        return loss
    more = _more(runs, TradeoffFunction.approximate(epsilon, delta))
    return numerics.upper(lambda real: real(epsilon) + real(more)), _times_mean(runs, delta)


@lru_cache(maxsize=256)
def function_selection(runs: RandomRuns, function: TradeoffFunction | Session) -> TradeoffFunction:
    """Return a function that bounds the selection, from that of a run, or its two directions."""
    if function.delta(0.0) == 0.0:
        return TradeoffFunction.identity()
    more = _more(runs, function)
    if not more < _LARGEST:
        return TradeoffFunction.worst()
    never_less = 1.001 * float(function.delta(_LARGEST))  # where some loss is infinite
    last = function.epsilon(max(_LAST / mean_of(runs.scale, runs.eta), min(1.0, never_less)))
    last = min(last, _LARGEST - more)
    read = np.concatenate(
        [np.linspace(-more, 0.0, _BEFORE, endpoint=False), np.linspace(0.0, max(last, 0.0), _READ)]
    )
    upper_ends = function.delta_bounds(read, _WIDTH).upper
    points: list[float] = []
    deltas: list[float] = []
    for one, bound in zip(read.tolist(), upper_ends.tolist(), strict=True):
        at = nextafter(one + more, inf)  # above the sum, where δ is at most that of ``one``
        if not points or at > points[-1]:
            delta = _times_mean(runs, bound)
            points.append(at)
            deltas.append(min([delta, *deltas[-1:]]))
    return TradeoffFunction.from_profile(points, deltas)


def _more(runs: RandomRuns, function: TradeoffFunction | Session) -> float:
    """Return (1+η) log B, rounded up."""

    def holds(loss: float) -> bool:
        delta = float(function.delta(loss))

        def excess(real: numerics.Digits) -> numerics.Bracket:
            gamma = runs.gamma(real)
            return (real(loss).exp() - 1) * gamma - (1 - gamma) * real(delta)

        return numerics.is_nonnegative(excess)

    found = numerics.least_double(holds)
    return numerics.upper(lambda real: (1 + real(runs.eta)) * real(found)) if found < inf else inf


def _times_mean(runs: RandomRuns, delta: float) -> float:
    return min(1.0, numerics.upper(lambda real: runs.mean(real) * real(delta)))


# Private selection: run a mechanism a random number of times, and release the best answer.

SMALLEST_ETA = 1e-300  # below it the mean underflows
MOST_DRAWS = 1000  # of the number of runs, about, until one is at most max_runs


def _reading(measure: Any, runs: RandomRuns) -> tuple[dp.Measure, Reading]:
    """Return the measure of the selection, and the map from the loss of a run to its loss."""
    kind, opendp = measure.kind, measure.opendp()
    if kind == measures.PURE:
        return opendp, lambda loss: pure_selection(runs, loss)
    if kind == measures.FIXED:
        return opendp, lambda loss: fixed_selection(runs, measure.alpha, loss)
    if kind in (measures.RENYI, measures.ZCDP):
        curve = dp.renyi_divergence()
        convert = composition.conversion(opendp, curve)
        return curve, lambda loss: SelectionCurve(runs, convert(loss))
    if kind == measures.APPROXIMATE:
        return opendp, lambda loss: approximate_selection(runs, loss)
    if kind == measures.TRADEOFF:
        return opendp, lambda loss: function_selection(runs, loss)
    if kind == measures.GAUSSIAN:
        return measures.tradeoff(), lambda mu: function_selection(
            runs, TradeoffFunction.gaussian(mu)
        )
    raise errors.UnsupportedMeasureError(
        f"there is no proven loss for the best of several runs under {measure.name}: it is proven "
        "for pure DP, zCDP and Rényi DP [PS22, Theorem 2], for (ε, δ)-DP, Gaussian DP and f-DP "
        "[KRW24]. Use a measurement under one of them, and cast the selection with oc.c.cast"
    )


def first(answer: errors.Answer) -> Any:
    """Return a number, or the first element of a tuple or list."""
    if isinstance(answer, (tuple, list)):
        if not answer:
            raise errors.InvalidTypeError(
                "the answer of a run has no elements; its first is its score"
            )
        return answer[0]
    return answer


def number_of(score: Any) -> float:
    """Return the score as a double, or raise."""
    if not isinstance(score, Number) or isinstance(score, bool):
        raise errors.InvalidTypeError(f"the score must be a number, found {type(score).__name__}")
    try:
        value = float(cast("Any", score))
    except (TypeError, ArithmeticError, ValueError):
        raise errors.InvalidTypeError(
            f"the score ({errors.shown(score)}) must be a double"
        ) from None
    if not value == value:
        raise errors.InvalidValueError("the score (nan) must be a number that can be compared")
    return value


@composition.constructor(
    score=optional(function),
    interact=optional(function),
    max_runs=optional(at_most(2**62, "more are never run")),
)
def make_private_selection(
    measurement: dp.Measurement,
    mean_runs: Positive,
    *,
    score: Callable[[Any], float] | None = None,
    interact: Callable[[Any], Any] | None = None,
    eta: Probability = 1.0,
    max_runs: int | None = None,
) -> ConcurrentMeasurement:
    """Run a measurement a random number of times, and release the answer with the best score.

    Use it to try many settings: let the measurement draw a setting at random, and release the
    setting, its result and a private score. All other answers, and the number of runs, stay secret.
    The number of runs K is drawn with OpenDP's noise, exactly: geometric for ``eta=1``, logarithmic
    for ``eta=0``, truncated negative binomial between [PS22]. Smaller ``eta`` costs less privacy,
    and makes few runs more likely at the same mean. An interactive measurement needs ``interact``:
    it is called with the queryable of each run, which is closed after that.

    Guarantee, with γ the success probability of K and one run's loss e: for pure DP ε + (1+eta)
    log((e^ε + γ)/(1 + γe^ε)), which is at most (2+eta) ε: 3ε for ``eta=1`` [LT19]. For Rényi DP of
    order λ it is e(λ) + (1+eta) ((1-1/m) e(m) + log(1/γ)/m) + log(E[K])/(λ-1), for the best order m
    [PS22, Theorem 2]. K is drawn again if it is above ``max_runs``, which costs nothing (see the
    proofs). A loss in zCDP becomes a Rényi curve, since the selection has no bound of the form ρλ
    that is as small: cast it to (ε, δ) after composition. Under (ε, δ)-DP, Gaussian DP and
    f-DP, let δ(e) be that of one run, and B - 1 = δ(log B) (1-γ)/γ: the δ of the selection at ε is
    E[K] δ(ε - (1+eta) log B) [KRW24]. So (ε, δ) becomes (ε + (1+eta) log B, E[K] δ), and a Gaussian
    becomes a trade-off function, which is tighter than its Rényi curve. The loss hardly grows with
    ``mean_runs``. A fixed number of runs has no such bound.

    **Time is a side channel.** The time that the selection takes is about proportional to K and is
    not covered. Do not let the analyst measure it: answer at a fixed time, or in batches.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: a measurement under pure, (ε, δ), Rényi, zero-concentrated, Gaussian or f-DP
    :param mean_runs: mean of K, above 1 and at most 10^6
    :param score: from an answer to a number, larger is better; it must not look at the data. By
        default the answer, or its first element if it is a tuple or list. Among equal scores, the
        first wins
    :param interact: from the queryable of one run to the answer of this run. It must know the data
        through the queryable only
    :param eta: shape of the law of K, 0 or in [1e-300, 1]
    :param max_runs: largest number of runs; by default about 50 times the mean if ``eta`` is 1. A
        smaller number makes the mean smaller; one far below ``mean_runs`` is refused
    :return: a measurement that releases one answer
    :raises InvalidTypeError, InvalidValueError: naming the argument; also from the measurement, if
        an answer is a queryable and ``interact`` was not given, or if a score is not a number
    :raises UnsupportedMeasureError: for other measures, with the reason

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
    >>> best = oc.c.make_private_selection(count, mean_runs=20)
    >>> best.map(1)
    0.28...
    >>> best([1, 2, 3])  # noisy
    42
    """
    composition.check_inside("measurement", measurement)
    composition.check_static(measurement.input_domain)
    measure = measures.composition_measure(measurement.output_measure)
    runs = _runs(mean_runs, eta, max_runs)
    output_measure, reading = _reading(measure, runs)
    rate = first if score is None else score

    def spawn(token: Sealed) -> Any:
        best: tuple[float, Any] | None = None
        for _ in range(runs.draw()):
            answer = _try(measurement, token, interact)
            value = number_of(rate(answer))
            if best is None or value > best[0]:
                best = value, answer
        assert best is not None  # there is at least one run
        return best[1]

    return composition.make_measurement(
        measurement.input_space,
        output_measure,
        spawn,
        lambda d_in: reading(measure.validate("d_mid", read_map(measurement, d_in))),
        f"PrivateSelection({output_measure}, mean_runs={mean_runs:g}, max_runs={runs.most})",
        releases=True,
    )


_ONE_RUN = (
    "it was one run of a private selection, of which only the best may be seen; ask all of its "
    "queries in interact"
)


def _try(measurement: dp.Measurement, token: Sealed, interact: Callable[[Any], Any] | None) -> Any:
    """Return the answer of one run. All queryables of the run are closed."""
    lifecycle = accounting.Lifecycle(accounting.innermost_running(), static=True)

    def trial() -> Any:
        answer = adopt(run(measurement, token), lifecycle, None)
        if interact is not None:
            return adopt(interact(answer), lifecycle, None)
        if isinstance(answer, (dp.Queryable, dp.OdometerQueryable)):
            raise errors.InvalidTypeError(
                "interact must be given for an interactive measurement: a function from the "
                "queryable of a run to the answer of this run"
            )
        return answer

    try:
        return lifecycle.run(trial)
    finally:
        lifecycle.end(_ONE_RUN)


def _runs(mean_runs: float, eta: float, max_runs: int | None) -> RandomRuns:
    if not 1.0 < mean_runs <= 1e6:
        raise errors.InvalidValueError(
            f"mean_runs ({mean_runs:g}) must be above 1 and at most 10^6; a mean of 1 selects "
            "nothing: use the measurement itself"
        )
    if 0.0 < eta < SMALLEST_ETA:
        raise errors.InvalidValueError(
            f"eta ({eta:g}) must be 0 or at least {SMALLEST_ETA:g}; pass 0"
        )
    scale = scale_for(mean_runs, eta)
    if max_runs is not None and max_runs * MOST_DRAWS < scale:
        raise errors.InvalidValueError(
            f"max_runs ({max_runs}) must be at least {ceil(scale / MOST_DRAWS)} for mean_runs "
            f"({mean_runs:g}), since a larger number of runs is drawn again; pass a smaller mean"
        )
    return RandomRuns(scale, eta, most_of(scale) if max_runs is None else max_runs)


# The loss of a selection that an event of dp-accounting describes, by its mean and shape.
#
# The event has the mean of the truncated negative binomial distribution, where ``RandomRuns`` has a
# scale. A larger scale has a larger mean and a larger loss, so the scale is rounded up.

_STEPS = 50  # to a scale whose mean is certain to be large enough, each twice as far


def selection(run: Session, mean: float, shape: float) -> TradeoffFunction:
    """Return the loss of the best of a random number of runs, from the losses of one.

    :param mean: of the number of runs, above 1, at most 10^6
    :param shape: η, at least 0
    """
    runs = runs_of_mean(mean, shape)
    return TradeoffFunction.worst() if runs is None else function_selection(runs, run)


def runs_of_mean(mean: float, shape: float) -> RandomRuns | None:
    """Return the law with the least scale found whose mean is at least ``mean``; or None."""
    scale = scale_for(mean, shape)
    for step in range(_STEPS):
        runs = RandomRuns(scale, shape, most_of(scale))

        def excess(real: numerics.Digits, runs: RandomRuns = runs) -> numerics.Bracket:
            return runs.mean(real) - real(mean)

        if numerics.is_nonnegative(excess):
            return runs
        scale = nextafter(scale * (1 + ldexp(UNIT, step)), inf)
    return None


SELECTIONS[:] = [selection]
