"""Exact worst cases of real code, over all adversaries who choose both streams adaptively.

The noise is OpenDP's in all but its values: clamped to few, which keeps the largest loss of Laplace
noise. So the exact loss is never above the declared one, and equal where an item can be seen in as
many nodes as are declared.
"""

from itertools import pairwise

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
PRESENCE = verify.events_differ(1)
CHANGE = verify.events_differ(1, presence=False)
BIT = (None, 1)


def exact(law, steps, items=BIT, neighbouring=PRESENCE):
    return verify.continual_epsilon([law], items, neighbouring, steps)


@pytest.mark.parametrize(
    ("options", "steps", "declared", "reached"),
    [
        ({"horizon": 1}, 1, 0.125, 0.125),
        ({"horizon": 2}, 2, 0.25, 0.25),
        ({"horizon": 3}, 3, 0.25, 0.25),
        ({"horizon": 4}, 4, 0.375, 0.375),
        ({"horizon": 1, "method": "smooth"}, 1, 0.125, 0.125),
        ({"horizon": 4, "method": "smooth"}, 3, 0.25, 0.25),
        ({}, 1, 0.125, 0.0625),  # the first epoch: in its total only
        ({}, 3, 0.125, 0.125),
    ],
    ids=str,
)
def test_a_counter_loses_what_it_declares(bits, replayed, options, steps, declared, reached):
    counter = oc.m.make_counter(*bits, PURE, scale=8.0, **{"method": "tree"} | options)
    assert counter.map(1) == declared
    found = exact(replayed(lambda: counter([])), steps)
    assert found <= declared + 1e-9
    assert found == pytest.approx(reached, abs=1e-9)


@pytest.mark.slow
def test_doubling_stays_at_one_release_in_later_epochs(bits, replayed):
    counter = oc.m.make_counter(*bits, PURE, scale=8.0, method="tree")

    def spawn():
        handle = counter([])
        handle.update_all([None] * 3)
        return handle

    assert exact(replayed(spawn), 4) == pytest.approx(0.125, abs=1e-9)  # the epoch of 4 steps


@pytest.mark.parametrize("metric", [oc.event_presence, oc.event_change])
def test_items_of_both_signs(replayed, metric):
    counter = oc.m.make_counter(
        oc.integer_stream(-1, 2), metric(), PURE, scale=8.0, horizon=2, method="tree"
    )
    neighbouring = PRESENCE if metric is oc.event_presence else CHANGE
    found = exact(replayed(lambda: counter([]), low=-1, high=2), 2, (None, -1, 2), neighbouring)
    assert counter.map(1) == (0.5 if metric is oc.event_presence else 0.75)
    assert found == pytest.approx(counter.map(1), abs=1e-9)


def test_two_events(bits, replayed):
    counter = oc.m.make_counter(*bits, PURE, scale=8.0, horizon=3, method="tree")
    found = exact(replayed(lambda: counter([]), high=2), 3, BIT, verify.events_differ(2))
    assert counter.map(2) == 0.5
    assert found == pytest.approx(0.375, abs=1e-9)  # no leaf holds both


@pytest.mark.parametrize(("window", "nodes"), [(1, 1), (2, 2), (3, 3)])
def test_a_window_loses_at_most_what_it_declares(bits, replayed, window, nodes):
    counter = oc.m.make_window_counter(*bits, PURE, 8.0, window, method="trees")
    found = exact(replayed(lambda: counter([])), 3)
    assert found <= counter.map(1) + 1e-9
    assert found <= nodes / 8 + 1e-9
    if window < 3:  # four steps show the third node of a window of 3
        assert found == pytest.approx(nodes / 8, abs=1e-9)


@pytest.mark.parametrize(("metric", "declared"), [("presence", 0.25), ("change", 0.5)])
def test_a_histogram_loses_what_it_declares(replayed, metric, declared):
    space = oc.category_stream(2), getattr(oc, f"event_{metric}")()
    histogram = oc.m.make_histogram_counter(*space, PURE, 8.0, horizon=2, method="tree")
    assert histogram.map(1) == declared
    law = replayed(lambda: histogram([]), ask=lambda handle, query: tuple(handle(None)))
    neighbouring = PRESENCE if metric == "presence" else CHANGE
    assert exact(law, 2, (None, 0, 1), neighbouring) == pytest.approx(declared, abs=1e-9)


def test_a_gaussian_counter_stays_below_its_zcdp(bits, replayed):
    counter = oc.m.make_counter(*bits, ZCDP, scale=2.0, horizon=2, method="tree")
    rho = counter.map(1)
    law = replayed(lambda: counter([]), low=-4, high=4, gaussian=True)
    for order in (1.5, 2.0, 6.0):
        found = verify.continual_renyi([law], BIT, PRESENCE, 2, order)
        assert 0.8 * order * rho < found <= order * rho + 1e-9


def test_a_gaussian_counter_stays_below_its_gaussian_dp(bits, replayed):
    counter = oc.m.make_counter(*bits, oc.gaussian_tradeoff(), scale=2.0, horizon=2, method="tree")
    curve = oc.TradeoffFunction.gaussian(counter.map(1))
    law = replayed(lambda: counter([]), low=-4, high=4, gaussian=True)
    for epsilon in (0.0, 0.5, 1.0):
        found = verify.continual_delta([law], BIT, PRESENCE, 2, epsilon)
        assert 0.0 < found <= curve.delta(epsilon) + 1e-9


class FanOut:
    """A stream with children: query i asks child i, which is launched when first asked."""

    def __init__(self, stream, measurements):
        self.stream, self.measurements, self.children = stream, measurements, {}

    def update(self, item):
        self.stream.update(item)

    def __call__(self, index):
        if index not in self.children:
            self.children[index] = self.stream(self.measurements[index])
        return self.children[index](None)


@pytest.mark.parametrize(
    ("steps", "declared"), [(1, 0.1875), pytest.param(2, 0.375, marks=pytest.mark.slow)]
)
def test_children_of_one_stream_lose_what_the_filter_bounds(
    bits, make_stream, replayed, steps, declared
):
    """Two counters, launched when the adversary likes, asked in any order."""
    counters = [
        oc.m.make_counter(*bits, PURE, scale, horizon=steps, method="tree") for scale in (8.0, 16.0)
    ]
    stream = make_stream(bits, declared)
    law = replayed(lambda: FanOut(stream([]), counters), queries=(0, 1))
    assert exact(law, steps) == pytest.approx(declared, abs=1e-9)
    assert verify.continual_delta([law], BIT, PRESENCE, steps, declared) <= 1e-9


def test_two_mechanisms_each_with_a_handle_of_its_own(bits, replayed):
    one, two = (
        oc.m.make_counter(*bits, PURE, scale, horizon=2, method="tree") for scale in (8.0, 16.0)
    )
    laws = [replayed(lambda: one([])), replayed(lambda: two([]))]
    found = verify.continual_epsilon(laws, BIT, PRESENCE, 2)
    assert found == pytest.approx(one.map(1) + two.map(1), abs=1e-9)


@pytest.mark.parametrize(("metric", "declared"), [("presence", 0.25), ("change", 0.5)])
def test_parallel_parts_lose_the_most_of_those_touched(replayed, metric, declared):
    """Item 1 is in part 1, item 2 in part 0; both move their part by at most 2."""
    space = oc.integer_stream(1, 2), getattr(oc, f"event_{metric}")()
    parts = {
        part: oc.m.make_counter(*space, PURE, scale=8.0, horizon=steps, method="tree")
        for part, steps in ((0, 1), (1, 1))
    }
    parallel = oc.c.make_parallel_continual(*space, lambda item: item % 2, parts)
    assert parallel.map(1) == declared
    law = replayed(
        lambda: parallel([]),
        high=2,
        queries=(0, 1),
        ask=lambda handle, part: handle(part)(None),
    )
    neighbouring = PRESENCE if metric == "presence" else CHANGE
    found = exact(law, 1, (None, 1, 2), neighbouring)
    # a changed event moves part 1 by 1 and part 0 by 2
    assert found == pytest.approx({"presence": 0.25, "change": 0.375}[metric], abs=1e-9)


@pytest.mark.slow
def test_parallel_parts_over_two_steps(bits, replayed):
    space = oc.integer_stream(0, 1), oc.event_presence()
    scales = {0: 16.0, 1: 8.0}
    parts = {
        part: oc.m.make_counter(*space, PURE, scale, horizon=2, method="tree")
        for part, scale in scales.items()
    }
    parallel = oc.c.make_parallel_continual(*space, lambda item: item, parts)
    law = replayed(
        lambda: parallel([]), queries=(0, 1), ask=lambda handle, part: handle(part)(None)
    )
    assert exact(law, 2, (None, 0, 1)) == pytest.approx(parallel.map(1), abs=1e-9)


def one_user(first, second):
    """All items of one user are in one stream, and nothing in their place in the other."""
    users = {item[0] for item in (*first, *second) if item is not None} | {None}

    def without(stream, user):
        return [None if item is not None and item[0] == user else item for item in stream]

    return any(
        list(more) == list(less) or without(more, user) == list(less)
        for user in users
        for more, less in ((first, second), (second, first))
    )


@pytest.mark.parametrize("limit", [1, 2])
def test_user_level_privacy_of_bounded_contributions(replayed, limit):
    pairs = oc.record_stream("pairs", lambda pair: pair[1] == 1)
    bounded = oc.t.make_bounded_contributions(
        pairs, oc.user_presence(), oc.integer_stream(0, 1), limit
    )
    counter = bounded >> oc.m.then_counter(PURE, scale=8.0, horizon=3, method="tree")
    items = (None, ("a", 1), ("b", 1))
    found = exact(replayed(lambda: counter([])), 3, items, one_user)
    assert counter.map(1) == 0.25 * limit
    reached = {1: 0.25, 2: 0.375}[limit]  # no leaf holds both items
    assert found == pytest.approx(reached, abs=1e-9)


def test_one_level_too_few_is_caught(bits, replayed):
    """The exact check sees a tree whose scale is for one level less than it has."""
    counter = oc.m.make_counter(*bits, PURE, scale=8.0, horizon=4, method="tree")
    wrong = {steps: (steps.bit_length() - 1) / 8 for steps in (2, 4)}
    for steps, claimed in wrong.items():
        law = replayed(lambda: counter([]))
        assert exact(law, steps) > claimed + 0.1
    losses = [exact(replayed(lambda: counter([])), steps) for steps in (1, 2, 3)]
    assert all(one <= other for one, other in pairwise(losses))
