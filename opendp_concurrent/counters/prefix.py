"""How the integers of noisy prefix sums are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..queryables.saved import require


def plain(total: Any) -> Any:
    """Return an integer, or an array's integers, as a JSON value."""
    return [int(one) for one in total] if isinstance(total, np.ndarray) else int(total)


def unplain(total: Any, most: int | None = None) -> Any:
    """Return the integer or array of a JSON value, or raise: the inverse of :func:`plain`.

    :param most: largest size of an integer
    """
    for one in total if isinstance(total, list) else [total]:
        require(type(one) is int and (most is None or -most <= one <= most))
    return np.array(total, dtype=object) if isinstance(total, list) else total
