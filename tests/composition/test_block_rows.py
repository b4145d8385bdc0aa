"""Rows of integers grow, and what is read from them is a copy."""

import numpy as np

from opendp_concurrent.composition.block_keys import Rows


def test_growing_keeps_the_rows_and_new_ones_are_zero():
    rows = Rows(2)
    rows.grow(2)
    rows.write(np.array([0, 1]), np.array([[1, 2], [3, 4]]))
    rows.grow(1000)
    rows.grow(3)  # never shrinks
    assert len(rows) >= 1000
    assert rows.read(np.array([1, 0, 999])).tolist() == [[3, 4], [1, 2], [0, 0]]


def test_what_is_read_can_be_changed_alone():
    rows = Rows(1)
    rows.grow(1)
    rows.read(np.array([0]))[:] = 7
    assert rows.read(np.array([0])).tolist() == [[0]]
