"""All that differs between the versions of OpenDP that this package runs on: 0.14.2 to 0.17.

What is different is looked for, not the number of the version: a nightly has that of an earlier
release.
"""

from __future__ import annotations

from inspect import signature, unwrap
from types import CodeType
from typing import Any

from opendp import _convert, measurements, measures, mod, transformations
from opendp.mod import Metric

# since 0.15: before it, two measures of users are equal if their names are
KEEPS_DESCRIPTORS = "identifier" in signature(measures.user_divergence).parameters
HAS_NOISY_TOP_K = hasattr(measurements, "then_noisy_top_k")  # since 0.15
# 0.17 has another name for it
_PROFILE: Any = mod.PrivacyProfile if hasattr(mod, "PrivacyProfile") else mod.PrivacyGuarantee


def options_of_tree(metric: Metric) -> dict[str, Metric]:
    """Return what ``make_b_ary_tree`` needs beside its sizes: since 0.17 its output metric."""
    names = signature(transformations.make_b_ary_tree).parameters
    return {"output_metric": metric} if "output_metric" in names else {}


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
