"""The accumulator ``zcdp``: each ε_i counts as ε_i tanh(ε_i/2)-zCDP, with one final conversion.

Failures cost sum of δ_i. Without failures the children are ε_i-DP and so ε_i tanh(ε_i/2)-zCDP
[Ste24]. These ρ_i add up for concurrent children with adaptively chosen losses [HSTVVXZ23,
Theorem 4.11]. A sum of ρ is (ε, δ')-DP by the best order of [CKS20, Proposition 12]. The order may
be chosen last, because a filter bounds ρ by a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..arguments.written import sent, written
from ..exact.rounding import from_units_up, to_units
from ..exact.zcdp import largest_rho, zcdp_to_epsilon
from ..measures.conversions.pure_to_zcdp import pure_to_zcdp
from .epsilon_delta_sum import EpsilonDeltaAccounting, slack


@written("zcdp", slack="delta_slack")
@dataclass(frozen=True, slots=True)
class Zcdp(EpsilonDeltaAccounting):
    """Add up ρ_i = ε_i tanh(ε_i/2)."""

    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Units of ε tanh(ε/2), rounded up to a double."""
        return _cost(epsilon)

    def spent(self, units: float) -> float:
        """Return the least double at or above the sum of ρ."""
        return from_units_up(int(units))

    def epsilon(self, spent: float) -> float:
        """Return the ε that ρ-zCDP implies at the slack."""
        return zcdp_to_epsilon(spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double ρ whose ε at the slack is at most ``epsilon``."""
        return largest_rho(epsilon, self.delta_slack)

    def __repr__(self) -> str:
        return f"zcdp(delta_slack={self.delta_slack!r})"


@lru_cache(maxsize=65536)
def _cost(epsilon: float) -> int:
    return to_units(pure_to_zcdp(epsilon))


@sent(Zcdp)
def zcdp(delta_slack: float) -> Zcdp:
    """Add up (ε, δ) losses by the sum of their zCDP losses.

    After launches with (ε_i, δ_i) the loss is (the ε of ρ-zCDP at δ', δ' + sum of δ_i) with
    ρ = sum of ε_i tanh(ε_i/2) and δ' = ``delta_slack``. Before anything is spent it is (0, 0). The
    rule is valid for concurrent children with adaptively chosen losses, under finite communication:
    derived from [Ste24], [HSTVVXZ23, Theorem 4.11] and [CKS20, Proposition 12]. It needs no order,
    and is nearly as good as ``renyi`` at the best order.

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> losses = oc.accumulators.zcdp(delta_slack=1e-6).start().after((0.01, 0.0), 487)
    >>> losses.loss
    (0.99986..., 1e-06)
    """
    return Zcdp(slack(delta_slack))
