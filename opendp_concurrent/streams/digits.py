"""Noise for the nodes of a tree: integers that OpenDP draws, several ahead of use.

A node releases its sum plus noise. OpenDP's integers saturate at 63 bits, so releases are clamped
to 62 bits. Sums have at most 61 bits. So the clamped release is the same as with unbounded noise,
and clamping is postprocessing.
"""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._opendp import dp
from ..errors import UnsupportedMeasureError
from ..measures import Noise, composition_measure
from ..mechanisms import ATOM, IntegerDraws, make_certified_gaussian, make_certified_laplace
from ..queryables import MOST, bounded_integer, fields, require, rows

MOST_AHEAD = 256
LARGEST_SUM, LARGEST_RELEASE = 2**61, 2**62


def is_laplace(measure: dp.Measure) -> bool:
    """Return True for Laplace noise, False for Gaussian; raise if ``measure`` has neither."""
    known = composition_measure(measure)
    if known.noise is not None:
        return known.noise is Noise.LAPLACE
    raise UnsupportedMeasureError(
        f"output_measure ({known.name}) has no noise of its own here; build for pure DP or zCDP, "
        "and use cast"
    )


def noise_loss(scale: float, shift: int, measure: dp.Measure) -> Any:
    """Return the privacy loss of moving one node by ``shift``."""
    space = dp.atom_domain(T=ATOM), dp.absolute_distance(T=ATOM)
    make = make_certified_laplace if is_laplace(measure) else make_certified_gaussian
    return make(*space, scale, measure).map(shift)


class NodeNoise(IntegerDraws):
    """Noise of one scale. Its draws must stay secret. Not thread-safe.

    :param laplace: draw Laplace noise if true, else Gaussian
    """

    def __init__(self, scale: float, laplace: bool) -> None:
        super().__init__(scale, laplace, MOST_AHEAD)

    def release(self, total: int) -> int:
        """Return ``total`` plus the next draw, clamped."""
        return max(-LARGEST_RELEASE, min(LARGEST_RELEASE, total + self._next()))


# How the integers of noisy prefix sums are written.


def plain(total: int | NDArray[Any]) -> Any:
    """Return an integer, or an array's integers, as a JSON value."""
    return [int(one) for one in total] if isinstance(total, np.ndarray) else int(total)


def unplain(total: Any, count: int | None, most: int | None = None) -> Any:
    """Return the integer or array of a JSON value, or raise: the inverse of :func:`plain`.

    :param count: number of integers of an array; None if there is none
    :param most: largest size of an integer
    """
    for one in rows(total, count, count) if isinstance(total, list) and count else [total]:
        require(type(one) is int and (most is None or -most <= one <= most))
    return np.array(total, dtype=object) if isinstance(total, list) else total


# Pure-DP counters: trees of odd degree, whose nodes have noise with signed digits [APT24].
#
# A tree of degree k and height h covers the steps of a horizon T if (k^h - 1)/2 >= T. Then a number
# t of steps has h balanced digits, from -(k-1)/2 to (k-1)/2, in base k. The noise of the sum of t
# items is a signed sum over nodes: level i adds the noise of d nodes if digit i is d > 0, and
# subtracts that of -d nodes if it is negative. The latter nodes are to the right of t: their noise
# is in use before their items arrive. An item is in one node of each level.

MOST_HEIGHT = 64
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Digits:
    """Balanced digits in an odd base.

    :ivar base: k, the degree of the tree
    :ivar height: h, the number of digits; an item is in h nodes
    """

    base: int
    height: int

    def of(self, count: int) -> Iterator[tuple[int, int, int]]:
        """Yield (level, start, digit) for each level, from the lowest.

        The nodes of level i cover base^i steps each. Those of a positive digit are ``start``,
        ``start`` + 1, ...; those of a negative digit end before ``start``.
        """
        half = self.base // 2
        for level in range(self.height):
            above = (count + half) // self.base
            yield level, above * self.base, count - above * self.base
            count = above

    def nodes(self, count: int) -> int:
        """Return how many nodes have noise in the sum of ``count`` items."""
        return sum(abs(digit) for _, _, digit in self.of(count))

    def window_nodes(
        self, places: Integers, window: int, before: bool = True
    ) -> tuple[Integers, Integers]:
        """Return how many nodes have noise in a window that ends at a place of a block, and twice.

        It has the sum of ``place`` items, and that of the block before without as many. Nodes that
        are in both of its prefixes with one sign cancel; with two, they count twice.

        :param before: whether there is a block before
        """
        once, twice = np.zeros_like(places), np.zeros_like(places)
        half, counts, whole = self.base // 2, places, window
        for _ in range(self.height):
            above, whole_above = (counts + half) // self.base, (whole + half) // self.base
            start, digit = above * self.base, counts - above * self.base
            once += np.abs(digit)
            if before:
                first, last = whole_above * self.base, whole
                low = np.maximum(np.minimum(start, counts), min(first, last))
                high = np.minimum(np.maximum(start, counts), max(first, last))
                both = np.maximum(high - low, 0)
                twice += np.where((digit > 0) != (last > first), both, 0)
                once += np.abs(digit) + abs(last - first) - 2 * both
            counts, whole = above, whole_above
        return once, twice

    def sums(self, horizon: int) -> NDArray[np.float64]:
        """Return how many of the sums of 1 to T items have 0, 1, 2, ... nodes with noise."""
        found = self._sums(horizon, self.height)
        found[0] -= 1
        return found

    def _sums(self, last: int, levels: int) -> NDArray[np.float64]:
        """Return how many of the numbers from 0 to ``last`` have 0, 1, 2, ... nodes."""
        half = self.base // 2
        found = np.zeros(levels * half + 1)
        above = (last + half) // self.base
        if above == 0:  # of 0 or more, one digit each
            found[: last + 1] = 1.0
            return found
        each = np.full(half + 1, 2.0)
        each[0] = 1.0
        below = self._sums(above - 1, levels - 1)
        below[0] -= 1
        found += np.convolve(below, each)
        found[: half + 1] += 1.0
        highest, digit = Digits(self.base, levels - 1).nodes(above), last - above * self.base
        for one in range(-half, digit + 1):
            found[highest + abs(one)] += 1.0
        return found

    def total_nodes(self, horizon: int) -> int:
        """Return the sum of :meth:`nodes` over the steps 1 to T.

        Numbers with the same higher digits are those with each lowest digit, from -(k-1)/2 to
        (k-1)/2; the last ones end at that of T, and the first ones begin at 0.
        """
        half = self.base // 2
        above = (horizon + half) // self.base
        if not above:
            return horizon * (horizon + 1) // 2
        digit = horizon - above * self.base
        lowest = above * half * (half + 1) + (1 if digit >= 0 else -1) * digit * (digit + 1) // 2
        highest = self.base * self.total_nodes(above - 1) + (half + digit + 1) * self.nodes(above)
        return lowest + highest


@lru_cache(maxsize=128)
def best_digits(horizon: int, *, window: bool = False) -> Digits:
    """Return the digits with the smallest error over the steps 1 to T: least h² mean nodes.

    :param window: for a window of T steps; nodes that cancel are counted
    """
    fitting = []
    for height in range(1, MOST_HEIGHT):
        digits = Digits(least_base(horizon, height), height)
        nodes = digits.total_nodes(horizon)
        if window:
            nodes = 2 * nodes + horizon * digits.nodes(horizon)
        fitting.append((height * height * nodes, height, digits))
        if digits.base == 3:
            break
    return min(fitting, key=lambda one: one[:2])[2]


def least_base(horizon: int, height: int) -> int:
    """Return the least odd k >= 3 with (k^h - 1)/2 >= T."""
    halves = range(1, horizon + 1)
    return 2 * halves[bisect(halves, 2 * horizon, key=lambda half: (2 * half + 1) ** height)] + 1


class DigitNoise:
    """The noise of the nodes that sums of items need, drawn when a sum needs it.

    :param passing: keep only the nodes of the last sum, of a number of items that only grows. Each
        node is then in the sums of numbers in a row, so one that was dropped is never needed again
    """

    def __init__(self, digits: Digits, noise: NodeNoise, *, passing: bool = True) -> None:
        self._digits, self._draw, self._passing = digits, noise.draw, passing
        self._known: dict[tuple[int, int], Any] = {}

    def total(self, count: int, size: int | None = None) -> Any:
        """Return the noise of the sum of ``count`` items.

        :param size: number of entries of the noise; None for an integer
        """
        total: Any = 0
        known, used = self._known, {} if self._passing else self._known
        for node, positive in self._nodes(count):
            value = known[node] if node in known else self._new(size)
            used[node] = value
            total = total + value if positive else total - value
        self._known = used
        return total

    def _nodes(self, count: int) -> Iterator[tuple[tuple[int, int], bool]]:
        for level, start, digit in self._digits.of(count):
            for place in range(min(start, start + digit), max(start, start + digit)):
                yield (level, place), digit > 0

    @property
    def most(self) -> int:
        """Largest number of items whose sum has these digits."""
        return int((self._digits.base**self._digits.height - 1) // 2)

    def _new(self, size: int | None) -> Any:
        if size is None:
            return self._draw()
        return np.array([self._draw() for _ in range(size)], dtype=object)

    def to_record(self) -> list[Any]:
        """Return the noise as a JSON value."""
        return [[level, place, plain(value)] for (level, place), value in self._known.items()]

    def restore(self, record: list[Any], size: int | None = None) -> None:
        """Restore the noise from a record."""
        self._known = {
            (bounded_integer(level), bounded_integer(place, least=-MOST)): unplain(value, size)
            for level, place, value in rows(record)
        }

    def fits(self, count: int) -> bool:
        """Return whether it has the noise of the sum of ``count`` items, and no other."""
        return self._known.keys() == {node for node, _ in self._nodes(count)}


class DigitsPrefix:
    """A prefix: the exact sum, and the noise of nodes. Noise is drawn when a query needs it."""

    def __init__(self, digits: Digits, noise: NodeNoise) -> None:
        self._noise = DigitNoise(digits, noise)
        self.steps = 0
        self._sum: Any = 0

    def update(self, item: int | NDArray[Any]) -> None:
        """Take the item of the next step."""
        self._sum = self._sum + item
        self.steps += 1

    def update_all(self, items: NDArray[Any]) -> None:
        """Take the items of the next steps."""
        if len(items):
            total = items.sum(axis=0)  # Python's integers hold noise of any size
            self._sum = self._sum + (total if items.ndim > 1 else int(total))
            self.steps += len(items)

    def total(self) -> Any:
        """Return the noisy sum so far; the same until the next update."""
        if not self.steps:
            return 0
        size = len(self._sum) if isinstance(self._sum, np.ndarray) else None
        return self._sum + self._noise.total(self.steps, size)

    def to_record(self) -> dict[str, Any]:
        """Return the sum, and the noise in use, as a JSON value."""
        self.total()  # draws the noise of all nodes in use
        return {"count": self.steps, "sum": plain(self._sum), "noise": self._noise.to_record()}

    def restore(self, record: dict[str, Any], size: int | None = None) -> None:
        """Restore the state from a record."""
        count, total, noise = fields(record, "count", "sum", "noise")
        self.steps = bounded_integer(count, most=self._noise.most)
        self._sum = unplain(total, size, LARGEST_SUM)
        self._noise.restore(noise, size)
        require(self._noise.fits(count))


# Pure-DP counters without a horizon: epochs, each with a tree of signed digits (:mod:`.digits`).
#
# The lengths of the epochs and their trees are fixed. They depend on nothing but the number of the
# epoch. An item is in the tree of one epoch, in as many nodes as the tree has levels, and the noise
# of a node grows with the levels. So an item's loss is that of one release, in each epoch.
#
# A sum of an epoch's last step is kept with its noise, and no other noise is needed for the epochs
# before. So the length is one at which few nodes have noise: a digit of 1, 2 or 3, and zeros.

FIRST, GROWTH = 13, 4  # length of the first epoch, and how much longer the next is, about
NEAR = Fraction(6, 10), Fraction(17, 10)  # of that length
MOST_EPOCHS = 31  # more than 2^61 steps are in as many
MOST_LEVELS = 64


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch.

    :ivar length: number of its steps
    :ivar digits: of its tree
    """

    length: int
    digits: Digits

    @property
    def cost(self) -> Fraction:
        """The mean variance of its sums, and that which it leaves to later ones, in a unit."""
        nodes = Fraction(self.digits.total_nodes(self.length), self.length)
        return self.digits.height**2 * (nodes + self.digits.nodes(self.length))


@cache
def epoch(number: int) -> Epoch:
    """Return the epoch of a number, the one with the least cost among lengths near its own."""
    return min(_near(FIRST * GROWTH**number), key=lambda one: (one.cost, one.length))


def _near(target: int) -> Iterator[Epoch]:
    for height in range(2, MOST_LEVELS):
        middle = _rounded_root(target, height - 1) | 1
        for base in (middle - 2, middle, middle + 2):
            for digit in range(1, min(3, base // 2) + 1):
                length = digit * base ** (height - 1)
                if NEAR[0] * target <= length <= NEAR[1] * target:
                    yield Epoch(length, Digits(base, height))
        if middle <= 3:
            return


def _rounded_root(number: int, degree: int) -> int:
    """Return a root, rounded to an integer. Integers alone decide, on each machine alike."""
    low, high = 0, number + 1
    while high - low > 1:
        middle = (low + high) // 2
        below = (2 * middle - 1) ** degree <= number << degree
        low, high = (middle, high) if below else (low, middle)
    return low


def epochs(steps: int) -> Iterator[tuple[Epoch, int]]:
    """Yield the epochs of the first steps, and how many of these are in each."""
    number = 0
    while steps > 0:
        one = epoch(number)
        yield one, min(one.length, steps)
        steps, number = steps - one.length, number + 1


class EpochsPrefix:
    """A prefix: the last sums of epochs that are over, and the tree of the one that is open.

    :param scale: of the noise of a release whose loss is that of an item; a node of a tree with h
        levels has h times as much
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._before: Any = 0
        self._open(0)

    def _open(self, number: int) -> None:
        height = epoch(number).digits.height
        widened = nextafter(height * self._scale, inf)
        self._number, self._past = number, sum(epoch(one).length for one in range(number))
        self._tree = DigitsPrefix(epoch(number).digits, NodeNoise(widened, True))

    @property
    def _left(self) -> int:
        return epoch(self._number).length - self._tree.steps

    def _next(self) -> None:
        """Begin an epoch before an item, if the last one is over."""
        if not self._left:
            self._before = self.total()
            self._open(self._number + 1)

    def update(self, item: int | NDArray[Any]) -> None:
        """Take the item of the next step."""
        self._next()
        self._tree.update(item)

    def update_all(self, items: NDArray[Any]) -> None:
        """Take the items of the next steps."""
        while len(items):
            self._next()
            now, items = items[: self._left], items[self._left :]
            self._tree.update_all(now)

    def total(self) -> Any:
        """Return the noisy sum so far; the same until the next update."""
        return self._before + self._tree.total()

    def to_record(self) -> dict[str, Any]:
        """Return the sums, and the noise in use, as a JSON value."""
        tree = self._tree.to_record()
        return {"before": plain(self._before), "epoch": self._number, "tree": tree}

    def restore(self, record: dict[str, Any], size: int | None = None) -> None:
        """Restore the state from a record."""
        before, number, tree = fields(record, "before", "epoch", "tree")
        self._open(bounded_integer(number, most=MOST_EPOCHS))
        self._before = unplain(before, size)
        self._tree.restore(tree, size)
        require(self._left >= 0 and (self._number == 0 or self._tree.steps > 0))
        require(self._number > 0 or before == 0)

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._past + self._tree.steps
