"""The conversion of a filter to its odometer: Lemma 2.19 of [HSTVVXZ23]."""

from __future__ import annotations

from typing import Any

from opendp.mod import assert_features

from ..arguments.checks import shown
from ..errors import InvalidTypeError
from ..queryables.mechanism import ConcurrentMeasurement, ConcurrentOdometer


def make_filter_to_odometer(measurement: ConcurrentMeasurement) -> ConcurrentOdometer:
    """Turn a filter into an odometer, which reports the smallest budget that suffices so far.

    ``measurement`` must be made by :func:`.make_concurrent_filter`, or be a chain to such a filter.
    Its continuation rule is defined for every d_out. By Lemma 2.19 of [HSTVVXZ23] such a family is
    an accumulator. A compositor has only one bound, and OpenDP's filters do not expose their rule.

    Required features: `contrib`

    :param measurement: a filter
    :return: an odometer with the filter's input space, measure and accumulator
    :raises InvalidTypeError: if no odometer is defined for ``measurement``

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> limit = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)
    >>> oc.c.make_filter_to_odometer(limit).output_measure
    MaxDivergence
    """
    assert_features("contrib")
    odometer: Any = getattr(measurement, "odometer", None)
    if not isinstance(odometer, ConcurrentOdometer):
        raise InvalidTypeError(
            f"measurement ({shown(measurement)}) must be made by make_concurrent_filter, or "
            "be a transformation chained to such a filter: for others no continuation rule "
            "is known for every d_out"
        )
    return odometer
