"""Linear queries that are known up front, by the strategy that promises the least error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
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
from ...progress import Progress, counted
from ...queryables.accuracy import Accuracy
from ...queryables.data import Sealed
from ...queryables.mechanism import ConcurrentMeasurement, read_map, run
from ...queryables.session import validate_d_in
from ...types import Distance, Loss
from .histogram import Array, Universe, make_histogram, positive_distance, size_if_public
from .linear_answers import Batch, LinearAnswers
from .linear_plan import CRITERIA, LinearPlan, Promise, choose, errors_of, promise, read_plan
from .marginals import Marginals, MarginalStrategies
from .nearest import nearest
from .noise_of import has_laplace, tails_of
from .products import Products, ProductStrategies
from .strategy import (
    METHODS,
    OPTIMUM,
    PLAN,
    TREE,
    Change,
    DenseStrategies,
    Matrices,
    Strategy,
    release,
)

SOLVED = 2**33  # queries times cells times the fewer of both: several seconds


class _Planner:
    """The strategies for one batch, on histograms, and what they promise."""

    def __init__(
        self,
        strategies: DenseStrategies | MarginalStrategies | ProductStrategies,
        space: tuple[Domain, Metric],
        distance: float,
        measure: CompositionMeasure,
        d_out: float,
        size: int | None,
    ) -> None:
        self.strategies, self.space, self.distance = strategies, space, distance
        self.measure, self.d_out, self.size = measure, d_out, size

    def __call__(
        self, beta: float, minimize: str, method: str | None, plan: str | None, progress: Progress
    ) -> Any:
        """Return the measurement with the least promise, and with its plan."""
        known: Matrices = ()
        names = self.strategies.names
        saved = None if plan is None else read_plan(plan, self.strategies.key, names)
        if saved is not None:
            if method not in (None, saved.method):
                raise InvalidValueError(f"method ({method!r}) and plan differ; pass one of them")
            method, known = saved.method, saved.matrices
        if method is not None:
            if method not in names:
                raise InvalidValueError(
                    f"method ({method!r}) must be one of {', '.join(names)} for this noise and as "
                    "many distinct cells"
                )
            names = (method,)
        elif OPTIMUM in names:  # no tree is better
            names = tuple(name for name in names if name != TREE)
        work, projects = self.strategies.work, False
        if work is not None and minimize == "root_mean_square":
            projects = work.size * min(work.shape) <= SOLVED
        found: dict[str, tuple[Strategy, Any, float]] = {}
        for name in counted(names, progress, len(names)):
            try:
                strategy = self.strategies(name, known) if known else self.strategies(name)
            except scipy.linalg.LinAlgError:  # too near to a singular one
                continue
            found[name] = strategy, *self._noisy(strategy)
        if not found:
            equal = "these queries: columns of a factor are equal, or nearly so; leave it out"
            one = f"method ({method!r}) must be another one for {equal}"
            raise InvalidValueError(one if saved is None else PLAN)
        promises = {
            name: self._promise(strategy, scale, beta, projects)
            for name, (strategy, _, scale) in found.items()
        }
        chosen = choose(tuple(promises.values()), minimize)
        strategy, noisy, scale = found[chosen]
        if saved is not None and saved.scale != scale.hex():
            raise InvalidValueError(
                f"plan is for noise of another scale than {scale}; pass the d_in, d_out and "
                "output_measure that it was made with, or plan again"
            )
        made = self._measurement(strategy, noisy, scale, promises[chosen], projects)
        errors = errors_of(strategy, tails_of(self.measure), scale)
        promised = tuple(promises.values())
        made.plan = LinearPlan(
            chosen,
            minimize,
            beta,
            promised,
            errors,
            scale,
            self.strategies.key,
            strategy.matrices,
        )
        return made

    def _noisy(self, strategy: Strategy) -> tuple[Any, float]:
        return release(
            self.space,
            self.distance,
            self.measure,
            self.d_out,
            strategy.product,
            strategy.length,
        )

    def _promise(self, strategy: Strategy, scale: float, beta: float, projects: bool) -> Promise:
        tails = tails_of(self.measure)
        return promise(strategy, tails, scale, beta, self.size, projects=projects)

    def _measurement(
        self, strategy: Strategy, noisy: Any, scale: float, promised: Promise, projects: bool
    ) -> Any:
        work = self.strategies.work if projects else None
        size, within = self.size, promised.within
        unit = promised.root_mean_square

        def spawn(token: Sealed) -> LinearAnswers:
            answers = strategy.decode(np.asarray(run(noisy, token)))
            if work is None:
                return LinearAnswers(answers)
            return _projected(answers, work, size, unit, within)

        def error(beta: float, answers: int) -> float:
            return self._promise(strategy, scale, beta, projects).largest

        own = self.measure.opendp()
        return make_measurement(
            self.space,
            own,
            spawn,
            lambda d_in: read_map(noisy, d_in),
            f"LinearQueries({own}, method={strategy.name})",
            accuracy=Accuracy(
                "Laplace" if has_laplace(self.measure) else "Gaussian",
                scale,
                error,
                self.strategies.count,
            ),
            releases=True,
        )


def _projected(
    answers: Array, work: Array, size: int | None, unit: float, within: float
) -> LinearAnswers:
    """Return the answers of the nearest histogram, if they are proven to be no worse and are near.

    :param unit: about the size of the errors
    """
    found = nearest(answers / unit, work / unit, size)
    projected = work @ found.histogram
    if found.never_worse and np.abs(projected - answers).max() <= within:
        return LinearAnswers(projected, found.gap, noisy=answers)
    return LinearAnswers(answers)


def _strategies(
    queries: Any, universe: Universe, change: Change, *, sized: bool
) -> DenseStrategies | MarginalStrategies | ProductStrategies:
    """Return the strategies for queries in any of their forms."""
    if type(queries) in (Marginals, Products):
        if queries.cells != universe.cells:
            raise InvalidValueError(
                f"queries must be on the {universe.cells} cells of universe, found {queries.cells}"
            )
        if type(queries) is Marginals:
            return MarginalStrategies(queries, change)
        return ProductStrategies(queries, change)
    return DenseStrategies(Batch(queries, universe, "queries").matrix, change, sized=sized)


@constructor(minimize=one_of(*CRITERIA), method=optional(one_of(*METHODS)))
def make_linear_queries(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    d_out: Loss,
    universe: Any,
    queries: Sequence[Any] | Marginals | Products,
    *,
    size: Count | None = None,
    beta: Probability = 0.05,
    minimize: str = "root_mean_square",
    method: str | None = None,
    plan: str | None = None,
    progress: Progress = None,
) -> ConcurrentMeasurement:
    """Answer a batch of linear queries by the strategy that promises the least error.

    A query is a value in [0, 1] for each cell of the universe, or a function from a cell's value to
    [0, 1]. Its answer is the sum over the records. The mechanism adds noise to combinations of the
    counts of cells, a *strategy*, and computes the answers from these by least squares. Noise is
    Laplace under pure DP, and Gaussian under zCDP, Gaussian DP, and (ε, δ) with δ > 0. Strategies
    are compared by their exact errors:

    * ``"histogram"``: the cells that the queries tell apart;
    * ``"queries"``: the queries themselves;
    * ``"tree"``, if the optimum is not computed: cells, and sums over blocks of b, b², ... cells;
    * ``"p-identity"``, for Laplace noise: cells and a few weighted sums, found by descent [MMHM18];
    * ``"optimum"``, for Gaussian noise: the best strategy there is, up to one percent, found by a
      fixed point [DMRST22]; for :class:`.Marginals` with more than a million cells in one table it
      may be further off, since few bits are left for its weights.

    ``plan`` of the measurement says which one was chosen, what each of them promises, and the error
    of each query. If the root mean square is minimized, the answers are then projected onto those
    of nonnegative histograms, but only where that provably does not increase the norm of the
    errors. The plan depends on the arguments only: neither the choice nor the promises depend on
    the data. Batches that are chosen one after the other are for :func:`.make_projected_queries`.

    Guarantee: at most ``d_out``. It does not depend on ``size``. Accuracy: if ``size`` is left out,
    or is the number of records in the universe, the errors are as promised, for queries rounded to
    multiples of 2^-20, and up to 2^-30 of the number of records. If ``size`` bounds the promise, a
    projection adds at most 2 sqrt(gap) noise scales to the norm of the errors.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: vectors of records
    :param input_metric: symmetric, insert-delete, change-one or Hamming distance
    :param output_measure: pure, (ε, δ), zero-concentrated or Gaussian DP
    :param d_in: distance between neighbouring inputs
    :param d_out: bound on the privacy loss
    :param universe: the values of a record, or the number of categories if records are 0, 1, ...;
        records of other values are not counted
    :param queries: at most 10^6, and at most 2^25 values in all, for which 2 GiB of memory are
        enough; :class:`.Marginals` or :class:`.Products` of more, which need no matrix and are not
        projected
    :param size: number of records, if it is public; the size of ``input_domain`` if left out; if
        that has none either, the plan takes the number to be unknown. Pass an estimate, such as a
        noisy count, only with ``minimize="largest"`` or a ``method``: its error is an error of
        projected answers
    :param beta: probability that the promise of a largest error fails
    :param minimize: the error to minimize: ``"root_mean_square"`` over the queries, or the
        ``"largest"``, which is not projected
    :param method: use this strategy, and do not choose
    :param plan: what ``plan.save()`` of a measurement with the same arguments has returned: its
        strategy is used again, and is not searched for. The loss is computed from it anew
    :param progress: called with the number of strategies that were tried, and of how many; True
        shows a bar (extra ``progress``)
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
    histogram                    8.062             80.74
    queries                          8             65.24
    optimum (chosen)             2.966              24.4
    errors of the queries: 2.599 to 3.252
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
    space = histogram.output_domain, histogram.output_metric
    change = Change.of(planned, space[1])
    strategies = _strategies(queries, known, change, sized=size is not None)
    planner = _Planner(strategies, space, distance, planned, bound, size)
    inner = planner(beta, minimize, method, plan, progress)
    mechanism: Any = histogram >> inner
    if planned != measure:
        mechanism = cast(mechanism, output_measure, delta=delta)
    mechanism.plan = inner.plan
    concurrent: ConcurrentMeasurement = mechanism
    return concurrent


then_linear_queries = _native.to_then(make_linear_queries)
