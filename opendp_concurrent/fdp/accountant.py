"""An accountant with the methods of ``dp_accounting.PrivacyAccountant``, by certified bounds."""

from __future__ import annotations

from typing import Any

from ..arguments import checks
from ..arguments.owned import own_number
from ..errors import ConcurrentError
from ..types import DpEvent
from .function import TradeoffFunction
from .session import Session


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
    1.871...
    """

    def __init__(self, neighboring_relation: Any = "ADD_OR_REMOVE_ONE") -> None:
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

        times = checks.count(count=own_number(count))
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
        delta = checks.probability(target_delta=own_number(target_delta))
        if self.session.removed == TradeoffFunction.worst():
            return float("inf")
        return self.session.epsilon(delta)

    def get_delta(self, target_epsilon: float) -> float:
        """Least δ with (ε, δ)-DP, rounded up.

        :param target_epsilon: at least 0
        """
        epsilon = checks.non_negative(target_epsilon=own_number(target_epsilon))
        return float(self.session.delta(epsilon))
