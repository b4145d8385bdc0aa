"""A restart neither draws anew nor forgets; a record of a stranger is read by types."""

import copy
import json
import pickle
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    StreamError,
    StreamHaltedError,
)
from opendp_concurrent.queryables.stream import NOT_SAVED, Restore, Save

from ..build import PURE, ZCDP, an_odometer
from .machines import Sum

TINY = 1e-3  # noise is 0 but once in e^1000
BITS = oc.integer_stream(0, 1), oc.event_presence()


def bounded(limit=1, output=None):
    pairs = oc.record_stream("user and bit", lambda pair: isinstance(pair, tuple))
    return oc.t.make_bounded_contributions(pairs, oc.user_presence(), output or BITS[0], limit)


class Kept(Sum):
    """A machine of a user with a record."""

    def to_record(self):
        return {"items": self.items}

    def restore(self, record):
        self.items = record["items"]


@cache
def mechanisms(scale):
    three = oc.category_stream(3), oc.event_presence()
    clamp = oc.t.make_stream_clamp(*BITS, BITS[0])
    return {
        "digits": oc.m.make_counter(*BITS, PURE, scale, horizon=1000),
        "epochs": oc.m.make_counter(*BITS, PURE, scale),
        "gaussian": oc.m.make_counter(*BITS, ZCDP, scale, horizon=1000),
        "endless": oc.m.make_counter(*BITS, ZCDP, scale),
        "window of digits": oc.m.make_window_counter(*BITS, PURE, scale, window=13),
        "gaussian window": oc.m.make_window_counter(*BITS, ZCDP, scale, window=13),
        "histogram": oc.m.make_histogram_counter(*three, PURE, scale),
        "histogram of digits": oc.m.make_histogram_counter(*three, PURE, scale, horizon=1000),
        "gaussian histogram": oc.m.make_histogram_counter(*three, ZCDP, scale),
        "cast": oc.c.cast(oc.m.make_counter(*BITS, PURE, scale), ZCDP),
        "transformed": clamp >> (clamp >> oc.m.make_counter(*BITS, PURE, scale)),
        "of a user": oc.m.make_continual(*BITS, PURE, Kept, lambda d_in: 1.0),
    }


NAMES = list(mechanisms(TINY))


def resumed(measurement, handle):
    """Another handle, by a JSON file."""
    return oc.c.from_record(measurement, json.loads(json.dumps(handle.to_record())))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 13, 14, 29, 100])
def test_answers_before_and_after_are_equal(name, steps):
    measurement = mechanisms(50.0)[name]
    before = measurement([])
    before.update_all([1, 0, None, 1] * 25 if steps == 100 else [1] * steps)
    untold = resumed(measurement, before)  # a record draws the noise that its answer would have
    told = before(None)
    after = resumed(measurement, before)
    assert untold(None) == after(None) == after(None) == told == before(None)


@pytest.mark.parametrize("name", NAMES)
def test_sums_go_on(name):
    """With noise that is 0, against one that was not stopped."""
    random = np.random.default_rng(3)
    measurement = mechanisms(TINY)[name]
    whole, now = measurement([]), measurement([])
    for _ in range(8):
        items = random.integers(0, 2, size=random.integers(0, 20)).tolist()
        for queryable in (whole, now):
            queryable.update_all(items)
            queryable.update(1)
        now = resumed(measurement, now)
        assert now(None) == whole(None)


def test_steps_and_the_horizon_are_remembered():
    for measurement in (
        oc.m.make_counter(*BITS, PURE, 1.0, horizon=5),
        oc.t.make_stream_clamp(*BITS, BITS[0]) >> oc.m.make_counter(*BITS, PURE, 1.0, horizon=5),
    ):
        before = measurement([])
        before.update_all([1, 1, 1])
        after = resumed(measurement, before)
        after.update(1, step=4)
        with pytest.raises(StreamError, match="horizon"):
            after.update_all([1, 1])


def test_a_halted_mechanism_has_no_record():
    handle = mechanisms(1.0)["digits"]([])
    with pytest.raises(StreamHaltedError):
        handle.update(7)
    with pytest.raises(StreamHaltedError):
        handle.to_record()


def test_the_record_of_another_mechanism_is_refused():
    record = mechanisms(1.0)["digits"]([]).to_record()
    for other in (mechanisms(1.0)["gaussian"], mechanisms(2.0)["digits"]):
        with pytest.raises(InvalidValueError, match=r"^record is of .* and cannot continue"):
            oc.c.from_record(other, record)
    oc.c.from_record(mechanisms(1.0)["digits"], record)


CANNOT = {
    "alarm": lambda: oc.m.make_alarm(*BITS, PURE, 1.0, 5),
    "parts": lambda: oc.c.make_parallel_continual(*BITS, bool, {True: mechanisms(1.0)["digits"]}),
    "shared": lambda: oc.c.make_concurrent_continual(
        oc.make_concurrent_composition(*BITS, PURE, 1, [1.0])
    ),
    "interactive": lambda: oc.c.make_interactive(mechanisms(1.0)["digits"]),
    "behind a transformation": lambda: (
        oc.t.make_stream_clamp(*BITS, BITS[0])
        >> oc.c.make_bounded_interactive(mechanisms(1.0)["digits"], 9)
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_written_says_so(name):
    measurement = CANNOT[name]()
    handle = measurement([])
    handle.update(1)
    if hasattr(handle, "to_record"):
        with pytest.raises(InvalidTypeError, match="must be a counter"):
            handle.to_record()
    handle.update(0)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="must be|record"):
        oc.c.from_record(measurement, mechanisms(1.0)["digits"]([]).to_record())


def test_an_analyst_has_no_records():
    """A child of a stream takes queries only, and a record is a message to what takes updates."""
    stream = oc.c.make_concurrent_continual(an_odometer(space=BITS))([])
    child = stream(mechanisms(1.0)["digits"])
    assert not hasattr(child, "to_record")
    record = mechanisms(1.0)["digits"]([]).to_record()
    for message in (Save(), Restore(record)):
        with pytest.raises(InvalidTypeError, match="an update is data"):
            child(message)
        postprocessed = oc.c.make_interactive_postprocessing(
            mechanisms(1.0)["digits"], lambda state, tag, _, send=message: (state, tag, send)
        )([])
        with pytest.raises(InvalidTypeError, match="an update is data"):
            postprocessed("record")
    handle = mechanisms(1.0)["digits"]([])
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            take(handle)


# --- users ------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [False, True])
def test_a_user_contributes_once_over_20_restarts(inside):
    counter = oc.m.make_counter(*BITS, PURE, TINY)
    clamp = oc.t.make_stream_clamp(oc.integer_stream(0, 9), oc.event_presence(), BITS[0])
    limit = bounded(output=oc.integer_stream(0, 9))
    measurement = limit >> (clamp >> counter) if inside else (limit >> clamp) >> counter
    handle = measurement([])
    for _ in range(20):
        handle.update_all([("ann", 1), ("bob", 0)])
        handle = resumed(measurement, handle)
    assert handle(None) == 1


USERS = [0, -1, 2**100, 1.5, "ann", "", "\ud800", b"\x00\xff", None, (), ("a", (1, b"b")), 1e300]
EQUAL = [(1, True), (1, 1.0), (0.0, -0.0), (np.int64(7), 7), (np.str_("x"), "x")]


def test_users_of_many_kinds_are_told_apart_after_a_restart():
    measurement = bounded() >> oc.m.make_counter(*BITS, PURE, TINY)
    handle = measurement([])
    handle.update_all([(user, 1) for user in USERS])
    handle = resumed(measurement, handle)
    handle.update_all([(user, 1) for user in USERS])
    assert handle(None) == len(USERS)


@pytest.mark.parametrize(("one", "other"), EQUAL + [pair[::-1] for pair in EQUAL], ids=repr)
def test_equal_users_stay_equal(one, other):
    measurement = bounded() >> oc.m.make_counter(*BITS, PURE, TINY)
    handle = measurement([])
    handle.update((one, 1))
    handle = resumed(measurement, handle)
    handle.update((other, 1))
    assert handle(None) == 1


@pytest.mark.parametrize("user", [frozenset({1}), (float("nan"),), 1j], ids=repr)
def test_a_user_that_cannot_be_written_is_refused_and_the_mechanism_goes_on(user):
    handle = (bounded() >> oc.m.make_counter(*BITS, PURE, TINY))([])
    handle.update((user, 1))
    with pytest.raises(InvalidTypeError, match="which a record cannot have"):
        handle.to_record()
    handle.update(("ann", 1))
    assert handle(None) == 2


# --- records of strangers ---------------------------------------------------------------------

VALUES = (
    *(-1, 2**80, 0, 1, 7, 1e300, 0.5, True, None, "x", "1", [], [1], {}, {"a": 1}, float("nan")),
    *(2**62, 2**63, -(2**63) - 1, 2**64, 10**400, [1, 2], [0] * 7, [[1]], [2**63], "0"),
)


def leaves(value, path=()):
    """The places of values that have no parts, and of the parts; of a list, the first two."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
        for key, part in pairs if isinstance(value, dict) else pairs[:2]:
            yield from leaves(part, (*path, key))


def replaced(record, path, value):
    found = copy.deepcopy(record)
    at = found
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return found


def at(record, path):
    for key in path:
        record = record[key]
    return record


@pytest.mark.parametrize("name", [*NAMES[:-1], "users"])
def test_a_changed_record_is_refused_or_is_a_state(name):
    """What is accepted is written again as it was read, and answers with errors of ours only."""
    measurement = (
        bounded(3) >> oc.m.make_counter(*BITS, PURE, 9.0)
        if name == "users"
        else mechanisms(9.0)[name]
    )
    handle = measurement([])
    item = (lambda one: ("ann", one)) if name == "users" else (lambda one: one)
    handle.update_all([item(one) for one in (1, 0, 1, 1, 0, 1)])
    record = handle.to_record()
    refused = accepted = 0
    for path in leaves(record):
        was = at(record, path)
        more = (was + 1, was - 1) if type(was) is int else ()
        for value in (*VALUES, *more, KeyError):
            if value is not KeyError and type(value) is type(was) and value == was:
                continue
            changed = replaced(record, path, value)
            try:
                found = oc.c.from_record(measurement, changed)
            except InvalidValueError:
                refused += 1
                continue
            accepted += 1
            assert path[-1] != "steps" or "window" in name  # a window knows its last steps only
            assert json.dumps(found.to_record(), sort_keys=True) == json.dumps(
                changed, sort_keys=True
            )
            with suppress(ConcurrentError):
                found.update(item(1))
                found(None)
    assert refused > accepted


@pytest.mark.parametrize("record", [None, "", 7, [], {}, {"steps": 0}, b"x", [[]] * 3])
def test_what_is_no_record_is_refused(record):
    for name in NAMES:
        with pytest.raises(InvalidValueError, match=NOT_SAVED):
            oc.c.from_record(mechanisms(1.0)[name], record)


def test_a_deep_record_is_refused():
    deep = []
    for _ in range(10**5):
        deep = [deep]
    record = mechanisms(1.0)["digits"]([]).to_record()
    with pytest.raises(InvalidValueError, match="^record"):
        oc.c.from_record(
            mechanisms(1.0)["digits"], {**record, "state": {**record["state"], "sum": deep}}
        )
