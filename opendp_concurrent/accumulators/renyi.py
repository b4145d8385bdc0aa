"""The accumulator ``renyi``: (ε, δ)-DP by the Rényi divergence of one order, fixed up front.

Failures cost sum of δ_i. Without failures the children are ε_i-DP, and their Rényi divergence is at
most that of randomized response. At one order it adds up for concurrent children with adaptively
chosen losses [HSTVVXZ23, Theorem 4.6]. The sum is (ε, δ')-DP by [CKS20, Proposition 12]. It is not
valid to choose the order after the losses are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..arguments import checks
from ..arguments.written import sent, written
from ..exact.rounding import from_units_up, to_units
from ..measures.conversions.pure_to_renyi import pure_to_renyi
from ..measures.conversions.renyi_to_approximate import largest_divergence, renyi_to_epsilon
from .epsilon_delta_sum import EpsilonDeltaAccounting, slack


@written("renyi", "order", slack="delta_slack")
@dataclass(frozen=True, slots=True)
class Renyi(EpsilonDeltaAccounting):
    """Add up the divergences of order ``order``."""

    order: float
    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Units of the divergence of randomized response, rounded up to a double."""
        return _cost(epsilon, self.order)

    def spent(self, units: float) -> float:
        """Return the least double at or above the sum of divergences."""
        return from_units_up(int(units))

    def epsilon(self, spent: float) -> float:
        """Return the ε that the divergence implies at the slack."""
        return renyi_to_epsilon(self.order, spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double divergence whose ε at the slack is at most ``epsilon``."""
        return largest_divergence(self.order, epsilon, self.delta_slack)

    def __repr__(self) -> str:
        return f"renyi(order={self.order!r}, delta_slack={self.delta_slack!r})"


@lru_cache(maxsize=65536)
def _cost(epsilon: float, order: float) -> int:
    return to_units(pure_to_renyi(epsilon, order))


@sent(Renyi)
def renyi(order: float, delta_slack: float) -> Renyi:
    """Add up (ε, δ) losses by the Rényi divergence of a fixed order.

    After launches with (ε_i, δ_i) the loss is (the ε of the summed divergence at δ', δ' + sum of
    δ_i) with δ' = ``delta_slack``. Before anything is spent it is (0, 0). Each launch counts as the
    exact divergence of randomized response with ε_i. The rule is valid for concurrent children with
    adaptively chosen losses, under finite communication: derived from [HSTVVXZ23, Theorem 4.6] and
    [CKS20, Proposition 12]. ``best_rule`` finds a good order from public numbers.

    :param order: α, finite and above 1, fixed before the first launch
    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> start = oc.accumulators.renyi(order=22.5, delta_slack=1e-6).start()
    >>> start.after((0.01, 0.0), 490).loss
    (0.99916..., 1e-06)
    """
    return Renyi(checks.order(order=order), slack(delta_slack))
