"""Contexts, filters and compositors read the decimals that people type."""

from decimal import Decimal
from fractions import Fraction

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError

from ..build import APPROXIMATE, DATA, PURE, SPACE, a_filter, a_limit, laplace, opened


def context(loss_of=dp.loss_of, ledger=None, **loss):
    unit = dp.unit_of(contributions=1)
    return oc.concurrent_context(DATA, unit, loss_of(**loss), ledger=ledger)


def spend(made, noise, **loss):
    getattr(made.query(**loss).count(), noise)().release()


FULL = [(1.0, [0.1] * 10), (1.0, [0.05] * 20), (1.0, [1 / 3] * 3), (0.8, [0.7, 0.1])]
FULL += [(0.7, [0.6, 0.1]), (0.3, [0.1, 0.2]), (Decimal("0.7"), ["0.6", Decimal("0.1")])]
FULL += [(Fraction(1), [Fraction(1, 3)] * 3), (1, [0.7, "0.3"])]


@pytest.mark.parametrize(("cap", "shares"), FULL)
@pytest.mark.parametrize(("word", "noise"), [("epsilon", "laplace"), ("rho", "gaussian")])
def test_decimals_that_add_up_to_the_bound_fit(cap, shares, word, noise):
    made = context(oc.loss_of, **{word: cap})
    for share in shares:
        spend(made, noise, **{word: share})
    assert made.remaining_privacy_loss() < 1e-15
    with pytest.raises(BudgetExceededError):
        spend(made, noise, **{word: 1e-9})
    exact = Fraction(made.current_privacy_loss())
    assert exact <= Fraction(made.accountant.map(1))
    assert exact <= Fraction(cap) * (1 + Fraction(1, 2**52))


def test_a_given_scale_costs_what_its_map_says():
    made = context(epsilon=0.8)
    for _ in range(8):  # 8 doubles of 0.1 are the double 0.8, which is above the decimal
        made.query().count().laplace(scale=10.0).release()
    ten = context(epsilon=Decimal("0.8"))
    for _ in range(7):
        ten.query().count().laplace(scale=10.0).release()
    with pytest.raises(BudgetExceededError):  # the map says 0.1 as a double, which is above a tenth
        ten.query().count().laplace(scale=10.0).release()


@pytest.mark.parametrize("cap", ["0.7", Decimal("0.7"), Fraction(7, 10)])
def test_a_filter_compares_with_what_was_typed_and_shows_no_less(cap):
    made = a_filter(cap)
    assert Fraction(made.map(1)) >= Fraction(7, 10)
    assert made.map(1) == 0.7000000000000001
    root = made([1, 2, 3])
    for share in (0.6, 0.1):
        root(laplace(1 / oc.c.smallest_scale(lambda scale: laplace(1 / scale), 1, share)))
    assert Fraction(root.privacy_loss()) > Fraction(0.7)  # so the double would have refused it
    with pytest.raises(BudgetExceededError) as refused:
        root(laplace(1e-12))
    assert refused.value.d_out == 0.7000000000000001


def test_a_double_of_a_filter_or_compositor_means_the_double():
    assert a_filter(0.7).map(1) == 0.7
    compositor = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.1] * 10)
    assert Fraction(compositor.map(1)) >= 10 * Fraction(0.1)
    root = compositor([1, 2, 3])
    root(laplace(0.1))  # the map of which is this double


def test_typed_shares_of_a_compositor_add_up_to_the_decimal():
    made = oc.make_concurrent_composition(*SPACE, PURE, 1, ["0.1"] * 10)
    assert made.map(1) == 1.0
    with pytest.raises(BudgetExceededError):
        made([1])(laplace(0.1))
    opened()(made)


def test_rules_that_convert_and_limits_take_decimals_rounded_down():
    rule = oc.accumulators.zcdp(delta_slack=1e-6)
    made = a_filter((Decimal("0.8"), "1e-5"), APPROXIMATE, rule)
    assert made.map(1) == (0.7999999999999999, 9.999999999999999e-06)
    assert opened()(a_limit(Decimal("0.8"))).remaining() == 0.7999999999999999


def test_a_ledger_keeps_doubles(tmp_path):
    path = tmp_path / "ledger.db"
    for begin in (oc.ledger.create_ledger, oc.ledger.open_ledger):  # under the same terms
        ledger = begin(path, dataset="survey")
        made = context(oc.loss_of, ledger, epsilon="0.8")
        assert made.accountant.map(1) == 0.7999999999999999
        spend(made, "laplace", epsilon=0.1)
        ledger.close()


@pytest.mark.parametrize("value", ["much", "nan", Decimal("inf"), "1e999999999", Fraction(10**400)])
def test_what_is_no_loss_is_refused_by_name(value):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="d_out"):
        a_filter(value)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="epsilon"):
        context(epsilon=1.0).query(epsilon=value)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="d_mids"):
        oc.make_concurrent_composition(*SPACE, PURE, 1, [value])


def test_loss_of_keeps_what_was_typed():
    assert oc.loss_of(epsilon="0.8")[1] == Fraction(4, 5)
    assert oc.loss_of(epsilon=0.8, delta="1e-6")[1] == (0.8, Fraction(1, 10**6))
    assert oc.loss_of(rho=Decimal("0.8"), omega=20.0)[1].rho == 0.7999999999999999
    assert oc.loss_of(epsilon="0.8", alpha=8.0)[1] == 0.7999999999999999
