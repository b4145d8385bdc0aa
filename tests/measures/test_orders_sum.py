"""Rényi curves on a grid of orders."""

import pytest

from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.renyi import GridCurve, OnOrders

GRID = OnOrders((2.0, 3.0))


def test_curves_are_read_at_the_orders_that_count():
    assert GRID.start(None).read(lambda order: order / 4) == GridCurve((2.0, 3.0), (0.5, 0.75))
    falling = GRID.start(None).read(lambda order: 1 / order)  # no Rényi curve falls
    assert falling == GridCurve((2.0, 3.0), (1 / 3, 1 / 3))
    for wrong in (None, 1.0, (0.5, 0.75)):
        with pytest.raises(InvalidTypeError, match="^d_mid must be a function of the order"):
            GRID.start(None).read(wrong)
    with pytest.raises(InvalidValueError, match=r"^d_mid\(3\)"):
        GRID.start(None).read(lambda order: -1.0 if order == 3.0 else 1.0)


def test_curves_on_a_grid_are_compared_there_only():
    low, high = GridCurve((2.0, 3.0), (0.5, 0.75)), GridCurve((2.0, 3.0), (0.5, 1.0))
    other = GridCurve((2.0, 4.0), (0.5, 0.75))
    assert low <= high
    assert low < high
    assert low <= low
    assert not low < low
    assert not high <= low
    assert not high < low
    crossing = GridCurve((2.0, 3.0), (0.25, 1.0))
    assert not low <= crossing
    assert not crossing <= low
    for one, another in ((low, other), (low, 1.0), (low, None)):
        with pytest.raises(TypeError):
            one <= another  # noqa: B015
        with pytest.raises(TypeError):
            one < another  # noqa: B015


def test_a_curve_on_a_grid_between_its_orders():
    curve = GridCurve((2.0, 3.0), (0.5, 0.75))
    assert [curve(order) for order in (1.5, 2.0, 2.5, 3.0)] == [0.5, 0.5, 0.75, 0.75]
    assert curve(3.5) == float("inf")
    for order in (1.0, 0.5, float("nan")):
        with pytest.raises(InvalidValueError, match="^alpha"):
            curve(order)
