"""Domains, distances, maps and queryables of OpenDP."""

from collections.abc import Callable
from typing import Any

from opendp import core, mod
from opendp._lib import AnyObjectPtr
from opendp.domains import _lazyframe_from_domain, _member

from ..errors import Answer, Data, Distance, InvalidTypeError, Query, shown
from .advisories import refuse
from .calls import answered, call_native, carry, check_stack, convert_objects
from .interrupts import uninterruptible


def is_member(domain: mod.Domain, data: Data) -> bool:
    """Whether ``data`` are in a domain. OpenDP's own test warns with the rows that are not."""
    try:
        return bool(_member(domain, data))
    except Exception:  # what cannot be converted is none
        return False


def element_domain(domain: mod.Domain) -> mod.Domain | None:
    """Return the domain of a vector's elements, or None.

    For elements of a user's own domain, OpenDP has it only in the record of how it was made.
    """
    if isinstance(domain, mod.VectorDomain):
        return domain.element_domain
    made = getattr(domain, "__opendp_dict__", {})
    of_users = domain.carrier_type == "Vec<ExtrinsicObject>"
    return made.get("__kwargs__", {}).get("atom_domain") if of_users else None


def empty_frame(domain: mod.LazyFrameDomain) -> Any:
    """Make a Polars frame without rows that is a member of ``domain``."""
    return _lazyframe_from_domain(domain).collect()


def check_distance(metric: mod.Metric, name: str, d_in: Distance) -> None:
    """Raise unless ``d_in`` has the distance type of ``metric``."""
    try:
        convert_objects(d_in, c_type=AnyObjectPtr, type_name=metric.distance_type)
    except Exception as error:  # OpenDP's, or the value's own
        raise InvalidTypeError(
            f"{name} ({shown(d_in)}) must be a distance of {metric}, "
            f"of type {metric.distance_type.replace('u32', 'int')}, found {type(d_in).__name__}"
        ) from error


# Privacy and stability maps, read through OpenDP's functions.
#
# An attribute or a subclass could return anything. Maps are read here only, after a look for known
# faults of the constructor (:mod:`.advisories`). The value is always OpenDP's own.

_transformation_map = uninterruptible(core.transformation_map)


def measurement_map(measurement: mod.Measurement, d_in: Distance) -> Any:
    """Return the privacy loss at ``d_in``, unless OpenDP's map is known to be wrong.

    :raises AdvisoryError: if it is known to be wrong
    """
    refuse(measurement, d_in)
    return call_native(core.measurement_map, measurement, d_in)


def transformation_map(
    transformation: mod.Transformation, d_in: Distance, *, flows: bool = True
) -> Any:
    """Return the stability at ``d_in``, unless OpenDP's map is known to be wrong.

    :param flows: whether the output becomes the data of measurements
    :raises AdvisoryError: if it is known to be wrong
    """
    check_stack()
    refuse(transformation, d_in, flows=flows)
    return _transformation_map(transformation, d_in)


@uninterruptible
def space_of(measurement: mod.Measurement) -> tuple[mod.Domain, mod.Metric, mod.Measure]:
    """Return the domain, metric and measure of a measurement."""
    return (
        core.measurement_input_domain(measurement),
        core.measurement_input_metric(measurement),
        core.measurement_output_measure(measurement),
    )


def native_only(function: Callable[..., Any], *arguments: Any) -> tuple[Any, bool]:
    """Return ``function(*arguments)``, and whether it ran without calling Python.

    If it did not call Python, the result depends only on the arguments of OpenDP's constructors,
    and does not change.
    """
    before = answered()
    answer = function(*arguments)
    return answer, answered() == before


# Native queryables.


evaluate, evaluate_odometer = core.queryable_eval, core.odometer_queryable_invoke


@uninterruptible
def python_queryable(transition: Callable[[Query], Answer]) -> mod.Queryable:
    """Make a native queryable from Python, so that OpenDP's wrappers apply to it.

    The object that OpenDP returns has the transition in ``__opendp_dict__``, from where its closure
    could be read. So only the pointer leaves this function.
    """
    made = core.new_queryable(carry(transition), Q="ExtrinsicObject", A="ExtrinsicObject")
    return made.value
