"""Private selection: exact laws of the best of K answers, which know nothing of the package.

What a selection costs is compared with these laws, and so are its answers.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import accumulate, pairwise, product

import mpmath as mp
import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import (
    ConcurrentError,
    EndedError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.fdp.session import SELECTIONS
from opendp_concurrent.measures.renyi import READ
from opendp_concurrent.mechanisms import selection as events
from opendp_concurrent.mechanisms.selection import (
    LARGEST,
    RandomRuns,
    SelectionCurve,
    approximate_selection,
    fair,
    fixed_selection,
    function_selection,
    happens,
    mean_of,
    most_of,
    pure_selection,
    runs_of_mean,
    scale_for,
)

from ..build import APPROXIMATE, DATA, PURE, RENYI, SPACE, ZCDP, costing, laplace, opened

ODDS, COUNT = 1e-11, 350  # of a false alarm, of one of two sides; and of runs
NOISY, T = laplace(0.1), oc.TradeoffFunction


def runs_of(mean, eta, most=None):
    scale = scale_for(mean, eta)
    return RandomRuns(scale, eta, most_of(scale) if most is None else most)


def within(count, chance):
    return binom.ppf(ODDS, COUNT, chance) <= count <= binom.isf(ODDS, COUNT, chance)


def weights(scale, eta, most):
    """Probabilities of 1, 2, ..., ``most`` runs."""
    decay, product, found = math.exp(-1 / scale), Fraction(1), []
    for k in range(1, most + 1):
        found.append(float(product) * decay**k)
        product *= (k + Fraction(eta)) / (k + 1)
    whole = math.fsum(found)
    return [one / whole for one in found]


def selected(law, runs):
    """The law of the best of K answers; answers are in the order of their scores."""
    below = [0.0, *accumulate(law)]
    below[-1] = 1.0

    def moment(q):
        return math.fsum(p * q**k for k, p in enumerate(runs, 1))

    return [moment(high) - moment(low) for low, high in pairwise(below)]


def selection(mechanism, runs):
    """The finite mechanism that releases the best answer of K runs."""
    laws = (mechanism.first, mechanism.second)
    return verify.FiniteMechanism(*(tuple(selected(law, runs)) for law in laws))


def renyi(first, second, order):
    """The divergence of the two laws, at least 0."""
    logs = [
        order * math.log(p) + (1 - order) * math.log(q)
        for p, q in zip(first, second, strict=True)
        if p > 0
    ]
    top = max(logs)
    moment = top + math.log(math.fsum(math.exp(one - top) for one in logs))
    return max(0.0, moment / (order - 1))


class Answers:
    """A mechanism that answers what was written down, in turn."""

    def __init__(self, *answers):
        self.answers, self.given = answers, []

    def __call__(self, _):
        self.given.append(self.answers[len(self.given) % len(self.answers)])
        return self.given[-1]


def test_the_best_answer_is_released_and_no_other():
    answers = Answers((3, "c"), (9, "a"), (1, "b"), (9, "z"), (4, "d"))
    best = oc.c.make_private_selection(costing(0.1, answers), 10)
    for _ in range(30):
        answers.given.clear()
        found = best([1])
        top = max(score for score, _ in answers.given)
        assert found == next(one for one in answers.given if one[0] == top)  # the first of equals
    assert isinstance(found, tuple)
    least = oc.c.make_private_selection(costing(0.1, answers), 10, score=lambda one: -one[0])
    answers.given.clear()
    assert least([1])[0] == min(score for score, _ in answers.given)


@pytest.mark.parametrize(("eta", "max_runs"), [(1.0, None), (0.0, None), (1.0, 3)])
def test_answers_have_the_law_of_the_oracle(eta, max_runs):
    """Each run answers 0, 1 or 2, by two fair coins of OpenDP; the best has the exact law."""
    coin = dp.m.make_randomized_response_bool(0.75)

    def function(_):
        return int(coin(True)) + int(coin(False))

    best = oc.c.make_private_selection(costing(0.1, function), 3, eta=eta, max_runs=max_runs)
    runs = runs_of(3.0, eta, max_runs)
    law = selected((3 / 16, 10 / 16, 3 / 16), weights(runs.scale, eta, runs.most))
    found = Counter(best([1]) for _ in range(COUNT))
    assert all(within(found[answer], chance) for answer, chance in enumerate(law))


def test_maps_at_several_distances():
    best = oc.c.make_private_selection(NOISY, 100)
    gamma = 0.01
    for d in (1, 2, 3):
        up = math.exp(0.1 * d)
        exact = 0.1 * d + 2 * math.log((up + gamma) / (1 + gamma * up))
        assert best.map(d) == pytest.approx(exact, rel=1e-9)
        assert best.map(d) < 0.3 * d
        assert best.check(d, best.map(d))
    assert oc.c.make_private_selection(NOISY, 100, eta=0.0).map(1) < 0.2
    assert best.map(0) == 0.0


@pytest.mark.parametrize(
    ("measure", "mapped", "value"),
    [
        (PURE, PURE, lambda loss: loss),
        (ZCDP, RENYI, lambda loss: loss(4.0)),
        (RENYI, RENYI, lambda loss: loss(4.0)),
        (oc.fixed_renyi_divergence(4.0), oc.fixed_renyi_divergence(4.0), lambda loss: loss),
        (oc.gaussian_tradeoff(), oc.tradeoff(), lambda loss: loss.epsilon(1e-6)),
        (oc.tradeoff(), oc.tradeoff(), lambda loss: loss.epsilon(1e-6)),
        (APPROXIMATE, APPROXIMATE, lambda loss: loss[0]),
    ],
)
def test_measures(measure, mapped, value):
    best = oc.c.make_private_selection(oc.c.cast(NOISY, measure), 20)
    assert best.output_measure == mapped
    assert 0.0 < value(best.map(1)) < 3.0
    best([1, 2, 3])


def test_other_measures_are_refused():
    truncated = oc.c.cast(NOISY, oc.truncated_concentrated_divergence(8.0))
    for one in (truncated, dp.c.make_approximate(oc.c.cast(NOISY, ZCDP))):
        with pytest.raises(UnsupportedMeasureError, match="proven for pure DP"):
            oc.c.make_private_selection(one, 20)


def test_a_failing_run_is_charged_and_ends_the_selection():
    calls = []

    def function(rows):
        calls.append(len(rows))
        raise ValueError("on purpose")

    root = opened(1.0, data=[1] * 9)
    with pytest.raises(Exception, match="on purpose"):
        root(oc.c.make_private_selection(costing(0.1, function), 20))
    assert calls == [9]
    assert root.privacy_loss() > 0.1


COUNTED = laplace(0.025)
INNER, SESSION, NATIVE = (
    make(*SPACE, PURE, 1, d_mids)
    for make, d_mids in (
        (oc.make_concurrent_composition, [0.025]),
        (oc.make_concurrent_composition, [0.05, 0.05]),
        (dp.c.make_adaptive_composition, [0.05, 0.05]),
    )
)


@pytest.mark.parametrize("is_below", [False, True], ids=["alone", "below a filter"])
@pytest.mark.parametrize(
    ("session", "keep"),
    [(SESSION, lambda one: one), (SESSION, lambda one: one(INNER)), (NATIVE, lambda one: [one])],
    ids=["handle", "child", "native"],
)
def test_an_interactive_measurement_is_talked_with_and_then_closed(session, keep, is_below):
    kept = []

    def interact(queryable):
        kept.append((queryable(COUNTED), keep(queryable)))
        return kept[-1]

    best = oc.c.make_private_selection(session, 4, interact=interact)
    assert best.map(1) <= 0.3
    root = opened(1.0)
    score, _ = root(best) if is_below else best(DATA)
    assert score == max(score for score, _ in kept)
    other = root(SESSION)
    for _, one in kept:
        with pytest.raises((EndedError, dp.OpenDPException), match="ask all of its queries"):
            (one[0] if isinstance(one, list) else one)(COUNTED)
    assert isinstance(other(COUNTED), int)  # a child of its own is open


def test_a_queryable_is_no_answer():
    with pytest.raises(InvalidTypeError, match="^interact must be given for an interactive"):
        oc.c.make_private_selection(SESSION, 4)([1])


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ("text", "^the score must be a number, found str"),
        ((True, 1), "^the score must be a number, found bool"),
        ((), "^the answer of a run has no elements"),
        ((None, 1), "^the score must be a number, found NoneType"),
        (1j, "^the score .* must be a double"),
        (10**400, "^the score .* must be a double"),
        (math.nan, "^the score .nan. must be a number that can be compared"),
    ],
)
def test_scores_that_are_none(answer, match):
    with pytest.raises(ConcurrentError, match=match):
        oc.c.make_private_selection(costing(0.1, lambda _: answer), 4)([1])


def test_numbers_of_runs_that_are_hardly_ever_drawn_are_refused():
    made = costing(0.1, Answers(*range(10)))
    for mean_runs, most, eta in ((1e6, 1, 1.0), (1e6, 900, 1.0), (1e6, 10_000, 0.0)):
        with pytest.raises(InvalidValueError, match=r"^max_runs .* must be at least \d+ for"):
            oc.c.make_private_selection(made, mean_runs, max_runs=most, eta=eta)
    assert oc.c.make_private_selection(made, 500, max_runs=1)([1]) == 0


def test_an_eta_whose_mean_underflows_is_refused():
    with pytest.raises(InvalidValueError, match="eta .* must be 0 or at least 1e-300"):
        oc.c.make_private_selection(NOISY, 5, eta=1e-310)
    least, none = (oc.c.make_private_selection(NOISY, 5, eta=eta).map(1) for eta in (1e-300, 0.0))
    assert least == pytest.approx(none, rel=1e-9)


# --- the number of runs has exactly the law that its price is for ------------------------------


class Script:
    """Noise that was written down before; it raises when it is used up."""

    def __init__(self, draws):
        self.draws = list(draws)

    def draw(self):
        return self.draws.pop(0)


def probabilities(chance, bits):
    """The probabilities of True, of False, and of more bits being needed."""
    found = Counter()
    for script in product((-1, 1), repeat=bits):
        try:
            found[happens(chance, Script(script))] += 1
        except IndexError:
            found[None] += 1
    return [Fraction(found[key], 2**bits) for key in (True, False, None)]


@given(st.fractions(0, 1, max_denominator=60).filter(lambda one: one < 1))
def test_an_event_has_exactly_its_probability(chance):
    yes, no, open_ = probabilities(chance, 8)
    assert yes <= chance <= yes + open_
    assert no <= 1 - chance <= no + open_
    assert open_ <= Fraction(1, 2**8)


def test_a_fair_bit_is_a_sign_and_never_zero():
    assert [fair(Script(one)) for one in ([0, 0, 5], [0, -1], [1])] == [True, False, True]


@pytest.mark.parametrize(
    ("mean", "eta", "most"),
    [(3.0, 1.0, None), (3.0, 1.0, 4), (3.0, 0.5, None), (4.0, 0.0, None), (4.0, 0.0, 6)],
)
def test_runs_have_the_law_of_the_oracle(mean, eta, most):
    runs = runs_of(mean, eta, most)
    found = Counter(runs.draw() for _ in range(COUNT))
    law = weights(runs.scale, eta, runs.most)
    assert max(found) <= runs.most
    assert all(within(found[k], law[k - 1]) for k in range(1, min(runs.most, 12) + 1))


@given(st.floats(1.001, 1e6), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_a_scale_is_found_for_each_mean(mean, eta):
    scale = scale_for(mean, eta)
    assert 0.0 < scale <= LARGEST
    assert mean_of(scale, eta) == pytest.approx(mean, rel=1e-6)
    law = RandomRuns(scale, eta, most_of(scale))
    assert math.exp(-(law.most - 1) / scale) <= 2e-22


# --- the best of several runs as an event: its number of runs, and its loss beside exact laws ---


def exact_mean(runs):
    """The mean of the truncated negative binomial distribution, to 50 digits."""
    gamma = -mp.expm1(-1 / mpf(runs.scale))
    if runs.eta == 0.0:
        return (1 / gamma - 1) / -mp.log(gamma)
    eta = mpf(runs.eta)
    return eta * (1 - gamma) / (gamma * -mp.expm1(eta * mp.log(gamma)))


@pytest.mark.parametrize("mean", [1 + 1e-9, 10.0, 1 / 3 * 100, 1e6])
@pytest.mark.parametrize("shape", [0.0, 1e-6, 0.3, 1.0, 50.0])
def test_the_mean_is_never_below_that_of_the_event(mean, shape):
    runs = runs_of_mean(mean, shape)
    with mp.workdps(50):
        assert mpf(mean) <= exact_mean(runs) <= mpf(mean) * (1 + mpf("1e-9"))


def test_what_has_no_scale_or_no_bound_is_no_privacy(monkeypatch):
    strong = oc.fdp.Session(T.gaussian(50.0), T.gaussian(50.0))
    assert events.selection(strong, 100.0, 1.0).delta(10.0) > 0.9
    assert events.selection(oc.fdp.Session(), 2.0, 1.0) == T.identity()
    monkeypatch.setattr(events, "_STEPS", 0)
    assert runs_of_mean(2.0, 1.0) is None
    assert events.selection(oc.fdp.Session(), 2.0, 1.0) == T.worst()


def test_the_reader_of_events_knows_it():
    assert SELECTIONS == [events.selection]
    run = oc.fdp.Session(T.pure(0.1), T.pure(0.1))
    assert 0.1 < SELECTIONS[0](run, 5.0, 1.0).epsilon(0.0) < 0.3


# --- what it costs, against exact laws of the best of K answers of finite mechanisms ------------

ORDERS = (1.5, 2.0, 4.0, 16.0)
LAWS = [(1.2, 1.0), (5.0, 1.0), (40.0, 1.0), (5.0, 0.5), (3.0, 0.0), (12.0, 0.0)]


def worst(epsilon):
    """Randomized response of what is better than a rare answer, which is e^ε times as likely."""
    up, rare = math.exp(epsilon), 1e-7
    better = 1 / (1 + up)
    first, second = (rare * up, better), (rare, better * up)
    return verify.FiniteMechanism((1 - sum(first), *first), (1 - sum(second), *second))


@pytest.mark.parametrize(("mean", "eta"), LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_the_pure_bound_is_reached_and_not_exceeded(mean, eta, epsilon):
    runs = runs_of(mean, eta)
    bound = pure_selection(runs, epsilon)
    found = selection(worst(epsilon), weights(runs.scale, eta, runs.most)).epsilon()
    assert 0.999 * bound <= found <= bound + 1e-5  # rare answers lose digits
    assert bound <= (2 + eta) * epsilon


@pytest.mark.parametrize("most", [1, 3, 50])
@pytest.mark.parametrize(("mean", "eta"), LAWS)
def test_a_largest_number_of_runs_costs_nothing(mean, eta, most):
    runs, free = runs_of(mean, eta, most), runs_of(mean, eta)
    law = weights(runs.scale, eta, most)
    for epsilon in (0.1, 1.0):
        bound = pure_selection(runs, epsilon)
        assert bound == pure_selection(free, epsilon)
        assert selection(worst(epsilon), law).epsilon() <= bound + 1e-5


def laws(epsilon):
    """Pairs of laws on up to six answers, each at most e^ε times as likely on the other one."""

    def pair(draws):
        first = [one for one, _ in draws]
        second = [one * math.exp(tilt * epsilon / 2) for one, tilt in draws]
        return verify.FiniteMechanism(
            tuple(one / math.fsum(first) for one in first),
            tuple(one / math.fsum(second) for one in second),
        )

    answer = st.tuples(st.floats(1e-3, 1.0), st.floats(-1.0, 1.0) | st.sampled_from([-1.0, 1.0]))
    return st.lists(answer, min_size=2, max_size=6).map(pair)


@given(laws(1.5), st.sampled_from(LAWS), st.sampled_from([None, 2, 7]))
def test_no_finite_mechanism_exceeds_the_bounds(one, law, most):
    runs = runs_of(*law, most)
    best = selection(one, weights(runs.scale, runs.eta, runs.most))
    assert best.epsilon() <= pure_selection(runs, one.epsilon()) + 1e-9

    def curve(order):
        return max(
            renyi(*pair, order) for pair in ((one.first, one.second), (one.second, one.first))
        )

    bound = SelectionCurve(runs, curve)
    for order in ORDERS:
        for pair in ((best.first, best.second), (best.second, best.first)):
            exact = renyi(*pair, order)
            assert exact <= bound(order) + 1e-9
            assert exact <= fixed_selection(runs, order, curve(order)) + 1e-9


def test_the_renyi_bound_without_the_mean_is_seen_by_the_oracle():
    """An answer that is best of all, and rare on both: the law of K multiplies its probability."""
    runs = runs_of(40.0, 1.0)
    rare = 1e-9
    one = verify.FiniteMechanism((1 - rare, rare), (1 - rare**1.5, rare**1.5))
    best = selection(one, weights(runs.scale, 1.0, runs.most))
    order = 1.5
    exact, alone = (renyi(each.first, each.second, order) for each in (best, one))
    assert exact > alone + 1e-6
    assert exact <= fixed_selection(runs, order, alone) + 1e-11


@pytest.mark.parametrize(("mean", "eta"), [(10.0, 1.0), (100.0, 1.0), (100.0, 0.0), (7.0, 0.5)])
@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_the_curve_agrees_with_the_formula(mean, eta, rho):
    """[PS22, Theorem 2] in 30 digits, minimised over the same orders."""
    runs = runs_of(mean, eta)
    curve = SelectionCurve(runs, lambda order: rho * order)
    with mp.workdps(30):
        gamma, h, average = 1 - mp.exp(-1 / mpf(runs.scale)), mpf(eta), exact_mean(runs)
        assert float(average) == pytest.approx(mean, rel=1e-9)
        middle = min((1 - 1 / mpf(m)) * rho * m - mp.log(gamma) / m for m in READ)
        for alpha in (1.0625, 2.0, 7.0, 1024.0):
            best = min(
                rho * mpf(order) + (1 + h) * middle + mp.log(average) / (order - 1)
                for order in READ
                if order >= alpha
            )
            assert curve(alpha) == pytest.approx(float(best), rel=1e-12)
            assert curve(alpha) >= float(best) * (1 - 1e-16)


def test_values_of_the_theory():
    """ρ = 0.01 and δ = 1e-6: 1.2769 and 1.5907 at the best real orders, a little more on a grid."""
    for rho, mean, known in ((0.01, 10.0, 1.2769), (0.01, 100.0, 1.5907), (0.05, 100.0, 3.5747)):
        best = oc.c.make_private_selection(costing(rho, measure=ZCDP), mean)
        epsilon, _ = oc.c.cast(best, APPROXIMATE, delta=1e-6, orders=READ).map(1)
        assert known - 5e-5 <= epsilon <= 1.01 * known


def test_order_one_needs_no_divergence():
    """A run whose divergence is large at the one order that is known costs (1+η) log(1/γ)."""
    runs = runs_of(3.0, 1.0)
    gamma = -math.expm1(-1 / runs.scale)
    log_gamma, log_mean = math.log(gamma), math.log(3.0)
    for divergence, other in ((50.0, 0.0), (0.01, 0.005 - log_gamma / 2)):
        exact = divergence + 2 * (other or -log_gamma) + log_mean
        assert fixed_selection(runs, 2.0, divergence) == pytest.approx(exact, rel=1e-9)


def test_losses_at_the_ends():
    runs = runs_of(20.0, 1.0)
    assert pure_selection(runs, 0.0) == fixed_selection(runs, 2.0, 0.0) == 0.0
    assert pure_selection(runs, math.inf) == fixed_selection(runs, 2.0, math.inf) == math.inf
    gamma = -math.expm1(-1 / runs.scale)
    assert pure_selection(runs, 1e6) == pytest.approx(1e6 + 2 * -math.log(gamma), rel=1e-12)
    assert pure_selection(runs, 1e-300) <= 3e-300
    nothing = SelectionCurve(runs, lambda order: 0.0)
    assert nothing(2.0) == 0.0
    for alpha in (1.0, 0.5, math.nan):
        with pytest.raises(oc.errors.InvalidValueError, match=r"^alpha .* must be above 1"):
            nothing(alpha)
    beyond = SelectionCurve(runs, lambda order: 0.1 if order <= 8 else math.inf)
    assert beyond(9.0) == math.inf
    assert beyond(8.0) < math.inf
    assert beyond(1.1) <= beyond(8.0)


# --- the profile of a selection, against exact laws --------------------------------------------

CRUMB = 1e-10


def with_gamma(gamma, eta=1.0):
    return RandomRuns(-1 / math.log1p(-gamma), eta, 10**6)


@pytest.mark.parametrize(
    ("mu", "mean", "eta", "known"),
    [
        (math.sqrt(0.02), 100.0, 1.0, 1.1953236002),
        (0.5, 10.0, 1.0, 3.3825125088),
        (1.0, 100.0, 0.0, 7.9957915689),
    ],
)
def test_known_losses_of_gaussian_runs(mu, mean, eta, known):
    found = function_selection(runs_of(mean, eta), T.gaussian(mu)).epsilon(1e-6)
    assert found == pytest.approx(known, rel=1e-4)
    assert found >= known * (1 - 1e-9)


def test_known_losses_of_pure_and_approximate_runs():
    for epsilon, known in ((1.0, 2.5913440783), (0.1, 0.2635912846)):
        runs = with_gamma(0.1)
        assert function_selection(runs, T.pure(epsilon)).epsilon(0.0) == pytest.approx(known)
        assert approximate_selection(runs, (epsilon, 0.0)) == pytest.approx((known, 0.0))
    found = approximate_selection(with_gamma(0.01), (0.1, 1e-9))
    assert found == pytest.approx((0.2960331990, 1e-7), rel=1e-9)


def test_losses_that_say_nothing_or_all():
    runs = runs_of(10.0, 1.0)
    assert approximate_selection(runs, (0.0, 0.0)) == (0.0, 0.0)
    assert approximate_selection(runs, (math.inf, 0.0))[0] == math.inf
    assert approximate_selection(runs, (0.5, 0.2))[1] == 1.0
    assert function_selection(runs, T.identity()) == T.identity()
    assert function_selection(runs, T.worst()) == T.worst()
    assert function_selection(runs, T.pure(800.0)) == T.worst()


CAPPED = [(1.2, 1.0, None), (5.0, 1.0, None), (30.0, 1.0, 20), (5.0, 0.5, 7), (4.0, 0.0, None)]
numbers = st.lists(st.integers(1, 40), min_size=2, max_size=5)


def claimed(runs, mechanism):
    """The bound for runs of a finite mechanism, at some ε; both orders of the datasets count."""
    function = T.finite(mechanism.first, mechanism.second).both_directions()
    bound = function_selection(runs, function)
    at = np.linspace(0.0, 1.5 * min(bound.epsilon(1e-9), 30.0), 12)
    return at, bound.delta(at)


@pytest.mark.parametrize(("mean", "eta", "most"), CAPPED)
@given(first=numbers, second=numbers)
@settings(max_examples=3)
def test_no_selection_exceeds_its_profile(mean, eta, most, first, second):
    size = min(len(first), len(second))
    laws = [[one / sum(law[:size]) for one in law[:size]] for law in (first, second)]
    mechanism, runs = verify.FiniteMechanism(*laws), runs_of(mean, eta, most)
    best = selection(mechanism, weights(runs.scale, eta, runs.most))
    for epsilon, delta in zip(*claimed(runs, mechanism), strict=True):
        assert best.delta(epsilon) <= delta + CRUMB


@pytest.mark.parametrize(("mean", "eta", "most"), CAPPED)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-2)])
def test_runs_that_may_fail(mean, eta, most, epsilon, delta):
    runs = runs_of(mean, eta, most)
    one = verify.randomized_response(epsilon, delta)
    order = sorted(range(len(one.first)), key=lambda at: one.first[at] - one.second[at])
    bound = approximate_selection(runs, (epsilon, delta))
    for places in (order, order[::-1]):  # what scores best says most, or least
        sorted_runs = verify.FiniteMechanism(
            [one.first[at] for at in places], [one.second[at] for at in places]
        )
        best = selection(sorted_runs, weights(runs.scale, eta, runs.most))
        assert best.delta(bound[0]) <= bound[1] + CRUMB
