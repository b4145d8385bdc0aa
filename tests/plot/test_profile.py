"""Privacy profiles, in bounds that are certified."""

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot

from .drawn import edges, lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
GAUSSIAN, LAPLACE = F.gaussian(1.0), F.laplace(0.5)


def test_a_profile_is_the_upper_bound_on_a_logarithmic_axis():
    function = F.laplace(0.1).power(100)
    epsilons = np.linspace(0.0, 6.0, 25)
    ax = plot.plot_profile(function, epsilons=epsilons, labels=["f"], width=0.5)
    bounds = F.laplace(0.1).power(100).delta_bounds(epsilons, width=0.5)
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(lines(ax)["f"], [epsilons, bounds.upper])
    band = edges(ax.collections[0])
    for epsilon, low, high in zip(epsilons, *bounds, strict=True):
        assert band[epsilon] == (low, high)


def test_a_profile_goes_by_itself_to_where_little_is_left():
    ax = plot.plot_profile([GAUSSIAN, F.approximate(1.0, 0.01)], labels=["g", "a"])
    epsilons, deltas = lines(ax)["g"]
    assert epsilons[0] == 0.0
    assert 1e-11 < deltas[-1] <= 1e-10
    assert lines(ax)["a"][1][-1] == pytest.approx(0.01)
    assert ax.get_ylim()[0] <= deltas[-1]


@pytest.mark.parametrize("function", [F.identity(), F.worst(), F.pure(1.0)], ids=repr)
def test_a_profile_of_zeros_and_ones_is_drawn(function):
    low, high = plot.plot_profile(function).get_ylim()
    assert 0.0 < low < high
