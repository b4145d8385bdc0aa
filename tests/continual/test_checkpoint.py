"""A restart neither draws anew nor forgets; and nobody but the owner can save."""

import copy
import json
import pickle
from functools import cache

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError, StreamHaltedError

TINY = 1e-3  # noise is 0 but once in e^1000


@cache
def mechanisms(scale):
    binary = oc.integer_stream(0, 1), oc.event_presence()
    three = oc.category_stream(3), oc.event_presence()
    pure, zcdp = dp.max_divergence(), dp.zero_concentrated_divergence()
    return {
        "tree": oc.m.make_counter(*binary, pure, scale, horizon=1000),
        "epochs": oc.m.make_counter(*binary, pure, scale),
        "smooth": oc.m.make_counter(*binary, zcdp, scale, horizon=1000),
        "endless": oc.m.make_counter(*binary, zcdp, scale),
        "window of digits": oc.m.make_window_counter(*binary, pure, scale, window=13),
        "buffered window": oc.m.make_window_counter(*binary, zcdp, scale, window=13),
        "endless histogram": oc.m.make_histogram_counter(*three, pure, scale),
        "histogram of digits": oc.m.make_histogram_counter(*three, pure, scale, horizon=1000),
        "buffered histogram": oc.m.make_histogram_counter(*three, zcdp, scale),
    }


NAMES = [
    *("tree", "epochs", "smooth", "endless", "window of digits", "buffered window"),
    *("endless histogram", "histogram of digits", "buffered histogram"),
]


def resumed(measurement, saved=None):
    checkpoint = oc.c.Checkpoint(saved)
    return oc.c.make_resumable(measurement, checkpoint)([]), checkpoint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 7, 8, 13, 14, 29, 64, 100])
def test_answers_before_and_after_are_equal(name, steps):
    measurement = mechanisms(50.0)[name]
    before, checkpoint = resumed(measurement)
    before.update_all([1, 0, None, 1] * 25 if steps == 100 else [1] * steps)
    told = before(None)
    after, _ = resumed(measurement, checkpoint.save())
    for _ in range(2):
        assert after(None) == told


@pytest.mark.parametrize("name", NAMES)
def test_sums_go_on(name):
    """With noise that is 0, against one that was not stopped."""
    random = np.random.default_rng(3)
    measurement = mechanisms(TINY)[name]
    whole = measurement([])
    now, checkpoint = resumed(measurement)
    for _ in range(12):
        items = random.integers(0, 2, size=random.integers(0, 20)).tolist()
        for queryable in (whole, now):
            queryable.update_all(items)
            queryable.update(1)
        assert now(None) == whole(None)
        now, checkpoint = resumed(measurement, checkpoint.save())
        assert now(None) == whole(None)


def test_a_node_that_lives_on_keeps_its_noise():
    measurement = mechanisms(1000.0)["tree"]
    before, checkpoint = resumed(measurement)
    before.update_all([1] * 64)
    noisy = before(None)
    after, checkpoint = resumed(measurement, checkpoint.save())
    assert after(None) == noisy
    after.update(None)  # the node of the first 64 steps stays, one of a single step comes
    told = after(None)
    assert after(None) == told
    again, _ = resumed(measurement, checkpoint.save())
    assert again(None) == told


def test_steps_and_the_horizon_are_remembered():
    measurement = oc.m.make_counter(
        oc.integer_stream(0, 1), oc.event_presence(), dp.max_divergence(), 1.0, horizon=5
    )
    before, checkpoint = resumed(measurement)
    before.update_all([1, 1, 1])
    after, _ = resumed(measurement, checkpoint.save())
    after.update(1, step=4)
    with pytest.raises(oc.errors.StreamError, match="horizon"):
        after.update_all([1, 1])


def test_a_halted_mechanism_stays_halted():
    measurement = mechanisms(1.0)["tree"]
    before, checkpoint = resumed(measurement)
    with pytest.raises(StreamHaltedError):
        before.update(7)
    after, _ = resumed(measurement, checkpoint.save())
    with pytest.raises(StreamHaltedError):
        after(None)


def test_another_mechanisms_state_is_refused():
    tree, smooth = mechanisms(1.0)["tree"], mechanisms(1.0)["smooth"]
    other_scale = mechanisms(2.0)["tree"]
    _, checkpoint = resumed(tree)
    saved = checkpoint.save()
    for other in (smooth, other_scale):
        with pytest.raises(InvalidValueError, match="cannot be resumed by"):
            resumed(other, saved)
    resumed(tree, saved)  # a refusal uses nothing up


@pytest.mark.parametrize("saved", ["", "{}", "[1]", "null", 7, json.dumps({"version": 1})])
def test_what_was_not_saved_here_is_refused(saved):
    with pytest.raises(InvalidValueError, match="^saved must be what"):
        oc.c.Checkpoint(saved)


def test_another_version_is_refused():
    _, checkpoint = resumed(mechanisms(1.0)["tree"])
    record = {**json.loads(checkpoint.save(go_on=True)), "version": 9}
    del record["digest"]
    with pytest.raises(InvalidValueError, match="another version"):
        oc.c.Checkpoint(json.dumps(record))


def test_a_checkpoint_is_for_one_launch():
    checkpoint = oc.c.Checkpoint()
    measurement = oc.c.make_resumable(mechanisms(1.0)["tree"], checkpoint)
    with pytest.raises(InvalidValueError, match="no mechanism was launched"):
        checkpoint.save(go_on=True)
    measurement([])
    with pytest.raises(InvalidValueError, match="one launch"):
        measurement([])


def test_the_queryable_gives_nothing_away():
    queryable, checkpoint = resumed(mechanisms(1.0)["tree"])
    for holder in (queryable, checkpoint):
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                take(holder)
    assert not hasattr(queryable, "save")
    assert not hasattr(queryable, "checkpoint")


def test_the_loss_is_that_of_the_mechanism():
    for measurement in mechanisms(3.0).values():
        assert oc.c.make_resumable(measurement, oc.c.Checkpoint()).map(1) == measurement.map(1)


def test_what_cannot_be_resumed():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    count = space >> dp.t.then_count() >> dp.m.then_laplace(1.0)
    with pytest.raises(InvalidTypeError, match="^measurement must be a continual"):
        oc.c.make_resumable(count, oc.c.Checkpoint())
    with pytest.raises(InvalidTypeError, match="^checkpoint must be"):
        oc.c.make_resumable(mechanisms(1.0)["tree"], "checkpoint")
    compositor = oc.make_concurrent_composition(*space, dp.max_divergence(), 1, [1.0])
    with pytest.raises(InvalidTypeError, match="^measurement must be a counter"):
        oc.c.make_resumable(compositor, oc.c.Checkpoint())([1, 2])
