"""How far a unit moves C x: against all patterns of its items."""

import itertools

import numpy as np
import pytest

from opendp_concurrent.errors import InvalidValueError
from opendp_concurrent.exact import participations
from opendp_concurrent.exact.participations import Participations, never_rises, spaced_square


def patterns(steps, unit, start=0):
    """All sets of steps of a unit."""
    yield ()
    if unit.most:
        for first in range(start, steps):
            rest = Participations(unit.most - 1, unit.apart)
            for more in patterns(steps, rest, first + unit.apart):
                yield (first, *more)


def toeplitz(column, steps):
    c = [*column, *[0] * steps]
    return np.array([[c[t - j] if t >= j else 0 for j in range(steps)] for t in range(steps)])


def moved(matrix, unit):
    steps = len(matrix)
    return max(
        int((matrix[:, list(one)].sum(1) ** 2).sum()) for one in patterns(steps, unit) if one
    )


def cases(count):
    generator = np.random.default_rng(0)
    for _ in range(count):
        steps, most, apart = (int(generator.integers(1, top)) for top in (9, 4, 5))
        column = np.sort(generator.integers(0, 50, int(generator.integers(1, steps + 1))))[::-1]
        yield column.tolist(), steps, Participations(most, apart)


def test_the_formula_is_the_largest_over_all_patterns():
    for column, steps, unit in cases(200):
        matrix = toeplitz(column, steps)
        found = spaced_square(column, steps, unit)
        assert found == moved(matrix, unit)
        generator = np.random.default_rng(1)
        for one in patterns(steps, unit):  # signs and smaller items never help
            items = generator.uniform(-1, 1, len(one))
            assert float(((matrix[:, list(one)] @ items) ** 2).sum()) <= found + 1e-6


def test_later_copies_add_the_same(monkeypatch):
    expected = [
        spaced_square(column, unit.most * unit.apart + len(column), unit)
        for column, _, unit in cases(200)
    ]
    monkeypatch.setattr(participations, "SUMMED", 0)
    for (column, _, unit), exact in zip(cases(200), expected, strict=True):
        assert spaced_square(column, 10**12, unit) == exact
    many = Participations(10**15, 3)
    assert spaced_square([2, 1], 10**18, many) == 5 * 10**15
    assert spaced_square([2, 1, 1, 1], 10**18, many) == 7 * 10**15 + 2 * 2 * (10**15 - 1)


def test_a_column_that_rises_is_refused():
    """The formula would be too small: 20 and not 30."""
    column = [10, 2, 9]
    assert not never_rises(column)
    assert not never_rises([1, -1])
    true = moved(toeplitz(column, 7), Participations(2, 1))
    closed = sum(sum(one) ** 2 for one in zip([*column, 0], [0, *column], strict=True))
    assert (closed, true) == (446, 550)
    with pytest.raises(InvalidValueError, match="must never rise"):
        spaced_square(column, 7, Participations(2, 1))


def test_the_number_of_items_in_some_steps():
    for steps, most, apart in itertools.product(range(1, 9), range(1, 5), range(1, 5)):
        unit = Participations(most, apart)
        assert unit.within(steps) == max(len(one) for one in patterns(steps, unit))
