"""The map from theorems to code: every reference exists."""

import ast
import re
from functools import cache
from pathlib import Path

from . import rst
from .over import over

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "theory-map").glob("*.rst"))
CODE = re.compile(r"([\w/-]+\.py): ([\w.]+)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")


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
