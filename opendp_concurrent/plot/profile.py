"""Privacy profiles: δ against ε, between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10
from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..checks import checked, optional
from ..fdp.bounds import Array
from ..fdp.function import TradeoffFunction
from .drawing import axes, curve, drawable, finish, labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 201
_LEAST = 1e-10  # δ down to which a picture goes by itself
_TINY = 1e-250  # what is below is 0 and rounding


@checked(ax=optional(drawable))
def plot_profile(
    functions: TradeoffFunction | Sequence[TradeoffFunction],
    *,
    epsilons: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    width: float = 1e-3,
    ax: Axes | None = None,
) -> Axes:
    """Draw privacy profiles: the least δ at each ε, on a logarithmic axis.

    The line is the upper bound, which is guaranteed; the band reaches to the lower one. Where δ is
    0, the line leaves the picture at the bottom.

    :param functions: one or several
    :param epsilons: where δ is asked for; from 0 to where it is about 1e-10, if left out
    :param labels: names in the legend; what the functions print as, if left out
    :param width: relative width of the bracket, as in ``delta_bounds``
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.plot import plot_profile
    >>> ax = plot_profile(oc.TradeoffFunction.laplace(0.1).power(100), labels=["100 launches"])
    >>> ax.get_yscale(), round(ax.get_xlim()[1])
    ('log', 6)
    """
    named = labelled(functions, labels)
    relative = checks.non_negative(width=width)
    points = _until([one for one, _ in named]) if epsilons is None else _points(epsilons)
    known = [one.delta_bounds(points, width=relative) for one, _ in named]
    ax = axes(ax)
    ax.set_yscale("log", nonpositive="clip")
    least = min(float(np.min(upper[upper > _TINY], initial=1.0)) for _, upper in known)
    ax.set_ylim(10.0 ** np.floor(log10(least)) if least < 1.0 else 0.1, 2.0)
    if len(points) > 1:
        ax.set_xlim(float(np.min(points)), float(np.max(points)))
    for (_, label), (lower, upper) in zip(named, known, strict=True):
        curve(ax, points, upper, lower, label)
    return finish(ax, "ε", "δ")


def _points(epsilons: Sequence[float]) -> Array:
    if isinstance(epsilons, np.ndarray) and epsilons.size <= checks.MOST_ELEMENTS:
        epsilons = epsilons.tolist()
    epsilons = checks.sequence("numbers", epsilons=epsilons)
    return np.array([checks.real(epsilons=one) for one in epsilons])


def _until(functions: Sequence[TradeoffFunction]) -> Array:
    """From 0 to where each δ is about its limit, or 1e-10."""
    ends = []
    for one in functions:
        target = min(1.0, float(one.delta(inf)) + _LEAST)
        ends.append(float(one.epsilon_bounds(target, width=1e-2).upper))
    return np.linspace(0.0, max(ends) or 1.0, _POINTS)
