"""The played law, against mechanisms whose worst analysts are known otherwise."""

import math
from fractions import Fraction

import pytest

from opendp_concurrent import verify


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


def test_fewer_rounds_tell_less():
    law = law_of(verify.random_interactive(3))
    losses = [law.worst_loss(rounds).loss for rounds in (1, 2)]
    assert 0.0 < losses[0] < losses[1]
    assert law.delta(0.3, 1) < law.delta(0.3, 2)


def test_impossible_answers_are_told():
    tape = verify.Tape()

    def begin(side):
        return lambda: tape.draw((Fraction(side), Fraction(1 - side)))

    law = verify.Played(tape, begin, [verify.Move("ask", lambda session: session())])
    assert law.worst_loss(1).ratio == law.worst_loss(1).loss == math.inf
    assert law.delta(100.0, 1) == 1.0
    assert law.renyi(2.0, 1) == math.inf
