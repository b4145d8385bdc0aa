"""The laws of every accumulator, over all that exist.

A state or an accumulator in ``accounting`` or ``measures`` that is not listed below fails
``test_no_accumulator_escapes``.
"""

import copy
import inspect
import math
import pkgutil
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opendp_concurrent import accounting, measures
from opendp_concurrent.accounting.best_rule import any_time, renyi, zcdp
from opendp_concurrent.accounting.epsilon_delta import advanced, basic, either
from opendp_concurrent.accounting.ladder import Residual, ladder
from opendp_concurrent.accounting.rule import from_rule
from opendp_concurrent.errors import ConcurrentError
from opendp_concurrent.fdp.function import TradeoffFunction
from opendp_concurrent.measures.divergences import APPROXIMATE_MAX_DIVERGENCE, MAX_DIVERGENCE
from opendp_concurrent.measures.renyi import READ, RENYI_DIVERGENCE, GridCurve, OnOrders, grid_curve
from opendp_concurrent.measures.shapes import Planned, SquareSum
from opendp_concurrent.measures.slots import Slots, TradeoffProduct
from opendp_concurrent.measures.truncated import TruncatedConcentrated, TruncatedSum

numbers = st.one_of(
    st.floats(min_value=0.0, max_value=1e6),
    st.sampled_from([0.0, 0.1, 5e-324, 1e-300, 1.0 - 2**-53, 1e300]),
)
ORDERS = (1.5, 2.0, 8.0)


UNIT, PURE = TradeoffFunction.pure(0.25), (0.1, 0.25, 0.3, 0.5)


class Line:
    """The curve slope * alpha, as a mechanism's map would return it."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, alpha: float) -> float:
        return self.slope * alpha

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and other.slope == self.slope

    def __hash__(self) -> int:
        return hash(self.slope)


def on_grid(curve: Any) -> tuple[float, ...]:
    return tuple(curve(order) for order in ORDERS)


@dataclass
class Subject:
    """One accumulator: its start, its d_mids, and how to read its loss as numbers."""

    start: Any
    d_mids: Any
    read: Any
    bad: list[Any]
    restore: Any = None
    exact: Any = None  # the loss of a list of d_mids, exactly; the sum of them if left out
    remains: Any = None  # d_mids one unit in the last place above one, for what remains


def slack_rules(accounting: Any, exact: Any) -> Subject:
    """Rules for (ε, δ): the oracle is in mpmath, from the papers' formulas."""

    def loss(d_mids: list[Any]) -> list[Any]:
        if not any(epsilon or delta for epsilon, delta in d_mids):
            return [mp.mpf(0), mp.mpf(0)]
        slacks = mp.fsum(mp.mpf(rule.delta_slack) for rule in accounting.parts())
        epsilons = [mp.mpf(epsilon) for epsilon, _ in d_mids]
        return [exact(epsilons), slacks + mp.fsum(mp.mpf(delta) for _, delta in d_mids)]

    return Subject(
        accounting.start(None),
        st.tuples(epsilons, probabilities),
        tuple,
        [(math.nan, 0.0), (0.0, -1.0), (1.0,), 1.0, [1.0, 0.0], (1.0, "0"), None],
        lambda record: accounting.from_record(None, record),
        loss,
    )


def by_squares(losses: list[Any], slack: float = 1e-6) -> Any:
    total = mp.fsum(one**2 for one in losses)
    return mp.sqrt(2 * total * mp.log(1 / mp.mpf(slack))) + total / 2


def by_zcdp(losses: list[Any], slack: float = 1e-6) -> Any:
    rho = mp.fsum(one * mp.tanh(one / 2) for one in losses)
    if rho == 0:
        return rho

    log_slack = mp.log(slack)

    def at(t: Any) -> Any:
        return (1 + t) * rho + mp.log(t / (1 + t)) - (log_slack + mp.log(1 + t)) / t

    low, high = mp.mpf(-80), mp.mpf(80)
    for _ in range(120):  # to 1e-19, and so to 1e-38 in what is least there
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(mp.exp(a)) < at(mp.exp(b)) else (a, high)
    return max(at(mp.exp(low)), 0)


def by_mixture(losses: list[Any], slack: float = 1e-6) -> Any:
    rho = mp.fsum(one * mp.tanh(one / 2) for one in losses)
    if rho == 0:
        return rho
    scale = mp.mpf(any_time(slack).scale)
    variance = 2 * rho + scale

    def at(z: Any) -> Any:
        mixture = 2 * mp.sqrt(scale / variance) * mp.exp(z * z / 2) * mp.ncdf(z)
        rest = 1 - mp.mpf(slack) * mixture
        return rho + z * mp.sqrt(variance) + mp.log(rest) if rest > 0 else -mp.inf

    low, high = mp.mpf(-60), mp.mpf(60)
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) >= at(b) else (a, high)
    return max(at(low), 0)


def by_renyi(losses: list[Any], order: float = 20.0, slack: float = 1e-6) -> Any:
    a, d = mp.mpf(order), mp.mpf(slack)
    total = mp.fsum(
        mp.log((mp.exp(a * e) + mp.exp(e - a * e)) / (1 + mp.exp(e))) / (a - 1) for e in losses
    )
    if total == 0:
        return total
    return max(total + mp.log((a - 1) / a) - (mp.log(d) + mp.log(a)) / (a - 1), 0)


class Largest:
    """A rule of one's own, valid for nothing: the largest loss."""

    start = 0.0

    def after(self, state: float, d_mid: float) -> float:
        return max(state, d_mid)

    def continues(self, state: float, d_out: float) -> bool:
        return state <= d_out


epsilons = st.one_of(
    st.floats(min_value=0.0, max_value=20.0, allow_subnormal=False),
    st.sampled_from([0.0, 1e-12, 1e-3, 0.1, 1.0]),
).filter(lambda value: value == 0.0 or value > 1e-30)
probabilities = st.sampled_from([0.0, 0.0, 1e-300, 1e-9, 0.125, 0.5])


BAD_NUMBERS = [math.nan, -1.0, -5e-324, "1", None, True, (1.0, 0.0)]


def optimal_loss(d_mids):
    """ε at 1e-6 of so many randomized responses as the units of all: a binomial sum."""
    units = sum(TradeoffFunction.pure(epsilon).units(UNIT) for epsilon, _ in d_mids)
    if not units:
        return [mp.mpf(0), mp.mpf(0)]
    one = mp.mpf(0.25)
    odds = mp.exp(-one)

    masses = [
        math.comb(units, lies) * odds**lies / (1 + odds) ** units for lies in range(units // 2 + 1)
    ]

    def delta(epsilon):
        return mp.fsum(
            mass * -mp.expm1(epsilon - (units - 2 * lies) * one)
            for lies, mass in enumerate(masses)
            if epsilon < (units - 2 * lies) * one
        )

    slack = mp.mpf(1e-6)
    if delta(mp.mpf(0)) <= slack:
        return [mp.mpf(0), slack]
    low, high = mp.mpf(0), units * one
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= slack else (middle, high)
    return [low, slack]


SUBJECTS = {
    "scalar_sum": Subject(
        basic().start(MAX_DIVERGENCE),
        numbers,
        lambda loss: (loss,),
        BAD_NUMBERS,
        lambda record: basic().from_record(MAX_DIVERGENCE, record),
    ),
    "pair_sum": Subject(
        basic().start(APPROXIMATE_MAX_DIVERGENCE),
        st.tuples(numbers, numbers),
        tuple,
        [(math.nan, 0.0), (0.0, -1.0), (1.0,), 1.0, [1.0, 0.0], (1.0, "0"), None],
        lambda record: basic().from_record(APPROXIMATE_MAX_DIVERGENCE, record),
    ),
    "orders_sum": Subject(
        OnOrders(ORDERS).start(None),
        numbers.map(lambda slope: Line(min(slope, 1e300))),
        on_grid,
        [1.0, None, Line(-1.0), Line(math.nan), lambda alpha: "x"],
        lambda record: OnOrders(ORDERS).from_record(None, record),
    ),
    "curve_sum": Subject(
        basic().start(RENYI_DIVERGENCE),
        numbers.map(lambda slope: Line(min(slope, 1e300))),
        on_grid,
        [1.0, None, (1.0, 2.0)],
    ),
    "square_sum": Subject(
        SquareSum(),
        st.one_of(st.floats(0.0, 1e150), st.sampled_from([0.0, 0.1, 5e-324, 1e-200, 1.0])),
        lambda loss: (loss,),
        BAD_NUMBERS,
        lambda record: SquareSum.from_record(record),
        lambda d_mids: [mp.sqrt(mp.fsum(mp.mpf(one) ** 2 for one in d_mids))],
    ),
    "truncated_sum": Subject(
        TruncatedSum(),
        st.builds(TruncatedConcentrated, numbers, st.sampled_from([1.5, 8.0, 1e6, math.inf])),
        lambda loss: (loss.rho, 1 / loss.omega),
        [1.0, None, (1.0, 2.0)],
        lambda record: TruncatedSum.from_record(record),
        lambda d_mids: [
            sum((Fraction(one.rho) for one in d_mids), Fraction(0)),
            max((Fraction(1 / one.omega) for one in d_mids), default=Fraction(0)),
        ],
    ),
    "advanced": slack_rules(advanced(1e-6), by_squares),
    "zcdp": slack_rules(zcdp(1e-6), by_zcdp),
    "any_time": slack_rules(any_time(1e-6), by_mixture),
    "renyi": slack_rules(renyi(20.0, 1e-6), by_renyi),
    "either": slack_rules(
        either(basic(), zcdp(1e-6), advanced(1e-9)),
        lambda losses: min(mp.fsum(losses), by_zcdp(losses), by_squares(losses, 1e-9)),
    ),
    "from_rule": Subject(
        from_rule(Largest()).start(0.0),
        numbers,
        lambda loss: (loss,),
        BAD_NUMBERS,
        None,
        lambda d_mids: [max(map(Fraction, d_mids), default=Fraction(0))],
    ),
    "ladder": Subject(
        ladder(UNIT).start(None),
        st.sampled_from(
            [TradeoffFunction.identity(), UNIT, UNIT.power(3), *map(TradeoffFunction.pure, PURE)]
        ),
        lambda function: (float(function.units(UNIT)),),
        [1.0, None, (1.0, 0.0)],
        lambda record: ladder(UNIT).from_record(None, record),
    ),
    "ladder_at_delta": Subject(
        ladder(UNIT, 1e-6).start(None),
        st.sampled_from([(0.0, 0.0), *((epsilon, 0.0) for epsilon in PURE)]),
        lambda loss: loss,
        [1.0, None, (1.0,), (-1.0, 0.0), (1.0, math.nan), (1.0, "0")],
        lambda record: ladder(UNIT, 1e-6).from_record(None, record),
        optimal_loss,
    ),
}
EXACT = {"scalar_sum", "pair_sum", "orders_sum", "curve_sum"}
# their laws are in tests/measures: plans of slots, losses that are functions
ELSEWHERE = {Planned, Residual, Slots, TradeoffProduct}
ACCOUNTINGS = {
    *("Advanced", "AnyTime", "Basic", "Either", "EpsilonDeltaAccumulator", "EpsilonDeltaLadder"),
    *("FromRule", "InUnits", "Ladder", "OfOneMeasure", "OnOrders", "Products", "Renyi", "Residue"),
    "Zcdp",
}
every = pytest.mark.parametrize("name", SUBJECTS)


def seldom(name: str, data: Any) -> bool:
    """Whether to leave an example out: of the one whose readings take long, most are."""
    return name == "any_time" and data.draw(st.integers(0, 4)) > 0


def exact(subject: Subject, d_mids: list[Any]) -> list[Fraction]:
    """The loss without rounding, component by component."""
    if subject.exact:
        return subject.exact(d_mids)
    zero = [Fraction(0)] * len(subject.read(subject.start.loss))
    for d_mid in d_mids:
        parts = subject.read(d_mid)
        zero = [total + Fraction(part) for total, part in zip(zero, parts, strict=True)]
    return zero


def run(subject: Subject, d_mids: list[Any]) -> Any:
    accumulator = subject.start
    for d_mid in d_mids:
        accumulator = accumulator.after(d_mid)
    return accumulator


def classes_of(modules: Any) -> set[Any]:
    """Classes that are defined in modules of the package of accumulators."""
    found = {
        one
        for module in modules
        for _, one in inspect.getmembers(module, inspect.isclass)
        if one.__module__ == module.__name__ and not getattr(one, "_is_protocol", False)
    }
    assert found
    return found


def test_no_accumulator_escapes():
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for package in (accounting, measures)
        for module in pkgutil.iter_modules(package.__path__)
    ]
    classes = classes_of(modules)
    held = {type(subject.start) for subject in SUBJECTS.values()}
    assert {one for one in classes if hasattr(one, "after")} == held | ELSEWHERE
    accountings = {one.__name__ for one in classes if hasattr(one, "supports")}
    assert accountings == ACCOUNTINGS


def test_an_accumulator_that_is_not_held_to_the_laws_is_noticed():
    dummy = ModuleType("dummy")
    dummy.Dummy = type("Dummy", (), {"__module__": "dummy"})
    dummy.Foreign = Planned
    assert classes_of([dummy]) == {dummy.Dummy}


@every
def test_a_fresh_loss_is_zero(name):
    subject = SUBJECTS[name]
    assert set(subject.read(subject.start.loss)) == {0.0}


@every
@given(data=st.data())
def test_after_changes_nothing(name, data):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    before = run(subject, data.draw(st.lists(subject.d_mids, max_size=3)))
    loss = subject.read(before.loss)
    before.after(data.draw(subject.d_mids))
    assert subject.read(before.loss) == loss


@every
@given(data=st.data())
def test_the_loss_is_the_exact_one_rounded_up_once(name, data):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    d_mids = data.draw(st.lists(subject.d_mids, max_size=12))
    with mp.workdps(150):
        truths = exact(subject, d_mids)
        for loss, truth in zip(subject.read(run(subject, d_mids).loss), truths, strict=True):
            if name in EXACT:
                assert Fraction(loss) >= truth
                assert truth > Fraction(math.nextafter(loss, -math.inf)) or truth == loss == 0
                continue
            if isinstance(truth, Fraction):
                truth = mp.mpf(truth.numerator) / truth.denominator
            assert mp.mpf(loss) >= truth * (1 - mp.mpf("1e-30"))
            assert mp.mpf(loss) <= truth * (1 + mp.mpf("1e-12")) + mp.mpf("1e-15")


@every
@given(data=st.data())
def test_the_loss_never_falls_and_is_monotone_in_d_mid(name, data):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    before = run(subject, data.draw(st.lists(subject.d_mids, max_size=4)))
    one, other = data.draw(subject.d_mids), data.draw(subject.d_mids)
    after = [subject.read(before.after(d_mid).loss) for d_mid in (one, other)]
    for spent, afterwards in zip(subject.read(before.loss), after[0], strict=True):
        assert afterwards >= spent
    if all(a <= b for a, b in zip(subject.read(one), subject.read(other), strict=True)):
        assert all(a <= b for a, b in zip(*after, strict=True))


@every
@given(data=st.data(), count=st.integers(min_value=1, max_value=60))
def test_n_fold_equals_n_times(name, data, count):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    start = run(subject, data.draw(st.lists(subject.d_mids, max_size=2)))
    d_mid = data.draw(subject.d_mids)
    at_once, one_by_one = start.after(d_mid, count), start
    for _ in range(count):
        one_by_one = one_by_one.after(d_mid)
    assert subject.read(at_once.loss) == subject.read(one_by_one.loss)


@every
@given(data=st.data(), count=st.sampled_from([-1, 0, True, 1.0]))
@settings(max_examples=4)
def test_nothing_is_taken_back(name, data, count):
    subject = SUBJECTS[name]
    d_mid = data.draw(subject.d_mids)
    with pytest.raises(ConcurrentError, match="count"):
        subject.start.after(d_mid).after(d_mid, count)


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name != "curve_sum"])
@given(data=st.data())
def test_within_says_what_the_loss_says(name, data):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    accumulator = run(subject, data.draw(st.lists(subject.d_mids, max_size=4)))
    other = run(subject, data.draw(st.lists(subject.d_mids, max_size=4))).loss
    for d_out in (accumulator.loss, other, *neighbours(name, accumulator.loss)):
        parts = zip(subject.read(accumulator.loss), subject.read(d_out), strict=True)
        assert accumulator.within(d_out) == all(spent <= bound for spent, bound in parts)


def neighbours(name: str, loss: Any) -> list[Any]:
    """The distances one unit in the last place below and above."""

    def step(value: float, towards: float) -> float:
        return max(math.nextafter(value, towards), 0.0)

    if name == "ladder":
        units = loss.units(UNIT)
        return [UNIT.power(max(0, units - 1)), UNIT.power(units + 1)]
    if name == "truncated_sum":
        return [TruncatedConcentrated(step(loss.rho, end), loss.omega) for end in (0.0, math.inf)]
    if name == "orders_sum":
        return [
            GridCurve(ORDERS, tuple(step(value, end) for value in loss.values))
            for end in (0.0, math.inf)
        ]
    if isinstance(loss, tuple):
        return [(step(loss[0], end), loss[1]) for end in (0.0, math.inf)] + [
            (loss[0], step(loss[1], end)) for end in (0.0, math.inf)
        ]
    return [step(loss, end) for end in (0.0, math.inf)]


@every
@given(data=st.data())
def test_order_does_not_matter(name, data):
    if seldom(name, data):
        return
    subject = SUBJECTS[name]
    d_mids = data.draw(st.lists(subject.d_mids, max_size=6))
    shuffled = data.draw(st.permutations(d_mids))
    losses = [subject.read(run(subject, one).loss) for one in (d_mids, shuffled)]
    assert losses[0] == losses[1]


@every
def test_what_is_no_privacy_loss_raises_and_leaves_the_record(name):
    subject = SUBJECTS[name]
    accumulator = subject.start
    record = accumulator.to_record() if subject.restore else copy.copy(accumulator.loss)
    for bad in subject.bad:
        with pytest.raises(ConcurrentError):
            accumulator.after(bad)
        if subject.restore:
            assert accumulator.to_record() == record
    assert set(subject.read(accumulator.loss)) == {0.0}


@pytest.mark.parametrize("name", [name for name in SUBJECTS if SUBJECTS[name].restore])
@given(data=st.data())
def test_a_record_continues_identically(name, data):
    subject = SUBJECTS[name]
    accumulator = run(subject, data.draw(st.lists(subject.d_mids, max_size=5)))
    restored = subject.restore(accumulator.to_record())
    d_mid = data.draw(subject.d_mids)
    assert restored == accumulator
    assert restored.after(d_mid).to_record() == accumulator.after(d_mid).to_record()


SLACK_RULES = ["advanced", "any_time", "zcdp", "renyi", "either"]


@pytest.mark.parametrize("name", SLACK_RULES)
@given(data=st.data(), d_out=st.tuples(st.floats(0.01, 20.0), st.sampled_from([1e-5, 0.5, 1.0])))
@settings(max_examples=15)
def test_what_remains_under_a_slack_can_be_spent_and_not_one_ulp_more(name, data, d_out):
    if seldom(name, data):
        return
    accumulator = run(SUBJECTS[name], data.draw(st.lists(SUBJECTS[name].d_mids, max_size=3)))
    epsilon, delta = accumulator.remaining(d_out)
    if not accumulator.within(d_out):
        assert not accumulator.after((epsilon, delta)).within(d_out)
        return
    if accumulator.after((0.0, 5e-324)).within(d_out):  # the slack fits
        assert accumulator.after((epsilon, delta)).within(d_out)
        assert not accumulator.after((above(epsilon), 0.0)).within(d_out)
        assert not accumulator.after((0.0, above(delta))).within(d_out)


def above(value: float) -> float:
    return math.nextafter(value, math.inf)


@given(st.lists(st.floats(0.0, 1e100), max_size=4), st.floats(1e-100, 1e100))
def test_what_remains_of_squares_can_be_spent_and_not_one_ulp_more(d_mids, extra):
    accumulator = run(SUBJECTS["square_sum"], d_mids)
    d_out = accumulator.after(extra).loss
    remaining = accumulator.remaining(d_out)
    assert accumulator.after(remaining).within(d_out)
    assert not accumulator.after(above(remaining)).within(d_out)


@pytest.mark.parametrize("name", ["scalar_sum", "pair_sum", "orders_sum"])
@given(data=st.data())
def test_what_remains_can_be_spent_and_not_one_ulp_more(name, data):
    subject = SUBJECTS[name]
    accumulator = run(subject, data.draw(st.lists(subject.d_mids, max_size=4)))
    extra = data.draw(subject.d_mids)
    d_out = accumulator.after(extra).loss
    remaining = accumulator.remaining(d_out)
    within = subject.read(accumulator.after(remaining).loss)
    assert all(a <= b for a, b in zip(within, subject.read(d_out), strict=True))

    def above(value):
        return math.nextafter(value, math.inf)

    more = {
        "scalar_sum": lambda: above(remaining),
        "pair_sum": lambda: tuple(map(above, remaining)),
        "orders_sum": lambda: GridCurve(ORDERS, tuple(map(above, remaining.values))),
    }[name]()
    beyond = subject.read(accumulator.after(more).loss)
    some = any if name == "orders_sum" else all  # a curve is read as one that grows with the order
    assert some(a > b for a, b in zip(beyond, subject.read(d_out), strict=True))


def test_infinity_absorbs():
    scalar = SUBJECTS["scalar_sum"].start.after(math.inf).after(1.0)
    pair = SUBJECTS["pair_sum"].start.after((math.inf, 0.25)).after((1.0, 0.25))
    assert scalar.loss == math.inf
    assert scalar.remaining(1.0) == 0.0
    assert pair.loss == (math.inf, 0.5)
    assert SUBJECTS["pair_sum"].restore(pair.to_record()) == pair


def test_many_different_curves_cost_little_and_can_be_let_go():
    accumulator = SUBJECTS["curve_sum"].start
    one, other = grid_curve(READ, Line(1.0)), grid_curve(READ, Line(2.0))
    for _ in range(50_000):
        accumulator = accumulator.after(one).after(other)
    assert accumulator.loss(2.0) == 300_000.0
    del accumulator  # a chain of so many links


@given(st.lists(numbers, min_size=1, max_size=6), st.integers(min_value=0, max_value=6))
def test_a_plan_has_the_loss_of_the_shares_that_were_consumed(shares, consumed):
    consumed = min(consumed, len(shares))
    plan = Planned(tuple(shares), 0, basic().start(MAX_DIVERGENCE))
    for _ in range(consumed):
        plan = plan.after(0.0)
    expected = basic().start(MAX_DIVERGENCE)
    for share in shares[:consumed]:
        expected = expected.after(share)
    assert plan.loss == expected.loss
    assert plan.remaining() == tuple(shares[consumed:])
    with pytest.raises(ConcurrentError, match="are used"):
        plan.after(0.0, len(shares) - consumed + 1)
