"""Files of results, and the page that is made from them."""

import importlib.util
import json
import re
import sys
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = (ROOT / "docs" / "benchmarks.rst").read_text(encoding="utf-8")
LISTED = {
    name: re.findall(r"^   (?!:)(\S+)$", content, re.M)
    for name, content in re.findall(r"^\.\. results:: (\S+)\n((?:   .*\n|\n)*)", PAGE, re.M)
}
ASSEMBLED = {"units_over_engine"}  # from a part, in the script


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def timing(tmp_path, monkeypatch):
    module = load("_timing")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["benchmarks/made_up.py"])
    return module


def test_results_are_saved_with_the_date_the_machine_and_what_was_missed(timing, capsys):
    timing.print_table("Times", ["what", "ms"], [["one", 1.25], ["other", None]])
    figures = {"fast": 1.23456, "slow": 9, "absent": float("nan")}
    targets = {"fast": ("at most", 2.0), "slow": ("below", 5.0), "absent": ("at most", 1.0)}
    options = Namespace(json=False, save=True, quick=True)
    timing.report(figures, targets, {"fast": "of three runs"}, options)
    saved = json.loads((timing.RESULTS / "made_up.json").read_text(encoding="utf-8"))
    assert saved["figures"] == {
        "fast": {
            "value": 1.235,
            "target": "at most 2",
            "verdict": "reached",
            "note": "of three runs",
        },
        "slow": {"value": 9, "target": "below 5", "verdict": "MISSED"},
        "absent": {"value": None, "target": "at most 1", "verdict": "not measured"},
    }
    assert saved["tables"] == [
        {"title": "Times", "header": ["what", "ms"], "rows": [["one", "1.25"], ["other", "-"]]}
    ]
    assert saved["benchmark"] == "made_up"
    assert saved["quick"] is True
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", saved["date"])
    assert saved["machine"]["packages"]["opendp"]
    assert "MISSED" in capsys.readouterr().out


def test_the_page_has_a_table_of_each_benchmark():
    assert sorted(LISTED) == load("run_all").NAMES


@pytest.mark.parametrize("name", sorted(LISTED))
def test_figures_of_the_page_are_those_of_the_benchmark(name):
    text = (BENCHMARKS / f"{name}.py").read_text(encoding="utf-8")
    missing = [one for one in LISTED[name] if f'"{one}"' not in text and one not in ASSEMBLED]
    assert not missing
