"""Ledgers as users see them: made once, then opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

from .. import checks
from ..accounts.charge import Terms
from ..checks import checked, finite, flag, optional, text
from ..errors import InvalidTypeError, InvalidValueError, LedgerDamagedError, LedgerError
from . import tables
from .audit import Summary, audit, milestone
from .book import SqlBook
from .chain import first_hash
from .copies import backup, claim, claim_new, require_live, restore, standing
from .entries import Entry
from .events import events
from .follow import Known
from .noted import Place
from .schema import make_tables, names_of_datasets, require_dataset
from .seen import Seen
from .store import Store
from .terms import first_record, read_terms, require_same, write_terms
from .wire import NEWEST

if TYPE_CHECKING:
    from typing_extensions import Self


_LONGEST = 1e6  # seconds to wait: databases count milliseconds in 32 bits


def _place(**argument: Any) -> str | os.PathLike[str]:
    """Return a path or a URL that can be one, or raise."""
    ((name, value),) = argument.items()
    if not checks.is_a(value, str, os.PathLike):
        raise InvalidTypeError(
            f"{name} must be a path or a URL, found {type(value).__name__}; "
            "pass for example pathlib.Path('budget.db')"
        )
    try:
        plain = os.fspath(value)
        plain.encode()
        usable = type(plain) is not bytes and 0 < len(plain) <= 4096 and "\0" not in plain
    except Exception:
        usable = False
    if not usable:
        raise InvalidValueError(
            f"{name} ({checks.shown(value)}) must be a path that can be one: not empty, of at "
            "most 4,096 letters of Unicode, without NUL"
        )
    return str.__str__(plain) if checks.is_a(value, str) else cast("os.PathLike[str]", value)


class SqlLedger:
    """A budget that is written down. Made by :func:`create_ledger` and :func:`open_ledger`.

    Handed to ``make_concurrent_filter`` or ``make_concurrent_odometer``; may be handed to several,
    in as many threads and processes as one likes, under the same terms: they share the budget.

    :ivar dataset: what the budget is for
    :ivar read_only: whether nothing can be launched on it
    """

    def __init__(
        self, store: Store, dataset: str, known: Known | None = None, read_only: bool = False
    ) -> None:
        self._store, self.dataset, self.read_only = store, dataset, read_only
        self._known, self._seen = known, Seen()  # where it was when it was audited, and since
        if known is not None:
            self._seen.see(known.sequence, known.head)

    @checked(terms=checks.instance(Terms))
    def book(self, terms: Terms) -> SqlBook:
        """Open the budget under ``terms``: the first to come settles them.

        :raises LedgerMismatchError: if they are not those that were settled
        :raises LedgerDamagedError: if what is written does not fit together
        :raises LedgerError: if it was opened to be read, or is a copy
        """
        if self.read_only:
            raise LedgerError(
                f"ledger {self._store.name} was opened with read_only=True: open it without, to "
                "launch on it"
            )
        text, form = write_terms(terms), NEWEST
        with self._store.writing({}) as (line, _):
            connection = line.connection
            row = connection.execute(tables.LOCK_BUDGET, {"of": self.dataset}).one_or_none()
            if row is None:
                raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
            claim(self._store, line, self.dataset, Place(row.sequence, row.head))
            if row.terms is None:
                settled = {
                    "of": self.dataset,
                    "terms": text,
                    "head": first_hash(self.dataset, text),
                    "record": first_record(terms),
                }
                connection.execute(tables.SETTLE_TERMS, settled)
            else:
                require_same(row.terms, terms)
                text, (terms, form) = row.terms, read_terms(row.terms)
        first = Known(0, first_hash(self.dataset, text), terms.empty_total(), form)
        return SqlBook(self._store, self.dataset, terms, self._known or first, self._seen)

    @checked(anchor=optional(text))
    def summary(self, anchor: str | None = None) -> Summary:
        """Read the ledger whole, check that it fits together, and say where it stands.

        :param anchor: of an earlier summary, kept elsewhere: the ledger must go on from there
        :return: a :class:`Summary`
        :raises LedgerDamagedError: naming what does not fit
        :raises InvalidValueError: if ``anchor`` is none
        """
        return self._audit(anchor, None)

    def entries(self) -> list[Entry]:
        """Return all charges in order, after the same checks.

        :return: an :class:`Entry` for each
        :raises LedgerDamagedError: naming what does not fit
        """
        return self.read()[1]

    @checked(anchor=optional(text))
    def read(self, anchor: str | None = None) -> tuple[Summary, list[Entry]]:
        """Return :meth:`summary` and :meth:`entries`, of the same moment.

        :param anchor: of an earlier summary, kept elsewhere: the ledger must go on from there
        :return: the summary, and an :class:`Entry` for each charge
        :raises LedgerDamagedError: naming what does not fit
        :raises InvalidValueError: if ``anchor`` is none
        """
        found: list[Entry] = []
        return self._audit(anchor, found.append), found

    def _audit(self, anchor: str | None, tell: Callable[[Entry], object] | None) -> Summary:
        known = [] if anchor is None else [milestone(anchor)]
        known += [*self._seen.milestones(), *standing(self._store, self.dataset).milestones]
        with self._store.snapshot() as connection:
            summary = audit(connection, self.dataset, known, tell)[0]
        self._seen.see(summary.launches, summary.anchor.partition(":")[2])
        return summary

    @checked(target=_place)
    def backup(self, target: str | os.PathLike[str]) -> Summary:
        """Copy an SQLite ledger, with all of its budgets, to a new file.

        The copy has all that was charged up to some moment of the call, whoever launches meanwhile.
        It can be opened with ``read_only=True``; nothing can be launched on it until
        :func:`restore_ledger` makes it the ledger. Copying the file itself while somebody has it
        open may leave out newest charges, which SQLite keeps in a second file.

        :param target: path of the copy, where there is no file yet
        :return: the summary of this budget in the copy; keep its anchor
        :raises LedgerDamagedError: naming what does not fit, in the copy
        :raises LedgerError: if it cannot be written, or the ledger is on a server: use pg_dump
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        return backup(self._store, self.dataset, target)

    def to_dp_events(self) -> Any:
        """Return the charges as events of dp-accounting, one after the other.

        Each is the event of the worst mechanism that its privacy loss allows: what was launched is
        at most that. Pure DP: the discrete Laplace mechanism at distance 1, which is randomized
        response [KOV15]. Zero-concentrated DP: a ``ZCDpEvent``. Gaussian DP: the Gaussian
        mechanism. f-DP: these, and products of Gaussian, Laplace and discrete Laplace mechanisms.
        For others dp-accounting has no such event: they are an ``UnsupportedDpEvent``, which its
        accountants refuse. Needs dp-accounting, the extra ``events``.

        The losses of a ledger were chosen on the way. A bound that adds up Rényi or concentrated
        losses holds for them; the privacy loss distribution of the whole bounds nothing then, as
        it does only for losses that were fixed in advance.

        :return: a ``dp_accounting.ComposedDpEvent``
        :raises LedgerDamagedError: naming what does not fit
        """
        summary, entries = self.read()
        return events(summary.terms, [entry.d_mid for entry in entries])

    def close(self) -> None:
        """Close all connections. What was spawned with this ledger can launch nothing any more."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqlLedger({self._store.name!r}, dataset={self.dataset!r})"


@checked(path_or_url=_place, wait=finite)
def create_ledger(
    path_or_url: str | os.PathLike[str], dataset: str, *, wait: float = 60.0
) -> SqlLedger:
    """Make a ledger for the privacy budget of a dataset.

    Once: from then on it is opened by :func:`open_ledger`. One file, or one database, may hold the
    budgets of several datasets.

    :param path_or_url: path of an SQLite file, on a local disk; or for several machines the URL of
        a PostgreSQL database, such as ``"postgresql+psycopg://user@host/database"``
    :param dataset: name of the dataset: whoever opens the ledger must give the same
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerError: if the dataset has one there, or it cannot be written
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> with create_ledger(Path(folder.name) / "budget.db", dataset="survey 2026") as ledger:
    ...     ledger.summary().launches
    0
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    store = Store(path_or_url, create=True, wait=wait)
    try:
        make_tables(store)
        with store.writing({}) as (line, _):
            store.lock_all(line)
            connection = line.connection
            if connection.execute(tables.READ_BUDGET, {"of": dataset}).first() is not None:
                raise LedgerError(
                    f"ledger {store.name} has a budget of {dataset!r} already; open_ledger opens it"
                )
            head = first_hash(dataset, None)
            claim_new(store, line, dataset, Place(0, head))
            row = {
                "dataset": dataset,
                "created": datetime.now(timezone.utc).isoformat(timespec="microseconds"),
                "terms": None,
                "sequence": 0,
                "head": head,
                "record": None,
            }
            connection.execute(tables.budgets.insert(), row)
    except BaseException:
        store.close()
        raise
    return SqlLedger(store, dataset)


@checked(path_or_url=_place, anchor=optional(text), read_only=flag, wait=finite)
def open_ledger(
    path_or_url: str | os.PathLike[str],
    dataset: str,
    *,
    anchor: str | None = None,
    read_only: bool = False,
    wait: float = 60.0,
) -> SqlLedger:
    """Open a ledger that was made by :func:`create_ledger`, and check that it fits together.

    :param path_or_url: as it was created
    :param dataset: as it was created
    :param anchor: of an earlier ``ledger.summary()``, kept elsewhere: the ledger must go on from
        there. Only this notices that newest charges were cut off with all their traces, or that
        the whole was written anew
    :param read_only: to read it only, which can be done with a copy, too
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerMismatchError: if there is no budget of that dataset
    :raises LedgerDamagedError: if what is written does not fit together
    :raises LedgerError: if there is no ledger, it has another schema, or it is a copy
    :raises UnregisteredError: if it has a value whose class was not registered
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "budget.db"
    >>> create_ledger(path, dataset="survey 2026").close()
    >>> open_ledger(path, dataset="survey 2025")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.LedgerMismatchError: dataset does not match: the ledger has ...
    >>> open_ledger(path, dataset="survey 2026").close()
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    milestones = [] if anchor is None else [milestone(anchor)]
    store = Store(path_or_url, create=False, wait=wait)
    try:
        require_dataset(store, dataset)
        found = standing(store, dataset)
        if not read_only:
            require_live(store, dataset, found.live)
        store.prepare(read_only=read_only)
        with store.snapshot() as connection:
            known = audit(connection, dataset, [*milestones, *found.milestones])[1]
    except BaseException:
        store.close()
        raise
    return SqlLedger(store, dataset, known, read_only)


@checked(path=_place, anchor=optional(text), wait=finite)
def restore_ledger(
    path: str | os.PathLike[str], dataset: str, *, anchor: str | None, wait: float = 60.0
) -> Summary:
    """Make a copy of an SQLite ledger the ledger of a dataset: from then on it is launched on.

    For a backup, after the disk of the ledger was lost; for a ledger that was moved to another
    disk; for one whose file ``-anchors`` was removed. The copy is read whole first.

    What was charged after the copy was made is not in it, and stays spent. Restore the newest copy,
    and give the newest anchor that anybody has kept. And be sure that nobody launches on another
    copy: each would be a budget of its own.

    :param path: of the copy
    :param dataset: whose budget
    :param anchor: of the newest summary that was kept: the copy must have that charge. None if
        there is none, and you know otherwise that the copy has all charges
    :param wait: seconds to wait for other processes
    :return: where it stands
    :raises LedgerDamagedError: if it does not fit together, or lacks a charge that is known
    :raises LedgerError: if there is no ledger there, or it needs no restoring
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, open_ledger, restore_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> copy = Path(folder.name) / "copy.db"
    >>> with create_ledger(Path(folder.name) / "budget.db", dataset="survey 2026") as ledger:
    ...     anchor = ledger.backup(copy).anchor
    >>> open_ledger(copy, dataset="survey 2026")
    Traceback (most recent call last):
    ...
    opendp_concurrent.errors.LedgerError: ledger ...copy.db: the budget of 'survey 2026' is in a ...
    >>> restore_ledger(copy, dataset="survey 2026", anchor=anchor).launches
    0
    >>> open_ledger(copy, dataset="survey 2026").close()
    >>> folder.cleanup()
    """
    _check(dataset, wait)
    known = None if anchor is None else milestone(anchor)
    store = Store(path, create=False, wait=wait)
    try:
        require_dataset(store, dataset)
        if not store.embedded:
            raise LedgerError(
                f"ledger {store.name} is on a PostgreSQL server, where no copy is known to be one"
            )
        store.prepare()
        return restore(store, dataset, known)
    finally:
        store.close()


@checked(path_or_url=_place, wait=finite)
def datasets(path_or_url: str | os.PathLike[str], *, wait: float = 60.0) -> list[str]:
    """Return the names of the datasets whose budgets a ledger has.

    :param path_or_url: as it was created
    :param wait: seconds to wait for other processes
    :return: names, in order
    :raises LedgerError: if there is no ledger, or it has another schema
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from opendp_concurrent.ledger import create_ledger, datasets
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "budget.db"
    >>> create_ledger(path, dataset="survey 2026").close()
    >>> datasets(path)
    ['survey 2026']
    >>> folder.cleanup()
    """
    _check_wait(wait)
    store = Store(path_or_url, create=False, wait=wait)
    try:
        return names_of_datasets(store)
    finally:
        store.close()


def _check(dataset: Any, wait: Any) -> None:
    if type(dataset) is not str:
        raise InvalidTypeError(f"dataset must be a str, found {type(dataset).__name__}")
    if not dataset:
        raise InvalidValueError("dataset must not be empty; name what the budget is for")
    if not dataset.isprintable():
        raise InvalidValueError(
            f"dataset ({checks.shown(dataset)}) must be printable, as errors name it"
        )
    _check_wait(wait)


def _check_wait(wait: Any) -> None:
    if not checks.non_negative(wait=wait) <= _LONGEST:
        raise InvalidValueError(f"wait ({wait}) must be at most {_LONGEST:g} s")
