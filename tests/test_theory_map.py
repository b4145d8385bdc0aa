"""The map from theorems to code: every reference exists, and no cell is empty."""

import ast
import re
from functools import cache
from pathlib import Path

from docutils import nodes

from opendp_concurrent.references import REFERENCES

from . import rst
from .over import over

ROOT = Path(__file__).parent.parent
INDEX = ROOT / "docs" / "theory-map" / "index.rst"
PAGES = sorted(INDEX.parent.glob("*.rst"))
CODE = re.compile(r"([\w/-]+\.py): ([\w.]+)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
REASONS = "open:", "not offered:", "proof device:"


def rows(page):
    """All rows of the tables of a page, as lists of cells; the header is left out."""
    bodies = rst.page(page).findall(nodes.tbody)
    return [list(row.children) for body in bodies for row in body.children]


def all_rows():
    return [(page.name, row) for page in PAGES for row in rows(page)]


def has_reason(cell):
    """Whether a cell says why there is nothing in it, or refers to another page."""
    pages = cell.findall(lambda one: "doc" in getattr(one, "attributes", {}).get("classes", ()))
    return rst.said(cell).startswith(REASONS) or (rst.said(cell).startswith("see ") and any(pages))


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


def broken(node):
    """References of a cell or page that lead nowhere, and literals in it that look like such."""
    wrong = []
    for one in rst.literals(node):
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


@over((page,) for page in PAGES)
def test_every_reference_exists(page):
    known = {"tests/test_theory_map.py"}  # named without a function, by the index
    assert [one for one in broken(rst.page(page)) if one not in known] == []


def test_there_are_pages_and_each_has_a_place_in_the_index():
    listed = rst.entries_of(rst.page(INDEX))
    assert sorted([*listed, "index"]) == [page.stem for page in PAGES]
    assert len(all_rows()) > 200


@over(all_rows())
def test_no_cell_is_empty(page, row):
    assert len(row) == 5, row
    for cell in row:
        assert len(rst.said(cell)) > 3, row
    statement, _, code, test, _ = row
    assert rst.literals(statement) == []
    assert any(CODE.fullmatch(one) for one in rst.literals(code)) or has_reason(code), row
    checks = [TEST.fullmatch(one) for one in rst.literals(test)]
    assert all(checks), row
    assert checks or has_reason(test), row


def test_an_empty_cell_and_a_dead_reference_would_be_seen():
    assert broken(rst.parse("``accumulators/advanced.py: advanced``, ``halt=True``")) == []
    assert broken(rst.parse("``accumulators/advanced.py: Advanced.largest``")) == []
    assert has_reason(rst.parse("see :doc:`lw22`"))
    assert not has_reason(rst.parse("see elsewhere"))
    for wrong in (
        "accumulators/advanced.py: none_such",
        "accumulators/none_such.py: advanced",
        "accumulators/advanced.py",
        "tests/test_theory_map.py::test_none_such",
        "tests/test_none_such.py::test_no_cell_is_empty",
        "tests/test_theory_map.py::broken",
    ):
        assert broken(rst.parse(f"``{wrong}``")) == [wrong]


def test_every_paper_is_mentioned():
    """As ``[KEY]`` or ``[KEY, Theorem 1]``; and no key that is not known."""
    found = {key for page in PAGES for key in rst.cited(rst.said(rst.page(page)))}
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


@over((name,) for name in NUMBERED)
def test_no_number_is_left_out(name):
    page = ROOT / "docs" / "theory-map" / f"{name}.rst"
    statements = [rst.said(row[0]) for row in rows(page)]
    for number in NUMBERED[name]:
        pattern = rf"(?<![\d.]){re.escape(number)}(?![\d.]\d|\d)"
        assert any(re.search(pattern, one) for one in statements), number
    if name == "hstvvxz23":
        algorithms = " ".join(one for one in statements if "Algorithm" in one)
        for number in range(1, 16):
            assert re.search(rf"\b{number}\b", algorithms), f"Algorithm {number}"
