"""A privacy loss in words: a measure and a distance."""

from __future__ import annotations

from typing import Any

from opendp.context import loss_of as opendp_loss_of
from opendp.mod import Measure

from .. import checks
from ..errors import InvalidTypeError
from ..fdp.function import TradeoffFunction, check_function
from ..measures.distances import TruncatedConcentrated, omega_above_one
from ..measures.fixed_renyi_divergence import fixed_renyi_divergence
from ..measures.gaussian_tradeoff import gaussian_tradeoff
from ..measures.tradeoff import tradeoff as tradeoff_measure
from ..measures.truncated_concentrated_divergence import truncated_concentrated_divergence

GUARDS: dict[str, checks.Guard] = {
    "epsilon": checks.non_negative,
    "delta": checks.probability,
    "rho": checks.non_negative,
    "alpha": checks.order,
    "omega": omega_above_one,
    "mu": checks.non_negative,
    "tradeoff": check_function,
}


def loss_of(
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    *,
    alpha: float | None = None,
    omega: float | None = None,
    mu: float | None = None,
    tradeoff: TradeoffFunction | None = None,
) -> tuple[Measure, Any]:
    """Return a measure and a distance, as :func:`~opendp.context.loss_of` does, also for ours.

    * ``epsilon`` with ``alpha``: Rényi DP of that order;
    * ``rho`` with ``omega``: truncated concentrated DP;
    * ``mu``: Gaussian DP;
    * ``tradeoff``: f-DP;
    * anything else: what OpenDP makes of it.

    Required features: `honest-but-curious` for ours

    :param epsilon: for pure, approximate and Rényi DP
    :param delta: for approximate DP
    :param rho: for zero-concentrated and truncated concentrated DP
    :param alpha: Rényi order, above 1
    :param omega: end of the orders of truncated concentrated DP, above 1
    :param mu: for Gaussian DP
    :param tradeoff: for f-DP
    :return: a pair for the ``privacy_loss`` argument of ``concurrent_context``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.loss_of(mu=0.5)
    (GaussianTradeoff, 0.5)
    >>> oc.loss_of(epsilon=0.5, alpha=8.0)
    (FixedRenyiDivergence(alpha=8.0), 0.5)
    >>> oc.loss_of(rho=0.1, omega=20.0)
    (TruncatedConcentratedDivergence(omega=20.0), TruncatedConcentrated(rho=0.1, omega=20.0))
    """
    given = {
        name: GUARDS[name](**{name: value})
        for name, value in {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "alpha": alpha,
            "omega": omega,
            "mu": mu,
            "tradeoff": tradeoff,
        }.items()
        if value is not None
    }
    match tuple(given):
        case ("mu",):
            return gaussian_tradeoff(), given["mu"]
        case ("tradeoff",):
            return tradeoff_measure(), given["tradeoff"]
        case ("epsilon", "alpha"):
            return fixed_renyi_divergence(given["alpha"]), given["epsilon"]
        case ("rho", "omega"):
            measure = truncated_concentrated_divergence(given["omega"])
            return measure, TruncatedConcentrated(given["rho"], given["omega"])
        case ("epsilon",) | ("rho",) | ("epsilon", "delta") | ("delta", "rho"):
            pair: tuple[Measure, Any] = opendp_loss_of(**given)
            return pair
        case names:
            raise InvalidTypeError(
                f"no measure has {', '.join(names) or 'no parameters'}; pass epsilon, epsilon and "
                "delta, rho, rho and delta, epsilon and alpha, rho and omega, mu, or tradeoff"
            )
