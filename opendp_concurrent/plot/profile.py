"""Privacy profiles: δ as a function of ε, between two bounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10

import numpy as np

from ..arguments.checked import NonNegative, checked
from ..arguments.checks import optional
from ..fdp.arguments import numbers
from ..fdp.bounds import Array
from ..fdp.function import TradeoffFunction
from .drawing import Ax, Axes, axes, curve, finish, labelled

_POINTS = 201
_SMALLEST = 1e-10  # δ at which a picture ends by default
_ZERO = 1e-250  # smaller values are 0 with rounding errors


@checked(epsilons=optional(numbers))
def plot_profile(
    functions: TradeoffFunction | Sequence[TradeoffFunction],
    *,
    epsilons: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    width: NonNegative = 1e-3,
    ax: Ax | None = None,
) -> Axes:
    """Draw privacy profiles: the smallest δ at each ε, on a logarithmic axis.

    The line is the upper bound, which is guaranteed. The band extends to the lower bound. Where δ
    is 0, the line leaves the picture at the bottom.

    :param functions: one or several
    :param epsilons: values of ε; by default from 0 to where δ is about 1e-10
    :param labels: names in the legend; by default those that the functions print
    :param width: relative width of the bracket, as in ``delta_bounds``
    :param ax: axes to draw on

    :example:

    >>> f = oc.TradeoffFunction.laplace(0.1).power(100)
    >>> ax = oc.plot.plot_profile(f, labels=["100 launches"])
    >>> ax.get_yscale(), round(ax.get_xlim()[1])
    ('log', 6)
    """
    drawn = labelled(functions, labels)
    points = _default([one for one, _ in drawn]) if epsilons is None else np.array(epsilons)
    known = [one.delta_bounds(points, width=width) for one, _ in drawn]
    ax = axes(ax)
    ax.set_yscale("log", nonpositive="clip")
    least = min(float(np.min(upper[upper > _ZERO], initial=1.0)) for _, upper in known)
    ax.set_ylim(10.0 ** np.floor(log10(least)) if least < 1.0 else 0.1, 2.0)
    if len(points) > 1:
        ax.set_xlim(float(np.min(points)), float(np.max(points)))
    for (_, label), (lower, upper) in zip(drawn, known, strict=True):
        curve(ax, label, points, upper, lower)
    return finish(ax, "ε", "δ")


def _default(functions: Sequence[TradeoffFunction]) -> Array:
    """From 0 to where each δ is about 1e-10, or about its limit."""
    ends = []
    for one in functions:
        target = min(1.0, float(one.delta(inf)) + _SMALLEST)
        ends.append(float(one.epsilon_bounds(target, width=1e-2).upper))
    return np.linspace(0.0, max(ends) or 1.0, _POINTS)
