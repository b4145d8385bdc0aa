"""The totals of all blocks: an immutable value that shares one array with its successors.

A launch changes few of many totals, so it must not copy them all. The array holds one value; others
are differences to it. Whoever reads another value exchanges the two (Baker's trick). So each value
stays what it is, whatever happens to its successors: a launch that another account refuses, a
ledger that cannot commit, another thread. An exchange is a critical section.

An old value keeps all later differences. So after some exchanges, the next value gets an array of
its own, to which no older value leads. The old array goes when nobody holds its values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..arguments.checks import shown
from ..arguments.written import written
from ..errors import BlockExceededError, BudgetExceededError, InvalidTypeError, InvalidValueError
from ..interrupts import Lock
from ..sums.accumulator import Accumulator, times
from ..types import Key, Loss
from .counters import Counters
from .keys import Keys, Places
from .shared import Shared


@dataclass(frozen=True, slots=True, eq=False)
class OnBlocks:
    """What a launch costs: a privacy loss, charged to each of some blocks.

    :ivar places: of the blocks, sorted, each once
    """

    places: Places
    d_mid: Loss


@written("on-blocks", "keys", "d_mid")
@dataclass(frozen=True, slots=True)
class OnKeys:
    """The same, with keys instead of places: what a ledger keeps.

    :ivar keys: of the blocks
    """

    keys: tuple[Any, ...]
    d_mid: Loss


class _Array:
    """The array that the values share. Its lock is held for each exchange."""

    def __init__(self, cells: Counters | Shared) -> None:
        self.cells, self.lock = cells, Lock()
        self.written = 0  # totals that exchanges replaced

    @property
    def is_worn(self) -> bool:
        """Whether the next value should have its own array: a copy costs less than what was done.

        Half of the cells may be spare.
        """
        return self.written + self.cells.kept > max(_EXCHANGES, 4 * len(self.cells))


_EXCHANGES = 1000  # totals


class Totals:
    """The totals of all blocks after some launches. Immutable; blocks beyond the array are new.

    :param keys: of the blocks; those of a ledger are added when they are first charged
    :param start: the accumulator of no launch
    :param d_out: the bound of each block
    """

    def __init__(self, keys: Keys, start: Accumulator, d_out: Loss) -> None:
        self._terms = keys, start, d_out
        self.launches = 0
        # the array; and unless it holds this value: another value, and at which places this one
        # differs from it, and the totals here and there
        self._where: tuple[_Array | None, tuple[Totals, Any, Any, Any] | None] = None, None
        self._unread = True  # no value leads to this one

    @property
    def loss(self) -> Totals:
        """The losses of all blocks, which is this value; see :meth:`of`."""
        return self

    def of(self, key: Key) -> Accumulator:
        """Return the accumulator of the block with this key; that of no launch for a new key."""
        keys, start, _ = self._terms
        return self.at(keys.place(key)) if key in keys else start

    def __repr__(self) -> str:
        return f"BlockTotals({len(self._terms[0])} blocks)"

    def read(self, d_mid: Loss) -> Any:
        """Return a cost on blocks, or a d_mid alone, in the form that is added."""
        if isinstance(d_mid, OnKeys):
            return OnKeys(d_mid.keys, self._terms[1].read(d_mid.d_mid))
        if not isinstance(d_mid, OnBlocks):
            return self._terms[1].read(d_mid)
        return OnBlocks(d_mid.places, self._terms[1].read(d_mid.d_mid))

    def at(self, place: int) -> Accumulator:
        """Return the accumulator of one block."""
        if self._where[0] is None:
            return self._terms[1]
        one: Accumulator = self._held(self._at, place)
        return one

    def _held(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(array, *arguments)``, called while its array holds this value."""
        while True:
            array: Any = self._where[0]
            with array.lock:
                # another thread may have moved this value to another array
                if self._be_newest(array) is array:
                    return function(array, *arguments)

    def _at(self, array: _Array, place: int) -> Accumulator:
        array.cells.grow(place + 1)
        return array.cells.accumulator(array.cells.read([place])[0])

    def admitted(self, d_mid: OnBlocks | OnKeys, count: int = 1) -> Totals | BudgetExceededError:
        """Return the totals after launches, or the refusal of the first block that refuses."""
        if isinstance(d_mid, OnKeys):
            d_mid = OnBlocks(self._terms[0].placed(d_mid.keys), d_mid.d_mid)
        if type(count) is not int or count != 1:
            count = times(count)
        verdict: Totals | BudgetExceededError
        if self._where[0] is None:
            verdict = self._admitted(self._new_array(), d_mid, count)
        else:
            verdict = self._held(self._admitted, d_mid, count)
        return verdict

    def _admitted(self, array: _Array, d_mid: OnBlocks, count: int) -> Totals | BudgetExceededError:
        array.cells.grow(int(d_mid.places[-1]) + 1)
        now = array.cells.read(d_mid.places)
        after: Any = array.cells.after(now, d_mid.d_mid, count)
        if isinstance(after, tuple):
            position, refusal = after
            return BlockExceededError.of(refusal, self._key(d_mid.places[position]))
        found = Totals(*self._terms)
        found.launches = self.launches + count
        if self._where[0] is None:
            array.cells.write(d_mid.places, after)  # nobody else has this array
            found._where = array, None
        else:
            found._where = array, (self, d_mid.places, after, now)
        return found

    def after(self, d_mid: Loss, count: int = 1) -> Totals:
        """Return the totals after ``count`` launches, which were charged and so fit.

        :raises InvalidTypeError, InvalidValueError: if they do not, or ``d_mid`` is no such cost
        """
        if not isinstance(d_mid, (OnBlocks, OnKeys)):
            raise InvalidTypeError(f"d_mid must be a loss on blocks, found {shown(d_mid)}")
        verdict = self.admitted(d_mid, count)
        if isinstance(verdict, BudgetExceededError):
            raise InvalidValueError(f"the launches do not fit: {verdict}")
        return verdict

    def within(self, d_out: Loss) -> bool:
        """Return True: only launches that fit are added."""
        return True

    def remaining(self, d_out: Loss) -> Totals:
        """Return this value; see :meth:`at`."""
        return self

    def to_record(self) -> dict[str, int]:
        """Return the number of launches: the totals follow from the charges of a ledger."""
        return {"launches": self.launches}

    def _key(self, place: Any) -> Any:
        return self._terms[0].at(place.reshape(1))[0]

    def _new_array(self) -> _Array:
        keys, start, d_out = self._terms
        additive = all(hasattr(type(start), name) for name in ("amounts", "limits", "of_amounts"))
        cells: Any = Counters if additive else Shared
        array = _Array(cells(start, d_out))
        array.cells.grow(len(keys))
        return array

    def _be_newest(self, array: _Array) -> _Array | None:
        """Return the array, which holds this value now. Call this while its lock is held."""
        if self._where[0] is not array:
            return self._where[0]
        path: list[tuple[Totals, tuple[Totals, Any, Any, Any]]] = []
        one = self
        while (difference := one._where[1]) is not None:
            path.append((one, difference))
            one = difference[0]
        for next_, (newest, places, new, old) in reversed(path):
            if next_ is self and self._unread and array.is_worn:
                own = _Array(array.cells.copy(places, new))
                self._where = own, None
                return own
            array.cells.write(places, new)
            newest._unread = next_._unread = False
            newest._where = array, (next_, places, old, new)
            next_._where = array, None
            array.written += len(places)
        return array
