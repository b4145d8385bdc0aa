"""The anchors file: what it notes is found again, and what is damaged is named."""

import os
import shutil

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.errors import LedgerError
from opendp_concurrent.ledger.storage.anchors import Anchor, Anchors

ONE, TWO, THREE = (Anchor(number, 64 * f"{number}") for number in (1, 2, 3))


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "budget.db"
    path.write_bytes(b"")
    return path


@pytest.fixture
def anchors(database):
    found = Anchors(database)
    yield found
    found.close()


def test_without_a_file_nothing_is_noted(anchors):
    assert anchors.find("survey") == (False, None)
    anchors.note("survey", ONE)  # ignored
    assert not anchors.path.exists()


def test_the_newest_charge_of_each_budget_is_found(anchors, database):
    anchors.enter("survey", ONE)
    anchors.enter("census", TWO)
    anchors.note("survey", THREE)
    for reader in (anchors, Anchors(database)):
        assert reader.find("survey") == (True, THREE)
        assert reader.find("census") == (True, TWO)
        assert reader.find("another") == (True, None)


def test_a_copy_does_not_own_the_file(anchors, database, tmp_path):
    anchors.enter("survey", ONE)
    anchors.enter("census", TWO)
    copy = tmp_path / "copy.db"
    shutil.copyfile(database, copy)
    shutil.copyfile(anchors.path, f"{copy}-anchors")
    copied = Anchors(copy)
    assert copied.find("survey") == (False, ONE)
    copied.enter("survey", THREE)  # it is restored, for one budget
    assert copied.find("survey") == (True, THREE)
    assert copied.find("census") == (True, None)
    assert anchors.find("census") == (True, TWO)


@pytest.mark.parametrize("place", [128, 128 + 40, 128 + 60, 128 + 120])
def test_a_damaged_line_is_an_error(anchors, place):
    anchors.enter("survey", ONE)
    whole = bytearray(anchors.path.read_bytes())
    whole[place] ^= 1
    anchors.path.write_bytes(whole)
    if place == 128:  # the line is of another budget now
        assert anchors.find("survey") == (True, None)
        return
    with pytest.raises(LedgerError, match="-anchors is damaged.*restore the ledger with an anchor"):
        anchors.find("survey")


def test_a_database_that_is_gone_is_not_noted(anchors, database):
    os.remove(database)
    with pytest.raises(LedgerError, match="is gone; nothing was charged"):
        anchors.enter("survey", ONE)
    assert not anchors.path.exists()


def test_a_closed_file_notes_nothing(anchors):
    anchors.enter("survey", ONE)
    anchors.note("survey", TWO)
    anchors.close()
    anchors.note("survey", THREE)
    assert anchors.find("survey") == (True, TWO)
