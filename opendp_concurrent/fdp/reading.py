"""Read events of dp-accounting as pairs of trade-off functions, one in each direction.

This module imports dp-accounting, which is an extra; ``exchange.py`` imports it when it is used.
An event says what was run. Its loss follows from the neighbouring relation:

* ADD_OR_REMOVE_ONE: one record is in the first dataset only, or in the second one only;
* REPLACE_SPECIAL: that record is a special one, of value 0, in the other dataset; the same losses;
* REPLACE_ONE: the record is another one. Then the sum of vectors of norm C moves by up to 2C.

A class is read if it is exactly that class: a subclass may be another mechanism.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import zip_longest
from math import inf, isinf, nextafter
from typing import Any

import numpy as np

from .. import _checks as checks
from ..errors import InvalidTypeError, InvalidValueError
from ..errors import UnsupportedEventError as OurUnsupportedEventError
from ..numerics import Bracket, Digits, double_up, upper, zcdp_to_delta
from .finite import response_of
from .function import TradeoffFunction, of_factor
from .noise import Laplace, Subsampled
from .session import SELECTIONS, Session, profile_to_tradeoff, shifted_zcdp_to_tradeoff

try:
    from dp_accounting import DpEventBuilder as DpEventBuilder
    from dp_accounting import dp_event as dp_event
    from dp_accounting import privacy_accountant as privacy_accountant
except ImportError as error:
    raise ImportError(
        "events of dp-accounting need dp-accounting; install opendp-concurrent[events]",
        name="dp_accounting",
    ) from error

NeighboringRelation = privacy_accountant.NeighboringRelation
ADD_OR_REMOVE_ONE = NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE_ONE, REPLACE_SPECIAL = NeighboringRelation.REPLACE_ONE, NeighboringRelation.REPLACE_SPECIAL

_RELATION = checks.one_of(*(one.name for one in NeighboringRelation))

MOST_EVENTS, MOST_DEPTH = 100_000, 100  # of a tree
_MOST_STEPS = checks.at_most(2**52, "steps are exact in doubles")
_MOST_COPIES = 2**53
_COPIES = checks.at_most(_MOST_COPIES, "counts are exact in doubles")
_LEAST_SIZE = 1e-6  # of a sampled mechanism
_LARGEST_EXPONENT = 600.0
_GRID = 2**53  # probabilities of randomized response are multiples of 1/_GRID
_MOST_BUCKETS = checks.at_most(2**50, "probabilities are exact in doubles")

_MOST_RUNS = checks.at_most(10**6, "more have no use", checks.positive)

_ACCOUNTANTS = "compute its loss with an accountant of dp_accounting"
_SAMPLES = "pass neighboring_relation ADD_OR_REMOVE_ONE or REPLACE_SPECIAL"
_FIXED = f"draw Poisson samples, and pass PoissonSampledDpEvent(rate, event), or {_ACCOUNTANTS}"
_REFUSED = {  # what to do instead
    "UnsupportedDpEvent": "pass an event that says what was run",
    "MixtureOfGaussiansDpEvent": f"only sensitivities 0 and c are known: pass "
    f"PoissonSampledDpEvent(p, GaussianDpEvent(standard_deviation / c)), or {_ACCOUNTANTS}",
    "TruncatedSubsampledGaussianDpEvent": f"no dominating pair is implemented; {_ACCOUNTANTS}",
    "SampledWithoutReplacementDpEvent": f"samples of a fixed size have another pair; {_FIXED}",
    "SampledWithReplacementDpEvent": f"samples with replacement have another pair; {_FIXED}",
}


class UnsupportedEventError(OurUnsupportedEventError, privacy_accountant.UnsupportedEventError):
    """The error of this package, which callers of dp-accounting catch as its own."""


def refused(event: dp_event.DpEvent, what: str) -> UnsupportedEventError:
    """Return the error for an event that is not supported."""
    shown = checks.shown(event)
    return UnsupportedEventError(
        f"event: {type(event).__name__} is not supported: {what} (caused by subevent {shown})",
        event,
    )


def relation(
    neighboring_relation: privacy_accountant.NeighboringRelation | str,
) -> privacy_accountant.NeighboringRelation:
    """Return the member of dp-accounting's enumeration, from itself or its name."""
    if type(neighboring_relation) is NeighboringRelation:
        return neighboring_relation
    return NeighboringRelation[_RELATION(neighboring_relation=neighboring_relation)]


@dataclass(slots=True)
class Losses:
    """What events add up to: sessions, each so many times, and the parameters of zCDP.

    The losses of all (ξ, ρ)-zCDP events are added up before they become a trade-off function. This
    is sound: the other mechanisms are postprocessings of samples from their dominating pairs, which
    can be drawn in advance; given these samples, the rest is (Σξ, Σρ)-zCDP.
    """

    counts: Counter[Session] = field(default_factory=Counter)
    xi: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    ranges: Counter[float] = field(default_factory=Counter)

    def add(self, other: Losses, times: int) -> None:
        """Add ``times`` times the others."""
        for session, count in other.counts.items():
            self.counts[session] += count * times
        for epsilon, count in other.ranges.items():
            self.ranges[epsilon] += count * times
        self.xi += other.xi * times
        self.rho += other.rho * times

    def plus(self, other: Losses, times: int) -> Losses:
        """These and ``times`` times the others."""
        whole = Losses(Counter(self.counts), self.xi, self.rho, Counter(self.ranges))
        whole.add(other, times)
        return whole

    def session(self) -> Session:
        """The composition of all; or raise, if one is there too often."""
        most = max([*self.counts.values(), *self.ranges.values()], default=0)
        if not most <= _MOST_COPIES:
            raise InvalidValueError(
                f"count: the event has {checks.shown(most)} equal mechanisms, and must have at "
                f"most {_MOST_COPIES}, which are exact in doubles"
            )
        parts = [one.power(count) for one, count in self.counts.items()] or [Session()]
        if self.xi or self.rho:
            whole = shifted_zcdp_to_tradeoff(double_up(self.xi), double_up(self.rho))
            parts.append(Session(whole, whole))
        if self.ranges:
            parts.append(_of_ranges(self.ranges))
        while len(parts) > 1:  # in pairs, since a product copies its factors; halves the list
            pairs = zip_longest(parts[::2], parts[1::2], fillvalue=Session())
            parts = [one.compose(other) for one, other in pairs]
        return parts[0]


def _of_ranges(ranges: Counter[float]) -> Session:
    """Mechanisms of bounded range: the better of ε-DP and (ε²/8)-zCDP at each ε [CR21, Lemma 3.4].

    Both hold for the composition, so the smaller of both profiles does.
    """
    pure = TradeoffFunction.identity().compose(
        *(TradeoffFunction.pure(epsilon).power(n) for epsilon, n in ranges.items())
    )
    rho = double_up(sum((n * Fraction(one) ** 2 / 8 for one, n in ranges.items()), Fraction(0)))
    whole = pure
    if sum(ranges.values()) > 1:
        last = pure.epsilon(0.0)
        whole = profile_to_tradeoff(lambda at: min(pure.delta(at), zcdp_to_delta(rho, at)), last)
    return Session(whole, whole)


def read(event: dp_event.DpEvent, neighbours: privacy_accountant.NeighboringRelation) -> Losses:
    """Return the losses of a tree of events, or raise.

    :param neighbours: a member of dp-accounting's ``NeighboringRelation``
    """
    if not isinstance(event, dp_event.DpEvent):
        raise InvalidTypeError(
            f"event must be a dp_accounting.DpEvent, found {type(event).__name__}"
        )
    return _Reader(neighbours).read(event, MOST_DEPTH)


def _own(guard: checks.Guard[Any], event: dp_event.DpEvent, parameter: str) -> Any:
    """A parameter of an event, by a guard; NumPy's numbers are read exactly."""
    return guard(**{f"{type(event).__name__}.{parameter}": getattr(event, parameter)})


def with_own_count(event: dp_event.DpEvent) -> Any:
    """The event, whose count is a number of Python's: dp-accounting's builder takes no other."""
    if type(event) is not dp_event.SelfComposedDpEvent:
        return event
    return dp_event.SelfComposedDpEvent(event.event, checks.own_number(event.count))


def _both(function: TradeoffFunction) -> Losses:
    """The same loss in both directions."""
    nothing = function == TradeoffFunction.identity()
    return Losses(Counter([] if nothing else [Session(function, function)]))


class _Reader:
    """Reads one tree."""

    def __init__(self, neighbours: privacy_accountant.NeighboringRelation) -> None:
        self.neighbours = neighbours
        self.moved = 2 if neighbours is REPLACE_ONE else 1  # norms that a sum moves by
        self.left = MOST_EVENTS

    def read(self, event: dp_event.DpEvent, depth: int) -> Losses:
        self.left -= 1
        if depth < 1 or self.left < 0:
            raise InvalidValueError(
                f"event must have at most {MOST_EVENTS} subevents, and {MOST_DEPTH} inside each "
                "other; pass SelfComposedDpEvent(event, count) for equal ones"
            )
        name = type(event).__name__
        if type(event) is getattr(dp_event, name, None):
            if name in _TREES:
                return _TREES[name](self, event, depth - 1)
            if name in _MECHANISMS:
                return _MECHANISMS[name](self, event)
        raise refused(event, _REFUSED.get(name, f"its loss is not known; {_ACCOUNTANTS}"))

    # --- trees --------------------------------------------------------------------------------

    def composed(self, event: dp_event.ComposedDpEvent, depth: int) -> Losses:
        name = "ComposedDpEvent.events"
        if not isinstance(event.events, (list, tuple)):
            raise InvalidTypeError(f"{name} must be a list, found {type(event.events).__name__}")
        whole = Losses()
        for one in checks.read("events", **{name: event.events}):
            if not isinstance(one, dp_event.DpEvent):
                raise InvalidTypeError(f"{name} must be events, found {type(one).__name__}")
            whole.add(self.read(one, depth), 1)
        return whole

    def self_composed(self, event: dp_event.SelfComposedDpEvent, depth: int) -> Losses:
        count = _own(_COPIES, event, "count")
        return Losses().plus(self.read(event.event, depth), count)

    def sampled(self, event: dp_event.PoissonSampledDpEvent, depth: int) -> Losses:
        rate = _own(checks.probability, event, "sampling_probability")
        if rate in (0.0, 1.0):
            inner = self.read(event.event, depth)
            return inner if rate else Losses()
        if self.neighbours is REPLACE_ONE:  # the samples may differ by one record more
            raise refused(event, f"{_SAMPLES}, or {_ACCOUNTANTS}")
        losses = self.read(event.event, depth)
        product = losses.session().removed.product
        is_one = product.single is not None and not product.squares
        if not is_one and any(isinstance(one, Subsampled) for one in product.factors):
            raise refused(
                event,
                "the events that it samples must not be sampled themselves, unless it is one; if "
                "each mechanism has a sample of its own, pass one PoissonSampledDpEvent for each",
            )
        return _sampled(losses, rate)

    def selected(self, event: dp_event.RepeatAndSelectDpEvent, depth: int) -> Losses:
        """The best of a random number of runs."""
        mean = _own(_MOST_RUNS, event, "mean")
        shape = _own(checks.non_negative, event, "shape")
        if not mean >= 1.0:
            raise InvalidValueError(f"RepeatAndSelectDpEvent.mean ({mean}) must be at least 1")
        if isinf(shape):
            raise refused(
                event,
                "for a Poisson number of runs no bound on the profile is known that is near its "
                f"Rényi bound; pass a finite shape, or {_ACCOUNTANTS}",
            )
        inner = self.read(event.event, depth)
        if mean == 1.0:
            return inner
        (selection,) = SELECTIONS
        return _both(selection(inner.session(), mean, shape))

    # --- mechanisms ----------------------------------------------------------------------------

    def _loss(self, event: dp_event.DpEvent, moved: int) -> float:
        """The distance over the noise, rounded up."""
        noise = _own(checks.non_negative, event, "noise_multiplier")
        if noise == 0.0 or isinf(noise):
            return 0.0 if noise else inf
        return double_up(moved / Fraction(noise))

    def gaussian(self, event: dp_event.GaussianDpEvent) -> Losses:
        return _both(TradeoffFunction.gaussian(self._loss(event, self.moved)))

    def laplace(self, event: dp_event.LaplaceDpEvent) -> Losses:
        return _both(TradeoffFunction.laplace(self._loss(event, self.moved)))

    def tree(self, event: dp_event.SingleEpochTreeAggregationDpEvent) -> Losses:
        """Each record is in as many nodes as the largest tree has levels."""
        if self.neighbours is not REPLACE_SPECIAL:
            raise refused(event, "pass neighboring_relation REPLACE_SPECIAL")
        given = event.step_counts
        steps = given if isinstance(given, (list, tuple)) else [given]
        name = "SingleEpochTreeAggregationDpEvent.step_counts"
        found = checks.sequence("counts", **{name: steps})
        counts = [checks.count(**{name: one}) for one in found]
        node = TradeoffFunction.gaussian(self._loss(event, 1))
        return _both(node.power(max(counts).bit_length()))

    def discrete_laplace(self, event: dp_event.DiscreteLaplaceDpEvent) -> Losses:
        inverse = _own(checks.non_negative, event, "noise_parameter")
        sensitivity = _own(_MOST_STEPS, event, "sensitivity")
        steps = self.moved * sensitivity
        if inverse == 0.0 or isinf(inverse):  # no distribution, or no noise
            return _both(TradeoffFunction.worst())
        loss = double_up(steps * Fraction(inverse))
        return _both(TradeoffFunction.laplace(loss, float(steps)))

    def discrete_gaussian(self, event: dp_event.DiscreteGaussianDpEvent) -> Losses:
        """In one dimension by its pair; in others (s²/2σ²)-zCDP [CKS20, Theorem 14]."""
        sigma = _own(checks.positive, event, "sigma")
        given = _own(checks.positive, event, "sensitivity")
        if event.dimension != 1:
            return Losses(rho=(self.moved * Fraction(given) / Fraction(sigma)) ** 2 / 2)
        if given != int(given):
            raise InvalidValueError(
                f"DiscreteGaussianDpEvent.sensitivity ({given}) must be an integer; round it down"
            )
        return _both(TradeoffFunction.discrete_gaussian(sigma, self.moved * int(given)))

    def response(self, event: dp_event.RandomizedResponseDpEvent) -> Losses:
        """In multiples of 2^-53, so that both probabilities are doubles; rounded to more truth."""
        if self.neighbours is ADD_OR_REMOVE_ONE:
            raise refused(event, "pass neighboring_relation REPLACE_ONE or REPLACE_SPECIAL")
        noise = _own(checks.probability, event, "noise_parameter")
        buckets = _own(_MOST_BUCKETS, event, "num_buckets")
        if buckets == 1 or noise == 1.0:
            return Losses()
        truth = truth_up(noise, buckets)
        if self.neighbours is REPLACE_ONE:
            return _both(TradeoffFunction.randomized_response(truth, buckets))
        chance = float(Fraction(_GRID // buckets, _GRID))  # of each answer, without the record
        removed = TradeoffFunction.finite([chance, 1.0 - chance], [truth, 1.0 - truth])
        return Losses(Counter([Session(removed, removed.inverse())]))

    def pure(self, event: dp_event.PermuteAndFlipDpEvent) -> Losses:
        return _both(TradeoffFunction.pure(_own(checks.non_negative, event, "epsilon")))

    def ranged(self, event: dp_event.ExponentialMechanismDpEvent) -> Losses:
        epsilon = _own(checks.non_negative, event, "epsilon")
        if isinf(epsilon):
            return _both(TradeoffFunction.worst())
        return Losses(ranges=Counter([epsilon] if epsilon else []))

    def approximate(self, event: dp_event.EpsilonDeltaDpEvent) -> Losses:
        epsilon = _own(checks.non_negative, event, "epsilon")
        delta = _own(checks.probability, event, "delta")
        return _both(TradeoffFunction.approximate(epsilon, delta))

    def concentrated(self, event: dp_event.ZCDpEvent) -> Losses:
        rho = _own(checks.non_negative, event, "rho")
        xi = _own(checks.non_negative, event, "xi")
        if isinf(rho) or isinf(xi):
            return _both(TradeoffFunction.worst())
        return Losses(Counter(), Fraction(xi), Fraction(rho))


_TREES: dict[str, Callable[[_Reader, Any, int], Losses]] = {
    "ComposedDpEvent": _Reader.composed,
    "SelfComposedDpEvent": _Reader.self_composed,
    "PoissonSampledDpEvent": _Reader.sampled,
    "RepeatAndSelectDpEvent": _Reader.selected,
}
_MECHANISMS: dict[str, Callable[[_Reader, Any], Losses]] = {
    "NoOpDpEvent": lambda *_: Losses(),
    "NonPrivateDpEvent": lambda *_: _both(TradeoffFunction.worst()),
    "GaussianDpEvent": _Reader.gaussian,
    "LaplaceDpEvent": _Reader.laplace,
    "DiscreteLaplaceDpEvent": _Reader.discrete_laplace,
    "DiscreteGaussianDpEvent": _Reader.discrete_gaussian,
    "RandomizedResponseDpEvent": _Reader.response,
    "SingleEpochTreeAggregationDpEvent": _Reader.tree,
    "EpsilonDeltaDpEvent": _Reader.approximate,
    "ExponentialMechanismDpEvent": _Reader.ranged,
    "PermuteAndFlipDpEvent": _Reader.pure,
    "ZCDpEvent": _Reader.concentrated,
}


# --- sampling ----------------------------------------------------------------------------------


def _sampled(inner: Losses, rate: float) -> Losses:
    """The losses of one Poisson sample on which all the others run."""
    session = inner.session()
    product = session.removed.product
    single = None if product.squares else product.single
    if product.is_identity:
        return Losses()
    if isinstance(single, Subsampled):  # the samples of a sample
        both = double_up(Fraction(rate) * Fraction(single.rate))
        return _subsampled(single.noise, single.size, both)
    if not product.factors:
        return _subsampled("gaussian", product.mu, rate)
    if isinstance(single, Laplace) and isinf(single.steps):
        return _subsampled("laplace", single.epsilon, rate)
    known = response_of(single)
    if known is not None:
        return _both(TradeoffFunction.approximate(*amplified(*known, rate)))
    if session.removed == TradeoffFunction.worst():
        return _both(TradeoffFunction.approximate(0.0, rate))
    # removed: q δ(ε'), as in noise.py; added: c δ(ln(q e^ε/c)), c = 1 - (1 - q) e^ε, which is
    # at most that, since c <= q and q e^ε/c >= e^ε': their difference is (1 - q) (e^ε - 1)² / (q c)
    whole = Subsampled("laplace", 1.0, rate, "removed")  # for ε' alone

    def delta(epsilon: float) -> float:
        least = max(0.0, float(whole.inner(np.array(epsilon))[0]))
        return nextafter(rate * session.delta(least), 1.0)

    return _both(profile_to_tradeoff(delta))


def _subsampled(noise: str, size: float, rate: float) -> Losses:
    """Both directions."""
    removed = of_factor(Subsampled(noise, max(size, _LEAST_SIZE), rate, "removed"))
    return Losses(Counter([Session(removed, removed.inverse())]))


def truth_up(noise: float, buckets: int) -> float:
    """The probability of the true answer, 1 - p (k - 1)/k, rounded up to a multiple of 2^-53."""
    exactly = 1 - Fraction(noise) * Fraction(buckets - 1, buckets)
    return float(Fraction(-(-exactly * _GRID // 1), _GRID))


def amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """(ln(1 + q(e^ε - 1)), qδ), rounded up: holds in both directions."""

    def loss(real: Digits) -> Bracket:
        return (1 + real(rate) * (real(epsilon).exp() - 1)).ln()

    largest = min(epsilon, upper(loss)) if 0.0 < epsilon < _LARGEST_EXPONENT else epsilon
    return largest, min(1.0, double_up(Fraction(rate) * Fraction(delta)))
