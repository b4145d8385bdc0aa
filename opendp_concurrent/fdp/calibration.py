"""The least noise with which mechanisms are within (ε, δ).

Losses of Gaussian and of Laplace noise fall with its scale, also on Poisson-sampled units, because
what loses less is a postprocessing of what loses more (``docs/proofs/calibration.rst``). So a
search brackets the least scale. Brackets on ε are rough at first, and narrow near the least scale.
What is returned meets the target by a narrow bracket, whatever the losses are.
"""

from collections.abc import Callable
from functools import partial
from math import exp, inf, log
from typing import Any
from warnings import warn

from .. import _checks as checks
from ..errors import InvalidValueError
from .function import TradeoffFunction
from .session import Session, check_session

_START, _FACTOR = 1.0, 4.0  # the first scale that is tried, and the ratio to the next ones
_NEAR = 1.05  # the ratio near what rough brackets have found
_ROUGH, _FINE = 0.1, 1e-6  # widths of brackets: rough ones take less time
_ROUGH_TOLERANCE = 0.02
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
    unless it is below ``bounds``. About 15 scales are evaluated, most of
    them roughly. A warning says when the result is the lower end of ``bounds``.

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

    def upper(width: float, sigma: float) -> float:
        return float(check_session(loss=losses(sigma)).epsilon_bounds(target[1], width).upper)

    near = min(max(_START, low), high)
    rough = partial(upper, _ROUGH)
    near, _ = _search(rough, target[0], near, _FACTOR, (low, high), _ROUGH_TOLERANCE)
    fine = partial(upper, _FINE)
    found, loss_at = _search(fine, target[0], near, _NEAR, (low, high), narrow)
    if not loss_at <= target[0]:
        raise InvalidValueError(
            f"bounds ({low}, {high}) must have a scale that is shown to be within epsilon "
            f"({target[0]}) and delta ({target[1]}); pass wider bounds, or a larger target"
        )
    if found == low:
        warn(f"{low} is the least scale of bounds; less noise may be enough", stacklevel=2)
    return found


def _search(
    at: Callable[[float], float],
    most: float,
    start: float,
    factor: float,
    bounds: tuple[float, float],
    tolerance: float,
) -> tuple[float, float]:
    """Return about the least scale at which ``at`` is at most ``most``, and its value there.

    From ``start`` on, larger and larger steps find a scale that meets this, and one that does not.
    Then a line in the logarithms of scale and value says where to look, first on one side, then on
    the other; in each third step, the interval is halved.

    :return: the end of ``bounds``, if there are not two such scales
    """
    low, high = bounds
    good = bad = start
    value = excess = at(start)
    while value > most and good < high:
        bad, excess = good, value
        good, factor = min(factor * good, high), min(factor * factor, _FACTOR)
        value = at(good)
    while excess <= most and bad > low:
        good, value = bad, excess
        bad, factor = max(bad / factor, low), min(factor * factor, _FACTOR)
        excess = at(bad)
    if value > most or excess <= most:
        return (good, value) if value > most else (bad, excess)
    step = 0
    while good > bad * (1 + tolerance):
        step, first, last = step + 1, log(bad), log(good)
        share = 0.5
        if step % 3 and 0.0 < value and excess < inf:
            over, under = log(excess) - log(most), log(most) - log(value)
            share = over / (over + under) if over + under > 0.0 else 0.5
            share += (-1 if share > 0.5 else 1) * tolerance / (3 * (last - first))
            share = min(max(share, 0.05), 0.95)
        middle = exp(first + share * (last - first))
        found = at(middle)
        if found <= most:
            good, value = middle, found
        else:
            bad, excess = middle, found
    return good, value
