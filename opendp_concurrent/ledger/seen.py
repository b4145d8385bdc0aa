"""The newest charge that this process has seen: a ledger that does not have it was rolled back."""

from __future__ import annotations

from threading import Lock

from .audit import Milestone


class Seen:
    """What was seen of one budget; threads may tell."""

    def __init__(self) -> None:
        self._newest, self._lock = Milestone(-1, "", ""), Lock()

    def see(self, sequence: int, head: str) -> None:
        """Note a charge that is in the ledger."""
        if sequence >= self._newest.sequence:
            with self._lock:
                if sequence >= self._newest.sequence:
                    self._newest = Milestone(sequence, head, "the newest that was seen here")

    def milestones(self) -> list[Milestone]:
        """The charge that the ledger must have."""
        return [self._newest] if self._newest.sequence >= 0 else []
