"""What OpenDP 0.16 really does, where this package relies on it. No test imports this package.

When one fails after an upgrade, something that we work around or build on has changed.
"""

import json
import os
import subprocess
import sys
import threading

import opendp.prelude as dp
import pytest
from opendp._convert import _invoke_py_callback, _invoke_py_transition, py_to_c
from opendp._data import object_type
from opendp._lib import AnyObjectPtr
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
APPROXIMATE_ZCDP = dp.approximate(dp.zero_concentrated_divergence())


def laplace(space, epsilon=0.5):
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / epsilon)


def gaussian(space):
    return dp.c.make_approximate(space >> dp.t.then_count() >> dp.m.then_gaussian(scale=100.0))


def user(space, function, privacy_map=lambda d_in: 0.0, measure=PURE):
    return dp.m.make_user_measurement(*space, measure, function, privacy_map)


def frames():
    frame, codes = sys._getframe(1), []
    while frame is not None:
        codes.append(frame.f_code)
        frame = frame.f_back
    return codes


def exit_code(script):
    """Return code of a script in another process: negative if a signal killed it."""
    preamble = (
        "import opendp.prelude as dp\n"
        "dp.enable_features('contrib', 'honest-but-curious')\n"
        "space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()\n"
    )
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    return subprocess.run(
        [sys.executable, "-c", preamble + script], env=environment, capture_output=True, check=False
    ).returncode


# --- crashes: why every query is checked before it crosses the FFI ----------------------------


@pytest.mark.parametrize(
    "script",
    [
        "dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())([1])('text')",
        "o = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())\no([1])(o)",
        "m = space >> dp.t.then_count() >> dp.m.then_laplace(1.0)\n"
        "class Sub(dp.Measurement): pass\n"
        "m.__class__ = Sub\nm.map(1)",
        "o = dp.c.make_fully_adaptive_composition(*space, dp.renyi_divergence())\n"
        "m = dp.m.make_user_measurement(*space, dp.renyi_divergence(), len,"
        " lambda d: (lambda a: a))\n"
        "dp.c.make_privacy_filter(o, 1, lambda a: 5 * a)([1])(m)",
    ],
    ids=[
        "text to an odometer",
        "odometer to an odometer",
        "subclass without _type_",
        "Rényi filter",
    ],
)
def test_what_kills_the_process(script):
    assert exit_code(script) < 0, "no crash any more: a guard of ours may have become needless"


# --- composition and accounting ---------------------------------------------------------------


def test_native_odometers_charge_after_the_run_and_believe_any_map(space):
    root = dp.c.make_fully_adaptive_composition(*space, PURE)([1])

    def fail(rows):
        raise ValueError("depends on the data")

    with pytest.raises(OpenDPException):
        root(user(space, fail, lambda d_in: 1.0))
    assert root.privacy_loss(1) == 0.0
    root(user(space, len, lambda d_in: -5.0))
    assert root.privacy_loss(1) == -5.0


def test_native_filters_accept_a_negative_bound(space):
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    assert dp.c.make_privacy_filter(odometer, 1, -1.0).map(1) == -1.0


def test_a_refusal_ends_a_native_filter_but_not_its_children(space):
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    filter_ = dp.c.make_privacy_filter(odometer, 1, 1.0)
    assert filter_.map(0) == 1.0
    with pytest.raises(OpenDPException, match="must not be greater"):
        filter_.map(2)
    root = filter_([1])
    child = root(dp.c.make_adaptive_composition(*space, PURE, 1, [0.5]))
    for query in (laplace(space, 5.0), laplace(space, 0.1)):
        with pytest.raises(OpenDPException, match="exhausted"):
            root(query)
    with pytest.raises(OpenDPException, match="exhausted"):
        root.privacy_loss(1)
    assert isinstance(child(laplace(space)), int)


def test_native_compositors_consume_nothing_at_a_refusal(space):
    root = dp.c.make_adaptive_composition(*space, PURE, 1, [0.25])([1])
    with pytest.raises(OpenDPException, match="insufficient budget"):
        root(laplace(space))
    root(laplace(space, 0.25))
    with pytest.raises(OpenDPException, match="out of queries"):
        root(laplace(space, 0.25))
    with pytest.raises(OpenDPException, match="at least one element"):
        dp.c.make_adaptive_composition(*space, PURE, 1, [])


@pytest.mark.parametrize("k", [7, 10, 11, 49])
def test_native_filters_cannot_spend_k_times_one_kth(space, k):
    odometer = dp.c.make_fully_adaptive_composition(*space, PURE)
    root = dp.c.make_privacy_filter(odometer, 1, 1.0)([1])
    share = user(space, len, lambda d_in: 1 / k)
    for _ in range(k - 1):
        root(share)
    with pytest.raises(OpenDPException, match="exhausted"):
        root(share)


def test_native_composition_refuses_smoothed_and_user_measures_and_renyi_shares(space):
    for measure in (dp.smoothed_max_divergence(), dp.user_divergence("mine")):
        with pytest.raises(OpenDPException):
            dp.c.make_fully_adaptive_composition(*space, measure)
    with pytest.raises(OpenDPException, match="failed to parse type"):
        dp.c.make_adaptive_composition(*space, dp.renyi_divergence(), 1, [lambda alpha: alpha])


def test_a_user_map_may_return_a_renyi_curve(space):
    measurement = user(space, len, lambda d_in: lambda alpha: alpha * d_in, dp.renyi_divergence())
    assert measurement.map(2)(3.0) == 6.0


# --- sequentiality ----------------------------------------------------------------------------


def test_a_native_odometer_of_approximate_zcdp_hosts_no_interactive_child(space):
    root = dp.c.make_fully_adaptive_composition(*space, APPROXIMATE_ZCDP)([1])
    child = root(dp.c.make_adaptive_composition(*space, APPROXIMATE_ZCDP, 1, [(1.0, 1e-6)]))
    with pytest.raises(OpenDPException, match="FailedCast"):
        child(gaussian(space))


def sequential(space, k=4):
    return dp.c.make_adaptive_composition(*space, APPROXIMATE_ZCDP, 1, [(1.0, 1e-6)] * k)


def test_a_sequential_compositor_closes_python_queryables_wherever_they_hide(space):
    def free(function):
        return user(space, function, lambda d_in: (0.0, 0.0), APPROXIMATE_ZCDP)

    root = sequential(space)([1])
    hidden = root(free(lambda rows: {"q": dp.new_queryable(lambda query: query)}))["q"]
    assert hidden(1) == 1
    plain = root(free(lambda rows: lambda query: query))
    root(gaussian(space))
    with pytest.raises(OpenDPException, match="sequentiality"):
        hidden(1)
    assert plain(1) == 1


def test_what_runs_inside_a_trivial_sequential_compositor_is_closed_by_it(space):
    trivial = dp.atom_domain(T=bool), dp.discrete_distance()
    task = []
    visit = user(trivial, lambda _: task[-1](), lambda d_in: (0.0, 0.0), APPROXIMATE_ZCDP)
    root = dp.c.make_adaptive_composition(
        *trivial, APPROXIMATE_ZCDP, d_in=1, d_mids=[(0.0, 0.0)] * 3
    )(True)
    task.append(lambda: sequential(space)([1]))
    child = root(visit)
    assert isinstance(child(gaussian(space)), int)
    task.append(lambda: None)
    root(visit)
    with pytest.raises(OpenDPException, match="sequentiality"):
        child(gaussian(space))


def test_a_measurement_may_query_its_own_child_while_it_is_launched(space):
    """opendp#2421 is mended."""
    query = gaussian(space)
    own = sequential(space, 1) >> (lambda child: child(query))
    assert isinstance(sequential(space)([1])(own), int)


# --- Python objects across the FFI ------------------------------------------------------------


def test_converted_data_pass_through_and_serve_several_threads(space):
    count = laplace(space, 1e9)
    pointer = py_to_c([1] * 10, c_type=AnyObjectPtr, type_name=count.input_carrier_type)
    assert object_type(pointer) == "Vec<i32>"
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.extend(count(pointer) for _ in range(100)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [10] * 400


def test_a_python_frame_of_opendp_is_around_every_callback(space):
    assert _invoke_py_callback.__code__ in user(space, lambda rows: frames())([1])
    assert _invoke_py_transition.__code__ in dp.new_queryable(lambda query: frames())(1)


def test_a_measurement_may_be_given_a_subclass_with_its_type(space):
    class Sub(dp.Measurement):
        _type_ = dp.Measurement._type_

        def __call__(self, arg):
            return "ours"

    measurement = laplace(space)
    measurement.__class__ = Sub
    assert measurement([1]) == "ours"
    assert measurement.map(1) == 0.5


def test_an_odometer_made_in_python_is_a_null_pointer_to_native_functions(space):
    class Sub(dp.Odometer):
        _type_ = dp.Odometer._type_

        def __init__(self):
            pass

        def __del__(self):
            pass

    with pytest.raises(OpenDPException, match="null pointer"):
        dp.c.make_privacy_filter(Sub(), 1, 1.0)


def test_opendp_keeps_the_data_on_what_an_invocation_returns(space):
    class Answer:
        pass

    answer = user(space, lambda rows: Answer())([1, 2, 3])
    assert answer.__opendp_dict__["__kwargs__"]["arg"] == [1, 2, 3]


def test_an_exception_loses_its_type_and_keeps_its_words(space):
    def fail(rows):
        raise KeyError("its own words")

    with pytest.raises(OpenDPException, match="its own words") as caught:
        user(space, fail)([1])
    assert type(caught.value) is OpenDPException


def test_distances_of_frames_are_compared_but_not_hashed():
    bound = dp.polars.Bound(by=[], per_group=2)
    assert bound == dp.polars.Bound(by=[], per_group=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(bound)


# --- chaining, registration, Context ----------------------------------------------------------


def test_opendp_declares_and_does_not_implement_transformation_to_odometer():
    script = (
        "clamp = dp.t.make_clamp(*space, (0, 1))\n"
        "space = clamp.output_space\n"
        "odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())\n"
        "try:\n    clamp >> odometer\n"
        "except ValueError:\n    raise SystemExit(7)"
    )
    assert exit_code(script) == 7


def test_a_name_is_registered_once():
    script = (
        "def make_mine(input_domain, input_metric): pass\n"
        "dp.register(make_mine)\n"
        "try:\n    dp.register(make_mine)\n"
        "except ValueError:\n    raise SystemExit(7)"
    )
    assert exit_code(script) == 7


def test_a_context_takes_any_odometer_queryable(space):
    class Queryable(dp.OdometerQueryable):
        def __init__(self):
            pass

        def __call__(self, query):
            return "answered"

        def privacy_loss(self, d_in):
            return 0.25 * d_in

    accountant = dp.c.make_fully_adaptive_composition(*space, PURE)
    context = dp.Context(accountant=accountant, queryable=Queryable(), d_in=2, d_out=1.0)
    assert context.query(epsilon=0.5).count().laplace().release() == "answered"
    assert context.current_privacy_loss() == 0.5
    assert context.remaining_privacy_loss() == 0.5


def test_distance_types_have_these_names():
    named = {
        "u32": dp.symmetric_distance().distance_type,
        "Bounds": dp.frame_distance(dp.symmetric_distance()).distance_type,
        "f64": PURE.distance_type,
    }
    assert json.loads(json.dumps({key: str(value) for key, value in named.items()})) == {
        key: key for key in named
    }
    assert str(APPROXIMATE_ZCDP.distance_type) == "(f64, f64)"
