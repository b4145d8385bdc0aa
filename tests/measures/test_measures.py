"""What measures say of themselves; the measure's own sum, and the plain sum of ε as a rule."""

import math
import operator
import pickle
from fractions import Fraction
from math import exp, inf, tanh
from statistics import NormalDist

import mpmath as mp
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
    mixed,
)
from opendp_concurrent.measures.measure import (
    Basic,
    EvenlyDivisible,
    PlainSum,
    nearly_equal,
    singleton,
)
from opendp_concurrent.measures.registry import height, name
from opendp_concurrent.measures.renyi import (
    RENYI_DIVERGENCE,
    FixedRenyiDivergence,
    GridCurve,
    OnOrders,
    RenyiCurve,
    RenyiDivergence,
    SummedCurve,
)
from opendp_concurrent.measures.shapes import (
    PairSum,
    ScalarSum,
    approximate_group,
    approximate_member,
)
from opendp_concurrent.measures.slots import Products
from opendp_concurrent.measures.tradeoffs import GaussianTradeoff, TradeoffDivergence
from opendp_concurrent.measures.truncated import TruncatedConcentratedDivergence, TruncatedSum
from opendp_concurrent.queryables.data import Sealed

from ..build import APPROXIMATE, APPROXIMATE_ZCDP, PURE, RENYI, ZCDP, laplace, opened

T = oc.TradeoffFunction
KNOWN = [*map(composition_measure, (PURE, APPROXIMATE, ZCDP, APPROXIMATE_ZCDP, RENYI))]


@pytest.mark.parametrize(
    ("cls", "parameters", "kind"),
    [
        (MaxDivergence, (), kinds.PURE),
        (ApproximateMaxDivergence, (), kinds.APPROXIMATE),
        (ZeroConcentratedDivergence, (), kinds.ZCDP),
        (ApproximateZeroConcentratedDivergence, (), kinds.APPROXIMATE_ZCDP),
        (RenyiDivergence, (), kinds.RENYI),
        (FixedRenyiDivergence, (2.0,), kinds.FIXED),
        (TruncatedConcentratedDivergence, (3.0,), kinds.TRUNCATED),
        (GaussianTradeoff, (), kinds.GAUSSIAN),
        (TradeoffDivergence, (), kinds.TRADEOFF),
        (SmoothedMaxDivergence, (), kinds.PROFILE),
    ],
)
def test_a_class_knows_its_measures_by_object_and_by_name(cls, parameters, kind):
    one = singleton(cls, *parameters)
    assert cls.find(one.opendp()) is one
    assert cls.from_tag(one.name) is one
    assert cls.from_tag(f"{one.name}?") is None
    assert one.kind == kind
    assert one.name.startswith(kind)
    if kind != kinds.PROFILE:
        assert by_tag(one.name) is one


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_measure_says_what_lets_its_children_be_concurrent(known):
    uniform = "ZeroConcentratedDivergence" in known.name and "Approximate" in known.name
    assert known.composability is (Composability.UNIFORM if uniform else Composability.CONCURRENT)
    assert "arxiv.org" in known.reason


@pytest.mark.parametrize("known", [KNOWN[1], KNOWN[3]], ids=lambda known: known.name)
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
    pure = composition_measure(PURE)
    assert pure.validate("d_mid", 1) == 1.0
    assert math.copysign(1.0, pure.validate("d_mid", -0.0)) == 1.0


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
    low, high, other = (
        GridCurve((2.0, last), values)
        for last, values in ((3.0, (0.5, 0.75)), (3.0, (0.5, 1.0)), (4.0, (0.5, 0.75)))
    )
    crossing = GridCurve((2.0, 3.0), (0.25, 1.0))
    assert low < high
    assert low <= low <= high
    for one, another in ((high, low), (low, crossing), (crossing, low)):
        assert not one <= another
        assert not one < another
    assert not low < low
    for another in (other, 1.0, None):
        for compare in (operator.le, operator.lt):
            with pytest.raises(TypeError):
                compare(low, another)


def test_a_curve_on_a_grid_between_its_orders():
    curve = GridCurve((2.0, 3.0), (0.5, 0.75))
    assert [curve(order) for order in (1.5, 2.0, 2.5, 3.0)] == [0.5, 0.5, 0.75, 0.75]
    assert curve(3.5) == float("inf")
    for order in (1.0, 0.5, float("nan")):
        with pytest.raises(InvalidValueError, match="^alpha"):
            curve(order)


# --- the product of trade-off functions, which only a compositor may use -------------------------


def test_a_product_composes_and_compares():
    start = Products().start(T.identity())
    after = start.after(T.pure(0.1), 3).after(T.gaussian(0.2))
    assert after.loss == T.pure(0.1).power(3).compose(T.gaussian(0.2))
    assert after.within(after.loss)
    assert not after.within(T.pure(0.1))
    with pytest.raises(InvalidTypeError, match="d_mid must be a TradeoffFunction, found float"):
        start.after(0.5)


def test_what_remains_of_truncated_losses_has_the_omega_of_the_bound():
    bound = oc.TruncatedConcentrated(0.75, 4.0)
    spent = TruncatedSum().after(oc.TruncatedConcentrated(0.5, 8.0))
    assert spent.remaining(bound) == oc.TruncatedConcentrated(0.25, 4.0)
    assert spent.after(spent.remaining(bound)).within(bound)
    assert not spent.after(oc.TruncatedConcentrated(0.25, 3.9)).within(bound)


# --- no attacker does better than a risk says: exact attackers, and formulas ---------------------

PHI = NormalDist()


def best(first, second, prior):
    """Advantage, success and true positives of the best attacker on two laws, exactly."""
    advantage = sum(max(q - p, 0) for p, q in zip(first, second, strict=True))
    right = sum(max((1 - prior) * p, prior * q) for p, q in zip(first, second, strict=True))
    left, hit = Fraction(0.05), Fraction(0)
    for p, q in sorted(zip(first, second, strict=True), key=lambda one: -one[1] / one[0]):
        share = min(Fraction(1), left / p)  # Neyman and Pearson
        left, hit = left - share * p, hit + share * q
    return advantage, right, hit


@pytest.mark.parametrize("prior", [0.5, 0.01, 0.9, 1 - 2**-53, 1e-300])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 3.0, 40.0])
def test_the_best_attacker_on_randomized_response_attains_the_risk(epsilon, prior):
    """Its loss is at most epsilon, so what he does must be at most the risk; it is 1e-9 of it."""
    truth = Fraction(1 / (1 + exp(-epsilon))) * (1 - Fraction(1, 2**52))
    truth = max(truth, Fraction(1, 2))
    found = oc.measures.risk(PURE, epsilon, prior=prior)
    exact = best([truth, 1 - truth], [1 - truth, truth], Fraction(prior))
    told = found.advantage, found.success, found.true_positives
    for bound, value in zip(told, exact, strict=True):
        assert value <= bound <= 1
        assert bound == pytest.approx(float(value), rel=1e-9, abs=1e-15)


def test_formulas():
    pair = oc.measures.risk(APPROXIMATE, (1.0, 1e-6))
    assert pair.advantage == pytest.approx((exp(1) - 1 + 2e-6) / (exp(1) + 1), rel=1e-9)
    mu = oc.measures.risk(oc.gaussian_tradeoff(), 1.0, prior=0.2)
    assert mu.advantage == pytest.approx(2 * PHI.cdf(0.5) - 1, rel=1e-9)
    assert mu.true_positives == pytest.approx(PHI.cdf(PHI.inv_cdf(0.05) + 1), rel=1e-9)
    assert 0.8 < mu.success < 0.8 + 0.2 * mu.advantage


GAUSSIAN = oc.measures.risk(oc.gaussian_tradeoff(), 1.0, prior=0.3)


@pytest.mark.parametrize(
    ("measure", "loss"),
    [
        (ZCDP, 0.5),
        (APPROXIMATE_ZCDP, (0.5, 1e-9)),
        (oc.truncated_concentrated_divergence(64.0), oc.TruncatedConcentrated(0.5, 64.0)),
        (oc.fixed_renyi_divergence(2.0), 1.0),
        (RENYI, lambda alpha: 0.5 * alpha),
        (oc.tradeoff(), oc.TradeoffFunction.gaussian(1.0)),
    ],
)
def test_a_measure_of_gaussian_noise_says_no_less_than_its_exact_attacker(measure, loss):
    found = oc.measures.risk(measure, loss, prior=0.3)
    for one in ("advantage", "success", "true_positives"):
        assert 1 >= getattr(found, one) >= getattr(GAUSSIAN, one) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("measure", "loss"), [(PURE, inf), (APPROXIMATE, (0.0, 1.0)), (ZCDP, inf), (ZCDP, 800.0)]
)
def test_without_a_bound_the_attacker_is_right(measure, loss):
    found = oc.measures.risk(measure, loss)
    assert (found.advantage, found.success, found.true_positives) == (1.0, 1.0, 1.0)


def test_handles_and_contexts_say_the_risk_so_far():
    root = opened(1.0)
    assert root.risk().success == 0.5
    root(laplace(0.25))
    assert root.risk().advantage == pytest.approx(tanh(0.125), rel=1e-9)
    assert root.risk(2, prior=0.25) == oc.measures.risk(PURE, 0.5, prior=0.25)
    context = oc.concurrent_context(
        [1, 2, 3], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0), split_evenly_over=2
    )
    context.query().count().laplace().release()
    told = context.summarize(prior=0.1)
    assert (told.spent, told.remaining) == (0.5, [0.5])
    assert told.risk == oc.measures.risk(PURE, 0.5, prior=0.1)
    assert str(told) == f"spent 0.5, shares left: 1; {told.risk}"
    with pytest.raises(InvalidValueError, match="prior"):
        context.summarize(prior=1.5)


# --- group privacy and subsampling by formulas, against Fractions and against direct sums ---


@pytest.mark.parametrize(
    ("measure", "power"), [(PURE, 1), (oc.gaussian_tradeoff(), 1), (ZCDP, 2)], ids=str
)
@pytest.mark.parametrize("size", [2, 3, 7])
def test_numbers_grow_with_a_power_of_the_size_and_are_rounded_outward(measure, power, size):
    known = composition_measure(measure)
    for loss in (0.1, 0.3, 1e-300, 5e-324):
        whole, part = known.group_loss(loss, size), known.member_loss(loss, size)
        assert Fraction(whole) >= Fraction(loss) * size**power
        assert Fraction(part) * size**power <= Fraction(loss)
        assert whole == pytest.approx(loss * size**power)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_path_is_at_least_that_of_each_step_by_hand(size):
    epsilon, delta = 0.3, 1e-6
    by_hand = (0.0, 0.0)
    for _ in range(size):  # P <= e^a Q + b and Q <= e^c R + d, so P <= e^(a+c) R + b + e^a d
        by_hand = by_hand[0] + epsilon, by_hand[1] + exp(by_hand[0]) * delta
    found = approximate_group((epsilon, delta), size)
    assert found == pytest.approx(by_hand)
    assert Fraction(found[0]) >= size * Fraction(epsilon)
    assert found[1] > size * delta


@pytest.mark.parametrize("d_out", [(1.0, 1e-6), (0.1, 0.0), (1e-9, 0.5)])
def test_the_group_of_a_member_is_within_the_bound(d_out):
    for size in (2, 5, 256):
        whole = approximate_group(approximate_member(d_out, size), size)
        assert whole[0] <= d_out[0]
        assert whole[1] <= d_out[1]
        assert whole == pytest.approx(d_out)


def test_functions_have_a_group_and_gaussians_a_member():
    known = composition_measure(oc.tradeoff())
    pure = oc.TradeoffFunction.pure(0.5)
    assert known.group_loss(pure, 2).epsilon(0.0) == pytest.approx(1.0)
    member = known.member_loss(oc.TradeoffFunction.gaussian(1.0), 2)
    assert known.group_loss(member, 2) == oc.TradeoffFunction.gaussian(1.0)
    with pytest.raises(oc.errors.UnsupportedMeasureError, match="2 steps apart"):
        known.member_loss(pure, 2)


@pytest.mark.parametrize("measure", [RENYI, oc.fixed_renyi_divergence(4.0), APPROXIMATE_ZCDP])
def test_measures_without_a_group_are_refused_with_the_reason(measure):
    known = composition_measure(measure)
    assert known.member_loss("anything", 1) == known.group_loss("anything", 1) == "anything"
    for ask in (known.member_loss, known.group_loss):
        with pytest.raises(oc.errors.UnsupportedMeasureError, match="at one distance gives none"):
            ask(0.5, 2)


def test_the_largest_sizes_have_a_loss():
    """A sum of 2^63 terms would not end."""
    size = 2**63 - 1
    assert approximate_group((0.5, 1e-3), size) == (0.5 * 2**63, float("inf"))
    epsilon, delta = approximate_group((1e-30, 1e-30), size)
    assert epsilon == pytest.approx(size * 1e-30)
    assert delta == pytest.approx(size * 1e-30)
    assert Fraction(delta) > size * Fraction(1e-30)
    assert approximate_member((0.5, 1e-3), size)[1] < 1e-3 / size


def test_printed_values():
    sample = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(0.1, 34.54), 1_000, 1_000_000)
    assert sample.rho == pytest.approx(1.3e-6, rel=1e-12)
    assert sample.omega == pytest.approx(17.2694, abs=1e-4)


@given(st.floats(1e-6, 0.1), st.integers(1, 10**6), st.integers(10, 10**9))
def test_subsampling_checks_its_conditions_and_rounds_outward(rho, n, population):
    loss = oc.TruncatedConcentrated(rho)
    with mp.workdps(60):
        s = mp.mpf(n) / population
        valid = s <= mp.mpf(1) / 10 and mp.log(1 / s) / (2 * mp.mpf(rho)) >= 3
        if not valid:
            with pytest.raises(InvalidValueError):
                oc.measures.subsampled_tcdp(loss, n, population)
            return
        assert mp.log(1 / s) >= 3 * mp.mpf(rho) * (2 + mp.log(1 / mp.mpf(rho), 2))
        found = oc.measures.subsampled_tcdp(loss, n, population)
        assert mp.mpf(found.rho) >= 13 * s * s * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.log(1 / s) / (4 * mp.mpf(rho))
        assert found.rho == pytest.approx(float(13 * s * s * mp.mpf(rho)), rel=1e-14)


def test_subsampling_covers_the_subsampled_gaussian():
    """The exact divergence of a mixture, N(0,1) against (1-s) N(0,1) + s N(mu,1), both ways."""
    s, rho = 0.01, 0.1
    mu = math.sqrt(2 * rho)
    found = oc.measures.subsampled_tcdp(oc.TruncatedConcentrated(rho), 1, 100)
    with mp.workdps(18):

        def density(x, mean):
            return mp.npdf(x, mean, 1)

        def mixture(x):
            return (1 - s) * density(x, 0) + s * density(x, mu)

        def replaced(x, sign):
            return (1 - s) * density(x, 0) + s * density(x, sign * mu / 2)

        pairs = [
            (mixture, lambda x: density(x, 0)),
            (lambda x: density(x, 0), mixture),
            (lambda x: replaced(x, 1), lambda x: replaced(x, -1)),  # one record by another
        ]
        for order in (1.5, 11.0):
            assert order < found.omega
            for p, q in pairs:
                moment = mp.quad(
                    lambda x, p=p, q=q, a=order: p(x) ** a * q(x) ** (1 - a), range(-12, 14, 2)
                )
                assert mp.log(moment) / (order - 1) <= found.rho * order


@given(st.floats(0.0, 1e3), st.floats(1.5, 1e6), st.integers(1, 1000))
def test_groups_round_outward(rho, omega, size):
    loss = oc.TruncatedConcentrated(rho, omega)
    if size >= omega:
        with pytest.raises(InvalidValueError, match="^size"):
            oc.measures.group_tcdp(loss, size)
        return
    if omega / size <= 1.0 + 1e-12:
        return
    found = oc.measures.group_tcdp(loss, size)
    with mp.workdps(60):
        assert mp.mpf(found.rho) >= size * size * mp.mpf(rho)
        assert mp.mpf(found.omega) <= mp.mpf(omega) / size


# --- losses of every kind as the numbers that a picture shows -----------------------------------


@pytest.mark.parametrize(
    ("loss", "order", "number", "shown"),
    [
        (0.5, None, 0.5, "loss"),
        ((0.5, 1e-6), None, 0.5, "ε"),
        (oc.TruncatedConcentrated(0.25, 8.0), None, 0.25, "ρ"),
        (T.pure(0.5), None, T.pure(0.5).epsilon(1e-6), "ε at δ = 1e-06"),
        (lambda alpha: 0.25 * alpha, 4.0, 1.0, "loss at order 4"),
        (GridCurve((2.0, 8.0), (0.5, 2.0)), None, 0.5, "loss at order 2"),
        (GridCurve((2.0, 8.0), (0.5, 2.0)), 8.0, 2.0, "loss at order 8"),
        (inf, None, inf, "loss"),
    ],
)
def test_each_loss_is_drawn_as_a_number_and_named(loss, order, number, shown):
    assert (height(loss, order), name(loss, order)) == (number, shown)


def test_a_plain_function_is_not_taken_for_a_grid():
    with pytest.raises(InvalidTypeError, match="order"):
        height(lambda alpha: alpha)


# --- edges ---------------------------------------------------------------------------------------


def test_a_mixture_of_nothing_and_of_everything():
    assert [mixed(delta, 0.25) for delta in (0.0, 1.0, inf)] == [0.25, 1.0, 1.0]


def test_a_sum_of_curves_has_no_order_1():
    with pytest.raises(InvalidValueError, match="above 1"):
        SummedCurve({})(1.0)


def test_sensitive_data_are_not_pickled():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Sealed([1, 2]))
