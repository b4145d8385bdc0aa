"""Certificates of Laplace noise, against exact sums; and what all certified noise shares."""

import math
from fractions import Fraction

import mpmath as mp
import opendp.prelude as dp
import pytest
from mpmath import mpf

import opendp_concurrent as oc
from opendp_concurrent.errors import ConcurrentError, UnsupportedMeasureError
from opendp_concurrent.measures.max_divergence import MAX_DIVERGENCE
from opendp_concurrent.measures.zero_concentrated import ZERO_CONCENTRATED_DIVERGENCE
from opendp_concurrent.mechanisms.certified import composed, from_pure, laplace_loss
from opendp_concurrent.mechanisms.noise import best_known, certify
from opendp_concurrent.queryables.named_queries import Accuracy, of_one

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


# --- certificates of geometric noise -------------------------------------------------------------


def test_bounds_of_a_geometric_mechanism_go_through_pure_dp():
    measurement = oc.m.make_certified_geometric(*WHOLE, 2.0, oc.tradeoff(), bounds=(0, 10))
    assert measurement.map(3) == T.pure(1.5)


# --- certificates of randomized response, against exact sums -------------------------------------


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


# --- gaussian ------------------------------------------------------------------------------------


WHOLES = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
SINGLE = dp.atom_domain(T="f32", nan=False), dp.absolute_distance(T="f32")


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


# --- losses of a mechanism's parts: exact sums of what each part loses ---------------------------


PURE, CONCENTRATED = dp.max_divergence(), dp.zero_concentrated_divergence()
PARTS = [(0.1, 3), (0.25, 1), (1e-9, 10**9)]
EXACT = sum(Fraction(loss) * count for loss, count in PARTS)


def test_parts_add_up_and_are_rounded_up_once():
    measures = [PURE, CONCENTRATED, oc.fixed_renyi_divergence(4.0)]
    for found in [composed(measure, PARTS) for measure in measures]:
        assert Fraction(found) >= EXACT
        assert Fraction(math.nextafter(found, 0.0)) < EXACT


def test_parts_under_gaussian_dp_are_a_root_of_squares():
    assert composed(oc.gaussian_tradeoff(), [(3.0, 1), (1.0, 16)]) == 5.0


def test_no_parts_lose_nothing():
    assert composed(PURE, []) == 0.0


def test_what_is_no_loss_is_refused():
    with pytest.raises(ConcurrentError):
        composed(PURE, [(-0.1, 1)])


def test_pure_losses_are_converted():
    assert from_pure(0.5, PURE) == 0.5
    assert from_pure(0.5, dp.approximate(PURE)) == (0.5, 0.0)
    assert from_pure(0.5, CONCENTRATED) == pytest.approx(0.5 * math.tanh(0.25), rel=1e-14)


def test_laplace_noise_loses_its_shift_over_its_scale():
    assert laplace_loss(8.0, 3, PURE) == 0.375
    assert laplace_loss(8.0, 1, oc.tradeoff()) == oc.TradeoffFunction.pure(0.125)


# --- a mechanism is certified by its own bound where it has one, else by a conversion ------------


SPACE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ACCURACY = Accuracy("Laplace", 2.0, of_one(lambda beta: 2.0))


@pytest.fixture
def noise():
    dp.enable_features("contrib", "honest-but-curious")
    return dp.m.make_laplace(*SPACE, 2.0)


def halved():
    return lambda loss: loss / 2


def test_its_own_bound_goes_first(noise):
    certified = certify(noise, CONCENTRATED, {ZERO_CONCENTRATED_DIVERGENCE: halved}, ACCURACY)
    assert certified.map(1) == 0.25
    assert certified.output_measure == CONCENTRATED


def test_without_a_bound_of_its_own_it_is_converted(noise):
    assert certify(noise, CONCENTRATED, {}, ACCURACY).map(1) == oc.c.cast(noise, CONCENTRATED).map(
        1
    )
    with pytest.raises(UnsupportedMeasureError):
        certify(oc.c.cast(noise, CONCENTRATED), PURE, {}, ACCURACY)


def test_a_bound_under_another_measure_is_used_only_where_nothing_is_lost():
    losses = {ZERO_CONCENTRATED_DIVERGENCE: halved}
    assert best_known(PURE, losses) is None
    assert best_known(oc.gaussian_tradeoff(), {MAX_DIVERGENCE: halved}) is None
    assert best_known(CONCENTRATED, losses)(1.0) == 0.5
