"""The sum of Rényi curves, kept as a curve: a bound at every order, for odometers.

At each fixed order the sum is a valid accumulator [HSTVVXZ23, Theorem 4.9]. Its value at one order
is a bound at that order.

A curve is evaluated at the orders of ``READ`` when it is launched, because its author may change it
later. Between two of these orders the value at the larger one counts: the divergence grows with its
order, so this is an upper bound. Above the last order the bound is infinity. A curve that is known
at every order, such as that of zCDP, is stored as an exact formula.

Launches are stored as runs of equal curves, newest first, so that a launch costs O(1) time. The
loss evaluates each distinct curve once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..arguments import checks
from ..errors import InvalidTypeError, InvalidValueError
from ..types import Json, Loss
from .accumulator import times
from .orders_sum import GridCurve, grid_curve
from .scalar_sum import ScalarSum

Curve = Callable[[float], Loss]


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


def read(curve: Loss) -> Loss:
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
class CurveSum:
    """The runs so far: the newest curve, its number of launches, and the earlier runs."""

    curve: Curve | None = None
    count: int = 0
    before: CurveSum | None = None
    _memo: list[dict[Curve, int]] = field(default_factory=list, repr=False)

    @property
    def loss(self) -> SummedCurve:
        """Return the summed curve. Amortised cost: the runs since the last call."""
        return SummedCurve(self._counts())

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> CurveSum:
        """Add ``count`` times the curve ``d_mid``."""
        if not callable(d_mid):
            raise InvalidTypeError(
                f"d_mid must be a function of the order, found {type(d_mid).__name__}"
            )
        curve, count = read(d_mid), times(count)
        if curve == self.curve:
            return CurveSum(curve, self.count + count, self.before)
        return CurveSum(curve, count, self)

    def within(self, d_out: Loss) -> bool:
        """Refuse: two functions cannot be compared."""
        raise InvalidTypeError("Rényi curves can be compared on a grid of orders only")

    def remaining(self, d_out: Loss) -> Loss:
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
