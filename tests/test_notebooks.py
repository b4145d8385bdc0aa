"""The notebooks of the docs run from top to bottom, and are kept without their outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "docs" / "notebooks"


def code(name):
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(tmp_path)  # a notebook leaves nothing behind

    def run(name):
        variables = {}
        for cell in code(name):
            exec(compile(cell, name, "exec"), variables)
        assert list(tmp_path.iterdir()) == []
        return variables, capsys.readouterr().out

    yield run
    plt.close("all")


def test_children_are_queried_in_turn_and_paid_for_once(run):
    after, printed = run("concurrent-children")
    assert after["losses"]["the filter"][:-1] == [0.5] * (len(after["losses"]["the filter"]) - 1)
    assert after["root"].privacy_loss() == 0.75
    assert after["report"].privacy_loss() == 0.1875
    assert printed.count("FailedFunction") == 2  # what OpenDP's filter said


def test_processes_spend_one_budget_to_the_end(run):
    after, printed = run("budgets-across-processes")
    assert after["summary"].spent == 1.0
    assert after["summary"].launches == 12
    assert "exit code: [9]\nspent: 0.375\n" in printed
    assert after["codes"] == [0, 0, 0]


def test_weeks_that_arrive_and_a_counter_stay_under_one_cap(run):
    after, printed = run("weeks-of-a-stream")
    assert after["counter"].map(1) + after["filter_"].map(1) <= after["cap"]
    assert len(after["trends"]) == after["WEEKS"]
    assert after["losses"][4] == 0.75
    assert after["losses"][-1] == 0.5
    assert after["admitted"] == 4
    assert "block 0 of the filter refuses: spent 0.75 of 0.75" in printed


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    """Noise differs from run to run; the docs have the outputs of their own build."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
