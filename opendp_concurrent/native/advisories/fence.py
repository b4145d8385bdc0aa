"""The fence: what is read in place of a map that is known to be wrong, or the refusal.

The fence is asked for each native map that is read for a price or a stability
(``native/trust.py``). It looks at constructors and plans only, never at data.
"""

from __future__ import annotations

import re
from importlib import import_module
from math import inf
from typing import Any, TypeGuard

import numpy as np
from opendp.extras.polars import pl
from opendp.metrics import hamming_distance, insert_delete_distance
from opendp.mod import Domain, LazyFrameDomain, Measurement

from ...errors import AdvisoryError, PrivacyMapError
from ..trust import Native, set_fence
from .known import KNOWN
from .plans import Change, Plans, read
from .record import Path, Step, measurements, paths, step

_THRESHOLDS = ("make_gaussian_threshold", "make_laplace_threshold", "make_noise_threshold")
_FRAMES = ("make_private_lazyframe", "make_stable_lazyframe")
_WITHOUT_NAN = (  # what comes out is no NaN, and the function does not raise
    "make_cast_default",
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
    found = _in_frames(path, d_in, flows)
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
        ends = isinstance(one.made, Measurement) and one.name not in _FRAMES
        if may_be_nan and (ends or one.name == "make_clamp") and _floats(one.made.input_domain):
            found.add(2935)  # a clamp raises, and so do some measurements
        if one.name == "make_user_transformation":
            may_be_nan |= _of_a_user(one)
            may_be_nan &= bool(_floats(one.made.output_domain))
        elif one.name in _WITHOUT_NAN:
            may_be_nan = False
    return found | {2935} if flows and may_be_nan else found


def _floats(domain: Domain) -> list[str]:
    """Return the carrier type if it has floats; of frames the columns of floats without NaN."""
    if not _is_frame(domain):
        return [atom for atom in _SMALLEST if atom in str(domain.carrier_type)]
    atoms = {name: domain.get_series_domain(name).element_domain for name in domain.columns}
    return [
        name for name, atom in atoms.items() if str(atom.carrier_type) in _SMALLEST and not atom.nan
    ]


def _is_frame(domain: Domain) -> TypeGuard[LazyFrameDomain]:
    return str(domain.carrier_type) == "LazyFrame"


def _of_a_user(one: Step) -> bool:
    """Whether the function is neither OpenDP's own nor of this package."""
    module = str(getattr(one.given.get("function"), "__module__", ""))
    return module.partition(".")[0] not in ("opendp", "opendp_concurrent")


def _in_frames(path: Path, d_in: Any, flows: bool) -> set[int]:
    """Return the faults of the plans on a path."""
    frames = [one for one in path if one.name in _FRAMES]
    if any(one.name in ("make_private_expr", "make_stable_expr") for one in path):
        raise PrivacyMapError(d_in, "an expression is checked in make_private_lazyframe only")
    if not frames or pl is None:
        return set()
    bounds = d_in if isinstance(d_in, list | tuple) else ()
    # OpenDP itself drops the margins by columns that are redefined, but none by expressions
    by = {name for frame in frames for name in _of_expressions(frame.made.input_domain)}
    by |= {name for one in bounds for key in one.by for name in _roots(key)}
    users = [one for one in path if one.name == "make_user_transformation"]
    if users:  # its bounds are not known
        by.add("*")
    metric = str(path[0].made.input_metric)
    unit = re.search(r'identifier: col\("([^"\\]*)"\)', metric)
    lost = [name for one in users if _of_a_user(one) for name in _floats(one.made.output_domain)]
    known = not users and ("Id" not in metric or unit is not None)
    times = 2 if any(kind in metric for kind in _BOUNDED) else 1
    plans = Plans(
        by,
        _changes(d_in, bounds, times) if known else [],
        unit[1] if unit else None,
        {name: {2935} for name in lost},
        frames[-1].made.input_domain,
    )
    try:
        for frame in frames:
            plans.add(read(frame.given["lazyframe"]))
    except Exception as error:  # Polars', of a step that it cannot write, or of a new node
        reason = f"its Polars plan cannot be checked for known faults ({type(error).__name__})"
        raise PrivacyMapError(d_in, reason) from None
    return plans.found | (plans.unfinished if _frames_flow(path[-1], flows) else set())


def _frames_flow(last: Step, flows: bool) -> bool:
    """Whether frames become the data of measurements that the path does not show."""
    if isinstance(last.made, Measurement):
        return last.name not in _FRAMES and _is_frame(last.made.input_domain)
    return flows and _is_frame(last.made.output_domain)


def _of_expressions(domain: Domain) -> set[str]:
    """Return the columns in margins by expressions. OpenDP shows these in the domain's text."""
    text = str(domain).partition("; margins=")[2]
    names = re.findall(r'col\("([^"\\]*)"\)', text)
    if not re.sub(r'col\("[^"\\]*"\)|[][{}(), ]', "", text):
        return set()  # by columns only
    return set(names) if text.count('"') == 2 * len(names) else {"*"}


def _roots(expression: Any) -> list[str]:
    return [expression] if isinstance(expression, str) else expression.meta.root_names()


def _changes(d_in: Any, bounds: Any, times: int) -> list[Change]:
    """Return what differs between neighbours at a distance, as far as it is known.

    :param times: 2 if a row that changes is one that leaves and one that comes
    """
    if isinstance(d_in, int):
        return [Change(frozenset(), times * d_in, 1)]
    return [
        Change(
            frozenset(key if isinstance(key, str) else _name(key) for key in one.by),
            inf if one.per_group is None else times * max(one.per_group, 1),
            (inf if one.by else 1) if one.num_groups is None else times * one.num_groups,
        )
        for one in bounds
    ]


def _name(expression: Any) -> str:
    return str(expression.meta.output_name()) if expression.meta.is_column() else "*"


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
