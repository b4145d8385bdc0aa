"""The file ``-anchors`` beside an SQLite ledger: it notes the newest charge of each budget.

A database that lost its newest charges is still consistent: somebody may have removed ``-wal``,
copied the database without it, or replaced the database by an older copy. So each launch notes the
number and hash of its charge in this file, after the charge is durable and without waiting for the
disk. Every noted charge is durable, so a ledger without it is refused.

The first line has the inode of the database. A copy has another inode. Nobody can launch on a copy
until it is restored.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ...errors.ledger import LedgerError
from ...files import MODE
from ...interrupts import Lock
from .watch import beside, identity

_WIDTH = 128  # bytes of a line, a divisor of a disk's sector: a write does not tear a line
_FIRST = re.compile(r"opendp_concurrent anchors 1 ([0-9]+) *\n")
_LINE = re.compile(r"([0-9a-f]{32}) ([0-9]{19}) ([0-9a-f]{64}) ([0-9a-f]{8}) *\n")


class Anchor(NamedTuple):
    """A charge that a ledger must have."""

    sequence: int
    head: str


class Anchors:
    """The anchors file of a database.

    :param path: path of the database
    """

    def __init__(self, path: Path) -> None:
        self._database, self.path = path, beside(path, "-anchors")
        self._descriptor = -1
        self._offsets: dict[str, int] = {}
        self._lock, self._closed = Lock(), False  # a closed descriptor's number may be reused

    def find(self, dataset: str) -> tuple[bool, Anchor | None]:
        """Return whether the file names this database's inode, and the noted charge if any.

        :raises LedgerError: if the file cannot be read
        """
        key = _key(dataset)
        for _ in range(10):  # another process may be writing it
            lines = self._lines()
            line = next((one for one in lines[1:] if one.startswith(key)), None)
            anchor = None if line is None else _anchor(line)
            if line is None or anchor is not None:
                return self._own(lines), anchor
        raise LedgerError(
            f"ledger {self._database}: {self.path} is damaged, so the newest charges may be lost; "
            "move that file away, and restore the ledger with an anchor"
        )

    def enter(self, dataset: str, anchor: Anchor) -> None:
        """Note a charge, and wait for the disk. Call this in a write transaction.

        If the file is of another database, of which this is a copy, its lines are dropped.
        """
        lines = self._lines()
        found = identity(self._database)
        if found is None:
            raise LedgerError(f"ledger {self._database} is gone; nothing was charged")
        if not self._own(lines):
            first = f"opendp_concurrent anchors 1 {found[1]}"
            lines = [first.ljust(_WIDTH - 1) + "\n"]
        key = _key(dataset)
        at = next((n for n, one in enumerate(lines) if one.startswith(key)), len(lines))
        lines[at:] = [_line(key, anchor), *lines[at + 1 :]]
        with self._lock:
            self._leave()
            try:
                # in place, because other processes have the file open
                made = not self.path.exists()
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, MODE)
                try:
                    if made:
                        _let_in(descriptor, self._database)
                    _write(descriptor, "".join(lines), 0)
                    os.ftruncate(descriptor, _WIDTH * len(lines))
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                _sync_folder(self.path.parent)
            except OSError as error:
                raise self._failed(error) from error

    def note(self, dataset: str, anchor: Anchor) -> None:
        """Note a durable charge.

        An error of the file is ignored: the charge is durable, so the launch may continue.
        """
        with self._lock, suppress(OSError, LedgerError):
            if not self._closed:
                offset = self._offsets.get(dataset) or self._find(dataset)
                _write(self._descriptor, _line(_key(dataset), anchor), offset)

    def close(self) -> None:
        """Close the file. Later notes are ignored."""
        with self._lock:
            self._closed = True
            self._leave()

    def _leave(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._offsets.clear()

    def _find(self, dataset: str) -> int:
        key = _key(dataset)
        for number, line in enumerate(self._lines()):
            if line.startswith(key):
                if self._descriptor < 0:
                    self._descriptor = os.open(self.path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
                self._offsets[dataset] = _WIDTH * number
                return _WIDTH * number
        raise LedgerError(f"{self.path} has no line for {dataset!r}")

    def _lines(self) -> list[str]:
        try:
            text = self.path.read_bytes().decode("ascii", "replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._failed(error) from error
        return [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]

    def _own(self, lines: list[str]) -> bool:
        first, found = _FIRST.fullmatch(lines[0]) if lines else None, identity(self._database)
        return first is not None and found is not None and int(first[1]) == found[1]

    def _failed(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"ledger {self._database}: {self.path} cannot be read or written ({error.strerror}): "
            "give this process write access to it and to its folder; nothing was charged, and no "
            "mechanism ran"
        )


def _key(dataset: str) -> str:
    return sha256(dataset.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(key: str, anchor: Anchor) -> str:
    text = f"{key} {anchor.sequence:019d} {anchor.head}"
    return f"{text} {sha256(text.encode()).hexdigest()[:8]}".ljust(_WIDTH - 1) + "\n"


def _anchor(line: str) -> Anchor | None:
    """Inverse of :func:`_line`; None if the line is damaged or half written."""
    parts = _LINE.fullmatch(line)
    if parts is None:
        return None
    anchor = Anchor(int(parts[2]), parts[3])
    return anchor if _line(parts[1], anchor) == line else None


def _write(descriptor: int, text: str, offset: int) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(descriptor, text.encode("ascii"), offset)
    else:
        os.lseek(descriptor, offset, os.SEEK_SET)
        os.write(descriptor, text.encode("ascii"))


def _let_in(descriptor: int, database: Path) -> None:
    """Give a new file the mode and owner of the database, as SQLite does with its side files."""
    if not hasattr(os, "fchmod"):
        return
    found = os.stat(database)
    with suppress(OSError):
        os.fchmod(descriptor, found.st_mode & 0o666)
        if os.geteuid() == 0:
            os.fchown(descriptor, found.st_uid, found.st_gid)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
