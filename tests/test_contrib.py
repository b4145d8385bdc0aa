"""Patches for OpenDP: each mends what its script shows, and can be applied to the installed one."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import opendp
import pytest

ROOT = Path(__file__).parents[1] / "contrib" / "opendp"
INSTALLED = Path(opendp.__file__).parent
CASES = sorted(
    one.parent.name for one in ROOT.glob("*/reproduce.py") if (one.parent / "opendp.patch").exists()
)
REPORTS = ["strict"]  # of faults in Rust, without a patch
OTHERS = ["docs", "proofs"]  # of files that the installed OpenDP does not have
# the script runs without what OpenDP imports if it is there, which takes most of the time
RUN = "import runpy, sys; sys.modules.update(dict.fromkeys({})); runpy.run_path({!r})"
SLOW = ["numpy", "polars", "scipy", "sklearn"]


def reproduce(case, path, without=SLOW):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(without, str(ROOT / case / "reproduce.py"))],
        env={**os.environ, "PYTHONPATH": str(path), "RUST_BACKTRACE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def patched(folder, *cases):
    """Return where a copy of the installed sources is, with patches applied."""
    copy = folder / "python" / "src" / "opendp"
    shutil.copytree(INSTALLED, copy, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    (copy / "lib").symlink_to(INSTALLED / "lib")
    for case in cases:
        command = ["patch", "-p1", "--fuzz=0", "--input", str(ROOT / case / "opendp.patch")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    return copy.parent


@pytest.mark.parametrize("case", CASES)
def test_a_patch_mends_what_its_script_shows(case, tmp_path):
    before = reproduce(case, INSTALLED.parent)
    assert before.returncode != 0, "the fault is gone: is a hook of ours needless now?"
    after = reproduce(case, patched(tmp_path, case))
    assert (after.returncode, after.stdout, after.stderr) == (0, "", "")


@pytest.mark.parametrize("case", REPORTS)
def test_a_report_reproduces(case):
    done = reproduce(case, INSTALLED.parent, without=[])
    assert (done.returncode, done.stderr[:23]) == (1, "at epsilon = 0.01, 10 o"), done.stderr


def test_all_patches_can_be_applied_together(tmp_path):
    path = patched(tmp_path, *reversed(CASES))
    assert reproduce("callbacks", path).returncode == 0


def test_each_folder_stands_in_the_readme():
    table = (ROOT / "README.md").read_text()
    named = sorted(line.split("`")[1] for line in table.splitlines() if "| `" in line[:4])
    assert named == sorted(CASES + REPORTS + OTHERS)


def added(case, name):
    """The lines of a file that a patch adds."""
    text = (ROOT / case / "opendp.patch").read_text(encoding="utf-8")
    (part,) = [one for one in text.split("diff --git ") if f"+++ b/{name}\n" in one]
    return "".join(line[1:] for line in part.splitlines(keepends=True)[6:] if line[0] == "+")


def test_the_code_of_the_plugin_page_runs():
    code = added("docs", "docs/source/api/user-guide/plugins/code/concurrent-composition.rst")
    example = doctest.DocTestParser().get_doctest(code, {}, "the page", None, 0)
    assert len(example.examples) > 10
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_the_plugin_page_shows_each_part_of_its_code():
    folder = "docs/source/api/user-guide/plugins/"
    code = added("docs", folder + "code/concurrent-composition.rst")
    page = added("docs", folder + "concurrent-composition.rst")
    parts = re.findall(r"^    # ([\w-]+)$", code, re.M)
    assert parts == re.findall(r":start-after: # ([\w-]+)$", page, re.M)
    assert parts == re.findall(r":end-before: # /([\w-]+)$", page, re.M)


def test_theorems_in_the_tables_of_proofs_are_those_of_the_theory_map():
    """Numbers of [HSTVVXZ23] that the patch adds are listed, with their tests, in our docs."""
    text = (ROOT / "proofs" / "opendp.patch").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("+") and "haney2023" in line]
    cited = set(re.findall(r"(Theorem|Lemma)s?~([\d.]+)(?=\\cite{haney2023|~and)", " ".join(lines)))
    known = (ROOT.parents[1] / "docs" / "theory-map" / "hstvvxz23.rst").read_text(encoding="utf-8")
    assert {("Theorem", "1.20"), ("Theorem", "1.22"), ("Lemma", "2.19")} <= cited
    assert all(f"   * - {kind} {number}\n" in known for kind, number in cited)


@pytest.mark.parametrize("case", CASES + REPORTS)
def test_a_script_imports_opendp_only(case):
    assert "opendp_concurrent" not in (ROOT / case / "reproduce.py").read_text()
