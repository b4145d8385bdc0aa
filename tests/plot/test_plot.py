import subprocess
import sys

import numpy as np
import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.fdp.bounds import Bounds
from opendp_concurrent.plot.drawing import MissingMatplotlibError
from opendp_concurrent.plot.tradeoff import envelope

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
GAUSSIAN, LAPLACE = F.gaussian(1.0), F.laplace(0.5)


def lines(ax):
    return {line.get_label(): line.get_xydata().T for line in ax.get_lines()}


def edges(band):
    """Least and largest y of a filled band at each x."""
    (path,) = band.get_paths()
    found = {}
    for x, y in path.vertices:
        low, high = found.get(x, (y, y))
        found[x] = min(low, y), max(high, y)
    return found


def gaussian_beta(mu, alphas):
    from scipy.stats import norm

    return norm.cdf(norm.ppf(1 - alphas) - mu)


# --- trade-off curves ----------------------------------------------------------------------


def test_a_trade_off_curve_is_the_lower_bound_and_its_band_reaches_the_upper():
    ax = plot.plot_tradeoff(GAUSSIAN, labels=["g"], points=21)
    alphas, betas = lines(ax)["g"]
    assert len(alphas) == 21
    assert alphas[0] == 0.0
    assert alphas[-1] == 1.0
    band = edges(ax.collections[0])
    for alpha, beta in zip(alphas, betas, strict=True):
        bounds = GAUSSIAN.beta_bounds(float(alpha))
        assert beta == bounds.lower
        assert band[alpha] == tuple(bounds)


def test_a_dotted_line_is_no_loss():
    ax = plot.plot_tradeoff([GAUSSIAN, LAPLACE])
    np.testing.assert_array_equal(lines(ax)["1 - α"], [[0.0, 1.0], [1.0, 0.0]])
    assert ax.get_lines()[-1].get_linestyle() == ":"


@pytest.mark.parametrize(
    "function",
    [
        GAUSSIAN.compose(LAPLACE),
        GAUSSIAN.compose(F.approximate(0.5, 0.1)),
        F.gaussian(0.5).compose(F.finite([0.5, 0.5, 0.0], [0.2, 0.5, 0.3])),
        F.gaussian(0.5).compose(F.finite([0.2, 0.5, 0.3], [0.5, 0.5, 0.0])),
    ],
    ids=repr,
)
def test_curves_of_products_agree_with_the_bounds_at_single_points(function):
    ax = plot.plot_tradeoff(function, labels=["f"], points=9)
    band = edges(ax.collections[0])
    for alpha, beta in lines(ax)["f"].T[[0, 3, 5, 8]]:
        bounds = function.beta_bounds(float(alpha))
        assert beta <= bounds.upper
        low, high = band[alpha]
        assert low == beta
        assert bounds.lower <= high <= beta + 2e-3


def test_a_curve_found_by_inversion_agrees_with_its_profile():
    function = LAPLACE.power(20)
    ax = plot.plot_tradeoff(function, labels=["f"])
    alphas, betas = lines(ax)["f"]
    epsilons = np.linspace(-9.0, 9.0, 361)
    known = LAPLACE.power(20).delta_bounds(epsilons, width=1e-4)
    support = 1.0 - np.asarray(known.lower) - np.multiply.outer(alphas, np.exp(epsilons))
    high = np.array([edges(ax.collections[0])[alpha][1] for alpha in alphas])
    assert np.all(high >= np.max(support, axis=1) - 1e-3)
    assert np.all(betas <= np.maximum(0.0, np.max(support, axis=1)) + 1e-3)
    assert np.all(high - betas <= 1e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("slopes", [5, 40, 400])
def test_the_envelope_of_a_profile_encloses_the_curve(mu, slopes):
    alphas = np.linspace(0.001, 0.999, 97)
    for reach in (0.5, 4.0, 20.0):
        grid = np.linspace(-reach, reach, slopes)
        known = F.gaussian(mu).delta_bounds(grid)
        found = envelope(grid, known, 0.0, 0.0, alphas)
        exact = gaussian_beta(mu, alphas)
        assert np.all(found.lower <= exact + 1e-13)
        assert np.all(exact <= found.upper + 1e-13)


def test_the_envelope_of_a_pair_with_infinite_losses_encloses_its_curve():
    function = F.finite([0.3, 0.5, 0.2, 0.0], [0.0, 0.3, 0.6, 0.1])
    alphas = np.linspace(0.0, 1.0, 101)
    exact = [function.beta_bounds(float(alpha)) for alpha in alphas]
    limit, never = (float(one.delta(np.inf)) for one in (function, function.inverse()))
    assert {round(limit, 9), round(never, 9)} == {0.1, 0.3}
    for reach in (0.5, 3.0):
        grid = np.linspace(-reach, reach, 31)
        found = envelope(grid, function.delta_bounds(grid), limit, never, alphas)
        assert np.all(found.lower <= [one.upper for one in exact])
        assert np.all(found.upper >= [one.lower for one in exact])


def test_the_extremes_are_drawn():
    drawn = lines(plot.plot_tradeoff([F.identity(), F.worst()], labels=["none", "all"]))
    np.testing.assert_allclose(drawn["none"].sum(axis=0), 1.0, atol=1e-12)
    assert np.all(drawn["all"][1] == 0.0)


# --- profiles ------------------------------------------------------------------------------


def test_a_profile_is_the_upper_bound_on_a_logarithmic_axis():
    function = F.laplace(0.1).power(100)
    epsilons = np.linspace(0.0, 6.0, 25)
    ax = plot.plot_profile(function, epsilons=epsilons, labels=["f"], width=0.5)
    bounds = F.laplace(0.1).power(100).delta_bounds(epsilons, width=0.5)
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(lines(ax)["f"], [epsilons, bounds.upper])
    band = edges(ax.collections[0])
    for epsilon, low, high in zip(epsilons, *bounds, strict=True):
        assert band[epsilon] == (low, high)


def test_a_profile_goes_by_itself_to_where_little_is_left():
    ax = plot.plot_profile([GAUSSIAN, F.approximate(1.0, 0.01)], labels=["g", "a"])
    epsilons, deltas = lines(ax)["g"]
    assert epsilons[0] == 0.0
    assert 1e-11 < deltas[-1] <= 1e-10
    assert lines(ax)["a"][1][-1] == pytest.approx(0.01)
    assert ax.get_ylim()[0] <= deltas[-1]


@pytest.mark.parametrize("function", [F.identity(), F.worst(), F.pure(1.0)], ids=repr)
def test_a_profile_of_zeros_and_ones_is_drawn(function):
    low, high = plot.plot_profile(function).get_ylim()
    assert 0.0 < low < high


# --- budgets -------------------------------------------------------------------------------


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


# --- axes, labels, misuse ------------------------------------------------------------------


def test_given_axes_are_drawn_on_and_returned():
    from matplotlib.figure import Figure

    for draw in (plot.plot_tradeoff, plot.plot_profile):
        ax = Figure().subplots()
        assert draw(LAPLACE, ax=ax) is ax
        assert draw(GAUSSIAN, ax=ax) is ax
        assert len(ax.get_legend().get_texts()) >= 2
    ax = Figure().subplots()
    assert plot.plot_budgets({"a": float}, [1, 2], ax=ax) is ax


def test_labels_are_what_functions_print_as():
    ax = plot.plot_profile([GAUSSIAN, F.pure(0.5).power(2)])
    assert list(lines(ax)) == ["gaussian(mu=1.0)", "pure(epsilon=0.5)^2"]


@pytest.mark.parametrize("draw", [plot.plot_tradeoff, plot.plot_profile])
def test_misuse_names_the_argument(draw):
    for functions in ([], None, "f", [1.0], {GAUSSIAN}):
        with pytest.raises(InvalidTypeError, match="functions"):
            draw(functions)
    with pytest.raises(InvalidTypeError, match="labels"):
        draw(GAUSSIAN, labels="g")
    with pytest.raises(InvalidValueError, match=r"labels .1. must have one name for each of the 2 functions"):
        draw([GAUSSIAN, LAPLACE], labels=["g"])


def test_points_and_epsilons_are_checked():
    with pytest.raises(InvalidValueError, match="points"):
        plot.plot_tradeoff(GAUSSIAN, points=0)
    for epsilons in ([], "1", 1.0):
        with pytest.raises(InvalidTypeError, match="epsilons"):
            plot.plot_profile(GAUSSIAN, epsilons=epsilons)
    with pytest.raises(InvalidValueError, match="epsilons"):
        plot.plot_profile(GAUSSIAN, epsilons=[0.0, float("nan")])
    with pytest.raises(InvalidValueError, match="width"):
        plot.plot_profile(GAUSSIAN, width=-1.0)


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


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (
        lambda: plot.plot_tradeoff(GAUSSIAN),
        lambda: plot.plot_profile(GAUSSIAN),
        lambda: plot.plot_budgets({"a": float}, [1]),
    ):
        with pytest.raises(ImportError, match=r"extra named plot .* '\.\[plot\]'") as raised:
            draw()
        assert isinstance(raised.value, MissingMatplotlibError)


def test_the_package_does_not_import_matplotlib():
    command = (
        "import sys, opendp_concurrent, opendp_concurrent.plot; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert done.stdout.strip() == "False"
