"""Above threshold, and sparse vector: many questions, a price for the few that are above."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import exp, log
from typing import Any

from opendp.metrics import change_one_distance, hamming_distance
from opendp.mod import Domain, Measure, Metric, assert_features

from .. import owned
from ..checks import at_most, checked, flag, is_a, optional, positive, probability
from ..combinators import guards
from ..combinators.interactive_measurement import constant_map, make_measurement
from ..errors import InvalidTypeError, InvalidValueError
from ..measures import composition_measure
from ..native import opendp as _native
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.session import validate_d_in
from ..queryables.stream import check_static
from .histogram import known_size
from .noise import LaplaceNoise
from .questions import Questions, sensitivity_at
from .sparse_vector_loss import SparseVectorNoise
from .steps import Steps


class Outcome(Enum):
    """What a sparse vector says of a question.

    :example:

    >>> [*oc.m.Outcome]
    [BELOW, ABOVE, EXHAUSTED]
    """

    BELOW = "below"
    ABOVE = "above"
    EXHAUSTED = "exhausted"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)  # with slots, OpenDP's attempt to annotate it would raise TypeError
class SparseVectorAnswer:
    """Answer to one question; true if it is above.

    :ivar outcome: below, above, or exhausted: all answers above were given, and the question was
        not looked at
    :ivar value: the question's answer with noise, if it is above and numbers are released

    :example:

    >>> bool(oc.m.SparseVectorAnswer(oc.m.Outcome.ABOVE, 12.5))
    True
    """

    outcome: Outcome
    value: float | None = None

    def __bool__(self) -> bool:
        return self.outcome is Outcome.ABOVE


BELOW, ABOVE, EXHAUSTED = map(SparseVectorAnswer, Outcome)


class NoisyComparison:
    """Whether answers are above thresholds, under noise; as often above as was paid for.

    Not thread-safe; holds noise that must stay secret.
    """

    __slots__ = ("_left", "_noise", "_question", "_raised")

    def __init__(self, noise: SparseVectorNoise) -> None:
        self._noise, self._left = noise, noise.hits
        self._question = LaplaceNoise(noise.question)
        self._raised = self._draw_threshold()

    def _draw_threshold(self) -> int:
        return LaplaceNoise(self._noise.threshold, 1).draw()

    @property
    def exhausted(self) -> bool:
        """Whether all answers above were given; then nothing may be compared."""
        return self._left <= 0

    def above(self, answer: int, level: int) -> bool:
        """Compare an answer with a threshold, both in steps; count it if it is above."""
        if answer + self._question.draw() < level + self._raised:
            return False
        self._left -= 1
        if self._noise.refresh and self._left:
            self._raised = self._draw_threshold()
        return True


class _SparseVector:
    """The state machine: what answers a question."""

    __slots__ = ("_answer", "_comparison", "_questions", "_threshold")

    def __init__(self, questions: Questions, noise: SparseVectorNoise, threshold: float) -> None:
        self._questions, self._threshold = questions, threshold
        self._comparison = NoisyComparison(noise)
        self._answer = None if noise.answer is None else LaplaceNoise(noise.answer)

    def __call__(self, message: Any) -> SparseVectorAnswer:
        question, threshold = _parse(message, self._threshold)
        steps = self._questions.steps
        level = steps.level("threshold", threshold)
        compute = self._questions.accept(question)
        if self._comparison.exhausted:
            return EXHAUSTED
        answer = compute()
        if self._comparison.exhausted:  # asked in the meantime, by the question itself
            return EXHAUSTED
        if not self._comparison.above(answer, level):
            return BELOW
        if self._answer is None:
            return ABOVE
        return SparseVectorAnswer(Outcome.ABOVE, steps.value(answer + self._answer.draw()))


def _parse(message: Any, threshold: float) -> tuple[Any, float]:
    if not is_a(message, tuple):
        return message, threshold
    parts = tuple(tuple.__iter__(message))
    if len(parts) != 2:
        raise InvalidTypeError(
            "the message must be a question, or a question and its threshold, found a tuple of "
            f"length {len(parts)}"
        )
    return parts


@checked(
    input_domain=guards.domain,
    input_metric=guards.metric,
    output_measure=guards.measure,
    scale=positive,
    max_hits=at_most(2**63 - 1, "more are never answered"),
    query_scale=optional(positive),
    answer_scale=optional(positive),
    refresh=flag,
    monotone=flag,
)
def make_sparse_vector(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Any,
    scale: float,
    threshold: float,
    max_hits: int,
    *,
    sensitivity: float | None = None,
    query_scale: float | None = None,
    answer_scale: float | None = None,
    refresh: bool = False,
    monotone: bool = False,
) -> ConcurrentMeasurement:
    """Answer any number of questions whether they are above a threshold, up to a number of hits.

    The returned measurement spawns a queryable that takes questions: transformations from
    ``input_domain`` to a number, whose stability maps are checked at ``d_in``, or callables on the
    data, whose sensitivity at ``d_in`` is promised. ``(question, threshold)`` has a threshold of
    its own. The answer is a :class:`.SparseVectorAnswer`: below, above, or exhausted once
    ``max_hits`` were above. It is true if above. :class:`.Deviation` asks how far an answer is from
    a guess.

    All privacy is paid at launch, whatever is asked. What is promised at ``d_in`` says nothing of
    larger distances: the privacy map refuses them. Noise is OpenDP's, on a grid: the integers if
    ``sensitivity`` is an integer, else multiples of a power of two below a billionth of it.
    Comparisons are exact.

    Guarantee, with D the sensitivity [LSL17, Algorithm 7], proved in
    ``measurements/sparse_vector_loss.py``: ε = D/scale + c 2D/query_scale, for monotone questions
    c D/query_scale (D and one step, if it is no integer); refreshed, c (D/scale + 2D/query_scale)
    [DR14, Theorem 3.25]. Under other measures: what ε-DP implies, round by round if refreshed (for
    zCDP often less in all), and for Rényi DP also the divergence of the threshold's noise and the
    questions' ε [ZW20]. ``max_hits`` numbers with ``answer_scale`` compose with it, concurrently.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the questions
    :param input_metric: metric of the data, and of the questions
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: of the threshold's Laplace noise, in units of the questions
    :param threshold: of questions that come without one
    :param max_hits: how many questions may be above, c
    :param sensitivity: bound on how far answers are apart at distance ``d_in``, however many
        records that is; an integer for questions with integer answers. 1 if left out, which is for
        a ``d_in`` of 1 only
    :param query_scale: of each question's noise; if left out, what costs least for its accuracy:
        (2c)^(1/3) times ``scale``, for monotone questions c^(1/3), refreshed with c = 1
    :param answer_scale: release the answers that are above, with Laplace noise of this scale
    :param refresh: give the threshold fresh noise after each hit
    :param monotone: a promise that from one neighbour to another the most that any answer rises and
        the most that any falls add up to at most ``sensitivity``, as for counts if records are
        added and removed
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> sparse_vector = oc.m.make_sparse_vector(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, threshold=500, max_hits=2
    ... )
    >>> sparse_vector.map(1)
    1.7599...
    >>> queryable = sparse_vector([1, 2, 3] * 1000)
    >>> queryable(space >> dp.t.then_count())
    SparseVectorAnswer(outcome=ABOVE, value=None)
    >>> bool(queryable(lambda data: data.count(0)))
    False
    """
    assert_features("contrib", "honest-but-curious")
    check_static(input_domain)
    composition_measure(output_measure)
    d_in = validate_d_in(input_metric, d_in)
    sensitivity = owned.plain(sensitivity_at(d_in, sensitivity))
    threshold, scale = owned.plain(threshold), owned.plain(scale)
    steps = Steps.for_sensitivity(sensitivity)
    steps.level("threshold", threshold)
    if monotone and (
        input_metric in (change_one_distance(), hamming_distance())
        or known_size(input_domain) is not None
    ):
        raise InvalidValueError(
            f"monotone must be False for {input_domain} under {input_metric}: a record that "
            "changes lets some counts rise and others fall"
        )
    hits = max_hits
    own = steps.scale(scale=scale)
    if query_scale is None:
        query_scale = scale * least_cost(1 if refresh else hits, monotone)
    noise = SparseVectorNoise(
        threshold=own,
        question=steps.scale(query_scale=query_scale),
        answer=None if answer_scale is None else steps.scale(answer_scale=answer_scale),
        hits=hits,
        refresh=refresh,
    )
    most = steps.up(sensitivity)
    spread = most + (0 if steps.whole else 1) if monotone else None  # rounding down may add a step
    d_out = noise.loss(most, output_measure, spread=spread)
    space = input_domain, input_metric

    def spawn(token: Sealed) -> MachineQueryable:
        questions = Questions(space, d_in, sensitivity, steps, token, monotone=monotone)
        return MachineQueryable(_SparseVector(questions, noise, threshold), "SparseVector")

    return make_measurement(
        space,
        output_measure,
        spawn,
        constant_map(input_metric, d_in, d_out),
        f"SparseVector({output_measure}, d_in={d_in}, max_hits={hits})",
    )


def least_cost(hits: int, monotone: bool) -> float:
    """Ratio of the scales that minimises the variance of their sum at a given ε [LSL17]."""
    ratio: float = (hits if monotone else 2 * hits) ** (1 / 3)
    return ratio


def make_above_threshold(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    d_in: Any,
    scale: float,
    threshold: float,
    *,
    sensitivity: float | None = None,
    query_scale: float | None = None,
    monotone: bool = False,
) -> ConcurrentMeasurement:
    """Answer questions until one is above a threshold.

    A :func:`.make_sparse_vector` of one hit [DR14, Algorithm 1]: ε = D/scale + 2D/query_scale, for
    monotone questions D/scale + D/query_scale (and one step, if D is no integer).

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: domain of the data, and of the questions
    :param input_metric: metric of the data, and of the questions
    :param output_measure: how privacy is measured
    :param d_in: distance between neighbouring inputs, in units of ``input_metric``
    :param scale: of the threshold's Laplace noise, in units of the questions
    :param threshold: of questions that come without one
    :param sensitivity: bound on how far answers are apart at distance ``d_in``, however many
        records that is; an integer for questions with integer answers. 1 if left out, which is for
        a ``d_in`` of 1 only
    :param query_scale: of each question's noise; 2^(1/3) times ``scale`` if left out, for monotone
        questions ``scale``
    :param monotone: a promise as in :func:`.make_sparse_vector`
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> alarm = oc.m.make_above_threshold(
    ...     *space, dp.max_divergence(), d_in=1, scale=2.0, query_scale=4.0, threshold=500
    ... )
    >>> alarm.map(1)
    1.0
    >>> queryable = alarm([1, 2, 3] * 1000)
    >>> count = space >> dp.t.then_count()
    >>> queryable(count), queryable(count)
    (SparseVectorAnswer(outcome=ABOVE, ...), SparseVectorAnswer(outcome=EXHAUSTED, ...))
    """
    return make_sparse_vector(
        input_domain,
        input_metric,
        output_measure,
        d_in,
        scale,
        threshold,
        1,
        sensitivity=sensitivity,
        query_scale=query_scale,
        monotone=monotone,
    )


_number = at_most(2**62, "more are not asked in a lifetime")


@checked(
    scale=positive,
    query_scale=positive,
    questions=_number,
    beta=probability,
    thresholds=_number,
)
def sparse_vector_accuracy(
    scale: float, query_scale: float, questions: int, beta: float, *, thresholds: int = 1
) -> float:
    """Return how far from the threshold an answer is right, for all questions at once.

    With probability at least 1 - ``beta``, of the first ``questions`` questions all that are said
    to be above are above T - α, and all that are said to be below are below T + α:
    α = scale log(4m/(β(1+e^(-1/scale)))) + query_scale log(2k/(β(1+e^(-1/query_scale)))), for
    scales far above 1 scale log(2m/β) + query_scale log(k/β). Each of the k questions can err in
    one direction only, each of the m thresholds in both; noise on the integers, or on a finer grid,
    exceeds α to one side with probability at most e^(-α/s) / (1 + e^(-1/s)). Numbers are compared
    in whole steps, see :func:`.make_sparse_vector`. After [DR14, Theorem 3.24].

    :param scale: of the threshold's noise
    :param query_scale: of the questions' noise
    :param questions: how many, k
    :param beta: probability of failure, above 0
    :param thresholds: how often the threshold gets noise, m: 1, or the hits if it is refreshed
    :return: α, in units of the scales
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.m.sparse_vector_accuracy(2.0, 4.0, questions=1000, beta=0.05)
    47.898...
    """
    if not 0.0 < beta:
        raise InvalidValueError(f"beta ({beta}) must be above 0")
    alpha = 0.0
    for value, tails in ((scale, 2 * thresholds), (query_scale, questions)):
        alpha += value * log(2 * tails / (beta * (1 + exp(-1 / value))))
    return alpha


then_sparse_vector = _native.to_then(make_sparse_vector)
then_above_threshold = _native.to_then(make_above_threshold)
