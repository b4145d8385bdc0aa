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
from math import exp, inf, log, log1p
from typing import Any

from ..arguments import checks
from ..errors import InvalidValueError
from .bounds import Bounds
from .function import TradeoffFunction
from .product import MOST_FACTORS
from .session import Session, check_session

Plan = Callable[[float], "Session | TradeoffFunction"]

MOST_STEPS = 2**40
_FACTOR = 4.0  # between the first numbers that are tried; it is squared until the answer changes
_LARGEST_FACTOR = 256.0
_MOST_TURNS = 400  # far more than are needed: each three halve the logarithm of a ratio
_FAR, _NEAR = 12.0, 0.5  # ln of δ at two ends: where to halve, and where narrow bounds are needed
_LEAST = 1e-9  # ln of δ over the target: no less
_RATE, _SIGMA = 2.0**-6, 1.0  # tried first
_WIDTHS = (0.5, 0.1, 1e-4)  # of bounds on δ, each where the ones before do not decide
_UNDECIDED = 1e-4  # part of a number of steps up to which a search goes where bounds do not tell
_FURTHER = (1e-3, 8e-3)  # parts of a number by which to go on, until the target is exceeded
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
    tell rates that close. About 10 plans are evaluated, at most 60 between the default bounds.

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
    >>> round(found.value, 4), found.plan.delta(2.0) <= 1e-5
    (0.0062, True)
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
    ``tolerance`` times ``beyond`` wherever the bounds on δ can tell scales that close. About 10
    plans are evaluated, at most 60 between the default bounds. Noise that is cut off may lose more
    at a larger scale: the result is then within the target, but need not be the smallest.

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
    ``value`` is the largest that was shown to be within the target, to a 10,000th part. About 15
    plans are evaluated, at most 150, and at most 2^40 steps are tried.

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
        self.excess = 0.0  # ln of the bound on δ over the target, of the last plan
        self.near = False  # whether plans are near the target, so that wide bounds do not tell
        self.added_first = False

    def meets(self, number: float) -> bool:
        """Whether the plan of a number is certain to be within the target."""
        whole = self.beside.compose(check_session(plan=self.plan(number)))
        self.evaluations += 1
        sides = [whole.removed, whole.added][: 1 + (whole.removed != whole.added)]
        found: list[Bounds] = []
        for side in sides[::-1] if self.added_first else sides:
            found.append(self._decided(side, narrow=self.near and not found))
            if not found[-1].upper <= self.target:
                break
        within, last = bool(found[-1].upper <= self.target), found[-1]
        if len(found) == 2 and last.upper > found[0].upper:
            self.added_first = not self.added_first
        self.excess = max(_excess(one, self.target) for one in found)
        self.excess = min(self.excess, -_LEAST) if within else max(self.excess, _LEAST)
        if last.lower > self.target:
            self.beyond = number
        if within:
            self.best = number, whole, max(float(one.upper) for one in found)
        return within

    def _decided(self, side: TradeoffFunction, narrow: bool) -> Bounds:
        """Bounds on δ that are narrow enough to tell, if any are."""
        for width in _WIDTHS[-1:] if narrow else _WIDTHS:
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
        """Go from ``start`` by growing factors until the answer changes, then into the middle."""
        low, high = _interval(bounds=bounds, most=most)
        narrow = checks.positive(tolerance=tolerance)
        if not _LEAST_TOLERANCE <= narrow <= 1.0:
            raise InvalidValueError(
                f"tolerance ({tolerance}) must be at least {_LEAST_TOLERANCE:g}, at most 1"
            )
        number, factor = min(max(start, low), high), _FACTOR
        first, excess = self.meets(number), self.excess
        for _ in range(_MOST_TURNS):
            rises = more_is_private is not first
            onward = min(number * factor, high) if rises else max(number / factor, low)
            if onward == number:
                break
            before, number, factor = (number, excess), onward, min(factor * factor, _LARGEST_FACTOR)
            changed, excess = self.meets(number) is not first, self.excess
            if changed:
                ends = [before, (number, excess)] if first else [(number, excess), before]
                self._into(ends, log1p(narrow), lambda good, bad: _within(good, bad, narrow), _real)
                return self.found()
        if not first:
            end = "largest" if more_is_private else "least"
            raise InvalidValueError(
                f"bounds ({low}, {high}) must have {what} with which the plan and what is beside "
                f"it are within epsilon ({self.epsilon}) and delta ({self.target}), but the {end} "
                "was not shown to be; pass wider bounds, a larger target, or plan less"
            )
        return self.found()

    def counted(self, most: int) -> Calibration:
        """Multiply a number of steps by growing factors, then go into the middle."""
        if not self.meets(0):
            raise InvalidValueError(
                f"beside must be within epsilon ({self.epsilon}) and delta ({self.target}) without "
                "any step, but this was not shown; pass a larger target, or plan less"
            )
        good, bad, factor = (0, self.excess), 1, 2
        for _ in range(_MOST_TURNS):
            if not self.meets(bad):
                break
            if bad == most:
                return self.found()
            good, bad = (bad, self.excess), min(factor * bad, most)
            factor = min(factor * factor, int(_LARGEST_FACTOR))

        def is_done(good: float, bad: float) -> bool:
            near = bad != self.beyond and bad - good <= _UNDECIDED * good
            return bad - good <= 1 or near

        if good[0]:
            self._into([good, (bad, self.excess)], _UNDECIDED, is_done, _simple)
        return self.found()

    def _into(
        self,
        ends: list[tuple[float, float]],
        tolerance: float,
        is_done: Callable[[float, float], bool],
        number_near: Callable[[float, float, float], float],
    ) -> None:
        """Narrow a number within the target, and one that is not, each with its excess.

        :param tolerance: of the logarithm of the number
        :param number_near: from a number and two around it to one between these
        """
        turns_since = 0
        for _ in range(_MOST_TURNS):
            (good, less), (bad, more) = ends
            if is_done(good, bad):
                break
            span = log(bad) - log(good)
            share = 0.5
            if turns_since < 2 and more - less < _FAR:
                share = less / (less - more)
                # a little further, so that the number and the nearer end are around the target
                spare = 0.4 * tolerance / abs(span)
                share = min(share + spare, 0.5) if share < 0.5 else max(share - spare, 0.5)
            self.near = more - less < _NEAR
            middle = number_near(exp(log(good) + share * span), good, bad)
            if middle in (good, bad):
                break
            side = 0 if self.meets(middle) else 1
            ends[side] = middle, self.excess
            halved = abs(log(ends[1][0]) - log(ends[0][0])) <= 0.5 * abs(span)
            turns_since = 0 if halved else turns_since + 1
        (good, _), (bad, _) = ends
        for part in _FURTHER:
            if bad == self.beyond:  # else bounds do not tell there, but they may somewhat further
                break
            bad = ends[1][0] * exp(max(tolerance, part) * (1 if bad > good else -1))
            bad = int(bad) if number_near is _simple else bad
            self.meets(bad)

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


def _excess(bounds: Bounds, target: float) -> float:
    """Ln of the upper bound on δ over the target."""
    if not target or not bounds.upper:
        return inf if target < bounds.upper else -inf
    return log(bounds.upper) - log(target)


def _within(one: float, other: float, tolerance: float) -> bool:
    return max(one, other) <= min(one, other) * (1 + tolerance)


def _real(near: float, good: float, bad: float) -> float:
    """A double between two others."""
    return min(max(near, min(good, bad)), max(good, bad))


def _simple(near: float, good: float, bad: float) -> int:
    """An integer between two others, near a number; with few binary digits, if it has room."""
    low, high = int(good) + 1, int(bad) - 1
    number = min(max(round(near), low), high)
    room = min(number - int(good), int(bad) - number) // 8
    for digit in range(room.bit_length(), 0, -1):
        rounded = round(number / 2**digit) * 2**digit
        if abs(rounded - number) <= room:
            return int(rounded)
    return number
