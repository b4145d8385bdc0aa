"""Frames that a query on a LazyFrame releases, whose errors have no row of the data.

OpenDP charges a frame when it is launched and reads the data when the frame is collected. Polars
then reports rows in its errors: a CSV file with a word in a column of numbers shows the word.

The plan behind a frame draws its noise whenever it runs. So only the collected rows are handed out.
"""

from __future__ import annotations

from opendp.extras.polars import OnceFrame

from ..accounts.lifecycle import Lifecycle
from ..errors import CollectedError, MechanismError
from ..interrupts import Lock
from ..types import Answer
from .data import SealedHandle, check_process, seal, unseal
from .opaque import hidden
from .turn import in_turn


class ReleasedFrame(SealedHandle, OnceFrame):
    """A LazyFrame that was paid for and can be collected once."""

    def __init__(self, frame: OnceFrame, lock: Lock) -> None:
        self._frame, self._lock, self._collected = seal(frame), lock, False

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        self._lock = lock or self._lock

    def collect(self) -> Answer:
        """Return the DataFrame. This can be done once.

        :raises CollectedError: if it was collected before
        :raises ForkedError: in a process that was forked after the launch
        :raises MechanismError: if the data could not be read. The launch stays charged; the logger
            ``opendp_concurrent.measurements`` logs the original error
        """
        check_process(self._frame)  # before a lock, which a thread may have held at a fork
        return in_turn(self._lock, self._once)

    def lazy(self) -> Answer:
        """Return the collected rows as a LazyFrame. This can be done once, as ``collect``.

        The LazyFrame has the answer, not the plan that draws it: whenever you collect it, you get
        the same answer.
        """
        return self.collect().lazy()

    def _once(self) -> Answer:
        if self._collected:
            raise CollectedError
        self._collected = True
        try:
            frame = hidden(
                unseal(self._frame).collect, what="a released frame could not be collected"
            )
        except MechanismError as error:
            error.charged = True  # when the frame was launched
            raise
        vars(frame).pop("__opendp_dict__", None)  # OpenDP keeps the plan there
        return frame
