"""The accumulator ``residue``: each child leaves the largest safe residual of a Gaussian budget.

After a child f, a residual r becomes the largest s with f (x) G_s at least G_r as trade-off
functions [RHLMTL26]. This is valid: by induction every continuation from s is s-GDP for all
answers, so the whole is at least f (x) G_s, which is at least G_r. It is concurrent by [HSTVVXZ23,
Theorem 1.21], under finite communication. It is never worse than the sum of squares: if f is μ-GDP,
G_μ (x) G_s is G_r for s² = r² - μ².

As an odometer: let ν be the root of the sum of squares of the children's own μ. The loss is G_ν
while ν is at most the budget, then G_budget while a residual is left, then G_ν again. At every
d_out this odometer admits no more than the residue filter from d_out, so it is valid (Lemma 2.19).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..arguments import checks
from ..arguments.written import sent, written
from ..errors import InvalidValueError
from ..exact.rounding import sqrt_down, sqrt_up, to_units
from ..fdp.function import TradeoffFunction, check_function
from ..measures.measure import CompositionMeasure
from ..sums.accumulator import Divided, nearly_equal, times
from ..types import Json, Loss
from .tradeoff import TRADEOFF_DIVERGENCE

LARGEST = 1e150  # its square is a double


@dataclass(frozen=True, slots=True)
class Residual:
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
        root = None if self.squares is None else sqrt_up(self.squares)
        if self.left is not None and (root is None or root > self.mu):
            return TradeoffFunction.gaussian(self.mu)
        return TradeoffFunction.worst() if root is None else TradeoffFunction.gaussian(root)

    def read(self, d_mid: Loss) -> Loss:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Loss, count: int = 1) -> Residual:
        """Charge ``d_mid`` to the residual and to the squares, ``count`` times."""
        child = check_function(d_mid=d_mid)
        count = times(count)
        own, left, squares = child.gaussian_bound, self.left, self.squares
        for _ in range(count):
            if left is None:
                break
            left = TradeoffFunction.gaussian(left).residual(child)
        if squares is None or not own < LARGEST:
            return Residual(self.mu, left, None)
        return Residual(self.mu, left, squares + count * to_units(own) ** 2)

    def within(self, d_out: TradeoffFunction) -> bool:
        """Return whether the loss is at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: TradeoffFunction) -> TradeoffFunction:
        """Return what the squares leave of ``d_out``, or the residual if it is larger and counts.

        The residual counts if ``d_out`` is at least the budget.
        """
        left = 0 if self.squares is None else to_units(d_out.mu_down) ** 2 - self.squares
        mu = sqrt_down(max(0, left))
        if TradeoffFunction.gaussian(self.mu) <= d_out:
            mu = max(mu, self.left or 0.0)
        return TradeoffFunction.gaussian(mu)

    def to_record(self) -> Json:
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
    return one is other if None in pair else nearly_equal(one, other)


def _chosen(which: Any, pair: tuple[Any, Any]) -> Any:
    return None if None in pair else which(pair)


@written("residue", "mu")
@dataclass(frozen=True, slots=True)
class Residue(Divided):
    """The accumulator by residuals of one Gaussian budget."""

    mu: float

    made_for = "Tradeoff"

    def supports(self, measure: CompositionMeasure) -> bool:
        """Return whether the measure is f-DP."""
        return bool(measure == TRADEOFF_DIVERGENCE)

    def start(self, measure: CompositionMeasure | None = None) -> Residual:
        """Return the whole budget."""
        del measure
        return Residual(self.mu, self.mu)

    def from_record(self, measure: CompositionMeasure | None, record: Json) -> Residual:
        """Inverse of :meth:`Residual.to_record`."""
        del measure
        left, squares = record
        return Residual(
            self.mu,
            None if left is None else float.fromhex(left),
            None if squares is None else int(squares, 16),
        )

    def __repr__(self) -> str:
        return f"residue(mu={self.mu!r})"


@sent(Residue)
def residue(mu: float) -> Residue:
    """Add up adaptively chosen f-DP losses under a Gaussian budget.

    Each child leaves the largest residual that its whole trade-off function allows. This is never
    less than the residual that its own μ-GDP would leave. A certified search finds the residual in
    about 50 ms for a single mechanism. The filter's ``d_out`` should be Gaussian with the same μ. A
    child leaves no residual if its loss may be infinite, or is unbounded with no known Gaussian
    bound. ``tradeoffs/residue.py`` has the derivation; the filter is that of [RHLMTL26].

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
