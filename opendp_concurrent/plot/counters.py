"""The error of continual counters at each step, for the same privacy loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments.checked import Positive, checked
from ..arguments.checks import at_most, count, mapping, non_negative, one_of
from ..counters.accuracy import nodes_of_sums, square_root_sums
from ..counters.factors.buffered import buffered
from ..counters.factors.factor_error import parameters, row_squares, squared_norm
from ..counters.methods import leaves_for
from ..errors import InvalidValueError
from .drawing import Ax, Axes, axes, curve, finish, listed

Variances = NDArray[np.float64]


def _of_nodes(method: str, horizon: int) -> Variances:
    """An item is in ``height`` nodes, and each node has noise of this variance."""
    leaves, height = leaves_for(method, horizon)
    return height * np.fromiter(nodes_of_sums(leaves(horizon), horizon), float, horizon)


def _doubling(horizon: int) -> Variances:
    """Twice the unit for each completed epoch, and 2j for a node of an epoch of 2^j steps."""
    variances = np.empty(horizon)
    for step in range(1, horizon + 1):
        epoch = (step + 1).bit_length() - 1
        variances[step - 1] = 2 * epoch * (1 + (step + 1 - (1 << epoch)).bit_count())
    return variances


def _square_root(horizon: int) -> Variances:
    """S(t) S(T), as in :func:`.square_root_rmse`."""
    sums = np.fromiter(square_root_sums(horizon), float, horizon)
    variances: Variances = sums * sums[-1]
    return variances


def _buffered(horizon: int) -> Variances:
    """The squared norm of C, times the squared row norms of A C^-1."""
    found = parameters(buffered(horizon).buffers)
    variances: Variances = squared_norm(*found, horizon) * row_squares(*found, horizon)
    return variances


# at rho = 1/2, for each step from 1
VARIANCES: dict[str, Callable[[int], Variances]] = {
    "tree": partial(_of_nodes, "tree"),
    "smooth": partial(_of_nodes, "smooth"),
    "doubling": _doubling,
    "square root": _square_root,
    "buffered": _buffered,
}


@checked(counters=listed("names", one_of(*VARIANCES)), horizon=at_most(2**20, "each step is drawn"))
def plot_counter_error(
    counters: Sequence[str],
    horizon: int,
    *,
    rho: Positive = 0.5,
    measured: Mapping[str, Mapping[int, float]] | None = None,
    ax: Ax | None = None,
) -> Axes:
    """Draw the root mean square error of continual counters at each step, by formula.

    For items from 0 to 1, Gaussian noise, and ρ-zCDP for one event:

    * ``"tree"``: [CSS11], [DNPR10], as ``make_counter(method="tree")``;
    * ``"smooth"``: [AP23], as ``make_counter(method="smooth")``;
    * ``"doubling"``: as ``make_counter(method="tree")`` without a horizon;
    * ``"square root"``: [FHU23], as ``make_counter(method="square_root")``;
    * ``"buffered"``: [DMPST24], as ``make_counter(method="buffered")``.

    The light line is the error at each step. The other line is the root mean square of the errors
    so far.

    :param counters: some of these names
    :param horizon: T, the number of steps, at most 2^20
    :param rho: privacy loss under zCDP, above 0
    :param measured: maps some of the counters to errors by step, which are drawn as points
    :param ax: axes to draw on

    :example:

    >>> ax = oc.plot.plot_counter_error(["tree", "square root"], 1000)
    >>> [round(float(line.get_ydata()[-1]), 4) for line in ax.get_lines()[1::2]]
    [7.0271, 3.1022]
    >>> height, average = oc.m.counter_nodes(1000)
    >>> round((height * average) ** 0.5, 4), round(oc.m.square_root_rmse(1000), 4)
    (7.0271, 3.1022)
    """
    points = {} if measured is None else _points(measured, counters, horizon)
    ax = axes(ax)
    x = np.arange(1, horizon + 1)
    for one in dict.fromkeys(counters):
        variances = VARIANCES[one](horizon) / (2 * rho)
        (light,) = ax.plot(x, np.sqrt(variances), alpha=0.3, linewidth=0.8)
        color = light.get_color()
        curve(ax, one, x, np.sqrt(np.cumsum(variances) / x), color=color)
        if one in points:
            ax.plot(*points[one], "o", color=color, markersize=4.0, label=f"{one}: measured")
    ax.set_xlim(1, max(2, horizon))
    ax.set_ylim(bottom=0.0)
    return finish(ax, "step", "root mean square error")


def _points(measured: Any, counters: Sequence[str], horizon: int) -> dict[str, Any]:
    points = {}
    for one, given in mapping("counters to errors by step", measured=measured).items():
        if one not in counters:
            raise InvalidValueError(f"measured ({one!r}) must be among counters")
        errors = mapping("steps to errors", **{f"measured[{one!r}]": given})
        steps = [count(measured=step) for step in errors]
        if any(step > horizon for step in steps):
            raise InvalidValueError(f"measured ({max(steps)}) must be at most horizon ({horizon})")
        points[one] = steps, [non_negative(measured=error) for error in errors.values()]
    return points
