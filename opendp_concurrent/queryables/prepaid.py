"""The handle of prepaid launches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opendp.mod import Queryable

from ..accounts.prepaid import Prepaid
from .handle import Handle
from .session import Launcher

if TYPE_CHECKING:
    from typing_extensions import Self


class PrepaidQueryable(Handle, Queryable):
    """Handle of launches that were charged before, from ``prepaid`` or ``leased``.

    Calling it launches a measurement, interactive or not, that costs at most what was paid: at each
    d_in at which the loss was read before, and at the d_in of each bound. A launch that is refused
    uses none of them. Threads may share the handle. After a fork, it can be used in the parent
    process only. Launches still run after the ledger is closed, because their charges are in it; a
    handle from ``leased`` raises :class:`.LedgerError` once it must prepay again. :meth:`close`
    refuses the rest.

    If a measurement other than the one that was prepaid is launched, and the loss is then read at
    another d_in, it must cost at most as much there; else that loss is unknown, and reading it
    raises :class:`.PrivacyMapError`.

    Calling it raises :class:`.PrepaidUsedError` if no launch is left, and
    :class:`.PrepaidPriceError` if the measurement may cost more than what was paid.
    """

    query_type = "AnyMeasurement"

    def __init__(self, session: Launcher, paid: Prepaid) -> None:
        super().__init__(session, partial(session.launch_prepaid, paid))
        self._paid = paid

    @property
    def paid(self) -> int:
        """Number of launches that were charged, so far."""
        return self._paid.paid

    @property
    def unspent(self) -> int:
        """Number of charged launches that were not launched. After a crash they are lost."""
        return self._paid.unspent

    def close(self) -> None:
        """Refuse further launches. Those that were not launched stay charged."""
        self._paid.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._paid.closed else "open"
        return f"PrepaidQueryable({self.unspent} of {self.paid} launches unspent, {state})"
