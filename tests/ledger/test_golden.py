"""Ledgers that earlier versions wrote are read, and go on, as they did there."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from opendp_concurrent.ledger import datasets, open_ledger

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = sorted(one.name for one in GOLDEN.iterdir() if (one / "expected.json").exists())


def _make():
    specification = importlib.util.spec_from_file_location("golden", GOLDEN / "make.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


make = _make()


@pytest.fixture(params=VERSIONS)
def written(request, tmp_path):
    """A copy of what one version wrote, and what it said there."""
    for file in (GOLDEN / request.param).iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    return tmp_path, json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))


def close(found, expected):
    """Equal, but for the last places of numbers: a total that is recorded may be another one's."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            close(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            close(*pair)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        assert found == expected


def test_there_is_a_ledger_of_each_version_that_was_released():
    assert "0.1.0" in VERSIONS


def test_every_budget_says_what_it_said(written):
    folder, expected = written
    names = datasets(folder / "closed.db")
    assert sorted([*names, "killed"]) == sorted(expected)
    for name in names:
        with open_ledger(folder / "closed.db", name) as ledger:
            close(make.told(ledger), expected[name])


def test_every_budget_goes_on(written):
    folder, expected = written
    for name, budget in make.budgets().items():
        with open_ledger(folder / "closed.db", name, anchor=expected[name]["anchor"]) as ledger:
            make.launch(ledger, budget)
            assert ledger.summary().launches == 2 * expected[name]["launches"]
        with open_ledger(folder / "closed.db", name) as ledger:
            assert ledger.summary().launches == 2 * expected[name]["launches"]


def test_what_a_killed_process_left_is_read_and_goes_on(written):
    folder, expected = written
    with open_ledger(folder / "killed.db", "killed") as ledger:
        close(make.told(ledger), expected["killed"])
        make.launch(ledger, make.budgets()["pure"])
        assert ledger.summary().launches == 2 * expected["killed"]["launches"]
