"""A linear query was checked and then copied: a thread put a value of 10^6 past the check."""

import sys
from enum import IntEnum

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import _checks as owned
from opendp_concurrent._checks import plain
from opendp_concurrent.errors import ConcurrentError, InvalidValueError
from opendp_concurrent.mechanisms.histogram import Universe
from opendp_concurrent.mechanisms.linear_answers import Batch

from ..build import PURE, SPACE, laplace

STREAM = oc.integer_stream(0, 1), oc.event_presence()
HUGE = 1e6


def test_arrays_share_no_memory_with_their_author():
    universe, mine = Universe(4), np.array([0.0, 1.0, 0.5, 0.25])
    for given in (mine, mine[::-1], memoryview(mine)):
        kept = owned.array(given, np.float64)
        assert type(kept) is np.ndarray
        assert not np.shares_memory(kept, mine)
    query = universe.vector(mine)
    mine[:] = HUGE
    assert query.max() <= 1.0


def test_lists_that_are_changed_later_change_nothing():
    d_mids, orders, values = [0.5], [2.0, 4.0], [2, 3]
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, d_mids)
    curve = oc.make_concurrent_composition(
        *SPACE, dp.renyi_divergence(), 1, [lambda alpha: alpha], orders=orders
    )
    measurements, groups = [laplace(0.1)], {"a": [1], "b": values}
    indexed = oc.c.make_indexed_composition(*SPACE, PURE, 1, measurements)
    universe, parts = Universe(values), oc.c.by_values(groups)
    for one in (d_mids, orders, values, measurements):
        one += one
    assert compositor.map(1) == 0.5
    assert len(compositor([1]).remaining()) == 1
    assert curve.map(1)(4.0) == 4.0
    assert indexed.map(1) == 0.1
    assert list(universe.values) == [2, 3]
    assert parts.owners == {1: "a", 2: "b", 3: "b"}


def changed_at(moment, change, ask):
    """Ask, and change the caller's memory at the given one of the interpreter's next calls.

    What another thread does by chance, at every moment at which it can, one after the other.
    """
    left = moment

    def on_event(*_):
        nonlocal left
        left -= 1
        if left == 0:
            change()

    sys.setprofile(on_event)
    try:
        return ask()
    finally:
        sys.setprofile(None)


MOMENTS = range(1, 120)


@pytest.mark.parametrize("batch", [False, True])
def test_memory_that_changes_at_any_moment_gets_nothing_past_the_check(batch):
    universe = Universe(4)

    def ask():
        query = Batch([mine], universe).matrix if batch else universe.vector(mine)
        return float(query.max())

    asked, refused = [], 0
    for moment in MOMENTS:
        mine = np.zeros(4)
        try:
            asked.append(changed_at(moment, lambda mine=mine: mine.__setitem__(2, HUGE), ask))
        except InvalidValueError:
            refused += 1
    assert refused
    assert max(asked) <= 1.0


def test_items_that_change_at_any_moment_are_those_that_were_checked():
    for moment in MOMENTS:
        queryable = oc.m.make_counter(*STREAM, PURE, scale=1e-3)([])
        items = np.ones(3, dtype=np.int64)
        change = lambda items=items: items.__setitem__(1, 10**6)  # noqa: E731
        try:
            changed_at(moment, change, lambda q=queryable, items=items: q.update_all(items))
        except ConcurrentError:
            continue
        assert queryable(None) == 3


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.float64(1.0), 1.0), (np.str_("a"), "a"), (Number.ONE, 1), (True, True)],
)
def test_a_subclass_becomes_pythons_own_class(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
