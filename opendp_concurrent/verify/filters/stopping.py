"""The analyst who stops at the worst time: what a reading of an odometer promises then.

The launches are randomized responses to one bit, with the same ε. After n of them the log of the
likelihood ratio is L = (2j - n) ε for the number j of answers that speak for the first dataset.
Stopping there with a reading U shows a divergence of (1 - e^(U - L))+ per probability of the first
dataset. The best time to stop is found backwards from the last launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np

from ...arguments import checks
from ...arguments.checked import Positive, checked


@checked
def worst_stopping(readings: Sequence[float], epsilon: Positive) -> float:
    """Return the largest δ of a reading over all times to stop.

    This is the largest P(S) - the integral of e^U over S under Q, over all rules when to stop and
    all sets S of what is seen, where U is the reading at the time of stopping. A reading that holds
    at any time keeps it at most at its δ.

    :param readings: the ε that is read after the first launch, after the second, and so on
    :param epsilon: of each launch, a randomized response
    :return: the largest δ, in doubles

    :example:

    >>> rule = oc.accumulators.any_time(1e-2)
    >>> launches = [rule.start().after((0.1, 0.0), n).loss[0] for n in range(1, 201)]
    >>> oc.verify.worst_stopping(launches, 0.1) < 1e-2
    True
    """
    bounds = [
        checks.non_negative(**{f"readings[{index}]": reading})
        for index, reading in enumerate(checks.sequence("numbers", readings=readings))
    ]
    up = 1 / (1 + exp(-epsilon))
    value = np.zeros(len(bounds) + 2)  # nobody goes on after the last launch
    for n in range(len(bounds), 0, -1):
        losses = epsilon * (2 * np.arange(n + 1) - n)
        stopped = -np.expm1(np.minimum(bounds[n - 1] - losses, 0.0))
        value = np.maximum(stopped, up * value[1:] + (1 - up) * value[:-1])
    return float(up * value[1] + (1 - up) * value[0])
