"""Answers by the keys of requests, so that a repeated request is charged once."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from .. import checks
from ..errors import InvalidTypeError, KeyReusedError, LedgerError

if TYPE_CHECKING:
    from typing_extensions import Self


class AnswerStore:
    """Answers of a server, by keys that its clients choose. Each is on disk when it is returned.

    A client that has no answer, because a connection or a process failed, repeats its request with
    the same key. It then gets the stored answer, and is not charged again: also if both requests
    arrive at once, and after a restart. The key is stored before the launch, and the answer before
    it is returned. If the process ends in between, the ledger says whether the key was charged: if
    it was not, the request is made; if it was, the answer is lost, and is never drawn again.

    :param path: an SQLite file, which is made if it is not there. One process may have it open:
        to another one, requests that run would look lost
    :raises LedgerError: if the file cannot be opened, or another process has it open

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
        self._lock = Lock()
        self._busy: WeakValueDictionary[str, _Busy] = WeakValueDictionary()
        try:
            self._connection = sqlite3.connect(
                path, timeout=0.0, isolation_level=None, check_same_thread=False
            )
            try:
                # first: so that no other process can open it as long as this one lives
                self._run("PRAGMA locking_mode=EXCLUSIVE")
                self._run("PRAGMA journal_mode=WAL")
                self._run("PRAGMA synchronous=FULL")
                self._run(
                    "CREATE TABLE IF NOT EXISTS answers "
                    "(name TEXT PRIMARY KEY, digest TEXT NOT NULL, answer TEXT)"
                )
                self._run("BEGIN EXCLUSIVE")
                self._run("COMMIT")
            except sqlite3.Error:
                self._connection.close()
                raise
        except (sqlite3.Error, TypeError, ValueError) as error:
            raise LedgerError(
                f"answers in {checks.shown(path)} cannot be opened: {error}; pass the path of a "
                "file that no other process has open"
            ) from None

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
        :param run: launches, and returns a JSON value. The label of its charge should tell the key
        :param charged: returns whether the ledger has the charge of this request, such as ``lambda:
            bool(ledger.entries(label=label))``; it is called only after a failure
        :param lost: the JSON value that is stored and returned if the answer was charged and lost
        :return: a JSON value
        :raises KeyReusedError: if the key was used for another request
        :raises InvalidTypeError: naming the argument
        :raises Exception: what ``run`` raises. If it was charged, the next call returns ``lost``
        """
        name = checks.text(key=key)
        digest = hashlib.sha256(_json(request=request).encode()).hexdigest()
        otherwise = _json(lost=lost)
        with self._lock:
            busy = self._busy.setdefault(name, _Busy())
        with busy.lock:
            found = self._run("SELECT digest, answer FROM answers WHERE name = ?", name)
            for known, answer in found:
                if known != digest:
                    raise KeyReusedError("this key was used for another request; pass a new key")
                if answer is not None:
                    return json.loads(answer)
                if charged():  # begun and not ended: the launch failed, or the process was killed
                    return self._end(name, otherwise)
                self._forget(name)
            self._run("INSERT INTO answers (name, digest) VALUES (?, ?)", name, digest)
            try:
                made = run()
            except LedgerError:
                raise  # it may be charged; the ledger is read when the key is seen again
            except Exception:
                if not charged():
                    self._forget(name)
                raise
            return self._end(name, _json(answer=made))

    def _end(self, name: str, answer: str) -> Any:
        """Store the answer, then return it."""
        self._run("UPDATE answers SET answer = ? WHERE name = ?", answer, name)
        return json.loads(answer)

    def _forget(self, name: str) -> None:
        self._run("DELETE FROM answers WHERE name = ? AND answer IS NULL", name)

    def _run(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an AnswerStore belongs to one process, and cannot be copied or pickled")


class _Busy:
    """A key whose request is running."""

    def __init__(self) -> None:
        self.lock = Lock()


def _json(**argument: Any) -> str:
    ((name, value),) = argument.items()
    try:
        return json.dumps(value, allow_nan=False)
    except Exception:
        raise InvalidTypeError(
            f"{name} must be a JSON value, found {type(value).__name__}; pass as_json(...)"
        ) from None
