"""The tree of an analyst's strategy."""

from itertools import combinations

import pytest

from opendp_concurrent import plot, verify
from opendp_concurrent.accounts.rule import Within
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.measures.approximate_max_divergence import APPROXIMATE_MAX_DIVERGENCE

pytest.importorskip("matplotlib")


def worst(*epsilons, budget=1.5, epsilon=1.0):
    start, rule = APPROXIMATE_MAX_DIVERGENCE.empty(), Within((budget, 0.0))
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
