"""Stop and go on: the state of a continual mechanism, for the one who holds the data."""

from __future__ import annotations

import json
from threading import Lock
from typing import Any
from uuid import uuid4

from opendp.mod import assert_features

from ..composition.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError
from ..queryables.data import Sealed, seal, unseal
from ..queryables.mechanism import ConcurrentMeasurement
from .mechanism import Checked, ContinualQueryable

_LOCK = Lock()
_RESUMED: set[str] = set()  # ids of states that were resumed by this process
_NOT_SAVED = "saved must be what Checkpoint.save returned"


class Checkpoint:
    """Where a mechanism's state can be saved, and read back. Keep it from analysts.

    The state holds data and noise, in plain text: whoever reads it reads the data. It is for the
    one who holds the data anyway; a queryable does not give it away.

    A state must be resumed once, and the mechanism that it was saved from must not go on. Two
    mechanisms that go on from the same state draw their noise for the same data independently,
    which costs as much privacy as two mechanisms do. Within one process a second is refused.

    :param saved: what ``save`` returned, to go on from there
    :raises InvalidValueError: if it is not

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.make_counter(*space, dp.max_divergence(), scale=1.0)
    >>> checkpoint = oc.Checkpoint()
    >>> queryable = oc.make_resumable(counter, checkpoint)([])
    >>> saved = checkpoint.save()
    """

    def __init__(self, saved: str | None = None) -> None:
        self._record: Any = None
        self._machine: Sealed | None = None
        self._lock: Any = None  # that of the queryable, so that nothing is drawn in between
        self._name = ""
        if saved is None:
            return
        try:
            self._record = json.loads(saved)
        except (TypeError, ValueError):
            raise InvalidValueError(_NOT_SAVED) from None
        fields = {"id", "name", "state", "version"}
        if not isinstance(self._record, dict) or set(self._record) != fields:
            raise InvalidValueError(_NOT_SAVED)
        if self._record["version"] != 1:
            raise InvalidValueError(
                "saved is of another version of this package; resume it with that one"
            )

    def __reduce__(self) -> Any:
        raise TypeError("a checkpoint holds sensitive data and cannot be pickled or copied")

    def save(self, *, go_on: bool = False) -> str:
        """Return the state as text, and stop the mechanism: what goes on is what resumes it.

        Nodes in use get their noise first, if they have none.

        :param go_on: let it go on. Then save after each answer, before anybody sees it: what was
            answered after the last save would be drawn again when that is resumed
        :return: JSON, to be kept where data may be
        :raises InvalidValueError: if nothing was launched with this checkpoint
        """
        if self._machine is None:
            raise InvalidValueError("nothing was launched with this checkpoint; launch it first")
        machine = unseal(self._machine)
        with self._lock:
            state = machine.to_record()
            if not go_on:
                machine.stop()
        record = {"version": 1, "id": uuid4().hex, "name": self._name, "state": state}
        return json.dumps(record)

    def _attach(self, name: str, machine: Checked, lock: Any) -> None:
        if self._machine is not None:
            raise InvalidValueError(
                "checkpoint is for one launch, and has had it; take another Checkpoint"
            )
        if self._record is not None:
            if self._record["name"] != name:
                raise InvalidValueError(
                    f"checkpoint is of {self._record['name']}, and cannot be resumed by {name}"
                )
            with _LOCK:
                if self._record["id"] in _RESUMED:
                    raise InvalidValueError(
                        "saved was resumed before, which is possible once; ask what resumed it"
                    )
                _RESUMED.add(self._record["id"])
            try:
                machine.restore(self._record["state"])
            except (KeyError, TypeError, ValueError, AttributeError):
                raise InvalidValueError(_NOT_SAVED) from None
        self._name, self._lock = name, lock
        self._machine, self._record = seal(machine), None


def make_resumable(
    measurement: ConcurrentMeasurement, checkpoint: Checkpoint
) -> ConcurrentMeasurement:
    """Let a continual mechanism be stopped and resumed, by the one who holds its checkpoint.

    Noise that was drawn is kept: answers after a restart are those before it, and nothing is drawn
    twice. Chain transformations that remember nothing in front of it.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: a counter of this package; or made by :func:`make_continual` of a machine
        with ``to_record`` and ``restore``
    :param checkpoint: a new one, or with a state to go on from
    :return: a measurement that is launched once
    :raises InvalidTypeError: naming the argument
    :raises InvalidValueError: at launch, if the state is of another mechanism

    :example:

    >>> import opendp.prelude as dp
    >>> import opendp_concurrent as oc
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> checkpoint = oc.Checkpoint()
    >>> before = oc.make_resumable(counter, checkpoint)([])
    >>> before.update_all([1, 1, 0])
    >>> count, saved = before(None), checkpoint.save()
    >>> after = oc.make_resumable(counter, oc.Checkpoint(saved))([])
    >>> after(None) == count
    True
    """
    assert_features("contrib", "honest-but-curious")
    if not isinstance(measurement, ConcurrentMeasurement):
        raise InvalidTypeError(
            f"measurement must be a continual mechanism, found {type(measurement).__name__}"
        )
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidTypeError(
            f"checkpoint must be an oc.Checkpoint, found {type(checkpoint).__name__}"
        )
    inner = measurement.spawn

    def spawn(token: Sealed) -> ContinualQueryable:
        queryable: ContinualQueryable = inner(token)
        machine = unseal(queryable._machine) if isinstance(queryable, ContinualQueryable) else None
        if not isinstance(machine, Checked) or not machine.resumable:
            raise InvalidTypeError(
                "measurement must be a counter, or made by make_continual of a machine with "
                "to_record and restore"
            )
        checkpoint._attach(measurement.summary, machine, queryable._lock)
        return queryable

    made: Any = make_measurement(
        measurement.input_space,
        measurement.output_measure,
        spawn,
        measurement.privacy_map,
        measurement.summary,
    )
    made.resumable = True
    resumable: ConcurrentMeasurement = made
    return resumable
