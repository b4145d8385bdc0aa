"""Errors of counters, step by step."""

from math import inf, sqrt

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.plot.counters import VARIANCES

from .drawn import lines

pytest.importorskip("matplotlib")


def test_errors_are_those_of_the_formulas():
    ax = plot.plot_counter_error(list(VARIANCES), 1000, rho=0.5)
    mean = {line.get_label(): line.get_ydata()[-1] for line in ax.get_lines()}
    for method in ("tree", "smooth"):
        height, average = oc.m.counter_nodes(1000, method)
        assert mean[method] == pytest.approx(sqrt(height * average))
    assert mean["square root"] == pytest.approx(oc.m.square_root_rmse(1000))


def test_the_light_lines_are_the_errors_at_each_step():
    ax = plot.plot_counter_error(["tree", "doubling"], 9, rho=0.125)
    tree, doubling = (line.get_ydata() for line in ax.get_lines()[::2])
    bits = [1, 1, 2, 1, 2, 2, 3, 1, 2]
    np.testing.assert_allclose(tree, np.sqrt(4 * 4 * np.array(bits)))
    # epochs of 1, 2, 4 steps: twice the unit for each that is over, 2j for a node of an open one
    variances = [2, 2 + 2, 4, 4 + 4, 4 + 4, 4 + 8, 6, 6 + 6, 6 + 6]
    np.testing.assert_allclose(doubling, np.sqrt(4 * np.array(variances)))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tree", {"horizon": 12, "method": "tree"}),
        ("smooth", {"horizon": 12, "method": "smooth"}),
        ("doubling", {"method": "tree"}),
        ("buffered", {"horizon": 12}),
        ("square root", {"horizon": 12, "method": "square_root"}),
    ],
)
def test_errors_are_those_that_counters_make(name, arguments):
    """Noise is random: 700 answers, and a margin of seven deviations of their mean square."""
    sigma, step, runs = 50.0, 12, 700
    space = oc.integer_stream(0, 1), oc.event_presence()
    counter = oc.m.make_counter(*space, dp.zero_concentrated_divergence(), sigma, **arguments)
    squares = []
    for _ in range(runs):
        queryable = counter([])
        queryable.update_all(np.zeros(step, dtype=np.int64))
        squares.append(queryable(None) ** 2)
    rho = counter.map(1)
    expected = VARIANCES[name](12)[step - 1] / (2 * rho)
    assert np.mean(squares) == pytest.approx(expected, rel=7 * sqrt(2 / runs))


def test_measured_errors_are_points_of_the_same_color():
    ax = plot.plot_counter_error(["tree", "smooth"], 20, measured={"tree": {1: 2.0, 20: 3.5}})
    drawn = {line.get_label(): line for line in ax.get_lines()}
    points = drawn["tree: measured"]
    assert points.get_xydata().T.tolist() == [[1, 20], [2.0, 3.5]]
    assert points.get_color() == drawn["tree"].get_color()
    assert "smooth: measured" not in drawn


def test_counters_are_checked():
    for counters in ([], "tree", None):
        with pytest.raises(InvalidTypeError, match="counters"):
            plot.plot_counter_error(counters, 10)
    with pytest.raises(InvalidValueError, match="counters"):
        plot.plot_counter_error(["bush"], 10)
    for horizon in (0, 2**20 + 1):
        with pytest.raises(InvalidValueError, match="horizon"):
            plot.plot_counter_error(["tree"], horizon)
    for rho in (0.0, -1.0, inf, float("nan")):
        with pytest.raises(InvalidValueError, match="rho"):
            plot.plot_counter_error(["tree"], 10, rho=rho)
    for measured in ([1.0], {"tree": [1.0]}):
        with pytest.raises(InvalidTypeError, match="measured"):
            plot.plot_counter_error(["tree"], 10, measured=measured)
    for measured in ({"smooth": {1: 1.0}}, {"tree": {11: 1.0}}, {"tree": {1: -1.0}}):
        with pytest.raises(InvalidValueError, match="measured"):
            plot.plot_counter_error(["tree"], 10, measured=measured)


def test_a_single_step_is_drawn():
    drawn = lines(plot.plot_counter_error(list(VARIANCES), 1))
    assert drawn["tree"].tolist() == [[1], [1.0]]
