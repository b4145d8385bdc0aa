"""Errors of mechanisms: while they are made, and while they run."""

from __future__ import annotations

from opendp.mod import OpenDPException

from . import ConcurrentError, InvalidValueError, public


@public
class NativeConstructorError(InvalidValueError, OpenDPException):
    """A constructor of OpenDP refused its arguments.

    :ivar constructor: its name
    """

    def __init__(self, constructor: str, given: str, reason: str) -> None:
        super().__init__(f"{constructor} of OpenDP refuses {given}: {reason}")
        self.constructor = constructor


@public
class MechanismError(ConcurrentError, OpenDPException):
    """A mechanism has failed, and the owner of the data hides errors from analysts.

    The exception is always the same. It has no cause, context or frames of the mechanism.
    """

    def __init__(self) -> None:
        super().__init__(
            "the mechanism has failed; the reason is hidden from analysts, because it may "
            "depend on the data, and is in the owner's log; the cost of the mechanism "
            "stays charged"
        )
