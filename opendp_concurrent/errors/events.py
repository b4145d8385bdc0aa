"""The error of events that are not supported."""

from __future__ import annotations

from ..types import DpEvent
from . import InvalidValueError, public


@public
class UnsupportedEventError(InvalidValueError):
    """The privacy loss of an event of dp-accounting is not known here.

    :ivar event: the event, or the one inside it, that is not supported
    """

    def __init__(self, message: str, event: DpEvent) -> None:
        super().__init__(message)
        self.event = event
