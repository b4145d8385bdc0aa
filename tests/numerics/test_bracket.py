import math
from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_concurrent.numerics.bracket import (
    WORKING,
    double_up,
    evaluate,
    is_nonnegative,
    lower,
    upper,
)

from ..build import in_threads

real = WORKING[0]
doubles = st.floats(min_value=-1e100, max_value=1e100, allow_subnormal=False)
positive = st.floats(min_value=1e-100, max_value=1e100)


def exact(value):
    return Fraction(Decimal(value))


def contains(bracket, truth):
    return exact(bracket.lower) <= truth <= exact(bracket.upper)


@given(doubles, doubles)
def test_arithmetic_contains_the_exact_result(x, y):
    a, b = real(x), real(y)
    assert contains(a + b, Fraction(x) + Fraction(y))
    assert contains(a - b, Fraction(x) - Fraction(y))
    assert contains(a * b, Fraction(x) * Fraction(y))
    assert contains(-a, -Fraction(x))
    if y:
        assert contains(a / b, Fraction(x) / Fraction(y))


@given(doubles, doubles, doubles, doubles)
def test_wide_brackets_contain_all_results(a, b, c, d):
    left = real.between(Decimal(min(a, b)), Decimal(max(a, b)))
    right = real.between(Decimal(min(c, d)), Decimal(max(c, d)))
    for x in (a, b):
        for y in (c, d):
            assert contains(left * right, Fraction(x) * Fraction(y))
            assert contains(left - right, Fraction(x) - Fraction(y))
            if min(c, d) > 0 or max(c, d) < 0:
                assert contains(left / right, Fraction(x) / Fraction(y))


@given(st.floats(-700, 700), positive)
def test_functions_contain_the_exact_result(x, y):
    with mp.workdps(120):
        for bracket, truth in (
            (real(x).exp(), mp.exp(mp.mpf(x))),
            (real(y).ln(), mp.log(mp.mpf(y))),
            (real(y).sqrt(), mp.sqrt(mp.mpf(y))),
        ):
            assert mp.mpf(str(bracket.lower)) <= truth <= mp.mpf(str(bracket.upper))
            assert bracket.is_narrow() or abs(truth) < mp.mpf("1e-20")


def test_what_leaves_the_range_stays_a_bound():
    assert real(1e300).exp().upper == Decimal("Infinity")
    assert real(-1e300).exp().lower == 0
    assert real(-1e300).exp().upper > 0
    assert real.between(Decimal(0), Decimal(1)).ln().lower == Decimal("-Infinity")
    around_zero = real.between(Decimal(-1), Decimal(1))
    assert (1 / around_zero).upper == Decimal("Infinity")
    assert upper(lambda real: real(1e300).exp().ln()) == math.inf  # unknown, and so no bound
    assert upper(lambda real: real(1e300).exp() - real(1e300).exp()) == math.inf
    assert upper(lambda real: real(1e300).exp() * real(1e300).exp() * real(1e300).exp()) == math.inf
    with pytest.raises(ZeroDivisionError):  # a decimal, not a bracket: a mistake in a formula
        Decimal(1) / Decimal(0)


def test_digits_grow_until_the_result_is_known():
    def cancelling(real):
        return real(1e-300).exp() - 1

    assert upper(cancelling) == pytest.approx(1e-300, rel=1e-15)
    assert Fraction(lower(cancelling)) <= Fraction(upper(cancelling))
    assert evaluate(cancelling).digits.number > 300


def test_a_zero_that_cannot_be_told_is_still_a_bound():
    def zero(real):
        return real(2).sqrt() * real(2).sqrt() - 2

    assert 0.0 <= upper(zero) <= 5e-324
    assert -5e-324 <= lower(zero) <= 0.0
    assert not is_nonnegative(lambda real: zero(real) - Decimal("1e-5000"))


def test_a_bracket_without_ends_is_not_known():
    """A divisor that may be zero with few digits, and is not."""

    def large(real):
        return 1 / (real(1.0) + Decimal("1e-60") - 1)

    assert lower(large) <= 1e60 <= upper(large)
    assert upper(large) == pytest.approx(1e60, rel=1e-15)


@given(st.fractions(min_value=-(10**30), max_value=10**30))
def test_doubles_are_rounded_up_once(truth):
    value = double_up(Decimal(truth.numerator) / Decimal(truth.denominator))
    rounded = Fraction(Decimal(truth.numerator) / Decimal(truth.denominator))
    assert Fraction(value) >= rounded
    assert Fraction(math.nextafter(value, -math.inf)) < rounded


def test_the_ends_of_the_doubles():
    assert double_up(Decimal("1e-400")) == 5e-324
    assert double_up(Decimal("-1e-400")) == 0.0
    assert double_up(Decimal("1e309")) == math.inf
    assert double_up(Decimal("1e5000")) == math.inf
    assert double_up(Decimal("-1e5000")) == -1.7976931348623157e308
    assert double_up(Decimal(0)) == 0.0


def test_threads_do_not_disturb_each_other():
    def formula(real):
        return (real(2).ln() + real(3).sqrt()).exp()

    expected, found = upper(formula), []

    in_threads(lambda _: found.extend(upper(formula) for _ in range(200)), range(4))
    assert set(found) == {expected}
    assert len(found) == 800


def test_the_context_of_the_caller_does_not_matter():
    from decimal import ROUND_DOWN, FloatOperation, Inexact, Rounded, localcontext

    from opendp_concurrent.measures.tradeoffs import gaussian_to_delta
    from opendp_concurrent.numerics.bracket import twice_quantile, zcdp_to_epsilon

    calls = [
        lambda: gaussian_to_delta.__wrapped__(1.0, 1.0),
        lambda: twice_quantile.__wrapped__(1.0),
        lambda: zcdp_to_epsilon.__wrapped__(0.5, 1e-6),
    ]
    expected = [call() for call in calls]
    with localcontext() as context:
        context.prec, context.rounding = 1, ROUND_DOWN
        for trap in (Inexact, Rounded, FloatOperation):
            context.traps[trap] = True
        assert [call() for call in calls] == expected
