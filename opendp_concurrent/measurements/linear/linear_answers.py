"""Batches of linear queries, the Gaussian noise on their answers, and what is returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l2_distance
from opendp.mod import Domain, Metric

from ...arguments import checks, owned
from ...errors import InvalidTypeError, InvalidValueError
from ...exact.bracket import upper
from ...measures import CompositionMeasure
from ...native import opendp as _native
from .histogram import FRACTION, Array, Universe, answers, records_changed
from .nearest import Nearest
from .noise_of import noisy_vector

MOST_VALUES = 2**25  # of a batch
PAIRS = 2**31  # entries that are compared for the differences of columns: about a second
COMPARED_CELLS = 2048


@dataclass(frozen=True, eq=False)  # with slots, OpenDP's attempt to annotate it would raise
class LinearAnswers:
    """Answers to a batch of linear queries. It is also a sequence of them, and an array.

    :ivar values: the answers, in records; shape (queries,)
    :ivar gap: upper bound on how far the squared distance of the histogram's answers to all noisy
        answers is above the least possible one, in units of the noise's variance
    :ivar never_worse: whether all answers so far, in units of their noise, are proven to be at most
        as far from the truth as the noisy ones; if not, at most the root of ``gap`` further

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.change_one_distance()
    >>> zcdp, cells = dp.zero_concentrated_divergence(), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> made = oc.m.make_projected_queries(*space, zcdp, 1, [0.25, 0.25], universe=3)
    >>> answers = made([0] * 600 + [2] * 400)(cells)
    >>> round(answers[0], 1)  # noisy
    598.5
    >>> round(sum(answers), 3), answers.gap < 1e-3
    (1000.0, True)
    """

    values: Array
    gap: float = 0.0
    never_worse: bool = True

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __getitem__(self, index: int) -> float:
        return float(self.values[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array: Array = np.array(self.values, dtype=dtype)
        return array


class Batch:
    """A batch of linear queries, as rows of a matrix.

    :ivar matrix: shape (queries, cells), multiples of 2^-20 in [0, 1]
    """

    def __init__(self, queries: Any, universe: Universe) -> None:
        if isinstance(queries, np.ndarray):
            try:
                rows = owned.array(queries)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(f"the batch {error}") from error
            queries = list(rows) if rows.ndim else None
        if isinstance(queries, str | bytes) or not isinstance(queries, Sequence):
            raise InvalidTypeError(
                "the batch must be a sequence of linear queries, each a value for each cell or a "
                f"function of a cell's value, found {type(queries).__name__}"
            )
        # at most 10^6 of them, so that squares of columns, at most 2^40 each, add up in 64 bits
        queries = checks.read("linear queries", **{"the batch": queries})
        if len(queries) == 0:
            raise InvalidValueError("the batch must have at least one query")
        if not len(queries) * universe.cells <= MOST_VALUES:
            raise InvalidValueError(
                f"the batch ({len(queries) * universe.cells:,} values) must have at most 2^25 "
                "values; answer the queries from a noisy histogram"
            )
        self.matrix: Array = np.stack([universe.vector(query) for query in queries])

    def release(
        self, space: tuple[Domain, Metric], d_in: float, measure: CompositionMeasure, d_mid: float
    ) -> tuple[Any, float]:
        """Return a measurement that adds noise to the answers, and the noise's scale.

        Its loss at ``d_in`` is at most ``d_mid``.

        :param measure: one that Gaussian noise has
        """
        length = self._length(changed=space[1] == records_changed())
        transformation = _native.make_user_transformation(
            *space,
            vector_domain(atom_domain(T=float, nan=False)),
            l2_distance(T=float),
            function=lambda counts: answers(self.matrix, counts).tolist(),
            stability_map=lambda distance: upper(lambda real: real(length) * real(distance)),
        )
        return noisy_vector(transformation, d_in, measure, d_mid)

    def _length(self, *, changed: bool) -> float:
        """Return the L2 norm of the most that a record changes the answers by; rounded up.

        It is added or removed: a column. Or it is changed: the difference of two columns; or one
        column, since a record may have no cell.
        """
        steps = (self.matrix * FRACTION).astype(np.int64)
        squares = int(np.square(steps).sum(axis=0).max())
        if changed:
            squares = max(squares, _largest_difference(steps, squares))
        return upper(lambda real: real(squares).sqrt() / real(int(FRACTION)))

    def answers(self, noisy: Array, found: Nearest, *, first: bool) -> LinearAnswers:
        """Return the answers of the histogram that was found.

        If floats cannot tell that it is at most as far from the truth, as where a histogram
        explains all answers, the noisy answers to a first batch are as good.
        """
        values = noisy if first and not found.never_worse else self.matrix @ found.histogram
        return LinearAnswers(values, found.gap, first or found.never_worse)


def _largest_difference(steps: Any, most: int) -> int:
    """Return a bound on the squared norm of the difference of two columns; exact if there are few.

    :param steps: shape (rows, cells), nonnegative
    :param most: bound on the squared norm of a column
    """
    rows, cells = steps.shape
    if cells > COMPARED_CELLS or rows * cells**2 > PAIRS or 4 * most >= 2**53:
        return 2 * most  # |a - b|² = |a|² + |b|² - 2 <a, b>
    if cells == 1:
        return 0
    # sums of integers below 2^53 are exact in doubles, in any order
    return int(scipy.spatial.distance.pdist(steps.T.astype(np.float64), "sqeuclidean").max())
