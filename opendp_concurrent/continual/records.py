"""Continue a continual mechanism from a record of its state."""

from __future__ import annotations

from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.mechanism import ConcurrentMeasurement
from ..queryables.saved import NOT_SAVED
from ..queryables.updates import Restore
from ..types import Json
from .mechanism import CANNOT, ContinualQueryable


def from_record(measurement: ConcurrentMeasurement, record: Json) -> ContinualQueryable:
    """Return a handle that continues from what ``to_record`` of another one returned.

    The record keeps the noise that was drawn: answers after a restart equal those before it. It
    also keeps the number of steps, and the number of contributions of each user
    (:func:`.make_bounded_contributions`).

    A record contains data and noise in the clear: keep it where the data are, and from analysts.
    Continue from each record once, from the newest only, and not beside the handle that wrote it.
    Two mechanisms that continue from one state draw independent noise for the same data, and cost
    as much privacy as two. If you write a record for the case of a crash, write it after each
    answer, before anybody sees the answer. An account does not know of records: a mechanism that is
    launched on a composition cannot be written.

    A record from a file is checked: fields that are missing or superfluous, values of wrong types,
    steps beyond the horizon and noise that does not belong to the state are refused. There is no
    signature: who can write the file can write another state.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: the measurement that made the handle: a counter of this package, or
        :func:`.make_continual` of a machine with ``to_record`` and ``restore``. Either may be
        behind stream transformations, whose functions must be the same as before, or cast
    :param record: what ``to_record`` returned, or the same from a JSON file
    :return: a handle
    :raises InvalidTypeError: if the measurement cannot continue from a record
    :raises InvalidValueError: if the record is none, or of another mechanism

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> before = counter([])
    >>> before.update_all([1, 1, 0])
    >>> count, record = before.read(), before.to_record()
    >>> after = oc.c.from_record(counter, record)
    >>> after.read() == count
    True
    """
    if not isinstance(measurement, ConcurrentMeasurement) or not measurement.takes_updates:
        raise InvalidTypeError(
            f"measurement must be a continual mechanism, found {type(measurement).__name__}"
        )
    handle = measurement([])
    if not isinstance(handle, ContinualQueryable):
        raise InvalidTypeError(f"measurement {CANNOT}")
    handle.to_record()  # raises if it cannot be written
    try:
        handle(Restore(record))
    except InvalidValueError:
        raise
    except Exception:  # whatever a machine says of a state that is none
        raise InvalidValueError(NOT_SAVED) from None
    return handle
