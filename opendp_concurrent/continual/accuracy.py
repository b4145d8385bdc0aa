"""How large the error of a counter is, before it is run."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from .. import checks
from ..errors import InvalidValueError
from .counter import leaves_for
from .dyadic import BalancedLeaves, Leaves

MOST_STEPS = 2**24


def counter_nodes(horizon: int, method: str = "tree") -> tuple[int, float]:
    """Return in how many nodes an item is, and how many nodes a sum has on average.

    With noise of standard deviation σ for a node, the root mean square error over the steps from 1
    to the horizon is σ times the root of the second. For zCDP σ is the root of the first over 2ρ,
    for items from 0 to 1: so the error is the root of their product over 2ρ.

    :param horizon: T, how many steps
    :param method: ``"tree"`` or ``"smooth"``
    :return: the height, and the average over all steps
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import opendp_concurrent as oc
    >>> oc.counter_nodes(1023)
    (10, 5.004887585532747)
    >>> height, average = oc.counter_nodes(1000, "smooth")
    >>> height
    7
    """
    steps = checks.count(horizon=horizon)
    leaves, height = leaves_for(method, steps)
    if not steps <= MOST_STEPS:
        raise InvalidValueError(
            f"horizon ({horizon}) must be at most 2**24: each step is looked at; pass a smaller one"
        )
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

    :param horizon: T, how many steps
    :return: the error, for items from 0 to 1
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import opendp_concurrent as oc
    >>> round(oc.square_root_rmse(1_000_000), 4)
    5.3023
    """
    steps = checks.count(horizon=horizon)
    total = last = 0.0
    for last in square_root_sums(steps):
        total += last
    return sqrt(total / steps * last)


def square_root_sums(steps: int) -> Iterator[float]:
    """S(n) for each n up to ``steps``."""
    factor, square = 1.0, 0.0
    for step in range(1, steps + 1):
        square += factor * factor
        yield square
        factor *= 1 - 1 / (2 * step)
