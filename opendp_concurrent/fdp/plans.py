"""The largest rate, the least noise and the most steps with which a plan is within (ε, δ).

A plan is a function from a number to the losses of a session. Losses rise with the rate and with
the number of steps, and fall with the noise, because what loses less is a postprocessing of what
loses more: ``docs/proofs/plans.rst`` has the three kernels. So a search brackets the best number.

Whether a number is within the target is read from the upper bound on δ. So what is returned meets
the target whatever the plan is. That no better number was passed over needs losses that rise or
fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log, log1p, sqrt
from typing import Any

from ..arguments import checks
from ..errors import InvalidValueError
from .bounds import Bounds
from .function import TradeoffFunction
from .product import MOST_FACTORS
from .session import Session, check_session

Plan = Callable[[float], "Session | TradeoffFunction"]

MOST_STEPS = 2**40
_FACTOR = 4.0  # between numbers that are tried before the target is bracketed
_RATE, _SIGMA = 2.0**-6, 1.0  # tried first
_WIDTHS = (0.5, 0.1, 1e-4)  # of bounds on δ, each where the ones before do not decide
_UNDECIDED = 1e-4  # part of a number of steps up to which a search goes where bounds do not tell
_LEAST_TOLERANCE = 1e-6  # finer, the bounds on δ would decide


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a search found.

    :ivar value: a number whose plan is within the target
    :ivar beyond: the nearest number tried whose plan is shown to exceed the target; None if none is
    :ivar plan: the losses at ``value``, with those beside them
    :ivar delta: the upper bound on δ of ``plan`` at the target's ε
    :ivar evaluations: how many plans were evaluated

    :example:

    >>> oc.fdp.most_steps(oc.TradeoffFunction.pure(0.25), epsilon=1.0, delta=0.0)
    Calibration(value=4, beyond=5, ..., delta=0.0, evaluations=7)
    """

    value: float
    beyond: float | None
    plan: Session
    delta: float
    evaluations: int


def largest_rate(
    plan: Plan,
    epsilon: float,
    delta: float,
    *,
    beside: Session | TradeoffFunction | None = None,
    bounds: tuple[float, float] = (1e-9, 1.0),
    tolerance: float = 1e-3,
) -> Calibration:
    """Find the largest sampling rate with which a plan is (ε, δ)-DP.

    The plan at ``value`` is within the target: its certified upper bound on δ is at most ``delta``.
    Losses of Poisson-sampled noise rise with the rate. So no rate from ``beyond`` on is within the
    target, and ``beyond`` is at most 1 + ``tolerance`` times ``value`` wherever the bounds on δ can
    tell rates that close. At most 50 plans are evaluated between the default bounds.

    :param plan: from a rate, a double, to a session or a symmetric trade-off function
    :param epsilon: ε of the target, at least 0
    :param delta: δ of the target, in [0, 1]
    :param beside: what is composed with the plan
    :param bounds: least and largest rate that is tried
    :param tolerance: relative, in [10^-6, 1]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> def training(rate):
    ...     return oc.fdp.Session.subsampled_gaussian(sigma=1.0, rate=rate).power(1000)
    >>> queries = oc.TradeoffFunction.laplace(0.1).power(20)
    >>> found = oc.fdp.largest_rate(training, epsilon=2.0, delta=1e-5, beside=queries)
    >>> round(found.value, 5), found.plan.delta(2.0) <= 1e-5
    (0.00619, True)
    """
    search = _Search(plan, epsilon, delta, beside)
    return search.between("rates", bounds, 1.0, tolerance, _RATE, more_is_private=False)


def smallest_sigma(
    plan: Plan,
    epsilon: float,
    delta: float,
    *,
    beside: Session | TradeoffFunction | None = None,
    bounds: tuple[float, float] = (1 / 16, 1e6),
    tolerance: float = 1e-3,
) -> Calibration:
    """Find the smallest noise with which a plan is (ε, δ)-DP.

    The plan at ``value`` is within the target: its certified upper bound on δ is at most ``delta``.
    Losses of Gaussian noise, and of Laplace noise, fall with its scale, also on Poisson-sampled
    units. So no scale up to ``beyond`` is within the target, and ``value`` is at most 1 +
    ``tolerance`` times ``beyond`` wherever the bounds on δ can tell scales that close. At most 50
    plans are evaluated between the default bounds. Noise that is cut off may lose more at a larger
    scale: the result is then within the target, but need not be the smallest.

    :param plan: from a scale, a double, to a session or a symmetric trade-off function
    :param epsilon: ε of the target, at least 0
    :param delta: δ of the target, in [0, 1]
    :param beside: what is composed with the plan
    :param bounds: least and largest scale that is tried
    :param tolerance: relative, in [10^-6, 1]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> def training(sigma):
    ...     return oc.fdp.Session.subsampled_gaussian(sigma, rate=0.01).power(1000)
    >>> found = oc.fdp.smallest_sigma(training, epsilon=1.0, delta=1e-5)
    >>> round(found.value, 2), found.plan.delta(1.0) <= 1e-5
    (1.42, True)
    """
    search = _Search(plan, epsilon, delta, beside)
    return search.between("scales", bounds, inf, tolerance, _SIGMA, more_is_private=True)


def most_steps(
    step: Session | TradeoffFunction,
    epsilon: float,
    delta: float,
    *,
    beside: Session | TradeoffFunction | None = None,
) -> Calibration:
    """Find the largest number of equal steps that is (ε, δ)-DP.

    The ``value`` steps are within the target: their certified upper bound on δ is at most
    ``delta``. Losses rise with the number of steps, so no number from ``beyond`` on is within the
    target. ``beyond`` is ``value`` + 1 wherever the bounds on δ can tell them apart; elsewhere
    ``value`` is the largest that was shown to be within the target, to a 10,000th part. At most
    85 plans are evaluated, and at most 2^40 steps are tried.

    :param step: losses of one step, as a session or a symmetric trade-off function
    :param epsilon: ε of the target, at least 0
    :param delta: δ of the target, in [0, 1]
    :param beside: what is composed with the steps
    :raises InvalidTypeError, InvalidValueError: naming the argument; also if what is beside the
        steps exceeds the target without them

    :example:

    >>> step = oc.fdp.Session.subsampled_gaussian(sigma=1.0, rate=0.01)
    >>> found = oc.fdp.most_steps(step, epsilon=2.0, delta=1e-5)
    >>> found.value, found.beyond
    (1202, 1203)
    """
    one = check_session(step=step)
    search = _Search(lambda count: one.power(int(count)), epsilon, delta, beside)
    counts = [n for side in (one.removed, one.added) for n in side.product.factors.values()]
    return search.counted(min(MOST_STEPS, MOST_FACTORS // max(counts, default=1)))


class _Search:
    """Evaluates plans against a target, and keeps the best."""

    def __init__(self, plan: Any, epsilon: Any, delta: Any, beside: Any) -> None:
        self.plan = checks.function(plan=plan)
        self.epsilon = checks.finite(epsilon=epsilon)
        self.target = checks.probability(delta=delta)
        self.beside = Session() if beside is None else check_session(beside=beside)
        self.evaluations = 0
        self.best: tuple[float, Session, float] | None = None
        self.beyond: float | None = None

    def meets(self, number: float) -> bool:
        """Whether the plan of a number is certain to be within the target."""
        whole = self.beside.compose(check_session(plan=self.plan(number)))
        self.evaluations += 1
        most = 0.0
        for side in (whole.removed, whole.added)[: 1 + (whole.removed != whole.added)]:
            bounds = self._decided(side)
            if bounds.lower > self.target:
                self.beyond = number
            if not bounds.upper <= self.target:
                return False
            most = max(most, float(bounds.upper))
        self.best = number, whole, most
        return True

    def _decided(self, side: TradeoffFunction) -> Bounds:
        """Bounds on δ that are narrow enough to tell, if any are."""
        for width in _WIDTHS:
            bounds = side.delta_bounds(self.epsilon, width)
            if bounds.upper <= self.target or bounds.lower > self.target:
                break
        return bounds

    def between(
        self,
        what: str,
        bounds: Any,
        most: float,
        tolerance: Any,
        start: float,
        more_is_private: bool,
    ) -> Calibration:
        """Go from ``start`` by a factor until the answer changes, then halve the ratio."""
        low, high = _interval(bounds=bounds, most=most)
        narrow = checks.positive(tolerance=tolerance)
        if not _LEAST_TOLERANCE <= narrow <= 1.0:
            raise InvalidValueError(
                f"tolerance ({tolerance}) must be at least {_LEAST_TOLERANCE:g}, at most 1"
            )
        number = min(max(start, low), high)
        first = self.meets(number)
        rises = more_is_private is not first
        for _ in range(ceil((log(high) - log(low)) / log(_FACTOR)) + 1):
            onward = min(number * _FACTOR, high) if rises else max(number / _FACTOR, low)
            if onward == number:
                break
            before, number = number, onward
            if self.meets(number) is not first:
                good, bad = (before, number) if first else (number, before)
                return self._halved(good, bad, narrow)
        if not first:
            end = "largest" if more_is_private else "least"
            raise InvalidValueError(
                f"bounds ({low}, {high}) must have {what} with which the plan and what is beside "
                f"it are within epsilon ({self.epsilon}) and delta ({self.target}), but the {end} "
                "was not shown to be; pass wider bounds, a larger target, or plan less"
            )
        return self.found()

    def _halved(self, good: float, bad: float, narrow: float) -> Calibration:
        """Halve the ratio of two numbers, of which the first is within the target."""
        for _ in range(ceil(log(log(_FACTOR) / log1p(narrow)) / log(2.0)) + 1):
            middle = sqrt(good) * sqrt(bad)
            if max(good, bad) <= min(good, bad) * (1 + narrow) or middle in (good, bad):
                break
            good, bad = (middle, bad) if self.meets(middle) else (good, middle)
        return self.found()

    def counted(self, most: int) -> Calibration:
        """Double a number of steps, then halve the distance."""
        if not self.meets(0):
            raise InvalidValueError(
                f"beside must be within epsilon ({self.epsilon}) and delta ({self.target}) without "
                "any step, but this was not shown; pass a larger target, or plan less"
            )
        good, bad = 0, 1
        for _ in range(most.bit_length()):
            if not self.meets(bad):
                break
            good, bad = bad, min(2 * bad, most)
            if good == most:
                return self.found()
        for _ in range(most.bit_length()):
            if bad - good == 1 or (bad != self.beyond and bad - good <= _UNDECIDED * good):
                break
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self.meets(middle) else (good, middle)
        return self.found()

    def found(self) -> Calibration:
        """The best number so far."""
        assert self.best is not None
        value, whole, delta = self.best
        return Calibration(value, self.beyond, whole, delta, self.evaluations)


def _interval(*, bounds: Any, most: float) -> tuple[float, float]:
    """Two numbers above 0, the smaller first, or raise."""
    first, second = checks.pair(bounds=bounds)
    low, high = (checks.positive(**{f"bounds[{i}]": one}) for i, one in enumerate((first, second)))
    if not low < high <= most:
        rule = "have the smaller number first" if low >= high else f"be at most {most:g}"
        raise InvalidValueError(f"bounds ({low}, {high}) must {rule}")
    return low, high
