"""Approximate zCDP inside (ε, δ)-DP, by the conversion of OpenDP."""

from __future__ import annotations

from typing import Any

from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP
from opendp.domains import atom_domain
from opendp.measures import approximate, zero_concentrated_divergence
from opendp.metrics import discrete_distance
from opendp.mod import Measure, OpenDPException

from ..combinators.recertify import recertify
from ..errors import ConcurrentError, InvalidValueError
from ..native import opendp as _native
from ..queryables.mechanism import ConcurrentMeasurement
from .search import nearest_passing


class ByOpenDP:
    """Losses (ρ, δ') of approximate zCDP as losses (ε, δ), at one δ.

    The conversion is that of :func:`~opendp.combinators.make_zCDP_to_approxDP` and
    :func:`~opendp.combinators.make_fix_delta`, read from a measurement without data.

    :ivar outer: (ε, δ)-DP
    :ivar delta: the δ
    """

    def __init__(self, outer: Measure, delta: float) -> None:
        self.outer, self.delta = outer, delta

    def convert(self, loss: tuple[float, float]) -> Any:
        """Return (ε, δ) for (ρ, δ')."""
        free = _native.make_user_measurement(
            atom_domain(T=bool),
            discrete_distance(),
            approximate(zero_concentrated_divergence()),
            function=lambda _: 0,
            privacy_map=lambda _: loss,
            TO="ExtrinsicObject",
        )
        return make_fix_delta(make_zCDP_to_approxDP(free), self.delta).map(1)

    def largest(self, d_out: tuple[float, float], share: float) -> tuple[float, float]:
        """Return the largest (ρ, ``share``) that converts to at most ``d_out``."""

        def fits(rho: float) -> bool:
            return bool(self.convert((rho, share))[0] <= d_out[0])

        try:
            return nearest_passing([fits], T=float), share
        except (ValueError, OpenDPException) as error:
            if isinstance(error, ConcurrentError):
                raise
            raise InvalidValueError(
                f"d_out ({d_out}) has no approximate zCDP with a δ of {share}; pass an alpha below "
                "1, or a larger loss"
            ) from error

    def cast(self, accountant: Any) -> ConcurrentMeasurement:
        """Return the accountant under (ε, δ)-DP."""
        return recertify(accountant, self.outer, self.convert)
