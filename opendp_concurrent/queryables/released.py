"""Frames that a query on a LazyFrame releases, whose errors have no row of the data.

OpenDP charges a frame when it is launched and reads the data when the frame is collected. Polars
then reports rows in its errors: a CSV file with a word in a column of numbers shows the word.
"""

from __future__ import annotations

from typing import Any

from opendp.extras.polars import OnceFrame

from ..errors import MechanismError
from .data import SealedHandle
from .opaque import LOGGER
from .turn import attempt, in_turn

_COLLECTED = "OnceFrame has been exhausted"  # OpenDP's own error, of a second collection


class ReleasedFrame(SealedHandle, OnceFrame):
    """A LazyFrame that was paid for and can be collected once."""

    def __init__(self, frame: OnceFrame, lock: Any) -> None:
        super().__init__(frame.queryable)
        self._lock = lock

    def _adopt_by(self, lifecycle: Any, lock: Any) -> None:
        self._lock = lock or self._lock

    def collect(self) -> Any:
        """Return the DataFrame. This can be done once.

        :raises MechanismError: if the data could not be read. The launch stays charged; the logger
            ``opendp_concurrent.measurements`` logs the original error
        """
        return self._read(super().collect)

    def lazy(self) -> Any:
        """Return the LazyFrame, which you promise to collect once; its errors may show rows."""
        return self._read(super().lazy)

    def _read(self, read: Any) -> Any:
        answer, error = attempt(in_turn, self._lock, read)
        if error is None:
            return answer
        if not isinstance(error, Exception) or _COLLECTED in str(error):
            raise error.with_traceback(None)
        if type(error) is not MechanismError:
            LOGGER.error("a released frame could not be collected", exc_info=error)
        del error
        failed = MechanismError()  # raised out here, where it has no context
        failed.charged = True  # when the frame was launched
        raise failed
