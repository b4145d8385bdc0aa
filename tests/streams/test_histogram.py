"""Histograms: counts of categories, the largest of them, negative ones."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import StreamHaltedError

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3
KINDS = {"default": {"horizon": 60}, "endless": {}}


@pytest.fixture(params=KINDS)
def options(request):
    return KINDS[request.param]


def histogram(categories=4, measure=PURE, scale=TINY, metric=oc.event_presence, **options):
    return oc.m.make_histogram_counter(
        oc.category_stream(categories), metric(), measure, scale, **options
    )


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_counts_are_exact_without_noise(options, measure):
    generator = np.random.default_rng(1)
    stream = [None if one == 4 else one for one in generator.integers(0, 5, size=60).tolist()]
    handle, taken = histogram(measure=measure, **options)([]), 0
    while taken < 60:
        size = int(generator.integers(0, 8))
        now = stream[taken : taken + size]
        if len(now) == 1:
            handle.update(now[0])
        elif None in now:
            handle.update_all(now)
        else:
            handle.update_all(np.array(now, dtype=np.uint8))
        taken += len(now)
        assert handle(None) == [stream[:taken].count(category) for category in range(4)]


def test_the_largest_come_first_and_ties_by_number(options):
    handle = histogram(**options)([])
    handle.update_all([3, 3, 1, 1, 0, None])
    assert handle(("top", 1)) == [(1, 2)]
    assert handle(("top", 3)) == [(1, 2), (3, 2), (0, 1)]
    assert handle(("top", 9)) == [(1, 2), (3, 2), (0, 1), (2, 0)]
    assert handle(None) == [1, 2, 0, 2]


def test_negative_counts_stay(options):
    handle = histogram(200, scale=1e6, **options)([])
    handle.update(0)
    counts = handle(None)
    assert min(counts) < 0 < max(counts)
    assert len(set(counts)) > 150  # noise of their own
    assert all(type(one) is int for one in counts)


@pytest.mark.parametrize("d_in", [0, 1, 2, 3])
@pytest.mark.parametrize("horizon", [None, 1000])
def test_losses_against_their_formulas(d_in, horizon):
    nodes = 3 if horizon else 1
    for metric, parts in ((oc.event_presence, 1), (oc.event_change, 2)):
        pure = histogram(5, PURE, 20.0, metric, horizon=horizon)
        assert pure.map(d_in) == pytest.approx(d_in * nodes * parts / 20)
        zcdp = histogram(5, ZCDP, 20.0, metric, horizon=horizon)
        assert zcdp.map(d_in) == pytest.approx(parts * (d_in / 20) ** 2 / 2, rel=1e-3)


# --- categories with names: their streams, and the histograms of them --------------------------
COLORS = ["red", "green", "blue"]


@pytest.mark.parametrize("measure", [PURE, ZCDP], ids=["laplace", "gaussian"])
def test_counts_are_told_by_name(options, measure):
    handle = histogram(COLORS, measure, **options)([])
    assert handle(None) == {"red": 0, "green": 0, "blue": 0}
    handle.update("blue")
    handle.update_all(["red", None, "blue"])
    handle.update_all(np.array(["blue", "green"]))
    assert handle.read() == {"red": 1, "green": 1, "blue": 3}
    assert handle(("top", 2)) == [("blue", 3), ("red", 1)]


@pytest.mark.parametrize("bad", ["black", 0, 1.0, b"red", ["red"], True])
def test_what_is_no_name_halts(bad):
    handle = histogram(COLORS)([])
    with pytest.raises(StreamHaltedError):
        handle.update(bad)
    for batch in ([bad, bad], np.array([0, 1])):
        handle = histogram(COLORS)([])
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
