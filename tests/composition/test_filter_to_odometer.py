"""From a filter back to its odometer."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError

APPROXIMATE = dp.approximate(dp.max_divergence())


def launch_of(space, epsilon, delta=0.0):
    return dp.m.make_user_measurement(
        *space, APPROXIMATE, len, lambda d_in: (epsilon * d_in, delta * d_in)
    )


def test_a_filter_tells_its_odometer(space):
    odometer = oc.make_concurrent_odometer(
        *space, APPROXIMATE, accumulator=oc.accumulators.zcdp(1e-7)
    )
    limit = oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))
    assert oc.c.make_filter_to_odometer(limit) is odometer
    twice = dp.t.make_user_transformation(*space, *space, lambda rows: rows * 2, lambda d: 2 * d)
    chained = oc.c.make_filter_to_odometer(twice >> limit)
    root = chained([1, 2, 3])
    assert root(launch_of(space, 0.01)) == 6
    assert root.privacy_loss(1) == oc.accumulators.zcdp(1e-7).start(None).after((0.02, 0.0)).loss
    for other in (
        oc.make_concurrent_composition(*space, APPROXIMATE, 1, [(1.0, 0.0)]),
        dp.c.make_privacy_filter(
            dp.c.make_fully_adaptive_composition(*space, APPROXIMATE), 1, (1.0, 1e-6)
        ),
        odometer,
        3,
    ):
        with pytest.raises(InvalidTypeError, match=r"(?s)^measurement \(.*must be made by"):
            oc.c.make_filter_to_odometer(other)
