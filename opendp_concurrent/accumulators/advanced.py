"""The accumulator ``advanced``: Theorems 3.7, 3.8 of [HSTVVXZ23], and [WRRW23, Theorem 2].

With S = sum of ε_i² and a slack δ' that is fixed up front, the launches so far are
(sqrt(2 S log(1/δ')) + S/2, δ' + sum of δ_i)-DP.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf

from ..arguments.written import sent, written
from ..exact.bracket import Bracket, Digits, upper
from ..exact.rounding import SMALLEST, from_units_up, largest_double, to_units
from .epsilon_delta_sum import EpsilonDeltaAccounting, slack


@written("advanced", slack="delta_slack")
@dataclass(frozen=True, slots=True)
class Advanced(EpsilonDeltaAccounting):
    """Add up the squares of ε."""

    delta_slack: float

    def cost(self, epsilon: float) -> int:
        """Return ε², exactly, in units of 2**-(2 * SMALLEST)."""
        return to_units(epsilon) ** 2

    def spent(self, units: float) -> float:
        """Return the least double at or above S."""
        return from_units_up(-(-int(units) >> SMALLEST))

    def epsilon(self, spent: float) -> float:
        """Return the ε of Theorem 3.8 at S = ``spent``."""
        return _epsilon(spent, self.delta_slack)

    def largest(self, epsilon: float) -> float:
        """Return the largest double S that Theorem 3.7 admits."""
        return _largest(epsilon, self.delta_slack)

    def __repr__(self) -> str:
        return f"advanced(delta_slack={self.delta_slack!r})"


@lru_cache(maxsize=65536)
def _epsilon(spent: float, delta_slack: float) -> float:
    if spent in (0.0, inf):
        return spent

    def epsilon(real: Digits) -> Bracket:
        s = real(spent)
        return (-(2 * s * real(delta_slack).ln())).sqrt() + s / 2

    return upper(epsilon)


@lru_cache(maxsize=4096)
def _largest(epsilon: float, delta_slack: float) -> float:
    return largest_double(lambda spent: _epsilon(spent, delta_slack) <= epsilon, epsilon)


@sent(Advanced)
def advanced(delta_slack: float) -> Advanced:
    """Add up (ε, δ) losses by the sum of squares of ε.

    After launches with (ε_i, δ_i) the loss is (sqrt(2 S log(1/δ')) + S/2, δ' + sum of δ_i) with
    S = sum of ε_i² and δ' = ``delta_slack``. Before anything is spent it is (0, 0). The rule is
    valid for concurrent children with adaptively chosen losses, under finite communication
    [HSTVVXZ23, Theorems 3.7 and 3.8], [WRRW23, Theorem 2].

    :param delta_slack: δ', in (0, 1), fixed before the first launch; counts toward a filter's δ
    :return: an accumulator for ``make_concurrent_odometer``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> losses = oc.accumulators.advanced(delta_slack=1e-6).start().after((0.1, 0.0), 10)
    >>> losses.loss
    (1.712258136..., 1e-06)
    """
    return Advanced(slack(delta_slack))
