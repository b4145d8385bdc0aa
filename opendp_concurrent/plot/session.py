"""The privacy loss over a session, launch by launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..checks import checked, optional, text
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import composition_measure
from .drawing import axes, curve, drawable, finish
from .losses import height, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from opendp.mod import Measure


@checked(ylabel=optional(text), ax=optional(drawable))
def plot_session(
    losses: Mapping[str, Sequence[Any]] | Sequence[Any],
    *,
    d_out: Any = None,
    refused: Mapping[str, Sequence[int]] | Sequence[int] = (),
    order: float | None = None,
    ylabel: str | None = None,
    output_measure: Measure | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what ``privacy_loss()`` said after each launch, and the bound.

    Of a pair (ε, δ) the ε is drawn, of truncated concentrated DP the ρ, of a trade-off function the
    ε at δ = 1e-6, of a Rényi curve its value at ``order``, or at the least order of its grid.

    A launch that was refused counts as one, after which the loss is what it was before.

    :param losses: after the first launch, the second, ...; with names for several accounts or rules
    :param d_out: a bound, drawn as a dotted line
    :param refused: numbers, from 1, of the launches that were refused, each marked by a cross; by
        the same names, if ``losses`` has names
    :param order: of Rényi curves
    :param ylabel: what the numbers are
    :param output_measure: of the losses, if it is one of your own
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.errors import BudgetExceededError
    >>> from opendp_concurrent.plot import plot_session
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> losses, refused = [], []
    >>> for number, scale in enumerate([2.0, 4.0, 2.0, 4.0], start=1):
    ...     try:
    ...         release = root(space >> dp.t.then_count() >> dp.m.then_laplace(scale))
    ...     except BudgetExceededError:
    ...         refused.append(number)
    ...     losses.append(root.privacy_loss())
    >>> ax = plot_session(losses, d_out=1.0, refused=refused)
    >>> ax.get_lines()[0].get_ydata().tolist(), ax.get_lines()[1].get_xdata().tolist()
    ([0.5, 0.75, 0.75, 1.0], [3])
    """
    named = isinstance(losses, Mapping)
    given = _lists(losses)
    crosses = _refused(refused, given, named)
    each = checks.order(order=order) if order is not None else None
    under = None if output_measure is None else composition_measure(output_measure)
    values = {
        label: [height(loss, each, under=under) for loss in items] for label, items in given.items()
    }
    bound = None if d_out is None else height(d_out, each, of="d_out", under=under)
    ax = axes(ax)
    colors = {}
    for label, line in values.items():
        curve(ax, np.arange(1, len(line) + 1), line, None, label)
        drawn = ax.get_lines()[-1]
        drawn.set_drawstyle("steps-post")
        colors[label] = drawn.get_color()
    explained = False  # one entry in the legend is enough
    for label, where in crosses.items():
        if where:
            at = [values[label][number - 1] for number in where]
            ax.plot(where, at, "x", color=colors[label], label="_" * explained + "refused")
            explained = True
    if bound is not None:
        ax.axhline(bound, color="0.5", linestyle=":", label="d_out")
    ax.set_ylim(bottom=0.0)
    first = next((loss for items in given.values() for loss in items), d_out)
    return finish(ax, "launches", name(first, each, under=under) if ylabel is None else ylabel)


def _items(values: Any, argument: str) -> list[Any]:
    if isinstance(values, np.ndarray) and values.size <= checks.MOST_ELEMENTS:
        values = values.tolist()
    return list(checks.elements("losses or launches", **{argument: values}))


def _lists(losses: Any) -> dict[str, list[Any]]:
    if not isinstance(losses, Mapping):
        return {"spent": _items(losses, "losses")}
    if not losses:
        raise InvalidTypeError("losses must be a list, or map names to lists")
    return {label: _items(values, f"losses[{label!r}]") for label, values in losses.items()}


def _refused(refused: Any, given: dict[str, list[Any]], named: bool) -> dict[str, list[int]]:
    if named and isinstance(refused, tuple) and not refused:
        return {label: [] for label in given}
    if named != isinstance(refused, Mapping):
        raise InvalidTypeError("refused must have names if, and only if, losses has")
    numbers = refused if named else {"spent": refused}
    unknown = [label for label in numbers if label not in given]
    if unknown:
        raise InvalidValueError(f"refused[{unknown[0]!r}] is not among the names of losses")
    found = {}
    for label, items in given.items():
        found[label] = [checks.count(refused=n) for n in _items(numbers.get(label, ()), "refused")]
        if any(number > len(items) for number in found[label]):
            raise InvalidValueError(
                f"refused ({max(found[label])}) must be at most {len(items)}, the launches made"
            )
    return found
