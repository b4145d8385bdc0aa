"""What a query server needs beside a budget: answers by keys, handles by names, and JSON.

A repeated request has the key of the first one, and is charged once. A handle has a name that
nobody can guess, for clients who ask over a network.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from threading import local
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from .. import _checks as checks
from .. import errors
from .._opendp import Lock, interruptible, uninterruptible
from ..errors import InvalidTypeError, InvalidValueError, LedgerError, uncharged

if TYPE_CHECKING:
    from typing_extensions import Self


LOGGER = logging.getLogger("opendp_concurrent.serving")


class AnswerStore:
    """Answers of a server, by keys that its clients choose. Each is on disk when it is returned.

    A client that has no answer, because a connection or a process failed, repeats its request with
    the same key. It then gets the stored answer, and is not charged again: also if both requests
    arrive at once, and after a restart. The key is stored before the launch, and the answer before
    it is returned. If the process ends in between, the ledger says whether the key was charged: if
    it was not, the request is made; if it was, the answer is lost, and is never drawn again.

    Answers are kept for good. If the file is removed, or replaced by an older copy, its newest keys
    are not known: a repeated request is then launched, and charged, again. So keep and back up the
    file together with the ledger. Copy it while no process has it open: if the process that has it
    open reads the file by other means, the system gives up the lock of SQLite, and a second process
    could open it.

    :param path: an SQLite file, which is made if it is not there, for its owner only (mode 0600;
        the mode of a file that is there stays as it is). One process may have it open: to another
        one, requests that run would look lost
    :raises LedgerError: if the file cannot be opened, is another program's, or another process has
        it open

    :example:

    >>> import tempfile
    >>> from opendp_concurrent.serving import AnswerStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> with AnswerStore(folder.name + "/answers.db") as answers:
    ...     asked = dict(request="count", charged=lambda: False, lost="lost")
    ...     answers.once("alice/1", run=lambda: [41], **asked)
    ...     answers.once("alice/1", run=lambda: [43], **asked)
    [41]
    [41]
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._lock, self._process, self._here = Lock(), os.getpid(), local()
        self._waiting: deque[_Write] = deque()
        self._busy: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        try:
            path = checks.plain(os.fspath(path))
            if not isinstance(path, str):
                raise TypeError("it is not text")
            if path not in ("", ":memory:"):
                checks.make_private(os.path.realpath(path))
            self._connection = sqlite3.connect(
                path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                self._files = self._open()
            except BaseException:
                self._connection.close()
                raise
        except (sqlite3.Error, OSError, TypeError, ValueError) as error:
            raise LedgerError(
                f"answers in {checks.shown(path)} cannot be opened: {error}; pass the path of a "
                "file that no other process has open"
            ) from None
        _STORES.add(self)

    def _open(self) -> list[tuple[str, os.stat_result]]:
        """Lock the file, and return what the database consists of."""
        run = self._connection.execute
        ((_, _, file),) = run("PRAGMA database_list").fetchall()
        if not file:
            raise ValueError("it would be in memory")
        # first: so that no other process can open it as long as this one lives
        run("PRAGMA locking_mode=EXCLUSIVE")
        if run("SELECT 1 FROM sqlite_master WHERE tbl_name != 'answers'").fetchall():
            raise ValueError("it has tables of another program")
        run("PRAGMA journal_mode=WAL").fetchall()
        run("PRAGMA synchronous=FULL")
        run("PRAGMA fullfsync=ON")  # macOS: a plain fsync is not durable there
        run(
            "CREATE TABLE IF NOT EXISTS answers "
            "(name TEXT PRIMARY KEY, digest TEXT NOT NULL, answer TEXT)"
        )
        run("BEGIN EXCLUSIVE")
        run("SELECT name, digest, answer FROM answers LIMIT 0")
        run("COMMIT")
        files = [file, f"{file}-wal"]
        checks.warn_if_open(LOGGER, f"the answers in {file}", *files)
        return [(one, os.stat(one)) for one in files]

    @uninterruptible
    def once(
        self,
        key: str,
        request: Any,
        run: Callable[[], Any],
        *,
        charged: Callable[[], bool],
        lost: Any,
    ) -> Any:
        """Return the answer of a key, and call ``run`` only if no call of it was charged.

        Requests with one key wait for each other.

        :param key: names the request; put the client's name into it, or clients share answers
        :param request: what is asked, as a JSON value; its hash is stored
        :param run: launches once, and returns a JSON value. The label of its charge should tell the
            key. If it raises an error that says whether it is charged (:func:`.errors.charged`),
            this is believed, so it must not launch twice
        :param charged: returns whether the ledger has the charge of this request, such as ``lambda:
            ledger.charged(label)``; it is called only after a failure of which that is unknown
        :param lost: the JSON value that is stored and returned if the answer was charged and lost
        :return: a JSON value
        :raises KeyReusedError: if the key was used for another request
        :raises InvalidTypeError, InvalidValueError: naming the argument; if ``run`` or ``charged``
            calls ``once``, which would wait for itself; if ``run`` returns no JSON value, which may
            be charged
        :raises LedgerError: if the file cannot be read or written, or was removed or replaced, or
            the process was forked from the one that opened it. Unless the message says that nothing
            was launched, it may be charged; the next call tells
        :raises Exception: what ``run`` raises. If it was charged, the next call returns ``lost``
        """
        if os.getpid() != self._process:
            raise _not_launched(
                "these answers belong to the process that opened the file, and this process was "
                "forked from it; nothing was launched; ask the other process"
            )
        name = checks.text(key=key)
        checks.function(run=run)
        checks.function(charged=charged)
        digest = hashlib.sha256(_json(request=request).encode()).hexdigest()
        otherwise = _json(lost=lost)
        with self._lock:
            busy = self._busy.setdefault(name, Lock())
        if getattr(self._here, "runs", False):
            raise InvalidValueError("run and charged must not call once of the same AnswerStore")
        with busy:
            try:
                self._here.runs = True
                return self._once(name, digest, run, charged, otherwise)
            finally:
                self._here.runs = False

    def _once(
        self, name: str, digest: str, run: Callable[[], Any], charged: Callable[[], bool], lost: str
    ) -> Any:
        found = self._run("SELECT digest, answer FROM answers WHERE name = ?", name)
        for known, answer in found:
            if known != digest:
                raise errors.KeyReusedError("this key was used for another request; pass a new key")
            if answer is not None:
                return json.loads(answer)
            if interruptible(charged):  # begun, not ended: it failed, or was killed
                return self._end(name, lost)
            uncharged(self._forget, name)
        self._check_files()
        uncharged(self._write, "INSERT INTO answers (name, digest) VALUES (?, ?)", name, digest)
        try:
            made = _json(**{"what run returns": run()})
        except Exception as error:
            known = errors.charged(error)
            if known is None and not isinstance(error, LedgerError):  # which cannot be read now
                known = interruptible(charged)
            if known is False:  # otherwise the ledger is read when the key is seen again
                uncharged(self._forget, name)
            raise
        return self._end(name, made)

    def _end(self, name: str, answer: str) -> Any:
        """Store the answer, then return it."""
        self._write("UPDATE answers SET answer = ? WHERE name = ?", answer, name)
        return json.loads(answer)

    def _forget(self, name: str) -> None:
        self._write("DELETE FROM answers WHERE name = ? AND answer IS NULL", name)

    def _run(self, statement: str, *values: Any) -> list[Any]:
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, OverflowError) as error:  # such as a full disk, or a closed file
            raise _unusable(error) from None

    def _write(self, statement: str, *values: Any) -> None:
        """Run a statement, and return when it is on disk.

        Whoever has the lock writes for all who wait for it, in one transaction: waiting for the
        disk takes longer than all else. If an interrupt ends the wait, the statement is run later,
        in its order: what it says about a key is true all the same.
        """
        one = _Write(statement, values)
        self._waiting.append(one)
        with self._lock:
            if not one.done:
                self._write_all()
        if one.error is not None:
            raise _unusable(one.error)

    def _write_all(self) -> None:
        batch = []
        while self._waiting:
            batch.append(self._waiting.popleft())
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            for one in batch:
                run(one.statement, one.values)
            run("COMMIT")
        except Exception:
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            for one in batch:  # each alone, so that it hears its own error
                try:
                    run(one.statement, one.values)
                except Exception as error:
                    one.error = error
        except BaseException:  # nobody knows which statements were run
            for one in batch:
                one.error = sqlite3.OperationalError("the thread that wrote it was interrupted")
            with suppress(sqlite3.Error):
                run("ROLLBACK")
            raise
        finally:
            for one in batch:
                one.done = True

    def _check_files(self) -> None:
        """Raise if a file was removed or replaced: what is written to it would be lost."""
        for path, opened in self._files:
            try:
                same = os.path.samestat(os.stat(path), opened)
            except OSError:
                same = False
            if not same:
                raise _not_launched(
                    f"the file {path} was removed, moved or replaced while this process had it "
                    "open; nothing was launched; put it back, or its keys can be charged again"
                )

    def close(self) -> None:
        """Close the file. In a forked process this does nothing."""
        if os.getpid() == self._process:
            with self._lock:
                self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an AnswerStore belongs to one process, and cannot be copied or pickled")


@dataclass(slots=True)
class _Write:
    """A statement that waits for the disk."""

    statement: str
    values: tuple[Any, ...]
    done: bool = False
    error: Exception | None = None


# --- forked processes: a connection belongs to the process that opened it -----------------------

_STORES: WeakSet[AnswerStore] = WeakSet()


def _leave_to_parent() -> None:
    """Keep all connections open to the end of the process, and beyond the end of Python.

    If the forked process closed one, SQLite would remove the log that the parent writes to.
    """
    for store in list(_STORES):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(store._connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _unusable(error: Exception) -> LedgerError:
    return LedgerError(
        f"the answers cannot be read or written: {error}; ask again with the same key, "
        "which is charged at most once"
    )


def _not_launched(message: str) -> LedgerError:
    error = LedgerError(message)
    error.charged = False
    return error


def _json(**argument: Any) -> str:
    ((name, value),) = argument.items()
    try:
        return json.dumps(value, allow_nan=False)
    except Exception:
        raise InvalidTypeError(
            f"{name} must be a JSON value, found {type(value).__name__}; pass as_json(...)"
        ) from None


# Handles by names.


@dataclass(slots=True)
class _Kept:
    owner: str
    handle: errors.Answer
    used: float


class HandleStore:
    """Handles that clients have open, each under a name. Handles that are not used expire.

    A client finds its own handles only. What a handle cost stays spent when it expires.

    :param seconds: how long a handle is kept after it was used
    :param most: number of handles that one client may have open
    :raises InvalidTypeError, InvalidValueError: naming the argument

    :example:

    >>> from opendp_concurrent.serving import HandleStore
    >>> handles = HandleStore(seconds=600.0, most=2)
    >>> name = handles.keep("alice", "a queryable")
    >>> handles.find("alice", name), handles.find("bob", name)
    ('a queryable', None)
    """

    @checks.checked
    def __init__(self, *, seconds: checks.Positive = 600.0, most: checks.Count = 50) -> None:
        self._seconds, self._most = seconds, most
        self._kept: dict[str, _Kept] = {}
        self._lock = Lock()

    @checks.checked
    def keep(self, owner: checks.Text, handle: errors.Answer) -> str:
        """Keep a handle, and return its name, which has 122 random bits.

        Handles are kept even if there is no room: they have been charged.

        :param owner: name of the client
        :param handle: what :meth:`find` returns
        :return: text that nobody can guess
        :raises InvalidTypeError, InvalidValueError: naming the argument
        """
        name = uuid4().hex
        with self._lock:
            _ = self._expire()
            self._kept[name] = _Kept(owner, handle, time.monotonic())
        return name

    @checks.checked
    def find(self, owner: checks.Text, name: checks.Text) -> errors.Answer:
        """Return a client's handle; None if the client has none of this name.

        :param owner: name of the client
        :param name: what :meth:`keep` returned
        """
        with self._lock:
            _ = self._expire()
            found = self._kept.get(name)
            if found is None or found.owner != owner:
                return None
            found.used = time.monotonic()
            return found.handle

    @checks.checked
    def has_room(self, owner: checks.Text) -> bool:
        """Whether a client has fewer handles open than it may.

        :param owner: name of the client
        """
        with self._lock:
            _ = self._expire()
            return sum(one.owner == owner for one in self._kept.values()) < self._most

    @checks.checked
    def drop(self, owner: checks.Text, name: checks.Text) -> bool:
        """Forget a client's handle; return whether there was one.

        :param owner: name of the client
        :param name: what :meth:`keep` returned
        """
        with self._lock:
            _ = self._expire()
            found = self._kept.get(name)
            if found is None or found.owner != owner:
                return False
            del self._kept[name]
            return True

    def _expire(self) -> list[_Kept]:
        """Remove what has expired, and return it: it is to be freed after the lock."""
        oldest = time.monotonic() - self._seconds
        names = [name for name, one in self._kept.items() if one.used < oldest]
        return [self._kept.pop(name) for name in names]


# What JSON has for an answer.

_MOST_NUMBERS = 10**7
_MOST_BITS = 2**13  # Python writes no integers of more than 4300 digits


def as_json(value: errors.Json) -> errors.Json:
    """Return what JSON has for an answer, a loss or a description.

    A float that is not finite is text, such as ``"inf"``. A pair is a list, a dataclass is an
    object of its fields, a member of an enumeration is its name, and an error of this package is
    its text. Keys of a mapping are text.

    :param value: such as a release, ``privacy_loss()`` or ``describe(...)`` of a queryable
    :return: a JSON value
    :raises InvalidTypeError: if JSON has nothing for it

    :example:

    >>> from opendp_concurrent.serving import as_json
    >>> as_json({"remaining": (float("inf"), 1e-6), 3: oc.handles.Outcome.BELOW})
    {'remaining': ['inf', 1e-06], '3': 'BELOW'}
    """
    try:
        return _plain(value)
    except RecursionError:
        raise InvalidTypeError("value is nested too deeply for JSON, or contains itself") from None


def _plain(value: errors.Json) -> errors.Json:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InvalidTypeError(f"value has an integer of more than {_MOST_BITS} bits")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "mM":
        if not value.size <= _MOST_NUMBERS:
            raise InvalidTypeError(f"value has an array of more than {_MOST_NUMBERS:,} numbers")
        found = value.tolist()
        if not isinstance(found, np.generic):  # as a long double does, which JSON does not have
            return _plain(found)
    if isinstance(value, errors.ConcurrentError):
        return str(value)
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if is_dataclass(type(value)) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    raise InvalidTypeError(f"value has a {type(value).__name__}, which has no form in JSON")


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    found = {str(key): _plain(one) for key, one in value.items()}
    if len(found) != len(value):
        raise InvalidTypeError("value has keys that are the same text, such as 1 and '1'")
    return found
