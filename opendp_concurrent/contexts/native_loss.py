"""The loss under a measure of OpenDP that admits the least noise within a loss under another."""

from __future__ import annotations

from opendp.measures import approximate, max_divergence, zero_concentrated_divergence
from opendp.mod import Measure

from ..combinators.cast import conversion
from ..errors import (
    ConcurrentError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedMeasureError,
)
from ..fdp.function import TradeoffFunction
from ..measures import composition_measure
from ..types import Loss
from .loss_under import loss_under


def is_native(measure: Measure) -> bool:
    """Whether OpenDP makes private LazyFrames under a measure."""
    pure, zcdp = max_divergence(), zero_concentrated_divergence()
    return measure in (pure, zcdp, approximate(pure), approximate(zcdp))


def native_measures(measure: Measure) -> list[Measure]:
    """Return pure DP and zCDP, as far as they convert to ``measure``, or raise."""
    found = []
    for native in (zero_concentrated_divergence(), max_divergence()):
        try:
            conversion(native, measure)
        except ConcurrentError as error:
            refusal = error
        else:
            found.append(native)
    if not found:
        raise UnsupportedMeasureError(
            f"queries on LazyFrames have Laplace or Gaussian noise, under pure DP or zCDP, and "
            f"neither converts to {measure} by itself: {refusal}; pass a context under zCDP, or "
            "launch oc.c.cast(measurement, measure, ...) on context.queryable"
        )
    return found


def native_loss(measure: Measure, d_out: Loss) -> tuple[Measure, float]:
    """Return pure DP or zCDP, with the largest loss that converts to at most ``d_out``.

    The one is returned whose noise has the smaller variance: 2/ε² of Laplace noise, 1/(2ρ) of
    Gaussian noise, for a sensitivity of 1.
    """
    found: list[tuple[float, Measure, float]] = []
    if composition_measure(measure).needs_orders:
        raise InvalidTypeError(
            f"the scale must be given under {measure}, whose losses are curves: pass it, such as "
            "dp.len(scale=10.0, signed=True)"
        )
    natives = native_measures(measure)
    if isinstance(d_out, TradeoffFunction) and max_divergence() in natives:
        natives = [max_divergence()]  # exactly; from zCDP only by chords, which takes minutes
    for native in natives:
        try:
            loss = loss_under(native, measure, d_out)
        except InvalidValueError as error:
            refusal = error
            continue
        pure = native == max_divergence()
        found.append(((2 / loss**2 if pure else 1 / (2 * loss)) if loss else 0.0, native, loss))
    if not found:
        raise refusal
    _, best, loss = min(found, key=lambda one: one[0])
    return best, loss
