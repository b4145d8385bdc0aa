"""Batches of linear queries, the noise on their answers, and what is returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import Domain, Metric

from ...arguments import checks, owned
from ...errors import InvalidTypeError, InvalidValueError
from ...exact.bracket import upper
from ...measures import CompositionMeasure
from ...measures.noise import Noise
from ...native import opendp as _native
from ..gaussian import make_certified_gaussian
from ..laplace import make_certified_laplace
from .histogram import FRACTION, Array, Universe, answers, records_changed
from .nearest import Nearest
from .tails import LaplaceTails, NormalTails, Tails

_STEPS = 40  # attempts to enlarge a scale, by 2^-40 first and by half last


@dataclass(frozen=True, eq=False)  # with slots, OpenDP's attempt to annotate it would raise
class LinearAnswers:
    """Answers to a batch of linear queries. It is also a sequence of them, and an array.

    :ivar values: the answers, in records; shape (queries,)
    :ivar gap: upper bound on how far the squared distance of the histogram's answers to all noisy
        answers is above the least possible one, in units of the noise's variance; 0 if the answers
        were not projected
    :ivar never_worse: whether all answers so far, in units of their noise, are proven to be at most
        as far from the truth as the noisy ones; if not, at most the root of ``gap`` further

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=1000), dp.change_one_distance()
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> mechanism = oc.m.make_projected_queries(*space, zcdp, 1, d_mids=[0.5], universe=3)
    >>> answers = mechanism([0] * 600 + [2] * 400)([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
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
    :ivar longest: L2 norm of the longest column, rounded up
    :ivar heaviest: largest sum of a column
    """

    __slots__ = ("heaviest", "longest", "matrix")

    def __init__(self, queries: Any, universe: Universe, name: str = "the batch") -> None:
        each = "the query" if name == "the batch" else f"{name}[{{}}]"
        if checks.is_a(queries, np.ndarray):
            try:
                rows = owned.array(queries)
            except (TypeError, ValueError) as error:
                raise InvalidTypeError(f"{name} {error}") from error
            queries = list(rows) if rows.ndim else None
        if checks.is_a(queries, str, bytes) or not checks.is_a(queries, Sequence):
            raise InvalidTypeError(
                f"{name} must be a sequence of linear queries, each a value for each cell or a "
                f"function of a cell's value, found {type(queries).__name__}"
            )
        # at most 10^6 of them, so that squares of columns, at most 2^40 each, add up in 64 bits
        queries = checks.read("linear queries", **{name: queries})
        if len(queries) == 0:
            raise InvalidValueError(f"{name} must have at least one query")
        self.matrix: Array = np.stack(
            [universe.vector(query, each.format(row)) for row, query in enumerate(queries)]
        )
        columns = np.square((self.matrix * FRACTION).astype(np.int64)).sum(axis=0)
        squared = int(columns.max())
        root = upper(lambda real: real(squared).sqrt() / real(int(FRACTION)))
        self.longest = root if squared else 0.0
        self.heaviest = float(self.matrix.sum(axis=0).max())  # exact: 40 bits

    def release(
        self, space: tuple[Domain, Metric], d_in: float, measure: CompositionMeasure, d_mid: float
    ) -> tuple[Any, float]:
        """Return a measurement that adds noise to the answers, and the noise's scale.

        Its loss at ``d_in`` is at most ``d_mid``.
        """
        norm = self.heaviest if has_laplace(measure) else self.longest
        return noisy_product(space, d_in, measure, d_mid, self.matrix, norm)

    def answers(self, noisy: Array, found: Nearest, *, first: bool) -> LinearAnswers:
        """Return the answers of the histogram that was found.

        If floats cannot tell that it is at most as far from the truth, as where a histogram
        explains all answers, the noisy answers to a first batch are as good.
        """
        values = noisy if first and not found.never_worse else self.matrix @ found.histogram
        return LinearAnswers(values, found.gap, first or found.never_worse)


def noisy_product(
    space: tuple[Domain, Metric],
    d_in: float,
    measure: CompositionMeasure,
    d_mid: float,
    matrix: Array | None,
    longest: float,
) -> tuple[Any, float]:
    """Return a measurement that adds noise to a matrix times the histogram, and the noise's scale.

    Entries are nonnegative. Adding a record moves the product by one column. Changing one moves it
    by the difference of two: at most sqrt(2) columns long in L2, two in L1.

    :param space: of histograms
    :param measure: pure DP, for Laplace noise; or one that Gaussian noise has
    :param matrix: None for the histogram itself
    :param longest: bound on the norms of its columns, in L1 for Laplace noise, else in L2
    """
    laplace, own = has_laplace(measure), measure.opendp()

    def stability_map(distance: float) -> float:
        return column_norm(space, measure, longest, distance)

    product = _native.make_user_transformation(
        *space,
        vector_domain(atom_domain(T=float, nan=False)),
        l1_distance(T=float) if laplace else l2_distance(T=float),
        function=lambda counts: (counts if matrix is None else answers(matrix, counts)).tolist(),
        stability_map=stability_map,
    )
    # the product with a matrix of zeros is constant, so any noise will do
    sensitivity = stability_map(d_in) if longest > 0.0 else 1.0
    scale = scale_for(measure, sensitivity, d_mid)
    make = make_certified_laplace if laplace else make_certified_gaussian
    for step in range(_STEPS):
        noisy = product >> make(product.output_domain, product.output_metric, scale, own)
        if noisy.map(d_in) <= d_mid:
            return noisy, scale
        scale *= 1 + 2.0 ** (step - _STEPS)
    raise InvalidValueError(
        f"d_mid ({d_mid}) must be larger: no scale of the noise is found for sensitivity "
        f"{sensitivity}"
    )


def column_norm(
    space: tuple[Domain, Metric], measure: CompositionMeasure, longest: float, distance: float
) -> float:
    """Return how far a product with columns of this norm moves at a distance; rounded up."""
    if longest == 0.0:
        return 0.0
    changed, laplace = space[1] == records_changed(), has_laplace(measure)
    square = (4 if laplace else 2) if changed else 1
    return upper(lambda real: real(square).sqrt() * real(longest) * real(distance))


def has_laplace(measure: CompositionMeasure) -> bool:
    """Whether noise under the measure is Laplace, and not Gaussian."""
    return measure.noise is Noise.LAPLACE


def scale_for(measure: CompositionMeasure, sensitivity: float, d_mid: float) -> float:
    """Return about the scale of the noise whose loss is ``d_mid``."""
    if has_laplace(measure):
        return sensitivity / d_mid
    scale = measure.gaussian_scale(sensitivity, d_mid)
    assert scale is not None  # the constructor has checked this
    return scale


def tails_of(measure: CompositionMeasure) -> Tails:
    """Return the tails of the noise under the measure."""
    return LaplaceTails() if has_laplace(measure) else NormalTails()
