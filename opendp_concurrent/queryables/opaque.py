"""Hiding errors of mechanisms from the analyst, because they may contain rows of the data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..errors import MechanismError
from .turn import attempt

LOGGER = logging.getLogger("opendp_concurrent.measurements")


def hide_errors(opaque: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``. If ``opaque``, an error is logged and replaced.

    An interrupt is not an error. It is raised without its frames.
    """
    if not opaque:
        return function(*arguments)
    answer, error = attempt(function, *arguments)
    if error is None:
        return answer
    if not isinstance(error, Exception):
        raise error.with_traceback(None)
    if type(error) is not MechanismError:
        LOGGER.error(
            "a mechanism has failed; the reason was hidden from the analyst", exc_info=error
        )
    del error
    raise MechanismError  # raised outside the handler, so it has no context
