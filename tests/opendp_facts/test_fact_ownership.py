"""Who frees what, and what OpenDP keeps: objects handed over, data remembered, text encoded."""

import gc

import opendp.prelude as dp
import pytest
from opendp._convert import py_to_c
from opendp._lib import AnyObjectPtr, lib

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
