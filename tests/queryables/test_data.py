"""Data are not reachable from what an analyst holds."""

import copy
import gc
import pickle

import opendp.prelude as dp
import pytest
from opendp._lib import AnyObjectPtr

import opendp_concurrent as oc

SECRET = 987654321


def laplace(space, epsilon=0.25):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def handles(space):
    """Handles and children of every kind, with what made them, on data that hold the secret."""
    pure = dp.max_divergence()
    odometer = oc.make_concurrent_odometer(*space, pure)
    filter_ = oc.make_concurrent_filter(odometer, 1, 10.0)
    compositor = oc.make_concurrent_composition(*space, pure, 1, [0.5] * 5)
    native = dp.c.make_adaptive_composition(*space, pure, 1, [0.25] * 2)
    data = [SECRET, 2, 3]
    root = filter_(data)
    yield from (root, root(native), root(compositor), root(odometer))
    yield from (odometer(data), compositor(data))
    yield (filter_ >> (lambda handle: handle))(data)
    yield dp.c.make_adaptive_composition(*space, pure, 1, [5.0])(data)(compositor)
    clamp = dp.t.make_clamp(*space, (0, 10**9))
    inner = oc.make_concurrent_odometer(*clamp.output_space, pure)
    yield (clamp >> inner)(data)
    yield (clamp >> oc.make_concurrent_filter(inner, 1, 1.0))(data)


def reachable(thing, depth):
    """What ``gc`` reaches from ``thing`` within ``depth`` steps."""
    seen, frontier = {}, [thing]
    for _ in range(depth + 1):
        following = []
        for one in frontier:
            if id(one) in seen:
                continue
            seen[id(one)] = one
            following += gc.get_referents(one)
            for attribute in ("__dict__", "__closure__", "__opendp_dict__"):
                try:
                    following.append(getattr(one, attribute))
                except Exception:
                    continue
            if hasattr(one, "cell_contents"):
                following.append(one.cell_contents)
        frontier = following
    return list(seen.values())


def holds_secret(thing):
    return isinstance(thing, (list, tuple)) and SECRET in [x for x in thing if type(x) is int]


def test_the_walk_would_find_the_data():
    class Leaking:
        def __init__(self):
            self.deep = {"a": ([SECRET, 2, 3],)}

    assert any(map(holds_secret, reachable(Leaking(), 4)))


def test_data_are_not_reached_within_three_steps(space):
    for handle in handles(space):
        for thing in reachable(handle, 3):
            assert not holds_secret(thing), (handle, thing)
            if isinstance(thing, AnyObjectPtr):
                assert "Queryable" in dp_type(thing), (handle, thing)


def dp_type(pointer):
    from opendp._data import object_type

    return object_type(pointer)


def test_handles_do_not_print_pickle_or_copy(space):
    for handle in handles(space):
        assert str(SECRET) not in repr(handle)
        assert str(SECRET) not in str(vars(handle))
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"sensitive|pickle"):
                take(handle)


def test_opendp_does_not_keep_the_arguments_of_its_last_call_on_a_handle(space):
    for handle in handles(space):
        assert handle.__opendp_dict__ == {}


def test_the_token_gives_nothing_away(space):
    odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    token = odometer([SECRET])._session.token
    assert repr(token) == "Sealed(...)"
    with pytest.raises(TypeError, match="sensitive"):
        pickle.dumps(token)
    assert SECRET not in gc.get_referents(token)


def failures(space):
    """Every way in which an analyst's call may fail."""
    pure = dp.max_divergence()
    odometer = oc.make_concurrent_odometer(*space, pure)
    root = oc.make_concurrent_filter(odometer, 1, 0.5)([SECRET, 2, 3])

    def fail(rows):
        raise ValueError("a mechanism of the analyst's")

    failing = dp.m.make_user_measurement(*space, pure, fail, lambda d_in: 0.25)
    mapless = dp.m.make_user_measurement(*space, pure, len, lambda d_in: 1 / 0)
    for query in (failing, mapless, "text", odometer.input_domain, laplace(space, 5.0)):
        try:
            root(query)
        except Exception as error:
            yield error


def test_exceptions_hold_no_data(space):
    errors = list(failures(space))
    assert len(errors) == 5
    for error in errors:
        while error is not None:
            assert str(SECRET) not in str(error)
            assert str(SECRET) not in repr(error.args)
            trace = error.__traceback__
            while trace is not None:
                for value in trace.tb_frame.f_locals.values():
                    assert not holds_secret(value)
                    if isinstance(value, AnyObjectPtr):
                        assert not dp_type(value).startswith("Vec")
                trace = trace.tb_next
            error = error.__cause__ or error.__context__
