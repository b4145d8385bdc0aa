"""A stream and what continual mechanisms said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import at_most, checked, each, optional, real, text
from ..errors import InvalidTypeError, InvalidValueError
from .drawing import axes, curve, drawable, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_STEP = at_most(2**53, "a step is drawn as a double")


@checked(
    steps=each("integers", _STEP),
    alarms=each("integers", _STEP),
    ylabel=text,
    ax=optional(drawable),
)
def plot_stream(
    steps: Sequence[int],
    answers: Mapping[str, Sequence[float]],
    *,
    alarms: Sequence[int] = (),
    ylabel: str = "count",
    ax: Axes | None = None,
) -> Axes:
    """Draw the answers of continual mechanisms over time, and when alarms went off.

    :param steps: at which they were asked
    :param answers: from a name to the answers at these steps
    :param alarms: steps at which to draw a vertical line
    :param ylabel: what the numbers are
    :param ax: axes to draw on; those of a new figure if left out
    :return: the axes
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises ImportError: without matplotlib, and with the name of the extra

    :example:

    >>> from opendp_concurrent.plot import plot_stream
    >>> ax = plot_stream([1, 2, 3], {"tree": [0.0, 2.0, 2.0]}, alarms=[2])
    >>> len(ax.get_lines())
    2
    """
    if not isinstance(answers, Mapping) or not answers:
        raise InvalidTypeError("answers must map names to numbers")
    x = np.asarray(steps)
    drawn: dict[str, Any] = {
        name: np.asarray(each("numbers", real)(**{f"answers[{name!r}]": values}))
        for name, values in answers.items()
    }
    for name, values in drawn.items():
        if values.shape != x.shape:
            raise InvalidValueError(
                f"answers[{name!r}] must have {len(x)} numbers, one of each of steps"
            )
    ax = axes(ax)
    for name, values in drawn.items():
        curve(ax, x, values, None, name)
    for step in alarms:
        ax.axvline(step, color="0.5", linestyle=":")
    return finish(ax, "step", ylabel)
