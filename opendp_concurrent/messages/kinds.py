"""OpenDP's constructors that a message may call, and the kinds of their arguments.

OpenDP's bindings pass a pointer on as it is: a domain for a metric, or a number for a string, ends
the process. So each argument of a call in a message is checked against its kind first.

Left out are: constructors of Python functions, Polars plans and data frames; ``make_identity``; and
``make_population_amplification``, whose loss rests on what the caller says of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from re import compile as pattern
from typing import Any

from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, Transformation

from ..types import Json

_NAMES = {  # of constructors, by module
    "core": """
        measurement_input_domain measurement_input_metric measurement_output_measure
        transformation_input_domain transformation_input_metric transformation_output_domain
        transformation_output_metric
    """,
    "domains": "atom_domain map_domain option_domain vector_domain",
    "metrics": """
        absolute_distance change_one_distance discrete_distance hamming_distance
        insert_delete_distance l1_distance l2_distance linf_distance symmetric_distance
    """,
    "measures": """
        approximate fixed_smoothed_max_divergence max_divergence renyi_divergence
        smoothed_max_divergence zero_concentrated_divergence
    """,
    "transformations": """
        make_b_ary_tree make_cast make_cast_default make_cast_inherent make_clamp make_count
        make_count_by make_count_by_categories make_count_distinct make_drop_null make_find
        make_find_bin make_impute_constant make_impute_uniform_float make_index
        make_is_equal make_is_null make_mean make_metric_bounded make_metric_unbounded
        make_ordered_random make_quantile_score_candidates make_resize make_sum
        make_sum_of_squared_deviations make_unordered make_variance
    """,
    "measurements": """
        make_canonical_noise make_gaussian make_gaussian_threshold make_geometric
        make_laplace make_laplace_threshold make_noise make_noise_threshold make_noisy_max
        make_noisy_top_k make_private_quantile make_randomized_response
        make_randomized_response_bool make_report_noisy_max_gumbel
    """,
    "combinators": """
        make_adaptive_composition make_approximate make_basic_composition make_chain_mt
        make_chain_tt make_composition make_fix_delta make_fixed_approxDP_to_approxDP
        make_fully_adaptive_composition make_privacy_filter make_pureDP_to_zCDP
        make_sequential_composition make_zCDP_to_approxDP
    """,
}
OF_OPENDP = {module: tuple(names.split()) for module, names in _NAMES.items()}

_TYPE = pattern(r"[A-Za-z]\w{0,39}(<[A-Za-z]\w{0,39}>)?")
_MOST = 10**6  # elements
WIDEST = 2**16  # bounds of constant-time noise, whose time grows with their difference


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and bool(value)  # no null pointer


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


def _is_32(value: Json) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def _is_atom(value: Json) -> bool:
    return type(value) in (int, float, bool, str)


def _is_list(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and 0 < len(value) <= _MOST and all(map(kind, value))


def _is_bounds(value: Json) -> bool:
    return type(value) is tuple and len(value) == 2 and all(map(_is_number, value))


def _is_loss(value: Json) -> bool:
    return _is_number(value) or _is_bounds(value)


KINDS: dict[str, Callable[[Any], bool]] = {
    "a domain": _is(Domain),
    "a metric": _is(Metric),
    "a measure": _is(Measure),
    "a measurement": _is(Measurement),
    "a transformation": _is(Transformation),
    "an odometer": _is(Odometer),
    "a number": _is_number,
    "an integer from 0 to 2^31": lambda value: _is_32(value) and value >= 0,
    "an integer of 32 bits, or None": lambda value: value is None or _is_32(value),
    "an exponent from -1074 to 1023, or None": lambda value: (
        value is None or (type(value) is int and -1074 <= value <= 1023)
    ),
    "a bool": lambda value: type(value) is bool,
    "a bool, or None": lambda value: value is None or type(value) is bool,
    "a text": lambda value: type(value) is str,
    "a type": lambda value: value is None or (type(value) is str and bool(_TYPE.fullmatch(value))),
    "a value": _is_atom,
    "values of one type": lambda value: _is_list(_is_atom)(value) and len({*map(type, value)}) == 1,
    "measurements": _is_list(_is(Measurement)),
    "a loss": _is_loss,
    "losses": _is_list(_is_loss),
    "bounds": _is_bounds,
    "bounds, or None": lambda value: value is None or _is_bounds(value),
}
BY_ANNOTATION = {
    "Domain": "a domain",
    "Metric": "a metric",
    "Measure": "a measure",
    "Measurement": "a measurement",
    "Transformation": "a transformation",
    "Odometer": "an odometer",
    "float": "a number",
    "int": "an integer from 0 to 2^31",
    "bool": "a bool",
    "str": "a text",
    "ConcurrentMeasurement": "a measurement",
}
BY_NAME = {  # of arguments without an annotation
    "bounds": "bounds, or None",
    "candidates": "values of one type",
    "categories": "values of one type",
    "d_in": "a number",
    "d_mids": "losses",
    "d_out": "a loss",
    "edges": "values of one type",
    "k": "an exponent from -1074 to 1023, or None",  # of the grid; memory grows with 2^k
    "measurements": "measurements",
    "nan": "a bool, or None",
    "size": "an integer of 32 bits, or None",
    "threshold": "a number",
}
