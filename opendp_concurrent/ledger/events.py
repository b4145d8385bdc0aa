"""Convert charges to events of dp-accounting: the worst mechanism with each privacy loss.

A d_mid is a certificate, so the event of a mechanism that attains it is an upper bound for the
mechanism that was launched. The measure knows the mechanism that attains it.
"""

from __future__ import annotations

from typing import Any

from ..accounts.store import Terms
from ..errors import InvalidTypeError
from ..measures import by_tag


def events(terms: Terms | None, d_mids: list[Any]) -> Any:
    """Return a ``ComposedDpEvent`` with one event for each d_mid."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(
            "to_dp_events needs dp-accounting; install opendp-concurrent[events]",
            name="dp_accounting",
        ) from error
    if terms is None:
        return dp_event.ComposedDpEvent([])
    why_not = getattr(type(terms.accumulator), "why_no_events", "")
    if why_not:
        raise InvalidTypeError(why_not)
    measure = by_tag(terms.measure)
    if measure is None:  # of another package, which is not registered here
        return dp_event.ComposedDpEvent([dp_event.UnsupportedDpEvent() for _ in d_mids])
    return dp_event.ComposedDpEvent([measure.event(dp_event, one) for one in d_mids])
