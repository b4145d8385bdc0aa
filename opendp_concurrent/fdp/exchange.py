"""Trade-off functions outside of Python: the parts that ledgers keep, and events of dp-accounting.

Ledgers keep functions under the tags ``function``, ``pair`` and ``swapped``, and those of the
factors. What is read from a ledger is made again with all checks. Events say what was run.
``reading.py`` needs dp-accounting, an extra, so it is imported when a function is called; where an
event is made, the module ``dp_event`` is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf, nextafter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _checks as checks
from .._checks import BY_CLASS, Around, Kind, add, check_fields
from ..errors import ConcurrentError, UnsupportedEventError
from ..numerics import reciprocal_down
from .finite import Finite, response_of
from .function import TradeoffFunction, of_product
from .noise import Factor, Laplace, Subsampled, laplace
from .product import Product
from .session import Session, check_session
from .shapes import UNITS

if TYPE_CHECKING:
    from dp_accounting import DpEvent, NeighboringRelation

FUNCTION_KEYS = ("squares", "factors")
PAIR = (  # keys, which are also the names of the attributes
    *("losses", "masses", "infinite", "never", "mass_error", "loss_error", "symmetric"),
    *("limit", "slack", "gaussian", "back", "stands_for", "unit"),
)
_ABOUT_ONE = 1.01  # masses have an error, which is written with them


class Back(NamedTuple):
    """The other direction of a pair. It is written as a pair, not as a swapped pair."""

    pair: Finite


def function_parts(function: TradeoffFunction) -> dict[str, Any]:
    """Return the sum of squares of the Gaussians, and the other factors with their counts."""
    product = function.product
    return {"squares": hex(product.squares), "factors": tuple(product.factors.items())}


def make_function(parts: Mapping[str, Any]) -> TradeoffFunction:
    """Inverse of :func:`function_parts`."""
    factors = {_factor(factor): int(count) for factor, count in parts["factors"]}
    squares = int(parts["squares"], 16)
    _require(squares >= 0 and all(count >= 1 for count in factors.values()))
    return of_product(Product(squares, factors))


def original(pair: Finite) -> Finite | None:
    """Return the pair that this pair was swapped from; None if it was not swapped."""
    twin: Finite | None = pair.__dict__.get("_twin")
    return twin if "_origin" in pair.__dict__ else None


def pair_parts(pair: Finite) -> dict[str, Any]:
    """Return the fields of a pair; ``back``, ``stands_for`` and ``unit`` only if they are set."""
    parts = {key: getattr(pair, key) for key in PAIR}
    if pair.back is None:
        del parts["back"]
    else:
        parts["back"] = Back(pair.back)
    for key in ("stands_for", "unit"):
        if not parts[key]:
            del parts[key]
    return parts


def make_pair(parts: Mapping[str, Any]) -> Finite:
    """Inverse of :func:`pair_parts`.

    :raises ValueError: if the parts are not those of a pair of distributions
    """
    pair = Finite(**parts)
    losses, masses = pair.losses, pair.masses
    _require(losses.shape == masses.shape and bool(np.isfinite(losses).all()))
    _require(bool((losses[1:] >= losses[:-1]).all()) and bool((masses >= 0.0).all()))
    _require(float(masses.sum()) + pair.infinite <= _ABOUT_ONE)
    _require(all(0.0 <= one <= 1.0 for one in (pair.infinite, pair.never)))
    _require(all(0.0 <= one < inf for one in (pair.mass_error, pair.loss_error, pair.slack)))
    _require(isinstance(pair.stands_for, str) and pair.unit in ("", *UNITS))
    _require(pair.back is None or (isinstance(pair.back, Finite) and pair.back.back is None))
    _require(pair.limit >= 0.0 and pair.gaussian >= 0.0)
    return pair


def _factor(factor: Any) -> Any:
    """Check a factor of a product, and return it."""
    if isinstance(factor, Laplace):
        _require(0.0 < factor.epsilon < inf and factor.steps >= 1.0)
        _require(factor.steps == inf or float(factor.steps).is_integer())
    elif isinstance(factor, Subsampled):
        _require(factor.noise in ("gaussian", "laplace") and factor.unit in UNITS)
        _require(0.0 < factor.size < inf and 0.0 < factor.rate < 1.0)
    else:
        _require(isinstance(factor, Finite))
    return factor


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("a part of the trade-off function is out of range")


check_fields(Finite, {key: key for key in PAIR})
_PAIR = Kind("pair", Finite, PAIR, pair_parts, make_pair)
add(replace(_PAIR, around=Around("swapped", original, Finite.swapped)))
BY_CLASS[Back] = replace(_PAIR, cls=Back, parts=lambda back: pair_parts(back.pair))
add(
    Kind(
        "function", TradeoffFunction, FUNCTION_KEYS, function_parts, make_function, subclasses=True
    )
)


# Events for trade-off functions; the module ``dp_event`` is always passed in.


def function_event(dp_event: ModuleType, function: TradeoffFunction) -> Any:
    """The event of a product of trade-off functions; of a bound of one direction there is none."""
    if function.direction is not None:
        return dp_event.UnsupportedDpEvent()
    return _event(dp_event, function, function)


def _event(dp_event: ModuleType, removed: TradeoffFunction, added: TradeoffFunction) -> Any:
    """The event of a function in each direction; ``UnsupportedDpEvent`` if there is none.

    A factor that is not symmetric has an event only if it is sampled noise, and the unit is removed
    in the direction of that name.
    """
    if TradeoffFunction.worst() in (removed, added):
        return dp_event.NonPrivateDpEvent()
    product, found = removed.product, []
    if product.squares:
        found.append(dp_event.GaussianDpEvent(reciprocal_down(nextafter(product.mu, inf))))
    for factor, count in product.factors.items():
        event = factor_event(dp_event, factor)
        if event is None:
            return dp_event.UnsupportedDpEvent()
        found.append(dp_event.SelfComposedDpEvent(event, count) if count > 1 else event)
    if added != removed.inverse():
        return dp_event.UnsupportedDpEvent()
    if not found:
        return dp_event.NoOpDpEvent()
    return found[0] if len(found) == 1 else dp_event.ComposedDpEvent(found)


def factor_event(dp_event: ModuleType, factor: Factor) -> Any:
    """The event of one factor, or None."""
    if isinstance(factor, Subsampled):
        if factor.unit != "removed":
            return None
        noise = reciprocal_down(factor.size)
        kind = dp_event.GaussianDpEvent if factor.noise == "gaussian" else dp_event.LaplaceDpEvent
        return dp_event.PoissonSampledDpEvent(factor.rate, kind(noise))
    laplace_noise = factor if isinstance(factor, Laplace) else _as_laplace(factor)
    if laplace_noise is not None:
        return _laplace(dp_event, laplace_noise)
    known, made = response_of(factor), getattr(dp_event, "EpsilonDeltaDpEvent", None)
    if known is None or made is None:  # dp-accounting has it after version 0.6
        return None
    return made(epsilon=known[0], delta=known[1])


def _as_laplace(factor: Any) -> Laplace | None:
    """The Laplace noise of few steps, or the randomized response, that a finite pair is."""
    steps = len(getattr(factor, "losses", ())) - 1
    if not steps >= 1:
        return None
    epsilon = float(factor.losses[-1]) if steps == 1 else factor.limit
    if not 0.0 < epsilon < inf or laplace(epsilon, float(steps)) != factor:
        return None
    return Laplace(epsilon, float(steps))


def _laplace(dp_event: ModuleType, factor: Laplace) -> Any:
    if factor.steps == inf:
        return dp_event.LaplaceDpEvent(reciprocal_down(factor.epsilon))
    exact, nearest = Fraction(factor.epsilon) / int(factor.steps), factor.epsilon / factor.steps
    step = nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
    return dp_event.DiscreteLaplaceDpEvent(step, int(factor.steps))


# Events of dp-accounting, read as sessions and made of sessions.


def from_dp_event(
    event: DpEvent, neighboring_relation: NeighboringRelation | str = "ADD_OR_REMOVE_ONE"
) -> Session:
    """The privacy loss of an event of dp-accounting, in both directions.

    All numbers are rounded to a larger loss. The mechanisms in the event may be chosen adaptively,
    but their losses are those of the event [DRS22, Theorem 3.2], [VZ23].

    * ``NoOpDpEvent``, ``NonPrivateDpEvent``, ``ComposedDpEvent``, ``SelfComposedDpEvent``;
    * ``GaussianDpEvent``, ``LaplaceDpEvent``, ``DiscreteLaplaceDpEvent``, and, where
      dp-accounting has them, ``DiscreteGaussianDpEvent``, ``EpsilonDeltaDpEvent``,
      ``ExponentialMechanismDpEvent`` by the better of ε-DP and (ε²/8)-zCDP, and
      ``PermuteAndFlipDpEvent`` as ε-DP;
    * ``PoissonSampledDpEvent`` of any events but several samples; not for REPLACE_ONE;
    * ``RepeatAndSelectDpEvent`` of any events, with a finite shape;
    * ``RandomizedResponseDpEvent``, not for ADD_OR_REMOVE_ONE;
      ``SingleEpochTreeAggregationDpEvent`` for REPLACE_SPECIAL;
    * ``ZCDpEvent``: all of one tree are added up and converted once.

    For REPLACE_ONE the distance of sums is twice the norm of a record, as for dp-accounting's
    ``PLDAccountant``.

    This needs dp-accounting, from the extra ``events``.

    :param event: a ``dp_accounting.DpEvent``
    :param neighboring_relation: a ``dp_accounting.NeighboringRelation``, or its name
    :return: the loss of one record, removed and added; ``session.removed`` is an f-DP guarantee by
        itself if the event has no sampling
    :raises UnsupportedEventError: if an event in the tree is not in the list above. It is also a
        ``dp_accounting.UnsupportedEventError``
    :raises InvalidValueError: if a parameter is out of its range, such as a negative noise

    :example:

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(noise_multiplier=1.0))
    >>> oc.fdp.from_dp_event(SelfComposedDpEvent(step, 1000)).epsilon(1e-5)
    1.830...
    """
    from .reading import read, relation

    return read(event, relation(neighboring_relation)).session()


def to_dp_event(loss: Session | TradeoffFunction) -> Any:
    """The event of dp-accounting that has this privacy loss, with noise rounded down.

    Products of Gaussian and Laplace noise, sampled or not, of noise on the integers and of
    randomized response have an event. (ε, δ)-DP has one where dp-accounting has
    ``EpsilonDeltaDpEvent``.

    This needs dp-accounting, from the extra ``events``.

    :param loss: a session, or a symmetric trade-off function
    :raises UnsupportedEventError: if dp-accounting has no event with this loss

    :example:

    >>> oc.fdp.to_dp_event(oc.TradeoffFunction.laplace(0.5))
    LaplaceDpEvent(noise_multiplier=2.0)
    """
    from .reading import dp_event

    session = check_session(loss=loss)
    found = _event(dp_event, session.removed, session.added)
    if found == dp_event.UnsupportedDpEvent():
        raise UnsupportedEventError(
            f"loss: dp-accounting has no event for {checks.shown(session.removed)}; it has events "
            "for Gaussian, Laplace and discrete Laplace noise, and for the sampled first two in "
            "both directions",
            found,
        )
    return found


# An accountant with the methods of ``dp_accounting.PrivacyAccountant``, by certified bounds.


class Accountant:
    """Privacy loss of events of dp-accounting, with upper bounds that are certain.

    A replacement of ``PLDAccountant`` and ``RdpAccountant`` of dp-accounting, with their methods
    and conventions. ``get_epsilon`` and ``get_delta`` return upper bounds, with all rounding
    outward, and ``session`` has bounds from both sides. :func:`from_dp_event` lists the events, and
    says how each is read.

    The losses of the events must not depend on answers. If they do, use an odometer or a filter.

    This needs dp-accounting, from the extra ``events``.

    :param neighboring_relation: a ``dp_accounting.NeighboringRelation``, or its name
    :ivar neighboring_relation: that of dp-accounting's enumeration
    :ivar session: the privacy loss so far, in both directions

    :example:

    >>> from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
    >>> accountant = oc.fdp.Accountant()
    >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(noise_multiplier=1.0))
    >>> accountant.compose(step, 1000).compose(LaplaceDpEvent(10.0)).get_epsilon(1e-5)
    1.867...
    """

    def __init__(
        self, neighboring_relation: NeighboringRelation | str = "ADD_OR_REMOVE_ONE"
    ) -> None:
        from .reading import DpEventBuilder, Losses, privacy_accountant, relation

        privacy_accountant.PrivacyAccountant.register(Accountant)  # for isinstance
        self.neighboring_relation = relation(neighboring_relation)
        self._losses = Losses()
        self._builder = DpEventBuilder()
        self.session = Session()

    @property
    def ledger(self) -> Any:
        """The events so far, as one event."""
        return self._builder.build()

    def supports(self, event: DpEvent) -> bool:
        """Whether ``compose`` takes this event.

        :param event: a ``dp_accounting.DpEvent``
        """
        try:
            self._read(event, 1)
        except ConcurrentError:
            return False
        return True

    def compose(self, event: DpEvent, count: int = 1) -> Accountant:
        """Add an event, and return this accountant.

        :param event: a ``dp_accounting.DpEvent``
        :param count: how often; at least 1
        :raises UnsupportedEventError: if its loss is not known, and nothing changes. It is also a
            ``dp_accounting.UnsupportedEventError``
        """
        from .reading import with_own_count

        times = checks.count(count=count)
        losses, session = self._read(event, times)
        self._builder.compose(with_own_count(event), times)
        self._losses, self.session = losses, session
        return self

    def _read(self, event: DpEvent, count: int) -> tuple[Any, Session]:
        from .reading import read

        losses = self._losses.plus(read(event, self.neighboring_relation), count)
        return losses, losses.session()

    def get_epsilon(self, target_delta: float) -> float:
        """Least ε with (ε, δ)-DP, rounded up; infinite if there is none.

        As in dp-accounting, ε is also infinite at δ = 1 if an event has no privacy at all.

        :param target_delta: in [0, 1]
        """
        delta = checks.probability(target_delta=target_delta)
        if self.session.removed == TradeoffFunction.worst():
            return float("inf")
        return self.session.epsilon(delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Least δ with (ε, δ)-DP, rounded up.

        :param target_epsilon: at least 0
        """
        epsilon = checks.non_negative(target_epsilon=target_epsilon)
        return float(self.session.delta(epsilon))
