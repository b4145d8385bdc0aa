"""What ``invoke`` does differently from OpenDP's Python, and must do alike."""

import ctypes
import gc
import math
import subprocess
import sys
import threading

import opendp.prelude as dp
import polars as pl
import pytest
from opendp import _convert
from opendp._lib import lib

from opendp_concurrent._opendp import private
from opendp_concurrent._opendp.calls import invoke, to_pointer, transform
from opendp_concurrent._opendp.data import evaluate, measurement_map, native_only, python_queryable
from opendp_concurrent._opendp.private import PARTIAL_CONSTRUCTOR, made_as, to_then
from opendp_concurrent.errors import InvalidTypeError

from ..build import in_threads
from ..forks import ran_in_forks

ANSWERS = [
    ("bool", True),
    ("i32", -(2**31)),
    ("i64", -(2**63)),
    ("u64", 2**64 - 1),
    ("f32", 0.5),
    ("f64", -math.inf),
    ("usize", 7),
    ("String", "naïve"),
    ("Vec<f64>", [0.1, math.inf, -0.0]),
    ("Vec<f64>", []),
    ("Vec<String>", ["a", ""]),
    ("HashMap<String, f64>", {"a": 0.5}),
    ("ExtrinsicObject", {"any": ["thing"]}),
    ("Option<f64>", 0.5),
]


def answering(space, kind, answer):
    return dp.m.make_user_measurement(
        *space, dp.max_divergence(), lambda rows: answer, lambda d_in: 0.0, TO=kind
    )


@pytest.mark.parametrize(("kind", "answer"), ANSWERS)
def test_an_answer_is_converted_as_opendp_converts_it(space, kind, answer):
    measurement = answering(space, kind, answer)
    pointer = to_pointer([1, 2], measurement.input_carrier_type)
    found, expected = invoke(measurement, pointer), measurement([1, 2])
    assert found == expected == answer
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


def test_converted_data_serve_many_launches_and_threads(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1e-9)
    pointer = to_pointer([1] * 1000, count.input_carrier_type)
    answers = []
    in_threads(lambda _: answers.extend(invoke(count, pointer) for _ in range(200)), range(4))
    assert answers == [1000] * 800


def test_a_transformation_leaves_its_result_converted(space):
    clamp = dp.t.make_clamp(*space, (0, 2))
    pointer = to_pointer([1, 5, -3], clamp.input_carrier_type)
    assert dp.t.make_sum(*clamp.output_space)(transform(clamp, pointer)) == 3


# --- threads may call OpenDP's functions, which it configures anew before each call --------------


def converters(function):
    return [one for one in gc.get_referents(function) if type(one) is tuple]


def test_a_call_leaves_the_converters_that_another_thread_may_be_using():
    measurement = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
    )
    measurement.map(1.0)
    for function in (lib.opendp_core__measurement_map, lib.opendp_data__object_free):
        before = converters(function)
        assert len(before) == 1
        measurement.map(1.0)
        assert converters(function)[0] is before[0]


class _Frees:
    """Reading it frees an object of OpenDP, as the garbage collector does at any moment."""

    @property
    def from_param(self):
        other = lib["opendp_core___transformation_free"]
        other.argtypes = [ctypes.c_void_p]
        return lambda value: value


def test_an_object_that_is_freed_meanwhile_does_not_wait_for_ever():
    def configure():
        lib["opendp_core___measurement_free"].argtypes = [_Frees()]
        done.append(True)

    done = []
    thread = threading.Thread(target=configure, daemon=True)
    thread.start()
    thread.join(20.0)
    assert done


THREADS = """
import gc, sys, threading
import opendp.prelude as dp
import opendp_concurrent
dp.enable_features("contrib")
measurement = dp.m.make_laplace(
    dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0
)
sys.setswitchinterval(1e-6)
gc.set_threshold(20)

class Cyclic:
    def __init__(self):
        self.me = self
    def __del__(self):
        for _ in range(20):
            pass

def work():
    for _ in range(20_000):
        Cyclic()
        measurement.map(1.0)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""


@pytest.mark.slow
def test_eight_threads_read_privacy_maps():
    """Without this, OpenDP 0.16 ends the process ('free(): invalid pointer') in about 15 s."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-1000:]


# --- data, maps, queryables and records of constructors, as they go to OpenDP and come back ------


def test_data_of_the_wrong_kind_are_named_by_their_class(space):
    frame = pl.LazyFrame({"age": [37]})
    with pytest.raises(InvalidTypeError, match="found LazyFrame") as raised:
        to_pointer(frame, space[0].carrier_type)
    assert "37" not in str(raised.value)


def test_a_map_in_python_is_known(space):
    laplace = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    ours = dp.m.make_user_measurement(*space, dp.max_divergence(), len, lambda d_in: 0.5)
    chained = dp.c.make_composition([laplace, ours])
    assert native_only(measurement_map, laplace, 1) == (0.5, True)
    assert native_only(measurement_map, ours, 1) == (0.5, False)
    assert native_only(measurement_map, chained, 1) == (1.0, False)


def test_a_transition_is_not_read_from_the_queryable():
    made = python_queryable(lambda query: query + 1)
    assert evaluate(made, 1) == 2
    assert not getattr(made, "__opendp_dict__", {})
    assert dp.new_queryable(len).__opendp_dict__  # where OpenDP keeps it


def make_counted(input_domain, input_metric, scale):
    return dp.t.make_count(input_domain, input_metric) >> dp.m.then_laplace(scale=scale)


def test_a_then_form_is_chained_and_not_serialised(space):
    then_counted = to_then(make_counted)
    partial = then_counted(2.0)
    assert isinstance(partial, PARTIAL_CONSTRUCTOR)
    assert (space >> partial).map(1) == 0.5
    with pytest.raises(InvalidTypeError, match="serialise"):
        dp.serialize(partial)


def test_what_equals_another_is_recorded_as_it(space):
    made = dp.vector_domain(dp.atom_domain(T=int))
    equal = dp.t.make_count(*space).input_domain
    assert dp.serialize(made_as(equal, made)) == dp.serialize(made)


# --- 0.1.0 let Ctrl-C out of a Python callback inside a native call, which killed the process ----

PROGRAM = """
import signal
from functools import partial
sequential = dp.approximate(dp.zero_concentrated_divergence())
armed = [True]

def interrupted(argument):
    if armed[0] and HOW == "raised":
        raise KeyboardInterrupt
    if armed[0]:
        signal.raise_signal(signal.SIGINT)
    return 1

def user(measure, loss, function=interrupted, privacy_map=None):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map or (lambda d_in: loss))

def launch(query, measure=PURE):
    return partial(oc.make_concurrent_odometer(*space, measure)([1]), query)

def run(how, asked):
    global HOW
    HOW = how
    print("before", flush=True)
    ask = eval(asked)
    try:
        ask()
    except KeyboardInterrupt as error:
        print("interrupted", error.__cause__, flush=True)
    armed[0] = False
    print("after", ask() in (1, [1]), flush=True)
"""
ASKED = {
    "sequential_launch": "launch(user(sequential, (0.1, 0.0)), sequential)",
    "pure_launch": "launch(user(PURE, 0.1))",
    "below_native": (
        "partial(dp.c.make_adaptive_composition(*space, PURE, 1, [1.0])([1])("
        "oc.make_concurrent_composition(*space, PURE, 1, [0.1] * 3)), user(PURE, 0.1))"
    ),
    "price": "launch(user(PURE, None, len, lambda d_in: 0.1 * interrupted(d_in)))",
    "native_child": (
        "partial(launch(user(PURE, 0.1, lambda rows: dp.new_queryable(interrupted)))(), 1)"
    ),
    "transformation": (
        "lambda: (dp.t.make_user_transformation(*space, *space, lambda rows: "
        "rows[: interrupted(rows)], lambda d_in: d_in) >> "
        "oc.make_concurrent_odometer(*space, PURE))([1])(user(PURE, 0.1, len))"
    ),
    "postprocessor": (
        "partial((oc.make_concurrent_odometer(*space, PURE) >> interrupted)([1]), "
        "user(PURE, 0.1, len))"
    ),
}


@pytest.fixture(scope="module")
def ran():
    cases = [(how, asked) for asked in ASKED.values() for how in ("raised", "sent")]
    return ran_in_forks(PROGRAM, cases)


@pytest.mark.parametrize("how", ["raised", "sent"])
@pytest.mark.parametrize("name", ASKED)
def test_an_interrupt_inside_a_native_call_comes_out_of_it_with_its_type(name, how, ran):
    status, said = ran[how, ASKED[name]]
    assert status == 0, said
    assert said.splitlines() == ["before", "interrupted None", "after True"]


# --- an interrupt while OpenDP counts a reference to a Python object crashed the process later ---

PROGRAM_OF_MADE = """
import gc, os, signal, sys
import opendp._lib
from opendp_concurrent.measures.opendp import user_divergence
import opendp_concurrent._opendp as native
from opendp_concurrent.tables.domain import Tables, table_domain, units
from opendp_concurrent.tables.schema import schema_of
counting = opendp._lib._ref_count.__code__
stream = oc.integer_stream(0, 1), oc.event_presence()
other = native.user_domain("x", lambda data: True, {}), native.user_distance("y")
tables = table_domain(Tables(schema_of({"person": int}, "person"))), units()
steps = native.make_user_transformation(*other, *space, list, lambda d_in: d_in)

def interrupted(moment):
    seen = [0]
    def trace(frame, event, argument):
        if frame.f_code is counting and event == "call" and frame.f_locals["increment"]:
            seen[0] += 1
            if seen[0] == moment:
                sys.settrace(None)
                os.kill(os.getpid(), signal.SIGINT)
    sys.settrace(trace)
    try:
        kept.append(make())
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return seen[0] >= moment

lost = []
sys.unraisablehook = lost.append

def run(name, made):
    global make, kept
    make, kept, moment = eval(f"lambda: {made}"), [], 1
    while interrupted(moment):
        moment += 1
        if lost:
            sys.exit("a reference is not counted")
    for _ in range(20):
        kept.append(make())
    kept.clear()
    gc.collect()
    print("survived", moment - 1)
"""
OURS = "native.make_user_measurement(*space, PURE, lambda rows: 1, lambda d_in: d_in, TO=int)"
MADE = {
    "chain": f"native.make_chain_mt({OURS}, steps)",
    "counter": "oc.m.make_counter(*stream, PURE, scale=20.0, horizon=9)",
    "divergence": "user_divergence('c', d=1.0)",
    "profile": "native.new_privacy_profile(lambda epsilon: 0.0)",
    "queryable": "native.python_queryable(lambda query: query)",
    "shifted": f"steps >> {OURS}",
    "sparse_vector": "oc.m.make_sparse_vector(*space, PURE, 1, 16.0, threshold=0, max_hits=3)",
    "table": "oc.t.make_truncate(*tables, 3)",
    "user_distance": "native.user_distance(f'y{id(object())}')",
    "user_domain": "native.user_domain('x', lambda data: True, {})",
    "user_measurement": OURS,
    "user_transformation": (
        "native.make_user_transformation(*space, *space, lambda rows: rows, lambda d_in: d_in)"
    ),
}


@pytest.fixture(scope="module")
def ran_through():
    return ran_in_forks(PROGRAM_OF_MADE, [*MADE.items()])


@pytest.mark.parametrize("name", MADE)
def test_an_interrupt_loses_no_reference_that_native_code_holds(name, ran_through):
    status, said = ran_through[name, MADE[name]]
    assert status == 0, said
    survived, moments = said.split()
    assert survived == "survived"
    assert int(moments) >= 1


# --- other versions of OpenDP --------------------------------------------------------------------


def test_a_profile_under_the_name_of_0_17_is_read(monkeypatch):
    class PrivacyGuarantee:
        def __init__(self, guarantee):
            self.guarantee = guarantee

    monkeypatch.setattr(private, "_PROFILE", PrivacyGuarantee)
    assert private.curve_of(PrivacyGuarantee(len)) is len
    assert private.curve_of(0.5) == 0.5


def test_a_function_inside_another_is_found_as_in_0_14(monkeypatch):
    def _wrap_py_func(function, kind):
        def wrapper_func(argument):
            return function(argument), kind

        return lambda: wrapper_func

    monkeypatch.delattr(_convert, "_invoke_py_callback", raising=False)
    monkeypatch.setattr(_convert, "_wrap_py_func", _wrap_py_func)
    found = private.callback_codes()
    assert _wrap_py_func(None, None)().__code__ in found
    assert len(found) == 2
