"""A filter's map, its account and its limits compared distances in three ways."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.accounting.price import distance_key, same_distance
from opendp_concurrent.errors import InvalidValueError, LimitMismatchError

dp.enable_features("contrib", "honest-but-curious")

PURE = dp.max_divergence()
SPACE = dp.user_domain("anything", lambda _: True), dp.user_distance("of a user")
PLAIN, SCALED = np.dtype("f8"), np.dtype("f8", metadata={"unit": 1000})


class Own(float):
    """A number that is equal to others of its value."""


NAN = float("nan")
PAIRS = {  # equal, or nearly so, and a map can tell one from the other
    "metadata of an array": (np.ones(1, dtype=PLAIN), np.ones(1, dtype=SCALED)),
    "metadata of a number": (np.array(1.0, dtype=PLAIN), np.array(1.0, dtype=SCALED)),
    "metadata within a tuple": ((np.ones(1, dtype=PLAIN), 1), (np.ones(1, dtype=SCALED), 1)),
    "width": (np.ones(1, dtype="f4"), np.ones(1, dtype="f8")),
    "integer and float": (1, 1.0),
    "within a tuple": ((1,), (1.0,)),
    "boolean within a tuple": ((1,), (True,)),
    "fraction": (Fraction(1), 1),
    "decimal": (1, Decimal(1)),
    "decimals": (Decimal("1.0"), Decimal("1.00")),
    "sign of zero": ((0.0,), (-0.0,)),
    "NumPy's number": ((1.0,), (np.float64(1.0),)),
    "a class of one's own": ((1.0,), (Own(1.0),)),
}


def made_for(d_in):
    """Return a measurement that costs 1 at one distance, and 5 at any other."""
    key = distance_key(d_in)
    return dp.m.make_user_measurement(
        *SPACE, PURE, lambda _: 0, lambda d: 1.0 if distance_key(d) == key else 5.0
    )


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_a_map_and_an_account_hold_the_same_distances_for_one(one, other):
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    for bound, asked in ((one, other), (other, one)):
        budget = oc.make_concurrent_filter(odometer, d_in=bound, d_out=1.0)
        root = budget([])
        root(made_for(bound))
        assert (root.privacy_loss(bound), root.privacy_loss(asked)) == (1.0, 5.0)
        assert budget.map(bound) == 1.0
        composed = oc.make_concurrent_composition(*SPACE, PURE, bound, [1.0])
        for measurement in (budget, composed, oc.c.make_interactive(budget)):
            with pytest.raises((InvalidValueError, oc.errors.PrivacyMapError), match="d_in"):
                measurement.map(asked)


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_a_limit_is_opened_again_at_its_own_distance_only(one, other):
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    if {type(one), type(other)} == {int, float}:
        return  # one number, of which a ledger may have either form
    root = odometer([])
    limits = [oc.c.make_limited(odometer, d_in=d, d_out=1.0, label="ada") for d in (one, other)]
    assert root(limits[0]) is root(limits[0])
    with pytest.raises(LimitMismatchError, match="^d_in of the limit 'ada'"):
        root(limits[1])


def test_numbers_have_an_order_where_they_are_of_one_type():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    assert oc.make_concurrent_filter(odometer, d_in=2.0, d_out=1.0).map(1.5) == 1.0
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measured = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, PURE), 1, 1.0)
    assert measured.map(1.0) == measured.map(1) == measured.map(0.5) == 1.0


def test_a_distance_of_nan_parts_is_itself():
    assert same_distance((NAN,), (float("nan"),))
    assert not same_distance((0.0,), (-0.0,))
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    budget = oc.make_concurrent_filter(odometer, d_in=(NAN,), d_out=1.0)
    root = budget([])
    root(made_for((NAN,)))
    assert root.privacy_loss((float("nan"),)) == budget.map((float("nan"),)) == 1.0


def test_zero_has_one_sign():
    odometer = oc.make_concurrent_odometer(*SPACE, PURE)
    budget = oc.make_concurrent_filter(odometer, d_in=-0.0, d_out=1.0)
    assert budget.map(0.0) == 1.0
    assert str(budget).endswith("d_in=0.0, d_out=1.0)")
