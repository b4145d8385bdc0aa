"""How large the error of a counter is, before it is run."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import scipy

from ..checks import at_most, one_of
from .counter import METHODS, leaves_for
from .dyadic import BalancedLeaves, Leaves

EACH_STEP = at_most(2**24, "each step is looked at; pass a smaller one")
MOST_STEPS = at_most(2**62, "more steps do not come")
EXACT = 2**16


def counter_nodes(horizon: int, method: str = "tree") -> tuple[int, float]:
    """Return in how many nodes an item is, and how many nodes a sum has on average.

    With noise of standard deviation σ for a node, the root mean square error over the steps from 1
    to the horizon is σ times the root of the second. For zCDP σ is the root of the first over 2ρ,
    for items from 0 to 1: so the error is the root of their product over 2ρ.

    :param horizon: T, how many steps, at most 2^24
    :param method: ``"tree"`` or ``"smooth"``
    :return: the height, and the average over all steps
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.m.counter_nodes(1023)
    (10, 5.004887585532747)
    >>> height, average = oc.m.counter_nodes(1000, "smooth")
    >>> height
    7
    """
    steps = EACH_STEP(horizon=horizon)
    leaves, height = leaves_for(one_of(*METHODS)(method=method), steps)
    return height, sum(nodes_of_sums(leaves(steps), steps)) / steps


def nodes_of_sums(order: Leaves, steps: int) -> Iterator[int]:
    """How many nodes with noise are in the sum, for each step."""
    leaf = order.leaf(0)
    for _ in range(steps):
        leaf = order.following(leaf)
        nodes = leaf.bit_count()
        if isinstance(order, BalancedLeaves):
            nodes -= ((leaf + 1) & -(leaf + 1)).bit_length() - 1  # empty nodes, without noise
        yield nodes


def square_root_rmse(horizon: int) -> float:
    """Return the root mean square error of the square-root factorisation, at ρ = 1/2.

    The best factorisation of the sums into Toeplitz matrices [FHU23]: noise of the root of
    S(T), S(n) the sum of f(k)² for k < n, f(k) = f(k-1) (1 - 1/(2k)), and at step t variance
    S(t) S(T). A yardstick: it keeps all of the noise, O(T).

    Since (k + 1/4) f(k)² = (k+1)² f(k+1)² - k² f(k)², the sum of S(t) over t <= T telescopes to
    (T + 1/4) S(T) - T² f(T)². Up to 2^16 steps S(T) is summed; the rest of a longer sum is taken
    from 1/(π(k + 1/4)), above f(k)² by a part of at most 1/(32 (k-1)²): (k + 1/4) f(k)² rises to
    1/π, by a factor of at most 1 + 1/(16 k³) at each k. That is below 10^-11 in all.

    :param horizon: T, how many steps, at most 2^62
    :return: the error, for items from 0 to 1
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
    """S(n) for each n up to ``steps``."""
    factor, square = 1.0, 0.0
    for step in range(1, steps + 1):
        square += factor * factor
        yield square
        factor *= 1 - 1 / (2 * step)
