"""Batches of linear queries, the noise on their answers, and what is returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from opendp.mod import Domain, Metric

from ...arguments import checks, owned
from ...errors import InvalidTypeError, InvalidValueError
from ...measures import CompositionMeasure
from .histogram import Array, Universe, answers
from .nearest import Nearest
from .strategy import Change, check_memory, release


@dataclass(frozen=True, eq=False)  # with slots, OpenDP's attempt to annotate it would raise
class LinearAnswers:
    """Answers to a batch of linear queries. It is also a sequence of them, and an array.

    :ivar values: the answers, in records; shape (queries,)
    :ivar gap: upper bound on how far the squared distance of the histogram's answers to all noisy
        answers is above the least possible one, in units of the noise's variance; 0 if the answers
        were not projected
    :ivar never_worse: whether all answers so far, in units of their noise, are proven to be at most
        as far from the truth as the noisy ones; if not, at most the root of ``gap`` further
    :ivar noisy: the answers before a projection; None if the values are those, and in an
        interactive mechanism. Their largest error is smaller than the one promised for projected
        ones

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.change_one_distance()
    >>> zcdp, cells = dp.zero_concentrated_divergence(), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> made = oc.m.make_linear_queries(*space, zcdp, 1, 0.5, universe=3, queries=cells)
    >>> answers = made([0] * 600 + [2] * 400)
    >>> round(answers[0], 1)  # noisy
    598.5
    >>> round(sum(answers), 3), answers.gap < 1e-3
    (1000.0, True)
    """

    values: Array
    gap: float = 0.0
    never_worse: bool = True
    noisy: Array | None = None

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

    __slots__ = ("matrix",)

    def __init__(self, queries: Any, universe: Universe, name: str = "the batch") -> None:
        each = "the query" if name == "the batch" else f"{name}[{{}}]"
        if isinstance(queries, np.ndarray):
            try:
                rows = owned.array(queries)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(f"{name} {error}") from error
            queries = list(rows) if rows.ndim else None
        if isinstance(queries, (str, bytes)) or not isinstance(queries, Sequence):
            raise InvalidTypeError(
                f"{name} must be a sequence of linear queries, each a value for each cell or a "
                f"function of a cell's value, found {type(queries).__name__}"
            )
        # at most 10^6 of them, so that squares of columns, at most 2^40 each, add up in 64 bits
        queries = checks.read("linear queries", **{name: queries})
        if len(queries) == 0:
            raise InvalidValueError(f"{name} must have at least one query")
        instead = "pass Marginals or Products, or answer them from a noisy histogram"
        check_memory(len(queries) * universe.cells, **{name: instead})
        self.matrix: Array = np.stack(
            [universe.vector(query, each.format(row)) for row, query in enumerate(queries)]
        )

    def release(
        self, space: tuple[Domain, Metric], d_in: float, measure: CompositionMeasure, d_mid: float
    ) -> tuple[Any, float]:
        """Return a measurement that adds noise to the answers, and the noise's scale.

        Its loss at ``d_in`` is at most ``d_mid``.
        """
        length = Change.of(measure, space[1]).length_of(self.matrix)
        return release(
            space, d_in, measure, d_mid, lambda counts: answers(self.matrix, counts), length
        )

    def answers(self, noisy: Array, found: Nearest, *, first: bool) -> LinearAnswers:
        """Return the answers of the histogram that was found.

        If floats cannot tell that it is at most as far from the truth, as where a histogram
        explains all answers, the noisy answers to a first batch are as good.
        """
        values = noisy if first and not found.never_worse else self.matrix @ found.histogram
        return LinearAnswers(values, found.gap, first or found.never_worse)
