"""A ledger is read where nothing can be written, and a change of it is noticed."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.ledger.storage.still import Still

from ...forks import run_program

NOBODY = 65534


@contextmanager
def read_only_mount(folder):
    """The same folder on a read-only mount."""
    target = Path(tempfile.mkdtemp())
    os.chmod(target, 0o755)
    bind = ["mount", "--bind", str(folder), str(target)]
    if os.geteuid() != 0 or subprocess.run(bind, capture_output=True).returncode:
        target.rmdir()
        pytest.skip("nothing can be mounted")
    try:
        read_only = ["mount", "-o", "remount,bind,ro", str(target)]
        subprocess.run(read_only, check=True, capture_output=True)
        yield target
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)
        target.rmdir()


@pytest.fixture(params=["closed", "killed", "backup", "in use"])
def left(request, tools):
    """The path of a ledger of two charges, as it was left, in a folder that everybody reaches."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        path = Path(name) / "ledger" / "budget.db"
        path.parent.mkdir()
        ledger = opened.enter_context(create_ledger(path, tools.DATASET))
        root = tools.limit(ledger)
        root(tools.count())
        root(tools.count())
        other = Path(name) / "other" / path.name
        if request.param == "killed":
            shutil.copytree(path.parent, other.parent)
            other.with_name("budget.db-shm").unlink()
            assert other.with_name("budget.db-wal").stat().st_size
        elif request.param == "backup":
            other.parent.mkdir()
            ledger.backup(other)
        elif request.param == "closed":
            opened.close()
            assert not path.with_name("budget.db-wal").exists()
        os.chmod(name, 0o755)
        yield other if other.exists() else path


READ = """
import os, sys
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger import datasets, open_ledger
path, name, user = sys.argv[1:]
if int(user) >= 0:
    os.setgid(int(user))
    os.setuid(int(user))
for _ in range(2):
    assert datasets(path) == [name]
    with open_ledger(path, name, read_only=True) as ledger:
        assert ledger.summary().launches == len(ledger.entries()) == 2
        assert not ledger.charged("a")
sys.exit(main(["verify", path]))
"""


def read(path, name, user=-1):
    """Read it in another process, where nobody has it open."""
    done = run_program(READ, path, name, user)
    assert done.returncode == 0, done.stderr


def test_a_ledger_is_read_on_a_read_only_disk(left, tools):
    before = {one.name: one.read_bytes() for one in left.parent.iterdir()}
    with read_only_mount(left.parent) as folder:
        read(folder / left.name, tools.DATASET)
        with pytest.raises(LedgerError, match=r"cannot be (opened|written)|is in a copy"):
            tools.limit(open_ledger(folder / left.name, tools.DATASET))(tools.count())
    after = {one.name: one.read_bytes() for one in left.parent.iterdir()}
    assert before.keys() == after.keys()
    assert before[left.name] == after[left.name]


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_a_ledger_is_read_in_a_folder_that_may_not_be_written(left, tools):
    """By another user, or, if this is not root, by this one."""
    for one in left.parent.iterdir():
        os.chmod(one, 0o444)
    os.chmod(left.parent, 0o555)
    try:
        read(left, tools.DATASET, NOBODY if os.geteuid() == 0 else -1)
    finally:
        os.chmod(left.parent, 0o755)


@pytest.fixture
def nowhere(monkeypatch):
    """SQLite makes no side files, in any folder that it is not told is still."""
    connect = sqlite3.connect

    class Refusing(sqlite3.Connection):
        def execute(self, text, *values):
            if text.startswith("PRAGMA synchronous"):  # the first to read the file
                raise sqlite3.OperationalError("unable to open database file")
            return super().execute(text, *values)

    def connected(database, **options):
        still = "immutable" in str(database) or "/opendp_concurrent-" in str(database)
        return connect(database, **options, factory=sqlite3.Connection if still else Refusing)

    monkeypatch.setattr(sqlite3, "connect", connected)


@pytest.mark.parametrize("left", ["closed", "killed"], indirect=True)
@pytest.mark.parametrize("how", ["a launch", "a launch that was written", "removed"])
def test_a_change_of_a_file_that_was_to_be_still_is_noticed(left, tools, nowhere, how):
    name = tools.DATASET
    with open_ledger(left, name, read_only=True) as ledger:
        assert ledger.summary().launches == 2
        log = left.with_name("budget.db-wal")
        if how == "a launch":
            log.write_bytes(b"x" * 32 + (log.read_bytes() if log.exists() else b""))
        elif how == "removed":
            left.unlink()
        else:
            left.write_bytes(left.read_bytes() + bytes(4096))
        with pytest.raises(LedgerError, match=r"was changed|is not the file"):
            ledger.summary()
        with pytest.raises(LedgerError, match=r"was changed|is not the file"):
            ledger.charged("a")


@pytest.mark.parametrize("left", ["killed"], indirect=True)
def test_the_copy_is_private_and_goes_away(left, tools, nowhere, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with open_ledger(left, tools.DATASET, read_only=True) as ledger:
        (copy,) = (tmp_path / "temporary").iterdir()
        assert copy.stat().st_mode & 0o077 == 0
        assert ledger.summary().launches == 2
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("left", ["killed"], indirect=True)
def test_a_copy_that_cannot_be_made_is_said(left, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(LedgerError, match="no temporary copy can be made"):
        Still(left)
