"""Trade-off curves: type II error as a function of type I error, between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from ..arguments.checked import checked
from ..arguments.checks import at_most
from ..fdp.bounds import UNIT, Array, Bounds
from ..fdp.function import TradeoffFunction
from ..fdp.order import lower_kinks
from .drawing import Ax, Axes, axes, curve, finish, labelled

_SLOPES, _WIDTH = 400, 1e-4  # points of the profile, and the relative width of its brackets
_NOTHING, _MOST = (
    1e-5,
    700.0,
)  # δ of steeper slopes that is omitted; largest ε whose e^ε is a double


@checked(points=at_most(10**5, "each is drawn"))
def plot_tradeoff(
    functions: TradeoffFunction | Sequence[TradeoffFunction],
    *,
    labels: Sequence[str] | None = None,
    points: int = 201,
    ax: Ax | None = None,
) -> Axes:
    """Draw trade-off functions: β = f(α), the smallest type II error at each type I error.

    The line is the lower bound, which is guaranteed. The band extends to the upper bound. The
    dotted line is 1 - α: no privacy loss.

    :param functions: one or several
    :param labels: names in the legend; by default those that the functions print
    :param points: number of values of α, at least 1; they are denser near 0 and 1
    :param ax: axes to draw on

    :example:

    >>> f = oc.TradeoffFunction.laplace(1.0)
    >>> ax = oc.plot.plot_tradeoff([f, oc.TradeoffFunction.pure(1.0)], labels=["Laplace", "pure"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['Laplace', 'pure', '1 - α']
    """
    drawn = labelled(functions, labels)
    # Chebyshev points, since trade-off functions bend near 0 and 1
    alphas = (1 - np.cos(np.linspace(0.0, np.pi, points))) / 2
    ax = axes(ax)
    for function, label in drawn:
        curve(ax, label, alphas, *_betas(function, alphas))
    ax.plot([0.0, 1.0], [1.0, 0.0], "k:", linewidth=1.0, label="1 - α")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    return finish(ax, "type I error α", "type II error β")


def _betas(function: TradeoffFunction, alphas: Array) -> Bounds:
    """Bounds on f: one by one if f has a closed form, otherwise all together from one profile."""
    product = function.product
    if product.is_exact and not (product.squares and product.factors):
        each = [function.beta_bounds(float(alpha)) for alpha in alphas]
        return Bounds(*(np.array(side, dtype=float) for side in zip(*each, strict=True)))
    inverse = function.inverse()
    grid = np.linspace(-_reach(inverse), _reach(function), _SLOPES + 1)
    known = function.delta_bounds(grid, width=_WIDTH)
    limit, never = (float(one.delta_bounds(inf).lower) for one in (function, inverse))
    return envelope(grid, known, limit, never, alphas)


def _reach(function: TradeoffFunction) -> float:
    """ε beyond which δ is about its limit, at least 1."""
    target = min(1.0, float(function.delta(inf)) + _NOTHING)
    reach = float(function.epsilon_bounds(target, width=1e-2).upper)
    return min(max(1.0, reach), _MOST)


def envelope(grid: Array, known: Bounds, limit: float, never: float, alphas: Array) -> Bounds:
    """Bounds on f(α), the supremum of 1 - h(t) - tα over t = e^ε, from bounds on h at a grid.

    Every t gives a lower bound. The upper bound replaces h by a lower bound on all convex functions
    with these values: 1 - t (1 - ``never``) before the grid, where its slope at 0 is that;
    ``order.lower_kinks`` within the grid; and ``limit`` behind the grid.
    """
    t = np.exp(grid)
    kinks, below = lower_kinks(grid, *known)
    lower = np.max(_values(t, known.upper, alphas), axis=1)
    inner = np.max(_values(t, known.lower, alphas), axis=1)
    bends = np.max(_values(np.exp(kinks), below, alphas), axis=1)
    before = t[0] * np.maximum(0.0, 1.0 - never - alphas)
    behind = 1.0 - limit - t[-1] * alphas
    upper = np.max([inner, bends, before, behind], axis=0)
    slack = 16 * UNIT * (1.0 + t[-1] * alphas)
    return Bounds(np.maximum(0.0, lower - slack), np.clip(upper + slack, 0.0, 1.0 - alphas))


def _values(t: Array, h: Array, alphas: Array) -> Array:
    """1 - h - tα, with a row for each α."""
    values: Array = 1.0 - h - np.multiply.outer(alphas, t)
    return values
