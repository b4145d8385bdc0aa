"""Handles of interactive mechanisms: what their exceptions hold, and who may ask when."""

import contextvars
import threading

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import ReentrantLaunchError
from opendp_concurrent.mechanisms.noise import LaplaceNoise
from opendp_concurrent.queryables.child import forget_frames

SECRET = 31337
ROWS = [SECRET] * 100
PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


def space():
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


def count():
    return space() >> dp.t.then_count()


def bad(rows):
    raise RuntimeError("the query failed")


def failing():
    """A handle, and messages at which it raises."""
    sparse = oc.m.make_sparse_vector(*space(), PURE, 1, 2.0, 50, 3)
    guess = oc.m.make_guess_and_check(*space(), PURE, 1, 2.0, 50, 3)
    cells = {"universe": [SECRET, 1], "size": 100}
    weights = oc.m.make_private_multiplicative_weights(*space(), ZCDP, 1, 50.0, queries=3, **cells)
    projected = oc.m.make_projected_queries(*space(), ZCDP, 1, [0.5], **cells)
    middle = oc.c.make_interactive_postprocessing(sparse, lambda *now: 1 / 0)
    parts = oc.c.make_parallel_composition(
        *space(), oc.c.by_key(lambda row: row), {SECRET: sparse, 1: sparse}
    )
    return {
        "sparse vector": (sparse(ROWS), ["nonsense", bad, (count(), "x")]),
        "guess and check": (guess(ROWS), ["nonsense", ("nonsense", 1.0), (bad, 1.0)]),
        "weights": (weights(ROWS), ["nonsense", [0.5], [2.0, 0.0], bad]),
        "projected": (projected(ROWS), ["nonsense", [[0.5]], [bad]]),
        "middle": (middle(ROWS), [count()]),
        "part": (parts(ROWS)(SECRET), ["nonsense", bad]),
        "parts": (parts(ROWS), ["nonsense", []]),
    }


def frames(error):
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        trace = error.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


def holds_a_secret(value, depth=0):
    if isinstance(value, LaplaceNoise):
        return True
    if isinstance(value, np.ndarray):
        return value.size > 0 and value.max() >= 100
    if isinstance(value, (list, tuple)):
        return any(one == SECRET or holds_a_secret(one, depth) for one in value[:5])
    if depth < 3 and type(value).__module__.startswith("opendp_concurrent.mechanisms"):
        names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        parts = [getattr(value, name, None) for name in [*names, *getattr(value, "__dict__", {})]]
        return any(holds_a_secret(part, depth + 1) for part in parts)
    return False


def test_the_test_sees_secrets(monkeypatch):
    """Without the guard frames do hold them."""
    monkeypatch.setattr("opendp_concurrent.queryables.child.forget_frames", lambda error: None)
    handle, messages = failing()["sparse vector"]
    with pytest.raises(Exception) as caught:  # noqa: PT011
        handle(messages[0])
    here = __file__
    assert any(
        holds_a_secret(value)
        for frame in frames(caught.value)
        if frame.f_code.co_filename != here
        for value in frame.f_locals.values()
    )


NAMES = ["sparse vector", "guess and check", "weights", "projected", "middle", "part", "parts"]


@pytest.mark.parametrize("name", NAMES)
def test_exceptions_hold_neither_data_nor_noise(name):
    handle, messages = failing()[name]
    for message in messages:
        try:
            handle(message)
        except Exception as error:
            for frame in frames(error):
                if frame.f_code.co_filename == __file__:
                    continue
                assert not any(holds_a_secret(value) for value in frame.f_locals.values()), (
                    name,
                    message,
                    frame.f_code.co_name,
                )
        else:
            pytest.fail(f"{name} answered {message!r}")


def test_a_query_may_not_ask_its_own_mechanism_from_a_context_of_its_own():
    handle = oc.m.make_above_threshold(*space(), PURE, 1, 1e-3, 0)(ROWS)
    inner = []

    def query(rows):
        try:
            inner.append(contextvars.Context().run(handle, len))
        except ReentrantLaunchError as error:
            inner.append(error)
        return len(rows)

    assert handle(query)
    assert [type(one) for one in inner] == [ReentrantLaunchError]
    assert handle(len).outcome is oc.m.Outcome.EXHAUSTED


def test_after_a_failure_it_may_be_asked_again():
    handle = oc.m.make_above_threshold(*space(), PURE, 1, 1e-3, 0)(ROWS)
    with pytest.raises(RuntimeError, match="failed"):
        handle(bad)
    assert handle(len)


def test_a_thread_waits_for_its_turn():
    begun, done = threading.Event(), threading.Event()
    handle = oc.m.make_sparse_vector(*space(), PURE, 1, 1e-3, 0, 10)(ROWS)
    answers = []

    def slow(rows):
        begun.set()
        assert done.wait(timeout=10)
        return len(rows)

    first = threading.Thread(target=lambda: answers.append(handle(slow)))
    second = threading.Thread(target=lambda: answers.append(handle(len)))
    first.start()
    assert begun.wait(timeout=10)
    second.start()
    second.join(timeout=0.2)
    assert second.is_alive()
    done.set()
    first.join(timeout=10)
    second.join(timeout=10)
    assert [bool(answer) for answer in answers] == [True, True]


def test_frames_of_causes_and_contexts_are_forgotten():
    def chain():
        try:
            try:
                raise ValueError("one")
            except ValueError as error:
                raise TypeError("two") from error
        except TypeError:
            raise RuntimeError("three")  # noqa: B904

    with pytest.raises(RuntimeError) as caught:
        chain()
    forget_frames(caught.value)
    error = caught.value
    while error is not None:
        assert error.__traceback__ is None
        error = error.__cause__ or error.__context__
