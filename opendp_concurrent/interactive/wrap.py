"""A measurement as a measurement: the same guarantee, another conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opendp.mod import Measurement, OdometerQueryable, Queryable, assert_features

from ..accounts.lifecycle import Lifecycle, innermost_running
from ..composition.guards import check_measurement
from ..composition.interactive_measurement import make_measurement
from ..queryables.child import adopt
from ..queryables.data import Sealed
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import ConcurrentMeasurement, run

Answer = Callable[[Any], Any]


def wrap(
    measurement: Measurement, make_machine: Callable[[Answer], Answer], name: str
) -> ConcurrentMeasurement:
    """Return ``measurement`` with what it spawns behind a machine; the privacy map stays.

    :param make_machine: takes what answers for the measurement, and returns what answers instead
    """
    check_measurement("measurement", measurement)

    def spawn(token: Sealed) -> MachineQueryable:
        answer = adopt(run(measurement, token), Lifecycle(innermost_running()), None)
        queryable = MachineQueryable(make_machine(as_answering(answer)), name)
        queryable.takes_updates = getattr(answer, "takes_updates", False)
        return queryable

    return make_measurement(
        measurement.input_space,
        measurement.output_measure,
        spawn,
        measurement.map,
        f"{name}({measurement.output_measure})",
    )


def as_answering(answer: Any) -> Answer:
    """A queryable, or a release that is given again and again."""
    return answer if isinstance(answer, (Queryable, OdometerQueryable)) else lambda _: answer


def make_interactive(measurement: Measurement) -> ConcurrentMeasurement:
    """Return a measurement as an interactive mechanism.

    A noninteractive measurement is released once, when it is launched, and gives this release in
    answer to any message, which it ignores. An interactive one answers as before.

    Guarantee: that of ``measurement``; a release that is read again is postprocessing.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: interactive or not
    :return: a measurement that spawns a queryable
    :raises InvalidTypeError: if it is not a measurement

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    >>> queryable = oc.make_interactive(count)([1, 2, 3])
    >>> queryable("again") == queryable("and again")
    True
    """
    assert_features("contrib", "honest-but-curious")
    return wrap(measurement, lambda answer: answer, "Interactive")
