"""Where OpenDP raises, or fails to, on a distance or a type that it does not expect."""

import opendp.prelude as dp
import pytest

PURE = dp.max_divergence()


class Sub(dp.Measurement):
    _type_ = dp.Measurement._type_


def with_map(space, measure, privacy_map):
    return dp.m.make_user_measurement(*space, measure, len, privacy_map)


# --- distances --------------------------------------------------------------------------------


def test_a_user_divergence_hands_back_its_descriptor_also_from_a_measurement(space):
    descriptor = object()
    measure = dp.user_divergence("mine", descriptor)
    assert measure.descriptor is descriptor
    assert with_map(space, measure, lambda d_in: 0.0).output_measure.descriptor is descriptor


# --- types ------------------------------------------------------------------------------------


def test_make_composition_takes_no_subclass_of_a_measurement(user):
    """Types of a list's elements are inferred by exact class, from the table of the next test."""
    plain, measurement = user(), user()
    assert dp.c.make_composition([plain, measurement])([1]) == [1, 1]
    measurement.__class__ = Sub
    with pytest.raises(TypeError, match="inferred type is CallbackFn, expected AnyMeasurementPtr"):
        dp.c.make_composition([plain, measurement])


def test_make_composition_takes_a_subclass_that_the_table_of_types_knows(user, monkeypatch):
    from opendp import typing

    measurement = user()
    measurement.__class__ = Sub
    monkeypatch.setitem(typing._ELEMENTARY_TYPES, Sub, "AnyMeasurementPtr")
    assert dp.c.make_composition([measurement, user()])([1]) == [1, 1]


def test_what_takes_one_measurement_takes_a_subclass(space, laplace):
    measurement = laplace()
    measurement.__class__ = Sub
    assert dp.c.make_pureDP_to_zCDP(measurement).map(1) == pytest.approx(0.125)
    assert dp.c.make_approximate(measurement).map(1) == (0.5, 0.0)
    cast = dp.t.make_identity(*space)
    assert type(cast >> measurement) is dp.Measurement


def test_a_transformation_refuses_a_null_odometer_with_an_exception(succeeds):
    """Any error from Python or the library will do; what must not happen is a crash."""
    succeeds(
        "class Null(dp.Odometer):\n"
        "    _type_ = dp.Odometer._type_\n"
        "    def __init__(self):\n        pass\n"
        "    def __del__(self):\n        pass\n"
        "try:\n    dp.t.make_clamp(*space, (0, 1)) >> Null()\n"
        "except dp.OpenDPException as error:\n    assert 'null pointer' in str(error)\n"
        "else:\n    raise SystemExit('>> takes it now')"
    )


# --- contexts ---------------------------------------------------------------------------------


@pytest.fixture
def context(space):
    def context(**loss):
        return dp.Context.compositor(
            data=[1, 2, 3],
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(**loss),
            domain=space[0],
        )

    return context


def test_a_context_asks_no_queryable_for_its_loss_but_an_odometer_queryable(space):
    class Other:
        def __call__(self, query):
            return "answered"

        def privacy_loss(self, d_in):
            raise AssertionError

    accountant = dp.c.make_fully_adaptive_composition(*space, PURE)
    context = dp.Context(accountant, Other(), d_in=1, d_out=1.0)
    context.query(epsilon=0.25).count().laplace().release()
    assert context.current_privacy_loss() == [pytest.approx(0.25)]
    assert context.remaining_privacy_loss() is None
