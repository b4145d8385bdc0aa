"""Noisy integers as frames."""

import math
from datetime import date, datetime
from fractions import Fraction

import pytest

from opendp_concurrent.context.answers import ACCURACIES, LISTED, Labels, Noise, library_of

pytest.importorskip("polars")
pytest.importorskip("pandas")
TIMES = [datetime(2024, 1, 1, 9, 30), datetime(1970, 1, 1, 0, 0, 0, 1)]
KEYED = Labels(
    (("zone", str), ("day", date), ("ok", bool), ("at", datetime)),
    [("a", date(2024, 1, 1), True, TIMES[0]), ("b", date(2024, 1, 2), False, TIMES[1])],
)


NOISE = Noise("laplace", 3.0, 0.05)


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_row_for_each_key(name):
    frame = KEYED.frame(library_of(frame=name), [3, -1], NOISE)
    assert type(frame).__module__.startswith(name)
    assert list(frame.columns) == ["zone", "day", "ok", "at", "value", "accuracy"]
    assert frame["zone"].to_list() == ["a", "b"]
    assert frame["day"].to_list() == [date(2024, 1, 1), date(2024, 1, 2)]
    assert frame["at"].to_list() == TIMES
    assert frame["value"].to_list() == [3, -1]
    assert frame["accuracy"].to_list() == [NOISE.accuracy()] * 2


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_sum_of_quanta_is_in_the_units_of_the_column(name):
    labels = Labels(value=float, unit=Fraction(1, 4))
    assert labels.numbers(10) == 2.5
    assert Labels(value=float, unit=Fraction("0.1")).numbers(3) == 0.3  # not 0.1 * 3
    frame = labels.frame(library_of(frame=name), 10, NOISE)
    assert frame["value"].to_list() == [2.5]
    assert frame["accuracy"].to_list() == [0.25 * NOISE.accuracy()]


def test_accuracies_are_tails_of_the_noise():
    """Discrete Laplace noise: P(|Z| >= a) = 2 p^a / (1 + p) with p = exp(-1/scale)."""
    for scale in (1.0, 7.5):
        p = math.exp(-1 / scale)
        found = ACCURACIES["laplace"](scale, 0.05)
        assert 2 * p ** math.ceil(found) / (1 + p) <= 0.05 * (1 + 1e-9)
        assert 2 * p ** (found - 1) / (1 + p) > 0.05


def test_wide_discrete_gaussian_noise_is_a_step_beyond_the_continuous_one():
    assert ACCURACIES["gaussian"](2 * LISTED, 0.05) == pytest.approx(
        1 + 2 * 1.96 * LISTED, rel=1e-4
    )
    assert ACCURACIES["gaussian"](LISTED, 0.05) == pytest.approx(1.96 * LISTED, rel=1e-3)
