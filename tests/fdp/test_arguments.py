"""Bad input: the type of the error, and that it names the argument."""

import math

import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

T = oc.TradeoffFunction
F = T.pure(0.5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: T(), InvalidTypeError, "no constructor of its own"),
        (lambda: T.pure(-0.1), InvalidValueError, r"epsilon \(-0.1\) must be at least 0"),
        (lambda: T.pure(math.nan), InvalidValueError, "epsilon"),
        (lambda: T.pure("1"), InvalidTypeError, "epsilon must be a number"),
        (lambda: T.approximate(1.0, 1.5), InvalidValueError, "delta"),
        (lambda: T.approximate(1.0, math.nan), InvalidValueError, "delta"),
        (lambda: T.gaussian(-1.0), InvalidValueError, "mu"),
        (lambda: T.laplace(1.0, 0.5), InvalidValueError, "steps"),
        (lambda: T.laplace(1.0, 2.5), InvalidValueError, "steps"),
        (lambda: T.laplace(-1.0), InvalidValueError, "epsilon"),
        (lambda: T.discrete_laplace(0.0), InvalidValueError, "scale"),
        (lambda: T.discrete_laplace(1.0, 0), InvalidValueError, "sensitivity"),
        (lambda: T.discrete_laplace(1.0, 1.5), InvalidTypeError, "sensitivity"),
        (lambda: T.discrete_gaussian(1e6), InvalidValueError, "scale .* too large"),
        (lambda: T.randomized_response(0.4), InvalidValueError, "prob .* must be at least 1/2"),
        (lambda: T.randomized_response(0.5, 1), InvalidValueError, "categories"),
        (lambda: T.finite([], []), InvalidTypeError, "first must be a nonempty"),
        (lambda: T.finite([0.5, 0.6], [0.5, 0.5]), InvalidValueError, "first must add up to 1"),
        (lambda: T.finite([0.5, 0.5], [1.5, -0.5]), InvalidValueError, "second must be prob"),
        (lambda: T.finite([0.5, 0.5], [1.0]), InvalidValueError, "second has 1 outcomes"),
        (lambda: T.finite([0.5, math.nan], [1.0, 0.0]), InvalidValueError, "first"),
        (lambda: T.from_curve([0, 1], [0.5]), InvalidValueError, "betas must have as many"),
        (lambda: T.from_curve([0, 0.5, 1], [0.4, 0.45, 0]), InvalidValueError, "not increase"),
        (lambda: T.from_curve([0, 0.5, 1], [0.5, 0.49, 0]), InvalidValueError, "convex"),
        (lambda: T.from_curve([0, 0.5, 1], [1.0, 0.6, 0]), InvalidValueError, "1 - alpha"),
        (lambda: T.from_curve([0, 0.5, 1], [1.2, 0.2, 0]), InvalidValueError, r"in \[0, 1\]"),
        (lambda: T.from_curve([0.1, 1], [0.5, 0.0]), InvalidValueError, "alphas must increase"),
        (lambda: T.from_curve([0, math.nan], [0.5, 0]), InvalidValueError, "alphas"),
        (lambda: T.from_profile([0, 1], [0.1, 0.2]), InvalidValueError, "must not increase"),
        (lambda: T.from_profile([0, 1], [0.1]), InvalidValueError, "as many elements"),
        (lambda: T.from_profile([-1.0], [0.1]), InvalidValueError, "epsilons"),
        (lambda: T.from_profile([0.0], [1.1]), InvalidValueError, "deltas must be in"),
        (lambda: T.from_profile([], []), InvalidTypeError, "epsilons must be a nonempty"),
        (lambda: T.from_profile([0], [0.1], [0.1, 0.0]), InvalidValueError, "other_deltas"),
        (lambda: T.from_loss_distribution([0.0], [0.5]), InvalidValueError, "add up to 1"),
        (
            lambda: T.from_loss_distribution([-1.0], [1.0]),
            InvalidValueError,
            "at most 1, found",
        ),
        (lambda: T.from_loss_distribution([0.0, 1.0], [1.1, -0.1]), InvalidValueError, "at least"),
        (lambda: T.from_loss_distribution([math.inf], [1.0]), InvalidValueError, "losses"),
        (lambda: T.mixture([1, 1], [F]), InvalidValueError, "functions has 1 elements"),
        (lambda: T.mixture([0], [F]), InvalidValueError, "weights"),
        (lambda: T.mixture([1], [0.5]), InvalidTypeError, "functions must be a TradeoffFunction"),
        (lambda: F.compose(0.5), InvalidTypeError, "must be a TradeoffFunction"),
        (lambda: F.power(-1), InvalidValueError, "count"),
        (lambda: F.power(1.5), InvalidTypeError, "count"),
        (lambda: F.group(0), InvalidValueError, "size"),
        (lambda: F.beta(1.5), InvalidValueError, "alpha"),
        (lambda: F.beta(math.nan), InvalidValueError, "alpha"),
        (lambda: F.delta(math.nan), InvalidValueError, "epsilon"),
        (lambda: F.delta(None), InvalidTypeError, "epsilon"),
        (lambda: F.epsilon(-0.1), InvalidValueError, "delta"),
        (lambda: F.conjugate(math.nan), InvalidValueError, "slope"),
        (lambda: F.units(T.identity()), InvalidValueError, "unit must not be the identity"),
        (lambda: F.units(0.1), InvalidTypeError, "unit must be a TradeoffFunction"),
        (lambda: F.admits(T.identity()), InvalidValueError, "unit must not be the identity"),
        (lambda: F.residual(F), InvalidValueError, "only a Gaussian"),
        (lambda: T.gaussian(1.0).residual(1.0), InvalidTypeError, "child must be"),
        (lambda: oc.fdp.optimal_composition([]), InvalidTypeError, "d_mids must be a nonempty"),
        (lambda: oc.fdp.optimal_composition([(0.1,)]), InvalidTypeError, r"d_mids\[0\]"),
        (lambda: oc.fdp.optimal_composition([0.1], counts=[0]), InvalidValueError, r"counts\[0\]"),
        (
            lambda: oc.fdp.optimal_composition([0.1], counts=[1, 2]),
            InvalidValueError,
            "counts has 2",
        ),
        (lambda: oc.fdp.optimal_composition([(0.1, 2.0)]), InvalidValueError, r"d_mids\[0\]\[1\]"),
    ],
)
def test_the_error_names_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_is_immutable_cannot_be_set():
    with pytest.raises(AttributeError, match="immutable"):
        F.other = 1


def test_a_comparison_with_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        assert F <= 1.0
    with pytest.raises(TypeError):
        assert F > 1.0
    assert F != 1.0
