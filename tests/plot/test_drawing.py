"""What all pictures share: axes, labels, the extra that they need, and the pictures of the docs."""

import subprocess
import sys
from pathlib import Path

import pytest

import opendp_concurrent as oc
from opendp_concurrent import plot, verify
from opendp_concurrent.errors import InvalidTypeError, InvalidValueError
from opendp_concurrent.plot.drawing import MissingMatplotlibError

from .drawn import lines

pytest.importorskip("matplotlib")
F = oc.TradeoffFunction
GAUSSIAN, LAPLACE = F.gaussian(1.0), F.laplace(0.5)
ROOT = Path(__file__).parents[2]

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


def test_pictures_of_the_docs_are_the_same_whenever_they_are_made(tmp_path):
    name = "natural"
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        command = [sys.executable, str(ROOT / "docs/pictures/make.py"), str(folder), "--only", name]
        subprocess.run(command, check=True)
        made.append((folder / f"{name}.svg").read_bytes())
    assert made[0] == made[1]
    assert b"<dc:date>" not in made[0]
    assert b"<text" not in made[0]  # drawn as paths, so that no font is needed


def test_given_axes_take_more_than_one_function():
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
    with pytest.raises(InvalidValueError, match=r"labels .1. must have one name"):
        draw([GAUSSIAN, LAPLACE], labels=["g"])


def test_the_error_without_matplotlib_says_how_to_get_it(monkeypatch):
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
