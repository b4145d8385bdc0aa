"""The lifecycle of an account or child: its states and transitions, as a table; and its name.

Every event that can close an account or child is in this file. A lifecycle knows its ancestors,
which it was launched from. A child is open while it and all of its ancestors are open.

A running mechanism is marked in its context (:data:`RUNNING`). A mechanism runs in a critical
section, so no interrupt leaves a mark behind.

A mechanism that runs must not launch on an account that pays for it: what it launched could depend
on the data. It may use the handles that it makes itself.

The name of an account is shown in refusals. It is a kind, and the label under which the account was
launched, or else its number among the children of its parent. All of a name is public. So the
analyst's launch gives a child its number, and all accounts that a mechanism makes during that
launch have the same number. A count of these accounts could depend on the data. A label is what a
launch is for. A ledger records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, suppress
from contextvars import ContextVar, Token
from enum import Enum
from typing import Any

from .. import errors
from .._checks import text
from .._opendp import Lock


class State(Enum):
    """States of a lifecycle."""

    OPEN = "open"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    CLOSED = "closed"
    ENDED = "ended"


class Event(Enum):
    """Events that change a lifecycle."""

    REFUSED_WITH_HALT = "a message was refused and the filter was built with halt=True"
    INTERRUPTED = "its mechanism was interrupted in the middle of an answer or an update"
    SUPERSEDED = "another launch or answer in the tree of a child that excludes all others"
    ENDED = "it was closed by close(), or was one run of a private selection, which is over"


_STAY = (State.HALTED, State.INTERRUPTED, State.CLOSED)
TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.OPEN, Event.REFUSED_WITH_HALT): State.HALTED,
    (State.OPEN, Event.INTERRUPTED): State.INTERRUPTED,
    **{(state, event): state for state in _STAY for event in Event},  # unless a line below says
    **{(state, Event.SUPERSEDED): State.CLOSED for state in State},
    **{(state, Event.ENDED): State.ENDED for state in State},
    **{(State.ENDED, event): State.ENDED for event in Event},
}

# who pays for the mechanisms that run in this context, the innermost first
RUNNING: ContextVar[tuple[Lifecycle, ...]] = ContextVar("RUNNING", default=())


class Turn:
    """The open child of a tree that excludes all others, if there is one.

    Nobody waits for an answer here: messages are ordered by when they pass. A message that another
    one overtakes while it is being answered was sent before, so it did not depend on that.

    :param recorded: whether a ledger keeps the tree, whose other processes pass elsewhere
    :ivar holder: the open child; what it launches itself does not close it
    :ivar ended: closed children, whose queryables of OpenDP are still to be closed
    """

    __slots__ = ("_lock", "ended", "holder", "recorded")

    def __init__(self, *, recorded: bool = False) -> None:
        self._lock, self.recorded = Lock(), recorded
        self.holder: Lifecycle | None = None
        self.ended: list[Lifecycle] = []

    def passed(self, lineage: Sequence[Lifecycle], holder: Lifecycle | None = None) -> None:
        """Close the open child, unless what passes belongs to it.

        :param holder: a child that excludes all others, and is being launched
        """
        if self.holder is None and holder is None:
            return
        with self._lock:
            if self.holder in lineage:
                return
            if self.holder is not None:
                self.holder.happen(Event.SUPERSEDED)
                self.ended.append(self.holder)
            self.holder = holder

    def sweep(self) -> None:
        """Close what OpenDP has made for closed children. It may wait for an answer of theirs."""
        while self.ended:
            with suppress(IndexError):  # of two threads, one is last
                self.ended.pop().at_end()


class Lifecycle:
    """State of one account or child, and of the ancestors that it was launched from.

    The state changes only as in ``TRANSITIONS``. No event leads back to ``OPEN``. A reader without
    the lock at worst sees the state before an event that is happening.

    :param parent: lifecycle that it was launched from
    :param reason: why it excludes all others of its tree; empty if it does not
    :param halts: whether a refusal closes it
    :param opaque: whether errors of its mechanisms are hidden from the analyst
    :param static: whether mechanisms below are forbidden to have a stream of their own
    :param name: its name; empty if it has none
    :param turn: of the tree below an account whose children may exclude others
    :ivar parents: what it was launched from or adopted by; without them and a turn it is alone
    :ivar excludes: whether it excludes all others of its tree
    :ivar at_end: called when it was closed because it excludes others
    """

    __slots__ = (
        "_name",
        "_of_note",
        "_opaque",
        "_reason",
        "_refused",
        "_static",
        "at_end",
        "excludes",
        "parents",
        "state",
        "turn",
    )

    def __init__(
        self,
        parent: Lifecycle | None = None,
        reason: str = "",
        *,
        halts: bool = False,
        opaque: bool = False,
        static: bool = False,
        name: str = "",
        turn: Turn | None = None,
    ) -> None:
        self.state = State.OPEN
        self._reason, self._opaque, self._static = reason, opaque, static
        self._name, self.turn = name, turn
        self._refused: tuple[Any, ...] = ()
        self.at_end: Callable[[], Any] = _nothing
        self.excludes = bool(reason)
        self._of_note = bool(reason) or halts or opaque or static or turn is not None
        self.parents: tuple[Lifecycle, ...] = () if parent is None else (parent,)

    @property
    def lineage(self) -> list[Lifecycle]:
        """The lifecycle itself and all of its ancestors. All of them must be open."""
        found = [self]
        if not self.parents:
            return found
        for one in found:  # the list grows in the loop
            for parent in one.parents:
                if parent not in found:
                    found.append(parent)
        return found

    @property
    def _to_root(self) -> Iterator[Lifecycle]:
        """The lifecycles that have a name, from this one to the root."""
        one: Lifecycle | None = self
        while one is not None:
            if one._name:
                yield one
            one = one.parents[0] if one.parents else None

    @property
    def named(self) -> Lifecycle | None:
        """The lifecycle itself if it has a name, else its nearest ancestor that has one."""
        return next(self._to_root, None)

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the root to this lifecycle."""
        return tuple(one._name for one in self._to_root)[::-1]

    def adopt_by(self, parent: Lifecycle) -> None:
        """Add ``parent`` to the ancestors of this lifecycle, and so to those of its descendants.

        The lifecycle may have been made where its parent was not known, such as in a thread.
        """
        if self not in parent.lineage and parent not in self.lineage:
            self.parents = (*self.parents, parent)

    @property
    def matters(self) -> bool:
        """Whether it, or an ancestor, can close a handle, hides errors or forbids streams."""
        known = self._of_note
        return known or (bool(self.parents) and any(one._of_note for one in self.lineage))

    @property
    def opaque(self) -> bool:
        """Whether errors of mechanisms are hidden from the analyst."""
        return self._opaque or (bool(self.parents) and any(one._opaque for one in self.lineage))

    @property
    def static(self) -> bool:
        """Whether mechanisms below are forbidden to have a stream of their own."""
        return any(one._static for one in self.lineage)

    def for_static(self, name: str) -> Lifecycle:
        """Forbid mechanisms below a launch to have a stream of their own.

        :return: the lifecycle of the launch: a new one, or itself if it is of this launch only
        """
        if not self.excludes:
            return Lifecycle(self, static=True, name=name)
        self._static, self._name = True, name
        return self

    def happen(self, event: Event) -> None:
        """Change the state as in ``TRANSITIONS``."""
        self.state = TRANSITIONS[self.state, event]

    def halt(self, refused: errors.ConcurrentError) -> None:
        """Close it for good after a refusal, whose text and values later errors have.

        :raises HaltedError, ClosedChildError: if it was closed before
        """
        self.check()
        self._refused = str(refused), *(getattr(refused, one, None) for one in ("spent", "asked"))
        self.happen(Event.REFUSED_WITH_HALT)

    def end(self, reason: str) -> None:
        """Close it, and all that is below, for good.

        :param reason: why, and what to do
        """
        self._refused = (reason,)
        self.happen(Event.ENDED)

    def check(self) -> None:
        """Raise unless this lifecycle and all of its ancestors are open."""
        for one in self.lineage if self.parents else (self,):
            if one.state is State.OPEN:
                continue
            if one.state is State.HALTED:
                raise errors.HaltedError(one.path, *one._refused)
            if one.state is State.INTERRUPTED:
                raise errors.InterruptedHandleError
            if one.state is State.ENDED:
                raise errors.EndedError(*one._refused)
            raise errors.ClosedChildError(one._reason)

    @property
    def recorded(self) -> bool:
        """Whether a child of it that excludes others would be in the tree of a ledger."""
        return any(one.turn is not None and one.turn.recorded for one in self.lineage)

    def passes(self, holder: Lifecycle | None = None) -> None:
        """Close what excludes this, as it launches or answers.

        :param holder: a child of it that excludes all others, and is being launched
        """
        lineage = self.lineage
        for one in lineage:
            if one.turn is not None:
                one.turn.passed(lineage, holder)

    def sweep(self) -> None:
        """Close what OpenDP has made for the children that were closed. Call without locks."""
        for one in self.lineage:
            if one.turn is not None and one.turn.ended:
                one.turn.sweep()

    def enter(self) -> None:
        """Check that a handle may answer, and close what excludes it."""
        self.check()
        if self.parents or self.turn:
            self.passes()
            self.sweep()

    def check_not_running(self) -> None:
        """Raise if a mechanism that this lifecycle pays for is running in this context."""
        if self in RUNNING.get():
            raise errors.ReentrantLaunchError

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, a mechanism, for which this and its ancestors pay.

        Call this in a critical section.
        """
        lineage = self.lineage if self.parents else (self,)
        before = RUNNING.set((*lineage, *RUNNING.get()))
        try:
            return function(*arguments)
        finally:
            RUNNING.reset(before)


def innermost_running() -> Lifecycle | None:
    """Return the lifecycle that pays for the mechanism that runs in this context, if one does."""
    running = RUNNING.get()
    return running[0] if running else None


def _nothing() -> None:
    """Nothing was made that has to be closed."""


# --- names and labels -----------------------------------------------------------------------------

_LABEL: ContextVar[str] = ContextVar("_LABEL", default="")


def label_text(**argument: Any) -> str:
    """Return a label, which a ledger and a message can contain.

    :raises InvalidTypeError, InvalidValueError: naming the argument
    """
    ((name, _),) = argument.items()
    label: str = text(**argument)
    if "\0" in label:
        raise errors.InvalidValueError(f"{name} ({errors.shown(label)}) must be text, without NUL")
    return label


def labelled(label: str) -> AbstractContextManager[None]:
    """Give launches in this block a label.

    A ledger records the label with the charge. An odometer, filter or compositor that is made in
    the block has the label in its name, which a refusal shows (:class:`.BudgetExceededError`). A
    label is plain text. Readers of the ledger or the refusal see it: it must not depend on data.

    The label applies to this thread only, not to threads that are started in the block.

    :param label: purpose of the launches, such as ``"mean age, by Ada"``
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> with oc.labelled("mean age, for the report"):
    ...     pass  # launch here
    """
    return _UnderLabel(label_text(label=label))


class _UnderLabel(AbstractContextManager[None], ContextDecorator):
    """Give launches in this block a label that was checked, or is shown in messages only.

    No generator: one that an interrupt has suspended would reset the label when it is freed.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_LABEL.set(self._label))

    def __exit__(self, *error: object) -> None:
        _LABEL.reset(self._tokens.pop())

    def _recreate_cm(self) -> _UnderLabel:
        return _UnderLabel(self._label)  # for each call of a function that it decorates


def current_label() -> str:
    """Return the label of launches in this context."""
    return _LABEL.get()


_KIND: ContextVar[str] = ContextVar("_KIND", default="")
_CHILD: ContextVar[tuple[object, int]] = ContextVar("_CHILD", default=(None, 0))


def name_of_account(kind: str, parent: Lifecycle | None, ledger: str = "") -> str:
    """Return the name of an account that is made in this context.

    :param kind: a noun
    :param parent: lifecycle that the account is launched from; None at top level
    :param ledger: dataset name in its ledger
    """
    label, (numbered, number) = current_label(), _CHILD.get()
    which = str(number) if number and numbered is parent else ""
    which = errors.shown(label) if label else which
    where = f"of ledger {errors.shown(ledger)}" if ledger else ""
    return " ".join(filter(None, (_KIND.get() or kind, which, where)))


@contextmanager
def as_child(parent: Lifecycle | None, number: int) -> Iterator[None]:
    """Give a number to accounts that are made below ``parent`` in this block."""
    token = _CHILD.set((parent, number))
    try:
        yield
    finally:
        _CHILD.reset(token)


@contextmanager
def named(kind: str, label: str = "") -> Iterator[None]:
    """Give another kind, and a label if given, to accounts that are made in this block."""
    token = _KIND.set(kind)
    try:
        with _UnderLabel(label or current_label()):
            yield
    finally:
        _KIND.reset(token)
