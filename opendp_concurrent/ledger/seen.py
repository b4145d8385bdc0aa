"""The newest charge that this process has seen: a ledger without it was rolled back."""

from __future__ import annotations

from ..interrupts import Lock
from .audit import Milestone


class Seen:
    """The newest charge of one budget that this process has seen. Safe to use from all threads."""

    def __init__(self) -> None:
        self._newest, self._lock = Milestone(-1, "", ""), Lock()  # a finalizer may run

    def see(self, sequence: int, head: str) -> None:
        """Record a charge that is in the ledger."""
        if sequence >= self._newest.sequence:
            milestone = Milestone(sequence, head, "the newest charge that this process has seen")
            with self._lock:
                if sequence >= self._newest.sequence:
                    self._newest = milestone

    def milestones(self) -> list[Milestone]:
        """Return the charge that the ledger must have, if there is one."""
        return [self._newest] if self._newest.sequence >= 0 else []
