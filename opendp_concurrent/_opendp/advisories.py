"""Known faults of OpenDP's maps that show in the name or the arguments of a constructor.

What has such a fault is refused, with the issue of OpenDP. No map is corrected: OpenDP's own is
charged, or nothing. Whether the installed OpenDP has a fault is found by trying it, when a launch
first meets the constructor, and never by the version, since a nightly has that of the last release.
Faults that only the steps of a Polars plan show are not looked for: ``docs/advisories.rst`` has
them. There is one exception: conversions that end in an error that depends on one row, namely
strict ones in the keys of a plan, and local times.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from math import dist, isnan
from typing import Any, NamedTuple

from opendp import domains, measurements, metrics, transformations
from opendp.mod import Domain, LazyFrameDomain, Measurement, Metric

from .._checks import one_of
from ..errors import AdvisoryError, Distance
from .private import options_of_tree

_CHAINS = {"make_chain_mt": "measurement1", "make_chain_tt": "transformation1"}
_THRESHOLDS = ("make_gaussian_threshold", "make_laplace_threshold", "make_noise_threshold")
_DEVIATIONS = ("make_sum_of_squared_deviations", "make_variance")
_WITHOUT_NAN = ("make_drop_null", "make_impute_constant", "make_impute_uniform_float")
_KEYS = ("keys", "left_on", "right_on", "by_column", "Over", "Window")  # in the JSON of a plan
_STRICT = re.compile(r'"options":"Strict"|"strict":true|"ReplaceStrict"')
_LOCAL = re.compile(r'"Strptime":\[\{"Literal":\{"Datetime":\["\w+",(?!null|\{"inner":"UTC"\})')
_SHOWN = re.compile(r"strict_cast\(|strptime\(|replace_strict\(")  # where there is no JSON


class _Step(NamedTuple):
    """One constructor, its arguments, and what it made."""

    name: str
    given: dict[str, Any]
    made: Any


def _released_at_equality() -> bool:
    counts = domains.map_domain(domains.atom_domain(T=str), domains.atom_domain(T=int))
    unit = metrics.l01inf_distance(metrics.absolute_distance(T=int))
    return bool(measurements.make_laplace_threshold(counts, unit, 1e-3, 5)({"a": 5}))


def _moved_by_a_mean() -> bool:
    low, size = 2.0**50, 1024
    atom = domains.atom_domain(bounds=(low, low + 1), nan=False)
    make = transformations.make_sum_of_squared_deviations
    made = make(domains.vector_domain(atom, size=size), metrics.symmetric_distance())
    rest = [low + 0.25] * (size - 1)
    return bool(abs(made([low + 0.25, *rest]) - made([low + 0.5, *rest])) > made.map(2))


def _tree(size: int, metric: Metric) -> Any:
    make = transformations.make_b_ary_tree
    space = domains.vector_domain(domains.atom_domain(T=int), size=size), metric
    return make(*space, leaf_count=size, branching_factor=size, **options_of_tree(metric))


def _more_than_its_height() -> bool:
    tree = _tree(4, metrics.l2_distance(T=int))
    return bool(dist(tree([0] * 4), tree([1] * 4)) > tree.map(2))


def _wraps_around() -> bool:
    tree = _tree(2, metrics.l1_distance(T=int))
    one, other = tree([2**31 - 1, 0]), tree([2**31 - 1, 1])
    return bool(sum(abs(a - b) for a, b in zip(one, other, strict=True)) > tree.map(1))


def _halved() -> bool:
    space = domains.vector_domain(domains.atom_domain(T=int), size=3)
    made = transformations.make_metric_bounded(space, metrics.insert_delete_distance())
    return bool(made.map(2) < 3)


def _shuffled() -> bool:
    space = domains.vector_domain(domains.atom_domain(T=int)), metrics.insert_delete_distance()
    made = transformations.make_resize(*space, 20, 0, MO="InsertDeleteDistance")
    return bool(made([*range(20)]) != [*range(20)])


def _length_shown() -> bool:
    space = domains.bitvector_domain(max_weight=1), metrics.discrete_distance()
    made = measurements.make_randomized_response_bitvec(*space, f=0.5)
    return len(made(b"\x01")) != len(made(b"\x01\x00"))


def _nan_is_a_number() -> bool:
    space = domains.atom_domain(T=float, nan=False), metrics.absolute_distance(T=float)
    return not isnan(measurements.make_laplace(*space, scale=1.0)(float("nan")))


_FAULTS: dict[int, tuple[str, Callable[[], bool]]] = {
    2922: (
        "a threshold is released at equality, which the δ of the privacy map leaves out; use the "
        "group_by of LazyFrames, or count by public keys",
        _released_at_equality,
    ),
    2923: (
        "the rounding of the mean is missing in the sensitivity of squared deviations; release a "
        "sum and a sum of squares, or shift the data towards zero and accept this fault",
        _moved_by_a_mean,
    ),
    2924: (
        "an L2 distance grows by more than the height of a tree; use dp.l1_distance",
        _more_than_its_height,
    ),
    2925: (
        "the sums of make_b_ary_tree wrap around, unless its leaves are counts of rows; chain it "
        "after make_count_by_categories",
        _wraps_around,
    ),
    2926: (
        "make_metric_bounded halves an ordered distance, where every position can change; begin "
        "with dp.symmetric_distance()",
        _halved,
    ),
    2927: (
        "make_resize shuffles only some of its inputs, so ordered distances have no bound; pass "
        "MO=SymmetricDistance",
        _shuffled,
    ),
    2930: (
        "randomized response shows the length of a bit vector; use "
        "dp.m.make_randomized_response_bool for each bit",
        _length_shown,
    ),
    2933: (
        "measurements that are amplified on one sample do not compose, since all of them are on "
        "the same sample; amplify the whole filter or compositor in place of what it launches",
        lambda: True,  # whatever OpenDP says of compositions: the sum is no bound
    ),
    2935: (
        "NaN is read as 0 before noise is added, or fails, and a function of Python may return NaN "
        "although its output_domain has none; chain dp.t.then_impute_constant, return integers, or "
        "declare columns with nan=True",
        _nan_is_a_number,
    ),
}
ACCEPTED: set[int] = set()


@cache
def _tried(stands: Callable[[], bool]) -> bool:
    try:
        return stands()
    except Exception:  # the constructor has changed, which does not say that the fault is mended
        return True


def refuse(made: Any, d_in: Distance = None, *, flows: bool = False) -> None:
    """Raise if ``made`` has a known fault.

    :param d_in: the distance at which the map is read, if it is known
    :param flows: whether the output of a transformation becomes the data of measurements
    :raises AdvisoryError: with the issue of OpenDP
    """
    for path in _paths(made):
        for one in path:
            reason = _fails_on_a_row(one, d_in) if "lazyframe" in one.given else ""
            if reason:
                raise AdvisoryError("contrib/opendp/strict", reason)
        for issue in _faults(path, flows):
            if issue not in ACCEPTED and _tried(_FAULTS[issue][1]):
                raise AdvisoryError(
                    f"opendp#{issue}",
                    f"{_FAULTS[issue][0]}; an owner to whom it does no harm can call "
                    f"oc.accept_advisories('opendp#{issue}')",
                )


def _paths(made: Any) -> Iterator[list[_Step]]:
    """Yield the constructors of each path from the data to an answer, in the order they run.

    OpenDP keeps them in ``__opendp_dict__``. Maps of this package read those of their parts.
    """
    record = getattr(made, "__opendp_dict__", None)
    if type(record) is not dict or not isinstance(record.get("__kwargs__"), dict):
        yield [_Step("", {}, made)]
        return
    name, given = str(record["__function__"]), record["__kwargs__"]
    if name in _CHAINS:
        for first in _paths(given["transformation0"]):
            yield from (first + rest for rest in _paths(given[_CHAINS[name]]))
        return
    parts = given.get("measurements", [])
    if not isinstance(parts, list | tuple):
        raise AdvisoryError(
            "docs/advisories.rst",
            f"the parts of a composition are in {type(parts).__name__}, where known faults cannot "
            "be looked for; pass a list or a tuple",
        )
    inner = [one for one in (*given.values(), *parts) if isinstance(one, Measurement)]
    for one in inner:
        yield from _paths(one)
    if not inner or name == "make_population_amplification":
        yield [_Step(name, given, made)]


def _faults(path: list[_Step], flows: bool) -> Iterator[int]:
    """Yield the issues of a path."""
    may_be_nan = counted = False
    for name, given, made in path:
        if name in _THRESHOLDS:
            yield 2922
        if name in _DEVIATIONS:
            yield 2923
        if name == "make_b_ary_tree":
            if "L2" in f"{made.input_metric} {made.output_metric}":
                yield 2924
            if not counted:
                yield 2925
        if name == "make_metric_bounded" and made.input_metric == metrics.insert_delete_distance():
            yield 2926
        if name == "make_resize" and made.output_metric == metrics.insert_delete_distance():
            yield 2927
        if name == "make_randomized_response_bitvec":
            yield 2930
        if name == "make_population_amplification":
            yield 2933
        ends = isinstance(made, Measurement)
        if may_be_nan and (ends or name == "make_clamp"):  # a clamp raises, as some measurements do
            yield 2935
        module = str(getattr(given.get("function"), "__module__", "")).partition(".")[0]
        of_a_user = module not in ("opendp", "opendp_concurrent")
        may_be_nan |= name == "make_user_transformation" and of_a_user
        may_be_nan &= not ends and name not in _WITHOUT_NAN and _floats(made.output_domain)
        counted = name == "make_count_by_categories"
    if flows and may_be_nan:
        yield 2935


def _floats(domain: Domain) -> bool:
    """Whether the carrier type has floats; for frames, whether a column has floats without NaN."""
    if not isinstance(domain, LazyFrameDomain):
        return re.search("f64|f32", str(domain.carrier_type)) is not None
    atoms = [domain.get_series_domain(name).element_domain for name in domain.columns]
    return any(str(one.carrier_type) in ("f64", "f32") and not one.nan for one in atoms)


def _fails_on_a_row(one: _Step, d_in: Distance) -> str:
    """Return why an error of a plan may tell of one row; empty if no conversion is known to.

    Strict conversions do in keys: of the plan, its domain, metric or distance. In rows, OpenDP
    makes them lenient or refuses them. A local time that a time zone lacks is an error anywhere.
    """
    buffer, keys = BytesIO(), list[Any]()
    one.given["lazyframe"]._ldf.serialize_json(buffer)
    text = buffer.getvalue().decode()
    if _LOCAL.search(text):
        return (
            "a text that is converted to a time in a time zone fails if one row has a local time "
            "that this time zone lacks, so that an error tells of this row; leave the time zone "
            "out, or use UTC"
        )

    def collect(node: dict[str, Any]) -> dict[str, Any]:
        keys.extend(node[key] for key in _KEYS if key in node)
        return node

    json.loads(text, object_hook=collect)
    bounds = d_in if isinstance(d_in, list | tuple) else []
    by = [str(key) for bound in bounds for key in getattr(bound, "by", [])]
    shown = f"{by} {one.made.input_domain} {one.made.input_metric}"
    if _STRICT.search(json.dumps(keys, separators=(",", ":"))) or _SHOWN.search(shown):
        return (
            "a strict conversion in a key, an identifier or a margin fails if one row cannot be "
            "converted, so that an error tells of this row; pass strict=False, or convert the "
            "column with with_columns first"
        )
    return ""


def accept_advisories(*references: str) -> None:
    """Use OpenDP's maps in this process in spite of known faults.

    The owner of the data calls this function, as for ``dp.enable_features``, if a fault does no
    harm in the owner's programs. No message can call it. Losses that were charged before do not
    change.

    Guarantee: none for a measurement that the advisory would refuse. Its bound is as true as the
    map of OpenDP.

    :param references: such as ``"opendp#2935"``; the page *Known faults of OpenDP* lists them
    :raises InvalidValueError: for a reference that is not listed

    :example:

    >>> oc.accept_advisories("opendp#9999")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.InvalidValueError: references ('opendp#9999') must be one of ...
    """
    by_name = {f"opendp#{issue}": issue for issue in _FAULTS}
    guard = one_of(*by_name)
    ACCEPTED.update([by_name[guard(references=reference)] for reference in references])
