"""Trade-off curves, in bounds that are certified."""

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.plot.tradeoff import envelope

from .drawn import edges, lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
GAUSSIAN, LAPLACE = F.gaussian(1.0), F.laplace(0.5)


def gaussian_beta(mu, alphas):
    from scipy.stats import norm

    return norm.cdf(norm.ppf(1 - alphas) - mu)


def test_a_trade_off_curve_is_the_lower_bound_and_its_band_reaches_the_upper():
    ax = plot.plot_tradeoff(GAUSSIAN, labels=["g"], points=21)
    alphas, betas = lines(ax)["g"]
    assert len(alphas) == 21
    assert alphas[0] == 0.0
    assert alphas[-1] == 1.0
    band = edges(ax.collections[0])
    for alpha, beta in zip(alphas, betas, strict=True):
        bounds = GAUSSIAN.beta_bounds(float(alpha))
        assert beta == bounds.lower
        assert band[alpha] == tuple(bounds)


def test_a_dotted_line_is_no_loss():
    ax = plot.plot_tradeoff([GAUSSIAN, LAPLACE])
    np.testing.assert_array_equal(lines(ax)["1 - α"], [[0.0, 1.0], [1.0, 0.0]])
    assert ax.get_lines()[-1].get_linestyle() == ":"


@pytest.mark.parametrize(
    "function",
    [
        GAUSSIAN.compose(LAPLACE),
        GAUSSIAN.compose(F.approximate(0.5, 0.1)),
        F.gaussian(0.5).compose(F.finite([0.5, 0.5, 0.0], [0.2, 0.5, 0.3])),
        F.gaussian(0.5).compose(F.finite([0.2, 0.5, 0.3], [0.5, 0.5, 0.0])),
    ],
    ids=repr,
)
def test_curves_of_products_agree_with_the_bounds_at_single_points(function):
    ax = plot.plot_tradeoff(function, labels=["f"], points=9)
    band = edges(ax.collections[0])
    for alpha, beta in lines(ax)["f"].T[[0, 3, 5, 8]]:
        bounds = function.beta_bounds(float(alpha))
        assert beta <= bounds.upper
        low, high = band[alpha]
        assert low == beta
        assert bounds.lower <= high <= beta + 2e-3


def test_a_curve_found_by_inversion_agrees_with_its_profile():
    function = LAPLACE.power(20)
    ax = plot.plot_tradeoff(function, labels=["f"])
    alphas, betas = lines(ax)["f"]
    epsilons = np.linspace(-9.0, 9.0, 361)
    known = LAPLACE.power(20).delta_bounds(epsilons, width=1e-4)
    support = 1.0 - np.asarray(known.lower) - np.multiply.outer(alphas, np.exp(epsilons))
    high = np.array([edges(ax.collections[0])[alpha][1] for alpha in alphas])
    assert np.all(high >= np.max(support, axis=1) - 1e-3)
    assert np.all(betas <= np.maximum(0.0, np.max(support, axis=1)) + 1e-3)
    assert np.all(high - betas <= 1e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("slopes", [5, 40, 400])
def test_the_envelope_of_a_profile_encloses_the_curve(mu, slopes):
    alphas = np.linspace(0.001, 0.999, 97)
    for reach in (0.5, 4.0, 20.0):
        grid = np.linspace(-reach, reach, slopes)
        known = F.gaussian(mu).delta_bounds(grid)
        found = envelope(grid, known, 0.0, 0.0, alphas)
        exact = gaussian_beta(mu, alphas)
        assert np.all(found.lower <= exact + 1e-13)
        assert np.all(exact <= found.upper + 1e-13)


def test_the_envelope_of_a_pair_with_infinite_losses_encloses_its_curve():
    function = F.finite([0.3, 0.5, 0.2, 0.0], [0.0, 0.3, 0.6, 0.1])
    alphas = np.linspace(0.0, 1.0, 101)
    exact = [function.beta_bounds(float(alpha)) for alpha in alphas]
    limit, never = (float(one.delta(np.inf)) for one in (function, function.inverse()))
    assert {round(limit, 9), round(never, 9)} == {0.1, 0.3}
    for reach in (0.5, 3.0):
        grid = np.linspace(-reach, reach, 31)
        found = envelope(grid, function.delta_bounds(grid), limit, never, alphas)
        assert np.all(found.lower <= [one.upper for one in exact])
        assert np.all(found.upper >= [one.lower for one in exact])


def test_the_extremes_are_drawn():
    drawn = lines(plot.plot_tradeoff([F.identity(), F.worst()], labels=["none", "all"]))
    np.testing.assert_allclose(drawn["none"].sum(axis=0), 1.0, atol=1e-12)
    assert np.all(drawn["all"][1] == 0.0)
