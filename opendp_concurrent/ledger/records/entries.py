"""What a ledger records of one charge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...types import Loss


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded charge. The time is the computer's clock; no guarantee depends on it.

    :ivar sequence: number of the charge, from 1, in the order of admission
    :ivar time: time when the charge was written, in UTC
    :ivar label: label that was given at launch
    :ivar mechanism: description of the mechanism, from its constructor
    :ivar d_mid: privacy loss of the mechanism, at the d_in of the ledger
    :ivar loss: upper bound on the privacy loss of this and all earlier charges
    :ivar hash: hash of this and all earlier entries
    :ivar limit: labels of the limits that it was below, from the outermost one; empty if none
    :ivar limit_losses: for each of these limits, an upper bound on the privacy loss of this and all
        earlier charges below it
    """

    sequence: int
    time: datetime
    label: str
    mechanism: str
    d_mid: Loss
    loss: Loss
    hash: str
    limit: tuple[str, ...] = ()
    limit_losses: tuple[Loss, ...] = ()
