"""Certificates of Gaussian noise, against exact sums and the distribution that is sampled."""

import mpmath as mp
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError

FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
WHOLES = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
SINGLE = dp.atom_domain(T="f32", nan=False), dp.absolute_distance(T="f32")
ZCDP, RENYI = dp.zero_concentrated_divergence(), dp.renyi_divergence()


def quantile_gap(scale, shift):
    """Largest gap of normal quantiles of tails of the discrete Gaussian, over all thresholds."""
    s = mpf(scale)
    weight = {j: mp.exp(-(mpf(j) ** 2) / (2 * s * s)) for j in range(-int(12 * scale) - 40, 0)}
    weight |= {-j: w for j, w in weight.items()} | {0: mpf(1)}
    whole, tail, tails = mp.fsum(weight.values()), mpf(0), {}
    for j in sorted(weight, reverse=True):
        tail += weight[j]
        tails[j] = tail / whole

    def quantile(j):
        if j < 1:
            return -quantile(1 - j)  # by symmetry, without cancellation
        low, high = mpf(0), mp.sqrt(-2 * mp.log(tails[j]))
        for _ in range(190):
            middle = (low + high) / 2
            covered = mp.erfc(middle / mp.sqrt(2)) / 2 >= tails[j]
            low, high = (middle, high) if covered else (low, middle)
        return low

    reach = int(8 * scale) + shift
    z = {j: quantile(j) for j in range(1 - reach - shift, reach + 1)}
    return max(z[j] - z[j - shift] for j in range(1 - reach, reach + 1))


T = oc.TradeoffFunction


def delta(masses, shift, epsilon):
    """Exact δ of a distribution on the integers against itself, shifted."""
    e = mp.exp(mp.mpf(epsilon))
    return mp.fsum(
        max(mp.mpf(0), mass - e * masses.get(x - shift, mp.mpf(0))) for x, mass in masses.items()
    )


def gaussian(scale, reach=60):
    weights = {
        x: mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(scale) ** 2)) for x in range(-reach, reach)
    }
    whole = mp.fsum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


@pytest.mark.parametrize(("scale", "shift"), [(0.5, 1), (0.5, 4), (1.0, 2), (2.5, 1)])
def test_discrete_gaussian_noise_is_gaussian_dp_with_one_step_more(scale, shift):
    mu = oc.m.make_certified_gaussian(*WHOLE, scale, oc.gaussian_tradeoff()).map(shift)
    assert mu == pytest.approx((shift + 1) / scale, rel=1e-14)
    with mp.workdps(60):
        gap = quantile_gap(scale, shift)
        assert gap <= mpf(mu)
        assert gap > mpf(shift) / mpf(scale)  # shift over scale alone would be too small


def test_gaussian_noise_on_floats():
    gdp = oc.gaussian_tradeoff()
    for d_in in (1.0, 2.0, 3.0):
        mu = oc.m.make_certified_gaussian(*FLOAT, 2.0, gdp).map(d_in)
        assert d_in / 2 <= mu <= d_in / 2 * (1 + 1e-14)
        many = oc.m.make_certified_gaussian(*FLOATS, 2.0, gdp).map(d_in)
        assert d_in / 2 <= many <= d_in / 2 * (1 + 1e-14)
    assert oc.m.make_certified_gaussian(*FLOAT, 2.0, gdp).map(0.0) == 0.0
    coarse = oc.m.make_certified_gaussian(*FLOAT, 2.0, gdp, k=-3).map(1.0)
    assert coarse == pytest.approx((1.0 + 2**-3 + 2**-3) / 2.0, rel=1e-12)
    assert 0.5 <= oc.m.make_certified_gaussian(*SINGLE, 2.0, gdp).map(1.0) <= 0.5 * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("d_in", [1.0, 2.0, 3.0])
def test_gaussian_noise_has_the_divergence_of_its_zcdp(alpha, d_in):
    rho = d_in**2 / 8
    measures = {
        oc.m.make_certified_gaussian(*FLOAT, 2.0, oc.fixed_renyi_divergence(alpha)).map(d_in): rho
        * alpha,
        oc.m.make_certified_gaussian(*FLOAT, 2.0, RENYI).map(d_in)(alpha): rho * alpha,
        oc.m.make_certified_gaussian(*FLOAT, 2.0, oc.truncated_concentrated_divergence(alpha))
        .map(d_in)
        .rho: rho,
    }
    for found, exact in measures.items():
        assert exact <= found <= exact * (1 + 1e-14)


def test_no_gaussian_certificate_for_vectors_of_integers():
    with pytest.raises(UnsupportedMeasureError, match="not offered for vectors of integers"):
        oc.m.make_certified_gaussian(*WHOLES, 2.0, oc.gaussian_tradeoff())
    assert oc.m.make_certified_gaussian(*WHOLES, 2.0, ZCDP).map(2.0) == 0.5
    with pytest.raises(UnsupportedMeasureError, match=r"^scale \(0.25\) must be at least half"):
        oc.m.make_certified_gaussian(*WHOLE, 0.25, oc.gaussian_tradeoff())


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
    function = oc.m.make_certified_gaussian(*FLOAT, 2.0, oc.tradeoff()).map(1.0)
    assert function == T.gaussian(
        oc.m.make_certified_gaussian(*FLOAT, 2.0, oc.gaussian_tradeoff()).map(1.0)
    )


def test_vectors_of_integers_go_through_zcdp():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    function = oc.m.make_certified_gaussian(*space, 2.0, oc.tradeoff()).map(1.0)
    assert function.mu is None
    for epsilon in (0.5, 1.0, 2.0):
        assert function.delta(epsilon) >= T.gaussian(0.5).delta_bounds(epsilon).lower
