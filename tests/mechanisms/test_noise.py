"""Laplace noise on the integers: its law, far out too. Each band is left with odds below 1e-10."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import ceil
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import binom

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.mechanisms import noise
from opendp_concurrent.mechanisms.noise import (
    EDGES,
    FINE,
    LaplaceNoise,
    OneSidedNoise,
    Steps,
    gaussian_accuracy,
    grid_step,
    laplace_accuracy,
    one_sided_mean,
)

ODDS = 1e-11  # of a false alarm, of one of two sides
LOWEST, HIGHEST = EDGES


def within(count, runs, p):
    return binom.isf(1 - ODDS, runs, p) - 1 <= count <= binom.isf(ODDS, runs, p) + 1


def tail(scale, least):
    """P(noise >= least)."""
    with mp.workdps(60):
        q = mp.exp(-1 / mpf(scale))
        if least >= 1:
            return float(q**least / (1 + q))
        return float(1 - q ** (1 - least) / (1 + q))


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


def test_the_bands_of_neighbouring_scales_do_not_meet():
    """What the test above can tell apart: a scale that is wrong by a third."""
    runs = 20_000
    for scale in (0.5, 1.0, 3.0):
        right, wrong = (tail(s, 0) - tail(s, 1) for s in (scale, 4 / 3 * scale))
        assert binom.isf(1 - ODDS, runs, right) - 2 > binom.isf(ODDS, runs, wrong) + 2


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
        p = tail(scale, 2**power)
        assert p == pytest.approx(math.exp(-(2.0 ** (power - 62))) / 2, rel=1e-9)
        assert within(sum(d >= 2**power for d in draws), runs, p)
        assert within(sum(d <= -(2**power) for d in draws), runs, p)
    assert max(draws) > HIGHEST  # e^(-1350) that not
    assert min(draws) < LOWEST
    assert not {LOWEST, HIGHEST} & set(draws)  # no mass is left at the edges: odds 1e-14


def scripted(monkeypatch, *batches):
    """Let OpenDP draw what the script says; each batch is taken from its end."""
    script = list(batches)
    fake = SimpleNamespace(
        to_pointer=lambda data, kind: None, invoke=lambda measurement, pointer: script.pop(0)
    )
    monkeypatch.setattr(noise, "_native", fake)
    return LaplaceNoise(1.0), script


def test_an_edge_is_followed_by_a_draw_that_is_not_negative(monkeypatch):
    source, script = scripted(monkeypatch, [7, 5, -3, -1, HIGHEST, 2], [4, LOWEST], [0, HIGHEST])
    assert source.draw() == 2
    assert source.draw() == HIGHEST + 5
    assert source.draw() == 7
    assert source.draw() == LOWEST - 4
    assert source.draw() == HIGHEST
    assert script == []


def test_edges_add_up(monkeypatch):
    source, _ = scripted(monkeypatch, [1, HIGHEST, HIGHEST, HIGHEST])
    assert source.draw() == 3 * HIGHEST + 1
    source, _ = scripted(monkeypatch, [1, HIGHEST, LOWEST])
    assert source.draw() == LOWEST - HIGHEST - 1
    source, _ = scripted(monkeypatch, [9, 3, LOWEST, HIGHEST], [2])
    # the lowest, a draw of its own, takes 3 to be told from others; then 9 is not negative
    assert source.draw() == HIGHEST + 9
    assert source.draw() == 2


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


DOUBLE = dp.atom_domain(T=float, nan=False)
SINGLE = dp.atom_domain(T="f32", nan=False)
WHOLE = dp.atom_domain(T=int)


@pytest.mark.parametrize(
    ("domain", "k", "step"),
    [
        (WHOLE, None, Fraction(1)),
        (WHOLE, 5, Fraction(1)),  # integers have a grid of their own
        (DOUBLE, None, Fraction(2) ** -1074),
        (SINGLE, None, Fraction(2) ** -149),
        (DOUBLE, -3, Fraction(1, 8)),
        (DOUBLE, 7, Fraction(128)),
    ],
)
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0, 1e6])
def test_the_step_is_that_of_the_grid_over_the_scale_rounded_up(domain, k, step, scale):
    found, exact = grid_step(domain, scale, k), step / Fraction(scale)
    assert Fraction(found) >= exact
    assert found <= max(float(exact) * (1 + 1e-14), 1e-323)


def test_no_noise_has_an_infinite_step():
    assert grid_step(WHOLE, 0.0, None) == math.inf


# --- quantiles of noise on a grid, against exact tails -------------------------------------------

BETAS = (0.9, 0.5, 0.05, 1e-6, 1e-100)


def laplace_above(steps, scale):
    """P(|noise| > steps) on the integers, exactly."""
    decay = mp.exp(-1 / mpf(scale))
    return 2 * decay ** (steps + 1) / (1 + decay)


def gaussian_above(steps, scale):
    """P(|noise| > steps) on the integers, exactly."""
    last = steps + ceil(60 * scale) + 60
    weights = [mp.exp(-(mpf(k) ** 2) / (2 * mpf(scale) ** 2)) for k in range(last)]
    return 2 * sum(weights[steps + 1 :]) / (2 * sum(weights) - weights[0])


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 1234.5])
@pytest.mark.parametrize("beta", BETAS)
def test_laplace_noise_on_integers_has_the_least_bound(scale, beta):
    found = laplace_accuracy(WHOLE, scale, None).at(beta, None)
    assert found == int(found)
    assert laplace_above(int(found), scale) <= beta
    if found:
        assert laplace_above(int(found) - 1, scale) > beta


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("beta", BETAS[:4])
def test_gaussian_noise_on_integers_stays_within_the_bound(scale, beta):
    found = int(gaussian_accuracy(WHOLE, scale, None).at(beta, None))
    assert gaussian_above(found, scale) <= beta
    if found > 2:
        assert gaussian_above(found - 3, scale) > beta  # the bound is near


@pytest.mark.parametrize("k", [None, -10, 3])
def test_on_a_coarse_grid_of_floats_rounding_is_added(k):
    found = laplace_accuracy(DOUBLE, 2.0, k).at(0.05, None)
    finest = laplace_accuracy(DOUBLE, 2.0, None).at(0.05, None)
    assert finest == pytest.approx(2 * float(mp.log(20)), rel=1e-8)
    assert finest <= found + 1e-12 <= finest + 2 * (2.0**k if k is not None else 0) + 1e-9


def test_a_vector_has_as_many_answers_as_its_domain_says():
    sized = dp.vector_domain(WHOLE, size=10)
    assert laplace_accuracy(sized, 5.0, None).answers == 10
    assert laplace_accuracy(dp.vector_domain(WHOLE), 5.0, None).answers is None
    assert laplace_accuracy(WHOLE, 5.0, None).answers == 1
    assert laplace_accuracy(WHOLE, 0.0, None).at(0.5, None) == 0.0


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
    if steps.k <= 0:
        assert found * step <= Fraction(one) < (found + 1) * step
    else:  # a coarse grid: doubles far below a step may come out as 0
        assert found * step <= Fraction(one) + step / 2**1000
        assert Fraction(one) < (found + 1) * step


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**53), st.data())
def test_whole_numbers_are_kept_as_they_are(one, size, data):
    steps = Steps.for_sensitivity(size)
    other = one + data.draw(st.integers(-size, size))
    assert steps.of("x", one) == one
    assert abs(steps.of("x", one) - steps.of("x", other)) <= steps.up(size)
    assert steps.value(one) == one
    assert type(steps.value(one)) is int


@given(st.integers(-(2**70), 2**70), st.sampled_from([1.0, 2.0, 5.0, 1024.0]), st.data())
@example(2**53 + 1, 1.0, None)
def test_integers_that_are_near_stay_near_on_a_fine_grid(one, size, data):
    steps = Steps.for_sensitivity(size)
    step = 1 if data is None else data.draw(st.integers(-int(size), int(size)))
    assert abs(steps.of("x", one) - steps.of("x", one + step)) <= steps.up(size)


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


@given(SIZES, st.integers(-(2**70), 2**70))
def test_values_are_what_the_steps_stand_for(size, count):
    steps = Steps.for_sensitivity(size)
    exact = count * size_of(steps)
    found = steps.value(count)
    assert type(found) is float
    if abs(exact) < Fraction(1.7e308):
        assert abs(Fraction(found) - exact) <= abs(exact) * Fraction(1, 2**52) + Fraction(5e-324)
    else:
        assert found == math.copysign(math.inf, exact)


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


UNREADABLE = [
    *(math.nan, math.inf, -math.inf, np.float32("inf"), Decimal("nan")),
    *(None, [SECRET], (SECRET,), {SECRET: SECRET}, complex(SECRET, 1), b"987654321x", object()),
    f"{SECRET}x",
]


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("size", [1, 1.0])
def test_errors_name_the_argument_and_never_the_value(value, size):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^the answer ") as caught:
        Steps.for_sensitivity(size).of("the answer", value)
    assert "987654321" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@given(SIZES, st.floats(-1e307, 1e307), st.floats(-1e307, 1e307))
def test_rounding_keeps_the_order(size, one, other):
    """So that queries that rise on a neighbour do not fall in steps."""
    steps = Steps.for_sensitivity(size)
    low, high = sorted([one, other])
    try:
        assert steps.of("x", low) <= steps.of("x", high)
    except InvalidValueError:
        assume(False)


def test_values_beyond_the_doubles_are_infinite():
    fine, coarse = Steps.for_sensitivity(1.0), Steps.for_sensitivity(1e200)
    assert fine.value(2**2000) == math.inf
    assert fine.value(-(2**2000)) == -math.inf
    assert coarse.value(2**1000) == math.inf
    assert coarse.value(-(2**1000)) == -math.inf
