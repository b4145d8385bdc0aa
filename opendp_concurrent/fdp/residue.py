"""The residual of a Gaussian budget after a child: the largest s with f (x) G_s >= G_r.

Every continuation from s is s-GDP whatever the answer was. So the whole is f (x) G_s, and that is
at least G_r [RHLMTL26]; derived in docs/tradeoff.rst. The residual is found by a search over s,
with a certified comparison at each s: ``order.is_below`` up to where both tails diverge.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import exp, inf, sqrt, tanh

import scipy

from ..exact.quantile import twice_quantile
from ..exact.rounding import sqrt_down, sqrt_up, to_units
from .coarse import with_few_outcomes
from .gaussian import gaussian_profile
from .order import is_at_most, is_below, is_symmetric, tail_from, with_gaussians
from .product import Product
from .search import halved

_POINTS, _DEPTH = 400, 4
_OUTCOMES = 96  # of the finite pair that stands for a child
_RELATIVE = 1e-9  # accuracy of the residual, downward
_LEAST = 1e-290  # smaller losses are not halved


def residual(budget: float, child: Product) -> float | None:
    """Largest double found with child (x) G_s >= G_budget, rounded down; None if there is none."""
    child = with_gaussians(child)
    left = to_units(budget) ** 2 - child.squares
    if left < 0:
        return None
    rest = sqrt_down(left)
    return _residual(rest, Product(0, child.factors)) if child.factors else rest


@lru_cache(maxsize=4096)
def _residual(budget: float, child: Product) -> float | None:
    both = [child] if is_symmetric(child) else [child, child.swapped()]
    bound = max(one.largest_loss for one in both)
    if any(one.infinite.upper > 0.0 for one in both) or not bound < 600.0 or budget == 0.0:
        return None
    pairs = [with_few_outcomes(one, _OUTCOMES) for one in both]
    target = partial(gaussian_profile, budget)

    def fits(s: float) -> bool:
        reach = bound if s == 0.0 else tail_from(bound, s, budget)
        if reach is None:
            return False
        squares = to_units(s) ** 2
        both = (Product(squares, pair.factors).profile for pair in pairs)
        return all(is_below(profile, target, reach, _POINTS, _DEPTH) for profile in both)

    # the residual by the sum of squares: a loss of at most ε is μ-GDP with μ = 2 Φ⁻¹(e^ε/(1+e^ε))
    low, mu = 0.0, _pure_to_gaussian(bound)
    if mu < budget:
        low = sqrt_down(to_units(budget) ** 2 - to_units(mu) ** 2)
    elif not fits(0.0):
        return None
    return halved(low, budget, lambda s: not fits(s), lambda _: _RELATIVE * budget)[0]


def _pure_to_gaussian(bound: float) -> float:
    """2 Φ⁻¹(e^ε/(1+e^ε)), rounded up.

    The value in doubles has a margin for SciPy's errors. Ledgers record what follows from it, so it
    stays the result wherever it is an upper bound; the exact bound says whether it is.
    """
    if bound <= 700.0:
        return max(_in_doubles(bound), twice_quantile(bound))
    return _in_doubles(bound)


def _in_doubles(bound: float) -> float:
    if bound < _LEAST:
        return 1.26 * bound + _LEAST * (bound > 0.0)  # at least sqrt(π/2) times ε
    if bound < 1.0:
        half = sqrt(2) * float(scipy.special.erfinv(tanh(bound / 2)))
    elif not bound <= 700.0:  # e^-ε leaves the doubles; Φ(-x) <= e^(-x²/2) / 2 <= 1 / (1 + e^ε)
        half = sqrt(2 * bound)
    else:  # from the tail, which keeps relative accuracy
        half = -float(scipy.special.ndtri(exp(-bound) / (1 + exp(-bound))))
    return 2 * half * (1 + 1e-12)


@lru_cache(maxsize=65536)
def gaussian_bound(child: Product) -> float:
    """A μ with child <= G_μ: by the largest loss, or smaller by certified comparisons."""
    child = with_gaussians(child)
    rest = Product(0, child.factors)
    if not rest.factors:
        return child.mu
    both = (rest, rest.swapped())
    if any(one.infinite.upper > 0.0 or not one.largest_loss < inf for one in both):
        return inf
    most = _pure_to_gaussian(max(one.largest_loss for one in both))
    _, high = halved(
        0.0,
        most,
        lambda mu: is_at_most(rest, Product(to_units(mu) ** 2, {})),
        lambda high: 1e-6 * high,
    )
    return sqrt_up(child.squares + to_units(high) ** 2)
