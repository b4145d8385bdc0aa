"""Type checkers report the mistakes in a script, and nothing else; editors know what there is."""

import inspect
import keyword
import os
import re
import subprocess
import sys
from pathlib import Path

import opendp.prelude as dp
import pytest
from opendp.context import constructors

import opendp_concurrent as oc
from opendp_concurrent.context.query import ConcurrentQuery

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "context" / "typed_script.py"
STUB = ROOT / "opendp_concurrent" / "context" / "names.pyi"
OWN = {name for cls in ConcurrentQuery.__mro__ for name in vars(cls)}


HEAD = """# What editors know of a query on a list; tests/context/test_types.py writes it.
# ruff: noqa: N803
from typing import Any

from .query import ConcurrentQuery

class ListQuery(ConcurrentQuery):"""


def parameters(make):
    """The parameters of a constructor in a query, each of which may be left out."""
    told = ["self"]
    for one in inspect.signature(make).parameters.values():
        if one.name in ("input_domain", "input_metric") or keyword.iskeyword(one.name):
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in told:
            told.append("*")
        told.append(f"{one.name}: Any = ...")
    return ", ".join(told)


def stub():
    methods = [
        f"    def {name}({parameters(make)}) -> ListQuery: ..."
        for name, (make, _) in sorted(constructors.items())
        if name not in OWN
    ]
    return "\n".join([HEAD, *methods, ""])


def test_the_stub_has_the_constructors_of_a_query():
    known = set(re.findall(r"def (\w+)", STUB.read_text()))
    assert known == {name for name in constructors if name not in OWN}


def planted(checker):
    lines = SCRIPT.read_text().splitlines()
    return [
        number for number, line in enumerate(lines, 1) if re.search(rf"# wrong: .*{checker}", line)
    ]


def reported(*command):
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = [one for one in done.stdout.splitlines() if "PrivateImportUsage" not in one]  # OpenDP
    found = re.findall(rf"{SCRIPT.name}:(\d+)(?::\d+)?.*error", "\n".join(lines))
    return sorted(set(map(int, found))), done.stdout + done.stderr


@pytest.mark.slow  # .ci/run has it beside mypy's check of the package, which it needs anyway
def test_mypy_reports_the_planted_mistakes_and_no_other():
    pytest.importorskip("mypy")
    found, told = reported(sys.executable, "-m", "mypy", str(SCRIPT))
    assert found == planted("mypy"), told


@pytest.mark.slow
def test_pyright_reports_the_planted_mistakes_and_no_other():
    pytest.importorskip("pyright", reason="pyright is not installed")
    found, told = reported(
        sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(SCRIPT)
    )
    assert found == planted("pyright"), told


def test_the_script_runs_but_for_its_mistakes(tmp_path):
    lines = [line for line in SCRIPT.read_text().splitlines() if "# wrong" not in line]
    exec(compile("\n".join(lines), "typed_script", "exec"), {"__name__": "typed_script"})


def test_names_are_listed_once():
    dp.enable_features("contrib", "honest-but-curious")
    context = oc.concurrent_context([1], dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0))
    query = context.query()
    for one in (query, query.count(), context, context.queryable):
        found = list(type(one).__dir__(one))
        assert len(found) == len(set(found))
    assert {"laplace", "clamp", "block_filter", "above_threshold"} <= set(dir(query))


@pytest.mark.slow
def test_jedi_completes_what_there_is():
    jedi = pytest.importorskip("jedi")
    code = SCRIPT.read_text()
    for start, known in {
        "context.query().": {"count", "clamp", "laplace", "above_threshold", "compositor"},
        "few.": {"count", "mean", "truncate", "quantile", "top"},
        "few.count().": {"laplace", "gaussian", "release", "summarize"},
        "root.": {"remaining", "privacy_loss", "describe", "risk", "close"},
        "odometer([1]).": {"privacy_loss", "loss_after", "risk"},
    }.items():
        text = f"{code}\n{start}"
        places = jedi.Script(text, path=str(SCRIPT), project=jedi.Project(ROOT))
        found = [one.name for one in places.complete(len(text.splitlines()), len(start))]
        assert known <= set(found), start
        assert len(found) == len(set(found))


if __name__ == "__main__":
    STUB.write_text(stub())
