"""The files of an SQLite ledger, watched while it is open: each must stay the one that was opened.

SQLite keeps newest charges in ``-wal`` until they are copied into the database, and what processes
tell each other in ``-shm``. A process goes on with the files that it opened, also if somebody has
removed them: what it writes then is lost, and others do not see it. While a connection is open,
SQLite itself never removes them, so whoever watches keeps one open. It does cut ``-wal`` to
nothing, and writes it anew from its beginning; what it has not begun anew never gets shorter.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import unpack

from ...errors import LedgerDamagedError, LedgerError

Identity = tuple[int, int]

_HEADER = 32  # bytes at the beginning of -wal
_MAGIC = b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"  # checksums of little, of big-endian words
_ADVICE = (
    "newest charges may be in a file that has no name any more: nothing more is charged here; end "
    "all processes that have the ledger open, without killing them, so that they write down what "
    "they have, and open it again, with an anchor"
)


def identity(path: Path) -> Identity | None:
    """Which file is there, if there is one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def beside(path: Path, end: str) -> Path:
    """The file beside ``path`` whose name ends so."""
    return path.with_name(path.name + end)


class Watch:
    """The side files of a database. Made while a connection has them open.

    :param path: of the database
    """

    def __init__(self, path: Path) -> None:
        self._log = beside(path, "-wal")
        self._files = [(one, identity(one)) for one in (self._log, beside(path, "-shm"))]
        self._descriptor, self._seen = -1, (b"", 0)
        if not hasattr(os, "pread"):  # a system where an open file is not removed by accident
            return
        # SQLite locks nothing in this file, so that it may be opened and closed beside it
        try:
            self._descriptor = os.open(self._log, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise LedgerError(
                f"the file {self._log} cannot be read ({error.strerror}): let this process read "
                "and write it and its folder; nothing was charged, and no mechanism ran"
            ) from error

    def check(self) -> None:
        """Raise unless the files are where they were.

        :raises LedgerDamagedError: if one was removed, moved or replaced
        """
        for path, opened in self._files:
            if identity(path) != opened:
                raise LedgerDamagedError(
                    f"the file {path} was removed, moved or replaced while this process had the "
                    "ledger open",
                    _ADVICE,
                )

    def check_log(self, locked: bool) -> None:
        """Raise if ``-wal`` was cut or overwritten.

        :param locked: whether nobody else can write now
        :raises LedgerDamagedError: if it was
        """
        if self._descriptor < 0:
            return
        size, header = os.fstat(self._descriptor).st_size, self._header()
        before, least = self._seen
        if header == before:
            if size < least:
                raise self._cut(f"has {size} bytes, and had {least}")
            self._seen = header, size
        elif locked:
            self._seen = header, size

    def _header(self) -> bytes:
        """The beginning of the file, which identifies what was begun anew.

        :raises LedgerDamagedError: if it is none
        """
        header = b""
        for _ in range(10):  # another process may be writing it
            header = os.pread(self._descriptor, _HEADER, 0)
            if not header or header == self._seen[0] or _fits(header):
                return header
        raise self._cut("does not begin as SQLite writes it")

    def _cut(self, what: str) -> LedgerDamagedError:
        return LedgerDamagedError(
            f"the file {self._log} was cut or overwritten while this process had the ledger open: "
            f"it {what}",
            _ADVICE,
        )

    def close(self) -> None:
        """Watch no more."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _fits(header: bytes) -> bool:
    """Whether the checksum of a header is right [SQLite, file format, section 4.1]."""
    if len(header) < _HEADER or header[:4] not in _MAGIC:
        return False
    words = unpack("<6I" if header[:4] == _MAGIC[0] else ">6I", header[:24])
    first = second = 0
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) % 2**32
        second = (second + other + first) % 2**32
    return (first, second) == unpack(">2I", header[24:])
