"""Errors of mechanisms, which may carry rows of the data, kept from the analyst."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ..errors import MechanismError
from .turn import attempt

LOGGER = logging.getLogger("opendp_concurrent.measurements")


def hide_errors(opaque: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``; if ``opaque``, what it raises is logged and replaced.

    An interrupt is no error, and is raised without its frames.
    """
    if not opaque:
        return function(*arguments)
    answer, error = attempt(function, *arguments)
    if error is None:
        return answer
    if not isinstance(error, Exception):
        raise error.with_traceback(None)
    if type(error) is not MechanismError:
        LOGGER.error("a mechanism has failed; the analyst was not told why", exc_info=error)
    del error
    raise MechanismError  # out here, where it has no context
