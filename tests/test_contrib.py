"""Patches for OpenDP: each mends what its script shows, and can be applied to the installed one."""

import os
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
REPORTS = {  # of faults in Rust: how each begins to say what is wrong
    "children": "a child answers nothing",
    "filter": "a query of 5 ran before",
    "strict": "at epsilon = 0.01, 10 o",
}
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


@pytest.mark.slow
@pytest.mark.parametrize("case", REPORTS)
def test_a_report_reproduces(case):
    done = reproduce(case, INSTALLED.parent, without=[])
    assert (done.returncode, done.stderr[:23]) == (1, REPORTS[case]), done.stderr
