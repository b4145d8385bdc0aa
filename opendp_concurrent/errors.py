"""Names for values of many classes: a signature says which of them it takes.

What each may be is decided by a metric, a measure, a mechanism or a user, not here, so mypy takes
any value. A value that has one class is annotated with that class, and not with a name of this
file.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from copy import copy
from logging import Logger
from re import compile as pattern
from traceback import extract_tb
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from numpy.typing import NDArray
from opendp.mod import OpenDPException

Distance: TypeAlias = Any  # d_in, as its metric counts: a number, a pair, an array, a mapping
Data: TypeAlias = Any  # rows that are protected: only their domain knows their class
Query: TypeAlias = Any  # what an analyst sends to a handle
Answer: TypeAlias = Any  # what a handle or a mechanism returns
Item: TypeAlias = Any  # an element of a stream
ItemSequence: TypeAlias = Sequence[Any] | NDArray[Any]  # items of a stream
Key: TypeAlias = Hashable  # names a block, a part or a group
Json: TypeAlias = Any  # what is written as JSON, or was read and has not been checked
Argument: TypeAlias = Any  # what a caller gave, and no guard has checked


class Ordered(Protocol):
    """A value that may be at most another one, as numbers, pairs (ε, δ) and distances may be."""

    def __le__(self, other: Any, /) -> bool: ...


Loss: TypeAlias = Ordered | Callable[[float], float]  # d_mid or d_out, as its measure states it
D = TypeVar("D", bound=Loss)  # the losses under one measure


_INSIDE = pattern(r"[/\\](opendp|opendp_concurrent)[/\\]")  # files of a library

# How a value is written in a message, whatever its own ``repr`` does.

SHOWN = 200  # characters of a value in a message


def shown(value: Argument) -> str:
    """Return the value for a message: short, and whatever its own ``repr`` does."""
    try:
        text = repr(value)
    except Exception:
        text = f"one {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def rounded(loss: Loss | None) -> str:
    """Return a privacy loss for people: numbers have six digits. ``privacy_loss()`` is exact."""
    if isinstance(loss, tuple):
        return f"({', '.join(map(rounded, loss))})"
    return f"{loss:.6g}" if isinstance(loss, float) else shown(loss)


# What may leave code that sees rows: an interrupt without its text, and no other exception.
#
# ``except Exception`` is too narrow there: a panic of Polars and ``SystemExit`` are no
# ``Exception``, and their text may have a row.


def pass_interrupt(error: BaseException) -> None:
    """Raise an interrupt anew, without text, notes or context; return if it is another exception.

    :param error: what such code has raised; the caller hides it if this function returns
    """
    interrupted = isinstance(error, KeyboardInterrupt)
    del error  # a traceback keeps this frame
    if not interrupted:
        return
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as fresh:
        fresh.__context__ = None  # it would be the error of the handler that the caller is in
        raise


def log(logger: Logger, message: str, error: BaseException) -> None:
    """Log what is hidden. A handler of the log may raise, or the error's class; that is dropped."""
    with suppress(BaseException):
        logger.error(message, exc_info=error)


# Exceptions, which carry their values as fields.
#
# There are three families under one root:
#
# * misuse (``TypeError`` and ``ValueError`` subclasses): the caller passed an invalid argument;
# * refusal (:class:`RefusalError`): a budget, a halted filter or a closed child refused a query;
# * ledger (:class:`LedgerError`): a charge could not be read or written.
#
# An error that a launch raises says whether the launch is charged: :func:`charged`.
#
# Where OpenDP raises ``OpenDPException``, the exception of this package is a subclass of it.

T = TypeVar("T")


class ConcurrentError(Exception):
    """Root of every exception that this package raises.

    :ivar charged: whether the launch that raised it is charged: True, False, or None if that is
        unknown, such as for an error of a query to a child; see :func:`charged`
    """

    charged: bool | None = None
    variant = "FailedFunction"
    raw_traceback = None
    fixed: ClassVar[str] = ""  # the message of a class that has no other

    def __init__(self, message: str = "") -> None:
        self.message = message or self.fixed
        Exception.__init__(self, self.message)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Any:
        # it is pickled and copied without calling its constructor
        return type(self).__new__, (type(self), *self.args), vars(self)


_FOREIGN = "_opendp_concurrent_charged"  # a field of an exception of other code


def charged(error: BaseException) -> bool | None:
    """Return whether the launch that raised an error is charged, as far as the error knows.

    Every error that leaves a launch is told: those of this package, whose field ``charged`` is
    returned, and those that a mechanism raises, unless ``opaque_errors=True`` replaces them.

    * False: the launch was refused, or failed before its charge. Nothing was charged.
    * True: the launch was charged, and then its mechanism failed or was interrupted.
    * None: unknown. A ledger could not tell whether it wrote the charge; an interrupt arrived
      during the charge, or just before or after the launch; or the error does not come from a
      launch, such as that of a query to a child. :meth:`.SqlLedger.charged` then tells whether a
      ledger has the charge.

    Below an interactive mechanism of OpenDP, an exception of other code arrives as another one, of
    OpenDP, which may not know.

    :param error: what was raised

    :example:

    >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
    >>> root = oc.make_concurrent_filter(odometer, d_in=1, d_out=1.0)([1, 2, 3])
    >>> try:
    ...     root(space >> dp.t.then_count() >> dp.m.then_laplace(scale=0.5))
    ... except Exception as error:
    ...     print(oc.errors.charged(error))
    False
    """
    if isinstance(error, ConcurrentError):
        return error.charged
    found: bool | None = vars(error).get(_FOREIGN)
    return found


def tell_charged(error: BaseException, known: bool | None) -> None:
    """Let an error of a launch say whether it is charged.

    :param known: None for an error that came during the charge: a refusal then says that nothing
        was charged, unless it was told otherwise, and other errors say what they were told
    """
    if not isinstance(error, ConcurrentError):
        vars(error)[_FOREIGN] = known
    elif known is not None:
        error.charged = known
    elif isinstance(error, (RefusalError, ReentrantLaunchError)) and error.charged is None:
        error.charged = False


def uncharged(function: Callable[..., T], *arguments: Any) -> T:
    """Return ``function(*arguments)``, whose errors say that nothing is charged."""
    try:
        return function(*arguments)
    except BaseException as error:
        tell_charged(error, False)
        raise


class AccuracyWarning(UserWarning):
    """A mechanism promises a larger error than another one would."""


class ScanWarning(UserWarning):
    """What :func:`.scan` tells the owner of the data; it may depend on the rows."""


class InvalidTypeError(ConcurrentError, TypeError):
    """An argument has the wrong type."""


class InvalidValueError(ConcurrentError, ValueError):
    """An argument has a valid type and an invalid value."""


class KeyReusedError(InvalidValueError):
    """A key of a request was used for another request; pass a new key."""

    charged = False


class SpaceMismatchError(InvalidValueError, OpenDPException):
    """A domain, metric or measure differs from the one that was expected."""

    def __init__(self, name: str, expected: object, found: object) -> None:
        super().__init__(
            f"{name} does not match: expected {expected}, found {found}; "
            f"build the query on the same {name}"
        )
        self.name, self.expected, self.found = name, expected, found


class LimitMismatchError(InvalidValueError, OpenDPException):
    """A limit was opened before, under other terms; nothing was charged.

    :ivar limit: the labels of the limits from the outermost one to this one
    :ivar name: the argument that differs
    :ivar recorded: its value when the limit was opened first
    :ivar given: its value in this call
    """

    charged = False

    def __init__(self, limit: tuple[str, ...], name: str, recorded: str, given: str) -> None:
        super().__init__(
            f"{name} of the limit {' > '.join(map(shown, limit))} does not match: it was opened "
            f"with {recorded}, given was {given}; use the first terms, or open a limit with "
            "another label"
        )
        self.limit, self.name, self.recorded, self.given = limit, name, recorded, given


class UnsupportedMeasureError(InvalidValueError, OpenDPException):
    """No composition rule is known for this privacy measure."""


_LONGEST = 1000  # characters of a reason, which may come from a map


class PrivacyMapError(ConcurrentError, OpenDPException):
    """The privacy map of a measurement raised, or returned a value that is not a privacy loss."""

    charged = False

    def __init__(self, d_in: Distance, reason: str) -> None:
        super().__init__(
            f"the privacy map of the measurement cannot be used at d_in ({shown(d_in)}): "
            f"{reason if len(reason) <= _LONGEST else reason[: _LONGEST - 3] + '...'}; "
            "nothing was charged"
        )
        self.d_in, self.reason = d_in, reason


class AdvisoryError(PrivacyMapError):
    """A constructor of OpenDP has a known fault, so what it made is not launched.

    :ivar reference: the issue of OpenDP, such as ``opendp#2949``
    """

    def __init__(self, reference: str, reason: str) -> None:
        text = f"{reference}, a known fault of OpenDP: {reason}; nothing was charged"
        ConcurrentError.__init__(self, text)
        self.d_in, self.reference, self.reason = None, reference, reason


class FiniteCommunicationError(PrivacyMapError):
    """A continual mechanism may answer any number of messages, and its loss needs a bound on them.

    :ivar loss: the loss at ``d_in`` that needs it
    """

    def __init__(self, d_in: Distance, loss: Loss) -> None:
        text = (
            f"the query loses {shown(loss)} at d_in ({shown(d_in)}), and may answer any number of "
            "messages, while the theorem for this loss assumes finite communication [HSV25, "
            "Definition 6.1]; launch make_bounded_interactive(query, max_messages), or pass "
            "max_messages to make_concurrent_continual; nothing was charged"
        )
        ConcurrentError.__init__(self, text)
        self.d_in, self.loss, self.reason = d_in, loss, text


class ReentrantLaunchError(ConcurrentError, RuntimeError, OpenDPException):
    """A call came from within another call that it would change.

    A running mechanism queried itself, or tried to launch on an account that pays for it.
    """

    fixed = (
        "a mechanism must not query itself, or launch on the account that pays for it, while it "
        "runs: the query could depend on the data; send the query after it has answered"
    )


class RefusalError(ConcurrentError, OpenDPException):
    """A query was refused before it ran; nothing was charged.

    A notebook shows the line that asked, and the message. ``traceback.print_exc`` has all frames.
    """

    def _render_traceback_(self) -> list[str]:
        frames = extract_tb(self.__traceback__)
        inside = (place for place, one in enumerate(frames) if _INSIDE.search(one.filename))
        asked = frames[next(inside, len(frames)) - 1] if frames else None
        where = [f"line {asked.lineno}: {asked.line}"] if asked is not None else []
        return [*where, f"{type(self).__name__}: {self}"]


class BudgetExceededError(RefusalError):
    """The launch would take the privacy loss above a bound.

    The bound is that of the handle or of one of its ancestors, to which the launch is also charged;
    ``account`` says which one refused. All fields are functions of public numbers and of labels.

    :ivar spent: privacy loss so far, in the account that refused
    :ivar asked: privacy loss of the refused launch, at ``d_in``
    :ivar remaining: what may still be spent; the unused shares of a compositor
    :ivar d_out: the bound of a filter; None for a compositor
    :ivar account: the account that refused: the names of the accounts from the root to it, such as
        ``("odometer", "filter 'report'")``. A label is that of the launch of the account
        (:func:`.labelled`)
    :ivar d_in: the distance at which the bound holds
    :ivar measure: name of the privacy measure
    :ivar accumulator: ``repr`` of the accumulator, which adds up the losses
    """

    charged = False

    def __init__(
        self,
        spent: Loss,
        asked: Loss,
        remaining: Loss | None,
        *,
        d_out: Loss | None = None,
        shares: int | None = None,
        any_order: bool = False,
        account: tuple[str, ...] = (),
        d_in: Distance = None,
        measure: str = "",
        accumulator: str = "",
    ) -> None:
        self.spent, self.asked, self.d_out = spent, asked, d_out
        self.remaining: Any = remaining
        self.account, self.d_in = account, d_in
        self.measure, self.accumulator = measure, accumulator
        self._plan = shares, any_order
        super().__init__(self._told())

    def with_account(
        self, account: tuple[str, ...], d_in: Distance, measure: str, accumulator: str
    ) -> BudgetExceededError:
        """Return this refusal with the account that refused."""
        told = copy(self)
        told.account, told.d_in = account, d_in
        told.measure, told.accumulator = measure, accumulator
        ConcurrentError.__init__(told, told._told())
        return told

    def _told(self) -> str:
        subject = f"{phrase(self.account)} refuses" if self.account else "the launch is refused"
        spent = rounded(self.spent) + ("" if self.d_out is None else f" of {rounded(self.d_out)}")
        asked, left, advice = self._left()
        if _is_infinite(self.asked):
            advice = (
                "no budget admits an infinite privacy loss, such as that of a noise scale of 0; "
                "pass a measurement whose loss is finite at this d_in"
            )
        under = ", ".join(filter(None, (self.measure, self.accumulator)))
        where = f" ({under}, d_in={shown(self.d_in)})" if under else ""
        return (
            f"{subject}: spent {spent}, asked {asked}, {left}{where}; nothing was charged; {advice}"
        )

    def _left(self) -> tuple[str, str, str]:
        """Return what was asked, what is left, and what to do."""
        asked = rounded(self.asked)
        shares, any_order = self._plan
        if shares is None:
            left = rounded(self.remaining)
            if asked == left:  # rounding hides the difference
                asked, left = shown(self.asked), shown(self.remaining)
            return asked, f"remaining {left}", "pass a query that costs at most what remains"
        count = f"{len(self.remaining)} of {shares}"
        if not self.remaining:
            return asked, f"no share left of {shares}", "build it with more d_mids"
        if any_order:
            return asked, f"not covered by the {count} shares left", "pass a query that they cover"
        share = rounded(self.remaining[0])
        if asked == share:
            asked, share = shown(self.asked), shown(self.remaining[0])
        return (
            asked,
            f"next share {share}, {count} left",
            "pass a query that costs at most the next share",
        )


def _is_infinite(loss: Loss) -> bool:
    parts = loss if isinstance(loss, tuple) else (loss,)
    return any(isinstance(part, float) and part == float("inf") for part in parts)


def phrase(account: tuple[str, ...]) -> str:
    """Return the names of accounts as one name, such as ``filter 2 of the odometer``."""
    return " of ".join(map(_with_article, reversed(account)))


def _with_article(name: str) -> str:
    kind_and_which = name.partition(" of ")[0]
    return name if " " in kind_and_which else f"the {name}"


class HaltedError(RefusalError):
    """The filter was built with ``halt=True`` and has refused a message before.

    :ivar account: the names of the accounts from the root to the filter
    :ivar reason: the text of the first refusal
    :ivar spent: privacy loss when a launch was refused; None if the message was no launch
    :ivar asked: privacy loss of that launch; None if the message was no launch
    """

    charged = False

    def __init__(
        self,
        account: tuple[str, ...] = (),
        reason: str = "a launch was refused",
        spent: Loss | None = None,
        asked: Loss | None = None,
    ) -> None:
        super().__init__(
            f"{phrase(account or ('filter',))} has halted: it was built with halt=True, and has "
            f"refused a message ({reason}); build it with halt=False to go on after a refusal"
        )
        self.account, self.reason, self.spent, self.asked = account, reason, spent, asked


class ClosedChildError(RefusalError):
    """A child that excludes others was closed by another launch or answer of its tree."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"this child was closed by another launch or answer: {reason}; "
            "finish with it before you launch or query anything else"
        )
        self.reason = reason


class EndedError(RefusalError):
    """The handle was closed: by ``close()``, or as one run of a private selection.

    :ivar reason: why, and what to do
    """

    def __init__(self, reason: str = "it has ended") -> None:
        super().__init__(f"this handle is closed: {reason}")
        self.reason = reason


class InterruptedHandleError(RefusalError):
    """The mechanism was interrupted while it was answering, and is closed."""

    fixed = (
        "an interrupt, such as Ctrl-C, stopped this mechanism in the middle of an "
        "answer or an update, so its state is unknown; it is closed and its cost stays "
        "charged; launch another"
    )


class NativeConstructorError(InvalidValueError, OpenDPException):
    """A constructor of OpenDP refused its arguments.

    :ivar constructor: its name
    """

    def __init__(self, constructor: str, given: str, reason: str) -> None:
        super().__init__(f"{constructor} of OpenDP refuses {given}: {reason}")
        self.constructor = constructor


class MechanismError(ConcurrentError, OpenDPException):
    """A mechanism has failed, and the owner of the data hides errors from analysts.

    The exception is always the same. It has no cause, context or frames of the mechanism.
    """

    fixed = (
        "the mechanism has failed; the reason is hidden from analysts, because it may "
        "depend on the data, and is in the owner's log; the cost of the mechanism "
        "stays charged"
    )


class ForkedError(RefusalError):
    """The process was forked; its queryables can be used in the parent process only."""

    fixed = (
        "this process was forked from the process that holds the data; a copied "
        "queryable would repeat its noise and keep an account of its own; query it in "
        "the original process, or launch a mechanism in this one"
    )


class DataSourceError(RefusalError):
    """A file that the data are scanned from is missing. This is seen before the charge."""

    charged = False

    fixed = (
        "a file that the LazyFrame is scanned from was not found; nothing was charged; put the "
        "file back, or open the data where the files are"
    )


class CollectedError(RefusalError):
    """A released frame was collected before. Its plan would draw fresh noise without a charge."""

    fixed = (
        "the released frame is exhausted, because it was collected before; keep the DataFrame "
        "that collect() returned, or release the query again, which is charged again"
    )


class TooFewRowsError(ConcurrentError, ValueError):
    """Noisy counts are too small to find bounds of a column. This is an answer, and is charged."""

    charged = True

    def __init__(self, threshold: float, alpha: float) -> None:
        super().__init__(
            f"too few rows to tell bounds: no noisy count is above {threshold}, which a count "
            f"of no rows is with probability at most {alpha}; what it cost stays charged; pass "
            "bounds that are public, or query with a larger privacy loss or alpha"
        )
        self.threshold, self.alpha = threshold, alpha


class TableError(ConcurrentError, OpenDPException):
    """An engine could not run a statement on a table. Always the same, whatever the data are."""

    fixed = (
        "the engine could not answer the statement; why is kept from analysts, as it may tell "
        "of the data, and is in the log of the owner (opendp_concurrent.tables); what it cost "
        "stays charged"
    )


class MessageLimitError(RefusalError):
    """The mechanism was built for a limited number of messages, and has answered them."""

    def __init__(
        self, limit: int, what: str = "messages", more: str = "a larger max_messages"
    ) -> None:
        super().__init__(
            f"the mechanism has answered {limit} of {limit} {what}; "
            f"build it with {more}, or launch another"
        )
        self.limit = limit


class StreamError(RefusalError):
    """An update has the wrong step, or is beyond the horizon; nothing changed."""


class StreamHaltedError(RefusalError):
    """The continual mechanism has halted: an update was invalid or failed, or it was saved."""

    fixed = (
        "the continual mechanism has halted: an update was not an item of its stream "
        "(several items go to update_all), or failed, or its state was saved to "
        "continue elsewhere; chain the mechanism with a clamp or a filter of the "
        "stream, and launch it again"
    )


class PostprocessorError(ConcurrentError, OpenDPException):
    """A postprocessor (person in the middle) broke the protocol. Its state did not change."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the postprocessor failed: {reason}")
        self.reason = reason


class BlockExceededError(BudgetExceededError):
    """The launch would take the privacy loss of a block of the data above its budget.

    No block was charged. ``spent`` and ``remaining`` are those of ``block``.

    :ivar block: key of the block; of several that refuse, the one that was added first
    """

    block: Key = None

    @classmethod
    def of(cls, refusal: BudgetExceededError, block: Key) -> BlockExceededError:
        """Return the refusal of one block."""
        found = cls(refusal.spent, refusal.asked, refusal.remaining, d_out=refusal.d_out)
        found.block = block
        return found

    def with_account(
        self, account: tuple[str, ...], d_in: Distance, measure: str, accumulator: str
    ) -> BudgetExceededError:
        """Return this refusal with the account and the block that refused."""
        path = (*account, f"block {shown(self.block)}")
        return super().with_account(path, d_in, measure, accumulator)


class SharesUsedError(RefusalError, ValueError):
    """A context was split into shares, and all of them are used."""

    charged = False

    fixed = (
        "the privacy loss of the context is exhausted: all shares of it are used; split it "
        "over more queries, or leave the split out"
    )


class LedgerError(ConcurrentError):
    """A ledger could not be read, or a charge could not be written. The mechanism did not run."""


class LedgerMismatchError(LedgerError):
    """A ledger was opened with terms that differ from its own; nothing was charged.

    :ivar name: the argument that differs
    :ivar recorded: its value in the ledger
    :ivar given: its value in this call
    """

    charged = False

    def __init__(self, name: str, recorded: object, given: object) -> None:
        super().__init__(
            f"{name} does not match: the ledger has {recorded}, given was {given}; "
            + (
                "check the spelling; opendp_concurrent.ledger.datasets returns all names"
                if name == "dataset"
                else "use the recorded terms, or create another ledger"
            )
        )
        self.name, self.recorded, self.given = name, recorded, given


class UnregisteredError(LedgerError):
    """A ledger has a value of another package whose class is not registered in this process.

    :ivar tag: tag of the value
    """

    charged = False

    def __init__(self, tag: str) -> None:
        super().__init__(
            f"the ledger has a value with the tag {tag!r}, and no class is registered for this tag "
            f"in this process: import the package that defines it, or call "
            "opendp_concurrent.extend.register, before you open the ledger"
        )
        self.tag = tag


class LedgerDamagedError(LedgerError):
    """A ledger is inconsistent: it was edited or cut, or it is an older copy."""

    def __init__(
        self,
        what: str,
        advice: str = "the ledger was edited, damaged, or replaced by another copy: it accepts no "
        "charge; restore the newest copy",
    ) -> None:
        super().__init__(f"{what}; {advice}")


class UnsupportedEventError(InvalidValueError):
    """The privacy loss of an event of dp-accounting is not known here.

    :ivar event: the event, or the one inside it, that is not supported
    """

    def __init__(self, message: str, event: Any) -> None:
        super().__init__(message)
        self.event = event
