"""What tells one d_in from another: never one loss for two distances."""

import math
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.extras.polars import Bound

import opendp_concurrent as oc
from opendp_concurrent.accounting.price import (
    StabilityMap,
    distance_key,
    own_distance,
    same_distance,
)
from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    LimitMismatchError,
)
from opendp_concurrent.ledger import create_ledger

from ..build import PURE, RENYI, SPACE, an_odometer, costing, laplace, opened

numbers = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.text("ab", max_size=3)
distances = st.recursive(numbers, lambda of: st.lists(of, max_size=3) | st.tuples(of, of))


def shape(d_in):
    """Equal for equal distances only: types are told from each other all the way down."""
    if isinstance(d_in, (list, tuple)):
        return type(d_in), [shape(each) for each in d_in]
    return type(d_in), d_in


@given(distances, distances)
def test_keys_are_equal_for_equal_distances_only(one, two):
    assert (distance_key(one) == distance_key(two)) == (shape(one) == shape(two))


@dataclass(frozen=True)
class Partly:
    """Compares by less than it is."""

    shown: int
    hidden: int = field(compare=False)


class Listed(list):
    """A list that knows more."""


class Closed:
    """Cannot be pickled, and may be where another one was."""

    def __reduce__(self):
        raise TypeError


def listed(more):
    found = Listed([1])
    found.more = more
    return found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Partly(1, 2), Partly(1, 3)),
        (listed(1), listed(2)),
        (frozenset({1}), frozenset({True})),
        ({1}, {1, 2}),
        (Bound(by=["a"], per_group=1), Bound(by=["a"], per_group=2)),
        (Bound(by=[pl.col("a").abs()]), Bound(by=[pl.col("b").abs()])),
        (np.zeros(2), np.zeros((2, 1))),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
    ],
)
def test_nothing_that_a_map_can_see_is_left_out(one, two):
    assert distance_key(one) != distance_key(two)
    assert distance_key(one) == distance_key(deepcopy(one))


@dataclass
class Two:
    """Two parts, which may be one object."""

    one: str
    other: str


def words(same):
    text = "".join(["us", "er"])
    return text, text if same else "".join(["us", "er"])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Two(*words(same=True)), Two(*words(same=False))),
        (dict([words(same=True), ("a", 1)]), dict([("a", 1), words(same=False)])),
        (frozenset([0, 8]), frozenset([8, 0])),
        (np.arange(10.0)[::2], np.arange(0.0, 10.0, 2.0)),
        (*([Bound(by=["a", pl.col("b").abs()], per_group=1)] for _ in range(2)),),
    ],
)
def test_equal_distances_are_known_again_however_they_were_made(one, two):
    assert distance_key(one) == distance_key(two) == distance_key(deepcopy(one))


def test_what_cannot_be_pickled_is_no_distance():
    for kind in (distance_key, own_distance):
        with pytest.raises(InvalidTypeError, match=r"^d_in must be a value that can be copied"):
            kind(Closed())


def test_a_map_cannot_change_the_distance_that_it_is_asked_at():
    def nosy(d_in):
        d_in[0] = 0
        return list(d_in)

    inward, d_in = StabilityMap(nosy), [3]
    assert inward(d_in) == [0]
    assert d_in == [3]
    values = [1, [2]]
    own = own_distance(values)
    values[1][0] = 3
    assert own == [1, [2]]


def test_a_stability_map_is_read_once_for_each_distance():
    read = []
    inward = StabilityMap(lambda d_in: read.append(d_in) or float(np.max(d_in)))
    one, two = np.zeros(3000), np.zeros(3000)
    two[1500] = 9.0
    assert [inward(one), inward(two), inward(one.copy())] == [0.0, 9.0, 0.0]
    assert len(read) == 2


# --- a filter's map, its account and its limits compared distances in three ways ------------------

ANY = dp.user_domain("anything", lambda _: True), dp.user_distance("of a user")
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
        *ANY, PURE, lambda _: 0, lambda d: 1.0 if distance_key(d) == key else 5.0
    )


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_a_map_and_an_account_hold_the_same_distances_for_one(one, other):
    odometer = oc.make_concurrent_odometer(*ANY, PURE)
    for bound, asked in ((one, other), (other, one)):
        budget = oc.make_concurrent_filter(odometer, d_in=bound, d_out=1.0)
        root = budget([])
        root(made_for(bound))
        assert (root.privacy_loss(bound), root.privacy_loss(asked)) == (1.0, 5.0)
        assert budget.map(bound) == 1.0
        composed = oc.make_concurrent_composition(*ANY, PURE, bound, [1.0])
        for measurement in (budget, composed, oc.c.make_interactive(budget)):
            with pytest.raises((InvalidValueError, oc.errors.PrivacyMapError), match="d_in"):
                measurement.map(asked)


@pytest.mark.parametrize(("one", "other"), PAIRS.values(), ids=PAIRS)
def test_a_limit_is_opened_again_at_its_own_distance_only(one, other):
    odometer = oc.make_concurrent_odometer(*ANY, PURE)
    if {type(one), type(other)} == {int, float}:
        return  # one number, of which a ledger may have either form
    root = odometer([])
    limits = [oc.c.make_limited(odometer, d_in=d, d_out=1.0, label="ada") for d in (one, other)]
    assert root(limits[0]) is root(limits[0])
    with pytest.raises(LimitMismatchError, match="^d_in of the limit 'ada'"):
        root(limits[1])


def test_numbers_have_an_order_where_they_are_of_one_type():
    odometer = oc.make_concurrent_odometer(*ANY, PURE)
    assert oc.make_concurrent_filter(odometer, d_in=2.0, d_out=1.0).map(1.5) == 1.0
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measured = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, PURE), 1, 1.0)
    assert measured.map(1.0) == measured.map(1) == measured.map(0.5) == 1.0


def test_a_distance_of_nan_parts_is_itself():
    assert same_distance((NAN,), (float("nan"),))
    assert not same_distance((0.0,), (-0.0,))
    odometer = oc.make_concurrent_odometer(*ANY, PURE)
    budget = oc.make_concurrent_filter(odometer, d_in=(NAN,), d_out=1.0)
    root = budget([])
    root(made_for((NAN,)))
    assert root.privacy_loss((float("nan"),)) == budget.map((float("nan"),)) == 1.0


def test_zero_has_one_sign():
    odometer = oc.make_concurrent_odometer(*ANY, PURE)
    budget = oc.make_concurrent_filter(odometer, d_in=-0.0, d_out=1.0)
    assert budget.map(0.0) == 1.0
    assert str(budget).endswith("d_in=0.0, d_out=1.0)")


# --- 0.1.0 took for the same, kept by reference, or took back what must be values -----------------

LAPLACE = laplace(0.25)


def test_what_would_happen_does_not_leave_out_launches_that_do_not_fit():
    root = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.125])([1])
    assert root.loss_after([LAPLACE]) == 0.25
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE, LAPLACE])
    with pytest.raises(BudgetExceededError):
        root.loss_after([LAPLACE] * 3)
    assert (root.privacy_loss(), root.remaining()) == (0.0, (0.25, 0.125))
    limit = opened(0.5)
    assert limit.loss_after([LAPLACE] * 3) == 0.75  # a filter says how much it would be


def test_slots_likewise():
    functions = [oc.TradeoffFunction.pure(0.25), oc.TradeoffFunction.pure(0.125)]
    root = oc.make_concurrent_composition(*SPACE, oc.tradeoff(), 1, functions, order="any")([1])
    dear = oc.c.cast(laplace(2.0), oc.tradeoff())
    with pytest.raises(BudgetExceededError):
        root.loss_after([dear])


def test_a_curve_is_what_it_was_when_it_was_launched():
    slope = [1.0]
    user = costing(lambda d_in: lambda alpha: slope[0] * alpha, measure=RENYI)
    root = an_odometer(RENYI)([1])
    root.privacy_loss(1)
    root(user)
    slope[0] = 0.0
    loss = root.privacy_loss(1)
    assert [loss(2.0), loss(16.0), loss(2.2)] == [2.0, 16.0, 2.5]
    assert loss(1e9) == math.inf


# --- priced and run ------------------------------------------------------------------------------


ODOMETER, COUNT = an_odometer(), laplace(0.2)


class Copies:
    """A transformation whose function copies each row, as often as its stability says."""

    def __init__(self, times=1):
        self.times, self.ran = times, []
        self.transformation = dp.t.make_user_transformation(
            *SPACE, *SPACE, self._copied, lambda d_in: d_in * self.times
        )

    def _copied(self, rows):
        self.ran.append(self.times)
        return list(rows) * self.times


def test_a_child_odometer_keeps_the_stability_of_its_data():
    copies = Copies(50)
    root = opened(100.0)
    child = root(copies.transformation >> ODOMETER)
    child(COUNT)
    copies.times = 1
    child(COUNT)
    assert root.privacy_loss() == child.privacy_loss(1) == 20.0


@pytest.mark.parametrize("composed", ["odometer", "filter", "ledger"])
def test_the_root_keeps_the_stability_of_its_data(tmp_path, composed):
    copies = Copies(50)
    odometer = copies.transformation >> ODOMETER
    if composed == "ledger":
        ledger = create_ledger(tmp_path / "b.db", "b")
        odometer = copies.transformation >> oc.make_concurrent_odometer(
            *SPACE, PURE, ledger=ledger, d_in=1
        )
    made = oc.make_concurrent_filter(odometer, 1, 99.0) if composed == "filter" else odometer
    root = made([1, 2, 3])
    copies.times = 1
    root(COUNT)
    assert root.privacy_loss(1) == 10.0
    assert copies.ran == [50]


def test_a_part_is_not_opened_at_a_price_that_was_not_charged():
    epsilon = [0.1]
    part = costing(lambda _: epsilon[0], lambda rows: epsilon[0])
    parallel = oc.c.make_parallel_composition(
        *SPACE, oc.c.by_values({"a": [1], "b": [2]}), {"a": part, "b": COUNT}
    )
    root = opened(100.0)
    parts, others = root(parallel), root(parallel)
    epsilon[0] = 10.0
    with pytest.raises(InvalidValueError, match="privacy map of the part's measurement"):
        parts["a"]
    parts["b"]
    epsilon[0] = 0.1
    assert others["a"] == 0.1
    assert root.privacy_loss() == 0.4
