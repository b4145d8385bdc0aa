"""The privacy loss of a sparse vector.

A threshold T gets noise ρ of scale s. Each query's answer q gets fresh noise ν of scale s', and is
above if q + ν >= T + ρ, at most c times. Answers are whole steps, at most D apart on neighbours.
ρ and ν are whole steps too, with probabilities p(k) proportional to exp(-|k|/scale). The noise has
no upper bound and sums of integers are exact, so the proofs hold for the code without rounding.

**Threshold noised once** [LSL17, Algorithm 7]. Let a be outcomes, at most c of them above, F(ρ)
their probability on the data given ρ, F'(ρ) that on a neighbour, whose answers are q'. Below,
q + ν < T + ρ gives q' + ν < T + ρ + D. Above, q + ν >= T + ρ gives q' + (ν + 2D) >= T + ρ + D, and
a shift of ν by 2D costs a factor e^η, η = 2D/s'. So F(ρ) <= e^(cη) F'(ρ + D).

* Pure DP: the shift of ρ costs a factor e^(D/s), so D/s + c η.
* Rényi DP [ZW20, Theorem 8]: the divergence of the shift of ρ by D, and c η. Proof: x^α y^(1-α) is
  convex and homogeneous, so P(a)^α Q(a)^(1-α) <= sum over ρ of p(ρ)^α p(ρ+D)^(1-α) F^α F'^(1-α),
  the last with F = F(ρ) and F' = F'(ρ+D); F^α F'^(1-α) = F (F/F')^(α-1) <= F e^((α-1)cη); and the
  sum of F over all a is 1.

**Monotone queries**: η = Δ/s' [LSL17, Theorem 4]. For two neighbours let u be the largest rise of
any answer, and v the largest fall, in whole steps, with u + v <= Δ. All may rise, or all may fall,
or u records were added and v removed. Below, q' + ν < T + ρ + u; above, q' + (ν + u + v) >=
T + ρ + u. So ρ is shifted by u <= D, and ν by at most Δ. The neighbours fix u and v, whatever the
queries. Integers that rise and fall by at most D together have Δ = D. If numbers are rounded down
to steps, a rise of r and a fall of f become at most ceil(r) and ceil(f): Δ = D + 1.

**Bounded range** [Derived]. So the log of the ratio of F to F' is between -(v/s + cη) and u/s + cη:
in an interval of length r = Δ/s + 2cη, for all outcomes. Then the Rényi divergence is at most
α r²/8, which is r²/8-zCDP. Proof: with L the log ratio, K(t) = log E e^(tL) is 0 at t = 0 and at
t = 1, and K'' is the variance of L under a tilted law, at most r²/4.

**Directions that outcomes decide**, as in an alarm: on each sequence of outcomes all answers move
by 0 to D, either up or down, and they do not differ before the direction is chosen. The bounds of
pure DP and of the range, with Δ = D, hold given these outcomes, whose law is the same for both
neighbours, so they hold. The bound of [ZW20] shifts ρ before: it keeps η = 2D/s'.

**One-sided noise** [Derived]. All shifts of ρ and ν are upward, in both directions of the
neighbours. So noise on 0, 1, 2, ... with probabilities proportional to exp(-k/scale) has the same
ε, at half of the variance. The sum over the ρ that are reached is at most that over all. Its Rényi
divergence is all of its ε, so under Rényi DP the threshold keeps two-sided noise.

**Threshold refreshed** after each answer above [DR14, Algorithm 2]: c rounds of the case c = 1, in
sequence, composed under the output measure.

**Numbers released** for answers above: c releases with noise of their own. They and the comparisons
are children of one concurrent compositor. Their losses compose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opendp.domains import atom_domain
from opendp.mod import Measure

from ..exact.bracket import upper
from ..measures.conversions.laplace import laplace_to_renyi
from ..measures.conversions.pure_to_renyi import pure_to_renyi
from ..measures.conversions.pure_to_zcdp import pure_to_zcdp
from ..measures.renyi_divergence import RENYI_DIVERGENCE
from ..measures.zero_concentrated_divergence import ZERO_CONCENTRATED_DIVERGENCE
from ..types import Loss
from .certify import best_known
from .composed import composed, from_pure, laplace_loss, total
from .grid import grid_step
from .noise import ATOM, laplace_epsilon, one_sided_center


@dataclass(frozen=True, slots=True)
class SparseVectorNoise:
    """Scales, in steps of a grid of integers, and how they are used.

    :ivar threshold: scale of the threshold's noise
    :ivar query: scale of each query's noise
    :ivar answer: scale of each released number's noise; None if no numbers are released
    :ivar hits: largest number of answers above
    :ivar refresh: whether the threshold gets fresh noise after each answer above
    :ivar one_sided_threshold: whether the threshold's noise is never negative
    :ivar one_sided_query: whether each query's noise is never negative
    """

    threshold: float
    query: float
    answer: float | None
    hits: int
    refresh: bool
    one_sided_threshold: bool = False
    one_sided_query: bool = False

    @property
    def center(self) -> int:
        """The steps by which the threshold is raised, so that the noises' sum has about mean 0."""
        threshold = one_sided_center(self.threshold) if self.one_sided_threshold else 0
        return (one_sided_center(self.query) if self.one_sided_query else 0) - threshold

    def loss(
        self,
        sensitivity: int,
        measure: Measure,
        *,
        spread: int | None = None,
        decided: bool = False,
    ) -> Loss:
        """Privacy loss if answers on neighbours are at most ``sensitivity`` steps apart.

        :param spread: Δ, the largest rise plus the largest fall, in steps; at most twice the
            sensitivity
        :param decided: whether outcomes may decide which of the two answers is larger
        """
        above = 2 * sensitivity if spread is None else min(spread, 2 * sensitivity)
        parts = [self._comparisons(sensitivity, above, measure, decided)]
        if self.answer is not None:
            parts.append((laplace_loss(self.answer, sensitivity, measure), self.hits))
        return composed(measure, parts)

    def _comparisons(
        self, sensitivity: int, above: int, measure: Measure, decided: bool
    ) -> tuple[Any, int]:
        threshold = laplace_epsilon(self.threshold, sensitivity)
        hits, rounds = (1, self.hits) if self.refresh else (self.hits, 1)
        queries = total([(laplace_epsilon(self.query, above), hits)])
        epsilon = total([(threshold, 1), (queries, 1)])
        moved = laplace_epsilon(self.threshold, above)
        rho = min(pure_to_zcdp(epsilon), range_to_zcdp(total([(moved, 1), (queries, 2)])))
        step = grid_step(atom_domain(T=ATOM), self.threshold, None)

        def renyi(alpha: float) -> float:
            shifted = total([(laplace_to_renyi(threshold, alpha, step), 1), (queries, 1)])
            line = upper(lambda real: real(rho) * real(alpha))
            return min(pure_to_renyi(epsilon, alpha), shifted, line)

        if self.one_sided_threshold or not reads_curves(measure):
            # a shift of one-sided noise has all of its ε
            exact = best_known(measure, {ZERO_CONCENTRATED_DIVERGENCE: lambda: lambda _: rho})
        else:
            if decided:
                queries = total([(laplace_epsilon(self.query, 2 * sensitivity), hits)])
            exact = best_known(measure, {RENYI_DIVERGENCE: lambda: lambda _: renyi})
        return from_pure(epsilon, measure) if exact is None else exact(epsilon), rounds


def range_to_zcdp(length: float) -> float:
    """Return r²/8, rounded up, for log ratios in an interval of length r."""
    return upper(lambda real: real(length) * real(length) / 8)


def reads_curves(measure: Measure) -> bool:
    """Whether the Rényi curve of the threshold's two-sided noise counts under the measure."""
    return best_known(measure, {RENYI_DIVERGENCE: lambda: lambda loss: loss}) is not None
