"""What is restored is what a counter can have been in: else it is refused.

A checkpoint's digest is no signature. So each value is replaced by hostile ones, with the digest of
the result: it is refused, or the same record is saved again, and the counter goes on.
"""

import json
from hashlib import sha256
from uuid import uuid4

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

dp.enable_features("contrib", "honest-but-curious")
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()
BITS = oc.integer_stream(-1, 1), oc.event_presence()
THREE = oc.category_stream(3), oc.event_presence()
HOSTILE = (
    *(-1, 0, 1, 2, 7, 2**61 + 1, 2**62 + 1, 2**63, -(2**63) - 1, 2**80, 10**400),
    *(0.0, 0.5, 1e300, True, None, "x", "1", {}, {"0": 1}, {"before": 0}),
    *([], [1], [0, 0], [1, 2, 3], [0] * 4, [2**63, 0, 0], [[1]], [[1], [2], [3]], [None] * 3),
)
SCALE = 50.0


def counter(measure, **options):
    return lambda: oc.m.make_counter(*BITS, measure, SCALE, **options)


def histogram(measure, **options):
    return lambda: oc.m.make_histogram_counter(*THREE, measure, SCALE, **options)


def window(measure, **options):
    return lambda: oc.m.make_window_counter(*BITS, measure, SCALE, window=5, **options)


MADE = {
    "doubling": counter(PURE, method="tree"),
    "epochs": counter(PURE),
    "tree": counter(PURE, horizon=40, method="tree"),
    "smooth": counter(ZCDP, horizon=40, method="smooth"),
    "digits": counter(PURE, horizon=40),
    "buffered": counter(ZCDP, horizon=40),
    "endless": counter(ZCDP),
    "square root": counter(ZCDP, horizon=40, method="square_root"),
    "doubling histogram": histogram(PURE, method="tree"),
    "histogram of epochs": histogram(PURE),
    "histogram of a tree": histogram(PURE, horizon=40, method="tree"),
    "histogram of digits": histogram(PURE, horizon=40),
    "buffered histogram": histogram(ZCDP, horizon=40),
    "window of trees": window(PURE, method="trees"),
    "window of digits": window(PURE),
    "buffered window": window(ZCDP),
}


def digested(record):
    text = json.dumps(record | {"lineage": uuid4().hex}, sort_keys=True, separators=(",", ":"))
    return f'{{"digest":"{sha256(text[1:-1].encode()).hexdigest()}",{text[1:-1]}}}'


def read(saved):
    record = json.loads(saved)
    del record["digest"]
    return record


def resumed(measurement, saved=None):
    checkpoint = oc.c.Checkpoint(saved)
    return oc.c.make_resumable(measurement, checkpoint)([]), checkpoint


def places(value, path=()):
    """The place of each value, also of those that have parts."""
    if path:
        yield path
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*path, key))


def replaced(record, path, value):
    copy = json.loads(json.dumps(record))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("steps", [5, 11])
@pytest.mark.parametrize("name", MADE)
def test_every_replaced_value_is_refused_or_restored_as_it_is(name, steps, every):
    """So many places share the hostile values; other ones in each counter."""
    first = 2 * (steps == 11) + list(MADE).index(name)
    measurement = MADE[name]()
    handle, checkpoint = resumed(measurement)
    handle.update_all([1] * steps)
    record = read(checkpoint.save())
    assert resumed(measurement, digested(record))  # unchanged
    state = record["parts"][0][1]["machine"]
    for number, path in enumerate(places(state), first):
        for value in HOSTILE[number % every :: every]:
            parts = replaced(record, ("parts", 0, 1, "machine", *path), value)["parts"]
            try:
                after, checkpoint = resumed(measurement, digested(record | {"parts": parts}))
            except InvalidValueError:
                continue
            assert read(checkpoint.save(go_on=True))["parts"] == parts, path
            after.read()
            after.update(1)
            after.update_all([1, 0] * 9)
            after.read()
            checkpoint.save()


def test_steps_beyond_the_horizon_are_refused():
    for name in ("tree", "smooth", "digits", "buffered", "square root"):
        handle, checkpoint = resumed(MADE[name]())
        handle.update_all([1] * 40)
        record = read(checkpoint.save())
        parts = replaced(record["parts"], (0, 1, "steps"), 41)
        with pytest.raises(InvalidValueError):
            resumed(MADE[name](), digested(record | {"parts": parts}))
