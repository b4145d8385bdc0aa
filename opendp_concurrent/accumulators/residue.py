"""The residue filter for a Gaussian budget: each child leaves the largest budget that is safe.

From a residual r a child f leaves the largest s with f (x) G_s at least G_r as trade-off functions
[RHLMTL26]. Valid: by induction every continuation from s is s-GDP whatever was answered, so the
whole is at least f (x) G_s, which is at least G_r. Concurrent by [HSTVVXZ23, Theorem 1.21], under
finite communication. Never worse than the sum of squares: if f is μ-GDP, G_μ (x) G_s is G_r for
s² = r² - μ².

As an odometer: with ν the root of the sum of squares of the children's own μ, the loss is G_ν while
ν is at most the budget, then G_budget while a residual is left, then G_ν again. For every d_out
that admits no more than the residue filter from d_out does, so it is valid (Lemma 2.19).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import checks
from ..errors import InvalidValueError
from ..exact.rounding import sqrt_down, sqrt_up, to_units
from ..fdp.function import TradeoffFunction, check_function
from ..measures.sums.accumulator import nearly_equal, times
from ..measures.tradeoff import TRADEOFF_DIVERGENCE

LARGEST = 1e150  # whose square is a double


@dataclass(frozen=True, slots=True)
class Residual:
    """What is left of the budget, and the children's squares.

    :ivar mu: the budget
    :ivar left: residual; None if nothing is left, not even 0
    :ivar squares: exact sum of squares in units of 2**-(2 * SMALLEST); None if it is infinite
    """

    mu: float
    left: float | None
    squares: int | None = 0

    @property
    def loss(self) -> TradeoffFunction:
        """A Gaussian trade-off function, or the worst."""
        root = None if self.squares is None else sqrt_up(self.squares)
        if self.left is not None and (root is None or root > self.mu):
            return TradeoffFunction.gaussian(self.mu)
        return TradeoffFunction.worst() if root is None else TradeoffFunction.gaussian(root)

    def read(self, d_mid: Any) -> Any:
        """Return ``d_mid``."""
        return d_mid

    def after(self, d_mid: Any, count: int = 1) -> Residual:
        """Take what ``d_mid`` needs, ``count`` times."""
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
        """Whether the loss is at most ``d_out``."""
        return self.loss <= d_out

    def remaining(self, d_out: TradeoffFunction) -> TradeoffFunction:
        """The residual, under the budget or more; else what the sum of squares leaves."""
        if TradeoffFunction.gaussian(self.mu) <= d_out:
            return TradeoffFunction.gaussian(self.left or 0.0)
        left = 0 if self.squares is None else to_units(d_out.mu_down) ** 2 - self.squares
        return TradeoffFunction.gaussian(sqrt_down(max(0, left)))

    def to_record(self) -> Any:
        """Residual and squares, exactly."""
        left = None if self.left is None else self.left.hex()
        return [left, None if self.squares is None else hex(self.squares)]

    def merged(self, other: Residual) -> Residual | None:
        """Return the less that is left, and the more that is spent, if the C library did it."""
        lefts, squares = (self.left, other.left), (self.squares, other.squares)
        if self.mu != other.mu or not all(map(_both, (lefts, squares))):
            return None
        return Residual(self.mu, _chosen(min, lefts), _chosen(max, squares))


def _both(pair: tuple[Any, Any]) -> bool:
    """Whether two numbers, or no numbers, are about the same."""
    one, other = pair
    return one is other if None in pair else nearly_equal(one, other)


def _chosen(which: Any, pair: tuple[Any, Any]) -> Any:
    return None if None in pair else which(pair)


@dataclass(frozen=True, slots=True)
class Residue:
    """Accounting by residuals of one Gaussian budget."""

    mu: float

    made_for = "Tradeoff"

    def supports(self, measure: Any) -> bool:
        """f-DP."""
        return bool(measure == TRADEOFF_DIVERGENCE)

    def start(self, measure: Any = None) -> Residual:
        """Return the whole budget."""
        del measure
        return Residual(self.mu, self.mu)

    def from_record(self, measure: Any, record: Any) -> Residual:
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


def residue(mu: float) -> Residue:
    """Accounting for f-DP with losses chosen on the way, under a Gaussian budget.

    Each child leaves the largest residual that its whole trade-off function allows, by a certified
    search that takes some 50 ms for a single mechanism; never less than its own μ-GDP would leave.
    The budget of the filter should be the Gaussian one with the same μ. A child whose loss may be
    infinite, or is unbounded and not known to be within a Gaussian one, leaves nothing. Derivation:
    ``accumulators/residue.py``; the filter is that of [RHLMTL26].

    :param mu: the budget, above 0
    :return: an accounting for the ``accumulator`` of ``make_concurrent_odometer``
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
