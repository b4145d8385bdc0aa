"""A pointer that somebody else may change."""

import gc

import opendp.prelude as dp

from opendp_concurrent.native.pointers import address, pinned


def test_a_pinned_measurement_stays_what_it_was(space):
    one, other = (
        space >> dp.t.then_count() >> dp.m.then_laplace(scale=scale) for scale in (2.0, 4.0)
    )
    kept = pinned(one)
    assert address(kept) == address(one)
    before = one.contents
    one.contents = other.contents
    assert (kept.map(1), one.map(1)) == (0.5, 0.25)
    one.contents = before  # each object frees what it points to


def test_it_keeps_the_native_object_and_does_not_free_it(space):
    one = space >> dp.t.then_count()
    kept = pinned(one)
    again = pinned(one)
    del kept, one
    gc.collect()
    assert again([1, 2, 3]) == 3
