"""One stream for many children: who gets which updates, and what is charged."""

import threading

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    FiniteCommunicationError,
    InvalidTypeError,
    InvalidValueError,
    MessageLimitError,
    PrivacyMapError,
    StreamError,
    UnsupportedMeasureError,
)

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
TINY = 1e-3


def exact(space, **options):
    return oc.m.make_counter(*space, PURE, TINY, **options)


def of_loss(space, epsilon):
    return oc.m.make_counter(*space, PURE, 1 / epsilon)


# --- updates ---------------------------------------------------------------------------------


def test_each_update_goes_to_all_children(bits, make_stream):
    stream = make_stream(bits)([])
    one, window = stream(exact(bits)), stream(oc.m.make_window_counter(*bits, PURE, TINY, 2))
    stream.update(1, step=1)
    stream.update_all([1, None, 1])
    assert (one(None), window(None)) == (3, 1)
    stream.update(1)
    assert (window(None), one(None)) == (2, 4)


def test_a_bounded_child_ends_at_its_bound(bits, make_stream):
    stream = make_stream(bits)([])
    child = stream(oc.c.make_bounded_interactive(exact(bits), 2))
    other = stream(exact(bits))
    for _ in range(3):
        stream.update(1)
    assert other(None) == 3
    with pytest.raises((StreamError, MessageLimitError)):
        child(None)


# --- charges ---------------------------------------------------------------------------------


def test_a_launch_on_an_odometer_is_described_at_a_distance(bits):
    stream = oc.c.make_concurrent_continual(oc.make_concurrent_odometer(*bits, PURE))([])
    with pytest.raises(PrivacyMapError) as refused:
        stream.describe(of_loss(bits, 0.5), "a" * 10**6)
    assert len(str(refused.value)) < 3000
    assert [stream.describe(of_loss(bits, 0.5), d_in).loss for d_in in (1, 3)] == [0.5, 1.5]


def test_mechanisms_that_do_not_fit(bits, make_stream):
    stream = make_stream(bits)([])
    other = oc.integer_stream(0, 2), oc.event_presence()
    for wrong in (
        exact(other),
        oc.m.make_counter(*bits, ZCDP, 1.0),
        oc.m.make_counter(bits[0], oc.event_change(), PURE, 1.0),
    ):
        with pytest.raises(InvalidValueError):
            stream(wrong)
    for wrong in (None, "count", 7):
        with pytest.raises(InvalidTypeError):
            stream(wrong)
    assert stream.privacy_loss() == 0.0


def test_the_bound_is_that_of_the_composition(bits, make_stream):
    assert make_stream(bits, 0.75).map(1) == 0.75


# --- finite communication --------------------------------------------------------------------

dp.enable_features("contrib", "honest-but-curious")
APPROXIMATE, GAUSSIAN = dp.approximate(PURE), oc.gaussian_tradeoff()
LARGE = {"approximate": (1e9, 1e-3), "gaussian": 1e9, "zcdp": 1e9, "renyi": 1e9}
MEASURES = {
    "approximate": APPROXIMATE,
    "gaussian": GAUSSIAN,
    "zcdp": ZCDP,
    "renyi": oc.fixed_renyi_divergence(4.0),
}


def failing(space):
    """A counter that may fail, made by OpenDP's casts."""
    return dp.c.make_fix_delta(
        dp.c.make_zCDP_to_approxDP(oc.m.make_counter(*space, ZCDP, 1.0)), 1e-6
    )


def roots(space, measure, d_out):
    """Ways to launch: with a stream of each child, and with one stream of all."""
    odometer = oc.make_concurrent_odometer(*space, measure)
    budget = oc.make_concurrent_filter(odometer, 1, d_out)
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
    child = failing(bits) if measure == "approximate" else oc.m.make_counter(*bits, GAUSSIAN, 1.0)
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
    last = failing(bits) if measure == "approximate" else oc.m.make_counter(*bits, GAUSSIAN, 1.0)
    handle = root(bounded(last))
    for _ in range(9):
        handle(None)
    with pytest.raises(MessageLimitError):
        handle(None)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("measure", ["zcdp", "renyi"])
def test_renyi_divergences_need_no_bound(bits, measure, name):
    root = roots(bits, MEASURES[measure], LARGE[measure])[name]([])
    counter = oc.m.make_counter(*bits, MEASURES[measure], 1.0)
    assert [type(root(counter)(None)) for _ in range(2)] == [int, int]


@pytest.mark.parametrize("measure", MEASURES)
def test_max_messages_bounds_each_child(bits, make_stream, measure):
    stream = make_stream(bits, LARGE[measure], MEASURES[measure], max_messages=2)([])
    own = oc.m.make_counter(*bits, ZCDP if measure == "approximate" else MEASURES[measure], 1.0)
    handle = stream(failing(bits) if measure == "approximate" else own)
    stream.update(1)
    assert isinstance(handle(None), int)
    with pytest.raises(MessageLimitError):
        handle(None)


def test_a_loss_is_judged_at_each_d_in(bits):
    root = oc.make_concurrent_odometer(*bits, APPROXIMATE)([])
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


def _gaussian_rows():
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    noisy = rows >> dp.t.then_count() >> dp.m.then_gaussian(1.0)
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noisy), 1e-6)


def _zcdp_plan(space):
    return oc.make_concurrent_composition(*space, ZCDP, 1, [1.0, 1.0])


BOUNDED = {
    "wrapped": lambda space: oc.c.make_interactive(bounded(failing(space))),
    "cast": lambda space: oc.c.cast(bounded(failing(space)), APPROXIMATE, delta=1e-5),
    "cast by OpenDP": lambda space: dp.c.make_fix_delta(
        dp.c.make_zCDP_to_approxDP(bounded(oc.m.make_counter(*space, ZCDP, 1.0))), 1e-6
    ),
    "transformed": lambda space: (
        oc.t.make_stream_filter(*space, lambda item: item == 1) >> bounded(failing(space))
    ),
    "a release": lambda space: oc.c.make_on_stream(*space, _gaussian_rows()),
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
    "a plan without bounds": lambda space: oc.c.cast(_zcdp_plan(space), APPROXIMATE, delta=1e-6),
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


def test_queries_and_updates_count(bits, make_stream):
    stream = make_stream(bits, 1e9, ZCDP, max_messages=5)([])
    child = stream(oc.m.make_counter(*bits, ZCDP, TINY))
    stream.update_all([1, 1, 1])
    assert child(None) == 3
    stream.update(1)
    with pytest.raises(MessageLimitError) as over:
        child(None)
    assert over.value.limit == 5
    fresh = stream(oc.m.make_counter(*bits, ZCDP, TINY))
    stream.update(1)
    with pytest.raises((StreamError, MessageLimitError)):
        child(None)
    assert fresh(None) == 1


class Slow:
    """Counts what reaches it; a batch takes until a query has been sent."""

    def __init__(self):
        self.heard, self.begun, self.sent = 0, threading.Event(), threading.Event()

    def update(self, item):
        self.heard += 1

    def update_all(self, items):
        self.begun.set()
        self.sent.wait(timeout=0.2)
        self.heard += len(items)

    def ask(self, query):
        self.heard += 1
        return self.heard


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
    assert machine.heard == 5
    assert len(refused) == 4


def test_threads_do_not_exceed_the_limit(bits, make_stream):
    """Updates and queries of one child from several threads, up to its limit and no further."""
    stream = make_stream(bits, 1e9, ZCDP, max_messages=200)([])
    child, answered = stream(oc.m.make_counter(*bits, ZCDP, TINY)), []

    def ask():
        for _ in range(150):
            try:
                answered.append(child(None))
            except (StreamError, MessageLimitError):
                return

    def feed():
        for _ in range(100):
            stream.update(1)

    threads = [threading.Thread(target=work) for work in (ask, ask, feed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(answered) <= 200
    assert max(answered) <= 100


def test_approximate_zcdp_is_refused(bits):
    odometer = oc.make_concurrent_odometer(*bits, dp.approximate(ZCDP))
    for composition in (odometer, oc.make_concurrent_filter(odometer, 1, (1.0, 1e-6))):
        with pytest.raises(UnsupportedMeasureError):
            oc.c.make_concurrent_continual(composition, max_messages=5)


# --- streams of their own --------------------------------------------------------------------


def test_what_is_no_composition(bits, space):
    for bad in (None, dp.c.make_fully_adaptive_composition(*bits, PURE), "filter"):
        with pytest.raises(InvalidTypeError, match="^composition"):
            oc.c.make_concurrent_continual(bad)
    with pytest.raises(InvalidTypeError, match="stream"):
        oc.c.make_concurrent_continual(oc.make_concurrent_odometer(*space, PURE))
