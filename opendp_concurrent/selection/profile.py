"""The privacy profile of a private selection, from the profile of one run.

Let d(e) bound the δ of one run at e, in both directions, and let B >= 1 be such that B - 1 is at
least d(log B) (1-γ)/γ. In the words of ``loss.py``: 1-q and 1-q' are probabilities of one event, so
1-q' <= B (1-q) + d(log B), and p' <= B p. So g(q) <= B^(1+η) g(q'), also with a largest number of
runs, and g(q) <= E[K]. The δ of the selection at ε is at most E[K] d(ε - (1+η) log B), for every
real ε. After [KRW24]; the proof is in ``docs/proofs/private-selection.rst``.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, nextafter

import numpy as np

from ..exact.bracket import Bracket, Digits, is_nonnegative, upper
from ..exact.rounding import least_double
from ..fdp.function import TradeoffFunction
from ..fdp.session import Session
from .runs import RandomRuns, mean_of

_READ, _BEFORE = 600, 8  # points from (1+η) log B on, and before: where the bound is read
_LAST = 1e-40  # δ at the last point
_WIDTH = 1e-4  # of the bounds on δ
_LARGEST = 650.0  # a larger ε is not read


def approximate_selection(runs: RandomRuns, loss: tuple[float, float]) -> tuple[float, float]:
    """Return (ε, δ) of the selection from that of a run, rounded up."""
    epsilon, delta = loss
    if epsilon == inf or delta >= 1.0 or loss == (0.0, 0.0):
        return loss
    more = _more(runs, TradeoffFunction.approximate(epsilon, delta))
    return upper(lambda real: real(epsilon) + real(more)), _times_mean(runs, delta)


@lru_cache(maxsize=256)
def function_selection(runs: RandomRuns, function: TradeoffFunction | Session) -> TradeoffFunction:
    """Return a function that bounds the selection, from that of a run, or its two directions."""
    if function.delta(0.0) == 0.0:
        return TradeoffFunction.identity()
    more = _more(runs, function)
    if not more < _LARGEST:
        return TradeoffFunction.worst()
    never_less = 1.001 * float(function.delta(_LARGEST))  # where some loss is infinite
    last = function.epsilon(max(_LAST / mean_of(runs.scale, runs.eta), min(1.0, never_less)))
    last = min(last, _LARGEST - more)
    read = np.concatenate(
        [np.linspace(-more, 0.0, _BEFORE, endpoint=False), np.linspace(0.0, max(last, 0.0), _READ)]
    )
    upper_ends = function.delta_bounds(read, _WIDTH).upper
    points: list[float] = []
    deltas: list[float] = []
    for one, run in zip(read.tolist(), upper_ends.tolist(), strict=True):
        at = nextafter(one + more, inf)  # above the sum, where δ is at most that of ``one``
        if not points or at > points[-1]:
            delta = _times_mean(runs, run)
            points.append(at)
            deltas.append(min([delta, *deltas[-1:]]))
    return TradeoffFunction.from_profile(points, deltas)


def _more(runs: RandomRuns, function: TradeoffFunction | Session) -> float:
    """Return (1+η) log B, rounded up."""

    def holds(loss: float) -> bool:
        delta = float(function.delta(loss))

        def excess(real: Digits) -> Bracket:
            gamma = runs.gamma(real)
            return (real(loss).exp() - 1) * gamma - (1 - gamma) * real(delta)

        return is_nonnegative(excess)

    found = least_double(holds)
    return upper(lambda real: (1 + real(runs.eta)) * real(found)) if found < inf else inf


def _times_mean(runs: RandomRuns, delta: float) -> float:
    return min(1.0, upper(lambda real: runs.mean(real) * real(delta)))
