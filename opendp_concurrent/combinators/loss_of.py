"""A privacy loss given by keywords: a measure and a distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opendp.mod import Measure

from ..arguments.owned import own_number
from ..errors import InvalidTypeError
from ..exact.decimals import cap_and_shown, down, typed
from ..measures import CompositionMeasure, registered

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
    given = _given(**words, alpha=alpha, omega=omega, mu=mu, tradeoff=tradeoff, **others)
    known = _measure_with(given)
    if known is not None:
        return known.loss_of(**_checked(known, given))
    offered = sorted(" and ".join(known.keywords) for known in registered() if known.keywords)
    raise InvalidTypeError(
        f"a privacy loss must have {', or '.join(offered)}; found {', '.join(given) or 'none'}"
    )


def guarded(**given: Any) -> dict[str, Any]:
    """Return the keywords, checked by the measure that has them all; others are unchanged."""
    given = _given(**given)
    known = _measure_with(given)
    return given if known is None else _checked(known, given)


def _given(**words: Any) -> dict[str, Any]:
    return {name: own_number(typed(value)) for name, value in words.items() if value is not None}


def _measure_with(given: dict[str, Any]) -> type[CompositionMeasure] | None:
    """Return the measure with just these keywords. Those of this package are asked first."""
    if not given:
        return None
    return next((one for one in registered() if one.keywords.keys() == given.keys()), None)


def _checked(known: type[CompositionMeasure], given: dict[str, Any]) -> dict[str, Any]:
    checked = {name: known.keywords[name](**{name: down(value)}) for name, value in given.items()}
    plain = given.keys() <= {"epsilon", "delta", "rho", "mu"}
    return {key: cap_and_shown(given[key], checked[key])[0] for key in given} if plain else checked
