"""Measurements in a few words."""

from types import SimpleNamespace

import numpy as np
import opendp.prelude as dp

import opendp_concurrent as oc
from opendp_concurrent.queryables.named_queries import describe


def test_a_chain_is_told_from_its_first_part_to_its_last(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert describe(count) == "count >> laplace(scale=2.0)"


def test_numbers_of_numpy_are_shown_as_numbers(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=np.float64(2.0))
    assert describe(count) == "count >> laplace(scale=2.0)"


def test_a_description_has_two_hundred_characters_at_most():
    for length in (0, 199, 200):
        assert describe(SimpleNamespace(summary="x" * length)) == "x" * length
    assert describe(SimpleNamespace(summary="x" * 201)) == "x" * 197 + "..."


def test_a_description_has_one_line():
    assert describe(SimpleNamespace(summary="of  one\n line")) == "of one line"


def test_what_has_no_description_is_described_by_its_type():
    assert describe(object()) == "object"
    assert describe(SimpleNamespace(summary=3)) == "SimpleNamespace"


def test_a_handle_counts_its_launches(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2])
    assert "0 launches" in repr(root)
    root(count)
    assert "1 launch" in repr(root)
    assert "launches" not in repr(root)
    root(count)
    assert "2 launches" in repr(root)
