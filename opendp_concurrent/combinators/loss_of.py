"""A privacy loss given by keywords: a measure and a distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opendp.mod import Measure

from ..errors import InvalidTypeError
from ..measures import registered

if TYPE_CHECKING:
    from ..fdp.function import TradeoffFunction


def loss_of(
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    *,
    alpha: float | None = None,
    omega: float | None = None,
    mu: float | None = None,
    tradeoff: TradeoffFunction | None = None,
    **others: Any,
) -> tuple[Measure, Any]:
    """Return a measure and a distance, like :func:`~opendp.context.loss_of`, with more measures.

    * ``epsilon`` with ``alpha``: Rényi DP of that order;
    * ``rho`` with ``omega``: truncated concentrated DP;
    * ``mu``: Gaussian DP;
    * ``tradeoff``: f-DP;
    * any other keywords: the result of OpenDP's function.

    Required features: `honest-but-curious` for this package's measures

    :param epsilon: for pure, approximate and Rényi DP
    :param delta: for approximate DP
    :param rho: for zero-concentrated and truncated concentrated DP
    :param alpha: Rényi order, above 1
    :param omega: upper end of the orders of truncated concentrated DP, above 1
    :param mu: for Gaussian DP
    :param tradeoff: for f-DP
    :param others: keywords of measures that another package registered
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
    words = {"epsilon": epsilon, "delta": delta, "rho": rho}
    given = guarded(**words, alpha=alpha, omega=omega, mu=mu, tradeoff=tradeoff, **others)
    for known in registered() if given else ():
        if known.keywords.keys() == given.keys():
            return known.loss_of(**given)
    offered = sorted(" and ".join(known.keywords) for known in registered() if known.keywords)
    raise InvalidTypeError(
        f"no measure has {', '.join(given) or 'no parameters'}; pass {', or '.join(offered)}"
    )


def guarded(**given: Any) -> dict[str, Any]:
    """Return the keywords, each checked by its measure; other keywords are unchanged."""
    guards = {name: guard for known in registered() for name, guard in known.keywords.items()}
    return {
        name: guards[name](**{name: value}) if name in guards else value
        for name, value in given.items()
        if value is not None
    }
