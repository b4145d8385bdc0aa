"""What measures say of themselves; the measure's own sum, and the plain sum of ε as a rule."""

import math
from fractions import Fraction

import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opendp_concurrent as oc
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures import Composability, by_tag, composition_measure
from opendp_concurrent.measures import opendp as kinds
from opendp_concurrent.measures.divergences import (
    MAX_DIVERGENCE,
    ApproximateMaxDivergence,
    ApproximateZeroConcentratedDivergence,
    MaxDivergence,
    SmoothedMaxDivergence,
    ZeroConcentratedDivergence,
)
from opendp_concurrent.measures.measure import (
    Basic,
    EvenlyDivisible,
    PlainSum,
    nearly_equal,
    singleton,
)
from opendp_concurrent.measures.renyi import (
    RENYI_DIVERGENCE,
    FixedRenyiDivergence,
    GridCurve,
    OnOrders,
    RenyiCurve,
    RenyiDivergence,
)
from opendp_concurrent.measures.shapes import NumberMeasure, PairMeasure, PairSum, ScalarSum
from opendp_concurrent.measures.slots import Products
from opendp_concurrent.measures.tradeoffs import GaussianTradeoff, TradeoffDivergence
from opendp_concurrent.measures.truncated import TruncatedConcentratedDivergence, TruncatedSum

KNOWN = [
    composition_measure(one)
    for one in (
        dp.max_divergence(),
        dp.approximate(dp.max_divergence()),
        dp.zero_concentrated_divergence(),
        dp.approximate(dp.zero_concentrated_divergence()),
        dp.renyi_divergence(),
    )
]
PAIRS = [known for known in KNOWN if known.zero == (0.0, 0.0)]
every = pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)


@pytest.mark.parametrize(
    ("cls", "parameters", "kind", "shape"),
    [
        (MaxDivergence, (), kinds.PURE, NumberMeasure),
        (ApproximateMaxDivergence, (), kinds.APPROXIMATE, PairMeasure),
        (ZeroConcentratedDivergence, (), kinds.ZCDP, NumberMeasure),
        (ApproximateZeroConcentratedDivergence, (), kinds.APPROXIMATE_ZCDP, PairMeasure),
        (RenyiDivergence, (), kinds.RENYI, None),
        (FixedRenyiDivergence, (2.0,), kinds.FIXED, NumberMeasure),
        (TruncatedConcentratedDivergence, (3.0,), kinds.TRUNCATED, None),
        (GaussianTradeoff, (), kinds.GAUSSIAN, NumberMeasure),
        (TradeoffDivergence, (), kinds.TRADEOFF, None),
        (SmoothedMaxDivergence, (), kinds.PROFILE, None),
    ],
)
def test_a_class_knows_its_measures_by_object_and_by_name(cls, parameters, kind, shape):
    one = singleton(cls, *parameters)
    assert cls.find(one.opendp()) is one
    assert cls.from_tag(one.name) is one
    assert cls.from_tag(f"{one.name}?") is None
    assert one.kind == kind
    assert one.name.startswith(kind)
    for other in (NumberMeasure, PairMeasure):
        assert isinstance(one, other) == (other is shape)
    if kind != kinds.PROFILE:
        assert by_tag(one.name) is one


@every
def test_a_measure_says_what_lets_its_children_be_concurrent(known):
    uniform = "ZeroConcentratedDivergence" in known.name and "Approximate" in known.name
    assert known.composability is (Composability.UNIFORM if uniform else Composability.CONCURRENT)
    assert "arxiv.org" in known.reason


@pytest.mark.parametrize("known", PAIRS, ids=lambda known: known.name)
def test_pairs_have_the_product_order(known):
    assert known.at_most((1.0, 0.1), (1.0, 0.2))
    assert not known.at_most((1.0, 0.2), (2.0, 0.1))
    assert not known.at_most((2.0, 0.1), (1.0, 0.2))


def test_a_curve_is_equal_to_itself_only_and_remembers_its_values():
    calls = []

    def line(alpha):
        calls.append(alpha)
        return alpha / 2

    curve = RENYI_DIVERGENCE.validate("d_mid", line)
    assert isinstance(curve, RenyiCurve)
    assert RENYI_DIVERGENCE.validate("d_mid", curve) is not curve  # which somebody else may hold
    assert curve != RENYI_DIVERGENCE.validate("d_mid", line)
    assert [curve(2.0), curve(2.0), curve(4.0)] == [1.0, 1.0, 2.0]
    assert calls == [2.0, 4.0]


def test_a_distance_stays_the_same_when_validated():
    pure = composition_measure(dp.max_divergence())
    assert pure.validate("d_mid", 1) == 1.0
    assert math.copysign(1.0, pure.validate("d_mid", -0.0)) == 1.0


@pytest.mark.parametrize("measure", [None, "MaxDivergence", 1.0])
def test_a_sum_needs_a_measure(measure):
    assert Basic.needs_measure
    with pytest.raises(InvalidTypeError, match="^measure must be a composition measure"):
        Basic().start(measure)


def test_as_a_rule_it_adds_up_epsilon_exactly_and_has_no_slack():
    (rule,) = Basic().parts()
    assert rule == PlainSum()
    assert rule.delta_slack == 0.0
    cost = rule.cost(0.1) + rule.cost(0.2)
    assert rule.spent(cost) == math.nextafter(0.3, 1.0)  # the least double above the exact sum
    assert rule.epsilon(rule.largest(0.75)) == 0.75


losses = st.one_of(
    st.floats(0.0, width=64), st.integers(0, 3), st.sampled_from([math.inf, 5e-324, -0.0, 0.1])
)
bounds = st.one_of(losses, st.fractions(0, 3))


@given(st.lists(st.tuples(losses, losses, st.integers(1, 5))), bounds, bounds)
def test_a_pair_is_the_sums_of_both_components(launches, one, other):
    pair, first, second = PairSum(), ScalarSum(), ScalarSum()
    exact = [Fraction(0), Fraction(0)]
    for a, b, count in launches:
        pair = pair.after((a, b), count)
        first, second = first.after(a, count), second.after(b, count)
        for place, loss in enumerate((a, b)):
            endless = math.inf in (loss, exact[place])
            exact[place] = math.inf if endless else exact[place] + count * Fraction(loss)
    assert pair.loss == (first.loss, second.loss)
    for loss, sum_ in zip(pair.loss, exact, strict=True):
        assert loss >= sum_ > math.nextafter(loss, -1.0)
    assert pair.within((one, other)) == (exact[0] <= one and exact[1] <= other)
    assert pair.remaining((one, other)) == (first.remaining(one), second.remaining(other))
    assert PairSum.from_record(pair.to_record()) == pair


# --- what all accumulators share: counts of launches, and totals of two machines -----------------


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        (1.0, 1.0 + 2**-45, True),
        (1.0, 1.0 + 2**-35, False),
        (0.0, 5e-324, False),
        (math.inf, math.inf, True),
        (math.inf, 1.0, False),
        (math.nan, math.nan, False),
        (3 * 2**2000, 3 * 2**2000 + 1, True),
    ],
)
def test_totals_that_differ_by_rounding_are_nearly_equal(one, other, near):
    assert nearly_equal(one, other) == nearly_equal(other, one) == near


def test_a_bound_is_divided_by_the_measure():
    weights = [Fraction(1), Fraction(1), Fraction(2)]
    assert EvenlyDivisible().shares(MAX_DIVERGENCE, 1.0, weights) == [0.25, 0.25, 0.5]


# --- sums of Rényi curves without a grid ---------------------------------------------------------


def test_curves_without_a_grid_have_no_bound_no_record_and_nothing_remains():
    start = oc.accumulators.basic().start(RENYI_DIVERGENCE)
    for call in (
        lambda: start.within(1.0),
        lambda: start.remaining(1.0),
        start.to_record,
        lambda: oc.accumulators.basic().from_record(RENYI_DIVERGENCE, None),
    ):
        with pytest.raises(InvalidTypeError, match="grid of orders"):
            call()


def test_a_curve_without_a_value_at_each_order_is_no_curve():
    with pytest.raises(ValueError, match="shorter"):
        GridCurve((2.0, 3.0), (0.5,))(1.5)


# --- rényi curves on a grid of orders ------------------------------------------------------------


GRID = OnOrders((2.0, 3.0))


def test_curves_are_read_at_the_orders_that_count():
    assert GRID.start(None).read(lambda order: order / 4) == GridCurve((2.0, 3.0), (0.5, 0.75))
    falling = GRID.start(None).read(lambda order: 1 / order)  # no Rényi curve falls
    assert falling == GridCurve((2.0, 3.0), (1 / 3, 1 / 3))
    for wrong in (None, 1.0, (0.5, 0.75)):
        with pytest.raises(InvalidTypeError, match="^d_mid must be a function of the order"):
            GRID.start(None).read(wrong)
    with pytest.raises(InvalidValueError, match=r"^d_mid\(3\)"):
        GRID.start(None).read(lambda order: -1.0 if order == 3.0 else 1.0)


def test_curves_on_a_grid_are_compared_there_only():
    low, high = GridCurve((2.0, 3.0), (0.5, 0.75)), GridCurve((2.0, 3.0), (0.5, 1.0))
    other = GridCurve((2.0, 4.0), (0.5, 0.75))
    assert low <= high
    assert low < high
    assert low <= low
    assert not low < low
    assert not high <= low
    assert not high < low
    crossing = GridCurve((2.0, 3.0), (0.25, 1.0))
    assert not low <= crossing
    assert not crossing <= low
    for one, another in ((low, other), (low, 1.0), (low, None)):
        with pytest.raises(TypeError):
            one <= another  # noqa: B015
        with pytest.raises(TypeError):
            one < another  # noqa: B015


def test_a_curve_on_a_grid_between_its_orders():
    curve = GridCurve((2.0, 3.0), (0.5, 0.75))
    assert [curve(order) for order in (1.5, 2.0, 2.5, 3.0)] == [0.5, 0.5, 0.75, 0.75]
    assert curve(3.5) == float("inf")
    for order in (1.0, 0.5, float("nan")):
        with pytest.raises(InvalidValueError, match="^alpha"):
            curve(order)


# --- the product of trade-off functions, which only a compositor may use -------------------------


T = oc.TradeoffFunction


def test_a_product_composes_and_compares():
    start = Products().start(T.identity())
    after = start.after(T.pure(0.1), 3).after(T.gaussian(0.2))
    assert after.loss == T.pure(0.1).power(3).compose(T.gaussian(0.2))
    assert after.within(after.loss)
    assert not after.within(T.pure(0.1))
    with pytest.raises(InvalidTypeError, match="d_mid must be a TradeoffFunction, found float"):
        start.after(0.5)


# --- sums of truncated concentrated losses -------------------------------------------------------


def test_what_remains_of_truncated_losses_has_the_omega_of_the_bound():
    bound = oc.TruncatedConcentrated(0.75, 4.0)
    spent = TruncatedSum().after(oc.TruncatedConcentrated(0.5, 8.0))
    assert spent.remaining(bound) == oc.TruncatedConcentrated(0.25, 4.0)
    assert spent.after(spent.remaining(bound)).within(bound)
    assert not spent.after(oc.TruncatedConcentrated(0.25, 3.9)).within(bound)
