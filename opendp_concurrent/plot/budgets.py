"""Comparison of accumulators: the privacy loss of k launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..arguments.checked import Text, checked
from ..arguments.checks import at_most, function, real
from ..fdp.bounds import Bounds
from ..types import Argument
from .drawing import Ax, Axes, axes, curve, finish, listed, named


@checked(
    budgets=named("functions of k"),
    launches=listed("integers", at_most(2**53, "it is drawn as a double")),
)
def plot_budgets(
    budgets: Mapping[str, Callable[[int], Bounds | float]],
    launches: Sequence[int],
    *,
    ylabel: Text = "ε",
    ax: Ax | None = None,
) -> Axes:
    """Draw the privacy loss after k launches, with one line for each accumulator.

    If a budget returns bounds, the line is the upper bound, which is guaranteed. The band extends
    to the lower bound.

    :param budgets: maps a name to a function of k that returns a number, or ``Bounds``
    :param launches: the values of k, in the order in which they are drawn
    :param ylabel: name of the y axis
    :param ax: axes to draw on

    :example:

    >>> f = oc.TradeoffFunction.pure(0.1)
    >>> budgets = {
    ...     "sum": lambda k: 0.1 * k,
    ...     "optimum at δ = 1e-6": lambda k: f.power(k).epsilon_bounds(1e-6),
    ... }
    >>> ax = oc.plot.plot_budgets(budgets, [1, 10, 100])
    >>> [round(float(line.get_ydata()[-1]), 2) for line in ax.get_lines()]
    [10.0, 4.77]
    """
    for name, budget in budgets.items():
        function(**{f"budgets[{name!r}]": budget})
    values = {name: [_bounds(budget(k)) for k in launches] for name, budget in budgets.items()}
    ax = axes(ax)
    for name, bounds in values.items():
        lower, upper = (np.array(side) for side in zip(*bounds, strict=True))
        curve(ax, name, launches, upper, lower if np.any(lower < upper) else None)
    return finish(ax, "launches k", ylabel)


def _bounds(value: Argument) -> Bounds:
    lower, upper = value if isinstance(value, Bounds) else (value, value)
    return Bounds(real(budgets=lower), real(budgets=upper))
