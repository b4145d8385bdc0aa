"""Losses of every kind as the numbers that a picture shows."""

from math import inf

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError
from opendp_concurrent.measures.registry import height

from ..drawn import lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction


@pytest.mark.parametrize(
    ("loss", "arguments", "number", "name"),
    [
        (0.5, {}, 0.5, "loss"),
        ((0.5, 1e-6), {}, 0.5, "ε"),
        (oc.TruncatedConcentrated(0.25, 8.0), {}, 0.25, "ρ"),
        (F.pure(0.5), {}, F.pure(0.5).epsilon(1e-6), "ε at δ = 1e-06"),
        (lambda alpha: 0.25 * alpha, {"order": 4.0}, 1.0, "loss at order 4"),
        (inf, {}, inf, "loss"),
    ],
    ids=["number", "pair", "truncated", "function", "curve", "infinite"],
)
def test_each_loss_is_drawn_as_a_number_and_named(loss, arguments, number, name):
    ax = plot.plot_session([loss], d_out=loss, **arguments)
    assert lines(ax)["spent"][1].tolist() == [number]
    assert lines(ax)["d_out"][1][0] == number
    assert ax.get_ylabel() == name


def test_a_curve_on_a_grid_is_read_at_its_least_order_or_at_the_one_asked(space):
    odometer = oc.make_concurrent_odometer(*space, dp.renyi_divergence())
    bound = oc.make_concurrent_filter(odometer, 1, lambda alpha: alpha, orders=[2.0, 8.0])
    root = bound([1, 2, 3])
    curve = lambda d_in: lambda alpha: 0.25 * alpha  # noqa: E731
    root(dp.m.make_user_measurement(*space, dp.renyi_divergence(), len, curve))
    ax = plot.plot_session([root.privacy_loss()])
    assert (lines(ax)["spent"][1].tolist(), ax.get_ylabel()) == ([0.5], "loss at order 2")
    assert lines(plot.plot_session([root.privacy_loss()], order=8.0))["spent"][1].tolist() == [2.0]


def test_a_grid_is_not_taken_for_a_plain_function():
    with pytest.raises(InvalidTypeError, match="order"):
        height(lambda alpha: alpha)
