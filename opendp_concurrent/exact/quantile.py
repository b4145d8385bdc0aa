"""The point x with Φ(x) = e^ε / (1 + e^ε): a quantile of the normal distribution."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log1p, pi, sqrt

import scipy

from .bracket import Bracket, Digits, is_nonnegative, upper
from .normal import central, density, mills
from .rounding import least_double

LARGE = 1e15


@lru_cache(maxsize=65536)
def twice_quantile(epsilon: float) -> float:
    """Return an upper bound on 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; above ``LARGE`` the relative error of the bound is at most 1e-12
    """
    if epsilon in (0.0, inf):
        return epsilon
    if epsilon > LARGE:  # Φ(-x) <= e^(-x²/2) / 2 <= 1 / (1 + e^ε) for x = sqrt(2 ε)
        return upper(lambda real: 2 * (2 * real(epsilon)).sqrt())

    def covers(double: float) -> bool:
        def margin(real: Digits) -> Bracket:
            x, decay = real(double) / 2, (-real(epsilon)).exp()
            if epsilon < 1.0:  # Φ(x) - 1/2 against tanh(ε/2)/2
                return density(x) * central(x) - (1 - decay) / (1 + decay) / 2
            return decay / (1 + decay) - density(x) * mills(x)  # 1/(1+e^ε) against 1 - Φ(x)

        return is_nonnegative(margin)

    if epsilon < 1e-3:  # SciPy finds where the search starts, and decides nothing
        near = epsilon * sqrt(pi / 2)
    else:
        near = -2.0 * float(scipy.special.ndtri_exp(-epsilon - log1p(exp(-epsilon))))
    return least_double(covers, near)
