"""Convert a measurement's guarantee from one measure to another.

The theorems are with the measures: each has those that lead out of it. Here is the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendp.mod import Measure, Measurement, assert_features

from .. import checks
from ..checks import checked, optional, probability
from ..checks import orders as orders_of
from ..errors import InvalidTypeError, UnsupportedMeasureError
from ..measures import convertible_kinds, convertible_measure
from ..measures.conversion import Conversion, Ends
from ..measures.kinds import ZCDP
from ..queryables.mechanism import ConcurrentMeasurement
from . import guards
from .recertify import recertify


@checked(
    measurement=guards.measurement,
    to_measure=guards.measure,
    delta=optional(probability),
    orders=optional(orders_of),
)
def cast(
    measurement: Measurement,
    to_measure: Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> ConcurrentMeasurement:
    """Return the measurement with its guarantee as one under another measure.

    Finds the tightest conversion that is known, or says that there is none:

    * pure DP to zCDP (ε tanh(ε/2) [Ste24], where OpenDP has ε²/2), to Rényi DP and one of its
      orders (randomized response [BS16]), to tCDP, to Gaussian DP, to (ε, δ) [KOV15];
    * zCDP to Rényi DP, to one order, to tCDP, to (ε, δ) [CKS20, Proposition 12];
    * Gaussian DP to zCDP, to (ε, δ), exactly [DRS22, Corollary 1];
    * Rényi DP to one of its orders, to (ε, δ) by the best of ``orders``;
    * one order, and tCDP, to (ε, δ) [CKS20, Proposition 12]; one order to a lower one; tCDP to a
      smaller ω, and to one order below ω;
    * (ε, δ) to itself with a larger δ [KOV15];
    * all of these, and privacy profiles (``dp.smoothed_max_divergence()``), to f-DP: exactly for
      pure, (ε, δ) and Gaussian DP, else the chords of a profile at some 300 points;
    * f-DP to (ε, δ), exactly or by certified bounds; to Gaussian DP, if the loss is bounded.

    A target of ``dp.smoothed_max_divergence()`` gives a privacy profile, on which OpenDP's
    :func:`~opendp.combinators.make_fix_delta` works. To cast before composing is valid and may
    lose: compose under the tighter measure, and cast the compositor.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: any measurement, interactive or not
    :param to_measure: the measure that is wanted
    :param delta: for a target of (ε, δ): the δ
    :param orders: for a Rényi curve: the orders at which it is read
    :return: a measurement with the same function
    :raises UnsupportedMeasureError: if there is no conversion, naming the reason
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    >>> oc.c.cast(count, dp.zero_concentrated_divergence()).map(1)
    0.4621171572600098
    >>> dp.c.make_pureDP_to_zCDP(count).map(1)
    0.5
    >>> oc.c.cast(count, oc.fixed_renyi_divergence(alpha=4.0)).map(1)
    0.8958832596451839
    """
    assert_features("contrib", "honest-but-curious")
    convert = conversion(measurement.output_measure, to_measure, delta=delta, orders=orders)
    return recertify(measurement, to_measure, convert)


def conversion(
    source: Measure,
    target: Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> Callable[[Any], Any]:
    """Return the tightest conversion of distances that is known; parameters as of :func:`.cast`."""
    grid = None if orders is None else checks.orders(orders=orders)
    at_delta = None if delta is None else checks.probability(delta=delta)
    one, other = convertible_measure(source), convertible_measure(target)
    steps = _path(one.kind, other.kind)
    if at_delta is not None and not other.takes_delta:
        raise InvalidTypeError(f"delta is for a cast to (epsilon, delta), not to {target}")
    ends = Ends(one, other, at_delta, grid)
    for step in steps:
        step.require(ends)

    def convert(distance: Any) -> Any:
        for step in steps:
            distance = step.convert(distance, ends)
        return distance

    return convert


def conversions() -> dict[tuple[str, str], Conversion]:
    """Return all conversions of one step, by the kinds of source and target."""
    kinds = convertible_kinds()
    known = {
        (one, other): step
        for one, cls in kinds.items()
        for other, step in cls.conversions_to.items()
    }
    for other, cls in kinds.items():
        for one, step in cls.conversions_from.items():
            known.setdefault((one, other), step)
    return known


def _path(source: str, target: str) -> list[Conversion]:
    """One conversion if there is one; else two, by way of zCDP."""
    known = conversions()
    if (source, target) in known:
        return [known[source, target]]
    if source == target:
        return []
    if (source, ZCDP) in known and (ZCDP, target) in known:
        return [known[source, ZCDP], known[ZCDP, target]]
    reached = sorted({other for one, other in known if one == source})
    raise UnsupportedMeasureError(
        f"there is no conversion from {source} to {target}: {convertible_kinds()[source].why_not}"
        + (f"; from {source} one reaches {', '.join(reached)}" if reached else "")
    )
