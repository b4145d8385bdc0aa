"""Budgets of blocks in a ledger: charged on all blocks or none, shared, found again, audited."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, LedgerMismatchError
from opendp_concurrent.ledger import create_ledger, open_ledger

from ..build import PURE, SPACE, costing

KEYS = ["W1", "W2", ("W", 3), 4]


def spawn(kept, keys=KEYS, d_out=1.0, accumulator=None, measure=PURE):
    odometer = oc.make_concurrent_odometer(*SPACE, measure, accumulator=accumulator)
    blocks = oc.c.by_key(lambda record: KEYS[record // 10])
    return oc.c.make_block_filter(odometer, 1, d_out, blocks=blocks, keys=keys, ledger=kept)(
        [1, 11]
    )


def losses(root):
    return [root.privacy_loss(key) for key in KEYS if key in root]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_a_key_that_no_process_could_read_again_is_refused(path):
    """Python refuses to read integers of more than 4300 digits."""
    most, more = 10**4300 - 1, -(10**4300)
    blocks = oc.c.by_values({most: [1], more: [2]})
    with create_ledger(path, "visits") as kept:
        odometer = oc.make_concurrent_odometer(*SPACE, PURE)
        root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=blocks, ledger=kept)([1, 2])
        with pytest.raises(InvalidTypeError, match="more than 4300 digits"):
            root([more], costing(0.5))
        assert kept.summary().launches == root.privacy_loss(more) == 0
        root([most], costing(0.5))
    with open_ledger(path, "visits") as kept:
        root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=blocks, ledger=kept)([1, 2])
        assert (root.privacy_loss(most), root.privacy_loss(more)) == (0.5, 0.0)


def test_a_launch_that_cannot_be_written_is_charged_to_no_block(path):
    with create_ledger(path, "visits") as kept:
        root, ran = spawn(kept), []
        root.add_blocks([1.5, b"bytes"])
        root([1.5], costing(0.25))
        with pytest.raises(InvalidTypeError, match="cannot be kept in a ledger"):
            root(["W1", b"bytes"], costing(0.25, ran.append))
        assert (root.privacy_loss("W1"), ran) == (0.0, [])
        root(["W1"], costing(1.0))
    with pytest.raises(oc.errors.LedgerError):
        root(["W2"], costing(0.25, ran.append))
    assert ran == []


def test_other_terms_are_refused(path):
    with create_ledger(path, "visits") as kept:
        spawn(kept)
        with pytest.raises(LedgerMismatchError):
            spawn(kept, d_out=2.0)
        odometer = oc.make_concurrent_odometer(*SPACE, PURE)
        with pytest.raises(LedgerMismatchError):
            oc.make_concurrent_filter(odometer, 1, 1.0, ledger=kept)
        with pytest.raises(InvalidValueError, match="halt"):
            oc.c.make_block_filter(
                odometer, 1, 1.0, blocks=oc.c.by_key(len), halt=True, ledger=kept
            )
        with pytest.raises(InvalidTypeError, match="block filter"):
            kept.to_dp_events()


def test_shared_accumulators_are_replayed(path):
    measure, accumulator = dp.approximate(PURE), oc.accumulators.advanced(delta_slack=5e-7)
    launch = dp.m.make_user_measurement(
        *SPACE, measure, len, lambda d_in: (0.05 * d_in, 0.0), TO="ExtrinsicObject"
    )
    with create_ledger(path, "visits") as kept:
        root = spawn(kept, d_out=(1.0, 1e-6), accumulator=accumulator, measure=measure)
        for _ in range(5):
            root(["W1", "W2"], launch)
        before = losses(root)
    with open_ledger(path, "visits") as kept:
        root = spawn(kept, d_out=(1.0, 1e-6), accumulator=accumulator, measure=measure)
        assert losses(root) == before
        assert before[0][0] > 0.2
