import math
import operator

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.context.search import nearest_passing
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

MOST = 100
SIDES = [operator.ge, operator.gt, operator.le, operator.lt]


class Condition:
    """Counts its trials, and raises outside of its domain."""

    def __init__(self, holds, domain=lambda number: True):
        self.holds, self.domain, self.trials = holds, domain, []

    def __call__(self, number):
        self.trials.append(number)
        if not self.domain(number):
            raise ArithmeticError(f"{number} is outside")
        return self.holds(number)


def beyond(boundary, side=operator.ge, domain=lambda number: number > 0):
    return Condition(lambda number: side(number, boundary), domain)


@pytest.mark.parametrize("side", SIDES)
@given(boundary=st.floats(2.0**-1000, 2.0**1000, exclude_min=True, exclude_max=True))
def test_the_nearest_double_is_found(side, boundary):
    condition = beyond(boundary, side)
    ends = {operator.gt: math.inf, operator.lt: 0.0}
    nearest = math.nextafter(boundary, ends.get(side, boundary))
    assert nearest_passing([condition]) == nearest
    assert len(condition.trials) <= MOST


@pytest.mark.parametrize("side", SIDES)
@given(boundary=st.integers(1, 2**62 - 1))
def test_the_nearest_integer_is_found(side, boundary):
    condition = beyond(boundary, side, lambda number: 0 <= number)
    found = nearest_passing([condition], T=int)
    assert found == boundary + {operator.gt: 1, operator.lt: -1}.get(side, 0)
    assert type(found) is int
    assert len(condition.trials) <= MOST


SHARES = {  # at 1 where the number is the boundary
    "power": lambda ratio, power: ratio**power,
    "rippled": lambda ratio, power: ratio**power * (1 + 1e-12 * math.sin(1e15 * ratio)),
    "curved": lambda ratio, power: math.expm1(ratio**power) / math.expm1(1.0),
    "no power": lambda ratio, power: 2.0 + math.sin(1e3 * ratio),
    "constant": lambda ratio, power: 0.5,
    "unknown": lambda ratio, power: math.nan,
}


@pytest.mark.parametrize("share", SHARES)
@given(boundary=st.floats(1e-9, 1e9), power=st.sampled_from([-2.0, -1.0, -0.5, 1.0, 2.0]))
def test_a_share_saves_trials_and_changes_no_number(share, boundary, power):
    """The condition alone decides: the number passes, and the next double does not."""
    condition, of = beyond(boundary, operator.ge if power < 0 else operator.le), SHARES[share]
    found = nearest_passing([condition], share=lambda number: of(number / boundary, power))
    assert found == boundary
    beside = math.nextafter(found, 0.0 if power < 0 else math.inf)
    assert {found, beside} <= set(condition.trials)
    assert len(condition.trials) <= {"power": 10, "rippled": 30}.get(share, 2 * MOST)


def test_a_condition_may_raise_at_one():
    condition = beyond(0.3, domain=lambda number: 0.1 < number < 0.9)
    assert nearest_passing([condition]) == 0.3
    condition = beyond(30.0, domain=lambda number: 10.0 < number)
    assert nearest_passing([condition]) == 30.0
    assert len(condition.trials) <= MOST


@pytest.mark.parametrize("side", SIDES)
@given(boundary=st.floats(-1e300, 1e300))
def test_bounds_are_halved_by_the_doubles_in_them(side, boundary):
    most = 1.0000001e300
    condition = beyond(boundary, side, lambda number: -most <= number <= most)
    found = nearest_passing([condition], (-most, most))
    assert side(found, boundary)
    assert abs(found - boundary) <= math.ulp(boundary)
    assert len(condition.trials) <= MOST


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("bounds", [None, (3.0, 4.0), (4.0, 3.0), (3.0, 3.0), (3, 4)])
def test_a_condition_that_never_changes_has_no_number(holds, bounds):
    with pytest.raises(ValueError, match="predicate|unable to infer bounds"):
        nearest_passing([Condition(lambda number: holds)], bounds)


def test_bounds_are_finite():
    condition = beyond(2.5)
    for bounds in ((3.0, math.nan), (math.nan, None), (0.0, math.inf), (None, -math.inf)):
        with pytest.raises(InvalidValueError, match=r"^bounds .* must be finite"):
            nearest_passing([condition], bounds)
    assert not condition.trials


def test_the_first_condition_that_changes_decides():
    constant, first, second = Condition(lambda number: True), beyond(7.5), beyond(3.5)
    assert nearest_passing([constant, first, second]) == 7.5
    assert not second.trials
    assert nearest_passing([constant, first], (7.0, 8.0)) == 7.5


@pytest.mark.parametrize("kind", ["native", "ours", "rust"])
def test_integers_are_tried_where_floats_have_the_wrong_type(kind):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    trials = []

    def condition(number):
        trials.append(number)
        if kind == "native":
            dp.m.make_laplace(*space, 1.0, k=number)
        elif type(number) is float:
            raise InvalidTypeError("") if kind == "ours" else dp.OpenDPException("Type", "")
        return number >= 12

    found = nearest_passing([condition])
    assert (type(found), found) == (int, 12)
    assert [type(number) for number in trials].count(float) == 1


def test_an_interrupt_ends_the_search():
    def interrupted(number):
        if number not in (1.0, 2.0):
            raise KeyboardInterrupt
        return number >= 1.2

    with pytest.raises(KeyboardInterrupt):
        nearest_passing([interrupted])
