"""Who is right where dp-accounting's published tests compute what is beyond our bounds.

By mpmath, in computations that share nothing with either package. :doc:`/dp-accounting` in the docs
lists the results.
"""

import mpmath as mp
import pytest
from mpmath import mpf

import opendp_concurrent as oc

pytest.importorskip("dp_accounting")
pytest.importorskip("absl.testing")

from dp_accounting import NeighboringRelation
from dp_accounting import dp_event as e
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution
from dp_accounting.rdp import RdpAccountant

from . import conftest as closed

T = oc.TradeoffFunction


# --- exact values by mpmath --------------------------------------------------------------------


def laplace_power_delta(count, loss, epsilon):
    """δ of many Laplace mechanisms, whose losses have a density after many uses.

    By inversion on the line Re t = τ with the trapezoidal rule, whose error falls with e^(-2π/h).
    """
    with mp.workdps(40):
        n, e0, x = mpf(count), mpf(loss), mpf(epsilon)

        def log_phi(t):
            u = t + mpf(1) / 2
            return mp.log(mp.cosh(u * e0) + mp.sinh(u * e0) / (2 * u)) - e0 / 2

        deviation = e0 * mp.sqrt(n)
        tau = max(x / deviation**2, mpf(1) / 4)
        step = 1 / (40 * deviation)
        total = mpf(0)
        for index in range(int(16 / deviation / step) + 1):
            t = mp.mpc(tau, index * step)
            value = mp.re(mp.exp(n * log_phi(t) - t * x) / (t * (t + 1)))
            total += value / 2 if index == 0 else value
        return total * step / mp.pi


def laplace_sum_delta(count, loss, epsilon):
    """δ of many Laplace mechanisms by their outcomes: a sum over how many losses are extreme.

    With x in (0, ε₀) where the loss is ε₀ - 2x, the law of x is e^-x/2, beside 1/2 at 0 and
    e^-ε₀/2 at ε₀. The sum of j of them has the density e^-X V_j(X), V_j that of Irwin and Hall.
    """
    with mp.workdps(90):
        e0, x = mpf(loss), mpf(epsilon)
        total, mean = mpf(0), count * float(1 - mp.exp(-e0)) / 2
        for j in range(min(count, int(mean + 12 * mean**0.5) + 20) + 1):  # of j, the rest is rare
            m = count - j
            least = max(0, int(mp.ceil((x / e0 + m - j) / 2)))  # a with a largest loss above ε
            if least > m:
                continue
            start = ((2 * least - m + j) * e0 - x) / 2  # X up to here has a loss above ε
            shifts = int(mp.floor(start / e0))
            start -= shifts * e0
            low, high = _integrals(j, start, e0)
            inner = mpf(0)
            for a in range(least, m + 1):
                k = min(a - least + shifts, j)
                ways = mp.binomial(m, a) * mp.exp(-(m - a) * e0)
                inner += ways * (low[k] - mp.exp(x - (2 * a - m + j) * e0) * high[k])
            total += mp.binomial(count, j) * inner
        return total / mpf(2) ** count


def _integrals(j, start, e0):
    """The integrals of e^-X V_j and e^X V_j up to start + k ε₀, for k = 0 ... j."""
    if j == 0:
        return [mpf(1)], [mpf(1)]

    def integral(sign, y):  # of e^(sign X) X^(j-1) / (j-1)! to y
        term, terms = mpf(1), mpf(1)
        for k in range(1, j):
            term *= -sign * y / k
            terms += term
        return (-sign) ** j * (1 - mp.exp(sign * y) * terms)

    found = []
    for sign in (-1, 1):
        at = [integral(sign, start + k * e0) for k in range(j + 1)]
        sums = [
            mp.fsum(
                (-1) ** i * mp.binomial(j, i) * mp.exp(sign * i * e0) * at[k - i]
                for i in range(k + 1)
            )
            for k in range(j)
        ]
        whole = (1 - mp.exp(-e0)) ** j if sign < 0 else (mp.exp(e0) - 1) ** j
        found.append([*sums, whole])
    return found


def test_the_exact_sums_agree_with_closed_forms():
    for epsilon in (0.0, 0.3, 0.7):
        with mp.workdps(60):
            one = closed.laplace_delta(0.5, epsilon)
            two = closed.laplace_pair_delta(0.5, 0.5, epsilon)
        assert abs(laplace_sum_delta(1, 0.5, epsilon) - one) < mpf(10) ** -50
        assert abs(laplace_sum_delta(2, 0.5, epsilon) - two) < mpf(10) ** -50


# --- where we differ ---------------------------------------------------------------------------


def inside(bounds, value):
    return mpf(bounds.lower) <= value <= mpf(bounds.upper)


@pytest.mark.parametrize(
    ("count", "noise", "epsilon", "theirs"),
    [
        # PLDAccountant(), dp-accounting 0.6.0: what it says is ε at δ, and δ
        (10**6, 1000.0, 4.885615881374375, 1e-6),
        (10**6, 1000.0, 6.169908758077376, 1e-9),
        (10**5, 300.0, 7.436403191510051, 1e-12),
    ],
)
def test_a_pessimistic_epsilon_of_many_laplace_mechanisms_is_too_small(
    count, noise, epsilon, theirs
):
    exact = laplace_power_delta(count, 1 / mpf(noise), epsilon)
    function = oc.fdp.from_dp_event(e.SelfComposedDpEvent(e.LaplaceDpEvent(noise), count))
    assert inside(function.delta_bounds(epsilon), exact)
    assert exact > theirs
    assert function.epsilon(theirs) > epsilon
    assert laplace_power_delta(count, 1 / mpf(noise), function.epsilon(theirs)) <= theirs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "theirs"),
    [(62.5, 1.4038530140435633e-09), (78.125, 8.456263851140559e-14)],
)
def test_a_pessimistic_delta_of_500_laplace_mechanisms_is_too_small(noise, theirs):
    """Of the published grid of get_smallest_laplace_noise, at ε = 2."""
    exact = laplace_sum_delta(500, 1 / mpf(noise), 2.0)
    bounds = T.laplace(1 / noise).power(500).delta_bounds(2.0)
    assert bounds.lower * (1 - 1e-12) <= exact <= bounds.upper * (1 + 1e-12)
    assert exact > theirs * (1 + 1e-7)


@pytest.mark.parametrize("relation", ["REPLACE_ONE", "REPLACE_SPECIAL"])
def test_randomized_response_counts_as_often_as_it_runs(relation):
    """``PLDAccountant`` of 0.6.0 ignores the count of these events."""
    event = e.RandomizedResponseDpEvent(0.5, 4)
    ours = oc.fdp.Accountant(relation).compose(event, 3)
    apart = PLDAccountant(NeighboringRelation[relation]).compose(e.ComposedDpEvent([event] * 3))
    with mp.workdps(40):
        truth, lie = mpf(5) / 8, mpf(1) / 8
        pairs = [(truth, lie), (lie, truth), (2 * lie, 2 * lie)]
        if relation == "REPLACE_SPECIAL":
            pairs = [(truth, mpf(1) / 4), (3 * lie, mpf(3) / 4)]
        exact = max(
            mp.fsum(max(p - mp.e * q, 0) for p, q in closed.power(one, 3))
            for one in (pairs, [(q, p) for p, q in pairs])
        )
    assert (
        inside(ours.session.delta_bounds(1.0), exact)
        or abs(ours.session.delta(1.0) - exact) <= 1e-14
    )
    assert mpf(ours.get_delta(1.0)) >= exact
    assert apart.get_delta(1.0) == pytest.approx(ours.get_delta(1.0), rel=1e-3)


def test_a_mixture_of_gaussians_is_sampled_noise():
    """With a grid of whole numbers the pessimistic estimate of 0.6.0 is too small."""
    exact = closed.subsampled_delta("gaussian", 1.0, 0.8, "removed", 1.0)
    ours = oc.fdp.Session.subsampled_gaussian(1.0, 0.8)
    assert inside(ours.removed.delta_bounds(1.0), exact)
    make = privacy_loss_distribution.from_mixture_gaussian_mechanism
    theirs = make(1.0, [0.0, 1.0], [0.2, 0.8], value_discretization_interval=1.0)
    assert theirs.get_delta_for_epsilon(1.0) == pytest.approx(ours.delta(1.0), rel=1e-9)


def test_a_replaced_record_moves_a_sum_by_twice_its_norm():
    """``RdpAccountant`` counts the norm once, ``PLDAccountant`` and we twice."""
    ours = oc.fdp.Accountant("REPLACE_ONE").compose(e.GaussianDpEvent(1.0))
    pld = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(e.GaussianDpEvent(1.0))
    rdp = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    rdp.compose(e.GaussianDpEvent(1.0))
    epsilon = ours.get_epsilon(1e-5)
    with mp.workdps(30):  # two records of norm 1 on either side
        assert closed.gaussian_delta(2, epsilon) <= mpf(1e-5)
        assert closed.gaussian_delta(2, epsilon - 1e-9) > mpf(1e-5)
    assert pld.get_epsilon(1e-5) == pytest.approx(epsilon, rel=1e-6)
    assert rdp.get_epsilon(1e-5) < 0.6 * epsilon


# --- the grids ---------------------------------------------------------------------------------
