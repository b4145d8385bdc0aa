"""Noise: its law, far out too, its certificates against exact sums, and the grid that it is on.

Each band is left with odds below 1e-10.
"""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, UnsupportedMeasureError
from opendp_concurrent.measures.divergences import MAX_DIVERGENCE, ZERO_CONCENTRATED_DIVERGENCE
from opendp_concurrent.mechanisms import noise
from opendp_concurrent.mechanisms.certified import composed
from opendp_concurrent.mechanisms.noise import (
    EDGES,
    FINE,
    LaplaceNoise,
    OneSidedNoise,
    Steps,
    best_known,
    certify,
    gaussian_accuracy,
    grid_step,
    laplace_accuracy,
    one_sided_mean,
)
from opendp_concurrent.queryables.mechanism import Accuracy, of_one

from ..build import APPROXIMATE, PURE, RENYI, ZCDP
from .sparse_vector_oracle import tail

FLOAT = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
SINGLE = dp.atom_domain(T="f32", nan=False), dp.absolute_distance(T="f32")
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
WHOLES = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
L1 = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
GDP, FDP, T = oc.gaussian_tradeoff(), oc.tradeoff(), oc.TradeoffFunction
fixed, truncated = oc.fixed_renyi_divergence, oc.truncated_concentrated_divergence
ODDS = 1e-11  # of a false alarm, of one of two sides
LOW, HIGH = EDGES


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


def normal(scale):
    return lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2))


def within(count, runs, p):
    return binom.isf(1 - ODDS, runs, p) - 1 <= count <= binom.isf(ODDS, runs, p) + 1


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_law_at_small_scales(scale):
    source, runs = LaplaceNoise(scale), 20_000
    found = Counter(source.draw() for _ in range(runs))
    assert all(type(k) is int for k in found)
    for k in range(-12, 13):
        assert within(found[k], runs, tail(scale, k) - tail(scale, k + 1)), k
    for k in (1, 3, 6):
        assert within(sum(n for j, n in found.items() if j >= k), runs, tail(scale, k))
        assert within(sum(n for j, n in found.items() if j <= -k), runs, tail(scale, k))


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_one_sided_noise_is_geometric(scale):
    source, runs = OneSidedNoise(scale), 8_000
    found = Counter(source.draw() for _ in range(runs))
    q = math.exp(-1 / scale)
    assert min(found) == 0
    for k in range(12):
        assert within(found[k], runs, (1 - q) * q**k), k
        assert within(sum(n for j, n in found.items() if j >= k), runs, q**k)


def test_the_center_of_one_sided_noise_is_its_mean():
    for scale in (1e-300, 1e-3, 0.5, 1.0, 3.0, 40.0, 2.0**62):
        with mp.workdps(60):
            q = mp.exp(-1 / mpf(scale))
            mean = q / (1 - q)
            assert abs(round(one_sided_mean(scale)) - mean) <= 0.5 + 1e-15 * mean


def test_draws_are_independent_across_batches():
    source = LaplaceNoise(1.0)
    draws = [source.draw() for _ in range(128 * 64)]
    p = float(tail(1.0, 1))
    for lag in (1, 63, 64, 65):
        pairs = list(zip(draws[:-lag], draws[lag:], strict=True))[:: lag + 1]
        both = sum(a >= 1 and b >= 1 for a, b in pairs)
        assert within(both, len(pairs), p * p)


def test_draws_beyond_the_integers_of_opendp():
    scale, runs = 2.0**62, 20_000
    source = LaplaceNoise(scale)
    draws = [source.draw() for _ in range(runs)]
    for power in (62, 63, 64, 65):
        p = float(tail(scale, 2.0**power))
        assert p == pytest.approx(math.exp(-(2.0 ** (power - 62))) / 2, rel=1e-9)
        assert within(sum(d >= 2**power for d in draws), runs, p)
        assert within(sum(d <= -(2**power) for d in draws), runs, p)
    assert max(draws) > HIGH  # e^(-1350) that not
    assert min(draws) < LOW
    assert not {LOW, HIGH} & set(draws)  # no mass is left at the edges: odds 1e-14


def scripted(monkeypatch, *batches):
    """Let OpenDP draw what the script says; each batch is taken from its end."""
    script = list(batches)
    fake = SimpleNamespace(
        to_pointer=lambda data, kind: None, invoke=lambda measurement, pointer: script.pop(0)
    )
    monkeypatch.setattr(noise, "_native", fake)
    return LaplaceNoise(1.0), script


@pytest.mark.parametrize(
    ("batches", "draws"),
    [
        (([7, 5, -3, -1, HIGH, 2], [4, LOW], [0, HIGH]), [2, HIGH + 5, 7, LOW - 4, HIGH]),
        (([1, HIGH, HIGH, HIGH],), [3 * HIGH + 1]),
        (([1, HIGH, LOW],), [LOW - HIGH - 1]),
        # the lowest, a draw of its own, takes 3 to be told from others; then 9 is not negative
        (([9, 3, LOW, HIGH], [2]), [HIGH + 9, 2]),
    ],
)
def test_an_edge_is_followed_by_a_draw_that_is_not_negative(monkeypatch, batches, draws):
    source, script = scripted(monkeypatch, *batches)
    assert [source.draw() for _ in draws] == draws
    assert script == []


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(2, 3)])
def test_saturation_and_memory_cancel_exactly(q, monkeypatch):
    """With edges at -2 and 2, of the law saturated there: P(draw = k) is that without an end."""
    low, high = -2, 2
    mass = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-30, 31)}
    saturated = {k: mass[k] for k in range(low + 1, high)}
    saturated[low] = q**-low / (1 + q)
    saturated[high] = q**high / (1 + q)
    assert sum(saturated.values()) == 1
    below_zero = sum(p for k, p in saturated.items() if k < 0)

    def chance(k, depth=0):
        """P(draw = k), by following ``draw`` and ``_magnitude``."""
        found = saturated[k] if low < k < high else Fraction(0)
        if k >= high:
            found += saturated[high] * magnitude(k - high, depth)
        if k <= low:
            found += saturated[low] * magnitude(low - k, depth)
        return found

    def magnitude(k, depth):
        return chance(k, depth + 1) / (1 - below_zero)

    for k in range(-9, 10):
        assert chance(k) == mass[k]
    # and the code does follow this: 2, then 2, then 1 is 5
    monkeypatch.setattr(noise, "EDGES", (low, high))
    source, _ = scripted(monkeypatch, [0, 1, 2, -1, 2, 0])
    assert [source.draw() for _ in range(3)] == [0, 5, 0]


# --- the grid on which OpenDP samples noise: its step over the scale, rounded up -----------------


@pytest.mark.parametrize(
    ("domain", "k", "step"),
    [
        (WHOLE[0], None, Fraction(1)),
        (WHOLE[0], 5, Fraction(1)),  # integers have a grid of their own
        (FLOAT[0], None, Fraction(2) ** -1074),
        (SINGLE[0], None, Fraction(2) ** -149),
        (FLOAT[0], -3, Fraction(1, 8)),
        (FLOAT[0], 7, Fraction(128)),
    ],
)
@pytest.mark.parametrize("scale", [0.1, 1e6])
def test_the_step_is_that_of_the_grid_over_the_scale_rounded_up(domain, k, step, scale):
    found, exact = grid_step(domain, scale, k), step / Fraction(scale)
    assert Fraction(found) >= exact
    assert found <= max(float(exact) * (1 + 1e-14), 1e-323)


def test_no_noise_has_an_infinite_step():
    assert grid_step(WHOLE[0], 0.0, None) == math.inf


BETAS = (0.9, 0.5, 0.05, 1e-6, 1e-100)


def gaussian_above(steps, scale):
    """P(|noise| > steps) on the integers, exactly."""
    masses = masses_of(normal(scale), steps + math.ceil(60 * scale) + 60)
    return 2 * sum(mass for at, mass in masses.items() if at > steps)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 1234.5])
@pytest.mark.parametrize("beta", BETAS)
def test_laplace_noise_on_integers_has_the_least_bound(scale, beta):
    found = laplace_accuracy(WHOLE[0], scale, None).at(beta, None)
    assert found == int(found)
    assert 2 * tail(scale, found + 1) <= beta
    assert found == 0 or 2 * tail(scale, found) > beta


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("beta", BETAS[:4])
def test_gaussian_noise_on_integers_stays_within_the_bound(scale, beta):
    found = int(gaussian_accuracy(WHOLE[0], scale, None).at(beta, None))
    assert gaussian_above(found, scale) <= beta
    if found > 2:
        assert gaussian_above(found - 3, scale) > beta  # the bound is near


@pytest.mark.parametrize("k", [None, -10, 3])
def test_on_a_coarse_grid_of_floats_rounding_is_added(k):
    found = laplace_accuracy(FLOAT[0], 2.0, k).at(0.05, None)
    finest = laplace_accuracy(FLOAT[0], 2.0, None).at(0.05, None)
    assert finest == pytest.approx(2 * float(mp.log(20)), rel=1e-8)
    assert finest <= found + 1e-12 <= finest + 2 * (2.0**k if k is not None else 0) + 1e-9


def test_a_vector_has_as_many_answers_as_its_domain_says():
    sized = dp.vector_domain(WHOLE[0], size=10)
    assert laplace_accuracy(sized, 5.0, None).answers == 10
    assert laplace_accuracy(dp.vector_domain(WHOLE[0]), 5.0, None).answers is None
    assert laplace_accuracy(WHOLE[0], 5.0, None).answers == 1
    assert laplace_accuracy(WHOLE[0], 0.0, None).at(0.5, None) == 0.0


# --- whole steps of a grid: what is near stays near, exactly -----------------------------------

SIZES = st.floats(1e-200, 1e200) | st.sampled_from([1e-200, 1e200, 1.0, 0.5, 0.1, 3.0])
SECRET = 987654321


def size_of(steps):
    return Fraction(2) ** steps.k


@given(SIZES)
def test_a_sensitivity_is_a_billion_steps(size):
    steps = Steps.for_sensitivity(size)
    assert not steps.whole
    assert 2**FINE <= Fraction(size) / size_of(steps) < 2 ** (FINE + 1)
    assert Fraction(size) <= steps.up(size) * size_of(steps) < Fraction(size) + size_of(steps)
    assert steps.up(size) <= 2 ** (FINE + 1)


@given(st.integers(1, 2**53))
def test_whole_sensitivities_have_whole_steps(size):
    steps = Steps.for_sensitivity(size)
    assert (steps.k, steps.whole, steps.up(size)) == (0, True, size)


def places(steps, size):
    """Floats within the reach of the grid, of all magnitudes: huge, tiny, subnormal."""
    reach = min(1.7e308, math.ldexp(1.0, min(1023, 1023 + steps.k)))
    return (
        st.floats(-reach, reach)
        | st.floats(-1e-300, 1e-300)
        | st.floats(-4.0, 4.0).map(lambda t: t * size)
        | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.3e-308, size, -size, reach, -reach])
    )


@given(st.data(), SIZES)
def test_floats_that_are_near_stay_near(data, size):
    steps = Steps.for_sensitivity(size)
    one = data.draw(places(steps, size))
    way = data.draw(st.sampled_from([-1.0, 1.0, 0.0]) | st.floats(-1.0, 1.0))
    other = one + way * size
    for _ in range(2):
        if abs(Fraction(one) - Fraction(other)) > Fraction(size):
            other = math.nextafter(other, one)
    assume(abs(Fraction(one) - Fraction(other)) <= Fraction(size))
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(size)


@given(st.data(), SIZES)
def test_floats_are_rounded_down_exactly(data, size):
    steps = Steps.for_sensitivity(size)
    one = data.draw(places(steps, size))
    found, step = steps.of("x", one), size_of(steps)
    far_below = step / 2**1000 if steps.k > 0 else 0  # on a coarse grid it may come out as 0
    assert found * step <= Fraction(one) + far_below
    assert Fraction(one) < (found + 1) * step


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**53), st.data())
def test_whole_numbers_are_kept_as_they_are(one, size, data):
    steps = Steps.for_sensitivity(size)
    other = one + data.draw(st.integers(-size, size))
    assert steps.of("x", one) == one
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(size)
    assert steps.value(one) == one
    assert type(steps.value(one)) is int


@given(st.integers(-(2**70), 2**70), st.sampled_from([1, 2, 5, 1024]), st.floats(-1.0, 1.0))
@example(2**53 + 1, 1, 1.0)
def test_integers_that_are_near_stay_near_on_a_fine_grid(one, size, share):
    steps = Steps.for_sensitivity(float(size))
    other = one + round(size * share)
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(float(size))


@pytest.mark.parametrize("kind", [Fraction, Decimal, np.longdouble])
def test_finer_numbers_that_are_near_stay_near(kind):
    steps = Steps.for_sensitivity(1.0)
    one, other = kind(2**53) + kind(1), kind(2**53) + kind(2)
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(1.0)
    steps = Steps.for_sensitivity(2.0**-20)
    half = kind(2**33) + kind(2**-20) / 2  # a tie: to even, down
    assert abs(steps.of("x", half) - steps.of("x", half + kind(2**-20))) <= steps.up(2.0**-20)


@given(st.floats(-1e300, 1e300) | st.integers(-(2**60), 2**60))
def test_a_threshold_is_rounded_up_for_whole_queries(threshold):
    """q >= T for whole q is q >= the level."""
    steps = Steps.for_sensitivity(1)
    level = -steps.of("threshold", -threshold)
    assert level == math.ceil(threshold)
    assert level - 1 < Fraction(threshold) <= level


@given(SIZES, st.integers(-(2**70), 2**70) | st.sampled_from([2**2100, -(2**2100)]))
def test_values_are_what_the_steps_stand_for(size, count):
    steps = Steps.for_sensitivity(size)
    exact = count * size_of(steps)
    found = steps.value(count)
    assert type(found) is float
    if abs(exact) < Fraction(1.7e308):
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(1, 2**52) + Fraction(5e-324)
    else:
        assert found == (math.inf if exact > 0 else -math.inf)


@given(SIZES | st.integers(1, 2**53), st.floats(1e-6, 2.0**31 - 1))
def test_scales_are_whole_numbers_of_steps_or_exact_parts(size, ratio):
    steps = Steps.for_sensitivity(size)
    scale = ratio * float(size)
    assume(0.0 < scale < math.inf)
    if isinstance(size, int) and scale > 2.0**62:
        with pytest.raises(InvalidValueError):
            steps.scale(scale=scale)
    else:
        assert Fraction(steps.scale(scale=scale)) * size_of(steps) == Fraction(scale)


UNREADABLE = [math.nan, -math.inf, Decimal("nan"), None, [SECRET], complex(SECRET, 1), f"{SECRET}x"]


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("size", [1, 1.0])
def test_errors_name_the_argument_and_never_the_value(value, size):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^the answer ") as caught:
        Steps.for_sensitivity(size).of("the answer", value)
    assert "987654321" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(("scale", "d_in"), [(0.5, 1), (1.0, 2), (3.0, 3)])
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


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 1), (5.0, 1), (4.0, 9)])
@pytest.mark.parametrize("of", [laplace, geometric])
def test_laplace_on_the_integers_is_exact(of, scale, shift):
    function = of(WHOLE, scale, FDP, shift)
    with mp.workdps(40):
        masses = masses_of(lambda x: mp.exp(-x / mpf(scale)), 600)
        for epsilon in (0.0, 0.1, 0.3, 0.5 * shift / scale, 0.9 * shift / scale):
            exact, upper = delta(masses, shift, epsilon), function.delta(epsilon)
            assert exact <= upper + mpf("1e-40") <= exact * (1 + mpf("1e-9")) + mpf("1e-13")
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


def quantile_gap(scale, shift):
    """Largest gap of normal quantiles of tails of the discrete Gaussian, over all thresholds."""
    masses = masses_of(normal(scale), int(12 * scale) + 40)
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
            assert exact <= high + mpf("1e-30") <= exact * (1 + mpf("1e-9")) + mpf("1e-12")


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
