"""Numbers: noise cut off early, NumPy's numbers, small rates, and the order of calls."""

import math
import random

import numpy as np
import pytest
from mpmath import mp, mpf

import opendp_concurrent as oc

from ..some import some
from .conftest import subsampled_delta

T = oc.TradeoffFunction
SUBSAMPLED = T.subsampled_gaussian(1.0, 0.01, unit="removed")


# --- NumPy's numbers -----------------------------------------------------------------------------


def test_numbers_of_numpy_are_read_exactly_by_the_accountant():
    e = pytest.importorskip("dp_accounting").dp_event
    third = np.float32(1 / 3)
    for given_, own in [
        (e.GaussianDpEvent(third), e.GaussianDpEvent(float(third))),
        (e.LaplaceDpEvent(np.int64(3)), e.LaplaceDpEvent(3)),
        (
            e.PoissonSampledDpEvent(np.float16(0.25), e.GaussianDpEvent(np.longdouble(2))),
            e.PoissonSampledDpEvent(0.25, e.GaussianDpEvent(2.0)),
        ),
        (
            e.SelfComposedDpEvent(e.LaplaceDpEvent(np.uint8(4)), np.int32(7)),
            e.SelfComposedDpEvent(e.LaplaceDpEvent(4.0), 7),
        ),
        (e.DiscreteLaplaceDpEvent(third, np.int64(2)), e.DiscreteLaplaceDpEvent(float(third), 2)),
        (e.ZCDpEvent(third), e.ZCDpEvent(float(third))),
    ]:
        accountant = oc.fdp.Accountant().compose(given_, np.int64(2))
        assert accountant.session == oc.fdp.Accountant().compose(own, 2).session
        assert accountant.get_epsilon(np.float32(1e-5)) == accountant.get_epsilon(
            float(np.float32(1e-5))
        )
        assert accountant.get_delta(np.int64(1)) == accountant.get_delta(1.0)


# --- small rates ---------------------------------------------------------------------------------


RATES = [5e-324, 1e-300, 1e-100, 1e-20, 1e-13, 1e-10, 1 - 1e-10]


def truth_of_one(mu, rate, epsilon):
    """δ of sampled Gaussian noise with the unit removed, in 60 digits beyond the rate."""
    with mp.workdps(60 + 2 * int(-math.log10(rate) + 1)):
        return subsampled_delta("gaussian", mu, rate, "removed", epsilon)


@pytest.mark.parametrize(
    ("rate", "mu"), some([(rate, mu) for mu in (0.25, 1.0, 4.0) for rate in RATES], 3)
)
def test_a_rate_is_read_as_itself(rate, mu):
    one = T.subsampled_gaussian(1 / mu, rate, unit="removed")
    for epsilon in (-0.5, 0.0, 1e-3, 1.5):
        bounds, truth = one.delta_bounds(epsilon), truth_of_one(mu, rate, epsilon)
        assert mpf(bounds.lower) <= truth <= mpf(bounds.upper)
        assert mpf(bounds.upper) <= truth * (1 + mpf(10) ** -6) + mpf(10) ** -299
    many = one.power(1000)
    at_zero = many.delta_bounds(0.0)
    assert mpf(at_zero.upper) >= truth_of_one(mu, rate, 0)
    assert mpf(at_zero.lower) <= 1000 * truth_of_one(mu, rate, 0)
    if rate < 0.5:
        assert at_zero.upper <= 1000.001 * rate + 1e-296
        assert many.epsilon(max(1001 * rate, 1e-290)) == 0.0


@pytest.mark.parametrize("rate", [1e-200, 1e-30, 1e-12, 1e-6])
def test_two_steps_of_little_noise_lose_nearly_the_sum(rate):
    """Who sees a sum above half of the shift knows, up to 1e-12, that the unit took part."""
    one = T.subsampled_gaussian(1 / 15, rate, unit="removed")
    assert one.power(2).delta(0.0) >= 2 * rate * (1 - rate) * (1 - 1e-12)


# --- the order of calls --------------------------------------------------------------------------

POOL = (
    T.laplace(0.3),
    T.laplace(0.07),
    T.gaussian(0.4),
    T.pure(0.2),
    T.approximate(0.1, 1e-7),
    T.discrete_laplace(5.0, 2),
    T.finite([0.5, 0.3, 0.2], [0.45, 0.33, 0.22]),
    SUBSAMPLED,
)
QUESTIONS = [
    *(("epsilon_bounds", delta) for delta in (1e-9, 1e-5, 0.01)),
    *(("delta_bounds", epsilon) for epsilon in (0.0, 0.4, 2.0)),
]


def build(parts, ask=False):
    f = T.identity()
    for one, count in parts:
        f = f.compose(one.power(count))
        if ask:
            f.epsilon(1e-5)
    return f


@pytest.mark.parametrize("seed", range(6))
def test_answers_depend_on_the_function_alone(seed):
    draw = random.Random(seed)
    parts = [(one, draw.choice([1, 2, 20])) for one in draw.sample(POOL, draw.choice([1, 2, 4]))]
    fresh = {question: getattr(build(parts), question[0])(question[1]) for question in QUESTIONS}
    for ask in (False, True):
        draw.shuffle(parts)
        f, asked = build(parts, ask), 2 * QUESTIONS
        draw.shuffle(asked)
        f.delta_bounds(np.array([0.2, 1.0]), width=1e-3)
        assert f == build(parts[::-1])
        for name, at in asked:
            assert getattr(f, name)(at) == fresh[name, at], (parts, name, at)


@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, np.uint8, np.longdouble])
def test_numbers_of_numpy_are_read_exactly_by_trade_off_functions_and_losses(number):
    made = oc.fdp.TradeoffFunction
    one, two = number(1), number(2)
    for found, own in [
        (made.gaussian(two), made.gaussian(2.0)),
        (made.laplace(two), made.laplace(2.0)),
        (made.laplace(two, two), made.laplace(2.0, 2.0)),
        (made.pure(two), made.pure(2.0)),
        (made.approximate(two, number(0)), made.approximate(2.0, 0.0)),
        (made.subsampled_gaussian(two, one, unit="added"), made.gaussian(0.5)),
        (made.randomized_response(one, 2), made.randomized_response(1.0, 2)),
        (oc.loss_of(epsilon=two), oc.loss_of(epsilon=2.0)),
        (oc.loss_of(rho=two), oc.loss_of(rho=2.0)),
        (oc.loss_of(epsilon=one, delta=number(0)), oc.loss_of(epsilon=1.0, delta=0.0)),
        (oc.loss_of(epsilon=one, alpha=two), oc.loss_of(epsilon=1.0, alpha=2.0)),
        (oc.loss_of(rho=one, omega=two), oc.loss_of(rho=1.0, omega=2.0)),
        (oc.loss_of(mu=two), oc.loss_of(mu=2.0)),
    ]:
        assert found == own
        assert repr(found) == repr(own)
    third = np.float32(1 / 3)
    assert made.gaussian(third) == made.gaussian(float(third))
    assert oc.loss_of(epsilon=third)[1] == float(third)
