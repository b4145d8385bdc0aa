"""Where OpenDP raises, or fails to, on a distance or a type that it does not expect."""

import math

import opendp.prelude as dp
import pytest
from opendp.mod import OpenDPException

PURE = dp.max_divergence()
RENYI = dp.renyi_divergence()


class Point:
    """Ordered by both coordinates, so only in part."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __lt__(self, other):
        return self.x <= other.x and self.y <= other.y

    def __gt__(self, other):
        return other < self

    __hash__ = None


class Sub(dp.Measurement):
    _type_ = dp.Measurement._type_


def with_map(space, measure, privacy_map):
    return dp.m.make_user_measurement(*space, measure, len, privacy_map)


# --- distances --------------------------------------------------------------------------------


def test_a_loss_that_is_nan_is_run_and_spoils_a_native_odometer(space, user):
    root = dp.c.make_fully_adaptive_composition(*space, PURE)([1])
    assert root(user(len, math.nan)) == 1
    with pytest.raises(OpenDPException, match="not finite"):
        root.privacy_loss(1)


def test_check_compares_points_of_a_partial_order(space):
    measurement = with_map(space, dp.user_divergence("mine"), lambda d_in: Point(1, 2))
    answers = [measurement.check(1, d_out) for d_out in (Point(1, 2), Point(2, 2), Point(0, 2))]
    assert answers == [True, True, False]


def test_check_raises_on_distances_that_cannot_be_compared(space):
    measurement = with_map(space, dp.user_divergence("mine"), lambda d_in: Point(1, 2))
    with pytest.raises(OpenDPException, match="left and right are not comparable"):
        measurement.check(1, Point(2, 1))


def test_a_search_for_a_parameter_compares_distances_made_in_python(space):
    def make(scale):
        return with_map(
            space, dp.user_divergence("mine"), lambda d_in: Point(d_in / scale, d_in / scale)
        )

    scale = dp.binary_search_param(make, 1, Point(0.5, 0.5), bounds=(0.1, 100.0), T=float)
    assert scale == pytest.approx(2.0)
    assert make(scale).check(1, Point(0.5, 0.5))


def test_a_renyi_curve_refuses_an_order_that_is_an_int(space):
    curve = with_map(space, RENYI, lambda d_in: lambda alpha: alpha).map(1)
    assert curve(2.0) == 2.0
    with pytest.raises(OpenDPException, match="Expected data of type f64"):
        curve(2)


@pytest.mark.parametrize(
    ("measure", "curve"),
    [
        (RENYI, lambda: lambda alpha: alpha),
        (
            dp.smoothed_max_divergence(),
            lambda: dp.new_privacy_profile(lambda epsilon: 0.5).curve,
        ),
    ],
    ids=["Renyi", "profile"],
)
def test_check_does_not_compare_curves(space, measure, curve):
    measurement = with_map(space, measure, lambda d_in: curve())
    with pytest.raises(OpenDPException, match="No match for concrete type"):
        measurement.check(1, curve())


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


@pytest.mark.parametrize("name", ["make_noisy_max", "make_noisy_top_k"])
def test_noisy_selections_refuse_the_renyi_divergence(name):
    space = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.linf_distance(T=int)
    arguments = {"scale": 1.0} if name == "make_noisy_max" else {"k": 1, "scale": 1.0}
    assert isinstance(getattr(dp.m, name)(*space, PURE, **arguments), dp.Measurement)
    with pytest.raises(OpenDPException, match="Renyi"):
        getattr(dp.m, name)(*space, RENYI, **arguments)


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


def test_a_native_context_cannot_spend_one_in_ten_tenths(context):
    context = context(epsilon=1.0)
    for _ in range(9):
        context.query(epsilon=0.1).count().laplace().release()
    with pytest.raises(OpenDPException, match="exhausted"):
        context.query(epsilon=0.1).count().laplace().release()


def test_a_native_context_of_approximate_zcdp_hosts_no_context(context):
    context = context(rho=0.5, delta=1e-7)
    nested = context.query(rho=0.25, delta=0.0).compositor(split_evenly_over=2).release()
    with pytest.raises(OpenDPException, match="FailedCast"):
        nested.query().count().gaussian().release()


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
