"""An odometer: composition of mechanisms with adaptively chosen privacy losses, without a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from opendp.mod import Domain, Measure, Metric, assert_features

from .. import _opendp as _native
from ..accounting import Ledger, own_distance
from ..errors import Distance, InvalidTypeError, shown
from ..fdp import TradeoffFunction
from ..measures import Accumulator, CompositionMeasure, composition_measure, registered
from ..numerics import cap_and_shown, down, typed
from ..queryables import ConcurrentMeasurement, ConcurrentOdometer, check_ledger, spawn_odometer
from .guards import accumulator_for, constructor

if TYPE_CHECKING:
    from ..queryables import ConcurrentOdometerQueryable, OdometerOf


@constructor
def make_concurrent_odometer(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    *,
    accumulator: Accumulator | None = None,
    ledger: Ledger | None = None,
    d_in: Distance = None,
    opaque_errors: bool = False,
) -> OdometerOf[ConcurrentOdometerQueryable]:
    """Compose mechanisms, interactive or not, whose privacy losses are chosen adaptively.

    The arguments are those of :func:`~opendp.combinators.make_fully_adaptive_composition`. The
    returned odometer spawns a queryable that launches any measurement on the same space and
    measure, and returns the privacy loss so far at any time. Children may be queried in any
    interleaving. Under approximate zCDP, a child that is approximate only as a whole is closed by
    the next launch or answer of any other. A launch is charged before it runs and is never
    refunded, even if the mechanism raises.

    Guarantee: for every d_out fixed in advance, the interaction up to the last answer at which the
    loss was at most d_out is d_out-DP, against any adaptive analyst: [HSTVVXZ23, Theorems 1.20,
    1.21, 4.6 and Lemma 2.19]; finite communication for (ε, δ)-DP, Gaussian DP and f-DP. To stop at
    a bound, use :func:`.make_concurrent_filter`.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param accumulator: how losses add up, part of the odometer's identity, from
        ``oc.accumulators``: ``basic()`` if left out; for (ε, δ)-DP also ``advanced``, ``zcdp``,
        ``renyi``, ``either`` or ``best_rule``; ``from_rule`` where the distance is one number
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge durably before its
        mechanism runs. All processes that have it open share the loss, and a later process
        continues from the stored charges. It is opened when the odometer is invoked on data
    :param d_in: with a ledger only: the distance between neighbouring inputs at which losses are
        recorded, in units of the input metric (of the first transformation, if chained)
    :param opaque_errors: hide errors of mechanisms from the analyst: each raises the same
        :class:`.MechanismError`, and the logger ``opendp_concurrent.measurements`` logs the
        original error
    :return: an odometer that spawns a :class:`.ConcurrentOdometerQueryable`
    :raises UnsupportedMeasureError: if no composition rule is known for ``output_measure``, or
        ``accumulator`` or ``ledger`` does not support it
    :raises InvalidTypeError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> root = oc.make_concurrent_odometer(*space, dp.max_divergence())([1, 2, 3])
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> releases = [root(count), root(count)]
    >>> root.privacy_loss(1)
    1.0
    """
    measure = composition_measure(output_measure)
    accounting = accumulator_for(measure, accumulator)
    if (ledger is None) != (d_in is None):
        raise InvalidTypeError(
            "ledger and d_in must be given together: a ledger records losses at one d_in; "
            "pass both or neither"
        )
    if ledger is not None:
        check_ledger(ledger, measure)
        if measure.needs_orders:
            raise InvalidTypeError(
                "ledger is not supported for an odometer under Rényi curves; pass it to "
                "make_concurrent_filter with orders, or build the odometer under "
                "oc.fixed_renyi_divergence"
            )
    record = None if ledger is None else (ledger, own_distance(d_in))
    made = ConcurrentOdometer(
        (input_domain, input_metric),
        measure,
        accounting,
        spawn_odometer,
        record=record,
        opaque=opaque_errors,
    )
    return cast("OdometerOf[ConcurrentOdometerQueryable]", made)


then_concurrent_odometer = _native.to_then(make_concurrent_odometer)


# The conversion of a filter to its odometer: Lemma 2.19 of [HSTVVXZ23].


def make_filter_to_odometer(measurement: ConcurrentMeasurement) -> ConcurrentOdometer:
    """Turn a filter into an odometer, which reports the smallest budget that suffices so far.

    ``measurement`` must be made by :func:`.make_concurrent_filter`, or be a chain to such a filter.
    Its continuation rule is defined for every d_out. By Lemma 2.19 of [HSTVVXZ23] such a family is
    an accumulator. A compositor has only one bound, and OpenDP's filters do not expose their rule.

    Required features: `contrib`

    :param measurement: a filter
    :return: an odometer with the filter's input space, measure and accumulator
    :raises InvalidTypeError: if no odometer is defined for ``measurement``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> limit = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    >>> oc.c.make_filter_to_odometer(limit).output_measure
    MaxDivergence
    """
    assert_features("contrib")
    odometer: Any = getattr(measurement, "odometer", None)
    if not isinstance(odometer, ConcurrentOdometer):
        raise InvalidTypeError(
            f"measurement ({shown(measurement)}) must be made by make_concurrent_filter, or "
            "be a transformation chained to such a filter: for others no continuation rule "
            "is known for every d_out"
        )
    return odometer


# A privacy loss given by keywords: a measure and a distance.


def loss_of(
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    *,
    alpha: float | None = None,
    omega: float | None = None,
    mu: float | None = None,
    tradeoff: TradeoffFunction | None = None,
    **others: Any,
) -> tuple[Measure, Any]:
    """Return a measure and a distance, like :func:`~opendp.context.loss_of`, with more measures.

    * ``epsilon`` with ``alpha``: Rényi DP of that order;
    * ``rho`` with ``omega``: truncated concentrated DP;
    * ``mu``: Gaussian DP;
    * ``tradeoff``: f-DP;
    * any other keywords: the result of OpenDP's function.

    Required features: `honest-but-curious` for this package's measures

    :param epsilon: for pure, approximate and Rényi DP
    :param delta: for approximate DP
    :param rho: for zero-concentrated and truncated concentrated DP
    :param alpha: Rényi order, above 1
    :param omega: upper end of the orders of truncated concentrated DP, above 1
    :param mu: for Gaussian DP
    :param tradeoff: for f-DP
    :param others: keywords of measures that another package registered
    :return: a pair for the ``privacy_loss`` argument of ``concurrent_context``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.loss_of(mu=0.5)
    (GaussianTradeoff, 0.5)
    >>> oc.loss_of(epsilon=0.5, alpha=8.0)
    (FixedRenyiDivergence(alpha=8.0), 0.5)
    >>> oc.loss_of(rho=0.1, omega=20.0)
    (TruncatedConcentratedDivergence(omega=20.0), TruncatedConcentrated(rho=0.1, omega=20.0))
    """
    words = {"epsilon": epsilon, "delta": delta, "rho": rho}
    given = _given(**words, alpha=alpha, omega=omega, mu=mu, tradeoff=tradeoff, **others)
    known = _measure_with(given)
    if known is not None:
        return known.loss_of(**_checked(known, given))
    offered = sorted(" and ".join(known.keywords) for known in registered() if known.keywords)
    raise InvalidTypeError(
        f"a privacy loss must have {', or '.join(offered)}; found {', '.join(given) or 'none'}"
    )


def guarded(**given: Any) -> dict[str, Any]:
    """Return the keywords, checked by the measure that has them all; others are unchanged."""
    given = _given(**given)
    known = _measure_with(given)
    return given if known is None else _checked(known, given)


def _given(**words: Any) -> dict[str, Any]:
    return {name: typed(value) for name, value in words.items() if value is not None}


def _measure_with(given: dict[str, Any]) -> type[CompositionMeasure[Any]] | None:
    """Return the measure with just these keywords. Those of this package are asked first."""
    if not given:
        return None
    return next((one for one in registered() if one.keywords.keys() == given.keys()), None)


def _checked(known: type[CompositionMeasure[Any]], given: dict[str, Any]) -> dict[str, Any]:
    checked = {name: known.keywords[name](**{name: down(value)}) for name, value in given.items()}
    plain = given.keys() <= {"epsilon", "delta", "rho", "mu"}
    return {key: cap_and_shown(given[key], checked[key])[0] for key in given} if plain else checked
