"""Trade-off curves: type II error against type I error, between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from ..checks import at_most, checked, optional
from ..fdp.bounds import UNIT, Array, Bounds
from ..fdp.function import TradeoffFunction
from ..fdp.order import lower_kinks
from .drawing import axes, curve, drawable, finish, labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SLOPES, _WIDTH = 400, 1e-4  # points of the profile, and how well it is to be known there
_NOTHING, _MOST = 1e-5, 700.0  # what steeper slopes add; beyond, e^ε is no double


_MOST_POINTS = at_most(10**5, "each is drawn")


@checked(points=_MOST_POINTS, ax=optional(drawable))
def plot_tradeoff(
    functions: TradeoffFunction | Sequence[TradeoffFunction],
    *,
    labels: Sequence[str] | None = None,
    points: int = 201,
    ax: Axes | None = None,
) -> Axes:
    """Draw trade-off functions: β = f(α), the least type II error at each type I error.

    The line is the lower bound, which is guaranteed; the band reaches to the upper one. The dotted
    line is 1 - α: no privacy loss.

    :param functions: one or several
    :param labels: their names in the legend; what they print as, if left out
    :param points: number of α, at least 1, that are denser near 0 and 1
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.plot import plot_tradeoff
    >>> f = oc.TradeoffFunction.laplace(1.0)
    >>> ax = plot_tradeoff([f, oc.TradeoffFunction.pure(1.0)], labels=["Laplace", "pure"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['Laplace', 'pure', '1 - α']
    """
    named = labelled(functions, labels)
    # Chebyshev's points: trade-off functions bend near 0 and 1
    alphas = (1 - np.cos(np.linspace(0.0, np.pi, points))) / 2
    ax = axes(ax)
    for function, label in named:
        lower, upper = _betas(function, alphas)
        curve(ax, alphas, lower, upper, label)
    ax.plot([0.0, 1.0], [1.0, 0.0], "k:", linewidth=1.0, label="1 - α")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    return finish(ax, "type I error α", "type II error β")


def _betas(function: TradeoffFunction, alphas: Array) -> Bounds:
    """Bounds on f: one by one in closed form, else all of them from one profile."""
    product = function._product
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

    Every t gives a lower bound. For the upper one h is replaced by what a convex function is at
    least: 1 - t (1 - ``never``) before the grid, where that is its slope at 0;
    ``order.lower_kinks`` on it; and ``limit`` behind it.
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
    """1 - h - tα: a row for each α."""
    values: Array = 1.0 - h - np.multiply.outer(alphas, t)
    return values
