"""What a session of launches is asked, and what it refuses."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


@pytest.mark.parametrize("asked", ["privacy_loss", "loss_after"])
def test_a_distance_is_a_number_that_is_no_truth_value(space, asked):
    root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2])
    assert root.privacy_loss(1) == 0.0
    ask = root.privacy_loss if asked == "privacy_loss" else lambda d_in: root.loss_after([], d_in)
    with pytest.raises(InvalidTypeError, match="found bool"):
        ask(True)
    with pytest.raises(InvalidValueError, match="d_in"):
        ask(-1)


def test_an_odometer_is_invoked_as_it_is_called(space):
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    assert odometer.invoke([1, 2]).privacy_loss(1) == 0.0


@pytest.mark.parametrize("d_in", ["one", -1, 1.5, None, [1]])
def test_a_distance_that_a_native_child_cannot_use_is_named(space, d_in):
    pure = dp.max_divergence()
    native = dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*space, pure), 1, 1.0)
    child = oc.make_concurrent_odometer(*space, pure)([1, 2])(native)
    with pytest.raises(InvalidTypeError, match=r"d_in \(.*\) cannot be used by the native child"):
        child.privacy_loss(d_in)
    assert child.privacy_loss(1) == 0.0
