"""Strategies: which combinations of the counts get noise, and how answers follow from them.

A strategy A is a matrix whose entries are multiples of 2^-20 in [-1, 1]. So A x is exact for a
histogram x, and what a record changes is a column of A, or the difference of two, whose norms are
exact in integers: rounding A costs no privacy. Answers to the workload W are W P (A x + noise),
where P A = I on the cells that W tells apart. Their errors are W P times the noise, so that the
covariance is known, whatever rounding did to A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import Domain, Metric

from ...errors import InvalidValueError
from ...exact.bracket import upper
from ...measures import CompositionMeasure
from ...native import opendp as _native
from ...strategies.optimum import determined, optimum
from ...strategies.sums_of_cells import BRANCHES, p_identity, tree
from ..gaussian import make_certified_gaussian
from ..laplace import make_certified_laplace
from .histogram import BITS, Array, exact, records_changed
from .noise_of import has_laplace, scale_for
from .tails import Shape

HISTOGRAM, QUERIES, TREE = "histogram", "queries", "tree"
IDENTITY, OPTIMUM = "p-identity", "optimum"
METHODS = (HISTOGRAM, QUERIES, TREE, IDENTITY, OPTIMUM)
_ATTEMPTS = 40  # to enlarge a scale, by 2^-40 first and by half last
PAIRS = 2**31  # entries that are compared for the differences of columns: about a second
MOST_VALUES = 2**25  # of a matrix: planning takes COPIES of it, and answering no more
COPIES = 8
MANY = 2**24  # entries of a matrix that is looked at as a whole
DENSE_CELLS, DESCENT_CELLS = 2048, 1024
FEW_CELLS = 512  # up to which all branches of a tree are compared
STEP_WORK = 2**31  # operations of a step of the fixed point: about a second
PLAN = "plan must be what LinearPlan.save has returned"
UNBIASED = 2.0**-30  # of the number of records: the largest error without noise


@dataclass(frozen=True, eq=False, slots=True)
class Strategy:
    """One noisy release, and the answers that follow from it.

    :ivar name: one of ``METHODS``
    :ivar product: the exact product A x for whole counts
    :ivar decode: maps A x + noise to the answers
    :ivar length: norm of the most that a record changes A x by; rounded up
    :ivar shape: of the matrix that maps the noise to the errors of the answers
    :ivar spread: of the matrix that maps the noise to its products with the columns of the
        workload, less one column; None if it is not known
    :ivar matrices: A, or those whose product is A, as the planner may take them again; None where
        it needs none
    """

    name: str
    product: Callable[[Array], Array]
    decode: Callable[[Array], Array]
    length: float
    shape: Shape
    spread: Shape | None = None
    matrices: Matrices = ()


Matrices = tuple[Array | None, ...]


def digest(*parts: Any) -> str:
    """Return a digest of arrays and other values."""
    found = blake2b(digest_size=16)
    for one in parts:
        found.update(repr(one.shape if isinstance(one, np.ndarray) else one).encode())
        found.update(one.tobytes() if isinstance(one, np.ndarray) else b"")
    return found.hexdigest()


def check_memory(values: int, **argument: str) -> None:
    """Raise, naming the argument, if planning needs more than 2 GiB for matrices of so many values.

    :param argument: its name, with what to pass instead
    """
    if not values <= MOST_VALUES:
        ((name, instead),) = argument.items()
        raise InvalidValueError(
            f"{name} ({values:,} values) would need {values * COPIES / 2**27:,.1f} GiB of memory, "
            f"and at most {MOST_VALUES * COPIES / 2**27:.0f} GiB are used; {instead}"
        )


@dataclass(frozen=True, slots=True)
class Change:
    """What a record does to a histogram, and the norm in which the noise measures it.

    :ivar laplace: L1, and not L2
    :ivar changed: a record is changed, and not added or removed
    """

    laplace: bool
    changed: bool

    @staticmethod
    def of(measure: CompositionMeasure, metric: Metric) -> Change:
        """Return the change under a measure and a distance of histograms."""
        return Change(has_laplace(measure), metric == records_changed())

    def length(self, size: int, bits: int = BITS) -> float:
        """Return the norm, in L1 or squared in L2, of steps of 2^-bits; rounded up."""
        if size == 0:
            return 0.0
        if self.laplace:
            return upper(lambda real: real(size) / real(2**bits))
        return upper(lambda real: real(size).sqrt() / real(2**bits))

    def length_of(self, matrix: Array, bits: int = BITS) -> float:
        """Return the norm of the most that a record changes A x by; rounded up."""
        return self.length(self.size_of(matrix, bits), bits)

    def size_of(self, matrix: Array, bits: int) -> int:
        """Return the norm, in L1 or squared in L2, in steps.

        Records may have no cell, so a change may also move only one column.
        """
        steps = (matrix * 2.0**bits).astype(np.int64)
        sizes = np.abs(steps) if self.laplace else np.square(steps)
        most = int(sizes.sum(axis=0).max())
        return max(most, self._pairs(steps, most)) if self.changed else most

    def _pairs(self, steps: Any, most: int) -> int:
        """Return a bound on the norm of the difference of two columns; exact if there are few."""
        rows, cells = steps.shape
        if cells > DENSE_CELLS or rows * cells**2 > PAIRS or 4 * most >= 2**53:
            # |a - b|² = |a|² + |b|² - 2 <a, b>
            return 2 * most if self.laplace or (steps >= 0).all() else 4 * most
        if cells == 1:
            return 0
        norm = "cityblock" if self.laplace else "sqeuclidean"
        # sums of integers below 2^53 are exact in doubles, in any order
        return int(scipy.spatial.distance.pdist(steps.T.astype(np.float64), norm).max())


def release(
    space: tuple[Domain, Metric],
    d_in: float,
    measure: CompositionMeasure,
    d_mid: float,
    product: Callable[[Array], Array],
    length: float,
) -> tuple[Any, float]:
    """Return a measurement that adds noise to a product with a histogram, and the noise's scale.

    Its loss at ``d_in`` is at most ``d_mid``.

    :param space: of histograms
    :param measure: pure DP, for Laplace noise; or one that Gaussian noise has
    :param product: as in :func:`.exact`
    :param length: bound on the norm of what one record changes, in L1 for Laplace noise, else in L2
    """
    laplace, own = has_laplace(measure), measure.opendp()

    def stability_map(distance: float) -> float:
        return upper(lambda real: real(length) * real(distance))

    transformation = _native.make_user_transformation(
        *space,
        vector_domain(atom_domain(T=float, nan=False)),
        l1_distance(T=float) if laplace else l2_distance(T=float),
        function=lambda counts: product(counts).tolist(),
        stability_map=stability_map,
    )
    # the product with a matrix of zeros is constant, so any noise will do
    sensitivity = stability_map(d_in) if length > 0.0 else 1.0
    scale = scale_for(measure, sensitivity, d_mid)
    make = make_certified_laplace if laplace else make_certified_gaussian
    for step in range(_ATTEMPTS):
        domain, metric = transformation.output_domain, transformation.output_metric
        noisy = transformation >> make(domain, metric, scale, own)
        if noisy.map(d_in) <= d_mid:
            return noisy, scale
        scale *= 1 + 2.0 ** (step - _ATTEMPTS)
    raise InvalidValueError(
        f"d_mid ({d_mid}) must be larger: no scale of the noise is found for sensitivity "
        f"{sensitivity}"
    )


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """A strategy as a matrix A, and what decodes it.

    :ivar values: A; None if it is the identity
    :ivar decode: maps columns of A x + noise to columns of answers
    :ivar shape: of the matrix that does
    :ivar inverse: the matrix P, by which counts follow; None if the answers do at once
    """

    values: Array | None
    decode: Callable[[Array], Array]
    shape: Shape
    inverse: Array | None


class DenseStrategies:
    """The strategies for a matrix of queries by cells.

    :ivar count: number of answers
    :ivar work: the queries on the cells that they tell apart, shape (queries, distinct cells)
    :ivar key: a digest of the queries and the change
    """

    def __init__(self, matrix: Array, change: Change, *, sized: bool, bits: int = BITS) -> None:
        self.count, self._change, self._sized, self._bits = len(matrix), change, sized, bits
        self.key = digest(change, matrix)
        first, place = np.arange(matrix.shape[1]), np.arange(matrix.shape[1])
        if matrix.size <= MANY:
            _, first, place = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
            order = np.argsort(first)  # trees add up neighbours
            first, place = first[order], np.argsort(order)[place.ravel()]
        self.work = matrix[:, first]
        used: Any = self.work.any(axis=0)
        if not used.any():
            used[0] = True
        self._place = np.where(used[place], (np.cumsum(used) - 1)[place], used.sum())
        self._work: Array = self.work[:, used]

    @property
    def names(self) -> tuple[str, ...]:
        """The strategies that there are for this size and noise, from simple to complex."""
        queries, cells = self._work.shape
        found = [HISTOGRAM]
        if (self._work == self._rounded(self._work)).all():
            found.append(QUERIES)
        if 1 < cells <= DENSE_CELLS and self._work.any():
            found.append(TREE)
            if self._change.laplace and cells <= DESCENT_CELLS:
                found.append(IDENTITY)
            few = min(queries, cells)
            if not self._change.laplace and cells * few * few <= STEP_WORK:
                found.append(OPTIMUM)
        return tuple(found)

    def __call__(self, name: str, known: Matrices = (None,)) -> Strategy:
        """Return a strategy; with its matrix, if it is known."""
        if len(known) != 1:
            raise InvalidValueError(PLAN)
        found, bits = self.matrix(name, *known), self._bits
        matrix, size = found.values, 2 if self._change.changed and self._work.shape[1] > 1 else 1
        if matrix is None:
            bits = 0
        else:
            size = self._change.size_of(matrix, bits)

        def product(counts: Array) -> Array:
            return self._counts(counts) if matrix is None else matrix @ self._counts(counts)

        return Strategy(
            name,
            lambda histogram: exact(product, histogram, bits),
            found.decode,
            self._change.length(size, bits),
            found.shape,
            self._spread(found.inverse),
            (None if name in (HISTOGRAM, QUERIES) else matrix,),
        )

    def matrix(self, name: str, known: Array | None = None) -> Matrix:
        """Return a strategy as a matrix on the cells that the workload tells apart.

        :param known: of a strategy that was found before
        """
        if known is not None:
            if known.ndim != 2 or known.shape[1] != self._work.shape[1]:
                raise InvalidValueError(PLAN)
            return self._inverted(known)
        builders: dict[str, Callable[[], Matrix]] = {
            HISTOGRAM: self._histogram,
            QUERIES: self._queries,
            TREE: self._tree,
            IDENTITY: lambda: self._inverted(p_identity(self._work.T @ self._work)),
            OPTIMUM: lambda: self._inverted(
                determined(optimum(self._work).matrix, 2.0**-self._bits)
            ),
        }
        return builders[name]()

    def on_all_cells(self, matrix: Matrix) -> Array:
        """Return A on all cells: a column again for each cell that the workload does not tell."""
        cells = self._work.shape[1]
        values = np.eye(cells) if matrix.values is None else matrix.values
        return np.column_stack([values, np.zeros(len(values))])[:, self._place]

    def _counts(self, histogram: Array) -> Array:
        """Return the counts of the cells that the workload tells apart."""
        cells = self._work.shape[1]
        counts: Array = np.bincount(self._place, histogram, cells + 1)[:cells].astype(np.float64)
        return counts

    def _histogram(self) -> Matrix:
        work, cells = self._work, self._work.shape[1]
        inverse = np.eye(cells) if self._sized and cells <= DENSE_CELLS else None
        return Matrix(None, lambda noisy: work @ noisy, Shape.of(work), inverse)

    def _queries(self) -> Matrix:
        """Noise on the answers, projected onto the answers that some counts have."""
        work = self._work
        if len(work) ** 2 <= MANY and work.size * min(work.shape) <= STEP_WORK:
            basis = scipy.linalg.orth(work)
            if 0 < basis.shape[1] < len(work):
                shape = Shape.of(basis @ basis.T)
                return Matrix(work, lambda noisy: basis @ (basis.T @ noisy), shape, None)
        return Matrix(work, lambda noisy: noisy, Shape.identity(len(work)), None)

    def _tree(self) -> Matrix:
        """The tree with the least error."""
        cells, gram = self._work.shape[1], self._work.T @ self._work
        known = BRANCHES[:: 1 if cells <= FEW_CELLS else 3]
        branches = [one for one in known if one < cells] or [2]

        def error(branch: int) -> float:
            matrix = tree(cells, branch).astype(np.float64)
            inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix.T @ matrix), gram)
            return self._change.length_of(matrix) ** 2 * float(np.trace(inverse))

        return self._inverted(tree(cells, min(branches, key=error)).astype(np.float64))

    def _rounded(self, matrix: Array) -> Array:
        rounded: Array = np.clip(np.rint(matrix * 2.0**self._bits) / 2.0**self._bits, -1.0, 1.0)
        return rounded

    def _inverted(self, matrix: Array) -> Matrix:
        """Round a strategy whose columns are independent, and invert it by least squares."""
        work, matrix = self._work, self._rounded(matrix)
        inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix.T @ matrix), matrix.T)
        unit = np.eye(matrix.shape[1])
        inverse = inverse + (unit - inverse @ matrix) @ inverse  # squares what rounding left
        wrong = np.abs(inverse @ matrix - unit).sum(axis=0).max()
        if not wrong <= UNBIASED:
            raise scipy.linalg.LinAlgError(f"the strategy is not inverted well enough: {wrong}")
        shape = Shape.of_product(work, inverse)
        return Matrix(matrix, lambda noisy: work @ (inverse @ noisy), shape, inverse)

    def _spread(self, inverse: Array | None) -> Shape | None:
        """Return the shape of the products of the noise with the columns, less their mean."""
        if not self._sized or self.work.shape[1] > DENSE_CELLS:
            return None
        columns: Array = (self.work - self.work.mean(axis=1, keepdims=True)).T
        return Shape.of(columns if inverse is None else (columns @ self._work) @ inverse)
