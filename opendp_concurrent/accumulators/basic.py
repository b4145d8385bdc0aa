"""Basic accounting: plain sums, whatever the distance is made of."""

from __future__ import annotations

from ..measures.sums.basic import Basic as Basic


def basic() -> Basic:
    """Account by the plain sum of the privacy losses: basic composition.

    Valid for every measure of this package, against any adaptive analyst, with children queried
    concurrently where the measure allows it [HSTVVXZ23, Theorems 1.20, 1.21 and 4.6].

    :return: an accounting, for the ``accumulator`` argument of ``make_concurrent_odometer``

    :example:

    >>> oc.accumulators.basic()
    basic()
    """
    return Basic()
