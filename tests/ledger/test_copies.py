"""SQLite's side files could be removed below a live ledger, and copies of one were launched on."""

import contextlib
import gzip
import os
import shutil
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.errors import (
    BudgetExceededError,
    InvalidValueError,
    LedgerDamagedError,
    LedgerError,
)
from opendp_concurrent.ledger import create_ledger, open_ledger, restore_ledger
from opendp_concurrent.ledger.command import main
from opendp_concurrent.ledger.storage.anchors import Anchor

from ..forks import run_program

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"
SIDE = "removed, moved or replaced while this process had the ledger open"
CUT = (  # the last two are what SQLite says itself
    "cut or overwritten while this process had the ledger open|disk I/O error|not a database"
)


def replace(path):
    shutil.copyfile(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(b"\0" * 32)


CHANGES = {
    "-wal removed": (lambda path: os.remove(f"{path}-wal"), SIDE),
    "-shm removed": (lambda path: os.remove(f"{path}-shm"), SIDE),
    "both removed": (lambda path: [os.remove(path + end) for end in ("-wal", "-shm")], SIDE),
    "-wal moved": (lambda path: os.rename(f"{path}-wal", f"{path}-old"), SIDE),
    "-wal replaced": (lambda path: replace(f"{path}-wal"), SIDE),
    "-shm replaced": (lambda path: replace(f"{path}-shm"), SIDE),
    "-wal cut to nothing": (lambda path: os.truncate(f"{path}-wal", 0), CUT),
    "-wal cut in half": (
        lambda path: os.truncate(f"{path}-wal", os.stat(f"{path}-wal").st_size // 2),
        CUT,
    ),
    "-wal overwritten": (lambda path: overwrite(f"{path}-wal"), CUT),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=list(CHANGES))
def test_no_launch_runs_once_a_side_file_was_changed(sqlite, tools, change, said):
    query, ran = tools.counted(0.125)
    ledger = sqlite.create()
    root = tools.limit(ledger)
    for _ in range(3):
        root(query)
    change(sqlite.address)
    for _ in range(2):
        with pytest.raises(LedgerError, match=said) as raised:
            root(query)
        assert len(ran) == 3
    if isinstance(raised.value, LedgerDamagedError):
        assert "end all processes that have the ledger open, without killing" in str(raised.value)
    ledger.close()


@pytest.mark.parametrize("change", CHANGES)
def test_a_process_that_comes_later_never_finds_a_smaller_loss(sqlite, tools, change):
    """While the first has it open, and after that: it has all charges, or is refused."""
    ledger = sqlite.create()
    root = tools.limit(ledger)
    for _ in range(3):
        root(tools.count(0.125))
    CHANGES[change][0](sqlite.address)

    def elsewhere():
        with open_ledger(sqlite.address, tools.DATASET) as again:
            there = tools.limit(again)
            return there.privacy_loss()

    def found(function):
        try:
            return function()
        except LedgerError:
            return None

    if change in ("-wal removed", "both removed"):  # it is slow
        # SQLite forgets in a forked process what its parent locked: a fresh one is needed
        assert fresh(sqlite, tools) in (None, 0.375)
    ledger.close()
    kept = "removed" in change or "moved" in change  # a file without a name has all of it
    assert found(elsewhere) in ((0.375,) if kept else (None, 0.375))
    with pytest.raises(LedgerError):
        create_ledger(sqlite.address, tools.DATASET)


def fresh(store, tools):
    """The loss that a process finds that has nothing of this one's."""
    text = (
        "from opendp_concurrent.errors import LedgerError\n"
        "from opendp_concurrent.ledger import open_ledger\n"
        "try:\n"
        f"    with open_ledger({store.address!r}, {tools.DATASET!r}) as ledger:\n"
        "        print(ledger.summary().spent)\n"
        "except LedgerError as error: print('refused', error)\n"
    )
    done = run_program(text)
    assert done.stdout, done.stderr
    return None if done.stdout.startswith("refused") else float(done.stdout)


def test_what_sqlite_does_to_its_own_files_is_no_damage(sqlite, tools):
    """Checkpoints of all kinds, by others, with limits of size; others that come and go."""
    query, ran = tools.counted(2.0**-10)
    root = tools.limit(sqlite.create())
    kinds = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]
    with contextlib.closing(sqlite3.connect(sqlite.address, isolation_level=None)) as other:
        for number in range(48):
            root(query)
            other.execute(f"PRAGMA journal_size_limit={[-1, 0, 5000][number % 3]}")
            other.execute(f"PRAGMA wal_checkpoint({kinds[number % 4]})").fetchall()
            if number % 5 == 0:
                other.execute("CREATE TABLE IF NOT EXISTS theirs (a)")
                other.execute("INSERT INTO theirs VALUES (1)")
    for _ in range(4):
        with contextlib.closing(sqlite3.connect(sqlite.address)) as other:
            other.execute("SELECT count(*) FROM theirs").fetchall()
        root(query)
        root.privacy_loss()
    assert len(ran) == sqlite.open().summary().launches == 52


def test_the_log_of_sqlite_may_begin_anew(sqlite, tools):
    """After 1,000 pages SQLite copies them, and writes it from its beginning."""
    query, ran = tools.counted(2.0**-10)
    ledger = sqlite.create()
    root = tools.limit(ledger)
    driver, _ = ledger._store._take()
    driver.execute("PRAGMA wal_autocheckpoint=4")
    ledger._store._put_back(driver)
    for _ in range(40):
        root(query)
    assert os.stat(f"{sqlite.address}-wal").st_size < 200_000
    assert len(ran) == ledger.summary().launches == 40


def test_a_link_to_a_file_has_the_side_files_of_the_file(sqlite, tools, tmp_path):
    """As SQLite has: who opens the link and who opens the file share one budget."""
    link, root = tmp_path / "link.db", tools.limit(sqlite.create())
    link.symlink_to(sqlite.address)
    root(tools.count(0.125))
    with open_ledger(link, tools.DATASET) as ledger:
        other = tools.limit(ledger)
        other(tools.count(0.125))
        assert root.privacy_loss() == other.privacy_loss() == 0.25
        shutil.copyfile(sqlite.address, tmp_path / "another.db")
        link.unlink()
        link.symlink_to(tmp_path / "another.db")
        with pytest.raises(LedgerDamagedError, match="is not the file that was opened"):
            other(tools.count(0.125))
    assert not list(tmp_path.glob("link.db-*"))


def test_a_ledger_that_is_closed_writes_to_no_file(sqlite, tools):
    """The number of a file that was closed is used again, for another one."""
    ledger = sqlite.create()
    tools.limit(ledger)(tools.count(0.125))
    anchors = ledger._store.anchors
    ledger.close()
    before = Path(anchors.path).read_bytes()
    for dataset in (tools.DATASET, "another"):
        anchors.note(dataset, Anchor(7, 64 * "0"))
    assert Path(anchors.path).read_bytes() == before


# --- copies ----------------------------------------------------------------------------------


def is_a_copy(tools, path, launches=None):
    """It can be read, and not launched on."""
    with pytest.raises(LedgerError, match=r"in a copy, or in a backup.*restore_ledger"):
        open_ledger(path, tools.DATASET)
    with open_ledger(path, tools.DATASET, read_only=True) as ledger:
        if launches is not None:
            assert ledger.summary().launches == launches
        with pytest.raises(LedgerError, match="read_only=True: open it without read_only"):
            tools.limit(ledger)


def spend(store, tools, launches, epsilon=0.125):
    """Launch in a process that ends with ``store`` closed."""
    with open_ledger(store.address, tools.DATASET) as ledger:
        root = tools.limit(ledger)
        for _ in range(launches):
            root(tools.count(epsilon))


def test_a_copy_of_a_live_file_is_no_ledger(sqlite, tools, tmp_path):
    sqlite.create().close()
    spend(sqlite, tools, 2)
    root = tools.limit(sqlite.open())
    root(tools.count(0.125))
    shutil.copyfile(sqlite.address, tmp_path / "copy.db")  # without the newest charge
    is_a_copy(tools, tmp_path / "copy.db", 2)
    root(tools.count(0.125))


def test_a_copy_of_all_files_is_no_ledger(sqlite, tools, tmp_path):
    root = tools.limit(sqlite.create())
    root(tools.count(0.125))
    for end in ("", "-wal", "-shm", "-anchors"):
        shutil.copyfile(sqlite.address + end, tmp_path / f"copy.db{end}")
    is_a_copy(tools, tmp_path / "copy.db", 1)


def test_an_older_copy_that_is_put_over_a_ledger_that_nobody_has_open_is_refused(
    sqlite, tools, tmp_path
):
    sqlite.create().close()
    spend(sqlite, tools, 2)
    shutil.copyfile(sqlite.address, tmp_path / "older.db")
    spend(sqlite, tools, 2)
    shutil.copyfile(tmp_path / "older.db", sqlite.address)  # the same inode
    for read_only in (True, False):
        with pytest.raises(LedgerDamagedError, match=r"there are 2 charges.*-anchors is num"):
            open_ledger(sqlite.address, tools.DATASET, read_only=read_only)
    os.replace(tmp_path / "older.db", sqlite.address)  # another one
    with pytest.raises(LedgerError):
        open_ledger(sqlite.address, tools.DATASET)
    with pytest.raises(LedgerDamagedError, match=r"there are 2 charges.*-anchors is number 4"):
        restore_ledger(sqlite.address, tools.DATASET, anchor=None)


def test_a_side_file_that_is_removed_after_a_crash_is_missed(sqlite, tools):
    sqlite.create().close()

    def work():
        with open_ledger(sqlite.address, tools.DATASET) as ledger:
            root = tools.limit(ledger)
            for _ in range(3):
                root(tools.count(0.125))
            os.kill(os.getpid(), signal.SIGKILL)

    child = tools.Child(work)
    os.waitpid(child.pid, 0)
    os.close(child._read)
    with open_ledger(sqlite.address, tools.DATASET) as ledger:  # a crash does no harm
        assert ledger.summary().launches == 3
    child = tools.Child(work)
    os.waitpid(child.pid, 0)
    os.close(child._read)
    os.remove(f"{sqlite.address}-wal")
    with pytest.raises(LedgerDamagedError, match=r"there are 3 charges.*-anchors is number 6"):
        open_ledger(sqlite.address, tools.DATASET)


def test_a_ledger_whose_notes_were_removed_is_no_ledger(sqlite, tools):
    sqlite.create().close()
    spend(sqlite, tools, 2)
    os.remove(f"{sqlite.address}-anchors")
    is_a_copy(tools, sqlite.address, 2)
    assert restore_ledger(sqlite.address, tools.DATASET, anchor=None).launches == 2
    spend(sqlite, tools, 1)


def test_damaged_notes_are_named(sqlite, tools):
    sqlite.create().close()
    spend(sqlite, tools, 2)
    path = Path(f"{sqlite.address}-anchors")
    text = path.read_bytes()
    path.write_bytes(text.replace(b"0002 ", b"0001 "))
    with pytest.raises(LedgerError, match="-anchors is damaged"):
        open_ledger(sqlite.address, tools.DATASET)


def test_a_budget_is_not_made_anew_where_one_was_spent(sqlite, tools):
    sqlite.create().close()
    spend(sqlite, tools, 2)
    os.remove(sqlite.address)
    with pytest.raises(LedgerError, match=r"names charge 2 of that budget.*stays spent"):
        create_ledger(sqlite.address, tools.DATASET)
    create_ledger(sqlite.address, "another").close()


def _golden(path):
    path.write_bytes(gzip.decompress((GOLDEN / "closed.db.gz").read_bytes()))


def test_a_ledger_of_0_1_0_becomes_known_when_it_is_used(tools, tmp_path):
    for name in ("closed.db", "again.db"):
        _golden(tmp_path / name)
    with open_ledger(tmp_path / "closed.db", "odometer") as ledger:
        assert ledger.summary().launches == 1
    root = _odometer(open_ledger(tmp_path / "closed.db", "odometer"), tools)
    root(tools.count(0.125))
    root._session.account.keeper._book._store.close()
    shutil.copyfile(tmp_path / "closed.db", tmp_path / "copy.db")
    with pytest.raises(LedgerError, match="in a copy"):
        open_ledger(tmp_path / "copy.db", "odometer")
    open_ledger(tmp_path / "copy.db", "zCDP").close()  # was never used here: that is not known
    shutil.copyfile(tmp_path / "again.db", tmp_path / "closed.db")
    with pytest.raises(LedgerDamagedError, match="there are 1 charges"):
        open_ledger(tmp_path / "closed.db", "odometer")


def _odometer(ledger, tools):
    import opendp.prelude as dp

    import opendp_concurrent as oc

    return oc.make_concurrent_odometer(*tools.space(), dp.max_divergence(), ledger=ledger, d_in=1)(
        [1, 2, 3]
    )


# --- backups ---------------------------------------------------------------------------------


def test_a_backup_of_a_ledger_in_use_has_every_answer_of_before(sqlite, tools, tmp_path):
    query, ran = tools.counted(2.0**-12)
    ledger = sqlite.create()
    root, stop = tools.limit(ledger), threading.Event()

    def work():
        while not stop.is_set():
            root(query)

    worker = threading.Thread(target=work)
    worker.start()
    for number in range(5):
        before = len(ran)
        summary = ledger.backup(tmp_path / f"{number}.db")
        assert before <= summary.launches <= len(ran) + 1
    stop.set()
    worker.join()
    assert sorted(one.name for one in tmp_path.glob("*.db*")) == [f"{n}.db" for n in range(5)]
    is_a_copy(tools, tmp_path / "4.db", summary.launches)
    ledger.summary(summary.anchor)


def test_a_backup_is_made_the_ledger_deliberately(sqlite, tools, tmp_path):
    ledger = sqlite.create()
    root = tools.limit(ledger)
    root(tools.count(0.125))
    copy = tmp_path / "copy.db"
    anchor = ledger.backup(copy).anchor
    root(tools.count(0.125))
    newer = ledger.summary().anchor
    with pytest.raises(LedgerDamagedError, match="there are 1 charges, but the anchor is num"):
        restore_ledger(copy, tools.DATASET, anchor=newer)
    is_a_copy(tools, copy, 1)
    with pytest.raises(InvalidValueError, match="anchor"):
        restore_ledger(copy, tools.DATASET, anchor="1")
    assert restore_ledger(copy, tools.DATASET, anchor=anchor).launches == 1
    with open_ledger(copy, tools.DATASET) as restored:
        assert tools.launch_until_refused(tools.limit(restored), tools.count(0.125)) == 7
    with pytest.raises(LedgerError, match="nothing to restore"):
        restore_ledger(copy, tools.DATASET, anchor=anchor)


def test_a_backup_has_all_budgets_and_is_one_file(sqlite, tools, tmp_path):
    first, second = sqlite.create("a"), sqlite.create("b")
    tools.limit(second)(tools.count(0.125))
    assert first.backup(tmp_path / "copy.db").launches == 0
    assert [one.name for one in tmp_path.glob("copy*")] == ["copy.db"]
    for name, launches in (("a", 0), ("b", 1)):
        with pytest.raises(LedgerError, match="in a copy"):
            open_ledger(tmp_path / "copy.db", name)
        with open_ledger(tmp_path / "copy.db", name, read_only=True) as ledger:
            assert ledger.summary().launches == launches
    assert [one.name for one in tmp_path.glob("copy*")] == ["copy.db"]


def test_a_backup_of_a_ledger_of_0_1_0_is_no_ledger_either(tmp_path):
    """Nothing is noted about it: what was never used here would pass for the ledger."""
    _golden(tmp_path / "closed.db")
    with open_ledger(tmp_path / "closed.db", "odometer", read_only=True) as ledger:
        ledger.backup(tmp_path / "copy.db")
    for name in ("odometer", "zCDP"):
        with pytest.raises(LedgerError, match="in a copy"):
            open_ledger(tmp_path / "copy.db", name)


def test_a_backup_replaces_no_file(sqlite, tools, tmp_path):
    ledger = sqlite.create()
    (tmp_path / "there").write_text("theirs")
    for target in (tmp_path / "there", tmp_path / "no folder" / "x", sqlite.address, tmp_path):
        with pytest.raises(LedgerError, match="name a file that does not"):
            ledger.backup(target)
    for target in ("", "a\0b", "postgresql+psycopg://host/x"):
        with pytest.raises(InvalidValueError, match="target"):
            ledger.backup(target)
    assert (tmp_path / "there").read_text() == "theirs"


def test_a_server_is_backed_up_by_its_own_means(postgresql, tools, tmp_path):
    ledger = postgresql.create()
    with pytest.raises(LedgerError, match="pg_dump"):
        ledger.backup(tmp_path / "copy.db")
    with pytest.raises(LedgerError, match="PostgreSQL"):
        restore_ledger(postgresql.address, tools.DATASET, anchor=None)
    assert not list(tmp_path.glob("copy*"))


def test_the_command_makes_backups_and_restores_them(sqlite, tools, tmp_path, capsys):
    tools.limit(sqlite.create())(tools.count(0.125))
    sqlite.create("b")
    copy = str(tmp_path / "copy.db")
    assert main(["backup", sqlite.address, copy]) == 0
    assert main(["verify", copy, "--dataset", tools.DATASET]) == 0
    anchor = capsys.readouterr().out.split()[-1]
    assert anchor.startswith("1:")
    assert main(["backup", sqlite.address, copy]) == 1
    assert "name a file that does not" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["restore", copy])
    which = ["--dataset", tools.DATASET]
    assert main(["restore", copy, "--anchor", f"1:{64 * '0'}", *which]) == 1
    assert main(["restore", copy, "--anchor", anchor, *which]) == 0
    assert main(["restore", copy, "--without-anchor", "--dataset", "b"]) == 0
    sqlite.close()
    with open_ledger(copy, tools.DATASET) as ledger, pytest.raises(BudgetExceededError):
        tools.limit(ledger)(tools.count(1.0))
