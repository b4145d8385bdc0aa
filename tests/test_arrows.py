"""Who may import what: the layers are in pyproject.toml, for import-linter."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "opendp_concurrent"


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_one_room_knows_opendps_private_names():
    knowing = {
        path.relative_to(PACKAGE).parent.as_posix()
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if name.startswith("opendp.") and any(part.startswith("_") for part in name.split("."))
    }
    assert knowing == {"native"}


def test_noise_comes_from_opendp_only():
    for path in PACKAGE.rglob("*.py"):
        for name in imported(path):
            assert not name.startswith(("random", "numpy.random", "secrets")), path
