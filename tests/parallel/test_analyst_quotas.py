"""Quotas of analysts: each within their own, any coalition within what its quotas compose to."""

import copy
import itertools
import math
import pickle
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    BudgetExceededError,
    HaltedError,
    InvalidTypeError,
    InvalidValueError,
    MessageLimitError,
    SpaceMismatchError,
    UnsupportedMeasureError,
)
from opendp_concurrent.parallel.analyst_quotas import AnalystQuotas, make_analyst_quotas
from opendp_concurrent.queryables.root import ConcurrentFilterQueryable

T = oc.TradeoffFunction
TCDP = oc.TruncatedConcentrated
SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
SECRET = 271828182
DATA = [SECRET, 1, 2, 3]
ORDERS = [2.0, 8.0, 32.0]


def pure():
    return dp.max_divergence()


def approximate():
    return dp.approximate(dp.max_divergence())


def odometer(measure=None, accumulator=None):
    return oc.make_concurrent_odometer(*SPACE, measure or pure(), accumulator=accumulator)


def quotas_of(quotas, measure=None, accumulator=None, **keywords):
    return make_analyst_quotas(odometer(measure, accumulator), 1, quotas, **keywords)


def costing(loss, measure=None):
    """A measurement with this loss, that counts the records."""
    return dp.m.make_user_measurement(
        *SPACE, measure or pure(), len, lambda d_in: loss, TO="ExtrinsicObject"
    )


def asking(loss, measure=None):
    """An interactive measurement with this loss, that counts its queries."""

    def function(rows):
        asked = itertools.count(1)
        return dp.new_queryable(lambda query: (next(asked), query))

    return dp.m.make_user_measurement(
        *SPACE, measure or pure(), function, lambda d_in: loss, TO="ExtrinsicObject"
    )


def doubled():
    """Every record twice."""
    return dp.t.make_user_transformation(
        *SPACE, *SPACE, function=lambda rows: rows * 2, stability_map=lambda d_in: 2 * d_in
    )


@dataclass
class Case:
    """A measure, three equal quotas, what two and three of them compose to, a small launch."""

    measure: Any
    quota: Any
    two: Any
    three: Any
    launch: Any
    too_much: Any
    accumulator: Any = None
    orders: Any = None


def line(slope):
    return lambda alpha: slope * alpha


CASES = {
    "pure": Case(pure, 0.5, 1.0, 1.5, 0.25, 0.75),
    "approximate": Case(
        approximate, (0.5, 1e-6), (1.0, 2e-6), (1.5, 3e-6), (0.25, 0.0), (0.75, 0.0)
    ),
    "approximate by zcdp": Case(
        approximate,
        (0.5, 1e-6),
        (1.0, 2e-6),
        (1.5, 3e-6),
        (0.01, 0.0),
        (0.75, 0.0),
        oc.accumulators.zcdp(5e-7),
    ),
    "zcdp": Case(dp.zero_concentrated_divergence, 0.5, 1.0, 1.5, 0.25, 0.75),
    "fixed renyi": Case(lambda: oc.fixed_renyi_divergence(8.0), 0.5, 1.0, 1.5, 0.25, 0.75),
    "renyi": Case(
        dp.renyi_divergence,
        line(0.5),
        (2.0, 8.0, 32.0),
        (3.0, 12.0, 48.0),
        line(0.25),
        line(0.75),
        orders=ORDERS,
    ),
    "tcdp": Case(
        lambda: oc.truncated_concentrated_divergence(4.0),
        TCDP(0.5, 8.0),
        TCDP(1.0, 8.0),
        TCDP(1.5, 8.0),
        TCDP(0.25, 8.0),
        TCDP(0.75, 8.0),
    ),
    "gdp": Case(oc.gaussian_tradeoff, 3.0, math.sqrt(18.0), math.sqrt(27.0), 1.0, 4.0),
    "f-DP by ladder": Case(
        oc.tradeoff,
        T.gaussian(3.0),
        T.gaussian(3.0).power(2),
        T.gaussian(3.0).power(3),
        T.pure(0.1),
        T.gaussian(4.0),
        oc.accumulators.ladder(T.gaussian(0.1)),
    ),
    "f-DP by residue": Case(
        oc.tradeoff,
        T.gaussian(1.0),
        T.gaussian(1.0).power(2),
        T.gaussian(1.0).power(3),
        T.gaussian(0.25),
        T.gaussian(2.0),
        oc.accumulators.residue(1.0),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def made(case, names="abc", **keywords):
    quotas = dict.fromkeys(names, case.quota)
    return quotas_of(quotas, case.measure(), case.accumulator, orders=case.orders, **keywords)


def value(loss):
    return getattr(loss, "values", loss)


# --- every measure ---------------------------------------------------------------------------


def test_the_map_and_coalitions_are_those_of_the_compositor(case):
    measurement = made(case)
    compositor = oc.make_concurrent_composition(
        *SPACE, case.measure(), 1, [case.quota] * 3, orders=case.orders
    )
    assert value(measurement.map(1)) == value(compositor.map(1))
    assert value(measurement.coalition(["a", "b", "c"])) == value(measurement.map(1))
    for found, expected in (
        (measurement.coalition(["a", "c"]), case.two),
        (measurement.map(1), case.three),
    ):
        if isinstance(expected, float):
            assert found == pytest.approx(expected, rel=1e-15)
        else:
            assert value(found) == expected


def test_each_is_held_to_their_own_quota_and_a_refusal_concerns_no_one_else(case):
    root = made(case)(DATA)
    measure = case.measure()
    launch, too_much = costing(case.launch, measure), costing(case.too_much, measure)
    alice, bob = root("a"), root("b")
    assert alice(launch) == len(DATA)
    before = value(bob.privacy_loss())
    with pytest.raises(BudgetExceededError):
        alice(too_much)
    assert value(bob.privacy_loss()) == before
    child = bob(asking(case.launch, measure))
    assert child("q") == (1, "q")
    assert alice(asking(case.launch, measure))("q") == (1, "q")
    assert child("q") == (2, "q")


def test_what_a_coalition_can_spend_is_no_more_than_its_guarantee(case):
    measurement = made(case)
    root = measurement(DATA)
    launch = costing(case.launch, case.measure())
    spent = []
    for name in "ac":
        for _ in range(3):
            try:
                root(name)(launch)
            except BudgetExceededError:
                break
        spent.append(root(name).privacy_loss())
    both = oc.make_concurrent_composition(*SPACE, case.measure(), 1, spent, orders=case.orders)
    if case.orders is None:
        assert both.check(1, measurement.coalition(["a", "c"]))
    else:
        assert both.map(1) <= measurement.coalition(["a", "c"])


def test_it_is_a_child_of_a_compositor_under_its_measure(case):
    parent = oc.make_concurrent_composition(
        *SPACE, case.measure(), 1, [case.quota], orders=case.orders
    )(DATA)
    with pytest.raises(BudgetExceededError):
        parent(made(case))  # three quotas are more than one
    root = parent(made(case, "a"))
    assert root("a")(costing(case.launch, case.measure())) == len(DATA)


# --- coalitions ------------------------------------------------------------------------------


def test_ten_equal_quotas_reach_the_optimal_composition():
    """[KOV15, Theorem 3.3] at its corners."""
    measurement = quotas_of({str(i): (0.1, 1e-6) for i in range(10)}, approximate())
    everyone = list(measurement.quotas)
    for epsilon, delta in [
        (0.8, 2.98230929e-4),
        (0.6, 3.14223621e-3),
        (0.4, 1.60899711e-2),
        (0.2, 5.23138909e-2),
    ]:
        found = measurement.coalition(everyone, delta=delta)
        assert found[1] == delta
        assert found[0] == pytest.approx(epsilon, abs=1e-7)
    assert measurement.coalition(everyone) == pytest.approx((1.0, 1e-5), rel=1e-15)
    assert measurement.map(1) == measurement.coalition(everyone)


def test_different_quotas_reach_the_optimal_composition():
    """[MV16, Theorem 1.5]."""
    quotas = {"a": (0.5, 0.0), "b": (0.3, 0.0), "c": (0.2, 0.0), "d": (0.2, 0.0)}
    measurement = quotas_of(quotas, approximate(), delta=1e-3)
    for delta, epsilon in [
        (1e-3, 1.1907061462),
        (1e-2, 1.1029294785),
        (0.05, 0.7407058929),
        (0.1, 0.5303067256),
    ]:
        found, _ = measurement.coalition(quotas, delta=delta)
        assert found == pytest.approx(epsilon, abs=1e-9)
    assert measurement.map(1) == measurement.coalition(quotas, delta=1e-3)
    assert measurement.coalition(quotas) == pytest.approx((1.2, 0.0), rel=1e-15)


def test_the_delta_of_the_map_is_not_that_of_a_coalition():
    measurement = quotas_of({"a": (0.5, 1e-7), "b": (0.5, 1e-7)}, approximate(), delta=1e-3)
    assert measurement.coalition(["a"]) == (0.5, 1e-7)
    assert measurement.map(1)[1] == 1e-3


@pytest.mark.parametrize("delta", [None, 1e-4])
def test_a_larger_coalition_is_promised_no_less(delta):
    quotas = {"a": (0.5, 1e-6), "b": (0.1, 0.0), "c": (0.3, 1e-7), "d": (0.0, 0.0)}
    measurement = quotas_of(quotas, approximate())
    losses = {
        frozenset(some): measurement.coalition(some, delta=delta)
        for size in (1, 2, 3, 4)
        for some in itertools.combinations(quotas, size)
    }
    for few, many in itertools.product(losses, repeat=2):
        if few <= many:
            assert losses[few][0] <= losses[many][0] * (1 + 1e-12)
            assert losses[few][1] <= losses[many][1]


def test_the_order_of_the_names_and_their_repetition_do_not_matter():
    measurement = quotas_of({"a": 0.1, "b": 0.2, "c": 0.3})
    expected = measurement.coalition(["a", "c"])
    for names in (["c", "a"], ["a", "a", "c"], {"a", "c"}, ("c", "a"), {"a": 1, "c": 2}.keys()):
        assert measurement.coalition(names) == expected


def test_the_order_of_the_quotas_does_not_matter():
    one = quotas_of({"a": 0.1, "b": 0.2, "c": 0.3})
    other = quotas_of({"c": 0.3, "a": 0.1, "b": 0.2})
    assert one.map(1) == other.map(1)
    assert one.coalition(["a", "c"]) == other.coalition(["a", "c"])


def test_a_chain_to_quotas_has_coalitions_too():
    chained = doubled() >> make_analyst_quotas(odometer(), 2, {"a": 1.0, "b": 0.5})
    assert type(chained) is AnalystQuotas
    assert chained.map(1) == chained.coalition(["a", "b"]) == 1.5
    assert chained.coalition(["b"]) == 0.5
    assert dict(chained.quotas) == {"a": 1.0, "b": 0.5}
    assert (doubled() >> chained).coalition(["b"]) == 0.5
    with pytest.raises(InvalidValueError, match="^d_in"):
        (doubled() >> chained).map(1)
    limit = oc.make_concurrent_filter(odometer(), 1, 2.0)
    for root in (chained(DATA), limit(DATA)(chained)):
        assert root("b")(costing(0.25)) == 2 * len(DATA)
        assert root("b").remaining() == 0.25


def test_asking_about_coalitions_changes_nothing():
    measurement = quotas_of({"a": 0.5, "b": 0.5})
    root = measurement(DATA)
    root("a")(costing(0.25))
    before = root("a").privacy_loss(), root("a").remaining(), root("b").remaining()
    assert measurement.coalition(["a", "b"]) == measurement.coalition(["b", "a"]) == 1.0
    assert (root("a").privacy_loss(), root("a").remaining(), root("b").remaining()) == before


def test_the_quotas_that_were_passed_may_change_afterwards():
    quotas = {"a": 0.5}
    measurement = quotas_of(quotas)
    quotas["a"] = quotas["b"] = 100.0
    assert measurement.map(1) == measurement.coalition(["a"]) == 0.5
    assert dict(measurement.quotas) == {"a": 0.5}
    with pytest.raises(TypeError):
        measurement.quotas["a"] = 7.0
    with pytest.raises(BudgetExceededError):
        measurement(DATA)("a")(costing(0.75))


# --- handles ---------------------------------------------------------------------------------


def test_an_analyst_gets_the_same_filter_each_time():
    root = quotas_of({"a": 1.0, "b": 1.0})(DATA)
    assert isinstance(root("a"), ConcurrentFilterQueryable)
    assert root("a") is root("a")
    assert root("a") is not root("b")


def test_invocations_are_apart():
    measurement = quotas_of({"a": 1.0})
    first, second = measurement(DATA), measurement.invoke(DATA)
    first("a")(costing(1.0))
    assert second("a").remaining() == 1.0


def test_analysts_launch_odometers_and_interleave_their_children():
    root = quotas_of({"a": 1.0, "b": 1.0})(DATA)
    leaves = [root(name)(odometer()) for name in "ab"]
    for leaf in (*leaves, *leaves):
        leaf(costing(0.25))
    assert [leaf.privacy_loss(1) for leaf in leaves] == [0.5, 0.5]
    assert root("a").remaining() == root("b").remaining() == 0.5


def test_halting_concerns_the_one_who_was_refused():
    root = quotas_of({"a": 1.0, "b": 1.0}, halt=True)(DATA)
    child = root("a")(asking(0.25))
    with pytest.raises(BudgetExceededError):
        root("a")(costing(5.0))
    for closed in (lambda: child("q"), lambda: root("a")(costing(0.1))):
        with pytest.raises(HaltedError):
            closed()
    assert root("b")(costing(1.0)) == len(DATA)


def test_a_chained_odometer_counts_in_units_of_its_head():
    measurement = make_analyst_quotas(doubled() >> odometer(), 1, {"a": 1.0, "b": 0.5})
    assert measurement.map(1) == 1.5
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    root = measurement(DATA)
    root("a")(count)
    assert root("a").privacy_loss() == 0.5
    assert root("b").privacy_loss() == 0.0


def test_it_is_chained_with_a_transformation():
    clamp = dp.t.make_clamp(*SPACE, (0, 10))
    chained = clamp >> make_analyst_quotas(
        oc.make_concurrent_odometer(*clamp.output_space, pure()), 1, {"a": 1.0, "b": 0.5}
    )
    assert chained.map(1) == 1.5
    total = clamp.output_space >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
    root = chained(DATA)
    root("a")(total)
    assert root("a").privacy_loss() == 1.0


def test_postprocessors_of_the_odometer_apply():
    root = make_analyst_quotas(odometer() >> str, 1, {"a": 1.0})(DATA)
    assert root("a")(costing(0.5)) == str(len(DATA))


# --- parents ---------------------------------------------------------------------------------


def test_nested_in_a_filter_it_is_paid_for_once_and_halts_with_it():
    parent = oc.make_concurrent_filter(odometer(), 1, 2.0, halt=True)(DATA)
    root = parent(quotas_of({"a": 1.0, "b": 0.5}))
    assert parent.privacy_loss() == 1.5
    alice = root("a")
    alice(costing(0.5))
    assert parent.privacy_loss() == 1.5
    with pytest.raises(BudgetExceededError):
        parent(costing(1.0))
    for closed in (lambda: root("a"), lambda: alice(costing(0.25))):
        with pytest.raises(HaltedError):
            closed()


def native_parents():
    yield dp.c.make_adaptive_composition(*SPACE, pure(), d_in=1, d_mids=[2.0] * 2)
    yield dp.c.make_privacy_filter(dp.c.make_fully_adaptive_composition(*SPACE, pure()), 1, 4.0)


def test_under_native_parents():
    for parent in native_parents():
        root = parent(DATA)
        one, other = (root(quotas_of({"a": 1.0, "b": 0.5})) for _ in range(2))
        children = [handle(name)(asking(0.5)) for handle in (one, other) for name in "ab"]
        assert [child("q") for child in (*children, *children)] == [(1, "q")] * 4 + [(2, "q")] * 4
        assert one("a") is one("a")
        with pytest.raises(BudgetExceededError):
            one("b")(costing(0.5))
        with pytest.raises(InvalidValueError, match="no analyst is called 'eve'"):
            one("eve")


def test_in_a_native_composition_and_a_cast():
    measurement = quotas_of({"a": 1.0, "b": 0.5})
    pair = dp.c.make_composition([measurement, costing(0.25)])
    assert pair.map(1) == 1.75
    handle, release = pair(DATA)
    assert handle("a")(costing(0.5)) == release == len(DATA)
    cast = oc.c.make_pureDP_to_zCDP(measurement)
    assert cast(DATA)("b")(costing(0.5)) == len(DATA)


def test_it_is_wrapped_as_any_interactive_measurement():
    bounded = oc.c.make_bounded_interactive(quotas_of({"a": 1.0}), 1)(DATA)
    assert bounded("a")(costing(0.5)) == len(DATA)
    with pytest.raises(MessageLimitError):
        bounded("a")


# --- threads ---------------------------------------------------------------------------------


def in_threads(count, work):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("native", [False, True], ids=["top level", "below a native parent"])
def test_threads_spend_exactly_every_quota(native):
    quotas = {str(number): 5.0 * (1 + number) for number in range(4)}
    measurement = quotas_of(quotas)
    if native:
        parent = dp.c.make_adaptive_composition(*SPACE, pure(), d_in=1, d_mids=[50.0])
        root = parent(DATA)(measurement)
    else:
        root = measurement(DATA)
    unit, outcomes = costing(0.25), [Counter() for _ in range(8)]

    def work(number):
        mine = str(number % 4)  # two threads share an analyst
        for _ in range(50):
            try:
                root(mine)(unit)
                outcomes[number]["answered"] += 1
            except BudgetExceededError:
                outcomes[number]["refused"] += 1

    in_threads(8, work)
    for number in range(4):
        total = outcomes[number] + outcomes[number + 4]
        assert total["answered"] == 20 * (1 + number)
        assert sum(total.values()) == 100
        assert root(str(number)).remaining() == 0.0


def test_analysts_do_not_wait_for_each_other():
    """One's mechanism waits for an event that the other's sets."""
    root = quotas_of({"a": 1.0, "b": 1.0})(DATA)
    begun, done = threading.Event(), threading.Event()

    def wait(rows):
        begun.set()
        return done.wait(timeout=30)

    def answer(rows):
        assert begun.wait(timeout=30)
        done.set()
        return True

    answers = [None, None]

    def work(number):
        function = (wait, answer)[number]
        measurement = dp.m.make_user_measurement(*SPACE, pure(), function, lambda d_in: 0.5)
        answers[number] = root("ab"[number])(measurement)

    in_threads(2, work)
    assert answers == [True, True]


# --- secrets ---------------------------------------------------------------------------------


def test_repr_shows_quotas_and_no_data():
    measurement = quotas_of({"a": 1.0, "b": 0.5})
    assert repr(measurement) == (
        "AnalystQuotas(MaxDivergence, basic(), d_in=1, {'a': 1.0, 'b': 0.5})"
    )
    root = measurement(DATA)
    root("a")(costing(0.5))
    for handle in (root, root("a")):
        assert str(SECRET) not in repr(handle)
        assert str(SECRET) not in str(vars(handle))
        assert handle.__opendp_dict__ == {}


def test_handles_are_not_pickled_or_copied():
    root = quotas_of({"a": 1.0})(DATA)
    for handle in (root, root("a")):
        for take in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="sensitive"):
                take(handle)


# --- bad input -------------------------------------------------------------------------------


def test_approximate_zcdp_is_refused_with_the_reason():
    measure = dp.approximate(dp.zero_concentrated_divergence())
    with pytest.raises(UnsupportedMeasureError, match=r"open question.*2309\.05901.*share one"):
        quotas_of({"a": (0.1, 1e-6), "b": (0.1, 1e-6)}, measure)


@pytest.mark.parametrize("bad", [None, "odometer", dp.max_divergence])
def test_what_is_no_odometer(bad):
    with pytest.raises(InvalidTypeError, match="^odometer must be made by make_concurrent_odomet"):
        make_analyst_quotas(bad, 1, {"a": 1.0})


def test_a_native_odometer_and_a_filter():
    native = dp.c.make_fully_adaptive_composition(*SPACE, pure())
    for bad in (native, oc.make_concurrent_filter(odometer(), 1, 1.0)):
        with pytest.raises(InvalidTypeError, match="^odometer must be made by"):
            make_analyst_quotas(bad, 1, {"a": 1.0})


@pytest.mark.parametrize("bad", [None, 1.0, [("a", 1.0)], ["a"], "a"])
def test_quotas_that_are_no_mapping(bad):
    with pytest.raises(InvalidTypeError, match="^quotas must be a mapping from names"):
        quotas_of(bad)


def test_no_quotas():
    with pytest.raises(InvalidValueError, match="^quotas must have at least one analyst"):
        quotas_of({})


@pytest.mark.parametrize("bad", [1, None, ("a", "b"), b"a"])
def test_a_name_that_is_no_str(bad):
    with pytest.raises(InvalidTypeError, match="^quotas has the name"):
        quotas_of({"a": 1.0, bad: 1.0})


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (-1.0, InvalidValueError),
        (math.nan, InvalidValueError),
        (math.inf, InvalidValueError),
        ("one", InvalidTypeError),
        (True, InvalidTypeError),
        ((1.0, 0.0), InvalidTypeError),
        (None, InvalidTypeError),
    ],
)
def test_a_quota_that_is_no_loss_is_named(bad, error):
    with pytest.raises(error, match=r"^quotas\['bob'\]"):
        quotas_of({"alice": 1.0, "bob": bad})


def test_a_quota_below_the_slack_of_its_accounting_is_named():
    with pytest.raises(InvalidValueError, match=r"^quotas\['bob'\].*slack"):
        quotas_of(
            {"alice": (1.0, 1e-5), "bob": (1.0, 1e-7)},
            approximate(),
            oc.accumulators.advanced(delta_slack=1e-6),
        )


@pytest.mark.parametrize("bad", [-1, 0.5, "1", None, True])
def test_a_distance_that_is_none(bad):
    with pytest.raises((InvalidTypeError, InvalidValueError), match="^d_in "):
        make_analyst_quotas(odometer(), bad, {"a": 1.0})


def test_orders_are_for_renyi_curves():
    with pytest.raises(InvalidTypeError, match="^orders must be given"):
        quotas_of({"a": line(1.0)}, dp.renyi_divergence())
    with pytest.raises(InvalidTypeError, match="^orders must be left out"):
        quotas_of({"a": 1.0}, orders=ORDERS)


def test_a_curve_that_cannot_be_read_is_named():
    with pytest.raises(InvalidValueError, match=r"^quotas\['a'\]\(2\)"):
        quotas_of({"a": line(-1.0)}, dp.renyi_divergence(), orders=ORDERS)


def test_delta_is_for_approximate_dp_and_above_what_fails():
    with pytest.raises(InvalidTypeError, match="^delta is for"):
        quotas_of({"a": 1.0}, delta=1e-6)
    with pytest.raises(InvalidValueError, match="^delta "):
        quotas_of({"a": (1.0, 1e-6), "b": (1.0, 1e-6)}, approximate(), delta=1e-6)
    measurement = quotas_of({"a": (1.0, 1e-6), "b": (1.0, 1e-6)}, approximate())
    with pytest.raises(InvalidValueError, match="^delta "):
        measurement.coalition(["a", "b"], delta=1e-6)
    with pytest.raises(InvalidTypeError, match="^delta is for"):
        quotas_of({"a": 1.0}).coalition(["a"], delta=1e-6)


def test_halt_must_be_true_or_false():
    with pytest.raises(InvalidTypeError, match="^halt must be"):
        quotas_of({"a": 1.0}, halt=1)


@pytest.mark.parametrize("bad", ["ab", None, 7])
def test_names_that_are_no_collection(bad):
    with pytest.raises(InvalidTypeError, match="^names must be a collection"):
        quotas_of({"a": 1.0, "b": 1.0}).coalition(bad)


def test_names_that_are_unknown_or_missing():
    measurement = quotas_of({"a": 1.0, "b": 1.0})
    with pytest.raises(InvalidValueError, match="^names must have at least one analyst"):
        measurement.coalition([])
    with pytest.raises(InvalidValueError, match="no analyst is called 'eve'; known are: a, b"):
        measurement.coalition(["a", "eve"])
    with pytest.raises(InvalidTypeError, match="the analyst's name must be a str, found int"):
        measurement.coalition(["a", 3])


@pytest.mark.parametrize("bad", [None, 1, ["a"], {"a": 1}])
def test_a_message_that_is_no_name(bad):
    root = quotas_of({"a": 1.0})(DATA)
    with pytest.raises(InvalidTypeError, match="^the analyst's name must be a str"):
        root(bad)


def test_a_query_on_another_space_is_refused_as_everywhere():
    real = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    query = real >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    alice = quotas_of({"a": 1.0})(DATA)("a")
    with pytest.raises(SpaceMismatchError, match="^input_domain"):
        alice(query)
    assert alice.remaining() == 1.0


def test_a_larger_d_in_than_it_was_built_for():
    with pytest.raises(InvalidValueError, match=r"^d_in \(2\) must be at most 1"):
        quotas_of({"a": 1.0}).map(2)


def test_it_is_a_measurement_of_its_own_kind():
    measurement = quotas_of({"a": 1.0})
    assert isinstance(measurement, AnalystQuotas)
    assert measurement.check(1, 1.0)
    assert not measurement.check(1, 0.5)
