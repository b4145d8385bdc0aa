"""Marginals of many attributes by their optimum in closed form, without a matrix.

A record has an attribute a in {0, ..., n_a - 1} for each a, and N = Π n_a cells. The workload is
all cells of the tables T. For each S below some T, E_S projects onto the functions that depend on
S, and on no less: the product of I - J/n_a for a in S and of J/n_a for the others, J the matrix of
ones. The workload does not change if the values of an attribute are permuted, so the optimum of the
matrix mechanism is X = Σ λ_S E_S, and with g_S = Σ_{T above S} Π_{a not in T} n_a it has λ_S
proportional to sqrt(g_S) [XHZK23].

The release has, for each S, a table of the integers (⊗_{a in S} (n_a I - J)) x_S, x_S the table of
counts of S, times a weight w_S, a multiple of 2^-bits. A record moves it by the same norm whatever
its cell is: Σ w_S² Π_{a in S} n_a (n_a - 1), squared. A table T is the sum over S below it of the
released tables, centred, over w_S times the cells of T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from math import ceil, log2, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from ...arguments import checks
from ...errors import InvalidValueError
from .histogram import MOST_CELLS, Array, exact
from .strategy import (
    HISTOGRAM,
    OPTIMUM,
    QUERIES,
    Change,
    Matrices,
    Strategy,
    check_memory,
    digest,
)
from .tails import Shape

Set = tuple[int, ...]
FINE = 64  # steps of the smallest weight, so that rounding costs less than a percent
MOST_BITS = 27  # of weights and of what the tables grow by: cells and counts have the others
MOST_PARTS = 2**16  # tables below others: about a second to plan, and as much to answer
PATTERNS = 16  # attributes up to which all ways in which two records differ are looked at


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise
class Marginals:
    """The linear queries that count records in each cell of some tables, for many attributes.

    Answers are those of the first table in the order of its cells, the last attribute fastest; then
    those of the second, and so on.

    :ivar sizes: number of values of each attribute; the cells of the universe are in the order of
        ``itertools.product``, the last attribute fastest
    :ivar sets: the attributes of each table, increasing, as indices of ``sizes``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> pairs = oc.m.Marginals([2] * 16, [(a, b) for b in range(16) for a in range(b)])
    >>> mechanism = oc.m.make_linear_queries(
    ...     *space, dp.zero_concentrated_divergence(), 1, 0.5, universe=2**16, queries=pairs
    ... )
    >>> mechanism.plan
                      root mean square    largest (0.95)
    histogram                      128             495.9
    queries                      10.95             42.44
    optimum (chosen)             4.403             17.06
    errors of the queries: 4.403 to 4.403
    """

    sizes: tuple[int, ...]
    sets: tuple[Set, ...]

    def __post_init__(self) -> None:
        sizes = tuple(checks.count(sizes=n) for n in checks.read("values", sizes=self.sizes))
        sets = tuple(
            tuple(checks.integer(sets=a) for a in checks.read("attributes", sets=one))
            for one in checks.read("tables", sets=self.sets)
        )
        MOST_CELLS(sizes=prod(sizes))
        if not (sizes and sets):
            raise InvalidValueError("sizes and sets must not be empty")
        for one in sets:
            if not (list(one) == sorted(set(one)) and set(one) <= set(range(len(sizes)))):
                raise InvalidValueError(
                    f"sets must have increasing indices of the {len(sizes)} sizes, found {one}"
                )
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "sets", sets)
        check_memory(self.queries, sets="pass fewer or smaller tables")

    @property
    def cells(self) -> int:
        """The number of cells of the universe."""
        return prod(self.sizes)

    @property
    def queries(self) -> int:
        """The number of answers."""
        return sum(prod(shape_of(self, one)) for one in self.sets)


def shape_of(marginals: Marginals, attributes: Set) -> tuple[int, ...]:
    """Return the shape of the table of these attributes."""
    return tuple(marginals.sizes[a] for a in attributes)


def below(attributes: Set) -> Iterator[Set]:
    """Yield the subsets, the empty one first."""
    return chain.from_iterable(combinations(attributes, k) for k in range(len(attributes) + 1))


class MarginalStrategies:
    """The strategies for marginals.

    :ivar count: number of answers
    :ivar work: no matrix of the queries
    :ivar key: a digest of the queries and the change
    """

    work: Array | None = None

    def __init__(self, marginals: Marginals, change: Change) -> None:
        self._all, self._change, self.count = marginals, change, marginals.queries
        self.key = digest(change, marginals.sizes, marginals.sets)

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies that there are for this noise."""
        parts = sum(2 ** len(self._varying(one)) for one in self._all.sets)
        if self._change.laplace or parts > MOST_PARTS:
            return HISTOGRAM, QUERIES
        return HISTOGRAM, QUERIES, OPTIMUM

    def __call__(self, name: str, known: Matrices = ()) -> Strategy:
        """Return a strategy; none of them needs a matrix."""
        del known
        build: dict[str, Callable[[], Strategy]] = {
            HISTOGRAM: self._histogram,
            QUERIES: self._queries,
            OPTIMUM: self._optimum,
        }
        return build[name]()

    def _tables(self, sets: tuple[Set, ...]) -> Callable[[Array], Iterator[Array]]:
        """Return the function from counts to tables."""
        sizes = self._all.sizes
        others = [tuple(a for a in range(len(sizes)) if a not in one) for one in sets]

        def tables(counts: Array) -> Iterator[Array]:
            cells = counts.reshape(sizes)
            return (cells.sum(axis=axes) for axes in others)

        return tables

    def _repeats(self) -> NDArray[np.int64]:
        return np.array([prod(shape_of(self._all, one)) for one in self._all.sets])

    def _histogram(self) -> Strategy:
        cells, tables, repeats = (
            prod(self._all.sizes),
            self._tables(self._all.sets),
            self._repeats(),
        )
        size = 2 if self._change.changed and cells > 1 else 1
        return Strategy(
            HISTOGRAM,
            lambda histogram: exact(lambda counts: counts, histogram, 0),
            lambda noisy: _joined(tables(noisy)),
            self._change.length(size, 0),
            Shape(np.sqrt(cells / repeats), 1.0, repeats),
        )

    def _queries(self) -> Strategy:
        sets, tables = self._all.sets, self._tables(self._all.sets)
        size = len(sets)
        if self._change.changed:  # a cell less in each table, and one more where it depends on it
            size = max(size, 2 * sum(prod(shape_of(self._all, one)) > 1 for one in sets))
        return Strategy(
            QUERIES,
            lambda histogram: exact(lambda counts: _joined(tables(counts)), histogram, 0),
            lambda noisy: noisy,
            self._change.length(size, 0),
            Shape.identity(self.count),
        )

    def _optimum(self) -> Strategy:
        sizes, weights, bits, growth = self._all.sizes, *self._weights()
        used, norm = tuple(weights), self._norm(weights)
        tables, scales = self._tables(used), np.array(list(weights.values())) / 2.0**bits
        shapes = [shape_of(self._all, one) for one in used]
        ends = np.cumsum([prod(shape) for shape in shapes])[:-1]

        def product(counts: Array) -> Array:
            return _joined(
                _differences(scale * table, shape)
                for scale, table, shape in zip(scales, tables(counts), shapes, strict=True)
            )

        def decode(noisy: Array) -> Array:
            parts = np.split(noisy, ends)
            known = {
                one: _differences(part.reshape(shape) / scale, shape) / prod(shape) ** 2
                for one, part, shape, scale in zip(used, parts, shapes, scales, strict=True)
            }
            return _joined(self._table(one, known) for one in self._all.sets)

        inverse = {
            one: prod(1 - 1 / sizes[a] for a in one) / scale**2
            for one, scale in zip(used, scales.tolist(), strict=True)
        }
        norms = [
            sqrt(sum(inverse[kept] for kept in below(self._varying(one))))
            / prod(shape_of(self._all, one))
            for one in self._all.sets
        ]
        return Strategy(
            OPTIMUM,
            lambda histogram: exact(product, histogram, bits + growth),
            decode,
            self._change.length(norm, bits),
            Shape(np.array(norms), max(norms), self._repeats()),
        )

    def _varying(self, attributes: Set) -> Set:
        return tuple(a for a in attributes if self._all.sizes[a] > 1)

    def _weights(self) -> tuple[dict[Set, int], int, int]:
        """Return the weights in steps, the bits of a step, and those that a table may grow by."""
        sizes, gains = self._all.sizes, dict[Set, int]()
        for one in self._all.sets:
            rest = prod(sizes) // prod(shape_of(self._all, one))
            for kept in below(self._varying(one)):
                gains[kept] = gains.get(kept, 0) + rest
        # the square root of g_S, over N and the sizes in S, which norms of columns have
        real = {s: sqrt(sqrt(g) / prod(sizes[a] for a in s)) for s, g in gains.items()}
        squares = (w * w * prod(sizes[a] * (sizes[a] - 1) for a in s) for s, w in real.items())
        total = sqrt(sum(squares))
        growth = ceil(max(map(len, gains)) / 2)
        bits = 20 + max(0, ceil(log2(FINE * total / min(real.values()))) - 20)
        bits = min(bits, MOST_BITS - growth)
        steps = {s: max(1, int(w / total * 2**bits)) for s, w in real.items()}
        return steps, bits, growth

    def _norm(self, weights: dict[Set, int]) -> int:
        """Return the squared norm of what a record changes, in steps; exact for few attributes."""
        sizes = self._all.sizes
        whole = sum(
            w * w * prod(sizes[a] * (sizes[a] - 1) for a in one) for one, w in weights.items()
        )
        if not self._change.changed:
            return whole
        if len(sizes) > PATTERNS:
            return 4 * whole
        count = len(sizes)
        differ = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)
        n = np.array(sizes, dtype=np.int64)
        entries = np.where(differ, -n, n * (n - 1))
        inner = np.zeros(len(differ), dtype=np.int64)  # products of two columns, below 2^63
        for one, w in weights.items():
            inner += w * w * entries[:, list(one)].prod(axis=1)
        return max(whole, 2 * (whole - int(inner.min())))

    def _table(self, attributes: Set, known: dict[Set, Array]) -> Array:
        """Return a table from the differences of the tables below it."""
        shape = shape_of(self._all, attributes)
        table = np.zeros(shape)
        for kept in below(self._varying(attributes)):
            across = [self._all.sizes[a] if a in kept else 1 for a in attributes]
            rest = prod(shape) // prod(across)
            table += known[kept].reshape(across) / rest
        return table


def _differences(table: Array, shape: tuple[int, ...]) -> Array:
    """Multiply by n I - J along each axis."""
    for axis, size in enumerate(shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


def _joined(tables: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(table) for table in tables])
