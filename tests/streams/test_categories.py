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


def test_names_are_counted_as_numbers_are():
    named, numbered = (
        histogram(horizon=9),
        oc.m.make_histogram_counter(
            oc.category_stream(3), oc.event_presence(), PURE, TINY, horizon=9
        ),
    )
    assert named.map(1) == numbered.map(1)


@pytest.mark.parametrize("bad", ["black", 0, 1.0, b"red", ["red"], True])
def test_what_is_no_name_halts(bad):
    handle = histogram()([])
    with pytest.raises(StreamHaltedError):
        handle.update(bad)
    handle = histogram()([])
    with pytest.raises(StreamHaltedError):
        handle.update_all([bad, bad])


def test_numbers_are_not_names_in_batches():
    handle = histogram()([])
    with pytest.raises(StreamHaltedError):
        handle.update_all(np.array([0, 1]))


def test_streams_of_other_names_are_other_domains():
    same = oc.category_stream(tuple(COLORS))
    assert oc.category_stream(COLORS) == same
    for other in (["red", "green"], ["green", "red", "blue"], ["red, green", "blue"]):
        assert oc.category_stream(other) != same
    many = [f"color {number}" for number in range(100)]
    assert oc.category_stream(many) == oc.category_stream(many)
    assert oc.category_stream(many) != oc.category_stream(many[::-1])
    assert oc.category_stream(3) != same


def test_a_stream_can_be_mapped_to_names():
    space = oc.integer_stream(0, 9), oc.event_presence()
    mapped = oc.t.make_stream_map(*space, oc.category_stream(COLORS), lambda n: COLORS[n % 3])
    handle = (mapped >> oc.m.then_histogram_counter(PURE, TINY))([])
    handle.update_all([0, 3, 5])
    assert handle.read() == {"red": 2, "green": 0, "blue": 1}
