"""Measurements and transformations on data that are converted already."""

from __future__ import annotations

import ctypes
from typing import Any

from opendp._convert import ATOM_MAP, c_to_py
from opendp._lib import AnyObjectPtr, FfiResult, FfiSlice, lib, unwrap
from opendp.mod import Measurement, Transformation


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
