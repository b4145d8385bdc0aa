"""What was spent, on what, and what was answered is readable by the owner of the files only."""

import importlib
import logging
import os
import sys
from pathlib import Path

import pytest

from opendp_concurrent.ledger.command import main

pytest.importorskip("sqlalchemy")
from opendp_concurrent.ledger import create_ledger, open_ledger
from opendp_concurrent.ledger.store import Store
from opendp_concurrent.serving import AnswerStore

from .build import laplace, opened
from .forks import ran_in_forks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no modes")


@pytest.fixture(autouse=True)
def lax():
    """A process that hides nothing by itself."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder):
    return {one.name: oct(one.stat().st_mode & 0o777) for one in folder.iterdir()}


def test_every_file_of_a_ledger_is_private(tmp_path):
    path = tmp_path / "budget.db"
    with create_ledger(path, "a") as ledger:
        opened(ledger=ledger)(laplace(0.125))
        assert ledger.charged("") is True
        assert set(modes(tmp_path)) == {"budget.db", "budget.db-wal", "budget.db-shm"}
        assert set(modes(tmp_path).values()) == {"0o600"}
    assert main(["report", str(path), "--output", str(tmp_path / "spent.html")]) == 0
    assert set(modes(tmp_path).values()) == {"0o600"}


def test_every_file_of_answers_is_private(tmp_path):
    with AnswerStore(tmp_path / "answers.db") as answers:
        answers.once("a", 1, lambda: 2, charged=lambda: False, lost=0)
        assert modes(tmp_path) == {"answers.db": "0o600", "answers.db-wal": "0o600"}


def test_a_dangling_link_leads_to_a_private_file(tmp_path):
    for make, name in ((lambda path: create_ledger(path, "a"), "b"), (AnswerStore, "c")):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.db").symlink_to(tmp_path / name / "real.db")
        make(tmp_path / f"{name}.db").close()
        assert set(modes(tmp_path / name).values()) == {"0o600"}


@pytest.mark.parametrize(("mode", "told"), [(0o644, True), (0o602, True), (0o660, False)])
def test_the_mode_of_a_file_that_is_there_stays_and_is_told(tmp_path, mode, told, caplog):
    """Owners may share files with their group; new files beside them get their mode."""
    path, other = tmp_path / "budget.db", tmp_path / "answers.db"
    create_ledger(path, "a").close()
    AnswerStore(other).close()
    for one in tmp_path.iterdir():
        one.chmod(mode)
    with caplog.at_level(logging.WARNING), open_ledger(path, "a") as ledger, AnswerStore(other):
        opened(ledger=ledger)(laplace(0.125))
        assert set(modes(tmp_path).values()) == {oct(mode)}
    found = [one.getMessage() for one in caplog.records if "every user" in one.getMessage()]
    assert len(found) == (2 if told else 0)
    for one, name in zip(found, (path, other), strict=False):
        assert f"chmod o-rwx {name}" in one


def test_the_folder_of_the_server_is_private(tmp_path, monkeypatch):
    pytest.importorskip("fastapi")
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "docs" / "examples")
    server = importlib.import_module("server")
    monkeypatch.delitem(sys.modules, "server")
    settings = server.Settings(tmp_path / "kept", [1], {}, {}, 1.0)
    server.Server(settings).close()
    assert modes(tmp_path) == {"kept": "0o700"}
    assert set(modes(tmp_path / "kept").values()) == {"0o600"}


FULL = """
import os, resource, signal
from pathlib import Path
from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger import create_ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
most = resource.RLIM_INFINITY

def run(folder, size):
    folder = Path(folder, str(size))
    folder.mkdir()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        create_ledger(folder / "a.db", "d")
    except LedgerError:
        os.write(1, " ".join(sorted(one.name for one in folder.iterdir())).encode() + b".")
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    create_ledger(folder / "a.db", "d").close()
"""


def test_a_ledger_that_a_full_disk_did_not_take_can_be_made_later(tmp_path):
    sizes = [0, 4096, 20_000]
    ran = ran_in_forks(FULL, [(str(tmp_path), size) for size in sizes])
    for (folder, size), (status, said) in ran.items():
        assert status == 0, said
        assert (said == ".") == (size == 0)  # no empty file stays; the rest may be of others
        with open_ledger(Path(folder, str(size), "a.db"), "d") as ledger:
            assert ledger.summary().launches == 0


def test_a_file_that_others_have_made_stays_though_it_is_empty(tmp_path):
    path = tmp_path / "a.db"
    path.touch()
    store = Store(path, create=True, wait=1.0)
    store.discard()
    assert path.exists()
    store = Store(tmp_path / "b.db", create=True, wait=1.0)
    store.discard()
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]
