"""Randomized response, sampled by OpenDP, with its exact Rényi divergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opendp.measurements import make_randomized_response as opendp_randomized_response
from opendp.measurements import make_randomized_response_bool as opendp_randomized_response_bool
from opendp.mod import Measure, Measurement

from ..arguments.checked import Probability
from ..arguments.checks import elements, guard, shown
from ..combinators.constructor import constructor
from ..errors import InvalidTypeError, InvalidValueError
from ..fdp.function import TradeoffFunction
from ..measures.conversions.randomized_response import response_to_renyi
from ..measures.renyi_divergence import RENYI_DIVERGENCE
from ..queryables.accuracy import Accuracy
from ..queryables.mechanism import ConcurrentMeasurement
from ..tradeoffs.tradeoff import TRADEOFF_DIVERGENCE
from ..types import Argument
from .certify import Losses, built, certify


@guard("sequence", None, "ab", [], ["a"], ["a", "a"], [[], []])
def _categories(name: str, value: Argument) -> list[Any]:
    """Return distinct values that can be looked up, or raise."""
    found = list(elements("categories", **{name: value}))
    try:
        distinct = len(set(found)) == len(found) and all(one == one for one in found)
    except Exception:
        raise InvalidTypeError(f"{name} ({shown(found)}) must have hashable values") from None
    if not distinct or len(found) < 2:
        raise InvalidValueError(f"{name} ({shown(found)}) must have at least two distinct values")
    return found


@constructor
def make_certified_randomized_response_bool(
    prob: Probability, output_measure: Measure, constant_time: bool = False
) -> ConcurrentMeasurement:
    """Randomized response on one bit, certified under ``output_measure``.

    :func:`~opendp.measurements.make_randomized_response_bool` samples. Rényi DP, of one order or as
    a curve, is exact [Mir17, Table II]. Other measures get the loss that ε-DP implies, by
    :func:`.cast`. It is exact too, because randomized response is the worst case of ε-DP.

    Required features: `contrib`, `honest-but-curious`

    :param prob: probability of the truth, in [1/2, 1)
    :param output_measure: how privacy is measured
    :param constant_time: as in OpenDP
    :return: a measurement on booleans under the discrete distance
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> measure = oc.fixed_renyi_divergence(alpha=2.0)
    >>> oc.m.make_certified_randomized_response_bool(0.75, measure).map(1)
    0.8472978603872037
    """
    pure = built(opendp_randomized_response_bool, prob=prob, constant_time=constant_time)
    return _certify(pure, prob, 2, output_measure)


@constructor(categories=_categories)
def make_certified_randomized_response(
    categories: Sequence[Any],
    prob: Probability,
    output_measure: Measure,
    T: Any = None,  # noqa: N803
) -> ConcurrentMeasurement:
    """Randomized response over ``categories``, certified under ``output_measure``.

    :func:`~opendp.measurements.make_randomized_response` samples. Rényi DP, of one order or as a
    curve, and f-DP are exact. Other measures get the loss that ε-DP implies, by :func:`.cast`.

    Required features: `contrib`, `honest-but-curious`

    :param categories: at least two, distinct
    :param prob: probability of the truth, in [1/len(categories), 1)
    :param output_measure: how privacy is measured
    :param T: type of a category; inferred if left out
    :return: a measurement on categories under the discrete distance
    :raises UnsupportedMeasureError: if pure DP does not convert to ``output_measure``
    :raises InvalidTypeError, InvalidValueError: naming the argument
    :raises NativeConstructorError: if OpenDP's constructor refuses; it is an ``OpenDPException``

    :example:

    >>> measure = oc.fixed_renyi_divergence(alpha=2.0)
    >>> oc.m.make_certified_randomized_response(["a", "b", "c"], 0.75, measure).map(1)
    1.535970760552228
    """
    pure = built(opendp_randomized_response, categories=categories, prob=prob, T=T)
    return _certify(pure, prob, len(set(categories)), output_measure)


def _certify(
    pure: Measurement, prob: float, categories: int, output_measure: Measure
) -> ConcurrentMeasurement:
    def function(epsilon: float) -> TradeoffFunction:
        if epsilon > 0.0:
            return TradeoffFunction.randomized_response(prob, categories)
        return TradeoffFunction.identity()

    def divergence(epsilon: float) -> Callable[[float], float]:
        return lambda alpha: response_to_renyi(prob, categories, alpha) if epsilon > 0.0 else 0.0

    losses: Losses = {RENYI_DIVERGENCE: lambda: divergence, TRADEOFF_DIVERGENCE: lambda: function}

    def wrong(beta: float, answers: int) -> float:
        return 0.0 if 1.0 - prob**answers <= beta else 1.0

    return certify(pure, output_measure, losses, Accuracy("randomized response", prob, wrong, 1))
