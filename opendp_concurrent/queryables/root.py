"""The handles that an analyst holds: of an odometer, of a filter, of a compositor.

A handle passes queries to its session. At top level it calls the session directly. A handle that is
made within a native call uses a native queryable, so that the wrappers of OpenDP's own compositors
apply to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opendp.mod import OdometerQueryable, Queryable

from ..checks import rounded
from ..native import opendp as _native
from .data import SealedHandle, check_process
from .session import Session
from .turn import in_turn


class Handle(SealedHandle):
    """What the three handles share: launching a query."""

    def __init__(self, session: Session, description: str) -> None:
        self._session, self._description = session, description
        self._transport = _native.python_queryable(session.launch) if session.native else None

    def __call__(self, query: Any) -> Any:
        """Launch a measurement, interactive or not: charge it, then return its answer or a child.

        :param query: a measurement on the same domain, metric and measure; or an odometer of this
            package, whose launches are then charged here as well
        :raises BudgetExceededError: a bound refused; nothing was charged. The error has the account
            that refused, and what was spent, asked and remains
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        check_process(self._session.token)  # before a lock, which a thread may have held at a fork
        if self._transport is None:
            return _native.typed(self._session.launch, query)
        return _native.typed(in_turn, self._session.lock, self._by_transport, query)

    def _by_transport(self, query: Any) -> Any:
        self._session.account.lifecycle.check()
        return _native.evaluate(self._transport, query)

    def _adopt_by(self, lifecycle: Any, lock: Any) -> None:
        self._session.account.lifecycle.adopt_by(lifecycle)
        self._session.lock = self._session.lock or lock

    def invoke(self, query: Any) -> Any:
        """Launch; the same as calling the handle."""
        return self(query)

    def _launches(self) -> str:
        launches = self._session.account.launches
        return f"{launches} launch" if launches == 1 else f"{launches} launches"


class ConcurrentOdometerQueryable(Handle, OdometerQueryable):
    """Handle of an odometer. It launches without a limit and returns the loss so far."""

    def privacy_loss(self, d_in: Any) -> Any:
        """Return the privacy loss of the launches so far; changes nothing.

        :param d_in: distance between neighbouring inputs, in units of the odometer's input metric
        """
        return self._session.privacy_loss(d_in)

    def loss_after(self, queries: Iterable[Any], d_in: Any) -> Any:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch
        :param d_in: distance between neighbouring inputs
        """
        return self._session.loss_after(queries, d_in)

    def __repr__(self) -> str:
        return f"ConcurrentOdometerQueryable({self._description}, {self._launches()})"


class ConcurrentFilterQueryable(Handle, OdometerQueryable):
    """Handle of a filter. It admits a launch if the loss stays at or below d_out."""

    def __init__(self, session: Session, description: str, d_in: Any, d_out: Any) -> None:
        super().__init__(session, description)
        self._d_in, self._d_out = d_in, d_out

    def privacy_loss(self, d_in: Any = None) -> Any:
        """Return the privacy loss of the launches so far; changes nothing.

        :param d_in: distance between neighbouring inputs; the filter's own if left out
        """
        return self._session.privacy_loss(self._d_in if d_in is None else d_in)

    def loss_after(self, queries: Iterable[Any], d_in: Any = None) -> Any:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch
        :param d_in: distance between neighbouring inputs; the filter's own if left out
        """
        return self._session.loss_after(queries, self._d_in if d_in is None else d_in)

    def remaining(self) -> Any:
        """Return the largest privacy loss that one more launch may have."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentFilterQueryable({self._description}, {self._launches()}, "
            f"spent {rounded(self._session.account.known_loss)} of {rounded(self._d_out)} "
            f"at d_in={self._d_in}, "
            f"{self._session.account.lifecycle.state.value})"
        )


class ConcurrentCompositionQueryable(Handle, Queryable):
    """Handle of a compositor. It admits one launch for each of the d_mids, in order."""

    query_type = "AnyMeasurement"

    def __init__(self, session: Session, description: str, d_in: Any) -> None:
        super().__init__(session, description)
        self._d_in = d_in

    def privacy_loss(self, d_in: Any = None) -> Any:
        """Return the privacy loss of the d_mids consumed so far; changes nothing.

        :param d_in: the compositor's own, which may be left out
        """
        return self._session.privacy_loss(self._d_in if d_in is None else d_in)

    def loss_after(self, queries: Iterable[Any]) -> Any:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch; each would consume its whole share
        """
        return self._session.loss_after(queries, self._d_in)

    def remaining(self) -> Any:
        """Return the d_mids that are left. The next one is first."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentCompositionQueryable({self._description}, {self._launches()}, "
            f"{len(self.remaining())} d_mids left)"
        )
