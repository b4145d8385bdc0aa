"""Guards that the constructors share. Each message begins with the argument's name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, overload

from .. import _checks as checks
from .. import _opendp as _native
from .. import errors, queryables
from .._opendp import dp
from ..accounting import Terms
from ..measures import Accumulator, Basic, CompositionMeasure, OnOrders, grid_curve


def _native_kind(kind: type, word: str, example: str) -> checks.Guard[errors.Argument]:
    """Make the guard of one kind of OpenDP's objects, which refuses null pointers.

    An annotation with the class itself carries the guard.
    """

    def check(name: str, value: errors.Argument) -> errors.Argument:
        if isinstance(value, _native.PARTIAL_CONSTRUCTOR):
            raise errors.InvalidTypeError(_native.unchained(name))
        if not isinstance(value, kind) or not value:
            found = "a null pointer" if isinstance(value, kind) else type(value).__name__
            raise errors.InvalidTypeError(f"{name} must be a {word}, found {found}; pass {example}")
        return value

    made = checks.GUARDS[kind] = checks.Guard(check, word, (None, 3, "text", kind))
    return made


domain = _native_kind(dp.Domain, "domain", "for example dp.vector_domain(dp.atom_domain(T=int))")
metric = _native_kind(dp.Metric, "metric", "for example dp.symmetric_distance()")
measure = _native_kind(dp.Measure, "measure", "for example dp.max_divergence()")
measurement = _native_kind(
    dp.Measurement, "measurement", "what a make_ or then_ constructor of measurements returns"
)
transformation = _native_kind(
    dp.Transformation, "transformation", "what a constructor of dp.t returns"
)


@checks.guard("odometer", None, 3, "text")
def odometer(name: str, value: errors.Argument) -> queryables.ConcurrentOdometer:
    """Return the argument as an odometer of this package, or raise naming the argument."""
    if type(value) is dp.Odometer:
        value = queryables.as_concurrent(value)
    if not isinstance(value, queryables.ConcurrentOdometer):
        raise errors.InvalidTypeError(
            f"{name} must be made by make_concurrent_odometer, found {type(value).__name__}"
        )
    return value


@checks.guard("measurement or odometer", None, 3, "text", dp.Measurement)
def interactive(
    name: str, value: errors.Argument
) -> dp.Measurement | queryables.ConcurrentOdometer:
    """Return a measurement, or an odometer of this package on data that are fixed, or raise."""
    if not isinstance(value, dp.Odometer):
        return measurement.check(name, value)
    found = check_odometer(value)
    check_static(found.query_space[0])
    return found


def check_odometer(value: errors.Argument) -> queryables.ConcurrentOdometer:
    """Return the odometer if it is one of this package without a limit of its own, or raise."""
    found = odometer.check("odometer", value)
    if found.limit is not None:
        raise errors.InvalidTypeError(
            f"odometer has the limit {errors.shown(found.limit.label)} already: pass the odometer "
            "that was given to make_limited; to nest limits, launch one on the handle of the other"
        )
    return found


def check_unbounded(
    value: errors.Argument, keeper: str, *, opaque: bool = False
) -> queryables.ConcurrentOdometer:
    """Return an odometer that a bound is put on: without a limit, and with no ledger of its own.

    :param keeper: whom the ledger is passed to instead
    :param opaque: hide errors of mechanisms
    """
    found = check_odometer(value)
    if found.wrapped:
        queryables.require_launches(found)
    if found.record is not None:
        raise errors.InvalidTypeError(
            f"odometer must have no ledger of its own; pass the ledger to {keeper}"
        )
    return replace(found, opaque=True) if opaque else found


def check_orders(known: CompositionMeasure[Any], orders: Sequence[float] | None) -> OnOrders | None:
    """Return the sum on ``orders`` for Rényi curves, or None for a measure without curves."""
    if not known.needs_orders:
        if orders is not None:
            raise errors.InvalidTypeError(
                f"orders must be left out under {known.name}; it is for Rényi curves"
            )
        return None
    if orders is None:
        raise errors.InvalidTypeError(
            "orders must be given: Rényi curves (output_measure) can only be compared on a grid; "
            "pass for example orders=[1.5, 2, 4, 8, 16, 32, 64]"
        )
    return OnOrders(checks.orders(orders=orders))


# Checks that an accumulator supports a measure and a bound. The accumulator decides.

_METHODS = ("supports", "start", "from_record")


def accumulator_for(
    measure: CompositionMeasure[Any], accumulator: errors.Argument = None
) -> Accumulator:
    """Return ``accumulator`` if it supports ``measure``; if left out, the measure's own sum.

    :raises InvalidTypeError: if it is not an accumulator
    :raises UnsupportedMeasureError: if it does not support the measure
    """
    if accumulator is None or isinstance(accumulator, Basic):
        return measure.sum()
    if not all(callable(getattr(type(accumulator), name, None)) for name in _METHODS):
        raise errors.InvalidTypeError(
            "accumulator must be one of oc.accumulators, such as oc.accumulators.basic(), "
            f"or of your own, whose class has the methods {', '.join(_METHODS)}; found "
            f"{errors.shown(accumulator)}"
        )
    found: Accumulator = accumulator
    if not found.supports(measure):
        measure.sum()  # may refuse with a better reason
        made_for = getattr(type(found), "made_for", "other measures")
        raise errors.UnsupportedMeasureError(
            f"accumulator ({errors.shown(found)}) supports {made_for}, but output_measure is "
            f"{measure.name}, whose distance is {measure.distance_form}; leave accumulator "
            "out, or cast the measurements to a supported measure"
        )
    return found


def check_budget(accounting: Accumulator, d_out: errors.Loss) -> None:
    """Raise if the accumulator has ``check_budget`` and would admit no launch under ``d_out``."""
    check = getattr(type(accounting), "check_budget", None)
    if check is not None:
        check(accounting, d_out)


def bounded(
    odometer: queryables.ConcurrentOdometer,
    d_in: errors.Distance,
    d_out: errors.Loss,
    orders: Sequence[float] | None,
) -> Terms:
    """Return the terms under which an odometer is bounded.

    :raises InvalidTypeError, InvalidValueError: naming the argument
    """
    measure, accounting = odometer.measure, odometer.accumulator
    d_in = queryables.validate_d_in(odometer.input_metric, d_in, odometer.distance_type)
    budget = measure.validate_budget("d_out", d_out)
    check_budget(accounting, budget)
    on_orders = check_orders(measure, orders)
    if on_orders is not None:
        accounting, budget = on_orders, grid_curve(on_orders.orders, budget, "d_out")
    return Terms(measure.name, accounting, odometer.metric_name, d_in, budget)


# What every public constructor has: features, guards, and a record of how it was called.

F = TypeVar("F", bound=Callable[..., Any])
FEATURES = ("contrib", "honest-but-curious")


@overload
def constructor(make: F, /) -> F: ...
@overload
def constructor(
    *, features: tuple[str, ...] = FEATURES, **given: Callable[..., Any]
) -> Callable[[F], F]: ...
def constructor(
    make: Any = None, /, *, features: tuple[str, ...] = FEATURES, **given: Callable[..., Any]
) -> Any:
    """Make a constructor that needs features, checks its arguments, and records its call.

    First the features of OpenDP; then the guards of the arguments, as by :func:`.checked`; then the
    constructor itself; then the record for ``dp.serialize``.

    :param features: those of OpenDP that the user must have enabled
    :param given: guards that no annotation carries

    :example:

    >>> @oc.extend.constructor
    ... def make_halved_laplace(scale: oc.extend.checks.Positive) -> dp.Measurement:
    ...     return dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale / 2)
    >>> make_halved_laplace(scale=-1.0)
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.InvalidValueError: scale (-1.0) must be positive and finite
    """

    def decorate(make: F) -> F:
        guards = checks.find_guards(make, given)
        made: F = checks.recorded(make, guards, partial(dp.assert_features, *features))
        vars(made).update(__guards__=guards, __features__=features)
        return made

    return decorate if make is None else decorate(make)


# What may stand inside of another measurement, and on which data.


def check_measurement(name: str, value: errors.Argument) -> dp.Measurement:
    """Return the measurement, or raise: also for a known fault of OpenDP."""
    found: dp.Measurement = measurement.check(name, value)
    _native.refuse(found)
    return found


def check_static(input_domain: dp.Domain) -> None:
    """Raise for a stream: what comes later would never reach a mechanism on data as they are."""
    if queryables.is_stream(input_domain):
        raise errors.InvalidTypeError(
            f"input_domain ({input_domain}) is a stream, whose items come later and would never "
            "reach this mechanism; use a continual one, such as make_counter or make_alarm"
        )


def check_inside(name: str, measurement: dp.Measurement) -> None:
    """Raise for measurements that cannot be wrapped.

    These are those with a known fault of OpenDP, and on a stream what does not receive its updates:
    updates to the wrapper would not reach the children of a wrapped composition.
    """
    _native.refuse(measurement)
    if queryables.is_stream(measurement.input_domain) and not queryables.takes_stream(measurement):
        raise errors.InvalidTypeError(f"{name} {queryables.NOT_CONTINUAL}")
    if not isinstance(measurement, queryables.ConcurrentMeasurement):
        return
    if measurement.composes and queryables.is_stream(measurement.input_domain):
        raise errors.InvalidTypeError(
            f"{name} composes mechanisms on a stream ({measurement.input_domain}), whose "
            "updates would not reach them; wrap it in make_concurrent_continual first"
        )


def check_measurement_on(
    name: str, measurement: dp.Measurement, input_domain: dp.Domain, input_metric: dp.Metric
) -> dp.Measurement:
    """Return the measurement if it has this domain and metric, or raise."""
    one = check_measurement(name, measurement)
    if not queryables.same_domain(one.input_domain, input_domain):
        raise errors.SpaceMismatchError(f"{name}.input_domain", input_domain, one.input_domain)
    if one.input_metric != input_metric:
        raise errors.SpaceMismatchError(f"{name}.input_metric", input_metric, one.input_metric)
    return one


# Guards of pairs of OpenDP's objects: a space, a unit of privacy, and a loss.


@checks.guard("nothing hostile", None, 1.0, (None, 1.0), [])
def privacy_loss(name: str, value: errors.Argument) -> tuple[dp.Measure, Any]:
    """Return a measure and a loss, or raise."""
    first, loss = _two("a measure and a loss", "dp.loss_of(epsilon=1.0)", name, value)
    return measure.check(f"{name}[0]", first), loss


@checks.guard("nothing hostile", None, 1, (None, 1), [])
def privacy_unit(name: str, value: errors.Argument) -> tuple[dp.Metric, Any]:
    """Return a metric and a distance, or raise."""
    first, d_in = _two("a metric and a distance", "dp.unit_of(contributions=1)", name, value)
    return metric.check(f"{name}[0]", first), d_in


@checks.guard("nothing hostile", None, (None, None), [])
def space(name: str, value: errors.Argument) -> tuple[dp.Domain, dp.Metric]:
    """Return a domain and a metric, or raise."""
    example = "dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()"
    first, second = _two("a domain and a metric", example, name, value)
    return domain.check(f"{name}[0]", first), metric.check(f"{name}[1]", second)


def _two(what: str, example: str, name: str, value: errors.Argument) -> tuple[Any, ...]:
    parts = checks.two(value)
    if not parts:
        raise errors.InvalidTypeError(
            f"{name} must be {what}, found {checks.shown(value)}; pass for example {example}"
        )
    return parts
