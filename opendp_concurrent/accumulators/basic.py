"""The basic accumulator: the plain sum of losses, for every kind of distance."""

from __future__ import annotations

from ..arguments.written import sent
from ..sums.basic import Basic as Basic


@sent(Basic)
def basic() -> Basic:
    """Add up privacy losses by their plain sum: basic composition.

    The sum is valid for every measure of this package, against any adaptive analyst. Children may
    be concurrent where the measure allows it [HSTVVXZ23, Theorems 1.20, 1.21 and 4.6].

    :return: an accumulator for ``make_concurrent_odometer``

    :example:

    >>> oc.accumulators.basic()
    basic()
    """
    return Basic()
