"""The five pictures: what is drawn, what is refused, and the extras that they need."""

import subprocess
import sys
from pathlib import Path

import opendp.prelude as dp
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot

from .build import APPROXIMATE, RENYI, a_limit, by_tens, costing, opened
from .drawn import lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
GAUSSIAN, LAPLACE = F.gaussian(1.0), F.laplace(0.5)
ROOT = Path(__file__).parents[1]


DRAWN = {
    "session": lambda ax: plot.plot_session([0.5], ax=ax),
    "trade-off curve": lambda ax: plot.plot_tradeoff(GAUSSIAN, ax=ax),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_given_axes_are_drawn_on_and_without_matplotlib_the_error_names_the_extra(
    draw, monkeypatch
):
    from matplotlib.figure import Figure

    ax = Figure(figsize=(3.0, 2.0)).subplots()
    assert draw(ax) is ax
    assert ax.figure.get_size_inches().tolist() == [3.0, 2.0]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"\[plot\]"):
        draw(None)


def test_a_picture_of_no_ledger_needs_no_database():
    command = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "import opendp_concurrent as oc\n"
        "oc.plot.plot_session([0.5]); oc.plot.plot_tradeoff(oc.TradeoffFunction.pure(1.0))\n"
        "print('opendp_concurrent.ledger' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


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


def certified(scale):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    return oc.m.make_certified_gaussian(*space, scale, dp.zero_concentrated_divergence())


def test_the_error_is_that_of_the_smallest_scale():
    drawn = lines(plot.accuracy_of_plan(certified, 1.0, 0.5, [1, 100], beta=0.01))
    numbers, errors = drawn["each query"]
    for number, error in zip(numbers, errors, strict=True):
        scale = oc.c.smallest_scale(certified, 1.0, 0.5, int(number))
        assert error == certified(scale).accuracy(0.01)
    assert errors[1] == pytest.approx(10 * errors[0])


def test_a_trade_off_curve_is_the_lower_bound():
    ax = plot.plot_tradeoff(GAUSSIAN, labels=["g"], points=21)
    alphas, betas = lines(ax)["g"]
    assert len(alphas) == 21
    assert alphas[0] == 0.0
    assert alphas[-1] == 1.0
    assert betas.tolist() == [GAUSSIAN.beta(float(alpha)) for alpha in alphas]


def test_with_a_prior_a_line_touches_the_curve_at_the_best_guess():
    prior = 0.2
    found = oc.measures.risk(oc.gaussian_tradeoff(), 2.0, prior=prior)
    drawn = lines(plot.plot_tradeoff(found.tradeoff, labels=["g"], points=101, prior=prior))
    alphas, betas = drawn["g"]
    right = prior * (1 - betas) + (1 - prior) * (1 - alphas)
    assert max(right) == pytest.approx(found.success, abs=1e-4)
    line = next(drawn[name] for name in drawn if name.startswith("right with"))
    guessed = prior * (1 - line[1]) + (1 - prior) * (1 - line[0])
    assert guessed == pytest.approx([found.success] * 2)


@pytest.mark.parametrize(
    "function",
    [
        GAUSSIAN.compose(LAPLACE),
        GAUSSIAN.compose(F.approximate(0.5, 0.1)),
        F.gaussian(0.5).compose(F.finite([0.5, 0.5, 0.0], [0.2, 0.5, 0.3])),
        F.gaussian(0.5).compose(F.finite([0.2, 0.5, 0.3], [0.5, 0.5, 0.0])),
        LAPLACE.power(20),  # found by inversion
    ],
    ids=repr,
)
def test_curves_of_products_agree_with_the_bounds_at_single_points(function):
    ax = plot.plot_tradeoff(function, labels=["f"], points=9)
    for alpha, beta in lines(ax)["f"].T[[0, 3, 5, 8]]:
        bounds = function.beta_bounds(float(alpha))
        assert bounds.lower - 2e-3 <= beta <= bounds.upper


@pytest.fixture
def ledger(tmp_path):
    pytest.importorskip("sqlalchemy")
    with oc.ledger.create_ledger(tmp_path / "budget.db", "survey") as made:
        yield made


RULES = oc.accumulators
DRAWN_AS_ONE = {  # the measure, the bound, the accumulator, two losses, what is drawn, its name
    "approximate": (APPROXIMATE, (1.0, 1e-6), None, (0.375, 1e-9), 0.75, "ε, (ε, δ)-DP"),
    "curves": (
        *(RENYI, lambda alpha: alpha, None, lambda alpha: 0.25 * alpha, 1.0),
        "loss at order 2, Rényi DP",
    ),
    "functions": (
        *(oc.tradeoff(), F.pure(0.25).power(4), RULES.ladder(F.pure(0.25)), F.pure(0.25)),
        *(F.pure(0.25).power(2).epsilon(1e-6), "ε at δ = 1e-06, f-DP"),
    ),
}


@pytest.mark.parametrize("case", DRAWN_AS_ONE)
def test_losses_that_are_no_number_are_drawn_as_one(ledger, case):
    measure, d_out, accumulator, d_mid, height, name = DRAWN_AS_ONE[case]
    orders = {"orders": [2.0, 8.0]} if measure == RENYI else {}
    root = opened(d_out, measure, accumulator, ledger=ledger, **orders)
    for _ in range(2):
        root(costing(lambda d_in: d_mid, measure=measure))
    ax = plot.plot_ledger(ledger)
    assert lines(ax)["spent"][1][-1] == pytest.approx(height)
    assert ax.get_ylabel() == f"privacy loss ({name})"


def test_each_block_of_a_block_filter_has_a_line(ledger):
    by = oc.c.by_key(lambda record: record)
    root = by_tens(blocks=by, keys=[*range(20), "$a$"], ledger=ledger)([1])
    plot.plot_ledger(ledger).figure.canvas.draw()  # of no launch
    root([1, "$a$"], costing(0.25))
    root([2], costing(0.5))
    root(a_limit(0.5, "ann"))([1, 2], costing(0.125))
    ax = plot.plot_ledger(ledger, against="launches")
    drawn = lines(ax)
    assert list(drawn) == ["block 2", "block 1", r"block '\$a\$'", "bound"]
    assert drawn["block 2"].tolist() == [[2, 3], [0.5, 0.625]]
    assert drawn["block 1"].tolist() == [[1, 3], [0.25, 0.375]]
    assert drawn[r"block '\$a\$'"].tolist() == [[1], [0.25]]
    assert ax.get_ylabel() == "privacy loss (ε, pure DP)"
    assert ax.get_legend().get_title().get_text() == ""
    ax.figure.canvas.draw()
