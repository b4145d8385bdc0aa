"""Conversion of ε-DP to μ-Gaussian DP: Φ(μ/2) = e^ε / (1 + e^ε), the μ of randomized response.

The trade-off function of ε-DP is linear between (0, 1), (v, v) and (1, 0), v = 1 / (1 + e^ε). G_μ
is convex, so it lies below this function exactly when it does at these three points. G_μ(v) <= v
holds exactly when v >= Φ(-μ/2). μ = ε is not valid.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log1p, pi, sqrt

import scipy

from ...exact.bracket import Bracket, Digits, is_nonnegative, upper
from ...exact.normal import central, density, mills
from ...exact.rounding import least_double

LARGE = 1e15


@lru_cache(maxsize=65536)
def pure_to_gaussian(epsilon: float) -> float:
    """Return an upper bound on μ = 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; above ``LARGE`` the relative error of the bound is at most 1e-12
    """
    if epsilon in (0.0, inf):
        return epsilon
    if epsilon > LARGE:  # Φ(-x) <= e^(-x²/2) / 2 <= 1 / (1 + e^ε) for x = sqrt(2 ε)
        return upper(lambda real: 2 * (2 * real(epsilon)).sqrt())

    def covers(mu: float) -> bool:
        def margin(real: Digits) -> Bracket:
            x, decay = real(mu) / 2, (-real(epsilon)).exp()
            if epsilon < 1.0:  # Φ(x) - 1/2 against tanh(ε/2)/2
                return density(x) * central(x) - (1 - decay) / (1 + decay) / 2
            return decay / (1 + decay) - density(x) * mills(x)  # 1/(1+e^ε) against 1 - Φ(x)

        return is_nonnegative(margin)

    if epsilon < 1e-3:
        near = epsilon * sqrt(pi / 2)
    else:
        near = -2.0 * float(scipy.special.ndtri_exp(-epsilon - log1p(exp(-epsilon))))
    return least_double(covers, near)
