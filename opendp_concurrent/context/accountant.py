"""The mechanism behind a context: a compositor if the loss is split, else a filter or odometer."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import inf
from typing import Any

from .. import _checks as checks
from .. import accounting, composition, errors, fdp, measures, queryables
from .._opendp import dp, make_user_measurement
from .search import nearest_passing, share_of

shares = checks.at_most(composition.MOST_LAUNCHES, "each query has a share of its own")


def accountant_of(
    domain: dp.Domain,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    evenly: int | None,
    weights: Sequence[float] | None,
    orders: Sequence[float] | None = None,
    accumulator: measures.Accumulator | None = None,
    ledger: accounting.Ledger | None = None,
    opaque_errors: bool = False,
) -> tuple[queryables.ConcurrentMeasurement | queryables.ConcurrentOdometer, list[Any] | None, Any]:
    """Return the mechanism that spawns the queryable, its d_mids if fixed, and its bound if any.

    :param evenly: number of queries that share the loss evenly, or None
    :param weights: the proportions in which queries share it, or None
    :param orders: for Rényi curves: the orders at which it is enforced
    :param accumulator: how losses add up that are chosen on the way
    :param ledger: where charges are stored
    :param opaque_errors: whether errors of mechanisms are hidden
    """
    metric, d_in = privacy_unit
    output_measure, d_out = privacy_loss
    if evenly is not None and weights is not None:
        raise errors.InvalidValueError(
            "split_evenly_over and split_by_weights exclude each other; pass one of them"
        )
    if evenly is not None or weights is not None:
        if accumulator is not None:
            raise errors.InvalidTypeError(
                f"accumulator ({accumulator!r}) is for losses that are chosen adaptively; "
                "pass either accumulator or a split"
            )
        if ledger is not None:
            raise errors.InvalidTypeError(
                "ledger is for losses that are chosen adaptively; pass either ledger or a split"
            )
        if weights is None:
            shared = [Fraction(1)] * shares(split_evenly_over=evenly)
        else:
            shared = checks.weights(split_by_weights=weights)
        measure = measures.composition_measure(output_measure)
        d_mids = measure.split(measure.validate_budget("d_out", d_out), shared)
        compositor = composition.make_concurrent_composition(
            domain, metric, output_measure, d_in, d_mids, orders=orders, opaque_errors=opaque_errors
        )
        return compositor, d_mids, None
    plain = type(d_out) in (float, tuple) and d_out in (inf, (inf, inf), (inf, 1.0))
    unbounded = plain or getattr(d_out, "rho", None) == inf
    kept = {"ledger": ledger, "d_in": d_in} if unbounded and ledger is not None else {}
    odometer = composition.make_concurrent_odometer(
        domain, metric, output_measure, accumulator=accumulator, opaque_errors=opaque_errors, **kept
    )
    if unbounded:
        return odometer, None, None
    limit = composition.make_concurrent_filter(odometer, d_in, d_out, orders=orders, ledger=ledger)
    return limit, None, d_out


# The largest loss under one measure that a conversion takes to a given loss under another.


def loss_under(
    source: dp.Measure, target: dp.Measure, d_out: errors.Loss, delta: float | None = None
) -> float:
    """Return the largest loss under ``source`` that converts to at most ``d_out``.

    No measurement is made: the conversion is one of numbers.

    :param source: a measure whose losses are numbers
    :param target: the measure of ``d_out``
    :param delta: the δ of the conversion, if the target is (ε, δ)
    :raises UnsupportedMeasureError: if no conversion is known
    :raises InvalidValueError: if each positive loss converts to more than ``d_out``
    """
    convert = composition.conversion(source, target, delta=delta)
    known = measures.composition_measure(target)
    lost = cache(lambda loss: known.validate("d_mid", convert(loss)))

    def fits(loss: float) -> bool:
        return known.at_most(lost(loss), d_out)

    try:
        loss: float = nearest_passing([fits], T=float, share=lambda one: share_of(lost(one), d_out))
    except (ValueError, dp.OpenDPException) as error:
        if isinstance(error, errors.ConcurrentError):
            raise
        loss = 0.0
    if not loss > 0:
        raise errors.InvalidValueError(
            f"d_out ({errors.shown(d_out)}) under {target} is below what each loss under {source} "
            f"converts to; pass a larger loss, or compose under {target}"
        )
    return loss


# The loss under a measure of OpenDP that admits the least noise within a loss under another.


def is_native(measure: dp.Measure) -> bool:
    """Whether OpenDP makes private LazyFrames under a measure."""
    pure, zcdp = dp.max_divergence(), dp.zero_concentrated_divergence()
    return measure in (pure, zcdp, dp.approximate(pure), dp.approximate(zcdp))


def native_measures(measure: dp.Measure) -> list[dp.Measure]:
    """Return pure DP and zCDP, as far as they convert to ``measure``, or raise."""
    found = []
    for native in (dp.zero_concentrated_divergence(), dp.max_divergence()):
        try:
            composition.conversion(native, measure)
        except errors.ConcurrentError as error:
            refusal = error
        else:
            found.append(native)
    if not found:
        raise errors.UnsupportedMeasureError(
            f"queries on LazyFrames have Laplace or Gaussian noise, under pure DP or zCDP, and "
            f"neither converts to {measure} by itself: {refusal}; pass a context under zCDP, or "
            "launch oc.c.cast(measurement, measure, ...) on context.queryable"
        )
    return found


def native_loss(measure: dp.Measure, d_out: errors.Loss) -> tuple[dp.Measure, float]:
    """Return pure DP or zCDP, with the largest loss that converts to at most ``d_out``.

    The one is returned whose noise has the smaller variance: 2/ε² of Laplace noise, 1/(2ρ) of
    Gaussian noise, for a sensitivity of 1.
    """
    found: list[tuple[float, dp.Measure, float]] = []
    if measures.composition_measure(measure).needs_orders:
        raise errors.InvalidTypeError(
            f"the scale must be given under {measure}, whose losses are curves: pass it, such as "
            "dp.len(scale=10.0, signed=True)"
        )
    natives = native_measures(measure)
    if isinstance(d_out, fdp.TradeoffFunction) and dp.max_divergence() in natives:
        natives = [dp.max_divergence()]  # exactly; from zCDP only by chords, which takes minutes
    for native in natives:
        try:
            loss = loss_under(native, measure, d_out)
        except errors.InvalidValueError as error:
            refusal = error
            continue
        pure = native == dp.max_divergence()
        found.append(((2 / loss**2 if pure else 1 / (2 * loss)) if loss else 0.0, native, loss))
    if not found:
        raise refusal
    _, best, loss = min(found, key=lambda one: one[0])
    return best, loss


# Approximate zCDP inside (ε, δ)-DP, by the conversion of OpenDP, which needs no data.


def by_opendp(loss: tuple[float, float], delta: float) -> Any:
    """Return (ε, ``delta``) for a loss (ρ, δ') of approximate zCDP.

    The conversion is that of :func:`~opendp.combinators.make_zCDP_to_approxDP` and
    :func:`~opendp.combinators.make_fix_delta`.
    """
    free = make_user_measurement(
        dp.atom_domain(T=bool),
        dp.discrete_distance(),
        dp.approximate(dp.zero_concentrated_divergence()),
        function=lambda _: 0,
        privacy_map=lambda _: loss,
        TO="ExtrinsicObject",
    )
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(free), delta).map(1)


def largest_by_opendp(d_out: tuple[float, float], share: float) -> tuple[float, float]:
    """Return the largest (ρ, ``share``) that converts to at most ``d_out``."""

    @cache
    def epsilon(rho: float) -> Any:
        return by_opendp((rho, share), d_out[1])[0]

    try:
        return nearest_passing(
            [lambda rho: epsilon(rho) <= d_out[0]],
            T=float,
            share=lambda rho: epsilon(rho) / d_out[0],
        ), share
    except (ValueError, dp.OpenDPException) as error:
        if isinstance(error, errors.ConcurrentError):
            raise
        raise errors.InvalidValueError(
            f"d_out ({d_out}) has no approximate zCDP with a δ of {share}; pass an alpha below "
            "1, or a larger loss"
        ) from error
