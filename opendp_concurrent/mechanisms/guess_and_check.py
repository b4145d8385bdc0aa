"""Guess and check: confirm good guesses of answers, and release the answer for a bad guess."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from opendp.mod import Domain, Measure, Metric

from .. import _opendp as _native
from .._checks import Positive, Real, at_most, plain
from ..composition import constant_map, constructor, make_concurrent_composition, make_measurement
from ..errors import Distance, InvalidTypeError, Query
from ..measures import composition_measure
from ..queryables import Accuracy, ConcurrentMeasurement, MachineQueryable, Sealed, validate_d_in
from .certified import laplace_loss
from .noise import LaplaceNoise, Steps, released
from .queries import CheckedQueries, Deviation, sensitivity_at
from .sparse_vector import Outcome, SparseVectorAnswer, make_sparse_vector


class _Release:
    """Make measurements that release a query's answer with Laplace noise, in whole steps."""

    def __init__(
        self,
        space: tuple[Domain, Metric],
        measure: Measure,
        d_in: Distance,
        sensitivity: float,
        **scale: float,
    ) -> None:
        self._space, self._measure, self._d_in = space, measure, d_in
        self._sensitivity = sensitivity
        self._steps = Steps.for_sensitivity(sensitivity)
        self._scale = self._steps.scale(**scale)
        self.loss = laplace_loss(self._scale, self._steps.up(sensitivity), measure)

    def error(self, beta: float, answers: int) -> float:
        """Return the error of so many releases."""
        return released(self._scale, self._steps, beta, answers)

    def __call__(self, query: Query) -> ConcurrentMeasurement:
        def spawn(token: Sealed) -> int | float:
            queries = CheckedQueries(
                self._space, self._d_in, self._sensitivity, self._steps, token, monotone=False
            )
            answer = queries.accept(query)()
            return self._steps.value(answer + LaplaceNoise(self._scale, 1).draw())

        return make_measurement(
            self._space,
            self._measure,
            spawn,
            constant_map(self._space[1], self._d_in, self.loss),
            "Release",
            releases=True,
        )


class _GuessAndCheck:
    """The state machine. It launches a sparse vector and the releases in one compositor."""

    def __init__(self, launch: Any, checker: ConcurrentMeasurement, release: _Release) -> None:
        self._launch, self._release = launch, release
        self._check = launch(checker)

    def __call__(self, message: Query) -> SparseVectorAnswer:
        parts = tuple(message) if isinstance(message, tuple) else ()
        if len(parts) != 2:
            raise InvalidTypeError(
                f"the message must be a pair of a query and a guess, found {type(message).__name__}"
            )
        query, guess = parts
        answer: SparseVectorAnswer = self._check(Deviation(query, guess))
        if answer.outcome is Outcome.BELOW:
            return SparseVectorAnswer(Outcome.BELOW, guess)
        if answer.outcome is Outcome.EXHAUSTED:
            return answer
        return SparseVectorAnswer(Outcome.ABOVE, self._launch(self._release(query)))


_MOST_HITS = at_most(10**5, "the compositor keeps a share for each release")


@constructor(max_hits=_MOST_HITS)
def make_guess_and_check(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Distance,
    scale: Positive,
    tolerance: Real,
    max_hits: int,
    *,
    sensitivity: float | None = None,
    query_scale: Positive | None = None,
    answer_scale: Positive | None = None,
    refresh: bool = False,
    one_sided: bool = True,
    orders: Sequence[float] | None = None,
    delta: float | None = None,
) -> ConcurrentMeasurement:
    """Check guesses of queries' answers, and release the answers that were guessed badly.

    The mechanism of [LW22, Section 3]. The returned measurement spawns a queryable. It takes pairs
    of a query, as in :func:`.make_sparse_vector`, and a guess. If the answer is within about
    ``tolerance`` of the guess, it returns ``BELOW`` with the guess as value. Else it returns
    ``ABOVE`` with the answer plus Laplace noise as value. After ``max_hits`` of these it returns
    ``EXHAUSTED``. Inside, a sparse vector and Laplace releases are children of one
    :func:`.make_concurrent_composition`, and their queries interleave. Without concurrent
    composition each release would need a new sparse vector.

    Guarantee: the concurrent composition of the sparse vector and c = ``max_hits`` releases
    [LW22, Theorem 1]. For pure DP it is D/scale + c 2D/query_scale + c D/answer_scale. For
    (ε, δ)-DP with ``delta``: the optimal ε of their composition at that δ [KOV15], [MV16], where a
    sparse vector with ``refresh`` counts as c mechanisms of one hit. All of them are ε-DP, so
    finite communication is not needed [VW21, Theorem 5.4].

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the queries
    :param input_metric: metric of the data, and of the queries
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: scale of the tolerance's Laplace noise, in units of the queries' answers
    :param tolerance: largest error of a good guess
    :param max_hits: how many answers may be released, c; at most 10^5
    :param sensitivity: bound D on the change of an answer between inputs at distance ``d_in``, as
        in :func:`.make_sparse_vector`; it may be left out only if ``d_in`` is 1: then it is 1
    :param query_scale: scale of each check's noise; by default as in :func:`.make_sparse_vector`
    :param answer_scale: scale of each release's noise; ``scale`` if left out
    :param refresh: give the tolerance fresh noise after each release
    :param one_sided: whether the noise of checks is one-sided, as in :func:`.make_sparse_vector`
    :param orders: for Rényi curves only, as in :func:`.make_concurrent_composition`
    :param delta: for (ε, δ)-DP: the δ of the optimal composition; the plain sum if left out
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> mechanism = oc.m.make_guess_and_check(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, query_scale=12.0, answer_scale=30.0,
    ...     tolerance=500, max_hits=3
    ... )
    >>> mechanism.map(1)
    1.1
    >>> queryable = mechanism([1, 2, 3] * 1000)
    >>> count = space >> dp.t.then_count()
    >>> queryable((count, 3100))
    SparseVectorAnswer(outcome=BELOW, value=3100)
    >>> queryable((count, 0)).outcome
    ABOVE

    With many releases, the optimal composition is much smaller than the sum:

    >>> hits, measure = 200, dp.approximate(dp.max_divergence())
    >>> for delta in (None, 1e-6):
    ...     oc.m.make_guess_and_check(
    ...         *space, measure, 1, scale=100.0, query_scale=4e4, answer_scale=50.0,
    ...         tolerance=500, max_hits=hits, delta=delta
    ...     ).map(1)
    (4.020..., 0.0)
    (1.2066..., 1e-06)
    """
    space = input_domain, input_metric
    d_in = validate_d_in(input_metric, d_in)
    sensitivity = plain(sensitivity_at(d_in, sensitivity))
    make_checker = partial(
        make_sparse_vector,
        *space,
        output_measure,
        d_in,
        scale,
        tolerance,
        sensitivity=sensitivity,
        query_scale=query_scale,
        refresh=refresh,
        one_sided=one_sided,
    )
    checker = make_checker(max_hits)
    answer_scale = scale if answer_scale is None else answer_scale
    release = _Release(space, output_measure, d_in, sensitivity, answer_scale=answer_scale)
    compositor = make_concurrent_composition(
        *space,
        output_measure,
        d_in,
        [checker.map(d_in)] + [release.loss] * max_hits,
        orders=orders,
    )
    privacy_map = compositor.inside.privacy_map
    if delta is not None:
        checks = [make_checker(1).map(d_in)] * max_hits if refresh else [checker.map(d_in)]
        shares = *checks, *[release.loss] * max_hits
        d_out = composition_measure(output_measure).optimal(shares, delta)
        privacy_map = constant_map(input_metric, d_in, d_out)

    def error(beta: float, answers: int) -> float:
        confirmed = tolerance + checker.accuracy(beta / 2, answers=answers)
        return max(confirmed, release.error(beta / 2, min(max_hits, answers)))

    def spawn(token: Sealed) -> MachineQueryable:
        machine = _GuessAndCheck(compositor.inside.spawn(token), checker, release)
        handle = MachineQueryable(machine, "GuessAndCheck")
        handle.passes_on = True  # only what it launches sees the data
        return handle

    return make_measurement(
        space,
        output_measure,
        spawn,
        privacy_map,
        f"GuessAndCheck({output_measure}, d_in={d_in}, max_hits={max_hits})",
        accuracy=Accuracy("Laplace", scale, error),
        free=True,  # its compositor is
    )


then_guess_and_check = _native.to_then(make_guess_and_check)
