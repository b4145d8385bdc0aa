"""Who frees what, and what OpenDP keeps: objects handed over, data remembered, text encoded."""

import gc
import sys

import opendp.prelude as dp
import pytest
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr, lib
from opendp.mod import OpenDPException

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


def test_a_queryable_itself_can_be_returned_again_and_again(user):
    queryable = dp.new_queryable(lambda query: query)
    measurement = user(lambda rows: queryable)
    assert all(measurement([1]) is queryable for _ in range(20))
    gc.collect()
    assert queryable(7) == 7


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


def test_converted_data_do_not_change_with_the_rows_they_were_converted_from(user):
    rows = [1, 2, 3]
    pointer = py_to_c(rows, c_type=AnyObjectPtr, type_name="Vec<i32>")
    rows.clear()
    pointer.__opendp_dict__ = {}
    assert user(sum)(pointer) == 6


def test_the_handle_of_a_native_odometer_remembers_the_data(space):
    root = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())([1, 2, 3])
    assert root.__opendp_dict__["__kwargs__"]["arg"] == [1, 2, 3]


def test_a_measurement_remembers_its_function_and_what_that_closes_over(user):
    rows = [1, 2, 3]
    function = user(lambda _: rows).__opendp_dict__["__kwargs__"]["function"]
    assert function.__closure__[0].cell_contents is rows


# --- the text of an exception -----------------------------------------------------------------


def message_of(measurement):
    with pytest.raises(OpenDPException) as caught:
        measurement([1])
    assert caught.value.variant == "FFI"
    return caught.value.message


def test_an_exception_comes_out_with_its_traceback(user):
    def fail(rows):
        raise KeyError("its own words")

    message = message_of(user(fail))
    assert "Traceback (most recent call last)" in message
    assert "in fail" in message
    assert message.rstrip().endswith("KeyError: 'its own words'")


def test_an_exception_keeps_its_lines(user):
    def fail(rows):
        raise ValueError("one line\nand another")

    assert "ValueError: one line\nand another" in message_of(user(lambda rows: user(fail)(rows)))


def test_the_text_of_an_exception_ends_at_a_null_character(user):
    text = "before\0after"

    def fail(rows):
        raise ValueError(text)

    message = message_of(user(fail))
    assert "before" in message
    assert "after" not in message


@pytest.mark.skipif(sys.version_info < (3, 11, 7), reason="older Pythons come back with an error")
def test_an_exception_whose_text_does_not_encode_kills_the_process(kills_the_process):
    kills_the_process(
        "def fail(rows):\n    raise ValueError('\\ud800')\n"
        f"measurement = {USER.format('fail', 'ExtrinsicObject')}\n{REACHED}measurement([1])"
    )


# --- functions of the library -----------------------------------------------------------------


def test_a_function_that_is_taken_from_the_library_by_subscript_is_shared_with_nobody():
    """So our argument types and OpenDP's stay apart."""
    name = "opendp_core__measurement_invoke"
    assert lib[name] is not lib[name]
    assert lib[name] is not getattr(lib, name)
