"""Rényi DP: curves and their sums, the measure of all orders, and that of one order.

A bound is enforced at every order of a grid, by the all-orders rule: each fixed order has a filter
[HSTVVXZ23, Theorems 4.6 and 4.9], concurrent and with adaptive parameters. The all-orders rule
continues only while every order of the grid stays within its budget. It restricts each of these
filters, so the budget holds at all orders at once, with no union bound. (It is not valid at an
undivided δ to continue while *some* order stays within its budget.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import inf
from types import MappingProxyType
from typing import Any

from .. import _checks as checks
from ..errors import Argument, InvalidTypeError, InvalidValueError, Json, Loss
from ..numerics import split
from . import opendp as native
from .conversion import (
    Conversion,
    Ends,
    Profile,
    at_delta,
    at_epsilon,
    known,
    pure_to_renyi,
    renyi_to_delta,
    renyi_to_epsilon,
    zcdp_to_renyi,
)
from .divergences import left_of, mixed
from .measure import (
    AccumulatorState,
    Composability,
    CompositionMeasure,
    EvenlyDivisible,
    Parametrised,
    singleton,
    times,
)
from .shapes import NumberMeasure, PairMeasure, ScalarSum, join_numbers

Curve = Callable[[float], float]


@checks.tagged("curve", "orders", "values")
@dataclass(frozen=True, slots=True)
class GridCurve:
    """A Rényi curve on a grid of orders, with one value at each order, in increasing order.

    A call at ``alpha`` returns the least value at the orders from ``alpha`` on: an upper bound, as
    the divergence does not decrease with its order. Above the last order it returns infinity.
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]

    def __call__(self, alpha: float) -> float:
        """Return an upper bound on the Rényi divergence of order ``alpha`` > 1."""
        if not alpha > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        above = [v for order, v in zip(self.orders, self.values, strict=True) if order >= alpha]
        return min(above, default=inf)

    def __le__(self, other: GridCurve) -> bool:
        if not isinstance(other, GridCurve) or other.orders != self.orders:
            return NotImplemented
        return all(a <= b for a, b in zip(self.values, other.values, strict=True))

    def __lt__(self, other: GridCurve) -> bool:
        below = self.__le__(other)
        return below if below is NotImplemented else below and self != other


def grid_curve(orders: tuple[float, ...], curve: Curve, name: str = "d_mid") -> GridCurve:
    """Evaluate ``curve`` at each order; raise if a value is not a privacy loss."""
    if type(curve) is GridCurve and curve.orders == orders:
        curve = dict(zip(orders, curve.values, strict=True)).__getitem__  # immutable
    if not callable(curve):
        raise InvalidTypeError(
            f"{name} must be a function of the order, found {type(curve).__name__}"
        )
    values = (checks.non_negative(**{f"{name}({order:g})": curve(order)}) for order in orders)
    tightened = tuple(accumulate(reversed(tuple(values)), min))  # monotone in the order
    return GridCurve(orders, tightened[::-1])


@dataclass(frozen=True, slots=True)
class OrdersSum:
    """Exact sums of the curves at each order of the grid."""

    orders: tuple[float, ...]
    sums: tuple[ScalarSum, ...]

    @property
    def loss(self) -> GridCurve:
        """The summed curve, each value rounded up once."""
        return GridCurve(self.orders, tuple(one.loss for one in self.sums))

    def read(self, d_mid: Curve) -> GridCurve:
        """Return the curve ``d_mid`` at the orders of the grid."""
        return grid_curve(self.orders, d_mid)

    def after(self, d_mid: Curve, count: int = 1) -> OrdersSum:
        """Add ``count`` times the curve ``d_mid`` at each order."""
        values = self.read(d_mid).values
        sums = (one.after(value, count) for one, value in zip(self.sums, values, strict=True))
        return OrdersSum(self.orders, tuple(sums))

    def within(self, d_out: GridCurve) -> bool:
        """Return whether every sum is at most the bound at its order."""
        pairs = zip(self.sums, d_out.values, strict=True)
        return all(one.within(value) for one, value in pairs)

    def remaining(self, d_out: Curve) -> GridCurve:
        """Return the largest curve on the grid that can still be spent."""
        budget = grid_curve(self.orders, d_out, "d_out").values
        pairs = zip(self.sums, budget, strict=True)
        return GridCurve(self.orders, tuple(one.remaining(value) for one, value in pairs))

    def to_record(self) -> list[str | None]:
        """The exact sum at each order."""
        return [one.to_record() for one in self.sums]


@checks.tagged("orders", "orders")
@dataclass(frozen=True, slots=True)
class OnOrders(EvenlyDivisible):
    """The accumulator for Rényi curves on a grid of orders."""

    orders: tuple[float, ...]

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return whether the measure's distances are curves."""
        return bool(measure.needs_orders)

    def start(self, measure: CompositionMeasure[Any] | None = None) -> OrdersSum:
        """Return zero at each order."""
        return OrdersSum(self.orders, (ScalarSum(),) * len(self.orders))

    def from_record(
        self, measure: CompositionMeasure[Any] | None, record: list[str | None]
    ) -> OrdersSum:
        """Inverse of :meth:`OrdersSum.to_record`."""
        return OrdersSum(self.orders, tuple(ScalarSum.from_record(one) for one in record))

    def __repr__(self) -> str:
        return f"basic sums at orders {self.orders}"


# The sum of Rényi curves, kept as a curve: a bound at every order, for odometers.
#
# At each fixed order the sum is a valid accumulator [HSTVVXZ23, Theorem 4.9]. Its value at one
# order is a bound at that order.
#
# A curve is evaluated at the orders of ``READ`` when it is launched, because its author may change
# it later. Between two of these orders the value at the larger one counts: the divergence grows
# with its order, so this is an upper bound. Above the last order the bound is infinity. A curve
# that is known at every order, such as that of zCDP, is stored as an exact formula.
#
# Launches are stored as runs of equal curves, newest first, so that a launch costs O(1) time. The
# loss evaluates each distinct curve once.

READ = (
    1.0625,
    1.125,
    1.25,
    1.5,
    1.75,
    2.0,
    2.5,
    *map(float, range(3, 17)),
    *map(float, (20, 24, 28, 32, 40, 48, 50, 56, 64, 80, 96, 100, 128, 192, 256, 384, 512, 1024)),
)


def read(curve: Curve) -> Curve:
    """Return an immutable curve that is at least as large as ``curve``.

    :raises InvalidTypeError, InvalidValueError: if a value is not a privacy loss
    """
    if getattr(curve, "known", None) is not None:
        return curve
    return curve if type(curve) is GridCurve else grid_curve(READ, curve)


class SummedCurve:
    """Privacy loss as a function of the Rényi order; immutable."""

    __slots__ = ("_counts",)

    def __init__(self, counts: dict[Curve, int]) -> None:
        self._counts = dict(counts)

    def __call__(self, alpha: float) -> float:
        """Return the sum of the curves at order ``alpha`` > 1, exact and then rounded up once."""
        if not checks.number(alpha=alpha) > 1.0:
            raise InvalidValueError(f"alpha ({alpha}) must be above 1")
        total = ScalarSum()
        for curve, count in self._counts.items():
            total = total.after(curve(alpha), count)
        return total.loss

    def __repr__(self) -> str:
        return f"SummedCurve({len(self._counts)} distinct curves)"


@dataclass(frozen=True, slots=True, eq=False)
class CurveSum(AccumulatorState[Curve]):
    """The runs so far: the newest curve, its number of launches, and the earlier runs."""

    curve: Curve | None = None
    count: int = 0
    before: CurveSum | None = None
    _memo: list[dict[Curve, int]] = field(default_factory=list, repr=False)

    @property
    def loss(self) -> SummedCurve:
        """Return the summed curve. Amortised cost: the runs since the last call."""
        return SummedCurve(self._counts())

    def after(self, d_mid: Curve, count: int = 1) -> CurveSum:
        """Add ``count`` times the curve ``d_mid``."""
        if not callable(d_mid):
            raise InvalidTypeError(
                f"d_mid must be a function of the order, found {type(d_mid).__name__}"
            )
        curve, count = read(d_mid), times(count)
        if curve == self.curve:
            return CurveSum(curve, self.count + count, self.before)
        return CurveSum(curve, count, self)

    def within(self, d_out: Curve) -> bool:
        """Refuse: two functions cannot be compared."""
        raise InvalidTypeError("Rényi curves can be compared on a grid of orders only")

    def remaining(self, d_out: Curve) -> Curve:
        """Refuse: a budget for curves needs a grid of orders."""
        raise InvalidTypeError("what remains of a Rényi curve is defined on a grid of orders only")

    def _counts(self) -> dict[Curve, int]:
        if not self._memo:
            newer: list[CurveSum] = []
            node: CurveSum | None = self
            while node is not None and node.curve is not None and not node._memo:
                newer.append(node)
                node = node.before
            counts = dict(node._memo[0]) if node is not None and node._memo else {}
            for run in reversed(newer):
                assert run.curve is not None
                counts[run.curve] = counts.get(run.curve, 0) + run.count
            self._memo.append(counts)
        return self._memo[0]

    def to_record(self) -> Json:
        """Refuse: a curve is a program; record it on a grid of orders."""
        raise InvalidTypeError("a Rényi curve has no exact record; use a grid of orders")

    @classmethod
    def from_record(cls, record: Json) -> Json:
        """Refuse, as ``to_record`` does."""
        return cls().to_record()


# Rényi DP: the distance is a curve, the divergence as a function of the order.


class RenyiCurve:
    """A curve that was given, with its values validated and remembered.

    Equal to itself only, unless it is known in full: two functions cannot be compared.

    :ivar known: the curve, if it is one that cannot change
    """

    __slots__ = ("_curve", "_name", "_values", "known")

    def __init__(self, name: str, curve: Curve) -> None:
        self.known = known(curve)
        self._name, self._curve = name, self.known or curve
        self._values: dict[float, float] = {}

    def __call__(self, alpha: float) -> float:
        """Divergence bound at order ``alpha``; raises when the curve's value is not one."""
        value = self._values.get(alpha)
        if value is None:
            name = f"{self._name}({alpha:g})"
            try:
                raw = self._curve(alpha)
            except native.OpenDPException as error:
                raise InvalidValueError(f"{name} cannot be read: {error}") from error
            value = self._values[alpha] = checks.non_negative(**{name: raw})
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RenyiCurve) or self.known is None:
            return self is other
        return self.known == other.known

    def __hash__(self) -> int:
        return id(self) if self.known is None else hash(self.known)

    def __repr__(self) -> str:
        return f"RenyiCurve({self._name})"


class _Share:
    """A share of a curve, rounded down at each order."""

    def __init__(self, curve: Curve, share: Fraction) -> None:
        self._curve, self._share = curve, share

    def __call__(self, alpha: float) -> float:
        return split(self._curve(alpha), [self._share, 1 - self._share])[0]


def zero_curve(alpha: float) -> float:
    """No divergence at any order."""
    return 0.0


def _epsilon(curve: Curve, ends: Ends) -> tuple[float, float]:
    found = min(renyi_to_epsilon(a, curve(a), ends.at_delta) for a in ends.at_orders)
    return found, ends.at_delta


def curve_to_delta(curve: Curve, ends: Ends) -> Curve:
    """Return δ as a function of ε, the least at any of the orders."""
    return lambda epsilon: min(renyi_to_delta(a, curve(a), epsilon) for a in ends.at_orders)


@dataclass(frozen=True, slots=True)
class RenyiDivergence(CompositionMeasure[Curve]):
    """Rényi DP: curves add up at each order."""

    kind = native.RENYI
    tag = "renyi"
    zero = staticmethod(zero_curve)
    total = CurveSum
    composability = Composability.CONCURRENT
    reason = f"{checks.cite('LW22', 'Theorem 2')} and {checks.cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "a function of the order alpha"
    needs_orders = True
    most_parallel = 64
    noise = native.Noise.GAUSSIAN
    why_not = "a curve is read at single orders, and may grow faster than the order does"
    conversions_to = MappingProxyType(
        {
            native.FIXED: Conversion(lambda d, ends: d(ends.target.alpha)),
            native.APPROXIMATE: Conversion(_epsilon, needs_delta=True, needs_orders=True),
            native.PROFILE: Conversion(
                lambda d, ends: Profile(curve_to_delta(d, ends)), needs_orders=True
            ),
        }
    )

    def opendp(self) -> native.Measure:
        return native.renyi_divergence()

    def validate(self, name: str, value: Argument) -> RenyiCurve:
        """A function of the order; its values are validated when they are read."""
        if not callable(value):
            raise InvalidTypeError(
                f"{name} must be a function of the order alpha, found {type(value).__name__}"
            )
        return RenyiCurve(name, value)

    validate_budget = validate

    def at_most(self, left: Any, right: Any) -> bool:
        """On a common grid, at each order; other functions are comparable to themselves only."""
        try:
            return left is right or bool(left <= right)
        except TypeError:
            return False

    def check(self, loss: Loss, d_out: Loss) -> bool:
        """Curves are compared as they are, on a common grid."""
        return self.at_most(loss, d_out)

    def split(self, d_out: Curve, weights: list[Fraction]) -> list[Curve]:
        """Shares of a curve, at every order."""
        whole = sum(weights)
        return [_Share(d_out, weight / whole) for weight in weights]

    def join(self, losses: list[list[Curve]], parts: Sequence[int]) -> Curve:
        """The largest sum at each order."""

        def curve(alpha: float) -> float:
            if not checks.number(alpha=alpha) > 1.0:
                raise InvalidValueError(f"alpha ({alpha}) must be above 1")
            return join_numbers([[one(alpha) for one in row] for row in losses], parts)

        return curve

    @classmethod
    def is_loss(cls, value: Argument) -> bool:
        return callable(value)

    @classmethod
    def height(cls, loss: Loss, order: float | None, of: str) -> float:
        """The value at ``order``, or at the least order of its grid."""
        curve = checks.function(**{of: loss})
        if order is None and isinstance(curve, GridCurve):
            return curve.values[0]
        if order is None:
            raise InvalidTypeError("order must be given for Rényi curves that have no grid")
        return float(curve(order))

    @classmethod
    def symbol(cls, loss: Loss | None, order: float | None) -> str:
        if order is None and isinstance(loss, GridCurve):
            order = loss.orders[0]
        return "loss" if order is None else f"loss at order {order:g}"


RENYI_DIVERGENCE = singleton(RenyiDivergence)


# Rényi DP of one order, fixed up front: the distance is the divergence of that order.

_WHY_NOT = "one order bounds no higher order"


@checks.recorded
def fixed_renyi_divergence(alpha: float) -> native.Measure:
    """Rényi divergence of the order ``alpha``; the distance is a number.

    Losses add up, for concurrent children with adaptively chosen losses [HSTVVXZ23, Theorem 4.6].
    An order that is chosen after the losses are known is not covered: fix it up front.

    Required features: `honest-but-curious`

    :param alpha: order, finite and above 1
    :return: a measure, whose distances are numbers in [0, inf]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.fixed_renyi_divergence(alpha=8) == oc.fixed_renyi_divergence(alpha=8.0)
    True
    >>> oc.fixed_renyi_divergence(alpha=8) == oc.fixed_renyi_divergence(alpha=9)
    False
    """
    return native.user_divergence(native.FIXED, alpha=checks.order(alpha=alpha))


def _lower(ends: Ends) -> None:
    """Raise unless the order of the target is at most that of the source."""
    if not ends.target.alpha <= ends.source.alpha:
        raise InvalidValueError(
            f"alpha ({ends.target.alpha}) must be at most the order of the measurement "
            f"({ends.source.alpha}); {_WHY_NOT}"
        )


@dataclass(frozen=True, slots=True)
class FixedRenyiDivergence(Parametrised[float], NumberMeasure):
    """Rényi DP of the order ``alpha``."""

    alpha: float

    kind = native.FIXED
    tag = "fixed-renyi"
    parameter, guard, written = "alpha", checks.order, "order"
    composability = Composability.CONCURRENT
    reason = f"{checks.cite('LW22', 'Theorem 2')} and {checks.cite('HSTVVXZ23', 'Theorem 4.6')}"
    distance_form = "epsilon, the divergence of that order"
    noise = native.Noise.GAUSSIAN
    keywords = MappingProxyType({"epsilon": checks.non_negative, "alpha": checks.order})
    why_not = _WHY_NOT
    read_from = (native.RENYI,)
    conversions_to = MappingProxyType(
        {
            native.FIXED: Conversion(lambda d, ends: d, check=_lower),
            native.APPROXIMATE: at_delta(
                lambda d, delta, ends: renyi_to_epsilon(ends.source.alpha, d, delta)
            ),
            native.PROFILE: at_epsilon(lambda d, e, ends: renyi_to_delta(ends.source.alpha, d, e)),
        }
    )

    def opendp(self) -> native.Measure:
        return fixed_renyi_divergence(self.alpha)

    @property
    def noise_loss(self) -> native.NoiseLoss:
        """Gaussian noise: α v²/(2 s²) [CKS20, Theorem 14]."""
        return native.NoiseLoss(2, Fraction(self.alpha) / 2)

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, float]:
        return fixed_renyi_divergence(given["alpha"]), given["epsilon"]


# δ-approximate Rényi DP of one order: the distance is (ε, δ), with the mixture of approximate zCDP.


@checks.recorded
def approximate_renyi_divergence(alpha: float) -> native.Measure:
    """Approximate Rényi divergence of the order ``alpha``; the distance is (ε, δ).

    Two answers are (ε, δ)-close if each is a mixture of a part of weight 1 - δ, whose divergence of
    this order from that of the other is at most ε, and of anything else. Both sums compose, for
    what answers once, what has no δ, and what this package composes, interleaved
    (``docs/proofs/approximate-zcdp.rst``). Interactive mechanisms that have their loss only as a
    whole exclude others, as under approximate zCDP.

    Required features: `honest-but-curious`

    :param alpha: order, finite and above 1
    :return: a measure, whose distances are pairs (ε, δ)
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_gaussian(scale=4.0)
    >>> oc.c.cast(count, oc.approximate_renyi_divergence(alpha=4.0)).map(1)
    (0.125, 0.0)
    >>> oc.loss_of(epsilon=0.5, delta=1e-6, alpha=4.0)
    (ApproximateRenyiDivergence(alpha=4.0), (0.5, 1e-06))
    """
    return native.user_divergence(native.APPROXIMATE_FIXED, alpha=checks.order(alpha=alpha))


@dataclass(frozen=True, slots=True)
class ApproximateRenyiDivergence(Parametrised[tuple[float, float]], PairMeasure):
    """Approximate Rényi DP of the order ``alpha``."""

    alpha: float

    kind = native.APPROXIMATE_FIXED
    tag = "approximate-renyi"
    parameter, guard, written = "alpha", checks.order, "order"
    composability = Composability.UNIFORM
    reason = (
        "interactive mechanisms that are approximate Rényi DP only as a whole do not compose "
        "concurrently: the counterexample of oc.verify.approximate_zcdp_counterexample() holds at "
        "one order, too"
    )
    distance_form = "(epsilon, delta)"
    keywords = MappingProxyType(
        {"epsilon": checks.non_negative, "delta": checks.probability, "alpha": checks.order}
    )
    why_not = _WHY_NOT
    conversions_to = MappingProxyType(
        {
            native.APPROXIMATE_FIXED: Conversion(lambda d, ends: d, check=_lower),
            native.APPROXIMATE: at_delta(
                lambda d, delta, ends: renyi_to_epsilon(
                    ends.source.alpha, d[0], left_of(d[1], delta)
                )
            ),
            native.PROFILE: at_epsilon(
                lambda d, e, ends: mixed(d[1], renyi_to_delta(ends.source.alpha, d[0], e))
            ),
        }
    )
    conversions_from = MappingProxyType(
        {
            native.PURE: Conversion(lambda d, ends: (pure_to_renyi(d, ends.target.alpha), 0.0)),
            native.ZCDP: Conversion(lambda d, ends: (zcdp_to_renyi(d, ends.target.alpha), 0.0)),
            native.FIXED: Conversion(lambda d, ends: (d, 0.0), check=_lower),
            native.APPROXIMATE: Conversion(
                lambda d, ends: (pure_to_renyi(d[0], ends.target.alpha), d[1])
            ),
            native.APPROXIMATE_ZCDP: Conversion(
                lambda d, ends: (zcdp_to_renyi(d[0], ends.target.alpha), d[1])
            ),
        }
    )

    def opendp(self) -> native.Measure:
        return approximate_renyi_divergence(self.alpha)

    def excludes(self, loss: Callable[[], tuple[float, float]]) -> bool:
        return loss()[1] != 0.0

    @classmethod
    def loss_of(cls, **given: Any) -> tuple[native.Measure, tuple[float, float]]:
        return approximate_renyi_divergence(given["alpha"]), (given["epsilon"], given["delta"])
