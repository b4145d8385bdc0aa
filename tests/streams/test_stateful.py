"""Random programs on one stream with many children, against a list of what each has heard."""

from fractions import Fraction
from math import nextafter
from types import SimpleNamespace

import opendp.prelude as dp
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    MessageLimitError,
    StreamError,
)

from .machines import Sum

dp.enable_features("contrib", "honest-but-curious")
SPACE = oc.integer_stream(0, 9), oc.event_presence()
EXACT, FATAL, WINDOW = 1e-3, 7, 2  # with this scale, no noise is seen
items = st.one_of(st.none(), st.integers(0, 9))


class Fragile(Sum):
    """A machine of a user, which one item breaks."""

    def update(self, item):
        assert item != FATAL
        super().update(item)


class Streams(RuleBasedStateMachine):
    """Streams of pure DP, whose children may be streams."""

    children, places = Bundle("children"), Bundle("places")
    measure, limit = staticmethod(dp.max_divergence), None
    budget = 60_000.0  # of six children, whose noise is tiny

    def __init__(self):
        super().__init__()
        self.known, self.steps = [], 0
        handle = self.stream(self.budget)([])
        self.root = SimpleNamespace(handle=handle, budget=self.budget, spent=Fraction())

    def stream(self, d_out):
        odometer = oc.make_concurrent_odometer(*SPACE, self.measure())
        budget = oc.make_concurrent_filter(odometer, 1, d_out)
        return oc.c.make_concurrent_continual(budget, max_messages=self.limit)

    def launch(self, place, query):
        """Launch on both; None if both refuse."""
        price = Fraction(query.map(1))
        if place.spent + price > Fraction(place.budget):
            with pytest.raises(BudgetExceededError):
                place.handle(query)
            return None
        place.spent += price
        return place.handle(query)

    @initialize(target=places)
    def at_the_root(self):
        return self.root

    @rule(target=places, place=places, d_out=st.sampled_from([9_000.0, 30_000.0]))
    def launch_stream(self, place, d_out):
        if self.limit is not None:  # what is sent to its children would count, too
            return place
        handle = self.launch(place, self.stream(d_out))
        return SimpleNamespace(handle=handle, budget=d_out, spent=Fraction()) if handle else place

    @rule(
        target=children,
        place=places,
        kind=st.sampled_from(["count", "window", "fragile"]),
        horizon=st.sampled_from([None, 2, 5]),
    )
    def launch_child(self, place, kind, horizon):
        measure, window, fatal = self.measure(), None, None
        if kind == "count":
            query = oc.m.make_counter(*SPACE, measure, EXACT, horizon=horizon)
        elif kind == "window":
            horizon, window = None, WINDOW
            query = oc.m.make_window_counter(*SPACE, measure, EXACT, WINDOW)
        else:
            horizon, fatal = None, FATAL
            query = oc.m.make_continual(*SPACE, measure, Fragile, lambda d_in: 1.0 * d_in)
        child = SimpleNamespace(handle=self.launch(place, query), window=window, fatal=fatal)
        child.horizon, child.heard, child.left, child.ended = horizon, [], self.limit, False
        self.known.append(child)
        return child

    # --- updates ---------------------------------------------------------------------------

    def heard(self, batch):
        self.steps += len(batch)
        for child in self.known:
            if child.horizon and len(child.heard) + len(batch) > child.horizon:
                child.ended = True
            if child.left is not None and child.left < len(batch):
                child.ended = True
            if child.fatal is not None and child.fatal in batch:
                child.ended = True
            if not child.ended:
                child.heard += batch
                child.left = None if child.left is None else child.left - len(batch)
            elif child.handle is not None:
                with pytest.raises(StreamError):
                    child.handle(None)

    @rule(item=items)
    def update(self, item):
        self.root.handle.update(item)
        self.heard([item])

    @rule(batch=st.lists(items, min_size=1, max_size=4))
    def update_all(self, batch):
        self.root.handle.update_all(batch)
        self.heard(batch)

    @rule(step=st.integers(-1, 0))
    def update_a_step_again(self, step):
        with pytest.raises(StreamError):
            self.root.handle.update(1, step=self.steps + step)

    # --- queries ---------------------------------------------------------------------------

    @rule(child=children)
    def ask(self, child):
        if child.handle is None:
            return
        if child.ended or child.left == 0:
            with pytest.raises(StreamError if child.ended else MessageLimitError):
                child.handle(None)
            return
        child.left = None if child.left is None else child.left - 1
        assert child.handle(None) == sum(one or 0 for one in child.heard[-(child.window or 0) :])

    @rule(child=children, message=st.sampled_from([oc.handles.Update(1), oc.handles.Updates([1])]))
    def feed_a_child(self, child, message):
        if child.handle is not None:
            with pytest.raises(InvalidTypeError):
                child.handle(message)

    @rule()
    def read(self):
        loss = self.root.handle.privacy_loss()
        assert Fraction(nextafter(loss, -1)) < self.root.spent <= Fraction(loss)
        left = Fraction(self.budget) - self.root.spent
        assert Fraction(self.root.handle.remaining()) <= left


class LimitedStreams(Streams):
    """Streams of a measure whose theorem needs a bound on the messages."""

    measure, limit = staticmethod(dp.zero_concentrated_divergence), 6
    budget = 2.5e8


TestStreams, TestLimitedStreams = Streams.TestCase, LimitedStreams.TestCase
TestStreams.settings = settings(max_examples=40, stateful_step_count=30)
TestLimitedStreams.settings = settings(max_examples=40, stateful_step_count=30)
