"""Sums of nodes: the same however items come, and each item in few nodes."""

from itertools import pairwise

import numpy as np
import pytest

from opendp_concurrent.counters.dyadic import AllLeaves, BalancedLeaves, Dyadic

ORDERS = {"all": AllLeaves, "balanced": BalancedLeaves}
FAR = [2**k + d for k in (10, 20, 31, 40) for d in (-1, 0, 1)] + [3 * 10**11, 10**6]


@pytest.fixture(params=ORDERS)
def make(request):
    return ORDERS[request.param]


def blocks(leaf):
    """The nodes of a prefix: (first leaf, bit)."""
    return [
        (leaf >> bit + 1 << bit + 1, bit) for bit in range(leaf.bit_length()) if leaf >> bit & 1
    ]


def recomputed(leaves, items):
    """By definition: of each node of the prefix that has a leaf in use, the sum of its items."""
    places = [leaves.leaf(count) for count in range(len(items))]
    sums = {}
    for low, bit in blocks(leaves.leaf(len(items))):
        inside = [i for i, leaf in enumerate(places) if low <= leaf < low + (1 << bit)]
        if inside:
            sums[bit] = sum(items[i] for i in inside)
    return sums


def sums_of(dyadic):
    return {bit: np.asarray(total).tolist() for bit, total in dyadic.sums.items()}


@pytest.mark.parametrize("seed", range(12))
def test_steps_batches_and_recomputed_sums_agree(make, seed):
    generator = np.random.default_rng(seed)
    horizon = int(generator.integers(1, 80))
    leaves = make(horizon)
    items = generator.integers(-9, 10, size=horizon)
    steps, batches, mixed = Dyadic(leaves), Dyadic(leaves), Dyadic(leaves)
    for item in items.tolist():
        steps.add(item)
        assert sums_of(steps) == recomputed(leaves, items[: steps.count].tolist())
        assert set(steps.sums) == set(recomputed(leaves, items[: steps.count].tolist()))
    while batches.count < horizon:
        size = int(generator.integers(0, 1 + min(20, horizon - batches.count)))
        batches.add_all(items[batches.count : batches.count + size])
        assert sums_of(batches) == recomputed(leaves, items[: batches.count].tolist())
    while mixed.count < horizon:
        if generator.integers(2):
            mixed.add(int(items[mixed.count]))
        else:
            mixed.add_all(items[mixed.count : mixed.count + 3])
    assert sums_of(mixed) == sums_of(batches) == sums_of(steps)
    assert sum(sums_of(steps).values()) == items.sum()


def test_rows_are_summed_as_numbers_are(make):
    generator = np.random.default_rng(5)
    rows = generator.integers(0, 5, size=(40, 3))
    leaves = make(40)
    together, apart = Dyadic(leaves), [Dyadic(leaves) for _ in range(3)]
    for start, end in pairwise((0, 1, 7, 8, 30, 40)):
        together.add_all(rows[start:end])
        for column, one in enumerate(apart):
            one.add_all(rows[start:end, column])
    for bit, total in together.sums.items():
        assert total.tolist() == [int(one.sums[bit]) for one in apart]


@pytest.mark.parametrize("step", ["one", "many"])
def test_what_is_said_to_be_new_is_all_that_changes(make, step):
    """Nodes above the returned bit stay what they were; all others are of other leaves."""
    generator = np.random.default_rng(3)
    leaves = make(70)
    dyadic = Dyadic(leaves)
    while dyadic.count < 70:
        before, old = dict(dyadic.sums), leaves.leaf(dyadic.count)
        size = 1 if step == "one" else int(generator.integers(1, 1 + min(9, 70 - dyadic.count)))
        ones = np.ones(size, dtype=np.int64)
        changed = dyadic.add(1) if step == "one" else dyadic.add_all(ones)
        new = leaves.leaf(dyadic.count)
        kept = {node for node in blocks(old) if node[1] > changed}
        assert kept == {node for node in blocks(new) if node[1] > changed}
        assert all(dyadic.sums[bit] == before[bit] for bit in before if bit > changed)
        assert not set(blocks(old)) & {node for node in blocks(new) if node[1] <= changed}
    assert dyadic.add_all(np.zeros(0, dtype=np.int64)) == -1


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 8, 19, 20, 63, 64, 69, 251, 252])
def test_an_item_is_in_at_most_height_nodes(make, horizon):
    """Over all prefixes: nodes are known by their place, and those left out hold no item."""
    leaves = make(horizon)
    seen = [set() for _ in range(horizon)]
    dyadic = Dyadic(leaves)
    places = [leaves.leaf(count) for count in range(horizon)]
    for _ in range(horizon):
        dyadic.add(1)
        for low, bit in blocks(leaves.leaf(dyadic.count)):
            inside = [i for i, leaf in enumerate(places) if low <= leaf < low + (1 << bit)]
            assert (bit in dyadic.sums) == (inside != [])  # an empty node gets no noise
            for i in inside:
                seen[i].add((low, bit))
    most = max(map(len, seen))
    assert most <= leaves.height
    if make is AllLeaves:
        assert most == leaves.height == horizon.bit_length()


def test_balanced_leaves_have_half_of_their_bits():
    for horizon in (1, 5, 19, 69, 1000):
        leaves = BalancedLeaves(horizon)
        listed = [n for n in range(1 << leaves.bits) if n.bit_count() == leaves.height]
        assert [leaves.leaf(count) for count in range(horizon + 1)] == listed[: horizon + 1]
        assert len(listed) >= horizon + 1


@pytest.mark.parametrize(
    ("horizon", "bits", "height"),
    [(1, 2, 1), (2, 4, 2), (5, 4, 2), (6, 6, 3), (1000, 14, 7), (2**20 - 1, 24, 12)],
)
def test_heights_of_the_literature(horizon, bits, height):
    leaves = BalancedLeaves(horizon)
    assert (leaves.bits, leaves.height) == (bits, height)


@pytest.mark.parametrize("horizon", FAR)
def test_leaf_following_and_before_agree_far_out(make, horizon):
    leaves = make(horizon)
    generator = np.random.default_rng(horizon % 1000)
    counts = {0, 1, horizon - 2, horizon - 1, *generator.integers(0, horizon, size=60).tolist()}
    for count in sorted(counts):
        leaf, after = leaves.leaf(count), leaves.leaf(count + 1)
        assert leaves.following(leaf) == after > leaf
        assert leaves.before(leaf) == count
        for between in {leaf + 1, (leaf + after + 1) // 2, after}:
            assert leaves.before(between) == count + 1
    low, high = sorted(generator.integers(0, leaves.leaf(horizon), size=2).tolist())
    assert leaves.before(low) <= leaves.before(high) <= horizon


def test_a_leap_far_out(make):
    """A batch at a large count gives what single steps give."""
    leaves = make(2**40)
    steps, batch = Dyadic(leaves), Dyadic(leaves)
    at = {"count": 2**39 + 12_345, "sums": {}}
    for bit in recomputed_bits(leaves, at["count"]):
        at["sums"][str(bit)] = bit + 1
    steps.restore(at)
    batch.restore(at)
    items = np.arange(300)
    for item in items.tolist():
        steps.add(item)
    batch.add_all(items)
    assert sums_of(steps) == sums_of(batch)


def recomputed_bits(leaves, count):
    """Bits of the nodes of a prefix that hold an item."""
    return [
        bit
        for low, bit in blocks(leaves.leaf(count))
        if leaves.before(low + (1 << bit)) > leaves.before(low)
    ]


@pytest.mark.slow
def test_many_random_streams(make):
    for seed in range(300):
        generator = np.random.default_rng(seed)
        horizon = int(generator.integers(1, 400))
        leaves, items = make(horizon), generator.integers(-9, 10, size=horizon)
        dyadic = Dyadic(leaves)
        while dyadic.count < horizon:
            size = int(generator.integers(0, 1 + min(90, horizon - dyadic.count)))
            dyadic.add_all(items[dyadic.count : dyadic.count + size])
            assert sums_of(dyadic) == recomputed(leaves, items[: dyadic.count].tolist())
