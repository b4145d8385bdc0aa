"""Conversion of ε-DP to μ-Gaussian DP: Φ(μ/2) = e^ε / (1 + e^ε), the μ of randomized response.

The trade-off function of ε-DP is linear between (0, 1), (v, v) and (1, 0), v = 1 / (1 + e^ε). G_μ
is convex, so it lies below this function exactly when it does at these three points. G_μ(v) <= v
holds exactly when v >= Φ(-μ/2). μ = ε is not valid.
"""

from __future__ import annotations

from ..exact.quantile import twice_quantile


def pure_to_gaussian(epsilon: float) -> float:
    """Return an upper bound on μ = 2 Φ^(-1)(e^ε / (1 + e^ε)), at most one ulp above.

    :param epsilon: at least 0; for large ones the relative error of the bound is at most 1e-12
    """
    return twice_quantile(epsilon)
