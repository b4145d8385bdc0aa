"""The tape: every outcome of every draw, once, with its exact chance."""

import itertools
import math
from fractions import Fraction

import pytest

from opendp_concurrent import verify
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError

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
    tape, counted = verify.Tape(), itertools.count(2)
    with pytest.raises(InvalidValueError, match="^a run differs"):
        tape.explore(lambda: tape.draw([Fraction(1, n := next(counted)), Fraction(n - 1, n)]))
    shrinking = iter([2, 1, 1])
    with pytest.raises(InvalidValueError, match="^a run differs"):
        tape.explore(lambda: [tape.draw(COIN) for _ in range(next(shrinking))] and 0)
    with pytest.raises(InvalidValueError, match="^a run differs"):
        tape.explore(lambda: 0, (1, 1))
    with pytest.raises(InvalidValueError, match="^a run differs"):
        tape.explore(lambda: tape.draw(COIN), (2,))


@pytest.mark.parametrize(
    ("chances", "error"),
    [
        ((), InvalidValueError),
        ((Fraction(1, 2),), InvalidValueError),
        ((0.5, 0.4), InvalidValueError),
        ((1.5, -0.5), InvalidValueError),
        ((Fraction(3, 2), Fraction(-1, 2)), InvalidValueError),
        ((math.nan, 1.0), InvalidValueError),
        (("1",), InvalidTypeError),
        ((True,), InvalidTypeError),
    ],
)
def test_what_is_no_law_raises(chances, error):
    tape = verify.Tape()
    with pytest.raises(error, match="^chances"):
        tape.explore(lambda: tape.draw(chances))
    assert tape.explore(lambda: tape.draw(COIN))[1][1] == Fraction(2, 3)  # and it goes on


def test_a_tape_is_used_as_it_is_meant():
    tape = verify.Tape()
    with pytest.raises(InvalidValueError, match="while nothing is explored"):
        tape.draw(COIN)
    with pytest.raises(InvalidValueError, match="one thing at a time"):
        tape.explore(lambda: tape.explore(lambda: 0))


# --- the played law, against mechanisms whose worst analysts are known otherwise -----------------


class Asked:
    """A session with a finite interactive mechanism, whose answers are drawn from a tape."""

    def __init__(self, tape, mechanism, side):
        self.tape, self.mechanism, self.side, self.history = tape, mechanism, side, ()

    def __call__(self, query):
        if len(self.history) == self.mechanism.rounds:
            return "over"
        chances = [pair[self.side] for pair in self.mechanism.answers(self.history, query)]
        answer = self.tape.draw(chances)
        self.history = (*self.history, (query, answer))
        return answer


def law_of(mechanism):
    tape = verify.Tape()
    moves = [
        verify.Move(str(query), lambda session, query=query: session(query))
        for query in range(mechanism.queries(0))
    ]
    return verify.Played(tape, lambda side: Asked(tape, mechanism, side), moves)


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
