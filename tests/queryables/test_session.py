"""What a session of launches is asked, and what it refuses."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError


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


@pytest.mark.parametrize("then", [lambda: dp.m.then_laplace(scale=1.0), dp.t.then_count])
def test_a_then_constructor_that_is_not_chained_is_told_apart(space, then):
    root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2])
    for launch in (root, oc.c.make_interactive, lambda one: root.loss_after([one], 1)):
        with pytest.raises(InvalidTypeError, match="chain it: input_space >> then_"):
            launch(then())
    assert root.privacy_loss(1) == 0.0


def test_what_is_shown_is_rounded_and_what_is_asked_is_exact(space):
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    root = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 2])
    root(space >> dp.t.then_count() >> dp.m.then_laplace(scale=3.0))
    assert root.privacy_loss() > 1 / 3
    assert "spent 0.333333 of 1 at d_in=1" in repr(root)
    pairs = oc.make_concurrent_odometer(*space, dp.approximate(dp.max_divergence()))
    assert "of (1, 1e-07) at" in repr(oc.make_concurrent_filter(pairs, 1, (1.0, 1e-7))([1]))
