"""Certificates of Laplace noise, against exact sums; and what all certified noise shares."""

import math

import mpmath as mp
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError

FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
ZCDP, RENYI = dp.zero_concentrated_divergence(), dp.renyi_divergence()
T = oc.TradeoffFunction


def delta(masses, shift, epsilon):
    """Exact δ of a distribution on the integers against itself, shifted."""
    e = mp.exp(mp.mpf(epsilon))
    return mp.fsum(
        max(mp.mpf(0), mass - e * masses.get(x - shift, mp.mpf(0))) for x, mass in masses.items()
    )


def geometric(scale, reach=600):
    a = mp.exp(-1 / mp.mpf(scale))
    return {x: (1 - a) / (1 + a) * a ** abs(x) for x in range(-reach, reach + 1)}


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("d_in", [1, 2, 3])
def test_laplace_noise_on_integers_is_certified_on_its_grid(scale, d_in):
    with mp.workdps(60):
        q, a = mp.exp(-1 / mpf(scale)), mpf(3)
        reach = int(130 * scale) + 10
        moment = mp.fsum(
            (1 - q) / (1 + q) * q ** (a * abs(j) + (1 - a) * abs(j - d_in))
            for j in range(-reach, reach)
        )
        exact = mp.log(moment) / (a - 1)
        found = oc.m.make_certified_laplace(*WHOLE, scale, oc.fixed_renyi_divergence(3.0)).map(d_in)
        assert exact * (1 - mpf("1e-12")) <= mpf(found) <= exact * (1 + mpf("1e-12"))
        curve = oc.m.make_certified_laplace(*WHOLE, scale, RENYI).map(d_in)
        assert curve(3.0) == found


def test_laplace_noise_on_floats_is_certified_as_laplace():
    for d_in in (1.0, 2.0, 3.0):
        rho = oc.m.make_certified_laplace(*FLOAT, 2.0, ZCDP).map(d_in)
        exact = d_in / 2 + math.exp(-d_in / 2) - 1
        assert rho == pytest.approx(exact, rel=1e-14)
        assert oc.m.make_certified_laplace(
            *FLOAT, 2.0, oc.truncated_concentrated_divergence(8.0)
        ).map(d_in) == oc.TruncatedConcentrated(rho, 8.0)
        assert rho < oc.c.cast(dp.m.make_laplace(*FLOAT, 2.0), ZCDP).map(d_in)
    assert oc.m.make_certified_laplace(*FLOAT, 2.0, ZCDP).map(0.0) == 0.0
    assert oc.m.make_certified_laplace(*FLOAT, 0.0, ZCDP).map(1.0) == math.inf
    coarse = oc.m.make_certified_laplace(*FLOAT, 2.0, ZCDP, k=0).map(1.0)
    assert coarse > oc.m.make_certified_laplace(*FLOAT, 2.0, ZCDP).map(1.0)


def test_other_measures_go_through_pure_dp():
    pure = dp.m.make_laplace(*FLOAT, 2.0)
    for measure in (oc.gaussian_tradeoff(), dp.approximate(dp.max_divergence())):
        assert oc.m.make_certified_laplace(*FLOAT, 2.0, measure).map(1.0) == oc.c.cast(
            pure, measure
        ).map(1.0)
    with pytest.raises(UnsupportedMeasureError):
        oc.m.make_certified_gaussian(*FLOAT, 2.0, dp.max_divergence())


def test_noise_is_that_of_opendp(space):
    for made in (
        space >> dp.t.then_count() >> oc.m.then_certified_laplace(2.0, ZCDP),
        space >> dp.t.then_count() >> oc.m.then_certified_gaussian(2.0, ZCDP),
    ):
        answers = [made([1] * 1000) for _ in range(200)]
        assert all(isinstance(answer, int) for answer in answers)
        assert abs(sum(answers) / 200 - 1000) < 3.0
        assert len(set(answers)) > 3
    vector = oc.m.make_certified_gaussian(*FLOATS, 1.0, oc.gaussian_tradeoff())([0.0, 10.0])
    assert len(vector) == 2


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
    assert oc.m.make_certified_laplace(*FLOAT, 2.0, oc.tradeoff()).map(1.0) == T.laplace(0.5)


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
