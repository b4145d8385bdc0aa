"""Products of workloads by products of their strategies, without a matrix.

Cells are tuples of one cell of each factor, and a query is the product of one query of each factor.
If A_i answers the factor W_i, then A_1 ⊗ A_2 ⊗ ... answers W_1 ⊗ W_2 ⊗ ... . Norms of columns
multiply, in L1 and in L2, and so do errors. Under Gaussian noise the product of optima is the
optimum: the product of the multipliers that certify the factors gives the product of their bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...arguments import checks, owned
from ...errors import InvalidTypeError, InvalidValueError
from .histogram import BITS, MOST_CELLS, Array, Universe, exact
from .linear_answers import Batch
from .strategy import (
    DENSE_CELLS,
    HISTOGRAM,
    MANY,
    METHODS,
    MOST_VALUES,
    PLAN,
    QUERIES,
    Change,
    DenseStrategies,
    Matrices,
    Strategy,
    check_memory,
    digest,
)
from .tails import Shape


class Products:
    """The products of linear queries on several attributes, for many cells.

    Cells of the universe are in the order of ``itertools.product``, the last factor fastest, and so
    are the answers.

    :param factors: for each attribute its queries: a value in [0, 1] for each of its values
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> prefixes = np.tri(64)
    >>> mechanism = oc.m.make_linear_queries(
    ...     *space, dp.zero_concentrated_divergence(), 1, 0.5, universe=64 * 64,
    ...     queries=oc.m.Products([prefixes, prefixes])
    ... )
    >>> mechanism.plan
                      root mean square    largest (0.95)
    histogram                     32.5             215.9
    queries                         64             279.6
    optimum (chosen)             4.449              19.8
    errors of the queries: 3.409 to 5.351
    """

    __slots__ = ("matrices",)

    def __init__(self, factors: Any) -> None:
        self.matrices: list[Array] = []
        for index, factor in enumerate(checks.read("factors", factors=factors)):
            name = f"factors[{index}]"
            try:
                array = owned.array(factor, np.float64)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(f"{name} {error}") from error
            if array.ndim != 2 or not 1 <= array.shape[1] <= DENSE_CELLS:
                raise InvalidValueError(
                    f"{name} must be a matrix of queries by at most {DENSE_CELLS} values"
                )
            self.matrices.append(Batch(array, Universe(array.shape[1]), name).matrix)
        if not 1 <= len(self.matrices) <= BITS // 4:
            raise InvalidValueError(
                f"factors must be at least 1 and at most {BITS // 4}, found {len(self.matrices)}"
            )
        MOST_CELLS(factors=self.cells)
        if not self.queries <= MANY:
            raise InvalidValueError(
                f"factors must have at most 2^24 products, found {self.queries}"
            )
        most = prod(max(matrix.shape) for matrix in self.matrices)  # after each axis
        check_memory(most, factors="pass fewer queries")

    @property
    def cells(self) -> int:
        """The number of cells of the universe."""
        return prod(matrix.shape[1] for matrix in self.matrices)

    @property
    def queries(self) -> int:
        """The number of answers."""
        return prod(len(matrix) for matrix in self.matrices)


class ProductStrategies:
    """The strategies for products.

    :ivar count: number of answers
    :ivar work: no matrix of the queries
    :ivar key: a digest of the queries and the change
    """

    work: Array | None = None

    def __init__(self, products: Products, change: Change) -> None:
        self._change, self.count, self._bits = (
            change,
            products.queries,
            BITS // len(products.matrices),
        )
        self.key = digest(change, *products.matrices)
        self._shape = tuple(matrix.shape[1] for matrix in products.matrices)
        self._factors = [
            DenseStrategies(matrix, change, sized=False, bits=self._bits)
            for matrix in products.matrices
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies that some factor has."""
        return tuple(name for name in METHODS if any(name in one.names for one in self._factors))

    def __call__(self, name: str, known: Matrices = ()) -> Strategy:
        """Return the product of a strategy of each factor; of cells, for those without it."""
        known = known or (None,) * len(self._factors)
        if len(known) != len(self._factors):
            raise InvalidValueError(PLAN)
        found = [
            one.matrix(name if name in one.names else HISTOGRAM, matrix)
            for one, matrix in zip(self._factors, known, strict=True)
        ]
        matrices = [
            factor.on_all_cells(one) for factor, one in zip(self._factors, found, strict=True)
        ]
        if prod(max(matrix.shape) for matrix in matrices) > MOST_VALUES:
            raise np.linalg.LinAlgError("the product of the matrices has too many rows")
        bits = self._bits * len(found)
        rows = [len(matrix) for matrix in matrices]
        shapes = [one.shape for one in found]
        norms: Array = np.ones(1)
        for one in shapes:
            norms = np.outer(norms, np.repeat(one.norms, one.repeated)).ravel()
        return Strategy(
            name,
            lambda histogram: exact(
                lambda counts: _along([one.__matmul__ for one in matrices], counts, self._shape),
                histogram,
                bits,
            ),
            lambda noisy: _along([one.decode for one in found], noisy, rows),
            self._change.length(self._size(matrices), bits),
            Shape(norms, prod(one.top for one in shapes)),
            matrices=tuple(
                None if name == QUERIES or name not in factor.names else one.values
                for factor, one in zip(self._factors, found, strict=True)
            ),
        )

    def _size(self, matrices: list[Array]) -> int:
        """Return the norm of what a record changes, in L1 or squared in L2, in steps."""
        added = Change(self._change.laplace, changed=False)
        size = prod(added.size_of(matrix, self._bits) for matrix in matrices)
        if not self._change.changed:
            return size
        # |a - b|² = |a|² + |b|² - 2 <a, b>; products of columns are exact in doubles
        blunt = any((matrix.T @ matrix).min() < 0.0 for matrix in matrices)
        return 4 * size if blunt and not self._change.laplace else 2 * size


def _along(maps: list[Callable[[Array], Array]], values: Array, shape: Any) -> Array:
    """Apply a linear map along each axis."""
    found = values.reshape(shape)
    for axis, one in enumerate(maps):
        front = np.moveaxis(found, axis, 0)
        mapped = one(front.reshape(len(front), -1))
        found = np.moveaxis(mapped.reshape(len(mapped), *front.shape[1:]), 0, axis)
    return found.ravel()
