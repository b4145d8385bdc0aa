"""Errors of counters, computed before they run."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import scipy
from opendp.measures import zero_concentrated_divergence
from opendp.mod import Measure

from ..arguments.checked import checked
from ..arguments.checks import at_most, one_of, optional
from ..continual.stream import Contributed
from ..exact.participations import Participations
from .digits import best_digits
from .dyadic import BalancedLeaves, Leaves
from .factors.buffered import endless as endless_factor
from .methods import (
    ENDLESS_STEPS,
    GAUSSIAN,
    METHODS,
    TREES,
    factor_for,
    leaves_for,
    mean_error,
    method_for,
)
from .node_noise import is_laplace
from .spread import (
    Spread,
    of_digits,
    of_doubling,
    of_epochs,
    of_tree,
    of_window_digits,
    of_window_trees,
)
from .window import METHODS as WINDOW_METHODS
from .window import PLANS, method_for_window, window_error
from .window_digits import best_window_digits
from .window_trees import nodes_of

EACH_STEP = at_most(2**24, "each step is computed; pass a smaller one")
MOST_STEPS = at_most(2**62, "no stream has more steps")
EXACT = 2**16


def counter_nodes(horizon: int, method: str = "tree") -> tuple[int, float]:
    """Return the number of tree nodes that contain one item, and the average number in one sum.

    Let σ be the standard deviation of a node's noise. The root mean square error over the steps 1
    to T is then σ sqrt(average). For zCDP and items from 0 to 1, σ = sqrt(height/(2ρ)), so the
    error is sqrt(height · average/(2ρ)).

    :param horizon: T, the number of steps, at most 2^24
    :param method: ``"tree"`` or ``"smooth"``
    :return: the height (nodes per item), and the average over all steps of the nodes per sum
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.m.counter_nodes(1023)
    (10, 5.004887585532747)
    >>> height, average = oc.m.counter_nodes(1000, "smooth")
    >>> height
    7
    """
    steps = EACH_STEP(horizon=horizon)
    leaves, height = leaves_for(one_of(*TREES)(method=method), steps)
    return height, sum(nodes_of_sums(leaves(steps), steps)) / steps


def nodes_of_sums(order: Leaves, steps: int) -> Iterator[int]:
    """Yield the number of nodes with noise in the sum, for each step."""
    leaf = order.leaf(0)
    for _ in range(steps):
        leaf = order.following(leaf)
        nodes = leaf.bit_count()
        if isinstance(order, BalancedLeaves):
            nodes -= ((leaf + 1) & -(leaf + 1)).bit_length() - 1  # empty nodes, without noise
        yield nodes


def square_root_rmse(horizon: int) -> float:
    """Return the root mean square error of the square-root factorisation, at ρ = 1/2.

    This is the best factorisation of the sums into Toeplitz matrices [FHU23]. Let S(n) be the sum
    of f(k)² for k < n, with f(k) = f(k-1) (1 - 1/(2k)). The noise has variance S(T); the error at
    step t has variance S(t) S(T). Use it only to compare: it keeps all of the noise, O(T).

    Since (k + 1/4) f(k)² = (k+1)² f(k+1)² - k² f(k)², the sum of S(t) over t <= T telescopes to (T
    + 1/4) S(T) - T² f(T)². The first 2^16 terms f(k)² of S(T) are summed. 1/(π(k + 1/4)) replaces
    later terms. It is larger by a part of at most 1/(32 (k-1)²): (k + 1/4) f(k)² rises to 1/π, by a
    factor of at most 1 + 1/(16 k³) at each k. The error is below 10^-11 in all.

    :param horizon: T, the number of steps, at most 2^62
    :return: the root mean square error, for items from 0 to 1
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> round(oc.m.square_root_rmse(1_000_000), 4)
    5.3023
    """
    steps = MOST_STEPS(horizon=horizon)
    exact = min(steps, EXACT)
    factor, last = 1.0, 0.0
    for step in range(1, exact + 1):
        last += factor * factor
        factor *= 1 - 1 / (2 * step)
    square = factor * factor  # f(T)²
    if steps > exact:
        psi = scipy.special.digamma
        last += float(psi(steps + 0.25) - psi(exact + 0.25)) / pi
        square = 1 / (pi * (steps + 0.25))
    mean = last * (1 + 0.25 / steps) - steps * square
    return sqrt(mean * last)


def square_root_sums(steps: int) -> Iterator[float]:
    """Yield S(n) for each n from 1 to ``steps``."""
    factor, square = 1.0, 0.0
    for step in range(1, steps + 1):
        square += factor * factor
        yield square
        factor *= 1 - 1 / (2 * step)


@checked(steps=MOST_STEPS, method=optional(one_of(*METHODS)))
def counter_rmse(
    steps: int,
    method: str | None = None,
    output_measure: Measure | None = None,
    *,
    endless: bool = False,
    participations: Contributed = 1,
    separation: Contributed = 1,
) -> float:
    """Return the root mean square error of a counter over its steps, by formula.

    The error is for items from 0 to 1, and for one unit: at ρ = 1/2 for Gaussian noise, at ε = 1
    for Laplace noise. For a larger range of the items, it grows in proportion. For other losses,
    divide by sqrt(2ρ), or by ε. A unit is one event, unless ``participations`` says that it has
    more.

    :param steps: T, the number of steps, at most 2^62; at most 2^24 for "smooth"
    :param method: as in :func:`.make_counter`
    :param output_measure: tells the kind of noise; zCDP if left out
    :param endless: of the counter without a horizon, over its first T steps; else T is the horizon
    :param participations: largest number of items per unit
    :param separation: least number of steps from one item of a unit to the next
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.m.counter_rmse(1023), 3), round(oc.m.counter_rmse(1023, "tree"), 3)
    (3.058, 7.075)
    >>> round(oc.m.counter_rmse(1023, output_measure=dp.max_divergence()), 3)
    13.058
    """
    measure = zero_concentrated_divergence() if output_measure is None else output_measure
    laplace = is_laplace(measure)
    unit = Participations(participations, separation)
    method = method_for(method, None if endless else steps, measure, unit)
    if method == "square_root" and unit.within(steps) == 1:
        return square_root_rmse(steps)
    if method in GAUSSIAN:
        factor = endless_factor(ENDLESS_STEPS) if endless else factor_for(method, steps, unit)
        return mean_error(factor, steps, unit)
    items = unit.most if endless else unit.within(steps)
    if method == "smooth":
        height, average = counter_nodes(steps, method)
        return items * (height * sqrt(2 * average) if laplace else sqrt(height * average))
    if endless:
        spread, height = of_epochs(1.0) if method == "digits" else of_doubling(1.0, laplace), 1
    elif method == "digits":
        spread, height = of_digits(1.0, best_digits(steps)), best_digits(steps).height
    else:
        spread, height = of_tree(1.0), leaves_for(method, steps)[1]
    return items * _mean_error(spread(steps), height, laplace)


def _mean_error(found: Spread, height: int, laplace: bool) -> float:
    """Return the root mean square error of sums whose noise has scale 1.

    :param height: number of nodes of an item
    """
    variance = 2 * height**2 if laplace else height  # of noise for a loss of 1, or of 1/2
    return sqrt(variance * float(found.sums @ found.squares) / float(found.sums.sum()))


_EACH_PLACE = at_most(2**16, "each step is computed; pass a smaller one")


@checked(method=optional(one_of(*WINDOW_METHODS)))
def window_rmse(
    window: int,
    method: str | None = None,
    output_measure: Measure | None = None,
    *,
    participations: Contributed = 1,
    separation: Contributed = 1,
) -> float:
    """Return the root mean square error of a window counter, late in a stream, by formula.

    The error is for items from 0 to 1, and for one unit, as in :func:`.counter_rmse`: at ρ = 1/2
    for Gaussian noise, at ε = 1 for Laplace noise.

    :param window: W, the number of steps in the window, at most 2^62; at most 2^16 for trees
    :param method: as in :func:`.make_window_counter`
    :param output_measure: tells the kind of noise; zCDP if left out
    :param participations: largest number of items per unit
    :param separation: least number of steps from one item of a unit to the next
    :return: the root mean square error
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if the measure has no noise of its own here

    :example:

    >>> round(oc.m.window_rmse(1023), 3), round(oc.m.window_rmse(1023, "trees"), 3)
    (4.127, 10.488)
    """
    measure = zero_concentrated_divergence() if output_measure is None else output_measure
    laplace = is_laplace(measure)
    steps, unit = MOST_STEPS(window=window), Participations(participations, separation)
    method = method_for_window(method, steps, laplace, unit)
    if method not in PLANS:
        return window_error(method, steps, unit)
    steps = _EACH_PLACE(window=window)
    twice = 2 * steps  # of two blocks, as if each had one before
    if method == "digits":
        digits = best_window_digits(steps)
        found, height = of_window_digits(1.0, digits, steps)(twice), digits.height
    else:
        found, height = of_window_trees(1.0, steps)(twice), nodes_of(steps)
    return participations * _mean_error(found, height, laplace)
