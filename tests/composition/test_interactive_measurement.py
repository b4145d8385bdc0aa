"""How a spawn function becomes a measurement: its map, and what a chain to it keeps."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.interactive import constant_map
from opendp_concurrent.errors import InvalidValueError, PrivacyMapError

PURE = dp.max_divergence()


def test_a_loss_holds_up_to_the_distance_that_it_was_built_for():
    loss = constant_map(dp.symmetric_distance(), 2, 0.5)
    assert [loss(d_in) for d_in in (0, 1, 2)] == [0.5] * 3
    with pytest.raises(InvalidValueError, match=r"^d_in \(3\) must be at most 2"):
        loss(3)


def test_a_distance_that_is_no_number_must_be_the_one_that_it_was_built_for():
    metric = dp.frame_distance(dp.symmetric_distance())
    built_for = [dp.polars.Bound(by=[], per_group=2)]
    loss = constant_map(metric, built_for, 0.5)
    assert loss([dp.polars.Bound(by=[], per_group=2)]) == 0.5
    with pytest.raises(InvalidValueError, match="must be at most"):
        loss([dp.polars.Bound(by=[], per_group=1)])


def test_an_error_of_a_map_inside_says_at_which_distance(space):
    def privacy_map(d_in):
        raise dp.OpenDPException("FailedMap", f"not beyond {d_in}")

    inner = dp.m.make_user_measurement(*space, PURE, len, privacy_map, TO=int)
    with pytest.raises(PrivacyMapError, match="not beyond 3") as raised:
        oc.c.make_interactive(inner).map(3)
    assert raised.value.d_in == 3
