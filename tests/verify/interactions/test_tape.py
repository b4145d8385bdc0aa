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


def test_many_draws_add_up_to_one_exactly():
    tape = verify.Tape()
    table = (Fraction(1, 7), Fraction(2, 7), Fraction(4, 7))
    found = tape.explore(lambda: sum(tape.draw(table) for _ in range(4)))
    assert len(found) == 3**4
    assert sum(chance for _, chance, _ in found) == 1


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
