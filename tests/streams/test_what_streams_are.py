"""What a stream is, what may be launched on it, and in which types its items arrive."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, SpaceMismatchError

dp.enable_features("contrib", "honest-but-curious")
PURE = dp.max_divergence()
BITS = oc.integer_stream(0, 1), oc.event_presence()


def of_user(space=BITS):
    """A measurement that treats the stream as a dataset."""
    return dp.m.make_user_measurement(*space, PURE, len, lambda d_in: 0.1 * d_in, TO=int)


def of_user_interactive():
    return dp.m.make_user_measurement(
        *BITS,
        PURE,
        lambda data: dp.new_queryable(lambda query: 7, "ExtrinsicObject", int),
        lambda d_in: 0.1 * d_in,
        TO="ExtrinsicObject",
    )


def counter(domain=BITS[0]):
    return oc.m.make_counter(domain, oc.event_presence(), PURE, scale=10.0)


USERS = {
    "release": of_user,
    "queryable": of_user_interactive,
    "postprocessed": lambda: of_user() >> dp.new_function(lambda n: n, TO=int),
    "in a composition": lambda: dp.c.make_composition([counter(), of_user()]),
}


def roots():
    odometer = oc.make_concurrent_odometer(*BITS, PURE)
    budget = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    yield odometer([]), 1
    yield budget([]), None
    yield oc.c.make_concurrent_continual(odometer)([]), 1
    yield oc.c.make_concurrent_continual(budget)([]), None


@pytest.mark.parametrize("name", USERS)
def test_a_users_measurement_on_a_stream_is_refused_before_the_charge(name):
    for root, d_in in roots():
        with pytest.raises(InvalidTypeError, match="must be a continual mechanism"):
            root(USERS[name]())
        assert (root.privacy_loss() if d_in is None else root.privacy_loss(d_in)) == 0.0


@pytest.mark.parametrize("name", USERS)
def test_a_users_measurement_on_a_stream_is_refused_by_wrappers(name):
    for wrap in (
        lambda one: oc.c.make_bounded_interactive(one, max_messages=3),
        lambda one: oc.t.make_stream_clamp(*BITS, BITS[0]) >> one,
        lambda one: oc.c.make_parallel_continual(*BITS, lambda item: item, {0: one}),
    ):
        with pytest.raises(InvalidTypeError, match="must be a continual mechanism"):
            wrap(USERS[name]())


def test_opendps_compositors_pass_the_stream_on():
    native = dp.c.make_composition([counter(), counter()])
    for root, _ in roots():
        assert len(root(native)) == 2


class Types:
    """Keeps the types of what it gets."""

    def __init__(self):
        self.found = []

    def update(self, item):
        self.found.append(type(item))

    def update_all(self, items):
        assert type(items) is list
        self.found += map(type, items)

    def ask(self, query):
        return self.found


@pytest.mark.parametrize(
    ("domain", "plain"),
    [
        (oc.integer_stream(0, 9), int),
        (oc.category_stream(9), int),
        (oc.category_stream(["1", "2"]), str),
        (oc.record_stream("numbers", lambda item: item in (1, 2)), int),
        (oc.record_stream("floats", lambda item: item in (1.0, 2.0)), float),
    ],
    ids=str,
)
def test_items_are_pythons_own(domain, plain):
    one, two = map(plain, (1, 2))
    array = np.array([one, two])
    seen = []

    def keep(item):
        seen.append(type(item))
        return item

    machine = oc.m.make_continual(domain, oc.event_presence(), PURE, Types, lambda d_in: 0.0)
    mapped = oc.t.make_stream_map(domain, oc.event_presence(), domain, keep) >> machine
    for handle in (machine([]), mapped([])):
        handle.update(array[0])
        handle.update_all(array)
        handle.update_all([array[0], two])
        handle.update_all([one, None, array[1]])
        handle.update_all(np.ma.array(array, mask=[True, False]))
        assert {*handle("which?")} == {plain, type(None)}
    assert {*seen} == {plain}


def test_streams_of_other_items_with_one_name_differ():
    bits = oc.record_stream("integers from 0 to 1", lambda item: True)
    assert bits != BITS[0]
    assert oc.record_stream("2 categories", bool) != oc.category_stream(2)
    own = dp.user_domain("Stream(integers from 0 to 1)", lambda data: data == [])
    for domain in (bits, own):
        root = oc.make_concurrent_odometer(domain, oc.event_presence(), PURE)([])
        with pytest.raises(SpaceMismatchError):
            root(counter())


def test_records_are_equal_if_their_members_are():
    def member(item):
        return True

    same, again = (oc.record_stream("visits", member) for _ in range(2))
    other = oc.record_stream("visits", lambda item: item == 1)
    metric = oc.event_presence()
    first = oc.t.make_stream_map(same, metric, again, lambda item: item)
    last = oc.t.make_stream_map(again, metric, BITS[0], lambda item: 1)
    to_other = oc.t.make_stream_map(other, metric, BITS[0], lambda item: 1)
    clock = oc.m.make_continual(other, metric, PURE, Types, lambda d_in: 0.0)
    assert (first >> last >> counter()).map(1) == 0.1
    for wrong in (to_other, clock):
        with pytest.raises(SpaceMismatchError):
            first >> wrong
    for make in (
        oc.make_concurrent_odometer,
        lambda *space: oc.c.make_concurrent_continual(oc.make_concurrent_odometer(*space)),
    ):
        root = make(same, metric, PURE)([])
        root(last >> counter())
        with pytest.raises(SpaceMismatchError):
            root(clock)
    with pytest.raises(SpaceMismatchError):
        oc.c.make_parallel_continual(same, metric, lambda item: item, {1: clock})
