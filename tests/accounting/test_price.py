"""What tells one d_in from another: never one loss for two distances."""

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.extras.polars import Bound

from opendp_concurrent.accounting.price import StabilityMap, distance_key, own_distance
from opendp_concurrent.errors import InvalidTypeError

numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text("ab", max_size=3)
distances = st.recursive(numbers, lambda of: st.lists(of, max_size=3) | st.tuples(of, of))


def shape(d_in):
    """Equal for equal distances only: types are told from each other all the way down."""
    if isinstance(d_in, (list, tuple)):
        return type(d_in), [shape(each) for each in d_in]
    return type(d_in), d_in


@given(distances, distances)
def test_keys_are_equal_for_equal_distances_only(one, two):
    assert (distance_key(one) == distance_key(two)) == (shape(one) == shape(two))


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
        (Bound(by=["a"], per_group=1), Bound(by=["a"], per_group=2)),
        (Bound(by=["a"], per_group=1), Bound(by=["b"], per_group=1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
        (np.array(["2026-01-01"], "M8[D]"), np.array(["2026-01-02"], "M8[D]")),
        (
            np.array([(1, 2)], [("a", "i4"), ("b", "i4")]),
            np.array([(1, 2)], [("b", "i4"), ("a", "i4")]),
        ),
    ],
)
def test_nothing_that_a_map_can_see_is_left_out(one, two):
    assert distance_key(one) != distance_key(two)
    assert distance_key(one) == distance_key(deepcopy(one))


@dataclass
class Two:
    """Two parts, which may be one object."""

    one: str
    other: str


def words(same):
    text = "".join(["us", "er"])
    return text, text if same else "".join(["us", "er"])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Two(*words(same=True)), Two(*words(same=False))),
        (dict([words(same=True), ("a", 1)]), dict([("a", 1), words(same=False)])),
        (frozenset([0, 8]), frozenset([8, 0])),
        (np.arange(10.0)[::2], np.arange(0.0, 10.0, 2.0)),
        (np.asfortranarray(np.eye(3)), np.eye(3)),
    ],
)
def test_equal_distances_are_known_again_however_they_were_made(one, two):
    assert distance_key(one) == distance_key(two) == distance_key(deepcopy(one))


def test_what_cannot_be_pickled_is_no_distance():
    for kind in (distance_key, own_distance):
        with pytest.raises(InvalidTypeError, match=r"^d_in must be a value that can be copied"):
            kind(Closed())


def test_a_map_cannot_change_the_distance_that_it_is_asked_at():
    def nosy(d_in):
        d_in[0] = 0
        return list(d_in)

    inward, d_in = StabilityMap(nosy), [3]
    assert inward(d_in) == [0]
    assert d_in == [3]


def test_a_distance_of_ones_own_does_not_change():
    values = [1, [2]]
    own = own_distance(values)
    values[1][0] = 3
    assert own == [1, [2]]
    number = 2.5
    assert own_distance(number) is number


def test_a_stability_map_is_read_once_for_each_distance():
    read = []
    inward = StabilityMap(lambda d_in: read.append(d_in) or float(np.max(d_in)))
    one, two = np.zeros(3000), np.zeros(3000)
    two[1500] = 9.0
    assert [inward(one), inward(two), inward(one.copy())] == [0.0, 9.0, 0.0]
    assert len(read) == 2
