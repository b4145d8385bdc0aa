"""Certificates of Gaussian and Laplace noise and randomized response, against exact sums."""

import math

import mpmath as mp
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, UnsupportedMeasureError

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


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("shift", [1, 2, 4])
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


@pytest.mark.parametrize("alpha", [1.5, 2.0, 16.0])
def test_randomized_response(alpha):
    measure = oc.fixed_renyi_divergence(alpha)
    bit = oc.m.make_certified_randomized_response_bool(0.75, measure)
    three = oc.m.make_certified_randomized_response(["a", "b", "c"], 0.75, measure)
    p, q, r = 0.75, 0.25, 0.125
    for made, moment in (
        (bit, p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)),
        (three, p**alpha * r ** (1 - alpha) + r**alpha * p ** (1 - alpha) + r),
    ):
        assert made.map(1) == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-12)
        assert made.map(0) == 0.0
    assert isinstance(bit(True), bool)
    assert three("a") in {"a", "b", "c"}
    assert three.map(1) < oc.c.cast(
        dp.m.make_randomized_response(["a", "b", "c"], 0.75), measure
    ).map(1)
    curve = oc.m.make_certified_randomized_response_bool(0.75, RENYI).map(1)
    assert curve(alpha) == bit.map(1)
    assert oc.m.make_certified_randomized_response_bool(0.75, ZCDP).map(1) == pytest.approx(
        math.log(3) * 0.5, rel=1e-14
    )


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


@pytest.mark.parametrize("make", [oc.m.make_certified_laplace, oc.m.make_certified_gaussian])
def test_bad_input(make):
    with pytest.raises(InvalidTypeError, match="^output_measure"):
        make(*FLOAT, 1.0, "zCDP")
    with pytest.raises(Exception, match="(?i)scale"):
        make(*FLOAT, -1.0, ZCDP)
    with pytest.raises(Exception, match="(?i)k is only valid"):
        make(*WHOLE, 1.0, ZCDP, k=2)
    with pytest.raises(Exception, match="(?i)prob"):
        oc.m.make_certified_randomized_response_bool(0.25, ZCDP)
