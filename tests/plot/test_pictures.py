import subprocess
import sys
from itertools import combinations
from math import inf, sqrt
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot, verify
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from opendp_concurrent.plot.counters import VARIANCES
from opendp_concurrent.plot.drawing import MissingMatplotlibError
from opendp_concurrent.plot.losses import height

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
PURE = dp.max_divergence()
ROOT = Path(__file__).parents[2]


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.get_lines()}


# --- sessions ------------------------------------------------------------------------------


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


def test_a_grid_is_not_taken_for_a_plain_function():
    with pytest.raises(InvalidTypeError, match="order"):
        height(lambda alpha: alpha)


# --- counters ------------------------------------------------------------------------------


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
    [("tree", {"horizon": 12}), ("smooth", {"horizon": 12, "method": "smooth"}), ("doubling", {})],
)
def test_errors_are_those_that_counters_make(name, arguments):
    """Noise is random: 2,000 answers, and a margin of seven deviations of their mean square."""
    sigma, step, runs = 50.0, 12, 2000
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


# --- strategies ----------------------------------------------------------------------------


def worst(*epsilons, budget=1.5, epsilon=1.0):
    start, rule = oc.accumulators.basic().start((0.0, 0.0)), Within((budget, 0.0))
    return verify.worst_analyst(verify.response_menu(*epsilons), start, rule, epsilon).strategy


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_a_strategy_is_drawn_as_it_prints():
    strategy = worst(0.5, 1.0)
    drawn = texts(plot.plot_strategy(strategy))
    assert sorted(text for text in drawn if "launch" in text) == ["launch 0.5", "launch 1"]
    assert sorted(text for text in drawn if "loss" in text) == ["loss -0.5"] * 2 + ["loss 1.5"]
    printed = str(strategy)
    answers = [text for text in drawn if "|" in text]
    assert all(f"({answer})" in printed for answer in answers)
    assert len(answers) == printed.count("answer")


def test_the_ends_that_count_are_red():
    ax = plot.plot_strategy(worst(0.5, 1.0), epsilon=1.0)
    colors = {text.get_text(): text.get_bbox_patch().get_facecolor() for text in ax.texts}
    red, grey = colors["loss 1.5"], colors["loss -0.5"]
    assert red[0] > red[1]
    assert grey[0] == grey[1] == grey[2]
    calm = plot.plot_strategy(worst(0.5, 1.0))
    assert grey in [text.get_bbox_patch().get_facecolor() for text in calm.texts]
    assert red not in [text.get_bbox_patch().get_facecolor() for text in calm.texts]


def boxes(ax):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    return [
        (text.get_text(), text.get_bbox_patch().get_window_extent(renderer)) for text in ax.texts
    ]


def chain(length):
    """A launch after each answer 0."""
    onward = verify.Stop(1.0)
    for number in range(length):
        stop = (0.001234, 0.0001234, verify.Stop(-1.234567 * number))
        onward = verify.Launch(f"number {number}", 0.0, ((0.9988, 0.9999, onward), stop))
    return onward


def wide(answers):
    ends = tuple((1 / answers, 1 / answers, verify.Stop(float(i))) for i in range(answers))
    return verify.Launch("w", 0.0, ends)


@pytest.mark.parametrize(
    "strategy",
    [worst(0.5, 1.0), worst(0.25, 0.5, budget=2.0), chain(4), wide(3), wide(12), wide(40)],
    ids=["two", "binary", "chain", "three", "twelve", "forty"],
)
def test_nothing_in_a_tree_overlaps_or_is_cut(strategy):
    ax = plot.plot_strategy(strategy, epsilon=1.0)
    placed = boxes(ax)
    nodes = [one for one in placed if "|" not in one[0]]
    answers = [one for one in placed if "|" in one[0]]
    for (one, box), (other, beside) in combinations(nodes, 2):
        assert not box.overlaps(beside), (one, other)
    for one, box in answers:
        for other, beside in nodes:
            assert not box.overlaps(beside), (one, other)
    for (one, box), (other, beside) in combinations(answers, 2):
        assert not box.overlaps(beside), (one, other)
    whole = ax.figure.bbox
    for one, box in placed:
        assert whole.x0 <= box.x0, one
        assert box.x1 <= whole.x1, one
        assert whole.y0 <= box.y0, one
        assert box.y1 <= whole.y1, one


def test_a_deep_tree_is_cut():
    drawn = texts(plot.plot_strategy(chain(4), depth=2))
    assert [text for text in drawn if "launch" in text] == [
        "launch number 3",
        "launch number 2",
        "launch number 1 ...",
    ]


def test_a_strategy_that_stops_at_once_is_drawn():
    assert texts(plot.plot_strategy(verify.Stop(0.0))) == ["loss 0"]


def test_strategies_are_checked():
    for strategy in (None, "launch", 0.5):
        with pytest.raises(InvalidTypeError, match="strategy"):
            plot.plot_strategy(strategy)
    with pytest.raises(InvalidValueError, match="depth"):
        plot.plot_strategy(wide(3), depth=0)
    with pytest.raises(InvalidValueError, match="depth"):
        plot.plot_strategy(wide(201))
    with pytest.raises(InvalidValueError, match="epsilon"):
        plot.plot_strategy(wide(3), epsilon=float("nan"))


# --- all -----------------------------------------------------------------------------------

DRAWN = {
    "session": lambda ax: plot.plot_session([0.5], ax=ax),
    "counters": lambda ax: plot.plot_counter_error(["tree"], 10, ax=ax),
    "strategy": lambda ax: plot.plot_strategy(verify.Stop(0.0), ax=ax),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_given_axes_are_drawn_on_and_returned(draw):
    from matplotlib.figure import Figure

    ax = Figure(figsize=(3.0, 2.0)).subplots()
    assert draw(ax) is ax
    assert ax.figure.get_size_inches().tolist() == [3.0, 2.0]


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_without_matplotlib_the_error_names_the_extra(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingMatplotlibError, match=r"\[plot\]"):
        draw(None)


@pytest.mark.parametrize("name", ["session", "natural"])
def test_pictures_of_the_docs_are_the_same_whenever_they_are_made(name, tmp_path):
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        command = [sys.executable, str(ROOT / "docs/pictures/make.py"), str(folder), "--only", name]
        subprocess.run(command, check=True)
        made.append((folder / f"{name}.svg").read_bytes())
    assert made[0] == made[1]
    assert b"<dc:date>" not in made[0]
    assert b"<text" not in made[0]  # drawn as paths, so that no font is needed
