"""Queryables that OpenDP wraps."""

import opendp.prelude as dp

from opendp_concurrent._opendp.data import evaluate, python_queryable


def test_a_transition_is_not_read_from_the_queryable():
    made = python_queryable(lambda query: query + 1)
    assert evaluate(made, 1) == 2
    assert not getattr(made, "__opendp_dict__", {})
    assert dp.new_queryable(len).__opendp_dict__  # where OpenDP keeps it
