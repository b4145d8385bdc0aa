"""The error of continual counters, step by step, at the same privacy loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..checks import checked, optional, shown
from ..counters.accuracy import nodes_of_sums, square_root_sums
from ..counters.counter import leaves_for
from ..errors import InvalidTypeError, InvalidValueError
from .drawing import axes, curve, drawable, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Variances = NDArray[np.float64]
MOST_STEPS = 2**20


@checked(ax=optional(drawable))
def plot_counter_error(
    counters: Sequence[str],
    horizon: int,
    *,
    rho: float = 0.5,
    measured: Mapping[str, Mapping[int, float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the root mean square error of continual counters at each step, by formula.

    For items from 0 to 1, Gaussian noise, and ρ-zCDP for one event:

    * ``"tree"``: [CSS11], [DNPR10], as ``make_counter(method="tree")``;
    * ``"smooth"``: [AP23], as ``make_counter(method="smooth")``;
    * ``"doubling"``: as ``make_counter`` without a horizon;
    * ``"square root"``: the square-root factorisation [FHU23], a yardstick: not made here.

    The light line is the error at each step, the full one the root mean square of those so far.

    :param counters: some of these
    :param horizon: T, how many steps, at most 2^20
    :param rho: privacy loss under zCDP, above 0
    :param measured: from some of the counters to errors by step, drawn as points
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.plot import plot_counter_error
    >>> ax = plot_counter_error(["tree", "square root"], 1000)
    >>> [round(float(line.get_ydata()[-1]), 4) for line in ax.get_lines()[1::2]]
    [7.0271, 3.1022]
    >>> height, average = oc.m.counter_nodes(1000)
    >>> round((height * average) ** 0.5, 4), round(oc.m.square_root_rmse(1000), 4)
    (7.0271, 3.1022)
    """
    if isinstance(counters, (str, bytes)) or not isinstance(counters, Sequence) or not counters:
        raise InvalidTypeError(f"counters must be a list of some of {', '.join(VARIANCES)}")
    for one in counters:
        if not isinstance(one, str) or one not in VARIANCES:
            raise InvalidValueError(
                f"counters ({shown(one)}) must be some of {', '.join(VARIANCES)}"
            )
    steps = checks.count(horizon=horizon)
    if not steps <= MOST_STEPS:
        raise InvalidValueError(f"horizon ({horizon}) must be at most 2**20: each step is drawn")
    loss = checks.positive(rho=rho)
    points = _measured(measured, counters, steps)
    ax = axes(ax)
    x = np.arange(1, steps + 1)
    for one in dict.fromkeys(counters):
        variances = VARIANCES[one](steps) / (2 * loss)
        curve(ax, x, np.sqrt(np.cumsum(variances) / x), None, one)
        mean = ax.get_lines()[-1]
        color = mean.get_color()
        mean.remove()  # drawn over its light line
        ax.plot(x, np.sqrt(variances), color=color, alpha=0.3, linewidth=0.8)
        ax.add_line(mean)
        if one in points:
            ax.plot(*points[one], "o", color=color, markersize=4.0, label=f"{one}: measured")
    ax.set_xlim(1, max(2, steps))
    ax.set_ylim(bottom=0.0)
    return finish(ax, "step", "root mean square error")


def _measured(measured: Any, counters: Sequence[str], horizon: int) -> dict[str, Any]:
    if measured is None:
        return {}
    if not isinstance(measured, Mapping):
        raise InvalidTypeError("measured must map counters to errors by step")
    points = {}
    for one, errors in measured.items():
        if one not in counters:
            raise InvalidValueError(f"measured ({one!r}) must be among counters")
        if not isinstance(errors, Mapping):
            raise InvalidTypeError(f"measured[{one!r}] must map steps to errors")
        steps = [checks.count(measured=step) for step in errors]
        if any(step > horizon for step in steps):
            raise InvalidValueError(f"measured ({max(steps)}) must be at most horizon ({horizon})")
        points[one] = steps, [checks.non_negative(measured=error) for error in errors.values()]
    return points


def _of_nodes(method: str, horizon: int) -> Variances:
    """An item is in ``height`` nodes, each with a noise of that variance."""
    leaves, height = leaves_for(method, horizon)
    return height * np.fromiter(nodes_of_sums(leaves(horizon), horizon), float, horizon)


def _doubling(horizon: int) -> Variances:
    """Twice the unit for each epoch that is over, 2j for a node in one of 2^j steps."""
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


# at rho = 1/2, for each step from 1
VARIANCES: dict[str, Callable[[int], Variances]] = {
    "tree": partial(_of_nodes, "tree"),
    "smooth": partial(_of_nodes, "smooth"),
    "doubling": _doubling,
    "square root": _square_root,
}
