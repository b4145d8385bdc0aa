"""Create and open ledgers; the ledger of a dataset, and its charges as events of dp-accounting.

A d_mid is a certificate, so the event of a mechanism that attains it is an upper bound for the
mechanism that was launched. The measure knows the mechanism that attains it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, cast

from .. import _checks as checks
from .._checks import Text, checked, instance, optional, text
from .._opendp import uninterruptible
from ..accounting import Terms, label_text
from ..errors import Argument, InvalidTypeError, InvalidValueError, LedgerDamagedError, LedgerError
from ..measures import by_tag
from . import schema as tables
from .audit import Audited, Entries, KeptState, Known, Summary, audit, audit_later, milestone
from .book import Seen, SqlBook
from .charges import Limits, first_record, read_terms, require_same, write_terms
from .encoding import Entry, empty_total, first_hash
from .report import report_of
from .store import Store

if TYPE_CHECKING:
    from typing_extensions import Self


def events(terms: Terms | None, d_mids: list[Any]) -> Any:
    """Return a ``ComposedDpEvent`` with one event for each d_mid."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError(
            "to_dp_events needs dp-accounting; install opendp-concurrent[events]",
            name="dp_accounting",
        ) from error
    if terms is None:
        return dp_event.ComposedDpEvent([])
    why_not = getattr(type(terms.accumulator), "why_no_events", "")
    if why_not:
        raise InvalidTypeError(why_not)
    measure = by_tag(terms.measure)
    if measure is None:  # of another package, which is not registered here
        return dp_event.ComposedDpEvent([dp_event.UnsupportedDpEvent() for _ in d_mids])
    return dp_event.ComposedDpEvent([measure.event(dp_event, one) for one in d_mids])


def path_of(**argument: Any) -> tuple[str, ...]:
    """Return the labels of limits, from the outermost one, or raise."""
    ((name, given),) = argument.items()
    labels = (given,) if isinstance(given, str) else checks.sequence("labels", **argument)
    return tuple(text(**{name: one}) for one in labels)


def counts_by_name(**argument: Any) -> dict[str, int]:
    """Return how many there are of each name, or raise."""
    ((name, _),) = argument.items()
    found = checks.mapping("names to numbers", **argument)
    return {text(**{name: one}): checks.whole(**{name: n}) for one, n in found.items()}


_NOTHING: Mapping[str, int] = MappingProxyType({})


class SqlLedger:
    """A durable budget, from :func:`create_ledger` or :func:`open_ledger`.

    Pass it to ``make_concurrent_filter`` or ``make_concurrent_odometer``. Several filters and
    odometers with the same terms, in any number of threads and processes, share the budget.

    :ivar dataset: name of the dataset
    :ivar read_only: whether launches are refused
    """

    def __init__(
        self, store: Store, dataset: str, audited: Audited | None = None, read_only: bool = False
    ) -> None:
        self._store, self.dataset, self.read_only = store, dataset, read_only
        self._known: Known | None = None  # the audited state
        self._seen = Seen()
        self._kept = KeptState(store, dataset, 0 if audited is None else audited.first.sequence)
        self._indexed = False  # whether labels are, as far as this process may do it
        if audited is not None and audited.terms is not None:
            self._known = audited.newest
            self._seen.see(*audited.newest[:2])
            if not read_only:
                self._kept.pass_by(audited.newest, audited.terms)

    @checked(terms=instance(Terms))
    def book(self, terms: Terms) -> SqlBook:
        """Open the budget under ``terms``. The first use writes the terms to the ledger.

        :raises LedgerMismatchError: if ``terms`` are not the written terms
        :raises LedgerDamagedError: if the ledger is inconsistent
        :raises LedgerError: if the ledger is read-only
        """
        if self.read_only:
            raise LedgerError(
                f"ledger {self._store.name} was opened with read_only=True: open it without "
                "read_only to launch on it"
            )
        text = write_terms(terms)
        with self._store.writing({}) as (driver, _):
            connection = driver.connection
            row = connection.execute(tables.LOCK_BUDGET, {"of": self.dataset}).one_or_none()
            if row is None:
                raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
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
                text, terms = row.terms, read_terms(row.terms)
        first = Known(0, first_hash(self.dataset, text), empty_total(terms), Limits())
        known = first if self._known is None else self._known
        return SqlBook(self._store, self.dataset, terms, known.copied(), self._seen, self._kept)

    @checked
    def summary(self, anchor: Text | None = None, *, progress: bool = False) -> Summary:
        """Read all charges, check that they are consistent, and return the state of the budget.

        :param anchor: anchor of an earlier summary; the ledger must contain its charge
        :param progress: show a bar, if tqdm is installed (extra ``progress``)
        :return: a :class:`Summary`
        :raises LedgerDamagedError: naming what is inconsistent
        :raises InvalidValueError: if ``anchor`` is not an anchor
        """
        return self._audit(anchor, progress).summary()

    @checked(limit=optional(path_of))
    def entries(
        self, *, limit: str | Sequence[str] | None = None, label: Text | None = None
    ) -> Sequence[Entry]:
        """Return charges in order, after the checks of :meth:`summary` on all charges.

        They are read from the ledger a page at a time, whenever they are used, as long as the
        ledger is open. Charges that are written later are not among them.

        :param limit: label of a limit directly below the budget (:func:`.make_limited`), or the
            labels of the limits from the outermost one to this one; then only charges below it
        :param label: then only charges with this label (:func:`.labelled`)
        :return: an :class:`Entry` for each charge; ``list(...)`` reads them once and keeps them;
            ``pandas.DataFrame(...)`` makes a frame of them
        :raises LedgerDamagedError: naming what is inconsistent
        :raises InvalidTypeError, InvalidValueError: naming the argument

        :example:

        >>> import tempfile
        >>> from opendp_concurrent.ledger import create_ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        >>> odometer = oc.make_concurrent_odometer(*space, dp.max_divergence())
        >>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
        >>> with create_ledger(folder.name + "/budget.db", dataset="survey") as ledger:
        ...     root = oc.make_concurrent_filter(odometer, 1, 1.0, ledger=ledger)([1, 2, 3])
        ...     with oc.labelled("report"):
        ...         release = root(count)
        ...     release = root(count)
        ...     [(entry.sequence, entry.d_mid) for entry in ledger.entries(label="report")]
        [(1, 0.25)]
        >>> folder.cleanup()
        """
        path: Any = () if limit is None else limit

        def wanted(entry: Entry) -> bool:
            return entry.limit[: len(path)] == path and label in (None, entry.label)

        return self._listed(self._audit(None), wanted if path or label is not None else None)

    @checked(label=label_text)
    def charged(self, label: str) -> bool:
        """Return whether there is a charge with a label (:func:`.labelled`), in O(log n).

        Use this after an error whose ``charged`` is None (:func:`.errors.charged`). It waits for a
        launch that is being written, so the answer holds for all launches that began before.
        Unlike :meth:`entries`, it does not check that the charges are consistent.

        The first call adds an index to the database, if it may; without it, a call reads all labels
        of the budget. Each launch then also writes to the index. A ledger that is read-only is
        read as it is.

        :param label: the whole label
        :raises LedgerError: if the ledger cannot be read
        :raises InvalidTypeError, InvalidValueError: naming the argument

        :example:

        >>> import tempfile
        >>> from opendp_concurrent.ledger import create_ledger
        >>> folder = tempfile.TemporaryDirectory()
        >>> with create_ledger(folder.name + "/budget.db", dataset="survey") as ledger:
        ...     ledger.charged("alice/1")
        False
        >>> folder.cleanup()
        """
        start = tables.START
        values = {"of": self.dataset, "of_start": self.dataset[:start]}
        values |= {"label": label, "label_start": label[:start]}
        if self.read_only:
            with self._store.reading() as connection:
                return bool(connection.execute(tables.HAS_LABEL, values).scalar_one())
        if not self._indexed:
            tables.index_labels(self._store)
            self._indexed = True
        with self._store.writing(values, tables.LOCK_HEAD, tables.HAS_LABEL) as (_, found):
            if not found[0]:
                raise LedgerDamagedError(f"the budget of {self.dataset!r} is gone")
        return bool(found[1][0][0])

    @checked
    def read(self, anchor: Text | None = None) -> tuple[Summary, Sequence[Entry]]:
        """Return :meth:`summary` and :meth:`entries` of the same moment.

        :param anchor: anchor of an earlier summary; the ledger must contain its charge
        :return: the summary, and an :class:`Entry` for each charge
        :raises LedgerDamagedError: naming what is inconsistent
        :raises InvalidValueError: if ``anchor`` is not an anchor
        """
        audited = self._audit(anchor)
        return audited.summary(), self._listed(audited)

    def _listed(
        self, audited: Audited, wanted: Callable[[Entry], bool] | None = None
    ) -> Sequence[Entry]:
        return Entries(self._store, self.dataset, audited.first, audited.newest, wanted)

    @checked(refused=counts_by_name)
    def report(self, refused: Mapping[str, int] = _NOTHING) -> str:
        """Return an HTML page for people: what is spent, by whom, and what remains.

        The page has the cap, the limits, the blocks, the labels, the last charges, and what
        remains. It requests nothing from anywhere, and may be kept as a file. Like the ledger, it
        has what was asked, when, and by whom, but no data.

        :param refused: a ledger records charges only; a server that counts the requests which it
            refused passes their number by name, such as ``{"alice": 3}``
        :return: HTML
        :raises LedgerDamagedError: naming what is inconsistent
        :raises LedgerError: if the ledger cannot be read
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        audited = self._audit(None)
        return report_of(audited, list(self._listed(audited)), refused)

    def _repr_html_(self) -> str:
        """Return the report for a notebook, in a frame: its styles change nothing else there."""
        try:
            page = self.report()
        except LedgerError as error:
            page = f"<p>{escape(repr(self))}</p><p>{escape(str(error))}</p>"
        return (
            f'<iframe srcdoc="{escape(page)}" sandbox title="privacy budget" '
            'style="width:100%;height:40rem;border:0"></iframe>'
        )

    @uninterruptible
    def _audit(self, anchor: str | None, progress: bool = False) -> Audited:
        known = [] if anchor is None else [milestone(anchor)]
        known += self._seen.milestones()
        with self._store.snapshot() as connection:
            audited = audit(connection, self.dataset, known, progress=progress)
        self._seen.see(*audited.newest[:2])
        return audited

    def to_dp_events(self) -> Any:
        """Return the charges as events of dp-accounting, in order.

        Each event is the worst mechanism with the privacy loss of the charge, so it is an upper
        bound for the mechanism that was launched. Pure DP: the discrete Laplace mechanism at
        distance 1, which is randomized response [KOV15]. Zero-concentrated DP: a ``ZCDpEvent``.
        Gaussian DP: the Gaussian mechanism. f-DP: these, and products of Gaussian, Laplace and
        discrete Laplace mechanisms. (ε, δ)-DP: an ``EpsilonDeltaDpEvent``, which dp-accounting has
        after version 0.6. For other losses dp-accounting has no such event; they become an
        ``UnsupportedDpEvent``, which its accountants refuse. This needs dp-accounting, from the
        extra ``events``.

        An analyst may choose the losses in a ledger adaptively. A sum of Rényi or concentrated
        losses is a bound for adaptive choices. The privacy loss distribution of the composition is
        not: it is a bound only for losses that were fixed in advance.

        :return: a ``dp_accounting.ComposedDpEvent``
        :raises LedgerDamagedError: naming what is inconsistent
        """
        summary, entries = self.read()
        return events(summary.terms, [entry.d_mid for entry in entries])

    def close(self) -> None:
        """Close all connections. Filters and odometers on this ledger then refuse launches."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqlLedger({self._store.name!r}, dataset={self.dataset!r})"


# Create and open ledgers.


@checks.guard("path", None, 3, b"a.db", "", "a\0b", "\ud800")
def path_or_url(name: str, value: Argument) -> str | os.PathLike[str]:
    """Return a path or a URL, or raise."""
    if not isinstance(value, (str, os.PathLike)):
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
            f"{name} ({checks.shown(value)}) must be a valid path or URL: 1 to 4,096 characters of "
            "Unicode, without NUL"
        )
    return str.__str__(plain) if isinstance(value, str) else cast("os.PathLike[str]", value)


_LONGEST = 1e6  # seconds to wait: databases count milliseconds in 32 bits

Place = Annotated[str | os.PathLike[str], path_or_url]
Dataset = Annotated[
    str,
    checks.text.narrowed(
        lambda name: bool(name) and name.isprintable(),
        "be a name that is printable, because errors contain it",
        "",
        "a\nb",
        kind="name of a dataset",
    ),
]
Wait = Annotated[
    float,
    checks.non_negative.narrowed(lambda wait: wait <= _LONGEST, f"be at most {_LONGEST:g} s"),
]


@checked
@uninterruptible
def create_ledger(path_or_url: Place, dataset: Dataset, *, wait: Wait = 60.0) -> SqlLedger:
    """Make a ledger for the privacy budget of a dataset.

    Call this once per dataset; later, call :func:`open_ledger`. One file or database may have the
    budgets of several datasets.

    :param path_or_url: path of an SQLite file on a local disk; for several machines, the URL of a
        PostgreSQL database, such as ``"postgresql+psycopg://user@host/database"``
    :param dataset: name of the dataset; :func:`open_ledger` needs the same name
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerError: if the dataset has a ledger there, or the ledger cannot be written
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
    store = Store(path_or_url, create=True, wait=wait)
    try:
        tables.make_tables(store)
        with store.writing({}) as (driver, _):
            store.lock_all(driver)
            connection = driver.connection
            if connection.execute(tables.READ_BUDGET, {"of": dataset}).first() is not None:
                raise LedgerError(
                    f"ledger {store.name} has a budget of {dataset!r} already; call open_ledger"
                )
            head = first_hash(dataset, None)
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
        store.discard()
        raise
    return SqlLedger(store, dataset)


@checked
@uninterruptible
def open_ledger(
    path_or_url: Place,
    dataset: Dataset,
    *,
    anchor: Text | None = None,
    read_only: bool = False,
    wait: Wait = 60.0,
) -> SqlLedger:
    """Open a ledger that :func:`create_ledger` made, and check that it is consistent.

    :param path_or_url: path or URL that was given to :func:`create_ledger`
    :param dataset: name that was given to :func:`create_ledger`
    :param anchor: anchor of an earlier ``ledger.summary()``, kept elsewhere; the ledger must
        contain its charge. Only an anchor detects that this is an older copy, that somebody removed
        the newest charges, or wrote a new ledger
    :param read_only: whether to refuse launches
    :param wait: seconds to wait for other processes before a launch fails
    :return: a ledger, for the argument ``ledger`` of ``make_concurrent_filter``
    :raises LedgerMismatchError: if there is no budget of that dataset
    :raises LedgerDamagedError: if the ledger is inconsistent
    :raises LedgerError: if there is no ledger, or it has another schema
    :raises UnregisteredError: if the ledger has a value whose class is not registered
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
    milestones = [] if anchor is None else [milestone(anchor)]
    store = Store(path_or_url, create=False, wait=wait)
    try:
        tables.require_dataset(store, dataset)
        store.prepare(read_only=read_only)
        with store.snapshot() as connection:
            # an anchor is a reason to check that all charges lead to it
            read = audit_later if anchor is None else audit
            audited = read(connection, dataset, milestones)
    except BaseException:
        store.close()
        raise
    return SqlLedger(store, dataset, audited, read_only)


@checked
@uninterruptible
def datasets(path_or_url: Place, *, wait: Wait = 60.0) -> list[str]:
    """Return the names of the datasets in a ledger.

    :param path_or_url: path or URL that was given to :func:`create_ledger`
    :param wait: seconds to wait for other processes
    :return: sorted names
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
    with closing(Store(path_or_url, create=False, wait=wait)) as store:
        return tables.names_of_datasets(store)
