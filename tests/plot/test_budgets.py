"""Budgets: what was spent, and what is left."""

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.fdp.bounds import Bounds

from .drawn import edges, lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction


def test_budgets_are_drawn_as_they_answer():
    unit = F.laplace(0.1)
    launches = [1, 10, 50]
    ax = plot.plot_budgets(
        {"sum": lambda k: 0.1 * k, "f": lambda k: unit.power(k).epsilon_bounds(1e-6)}, launches
    )
    drawn = lines(ax)
    np.testing.assert_array_equal(drawn["sum"], [launches, [0.1 * k for k in launches]])
    bounds = [unit.power(k).epsilon_bounds(1e-6) for k in launches]
    np.testing.assert_array_equal(drawn["f"][1], [one.upper for one in bounds])
    (band,) = ax.collections  # of the bounds only
    assert [edges(band)[k] for k in launches] == [tuple(one) for one in bounds]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("launches k", "ε")


def test_infinite_budgets_leave_a_gap():
    ax = plot.plot_budgets({"f": lambda k: np.inf if k < 2 else Bounds(1.0, 2.0)}, range(1, 4))
    assert lines(ax)["f"][1].tolist() == [np.inf, 2.0, 2.0]


def test_budgets_are_checked():
    for budgets in ({}, [float], {"a": 1.0}):
        with pytest.raises(InvalidTypeError, match="budgets"):
            plot.plot_budgets(budgets, [1])
    for launches in ([], "12", 3, [1.0]):
        with pytest.raises(InvalidTypeError, match="launches"):
            plot.plot_budgets({"a": float}, launches)
    with pytest.raises(InvalidValueError, match="launches"):
        plot.plot_budgets({"a": float}, [0])
    for answer in (None, (1.0, 2.0)):
        with pytest.raises(InvalidTypeError, match="budgets"):
            plot.plot_budgets({"a": lambda k, answer=answer: answer}, [1])
    with pytest.raises(InvalidValueError, match="budgets"):
        plot.plot_budgets({"a": lambda k: float("nan")}, [1])
