"""One stream for many children: who gets which updates, and what is charged."""

import threading

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    FiniteCommunicationError,
    InvalidTypeError,
    InvalidValueError,
    MessageLimitError,
    UnsupportedMeasureError,
)

from ..build import (
    APPROXIMATE,
    APPROXIMATE_ZCDP,
    PURE,
    RENYI,
    SPACE,
    ZCDP,
    a_filter,
    an_odometer,
)
from .machines import Heard

GAUSSIAN, TINY = oc.gaussian_tradeoff(), 1e-3


def of_loss(space, epsilon):
    return oc.m.make_counter(*space, PURE, 1 / epsilon)


# --- finite communication --------------------------------------------------------------------

LARGE = {"approximate": (1e9, 1e-3), "gaussian": 1e9, "zcdp": 1e9, "renyi": 1e9}
MEASURES = {
    "approximate": APPROXIMATE,
    "gaussian": GAUSSIAN,
    "zcdp": ZCDP,
    "renyi": oc.fixed_renyi_divergence(4.0),
}


def fixed(measurement):
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), 1e-6)


def failing(space, measure=APPROXIMATE):
    """A counter that may fail, made by OpenDP's casts; under another measure, one of its own."""
    if measure != APPROXIMATE:
        return oc.m.make_counter(*space, measure, 1.0)
    return fixed(oc.m.make_counter(*space, ZCDP, 1.0))


def roots(space, measure, d_out):
    """Ways to launch: with a stream of each child, and with one stream of all."""
    odometer, budget = an_odometer(measure, space), a_filter(d_out, measure, space=space)
    plan = oc.make_concurrent_composition(*space, measure, 1, [d_out] * 3)
    together = oc.c.make_concurrent_continual
    return {
        "filter": budget,
        "compositor": plan,
        "odometer": odometer,
        "one stream, filter": together(budget),
        "one stream, compositor": together(plan),
        "one stream, odometer": together(odometer),
    }


def bounded(measurement):
    return oc.c.make_bounded_interactive(measurement, 9)


ROOTS = ("filter", "compositor", "odometer")
EVERY = (*ROOTS, *(f"one stream, {name}" for name in ROOTS))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("measure", ["approximate", "gaussian"])
def test_a_loss_that_needs_finite_communication_needs_a_bound(bits, measure, name):
    """Before the charge. Two such children with any number of messages were admitted."""
    root = roots(bits, MEASURES[measure], LARGE[measure])[name]([])
    child = failing(bits, MEASURES[measure])
    with pytest.raises(FiniteCommunicationError) as refused:
        root(child)
    assert refused.value.charged is False
    assert refused.value.d_in == 1
    handles = root(bounded(child)), root(bounded(child))
    assert root.privacy_loss(1) != 0.0
    (root if "one" in name else handles[0]).update(1)
    assert [type(one(None)) for one in handles] == [int, int]


PURE_CHILDREN = {  # by their loss, or as casts from pure DP
    "approximate": (
        lambda space: oc.m.make_continual(*space, APPROXIMATE, Slow, lambda d: (float(d), 0.0)),
        lambda space: dp.c.make_approximate(of_loss(space, 0.5)),
    ),
    "gaussian": (lambda space: oc.c.cast(of_loss(space, 0.5), oc.gaussian_tradeoff()),) * 2,
}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("measure", PURE_CHILDREN)
def test_pure_children_need_no_bound_beside_those_that_have_one(bits, measure, name):
    root = roots(bits, MEASURES[measure], LARGE[measure])[name]([])
    for make in PURE_CHILDREN[measure]:
        root(make(bits))
    handle = root(bounded(failing(bits, MEASURES[measure])))
    for _ in range(9):
        handle(None)
    with pytest.raises(MessageLimitError):
        handle(None)


@pytest.mark.parametrize("measure", MEASURES)
def test_max_messages_bounds_each_child(bits, make_stream, measure):
    stream = make_stream(bits, LARGE[measure], MEASURES[measure], max_messages=2)([])
    handle = stream(failing(bits, MEASURES[measure]))
    stream.update(1)
    assert isinstance(handle(None), int)
    with pytest.raises(MessageLimitError):
        handle(None)


def test_a_loss_is_judged_at_each_d_in(bits):
    root = an_odometer(APPROXIMATE, bits)([])
    root(oc.m.make_continual(*bits, APPROXIMATE, Slow, lambda d_in: (1.0, (d_in - 1) * 1e-6)))
    assert root.privacy_loss(1) == (1.0, 0.0)
    with pytest.raises(FiniteCommunicationError) as refused:
        root.privacy_loss(2)
    assert refused.value.loss == (1.0, 1e-6)


def test_a_loss_is_judged_at_each_launch(bits):
    deltas = iter([0.0, 1e-6])
    root = oc.make_concurrent_composition(*bits, APPROXIMATE, 1, [(1.0, 1e-3)] * 2)([])
    child = oc.m.make_continual(*bits, APPROXIMATE, Slow, lambda d_in: (1.0, next(deltas)))
    root(child)
    with pytest.raises(FiniteCommunicationError):
        root(child)


BOUNDED = {
    "wrapped": lambda space: oc.c.make_interactive(bounded(failing(space))),
    "cast": lambda space: oc.c.cast(bounded(failing(space)), APPROXIMATE, delta=1e-5),
    "cast by OpenDP": lambda space: fixed(bounded(oc.m.make_counter(*space, ZCDP, 1.0))),
    "transformed": lambda space: (
        oc.t.make_stream_filter(*space, lambda item: item == 1) >> bounded(failing(space))
    ),
    "a release": lambda space: oc.c.make_on_stream(
        *space, fixed(SPACE >> dp.t.then_count() >> dp.m.then_gaussian(1.0))
    ),
    "a plan": lambda space: oc.make_concurrent_composition(
        *space, APPROXIMATE, 1, [(1.0, 1e-6)] * 2
    ),
    "a stream": lambda space: bounded(
        oc.c.make_concurrent_continual(roots(space, APPROXIMATE, (9.0, 1e-4))["filter"])
    ),
}
UNBOUNDED = {
    "transformed": lambda space: (
        oc.t.make_stream_filter(*space, lambda item: item == 1) >> failing(space)
    ),
    "filter": lambda space: roots(space, APPROXIMATE, (9.0, 1e-4))["filter"],
    "a stream": lambda space: roots(space, APPROXIMATE, (9.0, 1e-4))["one stream, filter"],
    "a plan without bounds": lambda space: oc.c.cast(
        oc.make_concurrent_composition(*space, ZCDP, 1, [1.0, 1.0]), APPROXIMATE, delta=1e-6
    ),
    "of OpenDP": lambda space: dp.c.make_adaptive_composition(
        *space, APPROXIMATE, 1, [(1.0, 1e-6)] * 2
    ),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_around_a_bound_keeps_it(bits, name):
    root = roots(bits, APPROXIMATE, (1e9, 1e-3))["filter"]([])
    root(BOUNDED[name](bits))
    assert root.privacy_loss(1)[1] > 0


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_has_no_bound_is_refused_whatever_is_around_it(bits, name):
    root = roots(bits, APPROXIMATE, (1e9, 1e-3))["filter"]([])
    with pytest.raises(FiniteCommunicationError):
        root(UNBOUNDED[name](bits))
    assert root.privacy_loss(1) == (0.0, 0.0)


def test_messages_to_what_a_bounded_child_returns_count(bits):
    """On a stream: the children of OpenDP's compositor are not seen by an account."""
    native = dp.c.make_adaptive_composition(*bits, PURE, 1, [1.0, 1.0])
    handle = oc.c.make_bounded_interactive(native, 3)([])
    counter = handle(of_loss(bits, 1.0))
    handle.update(1)
    assert isinstance(counter(None), int)
    with pytest.raises(MessageLimitError):
        counter(None)


class Slow(Heard):
    """Counts items and queries; a batch takes until a query has been sent."""

    def __init__(self):
        super().__init__()
        self.begun, self.sent = threading.Event(), threading.Event()

    def update_all(self, items):
        self.begun.set()
        self.sent.wait(timeout=0.2)
        super().update_all(items)

    def ask(self, query):
        self.update(query)
        return len(self.items)


def test_a_query_during_an_update_is_within_the_limit(bits, make_stream):
    machine = Slow()
    slow = oc.m.make_continual(*bits, ZCDP, lambda: machine, lambda d_in: 0.0)
    stream = make_stream(bits, 1.0, ZCDP, max_messages=5)([])
    child, refused = stream(slow), []

    def ask():
        assert machine.begun.wait(timeout=30)
        threading.Timer(0.02, machine.sent.set).start()
        for _ in range(4):
            try:
                child(None)
            except MessageLimitError:
                refused.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    stream.update_all([1] * 5)
    asking.join(timeout=60)
    assert len(machine.items) == 5
    assert len(refused) == 4


def test_approximate_zcdp_is_refused(bits):
    budget = a_filter((1.0, 1e-6), APPROXIMATE_ZCDP, space=bits)
    for composition in (an_odometer(APPROXIMATE_ZCDP, bits), budget):
        with pytest.raises(UnsupportedMeasureError):
            oc.c.make_concurrent_continual(composition, max_messages=5)


# --- one stream cut into parts, for pure DP ----------------------------------------------------


def parity(item):
    return item % 2


def space_of(metric=oc.event_presence):
    return oc.integer_stream(0, 9), metric()


def counters(space, scales=(TINY, TINY)):
    return {part: oc.m.make_counter(*space, PURE, one) for part, one in enumerate(scales)}


@pytest.mark.parametrize("metric", [oc.event_presence, oc.event_change])
def test_the_loss_is_that_of_the_parts_touched(metric):
    """Scales 36 and 18 for items up to 9: 0.25 and 0.5 for an event, which is two if changed."""
    space = space_of(metric)
    parallel = oc.c.make_parallel_continual(*space, parity, counters(space, (36.0, 18.0)))
    factor = 1 if metric is oc.event_presence else 2  # both may be in part 1, before and after
    for d_in in (0, 1, 2, 3):
        assert parallel.map(d_in) == pytest.approx(0.5 * factor * d_in)


@pytest.mark.parametrize("send", ["steps", "batch", "array"])
def test_an_update_reaches_its_part_and_the_others_go_on(send):
    space = space_of()
    measurements = counters(space)
    measurements["never"] = oc.m.make_window_counter(*space, PURE, TINY, 3)
    measurements[1] = oc.m.make_window_counter(*space, PURE, TINY, 3)
    handle = oc.c.make_parallel_continual(*space, parity, measurements)([])
    even, odd, never = (handle(part) for part in (0, 1, "never"))
    stream = [3, 2, 5, 4, 6]
    if send == "steps":
        for item in stream:
            handle.update(item)
    else:
        handle.update_all(np.array(stream) if send == "array" else stream)
    assert (even(None), odd(None), never(None)) == (12, 5, 0)  # of the last three, one is odd
    handle.update(None)
    handle.update_all([None, 8])
    assert (even(None), odd(None), never(None)) == (20, 0, 0)


def test_parts_are_asked_only():
    space = space_of()
    handle = oc.c.make_parallel_continual(*space, parity, counters(space))([])
    part = handle(0)
    with pytest.raises(InvalidTypeError, match="the parent's stream"):
        part(oc.handles.Update(2))
    handle.update(2)
    assert part(None) == handle(0)(None) == 2
    for unknown in (5, "x", None, [1], parity):
        with pytest.raises(InvalidValueError, match="^the part must be one of"):
            handle(unknown)


@pytest.mark.parametrize(
    "measure",
    [ZCDP, APPROXIMATE, GAUSSIAN, RENYI],
)
def test_other_measures_are_refused_with_a_citation(measure):
    space = space_of()
    one = oc.m.make_counter(*space, measure, 10.0)
    with pytest.raises(UnsupportedMeasureError, match=r"HSV25.*compose them instead"):
        oc.c.make_parallel_continual(*space, parity, {0: one})


def test_parts_are_those_that_were_priced():
    space = space_of()
    measurements = counters(space, (1e9, 1e9))
    parts = oc.c.make_parallel_continual(*space, parity, measurements)
    measurements |= counters(space, (1e-9,))
    queryable = parts([])
    queryable.update_all([2] * 10)
    assert queryable(0)(None) != 20  # but for once in 10^9
    assert parts.map(1) < 1e-6
