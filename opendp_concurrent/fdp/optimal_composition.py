"""Optimal composition of (ε_i, δ_i)-DP mechanisms whose parameters are fixed up front.

The worst (ε, δ)-DP mechanism is randomized response that reveals the data with probability δ. So
the optimal composition is the product of such mechanisms: [KOV15, Theorem 3.3] for equal
parameters, [MV16, Theorem 1.5] for different ones, where computing it exactly is #P-hard. It is the
same for interactive mechanisms that are queried concurrently: [VW21, Theorem 1.5] for pure DP,
[LW22, Theorem 1] and [VZ23] for (ε, δ)-DP, under finite communication.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..arguments import checks
from ..errors import InvalidValueError
from .function import TradeoffFunction


def optimal_composition(
    d_mids: Sequence[tuple[float, float]], counts: Sequence[int] | None = None
) -> TradeoffFunction:
    """Optimal composition of mechanisms under (ε_i, δ_i)-DP, run concurrently.

    The parameters must be fixed up front; adaptively chosen parameters need a filter. Query the
    result for ``epsilon(delta)`` or ``delta(epsilon)``. They are exact up to rounding for equal
    parameters, and for different ones with at most 2^17 outcomes; else certified bounds.

    :param d_mids: pairs (ε, δ); a number stands for (ε, 0)
    :param counts: how often each is launched; by default once
    :return: the trade-off function of the composition
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> oc.fdp.optimal_composition([0.5, 0.3, 0.2, 0.2]).epsilon(1e-3)
    1.19070614...
    >>> oc.fdp.optimal_composition([(0.1, 1e-10)], counts=[1000]).epsilon(1e-6)
    19.40185...
    """
    d_mids = checks.sequence("pairs (epsilon, delta)", d_mids=d_mids)
    numbers = [1] * len(d_mids) if counts is None else checks.elements("integers", counts=counts)
    if len(numbers) != len(d_mids):
        raise InvalidValueError(f"counts has {len(numbers)} elements, d_mids {len(d_mids)}")
    whole = TradeoffFunction.identity()
    for index, (d_mid, count) in enumerate(zip(d_mids, numbers, strict=True)):
        named, is_pair = {f"d_mids[{index}]": d_mid}, isinstance(d_mid, tuple)
        pair = checks.epsilon_delta(**named) if is_pair else (checks.non_negative(**named), 0.0)
        one = TradeoffFunction.approximate(*pair)
        whole = whole.compose(one.power(checks.count(**{f"counts[{index}]": count})))
    return whole
