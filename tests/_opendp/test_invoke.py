"""What ``invoke`` does differently from OpenDP's Python, and must do alike."""

import math
import threading

import opendp.prelude as dp
import pytest

from opendp_concurrent._opendp.calls import invoke, to_pointer, transform

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
    pointer = to_pointer([1, 2], measurement.input_carrier_type)
    found, expected = invoke(measurement, pointer), measurement([1, 2])
    assert found == expected == answer
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


def test_nan_is_converted(space):
    measurement = answering(space, "Vec<f64>", [math.nan])
    pointer = to_pointer([1], measurement.input_carrier_type)
    assert math.isnan(invoke(measurement, pointer)[0])


def test_converted_data_serve_many_launches_and_threads(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1e-9)
    pointer = to_pointer([1] * 1000, count.input_carrier_type)
    answers = []

    def work():
        for _ in range(200):
            answers.append(invoke(count, pointer))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1000] * 800


def test_a_transformation_leaves_its_result_converted(space):
    clamp = dp.t.make_clamp(*space, (0, 2))
    total = clamp.output_space >> dp.t.then_sum()
    pointer = to_pointer([1, 5, -3], clamp.input_carrier_type)
    assert dp.t.make_sum(*clamp.output_space)(transform(clamp, pointer)) == 3
    assert total is not None
