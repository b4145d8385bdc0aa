"""The tape: every outcome of every draw, once, with its exact chance."""

import itertools
import math
from fractions import Fraction

import pytest

import opendp_concurrent as oc
from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

from ...build import DATA, PURE, SPACE, a_filter, costing, laplace

COIN = (Fraction(1, 3), Fraction(2, 3))


def test_all_outcomes_of_all_draws_are_explored():
    tape = verify.Tape()

    def run():
        first = tape.draw(COIN)
        return first, tape.draw((Fraction(1, 2), 0, Fraction(1, 2))) if first else None

    found = tape.explore(run)
    assert [(answer, chance) for answer, chance, _ in found] == [
        ((0, None), Fraction(1, 3)),
        ((1, 0), Fraction(1, 3)),
        ((1, 2), Fraction(1, 3)),
    ]
    assert [chosen for _, _, chosen in found] == [(0,), (1, 0), (1, 2)]
    decided = tape.explore(run, (1,))
    assert [(answer, chance) for answer, chance, _ in decided] == [
        ((1, 0), Fraction(1, 2)),
        ((1, 2), Fraction(1, 2)),
    ]


def test_what_is_not_deterministic_raises():
    tape, counted, shrinking = verify.Tape(), itertools.count(2), iter([2, 1, 1])
    for run, chosen in (
        (lambda: tape.draw([Fraction(1, n := next(counted)), Fraction(n - 1, n)]), ()),
        (lambda: [tape.draw(COIN) for _ in range(next(shrinking))] and 0, ()),
        (lambda: 0, (1, 1)),
        (lambda: tape.draw(COIN), (2,)),
    ):
        with pytest.raises(InvalidValueError, match="^a run differs"):
            tape.explore(run, chosen)


def test_what_is_no_law_raises():
    tape, more = verify.Tape(), (Fraction(3, 2), Fraction(-1, 2))
    for chances in ((), (Fraction(1, 2),), (0.5, 0.4), more, (math.nan, 1.0), ("1",)):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="^chances"):
            tape.explore(lambda chances=chances: tape.draw(chances))
    assert tape.explore(lambda: tape.draw(COIN))[1][1] == Fraction(2, 3)  # and it goes on


def test_a_tape_is_used_as_it_is_meant():
    tape = verify.Tape()
    with pytest.raises(InvalidValueError, match="while nothing is explored"):
        tape.draw(COIN)
    with pytest.raises(InvalidValueError, match="one thing at a time"):
        tape.explore(lambda: tape.explore(lambda: 0))


# --- the played law, against mechanisms whose worst analysts are known otherwise -----------------


def law_of(mechanism):
    """Sessions with a finite interactive mechanism, whose answers are drawn from a tape."""
    tape = verify.Tape()

    def begin(side):
        history = []

        def ask(query):
            if len(history) == mechanism.rounds:
                return "over"
            chances = [pair[side] for pair in mechanism.answers(tuple(history), query)]
            history.append((query, tape.draw(chances)))
            return history[-1][1]

        return ask

    moves = [
        verify.Move(str(query), lambda session, query=query: session(query))
        for query in range(mechanism.queries(0))
    ]
    return verify.Played(tape, begin, moves)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_played_is_what_is_computed_from_the_tables(seed):
    mechanism = verify.random_interactive(seed, queries=2, answers=2 + seed % 2)
    law = law_of(mechanism)
    for epsilon in (0.0, 0.5, 1.5):
        assert law.delta(epsilon, 2) == pytest.approx(mechanism.delta(epsilon), abs=1e-12)
    assert law.worst_loss(2).loss == pytest.approx(mechanism.epsilon(), abs=1e-12)
    assert law.renyi(3.0, 2) == pytest.approx(mechanism.renyi(3.0), abs=1e-12)
    assert law.worst_loss(3).loss == law.worst_loss(2).loss  # it is over after two


def test_impossible_answers_are_told():
    tape = verify.Tape()

    def begin(side):
        return lambda: tape.draw((Fraction(side), Fraction(1 - side)))

    law = verify.Played(tape, begin, [verify.Move("ask", lambda session: session())])
    assert law.worst_loss(1).ratio == law.worst_loss(1).loss == math.inf
    assert law.delta(100.0, 1) == 1.0
    assert law.renyi(2.0, 1) == math.inf


# --- a scripted analyst against real pipelines: right ones pass, a broken one is flagged -------
#
# The bounds hold with probability 1 - 1e-9 each; noise is OpenDP's and cannot be seeded.

X, X_PRIME = DATA, DATA[:2]


def test_a_filter_with_interleaved_children_keeps_its_promise():
    one = laplace(0.25)
    child = oc.make_concurrent_composition(*SPACE, PURE, 1, [0.25, 0.25])

    def analyst(root):
        first, second = root(child), root(child)
        return first(one) + second(one) + first(one) + second(one)

    found = verify.audit(a_filter(1.0), X, X_PRIME, analyst, n=100)
    assert not found.violates(1.0)
    assert found.runs == 100


def test_a_broken_mechanism_is_flagged():
    """Says ε = 1 and has noise for ε = 4.

    The score is 1 with a probability of 0.98 or 0.02; all but 10^-22 of the audits show ε > 1.
    Scores of many values would give the audit rare events to choose, by chance and badly.
    """
    broken = costing(1.0, laplace(4.0))

    def analyst(root):
        answer = root(broken)
        assert root.privacy_loss() == 1.0
        return answer >= 3

    found = verify.audit(a_filter(1.0), X, X_PRIME, analyst, n=600)
    assert found.violates(1.0)
    assert found.epsilon_lower <= 4.0


def test_a_constant_shows_nothing_and_a_leak_shows_all():
    constant = verify.audit(lambda data: 0.0, 1, 0, float, n=100)
    assert constant.epsilon_lower == 0.0
    leak = verify.audit(lambda data: float(data), 1, 0, float, n=10_000)
    assert leak.epsilon_lower > math.log(200)
    assert "more likely on x" in leak.event
    lower = verify.audit(lambda data: float(data), 0, 1, float, n=10_000, delta=0.5)
    assert 0.0 < lower.epsilon_lower < leak.epsilon_lower


def test_infinite_scores_are_ranked_and_nan_is_refused():
    for sign in (1, -1):
        leak = verify.audit(
            lambda data: data, 1, 0, lambda a, s=sign: s * math.inf * (a - 0.5), n=4_000
        )
        assert leak.epsilon_lower > 4.0
    with pytest.raises(InvalidValueError, match="^strategy must return numbers"):
        verify.audit(lambda data: math.nan, 1, 0, float, n=10)


# --- finite mechanisms against closed forms, and their edges -----------------------------------


def test_finite_mechanisms_against_closed_forms():
    response = verify.randomized_response(1.0)
    assert response.epsilon() == pytest.approx(1.0)
    assert response.delta(0.5) == pytest.approx(0.2876491366, abs=1e-10)
    assert response.renyi(2.0) == pytest.approx(0.7353256641, abs=1e-10)
    failing = verify.randomized_response(0.5, 0.01)
    assert failing.epsilon() == math.inf
    assert failing.epsilon(0.01) == pytest.approx(0.5, abs=1e-9)
    assert failing.delta(0.5) == pytest.approx(0.01)
    assert failing.renyi(2.0) == math.inf
    assert failing.swapped == verify.FiniteMechanism(failing.second, failing.first)
    for seed in range(30):
        assert verify.random_mechanism(seed, 4, epsilon=0.7).epsilon() <= 0.7 + 1e-9


@pytest.mark.parametrize(
    ("first", "second", "alpha", "expected"),
    [
        ((1, 0), (0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.0, 0.5),
        ((0.5, 0.5), (0.5, 0.5), 0.25, 0.75),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 0.25, 0.25),
        ((0.5, 0.5, 0), (0, 0.5, 0.5), 1.0, 0.0),
    ],
)
def test_tradeoffs_with_impossible_answers(first, second, alpha, expected):
    assert verify.FiniteMechanism(first, second).tradeoff(alpha) == pytest.approx(expected)


def test_edges_of_finite_mechanisms():
    response = verify.randomized_response(1.0)
    for order in (math.inf, math.nan, 1.0):
        with pytest.raises(InvalidValueError, match="^order"):
            response.renyi(order)
    for alpha in (-0.5, 1.5, math.nan):
        with pytest.raises(InvalidValueError, match="^alpha"):
            response.tradeoff(alpha)
    assert response.delta(1000.0) == 0.0
    assert verify.FiniteMechanism((1, 0), (0, 1)).delta(math.inf) == 1.0
    assert verify.FiniteMechanism((1.0, 1e-16), (1.0, 0)).epsilon() == math.inf
    assert verify.randomized_response(30.0).delta(30.0) == pytest.approx(0.0, abs=1e-12)
    assert verify.randomized_response(20.0).epsilon() == pytest.approx(20.0, rel=1e-12)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        response.delta(math.nan)
    with pytest.raises(InvalidValueError, match="^epsilon"):
        verify.random_mechanism(0, 3, epsilon=-1.0)
    thirds = verify.FiniteMechanism((0.3333333333,) * 3, (0.25, 0.25, 0.5))
    assert math.fsum(thirds.first) == pytest.approx(1.0, abs=1e-15)
