"""The error of each of k queries that share a budget, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opendp.mod import Measurement

from ..arguments.checked import Probability, checked
from ..arguments.checks import at_most, function, optional
from ..contexts.calibration import smallest_scale
from ..queryables.mechanism import accuracy_of
from ..types import Distance, Loss
from .drawing import Ax, Axes, axes, curve, finish, listed, named

_MOST = at_most(2**53, "it is drawn as a double")


@checked(
    make_measurement=function,
    launches=listed("integers", _MOST),
    accumulators=optional(named("accumulators")),
    answers=optional(_MOST),
)
def accuracy_of_plan(
    make_measurement: Callable[[float], Measurement],
    d_in: Distance,
    d_out: Loss,
    launches: Sequence[int],
    *,
    accumulators: Mapping[str, Any] | None = None,
    beta: Probability = 0.05,
    answers: int | None = None,
    ax: Ax | None = None,
) -> Axes:
    """Draw the error of each query against the number of queries that share a budget evenly.

    The scale of the noise is :func:`.smallest_scale` for the number of launches, and the error is
    that of ``mechanism.accuracy(beta)`` at this scale. Nothing is launched.

    :param make_measurement: makes a mechanism of ``oc.m`` from a noise scale
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on all launches together
    :param launches: numbers of launches, in the order in which they are drawn
    :param accumulators: maps names to accumulators, each with a line; the default is that of the
        measure
    :param beta: probability of a larger error, of each query
    :param answers: number of answers of one query, for mechanisms that need it
    :param ax: axes to draw on

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> ax = oc.plot.accuracy_of_plan(
    ...     lambda scale: oc.m.make_certified_gaussian(*space, scale, zcdp), 1.0, 0.5, [1, 4, 16]
    ... )
    >>> [round(float(error), 2) for error in ax.get_lines()[0].get_ydata()]
    [1.96, 3.92, 7.84]
    """
    lines: dict[str, list[float]] = {}
    for name, accumulator in (accumulators or {"each query": None}).items():
        lines[name] = []
        for number in launches:
            scale = smallest_scale(make_measurement, d_in, d_out, number, accumulator=accumulator)
            lines[name].append(accuracy_of(make_measurement(scale)).at(beta, answers))
    ax = axes(ax)
    for name, errors in lines.items():
        curve(ax, name, launches, errors, marker=".")
    ax.set_ylim(bottom=0.0)
    return finish(ax, "queries that share the budget", f"error with probability {1 - beta:g}")
