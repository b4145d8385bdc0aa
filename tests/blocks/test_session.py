"""Prepaid launches on blocks: as many as without, each a charge on all of the named blocks."""

import os

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.blocks.totals import OnKeys
from opendp_concurrent.errors import (
    BlockExceededError,
    ForkedError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    LedgerError,
    PrepaidPriceError,
    PrepaidUsedError,
    SpaceMismatchError,
)
from opendp_concurrent.ledger import create_ledger, open_ledger

dp.enable_features("contrib", "honest-but-curious")
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
PURE, APPROXIMATE = dp.max_divergence(), dp.approximate(dp.max_divergence())
KEYS = range(4)


def costing(loss, function=len, measure=PURE):
    def privacy_map(d_in):
        return tuple(d_in * one for one in loss) if isinstance(loss, tuple) else d_in * loss

    return dp.m.make_user_measurement(*VECTOR, measure, function, privacy_map, TO="ExtrinsicObject")


def spawn(d_out=1.0, measure=PURE, accumulator=None, **options):
    odometer = oc.make_concurrent_odometer(*VECTOR, measure, accumulator=accumulator)
    weeks = oc.c.by_key(lambda record: record // 10)
    made = oc.c.make_block_filter(odometer, 1, d_out, blocks=weeks, keys=KEYS, **options)
    return made([1, 11, 12, 21])


def losses(root):
    return [root.privacy_loss(key) for key in KEYS]


def until_refused(launch):
    for count in range(2000):
        try:
            launch()
        except BlockExceededError as refusal:
            return count, refusal
    raise AssertionError("nothing was refused")


def test_all_are_charged_to_each_named_block_and_run_on_these_blocks():
    root = spawn()
    with root.prepaid([1, 2, 1], costing(0.25), 3) as paid:
        assert losses(root) == [0, 0.75, 0.75, 0]
        assert [paid(costing(loss, sum)) for loss in (0.25, 0.125)] == [44, 44]
        assert (paid.paid, paid.unspent) == (3, 1)
    assert losses(root) == [0, 0.75, 0.75, 0]
    with pytest.raises(PrepaidUsedError):
        paid(costing(0.25))
    assert root.prepaid([0], 0.5, 1)(costing(0.5)) == 1


def test_a_refusal_names_the_block_and_charges_none():
    root, ran = spawn(), []
    root([2], costing(0.75))
    before = losses(root)
    with pytest.raises(BlockExceededError, match="asked 0.125 for each of 3 launches") as refused:
        root.prepaid([1, 2, 3], costing(0.125), 3)
    assert (refused.value.block, refused.value.launches) == (2, 3)
    assert losses(root) == before
    paid = root.prepaid([1], costing(0.125), 1)
    with pytest.raises(PrepaidPriceError):
        paid(costing(0.25, ran.append))
    assert (paid.unspent, ran) == (1, [])


@pytest.mark.parametrize(
    ("blocks", "price", "count", "error", "words"),
    [
        ([7], costing(0.25), 1, InvalidValueError, "blocks (7) is not a block"),
        ([], costing(0.25), 1, InvalidValueError, "at least one block"),
        ("ab", costing(0.25), 1, InvalidTypeError, "pass a list"),
        ([1], costing(0.25), 0, InvalidValueError, "count"),
        ([1], costing(0.25), 10**7, InvalidValueError, "count"),
        ([1], -0.5, 1, InvalidValueError, "price"),
        ([1], "cheap", 1, InvalidTypeError, "price"),
        ([1], costing((0.1, 0.0), measure=APPROXIMATE), 1, SpaceMismatchError, "output_measure"),
        ([1], oc.make_concurrent_odometer(*VECTOR, PURE), 1, InvalidTypeError, "price"),
    ],
)
def test_what_cannot_be_prepaid_is_refused_and_charges_nothing(blocks, price, count, error, words):
    root = spawn()
    for ask in (root.prepaid, root.leased):
        with pytest.raises(error) as refused:
            ask(blocks, price, count)
        assert words in str(refused.value).replace("size", "count")
    assert losses(root) == [0] * 4


@pytest.mark.parametrize("size", [1, 7, 60])
def test_as_many_are_admitted_as_without(size):
    rule = oc.accumulators.best_rule((1.0, 1e-6), typical=[(0.01, 0.0)])
    root = spawn((1.0, 1e-6), APPROXIMATE, rule)
    query = costing((0.01, 0.0), measure=APPROXIMATE)
    for _ in range(20):
        root([0], query)
    worker = root.leased([0, 1], query, size)
    found, refused = until_refused(lambda: worker(query))
    assert (found, worker.paid, worker.unspent, refused.block) == (470, 470, 0, 0)
    alone = root.leased([1], query, 11)
    assert until_refused(lambda: alone(query))[0] == 20


def test_children_of_prepaid_launches_are_interleaved_and_odometers_are_refused():
    root = spawn()
    pair = oc.make_concurrent_composition(*VECTOR, PURE, 1, [0.25, 0.25])
    paid = root.prepaid([1], pair, 2)
    one, other = paid(pair), paid(pair)
    assert [child(costing(0.25)) for child in (one, other, one, other)] == [2] * 4
    assert losses(root) == [0, 1, 0, 0]
    with pytest.raises(InvalidTypeError, match="charged by itself"):
        root.prepaid([0], costing(0.5), 1)(oc.make_concurrent_odometer(*VECTOR, PURE))


def test_a_prepaid_child_that_takes_updates_is_refused():
    stream = oc.integer_stream(0, 1), oc.event_presence()
    space = dp.user_domain("weeks", lambda data: True), dp.user_distance("people")
    before = oc.m.make_counter(*stream, PURE, 1.0)([])
    hidden = dp.m.make_user_measurement(
        *space, PURE, lambda data: before, lambda d_in: 0.5, TO="ExtrinsicObject"
    )
    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_entry(), keys=[1])({})
    with pytest.raises(InvalidTypeError, match="takes updates"):
        root.prepaid([1], hidden, 2)(hidden)


def test_below_approximate_zcdp_a_prepaid_launch_closes_the_older_children():
    measure = dp.approximate(dp.zero_concentrated_divergence())
    root = spawn((1.0, 1e-6), measure)
    pair = oc.make_concurrent_composition(*VECTOR, measure, 1, [(0.125, 1e-8)] * 2)
    noise = costing((0.125, 1e-8), measure=measure)
    older = root([0], pair)
    paid = root.prepaid([1], pair, 2)
    assert older(noise) == 1
    newer = paid(pair)
    with pytest.raises(oc.errors.ClosedChildError):
        older(noise)
    assert newer(noise) == 2


def test_a_halted_filter_refuses_what_was_prepaid():
    root = spawn(halt=True)
    paid = root.prepaid([0], costing(0.25), 2)
    with pytest.raises(BlockExceededError):
        root.prepaid([1], costing(0.25), 5)
    with pytest.raises(HaltedError):
        paid(costing(0.25))
    assert paid.unspent == 2


def test_blocks_that_are_added_later_do_not_join_what_was_prepaid():
    root = spawn()
    paid = root.prepaid([1], costing(0.25), 2)
    root.add_blocks([11, 12], [112, 120, 121])
    assert paid(costing(0.25)) == 2
    assert root.prepaid([1, 12], costing(0.25), 1)(costing(0.25)) == 4
    assert [root.privacy_loss(key) for key in (1, 11, 12)] == [0.75, 0, 0.25]


def test_in_a_ledger_each_is_a_charge_on_its_blocks_and_sends_no_message_later(tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, "visits") as kept:
        root = spawn(ledger=kept)
        paid = root.prepaid([1, 2], costing(0.125), 3)
        with pytest.raises(BlockExceededError, match="block 2 of the filter of ledger 'visits'"):
            root.prepaid([3, 2], costing(0.125), 6)
        summary, entries = kept.read()
        assert [one.d_mid for one in entries] == [OnKeys((1, 2), 0.125)] * 3
        assert [one.mechanism.startswith("prepaid: ") for one in entries] == [True] * 3
        assert summary.spent.of(2).loss == 0.375
    assert [paid(costing(0.125)) for _ in range(3)] == [3] * 3  # the ledger is closed
    with pytest.raises(LedgerError):
        root([1], costing(0.125))
    with open_ledger(path, "visits") as kept:
        root = spawn(ledger=kept)
        worker = root.leased([2, 3], costing(0.125), 4)
        assert until_refused(lambda: worker(costing(0.125)))[0] == 5
        assert losses(root) == [0, 0.375, 1.0, 0.625]


def test_a_forked_process_can_neither_prepay_nor_launch_what_was_prepaid():
    root = spawn()
    paid = root.prepaid([1], costing(0.25), 2)
    pid = os.fork()
    if pid == 0:
        refused = 0
        for ask in (lambda: paid(costing(0.25)), lambda: root.leased([1], costing(0.25))):
            try:
                ask()
            except ForkedError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
