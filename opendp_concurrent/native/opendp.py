"""All uses of OpenDP's private names.

For errors and interrupts in native calls see :mod:`.callbacks`; for threads see :mod:`.argtypes`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from opendp import combinators, core, mod
from opendp._convert import (
    ATOM_MAP,
    c_to_py,
    py_to_c,
)
from opendp._lib import AnyObjectPtr, FfiResult, FfiSlice, lib, unwrap
from opendp.domains import _lazyframe_from_domain
from opendp.extras._utilities import to_then as _to_then
from opendp.mod import (
    Domain,
    LazyFrameDomain,
    Measure,
    Measurement,
    Metric,
    Transformation,
    VectorDomain,
    _PartialConstructor,
)
from opendp.typing import _ELEMENTARY_TYPES

from ..arguments.checks import shown
from ..arguments.provenance import Unrecorded
from ..errors import InvalidTypeError, InvalidValueError
from ..interrupts import whole
from .argtypes import answered, set_once
from .callbacks import carry as carry
from .callbacks import check_stack, guard
from .callbacks import inside_native_call as inside_native_call
from .callbacks import remember as remember
from .callbacks import typed as typed
from .trust import trusted

PARTIAL_CONSTRUCTOR: type = _PartialConstructor
VERSION: str = mod.__version__
_transformation_map = whole(core.transformation_map)
set_once()
guard()
MOST_ROWS = 2**36  # more than a machine holds


def _function(name: str, *argument_types: Any) -> Any:
    """Return a function of the native library, apart from the one that OpenDP configures."""
    function = lib[name]
    function.argtypes, function.restype = argument_types, FfiResult
    return function


_measurement_invoke = _function("opendp_core__measurement_invoke", Measurement, AnyObjectPtr)
_transform = _function("opendp_core__transformation_invoke", Transformation, AnyObjectPtr)
_object_type = _function("opendp_data__object_type", ctypes.c_void_p)
_object_as_slice = _function("opendp_data__object_as_slice", ctypes.c_void_p)
_free = {
    kind: _function(f"opendp_data__{kind}_free", ctypes.c_void_p)
    for kind in ("object", "slice", "str")
}
_ATOMS = {name: ATOM_MAP[name] for name in ("bool", "f32", "f64", "i32", "i64", "u32", "u64")}
_PLAIN = {
    **{name.encode(): (atom, False) for name, atom in _ATOMS.items()},
    **{f"Vec<{name}>".encode(): (atom, True) for name, atom in _ATOMS.items()},
}


# --- data ------------------------------------------------------------------------------------


def to_pointer(data: Any, carrier_type: Any) -> Any:
    """Convert ``data`` to OpenDP's representation, or raise; the message has no row of them."""
    try:
        if str(carrier_type).startswith("Vec<") and not len(data) <= MOST_ROWS:
            raise InvalidValueError(f"arg must have at most 2**36 rows, found {len(data)}")
        pointer = py_to_c(data, c_type=AnyObjectPtr, type_name=carrier_type)
    except InvalidValueError:
        raise
    except Exception as error:
        reason = str(error).partition(". ")[0] if isinstance(error, TypeError) else ""
        known = reason.startswith(("inferred type is", "Expected"))
        failure = reason if known else f"found {type(data).__name__} ({type(error).__name__})"
    else:
        failure = ""
    if failure:  # raised out here, since the error and its frames hold data
        del data
        raise InvalidTypeError(
            f"arg must be data that are a member of the input_domain, of type {carrier_type}: "
            f"{failure}"
        )
    pointer.__opendp_dict__ = {}  # OpenDP keeps the rows here
    return pointer


def invoke(measurement: Measurement, pointer: Any) -> Any:
    """Run a measurement on data that are converted already."""
    try:
        result = _measurement_invoke(measurement, pointer)
    finally:
        del pointer  # the traceback of an exception keeps this frame
    return unwrap(result, AnyObjectPtr) if result.tag else _answer(result)


def _answer(result: Any) -> Any:
    """Convert an answer as OpenDP does, with a short way for numbers and vectors of numbers."""
    address = result.payload.Ok
    kind = _ok(_object_type(address))
    plain = _PLAIN.get(ctypes.string_at(kind))
    _free["str"](kind)
    if plain is None:
        return c_to_py(unwrap(result, AnyObjectPtr))
    atom, is_vector = plain
    slice_address = _ok(_object_as_slice(address))
    numbers = FfiSlice.from_address(slice_address)
    if is_vector:
        answer = (atom * numbers.len).from_address(numbers.ptr)[:] if numbers.len else []
    else:
        answer = atom.from_address(numbers.ptr).value
    _free["slice"](slice_address)
    _free["object"](address)
    return answer


def _ok(result: Any) -> Any:
    return unwrap(result, ctypes.c_void_p) if result.tag else result.payload.Ok


def transform(transformation: Transformation, pointer: Any) -> Any:
    """Run a transformation on converted data; the result stays converted."""
    try:
        return unwrap(_transform(transformation, pointer), AnyObjectPtr)
    finally:
        del pointer


def apply(transformation: Transformation, pointer: Any) -> Any:
    """Apply a transformation to converted data, and convert the result."""
    try:
        result = _transform(transformation, pointer)
    finally:
        del pointer
    return unwrap(result, AnyObjectPtr) if result.tag else _answer(result)


def to_python(pointer: Any) -> Any:
    """Convert data back from OpenDP's representation."""
    return c_to_py(pointer)


def element_domain(domain: Domain) -> Domain | None:
    """Return the domain of a vector's elements, or None.

    For elements of a user's own domain, OpenDP has it only in the record of how it was made.
    """
    if isinstance(domain, VectorDomain):
        return domain.element_domain
    made = getattr(domain, "__opendp_dict__", {})
    of_users = domain.carrier_type == "Vec<ExtrinsicObject>"
    return made.get("__kwargs__", {}).get("atom_domain") if of_users else None


def empty_frame(domain: LazyFrameDomain) -> Any:
    """Make a Polars frame without rows that is a member of ``domain``."""
    return _lazyframe_from_domain(domain).collect()


def check_distance(metric: Metric, name: str, d_in: Any) -> None:
    """Raise unless ``d_in`` has the distance type of ``metric``."""
    try:
        py_to_c(d_in, c_type=AnyObjectPtr, type_name=metric.distance_type)
    except Exception as error:  # OpenDP's, or the value's own
        raise InvalidTypeError(
            f"{name} ({shown(d_in)}) must be a distance of {metric}, "
            f"of type {metric.distance_type}: {type(error).__name__}"
        ) from error


# --- maps ------------------------------------------------------------------------------------
# Maps are read through OpenDP's functions: an attribute or a subclass could return anything. They
# are read here only, so that the fence against known faults stands before each of them.


def measurement_map(measurement: Measurement, d_in: Any) -> Any:
    """Return the privacy loss at ``d_in``, corrected where OpenDP's map is known to be wrong.

    :raises AdvisoryError: if it is known to be wrong, and cannot be corrected
    """
    return typed(core.measurement_map, trusted(measurement, d_in), d_in)


def transformation_map(transformation: Transformation, d_in: Any, *, flows: bool = True) -> Any:
    """Return the stability at ``d_in``, unless OpenDP's map is known to be wrong.

    :param flows: whether the output becomes the data of measurements
    :raises AdvisoryError: if it is known to be wrong
    """
    check_stack()
    return _transformation_map(trusted(transformation, d_in, flows=flows), d_in)


class _PinnedMeasurement(Measurement):
    """A copy of a pointer that does not free the native object."""

    _type_ = Measurement._type_

    def __del__(self) -> None:
        """Do nothing: the original object frees the native object."""


class _PinnedTransformation(Transformation):
    """A copy of a pointer that does not free the native object."""

    _type_ = Transformation._type_

    def __del__(self) -> None:
        """Do nothing: the original object frees the native object."""


Pinnable = TypeVar("Pinnable", Measurement, Transformation)


def pinned(one: Pinnable) -> Pinnable:
    """Return an object that always points to the native object that ``one`` points to now.

    Anyone who holds ``one`` can change its pointer (``one.contents = other.contents``) after the
    check.
    """
    kind = _PinnedMeasurement if isinstance(one, Measurement) else _PinnedTransformation
    found: Any = ctypes.cast(one, kind)
    found.origin = one  # which frees it
    made: Pinnable = made_as(found, one)  # where dp.serialize reads it
    return made


def address(measurement: Measurement | Transformation) -> int:
    """Return the address of the native measurement. The pointer of a Python object can change."""
    return ctypes.addressof(measurement.contents)


@whole
def space_of(measurement: Measurement) -> tuple[Domain, Metric, Measure]:
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


# --- queryables ------------------------------------------------------------------------------


def evaluate(queryable: Any, query: Any) -> Any:
    """Query a native queryable."""
    return core.queryable_eval(queryable, query)


def evaluate_odometer(queryable: Any, query: Any) -> Any:
    """Launch on a native odometer queryable."""
    return core.odometer_queryable_invoke(queryable, query)


@whole
def python_queryable(transition: Callable[[Any], Any]) -> Any:
    """Make a native queryable from Python, so that OpenDP's wrappers apply to it.

    OpenDP stores the transition in ``__opendp_dict__``, from where its closure could be read; that
    is cleared.
    """
    queryable = core.new_queryable(carry(transition), Q="ExtrinsicObject", A="ExtrinsicObject")
    queryable.__opendp_dict__ = {}
    return queryable.value


# --- types -----------------------------------------------------------------------------------


def infer_as_measurement(kind: type) -> None:
    """Make OpenDP treat ``kind`` as a measurement where it infers types, as in lists."""
    _ELEMENTARY_TYPES[kind] = "AnyMeasurementPtr"


def refuse_in_filters(kind: type) -> None:
    """Make OpenDP's privacy filter refuse an odometer of ``kind`` with advice. Idempotent.

    An odometer of ``kind`` has no native object, so OpenDP's own message names a null pointer.
    """
    original = combinators.make_privacy_filter
    if kind in getattr(original, "_refused", ()):
        return

    @wraps(original)
    def make_privacy_filter(odometer: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(odometer, kind):
            raise InvalidTypeError(
                "odometer is made by make_concurrent_odometer, and has no native object; pass it "
                "to oc.make_concurrent_filter"
            )
        return original(odometer, *args, **kwargs)

    vars(make_privacy_filter)["_refused"] = (*getattr(original, "_refused", ()), kind)
    combinators.make_privacy_filter = make_privacy_filter


# --- records of how things were made ----------------------------------------------------------


def to_then(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``then_`` form of a ``make_`` constructor, whose results cannot be serialised."""
    make = _to_then(constructor)

    @wraps(make)
    def then(*args: Any, **kwargs: Any) -> Any:
        partial = make(*args, **kwargs)
        partial.__opendp_dict__ = Unrecorded()
        return partial

    return then


def unchained(name: str) -> str:
    """Return the message for a ``then_`` constructor where its result is needed."""
    return (
        f"{name} is a then_ constructor, which makes nothing before it is chained; chain it: "
        "input_space >> then_..., or transformation >> then_..."
    )


def made_as(one: Any, original: Any) -> Any:
    """Return ``one``, which equals ``original``, with the record of how ``original`` was made.

    The native object is unchanged; only ``dp.serialize`` reads the record.
    """
    record = getattr(original, "__opendp_dict__", None)
    if record is not None:
        one.__opendp_dict__ = record
    return one


def extend_deserialize(module: str, rebuild: Callable[[dict[str, Any]], Any]) -> None:
    """Let ``dp.deserialize`` call ``rebuild`` for what ``module`` has made. Idempotent."""
    original = mod._deserialization_hook
    if module in getattr(original, "_modules", ()):
        return

    def hook(record: dict[str, Any]) -> Any:
        ours = "__function__" in record and record.get("__module__") == module
        return rebuild(record) if ours else original(record)

    vars(hook)["_modules"] = (*getattr(original, "_modules", ()), module)
    mod._deserialization_hook = hook


# --- chaining --------------------------------------------------------------------------------


def extend_rshift(kind: type, chain: Callable[[Any, Transformation], Any]) -> None:
    """Let ``transformation >> x`` reach ``chain(x, transformation)`` for every x of ``kind``.

    OpenDP declares ``Transformation >> Odometer`` and does not implement it. Idempotent.
    """
    original = Transformation.__rshift__
    extensions: list[tuple[type, Any]] | None = getattr(original, "_extensions", None)
    if extensions is None:
        extensions = []

        def rshift(self: Transformation, other: Any) -> Any:
            for known, make_chain in extensions:
                if isinstance(other, known):
                    return make_chain(other, self)
            return original(self, other)

        rshift.__name__, rshift.__doc__ = "__rshift__", original.__doc__
        vars(rshift)["_extensions"] = extensions
        Transformation.__rshift__ = rshift
    if all(known is not kind for known, _ in extensions):
        extensions.append((kind, chain))
