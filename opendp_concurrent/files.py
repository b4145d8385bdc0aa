"""Files that only their owner may read: what was spent, by whom and for what, and answers."""

from __future__ import annotations

import logging
import os
import shlex
from contextlib import suppress
from pathlib import Path

_MODE = 0o600
_OTHERS = 0o007


def make_private(path: str | os.PathLike[str]) -> bool:
    """Make an empty file that only its owner may read and write, unless there is a file.

    SQLite gives its side files the mode of the database. A file that is there is not opened:
    closing it would release the locks that SQLite has on it. If none can be made, nothing happens:
    who opens it finds out.

    :return: whether it was made
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _MODE))
    except OSError:
        return False
    return True


def warn_if_open(logger: logging.Logger, what: str, *paths: str | os.PathLike[str]) -> None:
    """Log those of some files that every user of the computer may read or write.

    Their modes are the owner's to choose.

    :param what: what they have
    """
    if os.name != "posix":
        return
    found = []
    for path in map(Path, paths):
        with suppress(OSError):
            if path.stat().st_mode & _OTHERS:
                found.append(shlex.quote(str(path)))
    if found:
        close = f"chmod o-rwx {' '.join(found)}"
        logger.warning(
            "every user of this computer may read %s; unless you want this, run: %s", what, close
        )
