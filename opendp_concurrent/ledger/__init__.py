"""Budgets that survive the process and are shared between processes. Needs the extra ``ledger``.

* :func:`create_ledger` makes one, once; :func:`open_ledger` opens it from then on. A ledger that is
  not there is an error: a mistyped name must not be a fresh budget.
* It is handed to ``make_concurrent_filter`` or ``make_concurrent_odometer``, and is then what
  counts: every launch is decided on what it says, and durable before its mechanism runs.
* Entries are only ever appended, and each contains the hash of the one before.

Read ``book.py`` first: a turn is all there is to it. ``wire.py`` has what is written of each value.
"""

from __future__ import annotations

from . import _extra
from .audit import Summary
from .entries import Entry
from .ledger import SqlLedger, create_ledger, datasets, open_ledger, restore_ledger
from .outside import register

__all__ = [
    "Entry",
    "SqlLedger",
    "Summary",
    "create_ledger",
    "datasets",
    "open_ledger",
    "register",
    "restore_ledger",
]

del _extra
