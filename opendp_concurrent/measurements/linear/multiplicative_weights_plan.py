"""The parameters of private multiplicative weights, and the error that they guarantee.

A synthetic histogram n p answers linear queries q with values in [0, 1]. Guess and check finds its
bad answers. Suppose that all noise stays in bounds: an answer that is confirmed is within
α = T + t, an answer that is released was off by at least g = T - t, and its noise is below g. Then
an update goes in the right direction: p' ∝ p exp(-η r), r = q or 1 - q, <r, p> - <r, x> >= d = g/n,
with x the true histogram over n. By Hoeffding's lemma log <p, exp(-η r)> <= -η <r, p> + η²/8, so
the divergence of x from p falls by at least η d - η²/8, which is 2d² for η = 4d. It is at most
log m at the start, m the number of cells, and never negative. So there are at most log m / (2 d²)
updates, and at most one per query. After [HR10] and [DR14, Section 4.2], whose Lemma 4.9 has
η d - η².

Noise: the threshold's noise (c draws if refreshed) is at most t - t', and each query's noise is at
most t' in the direction of an error. Releases' noise is below g. Each fails with probability β/3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

from ...errors import InvalidValueError
from ...measures import CompositionMeasure
from ...measures.noise import Noise
from ...types import Loss
from ..composed import composed, laplace_loss
from ..sparse_vector_loss import SparseVectorNoise
from ..steps import Steps

LEAST = 1e-301  # logarithms of numbers that it divides are doubles
SHARES = (0.15, 0.2, 0.25, 1 / 3)  # of t in T
TAIL = 1 - 1e-6  # discrete noise on a fine grid has tails above Laplace's by a factor below 1/TAIL


@dataclass(frozen=True, slots=True)
class MultiplicativeWeightsPlan:
    """The parameters, and the error that they guarantee.

    :ivar error: α: with probability at least 1 - β every answer is within this, in records
    :ivar tolerance: T: largest error of the synthetic histogram before it is updated
    :ivar max_updates: c: largest number of updates
    :ivar learning_rate: η
    :ivar scale: scale of the tolerance's noise
    :ivar query_scale: scale of each check's noise
    :ivar answer_scale: scale of each release's noise
    :ivar refresh: whether the tolerance gets fresh noise after each release
    """

    error: float
    tolerance: float
    max_updates: int
    learning_rate: float
    scale: float
    query_scale: float
    answer_scale: float
    refresh: bool

    def loss(self, sensitivity: float, measure: CompositionMeasure) -> Loss:
        """Return the privacy loss, for queries of this sensitivity."""
        steps, opendp = Steps.for_sensitivity(sensitivity), measure.opendp()
        noise = SparseVectorNoise(
            threshold=steps.scale(scale=self.scale),
            query=steps.scale(query_scale=self.query_scale),
            answer=None,
            hits=self.max_updates,
            refresh=self.refresh,
        )
        shift = steps.up(sensitivity)
        release = laplace_loss(steps.scale(answer_scale=self.answer_scale), shift, opendp)
        return composed(opendp, [(noise.loss(shift, opendp), 1), (release, self.max_updates)])


def plan(
    measure: CompositionMeasure,
    sensitivity: float,
    d_out: Loss,
    *,
    cells: int,
    size: int,
    queries: int,
    beta: float,
) -> MultiplicativeWeightsPlan:
    """Return the parameters with the least error, among those with a loss of at most ``d_out``."""
    refresh = measure.noise is not Noise.LAPLACE  # pure losses add up, however they are split

    def fits(candidate: MultiplicativeWeightsPlan) -> bool:
        return measure.at_most(candidate.loss(sensitivity, measure), d_out)

    best: MultiplicativeWeightsPlan | None = None
    for share in SHARES:

        def at(error: float, share: float = share) -> MultiplicativeWeightsPlan:
            return _at(error, share, refresh, cells, size, queries, beta)

        low, high = 0.0, float(size) if best is None else best.error
        if not fits(at(high)):
            continue
        while high - low > 1e-4 * high:
            middle = (low + high) / 2 if low else high / 4
            if middle < sensitivity:  # below the noise that any release needs
                break
            low, high = (low, middle) if fits(at(middle)) else (middle, high)
        best = at(high)
    if best is None:
        raise InvalidValueError(
            f"d_out ({d_out}) must be larger for {size} records, {cells} cells and "
            f"{queries} queries: no error below the number of records can be guaranteed"
        )
    return best


def _at(
    error: float,
    share: float,
    refresh: bool,
    cells: int,
    size: int,
    queries: int,
    beta: float,
) -> MultiplicativeWeightsPlan:
    tolerance = error / (1 + share)
    gap = (1 - share) * tolerance
    distance = gap / size
    updates = max(1, min(queries, ceil(log(cells) / (2 * distance**2))))
    third = TAIL * beta / 3
    if not third > LEAST:
        raise InvalidValueError(f"beta ({beta}) must be at least 1e-300")
    threshold_tail = log((updates if refresh else 1) / third)
    query_tail = log(max(2.0, queries / (2 * third)))
    ratio = sqrt(2 * (1 if refresh else updates) * threshold_tail / query_tail)
    scale = share * tolerance / (threshold_tail + ratio * query_tail)
    return MultiplicativeWeightsPlan(
        error=error,
        tolerance=tolerance,
        max_updates=updates,
        learning_rate=4 * distance,
        scale=scale,
        query_scale=ratio * scale,
        answer_scale=gap / log(updates / third),
        refresh=refresh,
    )
