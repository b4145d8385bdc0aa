"""Categories with names: their streams, and the histograms of them."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamHaltedError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3
COLORS = ["red", "green", "blue"]


def histogram(measure=PURE, names=COLORS, **options):
    space = oc.category_stream(names), oc.event_presence()
    return oc.m.make_histogram_counter(*space, measure, TINY, **options)


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("options", [{}, {"horizon": 9}], ids=str)
def test_counts_are_told_by_name(measure, options):
    handle = histogram(measure, **options)([])
    assert handle(None) == {"red": 0, "green": 0, "blue": 0}
    handle.update("blue")
    handle.update_all(["red", None, "blue"])
    handle.update_all(np.array(["blue", "green"]))
    assert handle.read() == {"red": 1, "green": 1, "blue": 3}
    assert handle(("top", 2)) == [("blue", 3), ("red", 1)]


@pytest.mark.parametrize("bad", ["black", 0, 1.0, b"red", ["red"], True])
def test_what_is_no_name_halts(bad):
    handle = histogram()([])
    with pytest.raises(StreamHaltedError):
        handle.update(bad)
    for batch in ([bad, bad], np.array([0, 1])):
        handle = histogram()([])
        with pytest.raises(StreamHaltedError):
            handle.update_all(batch)


def test_streams_of_other_names_are_other_domains():
    same = oc.category_stream(tuple(COLORS))
    assert oc.category_stream(COLORS) == same
    for other in (["red", "green"], ["green", "red", "blue"], ["red, green", "blue"]):
        assert oc.category_stream(other) != same
    many = [f"color {number}" for number in range(100)]
    assert oc.category_stream(many) == oc.category_stream(many)
    assert oc.category_stream(many) != oc.category_stream(many[::-1])
    assert oc.category_stream(3) != same
