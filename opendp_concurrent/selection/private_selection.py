"""Private selection: run a mechanism a random number of times, and release the best answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from numbers import Number
from types import MappingProxyType
from typing import Any, cast

from opendp.measures import max_divergence, renyi_divergence
from opendp.mod import Measure, Measurement, OdometerQueryable, Queryable

from ..accounts.lifecycle import Event, Lifecycle, innermost_running
from ..arguments.checked import Positive, Probability
from ..arguments.checks import at_most, function, optional, shown
from ..combinators.cast import conversion
from ..combinators.constructor import constructor
from ..combinators.inside import check_inside, check_static
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from ..fdp.function import TradeoffFunction
from ..measures import CompositionMeasure, composition_measure
from ..measures.kinds import APPROXIMATE, FIXED, GAUSSIAN, PURE, RENYI, TRADEOFF, ZCDP
from ..queryables.child import adopt
from ..queryables.data import Sealed, run
from ..queryables.mechanism import ConcurrentMeasurement, read_map
from ..tradeoffs.tradeoff import tradeoff
from ..types import Answer, Argument
from .loss import SelectionCurve, fixed_selection, pure_selection
from .profile import approximate_selection, function_selection
from .runs import RandomRuns, most_of, scale_for

SMALLEST_ETA = 1e-300  # below it the mean underflows
MOST_DRAWS = 1000  # of the number of runs, about, until one is at most max_runs

Reading = Callable[[Any], Any]


def _pure(measure: CompositionMeasure, runs: RandomRuns) -> tuple[Measure, Reading]:
    del measure
    return max_divergence(), lambda loss: pure_selection(runs, loss)


def _fixed(measure: Argument, runs: RandomRuns) -> tuple[Measure, Reading]:
    return measure.opendp(), lambda loss: fixed_selection(runs, measure.alpha, loss)


def _curve(measure: CompositionMeasure, runs: RandomRuns) -> tuple[Measure, Reading]:
    convert = conversion(measure.opendp(), renyi_divergence())
    return renyi_divergence(), lambda loss: SelectionCurve(runs, convert(loss))


def _approximate(measure: CompositionMeasure, runs: RandomRuns) -> tuple[Measure, Reading]:
    return measure.opendp(), lambda loss: approximate_selection(runs, loss)


def _function(measure: CompositionMeasure, runs: RandomRuns) -> tuple[Measure, Reading]:
    del measure
    return tradeoff(), lambda loss: function_selection(runs, loss)


def _gaussian(measure: CompositionMeasure, runs: RandomRuns) -> tuple[Measure, Reading]:
    del measure
    return tradeoff(), lambda mu: function_selection(runs, TradeoffFunction.gaussian(mu))


LOSSES: Mapping[str, Callable[[Any, RandomRuns], tuple[Measure, Reading]]] = MappingProxyType(
    {
        PURE: _pure,
        FIXED: _fixed,
        RENYI: _curve,
        ZCDP: _curve,
        APPROXIMATE: _approximate,
        TRADEOFF: _function,
        GAUSSIAN: _gaussian,
    }
)


def first(answer: Answer) -> Any:
    """Return a number, or the first element of a tuple or list."""
    if isinstance(answer, (tuple, list)):
        if not answer:
            raise InvalidTypeError("the answer of a run has no elements; its first is its score")
        return answer[0]
    return answer


def number_of(score: Any) -> float:
    """Return the score as a double, or raise."""
    if not isinstance(score, Number) or isinstance(score, bool):
        raise InvalidTypeError(f"the score must be a number, found {type(score).__name__}")
    try:
        value = float(cast("Any", score))
    except (TypeError, ArithmeticError, ValueError):
        raise InvalidTypeError(f"the score ({shown(score)}) must be a double") from None
    if not value == value:
        raise InvalidValueError("the score (nan) must be a number that can be compared")
    return value


@constructor(
    score=optional(function),
    interact=optional(function),
    max_runs=optional(at_most(2**62, "more are never run")),
)
def make_private_selection(
    measurement: Measurement,
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
    check_inside("measurement", measurement)
    check_static(measurement.input_domain)
    measure = composition_measure(measurement.output_measure)
    if measure.kind not in LOSSES:
        raise UnsupportedMeasureError(_refusal(measure))
    runs = _runs(mean_runs, eta, max_runs)
    output_measure, reading = LOSSES[measure.kind](measure, runs)
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

    return make_measurement(
        measurement.input_space,
        output_measure,
        spawn,
        lambda d_in: reading(measure.validate("d_mid", read_map(measurement, d_in))),
        f"PrivateSelection({output_measure}, mean_runs={mean_runs:g}, max_runs={runs.most})",
        releases=True,
    )


def _try(measurement: Measurement, token: Sealed, interact: Callable[[Any], Any] | None) -> Any:
    """Return the answer of one run. All queryables of the run are closed."""
    lifecycle = Lifecycle(innermost_running(), static=True)

    def trial() -> Any:
        answer = adopt(run(measurement, token), lifecycle, None)
        if interact is not None:
            return adopt(interact(answer), lifecycle, None)
        if isinstance(answer, (Queryable, OdometerQueryable)):
            raise InvalidTypeError(
                "interact must be given for an interactive measurement: a function from the "
                "queryable of a run to the answer of this run"
            )
        return answer

    try:
        return lifecycle.run(trial)
    finally:
        lifecycle.happen(Event.ENDED)


def _runs(mean_runs: float, eta: float, max_runs: int | None) -> RandomRuns:
    if not 1.0 < mean_runs <= 1e6:
        raise InvalidValueError(
            f"mean_runs ({mean_runs:g}) must be above 1 and at most 10^6; a mean of 1 selects "
            "nothing: use the measurement itself"
        )
    if 0.0 < eta < SMALLEST_ETA:
        raise InvalidValueError(f"eta ({eta:g}) must be 0 or at least {SMALLEST_ETA:g}; pass 0")
    scale = scale_for(mean_runs, eta)
    if max_runs is not None and max_runs * MOST_DRAWS < scale:
        raise InvalidValueError(
            f"max_runs ({max_runs}) must be at least {ceil(scale / MOST_DRAWS)} for mean_runs "
            f"({mean_runs:g}), since a larger number of runs is drawn again; pass a smaller mean"
        )
    return RandomRuns(scale, eta, most_of(scale) if max_runs is None else max_runs)


def _refusal(measure: CompositionMeasure) -> str:
    return (
        f"there is no proven loss for the best of several runs under {measure.name}: it is proven "
        "for pure DP, zCDP and Rényi DP [PS22, Theorem 2], for (ε, δ)-DP, Gaussian DP and f-DP "
        "[KRW24]. Use a measurement under one of them, and cast the selection with oc.c.cast"
    )
