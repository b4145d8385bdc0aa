"""How far noisy sums of a stream can be from the exact ones, with confidence.

A noisy sum is the exact one plus Σ a_i X_i, with independent noise X_i on the integers or a finer
grid. For a scale of s, E exp(t X) is at most exp(t² s²/2) for discrete Gaussian noise [CKS20], and
at most 1/(1 - t² s²) for discrete Laplace noise: it is (cosh(1/s) - 1)/(cosh(1/s) - cosh(t)), and
(cosh(x) - 1)/x² increases. So the tails are those of noise on the reals. Sums at different steps
share noise, so the union bound is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, nextafter, sqrt

import numpy as np

from ..measurements.linear.tails import LaplaceTails, Shape
from ..measurements.noise_accuracy import UP
from ..queryables.accuracy import Accuracy
from .digits import Digits
from .epochs import epochs
from .factors.buffered import BufferedFactor
from .factors.factor_error import parameters, prefix_square, window_square
from .factors.power import PowerFactor
from .factors.power_error import row_square
from .factors.power_error import window_square as power_window


@dataclass(frozen=True, slots=True)
class Spread:
    """The noise in any one of the sums that are looked at.

    :ivar square: bound on the sum of a_i² s_i² over the noises in one sum
    :ivar top: bound on the largest |a_i| s_i
    :ivar offset: bound on the error of rounding
    """

    square: float
    top: float
    offset: float = 0.0


SpreadOf = Callable[[int], Spread]  # from the number of steps


def accuracy_of_steps(
    spread: SpreadOf | None, laplace: bool, scale: float, horizon: int | None, parts: int = 1
) -> Accuracy | None:
    """Return the accuracy of a counter at its first steps; None if no bound is known.

    :param horizon: largest number of steps
    :param parts: sums at each step
    """
    if spread is None:
        return None

    def error(beta: float, answers: int) -> float:
        answers = answers if horizon is None else min(answers, horizon)
        found = spread(answers)
        if laplace:
            norms = np.full(1, sqrt(found.square))
            noise = LaplaceTails().largest(Shape(norms, found.top, answers * parts), beta)
        else:
            noise = sqrt(found.square * 2 * log(2 * answers * parts / beta)) * UP
        return noise + found.offset

    return Accuracy("Laplace" if laplace else "Gaussian", scale, error)


def of_nodes(scale: float, squares: Callable[[int], float], most: float = 1.0) -> SpreadOf:
    """Return the spread of sums of nodes' noises, each taken at most ``most`` times.

    :param squares: from the number of steps to a bound on the sum of squares of how often
    """
    return lambda answers: Spread(scale * scale * squares(answers), most * scale)


def of_doubling(scale: float, laplace: bool) -> SpreadOf:
    """Return the spread of epochs, of as many totals and at most as many nodes.

    See :class:`.DoublingPrefix`.
    """

    def spread(answers: int) -> Spread:
        epochs = (answers + 1).bit_length() - 1
        total, node = (2.0, 2.0 * epochs) if laplace else (sqrt(2.0), sqrt(2.0 * epochs))
        square = scale * scale * epochs * (total * total + node * node) * UP
        return Spread(square, scale * max(total, node) * UP)

    return spread


def of_digits(digits: Digits) -> float:
    """Return the largest number of nodes in a sum."""
    return digits.height * (digits.base // 2)


def of_epochs(scale: float) -> SpreadOf:
    """Return the spread of epochs: nodes of the last sums, and as many as one of the open one has.

    See :class:`.EpochsPrefix`. A sum at any step has the largest of these, or less.
    """

    def spread(answers: int) -> Spread:
        before = square = top = 0.0
        for one, count in epochs(answers):
            widened = nextafter(one.digits.height * scale, inf)
            nodes = min(count, of_digits(one.digits))  # a node has a step or more
            square = max(square, before + widened * widened * nodes)
            before += widened * widened * one.digits.nodes(one.length)
            top = max(top, widened)
        return Spread(square * UP, top)

    return spread


def of_factor(
    factor: BufferedFactor | PowerFactor, scale: float, bits: int, window: int | None = None
) -> SpreadOf:
    """Return the spread of a factorisation: rows of A C^-1 grow with the steps.

    Those of a window grow to a limit.
    """

    def spread(answers: int) -> Spread:
        square = squared_row(factor, answers, window) * (1 + 2.0**-20)
        sums = 1 if window is None else 2
        return Spread(scale * scale * square, scale, sums * rounded(square, answers, bits))

    return spread


def squared_row(
    factor: BufferedFactor | PowerFactor, steps: int, window: int | None = None
) -> float:
    """Return the squared row norm of sums of all steps, or late in a stream of the last W."""
    if isinstance(factor, PowerFactor):
        return row_square(factor, steps) if window is None else power_window(factor, window)
    if window is None:
        return prefix_square(*parameters(factor.buffers), steps)
    return window_square(*parameters(factor.buffers), window)


def rounded(square: float, answers: int, bits: int) -> float:
    """Bound the errors of rounding.

    The encoder and the decoder are each off by less than 17/16 steps of the grid at each step,
    which the decoder's row sums up: see ``factors/buffered.py``. The sum is rounded to an integer.
    """
    return 1.0 + 3 * sqrt(answers * square) * 2.0**-bits
