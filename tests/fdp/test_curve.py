"""f(α) between its bounds, against sums, and its duality with δ(ε)."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy
from mpmath import mpf

from opendp_concurrent.fdp import inversion as contour
from opendp_concurrent.fdp.function import TradeoffFunction as T

ALPHAS = [1e-12, 1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 1 - 1e-9]
FINITE = [
    [("pure", (1.0,), 1)],
    [("approximate", (0.5, 0.01), 2)],
    [("finite", ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)), 2)],
    [("inverse", ((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)), 2)],
    [("pure", (0.3,), 40)],
    [("laplace_steps", (1.0, 5), 2), ("pure", (0.1,), 1)],
]


def curve(outcomes, alpha):
    """Neyman and Pearson: answers with the largest p/q first, and a share of the last."""
    left, missed = mpf(alpha), mpf(1)
    for p, q in sorted(outcomes, key=lambda one: -(one[0] / one[1] if one[1] else mp.inf)):
        if q <= left:
            left, missed = left - q, missed - p
        else:
            return max(missed - p * left / q, mpf(0))
    return max(missed, mpf(0))  # all outcomes of Q are left


@pytest.mark.parametrize("parts", FINITE)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_bounds_contain_the_exact_value(parts, alpha, exact):
    with mp.workdps(50):
        bounds, value = exact.build(parts).beta_bounds(alpha), curve(exact.outcomes(parts), alpha)
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper) + mpf("1e-45"), (bounds, value)
        assert bounds.width <= 1e-11


@pytest.mark.parametrize("alpha", [*ALPHAS, 1e-20, 1e-300])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 5.0])
def test_laplace_has_a_closed_form(epsilon, alpha):
    """[DRS22, Appendix A]: 1 - e^ε α, then e^-ε / (4 α), then e^-ε (1 - α)."""
    with mp.workdps(50):
        e, a = mp.exp(mpf(epsilon)), mpf(alpha)
        middle = 1 / (4 * e * a) if a <= mpf(0.5) else (1 - a) / e
        value = 1 - e * a if a < 1 / (2 * e) else middle
        bounds = T.laplace(epsilon).beta_bounds(alpha)
        assert mpf(bounds.lower) <= value <= mpf(bounds.upper), (bounds, value)
        assert bounds.lower >= float(value) - 1e-9


@pytest.mark.parametrize(
    "f",
    [
        T.gaussian(1.0),
        T.pure(1.0),
        T.laplace(0.7),
        T.laplace(0.5).power(2),
        T.approximate(0.5, 0.1),
        T.finite((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
        T.finite((0.9, 0.1, 0.0), (0.8, 0.1, 0.1)).power(2),
        T.gaussian(0.5).compose(T.pure(0.5)),
    ],
)
def test_beta_and_delta_are_dual(f):
    """δ(ε) = sup 1 - f(α) - e^ε α, and f(α) = sup 1 - δ(ε) - e^ε α."""
    alphas = np.linspace(0.0, 1.0, 41 if f.product.is_exact else 4)
    betas = [f.beta_bounds(float(alpha)) for alpha in alphas]
    for epsilon in (-0.7, 0.0, 0.4, 1.0):
        found = f.delta_bounds(epsilon)
        best = max(1 - b.upper - math.exp(epsilon) * a for a, b in zip(alphas, betas, strict=True))
        assert best <= found.upper + 1e-15
        assert best >= found.lower - 1 / len(alphas)
    for alpha, beta in zip(alphas, betas, strict=True):
        assert 0.0 <= beta.lower <= beta.upper <= 1.0 - alpha + 1e-15
        for epsilon in (-0.5, 0.0, 0.8):
            assert 1 - f.delta(epsilon) - math.exp(epsilon) * alpha <= beta.upper + 1e-15


def test_many_different_laplace_mechanisms_take_few_contours(monkeypatch):
    """The search asks for no more accuracy than f(α) needs."""
    nodes, choose = [], contour.choose

    def counted(*arguments):
        path = choose(*arguments)
        nodes.append(path.nodes)
        return path

    monkeypatch.setattr(contour, "choose", counted)
    made = T.identity().compose(*(T.laplace(0.05 + 0.001 * i) for i in range(40)))
    bounds = made.beta_bounds(0.01)
    assert bounds.width <= 1e-5
    assert sum(nodes) < 2**20
    for epsilon in (0.0, 1.0):
        assert bounds.upper >= 1 - made.delta(epsilon) - math.exp(epsilon) * 0.01 - 1e-12


@pytest.mark.parametrize("mu", [1.0, 10.0, 20.0])
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.999])
def test_tails_of_gaussians_are_relative(mu, alpha):
    with mp.workdps(60):
        start = float(scipy.special.ndtri(alpha))
        at = mp.findroot(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2 - mpf(alpha), start)
        value = mp.erfc((mpf(mu) + at) / mp.sqrt(2)) / 2
        lower, upper = T.gaussian(mu).beta_bounds(alpha)
        assert mpf(lower) <= value <= mpf(upper) <= mpf(lower) * (1 + mpf("1e-6"))


def test_tails_of_bounded_losses_are_relative():
    lower, upper = T.laplace(40.0).beta_bounds(0.05)
    assert lower <= math.exp(-40) / 0.2 <= upper <= 1.001 * lower
    lower, upper = T.pure(1.0).power(100).beta_bounds(0.5)
    assert 0 < lower <= upper <= lower * (1 + 1e-9) < 1e-21
