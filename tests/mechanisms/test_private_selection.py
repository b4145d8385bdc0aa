"""How a private selection behaves, and that its answers have the law that its price is for."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import mpmath as mp
import opendp.prelude as dp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf
from scipy.stats import binom

import opendp_concurrent as oc
from opendp_concurrent.errors import (
    ConcurrentError,
    EndedError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from opendp_concurrent.fdp.session import SELECTIONS
from opendp_concurrent.mechanisms import selection as events
from opendp_concurrent.mechanisms.selection import (
    LARGEST,
    RandomRuns,
    fair,
    happens,
    mean_of,
    most_of,
    runs_of_mean,
    scale_for,
    selection,
)

from ..build import opened
from .selection_oracle import selected, weights

PURE, ZCDP, RENYI = dp.max_divergence(), dp.zero_concentrated_divergence(), dp.renyi_divergence()
ODDS = 1e-11


def release(space, function, measure=PURE, loss=0.1):
    return dp.m.make_user_measurement(
        *space, measure, function, lambda d: loss * d, TO="ExtrinsicObject"
    )


class Answers:
    """A mechanism that answers what was written down, in turn."""

    def __init__(self, *answers):
        self.answers, self.given = answers, []

    def __call__(self, _):
        self.given.append(self.answers[len(self.given) % len(self.answers)])
        return self.given[-1]


def test_the_best_answer_is_released_and_no_other(space):
    answers = Answers((3, "c"), (9, "a"), (1, "b"), (9, "z"), (4, "d"))
    best = oc.c.make_private_selection(release(space, answers), 10)
    for _ in range(30):
        answers.given.clear()
        found = best([1])
        top = max(score for score, _ in answers.given)
        assert found == next(one for one in answers.given if one[0] == top)  # the first of equals
    assert isinstance(found, tuple)


@pytest.mark.parametrize("max_runs", [1, 4, None])
def test_runs_are_drawn_afresh_and_are_at_most_as_many_as_allowed(space, max_runs):
    answers = Answers(1)
    best = oc.c.make_private_selection(release(space, answers), 6, max_runs=max_runs)
    found = Counter()
    for _ in range(60):
        answers.given.clear()
        best([1])
        found[len(answers.given)] += 1
    assert max(found) <= (max_runs or math.inf)
    assert len(found) >= min(max_runs or 5, 3)  # fails with odds below 1e-10


@pytest.mark.parametrize(("eta", "max_runs"), [(1.0, None), (0.0, None), (1.0, 3)])
def test_answers_have_the_law_of_the_oracle(space, eta, max_runs):
    """Each run answers 0, 1 or 2, by two fair coins of OpenDP; the best has the exact law."""
    coin = dp.m.make_randomized_response_bool(0.75)

    def function(_):
        return int(coin(True)) + int(coin(False))

    best = oc.c.make_private_selection(release(space, function), 3, eta=eta, max_runs=max_runs)
    one = (3 / 16, 10 / 16, 3 / 16)
    scale = scale_for(3.0, eta)
    runs = RandomRuns(scale, eta, max_runs or most_of(scale))
    law = selected(one, weights(scale, eta, runs.most))
    count = 300
    found = Counter(best([1]) for _ in range(count))
    for answer, chance in enumerate(law):
        low, high = binom.ppf(ODDS, count, chance), binom.isf(ODDS, count, chance)
        assert low <= found[answer] <= high


# --- what it costs ----------------------------------------------------------------------------


def test_maps_at_several_distances(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(10.0)
    best = oc.c.make_private_selection(count, 100)
    gamma = 0.01
    for d in (1, 2, 3):
        up = math.exp(0.1 * d)
        exact = 0.1 * d + 2 * math.log((up + gamma) / (1 + gamma * up))
        assert best.map(d) == pytest.approx(exact, rel=1e-9)
        assert best.map(d) < 0.3 * d
        assert best.check(d, best.map(d))
    assert oc.c.make_private_selection(count, 100, eta=0.0).map(1) < 0.2
    assert best.map(0) == 0.0


def test_measures(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(10.0)
    for measure, mapped in (
        (PURE, PURE),
        (ZCDP, RENYI),
        (RENYI, RENYI),
        (oc.fixed_renyi_divergence(4.0), oc.fixed_renyi_divergence(4.0)),
        (oc.gaussian_tradeoff(), oc.tradeoff()),
        (oc.tradeoff(), oc.tradeoff()),
        (dp.approximate(PURE), dp.approximate(PURE)),
    ):
        best = oc.c.make_private_selection(oc.c.cast(count, measure), 20)
        assert best.output_measure == mapped
        loss = best.map(1)
        value = loss(4.0) if callable(loss) else loss
        if mapped == oc.tradeoff():
            value = loss.epsilon(1e-6)
        elif mapped == dp.approximate(PURE):
            value = loss[0]
        assert 0.0 < value < 3.0
        best([1, 2, 3])
    truncated = oc.c.cast(count, oc.truncated_concentrated_divergence(8.0))
    with pytest.raises(UnsupportedMeasureError, match="proven for pure DP, zCDP and Rényi DP"):
        oc.c.make_private_selection(truncated, 20)
    with pytest.raises(UnsupportedMeasureError, match="proven for pure DP"):
        oc.c.make_private_selection(dp.c.make_approximate(oc.c.cast(count, ZCDP)), 20)


def test_a_failing_run_is_charged_and_ends_the_selection(space):
    calls = []

    def function(rows):
        calls.append(len(rows))
        raise ValueError("on purpose")

    root = oc.make_concurrent_filter(oc.make_concurrent_odometer(*space, PURE), 1, 1.0)([1] * 9)
    with pytest.raises(Exception, match="on purpose"):
        root(oc.c.make_private_selection(release(space, function), 20))
    assert calls == [9]
    assert root.privacy_loss() > 0.1


# --- interactive runs -------------------------------------------------------------------------


def session(space, measure=PURE):
    return oc.make_concurrent_composition(*space, measure, 1, [0.05, 0.05])


@pytest.mark.parametrize("is_below", [False, True], ids=["alone", "below a filter"])
def test_an_interactive_measurement_is_talked_with_and_then_closed(space, is_below):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(20.0)
    kept = []

    def interact(queryable):
        kept.append(queryable)
        return queryable(count) + queryable(count), "both"

    best = oc.c.make_private_selection(session(space), 4, interact=interact)
    assert best.map(1) <= 0.3
    root = opened(1.0, data=[1] * 9)
    score, said = root(best) if is_below else best([1, 2, 3])
    assert isinstance(score, int)
    assert said == "both"
    other = root(session(space))
    for queryable in kept:
        with pytest.raises(EndedError, match="ask all of its queries in interact"):
            queryable(count)
    assert isinstance(other(count), int)  # a child of its own is open


def test_children_and_native_queryables_are_closed_too(space):
    count = space >> dp.t.then_count() >> dp.m.then_laplace(40.0)
    inner = oc.make_concurrent_composition(*space, PURE, 1, [0.025])
    native = dp.c.make_adaptive_composition(*space, PURE, 1, [0.05, 0.05])
    kept = []

    def keep_child(queryable):
        child = queryable(inner)
        kept.append(child)
        return 0, child

    def keep_native(queryable):
        kept.append(queryable)
        return 0, [queryable]

    for measurement, interact in ((session(space), keep_child), (native, keep_native)):
        best = oc.c.make_private_selection(measurement, 3, interact=interact)
        _, returned = best([1, 2, 3])
        returned = returned[0] if isinstance(returned, list) else returned
        for queryable in (*kept, returned):
            with pytest.raises((EndedError, dp.OpenDPException), match="ask all of its queries"):
                queryable(count)
        kept.clear()


def test_a_queryable_is_no_answer(space):
    with pytest.raises(InvalidTypeError, match="^interact must be given for an interactive"):
        oc.c.make_private_selection(session(space), 4)([1])


# --- what is refused --------------------------------------------------------------------------


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
def test_scores_that_are_none(space, answer, match):
    with pytest.raises(ConcurrentError, match=match):
        oc.c.make_private_selection(release(space, lambda _: answer), 4)([1])


def test_numbers_of_runs_that_are_hardly_ever_drawn_are_refused(space):
    made = release(space, Answers(*range(10)))
    for mean_runs, most, eta in ((1e6, 1, 1.0), (1e6, 900, 1.0), (1e6, 10_000, 0.0)):
        with pytest.raises(InvalidValueError, match=r"^max_runs .* must be at least \d+ for"):
            oc.c.make_private_selection(made, mean_runs, max_runs=most, eta=eta)
    assert oc.c.make_private_selection(made, 500, max_runs=1)([1]) == 0


@pytest.mark.parametrize("eta", [5e-324, 1e-310])
def test_an_eta_whose_mean_underflows_is_refused(space, eta):
    with pytest.raises(InvalidValueError, match="eta .* must be 0 or at least 1e-300"):
        oc.c.make_private_selection(release(space, Answers(1)), 5, eta=eta)
    least = oc.c.make_private_selection(release(space, Answers(1)), 5, eta=1e-300).map(1)
    none = oc.c.make_private_selection(release(space, Answers(1)), 5, eta=0.0).map(1)
    assert least == pytest.approx(none, rel=1e-9)


# --- the number of runs has exactly the law that its price is for ------------------------------
COUNT = 350


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
    assert [fair(Script([0, 0, 5])), fair(Script([0, -1])), fair(Script([1]))] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("mean", "eta", "most"),
    [(3.0, 1.0, None), (3.0, 1.0, 4), (3.0, 0.5, None), (4.0, 0.0, None), (4.0, 0.0, 6)],
)
def test_runs_have_the_law_of_the_oracle(mean, eta, most):
    scale = scale_for(mean, eta)
    runs = RandomRuns(scale, eta, most_of(scale) if most is None else most)
    found = Counter(runs.draw() for _ in range(COUNT))
    law = weights(runs.scale, eta, runs.most)
    assert max(found) <= runs.most
    for k in range(1, min(runs.most, 12) + 1):
        low, high = binom.ppf(ODDS, COUNT, law[k - 1]), binom.isf(ODDS, COUNT, law[k - 1])
        assert low <= found[k] <= high


def test_a_geometric_law_for_a_logarithmic_one_would_be_seen():
    scale = scale_for(4.0, 0.0)
    found = Counter(RandomRuns(scale, 1.0, 10**6).draw() for _ in range(COUNT))
    law = weights(scale, 0.0, 500)
    assert not binom.ppf(ODDS, COUNT, law[0]) <= found[1] <= binom.isf(ODDS, COUNT, law[0])


@given(st.floats(1.001, 1e6), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_a_scale_is_found_for_each_mean(mean, eta):
    scale = scale_for(mean, eta)
    assert 0.0 < scale <= LARGEST
    assert mean_of(scale, eta) == pytest.approx(mean, rel=1e-6)
    law = RandomRuns(scale, eta, most_of(scale))
    assert math.exp(-(law.most - 1) / scale) <= 2e-22


# --- the best of several runs as an event: its number of runs, and its loss beside exact laws ---

T = oc.TradeoffFunction


def exact_mean(runs):
    """The mean of the truncated negative binomial distribution, to 50 digits."""
    gamma = -mp.expm1(-1 / mpf(runs.scale))
    if runs.eta == 0.0:
        return (1 / gamma - 1) / -mp.log(gamma)
    eta = mpf(runs.eta)
    return eta * (1 - gamma) / (gamma * -mp.expm1(eta * mp.log(gamma)))


@pytest.mark.parametrize("mean", [1 + 1e-9, 1.5, 10.0, 1 / 3 * 100, 1e6])
@pytest.mark.parametrize("shape", [0.0, 1e-6, 0.3, 1.0, 2.5, 50.0])
def test_the_mean_is_never_below_that_of_the_event(mean, shape):
    runs = runs_of_mean(mean, shape)
    with mp.workdps(50):
        assert mpf(mean) <= exact_mean(runs) <= mpf(mean) * (1 + mpf("1e-9"))


def test_what_has_no_scale_or_no_bound_is_no_privacy(monkeypatch):
    strong = oc.fdp.Session(T.gaussian(50.0), T.gaussian(50.0))
    assert selection(strong, 100.0, 1.0).delta(10.0) > 0.9
    assert selection(oc.fdp.Session(), 2.0, 1.0) == T.identity()
    monkeypatch.setattr(events, "_STEPS", 0)
    assert runs_of_mean(2.0, 1.0) is None
    assert selection(oc.fdp.Session(), 2.0, 1.0) == T.worst()


def test_the_reader_of_events_knows_it():
    assert SELECTIONS == [selection]
    run = oc.fdp.Session(T.pure(0.1), T.pure(0.1))
    assert 0.1 < SELECTIONS[0](run, 5.0, 1.0).epsilon(0.0) < 0.3
