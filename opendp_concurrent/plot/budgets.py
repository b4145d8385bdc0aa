"""Budgets compared: what k launches cost, by several ways of accounting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..checks import checked, optional, text
from ..errors import InvalidTypeError
from ..fdp.bounds import Bounds
from .drawing import axes, curve, drawable, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@checked(ylabel=text, ax=optional(drawable))
def plot_budgets(
    budgets: Mapping[str, Callable[[int], Bounds | float]],
    launches: Sequence[int],
    *,
    ylabel: str = "ε",
    ax: Axes | None = None,
) -> Axes:
    """Draw the loss after k launches, one line for each way to account for it.

    Where a budget answers with bounds, the line is the upper one, which is guaranteed, and the band
    reaches to the lower one.

    :param budgets: from a name to a function of k, whose value is a number, or ``Bounds``
    :param launches: each k, in the order in which they are drawn
    :param ylabel: what the numbers are
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.plot import plot_budgets
    >>> f = oc.TradeoffFunction.pure(0.1)
    >>> budgets = {
    ...     "sum": lambda k: 0.1 * k,
    ...     "optimum at δ = 1e-6": lambda k: f.power(k).epsilon_bounds(1e-6),
    ... }
    >>> ax = plot_budgets(budgets, [1, 10, 100])
    >>> [round(float(line.get_ydata()[-1]), 2) for line in ax.get_lines()]
    [10.0, 4.77]
    """
    if not isinstance(budgets, Mapping) or not budgets:
        raise InvalidTypeError("budgets must map names to functions of k")
    if not all(callable(budget) for budget in budgets.values()):
        raise InvalidTypeError("budgets must map names to functions of k; each must be callable")
    if isinstance(launches, np.ndarray) and launches.size <= checks.MOST_ELEMENTS:
        launches = launches.tolist()
    launches = checks.sequence("integers", launches=launches)
    counts = [checks.count(launches=count) for count in launches]
    values = {name: [_bounds(budget(k)) for k in counts] for name, budget in budgets.items()}
    ax = axes(ax)
    for name, bounds in values.items():
        lower, upper = (np.array(side) for side in zip(*bounds, strict=True))
        curve(ax, counts, upper, lower if np.any(lower < upper) else None, name)
    return finish(ax, "launches k", ylabel)


def _bounds(value: Bounds | float) -> Bounds:
    if isinstance(value, Bounds):
        return Bounds(checks.real(budgets=value.lower), checks.real(budgets=value.upper))
    number = checks.real(budgets=value)
    return Bounds(number, number)
