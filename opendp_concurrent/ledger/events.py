"""Charges as events of dp-accounting: of the worst mechanism that each privacy loss allows.

A d_mid is a certificate, so the event of the mechanism that attains it is an upper bound for what
was launched, whatever that was. The measure knows that mechanism.
"""

from __future__ import annotations

from typing import Any

from ..accounts.charge import Terms
from ..measures import by_tag


def events(terms: Terms | None, d_mids: list[Any]) -> Any:
    """Return a ``ComposedDpEvent`` of one event for each d_mid."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(
            "to_dp_events needs dp-accounting; install opendp-concurrent[events]",
            name="dp_accounting",
        ) from error
    if terms is None:
        return dp_event.ComposedDpEvent([])
    measure = by_tag(terms.measure)
    return dp_event.ComposedDpEvent([measure.event(dp_event, one) for one in d_mids])
