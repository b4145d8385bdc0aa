"""Group privacy and subsampling by formulas, against Fractions and against direct computation."""

import math
from fractions import Fraction
from math import exp

import mpmath as mp
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.measures import composition_measure
from opendp_concurrent.measures.shapes import approximate_group, approximate_member

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


@pytest.mark.parametrize(
    ("measure", "power"), [(PURE, 1), (oc.gaussian_tradeoff(), 1), (ZCDP, 2)], ids=str
)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_numbers_grow_with_a_power_of_the_size_and_are_rounded_outward(measure, power, size):
    known = composition_measure(measure)
    for loss in (0.1, 0.3, 1e-300, 5e-324):
        whole, part = known.group_loss(loss, size), known.member_loss(loss, size)
        assert Fraction(whole) >= Fraction(loss) * size**power
        assert Fraction(part) * size**power <= Fraction(loss)
        assert whole == pytest.approx(loss * size**power)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_path_is_at_least_that_of_each_step_by_hand(size):
    epsilon, delta = 0.3, 1e-6
    by_hand = (0.0, 0.0)
    for _ in range(size):  # P <= e^a Q + b and Q <= e^c R + d, so P <= e^(a+c) R + b + e^a d
        by_hand = by_hand[0] + epsilon, by_hand[1] + exp(by_hand[0]) * delta
    found = approximate_group((epsilon, delta), size)
    assert found == pytest.approx(by_hand)
    assert Fraction(found[0]) >= size * Fraction(epsilon)
    assert found[1] > size * delta


@pytest.mark.parametrize("d_out", [(1.0, 1e-6), (0.1, 0.0), (1e-9, 0.5)])
def test_the_group_of_a_member_is_within_the_bound(d_out):
    for size in (2, 5, 256):
        whole = approximate_group(approximate_member(d_out, size), size)
        assert whole[0] <= d_out[0]
        assert whole[1] <= d_out[1]
        assert whole == pytest.approx(d_out)


def test_functions_have_a_group_and_gaussians_a_member():
    known = composition_measure(oc.tradeoff())
    pure = oc.TradeoffFunction.pure(0.5)
    assert known.group_loss(pure, 2).epsilon(0.0) == pytest.approx(1.0)
    member = known.member_loss(oc.TradeoffFunction.gaussian(1.0), 2)
    assert known.group_loss(member, 2) == oc.TradeoffFunction.gaussian(1.0)
    with pytest.raises(oc.errors.UnsupportedMeasureError, match="2 steps apart"):
        known.member_loss(pure, 2)


@pytest.mark.parametrize(
    "measure",
    [
        dp.renyi_divergence(),
        oc.fixed_renyi_divergence(4.0),
        oc.truncated_concentrated_divergence(8.0),
        dp.approximate(ZCDP),
    ],
    ids=str,
)
def test_measures_without_a_group_are_refused_with_the_reason(measure):
    known = composition_measure(measure)
    assert known.member_loss("anything", 1) == known.group_loss("anything", 1) == "anything"
    for ask in (known.member_loss, known.group_loss):
        with pytest.raises(oc.errors.UnsupportedMeasureError, match="at one distance gives none"):
            ask(0.5, 2)


def test_the_largest_sizes_have_a_loss():
    """A sum of 2^63 terms would not end."""
    size = 2**63 - 1
    assert approximate_group((0.5, 1e-3), size) == (0.5 * 2**63, float("inf"))
    epsilon, delta = approximate_group((1e-30, 1e-30), size)
    assert epsilon == pytest.approx(size * 1e-30)
    assert delta == pytest.approx(size * 1e-30)
    assert Fraction(delta) > size * Fraction(1e-30)
    assert approximate_member((0.5, 1e-3), size)[1] < 1e-3 / size


def test_printed_values():
    sample = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 34.54), 1_000, 1_000_000)
    assert sample.rho == pytest.approx(1.3e-6, rel=1e-12)
    assert sample.omega == pytest.approx(17.2694, abs=1e-4)


@given(st.floats(1e-6, 0.1), st.integers(1, 10**6), st.integers(10, 10**9))
def test_subsampling_checks_its_conditions_and_rounds_outward(rho, n, population):
    loss = oc.TruncatedConcentrated(rho)
    with mp.workdps(60):
        s = mp.mpf(n) / population
        valid = s <= mp.mpf(1) / 10 and mp.log(1 / s) / (2 * mp.mpf(rho)) >= 3
        if not valid:
            with pytest.raises(InvalidValueError):
                oc.measures.subsampled_tcdp(loss, n, population)
            return
        assert mp.log(1 / s) >= 3 * mp.mpf(rho) * (2 + mp.log(1 / mp.mpf(rho), 2))
        found = oc.measures.subsampled_tcdp(loss, n, population)
        assert mp.mpf(found.rho) >= 13 * s * s * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.log(1 / s) / (4 * mp.mpf(rho))
        assert found.rho == pytest.approx(float(13 * s * s * mp.mpf(rho)), rel=1e-14)


def test_subsampling_covers_the_subsampled_gaussian():
    """The exact divergence of a mixture, N(0,1) against (1-s) N(0,1) + s N(mu,1), both ways."""
    s, rho = 0.01, 0.1
    mu = math.sqrt(2 * rho)
    found = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(rho), 1, 100)
    with mp.workdps(18):

        def density(x, mean):
            return mp.npdf(x, mean, 1)

        def mixture(x):
            return (1 - s) * density(x, 0) + s * density(x, mu)

        def replaced(x, sign):
            return (1 - s) * density(x, 0) + s * density(x, sign * mu / 2)

        pairs = [
            (mixture, lambda x: density(x, 0)),
            (lambda x: density(x, 0), mixture),
            (lambda x: replaced(x, 1), lambda x: replaced(x, -1)),  # one record by another
        ]
        for order in (1.5, 11.0):
            assert order < found.omega
            for p, q in pairs:
                moment = mp.quad(
                    lambda x, p=p, q=q, a=order: p(x) ** a * q(x) ** (1 - a), range(-12, 14, 2)
                )
                assert mp.log(moment) / (order - 1) <= found.rho * order


@given(st.floats(0.0, 1e3), st.floats(1.5, 1e6), st.integers(1, 1000))
def test_groups_round_outward(rho, omega, size):
    loss = oc.TruncatedConcentrated(rho, omega)
    if size >= omega:
        with pytest.raises(InvalidValueError, match="^size"):
            oc.measures.group_tcdp(loss, size)
        return
    if omega / size <= 1.0 + 1e-12:
        return
    found = oc.measures.group_tcdp(loss, size)
    with mp.workdps(60):
        assert mp.mpf(found.rho) >= size * size * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.mpf(omega) / size
