"""Data are converted once, and the pointer serves every launch; private names that this takes."""

import opendp.prelude as dp
import pytest
from opendp._convert import c_to_py, py_to_c
from opendp._data import object_type
from opendp._lib import AnyObjectPtr
from opendp.core import odometer_queryable_invoke, queryable_eval
from opendp.mod import OpenDPException

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
