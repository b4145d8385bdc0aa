"""What ``_native`` does differently from OpenDP's Python, and must do alike."""

import math
import threading

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError
from opendp_concurrent.native import opendp as _native

ANSWERS = [
    ("bool", True),
    ("bool", False),
    ("i32", -(2**31)),
    ("u32", 2**32 - 1),
    ("i64", -(2**63)),
    ("u64", 2**64 - 1),
    ("f32", 0.5),
    ("f64", 0.1),
    ("f64", -math.inf),
    ("usize", 7),
    ("u8", 255),
    ("String", "naïve"),
    ("Vec<bool>", [True, False]),
    ("Vec<i32>", [1, -2, 3]),
    ("Vec<f64>", [0.1, math.inf, -0.0]),
    ("Vec<f64>", []),
    ("Vec<u64>", [2**64 - 1]),
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
    pointer = _native.to_pointer([1, 2], measurement.input_carrier_type)
    found, expected = _native.invoke(measurement, pointer), measurement([1, 2])
    assert found == expected == answer
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


def test_nan_is_converted(space):
    measurement = answering(space, "Vec<f64>", [math.nan])
    pointer = _native.to_pointer([1], measurement.input_carrier_type)
    assert math.isnan(_native.invoke(measurement, pointer)[0])


def test_a_failing_measurement_raises_what_opendp_raises(space):
    def fail(rows):
        raise ValueError("its own words")

    measurement = dp.m.make_user_measurement(
        *space, dp.max_divergence(), fail, lambda d_in: 0.0, TO="i32"
    )
    pointer = _native.to_pointer([1], measurement.input_carrier_type)
    with pytest.raises(OpenDPException, match="its own words"):
        _native.invoke(measurement, pointer)


def test_converted_data_serve_many_launches_and_threads(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1e-9)
    pointer = _native.to_pointer([1] * 1000, count.input_carrier_type)
    answers = []

    def work():
        for _ in range(200):
            answers.append(_native.invoke(count, pointer))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1000] * 800


def test_a_transformation_leaves_its_result_converted(space):
    clamp = dp.t.make_clamp(*space, (0, 2))
    total = clamp.output_space >> dp.t.then_sum()
    pointer = _native.to_pointer([1, 5, -3], clamp.input_carrier_type)
    assert dp.t.make_sum(*clamp.output_space)(_native.transform(clamp, pointer)) == 3
    assert total is not None


def test_data_of_the_wrong_kind_are_named_by_their_class(space):
    frame = pl.LazyFrame({"age": [37]})
    with pytest.raises(InvalidTypeError, match="found LazyFrame") as raised:
        _native.to_pointer(frame, space[0].carrier_type)
    assert "37" not in str(raised.value)


def test_a_distance_of_the_wrong_type_is_named():
    with pytest.raises(InvalidTypeError, match="^d_in"):
        _native.check_distance(dp.symmetric_distance(), "d_in", 1.5)
    _native.check_distance(dp.symmetric_distance(), "d_in", 1)
    _native.check_distance(dp.l2_distance(T=float), "d_in", 1)


def test_native_calls_are_noticed_from_within(space):
    seen = []
    inside = dp.m.make_user_measurement(
        *space,
        dp.max_divergence(),
        lambda rows: seen.append(_native.inside_native_call()) or 1,
        lambda d_in: 0.0,
    )
    assert not _native.inside_native_call()
    inside([1])
    queryable = dp.new_queryable(lambda query: seen.append(_native.inside_native_call()) or 1)
    queryable(1)
    assert seen == [True, True]


def test_our_errors_cross_native_calls_with_their_values(space):
    def no():
        raise BudgetExceededError(0.5, 1.0, 0.25)

    def refuse(rows):
        _native.typed(no)

    deep = dp.m.make_user_measurement(*space, dp.max_divergence(), refuse, lambda d_in: 0.0)
    deeper = dp.m.make_user_measurement(*space, dp.max_divergence(), deep, lambda d_in: 0.0)
    with pytest.raises(BudgetExceededError) as caught:
        _native.typed(deeper, [1])
    assert (caught.value.spent, caught.value.asked, caught.value.remaining) == (0.5, 1.0, 0.25)


def test_an_error_that_was_swallowed_is_not_raised_for_another(space):
    def no():
        raise BudgetExceededError(0.5, 1.0, 0.25)

    def swallow(rows):
        try:
            _native.typed(no)
        except BudgetExceededError:
            raise KeyError("another") from None

    deep = dp.m.make_user_measurement(*space, dp.max_divergence(), swallow, lambda d_in: 0.0)
    with pytest.raises(Exception, match="another") as caught:
        _native.typed(deep, [1])
    assert not isinstance(caught.value, BudgetExceededError)
