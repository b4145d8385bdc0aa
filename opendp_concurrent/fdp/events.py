"""Events of dp-accounting, which say what was run, to sessions and back.

``reading.py`` needs dp-accounting, an extra, so it is imported when a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _checks as checks
from ..errors import ConcurrentError, UnsupportedEventError
from .function import TradeoffFunction
from .session import Session, check_session
from .writing import session_event

if TYPE_CHECKING:
    from dp_accounting import DpEvent, NeighboringRelation


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
    found = session_event(dp_event, session)
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
