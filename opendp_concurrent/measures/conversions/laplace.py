"""Rényi divergence and zCDP of the Laplace mechanism on a grid, as OpenDP samples it.

Noise on a grid of step s with scale b, at a shift of D, has ε = D/b and g = s/b. With
A = (1 + tanh(g/2) / tanh((α - 1/2) g)) / 2 its Rényi divergence of order α is

    1/(α-1) log(A e^((α-1)ε) + (1-A) e^(-αε)).

For g -> 0 this is the Laplace distribution, A = α/(2α-1) [Mir17, Table II]. For g = ε, a shift of
one step, it is randomized response. A increases in g, and so does the divergence: a shift of D on
integers costs more than the formula of the continuous Laplace distribution.

The divergence is convex in ε and 0 at 0. Among all shifts of a vector with a given L1 norm, the
worst shift is therefore in one coordinate.

zCDP: the divergence divided by α is largest for α -> 1, so ρ is the Kullback-Leibler divergence
ε - (1 - e^(-ε)) g / sinh(g); for g -> 0 it is ε + e^(-ε) - 1. Both are in [HM25]. Proof for a shift
of d steps: let u = α - 1/2. Then e^((α-1) D_α) is proportional to a sum of cosh(ℓ u) over losses ℓ.
Its zeros in u are imaginary: as a polynomial in y = e^(2ug), times y - 1, it vanishes where
y^d = (1 - q y)/(y - q), q = e^(-g), hence for |y| = 1 only. By Hadamard's product its logarithm is
concave in u², and so lies below its tangent at u² = 1/4, which is ρ (u² - 1/4) = ρ α (α-1).
"""

from __future__ import annotations

from functools import lru_cache

from ...exact.bracket import Bracket, Digits, upper
from .pure_to_renyi import pure_to_renyi
from .pure_to_zcdp import pure_to_zcdp

FINEST = 1e-20  # finer grids are rounded up to this; the divergence grows by less than 1e-39


def _step(epsilon: float, step: float) -> float:
    """Return the step for the formulas: at most ``epsilon``, at which one step is the shift."""
    return min(max(step, FINEST * min(1.0, epsilon)), epsilon)


@lru_cache(maxsize=65536)
def laplace_to_renyi(epsilon: float, order: float, step: float = 0.0) -> float:
    """Return the least double at or above the Rényi divergence of the Laplace mechanism.

    :param epsilon: shift over scale
    :param order: finite, above 1
    :param step: step of the grid over scale; 0 for the continuous distribution, ``epsilon`` or more
        if the shift is one step
    """
    if not 0.0 < epsilon < 1e16:
        return epsilon
    if step >= epsilon:
        return pure_to_renyi(epsilon, order)

    def divergence(real: Digits) -> Bracket:
        e, a = real(epsilon), real(order)
        if step == 0.0:
            high = a / (2 * a - 1)
        else:
            g = real(_step(epsilon, step))
            high = (1 + _tanh(g / 2) / _tanh((a - 0.5) * g)) / 2
        return e + (high + (1 - high) * (-((2 * a - 1) * e)).exp()).ln() / (a - 1)

    return min(upper(divergence), epsilon)


@lru_cache(maxsize=65536)
def laplace_to_zcdp(epsilon: float, step: float = 0.0) -> float:
    """Return the least double at or above the Laplace mechanism's ρ; parameters as above."""
    if not 0.0 < epsilon < 1e16:
        return epsilon
    if step >= epsilon:
        return pure_to_zcdp(epsilon)

    def rho(real: Digits) -> Bracket:
        e = real(epsilon)
        if step == 0.0:
            return e + (-e).exp() - 1
        g = real(_step(epsilon, step))
        sinh = (g.exp() - (-g).exp()) / 2
        return e - (1 - (-e).exp()) * g / sinh

    return min(upper(rho), epsilon)


def _tanh(x: Bracket) -> Bracket:
    decay = (-(2 * x)).exp()
    return (1 - decay) / (1 + decay)
