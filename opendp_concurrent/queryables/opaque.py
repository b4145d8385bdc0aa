"""Hiding errors of mechanisms from the analyst, because they may contain rows of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..errors.mechanisms import MechanismError
from ..failures import log
from ..native import opendp as _native
from ..shown import is_a
from .turn import attempt

LOGGER = logging.getLogger("opendp_concurrent.measurements")


def hide_errors(opaque: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. If ``opaque``, what it raises is hidden."""
    return (
        hidden("a mechanism has failed", function, *arguments) if opaque else function(*arguments)
    )


def hidden(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. What it raises is logged and replaced, whatever its class.

    An interrupt is raised without its text and its frames.

    :param what: has failed, for the log
    """
    answer, error = attempt(_native.typed, function, *arguments)  # what callbacks kept, too
    if error is None:
        return answer
    interrupted = is_a(error, KeyboardInterrupt)
    if not interrupted and type(error) is not MechanismError:
        log(LOGGER, f"{what}; the reason was hidden from the analyst", error)
    del error  # a traceback keeps this frame
    if interrupted:
        raise KeyboardInterrupt
    raise MechanismError  # raised outside the handler, so it has no context
