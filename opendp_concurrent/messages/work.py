"""How many cells a message may make: what its calls compute beyond what its text has.

A message is short, and what it names may be large: a universe of 2^24 cells, a counter for 2^20
steps, the optimal composition of a thousand losses. So each call counts cells before it is made,
and a message has a limit on their sum, the same for each argument that names many. A server also
reads the loss of what a message makes, once, before anything is charged.

``tests/contracts/test_catalogue_messages.py`` builds each constructor with large arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from ..errors import InvalidValueError
from ..measures import composition_measure
from ..measures.kinds import PURE, TRADEOFF
from ..native import opendp as _native
from ..tables.domain import Tables
from .kinds import WIDEST

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
    if given.get("delta") is not None and isinstance(losses, list | tuple):
        found += _LOSS * len({one for one in losses if _is_pair(one)})
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


def _is_pair(one: Any) -> bool:
    return type(one) is tuple and all(type(part) in (int, float) for part in one)


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
