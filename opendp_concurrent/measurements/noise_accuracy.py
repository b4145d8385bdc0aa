"""The error of one noisy number: quantiles of noise on a grid.

On the grid of multiples of a step, Laplace noise of scale s steps exceeds m >= 1 steps to either
side with probability 2 exp(-m/s) / (1 + exp(-1/s)), at least m that is. For Gaussian noise it is at
most 2 Φ(-(m - 1)/s), see ``gaussian.py``. On the finest grid of floats these are the tails of the
distributions on the reals, up to rounding. OpenDP rounds a float to the grid first, by at most half
a step.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, inf, log, log1p

import scipy
from opendp.mod import Domain

from ..queryables.accuracy import Accuracy, of_one
from .grid import FINEST, atom_type, is_vector, known_size
from .steps import Steps

UP = 1 + 2.0**-30  # above the errors of the quantiles in doubles


def laplace_accuracy(input_domain: Domain, scale: float, k: int | None) -> Accuracy:
    """Return the accuracy of Laplace noise."""
    return _accuracy(input_domain, "Laplace", scale, k, lambda p: log(1 / p), _laplace_steps)


def _laplace_steps(failing: float, scale: float) -> int:
    """Return the least m with P(|noise| >= m + 1) <= failing, for a scale in steps."""
    tail = log(2 / failing) - log1p(exp(-1 / scale))
    return max(0, ceil(scale * tail * UP) - 1)


def released(scale: float, steps: Steps, beta: float, answers: int) -> float:
    """Return the error of so many answers that are rounded down to steps and get Laplace noise.

    :param scale: in steps
    """
    largest = of_one(lambda failing: _laplace_steps(failing, scale))(beta, answers)
    return steps.value(int(largest) + (0 if steps.whole else 1))


def gaussian_accuracy(input_domain: Domain, scale: float, k: int | None) -> Accuracy:
    """Return the accuracy of Gaussian noise."""

    def quantile(failing: float) -> float:
        return -float(scipy.special.ndtri_exp(log(failing) - log(2)))

    def least(failing: float, steps: float) -> int:
        return ceil(steps * quantile(failing) * UP) if failing < 1.0 else 0

    return _accuracy(input_domain, "Gaussian", scale, k, quantile, least)


def _accuracy(
    input_domain: Domain,
    noise: str,
    scale: float,
    k: int | None,
    quantile: Callable[[float], float],
    least: Callable[[float, float], int],
) -> Accuracy:
    finest = FINEST.get(atom_type(input_domain))

    def one(failing: float) -> float:
        if scale == 0.0:
            return 0.0 if finest is None else _step(k)
        if finest is None:
            return float(least(failing, scale))
        step = _step(k)
        if step == 0.0:
            return scale * quantile(failing) * UP
        steps = scale / step
        return (least(failing, steps) + 1) * step if steps < inf else inf

    answers = known_size(input_domain) if is_vector(input_domain) else 1
    return Accuracy(noise, scale, of_one(one), answers)


def _step(k: int | None) -> float:
    return 0.0 if k is None else 2.0**k
