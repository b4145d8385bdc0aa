"""Launches on blocks, also in limits: charged to each block, in each ancestor, or to none."""

import multiprocessing
import random
from collections import Counter
from contextlib import ExitStack
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.composition.block_totals import OnKeys
from opendp_concurrent.errors import (
    BlockExceededError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    LedgerMismatchError,
    LimitMismatchError,
    ReentrantLaunchError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.ledger import create_ledger, open_ledger

from ..build import APPROXIMATE, PURE, SPACE, ZCDP, by_tens, costing, in_threads

KEYS = range(4)


def spawn(*arguments, **options):
    return by_tens(*arguments, **options)([1, 11, 12, 21])


def limit(handle, label, d_out=0.5, d_in=1, space=SPACE, measure=PURE, accumulator=None, **more):
    odometer = oc.make_concurrent_odometer(*space, measure, accumulator=accumulator)
    return handle(oc.c.make_limited(odometer, d_in, d_out, label=label, **more))


def losses(root):
    return [root.privacy_loss(key) for key in KEYS]


def test_whoever_refuses_is_named_and_nobody_is_charged():
    root, ran = spawn(), []
    ann, bob = limit(root, "ann"), limit(root, "bob", 3.0)
    ann([2], costing(0.5))
    before = [losses(one) for one in (root, ann, bob)]
    with pytest.raises(
        BlockExceededError, match="^block 2 of limit 'ann' of the filter"
    ) as refused:
        ann([1, 2], costing(0.25, ran.append))
    assert refused.value.account == ("filter", "limit 'ann'", "block 2")
    assert not root.admits([1, 2, 3], costing(0.75))
    assert (refused.value.spent, refused.value.remaining, refused.value.d_out) == (0.5, 0, 0.5)
    with pytest.raises(BlockExceededError, match="^block 2 of the filter refuses") as refused:
        bob([1, 2], costing(0.75, ran.append))
    assert (refused.value.block, refused.value.account) == (2, ("filter", "block 2"))
    assert [one.admits([2], costing(0.25)) for one in (root, ann, bob)] == [True, False, True]
    assert ann.describe([1], costing(0.75)).refusal.account[1] == "limit 'ann'"
    assert ([losses(one) for one in (root, ann, bob)], ran) == (before, [])


def test_a_label_is_one_limit_with_one_bound():
    root = spawn()
    ann = limit(root, "ann")
    assert limit(root, "ann") is ann
    assert limit(limit(root, "bob"), "ann") is not ann
    with pytest.raises(LimitMismatchError, match="d_out of the limit 'ann' does not match"):
        limit(root, "ann", 0.25)
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    with pytest.raises(InvalidValueError, match="odometer has another postprocessors"):
        root(oc.c.make_limited(odometer, 1, 0.5, label="ann") >> str)
    chained = dp.t.make_identity(*SPACE) >> odometer
    with pytest.raises(InvalidValueError, match="odometer has another transformation"):
        root(oc.c.make_limited(chained, 1, 0.5, label="ann"))
    with pytest.raises(InvalidTypeError, match="no transformation"):
        root(oc.c.make_limited(chained, 1, 0.5, label="new"))


@pytest.mark.parametrize(
    ("measure", "metric", "d_in", "d_out", "share"),
    [
        (PURE, dp.symmetric_distance(), 2, 1.0, 0.5),
        (PURE, dp.change_one_distance(), 1, 1.0, 0.5),
        (PURE, dp.change_one_distance(), 2, 1.0, 0.25),
        (ZCDP, dp.symmetric_distance(), 2, 1.0, 0.25),
        (oc.gaussian_tradeoff(), dp.hamming_distance(), 1, 1.0, 0.5),
    ],
)
def test_the_bound_holds_for_neighbours_at_its_own_distance(measure, metric, d_in, d_out, share):
    space = dp.vector_domain(dp.atom_domain(T=int), size=4), metric
    if metric == dp.symmetric_distance():
        space = SPACE
    root = spawn(8.0, measure, space=space)
    ann = limit(root, "ann", d_out, d_in, space, measure)
    assert ann.remaining(1) == share
    if metric != dp.symmetric_distance():
        with pytest.raises(SpaceMismatchError):
            limit(root, "bob", d_out, d_in, SPACE, measure)


def test_what_bounds_nothing_or_is_not_proven_is_refused():
    root = spawn()
    for d_in, error in ((0, InvalidValueError), (1.5, InvalidTypeError), (300, InvalidValueError)):
        with pytest.raises(error, match="d_in|apart"):
            limit(root, "ann", 0.5, d_in)
    order = oc.fixed_renyi_divergence(alpha=4.0)
    with pytest.raises(UnsupportedMeasureError, match="2 steps apart"):
        limit(spawn(1.0, order), "ann", 0.5, 2, measure=order)
    with pytest.raises(SpaceMismatchError, match="output_measure"):
        limit(root, "ann", measure=ZCDP)
    with pytest.raises(InvalidTypeError, match="^the query is an odometer without blocks"):
        root(oc.make_concurrent_odometer(*SPACE, PURE))
    with pytest.raises(InvalidTypeError, match="must be blocks and a measurement"):
        root(dp.c.make_fully_adaptive_composition(*SPACE, PURE))
    made = oc.c.make_limited(oc.make_concurrent_odometer(*SPACE, PURE), 1, 0.5, label="ann")
    for ask in (root, root.describe):
        with pytest.raises(InvalidTypeError, match=r"^measurement is a limit: .*root\(limit\)"):
            ask([1], made)
    assert limit(root, "ann")([1], costing(0.5)) == 2


def test_blocks_that_are_added_later_are_in_the_limit_too():
    root = spawn()
    ann = limit(root, "ann")
    with pytest.raises(InvalidTypeError, match="on the handle of the block filter"):
        ann.add_blocks([9])
    root.add_blocks([9], [91, 92])
    assert (ann([9, 1], costing(0.25)), ann.remaining(9), len(ann)) == (4, 0.25, 5)


def test_only_the_filter_that_halts_closes_everything():
    root = spawn(halt=True)
    ann, bob = limit(root, "ann"), limit(root, "bob", 9.0)
    with pytest.raises(BlockExceededError, match="limit 'ann'"):
        ann([1], costing(0.75))
    assert ann([1], costing(0.5)) == 2
    with pytest.raises(BlockExceededError, match="block 1 of the filter"):
        bob([1], costing(0.75))
    for ask in (lambda: ann([2], costing(0.25)), lambda: limit(root, "new")):
        with pytest.raises(HaltedError):
            ask()


def test_threads_never_exceed_a_limit_together():
    root, admitted = spawn(4.0), []
    handles = [limit(root, name) for name in ("ann", "bob", "ann", "bob")]

    def launch(number):
        for turn in range(30):
            key = (number + turn) % 4
            try:
                handles[number]([key, (key + 1) % 4], costing(0.0625))
            except BlockExceededError:
                continue
            admitted.extend((number % 2, one) for one in (key, (key + 1) % 4))

    in_threads(launch, range(4))
    for number, one in enumerate(handles[:2]):
        counts = [admitted.count((number, key)) for key in KEYS]
        assert losses(one) == [count / 16 for count in counts]
        assert max(counts) == 8


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_random_launches_agree_with_fractions(tmp_path, kept, seed):
    """Handles of a tree of limits, on random blocks, launched and reopened."""
    chance = random.Random(seed)
    bounds = {(): 1.0, ("team",): 0.7, ("team", "ann"): 0.3, ("bob",): 0.6}
    spent = {(path, key): Fraction() for path in bounds for key in KEYS}
    path_of_file, admitted = tmp_path / "budget.db", 0

    def opened(stack):
        options = {}
        if kept:
            make = open_ledger if path_of_file.exists() else create_ledger
            options["ledger"] = stack.enter_context(make(path_of_file, "visits"))
        found = {(): spawn(keys=chance.sample(KEYS, 4), **options)}
        for path in list(bounds)[1:]:
            found[path] = limit(found[path[:-1]], path[-1], bounds[path])
        return found

    for _ in range(4):
        with ExitStack() as stack:
            handles = opened(stack)
            for _ in range(25):
                path = chance.choice(list(bounds))
                keys = chance.sample(KEYS, chance.randint(1, 3))
                loss = chance.choice([0.1, 0.03, 1 / 3, 1e-9, 0.2])
                above = [(path[:depth], key) for depth in range(len(path) + 1) for key in keys]
                fits = all(spent[one] + Fraction(loss) <= Fraction(bounds[one[0]]) for one in above)
                try:
                    handles[path](keys, costing(loss))
                except BlockExceededError:
                    assert not fits
                else:
                    assert fits
                    admitted += 1
                    for one in above:
                        spent[one] += Fraction(loss)
        if not kept:
            for one in spent:
                spent[one] = Fraction()
        else:
            with ExitStack() as stack:
                handles = opened(stack)
                for path, key in spent:
                    told = handles[path].privacy_loss(key)
                    assert 0 <= Fraction(told) - spent[path, key] <= Fraction(1, 2**52)
    assert admitted > 20


def test_in_a_ledger_one_row_charges_all_and_a_later_process_finds_all(tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, "visits") as kept:
        root = spawn(ledger=kept)
        team = limit(root, "team", 0.75)
        ann = limit(team, "ann")
        ann([1, 2], costing(0.25))
        for _ in range(2):
            ann([3, 2], costing(0.125))
        team([1], costing(0.125))
        root([0], costing(0.5))
        summary, entries = kept.read()
        assert [one.d_mid for one in entries] == [
            OnKeys((1, 2), 0.25),
            *[OnKeys((2, 3), 0.125)] * 2,
            OnKeys((1,), 0.125),
            OnKeys((0,), 0.5),
        ]
        assert [one.limit for one in entries] == [("team", "ann")] * 3 + [("team",), ()]
        assert [(one.path, one.launches) for one in summary.limits] == [
            (("team",), 4),
            (("team", "ann"), 3),
        ]
        assert [one.spent.of(2).loss for one in summary.limits] == [0.5, 0.5]
    with open_ledger(path, "visits") as kept, open_ledger(path, "visits") as other:
        root, second = spawn(keys=[3, 1], ledger=kept), spawn(keys=[2, 1, 0, 3], ledger=other)
        one, two = limit(limit(root, "team", 0.75), "ann"), limit(second, "team", 0.75)
        assert [one.privacy_loss(3), two.privacy_loss(1)] == [0.25, 0.375]
        two([3], costing(0.5))
        with pytest.raises(
            BlockExceededError, match="^block 3 of limit 'team' of the filter of ledger 'visits'"
        ):
            one([3], costing(0.125))
        for same in (limit(two, "ann"), one):
            same([1], costing(0.125))
        assert [limit(two, "ann").privacy_loss(1), losses(second)] == [0.5, [0.5, 0.625, 0.5, 0.75]]
        for bad in ({"d_out": 0.5}, {"accumulator": None, "d_in": 2, "d_out": 0.75}):
            with pytest.raises(LimitMismatchError, match="'team'"):
                limit(spawn(ledger=kept), "team", **bad)
        child = root([1], oc.make_concurrent_odometer(*SPACE, PURE))
        with pytest.raises(InvalidTypeError, match="opened on the handle with the ledger"):
            limit(child, "ann")
    with pytest.raises(oc.errors.LedgerError):
        one([1], costing(0.0625))


def work(path, number):
    """What one process admits to two limits."""
    with open_ledger(path, "visits") as kept:
        root = spawn(ledger=kept)
        handles, admitted = [limit(root, "ann"), limit(root, "bob", 0.75)], Counter()
        for turn in range(40):
            which, keys = turn % 2, [(number + turn) % 4, (number + turn + 1) % 4]
            try:
                handles[which](keys, costing(2.0**-6))
            except BlockExceededError:
                continue
            admitted.update((which, key) for key in keys)
        return admitted


@pytest.mark.slow
def test_processes_never_exceed_a_limit_together(tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, "visits") as kept:
        spawn(ledger=kept)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        counts = sum(pool.starmap(work, [(path, number) for number in range(8)]), Counter())
    with open_ledger(path, "visits") as kept:
        root = spawn(ledger=kept)
        handles = [limit(root, "ann"), limit(root, "bob", 0.75)]
        for which, one in enumerate(handles):
            assert losses(one) == [counts[which, key] / 64 for key in KEYS]
        assert losses(root) == [(counts[0, key] + counts[1, key]) / 64 for key in KEYS]
    assert max(counts[0, key] for key in KEYS) == 32  # to the last share
    assert max(counts[0, key] + counts[1, key] for key in KEYS) == 64


# --- launches, also of children ---


def test_an_odometer_below_charges_its_blocks_at_each_launch():
    root = spawn()
    child = root([0, 3], oc.make_concurrent_odometer(*SPACE, PURE))
    assert losses(root) == [0] * 4
    assert child(costing(0.5)) == 1
    root([3], costing(0.25))
    assert losses(root) == [0.5, 0, 0, 0.75]
    with pytest.raises(BlockExceededError, match="block 3 of the filter refuses"):
        child(costing(0.5))
    assert child.privacy_loss(1) == 0.5
    assert losses(root) == [0.5, 0, 0, 0.75]


STREAM = oc.integer_stream(0, 1), oc.event_presence()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_child_that_takes_updates_is_refused_when_it_is_opened(elsewhere):
    space = dp.user_domain("weeks", lambda data: True), dp.user_distance("people")
    made = oc.m.make_counter(*STREAM, PURE, 1.0)
    before = made([])
    hidden = costing(0.5, lambda data: before if elsewhere else made([]), space=space)
    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_entry(), keys=[1])({})
    refusal = "takes updates" if elsewhere else "static data"
    with pytest.raises(InvalidTypeError, match=f"{refusal}.*its charge stays"):
        root([1], hidden)
    assert root.privacy_loss(1) == 0.5  # what a user's function returns is known after it ran
    if elsewhere:
        child = root([1], oc.c.make_interactive(hidden))
        with pytest.raises(InvalidTypeError, match="an update is data"):
            child(oc.handles.Update(1))


def test_a_stream_has_no_blocks():
    odometer = oc.make_concurrent_odometer(*STREAM, PURE)
    with pytest.raises(InvalidTypeError, match="is a stream"):
        oc.c.make_block_filter(odometer, 1, 1.0, blocks=oc.c.by_key(len), keys=[1])


def test_no_mechanism_adds_a_block():
    root, seen = spawn(), []

    def add(records):
        with pytest.raises(ReentrantLaunchError):
            root.add_blocks(["new"], records)
        seen.append(1)

    for handle in (root, limit(root, "ann")):
        handle([1], costing(0.25, add))
    assert len(seen) == 2
    assert "new" not in root


def test_a_launch_has_three_forms():
    root, count = spawn(), costing(0.25)
    assert root(([1, 2], count)) == root([1, 2], count) == root.invoke([1, 2], count) == 3
    assert root.privacy_loss(1) == 0.75


# --- what a ledger keeps ---


def test_a_key_that_no_process_could_read_again_is_refused(tmp_path):
    """Python refuses to read integers of more than 4300 digits."""
    path = tmp_path / "budget.db"
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


def test_a_launch_that_cannot_be_written_is_charged_to_no_block(tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, "visits") as kept:
        root, ran = spawn(ledger=kept), []
        root.add_blocks([1.5, b"bytes"])
        root([1.5], costing(0.25))
        with pytest.raises(InvalidTypeError, match="cannot be kept in a ledger"):
            root([1, b"bytes"], costing(0.25, ran.append))
        assert (root.privacy_loss(1), ran) == (0.0, [])
        root([1], costing(1.0))
    with pytest.raises(oc.errors.LedgerError):
        root([2], costing(0.25, ran.append))
    assert ran == []


def test_other_terms_are_refused(tmp_path):
    with create_ledger(tmp_path / "budget.db", "visits") as kept:
        spawn(ledger=kept)
        with pytest.raises(LedgerMismatchError):
            spawn(2.0, ledger=kept)
        odometer = oc.make_concurrent_odometer(*SPACE, PURE)
        with pytest.raises(LedgerMismatchError):
            oc.make_concurrent_filter(odometer, 1, 1.0, ledger=kept)
        with pytest.raises(InvalidValueError, match="halt"):
            oc.c.make_block_filter(
                odometer, 1, 1.0, blocks=oc.c.by_key(len), halt=True, ledger=kept
            )
        with pytest.raises(InvalidTypeError, match="block filter"):
            kept.to_dp_events()


def test_shared_accumulators_are_replayed(tmp_path):
    path, terms = tmp_path / "budget.db", ((1.0, 1e-6), APPROXIMATE)
    accumulator = oc.accumulators.advanced(delta_slack=5e-7)
    launch = costing((0.05, 0.0), measure=APPROXIMATE)
    with create_ledger(path, "visits") as kept:
        root = spawn(*terms, accumulator, ledger=kept)
        for _ in range(5):
            root([1, 2], launch)
        before = losses(root)
    with open_ledger(path, "visits") as kept:
        root = spawn(*terms, accumulator, ledger=kept)
        assert losses(root) == before
        assert before[1][0] > 0.2
