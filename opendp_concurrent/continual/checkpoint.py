"""Checkpoints: save and resume the state of a continual mechanism, for the data holder."""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4
from weakref import ref

from ..accounts.lifecycle import Lifecycle, innermost_running
from ..arguments.checked import checked
from ..combinators import guards
from ..combinators.constructor import constructor
from ..combinators.interactive_measurement import make_measurement
from ..errors import InvalidTypeError, InvalidValueError
from ..interrupts import Lock
from ..native import opendp as _native
from ..queryables.data import Sealed, SealedHandle, seal, unseal
from ..queryables.machine import MachineQueryable
from ..queryables.mechanism import CHECKPOINTED, ConcurrentMeasurement, check_launch
from ..queryables.saved import (
    MOST,
    NOT_SAVED,
    Parts,
    canonical,
    fields,
    parts_of,
    require,
    rows,
    whole,
)
from ..queryables.stream import stream_of
from ..types import Json
from .mechanism import Checked, inside_a_mechanism

_LOCK = Lock()
VERSION = 3
_FIELDS = {"version", "lineage", "generation", "parts"}
_FIELDS_BEFORE = {"version", "id", "name", "state"}  # of version 1
_CHANGED = (
    f"{NOT_SAVED}: its digest is not that of its text, so the text was changed or cut; resume from "
    "an unchanged copy"
)
_SAVED = re.compile(r'\{"digest":"([0-9a-f]{64})",(.*)\}')  # of its text from the comma on
_LINEAGE = re.compile("[0-9a-f]{32}")
_CANNOT = (
    "a counter, or made by make_continual of a machine with to_record and restore, perhaps behind "
    "stream transformations, in make_interactive or make_bounded_interactive, or cast; a "
    "postprocessor's state, a composition with its account and children, and parts of a stream "
    "cannot be saved"
)


@dataclass(slots=True)
class Lineage:
    """What this process knows of a mechanism and its resumed copies; at most one may be alive.

    :ivar saved: the newest generation that was saved or resumed here
    :ivar resumed: the newest generation that was resumed here; -1 if none was
    :ivar living: innermost part of the mechanism that is alive
    :ivar moved: whether a message has arrived since the last save
    :ivar elsewhere: whether the mechanism was alive when this process was forked
    """

    saved: int = 0
    resumed: int = -1
    living: ref[Checked] | None = None
    moved: bool = False
    elsewhere: bool = False

    @property
    def alive(self) -> bool:
        """Whether one is alive, here or in the process that this one was forked from."""
        machine = None if self.living is None else self.living()
        return self.elsewhere or (machine is not None and not machine.stopped)

    def check(self, generation: int) -> None:
        """Raise unless this generation may be resumed."""
        if self.alive:
            raise InvalidValueError(
                "saved is the state of a mechanism that still runs in this process, or in "
                "the process that it was forked from; two mechanisms that continue from "
                "one state would draw noise twice; stop it with checkpoint.save(), and "
                "resume what that returns"
            )
        if generation <= self.resumed or generation < self.saved:
            raise InvalidValueError(
                f"saved is generation {generation} of a mechanism of which generation "
                f"{max(self.saved, self.resumed)} was saved or resumed in this process; "
                "only the newest state can be resumed, and only once"
            )
        if generation == self.saved and self.moved:
            raise InvalidValueError(
                "saved is the state of a mechanism that received messages after it was "
                "saved; a resumed mechanism would answer them again with other noise; "
                "launch a new mechanism"
            )


_LINEAGES: dict[str, Lineage] = {}  # by id, as long as this process lives
_BEFORE_FORK: list[Lineage] = []


def _remember_living() -> None:
    _BEFORE_FORK[:] = [one for one in _LINEAGES.values() if one.alive]


def _leave_to_parent() -> None:
    for lineage in _BEFORE_FORK:
        lineage.elsewhere = True


if hasattr(os, "register_at_fork"):  # the parent has the mechanism; here its data are gone
    os.register_at_fork(before=_remember_living, after_in_child=_leave_to_parent)


class Checkpoint(SealedHandle):
    """Save and restore a continual mechanism's state. Keep the checkpoint from analysts.

    The saved text contains data and noise in the clear: anyone who reads it reads the data. Only
    the data holder should have it. A queryable never returns it.

    Resume each state once, and only the newest. Two mechanisms resumed from one state, or from an
    older one, draw independent noise for the same data. This costs as much privacy as two
    mechanisms, and the mean of many such draws is the data. Each text has a generation and the id
    of its mechanism, which resumed mechanisms inherit. Within one process a checkpoint refuses to
    resume while the mechanism, or one resumed from it, is alive; from a generation older than one
    saved or resumed here; and from a state after which the mechanism got messages. A process cannot
    know what other processes do with copies of the text.

    The text begins with a SHA-256 digest of the rest, which is checked before anything else: a text
    in which a single character was changed is refused. The digest is no signature: somebody who
    computes it again can write another state. Such a text, and one of version 0.2 or earlier, which
    has no digest, is read by types: an impossible state is refused.

    :param saved: text that ``save`` returned, to resume from
    :raises InvalidValueError: if ``save`` did not return this text, or it was changed

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=1.0)
    >>> checkpoint = oc.c.Checkpoint()
    >>> queryable = oc.c.make_resumable(counter, checkpoint)([])
    >>> saved = checkpoint.save()
    """

    def __init__(self, saved: str | None = None) -> None:
        self._record: Json = None
        self._parts: Sealed | None = None
        self._lineage, self._of = "", Lineage()
        if saved is None:
            return
        self._record = _read(saved)

    def _adopt_by(self, lifecycle: Lifecycle, lock: Lock | None) -> None:
        """Nothing: it belongs to the owner of the data, not to a launch."""

    def __reduce__(self) -> Any:
        raise TypeError("a checkpoint holds sensitive data and cannot be pickled or copied")

    @checked
    def save(self, *, go_on: bool = False) -> str:
        """Return the state as text, and stop the mechanism; resume it from the text.

        Nodes in use get their noise first, if they have none.

        :param go_on: do not stop the mechanism. Then save after each answer, before anybody sees
            it: resuming draws new noise for answers after the last save
        :return: JSON; store it only where data may be stored
        :raises InvalidValueError: if nothing was launched with this checkpoint
        :raises InvalidTypeError: if a user with bounded contributions cannot be written as JSON
        """
        if self._parts is None:
            raise InvalidValueError(
                "no mechanism was launched with this checkpoint; launch the measurement first"
            )
        parts: Parts = unseal(self._parts)
        with ExitStack() as turn:
            for lock, _ in parts:  # from the outside in, in the order of messages
                turn.enter_context(lock)
            turn.enter_context(_LOCK)
            records = [[part.name, part.to_record()] for _, part in parts]
            self._of.saved, self._of.moved = self._of.saved + 1, False
            if not go_on:
                for _, part in parts:
                    part.stop()
            generation = self._of.saved
        record = {
            "version": VERSION,
            "lineage": self._lineage,
            "generation": generation,
            "parts": records,
        }
        return _written(record)

    def _attach(self, parts: Parts) -> None:
        """Attach to a launched mechanism; restore the saved state, if there is one."""
        innermost = parts[-1][1]
        assert isinstance(innermost, Checked)
        with _LOCK:
            if self._parts is not None:
                raise InvalidValueError(
                    "checkpoint was used for a launch already, and is for one launch; make "
                    "another Checkpoint"
                )
            self._lineage, self._of = uuid4().hex, Lineage()
            if self._record is not None:
                self._lineage = self._record["lineage"]
                self._of = _LINEAGES.get(self._lineage, Lineage())
                self._of.check(self._record["generation"])
                _restore(parts, self._record["parts"])
                self._of.saved = self._of.resumed = self._record["generation"]
            self._of.living, self._of.moved = ref(innermost), False
            _LINEAGES[self._lineage] = self._of
            for _, part in parts:
                part.watch(self._of)
            self._parts, self._record = seal(parts), None


def _written(record: dict[str, Any]) -> str:
    """Return the text of a record, which begins with the digest of the rest."""
    text = canonical(record)[1:-1]
    return f'{{"digest":"{sha256(text.encode()).hexdigest()}",{text}}}'


def _read(saved: Any) -> dict[str, Any]:
    """Return the record of a text, or raise.

    The digest detects accidents and edits by hand before anything of the text is used. It is not a
    signature: who can compute it can write another state. A text of version 2 has no digest.
    """
    require(type(saved) is str)
    found = _SAVED.fullmatch(saved)
    if found is not None and sha256(found[2].encode(errors="replace")).hexdigest() != found[1]:
        raise InvalidValueError(_CHANGED)
    try:
        record = json.loads(saved)
    except (ValueError, RecursionError):
        raise InvalidValueError(NOT_SAVED) from None
    if found is not None:
        record.pop("digest")
    require(type(record) is dict and record.keys() in (_FIELDS, _FIELDS_BEFORE))
    require(type(record["version"]) is int)
    if found is None and record["version"] == VERSION:
        raise InvalidValueError(_CHANGED)
    if record["version"] != (2 if found is None else VERSION):
        raise InvalidValueError(
            "saved was made by another version of opendp_concurrent; resume it with that version"
        )
    _, lineage, generation, parts = fields(record, "version", "lineage", "generation", "parts")
    require(type(lineage) is str and _LINEAGE.fullmatch(lineage) is not None)
    whole(generation, least=1, most=MOST)
    rows(parts, least=1)
    read: dict[str, Any] = record
    return read


def _restore(parts: Parts, records: Any) -> None:
    try:
        names = [name for name, _ in records]
        mine = [part.name for _, part in parts]
        if names != mine:
            raise InvalidValueError(
                f"checkpoint has the state of {' in '.join(reversed(names))}, and cannot be "
                f"resumed by {' in '.join(reversed(mine))}"
            )
        for (_, part), (_, record) in zip(parts, records, strict=True):
            part.restore(record)
    except InvalidValueError:
        raise
    except Exception:  # whatever a machine says of a state that is none
        raise InvalidValueError(NOT_SAVED) from None


@constructor(measurement=guards.measurement)
def make_resumable(
    measurement: ConcurrentMeasurement, checkpoint: Checkpoint
) -> ConcurrentMeasurement:
    """Make a continual mechanism that the owner of the data can stop and resume.

    A checkpoint keeps the noise that was drawn: answers after a restart equal those before it, and
    nothing is drawn twice. It also keeps the number of steps, the number of contributions of each
    user (:func:`.make_bounded_contributions`), and the number of messages left
    (:func:`.make_bounded_interactive`).

    A checkpoint reads the data, so only the data holder may have it. Launch the returned
    measurement with ``[]`` where the data are. It cannot be launched on a composition, since a
    checkpoint of one child does not contain the account. It cannot be inside another measurement,
    since a checkpoint does not contain that one's state: apply ``make_resumable`` last.

    Required features: `contrib`, `honest-but-curious`

    :param measurement: a counter of this package, or :func:`.make_continual` of a machine with
        ``to_record`` and ``restore``. Either may be behind stream transformations, in
        :func:`.make_interactive` or :func:`.make_bounded_interactive`, or cast. The caller promises
        that the functions of transformations are the same after a restart
    :param checkpoint: a new checkpoint, or one with a state to resume from
    :return: a measurement that can be launched once
    :raises InvalidTypeError: naming the argument; or when it is launched on a composition, or
        inside another mechanism
    :raises InvalidValueError: at launch, if the state is of another mechanism, or must not be
        resumed

    :example:

    >>> space = oc.integer_stream(0, 1), oc.event_presence()
    >>> counter = oc.m.make_counter(*space, dp.max_divergence(), scale=20.0, horizon=1000)
    >>> checkpoint = oc.c.Checkpoint()
    >>> before = oc.c.make_resumable(counter, checkpoint)([])
    >>> before.update_all([1, 1, 0])
    >>> count, saved = before.read(), checkpoint.save()
    >>> after = oc.c.make_resumable(counter, oc.c.Checkpoint(saved))([])
    >>> after.read() == count
    True
    """
    if not isinstance(measurement, ConcurrentMeasurement):
        raise InvalidTypeError(
            f"measurement must be a continual mechanism, found {type(measurement).__name__}"
        )
    if not isinstance(checkpoint, Checkpoint):
        raise InvalidTypeError(
            f"checkpoint must be an oc.c.Checkpoint, found {type(checkpoint).__name__}"
        )
    check_launch(measurement)
    if not measurement.resumable:
        raise InvalidTypeError(f"measurement must be {_CANNOT}; found {measurement}")
    inner = measurement.spawn

    def spawn(token: Sealed) -> MachineQueryable:
        _check_owner(token)
        queryable: MachineQueryable = inner(token)
        parts = parts_of(queryable)
        if parts is None:  # checked on the queryable: a measurement may contain another
            raise InvalidTypeError(f"measurement must be {_CANNOT}")
        checkpoint._attach(parts)
        return queryable

    return make_measurement(
        measurement.input_space,
        measurement.output_measure,
        spawn,
        measurement.privacy_map,
        measurement.summary,
        takes_updates=True,
        checkpointed=True,
    )


def _check_owner(token: Sealed) -> None:
    """Raise unless this is launched by itself, by the data holder."""
    below = innermost_running() is not None or _native.inside_native_call()
    if below or inside_a_mechanism() or stream_of(token) is not None:
        raise InvalidTypeError(CHECKPOINTED)
