"""Gradients of single rows, clipped and rounded to a grid of integers; and their noisy sum."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance

from ..arguments.owned import array
from ..errors import InvalidValueError
from ..failures import pass_interrupt
from ..native import opendp as _native
from ..tradeoffs.rounds import FINE

LOGGER = "opendp_concurrent.training"
_MOST = 2.0**FINE
_SHRINK = 1 - 2.0**-30
_ATOM = "i64"

Gradient = Callable[[Any], Any]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoisySum:
    """The sum of clipped gradients, with OpenDP's discrete Gaussian noise.

    :ivar size: number of coordinates
    :ivar norm: largest L2 norm of a row's gradient
    :ivar sigma: standard deviation of the noise over ``norm``
    """

    size: int
    norm: float
    sigma: float

    def tried(self, gradient: Gradient, row: Any) -> None:
        """Raise unless a gradient can be used at a public row."""
        try:
            self._steps(gradient, row)
        except Exception as error:
            pass_interrupt(error)
            raise InvalidValueError(
                f"the gradient must return {self.size} finite numbers for the example: "
                f"{type(error).__name__}: {error}; nothing was charged"
            ) from error

    def release(self, gradient: Gradient, rows: Iterable[Any]) -> Vector:
        """Return the noisy sum over ``rows``. A row whose gradient cannot be used adds nothing."""
        total, failed = np.zeros(self.size, dtype=np.int64), 0
        with np.errstate(all="ignore"):  # a warning would reveal a row
            for row in rows:
                try:
                    total += self._steps(gradient, row)
                except BaseException as error:  # whether it fails may depend on the row
                    pass_interrupt(error)
                    failed += 1
        if failed:
            logging.getLogger(LOGGER).warning("the gradient failed for %d rows of a round", failed)
        space = vector_domain(atom_domain(T=_ATOM), size=self.size), l2_distance(T="f64")
        noisy = make_gaussian(*space, self.sigma * _MOST)
        pointer: Any = _native.to_pointer(total.tolist(), noisy.input_carrier_type)
        return np.array(_native.invoke(noisy, pointer), dtype=float) * (self.norm / _MOST)

    def _steps(self, gradient: Gradient, row: Any) -> NDArray[np.int64]:
        """Return the gradient of a row in steps of the grid, of norm at most 2^FINE, or raise.

        The function gets a copy of an array; other rows are numbers or strings. Numbers are rounded
        toward zero. The norm is compared exactly: squares are integers, and a sum of at most 2^53
        is exact.
        """
        returned = gradient(row.copy() if isinstance(row, np.ndarray) else row)
        if callable(getattr(type(returned), "detach", None)):  # of PyTorch, which asks for it
            returned = returned.detach()
        values = array(returned)  # a copy: others may change theirs after it is clipped
        if values.dtype.kind == "c":
            raise InvalidValueError("it returned complex numbers")
        values = values.astype(float).ravel()
        if values.shape != (self.size,) or not np.all(np.isfinite(values)):
            raise InvalidValueError(f"it returned {values.size} numbers, or some are not finite")
        largest = float(np.max(np.abs(values)))
        if not largest:
            return np.zeros(self.size, dtype=np.int64)
        direction = values / largest
        length = float(np.sqrt(direction @ direction))
        steps = np.trunc(direction * (min(largest / self.norm, 1 / length) * _MOST))
        while float(steps @ steps) > _MOST**2:  # each time, it is shorter
            steps = np.trunc(steps * _SHRINK)
        return steps.astype(np.int64)
