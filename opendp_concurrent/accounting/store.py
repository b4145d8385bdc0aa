"""Charges that a ledger keeps: what is written, and the stores that decide by what is written.

A ledger keeps a budget that several processes share, and that outlives them. A launch takes a turn
at its book: it reads all charges so far, of every process, decides, and writes its own charge. The
turn ends when the charge is durable. Only then does the mechanism run, and the accounts take over
the state of the ledger. The ledger keeps the root and the limits below it, which are charged
together.

A limit is the bound of an odometer below another account, under a label that names it. It is
identified by its path: its label, after the labels of the limits that it is below. Its terms are
fixed when it is opened. Whoever opens it again must give the same terms.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from .._opendp import Lock
from ..errors import Distance, InvalidTypeError, LimitMismatchError, rounded, shown
from ..measures import Accumulator, AccumulatorState
from .account import Account, History, Launch
from .lifecycle import Lifecycle, current_label
from .price import same_distance


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a budget. A ledger refuses to continue a budget under other terms.

    :ivar measure: name of the privacy measure, with its parameters
    :ivar accumulator: the kind of accumulator that adds up the losses
    :ivar metric: metric that d_in is a distance of
    :ivar d_in: distance between neighbouring inputs
    :ivar d_out: bound on the total loss; None for an odometer
    """

    measure: str
    accumulator: Accumulator
    metric: str
    d_in: Distance
    d_out: Any


@dataclass(frozen=True, slots=True)
class LimitCharge:
    """What a launch costs a limit that it is below.

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: the terms of the limit
    :ivar d_mid: privacy loss of the launch at the d_in of the limit
    """

    path: tuple[str, ...]
    terms: Terms
    d_mid: Any


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of one launch. It is written before the mechanism runs.

    :ivar d_mid: privacy loss of the launch at the d_in of the terms
    :ivar mechanism: description of the mechanism, from its constructor
    :ivar label: label that the analyst gave to the launch
    :ivar limits: what it costs the limits that it is below, from the outermost to the innermost
    """

    d_mid: Any
    mechanism: str
    label: str
    limits: tuple[LimitCharge, ...] = ()


class Kept(Protocol):
    """A total that all processes share: that of a budget, or of a limit below it."""

    @property
    def dataset(self) -> str:
        """Name of the budget in the ledger."""

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the book.

        :raises ForkedError: there; call before taking a lock, which a fork may have left held
        """

    def read(self) -> AccumulatorState[Any]:
        """Return the accumulator of all charges so far, never fewer than were read before.

        :raises LedgerError: if it cannot be read
        """


class LimitBook(Kept, Protocol):
    """A limit, shared by all processes that have it open.

    :ivar path: labels of the limits from the outermost one to this one
    :ivar terms: its terms
    """

    path: tuple[str, ...]
    terms: Terms


class Book(Kept, Protocol):
    """One budget, shared by all processes that have it open."""

    def limit(self, path: tuple[str, ...], terms: Terms) -> LimitBook:
        """Open a limit below the budget. Its first charge fixes its terms."""

    def settle(self, launch: Launch, charge: Charge) -> Lifecycle | None:
        """Decide on launches in a turn, and charge them when their charges are durable.

        :return: the lifecycle of the child; None if the launches must be planned again
        :raises BudgetExceededError: if an account refuses
        :raises LedgerError: if the charge could not be written; the mechanism must not run
        """


class Ledger(Protocol):
    """Where charges are written."""

    def book(self, terms: Terms) -> Book:
        """Open the budget under ``terms``. The first process to open it fixes its terms.

        :raises LedgerError: if the budget has other terms
        """


class _Shared:
    """What the stores of a budget and of a limit below it have in common.

    :param book: of the budget or limit
    """

    recorded: ClassVar[bool] = True
    what: ClassVar[str] = "budget in a ledger"
    prices: ClassVar[History | None] = None  # other processes charge it too

    def __init__(self, book: Kept) -> None:
        self._kept = book
        self.lock: Lock | None = None

    @property
    def dataset(self) -> str:
        """Name of the budget in the ledger; empty for a limit."""
        return self._kept.dataset

    @property
    def launches(self) -> int:
        """Number of charges at the last turn or read."""
        return self._kept.launches

    def read(self) -> AccumulatorState[Any]:
        """Return the accumulator of all charges so far, of every process."""
        return self._kept.read()

    def refresh(self, account: Account) -> None:
        """Read the ledger, and let the account follow it."""
        self._kept.check_process()
        with account.lock:
            account.follow(self.read())


class LimitInLedger(_Shared):
    """The charges below a limit. They are decided in turns of the budget."""

    def __init__(self, book: LimitBook) -> None:
        super().__init__(book)
        self.path, self.terms = book.path, book.terms

    def charge(self, launch: Launch) -> Lifecycle | None:
        """Refuse: a limit is no root."""
        raise AssertionError


class InLedger(_Shared):
    """The charges of a budget, for the root of a tree of accounts."""

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        self._book = book
        self.lock = Lock()  # whoever leads a turn charges the accounts of all trees

    def open_limit(self, account: Account, path: tuple[str, ...], terms: Terms) -> LimitInLedger:
        """Open a limit on the budget, or on another limit."""
        if not account.store.recorded:
            raise InvalidTypeError(
                "a limit in a ledger must be opened on the handle with the ledger, or on that of "
                "another limit: a child odometer has no name by which a later process finds it"
            )
        return LimitInLedger(self._book.limit(path, terms))

    def charge(self, launch: Launch) -> Lifecycle | None:
        """Charge the launch in a turn of the ledger, or raise."""
        self._kept.check_process()
        chain, prices = launch.chain, launch.prices  # untrusted maps are read here, before locks
        limits = tuple(
            LimitCharge(store.path, store.terms, chain[place].counted(prices[place]))
            for place, store in limits_of(chain)
        )
        d_mid = chain[-1].counted(prices[-1])
        charge = Charge(d_mid, prices[-1].mechanism, current_label(), limits)
        return self._book.settle(launch, charge)


def open_limit(account: Account, path: tuple[str, ...], terms: Terms) -> LimitInLedger | None:
    """Return what keeps a limit below an account; None if no ledger keeps its tree.

    :raises InvalidTypeError: if a ledger keeps the tree, but not this account
    """
    root = account.root_store
    return root.open_limit(account, path, terms) if isinstance(root, InLedger) else None


def limits_of(chain: tuple[Account, ...]) -> list[tuple[int, LimitInLedger]]:
    """Return the places and stores of limits, from the outermost one to the innermost."""
    stores = [(place, one.store) for place, one in enumerate(chain)]
    return [(place, one) for place, one in reversed(stores) if isinstance(one, LimitInLedger)]


_FIELDS = (  # of the terms, and the argument that each of them comes from
    ("measure", "output_measure"),
    ("metric", "input_metric"),
    ("accumulator", "accumulator"),
    ("d_in", "d_in"),
    ("d_out", "d_out"),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound below another account.

    :ivar label: names it among the limits below the same account
    :ivar terms: what it bounds, at which d_in, and how losses add up
    """

    label: str
    terms: Terms

    def __str__(self) -> str:
        return f"{shown(self.label)}, {rounded(self.terms.d_out)} at d_in={shown(self.terms.d_in)}"


def require_same_terms(path: tuple[str, ...], before: Terms, now: Terms) -> None:
    """Check that a limit that was opened before is opened again under its own terms.

    :raises LimitMismatchError: naming the limit and the first argument that differs
    """
    for field, argument in _FIELDS:
        one, other = getattr(before, field), getattr(now, field)
        if not same_term(field, one, other):
            raise LimitMismatchError(path, argument, shown(one), shown(other))


def same_term(field: str, one: Any, other: Any) -> bool:
    """Return whether a field of terms has the same value in both.

    Distances are compared as accounts compare them, except that 1 and 1.0 are the same number.
    """
    if field == "d_in" and not {type(one), type(other)} <= {int, float}:
        return same_distance(one, other)
    try:
        return bool(one == other)
    except ValueError:  # of arrays
        return same_distance(one, other)
