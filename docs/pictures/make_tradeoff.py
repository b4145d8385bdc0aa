"""Draw the pictures of docs/tradeoff.rst.

python docs/pictures/make_tradeoff.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

import opendp_concurrent as oc
from opendp_concurrent.plot import plot_budgets, plot_profile, plot_tradeoff

F = oc.TradeoffFunction
DELTA = 1e-6


def tradeoff(plain):
    """Three families, and two of each."""
    units = {"Gaussian, μ = 1": F.gaussian(1.0), "Laplace, ε = 1": F.laplace(1.0)}
    units["pure, ε = 1"] = F.pure(1.0)
    ax = plot_tradeoff(list(units.values()), labels=list(units), ax=plain)
    colors = [line.get_color() for line in ax.get_lines()[:3]]
    ax.get_lines()[-1].remove()  # drawn again below
    twice = [unit.power(2) for unit in units.values()]
    ax = plot_tradeoff(twice, labels=[f"two of {name.split(',')[0]}" for name in units], ax=plain)
    for line, color in zip(ax.get_lines()[3:6], colors, strict=True):
        line.set(color=color, linestyle="--")
    for band in ax.collections:
        band.remove()  # narrower than a line
    ax.legend()


def profile(plain):
    """An inversion, and its bracket when it is told not to try hard; two rules beside it."""
    launches, epsilon = 100, 0.1
    optimum = F.laplace(epsilon).power(launches)
    points = np.linspace(0.0, 10.5, 211)
    coarse = F.laplace(epsilon).power(launches).delta_bounds(points, width=0.8)
    plot_profile(
        [optimum, F.pure(launches * epsilon)],
        labels=["100 of Laplace, ε = 0.1", "basic: what (10, 0)-DP says"],
        epsilons=points,
        ax=plain,
    )
    slacks = np.geomspace(1e-14, 0.9, 200).tolist()
    rules = [oc.advanced(slack).start((0.0, 0.0)) for slack in slacks]
    losses = [rule.after((epsilon, 0.0), launches).loss for rule in rules]
    plain.plot(*zip(*losses, strict=True), label="advanced, by slack")
    grey = {"color": "0.75", "zorder": 1}  # behind the lines
    plain.fill_between(points, *coarse, **grey, label="Laplace, bracket at width=0.8")
    plain.set_ylim(1e-12, 2.0)
    plain.legend(loc="lower left")


def budgets(plain):
    """What k randomized responses cost, by four ways to account for them."""
    epsilon = 0.01
    unit, none = F.pure(epsilon), (0.0, 0.0)

    def rule(accounting):
        return lambda k: accounting.start(none).after((epsilon, 0.0), k).loss[0]

    plot_budgets(
        {
            "basic: the sum": rule(oc.basic()),
            "advanced": rule(oc.advanced(DELTA)),
            "zcdp": rule(oc.zcdp(DELTA)),
            "optimum, if fixed up front": lambda k: unit.power(k).epsilon_bounds(DELTA),
        },
        [*range(1, 50), *range(50, 1001, 10)],
        ylabel=f"ε at δ = {DELTA:g}",
        ax=plain,
    )
    plain.set_xlim(0.0, 1000.0)
    plain.set_ylim(0.0, 2.0)  # the sum leaves at k = 200
    plain.legend(loc="lower right")


def main() -> None:
    """Draw all of them."""
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "opendp_concurrent"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for draw, size in ((tradeoff, (4.8, 4.8)), (profile, (6.0, 4.0)), (budgets, (6.0, 4.0))):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        figure.savefig(folder / f"{draw.__name__}.svg", metadata={"Date": None})
        if len(sys.argv) > 1:
            figure.savefig(folder / f"{draw.__name__}.png", dpi=130)


if __name__ == "__main__":
    main()
