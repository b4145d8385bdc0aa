"""What all handles of an account share: they pass queries to a session.

At top level a handle calls its session directly. A handle that is made within a native call uses a
native queryable, so that the wrappers of OpenDP's own compositors apply to it.
"""

from __future__ import annotations

from collections.abc import Callable

from opendp.mod import Odometer

from ..accounts.lifecycle import Lifecycle
from ..errors import uncharged
from ..interrupts import Lock
from ..native import opendp as _native
from ..types import Answer, Query
from .data import SealedHandle, check_process
from .session import Launcher
from .turn import in_turn


class Handle(SealedHandle):
    """A handle that launches queries.

    :param launch: launches a query on the session
    """

    def __init__(self, session: Launcher, launch: Callable[[Query], Answer]) -> None:
        self._session, self._launch = session, launch
        self._transport = _native.python_queryable(launch) if session.native else None

    def __call__(self, query: Query) -> Answer:
        """Launch a measurement, interactive or not: charge it, then return its answer or a child.

        :param query: a measurement on the same domain, metric and measure; or an odometer of this
            package, whose launches are then charged here as well
        :raises BudgetExceededError: a bound refused; nothing was charged. The error has the account
            that refused, and what was spent, asked and remains
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        return self._send(query)

    def _send(self, query: Query) -> Answer:
        check_process(self._session.token)  # before a lock, which a thread may have held at a fork
        if self._transport is None:
            return _native.typed(self._launch, query)
        return _native.typed(in_turn, self._session.lock, self._by_transport, query)

    def _by_transport(self, query: Query) -> Answer:
        lifecycle = self._session.account.lifecycle
        uncharged(lifecycle.check_not_running)  # OpenDP's queryable cannot be queried in a query
        lifecycle.check()
        answer = _native.evaluate(self._transport, query)
        _native.tell_launched(not isinstance(query, Odometer))
        return answer

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        self._session.account.lifecycle.adopt_by(lifecycle)
        self._session.lock = self._session.lock or lock

    def invoke(self, query: Query) -> Answer:
        """Launch; the same as calling the handle."""
        return self(query)

    def _launches(self) -> str:
        launches = self._session.account.launches
        return f"{launches} launch" if launches == 1 else f"{launches} launches"
