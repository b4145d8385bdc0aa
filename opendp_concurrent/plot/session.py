"""The privacy loss in a session, launch by launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from opendp.mod import Measure

from ..arguments import checks
from ..arguments.checked import Text, checked
from ..arguments.checks import optional
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import composition_measure
from ..measures.heights import height, name
from ..types import Argument, Loss
from .drawing import Ax, Axes, axes, curve, finish, from_array, named


@checked(order=optional(checks.order))
def plot_session(
    losses: Mapping[str, Sequence[Any]] | Sequence[Any],
    *,
    d_out: Loss = None,
    refused: Mapping[str, Sequence[int]] | Sequence[int] = (),
    order: float | None = None,
    ylabel: Text | None = None,
    output_measure: Measure | None = None,
    ax: Ax | None = None,
) -> Axes:
    """Draw the result of ``privacy_loss()`` after each launch, and the bound.

    The number drawn is the ε of a pair (ε, δ), the ρ of truncated concentrated DP, the ε of a
    trade-off function at δ = 1e-6, and the value of a Rényi curve at ``order``, or at the smallest
    order of its grid.

    A refused launch counts as a launch that does not change the loss.

    :param losses: after the first launch, the second, and so on; or a mapping from the names of
        several accounts or accumulators to such lists
    :param d_out: a bound, drawn as a dotted line
    :param refused: numbers of the refused launches, counted from 1, each marked by a cross; a
        mapping from the same names if ``losses`` is a mapping
    :param order: of Rényi curves
    :param ylabel: name of the y axis
    :param output_measure: of the losses; only for your own measure
    :param ax: axes to draw on

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> losses, refused = [], []
    >>> for number, scale in enumerate([2.0, 4.0, 2.0, 4.0], start=1):
    ...     try:
    ...         release = root(space >> dp.t.then_count() >> dp.m.then_laplace(scale))
    ...     except oc.errors.BudgetExceededError:
    ...         refused.append(number)
    ...     losses.append(root.privacy_loss())
    >>> ax = oc.plot.plot_session(losses, d_out=1.0, refused=refused)
    >>> ax.get_lines()[0].get_ydata().tolist(), ax.get_lines()[1].get_xdata().tolist()
    ([0.5, 0.75, 0.75, 1.0], [3])
    """
    several = isinstance(losses, Mapping)
    given = {
        label: _items(values, f"losses[{label!r}]" if several else "losses")
        for label, values in (
            named("lists")(losses=losses) if several else {"spent": losses}
        ).items()
    }
    crosses = _crosses(refused, given, several)
    under = None if output_measure is None else composition_measure(output_measure)
    of = "" if output_measure is None else " under output_measure"
    values = {
        label: [height(loss, order, of=f"losses{of}", under=under) for loss in items]
        for label, items in given.items()
    }
    bound = None if d_out is None else height(d_out, order, of=f"d_out{of}", under=under)
    ax = axes(ax)
    colors = {
        label: curve(ax, label, np.arange(1, len(line) + 1), line, drawstyle="steps-post")
        for label, line in values.items()
    }
    hidden = ""  # the legend needs only one entry for refusals
    for label, where in crosses.items():
        if where:
            at = [values[label][number - 1] for number in where]
            ax.plot(where, at, "x", color=colors[label], label=f"{hidden}refused")
            hidden = "_"
    if bound is not None:
        ax.axhline(bound, color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    first = next((loss for items in given.values() for loss in items), d_out)
    return finish(ax, "launches", name(first, order, under=under) if ylabel is None else ylabel)


def _items(values: Argument, argument: str) -> list[Any]:
    return list(checks.elements("losses or launches", **{argument: from_array(values)}))


def _crosses(refused: Argument, given: dict[str, list[Any]], several: bool) -> dict[str, list[int]]:
    if several and isinstance(refused, tuple) and not refused:
        refused = {}
    if several != isinstance(refused, Mapping):
        raise InvalidTypeError("refused must be a mapping if losses is a mapping, else a list")
    numbers = refused if several else {"spent": refused}
    for label in numbers:
        if label not in given:
            raise InvalidValueError(f"refused[{label!r}] must be among the names of losses")
    found = {}
    for label, items in given.items():
        found[label] = [checks.count(refused=n) for n in _items(numbers.get(label, ()), "refused")]
        if any(number > len(items) for number in found[label]):
            raise InvalidValueError(
                f"refused ({max(found[label])}) must be at most {len(items)}, the launches made"
            )
    return found
