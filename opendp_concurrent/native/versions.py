"""What differs between the versions of OpenDP that this package runs on: 0.14.2 to 0.17."""

from __future__ import annotations

from inspect import unwrap
from types import CodeType
from typing import Any

from opendp import _convert, mod

_PROFILE: Any = mod.PrivacyProfile if hasattr(mod, "PrivacyProfile") else mod.PrivacyGuarantee


def curve_of(d_out: Any) -> Any:
    """Return the curve of a privacy profile; any other distance as it is."""
    if not isinstance(d_out, _PROFILE):
        return d_out
    return d_out.curve if hasattr(d_out, "curve") else d_out.guarantee


def callback_codes() -> set[CodeType]:
    """Return the code of the functions of OpenDP that native code calls."""
    return {
        _callback("_invoke_py_callback", "_wrap_py_func"),
        _callback("_invoke_py_transition", "_wrap_py_transition"),
    }


def _callback(shared: str, preparing: str) -> CodeType:
    """Return the code of one callback; 0.14 makes one in each function that prepares it."""
    if hasattr(_convert, shared):
        constants = [getattr(_convert, shared).__code__]
    else:
        constants = [*unwrap(getattr(_convert, preparing)).__code__.co_consts]
    codes = [one for one in constants if isinstance(one, CodeType)]
    return next(one for one in codes if one.co_name in (shared, "wrapper_func"))
