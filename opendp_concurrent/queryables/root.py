"""The handles that an analyst holds: of an odometer, of a filter, of a compositor."""

from __future__ import annotations

from collections.abc import Iterable

from opendp.mod import OdometerQueryable, Queryable

from ..arguments.checks import rounded
from ..native import opendp as _native
from ..types import Distance, Loss, Query
from .data import check_process
from .description import Description
from .session import Handle, Session


class _Handle(Handle):
    """What the three handles share: launching a query."""

    def __init__(self, session: Session, description: str) -> None:
        super().__init__(session, session.launch)
        self._description = description

    def admits(self, query: Query) -> bool:
        """Whether a launch of a measurement would be admitted now; runs and charges nothing.

        This account and all of its ancestors are asked. Another thread or process may launch in
        between, so the answer may be outdated when it arrives. Only a launch decides.

        :param query: a measurement on the same domain, metric and measure
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        check_process(self._session.token)
        return _native.call_native(self._session.refusal, query) is None

    def _describe(self, query: Query, d_in: Distance) -> Description:
        check_process(self._session.token)
        found: Description = _native.call_native(self._session.describe, query, d_in)
        return found


class ConcurrentOdometerQueryable(_Handle, OdometerQueryable):
    """Handle of an odometer. It launches without a limit and returns the loss so far."""

    def privacy_loss(self, d_in: Distance) -> Loss:
        """Return the privacy loss of the launches so far; changes nothing.

        :param d_in: distance between neighbouring inputs, in units of the odometer's input metric
        """
        return self._session.privacy_loss(d_in)

    def describe(self, query: Query, d_in: Distance) -> Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param query: a measurement on the same domain, metric and measure, or an odometer of this
            package, which costs nothing until something is launched on it
        :param d_in: distance between neighbouring inputs
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        return self._describe(query, d_in)

    def loss_after(self, queries: Iterable[Query], d_in: Distance) -> Loss:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch
        :param d_in: distance between neighbouring inputs
        """
        return self._session.loss_after(queries, d_in)

    def __repr__(self) -> str:
        return f"ConcurrentOdometerQueryable({self._description}, {self._launches()})"


class ConcurrentFilterQueryable(_Handle, OdometerQueryable):
    """Handle of a filter. It admits a launch if the loss stays at or below d_out."""

    def __init__(self, session: Session, description: str, d_in: Distance, d_out: Loss) -> None:
        super().__init__(session, description)
        self._d_in, self._d_out = d_in, d_out

    def privacy_loss(self, d_in: Distance = None) -> Loss:
        """Return the privacy loss of the launches so far; changes nothing.

        :param d_in: distance between neighbouring inputs; the filter's own if left out
        """
        return self._session.privacy_loss(self._d_in if d_in is None else d_in)

    def describe(self, query: Query, d_in: Distance = None) -> Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param query: a measurement on the same domain, metric and measure, or an odometer of this
            package, which costs nothing until something is launched on it
        :param d_in: distance between neighbouring inputs; the filter's own if left out
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used

        :example:

        >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
        >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=0.5)
        >>> found = root.describe(count)
        >>> found.mechanism, found.interactive, found.loss, found.admitted
        ('count >> laplace(scale=0.5)', False, 2.0, False)
        """
        return self._describe(query, self._d_in if d_in is None else d_in)

    def loss_after(self, queries: Iterable[Query], d_in: Distance = None) -> Loss:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch
        :param d_in: distance between neighbouring inputs; the filter's own if left out
        """
        return self._session.loss_after(queries, self._d_in if d_in is None else d_in)

    def remaining(self) -> Loss:
        """Return the largest privacy loss that one more launch may have."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentFilterQueryable({self._description}, {self._launches()}, "
            f"spent {rounded(self._session.account.known_loss)} of {rounded(self._d_out)} "
            f"at d_in={self._d_in}, "
            f"{self._session.account.lifecycle.state.value})"
        )


class ConcurrentCompositionQueryable(_Handle, Queryable):
    """Handle of a compositor. It admits one launch for each of the d_mids, in order."""

    query_type = "AnyMeasurement"

    def __init__(self, session: Session, description: str, d_in: Distance) -> None:
        super().__init__(session, description)
        self._d_in = d_in

    def privacy_loss(self, d_in: Distance = None) -> Loss:
        """Return the privacy loss of the d_mids consumed so far; changes nothing.

        :param d_in: the compositor's own, which may be left out
        """
        return self._session.privacy_loss(self._d_in if d_in is None else d_in)

    def describe(self, query: Query, d_in: Distance = None) -> Description:
        """Describe a launch before it happens: its answer, its loss, whether it is admitted.

        The mechanism does not run, and nothing is charged. The privacy map is read. Another thread
        or process may launch in between, so ``admitted`` may be outdated when it arrives. A map
        that was written in Python may return another loss at the launch, which then counts.

        :param query: a measurement on the same domain, metric and measure, or an odometer of this
            package, which costs nothing until something is launched on it
        :param d_in: the compositor's own, which may be left out
        :raises InvalidTypeError, SpaceMismatchError: the query does not fit this handle
        :raises PrivacyMapError: the measurement's privacy map cannot be used
        """
        if d_in is not None:
            self.privacy_loss(d_in)  # raises at any other distance
        return self._describe(query, self._d_in)

    def loss_after(self, queries: Iterable[Query]) -> Loss:
        """Return the privacy loss if all of ``queries`` were launched now; charges nothing.

        :param queries: measurements, a planned batch; each would consume its whole share
        """
        return self._session.loss_after(queries, self._d_in)

    def remaining(self) -> Loss:
        """Return the d_mids that are left. The next one is first."""
        return self._session.account.remaining()

    def __repr__(self) -> str:
        return (
            f"ConcurrentCompositionQueryable({self._description}, {self._launches()}, "
            f"{len(self.remaining())} d_mids left)"
        )
