"""Certificates of noise against exact sums: Laplace, geometric, Gaussian, randomized response."""

import math
from fractions import Fraction
from functools import partial

import mpmath as mp
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import UnsupportedMeasureError
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE, ZERO_CONCENTRATED_DIVERGENCE
from opendp_concurrent.mechanisms.certified import composed
from opendp_concurrent.mechanisms.noise import best_known, certify
from opendp_concurrent.queryables.mechanism import Accuracy, of_one

from ..build import APPROXIMATE, PURE, RENYI, ZCDP

FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
SINGLE = dp.atom_domain(T="f32", nan=False), dp.absolute_distance(T="f32")
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
WHOLES = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
L1 = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
GDP, FDP, T = oc.gaussian_tradeoff(), oc.tradeoff(), oc.TradeoffFunction
fixed, truncated = oc.fixed_renyi_divergence, oc.truncated_concentrated_divergence


def loss(kind, space, scale, measure, d_in, **more):
    return getattr(oc.m, f"make_certified_{kind}")(*space, scale, measure, **more).map(d_in)


laplace, geometric, gaussian = (partial(loss, one) for one in ("laplace", "geometric", "gaussian"))


def delta(masses, shift, epsilon):
    """Exact δ of a distribution on the integers against itself, shifted."""
    e = mp.exp(mpf(epsilon))
    return mp.fsum(max(mpf(0), p - e * masses.get(x - shift, mpf(0))) for x, p in masses.items())


def masses_of(weight, reach):
    weights = {x: weight(abs(x)) for x in range(-reach, reach + 1)}
    whole = mp.fsum(weights.values())
    return {x: one / whole for x, one in weights.items()}


# --- Laplace -------------------------------------------------------------------------------------


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
        found = laplace(WHOLE, scale, fixed(3.0), d_in)
        assert exact * (1 - mpf("1e-12")) <= mpf(found) <= exact * (1 + mpf("1e-12"))
        assert laplace(WHOLE, scale, RENYI, d_in)(3.0) == found


def test_laplace_noise_on_floats_is_certified_as_laplace():
    for d_in in (1.0, 2.0, 3.0):
        rho = laplace(FLOAT, 2.0, ZCDP, d_in)
        assert rho == pytest.approx(d_in / 2 + math.exp(-d_in / 2) - 1, rel=1e-14)
        assert laplace(FLOAT, 2.0, truncated(8.0), d_in) == oc.TruncatedConcentrated(rho, 8.0)
        assert rho < oc.c.cast(dp.m.make_laplace(*FLOAT, 2.0), ZCDP).map(d_in)
    assert laplace(FLOAT, 2.0, ZCDP, 0.0) == 0.0
    assert laplace(FLOAT, 0.0, ZCDP, 1.0) == math.inf
    assert laplace(FLOAT, 2.0, ZCDP, 1.0, k=0) > laplace(FLOAT, 2.0, ZCDP, 1.0)


def test_other_measures_go_through_pure_dp():
    pure = dp.m.make_laplace(*FLOAT, 2.0)
    for measure in (GDP, APPROXIMATE):
        assert laplace(FLOAT, 2.0, measure, 1.0) == oc.c.cast(pure, measure).map(1.0)
    with pytest.raises(UnsupportedMeasureError):
        oc.m.make_certified_gaussian(*FLOAT, 2.0, PURE)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (2.0, 3), (5.0, 1), (4.0, 9)])
@pytest.mark.parametrize("of", [laplace, geometric])
def test_laplace_on_the_integers_is_exact(of, scale, shift):
    function = of(WHOLE, scale, FDP, shift)
    with mp.workdps(40):
        masses = masses_of(lambda x: mp.exp(-x / mpf(scale)), 600)
        for epsilon in (0.0, 0.1, 0.3, 0.5 * shift / scale, 0.9 * shift / scale):
            exact, upper = delta(masses, shift, epsilon), function.delta(epsilon)
            assert exact <= upper + mpf("1e-40")
            assert upper <= exact * (1 + mpf("1e-9")) + mpf("1e-13")
    assert function.delta(shift / scale * (1 + 1e-12)) == 0.0


def test_no_shift_has_no_loss_and_no_noise_has_no_privacy():
    assert laplace(WHOLE, 1.0, FDP, 0) == gaussian(WHOLE, 1.0, FDP, 0) == T.identity()
    assert laplace(WHOLE, 0.0, FDP, 1) == T.worst()


def test_a_vector_under_l1_is_worst_in_one_coordinate():
    function = laplace(L1, 2.0, FDP, 3)
    assert function == laplace(WHOLE, 2.0, FDP, 3)
    for split in ((1, 2), (1, 1, 1)):
        together = T.identity().compose(*(laplace(WHOLE, 2.0, FDP, part) for part in split))
        for epsilon in (0.0, 0.3, 0.7, 1.2, 1.4):
            assert together.delta_bounds(epsilon).lower <= function.delta(epsilon)


def test_bounds_of_a_geometric_mechanism_go_through_pure_dp():
    assert geometric(WHOLE, 2.0, FDP, 3, bounds=(0, 10)) == T.pure(1.5)


# --- randomized response -------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.5, 2.0, 16.0])
def test_randomized_response(alpha):
    bit = oc.m.make_certified_randomized_response_bool(0.75, fixed(alpha))
    names = ["a", "b", "c"]
    three = oc.m.make_certified_randomized_response(names, 0.75, fixed(alpha))
    p, q, r = 0.75, 0.25, 0.125
    for made, moment in (
        (bit, p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)),
        (three, p**alpha * r ** (1 - alpha) + r**alpha * p ** (1 - alpha) + r),
    ):
        assert made.map(1) == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-12)
        assert made.map(0) == 0.0
    assert isinstance(bit(True), bool)
    assert three("a") in names
    plain = dp.m.make_randomized_response(names, 0.75)
    assert three.map(1) < oc.c.cast(plain, fixed(alpha)).map(1)
    assert oc.m.make_certified_randomized_response_bool(0.75, RENYI).map(1)(alpha) == bit.map(1)
    rho = oc.m.make_certified_randomized_response_bool(0.75, ZCDP).map(1)
    assert rho == pytest.approx(math.log(3) * 0.5, rel=1e-14)


@pytest.mark.parametrize(("prob", "categories"), [(0.75, 2), (0.5, 3), (0.6, 5)])
def test_randomized_response_is_exact(prob, categories):
    names = [str(n) for n in range(categories)]
    made = oc.m.make_certified_randomized_response(names, prob, FDP)
    lie = (1 - prob) / (categories - 1)
    for epsilon in (0.0, 0.2, 0.5, 1.0):
        exact, found = max(0.0, prob - math.exp(epsilon) * lie), made.map(1).delta(epsilon)
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-15)
        assert found >= exact * (1 - 1e-15)
    assert made.map(0) == T.identity()


# --- Gaussian ------------------------------------------------------------------------------------


def normal(scale):
    return lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2))


def quantile_gap(scale, shift):
    """Largest gap of normal quantiles of tails of the discrete Gaussian, over all thresholds."""
    masses = masses_of(
        lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2)), int(12 * scale) + 40
    )
    tail, tails = mpf(0), {}
    for j in sorted(masses, reverse=True):
        tail += masses[j]
        tails[j] = tail

    def quantile(j):
        if j < 1:
            return -quantile(1 - j)  # by symmetry, without cancellation
        with mp.workdps(150):  # a tail is as small as 1e-56
            return mp.sqrt(2) * mp.erfinv(1 - 2 * tails[j])

    reach = int(8 * scale) + shift
    z = {j: quantile(j) for j in range(1 - reach - shift, reach + 1)}
    return max(z[j] - z[j - shift] for j in range(1 - reach, reach + 1))


@pytest.mark.parametrize(("scale", "shift"), [(0.5, 1), (0.5, 4), (1.0, 2)])
def test_discrete_gaussian_noise_is_gaussian_dp_with_one_step_more(scale, shift):
    mu = gaussian(WHOLE, scale, GDP, shift)
    assert mu == pytest.approx((shift + 1) / scale, rel=1e-14)
    with mp.workdps(60):  # shift over scale alone would be too small
        assert mpf(shift) / mpf(scale) < quantile_gap(scale, shift) <= mpf(mu)


def test_gaussian_noise_on_floats():
    for d_in in (1.0, 2.0, 3.0):
        for space in (FLOAT, FLOATS):
            assert d_in / 2 <= gaussian(space, 2.0, GDP, d_in) <= d_in / 2 * (1 + 1e-14)
    assert gaussian(FLOAT, 2.0, GDP, 0.0) == 0.0
    assert gaussian(FLOAT, 2.0, FDP, 1.0) == T.gaussian(gaussian(FLOAT, 2.0, GDP, 1.0))
    coarse = gaussian(FLOAT, 2.0, GDP, 1.0, k=-3)
    assert coarse == pytest.approx((1.0 + 2**-3 + 2**-3) / 2.0, rel=1e-12)
    assert 0.5 <= gaussian(SINGLE, 2.0, GDP, 1.0) <= 0.5 * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [1.5, 8.0, 64.0])
@pytest.mark.parametrize("d_in", [1.0, 3.0])
def test_gaussian_noise_has_the_divergence_of_its_zcdp(alpha, d_in):
    rho = d_in**2 / 8
    for found, exact in (
        (gaussian(FLOAT, 2.0, fixed(alpha), d_in), rho * alpha),
        (gaussian(FLOAT, 2.0, RENYI, d_in)(alpha), rho * alpha),
        (gaussian(FLOAT, 2.0, truncated(alpha), d_in).rho, rho),
    ):
        assert exact <= found <= exact * (1 + 1e-14)


def test_no_gaussian_certificate_for_vectors_of_integers():
    with pytest.raises(UnsupportedMeasureError, match="not offered for vectors of integers"):
        oc.m.make_certified_gaussian(*WHOLES, 2.0, GDP)
    with pytest.raises(UnsupportedMeasureError, match=r"^scale \(0.25\) must be at least half"):
        oc.m.make_certified_gaussian(*WHOLE, 0.25, GDP)
    assert gaussian(WHOLES, 2.0, ZCDP, 2.0) == 0.5
    function = gaussian(WHOLES, 2.0, FDP, 1.0)  # through zCDP
    assert function.mu is None
    for epsilon in (0.5, 1.0, 2.0):
        assert function.delta(epsilon) >= T.gaussian(0.5).delta_bounds(epsilon).lower


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (2.0, 1), (3.0, 4)])
def test_one_integer_with_gaussian_noise_is_exact(scale, shift):
    function = gaussian(WHOLE, scale, FDP, shift)
    with mp.workdps(40):
        masses = masses_of(normal(scale), 60)
        for epsilon in (0.0, 0.2, 1.0, 2.0, 4.0):
            exact, (low, high) = delta(masses, shift, epsilon), function.delta_bounds(epsilon)
            assert low <= exact + mpf("1e-30")
            assert exact <= high * (1 + mpf("1e-30")) + mpf("1e-200")
            assert high <= exact * (1 + mpf("1e-9")) + mpf("1e-12")


# --- a mechanism is certified by its own bound where it has one, else by a conversion ------------


def halved():
    return lambda loss: loss / 2


def test_its_own_bound_goes_first():
    noise = dp.m.make_laplace(*WHOLE, 2.0)
    accuracy = Accuracy("Laplace", 2.0, of_one(lambda beta: 2.0))
    certified = certify(noise, ZCDP, {ZERO_CONCENTRATED_DIVERGENCE: halved}, accuracy)
    assert certified.map(1) == 0.25
    assert certified.output_measure == ZCDP
    assert certify(noise, ZCDP, {}, accuracy).map(1) == oc.c.cast(noise, ZCDP).map(1)
    with pytest.raises(UnsupportedMeasureError):
        certify(oc.c.cast(noise, ZCDP), PURE, {}, accuracy)


def test_a_bound_under_another_measure_is_used_only_where_nothing_is_lost():
    losses = {ZERO_CONCENTRATED_DIVERGENCE: halved}
    assert best_known(PURE, losses) is None
    assert best_known(GDP, {MAX_DIVERGENCE: halved}) is None
    assert best_known(ZCDP, losses)(1.0) == 0.5


def test_losses_of_parts_add_up_and_are_rounded_up_once():
    parts = [(0.1, 3), (0.25, 1), (1e-9, 10**9)]
    exact = sum(Fraction(loss) * count for loss, count in parts)
    for measure in (PURE, ZCDP, fixed(4.0)):
        found = composed(measure, parts)
        assert Fraction(math.nextafter(found, 0.0)) < exact <= Fraction(found)
