"""Python objects that OpenDP calls, subclasses and compares."""

import gc
import sys
import weakref

import opendp.prelude as dp
import pytest
from opendp import mod
from opendp._convert import _invoke_py_callback, _invoke_py_transition
from opendp.core import odometer_invoke
from opendp.mod import OpenDPException

PURE = dp.max_divergence()


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
