"""What the page "Proved by a machine" shows is in the Rocq files, which assume nothing."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "docs" / "proofs"
FOLDER = ROOT / "rocq"
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.v"))}
PAGE = (ROOT / "machine.rst").read_text(encoding="utf-8")
MAKEFILE = (FOLDER / "Makefile").read_text(encoding="utf-8")
THEOREMS = re.search(r"^THEOREMS = (.*?)\n\n", MAKEFILE, re.M | re.S)[1].replace("\\", "").split()
COMMENT = re.compile(r"\(\*.*?\*\)", re.S)
FORBIDDEN = r"\b(Admitted|admit|Axioms?|Parameters?|Conjecture|bypass_check|Unset Guard Checking)\b"
SHOWN = re.findall(
    r"literalinclude:: rocq/(\S+)\n.*\n *:start-at: (Theorem (\w+).*)\n *:end-before: Proof\.", PAGE
)


def test_nothing_is_assumed():
    for name, text in FILES.items():
        assert re.findall(FORBIDDEN, COMMENT.sub("", text)) == [], name


def test_each_statement_on_the_page_is_a_theorem_whose_assumptions_are_printed():
    assert PAGE.count("literalinclude::") >= len(SHOWN) > 3
    for name, line, theorem in SHOWN:
        assert FILES[name].count(f"\n{line}") == 1, theorem  # Sphinx shows the first one
        printed = f"{name.removesuffix('.v')}.{theorem}"
        assert printed in THEOREMS or f'idtac "{printed}"' in FILES["Exponential.v"]


def rocq_is_here():
    coqc = shutil.which("coqc")
    if coqc is None:
        return False
    where = subprocess.run([coqc, "-where"], capture_output=True, text=True, check=True).stdout
    return (Path(where.strip()) / "user-contrib" / "mathcomp" / "algebra").is_dir()


@pytest.mark.slow
@pytest.mark.skipif(not rocq_is_here(), reason="coqc or mathcomp is not installed")
def test_all_files_compile_without_axioms(tmp_path):
    for path in (*FOLDER.glob("*.v"), FOLDER / "Makefile"):
        shutil.copy(path, tmp_path)
    made = subprocess.run(
        ["make", "-s", "-C", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    core, _, real = made.stdout.partition("Exponential.")
    names, said = core.splitlines()[::2], core.splitlines()[1::2]
    assert set(said) == {"Closed under the global context"}
    assert names == THEOREMS
    assert set(re.findall(r"^(\S+)\s*:(?!$)", real, re.M)) <= {
        "boolp.propositional_extensionality",
        "boolp.functional_extensionality_dep",
        "boolp.constructive_indefinite_description",
    }
