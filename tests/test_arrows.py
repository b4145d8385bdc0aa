"""Who may import what: the layers are in pyproject.toml, for import-linter."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "opendp_concurrent"


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_three_files_know_opendps_private_names():
    knowing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if name.startswith("opendp.") and any(part.startswith("_") for part in name.split("."))
    }
    assert knowing == {"native/argtypes.py", "native/boundary.py", "native/opendp.py"}


def test_noise_comes_from_opendp_only():
    for path in PACKAGE.rglob("*.py"):
        for name in imported(path):
            assert not name.startswith(("random", "numpy.random", "secrets")), path


def test_imports_point_to_lower_levels_only():
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
