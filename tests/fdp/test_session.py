"""Both directions of a session."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

T, Session = oc.TradeoffFunction, oc.fdp.Session


def test_the_worse_direction_decides():
    steps = Session.subsampled_gaussian(1.0, 0.01).power(1000)
    assert steps.epsilon(1e-5) == pytest.approx(steps.removed.epsilon(1e-5), rel=1e-6)
    assert steps.removed.epsilon(1e-5) > 1.2 * steps.added.epsilon(1e-5)
    at = np.array([0.0, 1.0])
    both = [np.asarray(one.delta(at)) for one in (steps.removed, steps.added)]
    assert steps.delta(at) == pytest.approx(np.maximum(*both), rel=1e-6)
    assert isinstance(steps.delta(1.0), float)


def test_directions_stay_apart():
    """One direction beside the other one would lose less than the worse of both."""
    one = T.subsampled_gaussian(1.0, 0.1, unit="removed")
    mixed = one.product.times(one.inverse().product)
    worse = Session(one, one.inverse()).power(2)
    assert mixed.epsilon(1e-3, 1e-6).upper < worse.epsilon(1e-3)
    for removed, added in ((one.inverse(), one), (one, one), (T.identity(), one)):
        with pytest.raises(InvalidValueError, match="must bound the direction"):
            Session(removed, added)


def test_a_composition_of_the_worse_direction_in_each_step_is_looser():
    """The profile that is the larger one at each ε belongs to no direction."""
    one = Session.subsampled_laplace(1.0, 0.3)
    at = np.linspace(0.0, 1.0, 200)
    looser = T.from_profile(at, one.delta(at)).power(5)
    assert looser.delta(0.5) > 1.01 * one.power(5).delta(0.5)


def test_symmetric_functions_count_in_both_directions():
    session = Session().compose(
        T.laplace(0.5), T.gaussian(0.3), Session.subsampled_laplace(0.5, 0.1)
    )
    assert session.removed.compose() == T.laplace(0.5).compose(
        T.gaussian(0.3), T.subsampled_laplace(0.5, 0.1, unit="removed")
    )
    assert session.added == session.removed.inverse()
    assert Session().epsilon(0.0) == 0.0


def test_one_direction_alone_is_refused():
    with pytest.raises(InvalidValueError, match=r"others\[1\].*one direction only"):
        Session().compose(T.pure(0.1), T.subsampled_gaussian(1.0, 0.1, unit="removed"))
    with pytest.raises(InvalidTypeError, match=r"others\[0\]"):
        Session().compose(0.5)
    with pytest.raises(InvalidTypeError, match="removed"):
        Session(0.5)


@given(st.floats(0.5, 4.0), st.floats(0.01, 0.9), st.integers(1, 50), st.floats(0.0, 2.0))
@settings(max_examples=6)
def test_more_steps_and_a_larger_rate_lose_more(sigma, rate, count, epsilon):
    few = Session.subsampled_gaussian(sigma, rate).power(count)
    more = Session.subsampled_gaussian(sigma, rate).power(count + 1)
    larger = Session.subsampled_gaussian(sigma, rate * 1.1).power(count)
    low = few.delta_bounds(epsilon).lower
    assert low <= more.delta(epsilon)
    assert low <= larger.delta(epsilon)
