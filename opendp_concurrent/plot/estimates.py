"""Answers of tables with the intervals that have the true values."""

from __future__ import annotations

from collections.abc import Mapping

from ..arguments.checked import Text, checked
from ..errors import InvalidTypeError
from ..tables import Estimate
from .drawing import Ax, Axes, axes, named


@checked(estimates=named("estimates"))
def plot_estimates(
    estimates: Mapping[str, Estimate], *, ylabel: Text = "estimate", ax: Ax | None = None
) -> Axes:
    """Draw estimates of a table, each with its interval.

    :param estimates: maps names, such as those of groups, to estimates of means, sums or variances
    :param ylabel: name of the y axis
    :param ax: axes to draw on

    :example:

    >>> ages = {
    ...     "ward 1": oc.tables.Estimate(48.2, 47.1, 49.3),
    ...     "ward 2": oc.tables.Estimate(61.0, 58.2, 63.8),
    ... }
    >>> ax = oc.plot.plot_estimates(ages, ylabel="mean age")
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['ward 1', 'ward 2']
    """
    for name, one in estimates.items():
        if not isinstance(one, Estimate):
            raise InvalidTypeError(
                f"estimates[{name!r}] must be an Estimate, found {type(one).__name__}"
            )
    ax = axes(ax)
    found = list(estimates.values())
    below = [one.value - one.lower for one in found]
    above = [one.upper - one.value for one in found]
    places = range(len(found))
    ax.errorbar(places, [one.value for one in found], yerr=(below, above), fmt="o", capsize=4.0)
    ax.set_xticks(places, [str(name).replace("$", r"\$") for name in estimates])
    ax.set_ylabel(ylabel)
    ax.grid(visible=True, axis="y", alpha=0.3)
    return ax
