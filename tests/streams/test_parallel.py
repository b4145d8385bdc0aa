"""One stream cut into parts, for pure DP."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3


def parity(item):
    return item % 2


def space_of(metric=oc.event_presence):
    return oc.integer_stream(0, 9), metric()


def counters(space, scales=(TINY, TINY), **options):
    return {
        part: oc.m.make_counter(*space, PURE, one, **options) for part, one in enumerate(scales)
    }


@pytest.mark.parametrize("metric", [oc.event_presence, oc.event_change])
def test_the_loss_is_that_of_the_parts_touched(metric):
    """Scales 36 and 18 for items up to 9: 0.25 and 0.5 for an event, which is two if changed."""
    space = space_of(metric)
    parallel = oc.c.make_parallel_continual(*space, parity, counters(space, (36.0, 18.0)))
    factor = 1 if metric is oc.event_presence else 2  # both may be in part 1, before and after
    for d_in in (0, 1, 2, 3):
        assert parallel.map(d_in) == pytest.approx(0.5 * factor * d_in)


@pytest.mark.parametrize("send", ["steps", "batch", "array"])
def test_an_update_reaches_its_part_and_the_others_go_on(send):
    space = space_of()
    measurements = counters(space)
    measurements["never"] = oc.m.make_window_counter(*space, PURE, TINY, 3)
    measurements[1] = oc.m.make_window_counter(*space, PURE, TINY, 3)
    handle = oc.c.make_parallel_continual(*space, parity, measurements)([])
    even, odd, never = (handle(part) for part in (0, 1, "never"))
    stream = [3, 2, 5, 4, 6]
    if send == "steps":
        for item in stream:
            handle.update(item)
    else:
        handle.update_all(np.array(stream) if send == "array" else stream)
    assert (even(None), odd(None), never(None)) == (12, 5, 0)  # of the last three, one is odd
    handle.update(None)
    handle.update_all([None, 8])
    assert (even(None), odd(None), never(None)) == (20, 0, 0)


def test_parts_are_asked_only():
    space = space_of()
    handle = oc.c.make_parallel_continual(*space, parity, counters(space))([])
    part = handle(0)
    with pytest.raises(InvalidTypeError, match="the parent's stream"):
        part(oc.handles.Update(2))
    handle.update(2)
    assert part(None) == handle(0)(None) == 2
    for unknown in (5, "x", None, [1], parity):
        with pytest.raises(InvalidValueError, match="^the part must be one of"):
            handle(unknown)


@pytest.mark.parametrize(
    "measure",
    [lambda: ZCDP, lambda: dp.approximate(PURE), oc.gaussian_tradeoff, dp.renyi_divergence],
)
def test_other_measures_are_refused_with_a_citation(measure):
    space = space_of()
    one = oc.m.make_counter(*space, measure(), 10.0)
    with pytest.raises(UnsupportedMeasureError, match=r"HSV25.*compose them instead"):
        oc.c.make_parallel_continual(*space, parity, {0: one})


def test_what_takes_no_updates_is_no_part():
    space = space_of()
    release = dp.m.make_user_measurement(*space, PURE, lambda data: 7, lambda d_in: 0.0, TO=int)
    with pytest.raises(InvalidTypeError, match=r"^measurements\[0\]"):
        oc.c.make_parallel_continual(*space, parity, {0: release})([])


def test_parts_are_those_that_were_priced():
    space, pure = (oc.integer_stream(0, 9), oc.event_presence()), dp.max_divergence()
    kept, noisy = (
        oc.m.make_counter(*space, pure, scale=scale, horizon=10) for scale in (1e-9, 1e9)
    )
    measurements = {0: noisy, 1: noisy}
    parts = oc.c.make_parallel_continual(*space, lambda item: item % 2, measurements)
    measurements[0] = kept
    queryable = parts([])
    queryable.update_all([2] * 10)
    assert queryable(0)(None) != 20  # but for once in 10^9
    assert parts.map(1) < 1e-6
