"""Who may import what: the layers are in pyproject.toml, for import-linter."""

import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from .over import over

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


def test_imports_point_to_lower_levels_only():
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


# Extras, which are not installed everywhere; and what the command line needs for one command only.
LATER = {"dp_accounting", "duckdb", "matplotlib", "polars", "psycopg", "statsmodels"}
LAZY = {
    "__main__.py": {
        "import_module('opendp.prelude')",
        "import_module('opendp_concurrent')",
        "import_module('opendp_concurrent.ledger.command')",
        "import_module('opendp_concurrent.plot')",
        "import_module('opendp_concurrent.swapped')",
    },
    "contexts/answers.py": {"import_module(name)"},  # Polars or pandas, as the user asks
    "fdp/accountant.py": {"reading"},  # which needs the extra
    "fdp/events.py": {"reading"},
    "plot.py": {"ledger.spending", "ledger.words"},  # which need the extra
    "progress.py": {"import_module('tqdm.auto')"},  # which needs the extra
    "tables/engines/rendered.py": {  # which needs the extra
        "import_module('opendp_concurrent.tables.rendering.render')"
    },
}


def hidden(tree):
    """Names of the modules that are imported inside functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.module or ""
                elif isinstance(node, ast.Call):
                    called = getattr(node.func, "id", getattr(node.func, "attr", None))
                    if called in ("import_module", "__import__"):
                        yield ast.unparse(node)


def test_hidden_imports_are_found():
    found = "def f():\n    import a.b\n    from .c import d\n    def g(): import_module('e')\n"
    assert set(hidden(ast.parse(found))) == {"a.b", "c", "import_module('e')"}
    assert not set(hidden(ast.parse("import a\nfrom .b import c\nclass D:\n    import e\n")))


@over((path,) for path in sorted(PACKAGE.rglob("*.py")))
def test_no_import_is_hidden_in_a_function(path):
    name = path.relative_to(PACKAGE).as_posix()
    allowed = LAZY.get(name, set())
    for module in hidden(ast.parse(path.read_text())):
        if name == "__init__.py" and module == "import_module(f'{__name__}.{name}')":
            continue  # the groups that need an extra
        assert module.split(".")[0] in LATER or module in allowed, module


def circles(edges):
    """Strongly connected components with more than one node [Tar72]."""
    order, low, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            component = set()
            while node not in component:
                component.add(stack.pop())
            if len(component) > 1:
                found.append(component)

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return found


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.fixture(scope="module")
def edges():
    graph = grimp.build_graph("opendp_concurrent", exclude_type_checking_imports=True)
    return {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}


def test_no_modules_import_each_other_in_a_circle(edges):
    assert circles(edges) == []


def test_no_rooms_import_each_other_in_a_circle(edges):
    def room(module):
        return ".".join(module.split(".")[:2])

    rooms = {room(one): set() for one in edges}
    for one, others in edges.items():
        rooms[room(one)] |= {room(other) for other in others} - {room(one), "opendp_concurrent"}
    assert len(rooms) > 15
    assert circles(rooms) == []
