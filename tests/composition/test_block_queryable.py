"""The handle of a block filter: what it accepts, what it says, what it refuses."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    InvalidTypeError,
    InvalidValueError,
    ReentrantLaunchError,
)

dp.enable_features("contrib", "honest-but-curious")
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE = dp.max_divergence()


def costing(epsilon):
    return dp.m.make_user_measurement(
        *VECTOR, PURE, len, lambda d_in: epsilon * d_in, TO="ExtrinsicObject"
    )


@pytest.fixture
def root():
    odometer = oc.make_concurrent_odometer(*VECTOR, PURE)
    blocks = oc.c.by_key(lambda record: record // 10)
    made = oc.c.make_block_filter(odometer, 1, 1.0, blocks=blocks, keys=["a", 1, 2])
    return made([1, 11, 12, 21])


def test_it_says_what_it_is(root):
    assert isinstance(root, oc.handles.BlockFilterQueryable)
    root([1], costing(0.5))
    assert repr(root) == "BlockFilterQueryable(MaxDivergence, 3 blocks, 1 launch, open)"
    assert len(root) == 3
    assert 1 in root
    assert 7 not in root
    with pytest.raises(TypeError):
        iter(root)


def test_a_query_is_also_a_pair(root):
    assert root(([1, 2], costing(0.25))) == root([1, 2], costing(0.25)) == 3
    assert root.invoke([1, 2], costing(0.25)) == 3
    assert root.privacy_loss(1) == 0.75


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


def test_unknown_blocks_have_no_loss(root):
    for ask in (root.privacy_loss, root.remaining):
        with pytest.raises(InvalidValueError, match="'z'"):
            ask("z")
        with pytest.raises(InvalidTypeError, match="hashable"):
            ask([])


def test_no_mechanism_adds_a_block(root):
    seen = []

    def add(records):
        with pytest.raises(ReentrantLaunchError):
            root.add_blocks(["new"], records)
        seen.append(1)

    measurement = dp.m.make_user_measurement(
        *VECTOR, PURE, add, lambda d_in: 0.25, TO="ExtrinsicObject"
    )
    limit = oc.c.make_limited(oc.make_concurrent_odometer(*VECTOR, PURE), 1, 0.5, label="ann")
    for handle in (root, root(limit)):
        handle([1], measurement)
    assert len(seen) == 2
    assert "new" not in root
