"""Two doubles around an exact value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

UNIT = 2.0**-53  # relative error of one rounding
ELEMENTARY = 8 * UNIT  # assumed of NumPy's exp, expm1, log, log1p, sin, cos; NumPy tests for 4 ulp
TINY = 1e-300  # below, relative errors mean nothing


class Bounds(NamedTuple):
    """lower <= exact <= upper.

    :ivar lower: a double, or an array of them
    :ivar upper: of the same shape
    """

    lower: Any
    upper: Any

    @property
    def width(self) -> Any:
        """Distance of the two."""
        return self.upper - self.lower


def probabilities(lower: Any, upper: Any) -> Bounds:
    """Bounds on probabilities, cut to [0, 1]."""
    return Bounds(np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0))
