"""A charge: the fact that a launch was paid for, and where such facts are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Charge:
    """One launch, paid. Written before the mechanism runs; says nothing of what ran.

    :ivar sequence: number of this launch in its account, from 1
    :ivar d_in: distance between neighbouring inputs that the account bounds
    :ivar d_mid: privacy loss of the launch at ``d_in``
    :ivar loss: bound on the whole after this launch
    """

    sequence: int
    d_in: Any
    d_mid: Any
    loss: Any


class Ledger(Protocol):
    """Where charges are written. ``append`` returns once the charge is durable, or raises."""

    def append(self, charge: Charge) -> None:
        """Write ``charge`` down."""
