"""Answers of continual mechanisms over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arguments.checked import Text, checked
from ..arguments.checks import at_most, each, real
from ..errors import InvalidValueError
from .drawing import Ax, Axes, axes, curve, finish, from_array, named

_STEPS = each("integers", at_most(2**53, "a step is drawn as a double"))


@checked(steps=_STEPS, answers=named("numbers"), alarms=_STEPS)
def plot_stream(
    steps: Sequence[int],
    answers: Mapping[str, Sequence[float]],
    *,
    alarms: Sequence[int] = (),
    ylabel: Text = "count",
    ax: Ax | None = None,
) -> Axes:
    """Draw the answers of continual mechanisms over time, and the steps of alarms.

    :param steps: at which the mechanisms were queried
    :param answers: maps a name to the answers at these steps
    :param alarms: steps with a vertical line
    :param ylabel: name of the y axis
    :param ax: axes to draw on

    :example:

    >>> ax = oc.plot.plot_stream([1, 2, 3], {"tree": [0.0, 2.0, 2.0]}, alarms=[2])
    >>> len(ax.get_lines())
    2
    """
    drawn: dict[str, Any] = {
        name: each("numbers", real)(**{f"answers[{name!r}]": from_array(values)})
        for name, values in answers.items()
    }
    for name, values in drawn.items():
        if len(values) != len(steps):
            raise InvalidValueError(
                f"answers[{name!r}] ({len(values)} numbers) must have one number for each of the "
                f"{len(steps)} steps"
            )
    ax = axes(ax)
    for name, values in drawn.items():
        curve(ax, name, steps, values)
    for step in alarms:
        ax.axvline(step, color="0.5", linestyle=":")
    return finish(ax, "step", ylabel)
