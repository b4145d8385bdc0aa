"""Budgets that survive the process and are shared between processes. Needs the extra ``ledger``.

* Call :func:`create_ledger` once; call :func:`open_ledger` from then on. Opening a ledger that does
  not exist is an error, because a mistyped name must not start a new budget.
* Pass the ledger to ``make_concurrent_filter`` or ``make_concurrent_odometer``. Each launch is then
  decided on the charges in the ledger. Its charge is durable before its mechanism runs.
* The ledger only appends entries. Each entry contains the hash of the entry before it.

Read ``book.py`` first: it has the launch. ``encoding.py`` and ``charges.py`` say what is
written of each value, ``backends.py``, ``store.py`` and ``schema.py`` have the database,
``audit.py`` replays charges, ``ledger.py`` and ``report.py`` have what an owner uses.
"""

try:
    import sqlalchemy as _sqlalchemy
except ImportError as error:
    raise ImportError(
        "a ledger needs SQLAlchemy, which the extra named ledger installs; from a clone: "
        "pip install -e '.[ledger]'",
        name="sqlalchemy",
    ) from error

from .audit import LimitSummary, Summary
from .encoding import Entry, register_tag
from .ledger import SqlLedger, create_ledger, datasets, open_ledger
from .report import Line, has_blocks, height_of, in_words, spending

__all__ = [
    "Entry",
    "LimitSummary",
    "SqlLedger",
    "Summary",
    "create_ledger",
    "datasets",
    "open_ledger",
]
