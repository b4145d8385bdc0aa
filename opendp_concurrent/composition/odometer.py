"""Odometers and filters: composition of mechanisms with adaptively chosen privacy losses.

An odometer has no bound of its own. A filter bounds an odometer. A limit is an odometer with a
bound of its own, below an account that is charged as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from opendp.mod import Domain, Measure, Metric, assert_features

from .. import _opendp as _native
from .. import queryables
from ..accounting import Bound, Ledger, Limit, Within, label_text, own_distance
from ..errors import Distance, InvalidTypeError, InvalidValueError, Loss, shown
from ..fdp import TradeoffFunction
from ..measures import Accumulator, CompositionMeasure, composition_measure, registered
from ..numerics import cap_and_shown, down, typed
from .guards import accumulator_for, bounded, check_unbounded, constructor
from .interactive import constant_map, make_measurement


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
) -> queryables.OdometerOf[queryables.ConcurrentOdometerQueryable]:
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
        queryables.check_ledger(ledger, measure)
        if measure.needs_orders:
            raise InvalidTypeError(
                "ledger is not supported for an odometer under Rényi curves; pass it to "
                "make_concurrent_filter with orders, or build the odometer under "
                "oc.fixed_renyi_divergence"
            )
    record = None if ledger is None else (ledger, own_distance(d_in))
    made = queryables.ConcurrentOdometer(
        (input_domain, input_metric),
        measure,
        accounting,
        queryables.spawn_odometer,
        record=record,
        opaque=opaque_errors,
    )
    return cast("queryables.OdometerOf[queryables.ConcurrentOdometerQueryable]", made)


then_concurrent_odometer = _native.to_then(make_concurrent_odometer)


# A filter: an odometer with a bound on its privacy loss.


@constructor
def make_concurrent_filter(
    odometer: queryables.ConcurrentOdometer,
    d_in: Distance,
    d_out: Loss,
    *,
    orders: Sequence[float] | None = None,
    halt: bool = False,
    ledger: Ledger | None = None,
    opaque_errors: bool = False,
) -> queryables.MeasurementOf[queryables.ConcurrentFilterQueryable]:
    """Bound the privacy loss of a concurrent odometer.

    The arguments are those of :func:`~opendp.combinators.make_privacy_filter`. The returned
    measurement spawns a queryable that launches mechanisms, interactive or not, while the
    odometer's accumulator stays at most ``d_out`` for inputs at distance ``d_in``. A launch that
    would exceed ``d_out`` is refused before it runs and is not charged; smaller launches remain
    possible. Children may be queried in any interleaving. Under approximate zCDP, a child that is
    approximate only as a whole is closed by the next launch or answer of any other. The whole loss
    is charged at launch.

    Guarantee: ``d_out`` under the odometer's measure, against any adaptive analyst [HSTVVXZ23,
    Theorems 1.20, 1.21, 4.6 and Lemma 2.19]; finite communication for (ε, δ)-DP, Gaussian DP and
    f-DP. For Rényi curves, the sum stays within ``d_out`` at every order of ``orders`` at once.

    Required features: `contrib`, `honest-but-curious`

    :param odometer: made by :func:`.make_concurrent_odometer`, possibly chained; or by OpenDP's
        :func:`~opendp.combinators.make_fully_adaptive_composition`, which is replaced by ours on
        the same space and measure: OpenDP's tells the loss of a launch only after it has run
    :param d_in: distance between neighbouring inputs, in units of the odometer's input metric
    :param d_out: bound on the privacy loss, finite, in units of its measure. A ``Decimal``, a
        ``Fraction`` or a text such as ``"0.7"`` is compared exactly, and shown rounded up. With a
        ledger, or an accumulator that is no plain sum, it is rounded down to a double
    :param orders: for Rényi curves only: the orders at which ``d_out`` is enforced
    :param halt: close the whole interaction, children too, at the first message to the handle that
        is no admitted launch, as Algorithm 3 of [HSTVVXZ23] does. Later errors have the reason
        (:class:`.HaltedError`). Methods such as ``privacy_loss`` and ``admits`` close nothing
    :param ledger: made by ``opendp_concurrent.ledger``; stores every charge durably before its
        mechanism runs. All processes that have the ledger open share the budget, and a later
        process continues from the stored charges
    :param opaque_errors: hide errors of mechanisms from the analyst: each raises the same
        :class:`.MechanismError`, and the logger ``opendp_concurrent.measurements`` logs the
        original error
    :return: a measurement that spawns a :class:`.ConcurrentFilterQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for a ledger under a measure whose children are not concurrent;
        by a launch of what is approximate zCDP only as a whole, if there is a ledger
    :raises LedgerError: if the ledger cannot be read, or was made under other terms

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.25)
    >>> release = root(count)
    >>> root(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: the filter refuses: spent 0.8 of 1, asked 0.8, ...
    >>> root.remaining()
    0.19999999999999996
    """
    odometer = check_unbounded(odometer, "the filter", opaque=opaque_errors)
    measure = odometer.measure
    terms = bounded(odometer, d_in, d_out, orders)
    d_in, budget = terms.d_in, terms.d_out
    book, start = None, terms.accumulator.start(measure)
    if ledger is not None:
        queryables.check_ledger(ledger, measure, halt=halt)
        book, start = queryables.open_book(ledger, terms)
    exact = ledger is None and hasattr(type(start), "limits")  # of sums that compare fractions
    cap, budget = cap_and_shown(d_out, budget) if exact else (budget, budget)
    name, space = repr(terms.accumulator), odometer.input_space
    bound = Bound(d_in, Within(budget, cap), start, halt, book, terms.measure, name)
    if terms.accumulator is not odometer.accumulator:
        name = repr(odometer.accumulator)
    made = make_measurement(
        space,
        odometer.output_measure,
        partial(queryables.spawn_filter, odometer, bound),
        constant_map(space[1], d_in, budget, odometer.distance_type),
        f"ConcurrentFilter({terms.measure}, {name}, d_in={d_in}, d_out={budget})",
        odometer if ledger is None else replace(odometer, record=(ledger, d_in)),
        composes=True,
        live=True,
    )
    return cast("queryables.MeasurementOf[queryables.ConcurrentFilterQueryable]", made)


# A limit: an odometer with a bound of its own, below an account that is charged as well.


@constructor
def make_limited(
    odometer: queryables.ConcurrentOdometer,
    d_in: Distance,
    d_out: Loss,
    *,
    label: str,
    orders: Sequence[float] | None = None,
) -> queryables.ConcurrentOdometer:
    """Bound the privacy loss of what one analyst, team or project launches below a filter.

    Launch what is returned on the handle of a filter, odometer or compositor: ``alice =
    root(oc.c.make_limited(...))``. This opens the limit and costs nothing. A launch on ``alice`` is
    charged to the limit and to each of its ancestors, before it runs. If one of them refuses, none
    is charged, and the refusal names the one that refused. Limits may nest, such as a person's in a
    team's, and their bounds may add up to more than what they share.

    A label names one limit below a handle. Opening it again returns the same handle. On a handle
    with a ledger, a launch is charged to all accounts in one transaction, and a limit that a later
    process opens under the same labels continues with what was spent.

    On a block filter, a limit bounds each block, and is a :class:`.BlockFilterQueryable`: ``alice``
    is opened without blocks, and ``alice(blocks, measurement)`` is charged to these blocks in the
    limit and in each ancestor. The guarantee is that of :func:`.make_block_filter`. ``d_in`` is
    then in units of the metric of the whole data, as it is there.

    Guarantee: everything that mechanisms launched below the limit answer is ``d_out``-DP under the
    odometer's measure, for inputs at distance ``d_in``, as if the limit were a filter and nothing
    else were answered (:func:`.make_concurrent_filter`). What several analysts learn together is
    bounded by the ancestor of their limits only, not by a limit. The guarantee of a limit ends
    where answers to other analysts shape the data that arrive, or choose the launches
    [TCCCG25]. Every ancestor's guarantee is unchanged: each launch is charged there too.

    Required features: `contrib`, `honest-but-curious`

    :param odometer: made by :func:`.make_concurrent_odometer`, possibly chained; its accumulator
        adds up what is launched below the limit, and may differ from that of the ancestors
    :param d_in: distance between neighbouring inputs, in units of the odometer's input metric,
        which is the metric of the queries of the handle that it is launched on
    :param d_out: bound on the privacy loss, finite, in units of its measure
    :param label: names the limit; plain text that does not depend on data, not empty
    :param orders: for Rényi curves only: the orders at which ``d_out`` is enforced
    :return: an odometer that is launched on a handle, and gives a
        :class:`.ConcurrentFilterQueryable`; on a block filter, a :class:`.BlockFilterQueryable`
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> alice, bob, carol = (
    ...     root(oc.c.make_limited(odometer, d_in=1, d_out=0.5, label=name))
    ...     for name in ("alice", "bob", "carol")
    ... )
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> release = alice(count)
    >>> alice(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: limit 'alice' of the filter refuses: spent 0.5 ...
    >>> release = bob(count)
    >>> carol(count)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.BudgetExceededError: the filter refuses: spent 1 of 1, asked 0.5, ...
    >>> carol.remaining(), root.remaining()
    (0.5, 0.0)
    """
    odometer = check_unbounded(odometer, "what the limit is launched on")
    label = label_text(label=label)
    if not label:
        raise InvalidValueError("label must not be empty; pass the name of an analyst or a team")
    limit = Limit(label, bounded(odometer, d_in, d_out, orders))
    return replace(odometer, spawn=queryables.spawn_limited, limit=limit)


# The conversion of a filter to its odometer: Lemma 2.19 of [HSTVVXZ23].


def make_filter_to_odometer(
    measurement: queryables.ConcurrentMeasurement,
) -> queryables.ConcurrentOdometer:
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
    if not isinstance(odometer, queryables.ConcurrentOdometer):
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
