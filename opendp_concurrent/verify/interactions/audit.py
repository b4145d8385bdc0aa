"""A lower bound on ε of a real pipeline, from runs of a scripted analyst."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log
from typing import Any

import numpy as np
from scipy.stats import beta

from ... import checks
from ...checks import checked, real
from ...errors import InvalidTypeError, InvalidValueError

GRID = np.linspace(0.0, 1.0, 201)  # quantiles of the scores that are tried as thresholds


@dataclass(frozen=True)
class Audit:
    """What the runs show.

    :ivar epsilon_lower: with the stated confidence ε is at least this, at ``delta``
    :ivar delta: at which
    :ivar confidence: probability that ``epsilon_lower`` holds, whatever the mechanism
    :ivar runs: on each dataset
    :ivar event: the event that was counted: scores at least (or at most) a threshold
    """

    epsilon_lower: float
    delta: float
    confidence: float
    runs: int
    event: str

    @checked(epsilon=real)
    def violates(self, epsilon: float) -> bool:
        """Whether the runs refute a promise of ``epsilon``."""
        return self.epsilon_lower > epsilon


def audit(
    measurement: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    strategy: Callable[[Any], float],
    n: int,
    *,
    delta: float = 0.0,
    confidence: float = 1 - 1e-9,
) -> Audit:
    """Run a scripted analyst on two neighbours, and bound ε from below.

    Half of the runs choose an event, of the form score >= t or score <= t, in either order of the
    datasets; the other half count it. Clopper and Pearson's limits for the two probabilities give
    ε >= log((P - δ)/Q) with probability ``confidence`` at least, if runs are independent. They
    alternate between the datasets. The noise is OpenDP's, and cannot be seeded; whatever else the
    strategy does at random should be. Events rarer than half a percent are mostly not tried.

    :param measurement: called with a dataset; a measurement, filter or compositor
    :param x: a dataset
    :param x_prime: a neighbouring one
    :param strategy: takes what the measurement returns, an answer or a queryable, and returns a
        score: a number, possibly infinite, larger the more it looks like ``x``
    :param n: runs on each dataset, at least 4
    :param delta: at which ε is bounded
    :param confidence: of the bound
    :return: the bound; 0 where the runs show nothing
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent import verify
    >>> laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    >>> found = verify.audit(laplace, x=1, x_prime=0, strategy=float, n=2_000)
    >>> found.violates(1.0)
    False
    """
    for name, value in (("measurement", measurement), ("strategy", strategy)):
        checks.function(**{name: value})
    if checks.at_most(10**7, "each run is kept")(n=n) < 4:
        raise InvalidValueError(f"n ({n}) must be at least 4: half of the runs choose an event")
    at_delta = checks.probability(delta=delta)
    sure = checks.probability(confidence=confidence)
    if not sure < 1.0:
        raise InvalidValueError(f"confidence ({confidence}) must be below 1")
    runs = [[_score(strategy(measurement(data))) for data in (x, x_prime)] for _ in range(n)]
    scores = [np.array(column) for column in zip(*runs, strict=True)]
    if any(np.isnan(one).any() for one in scores):
        raise InvalidValueError("strategy must return numbers, found nan")
    half = n // 2
    best, event = -inf, (False, 0.0, 0)
    ranked = np.sort(np.concatenate([one[:half] for one in scores]))
    for threshold in np.unique(ranked[(GRID * (len(ranked) - 1)).astype(int)]):
        for below in (False, True):
            hits = [_hits(s[:half], threshold, below) for s in scores]
            for order in (0, 1):
                bound = _bound(hits[order], hits[1 - order], half, at_delta, 1 - sure)
                if bound > best:
                    best, event = bound, (below, float(threshold), order)
    below, threshold, order = event
    hits = [_hits(s[half:], threshold, below) for s in scores]
    bound = _bound(hits[order], hits[1 - order], n - half, at_delta, 1 - sure)
    likelier = ("x", "x_prime")[order]
    words = f"score {'<=' if below else '>='} {threshold:g}, more likely on {likelier}"
    return Audit(max(0.0, bound), at_delta, sure, n, words)


def _score(value: Any) -> float:
    try:
        return float(value)
    except Exception as error:
        raise InvalidTypeError(
            f"what strategy makes of an answer of measurement must be a number, found "
            f"{type(value).__name__}"
        ) from error


def _hits(scores: Any, threshold: float, below: bool) -> int:
    return int(np.count_nonzero(scores <= threshold if below else scores >= threshold))


def _bound(hits: int, others: int, runs: int, delta: float, failure: float) -> float:
    """Lower bound on log((P - δ)/Q); each of the two limits fails with half of ``failure``."""
    low = float(beta.ppf(failure / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.isf(failure / 2, others + 1, runs - others)) if others < runs else 1.0
    return log((low - delta) / high) if low > delta else -inf
