"""Errors of streams and messages: what may not be sent, and what can take no more."""

from __future__ import annotations

from opendp.mod import OpenDPException

from . import ConcurrentError, RefusalError, public


@public
class MessageLimitError(RefusalError):
    """The mechanism was built for a limited number of messages, and has answered them."""

    def __init__(
        self, limit: int, what: str = "messages", more: str = "a larger max_messages"
    ) -> None:
        super().__init__(
            f"the mechanism has answered {limit} of {limit} {what}; "
            f"build it with {more}, or launch another"
        )
        self.limit = limit


@public
class StreamError(RefusalError):
    """An update has the wrong step, or is beyond the horizon; nothing changed."""


@public
class StreamHaltedError(RefusalError):
    """The continual mechanism has halted: an update was invalid or failed, or it was saved."""

    def __init__(self) -> None:
        super().__init__(
            "the continual mechanism has halted: an update was not an item of its stream "
            "(several items go to update_all), or failed, or its state was saved to "
            "continue elsewhere; chain the mechanism with a clamp or a filter of the "
            "stream, and launch it again"
        )


@public
class PostprocessorError(ConcurrentError, OpenDPException):
    """A postprocessor (person in the middle) broke the protocol. Its state did not change."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the postprocessor failed: {reason}")
        self.reason = reason
