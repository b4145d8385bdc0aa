"""Bad input: the type of the error, and that it names the argument."""

import math

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

T = oc.TradeoffFunction
F = T.pure(0.5)


OUT_OF_RANGE = [
    ("epsilon \\(-0.1\\) must be at least 0", lambda: T.pure(-0.1)),
    ("epsilon", lambda: T.pure(math.nan)),
    ("delta", lambda: T.approximate(1.0, 1.5)),
    ("delta", lambda: T.approximate(1.0, math.nan)),
    ("mu", lambda: T.gaussian(-1.0)),
    ("steps", lambda: T.laplace(1.0, 0.5)),
    ("steps", lambda: T.laplace(1.0, 2.5)),
    ("epsilon", lambda: T.laplace(-1.0)),
    ("scale", lambda: T.discrete_laplace(0.0)),
    ("sensitivity", lambda: T.discrete_laplace(1.0, 0)),
    ("scale .* too large", lambda: T.discrete_gaussian(1000000.0)),
    ("prob .* must be at least 1/2", lambda: T.randomized_response(0.4)),
    ("categories", lambda: T.randomized_response(0.5, 1)),
    ("first must add up to 1", lambda: T.finite([0.5, 0.6], [0.5, 0.5])),
    ("second must be prob", lambda: T.finite([0.5, 0.5], [1.5, -0.5])),
    ("second has 1 outcomes", lambda: T.finite([0.5, 0.5], [1.0])),
    ("first", lambda: T.finite([0.5, math.nan], [1.0, 0.0])),
    ("betas must have as many", lambda: T.from_curve([0, 1], [0.5])),
    ("not increase", lambda: T.from_curve([0, 0.5, 1], [0.4, 0.45, 0])),
    ("convex", lambda: T.from_curve([0, 0.5, 1], [0.5, 0.49, 0])),
    ("1 - alpha", lambda: T.from_curve([0, 0.5, 1], [1.0, 0.6, 0])),
    ("in \\[0, 1\\]", lambda: T.from_curve([0, 0.5, 1], [1.2, 0.2, 0])),
    ("alphas must increase", lambda: T.from_curve([0.1, 1], [0.5, 0.0])),
    ("alphas", lambda: T.from_curve([0, math.nan], [0.5, 0])),
    ("must not increase", lambda: T.from_profile([0, 1], [0.1, 0.2])),
    ("as many elements", lambda: T.from_profile([0, 1], [0.1])),
    ("epsilons", lambda: T.from_profile([-1.0], [0.1])),
    ("deltas must be in", lambda: T.from_profile([0.0], [1.1])),
    ("other_deltas", lambda: T.from_profile([0], [0.1], [0.1, 0.0])),
    ("add up to 1", lambda: T.from_loss_distribution([0.0], [0.5])),
    ("at most 1, found", lambda: T.from_loss_distribution([-1.0], [1.0])),
    ("at least", lambda: T.from_loss_distribution([0.0, 1.0], [1.1, -0.1])),
    ("losses", lambda: T.from_loss_distribution([math.inf], [1.0])),
    ("functions has 1 elements", lambda: T.mixture([1, 1], [F])),
    ("weights", lambda: T.mixture([0], [F])),
    ("count", lambda: F.power(-1)),
    ("size", lambda: F.group(0)),
    ("alpha", lambda: F.beta(1.5)),
    ("alpha", lambda: F.beta(math.nan)),
    ("epsilon", lambda: F.delta(math.nan)),
    ("delta", lambda: F.epsilon(-0.1)),
    ("slope", lambda: F.conjugate(math.nan)),
    ("unit must not be the identity", lambda: F.units(T.identity())),
    ("unit must not be the identity", lambda: F.admits(T.identity())),
    ("only a Gaussian", lambda: F.residual(F)),
    ("counts\\[0\\]", lambda: oc.fdp.optimal_composition([0.1], counts=[0])),
    ("counts has 2", lambda: oc.fdp.optimal_composition([0.1], counts=[1, 2])),
    ("d_mids\\[0\\]\\[1\\]", lambda: oc.fdp.optimal_composition([(0.1, 2.0)])),
    ("width", lambda: F.delta_bounds(0.5, width=-1.0)),
    ("epsilon", lambda: F.delta_bounds(np.array([0.0, np.nan]))),
    ("width", lambda: F.epsilon_bounds(0.5, width=math.nan)),
    ("delta", lambda: F.epsilon(math.nan)),
    ("delta", lambda: F.epsilon(1.1)),
    ("alpha", lambda: F.beta(-0.1)),
    ("mu", lambda: T.gaussian(math.nan)),
    ("steps", lambda: T.laplace(1.0, 0)),
    ("scale", lambda: T.discrete_laplace(math.inf)),
    ("scale", lambda: T.discrete_laplace(math.nan)),
    ("scale", lambda: T.discrete_gaussian(0.0)),
    ("sensitivity", lambda: T.discrete_gaussian(1.0, 0)),
    ("prob", lambda: T.randomized_response(math.nan)),
    ("prob", lambda: T.randomized_response(1.5)),
    ("second", lambda: T.finite((0.5, 0.5), (0.5, math.inf))),
    ("deltas", lambda: T.from_profile([0.0], [math.nan])),
    ("other_deltas", lambda: T.from_profile([0.0], [0.1], [math.nan])),
    ("other_deltas", lambda: T.from_profile([0, 1], [0.1, 0.1], [0, 1])),
    ("epsilons", lambda: T.from_profile([700.0], [0.1])),
    ("betas", lambda: T.from_curve([0.0], [1.0])),
    ("betas", lambda: T.from_curve([0, 1], [math.nan, 0])),
    ("alphas", lambda: T.from_curve([0, 0, 1], [1, 0.5, 0])),
    ("prob", lambda: T.from_loss_distribution([0.0], [math.nan])),
    ("prob", lambda: T.from_loss_distribution([0.0], [0.5, 0.5])),
    ("infinite", lambda: T.from_loss_distribution([0.0], [1.0], 0.5)),
    ("weights", lambda: T.mixture([-1.0], [F])),
]
OF_ANOTHER_TYPE = [
    ("no constructor of its own", lambda: T()),
    ("first must be a nonempty", lambda: T.finite([], [])),
    ("epsilons must be a nonempty", lambda: T.from_profile([], [])),
    ("must be a TradeoffFunction", lambda: F.compose(0.5)),
    ("unit must be a TradeoffFunction", lambda: F.units(0.1)),
    ("child must be", lambda: T.gaussian(1.0).residual(1.0)),
    ("d_mids must be a nonempty", lambda: oc.fdp.optimal_composition([])),
    ("d_mids\\[0\\]", lambda: oc.fdp.optimal_composition([(0.1,)])),
    ("alphas", lambda: T.from_curve([], [])),
    ("betas", lambda: T.from_curve([0, 1], [])),
    ("losses", lambda: T.from_loss_distribution([], [])),
    ("weights", lambda: T.mixture([], [])),
]


@pytest.mark.parametrize(("words", "call"), OUT_OF_RANGE)
@pytest.mark.filterwarnings("error")
def test_a_value_out_of_range_is_named(words, call):
    with pytest.raises(InvalidValueError, match=words):
        call()


@pytest.mark.parametrize(("words", "call"), OF_ANOTHER_TYPE)
def test_a_value_of_another_type_is_named(words, call):
    with pytest.raises(InvalidTypeError, match=words):
        call()


def test_a_comparison_with_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        assert F <= 1.0
    with pytest.raises(TypeError):
        assert F > 1.0
    assert F != 1.0
