"""The newest charge of each budget, noted in a file beside an SQLite ledger: ``-anchors``.

A database from which newest charges were lost fits together: somebody removed its ``-wal``, copied
it without, or put an older copy in its place. So each launch notes number and hash of its charge
here once it is durable, without waiting for the disk. What is noted was charged, and a ledger that
does not have it is refused.

The first line has the inode of the database. A copy has another one; it is a copy, and no ledger to
launch on, until somebody makes it one.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from ...errors import LedgerError
from .watch import beside, identity

_WIDTH = 128  # bytes of a line: none is in two sectors of a disk
_FIRST = re.compile(r"opendp_concurrent anchors 1 ([0-9]+) *\n")
_LINE = re.compile(r"([0-9a-f]{32}) ([0-9]{19}) ([0-9a-f]{64}) ([0-9a-f]{8}) *\n")


class Anchor(NamedTuple):
    """A charge that a ledger must have."""

    sequence: int
    head: str


class Anchors:
    """The file beside a database.

    :param path: of the database
    """

    def __init__(self, path: Path) -> None:
        self._database, self.path = path, beside(path, "-anchors")
        self._descriptor = -1
        self._offsets: dict[str, int] = {}
        self._lock, self._closed = Lock(), False  # of the descriptor: its number is used again

    def find(self, dataset: str) -> tuple[bool, Anchor | None]:
        """Whether the file is about this database and not about a copy; and what is noted.

        :raises LedgerError: if it cannot be read
        """
        key = _key(dataset)
        for _ in range(10):  # another process may be writing it
            lines = self._lines()
            line = next((one for one in lines[1:] if one.startswith(key)), None)
            anchor = None if line is None else _anchor(line)
            if line is None or anchor is not None:
                return self._own(lines), anchor
        raise LedgerError(
            f"ledger {self._database}: {self.path} is damaged, so that nobody knows whether newest "
            "charges were lost; move it away and restore the ledger, with an anchor"
        )

    def enter(self, dataset: str, anchor: Anchor) -> None:
        """Note ``anchor`` and wait for the disk; while nobody else can write the database.

        Lines of another database, of which this is a copy, are dropped.
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
                # in anchor, so that those who have it open go on with it
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
                try:
                    _write(descriptor, "".join(lines), 0)
                    os.ftruncate(descriptor, _WIDTH * len(lines))
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                _sync_folder(self.path.parent)
            except OSError as error:
                raise self._failed(error) from error

    def note(self, dataset: str, anchor: Anchor) -> None:
        """Note a charge that is durable.

        That it is not noted does no harm: a failure of the file is none of the launch.
        """
        with self._lock, suppress(OSError, LedgerError):
            if not self._closed:
                offset = self._offsets.get(dataset) or self._find(dataset)
                _write(self._descriptor, _line(_key(dataset), anchor), offset)

    def close(self) -> None:
        """Close the file, and note nothing more."""
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
            "let this process write it and its folder; nothing was charged, and no mechanism ran"
        )


def _key(dataset: str) -> str:
    return sha256(dataset.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _line(key: str, anchor: Anchor) -> str:
    text = f"{key} {anchor.sequence:019d} {anchor.head}"
    return f"{text} {sha256(text.encode()).hexdigest()[:8]}".ljust(_WIDTH - 1) + "\n"


def _anchor(line: str) -> Anchor | None:
    """Inverse of :func:`_line`; None if somebody is writing it, or has."""
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


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
