"""The totals of all blocks, and what a ledger keeps of them.

For accumulators that are exact sums, a total is an integer in two limbs. It counts quanta. A
quantum is 2^-121 of the bound, rounded up to a power of two. A total is at most 2^121 quanta, so
two limbs of 61 bits in integers of 64 bits are enough. A loss that is a multiple of the quantum is
added exactly; any other loss is rounded up to the next one. A double has 53 bits, so a loss of at
least 2^-68 of the bound is a multiple; where squares add up, of Gaussian DP, a loss of at least
2^-7 of the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol

import numpy as np

from .. import errors
from .._checks import tagged
from .._opendp import Lock
from ..accounting import Within
from ..errors import D
from ..measures import Accumulator, AccumulatorState, CompositionMeasure, times
from .block_keys import Cells, Keys, Places, Rows

BITS = 121  # of the bound, in quanta
LIMB = 61
MASK = 2**LIMB - 1


class Additive(AccumulatorState[D], Protocol[D]):
    """An accumulator that is one or more exact sums of integers, each with a bound of its own.

    These numbers can be kept in an array for many accumulators at once.
    """

    def amounts(self, d_mid: D) -> tuple[int | None, ...]:
        """Return what a launch adds to each sum; None for what is infinite."""

    def limits(self, d_out: D) -> tuple[int, ...]:
        """Return what each sum must be at most, exactly if the loss is within ``d_out``."""

    def of_amounts(self, totals: Sequence[int]) -> AccumulatorState[D]:
        """Return the accumulator with these sums."""


class Counters(Rows, Generic[D]):
    """One integer for each block and each sum of the accumulator.

    :param start: the accumulator of no launch, whose sums are counted
    :param d_out: the bound of each block
    """

    def __init__(self, start: Additive[D], d_out: D) -> None:
        self._start, self._d_out = start, d_out
        limits = start.limits(d_out)
        self._shifts = [max(0, one.bit_length() - BITS) for one in limits]
        # a bound has at most 106 bits, so nothing is cut off here
        self._limits = [one >> shift for one, shift in zip(limits, self._shifts, strict=True)]
        super().__init__(2 * len(limits))

    kept = 0  # apart from the cells

    def copy(self, places: Places, cells: Cells) -> Counters[D]:
        """Return a copy, with other totals at some places."""
        found = copy(self)
        found._cells = self._cells.copy()
        found.write(places, cells)
        return found

    def after(
        self, cells: Cells, d_mid: D, count: int = 1
    ) -> Cells | tuple[int, errors.BudgetExceededError]:
        """Return the totals after ``count`` launches, or which one refuses and the refusal."""
        amounts = self._start.amounts(d_mid)
        added: list[int] = []
        for amount, limit, shift in zip(amounts, self._limits, self._shifts, strict=True):
            if amount is None or (quanta := -(-amount >> shift) * count) > limit:  # rounded up
                return 0, self._refusal(cells[0], d_mid)
            added.append(quanta)
        after = np.empty_like(cells)
        admitted: Any = None
        for sum_, (quanta, limit) in enumerate(zip(added, self._limits, strict=True)):
            high, low = after[:, 2 * sum_], after[:, 2 * sum_ + 1]
            np.add(cells[:, 2 * sum_ + 1], quanta & MASK, out=low)  # below 2^62
            np.right_shift(low, LIMB, out=high)  # the carry
            high += cells[:, 2 * sum_]
            high += quanta >> LIMB
            low &= MASK
            most_high, most_low = limit >> LIMB, limit & MASK
            if high.max() < most_high:
                continue
            within = (high < most_high) | ((high == most_high) & (low <= most_low))
            admitted = within if admitted is None else admitted & within
        if admitted is not None and not admitted.all():
            position = int(np.argmin(admitted))
            return position, self._refusal(cells[position], d_mid)
        return after

    def accumulator(self, cells: Cells) -> AccumulatorState[D]:
        """Return the totals of one block as the accumulator."""
        totals = [
            ((int(cells[2 * sum_]) << LIMB) + int(cells[2 * sum_ + 1])) << shift
            for sum_, shift in enumerate(self._shifts)
        ]
        return self._start.of_amounts(totals)

    def _refusal(self, cells: Cells, d_mid: D) -> errors.BudgetExceededError:
        now = self.accumulator(cells)
        left = now.remaining(self._d_out)
        return errors.BudgetExceededError(now.loss, d_mid, left, d_out=self._d_out)


# Totals of blocks as numbers of accumulators, which blocks with equal totals share.
#
# A launch moves all blocks that share an accumulator to the accumulator after it, so it asks each
# distinct accumulator once. This is exact for every accumulator, and fast as long as the blocks of
# a launch have few distinct totals.


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Accumulators of some blocks after a launch. They have no number before they are written.

    So what was only asked, or refused elsewhere, keeps nothing.

    :ivar accumulators: the distinct ones
    :ivar at: for each block, the position of its accumulator
    """

    accumulators: tuple[AccumulatorState[Any], ...]
    at: Cells


class Shared(Rows):
    """The number of an accumulator for each block.

    :param start: the accumulator of no launch, which has the number 0
    :param d_out: the bound of each block
    """

    def __init__(self, start: AccumulatorState[D], d_out: D) -> None:
        super().__init__(1)
        self._rule: Within[Any] = Within(d_out)
        self._known: list[AccumulatorState[Any]] = []
        self._numbers: dict[Any, int] = {}
        self._number(start)

    def _number(self, accumulator: AccumulatorState[Any]) -> int:
        """Return the number of an accumulator, the same for equal ones."""
        key: Any = accumulator
        try:
            number = self._numbers.get(key)
        except TypeError:  # it has no hash
            key = id(accumulator)  # which stays: it is kept below
            number = self._numbers.get(key)
        if number is None:
            number = len(self._known)
            self._known.append(accumulator)
            self._numbers[key] = number
        return number

    @property
    def kept(self) -> int:
        """Number of accumulators, of which a copy has only those that blocks have."""
        return len(self._known)

    def copy(self, places: Places, cells: Cells | Moved) -> Shared:
        """Return a copy, with other accumulators at some places, and with new numbers then."""
        found = copy(self)
        numbers, known = self._cells.copy(), self._known
        if isinstance(cells, Moved):
            numbers[places] = len(known) + cells.at
            known = [*known, *cells.accumulators]
        else:
            numbers[places] = cells
        found._known, found._numbers = [], {}
        found._number(known[0])
        distinct, inverse = np.unique(numbers, return_inverse=True)
        new = [found._number(known[one]) for one in distinct.tolist()]
        found._cells = np.array(new, dtype=np.int64)[inverse].reshape(-1, 1)
        return found

    def write(self, places: Places, cells: Cells | Moved) -> None:
        """Replace the numbers at some places."""
        if isinstance(cells, Moved):
            numbers = np.array([self._number(one) for one in cells.accumulators], dtype=np.int64)
            cells = numbers[cells.at]
        super().write(places, cells)

    def after(
        self, cells: Cells, d_mid: errors.Loss, count: int = 1
    ) -> Moved | tuple[int, errors.BudgetExceededError]:
        """Return what follows ``count`` launches, or which block refuses and the refusal."""
        numbers = cells[:, 0]
        distinct, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        moved: dict[int, AccumulatorState[Any]] = {}
        for at in np.argsort(first).tolist():  # in the order of blocks
            verdict = self._rule.admits(self._known[int(distinct[at])], d_mid, count)
            if isinstance(verdict, errors.BudgetExceededError):
                return int(first[at]), verdict
            moved[at] = verdict
        accumulators = tuple(moved[at] for at in range(len(distinct)))
        return Moved(accumulators, inverse.reshape(-1, 1))

    def accumulator(self, cells: Cells) -> AccumulatorState[Any]:
        """Return the accumulator of one block."""
        return self._known[int(cells[0])]


# The totals of all blocks: an immutable value that shares one array with its successors.
#
# A launch changes few of many totals, so it must not copy them all. The array holds one value;
# others are differences to it. Whoever reads another value exchanges the two (Baker's trick). So
# each value stays what it is, whatever happens to its successors: a launch that another account
# refuses, a ledger that cannot commit, another thread. An exchange is a critical section.
#
# An old value keeps all later differences. So after some exchanges, the next value gets an array of
# its own, to which no older value leads. The old array goes when nobody holds its values.


@dataclass(frozen=True, slots=True, eq=False)
class OnBlocks:
    """What a launch costs: a privacy loss, charged to each of some blocks.

    :ivar places: of the blocks, sorted, each once
    """

    places: Places
    d_mid: errors.Loss


@tagged("on-blocks", "keys", "d_mid")
@dataclass(frozen=True, slots=True)
class OnKeys:
    """The same, with keys instead of places: what a ledger keeps.

    :ivar keys: of the blocks
    """

    keys: tuple[Any, ...]
    d_mid: errors.Loss


class _Array:
    """The array that the values share. Its lock is held for each exchange."""

    def __init__(self, cells: Counters[Any] | Shared) -> None:
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

    def __init__(self, keys: Keys, start: AccumulatorState[D], d_out: D) -> None:
        self._terms: tuple[Keys, AccumulatorState[Any], Any] = keys, start, d_out
        self.launches = 0
        # the array; and unless it holds this value: another value, and at which places this one
        # differs from it, and the totals here and there
        self._where: tuple[_Array | None, tuple[Totals, Any, Any, Any] | None] = None, None
        self._unread = True  # no value leads to this one

    @property
    def loss(self) -> Totals:
        """The losses of all blocks, which is this value; see :meth:`of`."""
        return self

    def of(self, key: errors.Key) -> AccumulatorState[Any]:
        """Return the accumulator of the block with this key; that of no launch for a new key."""
        keys, start, _ = self._terms
        return self.at(keys.place(key)) if key in keys else start

    def __repr__(self) -> str:
        return f"BlockTotals({len(self._terms[0])} blocks)"

    def read(self, d_mid: errors.Loss | OnBlocks | OnKeys) -> Any:
        """Return a cost on blocks, or a d_mid alone, in the form that is added."""
        if isinstance(d_mid, OnKeys):
            return OnKeys(d_mid.keys, self._terms[1].read(d_mid.d_mid))
        if not isinstance(d_mid, OnBlocks):
            return self._terms[1].read(d_mid)
        return OnBlocks(d_mid.places, self._terms[1].read(d_mid.d_mid))

    def at(self, place: int) -> AccumulatorState[Any]:
        """Return the accumulator of one block."""
        if self._where[0] is None:
            return self._terms[1]
        one: AccumulatorState[Any] = self._held(self._at, place)
        return one

    def _held(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(array, *arguments)``, called while its array holds this value."""
        while True:
            array: Any = self._where[0]
            with array.lock:
                # another thread may have moved this value to another array
                if self._be_newest(array) is array:
                    return function(array, *arguments)

    def _at(self, array: _Array, place: int) -> AccumulatorState[Any]:
        array.cells.grow(place + 1)
        return array.cells.accumulator(array.cells.read([place])[0])

    def admitted(
        self, d_mid: OnBlocks | OnKeys, count: int = 1
    ) -> Totals | errors.BudgetExceededError:
        """Return the totals after launches, or the refusal of the first block that refuses."""
        if isinstance(d_mid, OnKeys):
            d_mid = OnBlocks(self._terms[0].placed(d_mid.keys), d_mid.d_mid)
        if type(count) is not int or count != 1:
            count = times(count)
        verdict: Totals | errors.BudgetExceededError
        if self._where[0] is None:
            verdict = self._admitted(self._new_array(), d_mid, count)
        else:
            verdict = self._held(self._admitted, d_mid, count)
        return verdict

    def _admitted(
        self, array: _Array, d_mid: OnBlocks, count: int
    ) -> Totals | errors.BudgetExceededError:
        array.cells.grow(int(d_mid.places[-1]) + 1)
        now = array.cells.read(d_mid.places)
        after: Any = array.cells.after(now, d_mid.d_mid, count)
        if isinstance(after, tuple):
            position, refusal = after
            return errors.BlockExceededError.of(refusal, self._key(d_mid.places[position]))
        found = Totals(*self._terms)
        found.launches = self.launches + count
        if self._where[0] is None:
            array.cells.write(d_mid.places, after)  # nobody else has this array
            found._where = array, None
        else:
            found._where = array, (self, d_mid.places, after, now)
        return found

    def after(self, d_mid: OnBlocks | OnKeys, count: int = 1) -> Totals:
        """Return the totals after ``count`` launches, which were charged and so fit.

        :raises InvalidTypeError, InvalidValueError: if they do not, or ``d_mid`` is no such cost
        """
        if not isinstance(d_mid, (OnBlocks, OnKeys)):
            raise errors.InvalidTypeError(
                f"d_mid must be a loss on blocks, found {errors.shown(d_mid)}"
            )
        verdict = self.admitted(d_mid, count)
        if isinstance(verdict, errors.BudgetExceededError):
            raise errors.InvalidValueError(f"the launches do not fit: {verdict}")
        return verdict

    def within(self, d_out: errors.Loss) -> bool:
        """Return True: only launches that fit are added."""
        return True

    def remaining(self, d_out: errors.Loss) -> Totals:
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


# What a ledger keeps of a block filter: each charge with the keys of its blocks.
#
# The charges are the state: opening a ledger replays them, each on all of its blocks. So the budget
# of a block is found again by its key, whatever the order in which a process adds blocks.


@tagged("on-each-block", "d_out", of="accounting")
@dataclass(frozen=True, slots=True)
class OnEachBlock:
    """The accumulator of a block filter in a ledger: one accumulator for each block.

    :ivar accounting: the accumulator of each block
    :ivar d_out: the budget of each block
    """

    accounting: Accumulator
    d_out: errors.Loss
    made_for: ClassVar[str] = "the measures of its blocks"
    needs_measure: ClassVar[bool] = True
    follows_from_charges: ClassVar[bool] = True  # a record has not the totals
    why_no_events: ClassVar[str] = (
        "the ledger is of a block filter, where each block has losses of its own, and no list of "
        "events is a bound for all of them"
    )

    def supports(self, measure: CompositionMeasure[Any]) -> bool:
        """Return whether the accumulator of a block supports the measure."""
        return self.accounting.supports(measure)

    def start(self, measure: CompositionMeasure[Any] | None) -> Totals:
        """Return the totals of no launch."""
        return Totals(Keys(), self.accounting.start(measure), self.d_out)

    def from_record(self, measure: CompositionMeasure[Any] | None, record: errors.Json) -> Totals:
        """Return totals with the number of launches: what they are follows from the charges."""
        found = self.start(measure)
        found.launches = int(record["launches"])
        return found

    def __repr__(self) -> str:
        # the bound is said here, too: it tells two of them from each other where terms differ
        return f"{self.accounting!r} on each block, at most {errors.shown(self.d_out)}"
