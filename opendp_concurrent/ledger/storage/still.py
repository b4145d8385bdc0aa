"""Read an SQLite ledger where nothing can be written, such as on a read-only disk.

SQLite keeps locks and an index of ``-wal`` in ``-shm``, which it makes when it opens a database. If
it cannot, it reads a database only under the promise that nobody changes it (``immutable=1``), and
then ignores ``-wal``. So if a process left charges in ``-wal``, both files are copied to a new
folder that only this user may read, and read there. A change of the files is noticed, and refused:
somebody else may be able to write where this process is not.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from ...errors.ledger import LedgerError
from .watch import beside, status


class Still:
    """The files of a database that does not change.

    :param path: path of the database
    :ivar uri: what SQLite opens
    :raises LedgerError: if it is changed meanwhile, or has to be copied and cannot be
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = path, beside(path, "-wal")
        self._seen = [status(one) for one in self._files]
        self._copy: TemporaryDirectory[str] | None = None
        self.uri = f"file:{quote(str(path))}?immutable=1"
        log = self._seen[1]
        if log is not None and log.size:
            try:
                self._copy = TemporaryDirectory(prefix="opendp_concurrent-")
                for one in self._files:
                    shutil.copyfile(one, Path(self._copy.name) / one.name)
            except OSError as error:
                self.close()
                raise LedgerError(
                    f"ledger {path}: its newest charges are in {self._files[1]}, nothing can be "
                    f"written beside it, and no temporary copy can be made ({error.strerror}): "
                    "copy both files to a folder that this process may write, and open them there"
                ) from error
            self.uri = f"file:{quote(str(Path(self._copy.name) / path.name))}?mode=rw"
            self.check()

    def check(self) -> None:
        """Check that no file has changed.

        :raises LedgerError: if one has
        """
        if [status(one) for one in self._files] != self._seen:
            raise LedgerError(
                f"ledger {self._path} was changed while this process read it as a file that nobody "
                "changes, because nothing can be written beside it: open it again"
            )

    def close(self) -> None:
        """Remove the copy."""
        if self._copy is not None:
            self._copy.cleanup()
