"""Guards that the constructors share. Each message begins with the argument's name."""

from __future__ import annotations

from collections.abc import Sequence

from opendp.mod import Domain, Measure, Measurement, Metric, Transformation

from ..arguments import checks
from ..arguments.checked import BY_CLASS
from ..arguments.checks import Guard, guard, shown
from ..errors import InvalidTypeError
from ..measures import CompositionMeasure
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentOdometer, replace
from ..sums.orders_sum import OnOrders
from ..types import Argument


def _native_kind(kind: type, word: str, example: str) -> Guard[Argument]:
    """Make the guard of one kind of OpenDP's objects, which refuses null pointers.

    An annotation with the class itself carries the guard.
    """

    def check(name: str, value: Argument) -> Argument:
        if isinstance(value, _native.PARTIAL_CONSTRUCTOR):
            raise InvalidTypeError(_native.unchained(name))
        if not isinstance(value, kind) or not value:
            found = "a null pointer" if isinstance(value, kind) else type(value).__name__
            raise InvalidTypeError(f"{name} must be a {word}, found {found}; pass {example}")
        return value

    made = BY_CLASS[kind] = Guard(check, word, (None, 3, "text", kind))
    return made


domain = _native_kind(Domain, "domain", "for example dp.vector_domain(dp.atom_domain(T=int))")
metric = _native_kind(Metric, "metric", "for example dp.symmetric_distance()")
measure = _native_kind(Measure, "measure", "for example dp.max_divergence()")
measurement = _native_kind(
    Measurement, "measurement", "what a make_ or then_ constructor of measurements returns"
)
transformation = _native_kind(
    Transformation, "transformation", "what a constructor of dp.t returns"
)


@guard("odometer", None, 3, "text")
def odometer(name: str, value: Argument) -> ConcurrentOdometer:
    """Return the argument if it is an odometer of this package, or raise naming the argument."""
    if not isinstance(value, ConcurrentOdometer):
        raise InvalidTypeError(
            f"{name} must be made by make_concurrent_odometer, found {type(value).__name__}"
        )
    found: ConcurrentOdometer = value
    return found


def check_odometer(value: Argument) -> ConcurrentOdometer:
    """Return the odometer if it is one of this package without a limit of its own, or raise."""
    found = odometer.check("odometer", value)
    if found.limit is not None:
        raise InvalidTypeError(
            f"odometer has the limit {shown(found.limit.label)} already: pass the odometer that "
            "was given to make_limited; to nest limits, launch one on the handle of the other"
        )
    return found


def check_unbounded(value: Argument, keeper: str, *, opaque: bool = False) -> ConcurrentOdometer:
    """Return an odometer that a bound is put on: without a limit, and with no ledger of its own.

    :param keeper: whom the ledger is passed to instead
    :param opaque: hide errors of mechanisms
    """
    found = check_odometer(value)
    if found.record is not None:
        raise InvalidTypeError(
            f"odometer must have no ledger of its own; pass the ledger to {keeper}"
        )
    return replace(found, opaque=True) if opaque else found


def check_orders(known: CompositionMeasure, orders: Sequence[float] | None) -> OnOrders | None:
    """Return the sum on ``orders`` for Rényi curves, or None for a measure without curves."""
    if not known.needs_orders:
        if orders is not None:
            raise InvalidTypeError(
                f"orders must be left out under {known.name}; it is for Rényi curves"
            )
        return None
    if orders is None:
        raise InvalidTypeError(
            "orders must be given: Rényi curves (output_measure) can only be compared on a grid; "
            "pass for example orders=[1.5, 2, 4, 8, 16, 32, 64]"
        )
    return OnOrders(checks.orders(orders=orders))
