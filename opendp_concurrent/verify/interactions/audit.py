"""A lower bound on the ε of a real pipeline, from runs of a scripted analyst."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, log
from typing import Any

import numpy as np
from scipy.stats import beta

from ...arguments import checks
from ...arguments.checked import Probability, Real, checked
from ...errors import InvalidTypeError, InvalidValueError
from ...progress import counted

Event = tuple[float, bool, int]  # threshold, whether scores are at most it, order of the datasets
GRID = np.linspace(0.0, 1.0, 201)  # quantiles of the scores that are tried as thresholds


@dataclass(frozen=True)
class Audit:
    """A confidence bound from the runs of a scripted analyst.

    :ivar epsilon_lower: lower bound on ε at ``delta``, with the stated confidence
    :ivar delta: at which ε is bounded
    :ivar confidence: probability that the bound holds, for any mechanism
    :ivar runs: number of runs on each dataset
    :ivar event: the event that was counted: scores at least (or at most) a threshold
    """

    epsilon_lower: float
    delta: float
    confidence: float
    runs: int
    event: str

    @checked
    def violates(self, epsilon: Real) -> bool:
        """Whether the runs refute a promise of ``epsilon``."""
        return self.epsilon_lower > epsilon


@checked(
    measurement=checks.function,
    strategy=checks.function,
    n=checks.at_most(10**7, "each run is stored"),
)
def audit(
    measurement: Callable[[Any], Any],
    x: Any,
    x_prime: Any,
    strategy: Callable[[Any], float],
    n: int,
    *,
    delta: Probability = 0.0,
    confidence: Probability = 1 - 1e-9,
    progress: bool = False,
) -> Audit:
    """Run a scripted analyst on two neighbouring datasets, and bound ε from below.

    One half of the runs chooses an event, score >= t or score <= t, and an order of the datasets.
    The other half counts the event. The limits of Clopper and Pearson for its two probabilities
    give ε >= log((P - δ)/Q), with probability at least ``confidence`` if the runs are independent.
    The runs alternate between the datasets. The noise of OpenDP cannot be seeded; seed all other
    randomness of the strategy. Most events with a probability below 0.5 % are not tried.

    :param measurement: a measurement, filter or compositor, called with a dataset
    :param x: a dataset
    :param x_prime: a neighbouring dataset
    :param strategy: maps the result of the measurement, an answer or a queryable, to a score. A
        score is a number, possibly infinite; it is larger if ``x`` is more likely
    :param n: number of runs on each dataset, at least 4
    :param delta: at which ε is bounded
    :param confidence: of the bound
    :param progress: show a bar, if tqdm is installed (extra ``progress``)
    :return: the bound; 0 if the runs show nothing

    :example:

    >>> laplace = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    >>> found = oc.verify.audit(laplace, x=1, x_prime=0, strategy=float, n=2_000)
    >>> found.violates(1.0)
    False
    """
    if n < 4:
        raise InvalidValueError(f"n ({n}) must be at least 4: half of the runs choose an event")
    if not confidence < 1.0:
        raise InvalidValueError(f"confidence ({confidence}) must be below 1")
    runs = [
        [_score(strategy(measurement(data))) for data in (x, x_prime)]
        for _ in counted(range(n), progress, n)
    ]
    scores = [np.array(column) for column in zip(*runs, strict=True)]
    if any(np.isnan(one).any() for one in scores):
        raise InvalidValueError("strategy must return numbers, found nan")
    first, second = [[one[: n // 2] for one in scores], [one[n // 2 :] for one in scores]]
    ranked = np.sort(np.concatenate(first))
    thresholds = np.unique(ranked[(GRID * (len(ranked) - 1)).astype(int)]).tolist()
    event: Event = max(
        product(thresholds, (False, True), (0, 1)),
        key=lambda event: _bound(first, event, delta, 1 - confidence),
    )
    bound = _bound(second, event, delta, 1 - confidence)
    threshold, below, order = event
    likelier = ("x", "x_prime")[order]
    words = f"score {'<=' if below else '>='} {threshold:g}, more likely on {likelier}"
    return Audit(max(0.0, bound), delta, confidence, n, words)


def _score(value: Any) -> float:
    try:
        return float(value)
    except Exception as error:
        raise InvalidTypeError(
            f"strategy must return a number for each result of measurement, found "
            f"{type(value).__name__}"
        ) from error


def _bound(scores: Sequence[Any], event: Event, delta: float, failure: float) -> float:
    """Lower bound on log((P - δ)/Q). Each of the two limits fails with half of ``failure``."""
    (threshold, below, order), runs = event, len(scores[0])
    hits, others = (
        int(np.count_nonzero(one <= threshold if below else one >= threshold))
        for one in (scores[order], scores[1 - order])
    )
    low = float(beta.ppf(failure / 2, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.isf(failure / 2, others + 1, runs - others)) if others < runs else 1.0
    return log((low - delta) / high) if low > delta else -inf
