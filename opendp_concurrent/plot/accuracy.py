"""The error of mechanisms before they run, at each confidence."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from opendp.mod import Measurement

from ..arguments.checked import checked
from ..arguments.checks import at_most, optional, text
from ..combinators import guards
from ..queryables.mechanism import accuracy_of
from .drawing import Ax, Axes, axes, curve, finish, named

_MOST = at_most(2**62, "there are no more in a lifetime")


@checked(mechanisms=named("measurements"), answers=optional(_MOST))
def plot_accuracy(
    mechanisms: Mapping[str, Measurement], *, answers: int | None = None, ax: Ax | None = None
) -> Axes:
    """Draw the error bounds of mechanisms: one bound for each probability of a larger error.

    The bound is ``mechanism.accuracy(beta, answers=answers)``, for β from 10^-6 to 1/2.

    :param mechanisms: maps names to mechanisms of ``oc.m`` whose accuracy is known for each β
    :param answers: number of queries, coordinates or steps, for mechanisms that need it
    :param ax: axes to draw on

    :example:

    >>> count = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> measure = dp.zero_concentrated_divergence()
    >>> ax = oc.plot.plot_accuracy({
    ...     "Laplace": oc.m.make_certified_laplace(*count, 1.0, measure),
    ...     "Gaussian": oc.m.make_certified_gaussian(*count, 1.0, measure),
    ... })
    >>> [line.get_label() for line in ax.get_lines()]
    ['Laplace', 'Gaussian']
    """
    betas = np.geomspace(1e-6, 0.5, 61)
    drawn = {
        text(mechanisms=name): accuracy_of(guards.measurement(**{f"mechanisms[{name!r}]": one}))
        for name, one in mechanisms.items()
    }
    errors = {name: [one.at(float(b), answers) for b in betas] for name, one in drawn.items()}
    ax = axes(ax)
    for name, found in errors.items():
        curve(ax, name, betas, found)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0.0)
    return finish(ax, "probability β of a larger error", "error")
