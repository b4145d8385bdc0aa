"""What a ledger has written down of one charge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge, as it was written. The time is what the clock said: nothing depends on it.

    :ivar sequence: number of the charge, from 1, in the order in which they were admitted
    :ivar time: when it was written, in UTC
    :ivar label: what the one who launched it called it
    :ivar mechanism: what was launched, as far as its constructor says
    :ivar d_mid: its privacy loss, at the d_in of the ledger
    :ivar loss: bound on the whole after it
    :ivar hash: of the entry and all before it
    """

    sequence: int
    time: datetime
    label: str
    mechanism: str
    d_mid: Any
    loss: Any
    hash: str
