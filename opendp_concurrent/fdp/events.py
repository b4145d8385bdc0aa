"""Events of dp-accounting, which say what was run, to sessions and back.

``reading.py`` needs dp-accounting, an extra, so it is imported when a function is called.
"""

from __future__ import annotations

from typing import Any

from ..arguments import checks
from ..errors import UnsupportedEventError
from ..types import DpEvent
from .function import TradeoffFunction
from .session import Session, check_session
from .writing import session_event


def from_dp_event(event: DpEvent, neighboring_relation: Any = "ADD_OR_REMOVE_ONE") -> Session:
    """The privacy loss of an event of dp-accounting, in both directions.

    All numbers are rounded to a larger loss. The mechanisms in the event may be chosen adaptively,
    but their losses are those of the event [DRS22, Theorem 3.2], [VZ23].

    * ``NoOpDpEvent``, ``NonPrivateDpEvent``, ``ComposedDpEvent``, ``SelfComposedDpEvent``;
    * ``GaussianDpEvent``, ``LaplaceDpEvent``, ``DiscreteLaplaceDpEvent``, and, where
      dp-accounting has them, ``DiscreteGaussianDpEvent`` in one dimension, ``EpsilonDeltaDpEvent``,
      ``ExponentialMechanismDpEvent`` and ``PermuteAndFlipDpEvent`` as ε-DP;
    * ``PoissonSampledDpEvent`` of Gaussian events on one sample, of one Laplace or (ε, δ) event, or
      of another sampled event; not for REPLACE_ONE;
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
    1.835...
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
