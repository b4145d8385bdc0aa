"""The fence: what is read in place of a map that is known to be wrong, or the refusal.

The fence is asked for each native map that is read for a price or a stability
(``native/trust.py``). It looks at constructors and plans only, never at data.
"""

from __future__ import annotations

import re
from importlib import import_module
from math import inf
from typing import Any

import numpy as np
from opendp.extras.polars import pl
from opendp.metrics import hamming_distance, insert_delete_distance
from opendp.mod import Domain, LazyFrameDomain, Measurement

from ...errors import AdvisoryError, PrivacyMapError
from ...types import Distance
from ..trust import Native, set_fence
from .known import KNOWN
from .plans import Change, Plans, read, rows_in
from .record import Path, Step, measurements, paths, step

_THRESHOLDS = ("make_gaussian_threshold", "make_laplace_threshold", "make_noise_threshold")
_FRAMES = ("make_private_lazyframe", "make_stable_lazyframe")
_WITHOUT_NAN = ("make_drop_null", "make_impute_constant", "make_impute_uniform_float")
_BOUNDED = ("ChangeOne", "Hamming")
_SMALLEST = {"f64": -1074, "f32": -149}  # OpenDP's default granularity of noise, as a power of 2


def fence(made: Native, d_in: Distance, *, flows: bool) -> Native:
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


def _faults(path: Path, d_in: Distance, flows: bool) -> set[int]:
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
        ends = isinstance(one.made, Measurement)
        if may_be_nan and (one.name == "make_clamp" or (ends and one.name not in _FRAMES)):
            found.add(2935)  # a clamp raises, and so do some measurements
        may_be_nan |= one.name == "make_user_transformation" and _of_a_user(one)
        if ends or one.name in _WITHOUT_NAN or not _floats(one.made.output_domain):
            may_be_nan = False
    return found | {2935} if flows and may_be_nan else found


def _floats(domain: Any) -> list[str]:
    """Return the carrier type if it has floats; of frames the columns of floats without NaN."""
    if not isinstance(domain, LazyFrameDomain):
        return [atom for atom in _SMALLEST if atom in str(domain.carrier_type)]
    atoms = {name: domain.get_series_domain(name).element_domain for name in domain.columns}
    floats = [name for name, atom in atoms.items() if str(atom.carrier_type) in _SMALLEST]
    return [name for name in floats if not atoms[name].nan]


def _of_a_user(one: Step) -> bool:
    """Whether the function is neither OpenDP's own nor of this package."""
    module = str(getattr(one.given.get("function"), "__module__", ""))
    return module.partition(".")[0] not in ("opendp", "opendp_concurrent")


def _in_frames(path: Path, d_in: Distance, flows: bool) -> set[int]:
    """Return the faults of the plans on a path."""
    frames = [one for one in path if one.name in _FRAMES]
    if any(one.name in ("make_private_expr", "make_stable_expr") for one in path):
        raise PrivacyMapError(d_in, "an expression is checked in make_private_lazyframe only")
    if not frames or pl is None:
        return set()
    bounds = d_in if isinstance(d_in, list | tuple) else []
    # OpenDP itself drops the margins by columns that are redefined, but none by expressions
    by = {name for frame in frames for name in _of_expressions(frame.made.input_domain)}
    by |= {name for one in bounds for key in one.by for name in _roots(key)}
    users = [one for one in path if one.name == "make_user_transformation"]
    metric = str(path[0].made.input_metric)
    unit = re.search(r'identifier: col\("([^"\\]*)"\)', metric)
    changes = [_change(one) for one in bounds] or [Change(frozenset(), d_in, 1)]
    if any(kind in metric for kind in _BOUNDED):  # a row that changes is one less and one more
        changes = [Change(by, 2 * rows, 2 * groups) for by, rows, groups in changes]
    if users or ("Id" in metric and unit is None):  # their distances are not known
        by, changes = {*by, "*"}, []
    floats = [_floats(one.made.output_domain) for one in users if _of_a_user(one)]
    plans = Plans(
        by,
        [] if unit else changes,
        unit[1] if unit else None,
        rows_in(frozenset(), changes),
        {name: {2935} for names in floats for name in names},
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
        return last.name not in _FRAMES and isinstance(last.made.input_domain, LazyFrameDomain)
    return flows and isinstance(last.made.output_domain, LazyFrameDomain)


def _of_expressions(domain: Domain) -> set[str]:
    """Return the columns in margins by expressions. OpenDP shows these in the domain's text."""
    text = str(domain).partition("; margins=")[2]
    names = re.findall(r'col\("([^"\\]*)"\)', text)
    if not re.sub(r'col\("[^"\\]*"\)|[][{}(), ]', "", text):
        return set()  # by columns only
    return set(names) if text.count('"') == 2 * len(names) else {"*"}


def _roots(expression: Any) -> list[str]:
    return [expression] if isinstance(expression, str) else expression.meta.root_names()


def _change(bound: Any) -> Change:
    known = all(isinstance(key, str) or key.meta.is_column() for key in bound.by)
    by = frozenset(name for key in bound.by for name in _roots(key)) if known else {"*"}
    rows = inf if bound.per_group is None else bound.per_group
    groups = inf if bound.num_groups is None else bound.num_groups
    return Change(frozenset(by), rows, groups if by else 1)


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
