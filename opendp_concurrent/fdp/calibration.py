"""The least noise with which mechanisms are within (ε, δ).

Losses of Gaussian and of Laplace noise fall with its scale, also on Poisson-sampled units, because
what loses less is a postprocessing of what loses more (``docs/proofs/calibration.rst``). So a
search brackets the least scale. What is returned meets the target, whatever the losses are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from ..arguments import checks
from ..errors import InvalidValueError
from .function import TradeoffFunction
from .session import Session, check_session

_START, _FACTOR = 1.0, 4.0  # the first scale that is tried, and the ratio to the next ones
_LEAST_TOLERANCE = 1e-4  # finer, the width of the bounds on δ would decide


def smallest_sigma(
    loss: Callable[[float], Session | TradeoffFunction],
    epsilon: float,
    delta: float,
    *,
    bounds: tuple[float, float] = (1 / 16, 1e6),
    tolerance: float = 1e-3,
) -> float:
    """Find the smallest noise with which mechanisms are (ε, δ)-DP.

    The losses at the returned scale are within the target: their certified upper bound on ε is at
    most ``epsilon``. A scale that is 1 + ``tolerance`` times smaller, or less, was not shown to be,
    unless it is below ``bounds``. About 15 scales are evaluated.

    :param loss: from a scale, a double, to the losses of all mechanisms together
    :param epsilon: ε of the target, at least 0
    :param delta: δ of the target, in [0, 1]
    :param bounds: least and largest scale that is tried
    :param tolerance: relative, in [10^-4, 1]
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> def steps(sigma):
    ...     return oc.fdp.Session.subsampled_gaussian(sigma, rate=0.01).power(1000)
    >>> sigma = oc.fdp.smallest_sigma(steps, epsilon=1.0, delta=1e-5)
    >>> round(sigma, 2), steps(sigma).delta(1.0) <= 1e-5
    (1.42, True)
    """
    losses: Callable[[float], Any] = checks.function(loss=loss)
    target = checks.finite(epsilon=epsilon), checks.probability(delta=delta)
    first, second = checks.pair(bounds=bounds)
    low, high = (checks.positive(**{f"bounds[{i}]": one}) for i, one in enumerate((first, second)))
    narrow = checks.positive(tolerance=tolerance)
    if not low < high:
        raise InvalidValueError(f"bounds ({low}, {high}) must have the smaller number first")
    if not _LEAST_TOLERANCE <= narrow <= 1.0:
        raise InvalidValueError(
            f"tolerance ({tolerance}) must be at least {_LEAST_TOLERANCE:g}, at most 1"
        )

    def meets(sigma: float) -> bool:
        return check_session(loss=losses(sigma)).epsilon(target[1]) <= target[0]

    good = min(max(_START, low), high)
    while not meets(good):
        if good == high:
            raise InvalidValueError(
                f"bounds ({low}, {high}) must have a scale that is shown to be within epsilon "
                f"({target[0]}) and delta ({target[1]}); pass wider bounds, or a larger target"
            )
        low, good = good, min(_FACTOR * good, high)
    bad = max(good / _FACTOR, low)
    while bad < good and meets(bad):
        if bad == low:
            return bad
        good, bad = bad, max(bad / _FACTOR, low)
    while good > bad * (1 + narrow):
        middle = sqrt(good) * sqrt(bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good
