"""Make the handle of an odometer, filter or compositor from its specification and sealed data."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from opendp.mod import OpenDPException, Transformation

from ..accounts.account import Account, Bound
from ..accounts.lifecycle import named
from ..accounts.price import StabilityMap
from ..accounts.rule import Unlimited, Within
from ..accounts.store import Ledger, Limit, Terms, open_limit
from ..errors import ConcurrentError, InvalidTypeError, PrivacyMapError
from ..measures import CompositionMeasure
from ..native import opendp as _native
from ..shown import shown
from ..types import Distance, Loss
from .data import Sealed, seal_transformed, unseal
from .limits import Limits
from .mechanism import ConcurrentOdometer
from .recorded import open_book
from .root import (
    ConcurrentCompositionQueryable,
    ConcurrentFilterQueryable,
    ConcurrentOdometerQueryable,
)
from .sequential import SequentialRunner
from .session import Session, validate_d_in


def _runner(measure: CompositionMeasure) -> SequentialRunner | None:
    return SequentialRunner() if measure.sequential_reason else None


def head(odometer: ConcurrentOdometer, token: Sealed) -> tuple[Sealed, StabilityMap | None]:
    """Return the data of an odometer's queries, and the map to the d_in of these."""
    transformation = odometer.transformation
    if transformation is None:
        return token, None
    inward = StabilityMap(partial(_stability, transformation))

    return seal_transformed(token, partial(_native.transform, transformation)), inward


def _stability(transformation: Transformation, d_in: Distance) -> Distance:
    try:
        return _native.transformation_map(transformation, d_in)
    except PrivacyMapError:
        raise
    except (OpenDPException, ConcurrentError, TypeError, ValueError, ArithmeticError) as error:
        raise PrivacyMapError(d_in, str(error).strip()) from error


def _session(
    odometer: ConcurrentOdometer, account: Account, token: Sealed, runner: SequentialRunner | None
) -> Session:
    return Session(
        account,
        odometer.query_space,
        odometer.input_metric,
        odometer.measure,
        token,
        runner,
        odometer.postprocessors,
    )


def _recorded(odometer: ConcurrentOdometer, ledger: Ledger, d_in: Distance) -> Bound:
    d_in = validate_d_in(odometer.input_metric, d_in)
    metric = str(odometer.input_metric)
    store, start = open_book(
        ledger, Terms(odometer.measure.name, odometer.accumulator, metric, d_in, None)
    )
    return Bound(d_in, Unlimited(), start, store=store)


def spawn_odometer(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> ConcurrentOdometerQueryable:
    """Return the handle of an odometer. Its launches are also charged to ``parent``, if given."""
    measure, bound = odometer.measure, None
    if odometer.record is not None:
        if parent is not None:
            raise InvalidTypeError(
                "an odometer with a ledger cannot be launched as a child: its parent "
                "charges for each of its launches; pass the ledger to the parent"
            )
        bound = _recorded(odometer, *odometer.record)
    token, inward = head(odometer, token)
    account = Account(
        None if bound else odometer.accumulator.start(measure),
        bound=bound,
        inward=inward,
        parent=parent.account if parent else None,
        sequential_reason=measure.sequential_reason,
        opaque=odometer.opaque,
    )
    if parent is None:
        if inward is not None:
            with suppress(PrivacyMapError):  # what runs now and what is read later are of one time
                inward(1)
        unseal(token)  # if a transformation fails, it raises here, to the owner of the data
    runner = parent.runner if parent else _runner(measure)
    session = _session(odometer, account, token, runner)
    if parent is not None:
        session.limits = Limits(parent.limits.path)
    return ConcurrentOdometerQueryable(session, f"{measure.name}, {odometer.accumulator}")


def spawn_filter(
    odometer: ConcurrentOdometer, token: Sealed, bound: Bound
) -> ConcurrentFilterQueryable:
    """Return the handle of a filter over an odometer."""
    measure = odometer.measure
    token, inward = head(odometer, token)
    account = Account(
        bound.start
        if bound.store is None
        else None,  # other processes charge a ledger: no history here
        bound=bound,
        inward=inward,
        sequential_reason=measure.sequential_reason,
        opaque=odometer.opaque,
    )
    unseal(token)  # now that the account has read the stability map
    session = _session(odometer, account, token, _runner(measure))
    d_out: Loss = getattr(bound.rule, "d_out", None)
    return ConcurrentFilterQueryable(session, measure.name, bound.d_in, d_out)


def spawn_limited(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> ConcurrentFilterQueryable:
    """Return the handle of a limit below ``parent``; the same one if it was opened before."""
    if parent is None or odometer.limit is None:
        raise InvalidTypeError(
            "a limit has no data of its own: launch it on the handle of an odometer, filter or "
            "compositor; to bound all queries on the data, use make_concurrent_filter"
        )
    make = partial(_open_limit, odometer, token, parent)
    handle: ConcurrentFilterQueryable = parent.limits.opened(odometer, make)
    return handle


def _open_limit(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session, limit: Limit
) -> ConcurrentFilterQueryable:
    measure, terms = odometer.measure, limit.terms
    token, inward = head(odometer, token)
    path = (*parent.limits.path, limit.label)
    store = open_limit(parent.account, path, terms)
    start = terms.accumulator.start(measure) if store is None else store.read()
    rule, name = Within(terms.d_out), repr(terms.accumulator)
    bound = Bound(terms.d_in, rule, start, False, store, measure.name, name)
    with named("limit", limit.label):
        account = Account(
            start if store is None else None,  # other processes charge a ledger: no history here
            bound=bound,
            inward=inward,
            parent=parent.account,
            sequential_reason=measure.sequential_reason,
            opaque=odometer.opaque,
        )
    session = _session(odometer, account, token, parent.runner)
    session.limits = Limits(path)
    what = f"{measure.name}, limit {shown(limit.label)}"
    return ConcurrentFilterQueryable(session, what, terms.d_in, terms.d_out)


def spawn_composition(
    space: Any, measure: CompositionMeasure, token: Sealed, bound: Bound, opaque: bool
) -> ConcurrentCompositionQueryable:
    """Return the handle of a compositor."""
    account = Account(None, bound=bound, sequential_reason=measure.sequential_reason, opaque=opaque)
    session = Session(account, space, space[1], measure, token, _runner(measure))
    return ConcurrentCompositionQueryable(session, measure.name, bound.d_in)


__all__ = ["head", "spawn_composition", "spawn_filter", "spawn_limited", "spawn_odometer"]
