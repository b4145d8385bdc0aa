"""A launch goes through few rooms, and changes between them seldom: see ``tests/walks.py``."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import opendp.prelude as dp
import pytest

dp.enable_features("contrib", "honest-but-curious")
spec = importlib.util.spec_from_file_location("walks", Path(__file__).parent / "walks.py")
assert spec
assert spec.loader
walks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(walks)


@pytest.mark.parametrize("walk", walks.WALKS)
def test_a_walk_is_short(walk, tmp_path, monkeypatch):
    if walk == "table query":
        pytest.importorskip("duckdb")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    entered, changes = walks.measured(walks.WALKS[walk]())
    most_entered, most_changes = walks.LAWS[walk]
    assert most_entered - 2 < entered <= most_entered, "run python tests/walks.py"
    assert changes <= most_changes, "run python tests/walks.py"


def test_rooms_are_counted_in_order():
    found = walks.rooms(walks.WALKS["launch"]())
    assert {"queryables", "accounts", "native"} <= set(found)
    assert all(one != after for one, after in pairwise(found))
