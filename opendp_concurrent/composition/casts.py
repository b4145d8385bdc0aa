"""A measurement with the same function and a converted guarantee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _checks as checks
from .. import _opendp as _native
from .. import measures, queryables
from .._opendp import dp
from ..errors import Distance, InvalidTypeError, UnsupportedMeasureError
from .guards import check_measurement, constructor
from .interactive import make_measurement


def recertify(
    measurement: dp.Measurement,
    to_measure: dp.Measure,
    convert: Callable[[Any], Any],
    accuracy: queryables.Accuracy | None = None,
) -> queryables.ConcurrentMeasurement:
    """Return ``measurement`` under ``to_measure``, with ``convert`` applied to its privacy map.

    :param convert: from a distance of the measurement's measure to one of ``to_measure``, or to a
        :class:`Profile`
    :param accuracy: the error of its answers; that of ``measurement`` if left out
    """
    validate = measures.convertible_measure(measurement.output_measure).validate

    def privacy_map(d_in: Distance) -> Any:
        distance = convert(validate("d_mid", queryables.read_map(measurement, d_in)))
        return (
            _native.new_privacy_profile(distance)
            if isinstance(distance, measures.Profile)
            else distance
        )

    summary = f"Measurement({measurement.output_measure} as {to_measure})"
    return make_measurement(
        measurement.input_space,
        to_measure,
        lambda token: queryables.run(measurement, token),
        privacy_map,
        summary,
        around=measurement,
        accuracy=accuracy or queryables.known_accuracy(measurement),
        releases=True,
        free=_stays_free(measurement, to_measure),
    )


def _stays_free(measurement: dp.Measurement, to_measure: dp.Measure) -> bool:
    """Whether a launch of a cast excludes no other, whatever it costs.

    An (ε, δ) mechanism is a postprocessing of a randomized response that answers once [LW22].
    """
    source = measures.convertible_measure(measurement.output_measure).kind
    if queryables.interactive(measurement) is False or source == measures.APPROXIMATE:
        return True
    return source == measures.convertible_measure(to_measure).kind and queryables.is_free(
        measurement
    )


# Each measure lists its own conversions with their theorems. This file searches them.


@constructor(orders=checks.optional(checks.orders))
def cast(
    measurement: dp.Measurement,
    to_measure: dp.Measure,
    *,
    delta: checks.Probability | None = None,
    orders: Sequence[float] | None = None,
) -> queryables.ConcurrentMeasurement:
    """Convert the guarantee of a measurement to another measure.

    The cast uses the tightest conversion that is known, or raises if none is known:

    * pure DP to zCDP (ε tanh(ε/2) [Ste24], where OpenDP has ε²/2), to Rényi DP and one of its
      orders (randomized response [BS16]), to tCDP, to Gaussian DP, to (ε, δ) [KOV15];
    * zCDP to Rényi DP, to one order, to tCDP, to (ε, δ) [CKS20, Proposition 12];
    * Gaussian DP to zCDP, and exactly to (ε, δ) [DRS22, Corollary 1];
    * Rényi DP to one of its orders, to (ε, δ) by the best of ``orders``;
    * one order, and tCDP, to (ε, δ) [CKS20, Proposition 12]; one order to a lower one; tCDP to a
      smaller ω, and to one order below ω;
    * (ε, δ) to itself with a larger δ [KOV15]; zCDP and (ε, δ) to approximate zCDP, the latter as
      (ε tanh(ε/2), δ), under finite communication; approximate zCDP to (ε, δ);
    * all of these, and privacy profiles (``dp.smoothed_max_divergence()``), to f-DP: exactly for
      pure, (ε, δ) and Gaussian DP; otherwise by the chords of a profile at about 300 points;
    * f-DP to (ε, δ), exactly or by certified bounds; to Gaussian DP, if the loss is bounded.

    A cast to ``dp.smoothed_max_divergence()`` gives a privacy profile. Apply OpenDP's
    :func:`~opendp.combinators.make_fix_delta` to it. A cast before composing is valid, but the
    total may be larger: compose under the tighter measure, then cast the compositor.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: any measurement, interactive or not
    :param to_measure: the target measure
    :param delta: the δ, if the target is (ε, δ)
    :param orders: for a Rényi curve: the orders at which the curve is evaluated
    :return: a measurement with the same function
    :raises UnsupportedMeasureError: if no conversion is known, with the reason
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
    convert = conversion(measurement.output_measure, to_measure, delta=delta, orders=orders)
    return recertify(measurement, to_measure, convert)


def conversion(
    source: dp.Measure,
    target: dp.Measure,
    *,
    delta: float | None = None,
    orders: Sequence[float] | None = None,
) -> Callable[[Any], Any]:
    """Return the tightest known conversion of distances. Parameters: see :func:`.cast`."""
    grid = None if orders is None else checks.orders(orders=orders)
    at_delta = None if delta is None else checks.probability(delta=delta)
    one, other = measures.convertible_measure(source), measures.convertible_measure(target)
    steps = _path(one.kind, other.kind)
    if at_delta is not None and not other.takes_delta:
        raise InvalidTypeError(
            f"delta must be left out for a cast to {target}; it is for a cast to (epsilon, delta)"
        )
    ends = measures.Ends(one, other, at_delta, grid)
    for step in steps:
        step.require(ends)

    def convert(distance: Distance) -> Any:
        for step in steps:
            distance = step.convert(distance, ends)
        return distance

    return convert


def conversions() -> dict[tuple[str, str], measures.Conversion]:
    """Return all one-step conversions, keyed by the kinds of source and target."""
    kinds = measures.convertible_kinds()
    known = {
        (one, other): step
        for one, cls in kinds.items()
        for other, step in cls.conversions_to.items()
    }
    for other, cls in kinds.items():
        for one, step in cls.conversions_from.items():
            known.setdefault((one, other), step)
    return known


def _path(source: str, target: str) -> list[measures.Conversion]:
    """Return one conversion if there is one, otherwise two by way of zCDP, or raise."""
    known = conversions()
    if (source, target) in known:
        return [known[source, target]]
    if source == target:
        return []
    if (source, measures.ZCDP) in known and (measures.ZCDP, target) in known:
        return [known[source, measures.ZCDP], known[measures.ZCDP, target]]
    steps = {source, measures.ZCDP} if (source, measures.ZCDP) in known else {source}
    reached = sorted({other for one, other in known if one in steps} - {source})
    why_not = measures.convertible_kinds()[source].why_not
    raise UnsupportedMeasureError(
        f"there is no conversion from {source} to {target}: {why_not}"
        + (f"; measures that can be reached from {source}: {', '.join(reached)}" if reached else "")
    )


def make_pureDP_to_zCDP(measurement: dp.Measurement) -> queryables.ConcurrentMeasurement:
    """Convert ε-DP to zCDP with ρ = ε tanh(ε/2) [Ste24]; OpenDP's cast of this name uses ε²/2.

    It is :func:`.cast` to zCDP, under the name that OpenDP has for it.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: under ε-DP, interactive or not
    :return: a measurement with the same function
    :raises UnsupportedMeasureError: if the measurement is under another measure
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    >>> oc.c.make_pureDP_to_zCDP(dp.m.make_laplace(*space, scale=1.0)).map(1.0)
    0.4621171572600098
    """
    found = measures.convertible_measure(
        check_measurement("measurement", measurement).output_measure
    ).kind
    if found != measures.PURE:
        raise UnsupportedMeasureError(f"measurement must be under {measures.PURE}, found {found}")
    return cast(measurement, dp.zero_concentrated_divergence())
