"""Hiding errors of mechanisms from the analyst, because they may contain rows of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..accounts.lifecycle import Lifecycle
from ..errors import MechanismError
from ..failures import log
from ..native import opendp as _native
from .turn import attempt

LOGGER = logging.getLogger("opendp_concurrent.measurements")


def hide_errors(lifecycle: Lifecycle, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. Below an opaque account, what it raises is hidden."""
    if lifecycle.opaque:
        return hidden(function, *arguments)
    return function(*arguments)


def hidden(
    function: Callable[..., Any], *arguments: Any, what: str = "a mechanism has failed"
) -> Any:
    """Return ``function(*arguments)``. What it raises is logged and replaced, whatever its class.

    An interrupt is raised without its text and its frames.

    :param what: has failed, for the log
    """
    answer, error = attempt(_native.call_native, function, *arguments)  # what callbacks kept, too
    if error is None:
        return answer
    interrupted = isinstance(error, KeyboardInterrupt)
    if not interrupted and type(error) is not MechanismError:
        log(LOGGER, f"{what}; the reason was hidden from the analyst", error)
    del error  # a traceback keeps this frame
    if interrupted:
        raise KeyboardInterrupt
    raise MechanismError  # raised outside the handler, so it has no context
