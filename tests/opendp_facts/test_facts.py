"""What is relied on of OpenDP: queryables, contexts, crashes, data, types, sequentiality."""

import gc
import inspect
import sys
import threading
import weakref

import opendp.context
import opendp.prelude as dp
import pytest
from opendp import mod
from opendp._convert import _invoke_py_callback, _invoke_py_transition, c_to_py, py_to_c
from opendp._data import object_type
from opendp._lib import AnyObjectPtr, lib
from opendp.context import Query
from opendp.core import odometer_invoke, odometer_queryable_invoke, queryable_eval
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
ZCDP = dp.zero_concentrated_divergence()
APPROXIMATE_ZCDP = dp.approximate(ZCDP)
LOSS = (1.0, 1e-6)
FREE = (0.0, 0.0)


@pytest.fixture
def sequential(space):
    def sequential(k=4):
        return dp.c.make_adaptive_composition(*space, APPROXIMATE_ZCDP, 1, [LOSS] * k)

    return sequential


@pytest.fixture
def query(user):
    return user(len, LOSS, APPROXIMATE_ZCDP)


# --- sequentiality ----------------------------------------------------------------------------


def test_what_is_launched_inside_a_trivial_compositor_is_closed_by_its_next_launch(
    sequential, query, user
):
    trivial = dp.atom_domain(T=bool), dp.discrete_distance()
    tasks = iter([lambda: sequential()([1]), lambda: query([1, 2]), lambda: None])
    visit = user(lambda _: next(tasks)(), FREE, APPROXIMATE_ZCDP, space=trivial)
    root = dp.c.make_adaptive_composition(*trivial, APPROXIMATE_ZCDP, d_in=1, d_mids=[FREE] * 3)(
        True
    )
    child = root(visit)
    assert child(query) == 1
    grandchild = child(sequential(1))
    assert root(visit) == 2
    for closed in (child, grandchild):
        with pytest.raises(OpenDPException, match="sequentiality"):
            closed(query)
    assert root(visit) is None
    with pytest.raises(OpenDPException, match="out of queries"):
        root(visit)


# --- made in Python ---------------------------------------------------------------------------


def test_a_python_queryable_carries_any_object_both_ways():
    received, answer = [], object()

    def transition(query):
        received.append(query)
        return answer

    query = object()
    assert dp.new_queryable(transition)(query) is answer
    assert received[0] is query


def test_a_python_queryable_shows_its_transition_until_that_is_cleared():
    def transition(query):
        return query

    queryable = dp.new_queryable(transition)
    assert queryable.__opendp_dict__["__kwargs__"]["transition"] is transition
    queryable.__opendp_dict__ = {}
    assert queryable("asked") == "asked"


# --- what the queries of ``dp.Context`` are made of, and what registers a constructor with it ----


@pytest.fixture
def context():
    return dp.Context.compositor(
        [1, 2], dp.unit_of(contributions=2), (PURE, 1.0), split_evenly_over=2
    )


@pytest.fixture
def registry(monkeypatch):
    registry = dict(opendp.context.constructors)
    monkeypatch.setattr(opendp.context, "constructors", registry)
    return registry


def test_a_query_has_these_parts(context, space):
    query = context.query()
    assert type(query) is Query
    parts = query._chain, query._output_measure, query._d_in, query._d_out
    assert parts == (context.accountant.input_space, PURE, 2, 0.5)
    assert query._context is context
    (answer,) = Query(*parts, context, lambda answer: [answer]).count().laplace().release()
    assert isinstance(answer, int)


def test_a_registered_constructor_is_a_method_of_queries_once(registry, context, user):
    def make_mine(input_domain, input_metric, number):
        return user(lambda rows: number, 0.5)

    dp.register(make_mine)
    assert "mine" in registry
    assert context.query().mine(7).release() == 7
    with pytest.raises(ValueError, match="already registered"):
        dp.register(make_mine)
    dp.register(make_mine, name="mine_too")


# --- what ends the process. Nothing of it can be caught, so it has to be refused beforehand ------

SAY = "\nprint('REACHED', flush=True)\n"


def test_a_query_that_is_no_measurement_kills_the_process(kills_the_process):
    kills_the_process(f"root = odometer([1]){SAY}root('text')")


def test_a_subclass_of_measurement_without_its_type_kills_the_process(kills_the_process):
    made = "class Sub(dp.Measurement):\n    pass\n\nlaplace.__class__ = Sub"
    kills_the_process(f"{made}{SAY}laplace.map(1)")


@pytest.mark.skipif(sys.version_info < (3, 11, 7), reason="older Pythons come back with an error")
def test_an_exception_that_is_no_exception_subclass_kills_the_process(kills_the_process):
    """Callbacks catch ``Exception`` only: an interrupt while one runs leaves nothing behind."""
    fails = "def fail(argument):\n    raise KeyboardInterrupt\n"
    kills_the_process(f"{fails}{SAY}dp.new_queryable(fail)(1)")


def test_the_curve_of_a_privacy_profile_can_be_returned_only_once(kills_the_process):
    """The native side frees what a map returns, so that a map must make a new profile."""
    kills_the_process(
        "profile = dp.new_privacy_profile(lambda epsilon: 0.5)\n"
        "measurement = dp.m.make_user_measurement(\n"
        "    *space, dp.smoothed_max_divergence(), len, lambda d_in: profile.curve)\n"
        f"measurement.map(1){SAY}"
        "for _ in range(5):\n    measurement.map(1)"
    )


# --- data are converted once, and the pointer serves every launch; private names that this has ---

DATA = [1] * 10


@pytest.fixture
def count(laplace):
    return laplace(1e9)


@pytest.fixture
def pointer(count):
    return py_to_c(DATA, c_type=AnyObjectPtr, type_name=count.input_carrier_type)


def test_data_convert_to_a_pointer_that_is_passed_through(count, pointer):
    assert isinstance(pointer, AnyObjectPtr)
    assert object_type(pointer) == "Vec<i32>"
    assert py_to_c(pointer, c_type=AnyObjectPtr, type_name=count.input_carrier_type) is pointer


def test_a_pointer_serves_many_launches_and_keeps_its_data(space, count, pointer, user):
    assert [count(pointer) for _ in range(100)] == [10] * 100
    assert user(sum)(pointer) == 10
    assert c_to_py(pointer) == DATA


@pytest.mark.parametrize("data", ["text", [0.5], [2**40], None])
def test_data_of_another_carrier_type_do_not_convert(count, data):
    with pytest.raises((TypeError, ValueError, OpenDPException)):
        py_to_c(data, c_type=AnyObjectPtr, type_name=count.input_carrier_type)


def test_queryables_hold_a_value_that_these_functions_ask(space, user):
    pure = dp.max_divergence()
    root = dp.c.make_adaptive_composition(*space, pure, 1, [0.0])(DATA)
    assert queryable_eval(root.value, user(len)) == 10
    assert str(root.query_type) == "AnyMeasurement"
    odometer = dp.c.make_fully_adaptive_composition(*space, pure)(DATA)
    assert odometer_queryable_invoke(odometer.value, user(len)) == 10


def test_an_answer_keeps_the_data_that_it_was_computed_from(user):
    class Answer:
        pass

    answer = user(lambda rows: Answer())(DATA)
    assert answer.__opendp_dict__["__kwargs__"]["arg"] == DATA


# --- who frees what, and what OpenDP keeps: objects handed over, data remembered, text encoded ---

RENYI = dp.renyi_divergence()
REACHED = "print('REACHED', flush=True)\n"
USER = "dp.m.make_user_measurement(*space, PURE, {}, lambda d_in: 0.0, TO='{}')"


# --- handed over ------------------------------------------------------------------------------


def test_data_that_a_callback_returns_converted_are_freed_by_the_library(kills_the_process):
    kills_the_process(
        "from opendp._convert import py_to_c\n"
        "from opendp._lib import AnyObjectPtr\n"
        "pointer = py_to_c([1, 2], AnyObjectPtr, 'Vec<i32>')\n"
        f"measurement = {USER.format('lambda rows: pointer', 'Vec<i32>')}\n"
        f"assert measurement([1]) == [1, 2]\n{REACHED}"
        "for _ in range(5):\n    measurement([1])"
    )


def test_the_value_of_a_queryable_can_be_returned_only_once(kills_the_process):
    kills_the_process(
        "queryable = dp.new_queryable(lambda query: query)\n"
        f"measurement = {USER.format('lambda rows: queryable.value', 'ExtrinsicObject')}\n"
        f"assert measurement([1])(7) == 7\n{REACHED}"
        "for _ in range(5):\n    measurement([1])(7)"
    )


def test_the_value_of_a_queryable_answers_after_its_wrapper_is_gone():
    pointer = dp.new_queryable(lambda query: query).value
    gc.collect()
    assert isinstance(pointer, AnyObjectPtr)
    assert dp.Queryable(pointer, "ExtrinsicObject")(7) == 7


@pytest.mark.parametrize("native", [False, True], ids=["callable", "function"])
def test_a_map_may_return_the_same_renyi_curve_again_and_again(space, native):
    def double(alpha):
        return 2.0 * alpha

    curve = dp.new_function(double, TO="f64") if native else double
    measurement = dp.m.make_user_measurement(*space, RENYI, len, lambda d_in: curve)
    curves = [measurement.map(1) for _ in range(20)]
    gc.collect()
    assert all(isinstance(curve, dp.Function) for curve in curves)
    assert [curve(3.0) for curve in curves] == [6.0] * 20


# --- remembered -------------------------------------------------------------------------------


def test_converted_data_remember_the_rows_they_were_converted_from():
    rows = [1, 2, 3]
    pointer = py_to_c(rows, c_type=AnyObjectPtr, type_name="Vec<i32>")
    assert pointer.__opendp_dict__["__kwargs__"]["raw"] is rows


# --- functions of the library -----------------------------------------------------------------


def test_a_function_that_is_taken_from_the_library_by_subscript_is_shared_with_nobody():
    """So our argument types and OpenDP's stay apart."""
    name = "opendp_core__measurement_invoke"
    assert lib[name] is not lib[name]
    assert lib[name] is not getattr(lib, name)


# --- the parameters of what this package replaces, which ``docs/for-opendp.rst`` builds on -------

SPACE = "input_domain input_metric output_measure"
PARAMETERS = {
    dp.c.make_adaptive_composition: f"{SPACE} d_in d_mids",
    dp.c.make_fully_adaptive_composition: SPACE,
    dp.c.make_privacy_filter: "odometer d_in d_out",
    dp.Context.compositor: (
        "data privacy_unit privacy_loss split_evenly_over split_by_weights domain margins"
    ),
}


@pytest.mark.parametrize("function", PARAMETERS)
def test_the_parameters_of_what_we_replace(function):
    assert [*inspect.signature(function).parameters] == PARAMETERS[function].split()


# --- how far OpenDP's sequentiality reaches, and the three ways around it ------------------------

SEQUENTIAL = dp.approximate(dp.zero_concentrated_divergence())
CLOSED = "only the most recent release from the parent compositor may be interacted with"
TRIVIAL = dp.atom_domain(T=bool), dp.discrete_distance()


def echo():
    return dp.new_queryable(lambda query: query)


def in_another_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def assert_closed(child, query="asked"):
    with pytest.raises(OpenDPException, match=CLOSED):
        child(query)


@pytest.fixture
def free(user):
    """Make a measurement of no loss from a function."""
    return lambda function=len: user(function, FREE, SEQUENTIAL)


@pytest.fixture
def root(space):
    return dp.c.make_adaptive_composition(*space, SEQUENTIAL, 1, [FREE] * 4)([1])


# --- what is reached --------------------------------------------------------------------------


def test_a_queryable_that_another_measurement_returned_is_closed_in_a_dict(root, free):
    inner = free(lambda rows: echo())
    child = root(free(lambda rows: {"q": inner(rows)}))["q"]
    assert child("asked") == "asked"
    root(free())
    assert_closed(child)


def test_a_queryable_that_was_never_returned_is_closed(root, free):
    kept = []
    root(free(lambda rows: kept.append(echo())))
    assert kept[0]("asked") == "asked"
    root(free())
    assert_closed(kept[0])


def test_the_next_launch_closes_queryables_of_every_measure(space, user, laplace, free):
    """Made on a trivial space without loss, so that a runner of launches needs no data."""
    pure = dp.c.make_adaptive_composition(*space, PURE, 1, [1.0] * 2)
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    root = dp.c.make_adaptive_composition(*TRIVIAL, SEQUENTIAL, d_in=1, d_mids=[FREE] * 2)(True)

    def visit(function):
        return user(function, FREE, SEQUENTIAL, space=TRIVIAL)

    children = root(visit(lambda _: (pure([1]), odometer([1]), echo())))
    queries = laplace(), laplace(), "asked"
    for child, query in zip(children, queries, strict=True):
        child(query)
    root(visit(lambda _: None))
    for child, query in zip(children, queries, strict=True):
        assert_closed(child, query)


# --- what is not ------------------------------------------------------------------------------


def fail(rows):
    raise ValueError("depends on the data")


def test_a_launch_that_fails_closes_nothing(root, free):
    child = root(free(lambda rows: echo()))
    with pytest.raises(OpenDPException, match="depends on the data"):
        root(free(fail))
    assert child("asked") == "asked"


def test_what_a_failed_launch_made_is_never_closed(root, free):
    """OpenDP begins to enforce sequentiality on what a launch made when the launch succeeds."""
    kept = []

    def make_and_fail(rows):
        kept.append(echo())
        fail(rows)

    with pytest.raises(OpenDPException, match="depends on the data"):
        root(free(make_and_fail))
    child = root(free(lambda rows: echo()))
    assert kept[0]("asked") == child("asked") == kept[0]("asked") == "asked"
    root(free())
    assert_closed(child)
    assert kept[0]("asked") == "asked"


def test_a_launch_that_returns_its_failure_closes_what_one_that_raises_does_not(root, free):
    """So a runner of launches should carry failures out as answers."""
    failure, kept = ValueError("depends on the data"), []

    def make_and_return_failure(rows):
        kept.append(echo())
        return failure

    child = root(free(lambda rows: echo()))
    assert root(free(make_and_return_failure)) is failure
    assert_closed(child)
    assert kept[0]("asked") == "asked"
    root(free())
    assert_closed(kept[0])


def test_what_a_launch_makes_in_another_thread_is_never_closed(root, free):
    """What wraps queryables is kept in a variable of the thread."""
    kept = []
    root(free(lambda rows: in_another_thread(lambda: kept.append(echo()))))
    root(free())
    assert kept[0]("asked") == "asked"


# --- python objects that OpenDP calls, subclasses and compares -----------------------------------


def frames():
    frame, codes = sys._getframe(1), []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return codes


# --- callbacks --------------------------------------------------------------------------------


def test_a_function_is_called_below_this_frame_of_opendp(space, user):
    assert _invoke_py_callback.__code__ in user(lambda rows: frames())([1])
    assert _invoke_py_callback.__code__ not in frames()
    root = dp.c.make_fully_adaptive_composition(*space, PURE)([1])
    chain = user(lambda rows: rows) >> (lambda rows: frames())
    assert _invoke_py_callback.__code__ in root(chain)


def test_a_transition_is_called_below_this_frame_of_opendp():
    assert _invoke_py_transition.__code__ in dp.new_queryable(lambda query: frames())(1)


class Mine(OpenDPException):
    pass


@pytest.mark.parametrize(
    "error", [KeyError("its own words"), Mine("Mine", "its own words")], ids=["any", "subclass"]
)
def test_an_exception_loses_its_type_and_keeps_its_words(user, error):
    def fail(argument):
        raise error

    for call in (lambda: user(fail)([1]), lambda: dp.new_queryable(fail)(1)):
        with pytest.raises(OpenDPException, match="its own words") as caught:
            call()
        assert type(caught.value) is OpenDPException
        assert caught.value.__cause__ is caught.value.__context__ is None


# --- subclasses -------------------------------------------------------------------------------


def test_a_measurement_may_be_given_a_subclass_that_has_its_type(space, laplace):
    class Sub(dp.Measurement):
        _type_ = dp.Measurement._type_

        def __call__(self, arg):
            return "ours"

    measurement = laplace()
    measurement.__class__ = Sub
    measurement.extra = 7
    assert measurement([1]) == "ours"
    assert measurement.map(1) == 0.5
    assert measurement.input_space == space
    root = dp.c.make_fully_adaptive_composition(*space, PURE)([1])
    assert isinstance(root(measurement), int)
    assert isinstance((measurement >> (lambda answer: answer))([1]), int)
    assert dp.c.make_pureDP_to_zCDP(measurement).map(1) == pytest.approx(0.125)
    assert type(dp.t.make_identity(*space) >> measurement) is dp.Measurement


def test_the_function_that_deserialises_is_looked_up_when_it_is_used(monkeypatch):
    """``oc.install`` replaces it."""
    monkeypatch.setattr(mod, "_deserialization_hook", lambda record: ("rebuilt", record))
    assert dp.deserialize('{"some": 1}') == ("rebuilt", {"some": 1})


def test_an_odometer_made_in_python_is_a_null_pointer_to_native_functions():
    class Sub(dp.Odometer):
        _type_ = dp.Odometer._type_

        def __init__(self):
            pass

        def __del__(self):
            pass

    odometer = Sub()
    odometer.extra = 7
    assert not odometer
    for call in (
        lambda: dp.c.make_privacy_filter(odometer, 1, 1.0),
        lambda: odometer_invoke(odometer, [1]),
        lambda: odometer.input_domain,
        lambda: odometer.output_measure,
    ):
        with pytest.raises(OpenDPException, match="null pointer"):
            call()


def test_measurements_are_known_by_identity_only(laplace):
    measurement = laplace()
    with pytest.raises(TypeError, match="unhashable"):
        hash(measurement)
    reference = weakref.ref(measurement)
    assert reference() is measurement
    del measurement
    gc.collect()
    assert reference() is None


# --- distances --------------------------------------------------------------------------------


def test_user_divergences_are_equal_when_their_descriptors_are_whatever_their_names():
    assert dp.user_divergence("one", 2.0) == dp.user_divergence("one", 2.0)
    assert dp.user_divergence("one", 2.0) != dp.user_divergence("one", 3.0)
    assert dp.user_divergence("one", 2.0) == dp.user_divergence("other", 2.0)
    assert dp.user_divergence("one") == dp.user_divergence("other")
