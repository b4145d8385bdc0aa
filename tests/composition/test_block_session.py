"""Launches on some blocks: of compositors, which pay for many launches, and of streams."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BlockExceededError

dp.enable_features("contrib", "honest-but-curious")
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()


def costing(loss):
    return dp.m.make_user_measurement(*VECTOR, PURE, len, lambda d_in: d_in * loss)


def test_a_compositor_is_charged_to_each_named_block_and_runs_on_these_blocks():
    weeks = oc.c.by_key(lambda record: record // 10)
    odometer = oc.make_concurrent_odometer(*VECTOR, PURE)
    root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=weeks, keys=range(4))([1, 11, 12, 21])
    pair = oc.make_concurrent_composition(*VECTOR, PURE, 1, [0.25, 0.25])
    one, other = root([1, 2], pair), root([1], pair)
    assert [root.privacy_loss(key) for key in range(4)] == [0, 1.0, 0.5, 0]
    assert [child(costing(0.25)) for child in (one, other, one, other)] == [3, 2, 3, 2]
    with pytest.raises(BlockExceededError):
        root([2, 1], pair)
