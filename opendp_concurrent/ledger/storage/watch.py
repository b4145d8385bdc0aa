"""Watch the side files of an open SQLite ledger: none may be removed, replaced or cut.

SQLite keeps the newest charges in ``-wal`` until it copies them into the database. Processes share
locks in ``-shm``. If somebody removes these files, a process that has them open continues to write
to them; its charges are then lost, and other processes do not see them. SQLite itself never removes
the files while a connection is open, so this process keeps one open. SQLite may reset ``-wal`` and
write it again from the beginning, with another header. With the same header it never gets shorter.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import unpack
from typing import NamedTuple

from ...errors.ledger import LedgerDamagedError, LedgerError

Identity = tuple[int, int]

_HEADER = 32  # length of the header of -wal, in bytes
_MAGIC = b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"  # checksums of little-endian and big-endian words
_ADVICE = (
    "the newest charges may be in a removed file, so this process charges nothing more; end all "
    "processes that have the ledger open, without killing them, so that they write their charges "
    "to the database; then open the ledger again, with an anchor"
)


def identity(path: Path | str) -> Identity | None:
    """Return the device and inode of a file; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Status(NamedTuple):
    """What differs after a file was changed or replaced."""

    device: int
    inode: int
    size: int
    time: int


def status(path: Path) -> Status | None:
    """Return the status of a file; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Status(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def beside(path: Path, end: str) -> Path:
    """Return the path with ``end`` added to the file name."""
    return path.with_name(path.name + end)


class Watch:
    """The side files of a database. Make it while a connection has them open.

    :param path: path of the database
    """

    def __init__(self, path: Path) -> None:
        self._log = beside(path, "-wal")
        files = str(self._log), str(beside(path, "-shm"))
        self._files = [(one, identity(one)) for one in files]
        self._descriptor, self._seen = -1, (b"", 0)
        if not hasattr(os, "pread"):  # Windows, where an open file cannot be removed
            return
        # SQLite has no locks on this file, so opening and closing it releases none
        try:
            self._descriptor = os.open(self._log, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise LedgerError(
                f"the file {self._log} cannot be read ({error.strerror}): give this process read "
                "and write access to it and to its folder; nothing was charged, and no mechanism "
                "ran"
            ) from error

    def check(self) -> None:
        """Check that the files were not removed, moved or replaced.

        :raises LedgerDamagedError: if one was
        """
        for path, opened in self._files:
            if identity(path) != opened:
                raise LedgerDamagedError(
                    f"the file {path} was removed, moved or replaced while this process had the "
                    "ledger open",
                    _ADVICE,
                )

    def check_log(self, locked: bool) -> None:
        """Check that ``-wal`` was not cut or overwritten.

        :param locked: whether this process holds the write lock
        :raises LedgerDamagedError: if it was
        """
        if self._descriptor < 0:
            return
        size, header = os.fstat(self._descriptor).st_size, self._header()
        before, least = self._seen
        if header == before:
            if size < least:
                raise self._cut(f"had {least} bytes, and has {size}")
            self._seen = header, size
        elif locked:
            self._seen = header, size

    def _header(self) -> bytes:
        """Return the header of ``-wal``, which changes when SQLite resets the file.

        :raises LedgerDamagedError: if the header is invalid
        """
        header = b""
        for _ in range(10):  # another process may be writing it
            header = os.pread(self._descriptor, _HEADER, 0)
            if not header or header == self._seen[0] or _fits(header):
                return header
        raise self._cut("has a header that SQLite did not write")

    def _cut(self, what: str) -> LedgerDamagedError:
        return LedgerDamagedError(
            f"the file {self._log} was cut or overwritten while this process had the ledger open: "
            f"it {what}",
            _ADVICE,
        )

    def close(self) -> None:
        """Stop watching."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _fits(header: bytes) -> bool:
    """Return whether the checksum of a header is right [SQLite, file format, section 4.1]."""
    if len(header) < _HEADER or header[:4] not in _MAGIC:
        return False
    words = unpack("<6I" if header[:4] == _MAGIC[0] else ">6I", header[:24])
    first = second = 0
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) % 2**32
        second = (second + other + first) % 2**32
    return (first, second) == unpack(">2I", header[24:])
