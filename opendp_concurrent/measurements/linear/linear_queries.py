"""Linear queries that are known up front, by the mechanism that promises the least error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from opendp.mod import Domain, Measure, Metric

from ...arguments import checks
from ...arguments.checked import Count, Probability
from ...arguments.checks import one_of, optional
from ...combinators.cast import cast
from ...combinators.constructor import constructor
from ...combinators.interactive_measurement import make_measurement
from ...errors import InvalidValueError, UnsupportedMeasureError
from ...measures import CompositionMeasure, composition_measure
from ...native import opendp as _native
from ...queryables.accuracy import Accuracy
from ...queryables.data import Sealed
from ...queryables.mechanism import ConcurrentMeasurement, accuracy_of, read_map, run
from ...queryables.session import validate_d_in
from ...types import Distance, Loss
from .histogram import Array, Universe, make_histogram, positive_distance, size_if_public
from .linear_answers import Batch, LinearAnswers, has_laplace, noisy_product, tails_of
from .linear_plan import (
    CRITERIA,
    HISTOGRAM,
    METHODS,
    PROJECTION,
    QUERIES,
    WEIGHTS,
    LinearPlan,
    Promise,
    Workload,
    cells,
    choose,
    direct,
    nothing,
    projected,
)
from .multiplicative_weights import weights
from .nearest import nearest

MOST_VALUES = 2**27  # a gibibyte of doubles
SOLVED = 2**33  # queries times cells times the fewer of both: several seconds


class _Planner:
    """The mechanisms for one batch, on histograms, and what they promise."""

    def __init__(
        self,
        batch: Batch,
        universe: Universe,
        space: tuple[Domain, Metric],
        distance: float,
        measure: CompositionMeasure,
        d_out: float,
        size: int | None,
    ) -> None:
        self.batch, self.universe, self.space, self.distance = batch, universe, space, distance
        self.measure, self.d_out, self.size = measure, d_out, size
        self.work = Workload.of(batch.matrix)
        count, cells_ = batch.matrix.shape
        self.solved = count * cells_ * min(count, cells_) <= SOLVED

    def _noisy(self, method: str) -> tuple[Any, float]:
        """Return the measurement that adds noise, and the scale."""
        if method == HISTOGRAM:
            return noisy_product(self.space, self.distance, self.measure, self.d_out, None, 1.0)
        return self.batch.release(self.space, self.distance, self.measure, self.d_out)

    def plan(self, beta: float, minimize: str, method: str | None) -> LinearPlan:
        projects = self.solved and minimize == "root_mean_square"
        promises = tuple(self.promise(one, beta, projects=projects) for one in METHODS)
        chosen = choose(promises, minimize) if method is None else method
        plan = LinearPlan(chosen, minimize, beta, promises)
        if plan.promise.reason:
            raise InvalidValueError(f"method ({chosen!r}) promises nothing: {plan.promise.reason}")
        return plan

    def promise(self, method: str, beta: float, *, projects: bool) -> Promise:
        """Return what a mechanism promises.

        :param projects: whether answers of a noisy histogram are projected
        """
        if method == WEIGHTS:
            return self._by_weights(self.work.count, beta)
        if method == PROJECTION and not self.solved:
            return nothing(PROJECTION, "too many queries and cells to solve for")
        tails, scale = tails_of(self.measure), self._noisy(method)[1]
        if method == PROJECTION:
            return projected(self.work, tails, scale, beta, self.size)
        if method == QUERIES:
            return direct(self.work, tails, scale, beta)
        return cells(self.work, tails, scale, beta, projects=projects)

    def _weights(self, queries: int, beta: float) -> Any:
        assert self.size is not None
        return weights(
            self.space,
            self.measure,
            self.distance,
            self.d_out,
            self.universe,
            queries=queries,
            size=self.size,
            beta=beta,
        )

    def _by_weights(self, queries: int, beta: float) -> Promise:
        if self.size is None:
            return nothing(WEIGHTS, "the number of records is not known")
        try:
            error = self._weights(queries, beta).plan.error
        except InvalidValueError:
            return nothing(WEIGHTS, "no error below the number of records")
        return Promise(WEIGHTS, error, error)

    def measurement(self, plan: LinearPlan) -> ConcurrentMeasurement:
        """Return the mechanism that was chosen, which answers the batch at once."""
        if plan.method == WEIGHTS:
            noisy, scale = self._weights(len(self.batch.matrix), plan.beta), 1.0
        else:
            noisy, scale = self._noisy(plan.method)
        projects = self.solved and plan.minimize == "root_mean_square"
        finish = self._finish(plan, scale, projects=projects)

        def error(beta: float, answers: int) -> float:
            if plan.method == WEIGHTS:
                return accuracy_of(noisy).at(beta, answers)
            return self.promise(plan.method, beta, projects=projects).largest

        def spawn(token: Sealed) -> LinearAnswers:
            return finish(run(noisy, token))

        own = self.measure.opendp()
        return make_measurement(
            self.space,
            own,
            spawn,
            lambda d_in: read_map(noisy, d_in),
            f"LinearQueries({own}, method={plan.method})",
            accuracy=Accuracy(
                "Laplace" if has_laplace(self.measure) else "Gaussian",
                scale,
                error,
                len(self.batch.matrix),
            ),
            releases=True,
        )

    def _finish(
        self, plan: LinearPlan, scale: float, *, projects: bool
    ) -> Callable[[Any], LinearAnswers]:
        """Return the function from what was released to the answers."""
        batch, size, matrix = self.batch, self.size, self.batch.matrix

        def project(noisy: Array, unit: float) -> LinearAnswers:
            found = nearest(noisy / unit, matrix / unit, size)
            return batch.answers(noisy, found, first=True)

        def from_cells(released: Any) -> LinearAnswers:
            noisy = matrix @ np.asarray(released)
            unit = scale * float(np.sqrt(np.square(matrix).sum() / len(matrix)))
            return project(noisy, unit) if projects and unit > 0.0 else LinearAnswers(noisy)

        def from_weights(queryable: Any) -> LinearAnswers:
            return LinearAnswers(np.array([queryable(query).value for query in matrix]))

        finishes: dict[str, Callable[[Any], LinearAnswers]] = {
            QUERIES: lambda released: LinearAnswers(np.asarray(released)),
            PROJECTION: lambda released: project(np.asarray(released), scale),
            HISTOGRAM: from_cells,
            WEIGHTS: from_weights,
        }
        return finishes[plan.method]


@constructor(minimize=one_of(*CRITERIA), method=optional(one_of(*METHODS)))
def make_linear_queries(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    d_out: Loss,
    universe: Any,
    queries: Sequence[Any],
    *,
    size: Count | None = None,
    beta: Probability = 0.05,
    minimize: str = "root_mean_square",
    method: str | None = None,
) -> ConcurrentMeasurement:
    """Answer a batch of linear queries by the mechanism that promises the least error.

    A query is a value in [0, 1] for each cell of the universe, or a function from a cell's value to
    [0, 1]. Its answer is the sum over the records. Noise is Laplace under pure DP, and Gaussian
    under zCDP, Gaussian DP, and (ε, δ) with δ > 0. Four mechanisms are compared:

    * ``"queries"``: noise on each answer;
    * ``"histogram"``: noise on each cell of the histogram, which answers the queries;
    * ``"projection"``: noise on each answer, then the answers of the nearest histogram, as in
      :func:`.make_projected_queries`;
    * ``"weights"``: :func:`.make_private_multiplicative_weights`, if the size is known.

    ``plan`` of the measurement says which one was chosen, and what each of them promises. If the
    root mean square is minimized, answers of a noisy histogram are projected too, which never makes
    this error larger; and a projection is chosen up to 1/0.85 times the least promise, because it
    usually does better than it promises. The plan depends on the arguments only: neither the choice
    nor the promises depend on the data. Interactive mechanisms, for batches that are chosen one
    after the other, are :func:`.make_projected_queries` and
    :func:`.make_private_multiplicative_weights`.

    Guarantee: at most ``d_out``. It does not depend on ``size``. Accuracy: if ``size`` is left out,
    or is the number of records in the universe, the errors are as promised, for queries rounded to
    multiples of 2^-20. A projection adds at most 2 sqrt(gap) noise scales to the norm of the
    errors.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: vectors of records
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance
    :param output_measure: pure, (ε, δ), zero-concentrated or Gaussian DP
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on the privacy loss
    :param universe: the values of a record, or the number of categories if records are 0, 1, ...;
        records of other values are not counted
    :param queries: at most 10^6, and at most 2^27 values in all
    :param size: number of records, if it is public; the size of ``input_domain`` if left out; if
        that has none either, the plan takes the number to be unknown. Pass an estimate, such as a
        noisy count, only with ``minimize="largest"`` or a ``method``: its error is an error of
        projected answers
    :param beta: probability that the promise of a largest error fails
    :param minimize: the error to minimize: ``"root_mean_square"`` over the queries, or the
        ``"largest"``
    :param method: use this mechanism, and do not choose
    :return: a measurement that releases :class:`.LinearAnswers`
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and use :func:`.cast`

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int), size=10_000), dp.change_one_distance()
    >>> zcdp = dp.zero_concentrated_divergence()
    >>> prefixes = [[cell <= last for cell in range(64)] for last in range(64)]
    >>> mechanism = oc.m.make_linear_queries(
    ...     *space, zcdp, d_in=1, d_out=0.5, universe=64, queries=prefixes
    ... )
    >>> mechanism.plan
                        root mean square    largest (0.95)
    queries                        11.31             37.93
    histogram (chosen)             8.062             256.1
    projection                     11.31             103.5
    weights                         1468              1468
    >>> answers = mechanism([3] * 9000 + [40] * 1000)
    >>> round(answers[63], 6)
    10000.0
    """
    measure = composition_measure(output_measure)
    d_in = validate_d_in(input_metric, d_in)
    budget = measure.validate_budget("d_out", d_out) if measure.is_planned else None
    planned, bound, delta = (
        measure.planned_under(budget) if measure.is_planned else (measure, None, None)
    )
    if not (has_laplace(planned) or planned.gaussian_scale(1.0, 1.0) is not None):
        raise UnsupportedMeasureError(
            f"output_measure ({measure.name}) must be pure, (epsilon, delta), zero-concentrated or "
            "Gaussian DP; use cast afterwards"
        )
    bound = checks.positive(d_out=bound)
    if not 0.0 < beta < 1.0:
        raise InvalidValueError(f"beta ({beta}) must be above 0 and below 1")
    known = Universe(universe)
    histogram = make_histogram(input_domain, input_metric, known)
    distance = positive_distance(histogram, d_in)
    size = size_if_public(input_domain, input_metric, size)
    batch = Batch(queries, known, "queries")
    if not batch.matrix.size <= MOST_VALUES:
        raise InvalidValueError(
            f"queries ({len(batch.matrix)}) times cells ({known.cells}) must be at most 2^27; "
            "answer them by make_private_multiplicative_weights, or from a noisy histogram"
        )
    space = histogram.output_domain, histogram.output_metric
    planner = _Planner(batch, known, space, distance, planned, bound, size)
    plan = planner.plan(beta, minimize, method)
    mechanism: Any = histogram >> planner.measurement(plan)
    if planned != measure:
        mechanism = cast(mechanism, output_measure, delta=delta)
    mechanism.plan = plan
    concurrent: ConcurrentMeasurement = mechanism
    return concurrent


then_linear_queries = _native.to_then(make_linear_queries)
