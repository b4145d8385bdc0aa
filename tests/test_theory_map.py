"""The map from theorems to code: every reference exists, and no cell is empty."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from opendp_concurrent.references import REFERENCES

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "docs" / "theory-map" / "index.rst"
PAGES = sorted(INDEX.parent.glob("*.rst"))
LITERAL = re.compile(r"``([^`]+)``")
CODE = re.compile(r"([\w/-]+\.py): ([\w.]+)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
REASONS = "open:", "not offered:", "proof device:", "see :doc:"


def rows(page):
    """All rows of the tables of a page, as lists of cells; the header is left out."""
    found, cells, within = [], None, False
    for line in page.read_text().splitlines():
        if line.startswith(".. list-table::"):
            found.append([])
            within = True
        elif within and line.startswith("   * -"):
            cells = [line[6:].strip()]
            found[-1].append(cells)
        elif within and line.startswith("     -"):
            cells.append(line[6:].strip())
        elif within and cells and line.startswith("       "):
            cells[-1] += " " + line.strip()
        elif line and not line.startswith(" "):
            within, cells = False, None
    return [row for table in found for row in table[1:]]


def all_rows():
    return [(page.name, row) for page in PAGES for row in rows(page)]


def literals(text):
    return [" ".join(one.split()) for one in LITERAL.findall(text)]


@cache
def names(path):
    """What a module defines: functions, classes and their members, and what is assigned."""
    found = set()

    def visit(body, prefix=""):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(prefix + one.id for one in targets if isinstance(one, ast.Name))

    visit(ast.parse(path.read_text()).body)
    return found


def broken(text):
    """References of a cell that lead nowhere, and literals in it that look like such."""
    wrong = []
    for one in literals(text):
        code, test = CODE.fullmatch(one), TEST.fullmatch(one)
        if test:
            path, name = ROOT / test[1], test[2]
            good = path.is_file() and name.startswith("test_") and name in names(path)
        elif code:
            path, name = ROOT / "opendp_concurrent" / code[1], code[2]
            good = path.is_file() and name in names(path)
        else:
            good = one.startswith("python benchmarks/") and (ROOT / one.split()[1]).is_file()
            good = good or (".py" not in one and "::" not in one)
        if not good:
            wrong.append(one)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_reference_exists(page):
    text = " ".join(page.read_text().split())
    known = {"tests/test_theory_map.py"}  # named without a function, by the index
    assert [one for one in broken(text) if one not in known] == []


def test_there_are_pages_and_each_has_a_place_in_the_index():
    listed = re.findall(r"^   ([\w-]+)$", INDEX.read_text(), re.MULTILINE)
    assert sorted([*listed, "index"]) == [page.stem for page in PAGES]
    assert len(all_rows()) > 200


@pytest.mark.parametrize(
    ("page", "row"), all_rows(), ids=lambda one: one if isinstance(one, str) else one[0]
)
def test_no_cell_is_empty(page, row):
    assert len(row) == 5, row
    for cell in row:
        assert len(cell) > 3, row
    statement, _, code, test, _ = row
    assert literals(statement) == []
    found = [CODE.fullmatch(one) for one in literals(code)]
    assert any(found) or code.startswith(REASONS), row
    checks = [TEST.fullmatch(one) for one in literals(test)]
    assert all(checks), row
    assert checks or test.startswith(REASONS), row


def test_an_empty_cell_and_a_dead_reference_would_be_seen():
    assert broken("``accumulators/advanced.py: advanced``, ``halt=True``") == []
    assert broken("``accumulators/advanced.py: Advanced.largest``") == []
    for wrong in (
        "accumulators/advanced.py: none_such",
        "accumulators/none_such.py: advanced",
        "accumulators/advanced.py",
        "tests/test_theory_map.py::test_none_such",
        "tests/test_none_such.py::test_no_cell_is_empty",
        "tests/test_theory_map.py::broken",
    ):
        assert broken(f"``{wrong}``") == [wrong]


def test_every_paper_is_mentioned():
    """As ``[KEY]`` or ``[KEY, Theorem 1]``; and no key that is not known."""
    text = " ".join(" ".join(page.read_text().split()) for page in PAGES)
    brackets = " ".join(re.findall(r"\[[^\]]*\]", text))
    found = set(re.findall(r"\b[A-Z][A-Za-z]{1,8}[0-9]{2}\b", brackets))
    assert found == set(REFERENCES)


# What the texts of the papers number, from 1 in each section; a missing row is noticed here.
NUMBERED = {
    "hstvvxz23": {
        **{f"1.{n}": n for n in range(1, 27)},
        **{f"2.{n}": n for n in range(1, 20)},
        **{f"3.{n}": n for n in range(1, 9)},
        **{f"4.{n}": n for n in range(1, 12)},
        **{f"B.{n}": n for n in range(1, 5)},
    },
    "hsv25": {
        **{f"2.{n}": n for n in range(1, 6)},
        **{f"3.{n}": n for n in range(1, 4)},
        **{f"4.{n}": n for n in range(1, 4)},
        **{f"5.{n}": n for n in range(1, 10)},
        **{f"6.{n}": n for n in range(1, 5)},
        **{f"7.{n}": n for n in range(1, 3)},
    },
    "vw21": {
        **{f"Definition {n}": n for n in range(1, 11)},
        **{f"Theorem 1.{n}": n for n in range(1, 6)},
        **{f"Lemma {n}": n for n in range(1, 6)},
        **{f"Theorem {n}": n for n in ("3.1", "4.1", "5.1", "5.2", "5.3", "5.4")},
        "Corollary 1": 1,
    },
    "lw22": {
        **{f"Definition {n}": n for n in range(1, 4)},
        **{f"Theorem {n}": n for n in range(1, 4)},
        **{f"Lemma {n}": n for n in range(1, 6)},
        "Corollary 1": 1,
    },
}


@pytest.mark.parametrize("name", NUMBERED)
def test_no_number_is_left_out(name):
    statements = [row[0] for row in rows(ROOT / "docs" / "theory-map" / f"{name}.rst")]
    for number in NUMBERED[name]:
        pattern = rf"(?<![\d.]){re.escape(number)}(?![\d.]\d|\d)"
        assert any(re.search(pattern, one) for one in statements), number
    if name == "hstvvxz23":
        algorithms = " ".join(one for one in statements if "Algorithm" in one)
        for number in range(1, 16):
            assert re.search(rf"\b{number}\b", algorithms), f"Algorithm {number}"
