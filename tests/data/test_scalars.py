"""One value is checked when it arrives: a NaN that the domain excludes is refused."""

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidValueError

from ..build import PURE, a_filter, an_odometer


def space(nan, kind="f64"):
    return dp.atom_domain(T=kind, nan=nan), dp.absolute_distance(T=kind)


def made(space):
    laplace = space >> dp.m.then_laplace(scale=1.0) if not space[0].nan else None
    return {
        "odometer": an_odometer(space=space),
        "filter": a_filter(d_in=1.0, space=space),
        "composition": oc.c.make_concurrent_composition(*space, PURE, 1.0, [1.0]),
    } | ({"measurement": oc.c.make_interactive(laplace)} if laplace else {})


@pytest.mark.parametrize("data", [float("nan"), np.float64("nan"), -float("nan")])
@pytest.mark.parametrize("name", ["odometer", "filter", "composition", "measurement"])
def test_nan_is_refused_where_the_domain_has_none(name, data):
    one = made(space(nan=False))[name]
    assert one(0.0) is not None
    with pytest.raises(InvalidValueError, match="data is NaN, which the domain excludes"):
        one(data)


@pytest.mark.parametrize("name", ["odometer", "filter", "composition"])
def test_nan_is_taken_where_the_domain_has_it(name):
    assert made(space(nan=True))[name](float("nan")) is not None


def test_narrow_floats_are_checked_alike():
    odometer = an_odometer(space=space(nan=False, kind="f32"))
    for data in (float("nan"), np.float32("nan")):
        with pytest.raises(InvalidValueError, match="data is NaN"):
            odometer(data)
    assert odometer(np.float32(1.0)) is not None
