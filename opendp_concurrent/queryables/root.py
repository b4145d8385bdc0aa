"""The handles that an analyst holds, of an odometer, a filter or a compositor, and how they begin.

A spawn function makes the account of its specification, seals the data, and returns the handle.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from opendp.mod import Domain, Metric, Odometer, OdometerQueryable, Queryable, Transformation

from .. import _opendp as _native
from .. import accounting, errors, measures
from .data import Sealed, check_process, seal_transformed, unseal
from .mechanism import ConcurrentOdometer, Description
from .session import MAP_FAILED, Handle, Session, validate_d_in


class _Handle(Handle):
    """What the three handles share. A filter and a compositor have a d_in of their own."""

    _d_in: errors.Distance

    def _own(self, d_in: errors.Distance) -> errors.Distance:
        """Return ``d_in``, or the handle's own if it is left out; raise if there is none."""
        if d_in is not None:
            return d_in
        if not hasattr(self, "_d_in"):
            raise errors.InvalidTypeError("d_in must be given: an odometer has none of its own")
        return self._d_in

    def admits(self, query: errors.Query) -> bool:
        """Whether a launch of a measurement would be admitted now; runs and charges nothing.

        This account and all of its ancestors are asked. Another thread or process may launch in
        between, so the answer may be outdated when it arrives. Only a launch decides.

        :param query: a measurement on the same domain, metric and measure
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        check_process(self._session.token)
        return _native.call_native(self._session.refusal, query) is None

    def risk(self, d_in: errors.Distance = None, *, prior: float = 0.5) -> measures.Risk:
        """Return what an attacker can do at most with all that was released so far.

        He knows all data but those of one unit; see :func:`opendp_concurrent.measures.risk`.

        :param d_in: distance between neighbouring inputs; the handle's own if left out, which an
            odometer does not have. For a group of k people, a distance of k
        :param prior: probability, before he saw anything, that the person is in the data

        :example:

        >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
        >>> release = root(space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0))
        >>> print(root.risk(prior=0.1))
        a guess is right with probability at most 0.9 (before: 0.9), the advantage at most ...
        """
        return measures.risk_of(
            self._session.measure, self.privacy_loss(d_in), measures.PRIOR(prior=prior)
        )

    def describe(self, query: errors.Query, d_in: errors.Distance = None) -> Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param query: a measurement on the same domain, metric and measure, or an odometer of this
            package, which costs nothing until something is launched on it
        :param d_in: distance between neighbouring inputs; the handle's own if left out
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used

        :example:

        >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
        >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=0.5)
        >>> found = root.describe(count)
        >>> found.mechanism, found.interactive, found.loss, found.admitted
        ('count >> laplace(scale=0.5)', False, 2.0, False)
        """
        check_process(self._session.token)
        found: Description = _native.call_native(self._session.describe, query, self._own(d_in))
        return found

    def privacy_loss(self, d_in: errors.Distance = None) -> Any:
        """Return the privacy loss of the launches so far; changes nothing.

        A compositor's is that of the d_mids consumed so far, and known at its own d_in only.

        :param d_in: distance between neighbouring inputs, in units of the input metric; the
            handle's own if left out
        """
        return self._session.privacy_loss(self._own(d_in))

    def loss_after(self, queries: Iterable[errors.Query], d_in: errors.Distance = None) -> Any:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch; on a compositor, each would consume its whole
            share
        :param d_in: distance between neighbouring inputs; the handle's own if left out
        """
        return self._session.loss_after(queries, self._own(d_in))


class ConcurrentOdometerQueryable(_Handle, OdometerQueryable):
    """Handle of an odometer. It launches without a limit and returns the loss at any d_in."""

    def __repr__(self) -> str:
        return f"ConcurrentOdometerQueryable({self._description}, {self._launches()})"


class ConcurrentFilterQueryable(_Handle, OdometerQueryable):
    """Handle of a filter. It admits a launch if the loss stays at or below d_out."""

    def __init__(
        self, session: Session, description: str, d_in: errors.Distance, d_out: errors.Loss | None
    ) -> None:
        super().__init__(session, session.launch, description)
        self._d_in, self._d_out = d_in, d_out

    def remaining(self) -> Any:
        """Return the largest privacy loss that one more launch may have."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentFilterQueryable({self._description}, {self._launches()}, "
            f"spent {errors.rounded(self._session.account.known_loss)} "
            f"of {errors.rounded(self._d_out)} at d_in={self._d_in}, "
            f"{self._session.account.lifecycle.state.value})"
        )


class ConcurrentCompositionQueryable(_Handle, Queryable):
    """Handle of a compositor. It admits one launch for each of the d_mids, in order."""

    query_type = "AnyMeasurement"

    def __init__(self, session: Session, description: str, d_in: errors.Distance) -> None:
        super().__init__(session, session.launch, description)
        self._d_in = d_in

    def describe(self, query: errors.Query, d_in: errors.Distance = None) -> Description:
        """Describe a launch before it happens, as a filter does, at the compositor's own d_in."""
        if d_in is not None:
            self.privacy_loss(d_in)  # raises at any other distance
        return super().describe(query)

    def remaining(self) -> Any:
        """Return the d_mids that are left. The next one is first."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentCompositionQueryable({self._description}, {self._launches()}, "
            f"{len(self.remaining())} d_mids left)"
        )


# --- odometers of OpenDP --------------------------------------------------------------------------


def as_concurrent(odometer: errors.Argument) -> Any:
    """Return the odometer of this package for OpenDP's fully adaptive composition.

    OpenDP's own runs a mechanism and then adds up its loss, so it could not be charged before. Ours
    composes the same queries on the same space under the same measure, and asks the privacy map of
    each query. Anything else is returned as it is.
    """
    made = vars(odometer).get("__opendp_dict__") if type(odometer) is Odometer else None
    if made is None or made.get("__function__") != "make_fully_adaptive_composition":
        return odometer
    measure = measures.composition_measure(odometer.output_measure)
    space = odometer.input_domain, odometer.input_metric
    return ConcurrentOdometer(space, measure, measure.sum(), spawn_odometer)


class RootSession(Session):
    """A session that opens OpenDP's fully adaptive composition as an odometer of this package."""

    def _open(self, odometer: Odometer) -> Any:
        return super()._open(as_concurrent(odometer))

    def _check_odometer(self, odometer: Odometer) -> None:
        super()._check_odometer(as_concurrent(odometer))


# --- how they begin -------------------------------------------------------------------------------


def head(
    odometer: ConcurrentOdometer, token: Sealed
) -> tuple[Sealed, accounting.StabilityMap | None]:
    """Return the data of an odometer's queries, and the map to the d_in of these."""
    transformation = odometer.transformation
    if transformation is None:
        return token, None
    inward = accounting.StabilityMap(partial(_stability, transformation))

    return seal_transformed(token, partial(_native.transform, transformation)), inward


def _stability(transformation: Transformation, d_in: errors.Distance) -> errors.Distance:
    try:
        return _native.transformation_map(transformation, d_in)
    except errors.PrivacyMapError:
        raise
    except MAP_FAILED as error:
        raise errors.PrivacyMapError(d_in, str(error).strip()) from error


def _session(
    odometer: ConcurrentOdometer,
    account: accounting.Account,
    token: Sealed,
    path: tuple[str, ...] = (),
) -> Session:
    return RootSession(
        account,
        odometer.query_space,
        odometer.input_metric,
        odometer.measure,
        token,
        odometer.postprocessors,
        path,
    )


def _recorded(
    odometer: ConcurrentOdometer, ledger: accounting.Ledger, d_in: errors.Distance
) -> accounting.Bound:
    d_in = validate_d_in(odometer.input_metric, d_in)
    metric = str(odometer.input_metric)
    store, start = open_book(
        ledger, accounting.Terms(odometer.measure.name, odometer.accumulator, metric, d_in, None)
    )
    return accounting.Bound(d_in, accounting.Unlimited(), start, store=store)


def spawn_odometer(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> ConcurrentOdometerQueryable:
    """Return the handle of an odometer. Its launches are also charged to ``parent``, if given."""
    measure, bound = odometer.measure, None
    if odometer.record is not None:
        if parent is not None:
            raise errors.InvalidTypeError(
                "an odometer with a ledger cannot be launched as a child: its parent "
                "charges for each of its launches; pass the ledger to the parent"
            )
        bound = _recorded(odometer, *odometer.record)
    token, inward = head(odometer, token)
    account = accounting.Account(
        None if bound else odometer.accumulator.start(measure),
        bound=bound,
        inward=inward,
        parent=parent.account if parent else None,
        exclusive_reason=odometer.exclusive_reason,
        opaque=odometer.opaque,
    )
    if parent is None:
        if inward is not None:
            # what runs now and what is read later are of one time
            with suppress(errors.PrivacyMapError):
                inward(1)
        unseal(token)  # if a transformation fails, it raises here, to the owner of the data
    session = _session(odometer, account, token, parent.path if parent else ())
    return ConcurrentOdometerQueryable(
        session, session.launch, f"{measure.name}, {odometer.accumulator}"
    )


def spawn_filter(
    odometer: ConcurrentOdometer, bound: accounting.Bound, token: Sealed
) -> ConcurrentFilterQueryable:
    """Return the handle of a filter over an odometer."""
    token, inward = head(odometer, token)
    account = accounting.Account(
        bound.start if bound.store is None else None,  # others charge a ledger: no history here
        bound=bound,
        inward=inward,
        exclusive_reason=odometer.exclusive_reason,
        opaque=odometer.opaque,
    )
    unseal(token)  # now that the account has read the stability map
    d_out: Any = getattr(bound.rule, "d_out", None)
    session = _session(odometer, account, token)
    return ConcurrentFilterQueryable(session, bound.measure, bound.d_in, d_out)


def spawn_limited(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> ConcurrentFilterQueryable:
    """Return the handle of a limit below ``parent``; the same one if it was opened before."""
    if parent is None or odometer.limit is None:
        raise errors.InvalidTypeError(
            "a limit has no data of its own: launch it on the handle of an odometer, filter or "
            "compositor; to bound all queries on the data, use make_concurrent_filter"
        )
    make = partial(_open_limit, odometer, token, parent)
    handle: ConcurrentFilterQueryable = parent.open_once(odometer, make)
    return handle


def _open_limit(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session, limit: accounting.Limit
) -> ConcurrentFilterQueryable:
    measure, terms = odometer.measure, limit.terms
    token, inward = head(odometer, token)
    path = (*parent.path, limit.label)
    store = accounting.open_limit(parent.account, path, terms)
    start = terms.accumulator.start(measure) if store is None else store.read()
    rule, name = accounting.Within(terms.d_out), repr(terms.accumulator)
    bound = accounting.Bound(terms.d_in, rule, start, False, store, measure.name, name)
    with accounting.named("limit", limit.label):
        account = accounting.Account(
            start if store is None else None,  # other processes charge a ledger: no history here
            bound=bound,
            inward=inward,
            parent=parent.account,
            exclusive_reason=odometer.exclusive_reason,
            opaque=odometer.opaque,
        )
    session = _session(odometer, account, token, path)
    what = f"{measure.name}, limit {errors.shown(limit.label)}"
    return ConcurrentFilterQueryable(session, what, terms.d_in, terms.d_out)


def spawn_composition(
    space: tuple[Domain, Metric],
    measure: measures.CompositionMeasure[Any],
    token: Sealed,
    bound: accounting.Bound,
    opaque: bool,
) -> ConcurrentCompositionQueryable:
    """Return the handle of a compositor."""
    reason = measure.exclusive_reason
    account = accounting.Account(None, bound=bound, exclusive_reason=reason, opaque=opaque)
    session = RootSession(account, space, space[1], measure, token)
    return ConcurrentCompositionQueryable(session, measure.name, bound.d_in)


# --- in a ledger ----------------------------------------------------------------------------------


def check_ledger(
    ledger: Any, measure: measures.CompositionMeasure[Any], *, halt: bool = False
) -> None:
    """Raise unless ``ledger`` is a ledger that can keep a budget under this measure."""
    if not callable(getattr(type(ledger), "book", None)):
        raise errors.InvalidTypeError(
            f"ledger must be made by oc.ledger.open_ledger(...), found {type(ledger).__name__}"
        )
    if measure.composability is measures.Composability.SEQUENTIAL:
        raise errors.UnsupportedMeasureError(
            f"ledger is not supported under {measure.name}: {measure.reason}, and a launch "
            "in one process cannot close the children in another; use another measure"
        )
    if halt:
        raise errors.InvalidValueError(
            "halt must be False with a ledger: a refusal in one process cannot close "
            "the children in another"
        )


def open_book(
    ledger: accounting.Ledger, terms: accounting.Terms
) -> tuple[accounting.InLedger, measures.AccumulatorState[Any]]:
    """Open the budget with these terms. Return its keeper, and the accumulator of its charges.

    :raises LedgerError: if the budget has other terms
    """
    keeper = accounting.InLedger(ledger.book(terms))
    return keeper, keeper.read()
