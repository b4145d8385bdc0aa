"""Why a mechanism that is approximate zCDP only as a whole excludes all others, by exact numbers.

[HSTVVXZ23, Section 4] asks whether approximate zCDP composes concurrently. It does if mechanisms
answer once, or are mixtures that do not depend on the analyst. It does not if an interactive one is
approximate only as a whole, that is, for each analyst with another mixture: below, the parameters
of two mechanisms do not add up. The proof is in docs/proofs/approximate-zcdp.rst.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter

import numpy as np

from ..numerics import lower, upper
from .interactive import FiniteInteractiveMechanism

Law = tuple[Fraction, ...]
_RHO, _DELTA = Fraction(193, 50), Fraction(1, 129)
_X, _Y = (Fraction(1, 128), Fraction(1, 2**25)), (Fraction(1, 16), Fraction(1, 2**19))


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Two mechanisms, an analyst who interleaves their queries, and what it costs.

    :ivar whole: (ρ, δ)-approximate zCDP against each analyst. It first says x (0) or y (1). Then at
        x query 0 shows the dataset (answers 0 and 1) or nothing (2), and query 1 draws a bit
    :ivar plain: ρ-zCDP. One query, for x (0) or y (1), draws a bit
    :ivar rho: ρ of each
    :ivar delta: δ of ``whole``; that of ``plain`` is 0
    :ivar view: the probabilities of what the analyst sees, on each dataset. The analyst reads x or
        y, sends it to ``plain``, and sends the bit at x to ``whole`` as the query
    :ivar least_rho: the view is not (ρ', δ)-approximate zCDP for any ρ' below this; rounded down
    :ivar least_delta: the view is not (2ρ, δ')-approximate zCDP for any δ' below this; rounded down
    """

    whole: FiniteInteractiveMechanism
    plain: FiniteInteractiveMechanism
    rho: Fraction
    delta: Fraction
    view: tuple[Law, Law]
    least_rho: float
    least_delta: float


def approximate_zcdp_counterexample() -> Counterexample:
    """Return two mechanisms whose approximate zCDP does not add up if queries are interleaved.

    If parameters added up, the view would be (7.72, 1/129)-approximate zCDP.

    :example:

    >>> found = oc.verify.approximate_zcdp_counterexample()
    >>> float(found.rho), round(found.least_rho, 4), float(2 * found.rho)
    (3.86, 7.9049, 7.72)
    >>> round(found.least_delta / float(found.delta), 3)
    1.02
    """
    nothing, one = Fraction(0), Fraction(1)
    first, second, bits, laws = [], [], [], []
    for dataset in (0, 1):
        at_x, at_y = _X[dataset], _Y[dataset]
        y = _DELTA if dataset == 0 else (1 - _DELTA) * at_x
        shown = [nothing, nothing, 1 - _DELTA / (1 - y)]
        shown[dataset] = _DELTA / (1 - y)
        first.append([[1 - y, y]])
        queries = [shown, [at_y, 1 - at_y, nothing]]
        second.append([[queries, [[nothing, nothing, one]] * 2]])
        bits.append([[at_x, 1 - at_x], [at_y, 1 - at_y]])
        laws.append(
            (
                *(y * bit for bit in bits[-1][1]),
                *((1 - at_x) * (1 - y) * answer for answer in shown),
                *(at_x * (1 - y) * answer for answer in queries[1][:2]),
            )
        )
    view = laws[0], laws[1]
    limit = Fraction(upper(lambda real: real(nextafter(float(4 * _RHO), 99.0)).exp()))
    left = Fraction(0)  # the largest mass on which D_2 is at most 4ρ is at most 1 less this
    divergence = Fraction(0)
    for weight, cost in _duals(view):
        divergence = max(divergence, weight + cost / (1 - _DELTA))
        if weight > limit:
            left = max(left, 1 + cost / (weight - limit))
    half = _down(divergence)
    return Counterexample(
        FiniteInteractiveMechanism((np.array(first, float), np.array(second, float))),
        FiniteInteractiveMechanism((np.array(bits, float),)),
        _RHO,
        _DELTA,
        view,
        lower(lambda real: real(half).ln() / 2),
        _down(left),
    )


def _duals(view: tuple[Law, Law]) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield weights, and costs so that Σ w²/V_1 >= weight Σ w + cost for all 0 <= w <= V_0.

    Let W_0 and W_1 be the parts of V_0 and V_1 that are left, of mass 1 - δ. If W_0 / (1 - δ) has
    a divergence of order 2 of at most 2ρ, then e^(2ρ) (1 - δ) >= Σ W_0²/W_1 >= Σ W_0²/V_1.
    """
    for power in range(22, 36):  # others are no better here
        for eighths in range(8, 16):
            weight = Fraction(2**power * eighths, 8)
            cost = Fraction(0)
            for one, other in zip(*view, strict=True):
                if other:  # else w must be 0, or the divergence is infinite
                    w = min(one, weight * other / 2)
                    cost += w * w / other - weight * w
            yield weight, cost


def _down(value: Fraction) -> float:
    """Return the value as a double, rounded down."""
    return nextafter(float(value), 0.0)
