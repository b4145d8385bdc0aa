"""How far noisy sums of a stream can be from the exact ones, with confidence.

A noisy sum is the exact one plus Σ a_i X_i, with independent noises X_i on the integers or a finer
grid. Sums with as many noises of each size are of one kind. Their tails add up over all sums (the
union bound), so what is bounded is the tail of each kind.

Gaussian noise of scale s on a grid has E exp(t X) <= exp(t² s²/2) [CKS20], so the tail of a kind of
variance v is at most exp(-x²/(2v)).

Laplace noise on the integers is floor(E) - floor(E') for exponential E and E' of its scale, whose
fractions are independent of the floors. So it is Laplace noise Y on the reals plus a difference of
fractions, which is symmetric, below 1, and independent of X. So P(Σ a X > x) is at most
2 P(Σ a Y > x), and at most P(Σ a Y > x - Σ a). If all a are equal, Σ a Y has the tail of a mixture
of Gamma distributions, which is exact. Else let K(t) = log E exp(t Σ a Y) = -Σ log(1 - a² t²), with
K'(t) = x. The tail is at most exp(K(t) - t x) times the smaller of 1 and 1/(t σ): tilted by t, the
density is still log-concave, with the variance σ² = K''(t), so it is at most 1/σ, and is integrated
with exp(-t (y - x)) over y > x. The first bound also holds for noise on the integers, where
E exp(t X) = (cosh(1/s) - 1)/(cosh(1/s) - cosh(t)), since (cosh(x) - 1)/x² increases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, ldexp, log, nextafter, sqrt
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from opendp.mod import Domain, Measure, Metric

from .. import _checks as checks
from .. import _opendp as _native
from .. import errors
from ..composition import constructor
from ..mechanisms import composed
from ..queryables import READ, Accuracy, ConcurrentMeasurement, restore_exactly
from .digits import (
    LARGEST_SUM,
    Digits,
    DigitsPrefix,
    EpochsPrefix,
    NodeNoise,
    best_digits,
    epochs,
    is_laplace,
    noise_loss,
)
from .factors import BufferedFactor, FactorPrefix, buffered, endless, variances, window_variance
from .mechanism import ContinualMachine, continual
from .stream import integers_of, require_events, whole_distance

Numbers = NDArray[np.float64]
HALVINGS = 45
CLOSE = 1e-6
EACH_PLACE = 2**20  # places of a block that are looked at one by one


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """The noises in the sums that are looked at.

    :ivar scales: sizes of noises, a_i times the scale, in ascending order
    :ivar kinds: for each kind of sum, how many noises of each size it has, or at most
    :ivar sums: how many sums are of each kind
    :ivar steps: for each kind, the sum of a_i: Laplace noise is on the integers
    :ivar offset: bound on the error of rounding
    """

    scales: Numbers
    kinds: Numbers
    sums: Numbers
    steps: Numbers
    offset: float = 0.0

    @staticmethod
    def of(scales: Sequence[float], kinds: Kinds, multiples: Sequence[int] | None = None) -> Spread:
        """Return the spread of kinds of sums.

        :param kinds: from the numbers of noises of each size to the number of sums
        :param multiples: the a_i; 1 if left out
        """
        numbers = np.array(list(kinds), dtype=np.float64).reshape(len(kinds), len(scales))
        weights = np.ones(len(scales)) if multiples is None else np.array(multiples, dtype=float)
        sums = np.array(list(kinds.values()), dtype=np.float64)
        return Spread(np.array(scales), numbers, sums, numbers @ weights)

    @property
    def squares(self) -> Numbers:
        """The sum of squares of the sizes, for each kind."""
        squares: Numbers = self.kinds @ np.square(self.scales)
        return squares

    def largest(self, laplace: bool, failing: float) -> float:
        """Return a bound that all sums are within, but with probability ``failing``."""

        def excess(bound: float) -> float:
            tails = self._laplace(bound) if laplace else -(bound**2) / (2 * self.squares)
            return float(np.sum(2 * self.sums * np.exp(np.minimum(tails, 0.0)))) - failing

        high = float(self.scales[-1])
        while excess(high) > 0.0:
            high *= 2
        if excess(0.0) <= 0.0:
            return 0.0
        return float(scipy.optimize.brentq(excess, 0.0, high, rtol=CLOSE)) * (1 + 2 * CLOSE)

    def _laplace(self, bound: float) -> Numbers:
        """Return the logarithm of the tail of each kind."""
        rough, fine = self._tails(np.full(len(self.kinds), bound))
        _, nearer = self._tails(np.maximum(bound - self.steps, 0.0))
        return np.minimum(np.minimum(rough, fine + log(2)), nearer)

    def _tails(self, bounds: Numbers) -> tuple[Numbers, Numbers]:
        """Return logarithms: of Chernoff's bound, and of the tail on the reals."""
        squares, there = np.square(self.scales), self.kinds > 0
        low = np.zeros(len(bounds))
        high = 1 / np.max(np.where(there, self.scales, 0.0), axis=1, initial=2.0**-60)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rest = 1 - np.outer(np.square(middle), squares)
            slopes = np.divide(2 * self.kinds * squares, rest, where=there, out=np.zeros_like(rest))
            below = middle * slopes.sum(axis=1) < bounds
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        shares = np.where(there, np.outer(np.square(low), squares), 0.0)
        rough = -np.sum(self.kinds * np.log1p(-shares), axis=1) - low * bounds
        curve = np.sum(2 * self.kinds * squares * (1 + shares) / np.square(1 - shares), axis=1)
        fine = rough - np.log(np.maximum(low * np.sqrt(curve), 1.0))
        for kind in np.flatnonzero(there.sum(axis=1) == 1):
            (size,) = np.flatnonzero(there[kind])
            fine[kind] = _equal(int(self.kinds[kind, size]), bounds[kind] / self.scales[size])
        return rough, fine


Kinds = dict[tuple[float, ...], float]
SpreadOf = Callable[[int], Spread]  # from the number of steps


def _equal(count: int, bound: float) -> float:
    """Return the logarithm of the tail of a sum of Laplace noises of scale 1.

    Its part above 0 is the sum over j of C(n-1+j, j) 2^-(n+j) times a Gamma density of n - j.
    """
    earlier = np.arange(count)
    weights = scipy.special.gammaln(count + earlier) - scipy.special.gammaln(earlier + 1)
    weights -= scipy.special.gammaln(count) + (count + earlier) * log(2)
    tails = scipy.special.gammaincc(count - earlier, bound)
    total = float(np.exp(weights) @ tails)
    return log(total) if total > 0.0 else inf


def of_digits(scale: float, digits: Digits) -> SpreadOf:
    """Return the spread of a tree with signed digits."""
    return lambda answers: Spread.of(
        [scale], {(n,): many for n, many in enumerate(digits.sums(answers).tolist()) if n and many}
    )


def of_epochs(scale: float) -> SpreadOf:
    """Return the spread of epochs: nodes of the last sums, and those of sums of the open one.

    See :class:`.EpochsPrefix`.
    """

    def spread(answers: int) -> Spread:
        found = list(epochs(answers))
        before, kinds = [0.0] * len(found), dict[tuple[float, ...], float]()
        for number, (one, count) in enumerate(found):
            for nodes, many in enumerate(one.digits.sums(count).tolist()):
                kind = (*before[:number], float(nodes), *before[number + 1 :])
                if any(kind) and many:
                    kinds[kind] = kinds.get(kind, 0.0) + many
            before[number] = float(one.digits.nodes(one.length))
        return Spread.of([nextafter(one.digits.height * scale, inf) for one, _ in found], kinds)

    return spread


def of_window_digits(scale: float, digits: Digits, window: int) -> SpreadOf:
    """Return the spread of a window by digits: a node of two prefixes counts twice, or not."""
    most = digits.height * (digits.base // 2)

    def spread(answers: int) -> Spread:
        blocks, places = float(-(-answers // window)), min(answers, window)
        kinds: Kinds = {(most, most if blocks > 1 else 0): answers}
        if places <= EACH_PLACE:
            once, twice = digits.window_nodes(np.arange(1, places + 1), window, blocks > 1)
            pairs, many = np.unique(np.stack([once, twice]), axis=1, return_counts=True)
            kinds = {
                (one, two): blocks * count
                for (one, two), count in zip(pairs.T.tolist(), many.tolist(), strict=True)
            }
        return Spread.of([scale, 2 * scale], kinds, (1, 2))

    return spread


def of_factor(
    factor: BufferedFactor, scale: float, bits: int, window: int | None = None
) -> SpreadOf:
    """Return the spread of a factorisation, of all sums or of those of a window.

    The encoder and the decoder are each off by less than 17/16 steps of the grid at each step,
    which the decoder's row sums up: see ``factors.py``. The sum is rounded to an integer.
    """

    def spread(answers: int) -> Spread:
        if window is None:
            lengths, _, squares = variances(factor, answers)
        else:
            lengths, squares = (
                np.array([float(answers)]),
                np.array([window_variance(factor, window)]),
            )
        squares = squares * (1 + 2.0**-20)
        offset = 1.0 + 6 * sqrt(answers * float(squares.max())) * 2.0**-bits
        return Spread(np.array([scale]), squares[:, None], lengths, np.sqrt(squares), offset)

    return spread


# Methods of counters: for each noise, the state before the first step, and the privacy loss.

EXACT_BITS = 53
ENDLESS_STEPS = 2**50  # rounding at each of them costs less than 1e-4 of the loss


@dataclass(frozen=True)
class Plan:
    """A method with its parameters.

    :ivar start: returns the state before the first step
    :ivar loss: from a number of events, and of counts that each of them moves, to the privacy loss
    :ivar horizon: largest number of steps; None if it is unlimited
    :ivar spread: from a number of steps to the noise in their sums
    """

    start: Callable[[], Any]
    loss: Callable[[int, int], Any]
    horizon: int | None
    spread: SpreadOf

    def measurement(
        self,
        space: tuple[Domain, Metric],
        output_measure: Measure,
        machine: Callable[[Any], ContinualMachine],
        scale: float,
        name: str,
        *,
        moved: int = 1,
        sums: int = 1,
    ) -> ConcurrentMeasurement:
        """Return the measurement that runs this method.

        :param machine: makes the state machine of a state
        :param moved: counts that each event moves
        :param sums: counts at each step
        """

        def privacy_map(d_in: errors.Distance) -> Any:
            return self.loss(whole_distance(space[1], d_in), moved)

        def error(beta: float, answers: int) -> float:
            found = self.spread(answers if self.horizon is None else min(answers, self.horizon))
            return found.largest(laplace, beta / sums) + found.offset

        privacy_map(1)  # raises for an unsupported measure
        laplace = is_laplace(output_measure)
        return continual(
            space,
            output_measure,
            lambda: machine(self.start()),
            privacy_map,
            self.horizon,
            name,
            READ,
            Accuracy("Laplace" if laplace else "Gaussian", scale, error),
        )


def most_steps(largest: int) -> int:
    """Return the largest number of steps of a factor without a horizon."""
    return min(ENDLESS_STEPS, LARGEST_SUM // largest)


def plan(horizon: int | None, scale: float, measure: Measure, *, shift: int, largest: int) -> Plan:
    """Return the method for the noise of a measure.

    :param shift: largest move of a count by one event
    :param largest: largest size of an item
    """
    if not is_laplace(measure):
        factor = endless(most_steps(largest)) if horizon is None else buffered(horizon)
        return factor_plan(factor, scale, measure, shift=shift, largest=largest)
    if horizon is None:
        return Plan(
            lambda: EpochsPrefix(scale),
            nodes_loss(shift, 1, scale, measure),
            LARGEST_SUM // largest,
            of_epochs(scale),
        )
    digits = best_digits(horizon)
    return Plan(
        lambda: DigitsPrefix(digits, NodeNoise(scale, laplace=True)),
        nodes_loss(shift, digits.height, scale, measure),
        horizon,
        of_digits(scale, digits),
    )


def factor_plan(
    factor: BufferedFactor,
    scale: float,
    measure: Measure,
    *,
    shift: int,
    largest: int,
    window: int | None = None,
    state: Callable[[FactorPrefix], Any] = lambda prefix: prefix,
) -> Plan:
    """Return a factorisation with its parameters.

    :param window: number of the last steps that are summed; all if left out
    :param state: from a noisy prefix sum to the state of the mechanism
    """
    bits = factor.grid_bits(scale, largest)
    noise_scale, moved = ldexp(scale, bits), factor.sensitivity(bits, shift)
    return Plan(
        lambda: state(FactorPrefix(factor, bits, NodeNoise(noise_scale, laplace=False))),
        lambda events, parts: factor_loss(events, moved, noise_scale, measure, parts),
        factor.horizon,
        of_factor(factor, scale, bits, window),
    )


def nodes_loss(
    shift: int, height: int, scale: float, measure: Measure
) -> Callable[[int, int], Any]:
    """Return the loss of a tree by events, and by the numbers that each moves by ``shift``.

    An event is in at most one node of each of ``height`` levels. Several events in one node move it
    by their sum, and ε is proportional to the shift.
    """

    def loss(events: int, parts: int) -> Any:
        if events == 0:
            return composed(measure, [])
        return noise_loss(scale, events * shift * height * parts, measure)

    return loss


def factor_loss(events: int, moved: int, scale: float, measure: Measure, parts: int) -> Any:
    """Return the privacy loss of ``events`` events, each moving all releases by ``moved`` in L2.

    The loss depends on the move over the scale only. Both are halved, and the move rounded up,
    until it is a double.
    """
    if events == 0:
        return composed(measure, [])
    far = events * moved
    halved = max(0, far.bit_length() - EXACT_BITS)
    loss = noise_loss(ldexp(scale, -halved), -(-far >> halved), measure)
    return composed(measure, [(loss, parts)])


def moves_of(input_domain: Domain, input_metric: Metric) -> tuple[int, int]:
    """Return the largest move of a sum by one event, and by an item that changes; or raise."""
    items = integers_of(input_domain)
    return items.spread if require_events(input_metric) else items.largest, max(items.spread, 1)


def check_scale(scale: Any, largest: int, **steps: int | None) -> float:
    """Return the scale, or raise unless sums and noise stay far from integer overflow.

    :param largest: largest move of an item
    :param steps: largest number of steps, by the argument's name; None if unlimited
    """
    ((name, count),) = steps.items()
    double = checks.finite(scale=scale)
    if not 0.0 < double <= 2.0**50:
        raise errors.InvalidValueError(
            f"scale ({scale}) must be above 0 and at most 2**50; pass a number in (0, 2**50]"
        )
    if count is not None and not count * largest <= LARGEST_SUM:
        raise errors.InvalidValueError(
            f"{name} ({count}) times the largest item must be at most 2**61"
        )
    return double


# Counters: noisy sums of all items of a stream so far.


class Counter:
    """State machine of noisy sums; the only query is None.

    :param state: a prefix, or a window: it has update, update_all, total, to_record, restore, and
        perhaps steps
    """

    def __init__(self, state: Any) -> None:
        self._state = state

    def update(self, item: int | None) -> None:
        """Take the item of the next step, or None."""
        self._state.update(item or 0)

    def update_all(self, items: errors.ItemSequence) -> None:
        """Take the items of the next steps."""
        self._state.update_all(whole_numbers(items))

    def ask(self, query: errors.Query) -> errors.Answer:
        """Return the noisy sum."""
        if query is not None:
            raise errors.InvalidTypeError(
                f"the query must be None, for the noisy sum, found {type(query).__name__}"
            )
        return int(self._state.total())

    def to_record(self) -> errors.Json:
        """Return the state as a JSON value."""
        return self._state.to_record()

    def restore(self, record: dict[str, Any]) -> None:
        """Restore the state from a record."""
        restore_exactly(self._state, record)

    @property
    def steps(self) -> int | None:
        """Number of steps so far; None if the state does not have it."""
        return getattr(self._state, "steps", None)


def whole_numbers(items: errors.ItemSequence) -> Any:
    """Return the items as an array, with 0 for None."""
    if isinstance(items, np.ndarray):
        return items
    return np.array([item or 0 for item in items], dtype=np.int64)


@constructor
def make_counter(
    input_domain: Domain,
    input_metric: Metric,
    output_measure: Measure,
    scale: checks.Finite,
    *,
    horizon: checks.Count | None = None,
) -> ConcurrentMeasurement:
    """Make a measurement that returns the noisy count, or sum, of all items so far, at any time.

    The measurement spawns a :class:`.ContinualQueryable`. ``update(item)`` or ``update_all(items)``
    adds items. ``read()``, or the query None, returns the noisy sum so far, which stays the same
    until the next update. :func:`.counter_rmse` computes the error.

    OpenDP draws the noise. Under pure and (ε, δ)-DP it is Laplace noise, in a tree of odd degree k
    with signed digits [APT24], with the best k for T. An item is in h nodes, where (k^h - 1)/2 >=
    T, and a node has noise of ``scale``. Without a horizon there is one tree per epoch, each about
    four times as long as the one before. Then the loss of an item is that of one release with noise
    of ``scale``, and a node of a tree of h levels has noise of h times the scale.

    Under zCDP, tCDP, Rényi and Gaussian DP it is discrete Gaussian noise, in a factorisation with
    O(log T) state [DMPST24], whose columns are normalised. The loss of an item is that of one
    release with noise of ``scale``, with or without a horizon. Noise is drawn at every step.

    Guarantee: the map is a bound against a strongly adaptive adversary [HSV25, Definition 3.3].
    An added or removed event moves a sum by at most the largest item. A changed event moves it by
    at most the range of the items and 0.

    Required features: `contrib`, `honest-but-curious`

    :param input_domain: ``oc.integer_stream(lower, upper)``
    :param input_metric: ``oc.event_presence()`` or ``oc.event_change()``; for users, chain with
        :func:`.make_bounded_contributions`
    :param output_measure: how privacy is measured
    :param scale: scale of the noise, as above
    :param horizon: largest number of steps; unlimited if left out
    :return: a measurement on the empty stream
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises UnsupportedMeasureError: for other measures; build for zCDP, and cast

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> counter.map(1)
    0.15000000000000002
    >>> queryable = counter([])
    >>> queryable.update_all([1, 0, 1, None] * 200)
    >>> count = queryable.read()
    >>> count == queryable.read()
    True
    """
    shift, largest = moves_of(input_domain, input_metric)
    scale = check_scale(scale, largest, horizon=horizon)
    made = plan(horizon, scale, output_measure, shift=shift, largest=largest)
    name = f"Counter[scale={scale}, horizon={horizon}]"
    return made.measurement((input_domain, input_metric), output_measure, Counter, scale, name)


then_counter = _native.to_then(make_counter)
