"""Launches on blocks: charged to each named block or to none, also from children and threads."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BlockExceededError, InvalidTypeError, ReentrantLaunchError

from ..build import PURE, SPACE, by_tens, costing

KEYS = range(5)


def spawn(d_out=1.0, **options):
    return by_tens(d_out, keys=KEYS, **options)([1, 11, 12, 21, 31])


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
    child = root([0, 3], oc.make_concurrent_odometer(*SPACE, PURE))
    assert losses(root) == [0] * 5
    assert child(costing(0.5)) == 2
    root([3], costing(0.25))
    assert losses(root) == [0.5, 0, 0, 0.75, 0]
    with pytest.raises(BlockExceededError, match="block 3 of the filter refuses"):
        child(costing(0.5))
    assert child.privacy_loss(1) == 0.5
    assert losses(root) == [0.5, 0, 0, 0.75, 0]


# --- the handle ---


@pytest.fixture
def root():
    return by_tens(keys=["a", 1, 2])([1, 11, 12, 21])


STREAM = oc.integer_stream(0, 1), oc.event_presence()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_child_that_takes_updates_is_refused_when_it_is_opened(elsewhere):
    space = dp.user_domain("weeks", lambda data: True), dp.user_distance("people")
    made = oc.m.make_counter(*STREAM, PURE, 1.0)
    before = made([])
    hidden = dp.m.make_user_measurement(
        *space,
        PURE,
        lambda data: before if elsewhere else made([]),
        lambda d_in: 0.5,
        TO="ExtrinsicObject",
    )
    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_entry(), keys=[1])({})
    refusal = "takes updates" if elsewhere else "static data"
    with pytest.raises(InvalidTypeError, match=f"{refusal}.*its charge stays"):
        root([1], hidden)
    assert root.privacy_loss(1) == 0.5  # what a user's function returns is known after it ran
    child = root([1], oc.c.make_interactive(hidden)) if elsewhere else None
    if child is not None:
        with pytest.raises(InvalidTypeError, match="an update is data"):
            child(oc.handles.Update(1))


def test_a_stream_has_no_blocks():
    odometer = oc.make_concurrent_odometer(*STREAM, PURE)
    with pytest.raises(InvalidTypeError, match="is a stream"):
        oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_key(len), keys=[1])


def test_no_mechanism_adds_a_block(root):
    seen = []

    def add(records):
        with pytest.raises(ReentrantLaunchError):
            root.add_blocks(["new"], records)
        seen.append(1)

    measurement = dp.m.make_user_measurement(
        *SPACE, PURE, add, lambda d_in: 0.25, TO="ExtrinsicObject"
    )
    limit = oc.c.make_limited(oc.make_concurrent_odometer(*SPACE, PURE), 1, 0.5, label="ann")
    for handle in (root, root(limit)):
        handle([1], measurement)
    assert len(seen) == 2
    assert "new" not in root


def test_a_launch_has_three_forms(root):
    count = costing(0.25)
    assert root(([1, 2], count)) == root([1, 2], count) == root.invoke([1, 2], count) == 3
    assert root.privacy_loss(1) == 0.75
