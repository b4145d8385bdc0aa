"""How much work a call in a message is, estimated before the call.

A message is short, and what it asks for may take hours: a counter for 2^20 steps, the optimal
composition of a thousand losses. So each call has an estimate, in units of about a millisecond, and
a message has a limit on their sum. An estimate is for the worst case, also of reading the loss
once, since a server reads it before anything is charged.

Calls that are not listed take less than a millisecond for whatever fits into a message;
``tests/contracts/test_catalogue_messages.py`` builds each constructor with large arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from ..errors import InvalidValueError
from ..exact.participations import Participations
from ..measures import composition_measure
from ..measures.kinds import PURE, TRADEOFF
from ..native import opendp as _native
from ..tables.domain import Tables
from .kinds import WIDEST

MOST_WORK = 1500  # units of about a millisecond
MOST_KEYS = 1000
MOST_STEPS = 2**20  # of a counter that keeps its items
MOST_INTEGERS = 2**17
_SIMPLE = (str, int, float, bool, date, type(None))
_GIVEN = Mapping[str, Any]


class Work:
    """The work of one message, which is added up while it is built.

    :ivar left: units that it may still use
    """

    __slots__ = ("_functions", "left")

    def __init__(self) -> None:
        self.left = float(MOST_WORK)
        self._functions = 0  # trade-off functions so far: their products are converted together

    def add(self, name: str, given: _GIVEN) -> None:
        """Add the work of a call, or raise.

        :raises InvalidValueError: if the message is more work than it may be
        """
        _check_bounds(name, given)
        for place in ("items", "keys", "groups", "measurements"):
            if isinstance(found := given.get(place), list | tuple | dict):
                _check_hashes(place, found)
        self.left -= _ESTIMATES.get(name, _one)(given) + self._of_functions(given)
        if not self.left >= 0:
            raise InvalidValueError(
                f"message is too much work with its call of {name}: about "
                f"{MOST_WORK - self.left:.0f} milliseconds, where {MOST_WORK} are allowed; send "
                "less at once, or build what a trusted party asks for with dp.deserialize"
            )

    def _of_functions(self, given: _GIVEN) -> float:
        """Return the work of trade-off functions, from and to which measurements are converted."""
        source = _kind(getattr(given.get("measurement"), "output_measure", None))
        target = _kind(given.get("to_measure"), given.get("output_measure"))
        work = 0.0
        if source == TRADEOFF != target and target is not None:
            work += 80.0 * self._functions  # of their product
        if target == TRADEOFF:
            self._functions += 1
            work += 1.0 if source in (None, PURE) else 80.0  # by the chords of a privacy profile
        return work


def _kind(*measures: Any) -> str | None:
    for one in measures:
        try:
            return composition_measure(one).kind
        except InvalidValueError:
            return ""  # a measure that is not composed, such as privacy profiles
        except TypeError:
            continue  # none is given
    return None


# --- estimates -----------------------------------------------------------------------------------


def _one(given: _GIVEN) -> float:
    return 0.1


def _composition(given: _GIVEN) -> float:
    """The plain sum; with ``delta`` the optimal one, whose time grows with distinct losses."""
    losses = given.get("d_mids", given.get("quotas"))
    losses = list(losses.values()) if isinstance(losses, dict) else _listed(losses)
    each = 0.4 if "quotas" in given else 0.05
    work = each * len(losses)
    if given.get("delta") is not None:
        work += 15.0 * len({one for one in losses if _is_pair(one)})
    return 1.0 + work + _at_orders(given)


def _is_pair(one: Any) -> bool:
    return type(one) is tuple and all(type(part) in (int, float) for part in one)


def _at_orders(given: _GIVEN) -> float:
    """The curve is read at each order, of each measurement."""
    parts = len(_listed(given.get("measurements"))) or 1
    return 0.5 * parts * len(_listed(given.get("orders")))


def _parts(given: _GIVEN) -> float:
    found = given.get("measurements")
    count = len(found) if isinstance(found, dict) else len(_listed(found))
    return 1.0 + 0.5 * count + _at_orders(given)


def _blocks(given: _GIVEN) -> float:
    """The budget of a unit is divided by the blocks that it may have rows in."""
    domain = getattr(given.get("odometer"), "input_domain", None)
    tables: Any = _native.descriptor(domain)
    rows = (tables.rows or 1) if isinstance(tables, Tables) else 1
    keys = given.get("keys")
    many = len(keys) if isinstance(keys, range) else len(_listed(keys))
    return 1.0 + 0.01 * rows + 0.005 * many + _at_orders(given)


def _counter(given: _GIVEN) -> float:
    horizon = given.get("horizon", given.get("window"))
    steps = min(max(horizon, 0), MOST_STEPS) if type(horizon) is int else 0
    spaced = isinstance(_native.descriptor(given.get("input_metric")), Participations)
    if spaced or given.get("participations") is not None or given.get("method") == "banded":
        return 500.0 + 0.005 * steps  # powers and bands are compared
    return 20.0 + (0.001 * steps if given.get("method") == "square_root" else 0.0)


def _universe(given: _GIVEN) -> float:
    """Tails of the noise are computed, and a number or more is kept for each cell."""
    universe, queries = given.get("universe"), given.get("queries")
    cells = universe if type(universe) is int else len(_listed(universe))
    size = getattr(queries, "size", None) or sum(len(_listed(one)) or 1 for one in _listed(queries))
    return 250.0 + 6e-5 * max(cells, 0) + 0.006 * size


def _linear(given: _GIVEN) -> float:
    """Strategies are compared, in time that grows with the cube of cells, for up to 1,300."""
    universe = given.get("universe")
    cells = universe if type(universe) is int else len(_listed(universe))
    return _universe(given) + 3e-5 * min(cells, 1300) ** 3


def _releases(given: _GIVEN) -> float:
    hits = given.get("max_hits")
    return 20.0 + (0.001 * hits if type(hits) is int else 0.0) + _at_orders(given)


def _strategy(given: _GIVEN) -> float:
    """Strategies are compared, in time that grows with the cube of cells."""
    cuts = given.get("cuts")
    size = len(cuts) if isinstance(cuts, range) else len(_listed(cuts))
    return _values(given) + 50.0 + 2e-5 * size**3 + (1000.0 if size > 64 else 0.0)


def _key_noise(given: _GIVEN) -> float:
    """The noise that needs the fewest units is searched for, for up to 1000 keys of a unit."""
    return 400.0


def _cast(given: _GIVEN) -> float:
    return 1.0 + _at_orders(given)


def _values(given: _GIVEN) -> float:
    """Values are checked one by one."""
    return 1.0 + 0.01 * sum(_size(one) for one in given.values())


def _size(one: Any) -> int:
    return len(one) if isinstance(one, list | tuple | dict | range) else 1


def _listed(found: Any) -> list[Any] | tuple[Any, ...]:
    return found if isinstance(found, list | tuple) else ()


_ESTIMATES: dict[str, Callable[[_GIVEN], float]] = {
    "cast": _cast,
    "make_alarm": _releases,
    "make_analyst_quotas": _composition,
    "make_block_filter": _blocks,
    "make_composition": _parts,
    "make_concurrent_composition": _composition,
    "make_concurrent_filter": _cast,
    "make_counter": _counter,
    "make_guess_and_check": _releases,
    "make_histogram_counter": _counter,
    "make_indexed_composition": _parts,
    "make_limited": _cast,
    "make_linear_queries": _linear,
    "make_ordered_composition": _parts,
    "make_parallel_composition": _parts,
    "make_private_multiplicative_weights": _universe,
    "make_projected_queries": _composition,
    "make_public_join": _values,
    "make_quantile_score_candidates": _values,
    "make_quantile_scores": _values,
    "make_sparse_vector": _releases,
    "make_table_counts": _values,
    "make_table_histogram": _values,
    "make_table_keys": _key_noise,
    "make_table_moments": _values,
    "make_table_prefixes": _strategy,
    "make_table_sums": _values,
    "make_window_counter": _counter,
}


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
