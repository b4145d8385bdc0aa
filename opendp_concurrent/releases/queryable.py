"""The handle of a shared release: it takes a level, and returns the answer at this level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary, ref

from opendp.mod import Queryable, serialize

from ..accounts.account import Account
from ..arguments.checks import positive
from ..arguments.provenance import written
from ..errors import (
    InvalidTypeError,
    InvalidValueError,
    SpaceMismatchError,
    UnsupportedMeasureError,
    uncharged,
)
from ..interrupts import Lock, let_in
from ..queryables.accuracy import Accuracy
from ..queryables.data import Sealed, check_process, seal, unseal
from ..queryables.machine import without_frames
from ..queryables.mechanism import ConcurrentOdometer
from ..queryables.opaque import hide_errors
from ..queryables.root import head
from ..queryables.session import Handle, Session
from ..sums.pair_sum import PairSum
from ..sums.scalar_sum import ScalarSum
from ..types import Answer, Argument, Distance, Loss
from .chain import level_of, units_of
from .levels import STEPPED, GaussianLevels, LaplaceLevels, Levels


class Opened:
    """The shared releases that were opened on one handle.

    :ivar by_making: by how they were made; one that nobody holds is forgotten, unless it was paid
    :ivar paid: those that have answered
    :ivar lock: while one is stored
    """

    def __init__(self) -> None:
        self.by_making: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.paid, self.lock = set[Any](), Lock()


class SharedReleaseQueryable(Handle, Queryable):
    """Handle of a shared release. It returns the answer to one query, at any level of noise."""

    query_type = "f64"

    def __init__(self, session: Session, levels: Levels, odometer: ConcurrentOdometer) -> None:
        super().__init__(session, self._ask)
        self._levels, self._lock, self._odometer = seal(levels), Lock(), odometer
        self._opened: Callable[[], Opened | None] = lambda: None

    def __call__(self, level: float) -> Answer:
        """Return the answer at a level. A level that was asked before has the same answer.

        A level that is finer than all before is charged for its distance from the finest one, to
        the handle that this was opened on and its ancestors. Any other level is free, also when no
        budget is left, until 1,000 levels were answered. Under zCDP and its relatives, the answer
        to a level between two that were charged is the coarser one's, and a level below the first
        one is refused.

        :param level: privacy loss per unit of sensitivity (ε), or per its square (ρ), from 2^-30 to
            2^20, rounded down to a multiple of 2^-30
        :return: an integer, or a list of integers; a mean of them under zCDP and its relatives
        :raises BudgetExceededError: a bound refused; nothing was charged
        :raises InvalidTypeError, InvalidValueError: naming the argument
        :raises HaltedError, ForkedError: the handle that this was opened on is closed
        """
        return without_frames(super().__call__, level)

    def _ask(self, level: Argument) -> Answer:
        answer = self._at(uncharged(_units, level))
        for postprocessor in self._odometer.postprocessors:
            answer = let_in(postprocessor, answer)
        return answer

    def _at(self, asked: int) -> Answer:
        """Return the answer at a level in units. Its frame has the levels, and ends here."""
        session = self._session
        with session.lock or self._lock, self._lock:  # in this order: turns are taken first
            levels: Levels = unseal(self._levels)
            if asked > levels.finest:
                levels.keep(asked, session.launch(levels.launch(asked, self._levels)))
                self._keep()
                return levels.at(asked)
            return uncharged(self._known, levels, asked)

    def _keep(self) -> None:
        """Let the handle that this was opened on have it for good, since it was paid."""
        opened = self._opened()
        if opened is not None:
            opened.paid.add(self)

    def _known(self, levels: Levels, asked: int) -> Answer:
        """Return the answer at a level that needs no launch."""
        account = self._session.account
        account.check_open()
        levels.check(asked)
        return hide_errors(account.lifecycle, levels.at, asked)

    @property
    def finest(self) -> float:
        """The finest level so far, up to which levels are free; 0 before the first answer."""
        levels: Levels = unseal(self._levels)
        return level_of(levels.finest)

    def privacy_loss(self, d_in: Distance) -> Loss:
        """Return the privacy loss of all levels so far together; changes nothing.

        :param d_in: distance between neighbouring inputs, in units of the release's input metric
        """
        return self._session.privacy_loss(d_in)

    def accuracy(self, level: float, beta: float = 0.05, *, answers: int | None = None) -> float:
        """Return a bound on the error of the answers at a level; changes nothing.

        Under zCDP and its relatives, it is that of the coarser answer which this level has. With
        probability at least 1 - ``beta``, all ``answers`` are within it of the exact ones.

        :param level: as for a query
        :param beta: probability of a larger error, from 1e-300 up to 1, exclusive
        :param answers: number of coordinates; it may be left out if the domain fixes it
        """
        asked = _units(level)
        known: Accuracy = without_frames(self._accuracy, asked)
        return known.at(beta, answers)

    def _accuracy(self, level: int) -> Accuracy:
        levels: Levels = unseal(self._levels)
        return levels.accuracy(self._odometer.query_space[0], level)

    def __repr__(self) -> str:
        return f"SharedReleaseQueryable({self._odometer.measure.name}, finest={self.finest})"


def _units(level: Argument) -> int:
    return units_of(positive(level=level))


def spawn_shared(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> SharedReleaseQueryable:
    """Return the handle of a shared release below ``parent``; the same one for an equal release."""
    known = None if parent is None else _made(odometer)
    if parent is None or known is None:
        return _open(odometer, token, parent)
    check_process(token)
    opened: Opened = parent.shared.setdefault("releases", Opened())
    handle: SharedReleaseQueryable | None = opened.by_making.get(known)
    if handle is None:
        rebuilt = _rebuilt(known, odometer)
        if rebuilt is None:
            return _open(odometer, token, parent)
        made = _open(rebuilt, token, parent)
        made._opened = ref(opened)
        with opened.lock:  # if another thread stores one first, this one was never used
            handle = opened.by_making.setdefault(known, made)
    return handle


def _made(odometer: ConcurrentOdometer) -> str | None:
    """Return how a release was made; None if it has a function of Python, which has no record."""
    try:
        return str(serialize(written(odometer, "made")))
    except InvalidTypeError:
        return None


def _rebuilt(known: str, odometer: ConcurrentOdometer) -> ConcurrentOdometer | None:
    """Return the release that a record describes; None if the record does not describe one.

    Others get its answers, too. So it is made of its record: OpenDP's record of an object is an
    attribute that can be set, and has lists that can be changed.
    """
    from ..messages.serialization import deserialize  # once all constructors are known

    space = odometer.input_domain, odometer.input_metric
    try:
        made = deserialize(known, space=space, output_measure=odometer.output_measure)
    except (InvalidTypeError, InvalidValueError, SpaceMismatchError):
        return None
    return made if isinstance(made, ConcurrentOdometer) and made.spawn is spawn_shared else None


def _open(
    odometer: ConcurrentOdometer, token: Sealed, parent: Session | None
) -> SharedReleaseQueryable:
    measure, space = odometer.measure, odometer.query_space
    token, inward = head(odometer, token)
    account = Account(
        odometer.accumulator.start(measure),
        inward=inward,
        parent=parent.account if parent else None,
        opaque=odometer.opaque,
    )
    if measure.kind in STEPPED:
        _check_sums(account)
        levels: Levels = LaplaceLevels(space, measure)
    else:
        levels = GaussianLevels(space, measure)
    session = Session(
        account, space, odometer.input_metric, measure, token, parent.runner if parent else None
    )
    return SharedReleaseQueryable(session, levels, odometer)


def _check_sums(account: Account) -> None:
    """Raise unless this account and its ancestors add losses up by their plain sum.

    Only there is the loss of all levels at most that of the finest one, on every transcript.
    """
    for start in account.starts():
        if type(start) not in (ScalarSum, PairSum):
            raise UnsupportedMeasureError(
                "a shared release without a ceiling is charged step by step, which is proven for "
                "accounts that add losses up by basic(), not for others and not for the shares of "
                "a compositor; pass ceiling, the finest level, which is paid once"
            )
