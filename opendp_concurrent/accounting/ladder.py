"""The accumulators ``ladder``, in whole units of one trade-off function, and ``residue``.

``ladder`` for (ε, δ)-DP: a launch of (ε_i, δ_i) costs as many units as the worst such function,
which is randomized response [KOV15], interactively by [LW22, Theorem 3]. So K spent units are
unit^K-DP, as in ``ladder``. The loss is the ε of unit^K at a δ that is fixed up front.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import atanh, inf
from typing import Any

from .. import _checks as checks
from .. import measures, numerics
from ..errors import InvalidValueError, Loss
from ..fdp import TradeoffFunction, check_both, check_function
from .epsilon_delta import slack


@dataclass(frozen=True, slots=True)
class Rungs(measures.AccumulatorState[Any]):
    """The number of units spent, or None if no number of units covers a launch."""

    unit: TradeoffFunction
    spent: int | None = 0

    @property
    def loss(self) -> Any:
        """The power of the unit."""
        return TradeoffFunction.worst() if self.spent is None else self.unit.power(self.spent)

    def units(self, d_mid: Loss) -> int | None:
        """Return the units that ``d_mid`` costs; None if no number of them covers it."""
        return check_function(d_mid=d_mid).units(self.unit)

    def after(self, d_mid: Loss, count: int = 1) -> Rungs:
        """Spend the units that ``d_mid`` costs, ``count`` times."""
        count, units = measures.times(count), self.units(d_mid)
        if units is None or self.spent is None:
            return replace(self, spent=None)
        return replace(self, spent=self.spent + count * units)

    def within(self, d_out: Any) -> bool:
        """Return whether ``d_out`` covers the units spent."""
        return self.spent is not None and self.spent <= d_out.admits(self.unit)

    def remaining(self, d_out: Any) -> Any:
        """Return the power of the unit that is left."""
        if self.spent is None:
            return TradeoffFunction.identity()
        return self.unit.power(max(0, d_out.admits(self.unit) - self.spent))

    def to_record(self) -> int | None:
        """Units spent."""
        return self.spent

    def merged(self, other: Rungs) -> Rungs | None:
        """Return the larger of two counts of the same launches; None if they do not agree.

        Each launch costs the least number of units that is shown to cover it. A later version, or
        another C library, may show one unit less or more. Each count is a bound.
        """
        one, two = self.spent, other.spent
        if one is None or two is None or replace(self, spent=two) != other:
            return None
        return replace(self, spent=max(one, two)) if max(one, two) <= 2 * min(one, two) else None


@dataclass(frozen=True, slots=True)
class EpsilonDeltaRungs(Rungs):
    """The number of units spent on (ε, δ) launches."""

    delta_slack: float = 0.0

    @property
    def loss(self) -> tuple[float, float]:
        """The ε of the power of the unit at the slack, rounded up; (0, 0) if nothing is spent."""
        if self.spent == 0:
            return 0.0, 0.0
        return _epsilon(self.unit, self.spent, self.delta_slack), self.delta_slack

    def units(self, d_mid: Loss) -> int | None:
        """Return the units that the pair ``d_mid`` costs; None if no number of them covers it."""
        epsilon, delta = checks.pair(d_mid=d_mid)
        epsilon = checks.non_negative(**{"d_mid[0]": epsilon})
        delta = checks.non_negative(**{"d_mid[1]": delta})
        return TradeoffFunction.approximate(epsilon, min(delta, 1.0)).units(self.unit)

    def within(self, d_out: tuple[float, float]) -> bool:
        """Return whether the loss is at most ``d_out``."""
        epsilon, delta = self.loss
        return epsilon <= d_out[0] and delta <= d_out[1]

    def remaining(self, d_out: tuple[float, float]) -> tuple[float, float]:
        """Return an ε, and the largest δ, that one more launch may have: to about 10^-6.

        The largest ε that k units cover is 2 artanh δ(0), for the δ of unit^k (``fdp/order.py``).
        """
        if self.spent is None or not self.within(d_out):
            return 0.0, 0.0
        left = self.left(d_out)
        if left == 0:
            return 0.0, 0.0
        power = self.unit.power(left)
        delta = float(power.delta_bounds(inf).lower)
        high = power.epsilon(0.0)
        if high < inf and self.after((high, 0.0)).within(d_out):  # the unit may be pure
            return high, delta
        low, high = 0.0, 2 * atanh(min(float(power.delta_bounds(0.0, _WIDTH).lower), 1 - 2.0**-53))
        for step in range(20):  # the first is enough, unless the unit is not symmetric
            middle = (low + high) / 2 if step else high * (1 - 1e-9)
            admitted = self.after((middle, 0.0)).within(d_out)
            low, high = (middle, high) if admitted else (low, middle)
            if low > 0.999999 * high:
                break
        return low, delta

    def left(self, d_out: tuple[float, float]) -> int:
        """The largest number of units more within ``d_out``, if losses rise; at most ``_MOST``."""
        least, most, before = 0, _MOST + 1, self.loss[0] ** 2  # the last one within, the first not
        beyond, step, tries = inf, 1, 0
        while most - least > 1:
            epsilon, tries = self.moved(step).loss[0], tries + 1
            square = min(epsilon, _LARGEST) ** 2
            if self.moved(step).within(d_out):
                least, before = step, square
            else:
                most, beyond = step, square
            # ε² is about linear in the number of units
            share = (min(d_out[0], _LARGEST) ** 2 - before) / (beyond - before)
            guess = least + (most - least) * share if beyond < inf else 8 * step
            if tries % 4 == 0 and beyond < inf:
                guess = (least + most) / 2
            step = min(max(round(guess), least + 1), most - 1)
        return least

    def moved(self, units: int) -> EpsilonDeltaRungs:
        """So many units more."""
        return replace(self, spent=(self.spent or 0) + units)


_MOST = 2**22  # units that ``remaining`` counts
_LARGEST = 1e100  # ε whose square is a double
_WIDTH = 1e-5  # of the bounds on δ(0), as where launches are compared with units


@lru_cache(maxsize=65536)
def _epsilon(unit: TradeoffFunction, units: int | None, delta: float) -> float:
    """ε of the power of the unit at δ, rounded up."""
    return inf if units is None else unit.power(units).epsilon(delta)


class InUnits(measures.OfOneMeasure):
    """The accumulators in units of one trade-off function."""

    __slots__ = ()

    @abstractmethod
    def start(self, measure: measures.CompositionMeasure[Any] | None = None) -> Rungs:
        """Return the state with no units spent."""

    def from_record(
        self, measure: measures.CompositionMeasure[Any] | None, record: int | None
    ) -> Rungs:
        """Inverse of :meth:`Rungs.to_record`."""
        return replace(self.start(), spent=None if record is None else checks.whole(record=record))


@checks.tagged("ladder-at-delta", "unit", slack="delta_slack")
@dataclass(frozen=True, slots=True)
class EpsilonDeltaLadder(InUnits):
    """The accumulator of (ε, δ) losses in units of one trade-off function."""

    unit: TradeoffFunction
    delta_slack: float

    made_for = measures.APPROXIMATE

    def start(self, measure: measures.CompositionMeasure[Any] | None = None) -> EpsilonDeltaRungs:
        """Return the state with no units spent."""
        return EpsilonDeltaRungs(self.unit, delta_slack=self.delta_slack)

    def check_budget(self, d_out: tuple[float, float]) -> None:
        """Raise if the slack exceeds the δ of ``d_out``."""
        if not self.delta_slack <= d_out[1]:
            raise InvalidValueError(
                f"d_out[1] ({d_out[1]}) must be at least the slack of {self!r}; "
                "take a smaller delta_slack, such as all of it"
            )

    def __repr__(self) -> str:
        return f"ladder({self.unit}, delta_slack={self.delta_slack})"


def alike_ladder(loss: tuple[float, float], delta: float) -> EpsilonDeltaLadder | None:
    """Return the ladder whose unit is one launch, or None if the launch bounds nothing."""
    unit = TradeoffFunction.approximate(*loss)
    return None if unit == TradeoffFunction.worst() else EpsilonDeltaLadder(unit, delta)


# The accumulator ``ladder``: each launch costs whole units of one trade-off function.
#
# Powers of one trade-off function are totally ordered. A launch of f costs the least k with
# f <= unit^k. Draw the first K samples of the unit's pair in advance. A child that costs k is a
# postprocessing of k unused samples (Blackwell; for interactive children [VZ23], restated as
# [HSTVVXZ23, Theorem 3.3], under finite communication). The whole interaction is therefore a
# postprocessing of the spent samples, and so unit^K-DP for every adaptive choice of launches.


@checks.tagged("ladder", "unit")
@dataclass(frozen=True, slots=True)
class Ladder(InUnits):
    """The accumulator in units of one trade-off function."""

    unit: TradeoffFunction

    made_for = measures.TRADEOFF

    def start(self, measure: measures.CompositionMeasure[Any] | None = None) -> Rungs:
        """Return the state with no units spent."""
        return Rungs(self.unit)

    def shares(
        self,
        measure: measures.CompositionMeasure[Any],
        d_out: TradeoffFunction,
        weights: list[Fraction],
    ) -> list[TradeoffFunction]:
        """Return whole units in proportion to the weights, rounded down."""
        units, whole = d_out.admits(self.unit), sum(weights)
        return [self.unit.power(int(units * weight / whole)) for weight in weights]

    def __repr__(self) -> str:
        return f"ladder({self.unit})"


def ladder(unit: TradeoffFunction, delta_slack: float | None = None) -> Ladder | EpsilonDeltaLadder:
    """Add up adaptively chosen f-DP losses in whole units of one trade-off function.

    A launch of f costs the least k with f <= unit^k. An odometer's loss is the power of the unit
    that was spent. A filter admits as many units as ``d_out`` covers, and refuses a launch that no
    number of units is known to cover; an odometer charges the worst loss for it. Powers of one
    function are totally ordered, so this is valid (proof: ``accounting/ladder.py``). Equal
    launches of the unit reach the optimal composition of losses fixed up front [KOV15], [MV16].

    With ``delta_slack`` it adds up (ε, δ) losses under ``approximate(max_divergence())``: a launch
    of (ε, δ) costs as many units as the worst (ε, δ)-DP function, and the loss is the ε of the
    units spent at ``delta_slack``, which needs no further δ for the launches.

    :param unit: a trade-off function other than the identity
    :param delta_slack: for (ε, δ)-DP: δ of the reported loss, such as all of the δ of ``d_out``
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> rule = oc.accumulators.ladder(oc.TradeoffFunction.pure(0.01))
    >>> budget = oc.TradeoffFunction.approximate(1.0, 1e-6)
    >>> oc.accumulators.launches_admitted(rule, budget, [oc.TradeoffFunction.pure(0.01)])
    562
    >>> rule = oc.accumulators.ladder(oc.TradeoffFunction.pure(0.01), delta_slack=1e-6)
    >>> oc.accumulators.launches_admitted(rule, (1.0, 1e-6), [(0.01, 0.0)])
    562
    """
    if check_both(unit=unit) in (TradeoffFunction.identity(), TradeoffFunction.worst()):
        raise InvalidValueError(
            f"unit ({unit}) must be neither TradeoffFunction.identity() nor "
            "TradeoffFunction.worst(); pass for example oc.TradeoffFunction.pure(0.01)"
        )
    if delta_slack is None:
        return Ladder(unit)
    return EpsilonDeltaLadder(unit, slack(delta_slack))


# The accumulator ``residue``: each child leaves the largest safe residual of a Gaussian budget.
#
# After a child f, a residual r becomes the largest s with f (x) G_s at least G_r as trade-off
# functions [RHLMTL26]. This is valid: by induction every continuation from s is s-GDP for all
# answers, so the whole is at least f (x) G_s, which is at least G_r. It is concurrent by
# [HSTVVXZ23, Theorem 1.21], under finite communication. It is never worse than the sum of squares:
# if f is μ-GDP, G_μ (x) G_s is G_r for s² = r² - μ².
#
# As an odometer: let ν be the root of the sum of squares of the children's own μ. The loss is G_ν
# while ν is at most the budget, then G_budget while a residual is left, then G_ν again. At every
# d_out this odometer admits no more than the residue filter from d_out, so it is valid (Lemma
# 2.19).

LARGEST = 1e150  # its square is a double


@dataclass(frozen=True, slots=True)
class Residual(measures.AccumulatorState[TradeoffFunction]):
    """The residual of the budget, and the sum of the children's squares.

    :ivar mu: the budget
    :ivar left: the residual; None if there is no residual, not even 0
    :ivar squares: exact sum of squares in units of 2**-(2 * SMALLEST); None if it is infinite
    """

    mu: float
    left: float | None
    squares: int | None = 0

    @property
    def loss(self) -> TradeoffFunction:
        """Return a Gaussian trade-off function, or the worst trade-off function."""
        root = None if self.squares is None else numerics.sqrt_up(self.squares)
        if self.left is not None and (root is None or root > self.mu):
            return TradeoffFunction.gaussian(self.mu)
        return TradeoffFunction.worst() if root is None else TradeoffFunction.gaussian(root)

    def after(self, d_mid: TradeoffFunction, count: int = 1) -> Residual:
        """Charge ``d_mid`` to the residual and to the squares, ``count`` times."""
        child = check_function(d_mid=d_mid)
        count = measures.times(count)
        own, left, squares = child.gaussian_bound, self.left, self.squares
        for _ in range(count):
            if left is None:
                break
            left = TradeoffFunction.gaussian(left).residual(child)
        if squares is None or not own < LARGEST:
            return Residual(self.mu, left, None)
        return Residual(self.mu, left, squares + count * numerics.to_units(own) ** 2)

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether the loss is at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: TradeoffFunction) -> TradeoffFunction:
        """Return what the squares leave of ``d_out``, or the residual if it is larger and counts.

        The residual counts if ``d_out`` is at least the budget.
        """
        left = 0 if self.squares is None else numerics.to_units(d_out.mu_down) ** 2 - self.squares
        mu = numerics.sqrt_down(max(0, left))
        if TradeoffFunction.gaussian(self.mu) <= d_out:
            mu = max(mu, self.left or 0.0)
        return TradeoffFunction.gaussian(mu)

    def to_record(self) -> list[str | None]:
        """Residual and squares, exactly."""
        left = None if self.left is None else self.left.hex()
        return [left, None if self.squares is None else hex(self.squares)]

    def merged(self, other: Residual) -> Residual | None:
        """Return the smaller residual and larger squares, if they differ by C library rounding."""
        lefts, squares = (self.left, other.left), (self.squares, other.squares)
        if self.mu != other.mu or not all(map(_both, (lefts, squares))):
            return None
        return Residual(self.mu, _chosen(min, lefts), _chosen(max, squares))


def _both(pair: tuple[Any, Any]) -> bool:
    """Return whether two numbers are nearly equal, or both are None."""
    one, other = pair
    return one is other if None in pair else measures.nearly_equal(one, other)


def _chosen(which: Callable[..., Any], pair: tuple[Any, Any]) -> Any:
    return None if None in pair else which(pair)


@checks.tagged("residue", "mu")
@dataclass(frozen=True, slots=True, repr=False)
class Residue(measures.OfOneMeasure, measures.EvenlyDivisible):
    """The accumulator by residuals of one Gaussian budget."""

    mu: float

    made_for = measures.TRADEOFF

    def start(self, measure: measures.CompositionMeasure[Any] | None = None) -> Residual:
        """Return the whole budget."""
        return Residual(self.mu, self.mu)

    def from_record(
        self, measure: measures.CompositionMeasure[Any] | None, record: list[str | None]
    ) -> Residual:
        """Inverse of :meth:`Residual.to_record`."""
        left, squares = record
        return Residual(
            self.mu,
            None if left is None else float.fromhex(left),
            None if squares is None else int(squares, 16),
        )


@checks.sent(Residue)
def residue(mu: float) -> Residue:
    """Add up adaptively chosen f-DP losses under a Gaussian budget.

    Each child leaves the largest residual that its whole trade-off function allows. This is never
    less than the residual that its own μ-GDP would leave. A certified search finds the residual in
    about 50 ms for a single mechanism. The filter's ``d_out`` should be Gaussian with the same μ. A
    child leaves no residual if its loss may be infinite, or is unbounded with no known Gaussian
    bound. ``accounting/ladder.py`` has the derivation; the filter is that of [RHLMTL26].

    :param mu: the budget, above 0
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> launched = oc.accumulators.residue(mu=1.0).start().after(oc.TradeoffFunction.pure(0.5))
    >>> launched.remaining(oc.TradeoffFunction.gaussian(1.0))
    TradeoffFunction(gaussian(mu=0.859990456...))
    """
    budget = checks.non_negative(mu=mu)
    if not 0.0 < budget < 1e3:
        raise InvalidValueError(f"mu ({mu}) must be above 0 and below 1000")
    return Residue(budget)
