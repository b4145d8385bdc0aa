"""Measurements in a few words."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.queryables.named_queries import describe


def test_a_chain_is_told_from_its_first_part_to_its_last(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert describe(count) == "count >> laplace(scale=2.0)"


def test_a_handle_counts_its_launches(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2])
    assert "0 launches" in repr(root)
    root(count)
    assert "1 launch" in repr(root)
    assert "launches" not in repr(root)
    root(count)
    assert "2 launches" in repr(root)


def test_an_odometer_has_no_d_in_to_leave_out():
    """Under a user's metric None would be a distance, and later launches would be read there."""
    space = dp.user_domain("own", lambda _: True), dp.user_distance("own")
    root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1])
    for read in (root.privacy_loss, root.risk, lambda: root.loss_after([])):
        with pytest.raises(InvalidTypeError, match="d_in"):
            read()
    root(dp.m.make_user_measurement(*space, dp.max_divergence(), lambda _: 1, lambda d: d / 2))
    assert root.privacy_loss(1) == 0.5
