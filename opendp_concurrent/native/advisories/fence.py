"""The fence: what is read in place of a map that is known to be wrong, or the refusal.

The fence is asked for each native map that is read for a price or a stability
(``native/trust.py``). It looks at constructors and plans only, never at data.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from opendp.extras.polars import pl
from opendp.metrics import hamming_distance, insert_delete_distance

from ...errors import AdvisoryError, PrivacyMapError
from ..trust import Native, set_fence
from .known import KNOWN
from .plans import Plans, read
from .record import Path, Step, margins, measurements, paths, step

_THRESHOLDS = ("make_gaussian_threshold", "make_laplace_threshold", "make_noise_threshold")
_NOISE = ("make_gaussian", "make_laplace", "make_noise", "make_canonical_noise", *_THRESHOLDS)
_FRAMES = ("make_private_lazyframe", "make_stable_lazyframe")
_WITHOUT_NAN = (  # what comes out is no NaN, or the function raises
    "make_cast_default",
    "make_clamp",
    "make_drop_null",
    "make_find_bin",
    "make_impute_constant",
    "make_impute_uniform_float",
    "make_quantile_score_candidates",
)
_BOUNDED = ("ChangeOne", "Hamming")
_SMALLEST = {"f64": -1074, "f32": -149}  # OpenDP's default granularity of noise, as a power of 2


def fence(made: Native, d_in: Any, *, flows: bool) -> Native:
    """Return an object whose map is right: ``made``, or one with a corrected map.

    :param flows: whether the output of a transformation becomes the data of measurements
    :raises AdvisoryError: for a map that is known to be wrong and that cannot be corrected
    """
    for path in paths(made):
        for issue in sorted(_faults(path, d_in, flows)):
            if KNOWN[issue].stands:
                one = KNOWN[issue]
                raise AdvisoryError(
                    d_in,
                    one.reference,
                    f"{one.fault}; {one.advice}; an owner to whom it does no harm can call "
                    f"oc.accept_advisories({one.reference!r})",
                )
    return _corrected(made) if KNOWN[2922].stands else made


def _faults(path: Path, d_in: Any, flows: bool) -> set[int]:
    found = _in_frames(path, d_in)
    may_be_nan = False
    for before, one in zip((None, *path), path, strict=False):
        if one.name == "make_metric_bounded" and one.made.output_metric == hamming_distance():
            found.add(2926)
        if one.name == "make_resize" and one.made.output_metric == insert_delete_distance():
            found.add(2927)
        counted = before is not None and before.name == "make_count_by_categories"
        if one.name == "make_b_ary_tree" and not counted:
            found.add(2925)
        if one.name == "make_randomized_response_bitvec":
            found.add(2930)
        if one.name in _NOISE and may_be_nan and _has_floats(one.made.input_domain):
            found.add(2935)
        if one.name == "make_user_transformation":
            may_be_nan = _of_a_user(one) and _has_floats(one.made.output_domain)
        elif one.name in _WITHOUT_NAN:
            may_be_nan = False
    return found | {2935} if flows and may_be_nan else found


def _has_floats(domain: Any) -> bool:
    return any(atom in str(domain.carrier_type) for atom in _SMALLEST)


def _of_a_user(one: Step) -> bool:
    """Whether the function is neither OpenDP's own nor of this package."""
    module = str(getattr(one.given.get("function"), "__module__", ""))
    return module.partition(".")[0] not in ("opendp", "opendp_concurrent")


def _in_frames(path: Path, d_in: Any) -> set[int]:
    """Return the faults of the plans on a path."""
    frames = [one for one in path if one.name in _FRAMES]
    if not frames or pl is None:
        return set()
    bounds = d_in if isinstance(d_in, list | tuple) else ()
    known = [one for frame in frames for one in margins(frame.given.get("input_domain"))]
    by = [expression for one in bounds for expression in getattr(one, "by", ())]
    # OpenDP itself drops the margins by columns that are redefined, but none by expressions
    by += [expression for one in known for expression in one.by if not _is_column(expression)]
    if any(one.name == "make_user_transformation" for one in path):  # its bounds are not known
        by.append("*")
    plans = Plans(name for one in by for name in _roots(one))
    try:
        for frame in frames:
            plans.add(read(frame.given["lazyframe"]))
    except Exception as error:  # Polars', of a step that it cannot write, or of a new node
        reason = f"its Polars plan cannot be checked for known faults ({type(error).__name__})"
        raise PrivacyMapError(d_in, reason) from None
    rows = _rows(d_in, bounds) * plans.rows
    if any(kind in str(path[0].made.input_metric) for kind in _BOUNDED):
        rows *= 2  # one changed row is one removed and one added
    if any(one.max_length is not None and one.max_length < rows for one in known):
        plans.found.add(2945)
    return plans.found


def _is_column(expression: Any) -> bool:
    return isinstance(expression, str) or bool(expression.meta.is_column_selection())


def _roots(expression: Any) -> list[str]:
    return [expression] if isinstance(expression, str) else expression.meta.root_names()


def _rows(d_in: Any, bounds: Any) -> int:
    if isinstance(d_in, int):
        return d_in
    return max((getattr(one, "per_group", 0) or 0 for one in bounds), default=0)


def _corrected(made: Any) -> Any:
    """Return a measurement with the same ε and the right δ, to be read and not to be run.

    OpenDP releases a noisy count of exactly the threshold, and its map has the probability of more
    than the threshold. So the map of the next lower threshold is the right one.
    """
    found = step(made)
    if found is None:
        return made
    given = found.given
    if found.name in _THRESHOLDS:
        given = {**given, "threshold": _next_lower(given)}
    elif inner := measurements(given):
        new = {id(one): _corrected(one) for one in inner}
        if all(new[id(one)] is one for one in inner):
            return made
        given = {
            key: [new.get(id(one), one) for one in value]
            if isinstance(value, list | tuple)
            else new.get(id(value), value)
            for key, value in given.items()
        }
    else:
        return made
    module = "measurements" if found.name in _THRESHOLDS else "combinators"
    return getattr(import_module(f"opendp.{module}"), found.name)(**given)


def _next_lower(given: dict[str, Any]) -> Any:
    """Return the largest threshold below the given one, on the grid of the noise or finer."""
    threshold = given["threshold"]
    carrier = str(given["input_domain"].carrier_type)
    atom = next((one for one in _SMALLEST if one in carrier), None)
    if atom is None:
        return threshold - (threshold > 0) + (threshold < 0)
    kind = np.float64 if atom == "f64" else np.float32
    k = given.get("k")
    below = kind(threshold) - kind(2.0 ** (_SMALLEST[atom] if k is None else k))
    return float(np.nextafter(below, kind(-np.inf)))


set_fence(fence)
