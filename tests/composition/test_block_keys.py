"""Keys of blocks and their places."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendp_concurrent.composition.block_keys import Keys
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError


def known(*batches):
    keys = Keys()
    for batch in batches:
        keys.add(batch)
    return keys


MIXED = ["a", "b"], range(10, 20), [("x", 1), None], range(100, 80, -2)


@pytest.mark.parametrize(
    "blocks",
    [
        [13, 11, 12, 11, 13],
        range(11, 14),
        range(13, 10, -1),
        np.array([12, 11, 13, 12]),
        np.array([12, 11, 13], dtype=np.uint64),
        {11, 12, 13},
        (np.int64(11), 12.0, 13),
    ],
    ids=str,
)
def test_blocks_are_found_once_and_in_order(blocks):
    keys = known(*MIXED)
    assert keys.places(blocks).tolist() == [3, 4, 5]
    assert keys.at(keys.places([100, "b", 12, 98])) == ["b", 12, 100, 98]


@pytest.mark.parametrize(
    "again",
    [["new", "a"], [15], [15.0], range(0, 11), range(19, 21), [None], ["c", "c"], [True, 1]],
    ids=str,
)
def test_a_known_key_or_one_twice_is_refused_and_nothing_is_added(again):
    keys = known(*MIXED)
    before = len(keys)
    with pytest.raises(InvalidValueError, match=r"^keys "):
        keys.add(again)
    assert len(keys) == before
    assert "new" not in keys
    assert "c" not in keys


@pytest.mark.parametrize(
    ("blocks", "error", "words"),
    [
        ([], InvalidValueError, "at least one"),
        (range(0), InvalidValueError, "at least one"),
        (["a", "z"], InvalidValueError, "'z'"),
        (range(9, 12), InvalidValueError, "(9)"),
        (range(10**12), InvalidValueError, "names 1000000000000"),
        ("ab", InvalidTypeError, "collection"),
        (7, InvalidTypeError, "collection"),
        (np.array([1.5]), InvalidTypeError, "integers"),
        (np.array([[11]]), InvalidTypeError, "one dimension"),
        (np.broadcast_to(np.int64(11), 10**10), InvalidValueError, "at most 100000000"),
        ([[]], InvalidTypeError, "hashable"),
        ([float("nan")], InvalidValueError, "equal itself"),
        ([float("inf")], InvalidValueError, "inf"),
    ],
)
def test_what_names_no_block_is_refused(blocks, error, words):
    with pytest.raises(error, match="blocks") as refused:
        known(*MIXED).places(blocks)
    assert words in str(refused.value)


@pytest.mark.parametrize("one", [True, 1.0, np.float32(1), Fraction(1), Decimal("1.0"), 1 + 0j])
def test_a_key_that_equals_an_integer_of_a_range_is_that_block(one):
    assert one in known(range(5))
    assert known(["a"], range(5)).place(one) == 2
    for batches in ((range(5), [one]), ([one], range(5))):
        with pytest.raises(InvalidValueError, match="which is a block of this filter already"):
            known(*batches)
    assert Fraction(1, 2) not in known(range(5))
    assert Decimal(-1) in known(range(-1, 1))  # the hash of -1 is -2


@pytest.mark.parametrize("far", [range(10**30), range(2**70, 2**70 + 2), range(0, -(2**62), -1)])
def test_a_range_of_integers_beyond_64_bits_is_refused(far):
    keys = known(range(2**60 - 1, 2**60 + 1), range(7, 8, 2**80))
    assert keys.at(keys.places(range(2**60, 2**60 + 1, 2**80))) == [2**60]
    assert keys.at(keys.places([7])) == [7]
    with pytest.raises(InvalidValueError, match="keys .* from -2"):
        keys.add(far)
    with pytest.raises(InvalidValueError, match="blocks .* from -2"):
        keys.places(far)
    assert len(keys) == 3


def test_a_masked_array_has_all_its_keys():
    keys = known(range(10, 20), range(80, 100))
    hidden = np.ma.masked_array([13, 12, 99], mask=[False, True, True])
    assert keys.at(keys.places(hidden)) == [12, 13, 99]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.one_of(st.integers(0, 60), st.tuples(st.integers(0, 3000), st.integers(0, 1500))))
)
def test_each_key_has_its_place_however_keys_are_added(additions):
    keys, expected = Keys(), []
    for one in additions:
        new = [one] if isinstance(one, int) else range(one[0], one[0] + one[1])
        if set(new) & set(expected):
            with pytest.raises(InvalidValueError):
                keys.add(new)
        else:
            assert keys.add(new).tolist() == list(range(len(expected), len(expected) + len(new)))
            expected += new
    assert len(keys) == len(expected)
    assert keys.at(np.arange(len(expected))) == expected
    if expected:
        assert keys.places(expected[::-1]).tolist() == list(range(len(expected)))
