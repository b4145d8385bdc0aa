"""Error of a counter, computed before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import scipy

from ..checks import at_most, one_of
from .counter import METHODS, leaves_for
from .dyadic import BalancedLeaves, Leaves

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
    leaves, height = leaves_for(one_of(*METHODS)(method=method), steps)
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
