"""No attacker does better than a risk says: exact attackers, and formulas."""

from fractions import Fraction
from math import exp, inf, tanh
from statistics import NormalDist

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
APPROXIMATE = dp.approximate(PURE)
PHI = NormalDist()
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PRIORS = 0.5, 0.01, 0.2, 0.9, 1 - 2**-53, 1e-300


def best(first, second, prior):
    """Advantage, success and true positives of the best attacker on two laws, exactly."""
    advantage = sum(max(q - p, 0) for p, q in zip(first, second, strict=True))
    right = sum(max((1 - prior) * p, prior * q) for p, q in zip(first, second, strict=True))
    left, hit = Fraction(0.05), Fraction(0)
    for p, q in sorted(zip(first, second, strict=True), key=lambda one: -one[1] / one[0]):
        share = min(Fraction(1), left / p)  # Neyman and Pearson
        left, hit = left - share * p, hit + share * q
    return advantage, right, hit


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 3.0, 40.0])
def test_the_best_attacker_on_randomized_response_attains_the_risk(epsilon, prior):
    """Its loss is at most epsilon, so what he does must be at most the risk; it is 1e-9 of it."""
    truth = Fraction(1 / (1 + exp(-epsilon))) * (1 - Fraction(1, 2**52))
    truth = max(truth, Fraction(1, 2))
    found = oc.measures.risk(PURE, epsilon, prior=prior)
    exact = best([truth, 1 - truth], [1 - truth, truth], Fraction(prior))
    for bound, value in zip(
        (found.advantage, found.success, found.true_positives), exact, strict=True
    ):
        assert value <= bound <= 1
        assert bound == pytest.approx(float(value), rel=1e-9, abs=1e-15)


def test_formulas():
    pair = oc.measures.risk(APPROXIMATE, (1.0, 1e-6))
    assert pair.advantage == pytest.approx((exp(1) - 1 + 2e-6) / (exp(1) + 1), rel=1e-9)
    mu = oc.measures.risk(oc.gaussian_tradeoff(), 1.0, prior=0.2)
    assert mu.advantage == pytest.approx(2 * PHI.cdf(0.5) - 1, rel=1e-9)
    assert mu.true_positives == pytest.approx(PHI.cdf(PHI.inv_cdf(0.05) + 1), rel=1e-9)
    assert 0.8 < mu.success < 0.8 + 0.2 * mu.advantage


GAUSSIAN = oc.measures.risk(oc.gaussian_tradeoff(), 1.0, prior=0.3)


@pytest.mark.parametrize(
    ("measure", "loss"),
    [
        (ZCDP, 0.5),
        (dp.approximate(ZCDP), (0.5, 1e-9)),
        (oc.truncated_concentrated_divergence(64.0), oc.TruncatedConcentrated(0.5, 64.0)),
        (oc.fixed_renyi_divergence(2.0), 1.0),
        (dp.renyi_divergence(), lambda alpha: 0.5 * alpha),
        (oc.tradeoff(), oc.TradeoffFunction.gaussian(1.0)),
    ],
)
def test_a_measure_of_gaussian_noise_says_no_less_than_its_exact_attacker(measure, loss):
    found = oc.measures.risk(measure, loss, prior=0.3)
    for name in ("advantage", "success", "true_positives"):
        assert 1 >= getattr(found, name) >= getattr(GAUSSIAN, name) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("measure", "loss"), [(PURE, inf), (APPROXIMATE, (0.0, 1.0)), (ZCDP, inf), (ZCDP, 800.0)]
)
def test_without_a_bound_the_attacker_is_right(measure, loss):
    found = oc.measures.risk(measure, loss)
    assert (found.advantage, found.success, found.true_positives) == (1.0, 1.0, 1.0)


def test_handles_and_contexts_say_the_risk_so_far():
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(4.0)
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 2, 3])
    assert root.risk().success == 0.5
    root(count)
    assert root.risk().advantage == pytest.approx(tanh(0.125), rel=1e-9)
    assert root.risk(2, prior=0.25) == oc.measures.risk(PURE, 0.5, prior=0.25)
    context = oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), split_evenly_over=2
    )
    context.query().count().laplace().release()
    told = context.summarize(prior=0.1)
    assert (told.spent, told.remaining) == (0.5, [0.5])
    assert told.risk == oc.measures.risk(PURE, 0.5, prior=0.1)
    assert str(told) == f"spent 0.5, shares left: 1; {told.risk}"
    with pytest.raises(InvalidValueError, match="prior"):
        context.summarize(prior=1.5)
    unbounded = oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=inf)
    )
    assert str(unbounded.summarize()).startswith("spent 0, no bound; ")
