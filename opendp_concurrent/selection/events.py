"""The loss of a selection that an event of dp-accounting describes, by its mean and shape.

The event has the mean of the truncated negative binomial distribution, where ``RandomRuns`` has a
scale. A larger scale has a larger mean and a larger loss, so the scale is rounded up.
"""

from __future__ import annotations

from math import inf, ldexp, nextafter

from ..exact.bracket import Bracket, Digits, is_nonnegative
from ..fdp.bounds import UNIT
from ..fdp.function import TradeoffFunction
from ..fdp.registered import SELECTIONS
from ..fdp.session import Session
from .profile import function_selection
from .runs import RandomRuns, most_of, scale_for

_STEPS = 50  # to a scale whose mean is certain to be large enough, each twice as far


def selection(run: Session, mean: float, shape: float) -> TradeoffFunction:
    """Return the loss of the best of a random number of runs, from the losses of one.

    :param mean: of the number of runs, above 1, at most 10^6
    :param shape: η, at least 0
    """
    runs = runs_of_mean(mean, shape)
    return TradeoffFunction.worst() if runs is None else function_selection(runs, run)


def runs_of_mean(mean: float, shape: float) -> RandomRuns | None:
    """Return the law with the least scale found whose mean is at least ``mean``; or None."""
    scale = scale_for(mean, shape)
    for step in range(_STEPS):
        runs = RandomRuns(scale, shape, most_of(scale))

        def excess(real: Digits, runs: RandomRuns = runs) -> Bracket:
            return runs.mean(real) - real(mean)

        if is_nonnegative(excess):
            return runs
        scale = nextafter(scale * (1 + ldexp(UNIT, step)), inf)
    return None


SELECTIONS[:] = [selection]
