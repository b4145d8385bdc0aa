"""OpenDP's constructors that a message may call, and the kinds of their arguments.

OpenDP's bindings pass a pointer on as it is: a domain for a metric, or a number for a string, ends
the process. So each argument of a call in a message is checked against its kind first.

Left out are: constructors of Python functions, Polars plans and data frames; ``make_identity``; and
``make_population_amplification``, whose loss rests on what the caller says of the data.
"""

from collections.abc import Callable, Mapping
from datetime import date
from re import compile as pattern
from typing import Any

from opendp.mod import Domain, Measure, Measurement, Metric, Odometer, Transformation

from .. import _opendp as _native
from ..errors import InvalidValueError, Json
from ..measures import PURE, TRADEOFF, composition_measure
from ..tables import Tables

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


MESSAGE_KINDS: dict[str, Callable[[Any], bool]] = {
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


# How many cells a message may make: what its calls compute beyond what its text has.
#
# A message is short, and what it names may be large: a universe of 2^24 cells, a counter for 2^20
# steps, the optimal composition of a thousand losses. So each call counts cells before it is made,
# and a message has a limit on their sum, the same for each argument that names many. A server also
# reads the loss of what a message makes, once, before anything is charged.
#
# ``tests/contracts/test_catalogue_messages.py`` builds each constructor with large arguments.

MOST_CELLS = 2**20
MOST_KEYS = 1000
MOST_INTEGERS = 2**17
_SIMPLE = (str, int, float, bool, date, type(None))
_GIVEN = Mapping[str, Any]
_CALL = 64
_ELEMENT = 8  # of a list: its elements are checked one by one
_LOSS = 2**14  # of an optimal composition, for each distinct loss
_CHORDS = 2**16  # of a trade-off function
_FIXED = {  # of arguments that make tables, whatever is passed
    "universe": 2**17,
    "horizon": 2**17,
    "window": 2**17,
    "max_hits": 2**14,
    "cuts": 2**16,
}
_SEARCH = {"make_table_keys": 2**18}  # the noise that needs the fewest units is searched for


class Work:
    """The cells of one message, which are added up while it is built.

    :ivar left: how many it may still make
    """

    def __init__(self) -> None:
        self.left = MOST_CELLS
        self._functions = 0  # trade-off functions so far: their products are converted together

    def add(self, name: str, given: _GIVEN) -> None:
        """Add the cells of a call, or raise.

        :raises InvalidValueError: if the message makes more cells than it may
        """
        _check_bounds(name, given)
        for place in ("items", "keys", "groups", "measurements"):
            if isinstance(found := given.get(place), list | tuple | dict):
                _check_hashes(place, found)
        self.left -= _SEARCH.get(name, 0) + _cells(given) + self._of_functions(given)
        if not self.left >= 0:
            raise InvalidValueError(
                f"message makes too many cells with its call of {name}: {MOST_CELLS - self.left}, "
                f"where {MOST_CELLS} are allowed; send less at once, or build what a trusted party "
                "asks for with dp.deserialize"
            )

    def _of_functions(self, given: _GIVEN) -> int:
        """Return the cells of trade-off functions, from and to which measurements are converted."""
        source = _kind(getattr(given.get("measurement"), "output_measure", None))
        target = _kind(given.get("to_measure"), given.get("output_measure"))
        cells = 0
        if source == TRADEOFF != target and target is not None:
            cells += _CHORDS * self._functions  # of their product
        if target == TRADEOFF:
            self._functions += 1
            cells += 0 if source in (None, PURE) else _CHORDS  # by the chords of a privacy profile
        return cells


def _kind(*measures: Any) -> str | None:
    for one in measures:
        try:
            return composition_measure(one).kind
        except InvalidValueError:
            return ""  # a measure that is not composed, such as privacy profiles
        except TypeError:
            continue  # none is given
    return None


def _cells(given: _GIVEN) -> int:
    """Return the cells of a call, by the names of its arguments."""
    found = _CALL + sum(size for name, size in _FIXED.items() if given.get(name) is not None)
    found += _ELEMENT * sum(map(_length, given.values()))
    for name in ("universe", "columns", "horizon", "window", "max_hits"):
        if type(one := given.get(name)) is int:  # no constructor makes more at once
            found += min(max(one, 0), MOST_CELLS // 2)
    losses, orders, domain = (given.get(one) for one in ("d_mids", "orders", "input_domain"))
    if given.get("delta") is not None:  # of an optimal composition
        many = set(filter(_is_bounds, losses)) if isinstance(losses, list | tuple) else ()
        parts = 2 if "max_hits" in given else _length(given.get("measurements"))
        found += _LOSS * (len(many) or parts)
    # a Rényi curve is read at each order, of each measurement
    found += 256 * _length(orders) * max(1, _length(given.get("measurements")))
    found += 16 * _length(given.get("cuts")) ** 2  # sums of cells are compared
    domain = getattr(given.get("odometer"), "input_domain", domain)
    tables: Any = _native.descriptor(domain) if "blocks" in given else None
    if isinstance(tables, Tables):  # a unit's budget is divided by the blocks it has rows in
        found += 8 * (tables.rows or 1)
    return found


def _length(one: Any) -> int:
    return len(one) if isinstance(one, list | tuple | dict | range) else 0


# --- arguments that are refused, whatever else is in the message ----------------------------------


def _check_bounds(name: str, given: _GIVEN) -> None:
    """Raise for ranges that are short to write. The time of noise with bounds grows with them."""
    bounds = given.get("bounds")
    if "geometric" in name and isinstance(bounds, list | tuple):
        if len(bounds) != 2 or not all(type(one) is int for one in bounds):
            raise InvalidValueError(f"message calls {name} with bounds that are no two integers")
        if bounds[1] - bounds[0] > WIDEST:
            raise InvalidValueError(
                f"message calls {name}: bounds must be at most {WIDEST} apart; leave them out"
            )
    if name == "integers" and any(
        type(one) is int and abs(one) > MOST_INTEGERS for one in given.values()
    ):
        raise InvalidValueError(
            f"message has a range of integers beyond {MOST_INTEGERS}; list them"
        )


def _check_hashes(place: str, found: Any) -> None:
    """Raise if there are many values whose hashes may have been chosen to be equal.

    Then the time of a mapping grows with the square of their number.
    """
    if isinstance(found, dict):
        keys = [value for many in found.values() if isinstance(many, list) for value in many]
    elif place in ("items", "measurements"):
        keys = [one[0] for one in found if isinstance(one, list | tuple) and one]
    else:
        keys = list(found)
    if len(keys) > MOST_KEYS and not all(type(key) in _SIMPLE for key in keys):
        raise InvalidValueError(
            f"message: {place} must be at most {MOST_KEYS}, or all of them text, numbers or dates"
        )
