"""Errors of counters, computed before they run."""

from __future__ import annotations

from math import sqrt

from opendp.measures import zero_concentrated_divergence
from opendp.mod import Measure

from ..arguments.checked import checked
from ..arguments.checks import at_most
from .digits import best_digits
from .factors.buffered import buffered, windowed
from .factors.buffered import endless as endless_factor
from .factors.factor_error import mean_error, window_variance
from .methods import ENDLESS_STEPS
from .node_noise import is_laplace
from .spread import Spread, of_digits, of_epochs, of_window_digits
from .window_digits import best_window_digits

MOST_STEPS = at_most(2**62, "no stream has more steps")


@checked(steps=MOST_STEPS)
def counter_rmse(
    steps: int, output_measure: Measure | None = None, *, endless: bool = False
) -> float:
    """Return the root mean square error of a counter over its steps, by formula.

    The error is for items from 0 to 1, and for one event: at ρ = 1/2 for Gaussian noise, at ε = 1
    for Laplace noise. For a larger range of the items, it grows in proportion. For other losses,
    divide by sqrt(2ρ), or by ε.

    :param steps: T, the number of steps, at most 2^62
    :param output_measure: tells the kind of noise; zCDP if left out
    :param endless: of the counter without a horizon, over its first T steps; else T is the horizon
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.m.counter_rmse(1023), 3), round(oc.m.counter_rmse(1023, endless=True), 3)
    (2.992, 3.956)
    >>> round(oc.m.counter_rmse(1023, dp.max_divergence()), 3)
    13.058
    """
    measure = zero_concentrated_divergence() if output_measure is None else output_measure
    if not is_laplace(measure):
        return mean_error(
            endless_factor(max(steps, ENDLESS_STEPS)) if endless else buffered(steps), steps
        )
    if endless:
        return _mean_error(of_epochs(1.0)(steps), 1)
    digits = best_digits(steps)
    return _mean_error(of_digits(1.0, digits)(steps), digits.height)


def _mean_error(found: Spread, height: int) -> float:
    """Return the root mean square error of sums whose Laplace noise has scale 1.

    :param height: number of nodes of an item
    """
    return height * sqrt(2 * float(found.sums @ found.squares) / float(found.sums.sum()))


@checked(window=MOST_STEPS)
def window_rmse(window: int, output_measure: Measure | None = None) -> float:
    """Return the root mean square error of a window counter, late in a stream, by formula.

    The error is for items from 0 to 1, and for one event, as in :func:`.counter_rmse`: at ρ = 1/2
    for Gaussian noise, at ε = 1 for Laplace noise.

    :param window: W, the number of steps in the window, at most 2^62, or 2^16 for Laplace noise
    :param output_measure: tells the kind of noise; zCDP if left out
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.m.window_rmse(1023), 3), round(oc.m.window_rmse(1023, dp.max_divergence()), 3)
    (4.123, 20.722)
    """
    measure = zero_concentrated_divergence() if output_measure is None else output_measure
    if not is_laplace(measure):
        return sqrt(window_variance(windowed(window, max(window, ENDLESS_STEPS)), window))
    steps = at_most(2**16, "each step is computed; pass a smaller one")(window=window)
    digits = best_window_digits(steps)
    twice = 2 * steps  # of two blocks, as if each had one before
    return _mean_error(of_window_digits(1.0, digits, steps)(twice), digits.height)
