"""Trade-off functions of OpenDP's mechanisms, against the distributions that they sample."""

import math

import mpmath as mp
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc

T = oc.TradeoffFunction
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def delta(masses, shift, epsilon):
    """Exact δ of a distribution on the integers against itself, shifted."""
    e = mp.exp(mp.mpf(epsilon))
    return mp.fsum(
        max(mp.mpf(0), mass - e * masses.get(x - shift, mp.mpf(0))) for x, mass in masses.items()
    )


def geometric(scale, reach=600):
    a = mp.exp(-1 / mp.mpf(scale))
    return {x: (1 - a) / (1 + a) * a ** abs(x) for x in range(-reach, reach + 1)}


def gaussian(scale, reach=60):
    weights = {
        x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(scale) ** 2)) for x in range(-reach, reach)
    }
    whole = mp.fsum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (2.0, 3), (5.0, 1), (4.0, 9)])
@pytest.mark.parametrize(
    "constructor", [oc.m.make_certified_laplace, oc.m.make_certified_geometric]
)
def test_laplace_on_the_integers_is_exact(constructor, scale, shift):
    function = constructor(*WHOLE, scale, oc.tradeoff()).map(shift)
    with mp.workdps(40):
        masses = geometric(scale)
        for epsilon in (0.0, 0.1, 0.3, 0.5 * shift / scale, 0.9 * shift / scale):
            exact = delta(masses, shift, epsilon)
            bounds = function.delta_bounds(epsilon)
            assert exact <= bounds.upper + mp.mpf("1e-40")
            assert bounds.upper <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-13")
    assert function.delta(shift / scale * (1 + 1e-12)) == 0.0


def test_one_step_is_randomized_response():
    assert oc.m.make_certified_laplace(*WHOLE, 4.0, oc.tradeoff()).map(1) == T.pure(0.25)


def test_a_fine_grid_is_the_continuous_distribution():
    assert oc.m.make_certified_laplace(*REAL, 2.0, oc.tradeoff()).map(1.0) == T.laplace(0.5)


def test_the_profile_on_a_grid_is_the_chords_of_the_continuous_one():
    function, smooth = T.laplace(1.0, 8.0), T.laplace(1.0)
    for x in range(1, 8):
        kink = (8 - 2 * x) / 8
        assert function.delta(kink) == pytest.approx(smooth.delta(kink), rel=1e-12)
        assert function.delta(kink + 1 / 8) > smooth.delta(kink + 1 / 8)


def test_no_shift_has_no_loss_and_no_noise_has_no_privacy():
    assert oc.m.make_certified_laplace(*WHOLE, 1.0, oc.tradeoff()).map(0) == T.identity()
    assert oc.m.make_certified_laplace(*WHOLE, 0.0, oc.tradeoff()).map(1) == T.worst()
    assert oc.m.make_certified_gaussian(*WHOLE, 1.0, oc.tradeoff()).map(0) == T.identity()


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (2.0, 1), (3.0, 4)])
def test_one_integer_with_gaussian_noise_is_exact(scale, shift):
    function = oc.m.make_certified_gaussian(*WHOLE, scale, oc.tradeoff()).map(shift)
    with mp.workdps(40):
        masses = gaussian(scale)
        for epsilon in (0.0, 0.2, 1.0, 2.0, 4.0):
            exact = delta(masses, shift, epsilon)
            bounds = function.delta_bounds(epsilon)
            assert bounds.lower <= exact + mp.mpf("1e-30")
            assert exact <= bounds.upper * (1 + mp.mpf("1e-30")) + mp.mpf("1e-200")
            assert bounds.upper <= exact * (1 + mp.mpf("1e-9")) + mp.mpf("1e-12")


def test_gaussian_noise_on_floats_is_gaussian():
    function = oc.m.make_certified_gaussian(*REAL, 2.0, oc.tradeoff()).map(1.0)
    assert function == T.gaussian(
        oc.m.make_certified_gaussian(*REAL, 2.0, oc.gaussian_tradeoff()).map(1.0)
    )


def test_vectors_of_integers_go_through_zcdp():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    function = oc.m.make_certified_gaussian(*space, 2.0, oc.tradeoff()).map(1.0)
    assert function.mu is None
    for epsilon in (0.5, 1.0, 2.0):
        assert function.delta(epsilon) >= T.gaussian(0.5).delta_bounds(epsilon).lower


def test_a_vector_under_l1_is_worst_in_one_coordinate():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    function = oc.m.make_certified_laplace(*space, 2.0, oc.tradeoff()).map(3)
    assert function == oc.m.make_certified_laplace(*WHOLE, 2.0, oc.tradeoff()).map(3)
    for split in ((1, 2), (1, 1, 1)):
        parts = [
            oc.m.make_certified_laplace(*WHOLE, 2.0, oc.tradeoff()).map(part) for part in split
        ]
        together = T.identity().compose(*parts)
        for epsilon in (0.0, 0.3, 0.7, 1.2, 1.4):
            assert together.delta_bounds(epsilon).lower <= function.delta(epsilon)


@pytest.mark.parametrize(("prob", "categories"), [(0.75, 2), (0.5, 3), (0.6, 5)])
def test_randomized_response_is_exact(prob, categories):
    names = [str(n) for n in range(categories)]
    function = oc.m.make_certified_randomized_response(names, prob, oc.tradeoff()).map(1)
    lie = (1 - prob) / (categories - 1)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact = max(0.0, prob - math.exp(epsilon) * lie)
        if epsilon == 0.0:
            exact = prob - lie
        assert function.delta(epsilon) == pytest.approx(exact, rel=1e-12, abs=1e-15)
        assert function.delta(epsilon) >= exact * (1 - 1e-15)
    assert (
        oc.m.make_certified_randomized_response(names, prob, oc.tradeoff()).map(0) == T.identity()
    )


def test_bounds_of_a_geometric_mechanism_go_through_pure_dp():
    measurement = oc.m.make_certified_geometric(*WHOLE, 2.0, oc.tradeoff(), bounds=(0, 10))
    assert measurement.map(3) == T.pure(1.5)
