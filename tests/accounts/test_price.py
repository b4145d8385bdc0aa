"""What tells one d_in from another: never one loss for two distances."""

import gc
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.extras.polars import Bound

from opendp_concurrent.accounts.price import Inward, distance_key, own_distance
from opendp_concurrent.errors import InvalidTypeError

numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text(max_size=3)
distances = st.recursive(numbers, lambda of: st.lists(of, max_size=3) | st.tuples(of, of))


def shape(d_in):
    """Equal for equal distances only: types are told from each other all the way down."""
    if isinstance(d_in, (list, tuple)):
        return type(d_in), [shape(each) for each in d_in]
    return type(d_in), d_in


@given(distances, distances)
def test_keys_are_equal_for_equal_distances_only(one, two):
    assert (distance_key(one) == distance_key(two)) == (shape(one) == shape(two))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        (True, 1),
        ((1, 2.0), (1.0, 2.0)),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        (np.float32(0.1), np.float64(0.1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2, "int64"), np.zeros(2, "float64")),
        (Bound(by=["a"], per_group=1), Bound(by=["a"], per_group=2)),
        (Bound(by=["a"], per_group=1), Bound(by=["b"], per_group=1)),
    ],
)
def test_different_distances_have_different_keys(one, two):
    assert distance_key(one) != distance_key(two)


def test_what_repr_leaves_out_tells_distances_apart():
    one, two = np.zeros(3000), np.zeros(3000)
    two[1500] = 9.0
    assert repr(one) == repr(two)
    assert distance_key(one) != distance_key(two)
    assert distance_key(one) == distance_key(one.copy())


def test_a_key_is_a_copy_of_what_may_change():
    array, values = np.zeros(3), [1, [2]]
    before = distance_key(array), distance_key(values)
    array[0], values[1][0] = 1.0, 3
    assert distance_key(array) != before[0]
    assert distance_key(values) != before[1]


def test_bounds_of_frames_are_known_again():
    one, two = ([Bound(by=["a", pl.col("b").abs()], per_group=1)] for _ in range(2))
    assert distance_key(one) == distance_key(two)


@dataclass
class Unhashable:
    """Compares by its parts, so it has no hash."""

    parts: list = field(default_factory=list)


@dataclass(frozen=True)
class Partly:
    """Compares by less than it is."""

    shown: int
    hidden: int = field(compare=False)


class Listed(list):
    """A list that knows more."""


class Plain:
    """Compares by identity, whatever it holds."""

    def __init__(self, held=0):
        self.held = held


class Closed:
    """Cannot be pickled, and may be where another one was."""

    def __reduce__(self):
        raise TypeError


def listed(more):
    found = Listed([1])
    found.more = more
    return found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Unhashable([1]), Unhashable([2])),
        (Partly(1, 2), Partly(1, 3)),
        (listed(1), listed(2)),
        (Plain(1), Plain(2)),
        (frozenset({1}), frozenset({True})),
        ({1}, {1, 2}),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
        (np.array(["2026-01-01"], "M8[D]"), np.array(["2026-01-02"], "M8[D]")),
    ],
)
def test_nothing_that_a_map_can_see_is_left_out(one, two):
    assert distance_key(one) != distance_key(two)
    assert distance_key(one) == distance_key(deepcopy(one))


def test_objects_are_not_taken_for_others_that_are_gone():
    """An address is used again after its object is gone; a key holds its object."""
    seen = set()
    for _ in range(100):
        seen.add(distance_key(Closed()))
        gc.collect(0)
    assert len(seen) == 100
    one = Closed()
    assert distance_key(one) == distance_key(one)


def test_a_distance_of_ones_own_does_not_change():
    values = [1, [2]]
    own = own_distance(values)
    values[1][0] = 3
    assert own == [1, [2]]
    number = 2.5
    assert own_distance(number) is number
    with pytest.raises(InvalidTypeError, match=r"^d_in must be a value that can be copied"):
        own_distance(Closed())


def test_stability_maps_are_read_once_for_each_distance():
    read = []
    inward = Inward(lambda d_in: read.append(d_in) or float(np.max(d_in)))
    one, two = np.zeros(3000), np.zeros(3000)
    two[1500] = 9.0
    assert [inward(one), inward(two), inward(one.copy())] == [0.0, 9.0, 0.0]
    assert len(read) == 2
