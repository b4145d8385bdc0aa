"""The sum at every order of a grid, for Rényi DP: the all-orders rule.

Each fixed order has a filter [HSTVVXZ23, Theorems 4.6 and 4.9], concurrent and with adaptive
parameters. The all-orders rule continues only while every order of the grid stays within its
budget. It restricts each of these filters, so the budget holds at all orders at once, with no union
bound. (It is not valid at an undivided δ to continue while *some* order stays within its budget.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

from ..arguments import checks
from ..arguments.written import written
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Loss
from .accumulator import Divided
from .scalar_sum import ScalarSum

if TYPE_CHECKING:
    from ..measures.measure import CompositionMeasure


@written("curve", "orders", "values")
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

    def __le__(self, other: object) -> bool:
        if not isinstance(other, GridCurve) or other.orders != self.orders:
            return NotImplemented
        return all(a <= b for a, b in zip(self.values, other.values, strict=True))

    def __lt__(self, other: object) -> bool:
        below = self.__le__(other)
        return below if below is NotImplemented else below and self != other


def grid_curve(
    orders: tuple[float, ...], curve: Callable[[float], Loss], name: str = "d_mid"
) -> GridCurve:
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

    def read(self, d_mid: Loss) -> GridCurve:
        """Return the curve ``d_mid`` at the orders of the grid."""
        return grid_curve(self.orders, d_mid)

    def after(self, d_mid: Loss, count: int = 1) -> OrdersSum:
        """Add ``count`` times the curve ``d_mid`` at each order."""
        values = self.read(d_mid).values
        sums = (one.after(value, count) for one, value in zip(self.sums, values, strict=True))
        return OrdersSum(self.orders, tuple(sums))

    def within(self, d_out: GridCurve) -> bool:
        """Return whether every sum is at most the bound at its order."""
        pairs = zip(self.sums, d_out.values, strict=True)
        return all(one.within(value) for one, value in pairs)

    def remaining(self, d_out: Callable[[float], float]) -> GridCurve:
        """Return the largest curve on the grid that can still be spent."""
        budget = grid_curve(self.orders, d_out, "d_out").values
        pairs = zip(self.sums, budget, strict=True)
        return GridCurve(self.orders, tuple(one.remaining(value) for one, value in pairs))

    def to_record(self) -> list[str | None]:
        """The exact sum at each order."""
        return [one.to_record() for one in self.sums]


@written("orders", "orders")
@dataclass(frozen=True, slots=True)
class OnOrders(Divided):
    """The accumulator for Rényi curves on a grid of orders."""

    orders: tuple[float, ...]

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure's distances are curves."""
        return bool(measure.needs_orders)

    def start(self, measure: CompositionMeasure | None = None) -> OrdersSum:
        """Return zero at each order."""
        return OrdersSum(self.orders, (ScalarSum(),) * len(self.orders))

    def from_record(
        self, measure: CompositionMeasure | None, record: list[str | None]
    ) -> OrdersSum:
        """Inverse of :meth:`OrdersSum.to_record`."""
        return OrdersSum(self.orders, tuple(ScalarSum.from_record(one) for one in record))

    def __repr__(self) -> str:
        return f"basic sums at orders {self.orders}"
