"""Launches on blocks: charged to each named block or to none, also from children and threads."""

import gc
import tracemalloc

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BlockExceededError

VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()
KEYS = range(5)


def costing(epsilon, function=len):
    return dp.m.make_user_measurement(
        *VECTOR, PURE, function, lambda d_in: epsilon * d_in, TO="ExtrinsicObject"
    )


def spawn(d_out=1.0, **options):
    odometer = oc.make_concurrent_odometer(*VECTOR, PURE)
    blocks = oc.c.by_key(lambda record: record // 10)
    made = oc.c.make_block_filter(odometer, 1, d_out, blocks=blocks, keys=KEYS, **options)
    return made([1, 11, 12, 21, 31])


def losses(root):
    return [root.privacy_loss(key) for key in KEYS]


def test_one_refusal_charges_no_block_and_runs_nothing():
    root, ran = spawn(), []
    root([2], costing(0.75))
    before = losses(root)
    assert not root.admits([1, 2, 3], costing(0.5))
    with pytest.raises(BlockExceededError) as refused:
        root([1, 2, 3], costing(0.5, ran.append))
    assert (losses(root), ran) == (before, [])
    assert refused.value.block == 2
    assert refused.value.account == ("filter", "block 2")
    assert (refused.value.spent, refused.value.asked, refused.value.remaining) == (0.75, 0.5, 0.25)
    assert root.admits([1, 3], costing(0.5))
    assert losses(root) == before
    root([1, 3], costing(0.5))


def test_an_odometer_below_charges_its_blocks_at_each_launch():
    root = spawn()
    child = root([0, 3], oc.make_concurrent_odometer(*VECTOR, PURE))
    assert losses(root) == [0] * 5
    assert child(costing(0.5)) == 2
    root([3], costing(0.25))
    assert losses(root) == [0.5, 0, 0, 0.75, 0]
    with pytest.raises(BlockExceededError, match="block 3 of the filter refuses"):
        child(costing(0.5))
    assert child.privacy_loss(1) == 0.5
    assert losses(root) == [0.5, 0, 0, 0.75, 0]


def test_many_launches_keep_no_history_of_blocks():
    odometer = oc.make_concurrent_odometer(*VECTOR, PURE)
    made = oc.c.make_block_filter(
        odometer, 1, 1.0, blocks=oc.c.by_key(lambda r: r), keys=range(10**4)
    )
    root, count = made([1]), costing(1e-6)
    for _ in range(5):
        root(range(10**4), count)
    tracemalloc.start()
    try:
        for _ in range(50):
            root(range(10**4), count)
        gc.collect()
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 2**20  # 50 arrays of places are 4 MB
