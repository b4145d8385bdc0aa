"""Sessions: launches one after the other, with their refusals."""

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError

from .drawn import lines

pytest.importorskip("matplotlib")
PURE = dp.max_divergence()


def test_a_session_is_what_the_filter_said(space):
    odometer = oc.make_concurrent_odometer(*space, PURE)
    root = oc.make_concurrent_filter(odometer, 1, 1.0)([1, 2, 3])
    losses, refused = [], []
    for number, loss in enumerate([0.5, 0.25, 0.5, 0.25], start=1):
        try:
            root(dp.m.make_user_measurement(*space, PURE, len, lambda d_in, loss=loss: loss))
        except BudgetExceededError:
            refused.append(number)
        losses.append(root.privacy_loss())
    ax = plot.plot_session(losses, d_out=1.0, refused=refused)
    drawn = lines(ax)
    assert drawn["spent"].tolist() == [[1, 2, 3, 4], [0.5, 0.75, 0.75, 1.0]]
    assert drawn["refused"].tolist() == [[3], [0.75]]
    assert drawn["d_out"][1].tolist() == [1.0, 1.0]
    assert ax.get_lines()[0].get_drawstyle() == "steps-post"
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim()[0]) == ("launches", "loss", 0.0)


def test_accounts_have_a_line_each_and_crosses_of_their_color():
    ax = plot.plot_session(
        {"a": [0.25, 0.5], "b": [0.5, 0.5, 0.5], "c": []}, refused={"b": [2, 3], "a": [2]}
    )
    drawn = lines(ax)
    assert drawn["a"].tolist() == [[1, 2], [0.25, 0.5]]
    assert drawn["b"].tolist() == [[1, 2, 3], [0.5, 0.5, 0.5]]
    assert drawn["c"].size == 0
    colors = {line.get_label(): line.get_color() for line in ax.get_lines()}
    assert (colors["refused"], colors["_refused"]) == (colors["a"], colors["b"])
    assert drawn["_refused"].tolist() == [[2, 3], [0.5, 0.5]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c", "refused"]


def test_sessions_are_checked():
    for losses in ({}, "0.5", 0.5, {"a": 0.5}):
        with pytest.raises(InvalidTypeError, match="losses"):
            plot.plot_session(losses)
    for losses in ([None], ["a"]):
        with pytest.raises(InvalidTypeError, match="losses"):
            plot.plot_session(losses)
    for losses in ([-1.0], [float("nan")]):
        with pytest.raises(InvalidValueError, match="losses"):
            plot.plot_session(losses)
    with pytest.raises(InvalidTypeError, match="order"):
        plot.plot_session([lambda alpha: alpha])
    with pytest.raises(InvalidTypeError, match="refused"):
        plot.plot_session([0.5], refused={"spent": [1]})
    with pytest.raises(InvalidTypeError, match="refused"):
        plot.plot_session({"a": [0.5]}, refused=[1])
    with pytest.raises(InvalidTypeError, match="refused"):
        plot.plot_session([0.5], refused=1)
    for refused in ([2], [0]):
        with pytest.raises(InvalidValueError, match="refused"):
            plot.plot_session([0.5], refused=refused)
    with pytest.raises(InvalidValueError, match=r"refused\['b'\]"):
        plot.plot_session({"a": [0.5]}, refused={"b": [1]})
