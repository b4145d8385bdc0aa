"""The mechanism behind a context: a compositor if the loss is split, else a filter or odometer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from opendp.mod import Domain

from ..accounts.store import Ledger
from ..arguments.checks import at_most
from ..arguments.weights import weights as shares_of
from ..combinators.concurrent_composition import MOST_LAUNCHES, make_concurrent_composition
from ..combinators.concurrent_filter import make_concurrent_filter
from ..combinators.concurrent_odometer import make_concurrent_odometer
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import composition_measure
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer
from ..sums.accumulator import Accounting

shares = at_most(MOST_LAUNCHES, "each query has a share of its own")


@dataclass(frozen=True)
class Spending:
    """How a context spends its privacy loss.

    :ivar evenly: number of queries that share it evenly, or None
    :ivar weights: the proportions in which queries share it, or None
    :ivar orders: for Rényi curves: the orders at which it is enforced
    :ivar accumulator: how losses add up that are chosen on the way
    :ivar ledger: where charges are stored
    :ivar opaque_errors: whether errors of mechanisms are hidden
    """

    evenly: int | None = None
    weights: Sequence[float] | None = None
    orders: Sequence[float] | None = None
    accumulator: Accounting | None = None
    ledger: Ledger | None = None
    opaque_errors: bool = False


def accountant_of(
    domain: Domain,
    privacy_unit: tuple[Any, Any],
    privacy_loss: tuple[Any, Any],
    plan: Spending,
) -> tuple[ConcurrentMeasurement | ConcurrentOdometer, list[Any] | None, Any]:
    """Return the mechanism that spawns the queryable, its d_mids if fixed, and its bound if any."""
    metric, d_in = privacy_unit
    output_measure, d_out = privacy_loss
    weights = weights_of(plan.evenly, plan.weights)
    if weights is not None:
        if plan.accumulator is not None:
            raise InvalidTypeError(
                f"accumulator ({plan.accumulator!r}) is for losses that are chosen adaptively; "
                "pass either accumulator or a split"
            )
        if plan.ledger is not None:
            raise InvalidTypeError(
                "ledger is for losses that are chosen adaptively; pass either ledger or a split"
            )
        measure = composition_measure(output_measure)
        d_mids = measure.split(measure.validate_budget("d_out", d_out), weights)
        compositor = make_concurrent_composition(
            domain,
            metric,
            output_measure,
            d_in,
            d_mids,
            orders=plan.orders,
            opaque_errors=plan.opaque_errors,
        )
        return compositor, d_mids, None
    plain = type(d_out) in (float, tuple) and d_out in (inf, (inf, inf), (inf, 1.0))
    unbounded = plain or getattr(d_out, "rho", None) == inf
    kept = {"ledger": plan.ledger, "d_in": d_in} if unbounded and plan.ledger is not None else {}
    odometer = make_concurrent_odometer(
        domain,
        metric,
        output_measure,
        accumulator=plan.accumulator,
        opaque_errors=plan.opaque_errors,
        **kept,
    )
    if unbounded:
        return odometer, None, None
    limit = make_concurrent_filter(odometer, d_in, d_out, orders=plan.orders, ledger=plan.ledger)
    return limit, None, d_out


def weights_of(evenly: int | None, weights: Sequence[float] | None) -> list[Fraction] | None:
    """Return the proportions of the queries' losses, or None if these are chosen on the way."""
    if evenly is not None and weights is not None:
        raise InvalidValueError(
            "split_evenly_over and split_by_weights exclude each other; pass one of them"
        )
    if evenly is not None:
        return [Fraction(1)] * shares(split_evenly_over=evenly)
    if weights is None:
        return None
    return shares_of(split_by_weights=weights)
