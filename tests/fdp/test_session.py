"""Both directions of a session."""

import numpy as np
import pytest

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
